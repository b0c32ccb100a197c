//! Writes the gridded files of the documentation with the reference crate:
//!
//! - `climate.tet`: three years of daily temperature and precipitation over Europe
//! - `years/2022.tet` and so on: the same data in a file per year
//! - `land.tet`: the land mask of the grid
//! - `model.tet`: two years of a model whose calendar has no leap days
//!
//! ```sh
//! cargo run --release --example make_climate -- examples/data
//! ```

use std::error::Error;
use std::f64::consts::TAU;
use std::ops::Range;
use std::path::Path;

use tetration::catalog::{CHUNK_PAYLOAD_CODEC_V1, DATASET_DTYPE_TAG_V1};
use tetration::prelude::{TetDatasetWrite, TetWriterSession};

/// From north to south, as weather centres order them.
const LATITUDES: [f32; 5] = [65.0, 60.0, 55.0, 50.0, 45.0];
const LONGITUDES: [f32; 6] = [-10.0, 0.0, 10.0, 20.0, 30.0, 40.0];
/// The years and their days, counted from the first day of 2022. The last is a leap year.
const YEARS: [(u32, Range<u64>); 3] = [(2022, 0..365), (2023, 365..730), (2024, 730..1096)];
const ALL_DAYS: Range<u64> = 0..1096;
/// The warming of each year against the first, in kelvin.
const WARMING: [f64; 3] = [0.0, 0.6, 0.9];
/// The fill value of the packed precipitation, for days without a measurement.
const NOT_MEASURED: i16 = -32767;
/// The land mask, 1 for land: a row per latitude, a digit per longitude.
const LAND: [&str; 5] = ["001111", "001111", "111111", "011111", "001111"];
const MODEL_DAYS: u64 = 2 * 365;

type Dataset = Result<TetDatasetWrite, Box<dyn Error>>;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).unwrap_or("examples/data".into());
    let folder = Path::new(&folder);
    let latitude = || coordinate("lat", &LATITUDES, "degrees_north");
    let longitude = || coordinate("lon", &LONGITUDES, "degrees_east");
    let climate = |name: &str, year: u32, days: &Range<u64>| {
        let datasets = [t2m(days)?, tp(days)?, time(year, days)?, latitude()?, longitude()?];
        write(&folder.join(name), datasets)
    };
    climate("climate.tet", 2022, &ALL_DAYS)?;
    std::fs::create_dir_all(folder.join("years"))?;
    for (year, days) in &YEARS {
        climate(&format!("years/{year}.tet"), *year, days)?;
    }
    write(&folder.join("land.tet"), [land()?, latitude()?, longitude()?])?;
    write(&folder.join("model.tet"), [projection()?, model_time()?])
}

fn write<const N: usize>(
    path: &Path,
    datasets: [TetDatasetWrite; N],
) -> Result<(), Box<dyn Error>> {
    let mut session = TetWriterSession::create(path);
    for dataset in datasets {
        session.push_dataset(dataset)?;
    }
    session.commit()?;
    println!("wrote {}", path.display());
    Ok(())
}

/// Returns a pseudo-random number in 0..1 that depends only on the arguments.
fn noise(step: u64, place: u64, salt: u64) -> f64 {
    let mut x = step.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (place + 1).wrapping_mul(salt);
    for shift in [30, 27, 31] {
        x = (x ^ (x >> shift)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    }
    (x >> 11) as f64 / (1_u64 << 53) as f64
}

/// Returns the bytes of a variable over time, latitude and longitude.
fn grid<const N: usize>(days: &Range<u64>, cell: impl Fn(u64, usize, usize) -> [u8; N]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for day in days.clone() {
        for lat in 0..LATITUDES.len() {
            for lon in 0..LONGITUDES.len() {
                bytes.extend(cell(day, lat, lon));
            }
        }
    }
    bytes
}

fn on_axes(mut dataset: TetDatasetWrite, dims: &[&str]) -> TetDatasetWrite {
    dataset.dim_names = Some(dims.iter().map(|dim| (*dim).to_owned()).collect());
    dataset
}

fn t2m(days: &Range<u64>) -> Dataset {
    let value = |day: u64, lat: usize, lon: usize| {
        let (north, east) = (f64::from(LATITUDES[lat]) - 45.0, f64::from(LONGITUDES[lon]) + 10.0);
        let season = ((day as f64 - 20.0) / 365.25 * TAU).cos();
        let place = (lat * LONGITUDES.len() + lon) as u64;
        let weather = 6.0 * noise(day / 5, place, 5) + 2.0 * noise(day, place, 7) - 4.0;
        let mean = 12.0 - 0.5 * north + WARMING[(day / 365).min(2) as usize];
        let value = mean - (5.0 + 0.15 * east + 0.1 * north) * season + weather;
        ((value * 10.0).round() as f32 / 10.0).to_le_bytes()
    };
    let (shape, data) = ([days.end - days.start, 5, 6], grid(days, value));
    let mut dataset = TetDatasetWrite::f32_row_major("t2m", &shape, &[122, 5, 6], data)?
        .with_attr("units", "degC")
        .with_attr("long_name", "2 metre temperature");
    dataset.chunk_codec = CHUNK_PAYLOAD_CODEC_V1.zstd;
    Ok(on_axes(dataset, &["time", "lat", "lon"]))
}

/// Total precipitation, packed as tenths of a millimetre in 16 bits.
fn tp(days: &Range<u64>) -> Dataset {
    let value = |day: u64, lat: usize, lon: usize| {
        let place = (lat * LONGITUDES.len() + lon) as u64;
        let wet = noise(day / 2, place, 11);
        let tenths = match noise(day, place, 3) {
            missing if missing < 0.005 => NOT_MEASURED,
            _ if wet < 0.6 => 0,
            _ => ((wet - 0.6) * 500.0 * noise(day, place, 13)).round() as i16,
        };
        tenths.to_le_bytes()
    };
    let (i16_tag, shape) = (DATASET_DTYPE_TAG_V1.i16, [days.end - days.start, 5, 6]);
    let (chunk, data) = ([shape[0].min(366), 5, 3], grid(days, value));
    let mut dataset = TetDatasetWrite::row_major("tp", i16_tag, &shape, &chunk, data)?
        .with_attr("units", "mm d-1")
        .with_attr("long_name", "total precipitation")
        .with_attr("scale_factor", "0.1")
        .with_attr("_FillValue", NOT_MEASURED.to_string());
    dataset.chunk_codec = CHUNK_PAYLOAD_CODEC_V1.zstd;
    Ok(on_axes(dataset, &["time", "lat", "lon"]))
}

fn land() -> Dataset {
    let data = LAND.concat().bytes().map(|digit| digit - b'0').collect();
    let u8_tag = DATASET_DTYPE_TAG_V1.u8;
    let dataset = TetDatasetWrite::row_major("land", u8_tag, &[5, 6], &[5, 6], data)?
        .with_attr("long_name", "1 where there is land");
    Ok(on_axes(dataset, &["lat", "lon"]))
}

fn coordinate(name: &str, labels: &[f32], units: &str) -> Dataset {
    let len = labels.len() as u64;
    let data = labels.iter().flat_map(|label| label.to_le_bytes()).collect();
    let dataset =
        TetDatasetWrite::f32_row_major(name, &[len], &[len], data)?.with_attr("units", units);
    Ok(on_axes(dataset, &[name]))
}

fn days(name: &str, count: u64, units: &str, calendar: &str) -> Dataset {
    let data = (0..count as i32).flat_map(i32::to_le_bytes).collect();
    let i32_tag = DATASET_DTYPE_TAG_V1.i32;
    let dataset = TetDatasetWrite::row_major(name, i32_tag, &[count], &[count], data)?
        .with_attr("units", units)
        .with_attr("calendar", calendar);
    Ok(on_axes(dataset, &[name]))
}

fn time(first_year: u32, of: &Range<u64>) -> Dataset {
    days("time", of.end - of.start, &format!("days since {first_year}-01-01"), "standard")
}

fn model_time() -> Dataset {
    days("model_time", MODEL_DAYS, "days since 2050-01-01", "noleap")
}

/// The mean temperature over Europe in a climate model.
fn projection() -> Dataset {
    let value = |day: u64| {
        let season = ((day as f64 - 20.0) / 365.0 * TAU).cos();
        let value = 9.0 - 9.0 * season + 2.0 * noise(day, 0, 17);
        ((value * 10.0).round() as f32 / 10.0).to_le_bytes()
    };
    let data = (0..MODEL_DAYS).flat_map(value).collect();
    let dataset = TetDatasetWrite::f32_row_major("projection", &[MODEL_DAYS], &[MODEL_DAYS], data)?
        .with_attr("units", "degC");
    Ok(on_axes(dataset, &["model_time"]))
}
