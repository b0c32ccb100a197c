//! Plans and metrics of sparse arrays: which tiles are read, merged or answered, and in which memory.

use std::sync::Arc;

use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::{ExecutionPlan, collect, displayable};
use datafusion::prelude::{SessionConfig, SessionContext};
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use gridfusion_distributed::with_worker_metrics;
use rand::SeedableRng;
use rand::rngs::StdRng;
use tempfile::TempDir;

use crate::cluster::workers::Workers;
use crate::codec::shapes::metric as sum;
use crate::conformance::subject::explain;
use crate::plan::dynamic::metric;
use crate::reduce::random::agree;
use crate::support::sparse_writer::{
    COLUMN_MAJOR, Condition, Deletion, Operator, ROW_MAJOR, Row, SparseArray, SparseDimension,
    SparseFragment, SparseSchema, State,
};
use crate::support::tiledb_writer::{
    FLOAT64, Filters, INT32, TestAttribute, TestStatistics, integer, put_in_folder,
};
use crate::support::{query, reducing, rows_from, rows_of};

/// Cells per tile.
const CAPACITY: i32 = 10;

/// An attribute of one number per cell.
fn attribute(name: &str, code: u8, fill: Vec<u8>) -> TestAttribute {
    TestAttribute {
        name: name.into(),
        code,
        values: Some(1),
        nullable: false,
        fill,
        fill_valid: true,
        filters: Filters::Zstd,
    }
}

fn dimension(name: &str) -> SparseDimension {
    SparseDimension {
        name: name.into(),
        code: INT32,
        domain: [integer(INT32, 0), integer(INT32, 9999)],
        extent: Some(integer(INT32, 10_000)),
        filters: Filters::Zstd,
    }
}

/// An array of `x`, `y`, `v INT32` and `f FLOAT64`, with a fragment per list of cells. Cell `(x, y)` has
/// `v = 100 * x + y` plus the number of the fragment, and `f = v / 2`.
pub(super) fn points(order: u8, fragments: &[Vec<(i32, i32)>]) -> SparseArray {
    let schema = SparseSchema {
        time: 1,
        dimensions: vec![dimension("x"), dimension("y")],
        attributes: vec![
            attribute("v", INT32, integer(INT32, -1)),
            attribute("f", FLOAT64, f64::NAN.to_le_bytes().to_vec()),
        ],
        allows_duplicates: false,
        tile_order: ROW_MAJOR,
        cell_order: order,
        capacity: CAPACITY as u64,
        current_domain: None,
        coordinates: Filters::Zstd,
        offsets: Filters::Zstd,
        validity: Filters::Zstd,
    };
    let fragment = |(number, cells): (usize, &Vec<(i32, i32)>)| {
        let time = 10 * (number as u64 + 1);
        let row = |&(x, y): &(i32, i32)| {
            let v = 100 * x + y + number as i32;
            Row {
                time,
                deletion: None,
                coordinates: [x, y].map(|at| at.to_le_bytes().to_vec()).to_vec(),
                cells: vec![
                    Some(v.to_le_bytes().to_vec()),
                    Some((f64::from(v) / 2.0).to_le_bytes().to_vec()),
                ],
            }
        };
        SparseFragment {
            times: (time, time),
            version: 22,
            state: State::Present,
            schema: 0,
            rows: cells.iter().map(row).collect(),
            keeps_times: false,
            has_deletions: false,
            processed: vec![],
            statistics: TestStatistics::Right,
        }
    };
    SparseArray {
        schemas: vec![schema],
        fragments: fragments.iter().enumerate().map(fragment).collect(),
        vacuums: vec![],
        deletions: vec![],
        commit_list: false,
    }
}

/// The cells `(0, 0)` to `(rows - 1, 9)`, of which each row of ten is a tile of a row-major array.
fn rows_of_ten(rows: std::ops::Range<i32>) -> Vec<(i32, i32)> {
    rows.flat_map(|x| (0..10).map(move |y| (x, y))).collect()
}

/// Writes an array to a folder, and registers it as the table `t`.
pub(super) async fn register(ctx: &SessionContext, array: &SparseArray) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    put_in_folder(&array.files(&mut StdRng::seed_from_u64(1)), folder.path());
    let location = folder.path().to_str().unwrap();
    ctx.register_array("t", location, ArrayOptions::default()).await.unwrap();
    folder
}

/// Runs a query; returns its rows, and the plan with its metrics.
pub(super) async fn run(
    ctx: &SessionContext,
    sql: &str,
) -> (Vec<Vec<String>>, Arc<dyn ExecutionPlan>) {
    let plan = ctx.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    let batches = collect(Arc::clone(&plan), ctx.task_ctx()).await.unwrap();
    (rows_of(&batches), plan)
}

pub(super) fn metrics<const N: usize>(
    plan: &Arc<dyn ExecutionPlan>,
    names: [&str; N],
) -> [usize; N] {
    names.map(|name| metric(plan, name))
}

#[tokio::test]
async fn a_box_reads_only_the_tiles_that_it_touches() {
    let ctx = reducing(2, 8192);
    let _folder =
        register(&ctx, &points(ROW_MAJOR, &[rows_of_ten(0..50), rows_of_ten(80..90)])).await;
    let (rows, plan) =
        run(&ctx, "SELECT count(*), min(v), max(v) FROM t WHERE x BETWEEN 7 AND 9 AND y < 5").await;
    assert_eq!(rows, [["15", "700", "904"]]);
    let names = ["tiles_pruned_domain", "tiles_pruned_rtree", "tiles_read", "cells_outside"];
    assert_eq!(metrics(&plan, names), [10, 47, 3, 15]);
    let (rows, plan) = run(&ctx, "SELECT count(*) FROM t WHERE x = 60").await;
    assert_eq!(rows, [["0"]]);
    assert_eq!(metrics(&plan, ["tiles_read", "bytes_read"]), [0, 0]);
}

#[tokio::test]
async fn statistics_skip_tiles_unless_an_older_cell_could_come_back() {
    let ctx = reducing(2, 8192);
    let _folder = register(&ctx, &points(ROW_MAJOR, &[rows_of_ten(0..50)])).await;
    let (rows, plan) = run(&ctx, "SELECT x, y FROM t WHERE v = 1203").await;
    assert_eq!(rows, [["12", "3"]]);
    assert_eq!(metrics(&plan, ["tiles_pruned_statistics", "tiles_read"]), [49, 1]);
    // The second write replaces all values of rows 10 to 19, and adds 1 to them.
    let ctx = reducing(2, 8192);
    let _folder =
        register(&ctx, &points(ROW_MAJOR, &[rows_of_ten(0..50), rows_of_ten(10..20)])).await;
    let (rows, plan) = run(&ctx, "SELECT count(*) FROM t WHERE v = 1200").await;
    assert_eq!(rows, [["0"]]);
    let names = ["tiles_pruned_statistics", "tiles_read", "cells_duplicate"];
    assert_eq!(metrics(&plan, names), [40, 20, 100]);
}

/// Workers share tiles and merges. Statistics answer for tiles there, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tiles_are_divided_among_workers() {
    let ctx = reducing(3, 8192);
    let overlapping = [rows_of_ten(0..4000), rows_of_ten(1000..2000), rows_of_ten(6000..7000)];
    let _folder = register(&ctx, &points(ROW_MAJOR, &overlapping)).await;
    let mut answered = 0;
    for count in [2, 3] {
        let workers = Workers::start(count, &ctx).await;
        let coordinator = workers.coordinate(&ctx);
        for (sql, keys) in [
            ("SELECT count(*), sum(v), min(v), max(v) FROM t", 1),
            ("SELECT count(*), sum(v), min(v), max(v) FROM t WHERE x > 10 AND y < 7", 1),
            ("SELECT y, count(*), sum(f) FROM t WHERE v % 3 = 0 GROUP BY y", 1),
            ("SELECT * FROM t ORDER BY v DESC, x LIMIT 7", 2),
            ("SELECT * FROM t WHERE x BETWEEN 900 AND 6500", 2),
        ] {
            let plan = coordinator.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
            let text = displayable(plan.as_ref()).indent(true).to_string();
            assert!(text.contains("DistributedLeafExec: SparseScanExec"), "{sql}: {text}");
            let found = collect(Arc::clone(&plan), coordinator.task_ctx()).await;
            agree(found, query(&ctx, sql).await, keys, 1.0)
                .unwrap_or_else(|difference| panic!("{count}: {sql}: {difference}"));
            let plan = with_worker_metrics(plan).await.unwrap();
            let (_, alone) = run(&ctx, sql).await;
            // Other counts differ: tiles at the borders of ranges are read by two tasks, and each partition decides
            // whether statistics are worth reading.
            for name in ["tiles_pruned_domain", "tiles_pruned_rtree"] {
                assert_eq!(sum(&plan, name), sum(&alone, name), "{sql}: {name}");
            }
            answered += sum(&plan, "tiles_answered");
        }
    }
    assert!(answered > 0);
}

#[tokio::test]
async fn one_fragment_is_counted_without_reading() {
    let ctx = reducing(2, 8192);
    let disjoint = [rows_of_ten(0..20), rows_of_ten(30..40)];
    let _folder = register(&ctx, &points(ROW_MAJOR, &disjoint)).await;
    for (sql, expected) in [
        ("SELECT count(*) FROM t", "300"),
        ("SELECT count(*) FROM t WHERE x < 15", "150"),
        ("SELECT max(x) FROM t", "39"),
    ] {
        assert_eq!(rows_from(&ctx, sql).await, [[expected]], "{sql}");
        assert!(!explain(&ctx, sql).await.contains("SparseScanExec"), "{sql}");
    }
}

#[tokio::test]
async fn statistics_of_whole_tiles_answer_aggregates() {
    let sql = "SELECT count(*), count(v), sum(v), min(v), max(v), avg(f), sum(f) FROM t WHERE x < 30 AND y + x < 1000 AND (x < 29 OR y < 5)";
    for partitions in [1, 3] {
        let ctx = reducing(partitions, 8192);
        let array = points(ROW_MAJOR, &[rows_of_ten(0..50), rows_of_ten(3..4)]);
        let _folder = register(&ctx, &array).await;
        let box_only =
            "SELECT count(*), count(v), sum(v), min(v), max(v), avg(f), sum(f) FROM t WHERE x < 30";
        let (rows, plan) = run(&ctx, box_only).await;
        let expected =
            rows_from(&ctx, &box_only.replace("FROM t", "FROM (SELECT * FROM t LIMIT 1000) t"))
                .await;
        assert_eq!(rows, expected);
        // One tile is written twice, and both of its versions are read.
        assert_eq!(metrics(&plan, ["tiles_answered", "tiles_read"]), [29, 2]);
        assert_eq!(rows_from(&ctx, sql).await[0][0], "295");
    }
}

#[tokio::test]
async fn rows_of_one_fragment_come_in_order() {
    for (order, by, sorted) in [
        (ROW_MAJOR, "x, y", true),
        (ROW_MAJOR, "y, x", false),
        (COLUMN_MAJOR, "y, x", true),
        (COLUMN_MAJOR, "x", false),
    ] {
        let ctx = reducing(3, 16);
        let _folder = register(&ctx, &points(order, &[rows_of_ten(0..30)])).await;
        let sql = format!("SELECT x, y FROM t ORDER BY {by}");
        let plan = explain(&ctx, &sql).await;
        assert_eq!(!plan.contains("SortExec"), sorted, "{by}\n{plan}");
        let rows = rows_from(&ctx, &sql).await;
        let first = by.starts_with('y') as usize;
        let keys: Vec<i32> = rows.iter().map(|row| row[first].parse().unwrap()).collect();
        assert!(keys.is_sorted() && keys.len() == 300);
    }
}

#[tokio::test]
async fn deletions_hide_cells_and_keep_statistics_out() {
    let ctx = reducing(2, 8192);
    let mut array = points(ROW_MAJOR, &[rows_of_ten(0..20)]);
    let keeps = Condition::Compare {
        field: "v".into(),
        operator: Operator::Less,
        values: vec![integer(INT32, 1500)],
    };
    array.deletions.push(Deletion { time: 15, keeps });
    let _folder = register(&ctx, &array).await;
    let (rows, plan) = run(&ctx, "SELECT count(*), sum(v) FROM t").await;
    assert_eq!(rows, [["150", "105675"]]);
    // Of tiles without a cell that is left, no column is read.
    assert_eq!(metrics(&plan, ["tiles_answered", "tiles_read", "cells_deleted"]), [0, 15, 50]);
}

#[tokio::test]
async fn dynamic_filters_skip_tiles() {
    let ctx = reducing(1, 8192);
    let _folder = register(&ctx, &points(ROW_MAJOR, &[rows_of_ten(0..1000)])).await;
    let (rows, plan) = run(&ctx, "SELECT v FROM t ORDER BY v LIMIT 3").await;
    assert_eq!(rows, [["0"], ["1"], ["2"]]);
    let [pruned, read] = metrics(&plan, ["tiles_pruned_dynamic_filter", "tiles_read"]);
    assert!(pruned > 700 && read < 300, "{pruned} {read}");
    query(&ctx, "CREATE TABLE few AS VALUES (17), (512)").await.unwrap();
    let join = "SELECT count(*) FROM t JOIN few ON t.x = few.column1";
    let (rows, plan) = run(&ctx, join).await;
    assert_eq!(rows, [["20"]]);
    let [read] = metrics(&plan, ["tiles_read"]);
    assert!(read < 510, "{read}");
}

/// Two tiles of 150000 cells need several windows, because a window has at most 2^18 cells.
#[tokio::test]
async fn large_tiles_are_merged_in_parts() {
    let columns = |x: std::ops::Range<i32>| x.flat_map(|x| (0..150).map(move |y| (x, y))).collect();
    let mut array = points(ROW_MAJOR, &[columns(0..1000), columns(500..1500)]);
    array.schemas[0].capacity = 1 << 20;
    let ctx = reducing(1, 8192);
    let _folder = register(&ctx, &array).await;
    let sql = "SELECT count(*), sum(v - 100 * x - y), count(DISTINCT (x, y)) FROM t";
    let (rows, plan) = run(&ctx, sql).await;
    assert_eq!(rows, [["225000", "150000", "225000"]]);
    assert_eq!(metrics(&plan, ["cells_duplicate", "tiles_read"]), [75_000, 2]);
}

/// Merging holds a tile of each fragment that it has begun. The pool has room for a few of these, and refuses
/// more.
#[tokio::test]
async fn merging_accounts_for_its_memory() {
    let fragments: Vec<_> = (0..4).map(|_| rows_of_ten(0..300)).collect();
    for (limit, fits) in [(1 << 20, true), (1 << 8, false)] {
        let pool = Arc::new(GreedyMemoryPool::new(limit));
        let runtime = RuntimeEnvBuilder::new().with_memory_pool(pool).build_arc().unwrap();
        let config = SessionConfig::new().with_target_partitions(2);
        let ctx = SessionContext::new_with_config_rt(config, runtime);
        ctx.enable_gridfusion();
        let _folder = register(&ctx, &points(ROW_MAJOR, &fragments)).await;
        let found = query(&ctx, "SELECT count(v), min(v) FROM t").await;
        match found {
            Ok(rows) => assert!(fits && rows_of(&rows) == [["3000", "3"]]),
            Err(error) => {
                assert!(!fits && error.to_string().contains("Resources exhausted"), "{error}")
            }
        }
    }
}

#[tokio::test]
async fn sparse_arrays_are_no_columns_of_other_tables() {
    let ctx = reducing(1, 8192);
    let folder = register(&ctx, &points(ROW_MAJOR, &[rows_of_ten(0..2)])).await;
    let location = folder.path().to_str().unwrap();
    let error = |sql: String| {
        let ctx = &ctx;
        async move { query(ctx, &sql).await.unwrap_err().to_string() }
    };
    let twice = error(format!("SELECT * FROM read_array(['{location}', '{location}'])")).await;
    assert!(twice.contains("UNION ALL"), "{twice}");
    let column =
        error(format!("SELECT * FROM read_array('{location}', file_column => true)")).await;
    assert!(column.contains("file_column"), "{column}");
    let alone = format!("SELECT count(*) FROM read_tiledb('{location}')");
    assert_eq!(rows_from(&ctx, &alone).await, [["20"]]);
}
