//! Compares aggregations over dimensions with loops written by hand, and with DataFusion over the rows of
//! the same file.
//!
//! The loops read the same number of mapped bytes with two threads. They are written for their array: no
//! labels, no NULLs, no planning. Each query is measured from SQL text to result. The bench prints the table
//! `reduce` of `FIGURES.md`.

#![allow(unsafe_code, reason = "the loops read a mapped file, as the library does")]

use std::hint::black_box;
use std::io::Write;

use memmap2::Mmap;
use serde_json::json;

use crate::common::figures::Figures;
use crate::common::support::{
    F32, F64, Layout, TempTet, TestDataset, reducing, session, tet_bytes,
};
use crate::common::{decompress, file, is_small, run, runtime, size, table, values};

/// A query and the loop that does the same.
struct Case {
    name: &'static str,
    sql: &'static str,
    by_hand: fn(&[u8]),
}

const HOURS_BY_STATIONS: [Case; 7] = [
    Case { name: "`mean(value)`", sql: "SELECT mean(value) FROM t", by_hand: sum_all },
    Case {
        name: "`mean(value) GROUP BY station`",
        sql: "SELECT station, mean(value) FROM t GROUP BY station",
        by_hand: sum_columns,
    },
    Case {
        name: "`mean(value) GROUP BY time`, 262144 groups",
        sql: "SELECT time, mean(value) FROM t GROUP BY time",
        by_hand: sum_rows,
    },
    Case {
        name: "`min, max, avg, count GROUP BY station`",
        sql: "SELECT station, min(value), max(value), avg(value), count(value) FROM t GROUP BY station",
        by_hand: four_columns,
    },
    Case {
        name: "`mean(value) GROUP BY station, date_trunc('month', time)`",
        sql: "SELECT station, date_trunc('month', time), mean(value) FROM t GROUP BY 1, 2",
        by_hand: sum_months,
    },
    Case {
        name: "`mean(value) WHERE value > 280 GROUP BY station`, half of the cells pass",
        sql: "SELECT station, mean(value) FROM t WHERE value > 280 GROUP BY station",
        by_hand: sum_columns,
    },
    Case {
        name: "`avg(value - 273.15) GROUP BY station`",
        sql: "SELECT station, avg(value - 273.15) FROM t GROUP BY station",
        by_hand: sum_columns,
    },
];

const RANK_3: Case = Case {
    name: "`mean(value) GROUP BY lat`, chunks of 73 × 45 × 90",
    sql: "SELECT lat, mean(value) FROM t GROUP BY lat",
    by_hand: sum_latitudes,
};

fn floats<const N: usize>(cells: &[[u8; 4]; N]) -> [f32; N] {
    cells.map(f32::from_le_bytes)
}

/// Splits `bytes` between two threads at a multiple of `unit` bytes.
fn two_threads(bytes: &[u8], unit: usize, part: impl Fn(&[u8]) + Sync) {
    let (first, second) = bytes.split_at(bytes.len() / unit / 2 * unit);
    std::thread::scope(|scope| {
        scope.spawn(|| part(first));
        part(second);
    });
}

/// Sixteen sums side by side, so that additions need not wait for one another.
fn sum(bytes: &[u8]) -> f64 {
    let mut lanes = [0.0; 16];
    let (blocks, rest) = bytes.as_chunks::<4>().0.as_chunks::<16>();
    for block in blocks {
        for (lane, value) in lanes.iter_mut().zip(floats(block)) {
            *lane += f64::from(value);
        }
    }
    let rest: f64 = rest.iter().map(|cell| f64::from(f32::from_le_bytes(*cell))).sum();
    lanes.iter().sum::<f64>() + rest
}

fn sum_all(bytes: &[u8]) {
    two_threads(bytes, 64, |part| {
        black_box(sum(part));
    });
}

/// Adds a row of cells to a row of sums. This plain loop is the fastest form: blocks of rows or columns, with their
/// sums in registers, took longer.
#[inline(never)]
fn add_row(sums: &mut [f64], row: &[u8]) {
    for (sum, cell) in sums.iter_mut().zip(row.as_chunks::<4>().0) {
        *sum += f64::from(f32::from_le_bytes(*cell));
    }
}

fn sum_columns(bytes: &[u8]) {
    let row = size().1 as usize * 4;
    two_threads(bytes, row, |part| {
        let mut sums = vec![0.0; row / 4];
        part.chunks_exact(row).for_each(|row| add_row(&mut sums, row));
        black_box(sums);
    });
}

fn sum_rows(bytes: &[u8]) {
    let row = size().1 as usize * 4;
    two_threads(bytes, row, |part| {
        black_box(part.chunks_exact(row).map(sum).collect::<Vec<f64>>());
    });
}

fn four_columns(bytes: &[u8]) {
    let row = size().1 as usize * 4;
    two_threads(bytes, row, |part| {
        let columns = row / 4;
        let mut sums = vec![0.0; columns];
        let (mut least, mut greatest) = (vec![f32::MAX; columns], vec![f32::MIN; columns]);
        for row in part.chunks_exact(row) {
            add_row(&mut sums, row);
            let cells = row.as_chunks::<4>().0;
            for ((least, greatest), cell) in least.iter_mut().zip(&mut greatest).zip(cells) {
                let value = f32::from_le_bytes(*cell);
                *least = if value < *least { value } else { *least };
                *greatest = if value > *greatest { value } else { *greatest };
            }
        }
        black_box((sums, least, greatest));
    });
}

fn sum_months(bytes: &[u8]) {
    let row = size().1 as usize * 4;
    two_threads(bytes, row, |part| {
        let months = part.len() / row / 730 + 1;
        let mut sums = vec![0.0; months * row / 4];
        for (month, hours) in part.chunks(730 * row).enumerate() {
            let sums = &mut sums[month * row / 4..][..row / 4];
            hours.chunks_exact(row).for_each(|row| add_row(sums, row));
        }
        black_box(sums);
    });
}

/// The number of days, latitudes and longitudes, and the same of a chunk.
fn rank_3() -> ([u64; 3], [u64; 3]) {
    if is_small() { ([10, 18, 36], [5, 9, 9]) } else { ([365, 180, 360], [73, 45, 90]) }
}

fn sum_latitudes(bytes: &[u8]) {
    let ([_, lats, _], chunk) = rank_3();
    let row = chunk[2] as usize * 4;
    let tile = chunk.iter().product::<u64>() as usize * 4;
    two_threads(bytes, tile, |part| {
        let mut sums = vec![0.0; lats as usize];
        for tile in part.chunks_exact(tile) {
            for (number, row) in tile.chunks_exact(row).enumerate() {
                sums[number % chunk[1] as usize] += sum(row);
            }
        }
        black_box(sums);
    });
}

/// A file of the rank-3 grid.
fn rank_3_file(data: &[u8]) -> TempTet {
    let (shape, chunk) = rank_3();
    let bytes = shape.iter().product::<u64>() as usize * 4;
    let value = TestDataset::new("value", F32, &shape, &chunk, data[..bytes].to_vec())
        .with_metadata(json!({"dim_names": ["day", "lat", "lon"]}));
    let coordinate = |name: &str, len: u64| {
        let data = (0..len).flat_map(|at| (at as f64 / 2.0 - 45.0).to_le_bytes()).collect();
        TestDataset::new(name, F64, &[len], &[len], data)
            .with_metadata(json!({"dim_names": [name]}))
    };
    let layout = Layout { history_version: Some(2), ..Layout::default() };
    TempTet::new(&tet_bytes(
        &[value, coordinate("lat", shape[1]), coordinate("lon", shape[2])],
        &layout,
    ))
}

/// Maps a new file with these bytes.
pub(crate) fn mapped(bytes: &[u8]) -> (tempfile::NamedTempFile, Mmap) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    // SAFETY: no other code has the temporary file.
    let map = unsafe { Mmap::map(file.as_file()) }.unwrap();
    (file, map)
}

/// The names of baselines.
const LOOP: &str = "a loop written by hand";
const ROWS: &str = "DataFusion over rows of the same file";

pub(crate) fn main() {
    let runtime = runtime();
    let data = values();
    let open = |file: &TempTet, reduce| {
        let ctx = if reduce { reducing(2, 8192) } else { session(2, 8192) };
        runtime.block_on(table(file, ctx))
    };
    let (raw, zstd) = (file(data.clone(), false), file(data.clone(), true));
    let cube = rank_3_file(&data);
    let cube_bytes = rank_3().0.iter().product::<u64>() as usize * 4;
    let (_file, map) = mapped(&data);
    let (_cube_file, cube_map) = mapped(&data[..cube_bytes]);

    let mut figures = Figures::new("reduce");
    let flat = HOURS_BY_STATIONS.iter().map(|case| (case, &raw, &map));
    for (case, file, map) in flat.chain([(&RANK_3, &cube, &cube_map)]) {
        let (ours, rows) = (open(file, true), open(file, false));
        figures.compare(
            case.name,
            || run(&runtime, &ours, case.sql),
            vec![
                (LOOP, Box::new(|| (case.by_hand)(map))),
                (ROWS, Box::new(|| run(&runtime, &rows, case.sql))),
            ],
        );
    }
    let tile = (size().1 * size().2 * 4) as usize;
    let frames: Vec<Vec<u8>> =
        data.chunks(tile).map(|tile| zstd::encode_all(tile, 1).unwrap()).collect();
    let (ours, rows) = (open(&zstd, true), open(&zstd, false));
    let sql = HOURS_BY_STATIONS[1].sql;
    figures.compare(
        "`mean(value) GROUP BY station`, zstd chunks",
        || run(&runtime, &ours, sql),
        vec![
            ("decompression alone", Box::new(|| decompress(&frames, tile))),
            (ROWS, Box::new(|| run(&runtime, &rows, sql))),
        ],
    );
    let small = small_file();
    let (ours, rows) = (open(&small, true), open(&small, false));
    let sql = "SELECT a, mean(value) FROM t GROUP BY a";
    figures.compare(
        "`mean(value) GROUP BY a`, 1000 cells",
        || run(&runtime, &ours, sql),
        vec![(ROWS, Box::new(|| run(&runtime, &rows, sql)))],
    );
    figures.finish();
}

fn small_file() -> TempTet {
    let data = (0..1000).flat_map(|cell| (cell as f32).to_le_bytes()).collect();
    let value = TestDataset::new("value", F32, &[10, 100], &[5, 100], data)
        .with_metadata(json!({"dim_names": ["a", "b"]}));
    let layout = Layout { history_version: Some(2), ..Layout::default() };
    TempTet::new(&tet_bytes(&[value], &layout))
}
