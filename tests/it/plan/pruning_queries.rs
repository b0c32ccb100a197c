//! Random queries that may skip or reorder chunks: predicates over values and dimensions, joins, sorts with
//! limits, and operators between these and the scan.

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use crate::plan::pruning_predicates::{doubles, shows_both_zeros};
use crate::support::columns::{Column, Kind, Table, choose};

/// A query over the tables `t` and `small`.
pub(crate) struct Query {
    pub(crate) sql: String,
    /// The kind of query, for statistics of the tests.
    pub(crate) shape: &'static str,
    pub(crate) determined: Determined,
}

/// The part of a query's result that does not depend on its plan.
pub(crate) enum Determined {
    /// The rows, in any order. The first `keys` columns are exact; the others may be rounded.
    Rows { keys: usize },
    /// The first `keys` columns, in order. The rows are among the rows of the query `of`.
    Order { keys: usize, of: String },
}

/// A generator of queries over one table.
pub(crate) struct Queries<'a> {
    pub(crate) table: Table<'a>,
    /// Whether tables are joined only by equality: the sort-merge join of DataFusion 55 may panic over
    /// other conditions.
    pub(crate) only_equal: bool,
    pub(crate) rng: &'a mut StdRng,
}

impl Queries<'_> {
    pub(crate) fn choose<T: Clone>(&mut self, choices: &[T]) -> T {
        choose(choices, self.rng)
    }

    pub(crate) fn one_in(&mut self, times: u32) -> bool {
        self.rng.random_ratio(1, times)
    }

    pub(crate) fn dimension(&mut self) -> Column {
        self.table.dimension(self.rng)
    }

    pub(crate) fn value(&mut self) -> Column {
        self.table.value(self.rng)
    }

    fn all_columns(&self) -> Vec<Column> {
        (0..self.table.rows.num_columns()).map(|at| self.table.column(at)).collect()
    }

    /// Some of the columns, in their order.
    fn some_columns(&mut self) -> Vec<String> {
        let all = self.all_columns();
        let mut names: Vec<String> = all.iter().map(|column| column.name.clone()).collect();
        names.retain(|_| self.rng.random_bool(0.7));
        if names.is_empty() {
            names.push(self.choose(&all).name);
        }
        names
    }

    /// An aggregate whose result does not depend on the order of rows, except for rounding.
    fn aggregate(&mut self) -> String {
        if self.one_in(5) {
            let function = self.choose(&["min", "max", "count"]);
            return format!("{function}({})", self.dimension().name);
        }
        let value = self.value();
        let functions: &[&str] = match value.kind {
            Kind::Truth => &["count"],
            // With NaN, the least and the greatest value depend on the order of rows.
            Kind::Float if value.holds_nan() => &["count"],
            Kind::Temporal | Kind::Text => &["count", "min", "max"],
            _ if is_summable(&value) => &["count", "min", "max", "min", "max", "sum", "avg"],
            _ => &["count", "min", "max"],
        };
        format!("{}({})", self.choose(functions), value.name)
    }

    fn aggregates(&mut self, most: usize) -> Vec<String> {
        let count = self.rng.random_range(1..=most);
        let mut aggregates: Vec<String> = (0..count).map(|_| self.aggregate()).collect();
        if self.one_in(3) {
            aggregates.push("count(*)".into());
        }
        aggregates.sort();
        aggregates.dedup();
        aggregates
    }

    /// The greatest or least of a value if that is determined, otherwise the count.
    fn extreme(&mut self, value: &Column) -> String {
        let functions = if is_comparable(value) { &["min", "max"][..] } else { &["count"] };
        format!("{}({})", self.choose(functions), value.name)
    }

    /// An `ORDER BY` of these keys, with random directions and places of NULL.
    fn order_by(&mut self, keys: &[String]) -> String {
        let directions = ["", " ASC", " DESC", " DESC"];
        let nulls = ["", "", " NULLS FIRST", " NULLS LAST"];
        let mut by = Vec::new();
        for key in keys {
            by.push(format!("{key}{}{}", self.choose(&directions), self.choose(&nulls)));
        }
        format!(" ORDER BY {}", by.join(", "))
    }

    fn limit(&mut self) -> String {
        let limit = match self.rng.random_range(0..8) {
            0 => return String::new(),
            1 => self.rng.random_range(0..60),
            _ => self.rng.random_range(1..12),
        };
        let offset = if self.one_in(4) { self.rng.random_range(0..9) } else { 0 };
        if offset > 0 {
            format!(" LIMIT {limit} OFFSET {offset}")
        } else {
            format!(" LIMIT {limit}")
        }
    }

    /// Splits the columns into sort keys and others. Both zeros are equal for filters, but not for sorts,
    /// so a column that has both is the last key.
    fn keys(&mut self, mut columns: Vec<Column>, most: usize) -> (Vec<String>, Vec<String>) {
        columns.shuffle(self.rng);
        if self.one_in(3) {
            columns.sort_by_key(|column| column.name.clone());
        }
        let mut count = self.rng.random_range(1..=most.min(columns.len()));
        if let Some(at) = columns[..count].iter().position(shows_both_zeros) {
            count = at + 1;
        }
        let mut names = columns.into_iter().map(|column| column.name);
        let keys: Vec<String> = names.by_ref().take(count).collect();
        let others = names.filter(|_| self.rng.random_bool(0.6)).collect();
        (keys, others)
    }

    /// `small`, or a part of it that may be empty.
    fn small(&mut self) -> String {
        match self.rng.random_range(0..6) {
            0 => "(SELECT * FROM small WHERE n > 100) AS s".into(),
            1 => "(SELECT DISTINCT * FROM small) AS s".into(),
            2 | 3 => {
                format!("(SELECT * FROM small WHERE n < {}) AS s", self.rng.random_range(1..5))
            }
            _ => "small AS s".into(),
        }
    }

    /// A join condition for `t` and `small`.
    fn on(&mut self) -> String {
        let rank = self.table.rank;
        let columns = self.all_columns();
        let mut equal = |range: std::ops::Range<usize>| {
            let at = self.rng.random_range(range);
            format!("{} = k{at}", columns[at].name)
        };
        let (one, other, value) = (equal(0..rank), equal(0..rank), equal(rank..columns.len()));
        match self.rng.random_range(0..if self.only_equal { 7 } else { 9 }) {
            0 => format!("{one} AND {other}"),
            1 | 2 => value,
            3 => format!("{one} AND {value}"),
            4..7 => one,
            7 => format!("{one} AND {}", value.replace('=', self.choose(&["<", ">="]))),
            _ => format!("{one} AND n <> 1 AND {}", self.value_predicate()),
        }
    }

    pub(crate) fn query(&mut self) -> Query {
        match self.rng.random_range(0..20) {
            0..4 => self.selection(),
            4..6 => self.aggregation(),
            6..11 => self.sorted(),
            11..14 => self.join(),
            14 => self.sorted_join(),
            15 | 16 => self.exists(),
            17 => self.join_of_aggregates(),
            18 => self.nested(),
            _ => self.union_or_window(),
        }
    }

    fn selection(&mut self) -> Query {
        let columns = self.some_columns();
        let filter = self.filter();
        let sql = format!("SELECT {} FROM t{filter}", columns.join(", "));
        Query { sql, shape: "selection", determined: Determined::Rows { keys: columns.len() } }
    }

    fn aggregation(&mut self) -> Query {
        let (filter, aggregates) = (self.filter(), self.aggregates(3).join(", "));
        let mut keys: Vec<String> =
            (0..self.rng.random_range(0..3)).map(|_| self.dimension().name).collect();
        keys.sort();
        keys.dedup();
        let shape = "aggregation";
        if keys.is_empty() {
            let sql = format!("SELECT {aggregates} FROM t{filter}");
            return Query { sql, shape, determined: Determined::Rows { keys: 0 } };
        }
        let by = keys.join(", ");
        let grouped = |first: &str, rest: &str| {
            format!("SELECT {first}, {rest} FROM t{filter} GROUP BY {by}")
        };
        if self.one_in(3) {
            let value = self.value();
            let of = grouped(&format!("{} AS m", self.extreme(&value)), &by);
            let sql = format!("{of}{}{}", self.order_by(&["m".into()]), self.limit());
            return Query { sql, shape, determined: Determined::Order { keys: 1, of } };
        }
        let having = if self.one_in(5) { " HAVING count(*) > 2" } else { "" };
        let sql = grouped(&by, &aggregates) + having;
        Query { sql, shape, determined: Determined::Rows { keys: keys.len() } }
    }

    fn sorted(&mut self) -> Query {
        let (keys, others) = self.keys(self.all_columns(), 3);
        let filter = if self.one_in(3) { String::new() } else { self.filter() };
        let distinct = if self.one_in(10) { "DISTINCT " } else { "" };
        let list: Vec<String> = keys.iter().chain(&others).cloned().collect();
        let of = format!("SELECT {distinct}{} FROM t{filter}", list.join(", "));
        let sql = format!("{of}{}{}", self.order_by(&keys), self.limit());
        Query { sql, shape: "sorted", determined: Determined::Order { keys: keys.len(), of } }
    }

    /// A join of `t` and `small`, with its filter.
    fn joined(&mut self) -> String {
        let kinds = ["JOIN", "JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"];
        let (kind, small, on) = (self.choose(&kinds), self.small(), self.on());
        let filter = match self.rng.random_range(0..4) {
            0 => " WHERE n IS NULL".into(),
            1 => String::new(),
            _ => self.filter(),
        };
        match self.rng.random_bool(0.5) {
            true => format!("FROM t {kind} {small} ON {on}{filter}"),
            false => format!("FROM {small} {kind} t ON {on}{filter}"),
        }
    }

    fn join(&mut self) -> Query {
        let shape = "join";
        if self.one_in(4) {
            let (value, joined) = (self.value(), self.joined());
            let extreme = self.extreme(&value);
            let sql = format!("SELECT n, count(*), {extreme} {joined} GROUP BY n");
            return Query { sql, shape, determined: Determined::Rows { keys: 1 } };
        }
        let columns = self.some_columns();
        let sql = format!("SELECT n, k0, {} {}", columns.join(", "), self.joined());
        Query { sql, shape, determined: Determined::Rows { keys: columns.len() + 2 } }
    }

    fn sorted_join(&mut self) -> Query {
        let columns = self.all_columns();
        let (keys, others) = self.keys(columns, 2);
        let list: Vec<String> = keys.iter().chain(&others).cloned().collect();
        let of = format!("SELECT {}, n {}", list.join(", "), self.joined());
        let sql = format!("{of}{}{}", self.order_by(&keys), self.limit());
        Query { sql, shape: "sorted join", determined: Determined::Order { keys: keys.len(), of } }
    }

    /// A semi join or anti join of `t` with `small`.
    fn exists(&mut self) -> Query {
        let at = self.rng.random_range(0..self.table.rows.num_columns());
        let key = self.table.column(at).name;
        let not = self.choose(&["", "NOT "]);
        let small = self.small();
        let condition = match self.rng.random_range(0..3) {
            0 => format!("{key} {not}IN (SELECT k{at} FROM {small})"),
            1 => format!("{not}EXISTS (SELECT 1 FROM {small} WHERE {})", self.on()),
            _ => format!(
                "{key} {not}IN (SELECT k{at} FROM {small} WHERE k{at} IS NOT NULL AND n <> 2)"
            ),
        };
        let also = if self.one_in(2) { self.condition(1) } else { "true".into() };
        let columns = self.some_columns();
        let sql = format!("SELECT {} FROM t WHERE {condition} AND {also}", columns.join(", "));
        Query { sql, shape: "semi join", determined: Determined::Rows { keys: columns.len() } }
    }

    /// Joins of groups, and of the array with itself.
    fn join_of_aggregates(&mut self) -> Query {
        let at = self.rng.random_range(0..self.table.rank);
        let (key, filter, value) = (self.table.column(at).name, self.filter(), self.value());
        let extreme = self.extreme(&value);
        let groups = format!(
            "(SELECT {key} AS g, {extreme} AS m, count(*) AS c FROM t{filter} GROUP BY {key})"
        );
        let (is_comparable, value) = (is_comparable(&value), value.name);
        let (sql, keys) = match self.rng.random_range(0..4) {
            0 => {
                let small = self.small();
                (format!("SELECT n, g, m, c FROM {groups} AS x JOIN {small} ON g = k{at}"), 4)
            }
            1 => {
                let small = format!("(SELECT k{at} AS g, count(*) AS c FROM small GROUP BY k{at})");
                (format!("SELECT g, c, {value} FROM t JOIN {small} AS x ON {key} = g{filter}"), 3)
            }
            // The rows with the extreme of their group.
            2 if is_comparable => {
                let on = format!("{key} = g AND {value} = m");
                (format!("SELECT {key}, {value}, c FROM t JOIN {groups} AS x ON {on}"), 3)
            }
            _ => {
                let other = self.filter();
                let rank = self.table.rank;
                let same: Vec<String> = (0..rank)
                    .map(|at| self.table.column(at).name)
                    .map(|name| format!("a.{name} = b.{name}"))
                    .collect();
                let sql = format!(
                    "SELECT count(*), count(a.{value}), count(b.{value}) \
                     FROM (SELECT * FROM t{filter}) AS a JOIN (SELECT * FROM t{other}) AS b ON {}",
                    same.join(" AND ")
                );
                (sql, 3)
            }
        };
        Query { sql, shape: "join of aggregates", determined: Determined::Rows { keys } }
    }

    /// A query with a limit inside a subquery, or with a bound that a subquery computes.
    fn nested(&mut self) -> Query {
        let value = self.value();
        let (name, filter) = (&value.name, self.filter());
        let column = self.all_columns()[self.rng.random_range(0..self.table.rank + 1)].name.clone();
        let names = [column.clone()];
        let (order, limit) = (self.order_by(&names), self.limit());
        let inner = format!("SELECT {column} FROM t{filter}{order}{limit}");
        let (sql, keys) = match self.rng.random_range(0..4) {
            0 => {
                let outer = self.order_by(&names);
                return Query {
                    sql: format!("SELECT * FROM ({inner}) AS x{outer} LIMIT 3"),
                    shape: "nested",
                    determined: Determined::Order { keys: 1, of: inner },
                };
            }
            1 => (format!("SELECT count(*), count({column}) FROM ({inner}) AS x"), 2),
            2 if is_comparable(&value) => {
                let (extreme, op) = (self.extreme(&value), self.choose(&[">=", "=", "<"]));
                let scalar = format!("(SELECT {extreme} FROM t{filter})");
                (format!("SELECT {name} FROM t WHERE {name} {op} {scalar}"), 1)
            }
            _ => {
                let wanted = format!("{column} IN (SELECT {column} FROM ({inner}) AS x)");
                (format!("SELECT {name} FROM t WHERE {wanted}"), 1)
            }
        };
        Query { sql, shape: "nested", determined: Determined::Rows { keys } }
    }

    fn union_or_window(&mut self) -> Query {
        let columns = self.some_columns();
        let (list, filter) = (columns.join(", "), self.filter());
        if self.rng.random_bool(0.5) {
            let of = format!(
                "SELECT {list} FROM t{filter} UNION ALL SELECT {list} FROM t{}",
                self.filter()
            );
            let both_zeros = self.all_columns().iter().any(shows_both_zeros);
            let keys = if both_zeros { 0 } else { self.rng.random_range(0..=columns.len()) };
            let order = if keys == 0 { String::new() } else { self.order_by(&columns[..keys]) };
            let sql = format!("{of}{order}{}", self.limit());
            return Query { sql, shape: "union", determined: Determined::Order { keys, of } };
        }
        let (by, key) = (self.dimension().name, self.dimension().name);
        let value = self.value();
        let extreme = self.extreme(&value);
        let value = value.name;
        let direction = self.choose(&["", " DESC"]);
        let window = format!("OVER (PARTITION BY {by} ORDER BY {key}{direction})");
        let sql = match self.rng.random_range(0..3) {
            0 => format!(
                "SELECT {by} AS a, {key} AS b, row_number() {window}, lag({key}) {window}, \
                 count({value}) {window} FROM t{filter}"
            ),
            1 => format!(
                "SELECT {by} AS a, {key} AS b, rank() {window}, {extreme} OVER (PARTITION BY {by}), \
                 count(*) OVER () FROM t{filter}"
            ),
            _ => format!(
                "SELECT a, b, r, 0, 0 FROM (SELECT {by} AS a, {key} AS b, row_number() {window} AS r \
                 FROM t{filter}) WHERE r <= 2"
            ),
        };
        Query { sql, shape: "window", determined: Determined::Rows { keys: 5 } }
    }
}

/// Whether sums of a column are the same in any order, except for rounding.
fn is_summable(column: &Column) -> bool {
    doubles(column).iter().all(|number| number.abs() < 1e4)
}

/// Whether the least and greatest values are determined. With NaN they depend on the order of rows, and
/// DataFusion's extremes of groups are never infinite.
fn is_comparable(column: &Column) -> bool {
    match column.kind {
        Kind::Truth => false,
        Kind::Float => doubles(column).into_iter().all(f64::is_finite),
        _ => true,
    }
}
