//! Random queries over random sparse TileDB arrays, compared with the same rows in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array, RecordBatch};
use datafusion::datasource::MemTable;
use datafusion::physical_plan::displayable;
use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};

use crate::reduce::random::compare;
use crate::support::columns::{Kind, Table, choose};
use crate::support::sparse_cases::QUERIED_SPARSE;
use crate::support::sparse_history::History;
use crate::support::sparse_model::table;
use crate::support::{query, reducing, rows_of, session};
use crate::tiledb::random::{Place, magnitude};
use crate::tiledb::sparse_random::{in_window, random_options};

/// A query, and how its answers are compared.
struct Question {
    sql: String,
    compared: Compared,
}

enum Compared {
    /// In any order. The first columns identify the rows.
    Keys(usize),
    InOrder,
    /// Any rows of the answer to another query, but not more than this number.
    SomeOf(String, usize),
}

impl Table<'_> {
    fn names(&self) -> Vec<String> {
        (0..self.rows.num_columns()).map(|at| self.column(at).name).collect()
    }

    fn filter(&self, rng: &mut StdRng) -> String {
        let one = |rng: &mut StdRng| {
            let (a, b) = (self.dimension(rng).predicate(rng), self.dimension(rng).predicate(rng));
            let value = self.value(rng).predicate(rng);
            match rng.random_range(0..10) {
                0 => format!("({a} OR {b})"),
                1 => format!("({a} OR {value})"),
                2 => format!("NOT ({a} AND {value})"),
                3 => format!("NOT ({a} OR {b})"),
                4..6 => value,
                _ => a,
            }
        };
        let all: Vec<String> = (0..rng.random_range(0..4)).map(|_| one(rng)).collect();
        if all.is_empty() { String::new() } else { format!(" WHERE {}", all.join(" AND ")) }
    }

    /// A random query. `has_key` means that the dimensions identify the rows.
    fn question(&self, has_key: bool, rng: &mut StdRng) -> Question {
        let filter = self.filter(rng);
        match rng.random_range(0..12) {
            0..3 => self.projection(&filter, rng),
            3..5 => self.ordered(&filter, has_key, rng),
            5 => self.ordered_by_value(&filter, rng),
            6 => self.limited(&filter, rng),
            7 => self.grouped(&filter, rng),
            8..10 => self.joined(&filter, rng),
            _ => {
                let query = self.query(rng);
                if !has_key && query.sql.contains(" LIMIT ") {
                    return self.limited(&filter, rng);
                }
                Question { sql: query.sql, compared: Compared::Keys(query.keys) }
            }
        }
    }

    /// Some columns, or only the number of rows.
    fn projection(&self, filter: &str, rng: &mut StdRng) -> Question {
        let mut names = self.names();
        names.retain(|_| rng.random_bool(0.5));
        names.shuffle(rng);
        match names.len() {
            0 => Question {
                sql: format!("SELECT count(*) FROM t{filter}"),
                compared: Compared::Keys(0),
            },
            len => Question {
                sql: format!("SELECT {} FROM t{filter}", names.join(", ")),
                compared: Compared::Keys(len),
            },
        }
    }

    /// Rows in the order of their dimensions. Without a key, rows with equal dimensions may come in any
    /// order, so the answer has the dimensions only.
    fn ordered(&self, filter: &str, has_key: bool, rng: &mut StdRng) -> Question {
        let mut dimensions = self.names();
        dimensions.truncate(self.rank);
        if rng.random_bool(0.3) {
            dimensions.shuffle(rng);
        }
        let list = if has_key { "*".to_owned() } else { dimensions.join(", ") };
        let same = choose(&["", " DESC"], rng);
        let mixed = rng.random_bool(0.3);
        let order: Vec<String> = dimensions
            .iter()
            .map(|name| {
                let direction = if mixed { choose(&["", " DESC"], rng) } else { same };
                format!("{name}{direction}")
            })
            .collect();
        let mut sql = format!("SELECT {list} FROM t{filter} ORDER BY {}", order.join(", "));
        if rng.random_bool(0.6) {
            sql += &format!(" LIMIT {}", rng.random_range(0..40));
            if rng.random_bool(0.2) {
                sql += &format!(" OFFSET {}", rng.random_range(0..20));
            }
        }
        Question { sql, compared: Compared::InOrder }
    }

    /// The least or greatest values of an attribute.
    fn ordered_by_value(&self, filter: &str, rng: &mut StdRng) -> Question {
        let name = self.value(rng).name;
        let direction = choose(&["", " DESC", " NULLS FIRST", " DESC NULLS LAST"], rng);
        let limit = rng.random_range(0..40);
        let sql = format!("SELECT {name} FROM t{filter} ORDER BY {name}{direction} LIMIT {limit}");
        Question { sql, compared: Compared::InOrder }
    }

    /// Any rows, but not more than a limit.
    fn limited(&self, filter: &str, rng: &mut StdRng) -> Question {
        let (all, limit) = (format!("SELECT * FROM t{filter}"), rng.random_range(0..40));
        Question { sql: format!("{all} LIMIT {limit}"), compared: Compared::SomeOf(all, limit) }
    }

    /// Counts and extremes by one column. Values that are floats are left out: -0.0 and 0.0 may be one
    /// group, with either as its key.
    fn grouped(&self, filter: &str, rng: &mut StdRng) -> Question {
        let (dimension, value) = (self.dimension(rng), self.value(rng));
        let by_value = value.kind != Kind::Float && rng.random_bool(0.5);
        let key = if by_value { value.name.clone() } else { dimension.name };
        let (value, other) = (value.name, self.dimension(rng).name);
        let list = format!("{key}, count(*), count({value}), min({other}), max({other})");
        let sql = format!("SELECT {list} FROM t{filter} GROUP BY {key}");
        Question { sql, compared: Compared::Keys(1) }
    }

    /// Joins with a small table, which has some coordinates of a dimension.
    fn joined(&self, filter: &str, rng: &mut StdRng) -> Question {
        let number = rng.random_range(0..self.rank);
        let (name, columns) = (self.column(number).name, self.rows.num_columns());
        let and = if filter.is_empty() { " WHERE" } else { " AND" };
        let keys = format!("(SELECT k FROM keys{number})");
        let (sql, keys) = match rng.random_range(0..5) {
            0 => (format!("SELECT * FROM t{filter}{and} {name} IN {keys}"), columns),
            1 => (format!("SELECT * FROM t{filter}{and} {name} NOT IN {keys}"), columns),
            2 => {
                let join = format!("keys{number} LEFT JOIN t ON {name} = k");
                (format!("SELECT n, t.* FROM {join}{filter}"), columns + 1)
            }
            3 => {
                let join = format!("t JOIN keys{number} ON {name} = k");
                (format!("SELECT n, count(*) FROM {join}{filter} GROUP BY n"), 1)
            }
            _ => {
                let join = format!("t JOIN keys{number} ON {name} = k");
                (format!("SELECT n, t.* FROM {join}{filter}"), columns + 1)
            }
        };
        Question { sql, compared: Compared::Keys(keys) }
    }
}

/// Registers a table per dimension with some of its coordinates.
fn register_keys(ctx: &SessionContext, rows: &RecordBatch, rank: usize) {
    for number in 0..rank {
        let column = rows.column(number);
        let len = column.len().min(3);
        let keys = column.slice((column.len() - len) / 2, len);
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..len as i64));
        let batch = RecordBatch::try_from_iter([("k", keys), ("n", numbers)]).unwrap();
        let keys = MemTable::try_new(batch.schema(), vec![vec![batch]]).unwrap();
        ctx.register_table(format!("keys{number}"), Arc::new(keys)).unwrap();
    }
}

/// One array as tables: several over its files, and one in memory.
struct Tables {
    ours: Vec<SessionContext>,
    in_memory: SessionContext,
}

impl Tables {
    /// `may_trust` means that the array's statistics are right.
    async fn new(
        place: &Place,
        options: &ArrayOptions,
        may_trust: bool,
        rows: &RecordBatch,
        rank: usize,
    ) -> Self {
        let mut ours = vec![];
        for (ctx, trusts) in
            [(session(1, 7), true), (session(4, 8192), false), (reducing(4, 7), true)]
        {
            let location = place.location(&ctx);
            let options = options.clone().with_trust_zone_maps(trusts && may_trust);
            ctx.register_array("t", &location, options).await.unwrap();
            register_keys(&ctx, rows, rank);
            ours.push(ctx);
        }
        let in_memory = session(1, 8192);
        let table = MemTable::try_new(rows.schema(), vec![vec![rows.clone()]]).unwrap();
        in_memory.register_table("t", Arc::new(table)).unwrap();
        register_keys(&in_memory, rows, rank);
        Self { ours, in_memory }
    }

    /// Compares the answers to a question over each table with those in memory. Returns the number of
    /// rows.
    async fn check(&self, question: &Question, magnitude: f64) -> Result<usize, String> {
        let mut rows = 0;
        for (number, ours) in self.ours.iter().enumerate() {
            let checked = same(ours, &self.in_memory, question, magnitude).await;
            rows = checked.map_err(|problem| format!("table {number}: {problem}"))?;
        }
        Ok(rows)
    }
}

async fn same(
    ours: &SessionContext,
    theirs: &SessionContext,
    question: &Question,
    magnitude: f64,
) -> Result<usize, String> {
    let sql = &question.sql;
    match &question.compared {
        Compared::Keys(keys) => compare(ours, theirs, sql, *keys, magnitude).await,
        Compared::InOrder => {
            let (found, expected) = answers(ours, sql, theirs, sql).await?;
            match found == expected {
                true => Ok(found.len()),
                false => Err(format!("found {found:?}\nexpected {expected:?}")),
            }
        }
        Compared::SomeOf(all, limit) => {
            let (found, all) = answers(ours, sql, theirs, all).await?;
            let mut left: BTreeMap<&Vec<String>, usize> = BTreeMap::new();
            for row in &all {
                *left.entry(row).or_default() += 1;
            }
            for row in &found {
                let count = left.get_mut(row).filter(|count| **count > 0);
                let count = count.ok_or_else(|| format!("found {row:?}, which is not a row"))?;
                *count -= 1;
            }
            match found.len() == all.len().min(*limit) {
                true => Ok(found.len()),
                false => Err(format!("found {} rows of {}", found.len(), all.len())),
            }
        }
    }
}

type Rows = Vec<Vec<String>>;

/// The answers to two queries as text. Both have no rows if both fail.
async fn answers(
    ours: &SessionContext,
    our_sql: &str,
    theirs: &SessionContext,
    their_sql: &str,
) -> Result<(Rows, Rows), String> {
    match (query(ours, our_sql).await, query(theirs, their_sql).await) {
        (Ok(found), Ok(expected)) => Ok((rows_of(&found), rows_of(&expected))),
        (Err(_), Err(_)) => Ok((vec![], vec![])),
        (Err(error), _) => Err(format!("only gridfusion fails: {error}")),
        (_, Err(error)) => Err(format!("only the rows in memory fail: {error}")),
    }
}

/// The plan of a query, as text.
async fn plan(ctx: &SessionContext, sql: &str) -> String {
    let plan = ctx.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    displayable(plan.as_ref()).indent(false).to_string()
}

/// Counts of what was tested.
#[derive(Debug, Default)]
struct Tested {
    queries: usize,
    with_rows: usize,
}

async fn check_queries(seed: u64, arrays: usize, queries: usize) -> Tested {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut tested = Tested::default();
    for number in 0..arrays {
        let history = History::random(&mut rng, QUERIED_SPARSE);
        let files = history.array.files(&mut rng);
        let place = Place::random(&mut rng, &files).await;
        let times: Vec<u64> = history.times().into_iter().collect();
        let end = times.choose(&mut rng).copied().filter(|_| rng.random_bool(0.3));
        let options = in_window(random_options(&mut rng, &history), (None, end));
        let (rows, _) = table(&history.array, &options);
        let schema = &history.array.schemas[0];
        let (rank, has_key) = (schema.dimensions.len(), !schema.allows_duplicates);
        let may_trust = !history.has_wrong_statistics;
        let tables = Tables::new(&place, &options, may_trust, &rows, rank).await;
        if rows.num_rows() > 0 {
            let plan = plan(&tables.ours[0], "SELECT * FROM t").await;
            assert!(plan.contains("SparseScanExec"), "{plan}");
        }
        let columns = Table { rows: &rows, rank };
        for _ in 0..queries {
            let question = columns.question(has_key, &mut rng);
            let magnitude = magnitude(&rows, &question.sql);
            tested.queries += 1;
            match tables.check(&question, magnitude).await {
                Ok(rows) => tested.with_rows += usize::from(rows > 0),
                Err(difference) => panic!(
                    "seed {seed}, array {number}, {options:?}: {}\n{difference}\n{history:#?}",
                    question.sql
                ),
            }
        }
    }
    tested
}

/// Queries have the same answers as over the same rows in memory. The tables differ in partitions, in
/// the size of batches, and in their use of statistics.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queries_of_sparse_arrays_agree_with_rows() {
    let halves = [21, 22].map(|seed| tokio::spawn(check_queries(seed, 45, 12)));
    for half in halves {
        let tested = half.await.unwrap();
        assert_eq!(tested.queries, 45 * 12);
        assert!(tested.with_rows > 200, "{tested:?}");
    }
}
