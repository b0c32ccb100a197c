//! Plans that must not travel, and bytes that must be refused.

use std::fs;
use std::sync::Arc;

use datafusion::common::config::ConfigExtension;
use datafusion::common::extensions_options;
use datafusion::physical_plan::collect;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_proto::physical_plan::{DefaultPhysicalProtoConverter, PhysicalExtensionCodec};
use gridfusion::codec::GridfusionCodec;
use gridfusion::{ArrayOpener, ArrayOptions, GridTable, GridfusionSessionContextExt};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::sent::{bytes, leaves, plan, received};
use crate::io::remote::{Link, files, large};
use crate::support::object_server::ObjectServer;
use crate::support::{reducing, rows_of, shipped};

const STATIONS: &str = "examples/data/stations.tet";

/// Sends the plan of a query over the table `t` of a file; returns its rows in another session, or the error.
async fn sent(ctx: &SessionContext, worker: &SessionContext) -> Result<Vec<Vec<String>>, String> {
    let run = async {
        let plan = plan(ctx, "SELECT station, max(value) FROM t GROUP BY station").await?;
        let plan = received(&bytes(&plan)?, worker)?;
        collect(plan, worker.task_ctx()).await
    };
    let rows = run.await.map(|batches| rows_of(&batches));
    rows.map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_file_that_was_written_since_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.tet");
    fs::copy(shipped(STATIONS), &path).unwrap();
    let (ctx, worker) = (reducing(2, 8192), SessionContext::new());
    let options = ArrayOptions::default().with_dataset("temperature");
    ctx.register_array("t", path.to_str().unwrap(), options).await.unwrap();
    let first = sent(&ctx, &worker).await.unwrap();
    assert_eq!(first.len(), 6);
    // The table of the coordinator is open, and the worker opens the file anew.
    let draft = folder.path().join("draft");
    fs::copy(shipped(STATIONS), &draft).unwrap();
    fs::rename(&draft, &path).unwrap();
    let other = SessionContext::new();
    let error = sent(&ctx, &other).await.unwrap_err();
    assert!(error.contains("t.tet: the object has changed"), "{error}");
    assert!(error.contains("run the query again"), "{error}");
    fs::remove_file(&path).unwrap();
    let error = sent(&ctx, &SessionContext::new()).await.unwrap_err();
    assert!(error.contains("t.tet"), "{error}");
}

#[tokio::test]
async fn other_versions_of_folders_are_refused() {
    for (name, change) in
        [("examples/data/sea.zarr", "zarr.json"), ("tests/data/tiledb/overlap", "")]
    {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("array");
        crate::sql::ways_in::copy_folder(std::path::Path::new(&shipped(name)), &path);
        let ctx = reducing(2, 8192);
        ctx.register_array("t", path.to_str().unwrap(), ArrayOptions::default()).await.unwrap();
        let sent = bytes(&plan(&ctx, "SELECT * FROM t").await.unwrap()).unwrap();
        let run = |worker: SessionContext| {
            let plan = received(&sent, &worker).unwrap();
            async move { collect(plan, worker.task_ctx()).await }
        };
        run(SessionContext::new()).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        if change.is_empty() {
            let fragments = path.join("__fragments");
            let newest = fs::read_dir(&fragments).unwrap().map(|it| it.unwrap().path()).max();
            let newest = newest.unwrap();
            let commit = newest.file_name().unwrap().to_str().unwrap().to_owned() + ".wrt";
            fs::remove_dir_all(&newest).unwrap();
            fs::remove_file(path.join("__commits").join(commit)).unwrap();
        } else {
            let text = fs::read_to_string(path.join(change)).unwrap();
            fs::write(path.join(change), text.replace("degC", "degF")).unwrap();
        }
        let error = run(SessionContext::new()).await.unwrap_err().to_string();
        assert!(error.contains("the object has changed"), "{name}: {error}");
    }
}

/// Keys, passwords and signatures stay where they are, and arrays in memory cannot travel.
#[tokio::test]
async fn secrets_do_not_travel() {
    let key = "0123456789abcdef0123456789ABCDEF";
    let ctx = reducing(2, 8192);
    let options = ArrayOptions::default().with_option("encryption_key", key);
    let encrypted = shipped("tests/data/tiledb/encrypted");
    ctx.register_array("encrypted", &encrypted, options).await.unwrap();
    let error = bytes(&plan(&ctx, "SELECT * FROM encrypted").await.unwrap()).unwrap_err();
    let error = error.to_string();
    assert!(error.contains("encryption_key") && !error.contains(key), "{error}");

    let opener = ArrayOpener::from_session(&ctx.state());
    let options = ArrayOptions::default();
    let table = opener.table(shipped("tests/data/tiledb/overlap"), None, &options).await.unwrap();
    let array = table.as_grid().unwrap().array();
    ctx.register_table("of_memory", Arc::new(GridTable::new(array))).unwrap();
    for sql in ["SELECT * FROM of_memory", "SELECT r, max(a) FROM of_memory GROUP BY r"] {
        let error = bytes(&plan(&ctx, sql).await.unwrap()).unwrap_err().to_string();
        assert!(error.contains("register it by its path or URL"), "{error}");
    }
}

/// The name of a table that SQL names by a URL, and so names of columns, have no secrets. A plan that reads the object would need
/// the signature, and is refused.
#[tokio::test]
async fn names_of_urls_travel_without_secrets() {
    const SECRET: &str = "0123456789abcdefSECRET";
    let link = Link::new(ObjectServer::start([("bucket/large.tet", large())]));
    let ctx = link.session(Default::default());
    ctx.enable_gridfusion_urls();
    let name = format!("{}/bucket/large.tet", link.server.url());
    let url = format!("{name}?X-Signature={SECRET}");
    let (mut sent, mut refused) = (0, 0);
    for sql in [
        format!("SELECT value + 1 FROM '{url}' WHERE false"),
        format!("SELECT count(\"{name}\".value) FROM '{url}' WHERE 1 = 2"),
        format!("SELECT sum(value) + 1 FROM '{url}'"),
        format!("SELECT value + 1, max(value) OVER () FROM '{url}'"),
        format!("SELECT p.value + q.value FROM '{url}' p JOIN '{url}' q ON p.value = q.value"),
        format!("SELECT (SELECT max(value) FROM '{url}') + 1 AS x"),
    ] {
        let plan = plan(&ctx, &sql).await.unwrap();
        let columns = plan.schema().fields().iter().map(|it| it.name().clone()).collect::<String>();
        assert!(!columns.contains(&SECRET[4..]), "{sql}: {columns}");
        let shown = match bytes(&plan) {
            Ok(bytes) => {
                sent += 1;
                String::from_utf8_lossy(&bytes).into_owned()
            }
            Err(error) => {
                refused += 1;
                error.to_string()
            }
        };
        // The error of DataFusion shows the whole plan, which is long.
        if let Some((before, _)) = shown.split_once(&SECRET[4..]) {
            let end: String = before.chars().rev().take(200).collect();
            panic!("{sql}: {}", end.chars().rev().collect::<String>());
        }
    }
    assert!(sent > 0 && refused > 0, "{sent} {refused}");
}

/// A worker reads objects by its own stores, and a URL with a signature is refused.
#[tokio::test]
async fn objects_are_read_by_the_stores_of_the_worker() {
    let objects =
        files(std::path::Path::new(&shipped("examples/data/sea.zarr")), "bucket/sea.zarr");
    let link = Link::new(ObjectServer::start(objects));
    let ctx = link.session(Default::default());
    let options = ArrayOptions::default().with_dataset("sst");
    ctx.register_array("t", "s3://bucket/sea.zarr", options).await.unwrap();
    let sent = bytes(&plan(&ctx, "SELECT lat, avg(value) FROM t GROUP BY lat").await.unwrap());
    let sent = sent.unwrap();
    let worker = link.session(Default::default());
    let plan = received(&sent, &worker).unwrap();
    link.server.take_requests();
    assert_eq!(
        collect(plan, worker.task_ctx())
            .await
            .unwrap()
            .iter()
            .map(|it| it.num_rows())
            .sum::<usize>(),
        8
    );
    assert!(!link.server.take_requests().is_empty());
    let stranger = SessionContext::new();
    let plan = received(&sent, &stranger).unwrap();
    let error = collect(plan, stranger.task_ctx()).await.unwrap_err().to_string();
    assert!(error.contains("no object store is registered for 's3://bucket/'"), "{error}");
}

/// Damaged bytes give an error, and never another answer.
#[tokio::test]
async fn damaged_bytes_are_refused() {
    let ctx = reducing(2, 8192);
    let options = ArrayOptions::default().with_dataset("temperature");
    ctx.register_array("t", shipped(STATIONS), options).await.unwrap();
    let sql = "SELECT station, count(value) FROM t WHERE time < '2024-02-01' GROUP BY station";
    let plan = plan(&ctx, sql).await.unwrap();
    let (converter, mut good) = (DefaultPhysicalProtoConverter {}, vec![]);
    let [node] = leaves(&plan).try_into().unwrap();
    GridfusionCodec.try_encode(node, &mut good, &converter).unwrap();
    let worker = SessionContext::new().task_ctx();
    let decode = |bytes: &[u8]| GridfusionCodec.try_decode(bytes, &[], &worker, &converter);
    let run = async |plan| {
        let mut rows = rows_of(&collect(plan, Arc::clone(&worker)).await.unwrap());
        rows.sort();
        rows
    };
    let expected = run(decode(&good).unwrap()).await;
    assert!(!expected.is_empty());
    let mut rng = StdRng::seed_from_u64(3);
    let mut refused = 0;
    for round in 0..2000 {
        let mut bad = good.clone();
        if round % 4 == 0 {
            bad.truncate(rng.random_range(0..bad.len()));
        } else {
            let at = rng.random_range(0..bad.len());
            bad[at] ^= 1 << rng.random_range(0..8);
        }
        match decode(&bad) {
            Err(error) => {
                assert!(!error.to_string().contains("bug in gridfusion"), "round {round}: {error}");
                refused += 1;
            }
            // A few bits of the frame of the compression mean nothing.
            Ok(plan) => assert_eq!(run(plan).await, expected, "round {round}"),
        }
    }
    assert!(refused > 1900, "{refused} of 2000");
}

/// Ballista runs a leaf whole in each task of a stage, so a scan of several partitions must not run there.
#[tokio::test]
async fn executors_of_ballista_are_refused() {
    extensions_options! {
        struct Settings {
            pub job: Option<String>, default = None
        }
    }
    impl ConfigExtension for Settings {
        const PREFIX: &'static str = "ballista";
    }
    let config = SessionConfig::new().with_option_extension(Settings::default());
    let executor = SessionContext::new_with_config(config);
    for (partitions, is_refused) in [(1, false), (3, true)] {
        let ctx = reducing(partitions, 8192);
        let options = ArrayOptions::default().with_dataset("temperature");
        ctx.register_array("t", shipped(STATIONS), options).await.unwrap();
        match sent(&ctx, &executor).await {
            Ok(rows) => assert!(!is_refused && rows.len() == 6),
            Err(error) => assert!(is_refused && error.contains("rows would multiply"), "{error}"),
        }
    }
}

/// A worker looks at every node before it runs a plan: also at those that a reduction, a window or a lookup is made from.
#[tokio::test]
async fn every_node_is_visited() {
    let ctx = super::shapes::tables().await;
    for (sql, nested) in [
        ("SELECT station, avg(value) FROM temperature GROUP BY station", "AggregateExec"),
        (
            "SELECT avg(value) OVER (PARTITION BY station ORDER BY time ROWS 3 PRECEDING) FROM temperature",
            "BoundedWindowAggExec",
        ),
    ] {
        let planned = super::sent::plan(&ctx, sql).await.unwrap();
        let bytes = super::sent::bytes(&planned).unwrap();
        let received = super::sent::received(&bytes, &ctx).unwrap();
        let mut names = vec![];
        gridfusion::codec::visit_every_node(&received, &mut |node| {
            names.push(node.name().to_owned());
            Ok(())
        })
        .unwrap();
        assert!(names.iter().any(|name| name == nested), "{sql}: {names:?}");
        let refused = gridfusion::codec::visit_every_node(&received, &mut |node| match node.name()
            == nested
        {
            true => datafusion::common::plan_err!("found"),
            false => Ok(()),
        });
        assert!(refused.unwrap_err().to_string().contains("found"));
    }
}
