//! [`TimeLabels`]: the labels of an array's time axis at the times of points.

use arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Int64Type, TimeUnit};
use datafusion::error::Result;
use gridfusion_spatial::TimeAxis;

use super::labelled_grid::LabelledAxis;
use crate::error::Error;

/// Which label a time gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeMethod {
    /// The nearest one.
    Nearest,
    /// The last one that is not later.
    Last,
}

/// The labels of a time axis, and how times find them.
#[derive(Debug)]
pub(crate) struct TimeLabels {
    pub(crate) axis: LabelledAxis,
    /// The labels in `unit` since 1970.
    counts: Vec<i64>,
    unit: TimeUnit,
    pub(crate) method: TimeMethod,
    /// The most nanoseconds between a time and its label, and the most units.
    #[cfg_attr(
        not(feature = "codec"),
        allow(dead_code, reason = "only plans that travel need it")
    )]
    pub(crate) within: Option<u64>,
    within_units: u64,
}

impl TimeLabels {
    /// Takes the labels of an axis for times of the type `times`. `within` is a number of nanoseconds.
    ///
    /// # Errors
    /// `Usage` if labels or times are no timestamps, or the labels are in no order.
    pub(crate) fn try_new(
        axis: LabelledAxis,
        times: &DataType,
        method: TimeMethod,
        within: Option<u64>,
    ) -> crate::error::Result<Self> {
        let name = axis.field.name().clone();
        let unit = unit_of(times).and_then(|it| Some(it.max(unit_of(axis.labels.data_type())?)));
        let unit = unit.ok_or_else(|| {
            let labels = axis.labels.data_type();
            Error::usage(format!(
                "points have times of type {times}, and \"{name}\" labels of {labels}: both have to be timestamps or dates"
            ))
        })?;
        let counts = counted(&axis.labels, unit, false).map_err(|_| {
            Error::usage(format!(
                "\"{name}\" has times that a timestamp in {unit:?}s cannot hold: cast the times of the points to a coarser type"
            ))
        })?;
        if counts.null_count() > 0 {
            return Err(Error::usage(format!("\"{name}\" has a label that is NULL")));
        }
        let counts = counts.as_primitive::<Int64Type>().values().to_vec();
        TimeAxis::new(&counts).map_err(|error| error.about(&name))?;
        let nanoseconds = match unit {
            TimeUnit::Second => 1_000_000_000,
            TimeUnit::Millisecond => 1_000_000,
            TimeUnit::Microsecond => 1_000,
            TimeUnit::Nanosecond => 1,
        };
        let within_units = within.map_or(u64::MAX, |it| it / nanoseconds);
        Ok(Self { axis, counts, unit, method, within, within_units })
    }

    /// Returns the index of each time's label; NULL without a time, or without a label.
    pub(super) fn find(&self, times: &ArrayRef) -> Result<UInt32Array> {
        let axis = TimeAxis::new(&self.counts)?;
        let times = counted(times, self.unit, true)?;
        let label = |time: Option<i64>| {
            let found = match self.method {
                TimeMethod::Nearest => axis.nearest(time?, self.within_units),
                TimeMethod::Last => axis.last(time?, self.within_units),
            };
            found.and_then(|it| u32::try_from(it).ok())
        };
        Ok(times.as_primitive::<Int64Type>().iter().map(label).collect())
    }

    /// Returns the part of `EXPLAIN` that names the labels.
    pub(super) fn shown(&self) -> String {
        let method = format!("{:?}", self.method).to_lowercase();
        format!("time={} ({method})", self.axis.field.name())
    }
}

/// Whether a column has times that labels can be found for.
pub(crate) fn unit_of(times: &DataType) -> Option<TimeUnit> {
    match times {
        DataType::Timestamp(unit, _) => Some(*unit),
        DataType::Date32 => Some(TimeUnit::Second),
        DataType::Date64 => Some(TimeUnit::Millisecond),
        _ => None,
    }
}

/// Returns times as numbers of units since 1970, in UTC. A number that does not fit is NULL, or an error unless `safe`.
fn counted(
    times: &ArrayRef,
    unit: TimeUnit,
    safe: bool,
) -> Result<ArrayRef, arrow::error::ArrowError> {
    let options = CastOptions { safe, ..CastOptions::default() };
    let zone = match times.data_type() {
        DataType::Timestamp(_, zone) => zone.clone(),
        _ => None,
    };
    let times = cast_with_options(times, &DataType::Timestamp(unit, zone), &options)?;
    cast_with_options(&times, &DataType::Int64, &options)
}
