//! The order that scans declare: rows are in that order, and plans have no needless sorts.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::{SortColumn, concat_batches, lexsort_to_indices};
use datafusion::common::{ScalarValue, SplitPoint};
use datafusion::physical_expr::RangePartitioning;
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, Partitioning, displayable, execute_stream_partitioned,
};
use datafusion::prelude::SessionContext;
use futures::TryStreamExt;
use gridfusion::exec::GridScanExec;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use insta::assert_snapshot;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use crate::support::cases::{Case, name};
use crate::support::{F32, I32, Layout, TempTet, TestDataset, query, rows_of, session, tet_bytes};

async fn register(ctx: &SessionContext, case: &Case) {
    let options = ArrayOptions::default().with_dataset("v").with_index_columns(true);
    ctx.register_array("t", case.file.location(), options).await.unwrap();
}

async fn plan(ctx: &SessionContext, sql: &str) -> Arc<dyn ExecutionPlan> {
    ctx.sql(sql).await.unwrap().create_physical_plan().await.unwrap()
}

fn scan(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    if plan.downcast_ref::<GridScanExec>().is_some() {
        return Some(Arc::clone(plan));
    }
    plan.children().into_iter().find_map(scan)
}

/// Whether the rows of `batch` are in the order of these columns.
fn is_sorted(batch: &RecordBatch, columns: &[SortColumn]) -> bool {
    // Equal rows may come in any order, so the values are compared, not the row numbers.
    let order = lexsort_to_indices(columns, None).unwrap();
    let sorted = columns.iter().map(|column| {
        arrow::compute::take(column.values.as_ref(), &order, None).unwrap()
            == Arc::clone(&column.values)
    });
    batch.num_rows() < 2 || sorted.collect::<Vec<bool>>().into_iter().all(|same| same)
}

/// A random SELECT with predicates and an order on dimensions.
fn select(case: &Case, rng: &mut StdRng) -> String {
    let rank = case.axes.len();
    let mut conditions: Vec<String> = (0..rng.random_range(0..3))
        .map(|_| {
            let axis = rng.random_range(0..rank);
            case.axes[axis].predicate(&name(axis), rng)
        })
        .collect();
    if rng.random_bool(0.3) {
        conditions.push(format!("d{}_idx = {}", rng.random_range(0..rank), rng.random_range(0..4)));
    }
    let filter = if conditions.is_empty() {
        String::new()
    } else {
        format!(" WHERE {}", conditions.join(" AND "))
    };
    let columns: Vec<String> =
        (0..rank).flat_map(|axis| [name(axis), format!("d{axis}_idx")]).collect();
    let direction = |rng: &mut StdRng| if rng.random_bool(0.5) { "" } else { " DESC" };
    let order: Vec<String> = (0..rng.random_range(0..=rank))
        .map(|axis| {
            format!("d{axis}{}{}", if rng.random_bool(0.5) { "_idx" } else { "" }, direction(rng))
        })
        .collect();
    let order =
        if order.is_empty() { String::new() } else { format!(" ORDER BY {}", order.join(", ")) };
    format!("SELECT {}, value FROM t{filter}{order}", columns.join(", "))
}

/// Whether the rows of `batch` belong to `partition` of these ranges.
fn is_in_range(batch: &RecordBatch, ranges: &RangePartitioning, partition: usize) -> bool {
    let [key] = ranges.ordering().as_ref() else { panic!("one key") };
    let values = key.expr.evaluate(batch).unwrap().into_array(batch.num_rows()).unwrap();
    let of_row = |row: usize| {
        let value = ScalarValue::try_from_array(&values, row).unwrap();
        let is_before = |split: &SplitPoint| {
            let order = split.values()[0].partial_cmp(&value).unwrap();
            if key.options.descending { order.is_ge() } else { order.is_le() }
        };
        ranges.split_points().iter().filter(|split| is_before(split)).count()
    };
    (0..batch.num_rows()).all(|row| of_row(row) == partition)
}

#[tokio::test]
async fn rows_are_in_the_declared_order() {
    let mut rng = StdRng::seed_from_u64(31);
    let (mut orderings, mut reordered, mut in_ranges) = (0, 0, 0);
    for _ in 0..200 {
        let case = Case::random(&mut rng);
        let ctx = session(rng.random_range(1..4), *[1, 5, 8192].choose(&mut rng).unwrap());
        register(&ctx, &case).await;
        for _ in 0..6 {
            let sql = select(&case, &mut rng);
            let Ok(frame) = ctx.sql(&sql).await else { continue };
            let plan = frame.create_physical_plan().await.unwrap();
            let Some(scan) = scan(&plan) else { continue };
            let known = scan.properties().eq_properties.clone();
            let shown = displayable(scan.as_ref()).one_line().to_string();
            reordered += usize::from(shown.contains("order=["));
            let streams = execute_stream_partitioned(Arc::clone(&scan), ctx.task_ctx()).unwrap();
            for (partition, stream) in streams.into_iter().enumerate() {
                let batches: Vec<RecordBatch> = stream.try_collect().await.unwrap();
                let batch = concat_batches(&scan.schema(), &batches).unwrap();
                if let Partitioning::Range(ranges) = scan.output_partitioning() {
                    assert!(is_in_range(&batch, ranges, partition), "{sql} {ranges}");
                    in_ranges += 1;
                }
                for ordering in known.oeq_class().iter() {
                    let columns = ordering.iter().map(|by| SortColumn {
                        values: by
                            .expr
                            .evaluate(&batch)
                            .unwrap()
                            .into_array(batch.num_rows())
                            .unwrap(),
                        options: Some(by.options),
                    });
                    assert!(is_sorted(&batch, &columns.collect::<Vec<_>>()), "{sql} {ordering:?}");
                    orderings += usize::from(batch.num_rows() > 1);
                }
            }
        }
    }
    assert!(orderings > 500, "{orderings}");
    assert!(reordered > 200 && in_ranges > 50, "{reordered} {in_ranges}");
}

/// Random sorts by dimensions, with limits, compared with the same over rows in memory.
#[tokio::test]
async fn sorted_queries_agree_with_rows_in_memory() {
    let mut rng = StdRng::seed_from_u64(32);
    let mut unsorted = 0;
    for number in 0..200 {
        let case = Case::random(&mut rng);
        let ours = session(rng.random_range(1..4), *[1, 5, 8192].choose(&mut rng).unwrap());
        register(&ours, &case).await;
        let theirs = case.in_memory();
        let rank = case.axes.len();
        for _ in 0..8 {
            let mut keys: Vec<String> = (0..rank).map(name).collect();
            keys.truncate(rng.random_range(1..=rank));
            // The order of rows with equal keys is not determined, so only keys are selected.
            let shown = keys.join(", ");
            let mut direction = || if rng.random_bool(0.6) { "" } else { " DESC" };
            let by: Vec<String> = keys.iter().map(|key| format!("{key}{}", direction())).collect();
            let axis = rng.random_range(0..rank);
            let filter = case.axes[axis].predicate(&name(axis), &mut rng);
            let limit = match rng.random_range(0..3) {
                0 => String::new(),
                _ => format!(" LIMIT {}", rng.random_range(0..20)),
            };
            let sql =
                format!("SELECT {shown} FROM t WHERE {filter} ORDER BY {}{limit}", by.join(", "));
            let (found, expected) = (query(&ours, &sql).await, query(&theirs, &sql).await);
            let (Ok(found), Ok(expected)) = (&found, &expected) else {
                assert!(found.is_err() && expected.is_err(), "{sql}");
                continue;
            };
            assert_eq!(
                rows_of(found),
                rows_of(expected),
                "case {number}, {}: {sql}",
                case.description
            );
            let shown = displayable(plan(&ours, &sql).await.as_ref()).indent(false).to_string();
            unsorted += usize::from(!shown.contains("SortExec"));
        }
    }
    assert!(unsorted > 300, "only {unsorted} queries did without a sort");
}

/// An array of 64 hours x 4 stations, in chunks of 8 hours and `stations_per_chunk` stations.
fn file(stations_per_chunk: u64) -> TempTet {
    let data = (0..256).flat_map(|cell| (cell as f32).to_le_bytes()).collect();
    let values = TestDataset::new("t", F32, &[64, 4], &[8, stations_per_chunk], data)
        .with_metadata(serde_json::json!({"dim_names": ["time", "station"]}));
    let hours = (0..64_i32).flat_map(i32::to_le_bytes).collect();
    let time = TestDataset::new("time", I32, &[64], &[64], hours).with_metadata(serde_json::json!(
        {"dim_names": ["time"], "attrs": {"units": "hours since 2024-01-01"}}
    ));
    TempTet::new(&tet_bytes(
        &[values, time],
        &Layout { history_version: Some(2), ..Layout::default() },
    ))
}

#[tokio::test]
async fn sorts_that_are_not_needed_are_gone() {
    let shown = async |stations_per_chunk, partitions, sql: &str| {
        let file = file(stations_per_chunk);
        let ctx = session(partitions, 8192);
        ctx.register_array("t", file.location(), ArrayOptions::default().with_dataset("t"))
            .await
            .unwrap();
        displayable(plan(&ctx, sql).await.as_ref()).indent(false).to_string()
    };
    let first = "SELECT * FROM t ORDER BY time LIMIT 10";
    assert_snapshot!(shown(4, 1, first).await, @"GridScanExec: dataset=t, chunks=1/8, projection=[time, station, value], limit=10");
    assert_snapshot!(shown(4, 2, first).await, @r"
    SortPreservingMergeExec: [time@0 ASC NULLS LAST], fetch=10
      GridScanExec: dataset=t, chunks=1/8, projection=[time, station, value], limit=10
    ");
    // Two chunks share each time, so they must be read together to give rows in order of time.
    assert_snapshot!(shown(2, 1, first).await, @"GridScanExec: dataset=t, chunks=2/16, projection=[time, station, value], order=[time], limit=10");
    let last = "SELECT * FROM t ORDER BY time DESC, station LIMIT 10";
    assert_snapshot!(shown(2, 1, last).await, @"GridScanExec: dataset=t, chunks=2/16, projection=[time, station, value], order=[time DESC, station], limit=10");
    assert_snapshot!(shown(4, 2, last).await, @r"
    SortPreservingMergeExec: [time@0 DESC, station@1 ASC NULLS LAST], fetch=10
      BufferExec: capacity=1073741824
        GridScanExec: dataset=t, chunks=1/8, projection=[time, station, value], order=[time DESC, station], limit=10
    ");
    // Not the order of the axes: the rows of a station are in many chunks, so a sort remains.
    let across = "SELECT * FROM t ORDER BY station, time DESC LIMIT 10";
    assert_snapshot!(shown(2, 1, across).await, @r"
    SortExec: TopK(fetch=10), expr=[station@1 ASC NULLS LAST, time@0 DESC], preserve_partitioning=[false]
      GridScanExec: dataset=t, chunks=16/16, projection=[time, station, value], filters=[DynamicFilter [ empty ]]
    ");
    // There is one row for each time and station, so the order by value is needless.
    let by_all = "SELECT * FROM t ORDER BY time DESC, station DESC, value";
    assert_snapshot!(shown(4, 1, by_all).await, @"GridScanExec: dataset=t, chunks=8/8, projection=[time, station, value], order=[time DESC, station DESC]");
    // The limit has chosen its rows already, so the scan must keep its order.
    let limited = "SELECT * FROM (SELECT * FROM t LIMIT 10) ORDER BY time DESC";
    assert_snapshot!(shown(4, 1, limited).await, @r"
    SortExec: expr=[time@0 DESC], preserve_partitioning=[false]
      GridScanExec: dataset=t, chunks=1/8, projection=[time, station, value], limit=10
    ");
    // The chunks of one station follow one another in time.
    let one = "SELECT * FROM t WHERE station = 3 ORDER BY time, station";
    assert_snapshot!(shown(2, 1, one).await, @"GridScanExec: dataset=t, chunks=8/16, selection=[station=3], projection=[time, station, value]");
    let by_both = "SELECT * FROM t WHERE time > '2024-01-02' ORDER BY time, station";
    assert_snapshot!(shown(4, 1, by_both).await, @"GridScanExec: dataset=t, chunks=5/8, selection=[time=2024-01-02T01:00:00..2024-01-03T15:00:00], projection=[time, station, value]");
}

/// Partitions by ranges of labels keep their ranges if a scan reads its rows in another order.
#[tokio::test]
async fn reordered_partitions_are_the_same_ranges() {
    let file = file(2);
    let ctx = session(2, 8192);
    let options = ArrayOptions::default().with_dataset("t");
    ctx.register_array("t", file.location(), options).await.unwrap();
    for setting in ["optimizer.prefer_hash_join = false", "optimizer.repartition_joins = true"] {
        query(&ctx, &format!("SET datafusion.{setting}")).await.unwrap();
    }
    let sql = "SELECT value FROM t WHERE time IN \
               (SELECT time FROM (SELECT time FROM t WHERE value < 8 ORDER BY time DESC) AS last)";
    let mut rows = rows_of(&query(&ctx, sql).await.unwrap());
    rows.sort();
    assert_eq!(rows.len(), 8);
    assert_eq!(rows[7], ["7.0"]);
}

/// Partitions by ranges of labels stay the same if a sort or a limit is pushed into the scan. The slabs are
/// uneven, so splitting them again would give other partitions.
#[tokio::test]
async fn ranges_outlive_sorts_and_limits() {
    let data = (0..304).flat_map(|cell| (cell as f32).to_le_bytes()).collect();
    let labels: Vec<String> = (0..38).map(|row| (90 - row).to_string()).collect();
    let values = TestDataset::new("t", F32, &[38, 8], &[10, 4], data).with_metadata(
        serde_json::json!({"dim_names": ["lat", "lon"], "coords": {"lat": {"labels": labels}}}),
    );
    let layout = Layout { history_version: Some(2), ..Layout::default() };
    let file = TempTet::new(&tet_bytes(&[values], &layout));
    let options = ArrayOptions::default().with_dataset("t").with_index_columns(true);
    let whole = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW";
    for partitions in 2..5 {
        let (ours, plain) = (session(partitions, 16), session(1, 8192));
        for ctx in [&ours, &plain] {
            ctx.register_array("t", file.location(), options.clone()).await.unwrap();
            query(ctx, "SET datafusion.optimizer.prefer_hash_join = false").await.unwrap();
        }
        query(&plain, "SET datafusion.optimizer.enable_sort_pushdown = false").await.unwrap();
        for sql in [
            "SELECT lat, lon, sum(value) OVER (PARTITION BY lat ORDER BY lon) FROM t".to_owned(),
            "SELECT lat, lon, sum(value) OVER (PARTITION BY lat ORDER BY lat, lon) FROM t".into(),
            format!(
                "SELECT lat, lon, sum(value) OVER (PARTITION BY lat ORDER BY lon {whole}) FROM t"
            ),
            "SELECT a.value, b.value FROM t AS a JOIN t AS b USING (lat) WHERE a.lon = b.lon"
                .into(),
            "SELECT lat_idx, lat, row_number() OVER (PARTITION BY lat ORDER BY lon) \
             FROM (SELECT lat_idx, lat, lon, value FROM t)"
                .into(),
        ] {
            let [found, expected] = [&ours, &plain].map(|ctx| query(ctx, &sql));
            let mut found = rows_of(&found.await.unwrap_or_else(|error| panic!("{sql}: {error}")));
            let mut expected = rows_of(&expected.await.unwrap());
            found.sort();
            expected.sort();
            assert_eq!(found, expected, "{sql}, {partitions} partitions");
            let limited = format!("{sql} LIMIT 10");
            let rows =
                query(&ours, &limited).await.unwrap_or_else(|error| panic!("{limited}: {error}"));
            let rows = rows_of(&rows);
            assert_eq!(rows.len(), 10);
            assert!(rows.iter().all(|row| expected.contains(row)), "{limited}");
        }
    }
}
