//! A field of temperatures, and its parts as chunks.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::is_small;

/// The first day, latitude and the steps of longitudes, by which queries name cells.
pub(crate) const DAYS_SINCE: &str = "days since 2000-01-01";
const NORTHERNMOST: f64 = 82.0;
const LON_STEP: f64 = 2.5;

/// Temperatures by day, latitude and longitude, without NULLs.
pub(crate) struct Field {
    pub(crate) shape: [usize; 3],
    pub(crate) values: Vec<f32>,
}

impl Field {
    /// Makes a field of 95 MB, of 1 GB with `GRIDFUSION_BENCH_LARGE=1`, or a small one for a smoke run.
    pub(crate) fn new() -> Self {
        let is_large = std::env::var_os("GRIDFUSION_BENCH_LARGE").is_some();
        let shape = match (is_small(), is_large) {
            (true, _) => [60, 50, 100],
            (_, true) => [10_500, 165, 144],
            _ => [1000, 165, 144],
        };
        Self { shape, values: temperatures(shape) }
    }

    /// The bytes of all values.
    pub(crate) fn len(&self) -> usize {
        self.values.len() * 4
    }

    /// The labels of each axis.
    pub(crate) fn labels(&self) -> (Vec<i32>, Vec<f64>, Vec<f64>) {
        let [days, lats, lons] = self.shape;
        let lat = (0..lats).map(|at| NORTHERNMOST - at as f64).collect();
        ((0..days as i32).collect(), lat, (0..lons).map(|at| LON_STEP * at as f64).collect())
    }

    /// The mean of each latitude, from north to south.
    pub(crate) fn means_by_lat(&self) -> Vec<f64> {
        let [days, lats, lons] = self.shape;
        let mut sums = vec![0.0; lats];
        for (row, run) in self.values.chunks_exact(lons).enumerate() {
            sums[row % lats] += run.iter().map(|value| f64::from(*value)).sum::<f64>();
        }
        sums.into_iter().map(|sum| sum / (days * lons) as f64).collect()
    }

    /// The numbers of chunks of a shape along each axis.
    pub(crate) fn grid(&self, chunk: [usize; 3]) -> [usize; 3] {
        std::array::from_fn(|axis| self.shape[axis].div_ceil(chunk[axis]))
    }

    /// The little-endian bytes of the chunk at these coordinates, with NaN outside of the field.
    pub(crate) fn chunk(&self, at: [usize; 3], chunk: [usize; 3]) -> Vec<u8> {
        let [days, lats, lons] = self.shape;
        let mut bytes = Vec::with_capacity(chunk.iter().product::<usize>() * 4);
        for day in at[0] * chunk[0]..(at[0] + 1) * chunk[0] {
            for lat in at[1] * chunk[1]..(at[1] + 1) * chunk[1] {
                let first = at[2] * chunk[2];
                let inside = if day < days && lat < lats { chunk[2].min(lons - first) } else { 0 };
                let run = (day * lats + lat) * lons + first;
                let cells = if inside > 0 { &self.values[run..run + inside] } else { &[] };
                bytes.extend(cells.iter().flat_map(|value| value.to_le_bytes()));
                bytes.extend((inside..chunk[2]).flat_map(|_| f32::NAN.to_le_bytes()));
            }
        }
        bytes
    }
}

/// Seasons, a belt around the equator, waves that move east, and noise, in hundredths of a degree.
fn temperatures([days, lats, lons]: [usize; 3]) -> Vec<f32> {
    let mut rng = SmallRng::seed_from_u64(2);
    let circle = |at: usize, len: usize| at as f64 / len as f64 * std::f64::consts::TAU;
    let seasons: Vec<f64> = (0..days).map(|day| 6.0 * circle(day, 365).sin()).collect();
    let belt = |lat: usize| 250.0 + 50.0 * (NORTHERNMOST - lat as f64).to_radians().cos();
    let belts: Vec<f64> = (0..lats).map(belt).collect();
    let waves: Vec<f64> = (0..lons).map(|lon| 4.0 * (3.0 * circle(lon, lons)).sin()).collect();
    let mut values = Vec::with_capacity(days * lats * lons);
    for (day, season) in seasons.iter().enumerate() {
        for belt in &belts {
            for lon in 0..lons {
                let wave = waves[(lon + day) % lons];
                let value = belt + season + wave + rng.random_range(-0.5..0.5);
                values.push(((value * 100.0).round() / 100.0) as f32);
            }
        }
    }
    values
}
