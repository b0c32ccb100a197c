//! Random predicates over values and dimensions, of forms that pruning can use and of forms that it cannot
//! use.

use arrow::array::{Array, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use arrow::util::display::array_value_to_string;
use rand::Rng;

use crate::plan::pruning_queries::Queries;
use crate::support::columns::{Column, Kind};

const OPERATORS: [&str; 6] = ["=", "<>", "<", "<=", ">", ">="];

/// Numbers that are rare among an array's values, or that its type cannot hold.
const ODD_NUMBERS: [&str; 17] = [
    "NULL",
    "0",
    "-0.0",
    "0.5",
    "-99",
    "1e300",
    "-1e300",
    "9007199254740992",
    "9007199254740993.0",
    "99999999999999999999",
    "18446744073709551615",
    "-9223372036854775808",
    "32768",
    "CAST('NaN' AS DOUBLE)",
    "CAST('inf' AS DOUBLE)",
    "CAST('-inf' AS DOUBLE)",
    "arrow_cast(0.1, 'Float32')",
];

impl Queries<'_> {
    /// A literal near one of the values of a column of numbers.
    fn number(&mut self, column: &Column) -> String {
        let row = self.rng.random_range(0..column.values.len().max(1));
        if self.one_in(10) {
            return self.choose(&ODD_NUMBERS).into();
        }
        if row >= column.values.len() || column.values.is_null(row) {
            return self.rng.random_range(-7..13).to_string();
        }
        if column.kind == Kind::Integer {
            let text = array_value_to_string(&column.values, row).unwrap();
            let near = text.parse::<i128>().unwrap() + self.rng.random_range(-1..2);
            return if self.one_in(5) { format!("{near}.5") } else { near.to_string() };
        }
        let doubles = cast(&column.values, &DataType::Float64).unwrap();
        let double = doubles.as_primitive::<Float64Type>().value(row);
        if !double.is_finite() {
            return format!("CAST('{double}' AS DOUBLE)");
        }
        let near = [double, double, double + 0.25, double - 1.0, double.next_up()];
        match self.choose(&near) {
            near if self.one_in(8) => format!("arrow_cast({near:?}, 'Float32')"),
            near => format!("{near:?}"),
        }
    }

    /// A predicate over a value.
    pub(crate) fn value_predicate(&mut self) -> String {
        let column = self.value();
        if !matches!(column.kind, Kind::Integer | Kind::Float) {
            return column.predicate(self.rng);
        }
        let [a, b, c] = [(); 3].map(|()| self.number(&column));
        let [op, other] = [(); 2].map(|()| self.choose(&OPERATORS));
        let (v, dimension) = (&column.name, self.dimension());
        let is_number = matches!(dimension.kind, Kind::Integer | Kind::Float);
        let dimension = if is_number { &dimension.name } else { "2" };
        let lists = [
            format!("{v} IN ({a}, {b}, {c})"),
            format!("{v} NOT IN ({a}, {b})"),
            format!("{v} NOT IN ({a}, {b}, {c}, 1, 2, 3)"),
            format!("{v} IN ({a}, NULL)"),
        ];
        let plain = [
            format!("{v} {op} {a}"),
            format!("{a} {op} {v}"),
            format!("NOT ({v} {op} {a})"),
            format!("({v} {op} {a}) IS NOT TRUE"),
            format!("{v} BETWEEN {a} AND {b}"),
            format!("{v} NOT BETWEEN {a} AND {b}"),
            // Not combined with another list, because DataFusion 55 may then drop the NULL.
            format!("({v} NOT IN ({a}, NULL)) IS NOT FALSE"),
            format!("{v} IS NULL"),
            format!("{v} IS NOT NULL"),
            format!("({v} {op} {a} OR {v} IS NULL)"),
            format!("({v} {op} {a} AND {v} {other} {b})"),
        ];
        let computed = [
            format!("{v} + 1 {op} {a}"),
            format!("{v} - 2 {op} {a}"),
            format!("{v} * 2 {op} {a}"),
            format!("-{v} {op} {a}"),
            format!("CAST({v} AS DOUBLE) {op} {a}"),
            format!("TRY_CAST({v} AS SMALLINT) {op} {a}"),
            format!("TRY_CAST({v} AS BIGINT) {op} {a}"),
            format!("CAST({v} AS VARCHAR) {op} '{}'", self.rng.random_range(-3..9)),
            format!("{v} IS DISTINCT FROM {a}"),
            format!("{v} IS NOT DISTINCT FROM {a}"),
            format!("CASE WHEN {v} > {a} THEN true ELSE {v} {op} {b} END"),
            format!("CASE {v} WHEN {a} THEN {v} ELSE 1 END {op} {b}"),
            format!("coalesce({v}, {a}) {op} {b}"),
            format!("nullif({v}, {a}) {op} {b}"),
            format!("{v} % 2 = 0"),
            format!("{v} {op} {dimension}"),
            format!("{v} = {v}"),
        ];
        // Lists take both zeros as different, but the bounds by which DataFusion prunes take them as equal.
        let zeros_matter = shows_zero(&column, true) || [a, b, c].contains(&"-0.0".to_owned());
        match self.rng.random_range(0..12) {
            0..4 => self.choose(&computed),
            4..6 if !zeros_matter => self.choose(&lists),
            _ => self.choose(&plain),
        }
    }

    fn dimension_predicate(&mut self) -> String {
        self.dimension().predicate(self.rng)
    }

    pub(crate) fn condition(&mut self, depth: u32) -> String {
        let kind = self.rng.random_range(0..if depth == 0 { 7 } else { 11 });
        match kind {
            0..4 => self.value_predicate(),
            4..7 => self.dimension_predicate(),
            7 => format!("NOT ({})", self.condition(depth - 1)),
            8 => format!("({} AND {})", self.condition(depth - 1), self.condition(depth - 1)),
            _ => format!("({} OR {})", self.condition(depth - 1), self.condition(depth - 1)),
        }
    }

    /// A `WHERE` clause, or an empty text.
    pub(crate) fn filter(&mut self) -> String {
        let conditions = match self.rng.random_range(0..10) {
            0 => return String::new(),
            1..5 => vec![self.value_predicate()],
            _ => (0..self.rng.random_range(1..4)).map(|_| self.condition(2)).collect(),
        };
        format!(" WHERE {}", conditions.join(" AND "))
    }
}

pub(crate) fn doubles(column: &Column) -> Vec<f64> {
    let doubles = cast(&column.values, &DataType::Float64).unwrap();
    doubles.as_primitive::<Float64Type>().iter().flatten().collect()
}

pub(crate) fn shows_both_zeros(column: &Column) -> bool {
    shows_zero(column, true) && shows_zero(column, false)
}

/// Whether a column has the negative, or the positive, zero of floats.
fn shows_zero(column: &Column, negative: bool) -> bool {
    let is_it = |number: &f64| *number == 0.0 && number.is_sign_negative() == negative;
    column.kind == Kind::Float && doubles(column).iter().any(is_it)
}
