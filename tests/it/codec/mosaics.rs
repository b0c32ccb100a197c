//! Tables of many files: the other session opens only those that it reads.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::SessionContext;
use gridfusion::codec::SharedLeaf;
use gridfusion::{ArrayOptions, GridfusionConfig, GridfusionSessionContextExt};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::json;

use super::sent::{bytes, leaves, loses_parts, plan, query_sent, received};
use crate::mosaic::random::Mosaic;
use crate::support::cases::name;
use crate::support::{
    F32, F64, Layout, TestDataset, query, reducing, rows_of, sorted_rows_from, tet_bytes,
};

const FILES: usize = 8;

/// Writes one of the files: 10 times and 2 stations.
fn write(folder: &Path, number: usize, factor: f32) {
    let times = (0..10).flat_map(|time| ((number * 10 + time) as f64).to_le_bytes()).collect();
    let values = (0..20).flat_map(|cell| (factor * (number * 20 + cell) as f32).to_le_bytes());
    let metadata = json!({"dim_names": ["time", "station"]});
    let datasets = [
        TestDataset::new("t", F32, &[10, 2], &[5, 2], values.collect()).with_metadata(metadata),
        TestDataset::new("time", F64, &[10], &[10], times),
    ];
    let layout = Layout { history_version: Some(1), ..Layout::default() };
    fs::write(folder.join(format!("{number}.tet")), tet_bytes(&datasets, &layout)).unwrap();
}

/// A session with a table of all files, and their folder.
async fn table_of_files() -> (tempfile::TempDir, SessionContext) {
    let folder = tempfile::tempdir().unwrap();
    (0..FILES).for_each(|number| write(folder.path(), number, 1.0));
    let ctx = reducing(2, 8192);
    let pattern = folder.path().join("*.tet");
    let options = ArrayOptions::default().with_dataset("t");
    ctx.register_array("t", pattern.to_str().unwrap(), options).await.unwrap();
    (folder, ctx)
}

/// The number of files that a session has opened.
fn opened(ctx: &SessionContext) -> u64 {
    let config = ctx.copied_config();
    config.options().extensions.get::<GridfusionConfig>().unwrap().opening.opened()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_share_opens_the_files_that_it_reads() {
    let (_folder, ctx) = table_of_files().await;
    for sql in [
        "SELECT * FROM t",
        "SELECT * FROM t WHERE value > 11",
        "SELECT time, max(value) FROM t GROUP BY time",
        "SELECT sum(value) FROM t",
        "SELECT time > 35 AS late, sum(value), count(*) FROM t GROUP BY late",
    ] {
        let whole = plan(&ctx, sql).await.unwrap();
        let leaf = first_leaf(&whole);
        let shares = SharedLeaf::from_node(&leaf).unwrap().shares(4).unwrap();
        let (mut rows, mut here) = (vec![], vec![]);
        for share in &shares {
            // A share runs in this process, too.
            here.extend(rows_of(&collect(Arc::clone(share), ctx.task_ctx()).await.unwrap()));
            let worker = reducing(2, 8192);
            let share = received(&bytes(share).unwrap(), &worker).unwrap();
            rows.extend(rows_of(&collect(share, worker.task_ctx()).await.unwrap()));
            // The first file has the labels of the other dimensions.
            assert!((2..=3).contains(&opened(&worker)), "{sql}: {} files", opened(&worker));
        }
        let mut expected = rows_of(&collect(leaf, ctx.task_ctx()).await.unwrap());
        here.sort();
        rows.sort();
        assert_eq!(here, rows, "{sql}");
        if sql.contains("sum") {
            assert!(rows.len() >= 8, "one state per partition");
            continue;
        }
        expected.sort();
        assert_eq!(rows, expected, "{sql}");
    }
}

/// The leaf of a plan.
fn first_leaf(plan: &Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    leaves(plan).remove(0)
}

/// A file that changes is an error only for those who read it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_are_compared_when_they_are_read() {
    let (folder, ctx) = table_of_files().await;
    let early = "SELECT time, station, value FROM t WHERE time < 20";
    let expected = sorted_rows_from(&ctx, early).await;
    let all = plan(&ctx, "SELECT max(value) FROM t").await.unwrap();
    let (early, all) = (bytes(&plan(&ctx, early).await.unwrap()).unwrap(), bytes(&all).unwrap());
    // One file of the last year is another, and one is gone.
    let draft = tempfile::tempdir().unwrap();
    write(draft.path(), 7, 2.0);
    fs::rename(draft.path().join("7.tet"), folder.path().join("7.tet")).unwrap();
    fs::remove_file(folder.path().join("6.tet")).unwrap();
    let worker = SessionContext::new();
    let run = |bytes: &[u8], worker: &SessionContext| {
        let (plan, context) = (received(bytes, worker), worker.task_ctx());
        async move { collect(plan?, context).await }
    };
    let mut found = rows_of(&run(&early, &worker).await.unwrap());
    found.sort();
    assert_eq!(found, expected);
    let error = run(&all, &SessionContext::new()).await.unwrap_err().to_string();
    assert!(error.contains("6.tet") || error.contains("7.tet: the object has changed"), "{error}");
    // Nor does a file that is back hide the one that has changed.
    write(folder.path(), 6, 1.0);
    let error = run(&all, &SessionContext::new()).await.unwrap_err().to_string();
    assert!(error.contains("the object has changed"), "{error}");
    // The first file is always opened.
    fs::remove_file(folder.path().join("0.tet")).unwrap();
    let error = run(&early, &SessionContext::new()).await.unwrap_err().to_string();
    assert!(error.contains("0.tet"), "{error}");
}

/// Random variables of random files give the same rows in another session, and in shares.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_tables_of_many_files_travel() {
    let mut rng = StdRng::seed_from_u64(2020);
    let (mut not_empty, mut shared) = (0, 0);
    for number in 0..120 {
        let case = Mosaic::random(&mut rng);
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in &case.files {
            fs::write(folder.path().join(name), bytes).unwrap();
        }
        let ctx = reducing(rng.random_range(1..4), 8192);
        let pattern = folder.path().join("part-*.tet");
        let options = ArrayOptions::default()
            .with_option("concat_dimension", name(case.along))
            .with_option("file_column", true)
            .with_option("index_columns", true);
        ctx.register_array("t", pattern.to_str().unwrap(), options).await.unwrap();
        let worker = SessionContext::new();
        for _ in 0..6 {
            let sql = case.query(&mut rng);
            let context = || format!("case {number}, {}: {sql}", case.description);
            if loses_parts(&ctx, &sql).await {
                continue;
            }
            let expected = query(&ctx, &sql).await;
            let found = query_sent(&ctx, &worker, &sql).await;
            let (mut found, mut expected) = match (found, expected) {
                (Ok(found), Ok(expected)) => (rows_of(&found), rows_of(&expected)),
                (Err(_), Err(_)) => continue,
                (found, expected) => {
                    panic!("{}\n{:?}\n{:?}", context(), found.map(|_| ()), expected.map(|_| ()))
                }
            };
            found.sort();
            expected.sort();
            assert_eq!(found, expected, "{}", context());
            not_empty += usize::from(!found.is_empty());
        }
        // The table's rows, in shares of sessions that open what they need.
        let whole = plan(&ctx, "SELECT * FROM t").await.unwrap();
        let leaf = first_leaf(&whole);
        let Some(leaf) = SharedLeaf::from_node(&leaf) else { continue };
        let mut rows = vec![];
        for share in leaf.shares(rng.random_range(1..4)).unwrap() {
            let worker = SessionContext::new();
            let share = received(&bytes(&share).unwrap(), &worker).unwrap();
            rows.extend(rows_of(&collect(share, worker.task_ctx()).await.unwrap()));
            shared += 1;
        }
        rows.sort();
        assert_eq!(rows, sorted_rows_from(&ctx, "SELECT * FROM t").await, "{}", case.description);
    }
    assert!(not_empty > 400 && shared > 150, "{not_empty} queries, {shared} shares");
}
