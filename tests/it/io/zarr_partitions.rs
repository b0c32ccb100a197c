//! Zarr stores that change between two partitions of a query.
//!
//! ```text
//!   first partition, whole ── its first chunk is replaced ── all other partitions ─▶ an error
//! ```

use std::fs;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, UInt8Array};
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, SendableRecordBatchStream, displayable,
};
use datafusion::prelude::SessionContext;
use futures::TryStreamExt;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use serde_json::json;

use super::zarr_stores::{Local, Store, write};
use crate::support::reducing;

/// A store with `v(y, t)`: rows of two chunks. The labels of `y` begin with `first`.
fn store(first: u8) -> Store {
    let array = |shape: &[u64], chunk: &[u64], dims: &[&str]| {
        let text = json!({
            "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "uint8",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": 0, "codecs": ["bytes"], "attributes": {}, "dimension_names": dims,
        });
        text.to_string().into_bytes()
    };
    let group = json!({"zarr_format": 3, "node_type": "group", "attributes": {}});
    let mut store = Store::from([
        ("zarr.json".to_owned(), group.to_string().into_bytes()),
        ("v/zarr.json".to_owned(), array(&[8, 4], &[1, 2], &["y", "t"])),
        ("y/zarr.json".to_owned(), array(&[8], &[8], &["y"])),
        ("y/c/0".to_owned(), (first..first + 8).collect()),
        ("t/zarr.json".to_owned(), array(&[4], &[4], &["t"])),
        ("t/c/0".to_owned(), (0..4).collect()),
    ]);
    for (y, t) in (0..8).flat_map(|y| [(y, 0), (y, 1)]) {
        store.insert(format!("v/c/{y}/{t}"), vec![1; 2]);
    }
    store
}

/// Replaces the first chunk of a store by renaming another file.
fn replace(local: &Local, store: &str) {
    let other = local.path("other");
    fs::write(&other, [2; 2]).unwrap();
    fs::rename(other, local.path(store).join("v/c/0/0")).unwrap();
}

/// A session with the stores `x.zarr` and `z.zarr`, the stores `part*.zarr` as one table, and a table `c` of rows.
async fn tables(local: &Local) -> SessionContext {
    let ctx = reducing(2, 8192);
    for (name, first) in [("z.zarr", 0), ("part1.zarr", 0), ("part2.zarr", 8)] {
        write(&local.path(name), &store(first));
    }
    for (name, location) in [("x", "x.zarr"), ("z", "z.zarr"), ("both", "part*.zarr")] {
        let options = ArrayOptions::default().with_dataset("v");
        ctx.register_array(name, local.text(location).as_str(), options).await.unwrap();
    }
    let rows = RecordBatch::try_from_iter([
        ("y", Arc::new(UInt8Array::from_iter_values(0..8)) as ArrayRef),
        ("mean", Arc::new(Int64Array::from_iter_values(0..8))),
    ]);
    ctx.register_batch("c", rows.unwrap()).unwrap();
    ctx
}

/// Returns the operators of a plan that read chunks.
async fn operators(ctx: &SessionContext, sql: &str) -> Vec<Arc<dyn ExecutionPlan>> {
    fn add(plan: &Arc<dyn ExecutionPlan>, found: &mut Vec<Arc<dyn ExecutionPlan>>) {
        if plan.name().starts_with("Grid") {
            found.push(Arc::clone(plan));
        }
        plan.children().into_iter().for_each(|child| add(child, found));
    }
    let mut found = vec![];
    add(&ctx.sql(sql).await.unwrap().create_physical_plan().await.unwrap(), &mut found);
    found
}

fn shown(plan: &Arc<dyn ExecutionPlan>) -> String {
    displayable(plan.as_ref()).indent(false).to_string()
}

async fn read(stream: SendableRecordBatchStream) -> Result<usize> {
    stream.try_fold(0, |rows, batch| async move { Ok(rows + batch.num_rows()) }).await
}

/// Reads each operator partition by partition. The store changes after the first one. If `early`, all partitions begin
/// before.
async fn changed_after_first(
    operators: &[Arc<dyn ExecutionPlan>],
    context: &Arc<TaskContext>,
    early: bool,
    change: impl FnOnce(),
) -> Result<usize> {
    let mut partitions = operators.iter().flat_map(|plan| {
        (0..plan.output_partitioning().partition_count()).map(move |at| (plan, at))
    });
    let (plan, at) = partitions.next().unwrap();
    let first = plan.execute(at, Arc::clone(context))?;
    let execute =
        |(plan, at): (&Arc<dyn ExecutionPlan>, usize)| plan.execute(at, Arc::clone(context));
    let mut begun = vec![];
    if early {
        begun = partitions.by_ref().map(execute).collect::<Result<Vec<_>>>()?;
    }
    read(first).await?;
    change();
    let mut rows = 0;
    for stream in begun.into_iter().map(Ok).chain(partitions.map(execute)) {
        rows += read(stream?).await?;
    }
    Ok(rows)
}

/// Queries, and what the plan of their operator has.
const QUERIES: [(&str, &str); 14] = [
    ("GridScanExec", "SELECT y, t, value FROM x"),
    ("mode=whole", "SELECT y, max(value) FROM x GROUP BY y"),
    ("mode=whole", "SELECT t, max(value) FROM x GROUP BY t ORDER BY t LIMIT 1"),
    ("tier=accumulators", "SELECT y, bit_xor(value) FROM x GROUP BY y"),
    ("mode=partial", "SELECT max(value), sum(value) FROM x"),
    ("mode=partial", "SELECT y % 2, max(value) FROM x GROUP BY y % 2 ORDER BY y % 2 LIMIT 1"),
    ("mode=partial", "SELECT y % 2, bit_xor(value) FROM x GROUP BY y % 2"),
    (
        "GridTopExec",
        "SELECT y, r FROM (SELECT y, row_number() OVER (PARTITION BY t ORDER BY value) AS r FROM x) WHERE r <= 1",
    ),
    ("GridWindowExec", "SELECT y, t, lag(value) OVER (PARTITION BY y ORDER BY t) FROM x"),
    ("GridLookupExec", "SELECT x.y, x.t, x.value - c.mean FROM x JOIN c ON x.y = c.y"),
    (" + ", "SELECT x.y, x.t, x.value - z.value FROM x JOIN z ON x.y = z.y AND x.t = z.t"),
    (" + ", "SELECT x.y, max(x.value - z.value) FROM x JOIN z USING (y, t) GROUP BY x.y"),
    ("GridScanExec", "SELECT y, t, value FROM both"),
    ("mode=whole", "SELECT y, max(value) FROM both GROUP BY y"),
];

#[tokio::test]
async fn a_store_that_changes_between_partitions_is_an_error() {
    for (expected, sql) in QUERIES {
        let changed = if sql.contains("both") { "part1.zarr" } else { "x.zarr" };
        for (early, changes) in [(false, true), (true, true), (true, false)] {
            let local = Local::new(&store(0));
            let ctx = tables(&local).await;
            let operators = operators(&ctx, sql).await;
            let plan = shown(&operators[0]);
            assert!(plan.contains(expected), "{sql}: {plan}");
            assert!(operators[0].output_partitioning().partition_count() > 1, "{sql}: {plan}");
            let change = || {
                if changes {
                    replace(&local, changed)
                }
            };
            let read = changed_after_first(&operators[..1], &ctx.task_ctx(), early, change).await;
            match read {
                Ok(rows) => assert!(!changes && rows > 0, "{sql}, {early}: {rows} rows"),
                Err(error) => {
                    let error = error.to_string();
                    let names = error.contains(changed) && error.contains("v/c/0/0");
                    assert!(changes && names, "{sql}, {early}: {error}");
                }
            }
        }
    }
}

/// The next operator of a query checks again what the one before has read. Other queries do not check it.
#[tokio::test]
async fn all_operators_of_a_query_see_one_version() {
    let sql = "SELECT max(value) FROM x WHERE y = 0 UNION ALL SELECT min(value) FROM x WHERE y = 7";
    let local = Local::new(&store(0));
    let ctx = tables(&local).await;
    let operators = operators(&ctx, sql).await;
    assert_eq!(operators.len(), 2);
    let (query, other) = (ctx.task_ctx(), ctx.task_ctx());
    let none = || {};
    let first = changed_after_first(&operators[..1], &query, false, none).await;
    first.expect("nothing has changed");
    replace(&local, "x.zarr");
    let second = changed_after_first(&operators[1..], &query, false, none).await;
    let error = second.expect_err("the first operator has read the chunk").to_string();
    assert!(error.contains("x.zarr") && error.contains("v/c/0/0"), "{error}");
    let second = changed_after_first(&operators[1..], &other, false, none).await;
    second.expect("another query has read the chunk");
}

/// An operator that reads one file of many checks the others that the query has read too.
#[tokio::test]
async fn all_files_of_a_table_are_checked_together() {
    let local = Local::new(&store(0));
    let ctx = tables(&local).await;
    let of_scan = operators(&ctx, "SELECT y, t, value FROM both WHERE y < 8").await;
    let of_rest = operators(&ctx, "SELECT y, t, value FROM both WHERE y >= 8").await;
    let operators = [of_scan, of_rest].concat();
    let (query, change) = (ctx.task_ctx(), || replace(&local, "part1.zarr"));
    let found = changed_after_first(&operators, &query, false, change);
    // The second operator reads no chunk of the changed file.
    let error = found.await.expect_err("the first operator has read the chunk").to_string();
    assert!(error.contains("part1.zarr") && error.contains("v/c/0/0"), "{error}");
}
