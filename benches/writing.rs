//! Measures `COPY … TO` arrays beside the work that each program has: reading the rows, sorting them, compressing the chunks, writing the bytes.
//!
//! The field has 1000 days × 165 latitudes × 144 longitudes of f32 (95 MB), in chunks of 25 days. `writing_peer.py` measures xarray with Dask
//! on the same stores, with two threads. `GRIDFUSION_BENCH_LARGE=1` makes the field 1 GB, and `GRIDFUSION_BENCH_SMALL=1` shrinks it for a
//! smoke run.

use std::fs;
use std::path::Path;
use std::process::Command;

use datafusion::physical_plan::execute_stream;
use datafusion::prelude::SessionContext;
use futures::StreamExt;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::common::field::Field;
use crate::common::figures::Figures;
use crate::common::support::reducing;
use crate::common::zarr_files::zarr3;
use crate::common::{is_small, run, runtime};

/// Lengths of the new chunks.
const CHUNK: [usize; 3] = [50, 55, 48];

/// All cells of the array.
const CELLS: &str = "SELECT time, lat, lon, value FROM t";
/// Rows in the order of the array, and in another one.
const SORTED: &str = "SELECT time, lat, lon, value FROM t WHERE value > -1e9";
const SHUFFLED: &str = "SELECT time, lat, lon, value FROM shuffled";

/// The session, with the field as the table `t` and its rows in another order as `shuffled`.
async fn session(store: &Path) -> SessionContext {
    let ctx = reducing(2, 8192);
    ctx.enable_gridfusion();
    let options = ArrayOptions::default().with_dataset("value");
    ctx.register_array("t", store.to_str().unwrap(), options).await.unwrap();
    // The longitudes come last, and days in an order of their own.
    let rows = "SELECT * FROM t ORDER BY lon, date_part('day', time), time, lat";
    let rows = ctx.sql(rows).await.unwrap().cache().await.unwrap();
    ctx.register_table("shuffled", rows.into_view()).unwrap();
    ctx
}

/// Runs a query without keeping its rows.
fn stream(runtime: &Runtime, ctx: &SessionContext, sql: &str) {
    runtime.block_on(async {
        let plan = ctx.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
        let mut rows = execute_stream(plan, ctx.task_ctx()).unwrap();
        while let Some(batch) = rows.next().await {
            batch.unwrap();
        }
    });
}

/// The chunks of the field in a new shape.
fn chunks(field: &Field) -> Vec<Vec<u8>> {
    let [x, y, z] = field.grid(CHUNK);
    let all = (0..x).flat_map(|x| (0..y).flat_map(move |y| (0..z).map(move |z| [x, y, z])));
    all.map(|at| field.chunk(at, CHUNK)).collect()
}

/// Works on the chunks with two threads.
fn on_two_threads(chunks: &[Vec<u8>], work: impl Fn(usize, &[u8]) + Sync) {
    let work = &work;
    std::thread::scope(|scope| {
        for first in 0..2 {
            scope.spawn(move || {
                let own = chunks.iter().enumerate().skip(first).step_by(2);
                own.for_each(|(number, chunk)| work(number, chunk));
            });
        }
    });
}

/// Times of xarray in milliseconds; `None` if its tools are not installed.
fn peer(folder: &Path) -> Option<Value> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches").join("writing_peer.py");
    let lengths = CHUNK.map(|len| len.to_string()).join(",");
    let runs = if is_small() { "1" } else { "5" };
    let mut python = Command::new("python3");
    match python
        .arg(script)
        .arg(folder)
        .args(["--chunks", &lengths, "--runs", runs])
        .output()
        .ok()?
    {
        output if output.status.success() => Some(serde_json::from_slice(&output.stdout).unwrap()),
        output if output.status.code() == Some(3) => None,
        output => panic!("{}", String::from_utf8_lossy(&output.stderr)),
    }
}

pub(crate) fn main() {
    let (runtime, folder) = (runtime(), tempfile::tempdir().unwrap());
    let folder = folder.path();
    let field = Field::new();
    println!("a field of {} MB", field.len() / 1_000_000);
    let chunk = [25, field.shape[1], field.shape[2]];
    for (name, is_zstd) in [("raw.zarr", false), ("zstd.zarr", true)] {
        zarr3(&folder.join(name), &field, chunk, is_zstd, None);
    }
    let measured = peer(folder).unwrap_or_else(|| {
        println!("xarray, zarr and dask are not installed; they are left out");
        Value::Null
    });
    let chunks = chunks(&field);
    let places = folder.join("chunks");
    fs::create_dir(&places).unwrap();
    let put =
        |number: usize, bytes: &[u8]| fs::write(places.join(number.to_string()), bytes).unwrap();
    let lengths = CHUNK.iter().zip(["time", "lat", "lon"]);
    let lengths: Vec<String> = lengths.map(|(len, name)| format!("{name}={len}")).collect();
    let out = folder.join("out.zarr");
    let copy = |rows: &str, codec: &str| {
        format!(
            "COPY ({rows}) TO '{}' OPTIONS (dimensions 'time, lat, lon', chunks '{}', codec '{codec}')",
            out.display(),
            lengths.join(",")
        )
    };
    // An overwrite would wait for the disk, which no other program here does.
    let write = |ctx: &SessionContext, rows: &str, codec: &str| {
        if out.exists() {
            fs::remove_dir_all(&out).unwrap();
        }
        run(&runtime, ctx, &copy(rows, codec));
    };
    let mut figures = Figures::new("writing");
    for (store, codec) in [("raw.zarr", "none"), ("zstd.zarr", "zstd")] {
        let ctx = runtime.block_on(session(&folder.join(store)));
        let how = if codec == "none" { "uncompressed" } else { "zstd" };
        let name = format!("an array, to Zarr with other chunks, {how}");
        let bytes = || {
            on_two_threads(&chunks, |number, chunk| match codec {
                "none" => put(number, chunk),
                _ => put(number, &zstd::bulk::compress(chunk, 3).unwrap()),
            });
        };
        let writing = if codec == "none" {
            "writing the chunks alone"
        } else {
            "compressing and writing the chunks alone"
        };
        let read_and_write = || {
            stream(&runtime, &ctx, "SELECT value FROM t");
            bytes();
        };
        figures.compare(
            &*name,
            || write(&ctx, CELLS, codec),
            vec![
                (writing, Box::new(bytes)),
                ("reading the cells, and the same", Box::new(read_and_write)),
            ],
        );
        if let Some(ms) = measured[store].as_f64() {
            figures.beside_peers(&*name, || write(&ctx, CELLS, codec), [("xarray and Dask", ms)]);
        }
        figures.compare(
            &*format!("rows in order, to Zarr with other chunks, {how}"),
            || write(&ctx, SORTED, codec),
            vec![
                (writing, Box::new(bytes)),
                ("reading the rows alone", Box::new(|| stream(&runtime, &ctx, SORTED))),
            ],
        );
        if codec == "zstd" {
            continue;
        }
        let sorting = || stream(&runtime, &ctx, &format!("{SHUFFLED} ORDER BY time, lat, lon"));
        figures.compare(
            "rows in another order, to Zarr, uncompressed",
            || write(&ctx, SHUFFLED, codec),
            vec![("sorting the rows alone", Box::new(sorting))],
        );
        for (name, file) in [("NetCDF-4, deflate", "out.nc"), ("`.tet`, zstd", "out.tet")] {
            let out = folder.join(file);
            let copy = format!("COPY ({CELLS}) TO '{}' OPTIONS (mode 'overwrite')", out.display());
            figures.compare(
                &*format!("an array, to {name}"),
                || run(&runtime, &ctx, &copy),
                vec![("reading the cells alone", Box::new(|| stream(&runtime, &ctx, CELLS)))],
            );
        }
    }
    append_days(&runtime, folder, &field, &measured, &mut figures);
    figures.finish();
}

/// Measures an append of one day to a store of all.
fn append_days(
    runtime: &Runtime,
    folder: &Path,
    field: &Field,
    measured: &Value,
    figures: &mut Figures,
) {
    let ctx = runtime.block_on(session(&folder.join("zstd.zarr")));
    let mut day = field.shape[0];
    let grows = folder.join("grows.zarr");
    let first = format!("COPY ({CELLS}) TO '{}' OPTIONS (chunks 'time=1')", grows.display());
    run(runtime, &ctx, &first);
    let mut append = || {
        let rows = format!(
            "SELECT time + arrow_cast({day} * 86400, 'Duration(Second)') AS time, lat, lon, value FROM t WHERE time = '2000-01-01'"
        );
        day += 1;
        run(
            runtime,
            &ctx,
            &format!("COPY ({rows}) TO '{}' OPTIONS (mode 'append')", grows.display()),
        );
    };
    let name = "a day more, to a Zarr store with a chunk per day";
    match measured["append"].as_f64() {
        Some(ms) => figures.beside_peers(name, append, [("xarray", ms)]),
        None => figures.compare(name, &mut append, vec![]),
    }
}
