//! [`TimeOptions`]: which times of points go with which labels of the array.

use arrow::array::{AsArray, StringArray};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, IntervalMonthDayNanoType, IntervalUnit};
use datafusion::common::{exec_datafusion_err, plan_datafusion_err, plan_err};
use datafusion::error::{DataFusionError, Result};

use super::arguments::SpatialArguments;
use super::grid::time_axes;
use super::rows::SourceRows;
use crate::exec::spatial::{LabelledAxis, TimeLabels, TimeMethod, unit_of};
use crate::provider::GridTable;

/// The usual name of times.
const TIME: &str = "time";

/// The options of times.
pub(super) struct TimeOptions {
    method: TimeMethod,
    /// The most nanoseconds to a label.
    within: Option<u64>,
    /// The name of the array's dimension.
    dimension: Option<String>,
    /// The name of the points' column.
    column: Option<String>,
    /// Whether any of these options was given.
    is_wanted: bool,
}

impl TimeOptions {
    /// Takes the options of times from those of a call.
    ///
    /// # Errors
    /// For values that they do not have.
    pub(super) fn take(arguments: &mut SpatialArguments) -> Result<Self> {
        let is_wanted = arguments.rest().keys().any(|it| it == TIME || it.starts_with("time_"));
        let methods = [("nearest", TimeMethod::Nearest), ("last", TimeMethod::Last)];
        let method = arguments.choose("time_method", &methods)?;
        let within = arguments.take("time_tolerance");
        let within = within.map(|it| duration(arguments.function(), &it)).transpose()?;
        let [dimension, column] = ["time_dimension", TIME].map(|it| arguments.take(it));
        Ok(Self { method, within, dimension, column, is_wanted })
    }

    /// Returns the points' column of times, and the labels for them; `None` if the points or the array have no times.
    ///
    /// # Errors
    /// If times are wanted that are not there, or it is not known which.
    pub(super) fn labels(
        self,
        table: &GridTable,
        points: &SourceRows,
        function: &str,
    ) -> Result<Option<(usize, TimeLabels)>> {
        let axes = time_axes(&table.array())?;
        let Some(axis) = self.axis(&axes, points, function)? else { return Ok(None) };
        let at = match &self.column {
            Some(name) => points.column(name)?,
            None => {
                let is_of = |it: &Field| it.name() == axis.field.name() && is_times(it);
                match points.fields().position(|it| is_of(it) || is_usual(it)) {
                    Some(at) => at,
                    None if !self.is_wanted => return Ok(None),
                    None => {
                        return plan_err!(
                            "{function}: it is not known which column of the points is the time: name it with option 'time'; there are {}",
                            points.listed()
                        );
                    }
                }
            }
        };
        let times = points.fields().nth(at).map(|it| it.data_type().clone());
        let times = times.ok_or_else(|| exec_datafusion_err!("no column {at}"))?;
        Ok(Some((at, TimeLabels::try_new(axis, &times, self.method, self.within)?)))
    }

    /// Returns the dimension of times: the one that is named, or the only one. If there are several, it is the one that is called as a
    /// column of the points, or by the usual name. `None` without one, unless options ask for times.
    fn axis(
        &self,
        axes: &[LabelledAxis],
        points: &SourceRows,
        function: &str,
    ) -> Result<Option<LabelledAxis>> {
        let named = |name: &str| axes.iter().find(|it| it.field.name() == name);
        let is_of_points = |axis: &&LabelledAxis| {
            points.fields().any(|it| it.name() == axis.field.name() && is_times(it))
        };
        let found = match (axes, &self.dimension) {
            (_, Some(name)) => named(name),
            ([axis], None) => Some(axis),
            (several, None) => several.iter().find(is_of_points).or_else(|| named(TIME)),
        };
        let is_wanted = self.is_wanted || axes.len() > 1 && points.fields().any(is_usual);
        match found {
            None if is_wanted => Err(unknown(function, axes, self.dimension.as_deref())),
            found => Ok(found.cloned()),
        }
    }
}

fn is_times(field: &Field) -> bool {
    unit_of(field.data_type()).is_some()
}

/// Whether a column has times and the usual name.
fn is_usual(field: &Field) -> bool {
    field.name().eq_ignore_ascii_case(TIME) && is_times(field)
}

/// Tells which dimensions have timestamps.
fn unknown(function: &str, axes: &[LabelledAxis], wanted: Option<&str>) -> DataFusionError {
    let names: Vec<&str> = axes.iter().map(|it| it.field.name().as_str()).collect();
    let names = names.join(", ");
    match wanted {
        _ if axes.is_empty() => {
            plan_datafusion_err!("{function}: the array has no dimension of timestamps")
        }
        Some(name) => plan_datafusion_err!(
            "{function}: option 'time_dimension' is '{name}', and the dimensions with timestamps are {names}"
        ),
        None => plan_datafusion_err!(
            "{function}: several dimensions have timestamps, and none is called \"{TIME}\": name one with option 'time_dimension'; there \
             are {names}"
        ),
    }
}

/// Reads an interval such as `3 hours` as nanoseconds.
fn duration(function: &str, text: &str) -> Result<u64> {
    let wrong = || {
        plan_datafusion_err!(
            "{function}: option 'time_tolerance' is '{text}', expected an interval of days or less, such as '3 hours'"
        )
    };
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let interval = DataType::Interval(IntervalUnit::MonthDayNano);
    let parsed = cast_with_options(&StringArray::from(vec![text]), &interval, &options);
    let parsed = parsed.map_err(|_| wrong())?;
    let parsed = parsed.as_primitive::<IntervalMonthDayNanoType>().value(0);
    let length = i128::from(parsed.days) * 86_400_000_000_000 + i128::from(parsed.nanoseconds);
    match (parsed.months, u64::try_from(length)) {
        (0, Ok(length)) => Ok(length),
        _ => Err(wrong()),
    }
}
