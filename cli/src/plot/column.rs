//! The columns of a result as numbers to plot.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Field, Float64Type, Int64Type, TimeUnit, TimestampMicrosecondType,
};
use datafusion::common::plan_err;
use datafusion::common::stats::Precision;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures::TryStreamExt;

use super::titles::Title;
use crate::info::printable;

/// Names are cut after this many letters.
const LONGEST_NAME: usize = 28;

/// What the numbers of a column stand for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Values {
    Numbers,
    /// Microseconds since 1970.
    Times,
    /// Places in this list, which is in order of appearance.
    Names(Vec<String>),
}

/// A column of a result.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Column {
    pub(super) title: Title,
    pub(super) values: Values,
    /// A number per row; NaN where there is none.
    pub(super) data: Vec<f64>,
}

impl Column {
    /// What stands beside its axis; times need no unit, they are shown as dates.
    pub(super) fn label(&self) -> String {
        match (&self.title.unit, &self.values) {
            (Some(unit), Values::Numbers) => format!("{} [{unit}]", self.title.name),
            _ => self.title.name.clone(),
        }
    }

    /// The least and the greatest number, if there is one.
    pub(super) fn range(&self) -> Option<(f64, f64)> {
        range(&self.data)
    }

    /// Fails unless its values are numbers.
    pub(super) fn need_numbers(&self) -> Result<()> {
        let what = match self.values {
            Values::Numbers => return Ok(()),
            Values::Times => "times",
            Values::Names(_) => "text",
        };
        plan_err!("column \"{}\" is {what}, and a value must be a number", self.title.name)
    }
}

/// The least and the greatest of the numbers that are there.
pub(super) fn range(data: &[f64]) -> Option<(f64, f64)> {
    let finite = data.iter().copied().filter(|value| value.is_finite());
    finite.fold(None, |range, value| match range {
        None => Some((value, value)),
        Some((low, high)) => Some((value.min(low), value.max(high))),
    })
}

/// Runs a plan and keeps its rows, unless they are more than `most`.
///
/// # Errors
/// If the plan fails, a column is neither numbers, times nor text, or there are too many rows or none.
pub(super) async fn collect(
    plan: &Arc<dyn ExecutionPlan>,
    context: &Arc<TaskContext>,
    titles: Vec<Title>,
    most: usize,
) -> Result<Vec<Column>> {
    let statistics = StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new());
    if let Ok(Precision::Exact(rows)) = statistics.map(|statistics| statistics.num_rows)
        && rows > most
    {
        return too_many(&format!("{rows}"), most);
    }
    let schema = plan.schema();
    let builders =
        schema.fields().iter().zip(titles).map(|(field, title)| Builder::of(field, title));
    let mut builders = builders.collect::<Result<Vec<Builder>>>()?;
    let mut stream = execute_stream(Arc::clone(plan), Arc::clone(context))?;
    let mut rows = 0;
    while let Some(batch) = stream.try_next().await? {
        rows += batch.num_rows();
        if rows > most {
            return too_many(&format!("more than {most}"), most);
        }
        for (at, builder) in builders.iter_mut().enumerate() {
            builder.append(&batch, at)?;
        }
    }
    if rows == 0 {
        return plan_err!("there is nothing to plot: the query has no rows");
    }
    Ok(builders.into_iter().map(Builder::finish).collect())
}

fn too_many<T>(rows: &str, most: usize) -> Result<T> {
    plan_err!(
        "the query has {rows} rows, and at most {most} are plotted; make them fewer, \
         by GROUP BY (of date_trunc('day', time), say), WHERE or LIMIT"
    )
}

struct Builder {
    column: Column,
    /// Where each name stands in the list of them.
    places: HashMap<String, usize>,
}

impl Builder {
    fn of(field: &Field, title: Title) -> Result<Self> {
        let data_type = match field.data_type() {
            DataType::Dictionary(_, of) => of.as_ref(),
            other => other,
        };
        let values = match data_type {
            DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => Values::Times,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Boolean => {
                Values::Names(vec![])
            }
            DataType::Null => Values::Numbers,
            numeric if numeric.is_numeric() => Values::Numbers,
            other => {
                return plan_err!(
                    "column \"{}\" is of type {other}, which cannot be plotted; \
                     cast it to a number, a timestamp or text",
                    field.name()
                );
            }
        };
        Ok(Self { column: Column { title, values, data: vec![] }, places: HashMap::new() })
    }

    fn append(&mut self, batch: &RecordBatch, at: usize) -> Result<()> {
        let array = batch.column(at);
        let data = &mut self.column.data;
        match &mut self.column.values {
            Values::Numbers => {
                let array = cast(array, &DataType::Float64)?;
                let numbers = array.as_primitive::<Float64Type>();
                data.extend(numbers.iter().map(|number| number.unwrap_or(f64::NAN)));
            }
            Values::Times => {
                let array = cast(array, &DataType::Timestamp(TimeUnit::Microsecond, None))?;
                let times = array.as_primitive::<TimestampMicrosecondType>();
                let times = times.reinterpret_cast::<Int64Type>();
                data.extend(times.iter().map(|time| time.map_or(f64::NAN, |time| time as f64)));
            }
            Values::Names(names) => {
                let array = cast(array, &DataType::Utf8View)?;
                for name in array.as_string_view() {
                    let Some(name) = name else {
                        data.push(f64::NAN);
                        continue;
                    };
                    let place = *self.places.entry(name.to_owned()).or_insert_with(|| {
                        names.push(short(name));
                        names.len() - 1
                    });
                    data.push(place as f64);
                }
            }
        }
        Ok(())
    }

    fn finish(self) -> Column {
        self.column
    }
}

/// A name that fits beside an axis.
fn short(name: &str) -> String {
    let name = printable(name);
    if name.chars().count() <= LONGEST_NAME {
        return name;
    }
    name.chars().take(LONGEST_NAME - 1).chain(['…']).collect()
}
