//! Tile statistics as TileDB computes them, including its mistakes. A NaN resets the least and the
//! greatest value. A sum that overflows saturates, and later values are added to the saturated sum.

use rand::Rng;
use rand::rngs::StdRng;

use crate::support::tiledb_writer::{
    Cell, FLOAT32, FLOAT64, TestAttribute, TestStatistics, is_integer, is_temporal, is_unsigned,
    junk, width, words,
};

/// The content of a block of a fragment's metadata.
pub(crate) type Block = Vec<u8>;

/// The blocks of a field without statistics.
pub(crate) fn no_statistics() -> [Block; 4] {
    [vec![0; 16], vec![0; 16], vec![0; 8], vec![0; 8]]
}

/// The blocks of statistics of one attribute: least values, greatest values, sums and counts of NULL.
/// `tiles` has the written cells of each tile.
pub(crate) fn blocks_of_statistics(
    attribute: &TestAttribute,
    tiles: &[Vec<Cell>],
    statistics: TestStatistics,
    rng: &mut StdRng,
) -> [Block; 4] {
    let per_tile = |numbers: Vec<u64>| words([vec![numbers.len() as u64], numbers].concat());
    let nulls = |tile: &Vec<Cell>| tile.iter().filter(|cell| cell.is_none()).count() as u64;
    let null_counts = match attribute.nullable {
        true => per_tile(tiles.iter().map(nulls).collect()),
        false => vec![0; 8],
    };
    let has_figures = is_integer(attribute.code) || is_float(attribute.code);
    match (statistics, attribute.values) {
        (TestStatistics::Absent, _) => no_statistics(),
        (TestStatistics::Right, Some(1)) if has_figures || is_temporal(attribute.code) => {
            let figures: Vec<Figures> =
                tiles.iter().map(|tile| Figures::of(attribute.code, tile, rng)).collect();
            let bounds = |pick: fn(&Figures) -> &Vec<u8>| {
                let bytes: Vec<u8> = figures.iter().flat_map(pick).copied().collect();
                [words([bytes.len() as u64, 0]), bytes].concat()
            };
            let sums = per_tile(figures.iter().map(|figures| figures.sum).collect());
            [bounds(|it| &it.min), bounds(|it| &it.max), sums, null_counts]
        }
        (TestStatistics::Wrong, Some(1)) => {
            let bytes = tiles.len() * width(attribute.code);
            let bounds = || [words([bytes as u64, 0]), vec![7; bytes]].concat();
            let sums = tiles.iter().map(|_| rng.random_range(0..9)).collect();
            [bounds(), bounds(), per_tile(sums), null_counts]
        }
        // For variable-length values in dense arrays, TileDB stores meaningless bounds.
        (_, None) => {
            let mut bounds = || {
                let starts = words(tiles.iter().map(|_| 0));
                [words([starts.len() as u64, 5]), starts, junk(5, rng)].concat()
            };
            [bounds(), bounds(), vec![0; 8], null_counts]
        }
        _ => {
            let [mins, maxs, sums, _] = no_statistics();
            [mins, maxs, sums, null_counts]
        }
    }
}

fn is_float(code: u8) -> bool {
    matches!(code, FLOAT32 | FLOAT64)
}

struct Figures {
    min: Vec<u8>,
    max: Vec<u8>,
    sum: u64,
}

impl Figures {
    fn of(code: u8, tile: &[Cell], rng: &mut StdRng) -> Self {
        let cells: Vec<&Vec<u8>> = tile.iter().flatten().collect();
        let Some(first) = cells.first() else {
            let mut bound = || junk(width(code), rng);
            return Self { min: bound(), max: bound(), sum: 0 };
        };
        // Comparisons with NaN are false, so the later value replaces the kept one.
        let fold = |keeps: fn(f64, f64) -> bool, of_integers: fn(i128, i128) -> bool| {
            cells.iter().fold((*first).clone(), |kept, cell| {
                let keeps = match is_float(code) {
                    true => keeps(float(code, &kept), float(code, cell)),
                    false => of_integers(whole(code, &kept), whole(code, cell)),
                };
                if keeps { kept } else { (*cell).clone() }
            })
        };
        let (min, max) = (fold(|a, b| a < b, |a, b| a < b), fold(|a, b| a > b, |a, b| a > b));
        let integers = || cells.iter().map(|cell| whole(code, cell));
        let sum = if is_float(code) {
            cells.iter().map(|cell| float(code, cell)).fold(0.0, add_floats).to_bits()
        } else if is_unsigned(code) {
            integers().fold(0, |sum, value| (sum + value).min(i128::from(u64::MAX))) as u64
        } else {
            let clamp = |sum: i128| sum.clamp(i128::from(i64::MIN), i128::from(i64::MAX));
            integers().fold(0, |sum, value| clamp(sum + value)) as i64 as u64
        };
        Self { min, max, sum }
    }
}

/// Adds two doubles; a sum that would overflow becomes the greatest or least double.
fn add_floats(sum: f64, value: f64) -> f64 {
    if (sum < 0.0) == (value < 0.0) && sum.abs() > f64::MAX - value.abs() {
        return if sum < 0.0 { f64::MIN } else { f64::MAX };
    }
    sum + value
}

/// The floating-point number that `bytes` stand for.
pub(crate) fn float(code: u8, bytes: &[u8]) -> f64 {
    match code {
        FLOAT32 => f64::from(f32::from_le_bytes(bytes.try_into().unwrap())),
        _ => f64::from_le_bytes(bytes.try_into().unwrap()),
    }
}

/// The whole number that `bytes` stand for.
pub(crate) fn whole(code: u8, bytes: &[u8]) -> i128 {
    let negative = !is_unsigned(code) && bytes.last().is_some_and(|byte| *byte > 0x7f);
    let mut wide = [if negative { 0xff } else { 0 }; 16];
    wide[..bytes.len()].copy_from_slice(bytes);
    i128::from_le_bytes(wide)
}
