//! The array that several benches measure, and helpers of all benches.
//!
//! The array has 262144 hours x 256 stations of f32 (256 MiB) in chunks of 4096 x 256. Hours are times, and
//! stations have text labels. Its zone maps count NULLs, but have no bounds. `GRIDFUSION_BENCH_SMALL=1`
//! shrinks the array for a smoke run.

pub(crate) mod field;
pub(crate) mod figures;
pub(crate) mod peak_pool;
pub(crate) mod remote_objects;
pub(crate) mod remote_server;
pub(crate) mod repacked;
pub(crate) mod sparse_cases;
pub(crate) mod stored_chunks;
pub(crate) mod streamed;
#[allow(dead_code, reason = "shared with the tests, which use more of it")]
pub(crate) mod support;
pub(crate) mod tiledb_files;
pub(crate) mod zarr_files;

use std::hint::black_box;

use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde_json::json;
use support::{F32, I32, Layout, TempTet, TestDataset, tet_bytes};
use tokio::runtime::Runtime;

/// Whether arrays are small, for a smoke run.
pub(crate) fn is_small() -> bool {
    std::env::var_os("GRIDFUSION_BENCH_SMALL").is_some()
}

/// The options that take a list of numbers as the next argument.
const LISTS: [&str; 1] = ["--threads"];

/// The arguments that are no options: the name of a bench, and texts that choose its queries.
pub(crate) fn words() -> impl Iterator<Item = String> {
    let before = std::env::args();
    let arguments = std::env::args().skip(1).zip(before);
    let is_word = |(argument, before): &(String, String)| {
        !argument.starts_with('-') && !LISTS.contains(&before.as_str())
    };
    arguments.filter(is_word).map(|(argument, _)| argument)
}

/// The numbers behind an option, such as `--threads 1,2`; `None` without the option.
pub(crate) fn list_of(option: &str) -> Option<Vec<usize>> {
    let numbers = std::env::args().skip_while(|argument| argument != option).nth(1)?;
    Some(numbers.split(',').map(|number| number.parse().unwrap()).collect())
}

/// A runtime with two threads, for DataFusion's two partitions.
pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// Hours, stations, hours per chunk.
pub(crate) fn size() -> (u64, u64, u64) {
    if is_small() { (8192, 16, 1024) } else { (262_144, 256, 4096) }
}

pub(crate) fn values() -> Vec<u8> {
    let (hours, stations, _) = size();
    let mut rng = SmallRng::seed_from_u64(0);
    let yearly = |hour: u64| 280.0 + 10.0 * (hour as f64 / 8760.0 * std::f64::consts::TAU).sin();
    (0..hours)
        .flat_map(|hour| (0..stations).map(move |_| hour))
        .flat_map(|hour| {
            let value = yearly(hour) + rng.random_range(-6.0..6.0);
            (((value * 100.0).round() / 100.0) as f32).to_le_bytes()
        })
        .collect()
}

/// Writes a file of these values. They may cover more hours than [`size`] gives.
pub(crate) fn file(data: Vec<u8>, zstd: bool) -> TempTet {
    let (_, stations, chunk) = size();
    let hours = data.len() as u64 / (4 * stations);
    let labels: Vec<String> = (0..stations).map(|i| format!("ST{i:05}")).collect();
    let metadata =
        json!({"dim_names": ["time", "station"], "coords": {"station": {"labels": labels}}});
    let value = TestDataset::new("value", F32, &[hours, stations], &[chunk, stations], data)
        .with_zstd(zstd)
        .with_metadata(metadata);
    let hours_since = (0..hours as i32).flat_map(i32::to_le_bytes).collect();
    let time = TestDataset::new("time", I32, &[hours], &[hours], hours_since).with_metadata(
        json!({"dim_names": ["time"], "attrs": {"units": "hours since 1990-01-01"}}),
    );
    let zone = |number: u64| {
        let cells = chunk.min(hours - number * chunk) * stations;
        json!({"dataset_id": 0, "chunk_index": [number, 0], "element_count": cells, "null_count": 0})
    };
    let zones: Vec<_> = (0..hours.div_ceil(chunk)).map(zone).collect();
    let zones = Some(json!({"version": 1, "chunks": zones}));
    TempTet::new(&tet_bytes(
        &[value, time],
        &Layout { history_version: Some(2), zones, ..Layout::default() },
    ))
}

/// A field with land, as a sea-surface temperature has.
pub(crate) fn sst() -> TempTet {
    let (times, lats, lons) = if is_small() { (60, 9, 18) } else { (4380, 73, 144) };
    let mut rng = SmallRng::seed_from_u64(1);
    let land: Vec<bool> = (0..lats * lons).map(|_| rng.random_bool(0.3)).collect();
    let cells = (0..times).flat_map(|time| land.iter().map(move |is_land| (time, *is_land)));
    let data = cells.flat_map(|(time, is_land)| {
        let value = 290.0 + (time % 365) as f32 / 50.0 + rng.random_range(-3.0..3.0_f32);
        (if is_land { f32::NAN } else { value }).to_le_bytes()
    });
    let labels = |len: u64, step: f64| {
        let text = (0..len).map(|at| (at as f64 * step - 90.0).to_string());
        json!({"labels": text.collect::<Vec<_>>()})
    };
    let metadata = json!({
        "dim_names": ["time", "lat", "lon"],
        "coords": {"lat": labels(lats, 2.5), "lon": labels(lons, 2.5)},
        "attrs": {"_FillValue": "NaN"},
    });
    let shape = [times, lats, lons];
    let chunk = [times.div_ceil(60), lats.div_ceil(2), lons.div_ceil(2)];
    let dataset = TestDataset::new("value", F32, &shape, &chunk, data.collect());
    let layout = Layout { history_version: Some(1), ..Layout::default() };
    TempTet::new(&tet_bytes(&[dataset.with_metadata(metadata)], &layout))
}

pub(crate) async fn table(file: &TempTet, ctx: SessionContext) -> SessionContext {
    ctx.register_array("t", file.location(), ArrayOptions::default()).await.unwrap();
    ctx
}

pub(crate) fn run(runtime: &Runtime, ctx: &SessionContext, sql: &str) {
    let batches = runtime.block_on(async { ctx.sql(sql).await.unwrap().collect().await.unwrap() });
    black_box(batches);
}

/// Decompresses all frames with the zstd crate, on two threads.
pub(crate) fn decompress(frames: &[Vec<u8>], tile_len: usize) {
    std::thread::scope(|scope| {
        for half in frames.chunks(frames.len().div_ceil(2)) {
            scope.spawn(move || {
                for frame in half {
                    black_box(zstd::bulk::decompress(frame, tile_len).unwrap());
                }
            });
        }
    });
}
