//! Random queries over the columns of a TileDB table.

use arrow::datatypes::DataType;
use rand::Rng;
use rand::rngs::StdRng;

use crate::support::columns::{Column, Kind, Table, choose};

/// A random query. The first `keys` columns of its answer identify the rows.
pub(crate) struct Query {
    pub(crate) sql: String,
    pub(crate) keys: usize,
    /// Whether its predicates use values only, and no dimension.
    pub(crate) asks_values_only: bool,
    /// Whether its answer has only integers, which must be equal without rounding.
    pub(crate) is_exact: bool,
}

impl Column {
    /// An expression to group by.
    fn key(&self, rng: &mut StdRng) -> String {
        let name = &self.name;
        let a = self.literal(rng);
        let case = format!("CASE WHEN {name} > {a} THEN 1 ELSE 0 END");
        let more = match (self.kind, self.values.data_type()) {
            (Kind::Integer, _) => vec![
                format!("{name} % 3"),
                format!("{name} / 2"),
                format!("CAST({name} AS VARCHAR)"),
                case,
            ],
            (Kind::Temporal, DataType::Date32) => vec![
                format!("date_trunc('month', {name})"),
                format!("date_part('year', {name})"),
                format!("nullif({name}, {a})"),
                case,
            ],
            _ => vec![case, format!("nullif({name}, {a})")],
        };
        if rng.random_bool(0.5) { name.clone() } else { choose(&more, rng) }
    }

    fn aggregate(&self, rng: &mut StdRng, predicate: &str) -> String {
        let name = &self.name;
        let of_all = ["count", "min", "max"];
        let of_numbers =
            ["sum", "avg", "sum", "avg", "var_samp", "var_pop", "stddev", "stddev_pop", "median"];
        let function = match self.kind {
            // With NaN, the least and the greatest value depend on the order of rows.
            Kind::Float if self.holds_nan() => choose(&["count", "sum", "avg"], rng),
            Kind::Integer | Kind::Float if rng.random_bool(0.7) => choose(&of_numbers, rng),
            Kind::Truth => choose(&["count", "bool_or", "bool_and"], rng),
            _ => choose(&of_all, rng),
        };
        match rng.random_range(0..12) {
            0 => format!("count(DISTINCT {name})"),
            1 => format!("{function}({name}) FILTER (WHERE {predicate})"),
            2 if self.kind == Kind::Float => format!("avg({name} - 1.5)"),
            3 if self.kind == Kind::Integer => format!("sum(CAST({name} AS DOUBLE) * 2)"),
            _ => format!("{function}({name})"),
        }
    }
}

impl Table<'_> {
    /// Predicates to be joined by AND, and whether they use values only.
    fn conditions(&self, rng: &mut StdRng) -> (Vec<String>, bool) {
        if rng.random_bool(0.3) {
            return (vec![self.value(rng).predicate(rng)], true);
        }
        let one = |rng: &mut StdRng| {
            let (dimension, value) =
                (self.dimension(rng).predicate(rng), self.value(rng).predicate(rng));
            let other = self.dimension(rng).predicate(rng);
            match rng.random_range(0..8) {
                0 => format!("({dimension} OR {other})"),
                1 => format!("({dimension} OR {value})"),
                2 => format!("NOT ({dimension} AND {value})"),
                3 | 4 => value,
                _ => dimension,
            }
        };
        ((0..rng.random_range(0..4)).map(|_| one(rng)).collect(), false)
    }

    /// A query for the sum of each numeric column: the statistic that TileDB most often stores wrong.
    pub(crate) fn sums(&self) -> Vec<Query> {
        let columns = (self.rank..self.rows.num_columns()).map(|at| self.column(at));
        let numbers = columns.filter(|it| matches!(it.kind, Kind::Integer | Kind::Float));
        let sum = |column: Column| Query {
            sql: format!("SELECT count({0}), sum({0}) FROM t", column.name),
            keys: 0,
            asks_values_only: false,
            is_exact: column.kind == Kind::Integer,
        };
        numbers.map(sum).collect()
    }

    pub(crate) fn query(&self, rng: &mut StdRng) -> Query {
        let (conditions, asks_values_only) = self.conditions(rng);
        let filter = match conditions.as_slice() {
            [] => String::new(),
            _ => format!(" WHERE {}", conditions.join(" AND ")),
        };
        let (sql, keys) = match rng.random_range(0..10) {
            0..3 => self.selection(rng, &filter),
            3..6 => self.plain_aggregation(rng, &filter),
            _ => self.aggregation(rng, &filter),
        };
        Query { sql, keys, asks_values_only, is_exact: false }
    }

    fn selection(&self, rng: &mut StdRng, filter: &str) -> (String, usize) {
        let all = 0..self.rows.num_columns();
        let columns: Vec<String> =
            all.filter(|_| rng.random_bool(0.6)).map(|at| self.column(at).name).collect();
        if columns.is_empty() {
            return (format!("SELECT count(*) FROM t{filter}"), 0);
        }
        let list = columns.join(", ");
        let sql = match rng.random_range(0..5) {
            0 => format!("SELECT DISTINCT {list} FROM t{filter}"),
            1 => {
                let dimensions: Vec<String> =
                    (0..self.rank).map(|at| self.column(at).name).collect();
                let (order, limit) = (dimensions.join(" DESC, "), rng.random_range(0..20));
                format!("SELECT {list} FROM t{filter} ORDER BY {order} LIMIT {limit}")
            }
            _ => format!("SELECT {list} FROM t{filter}"),
        };
        (sql, columns.len())
    }

    /// A typical query: up to three aggregates of values, grouped by at most one dimension.
    fn plain_aggregation(&self, rng: &mut StdRng, filter: &str) -> (String, usize) {
        let filter = if rng.random_bool(0.6) { "" } else { filter };
        let only = rng.random_bool(0.5).then(|| self.value(rng));
        let aggregate = |rng: &mut StdRng| {
            let value = only.clone().unwrap_or_else(|| self.value(rng));
            let functions: &[&str] = match value.kind {
                Kind::Float if value.holds_nan() => &["count", "sum", "avg"],
                Kind::Integer | Kind::Float => &["count", "sum", "avg", "min", "max", "stddev"],
                Kind::Temporal | Kind::Text => &["count", "min", "max"],
                Kind::Truth => &["count"],
            };
            format!("{}({})", choose(functions, rng), value.name)
        };
        let mut list: Vec<String> = (0..rng.random_range(1..4)).map(|_| aggregate(rng)).collect();
        list.sort();
        list.dedup();
        let key = self.dimension(rng);
        match rng.random_bool(0.5) {
            true => (format!("SELECT {} FROM t{filter}", list.join(", ")), 0),
            false => {
                let (name, list) = (key.name, list.join(", "));
                (format!("SELECT {name}, {list} FROM t{filter} GROUP BY {name}"), 1)
            }
        }
    }

    fn aggregation(&self, rng: &mut StdRng, filter: &str) -> (String, usize) {
        let mut keys: Vec<String> =
            (0..rng.random_range(0..3)).map(|_| self.dimension(rng).key(rng)).collect();
        let value = self.value(rng);
        if rng.random_bool(0.05) && value.kind != Kind::Float {
            keys.push(value.name); // not a dimension: the query must fall back to rows
        }
        keys.sort();
        keys.dedup();
        let aggregate = |rng: &mut StdRng| {
            let predicate = match rng.random_bool(0.5) {
                true => self.dimension(rng).predicate(rng),
                false => self.value(rng).predicate(rng),
            };
            match rng.random_range(0..10) {
                0 => "count(*)".into(),
                1 => {
                    let name = self.dimension(rng).name;
                    format!("{}({name})", choose(&["min", "max", "count"], rng))
                }
                _ => self.value(rng).aggregate(rng, &predicate),
            }
        };
        let mut aggregates: Vec<String> =
            (0..rng.random_range(1..5)).map(|_| aggregate(rng)).collect();
        aggregates.sort();
        aggregates.dedup();
        let columns: Vec<String> = keys.iter().chain(&aggregates).cloned().collect();
        let mut sql = format!("SELECT {} FROM t{filter}", columns.join(", "));
        if !keys.is_empty() {
            sql += &format!(" GROUP BY {}", keys.join(", "));
            if rng.random_bool(0.1) {
                sql += " HAVING count(*) > 2";
            }
        }
        (sql, keys.len())
    }
}
