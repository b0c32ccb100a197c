//! Scans of object stores: parts of chunks, batches of chunks, and catalogs, compared with local files.

use std::path::Path;
use std::sync::Arc;

use gridfusion::io::{ByteSource, ObjectSource, RemoteLimits};
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::runtime::Builder;

use super::remote::{Link, files};
use crate::support::object_server::{Fault, ObjectServer, On};
use crate::support::waiting::until;
use crate::support::{I32, Layout, TestDataset, rows_from, shipped, tet_bytes};

/// Returns a file of an array of these extents in raw chunks, whose cells count up.
fn counting(shape: [u64; 3], chunks: [u64; 3]) -> Vec<u8> {
    let data = (0..shape.iter().product::<u64>() as i32).flat_map(i32::to_le_bytes).collect();
    let dataset = TestDataset::new("value", I32, &shape, &chunks, data);
    tet_bytes(&[dataset], &Layout { history_version: Some(2), ..Layout::default() })
}

#[tokio::test]
async fn parts_of_chunks_have_the_cells_of_the_file() {
    let bytes = counting([30, 20, 50], [11, 7, 23]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.tet");
    std::fs::write(&path, &bytes).unwrap();
    let link = Link::new(ObjectServer::start(vec![("bucket/t.tet".to_owned(), bytes)]));
    // Every spared byte is worth a request.
    let limits = RemoteLimits::default().with_gap(0);
    let (remote, local) = (link.session(limits), link.session(limits));
    remote.register_array("t", "s3://bucket/t.tet", ArrayOptions::default()).await.unwrap();
    let local_path = path.to_str().unwrap();
    local.register_array("t", local_path, ArrayOptions::default()).await.unwrap();
    let mut rng = StdRng::seed_from_u64(17);
    for _ in 0..40 {
        let mut range = |axis: usize, len: u32| {
            let start = rng.random_range(0..len);
            let end = if rng.random() { start } else { rng.random_range(start..len) };
            format!("dim_{axis} BETWEEN {start} AND {end}")
        };
        let wanted = [range(0, 30), range(1, 20), range(2, 50)].join(" AND ");
        for sql in [
            format!("SELECT * FROM t WHERE {wanted} ORDER BY value LIMIT 50"),
            format!(
                "SELECT dim_1, sum(value), min(value) FROM t WHERE {wanted} GROUP BY dim_1 ORDER BY 1"
            ),
        ] {
            assert_eq!(rows_from(&remote, &sql).await, rows_from(&local, &sql).await, "{sql}");
        }
    }
}

/// One cell of a chunk of 3 MB is fetched alone, because the rest of the chunk costs more than a request.
#[tokio::test]
async fn only_the_selected_part_of_a_large_raw_chunk_is_fetched() {
    let bytes = counting([2, 300, 2500], [1, 300, 2500]);
    let link = Link::new(ObjectServer::start(vec![("bucket/t.tet".to_owned(), bytes)]));
    let ctx = link.session(RemoteLimits::default());
    ctx.register_array("t", "s3://bucket/t.tet", ArrayOptions::default()).await.unwrap();
    link.server.take_requests();
    let sent = link.server.bytes_sent();
    let sql = "SELECT value FROM t WHERE dim_0 = 1 AND dim_1 = 17 AND dim_2 = 1000";
    assert_eq!(rows_from(&ctx, sql).await.concat(), [(750_000 + 17 * 2500 + 1000).to_string()]);
    assert_eq!(link.server.take_requests().len(), 1);
    assert!(link.server.bytes_sent() - sent < 2_000, "the cell, and the header of the reply");
    let plan = rows_from(&ctx, &format!("EXPLAIN ANALYZE {sql}")).await.concat().concat();
    assert!(plan.contains("bytes_read=4.0 B") || plan.contains("bytes_read=4,"), "{plan}");
}

/// Neighbouring chunks of a scan share requests, from its beginning to its end.
#[tokio::test]
async fn chunks_that_follow_one_another_share_requests() {
    // 256 chunks of 40 kB.
    let bytes = counting([256, 100, 100], [1, 100, 100]);
    let link = Link::new(ObjectServer::start(vec![("bucket/t.tet".to_owned(), bytes)]));
    // Memory for 1 MiB in flight, so the scan fetches in many steps.
    let ctx = link.session(RemoteLimits::default().with_bytes(2 << 20));
    ctx.register_array("t", "s3://bucket/t.tet", ArrayOptions::default()).await.unwrap();
    rows_from(&ctx, "SELECT sum(value) FROM t").await;
    let requests = link.server.take_requests().len();
    // Each of 2 partitions has 1 MiB in flight, and so batches of at least 6 chunks.
    assert!((20..=60).contains(&requests), "{requests}");
}

/// `SHOW TABLES` opens all files of a catalog side by side, each with one request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_catalog_opens_its_files_side_by_side() {
    let small = std::fs::read(shipped("examples/data/climate.tet")).unwrap();
    let path = |year| format!("bucket/years/{year}.tet");
    let objects: Vec<_> = (0..20).map(|year| (path(year), small.clone())).collect();
    let link = Link::new(ObjectServer::start(objects));
    let ctx = link.session(RemoteLimits::default());
    ctx.register_array_catalog("years", "s3://bucket/years", ArrayOptions::default())
        .await
        .unwrap();
    let listings = link.server.take_requests();
    assert!(listings.iter().all(|it| it.listing.is_some()) && listings.len() <= 2, "{listings:?}");
    // No reply is sent before ten files are asked for.
    link.server.fault(On::all(), Fault::Hold);
    let other = ctx.clone();
    let shown = tokio::spawn(async move { rows_from(&other, "SHOW TABLES").await.len() });
    until("files are opened one by one", || link.server.requests().len() >= 10).await;
    link.server.release();
    let tables = shown.await.unwrap();
    assert!(tables >= 20 * 3, "{tables}");
    assert_eq!(link.server.take_requests().len(), 20);
    // A query that names a table opens only its file.
    let ctx = link.session(RemoteLimits::default());
    ctx.register_array_catalog("years", "s3://bucket/years", ArrayOptions::default())
        .await
        .unwrap();
    link.server.take_requests();
    rows_from(&ctx, "SELECT count(*) FROM years.\"7\".t2m").await;
    let requests = link.server.take_requests();
    assert!(requests.iter().all(|it| it.path.ends_with("/7.tet")), "{requests:?}");
}

/// A request goes on after the end of the runtime in which another request has opened its connection.
#[test]
fn connections_outlive_runtimes() {
    let link = Link::new(ObjectServer::start(vec![("bucket/t.tet".to_owned(), vec![7; 1000])]));
    let runtime = || Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (first, second) = (runtime(), runtime());
    let open = || ObjectSource::open("t.tet".into(), Arc::clone(&link.s3), "t.tet".into());
    let opened = first.block_on(first.spawn(open())).unwrap().unwrap();
    link.server.take_requests();
    link.server.fault(1, Fault::Hold);
    // A new store knows nothing of the object, so that this is a request.
    let reading = second.spawn(open());
    link.server.wait_for_requests(1);
    first.shutdown_background();
    link.server.release();
    let again = second.block_on(reading).unwrap().unwrap();
    assert_eq!(again.size(), opened.size());
    let requests = link.server.take_requests();
    assert_eq!(requests.len(), 1, "{requests:?}");
}

/// A sparse array in a store has the rows of the local one, and its scan counts its requests.
#[tokio::test]
async fn sparse_scans_count_their_requests() {
    let ships = Path::new(&shipped("examples/data/ships")).to_owned();
    let link = Link::new(ObjectServer::start(files(&ships, "bucket/ships")));
    let ctx = link.session(RemoteLimits::default());
    ctx.register_array("t", "s3://bucket/ships", ArrayOptions::default()).await.unwrap();
    let local = link.session(RemoteLimits::default());
    local.register_array("t", ships.to_str().unwrap(), ArrayOptions::default()).await.unwrap();
    let sql = "SELECT * FROM t ORDER BY 1, 2, 3";
    assert_eq!(rows_from(&ctx, sql).await, rows_from(&local, sql).await);
    let analyze = format!("EXPLAIN ANALYZE {sql}");
    let plan = rows_from(&ctx, &analyze).await.concat().concat();
    assert!(plan.contains("requests=") && plan.contains("bytes_fetched="), "{plan}");
    let plan = rows_from(&local, &analyze).await.concat().concat();
    assert!(!plan.contains("requests="), "{plan}");
}
