//! Compares queries of a TileDB array with TileDB-Py over the same files, and with only decompressing and
//! unshuffling its tiles by hand.
//!
//! The array has 524288 hours x 256 stations of f32 (512 MiB) in tiles of 1024 x 256. It has one fragment,
//! with the filters byteshuffle and zstd. `tiledb_peer.py` writes the array with TileDB-Py, and measures
//! TileDB-Py. Both use two threads. All queries are measured from opening the array and SQL text to the
//! result. Without TileDB-Py, the bench prints a message and measures nothing. `GRIDFUSION_BENCH_SMALL=1`
//! shrinks the array for a smoke run.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a benchmark stops where it fails"
)]

#[allow(dead_code, reason = "shared with the other benches, which use more of it")]
mod common;

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::figures::Figures;
use common::support::reducing;
use common::{is_small, runtime};
use futures::StreamExt;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use serde_json::Value;

/// A query, its name in the book and its name in `tiledb_peer.py`.
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

/// The zstd frames of an attribute whose filters are byteshuffle and zstd, a list per thread.
struct Tiles {
    halves: [Vec<Frame>; 2],
}

/// One compressed part of a chunk.
struct Frame {
    bytes: Vec<u8>,
    raw_len: usize,
}

fn u32_at(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

impl Tiles {
    /// Reads the tiles of a data file. A tile has the number of its chunks, then per chunk lengths, metadata
    /// and data.
    fn of(file: &Path) -> Self {
        let bytes = std::fs::read(file).unwrap();
        let mut frames = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let chunks = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
            at += 8;
            for _ in 0..chunks {
                let (filtered, metadata) = (u32_at(&bytes, at + 4), u32_at(&bytes, at + 8));
                let header = at + 12;
                let (meta_parts, parts) = (u32_at(&bytes, header), u32_at(&bytes, header + 4));
                let mut data = header + metadata;
                for part in 0..meta_parts + parts {
                    let lens = header + 8 + 8 * part;
                    let (raw_len, len) = (u32_at(&bytes, lens), u32_at(&bytes, lens + 4));
                    if part >= meta_parts {
                        frames.push(Frame { bytes: bytes[data..data + len].to_vec(), raw_len });
                    }
                    data += len;
                }
                at = header + metadata + filtered;
            }
        }
        let second = frames.split_off(frames.len() / 2);
        Self { halves: [frames, second] }
    }
}

/// Decompresses and unshuffles everything, on two threads.
fn decode_all(tiles: &Tiles) {
    std::thread::scope(|scope| {
        for half in &tiles.halves {
            scope.spawn(move || {
                let mut decompressor = zstd::bulk::Decompressor::new().unwrap();
                let (mut planes, mut cells) = (Vec::new(), vec![0; 1 << 16]);
                for frame in half {
                    planes.clear();
                    planes.reserve(frame.raw_len);
                    decompressor.decompress_to_buffer(&frame.bytes, &mut planes).unwrap();
                    cells.resize(frame.raw_len, 0);
                    unshuffle(&planes, &mut cells);
                    black_box(&cells);
                }
            });
        }
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

/// Runs `tiledb_peer.py`, which makes the array in `directory` if it is absent; returns its output. `None`
/// if TileDB-Py is not installed.
fn peer(directory: &Path, arguments: &[&str]) -> Option<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches").join("tiledb_peer.py");
    let output = Command::new("python3").arg(script).arg(directory).args(arguments).output();
    match output {
        Ok(output) if output.status.success() => Some(String::from_utf8(output.stdout).unwrap()),
        Ok(output) if output.status.code() == Some(3) => None,
        Ok(output) => panic!("{}", String::from_utf8_lossy(&output.stderr)),
        Err(_) => None,
    }
}

/// The path of the attribute's only data file.
fn data_file(array: &Path) -> PathBuf {
    let mut fragments = std::fs::read_dir(array.join("__fragments")).unwrap();
    fragments.next().unwrap().unwrap().path().join("a0.tdb")
}

fn main() {
    let directory = tempfile::tempdir().unwrap();
    if peer(directory.path(), &["--make"]).is_none() {
        println!("TileDB-Py is not installed; nothing is measured");
        return;
    }
    let runs = if is_small() { 1 } else { 9 };
    let measured = peer(directory.path(), &["--runs", &runs.to_string()]).unwrap();
    let measured: Value = serde_json::from_str(&measured).unwrap();
    let array = directory.path().join(measured["array"].as_str().unwrap());
    let tiles = Tiles::of(&data_file(&array));
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
                vec![("decompression and unshuffling alone", Box::new(|| decode_all(&tiles)))],
            );
        }
    }
    figures.finish();
}
