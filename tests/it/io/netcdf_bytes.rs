//! Bytes of NetCDF and HDF5 files that queries read: of indexes and of payloads.

use std::time::Duration;

use gridfusion::io::RemoteLimits;
use gridfusion::{ArrayOptions, GridfusionConfig, GridfusionSessionContextExt};

use super::remote::Link;
use crate::conformance::hdf5_file::{ByteOrder, Dataset, File, Storage, Type};
use crate::support::object_server::ObjectServer;
use crate::support::{cell, rows_from, session};

/// Returns an HDF5 file of one dataset `v`, whose cells count up from 0.
fn counting(shape: [u64; 2], storage: Storage, order: ByteOrder) -> Vec<u8> {
    let cells = (0..(shape[0] * shape[1]) as i32).map(|at| match order {
        ByteOrder::Little => at.to_le_bytes().to_vec(),
        ByteOrder::Big => at.to_be_bytes().to_vec(),
    });
    let dataset = Dataset {
        kind: Type::Integer(4, order),
        shape: shape.to_vec(),
        grows: false,
        fill: None,
        cells: cells.collect(),
        storage,
        attributes: vec![],
    };
    let mut file = File::new();
    let address = file.dataset(&dataset);
    let root = file.group(&[("value", address)], &[]);
    file.finish(root)
}

/// Chunks of 512 bytes, with a node of the index before each eight of them.
#[tokio::test]
async fn many_small_chunks_are_read_once() {
    let storage = Storage::Chunked { shape: vec![1, 128], deflated: false };
    let file = counting([2_000, 128], storage, ByteOrder::Little);
    let len = file.len() as u64;
    let link = Link::new(ObjectServer::start(vec![("bucket/v.h5".to_owned(), file)]));
    // However far ranges may lie apart that share a request.
    for gap in [0, 1 << 16, 1 << 20] {
        // No request only asks whether the file is still the same.
        let check = Duration::from_secs(600);
        let ctx = link.session(RemoteLimits::default().with_gap(gap).with_check(check));
        let state = ctx.state();
        let config = state.config_options().extensions.get::<GridfusionConfig>().unwrap();
        ctx.register_array("t", "s3://bucket/v.h5", ArrayOptions::default()).await.unwrap();
        let sum = cell(&ctx, "SELECT sum(value) FROM t").await;
        assert_eq!(sum, (256_000_u64 * 255_999 / 2).to_string());
        let counts = config.remote.counts();
        let fetched = counts.bytes_fetched;
        assert!(fetched <= len, "{fetched} of {len} bytes, with gaps of {gap}");
        assert!(counts.requests < 100, "{} requests", counts.requests);
    }
}

/// The bytes of payloads that a query of one cell reads from a local file, and from a store.
async fn read_for_one_cell(name: &str, file: Vec<u8>) -> [u64; 2] {
    let sql = "SELECT value FROM t WHERE dim_0 = 700 AND dim_1 = 321";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, &file).unwrap();
    let link = Link::new(ObjectServer::start(vec![(format!("bucket/{name}"), file)]));
    let url = format!("s3://bucket/{name}");
    let mut read = [0; 2];
    let ctxs = [session(2, 8192), link.session(RemoteLimits::default())];
    for ((ctx, location), read) in ctxs.iter().zip([path.to_str().unwrap(), &url]).zip(&mut read) {
        ctx.register_array("t", location, ArrayOptions::default()).await.unwrap();
        assert_eq!(cell(ctx, sql).await, (700 * 1000 + 321).to_string());
        let plan = rows_from(ctx, &format!("EXPLAIN ANALYZE {sql}")).await.concat().concat();
        let (_, rest) = plan.split_once("bytes_read=").unwrap();
        let text: String = rest.chars().take_while(|it| !",]".contains(*it)).collect();
        let (number, unit) = text.split_once(' ').unwrap_or((&text, "B"));
        let unit = match unit {
            "B" => 1.0,
            "KB" => 1024.0,
            other => panic!("{other} in {plan}"),
        };
        *read = (number.parse::<f64>().unwrap() * unit) as u64;
    }
    read
}

/// Variables in one piece are read in chunks of 1 MiB.
#[tokio::test]
async fn one_cell_of_a_contiguous_variable_reads_at_most_64_kib() {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let file = counting([1_000, 1_000], Storage::Contiguous, order);
        for read in read_for_one_cell("v.h5", file).await {
            assert!((4..=64 << 10).contains(&read), "{order:?}: {read} bytes");
        }
    }
    for read in read_for_one_cell("v.nc", classic()).await {
        assert!((4..=64 << 10).contains(&read), "classic: {read} bytes");
    }
}

/// Returns a classic file of one variable `v`: NetCDF Classic Format Specification, CDF-1.
fn classic() -> Vec<u8> {
    let word = |at: u32| at.to_be_bytes().to_vec();
    let name = |text: &str| {
        let mut bytes = [word(text.len() as u32), text.as_bytes().to_vec()].concat();
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    };
    let dimension = |text: &str| [name(text), word(1_000)].concat();
    // Lists of dimensions (10), attributes (absent), and variables (11).
    let mut header = [
        b"CDF\x01".to_vec(),
        word(0),
        word(10),
        word(2),
        dimension("dim_0"),
        dimension("dim_1"),
        word(0),
        word(0),
        word(11),
        word(1),
        name("value"),
        word(2),
        word(0),
        word(1),
        word(0),
        word(0),
    ]
    .concat();
    // Integers of 4 bytes (4), the bytes of all, and the offset of the first.
    let begin = header.len() as u32 + 12;
    header.extend([word(4), word(4_000_000), word(begin)].concat());
    header.extend((0..1_000_000_u32).flat_map(u32::to_be_bytes));
    header
}
