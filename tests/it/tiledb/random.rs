//! Random TileDB arrays: each cell compared with a naive model, and queries with the same rows in
//! memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, Float64Type};
use datafusion::datasource::MemTable;
use datafusion::physical_plan::collect;
use datafusion::physical_plan::metrics::MetricValue;
use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt, IoMode};
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use url::Url;

use crate::reduce::random::{compare, tier};
use crate::support::columns::Table;
use crate::support::tiledb_cases::{OF_ONE_WRITE, QUERIED, SMALL, random_array};
use crate::support::tiledb_model::Seen;
use crate::support::tiledb_writer::{Files, TestArray, put_in_folder};
use crate::support::{query, reducing, session};
use crate::tiledb::queries::Query;

/// The files of an array in memory or in a folder.
pub(crate) enum Place {
    Memory(Arc<dyn ObjectStore>),
    Folder(tempfile::TempDir),
}

impl Place {
    pub(crate) async fn in_memory(files: &Files) -> Self {
        let store = InMemory::new();
        for (path, bytes) in files {
            let path = object_store::path::Path::from(format!("array/{path}"));
            store.put(&path, bytes.clone().into()).await.unwrap();
        }
        Self::Memory(Arc::new(store))
    }

    fn in_folder(files: &Files) -> Self {
        let folder = tempfile::tempdir().unwrap();
        put_in_folder(files, folder.path());
        Self::Folder(folder)
    }

    /// In memory, or sometimes in a folder.
    pub(crate) async fn random(rng: &mut StdRng, files: &Files) -> Self {
        if rng.random_bool(0.1) { Self::in_folder(files) } else { Self::in_memory(files).await }
    }

    /// The location of the array for a session, in which an object store is registered if needed.
    pub(crate) fn location(&self, ctx: &SessionContext) -> String {
        match self {
            Self::Memory(store) => {
                let url = Url::parse("memory://arrays").unwrap();
                ctx.runtime_env().register_object_store(&url, Arc::clone(store));
                "memory://arrays/array".into()
            }
            Self::Folder(folder) => folder.path().to_str().unwrap().into(),
        }
    }
}

/// The most cells of an array that is opened with `full_domain`.
const MAX_CELLS: i128 = 1_500;

/// Random options of a table over the array.
fn random_options(rng: &mut StdRng, array: &TestArray) -> ArrayOptions {
    let mut options = ArrayOptions::default()
        .with_fill_as_null(rng.random_bool(0.3))
        .with_nan_as_null(rng.random_bool(0.8))
        .with_option("text_as_binary", rng.random_bool(0.1))
        .with_option("time_as_integer", rng.random_bool(0.2))
        .with_index_columns(rng.random_bool(0.2))
        .with_io(if rng.random_bool(0.5) { IoMode::Mmap } else { IoMode::Pread });
    if rng.random_bool(0.5) {
        options = options.with_option("timestamp", rng.random_range(8..40));
    }
    if rng.random_bool(0.2) {
        options = options.with_option("timestamp_start", rng.random_range(8..30));
    }
    let lens = array.schemas[0].dimensions.iter().map(|axis| axis.domain.1 - axis.domain.0 + 1);
    let cells = lens.into_iter().try_fold(1_i128, |cells, len| cells.checked_mul(len));
    let small = cells.is_some_and(|cells| cells <= MAX_CELLS);
    options.with_option("full_domain", small && rng.random_bool(0.5))
}

fn quoted(names: impl Iterator<Item = String>) -> String {
    names.map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
}

/// Counts of tested cells, tables and special cases.
#[derive(Debug, Default)]
struct Tested {
    cells: usize,
    tables: usize,
    empty: usize,
    refused: usize,
    layered_tiles: usize,
    hidden_cells: usize,
}

/// Compares a table with the model.
async fn check_table(
    rng: &mut StdRng,
    array: &TestArray,
    place: &Place,
    tested: &mut Tested,
) -> Result<(), String> {
    let options = random_options(rng, array);
    let ctx = session(rng.random_range(1..5), *[1, 3, 16, 8192].choose(rng).unwrap());
    let location = place.location(&ctx);
    let context = format!("{options:?}");
    let seen = Seen::new(array, &options);
    let expected = seen.rows();
    let opened = ctx.register_array("t", &location, options.clone()).await;
    opened.map_err(|error| format!("{context}: {error}"))?;
    let keys = quoted(seen.schema.dimensions.iter().map(|axis| axis.name.clone()));
    let found = query(&ctx, &format!("SELECT * FROM t ORDER BY {keys}")).await;
    tested.tables += 1;
    tested.layered_tiles += seen.layered_tiles();
    tested.hidden_cells += seen.hidden_cells();
    let (expected, found) = match (expected, found) {
        (Ok(expected), Ok(found)) => (expected, found),
        (Err(parts), Err(error)) if parts.iter().any(|part| error.to_string().contains(part)) => {
            tested.refused += 1;
            return Ok(());
        }
        (Err(parts), found) => {
            return Err(format!("{context}: expected an error with one of {parts:?}: {found:?}"));
        }
        (_, Err(error)) => return Err(format!("{context}: {error}")),
    };
    tested.empty += usize::from(expected.num_rows() == 0);
    tested.cells += expected.num_rows() * expected.num_columns();
    same_rows(&found, &expected).map_err(|problem| format!("{context}: {problem}"))
}

fn same_rows(found: &[RecordBatch], expected: &RecordBatch) -> Result<(), String> {
    let Some(first) = found.first() else {
        let rows = expected.num_rows();
        return if rows == 0 { Ok(()) } else { Err(format!("no rows, expected {rows}")) };
    };
    let found = concat_batches(&first.schema(), found).unwrap();
    if found.num_rows() != expected.num_rows() || found.num_columns() != expected.num_columns() {
        let counts = |it: &RecordBatch| format!("{} x {}", it.num_rows(), it.num_columns());
        return Err(format!("found {}, expected {}", counts(&found), counts(expected)));
    }
    for (field, (ours, theirs)) in
        expected.schema().fields().iter().zip(found.columns().iter().zip(expected.columns()))
    {
        if found.schema().index_of(field.name()).is_err() {
            return Err(format!("no column {}", field.name()));
        }
        if ours != theirs {
            return Err(format!("{}: found {ours:?}, expected {theirs:?}", field.name()));
        }
    }
    Ok(())
}

async fn check_arrays(seed: u64, arrays: usize) -> Tested {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut tested = Tested::default();
    for number in 0..arrays {
        let array = random_array(&mut rng, SMALL);
        let files = array.files(&mut rng);
        let place = Place::random(&mut rng, &files).await;
        for _ in 0..3 {
            if let Err(problem) = check_table(&mut rng, &array, &place, &mut tested).await {
                panic!("seed {seed}, array {number}: {problem}\n{array:#?}");
            }
        }
    }
    tested
}

/// Over a thousand arrays, each opened three times with random options and ranges of time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tiledb_arrays_are_what_was_written() {
    let halves = [1, 2].map(|seed| tokio::spawn(check_arrays(seed, 600)));
    for half in halves {
        let tested = half.await.unwrap();
        assert!(tested.cells > 400_000 && tested.layered_tiles > 300, "{tested:?}");
        assert!(tested.empty < tested.tables / 4, "{tested:?}");
        assert!((10..tested.tables / 10).contains(&tested.refused), "{tested:?}");
        assert!(tested.hidden_cells > 500, "{tested:?}");
    }
}

/// Counts per way of answering queries.
type Taken = BTreeMap<&'static str, usize>;

/// One array as tables: with statistics and reductions, without one or both, and in memory.
struct Tables {
    reduced: SessionContext,
    others: Vec<SessionContext>,
    in_memory: SessionContext,
}

impl Tables {
    async fn new(
        rng: &mut StdRng,
        place: &Place,
        options: &ArrayOptions,
        rows: &RecordBatch,
    ) -> Self {
        let (partitions, batch_size) =
            (rng.random_range(1..=7), *[3, 64, 8192].choose(rng).unwrap());
        let make = async |reduces: bool, trusts: bool| {
            let ctx = match reduces {
                true => reducing(partitions, batch_size),
                false => session(partitions, batch_size),
            };
            let location = place.location(&ctx);
            let options = options.clone().with_trust_zone_maps(trusts);
            ctx.register_array("t", &location, options).await.unwrap();
            ctx
        };
        let reduced = make(true, true).await;
        let others =
            vec![make(true, false).await, make(false, true).await, make(false, false).await];
        let in_memory = session(1, 8192);
        let table = MemTable::try_new(rows.schema(), vec![vec![rows.clone()]]).unwrap();
        in_memory.register_table("t", Arc::new(table)).unwrap();
        Self { reduced, others, in_memory }
    }

    /// Compares the answers of a query over several tables, and counts how it was answered.
    async fn check(
        &self,
        rng: &mut StdRng,
        query: &Query,
        magnitude: f64,
        taken: &mut Taken,
    ) -> Result<(), String> {
        let Query { sql, keys, asks_values_only, .. } = query;
        let rows = compare(&self.reduced, &self.in_memory, sql, *keys, magnitude).await?;
        let (name, other) =
            [("no statistics", 0), ("no reductions", 1), ("neither", 2)].choose(rng).unwrap();
        let other = compare(&self.others[*other], &self.in_memory, sql, *keys, magnitude).await;
        other.map_err(|problem| format!("{name}: {problem}"))?;
        let mut count = |way, times| *taken.entry(way).or_default() += times;
        count("queries", 1);
        count("not empty", usize::from(rows > 0));
        count(tier(&self.reduced, sql).await, 1);
        let [answered, pruned] = counted(&self.reduced, sql).await;
        count("chunks answered by statistics", answered);
        if *asks_values_only {
            count("chunks pruned by values", pruned);
        }
        Ok(())
    }
}

/// Runs a query; returns how many chunks statistics answered, and how many they pruned.
async fn counted(ctx: &SessionContext, sql: &str) -> [usize; 2] {
    let plan = async { ctx.sql(sql).await?.create_physical_plan().await };
    let Ok(plan) = plan.await else { return [0, 0] };
    if collect(Arc::clone(&plan), ctx.task_ctx()).await.is_err() {
        return [0, 0];
    }
    let mut counts = [0, 0];
    let mut nodes = vec![plan];
    while let Some(node) = nodes.pop() {
        nodes.extend(node.children().into_iter().cloned());
        let Some(metrics) = node.metrics() else { continue };
        for metric in metrics.iter() {
            match metric.value() {
                MetricValue::Count { name, count } if name == "chunks_answered" => {
                    counts[0] += count.value();
                }
                MetricValue::PruningMetrics { name, pruning_metrics }
                    if name == "chunks_pruned_zone_map" =>
                {
                    counts[1] += pruning_metrics.pruned();
                }
                _ => {}
            }
        }
    }
    counts
}

/// The greatest distance from 0 of a finite number in the columns that a query names.
pub(crate) fn magnitude(rows: &RecordBatch, sql: &str) -> f64 {
    let schema = rows.schema();
    let asked = |name: &str| sql.contains(&format!("\"{name}\""));
    let columns = schema.fields().iter().zip(rows.columns());
    columns
        .filter(|(field, _)| field.data_type().is_numeric() && asked(field.name()))
        .map(|(_, column)| cast(column, &DataType::Float64).unwrap())
        .flat_map(|doubles| doubles.as_primitive::<Float64Type>().iter().collect::<Vec<_>>())
        .flatten()
        .filter(|number| number.is_finite())
        .fold(0.0, |most, number| most.max(number.abs()))
}

async fn check_queries(seed: u64, arrays: usize, queries: usize) -> Taken {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut taken = Taken::new();
    for number in 0..arrays {
        let profile = if number % 2 == 0 { QUERIED } else { OF_ONE_WRITE };
        let array = random_array(&mut rng, profile);
        let files = array.files(&mut rng);
        let place = Place::random(&mut rng, &files).await;
        let options = random_options(&mut rng, &array).with_option("text_as_binary", false);
        let seen = Seen::new(&array, &options);
        let Ok(rows) = seen.rows() else { continue };
        *taken.entry("tiles of several layers").or_default() += seen.layered_tiles();
        let tables = Tables::new(&mut rng, &place, &options, &rows).await;
        let table = Table { rows: &rows, rank: seen.schema.dimensions.len() };
        let mut all: Vec<Query> = (0..queries).map(|_| table.query(&mut rng)).collect();
        all.extend(table.sums());
        for query in all {
            let magnitude = if query.is_exact { 0.0 } else { magnitude(&rows, &query.sql) };
            if let Err(difference) = tables.check(&mut rng, &query, magnitude, &mut taken).await {
                let tier = tier(&tables.reduced, &query.sql).await;
                panic!(
                    "seed {seed}, array {number}, {options:?}: {}\n{tier}\n{difference}\n\
                     {array:#?}",
                    query.sql
                );
            }
        }
    }
    taken
}

/// Thousands of queries have the same answers with statistics and reductions, from rows, and over the
/// same rows in memory. Each way of answering is taken often enough.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queries_of_tiledb_arrays_agree_with_rows() {
    let halves = [3, 4].map(|seed| tokio::spawn(check_queries(seed, 130, 14)));
    let mut taken = Taken::new();
    for half in halves {
        for (way, count) in half.await.unwrap() {
            *taken.entry(way).or_default() += count;
        }
    }
    for (way, least) in [
        ("queries", 3_000),
        ("not empty", 2_000),
        ("mode=whole, tier=dense", 150),
        ("mode=partial, tier=dense", 150),
        ("mode=whole, tier=accumulators", 500),
        ("mode=partial, tier=accumulators", 500),
        ("rows", 500),
        ("chunks answered by statistics", 25),
        ("chunks pruned by values", 60),
        ("tiles of several layers", 40),
    ] {
        assert!(taken.get(way).is_some_and(|count| *count >= least), "{way}: {taken:#?}");
    }
    assert!(taken.get("error").is_none_or(|count| *count < 200), "{taken:#?}");
}
