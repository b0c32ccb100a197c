//! Compares queries of a TileDB array with TileDB-Py over the same files, and with only decompressing and
//! unshuffling its tiles by hand.
//!
//! The array has 524288 hours x 256 stations of f32 (512 MiB) in tiles of 1024 x 256. It has one fragment,
//! with the filters byteshuffle and zstd. `tiledb_peer.py` writes the array with TileDB-Py, and measures
//! TileDB-Py. Both use two threads. All queries are measured from opening the array and SQL text to the
//! result. Without TileDB-Py, the bench prints a message and measures nothing. `GRIDFUSION_BENCH_SMALL=1`
//! shrinks the array for a smoke run.

use std::hint::black_box;

use futures::StreamExt;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use serde_json::Value;

use crate::common::figures::Figures;
use crate::common::support::reducing;
use crate::common::tiledb_files::{Frames, data_file, peer};
use crate::common::{is_small, runtime};

/// A query, its name in `FIGURES.md` and its name in `tiledb_peer.py`.
struct Case {
    name: &'static str,
    peer: &'static str,
    sql: &'static str,
    /// Whether a query must decode all tiles.
    decodes: bool,
}

const CASES: [Case; 5] = [
    Case {
        name: "TileDB, `SELECT value FROM t`",
        peer: "full_read",
        sql: "SELECT value FROM t",
        decodes: true,
    },
    Case {
        name: "TileDB, `mean(value) GROUP BY station`",
        peer: "mean_by_station",
        sql: "SELECT station, mean(value) FROM t GROUP BY station",
        decodes: true,
    },
    Case {
        name: "TileDB, `mean(value) GROUP BY time`, 524288 groups",
        peer: "mean_by_time",
        sql: "SELECT time, mean(value) FROM t GROUP BY time",
        decodes: true,
    },
    Case {
        name: "TileDB, `sum, min, max, count`, from statistics",
        peer: "aggregate",
        sql: "SELECT sum(value), min(value), max(value), count(value) FROM t",
        decodes: false,
    },
    Case {
        name: "TileDB, one station, 24 hours",
        peer: "box",
        sql: "SELECT value FROM t WHERE time BETWEEN 5000 AND 5023 AND station = 7",
        decodes: false,
    },
];

/// Decompresses and unshuffles everything, on two threads.
fn decode_all(frames: &Frames) {
    frames.decode(|planes, cells| {
        cells.resize(planes.len(), 0);
        unshuffle(planes, cells);
    });
}

fn unshuffle(planes: &[u8], cells: &mut [u8]) {
    let count = planes.len() / 4;
    let plane = |number: usize| &planes[number * count..][..count];
    let (a, b, c, d) = (plane(0), plane(1), plane(2), plane(3));
    for (at, cell) in cells.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        *cell = [a[at], b[at], c[at], d[at]];
    }
}

/// Opens the array and runs a query, batch by batch.
async fn query(array: &str, sql: &str) {
    let ctx = reducing(2, 8192);
    ctx.register_array("t", array, ArrayOptions::default()).await.unwrap();
    let mut batches = ctx.sql(sql).await.unwrap().execute_stream().await.unwrap();
    while let Some(batch) = batches.next().await {
        black_box(batch.unwrap());
    }
}

pub(crate) fn main() {
    let directory = tempfile::tempdir().unwrap();
    let peer = |arguments: &[&str]| peer("tiledb_peer.py", directory.path(), arguments);
    if peer(&["--make"]).is_none() {
        println!("TileDB-Py is not installed; nothing is measured");
        return;
    }
    let runs = if is_small() { 1 } else { 9 };
    let measured = peer(&["--runs", &runs.to_string()]).unwrap();
    let measured: Value = serde_json::from_str(&measured).unwrap();
    let array = directory.path().join(measured["array"].as_str().unwrap());
    let frames = Frames::new(&[data_file(&array, "a0.tdb")]);
    let runtime = runtime();
    let mut figures = Figures::new("tiledb");
    for case in CASES {
        let ours = || runtime.block_on(query(array.to_str().unwrap(), case.sql));
        let theirs = measured["seconds"][case.peer]["median"].as_f64().unwrap() * 1e3;
        figures.beside_peers(case.name, ours, [("TileDB-Py", theirs)]);
        if case.decodes {
            figures.compare(
                case.name,
                ours,
                vec![("decompression and unshuffling alone", Box::new(|| decode_all(&frames)))],
            );
        }
    }
    figures.finish();
}
