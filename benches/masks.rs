//! Compares aggregations with masks, fill values, packed integers, weights and conditions with loops written by
//! hand.
//!
//! The field has the shape of four years of sea surface temperatures: 4380 times × 73 latitudes × 144
//! longitudes, in chunks of 120 times. Three of ten grid points are land, which is NaN or the fill value. The
//! loops know the layout, the types and the number of threads, and are compiled for the same processors as the
//! library's. The bench prints the table `masks` of `FIGURES.md`.

#![allow(unsafe_code, reason = "the loops read a mapped file, as the library does")]

use std::hint::black_box;
use std::io::Write;
use std::sync::LazyLock;

use datafusion::prelude::SessionContext;
use memmap2::Mmap;
use multiversion::multiversion;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::common::figures::Figures;
use crate::common::support::{
    F32, F64, I16, I32, Layout, TempTet, TestDataset, reducing, tet_bytes,
};
use crate::common::{is_small, run, runtime, size, table, values};

const LOOP: &str = "a loop written by hand";
const U8: u32 = 5;

/// The numbers of times, latitudes and longitudes.
fn shape() -> [usize; 3] {
    static SHAPE: LazyLock<[usize; 3]> =
        LazyLock::new(|| if is_small() { [24, 9, 20] } else { [4380, 73, 144] });
    *SHAPE
}

/// The cells of one time.
fn plane() -> usize {
    shape()[1] * shape()[2]
}

/// A stored element, as the loops read it.
trait Cell: Copy + Sync {
    type Stored: bytemuck::Pod;
    const BYTES: usize = size_of::<Self::Stored>();
    fn load(stored: Self::Stored) -> f64;
    /// Whether the stored element counts.
    fn counts(stored: Self::Stored) -> bool;
}

/// Views mapped bytes, which are aligned, as stored elements.
fn cells<C: Cell>(bytes: &[u8]) -> &[C::Stored] {
    bytemuck::cast_slice(bytes)
}

macro_rules! cell {
    ($name:ident, $t:ty, $value:expr, $counts:expr) => {
        #[derive(Clone, Copy)]
        struct $name;
        impl Cell for $name {
            type Stored = $t;
            #[inline(always)]
            fn load(stored: $t) -> f64 {
                $value(stored)
            }
            #[inline(always)]
            fn counts(stored: $t) -> bool {
                $counts(stored)
            }
        }
    };
}

const FILL: f32 = 9.969_21e36;
const SCALE: f64 = 0.01;
const OFFSET: f64 = 270.0;
const PACKED_FILL: i16 = i16::MIN;

cell!(Plain, f32, f64::from, |_| true);
cell!(Masked, f32, f64::from, |value: f32| !value.is_nan());
cell!(Filled, f32, f64::from, |value: f32| !value.is_nan() & (value != FILL));
cell!(Double, f64, |value| value, |value: f64| !value.is_nan());
cell!(Packed, i16, |value| f64::from(value) * SCALE + OFFSET, |value| value != PACKED_FILL);
cell!(Byte, u8, f64::from, |_| true);

/// The value of a cell that counts, else 0.
#[inline(always)]
fn value<C: Cell>(cell: C::Stored, counts: bool) -> f64 {
    f64::from_bits(C::load(cell).to_bits() & 0_u64.wrapping_sub(counts.into()))
}

/// Sixteen sums and counts side by side.
#[inline(always)]
fn sum_run<C: Cell>(run: &[C::Stored]) -> (f64, u64) {
    let (mut sums, mut counts) = ([0.0; 16], [0_u32; 16]);
    let (blocks, rest) = run.as_chunks::<16>();
    for block in blocks {
        for at in 0..16 {
            let is_counted = C::counts(block[at]);
            sums[at] += if is_counted { C::load(block[at]) } else { 0.0 };
            counts[at] = counts[at].wrapping_add(u32::from(is_counted));
        }
    }
    for cell in rest {
        let is_counted = C::counts(*cell);
        sums[0] += if is_counted { C::load(*cell) } else { 0.0 };
        counts[0] += u32::from(is_counted);
    }
    (sums.iter().sum(), counts.iter().map(|count| u64::from(*count)).sum())
}

/// Adds the cells of a row that `counts` to the sums and counts of their columns.
#[inline(always)]
fn add_row<C: Cell>(
    sums: &mut [f64],
    totals: &mut [u32],
    row: &[C::Stored],
    counts: impl Fn(C::Stored) -> bool,
) {
    for ((sum, total), cell) in sums.iter_mut().zip(totals).zip(row) {
        let is_counted = counts(*cell);
        *sum += value::<C>(*cell, is_counted);
        *total = total.wrapping_add(u32::from(is_counted));
    }
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn by_lat<C: Cell>(part: &[u8]) -> Vec<(f64, u64)> {
    let [_, lats, lons] = shape();
    let mut means = vec![(0.0, 0); lats];
    for (row, run) in cells::<C>(part).chunks_exact(lons).enumerate() {
        let (sum, count) = sum_run::<C>(run);
        let mean = &mut means[row % lats];
        mean.0 += sum;
        mean.1 += count;
    }
    means
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn map<C: Cell>(part: &[u8]) -> (Vec<f64>, Vec<u32>) {
    let (mut sums, mut counts) = (vec![0.0; plane()], vec![0_u32; plane()]);
    for plane in cells::<C>(part).chunks_exact(plane()) {
        add_row::<C>(&mut sums, &mut counts, plane, C::counts);
    }
    (sums, counts)
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn weighted_by_time(part: &[u8]) -> Vec<f64> {
    let [_, lats, lons] = shape();
    let weights: Vec<f64> = (0..lats).map(|at| latitude(at).to_radians().cos()).collect();
    let mut means = Vec::new();
    for plane in cells::<Masked>(part).chunks_exact(plane()) {
        let (mut sum, mut weight) = (0.0, 0.0);
        for (run, w) in plane.chunks_exact(lons).zip(&weights) {
            let (of_run, count) = sum_run::<Masked>(run);
            sum += of_run * w;
            weight += count as f64 * w;
        }
        means.push(sum / weight);
    }
    means
}

/// A weight per longitude, too: a multiplication per cell.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn weighted_along_lon(part: &[u8]) -> Vec<f64> {
    let [_, lats, lons] = shape();
    let along: Vec<f64> = (0..lons).map(|at| 1.0 + at as f64 * 2.5 / 360.0).collect();
    let across: Vec<f64> = (0..lats).map(|at| latitude(at).to_radians().cos()).collect();
    let mut sums = Vec::new();
    for plane in cells::<Masked>(part).chunks_exact(plane()) {
        let mut sum = 0.0;
        for (run, weight) in plane.chunks_exact(lons).zip(&across) {
            let mut lanes = [0.0; 16];
            let width = black_box(16);
            for (cells, weights) in run.chunks(width).zip(along.chunks(width)) {
                let len = cells.len();
                let (lanes, weights) = (&mut lanes[..len], &weights[..len]);
                for at in 0..len {
                    lanes[at] +=
                        value::<Masked>(cells[at], Masked::counts(cells[at])) * weights[at];
                }
            }
            sum += lanes.iter().sum::<f64>() * weight;
        }
        sums.push(sum);
    }
    sums
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn exceedances(part: &[u8]) -> Vec<u32> {
    let mut counts = vec![0_u32; plane()];
    for plane in cells::<Masked>(part).chunks_exact(plane()) {
        for (count, cell) in counts.iter_mut().zip(plane) {
            *count = count.wrapping_add(u32::from(*cell > 300.0));
        }
    }
    counts
}

/// The sums of a trend per grid point: the count, and those of x, y, x² and x y. Times are counted from the first one.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn trends(part: &[u8]) -> [Vec<f64>; 5] {
    let len = plane();
    let mut sums: [Vec<f64>; 5] = std::array::from_fn(|_| vec![0.0; len]);
    for (time, row) in cells::<Masked>(part).chunks_exact(len).enumerate() {
        let x = time as f64;
        let [count, sum_x, sum_y, xx, xy] = sums.each_mut().map(|sums| &mut sums[..len]);
        for at in 0..len {
            let is_counted = Masked::counts(row[at]);
            let (x, y) = (if is_counted { x } else { 0.0 }, value::<Masked>(row[at], is_counted));
            count[at] += if is_counted { 1.0 } else { 0.0 };
            sum_x[at] += x;
            sum_y[at] += y;
            xx[at] += x * x;
            xy[at] += x * y;
        }
    }
    sums
}

/// The 90th percentiles of some grid points, whose values are gathered sixteen grid points at a time.
fn percentiles(bytes: &[u8], points: std::ops::Range<usize>) -> Vec<f32> {
    const POINTS: usize = 16;
    let mut found = Vec::new();
    let mut series = vec![Vec::new(); POINTS];
    for first in points.clone().step_by(POINTS) {
        let count = POINTS.min(points.end - first);
        series.iter_mut().for_each(Vec::clear);
        for row in cells::<Masked>(bytes).chunks_exact(plane()) {
            for (series, cell) in series.iter_mut().zip(&row[first..first + count]) {
                if Masked::counts(*cell) {
                    series.push(*cell);
                }
            }
        }
        for series in &mut series[..count] {
            let Some(last) = series.len().checked_sub(1) else {
                found.push(f32::NAN);
                continue;
            };
            let at = last as f64 * 0.9;
            let (_, low, above) = series.select_nth_unstable_by(at as usize, f32::total_cmp);
            let high = above.iter().copied().fold(f32::INFINITY, f32::min);
            found.push(*low + (high - *low) * at.fract() as f32);
        }
    }
    found
}

fn percentile_map(bytes: &[u8]) {
    let half = plane() / 2;
    std::thread::scope(|scope| {
        let other = scope.spawn(|| black_box(percentiles(bytes, 0..half)));
        black_box(percentiles(bytes, half..plane()));
        black_box(other.join().unwrap());
    });
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn exceeding_map(part: &[u8]) -> (Vec<f64>, Vec<u32>) {
    let (mut sums, mut counts) = (vec![0.0; plane()], vec![0_u32; plane()]);
    for plane in cells::<Masked>(part).chunks_exact(plane()) {
        add_row::<Masked>(&mut sums, &mut counts, plane, |cell| cell > 293.0);
    }
    (sums, counts)
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn warm_by_station(part: &[u8]) -> (Vec<f64>, Vec<u32>) {
    let stations = size().1 as usize;
    let (mut sums, mut counts) = (vec![0.0; stations], vec![0_u32; stations]);
    for row in cells::<Masked>(part).chunks_exact(stations) {
        add_row::<Masked>(&mut sums, &mut counts, row, |cell| cell > 280.0);
    }
    (sums, counts)
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn by_station(part: &[u8]) -> Vec<f64> {
    let stations = size().1 as usize;
    let mut sums = vec![0.0; stations];
    for row in cells::<Plain>(part).chunks_exact(stations) {
        for (sum, cell) in sums.iter_mut().zip(row) {
            *sum += Plain::load(*cell);
        }
    }
    sums
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn weighted_by_hour(part: &[u8]) -> f64 {
    let rows = cells::<Masked>(part).chunks_exact(size().1 as usize).enumerate();
    let mut total = 0.0;
    for (hour, run) in rows {
        total += sum_run::<Masked>(run).0 * ((hour % 24) as f64).cos();
    }
    total
}

fn latitude(at: usize) -> f64 {
    90.0 - 2.5 * at as f64
}

/// Runs `part` on two threads, each with half of the bytes, split at a multiple of `unit`.
fn two_threads<R: Send>(bytes: &[u8], unit: usize, part: impl Fn(&[u8]) -> R + Sync) {
    let (first, second) = bytes.split_at(bytes.len() / unit / 2 * unit);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| black_box(part(first)));
        black_box(part(second));
        black_box(other.join().unwrap());
    });
}

/// Maps a new file with these bytes.
fn mapped(bytes: &[u8]) -> (tempfile::NamedTempFile, Mmap) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    // SAFETY: no other code has the temporary file.
    let map = unsafe { Mmap::map(file.as_file()) }.unwrap();
    (file, map)
}

/// Temperatures of the field; NaN is land.
fn temperatures() -> Vec<f32> {
    let mut rng = SmallRng::seed_from_u64(1);
    let land: Vec<bool> = (0..plane()).map(|_| rng.random_bool(0.3)).collect();
    let [times, _, lons] = shape();
    (0..times * plane())
        .map(|cell| {
            let at = cell % plane();
            let warmth = 280.0 + 30.0 * latitude(at / lons).to_radians().cos();
            let value = warmth + rng.random_range(-4.0..4.0);
            if land[at] { f32::NAN } else { value as f32 }
        })
        .collect()
}

/// A loop written by hand over mapped bytes.
type Loop = fn(&[u8]);

/// A field as a table: the bytes of its elements, their type and their attributes.
struct Field {
    name: &'static str,
    bytes: Vec<u8>,
    tag: u32,
    attributes: Value,
    by_lat: Loop,
    map: Loop,
    width: usize,
}

fn field<C: Cell>(name: &'static str, tag: u32, bytes: Vec<u8>, attributes: Value) -> Field {
    Field {
        name,
        bytes,
        tag,
        attributes,
        by_lat: |bytes| two_threads(bytes, plane() * C::BYTES, by_lat::<C>),
        map: |bytes| two_threads(bytes, plane() * C::BYTES, map::<C>),
        width: C::BYTES,
    }
}

/// The field in each form in which users hold it.
fn fields() -> Vec<Field> {
    let values = temperatures();
    let bytes = |value: &dyn Fn(f32) -> Vec<u8>| values.iter().flat_map(|it| value(*it)).collect();
    let or = |value: f32, other: f32| if value.is_nan() { other } else { value };
    let packed = |value: f32| match value.is_nan() {
        true => PACKED_FILL,
        false => ((f64::from(value) - OFFSET) / SCALE).round() as i16,
    };
    let fill_of_packed = json!({"_FillValue": PACKED_FILL.to_string(), "scale_factor": SCALE.to_string(),
        "add_offset": OFFSET.to_string()});
    vec![
        field::<Masked>(
            "`f32`, no NULLs, `_FillValue = NaN`",
            F32,
            bytes(&|value| or(value, 270.0).to_le_bytes().to_vec()),
            json!({"_FillValue": "NaN"}),
        ),
        field::<Masked>(
            "`f32`, 30 % NaN",
            F32,
            bytes(&|value| value.to_le_bytes().to_vec()),
            json!({"_FillValue": "NaN"}),
        ),
        field::<Filled>(
            "`f32`, 30 % fill values",
            F32,
            bytes(&|value| or(value, FILL).to_le_bytes().to_vec()),
            json!({"_FillValue": FILL.to_string()}),
        ),
        field::<Double>(
            "`f64`, 30 % NaN",
            F64,
            bytes(&|value| f64::from(value).to_le_bytes().to_vec()),
            json!({"_FillValue": "NaN"}),
        ),
        field::<Packed>(
            "packed `i16`, 30 % fill values",
            I16,
            bytes(&|value| packed(value).to_le_bytes().to_vec()),
            fill_of_packed,
        ),
        field::<Byte>(
            "`u8`, no NULLs",
            U8,
            bytes(&|value| vec![(or(value, 270.0) - 200.0) as u8]),
            json!({}),
        ),
    ]
}

/// A file of the field.
fn file(field: &Field) -> TempTet {
    let [times, lats, lons] = shape().map(|len| len as u64);
    let chunk = [times.min(120), lats, lons];
    let mut attributes = field.attributes.clone();
    attributes["units"] = json!("K");
    let metadata = json!({"dim_names": ["time", "lat", "lon"], "attrs": attributes});
    let value =
        TestDataset::new("value", field.tag, &[times, lats, lons], &chunk, field.bytes.clone())
            .with_metadata(metadata);
    let hours = (0..times as i32).flat_map(|at| (at * 6).to_le_bytes()).collect();
    let time = TestDataset::new("time", I32, &[times], &[times], hours).with_metadata(
        json!({"dim_names": ["time"], "attrs": {"units": "hours since 2020-01-01"}}),
    );
    let axis = |name: &str, len: u64, label: fn(usize) -> f64| {
        let data = (0..len as usize).flat_map(|at| label(at).to_le_bytes()).collect();
        TestDataset::new(name, F64, &[len], &[len], data)
            .with_metadata(json!({"dim_names": [name]}))
    };
    let datasets =
        [value, time, axis("lat", lats, latitude), axis("lon", lons, |at| 2.5 * at as f64)];
    TempTet::new(&tet_bytes(&datasets, &Layout { history_version: Some(2), ..Layout::default() }))
}

/// A session with the field as the table `t`.
fn open(runtime: &Runtime, file: &TempTet) -> SessionContext {
    runtime.block_on(table(file, reducing(2, 8192)))
}

const BY_LAT: &str = "SELECT lat, avg(value) FROM t GROUP BY lat";
const MAP: &str = "SELECT lat, lon, avg(value) FROM t GROUP BY lat, lon";
const BY_TIME: &str = "SELECT time, avg(value) FROM t GROUP BY time";

/// Queries of the masked field, with the loop that does the same.
fn queries() -> Vec<(&'static str, &'static str, Loop)> {
    fn planes(bytes: &[u8], part: impl Fn(&[u8]) + Sync) {
        two_threads(bytes, plane() * 4, part);
    }
    vec![
        (
            "weighted mean by time, as SQL",
            "SELECT time, sum(value * cos(radians(lat))) / sum(cos(radians(lat))) \
             FILTER (WHERE value IS NOT NULL) FROM t GROUP BY time",
            |bytes| planes(bytes, |part| drop(black_box(weighted_by_time(part)))),
        ),
        (
            "`weighted_avg(value, cos(radians(lat)))` by time",
            "SELECT time, weighted_avg(value, cos(radians(lat))) FROM t GROUP BY time",
            |bytes| planes(bytes, |part| drop(black_box(weighted_by_time(part)))),
        ),
        (
            "`sum(value * cos(radians(lat)) * (1 + lon / 360))` by time: a weight along the run",
            "SELECT time, sum(value * cos(radians(lat)) * (1 + lon / 360)) FROM t GROUP BY time",
            |bytes| planes(bytes, |part| drop(black_box(weighted_along_lon(part)))),
        ),
        (
            "`count(*) FILTER (WHERE value > 300)`, a map",
            "SELECT lat, lon, count(*) FILTER (WHERE value > 300) FROM t GROUP BY lat, lon",
            |bytes| planes(bytes, |part| drop(black_box(exceedances(part)))),
        ),
        (
            "`sum(CASE WHEN value > 300 THEN 1 ELSE 0 END)`, a map",
            "SELECT lat, lon, sum(CASE WHEN value > 300 THEN 1 ELSE 0 END) FROM t GROUP BY lat, lon",
            |bytes| planes(bytes, |part| drop(black_box(exceedances(part)))),
        ),
        (
            "`avg(value) WHERE value > 293`, a map",
            "SELECT lat, lon, avg(value) FROM t WHERE value > 293 GROUP BY lat, lon",
            |bytes| planes(bytes, |part| drop(black_box(exceeding_map(part)))),
        ),
        (
            "`avg(CASE WHEN value > 293 THEN value END)`, a map",
            "SELECT lat, lon, avg(CASE WHEN value > 293 THEN value END) FROM t GROUP BY lat, lon",
            |bytes| planes(bytes, |part| drop(black_box(exceeding_map(part)))),
        ),
        (
            "trends, `regr_slope(value, date_part('epoch', time))`, a map",
            "SELECT lat, lon, regr_slope(value, date_part('epoch', time)) FROM t GROUP BY lat, lon",
            |bytes| planes(bytes, |part| drop(black_box(trends(part)))),
        ),
        (
            "`percentile_cont(value, 0.9)`, a map",
            "SELECT lat, lon, percentile_cont(value, 0.9) FROM t GROUP BY lat, lon",
            percentile_map,
        ),
        (
            "`avg(value - 273.15)`, a map",
            "SELECT lat, lon, avg(value - 273.15) FROM t GROUP BY lat, lon",
            |bytes| planes(bytes, |part| drop(black_box(map::<Masked>(part)))),
        ),
        (
            "`avg(value) FILTER (WHERE lat > 0)` and three more filters, by time",
            "SELECT time, avg(value) FILTER (WHERE lat > 0), avg(value) FILTER (WHERE lat < 0), \
             count(value) FILTER (WHERE lon > 180), max(value) FROM t GROUP BY time",
            |bytes| planes(bytes, |part| drop(black_box(weighted_by_time(part)))),
        ),
    ]
}

/// Queries of 262144 hours × 256 stations without NULLs, whose file declares a fill value of NaN.
fn stations(runtime: &Runtime, figures: &mut Figures) {
    let data = values();
    let (hours, stations, chunk) = size();
    let metadata = json!({"dim_names": ["time", "station"], "attrs": {"_FillValue": "NaN"}});
    let value =
        TestDataset::new("value", F32, &[hours, stations], &[chunk, stations], data.clone())
            .with_metadata(metadata);
    let since = (0..hours as i32).flat_map(i32::to_le_bytes).collect();
    let time = TestDataset::new("time", I32, &[hours], &[hours], since).with_metadata(
        json!({"dim_names": ["time"], "attrs": {"units": "hours since 1990-01-01"}}),
    );
    let layout = Layout { history_version: Some(2), ..Layout::default() };
    let file = TempTet::new(&tet_bytes(&[value, time], &layout));
    let (_file, map) = mapped(&data);
    let row = stations as usize * 4;
    let ctx = open(runtime, &file);
    let mut compare = |name: &str, sql: &str, by_hand: &dyn Fn()| {
        figures.compare(name, || run(runtime, &ctx, sql), vec![(LOOP, Box::new(by_hand))]);
    };
    compare(
        "stations: `mean(value) GROUP BY station`, `_FillValue = NaN`",
        "SELECT station, mean(value) FROM t GROUP BY station",
        &|| two_threads(&map, row, by_station),
    );
    compare(
        "stations: `mean(value) WHERE value > 280 GROUP BY station`",
        "SELECT station, mean(value) FROM t WHERE value > 280 GROUP BY station",
        &|| two_threads(&map, row, warm_by_station),
    );
    compare(
        "stations: `avg(value - 273.15) GROUP BY station`",
        "SELECT station, avg(value - 273.15) FROM t GROUP BY station",
        &|| two_threads(&map, row, by_station),
    );
    compare(
        "stations: `sum(value * cos(date_part('hour', time)))`",
        "SELECT sum(value * cos(date_part('hour', time))) FROM t",
        &|| two_threads(&map, row, weighted_by_hour),
    );
}

pub(crate) fn main() {
    let runtime = runtime();
    let mut figures = Figures::new("masks");
    for field in fields() {
        let file = file(&field);
        let (_file, map) = mapped(&field.bytes);
        assert_eq!(map.len(), shape()[0] * plane() * field.width);
        let ctx = open(&runtime, &file);
        for (name, sql, by_hand) in
            [("mean by latitude", BY_LAT, field.by_lat), ("map of means", MAP, field.map)]
        {
            figures.compare(
                format!("{name}: {}", field.name).as_str(),
                || run(&runtime, &ctx, sql),
                vec![(LOOP, Box::new(|| by_hand(&map)))],
            );
        }
        if !field.name.ends_with("NaN") || field.width != 4 {
            continue;
        }
        for (name, sql, by_hand) in queries() {
            let plain = if sql.contains("GROUP BY time") { BY_TIME } else { MAP };
            figures.compare(
                name,
                || run(&runtime, &ctx, sql),
                vec![
                    (LOOP, Box::new(|| by_hand(&map))),
                    ("`avg(value)` of the same groups", Box::new(|| run(&runtime, &ctx, plain))),
                ],
            );
        }
    }
    stations(&runtime, &mut figures);
    figures.finish();
}
