//! The columns of a table, for generators of random queries: predicates, and literals near the
//! column's values.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use arrow::util::display::array_value_to_string;
use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

/// The rows of a table. Its first `rank` columns are dimensions, the others values.
pub(crate) struct Table<'a> {
    pub(crate) rows: &'a RecordBatch,
    pub(crate) rank: usize,
}

impl Table<'_> {
    pub(crate) fn column(&self, at: usize) -> Column {
        let schema = self.rows.schema();
        let name = format!("\"{}\"", schema.field(at).name());
        let values = Arc::clone(self.rows.column(at));
        Column { name, kind: kind(values.data_type()), values }
    }

    pub(crate) fn dimension(&self, rng: &mut StdRng) -> Column {
        self.column(rng.random_range(0..self.rank))
    }

    pub(crate) fn value(&self, rng: &mut StdRng) -> Column {
        self.column(rng.random_range(self.rank..self.rows.num_columns()))
    }
}

/// The kind of a column, which decides its literals and predicates.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    Integer,
    Float,
    Temporal,
    Text,
    Truth,
}

fn kind(data_type: &DataType) -> Kind {
    match data_type {
        DataType::Utf8View => Kind::Text,
        DataType::Boolean => Kind::Truth,
        other if other.is_floating() => Kind::Float,
        other if other.is_integer() => Kind::Integer,
        _ => Kind::Temporal,
    }
}

/// One column of a table.
#[derive(Clone)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) values: ArrayRef,
}

pub(crate) fn choose<T: Clone>(choices: &[T], rng: &mut StdRng) -> T {
    choices.choose(rng).unwrap().clone()
}

impl Column {
    /// A literal near one of the column's values.
    pub(crate) fn literal(&self, rng: &mut StdRng) -> String {
        let row = rng.random_range(0..self.values.len().max(1));
        let is_there = row < self.values.len() && self.values.is_valid(row);
        let near = rng.random_range(-1..2);
        match self.kind {
            Kind::Integer if is_there => {
                let text = array_value_to_string(&self.values, row).unwrap();
                (text.parse::<i128>().unwrap() + near).to_string()
            }
            Kind::Integer => rng.random_range(-7..13).to_string(),
            Kind::Float if rng.random_bool(0.05) => {
                format!("CAST('{}' AS DOUBLE)", choose(&["NaN", "inf", "-inf"], rng))
            }
            Kind::Float => (f64::from(rng.random_range(-14..26)) / 4.0).to_string(),
            Kind::Temporal => {
                let data_type = self.values.data_type();
                let narrow = if *data_type == DataType::Date32 { "Int32" } else { "Int64" };
                let count = is_there.then(|| {
                    let counts = cast(&self.values, &DataType::Int64);
                    let counts = counts.or_else(|_| {
                        cast(&cast(&self.values, &DataType::Int32)?, &DataType::Int64)
                    });
                    counts.unwrap().as_primitive::<Int64Type>().value(row)
                });
                let count = count.unwrap_or(5).saturating_add(near as i64);
                format!("arrow_cast(arrow_cast({count}, '{narrow}'), '{data_type}')")
            }
            Kind::Text if is_there => {
                let text = array_value_to_string(&self.values, row).unwrap();
                format!("'{}'", text.chars().take(rng.random_range(0..4)).collect::<String>())
            }
            Kind::Text => "'c'".into(),
            Kind::Truth => choose(&["true", "false"], rng).into(),
        }
    }

    pub(crate) fn predicate(&self, rng: &mut StdRng) -> String {
        let (name, a, b) = (&self.name, self.literal(rng), self.literal(rng));
        let special = match self.kind {
            Kind::Integer => format!("{name} % 3 = 1"),
            Kind::Float => format!("abs({name}) < {}", rng.random_range(0..5)),
            Kind::Temporal => format!("{name} IS DISTINCT FROM {a}"),
            Kind::Text => format!("{name} LIKE '%{}%'", choose(&["a", "d", "3", "ж"], rng)),
            Kind::Truth => name.clone(),
        };
        // Lists of DataFusion tell zeros of both signs apart, and those of gridfusion do not.
        let listed = |it: &str| match self.kind {
            Kind::Float if it.parse() == Ok(0.0) => "1.5".to_owned(),
            _ => it.to_owned(),
        };
        let list = format!("{}, {}", listed(&a), listed(&b));
        let operator = choose(&["=", "<>", "<", "<=", ">", ">="], rng);
        let choices = [
            format!("{name} {operator} {a}"),
            format!("{name} {operator} {b}"),
            format!("{a} {operator} {name}"),
            format!("{name} BETWEEN {a} AND {b}"),
            format!("{name} IN ({list})"),
            format!("{name} NOT IN ({list})"),
            format!("NOT ({name} > {a})"),
            format!("({name} < {a} OR {name} = {b})"),
            format!("({name} >= {a} OR {name} IS NULL)"),
            format!("CASE WHEN {name} > {a} THEN true ELSE {name} < {b} END"),
            format!("{name} IS NULL"),
            format!("{name} IS NOT NULL"),
            special,
        ];
        choose(&choices, rng)
    }

    pub(crate) fn holds_nan(&self) -> bool {
        let doubles = cast(&self.values, &DataType::Float64).unwrap();
        doubles.as_primitive::<Float64Type>().iter().flatten().any(f64::is_nan)
    }
}
