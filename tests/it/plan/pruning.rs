//! Pruning and reordering change no answer. Random queries over random arrays with chunk statistics are
//! run with pruning, without it, and over the same rows in memory.
//!
//! `GRIDFUSION_PRUNING_SEED=<number>` selects other arrays and queries.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, UInt64Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, Schema};
use datafusion::datasource::MemTable;
use datafusion::error::DataFusionError;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::{SessionConfig, SessionContext};
use gridfusion::{ArrayOptions, GridfusionSessionContextExt, IoMode};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::json;

use crate::plan::pruning_queries::{Determined, Queries, Query};
use crate::reduce::random::same;
use crate::support::columns::{Table, choose};
use crate::support::tiledb_cases::{OF_ONE_WRITE, random_array};
use crate::support::tiledb_model::Seen;
use crate::support::zoned::Zoned;
use crate::support::{
    I32, Layout, TempTet, TestDataset, query as query_rows, rows_of, session, tet_bytes,
};
use crate::tiledb::random::Place;

/// Three sessions with the same array as the table `t`, and the same table `small`.
struct Contexts {
    pruned: SessionContext,
    unpruned: SessionContext,
    in_memory: SessionContext,
    prefer_hash_join: bool,
    description: String,
}

/// Settings that choose between operators, and the probability that each is on.
const SETTINGS: [(&str, f64); 6] = [
    ("optimizer.prefer_hash_join", 0.8),
    ("optimizer.repartition_joins", 0.7),
    ("optimizer.prefer_existing_sort", 0.3),
    ("optimizer.enable_window_topn", 0.5),
    ("optimizer.enable_unions_to_filter", 0.3),
    ("optimizer.enable_piecewise_merge_join", 0.3),
];

impl Contexts {
    /// Sessions with `small`; `in_memory` also has the rows as `t`. The caller registers the array in the
    /// other sessions.
    fn new(rng: &mut StdRng, rows: &RecordBatch) -> Self {
        let partitions = rng.random_range(1..=5);
        let batch_size = choose(&[1, 3, 16, 8192, 8192], rng);
        let mut config =
            SessionConfig::new().with_target_partitions(partitions).with_batch_size(batch_size);
        let mut description = format!("{partitions} partitions, batches of {batch_size}");
        for (name, share) in SETTINGS {
            let yes = rng.random_bool(share);
            config = config.set_bool(&format!("datafusion.{name}"), yes);
            description += &format!(", {name}={yes}");
        }
        if rng.random_bool(0.3) {
            // Partitions joins even of tables as small as these.
            for name in ["threshold", "threshold_rows"] {
                let name = format!("datafusion.optimizer.hash_join_single_partition_{name}");
                config = config.set_usize(&name, 0);
            }
            description += ", partitioned joins";
        }
        let prefer_hash_join = config.options().optimizer.prefer_hash_join;
        let without = config
            .clone()
            .set_bool("datafusion.optimizer.enable_dynamic_filter_pushdown", false)
            .set_bool("datafusion.optimizer.enable_sort_pushdown", false);
        let pruned = SessionContext::new_with_config(config);
        if rng.random_bool(0.7) {
            pruned.enable_gridfusion();
            description += ", reducing";
        }
        let unpruned = SessionContext::new_with_config(without);
        let in_memory =
            SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
        register_rows(&in_memory, "t", rows);
        let small = small_table(rng, rows);
        for ctx in [&pruned, &unpruned, &in_memory] {
            register_rows(ctx, "small", &small);
        }
        Self { pruned, unpruned, in_memory, prefer_hash_join, description }
    }
}

fn register_rows(ctx: &SessionContext, name: &str, rows: &RecordBatch) {
    let table = MemTable::try_new(rows.schema(), vec![vec![rows.clone()]]).unwrap();
    ctx.register_table(name, Arc::new(table)).unwrap();
}

/// A table to join with. `k0`, `k1`, … have values from random rows of the columns with these numbers, or
/// NULL. `n` is the number of the row.
fn small_table(rng: &mut StdRng, rows: &RecordBatch) -> RecordBatch {
    let len = choose(&[0, 1, 3, 5, 8], rng);
    let mut columns = Vec::new();
    for column in rows.columns() {
        let from = |_| match rows.num_rows() as u64 {
            0 => None,
            rows => (!rng.random_bool(0.1)).then(|| rng.random_range(0..rows)),
        };
        let from: UInt64Array = (0..len).map(from).collect();
        columns.push(take(column, &from, None).unwrap());
    }
    let mut fields: Vec<Field> = columns
        .iter()
        .enumerate()
        .map(|(at, column)| Field::new(format!("k{at}"), column.data_type().clone(), true))
        .collect();
    fields.push(Field::new("n", DataType::Int64, true));
    columns.push(Arc::new(Int64Array::from_iter_values(0..len)) as ArrayRef);
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

/// Runs a query; returns its rows as text, and the number of chunks that were read.
async fn run(
    ctx: &SessionContext,
    sql: &str,
) -> Result<(Vec<Vec<String>>, usize), DataFusionError> {
    let plan = ctx.sql(sql).await?.create_physical_plan().await?;
    let batches = collect(Arc::clone(&plan), ctx.task_ctx()).await?;
    Ok((texts(&batches), chunks_read(&plan)))
}

/// Rows as text, with -0.0 as 0.0: filters, sorts and groups disagree on whether the two are equal.
fn texts(batches: &[RecordBatch]) -> Vec<Vec<String>> {
    let mut rows = rows_of(batches);
    for cell in rows.iter_mut().flatten().filter(|cell| ["-0.0", "-0"].contains(&cell.as_str())) {
        cell.remove(0);
    }
    rows
}

fn chunks_read(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let own = plan.metrics().and_then(|metrics| metrics.sum_by_name("chunks_read"));
    let below: usize = plan.children().into_iter().map(chunks_read).sum();
    own.map_or(0, |read| read.as_usize()) + below
}

/// Compares the determined part of two results. Rows of a sorted result must also be among `among`.
fn compare(
    determined: &Determined,
    found: &[Vec<String>],
    expected: &[Vec<String>],
    among: &[Vec<String>],
) -> Result<(), String> {
    /// The tolerance for sums of a few hundred numbers.
    const ROUNDING: f64 = 1e-6;
    let agree = match determined {
        Determined::Rows { keys } => {
            let sorted = |rows: &[Vec<String>]| {
                let mut rows = rows.to_vec();
                rows.sort_by(|a, b| a[..*keys].cmp(&b[..*keys]));
                rows
            };
            let (found, expected) = (sorted(found), sorted(expected));
            found.len() == expected.len()
                && found.iter().zip(&expected).all(|(a, b)| {
                    let rounded = a[*keys..].iter().zip(&b[*keys..]);
                    a[..*keys] == b[..*keys]
                        && rounded.into_iter().all(|(a, b)| same(a, b, ROUNDING))
                })
        }
        Determined::Order { keys, .. } => {
            let order = |rows: &[Vec<String>]| -> Vec<Vec<String>> {
                rows.iter().map(|row| row[..*keys].to_vec()).collect()
            };
            order(found) == order(expected) && is_among(found, among)
        }
    };
    if agree { Ok(()) } else { Err(format!("found {found:?}\nexpected {expected:?}")) }
}

/// Whether each row is in `all`, at most as often as there.
fn is_among(rows: &[Vec<String>], all: &[Vec<String>]) -> bool {
    let mut left: BTreeMap<&[String], usize> = BTreeMap::new();
    for row in all {
        *left.entry(row).or_default() += 1;
    }
    rows.iter().all(|row| match left.get_mut(row.as_slice()) {
        Some(count) if *count > 0 => {
            *count -= 1;
            true
        }
        _ => false,
    })
}

/// Whether the error is a known one of DataFusion 55, which does not depend on pruning.
///
/// When DataFusion estimates from bounds, it gives some equalities of columns a selectivity above 1, and
/// fails to negate the least integer. Its sort-merge join does not support Float16.
fn is_known(error: &DataFusionError) -> bool {
    let message = error.to_string();
    message.contains("Selectivity is out of limit")
        || message.contains("Overflow happened on: - -")
        || message.contains("Unsupported data type in sort merge join comparator")
}

/// Counts of queries, by their outcome and shape.
type Tested = BTreeMap<String, usize>;

/// Compares the answers of a query with pruning, without it, and in memory.
async fn check(contexts: &Contexts, query: &Query, tested: &mut Tested) -> Result<(), String> {
    let Query { sql, shape, determined } = query;
    let mut count = |what: &str, yes: bool| {
        for what in [what.to_owned(), format!("{what}: {shape}")] {
            *tested.entry(what).or_default() += usize::from(yes);
        }
    };
    let pruned = run(&contexts.pruned, sql).await;
    let unpruned = run(&contexts.unpruned, sql).await;
    let expected = run(&contexts.in_memory, sql).await;
    let [(pruned, read), (unpruned, unpruned_read), (expected, _)] =
        match (pruned, unpruned, expected) {
            (Ok(pruned), Ok(unpruned), Ok(expected)) => [pruned, unpruned, expected],
            (Err(_), Err(_), Err(_)) => {
                count("failed", true);
                return Ok(());
            }
            (_, Err(error), Ok(_)) if is_known(&error) => {
                count("known", true);
                return Ok(());
            }
            results => {
                let [a, b, c] = <[_; 3]>::from(results).map(|result| match result {
                    Ok(_) => "an answer".to_owned(),
                    Err(error) => error.to_string(),
                });
                return Err(format!("pruned: {a}\nunpruned: {b}\nin memory: {c}"));
            }
        };
    let among = match determined {
        Determined::Order { of, .. } => {
            let all = query_rows(&contexts.in_memory, of).await;
            texts(&all.map_err(|error| format!("without a limit: {error}"))?)
        }
        Determined::Rows { .. } => vec![],
    };
    for (name, found) in [("pruned", &pruned), ("unpruned", &unpruned)] {
        compare(determined, found, &expected, &among)
            .map_err(|problem| format!("{name}: {problem}"))?;
    }
    count("queries", true);
    count("not empty", !expected.is_empty());
    count("pruned", read < unpruned_read);
    Ok(())
}

/// Checks `queries` random queries of a table.
async fn check_queries(
    rng: &mut StdRng,
    contexts: &Contexts,
    table: Table<'_>,
    queries: usize,
    tested: &mut Tested,
) -> Result<(), String> {
    let mut maker = Queries { table, only_equal: !contexts.prefer_hash_join, rng };
    for number in 0..queries {
        let query = maker.query();
        check(contexts, &query, tested).await.map_err(|problem| {
            format!("query {number}, {}\n{}\n{problem}", contexts.description, query.sql)
        })?;
    }
    Ok(())
}

/// The number of queries per array.
const QUERIES: usize = 40;

/// The seed of the array with this number.
fn seed(number: u64) -> u64 {
    let given = std::env::var("GRIDFUSION_PRUNING_SEED").ok().and_then(|seed| seed.parse().ok());
    given.unwrap_or(1_u64).wrapping_mul(1_000_000).wrapping_add(number)
}

async fn check_tet(numbers: impl Iterator<Item = u64>) -> Tested {
    let mut tested = Tested::new();
    for number in numbers {
        let mut rng = StdRng::seed_from_u64(seed(number));
        let Zoned { case, options } = Zoned::of_any_writer(&mut rng);
        let contexts = Contexts::new(&mut rng, &case.rows);
        let io = choose(&[IoMode::Mmap, IoMode::Pread], &mut rng);
        for (ctx, trusted) in [(&contexts.pruned, true), (&contexts.unpruned, false)] {
            let options = options.clone().with_io(io).with_trust_zone_maps(trusted);
            ctx.register_array("t", case.file.location(), options).await.unwrap();
        }
        let table = Table { rows: &case.rows, rank: case.axes.len() };
        let checked = check_queries(&mut rng, &contexts, table, QUERIES, &mut tested).await;
        if let Err(problem) = checked {
            panic!("array {number}, {}: {problem}", case.description);
        }
    }
    tested
}

async fn check_tiledb(numbers: impl Iterator<Item = u64>) -> Tested {
    let mut tested = Tested::new();
    for number in numbers {
        let mut rng = StdRng::seed_from_u64(seed(number));
        let array = random_array(&mut rng, OF_ONE_WRITE);
        let place = Place::in_memory(&array.files(&mut rng)).await;
        let options = ArrayOptions::default();
        let seen = Seen::new(&array, &options);
        let Ok(rows) = seen.rows() else { continue };
        let contexts = Contexts::new(&mut rng, &rows);
        for (ctx, trusted) in [(&contexts.pruned, true), (&contexts.unpruned, false)] {
            let options = options.clone().with_trust_zone_maps(trusted);
            ctx.register_array("t", place.location(ctx), options).await.unwrap();
        }
        let table = Table { rows: &rows, rank: seen.schema.dimensions.len() };
        let checked = check_queries(&mut rng, &contexts, table, QUERIES, &mut tested).await;
        if let Err(problem) = checked {
            panic!("array {number}: {problem}\n{array:#?}");
        }
    }
    tested
}

/// Adds up the counts of two tasks.
async fn both(halves: [tokio::task::JoinHandle<Tested>; 2]) -> Tested {
    let mut all = Tested::new();
    for half in halves {
        for (what, count) in half.await.unwrap() {
            *all.entry(what).or_default() += count;
        }
    }
    all
}

/// Asserts that enough queries had each outcome; `least` has percentages of `queries`.
fn assert_tested(tested: &Tested, queries: usize, least: &[(&str, usize)]) {
    for (what, percent) in least {
        let count = tested.get(*what).copied().unwrap_or(0);
        assert!(count * 100 >= percent * queries, "{what}: {count} of {queries}\n{tested:#?}");
    }
    for (what, percent) in [("failed", 10), ("known", 1)] {
        let count = tested.get(what).copied().unwrap_or(0);
        assert!(count * 100 <= percent * queries, "{what}: {count} of {queries}\n{tested:#?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pruning_changes_no_answer() {
    let arrays = if cfg!(debug_assertions) { 26 } else { 270 };
    let halves = [0, 1].map(|half| tokio::spawn(check_tet((half..arrays).step_by(2))));
    let tested = both(halves).await;
    assert_tested(
        &tested,
        arrays as usize * QUERIES,
        &[
            ("queries", 93),
            ("not empty", 60),
            ("pruned", 30),
            ("pruned: sorted", 8),
            ("pruned: join", 2),
        ],
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pruning_changes_no_answer_of_tiledb() {
    let arrays = if cfg!(debug_assertions) { 8 } else { 50 };
    let halves = [0, 1].map(|half| tokio::spawn(check_tiledb((half..arrays).step_by(2))));
    let tested = both(halves).await;
    assert_tested(&tested, arrays as usize * QUERIES, &[("queries", 80), ("not empty", 50)]);
}

/// Negation of the least integer wraps, so bounds of values are not bounds of their negatives.
#[tokio::test]
async fn the_least_integer_is_its_own_negative() {
    let values = [i32::MIN, i32::MIN, 5, 6];
    let data = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let dataset = TestDataset::new("value", I32, &[4], &[2], data);
    let zone = |chunk: u64, least: &str, greatest: &str| {
        json!({"dataset_id": 0, "chunk_index": [chunk], "element_count": 2, "null_count": 0,
            "min_le": least, "max_le": greatest})
    };
    let zones = [zone(0, "00000080", "00000080"), zone(1, "05000000", "06000000")];
    let zones = Some(json!({"version": 1, "chunks": zones}));
    let layout = Layout { history_version: Some(2), zones, ..Layout::default() };
    let file = TempTet::new(&tet_bytes(&[dataset], &layout));
    let ctx = session(1, 8192);
    ctx.register_array("t", file.location(), ArrayOptions::default()).await.unwrap();
    for (predicate, expected) in [("-value <= 2147483646", ("4", 2)), ("value > 4", ("2", 1))] {
        let sql = format!("SELECT count(*) FROM t WHERE {predicate}");
        let (rows, read) = run(&ctx, &sql).await.unwrap();
        assert_eq!((rows[0][0].as_str(), read), expected, "{predicate}");
    }
}
