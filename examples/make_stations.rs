//! Writes `examples/data/stations.tet` with the reference crate: temperature and precipitation of six weather
//! stations, hourly for sixty days. The file has text labels, CF time and missing values.
//!
//! ```sh
//! cargo run --release --example make_stations -- examples/data/stations.tet
//! ```

use std::collections::BTreeMap;
use std::error::Error;
use std::f64::consts::TAU;

use tetration::catalog::{CHUNK_PAYLOAD_CODEC_V1, CoordAxisV1, DATASET_DTYPE_TAG_V1};
use tetration::prelude::{TetDatasetWrite, TetWriterSession};

/// Name, elevation in metres, mean temperature and its yearly and daily swing in °C.
const STATIONS: [(&str, f32, f64, f64, f64); 6] = [
    ("Bergen", 12.0, 8.0, 7.0, 1.5),
    ("Helsinki", 51.0, 6.5, 12.0, 3.0),
    ("Oslo", 94.0, 7.0, 11.0, 3.5),
    ("Reykjavik", 52.0, 5.5, 6.0, 1.0),
    ("Torshavn", 54.0, 7.2, 4.0, 0.8),
    ("Tromso", 10.0, 3.5, 8.5, 1.2),
];
const HOURS: u64 = 60 * 24;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).unwrap_or("examples/data/stations.tet".into());
    let mut session = TetWriterSession::create(&path);
    for dataset in [temperature()?, precipitation()?, elevation()?, time()?] {
        session.push_dataset(dataset)?;
    }
    session.commit()?;
    println!("wrote {path}");
    Ok(())
}

/// Returns a pseudo-random number in 0..1 that depends only on the arguments.
fn noise(hour: u64, station: usize, salt: u64) -> f64 {
    let mut x =
        hour.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (station as u64 + 1).wrapping_mul(salt | 1);
    for shift in [30, 27, 31] {
        x = (x ^ (x >> shift)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    }
    (x >> 11) as f64 / (1_u64 << 53) as f64
}

fn grid(value: impl Fn(u64, usize) -> f32) -> Vec<u8> {
    let cells = (0..HOURS).flat_map(|hour| (0..STATIONS.len()).map(move |station| (hour, station)));
    cells.flat_map(|(hour, station)| value(hour, station).to_le_bytes()).collect()
}

fn with_axes(mut dataset: TetDatasetWrite, dims: &[&str]) -> TetDatasetWrite {
    dataset.dim_names = Some(dims.iter().map(|dim| (*dim).to_owned()).collect());
    if dims.contains(&"station") {
        let labels = STATIONS.iter().map(|(name, ..)| (*name).to_owned()).collect();
        dataset.coords = Some(BTreeMap::from([("station".to_owned(), CoordAxisV1 { labels })]));
    }
    dataset
}

fn temperature() -> Result<TetDatasetWrite, Box<dyn Error>> {
    let value = |hour: u64, station: usize| {
        let (_, _, mean, yearly, daily) = STATIONS[station];
        if noise(hour, station, 3) < 0.01 {
            return f32::NAN; // the sensor was off
        }
        let year = (hour as f64 / 8766.0 - 0.55) * TAU;
        let day = ((hour % 24) as f64 / 24.0 - 0.6) * TAU;
        let weather = 2.0 * noise(hour / 36, station, 5) + noise(hour, station, 7) - 1.5;
        let value = mean + yearly * year.cos() + daily * day.cos() + weather;
        (value * 10.0).round() as f32 / 10.0
    };
    let shape = [HOURS, STATIONS.len() as u64];
    let mut dataset =
        TetDatasetWrite::f32_row_major("temperature", &shape, &[240, 6], grid(value))?
            .with_attr("units", "degC")
            .with_attr("long_name", "air temperature at 2 m");
    dataset.chunk_codec = CHUNK_PAYLOAD_CODEC_V1.zstd;
    Ok(with_axes(dataset, &["time", "station"]))
}

fn precipitation() -> Result<TetDatasetWrite, Box<dyn Error>> {
    let value = |hour: u64, station: usize| {
        let wet = noise(hour / 12, station, 11);
        let amount = if wet < 0.7 { 0.0 } else { (wet - 0.7) * 10.0 * noise(hour, station, 13) };
        (amount * 10.0).round() as f32 / 10.0
    };
    let shape = [HOURS, STATIONS.len() as u64];
    let dataset = TetDatasetWrite::f32_row_major("precipitation", &shape, &[240, 3], grid(value))?
        .with_attr("units", "mm h-1")
        .with_attr("_FillValue", "-9999");
    Ok(with_axes(dataset, &["time", "station"]))
}

fn elevation() -> Result<TetDatasetWrite, Box<dyn Error>> {
    let data = STATIONS.iter().flat_map(|(_, elevation, ..)| elevation.to_le_bytes()).collect();
    let dataset =
        TetDatasetWrite::f32_row_major("elevation", &[6], &[6], data)?.with_attr("units", "m");
    Ok(with_axes(dataset, &["station"]))
}

fn time() -> Result<TetDatasetWrite, Box<dyn Error>> {
    let data = (0..HOURS as i32).flat_map(i32::to_le_bytes).collect();
    let i32_tag = DATASET_DTYPE_TAG_V1.i32;
    let dataset = TetDatasetWrite::row_major("time", i32_tag, &[HOURS], &[HOURS], data)?
        .with_attr("units", "hours since 2024-01-01 00:00")
        .with_attr("calendar", "standard");
    Ok(with_axes(dataset, &["time"]))
}
