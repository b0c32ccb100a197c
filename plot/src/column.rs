//! The columns of a result as numbers to plot.

use std::collections::HashMap;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Field, Float64Type, Int64Type, Schema, TimeUnit, TimestampMicrosecondType,
};
use arrow::error::ArrowError;

use crate::bounds::Bounds;
use crate::calendar::Calendar;
use crate::calendar_units::CalendarUnits;
use crate::error::{Result, refuse};
use crate::role::Role;
use crate::spec::Format;
use crate::title::{Title, printable};

/// The most characters of a name that are shown.
const LONGEST_NAME: usize = 28;

/// The meaning of the numbers in a column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Values {
    Numbers,
    /// Microseconds since 1970 of a calendar.
    Times(Calendar),
    /// Indices into this list of names, which is in order of appearance.
    Names(Vec<String>),
}

/// A column of a result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Column {
    pub(crate) title: Title,
    pub(crate) values: Values,
    /// A number per row; NaN for NULL.
    pub(crate) data: Vec<f64>,
    /// The ends of the cells of its values, if a file declares them.
    pub(crate) bounds: Option<Bounds>,
}

impl Column {
    pub(crate) fn new(title: Title, values: Values, data: Vec<f64>) -> Self {
        Self { title, values, data, bounds: None }
    }

    /// Returns the label of its axis. Times have no unit there, because ticks show them as dates.
    pub(crate) fn label(&self) -> String {
        // Maps show the usual sign instead of `degrees_east`.
        let unit = self.title.unit.as_ref().map(|unit| match self.title.role {
            Role::Longitude if unit.starts_with("degree") => "°E",
            Role::Latitude if unit.starts_with("degree") => "°N",
            _ => unit.as_str(),
        });
        match (unit, &self.values) {
            (Some(unit), Values::Numbers) => format!("{} [{unit}]", self.title.name),
            _ => self.title.name.clone(),
        }
    }

    /// Fails if its values are times or text.
    pub(crate) fn need_numbers(&self) -> Result<()> {
        let what = match self.values {
            Values::Numbers => return Ok(()),
            Values::Times(_) => "times",
            Values::Names(_) => "text",
        };
        refuse(format!("column \"{}\" is {what}, and a value must be a number", self.title.name))
    }
}

/// The columns of a result with at least one row.
#[derive(Debug)]
pub struct Columns {
    pub(crate) columns: Vec<Column>,
}

impl Columns {
    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.data.len())
    }
}

/// A collector of the rows of a result, batch by batch, which keeps only the numbers to draw.
#[derive(Debug)]
pub struct ColumnsBuilder {
    builders: Vec<Builder>,
    rows: usize,
    format: Format,
}

impl ColumnsBuilder {
    /// Starts with no rows, for a picture of this format. Columns of the schema beyond the last title
    /// are left out.
    ///
    /// # Errors
    /// `Usage` if a column is neither numbers, times nor text.
    pub fn new(
        schema: &Schema,
        titles: impl IntoIterator<Item = Title>,
        format: Format,
    ) -> Result<Self> {
        let fields = schema.fields().iter().zip(titles);
        let builders = fields.map(|(field, title)| Builder::try_new(field, &title));
        Ok(Self { builders: builders.collect::<Result<_>>()?, rows: 0, format })
    }

    /// Appends rows of the schema.
    ///
    /// # Errors
    /// `Usage` if there are more rows than [`Format::row_limit`]; `Arrow` if columns are missing, or
    /// a value cannot be converted.
    pub fn append(&mut self, batch: &RecordBatch) -> Result<()> {
        self.rows += batch.num_rows();
        if self.rows > self.format.row_limit() {
            return self.format.too_many(&format!("more than {}", self.format.row_limit()));
        }
        if batch.num_columns() < self.builders.len() {
            return Err(ArrowError::SchemaError("a batch lacks columns".to_owned()).into());
        }
        for (builder, array) in self.builders.iter_mut().zip(batch.columns()) {
            builder.append(array)?;
        }
        Ok(())
    }

    /// Sets the ends of the cells of a column, for heat maps. `cells` has its values, and two columns with the ends of each, all of
    /// the column's type. Cells that overlap, or are missing for a value of the rows, are not used.
    ///
    /// # Errors
    /// `Arrow` if there are other columns, or a value cannot be converted.
    pub fn set_cells(&mut self, column: usize, cells: &RecordBatch) -> Result<()> {
        let (Some(builder), [keys, one, other]) = (self.builders.get_mut(column), cells.columns())
        else {
            return Err(
                ArrowError::SchemaError("cells are a column and its two ends".to_owned()).into()
            );
        };
        if let Values::Names(_) = builder.column.values {
            return Ok(());
        }
        let [keys, one, other] =
            [builder.numbers(keys)?, builder.numbers(one)?, builder.numbers(other)?];
        let cells =
            keys.into_iter().zip(one).zip(other).map(|((key, one), other)| [key, one, other]);
        let is_angle = builder.column.title.role == Role::Longitude;
        builder.column.bounds = Some(Bounds::new(cells, is_angle));
        Ok(())
    }

    /// Returns the collected columns.
    ///
    /// # Errors
    /// `Usage` if there are no rows.
    pub fn finish(self) -> Result<Columns> {
        if self.rows == 0 {
            return refuse("there is nothing to plot: the query has no rows");
        }
        Ok(Columns { columns: self.builders.into_iter().map(|builder| builder.column).collect() })
    }
}

#[derive(Debug)]
struct Builder {
    column: Column,
    /// The index of each name in the list of names.
    places: HashMap<String, usize>,
    /// How numbers become times.
    units: Option<CalendarUnits>,
}

impl Builder {
    fn try_new(field: &Field, title: &Title) -> Result<Self> {
        let data_type = match field.data_type() {
            DataType::Dictionary(_, of) => of.as_ref(),
            other => other,
        };
        let mut units = None;
        let values = match data_type {
            DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => {
                Values::Times(Calendar::Gregorian)
            }
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Boolean => {
                Values::Names(vec![])
            }
            DataType::Null => Values::Numbers,
            numeric if numeric.is_numeric() => {
                units = title.calendar;
                units.map_or(Values::Numbers, |units| Values::Times(units.calendar))
            }
            other => {
                return refuse(format!(
                    "column \"{}\" is of type {other}, which cannot be plotted; \
                     cast it to a number, a timestamp or text",
                    field.name()
                ));
            }
        };
        let column = Column::new(title.printable(), values, vec![]);
        Ok(Self { column, places: HashMap::new(), units })
    }

    fn append(&mut self, array: &dyn Array) -> Result<()> {
        let Values::Names(names) = &mut self.column.values else {
            let numbers = self.numbers(array)?;
            self.column.data.extend(numbers);
            return Ok(());
        };
        let array = cast(array, &DataType::Utf8View)?;
        for name in array.as_string_view() {
            let Some(name) = name else {
                self.column.data.push(f64::NAN);
                continue;
            };
            let place = *self.places.entry(name.to_owned()).or_insert_with(|| {
                names.push(short(name));
                names.len() - 1
            });
            self.column.data.push(place as f64);
        }
        Ok(())
    }

    /// Converts numbers or times; NaN for NULL.
    fn numbers(&self, array: &dyn Array) -> Result<Vec<f64>> {
        if matches!(self.column.values, Values::Times(_)) && self.units.is_none() {
            let array = cast(array, &DataType::Timestamp(TimeUnit::Microsecond, None))?;
            let times = array.as_primitive::<TimestampMicrosecondType>();
            let times = times.reinterpret_cast::<Int64Type>();
            return Ok(times
                .iter()
                .map(|time| time.map_or(f64::NAN, |time| time as f64))
                .collect());
        }
        let array = cast(array, &DataType::Float64)?;
        let numbers = array.as_primitive::<Float64Type>().iter();
        let value = |number: f64| self.units.map_or(number, |units| units.micros(number));
        Ok(numbers.map(|number| number.map_or(f64::NAN, value)).collect())
    }
}

/// Shortens a name so that it fits beside an axis.
fn short(name: &str) -> String {
    let name = printable(name);
    if name.chars().count() <= LONGEST_NAME {
        return name;
    }
    name.chars().take(LONGEST_NAME - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, BooleanArray, Date32Array, Int8Array, Int16Array, StringArray};

    use super::*;
    use crate::settings::Scale;

    fn title(name: &str) -> Title {
        Title::new(name)
    }

    #[test]
    fn rows_become_numbers() {
        let columns: [(&str, ArrayRef); 4] = [
            ("n", Arc::new(Int16Array::from(vec![Some(7), None, Some(-7)]))),
            ("t", Arc::new(Date32Array::from(vec![0, 1, 2]))),
            ("s", Arc::new(StringArray::from(vec!["b", "a\n\u{202e}", "b"]))),
            ("ok", Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)]))),
        ];
        let rows = RecordBatch::try_from_iter(columns).unwrap();
        let titles = ["n", "t", "s", "ok"].map(title);
        let mut builder = ColumnsBuilder::new(&rows.schema(), titles, Format::Png).unwrap();
        builder.append(&rows).unwrap();
        builder.append(&rows.slice(1, 1)).unwrap();
        let columns = builder.finish().unwrap();
        assert_eq!(columns.rows(), 4);
        let [n, t, s, ok] = &columns.columns[..] else { panic!("{columns:?}") };
        assert!(n.data[0] == 7.0 && n.data[1].is_nan() && n.data[2] == -7.0);
        assert_eq!(t.data, [0.0, 86_400e6, 2.0 * 86_400e6, 86_400e6]);
        assert_eq!(s.values, Values::Names(vec!["b".to_owned(), "a\\n\\u{202e}".to_owned()]));
        assert_eq!(s.data, [0.0, 1.0, 0.0, 1.0]);
        assert_eq!(ok.values, Values::Names(vec!["true".to_owned(), "false".to_owned()]));
        assert!(ok.data[0] == 0.0 && ok.data[1].is_nan() && ok.data[2] == 1.0);
    }

    #[test]
    fn rows_are_refused_as_they_come() {
        let zeros: ArrayRef = Arc::new(Int8Array::from(vec![0; 60_000]));
        let rows = RecordBatch::try_from_iter([("n", zeros)]).unwrap();
        let mut builder = ColumnsBuilder::new(&rows.schema(), [title("n")], Format::Svg).unwrap();
        builder.append(&rows).unwrap();
        let error = builder.append(&rows).unwrap_err().to_string();
        assert!(error.starts_with("the query has more than 100000 rows, and at"), "{error}");
        let more = RecordBatch::try_from_iter(
            [("n", rows.column(0)), ("m", rows.column(0))]
                .map(|(name, column)| (name, column.slice(0, 1))),
        );
        let titles = ["n", "m"].map(title);
        let schema = more.unwrap().schema();
        let mut builder = ColumnsBuilder::new(&schema, titles, Format::Svg).unwrap();
        assert!(builder.append(&rows).is_err());
        let none = ColumnsBuilder::new(&rows.schema(), [title("n")], Format::Svg).unwrap();
        let error = none.finish().unwrap_err().to_string();
        assert_eq!(error, "there is nothing to plot: the query has no rows");
    }

    #[test]
    fn cells_are_converted_like_the_column() {
        let days: ArrayRef = Arc::new(Date32Array::from(vec![15, 45]));
        let [from, to] =
            [vec![0, 31], vec![31, 59]].map(|it| Arc::new(Date32Array::from(it)) as ArrayRef);
        let rows = RecordBatch::try_from_iter([("t", Arc::clone(&days))]).unwrap();
        let cells = RecordBatch::try_from_iter([("t", days), ("from", from), ("to", to)]).unwrap();
        let mut builder = ColumnsBuilder::new(&rows.schema(), [title("t")], Format::Png).unwrap();
        builder.append(&rows).unwrap();
        builder.set_cells(0, &cells).unwrap();
        assert!(builder.set_cells(1, &cells).is_err() && builder.set_cells(0, &rows).is_err());
        let column = &builder.finish().unwrap().columns[0];
        let ends = column.bounds.as_ref().unwrap().ends(&column.data, Scale::Linear).unwrap();
        assert_eq!(
            ends,
            [(0.0, 31.0), (31.0, 59.0)].map(|(from, to)| (from * 86_400e6, to * 86_400e6))
        );
    }
}
