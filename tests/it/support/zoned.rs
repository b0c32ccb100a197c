//! Random `.tet` arrays with zone maps, which are computed from the values by the rules of the format.
//!
//! The values make bounds hard: sorted or not, NaN, infinities, both zeros, the extremes of their types,
//! integers that no double represents, and chunks that are all NULL.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{ArrayRef, PrimitiveArray};
use arrow::buffer::{Buffer, NullBuffer, ScalarBuffer};
use arrow::datatypes::{
    ArrowPrimitiveType, Float16Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use gridfusion::ArrayOptions;
use half::f16;
use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use serde_json::{Value, json};

use crate::support::cases::{Axis, Case, Values};
use crate::support::columns::choose;
use crate::support::{positions, width};

/// A value of any element type; floats are exact in doubles.
#[derive(Clone, Copy, Debug)]
enum Number {
    Integer(i128),
    Float(f64),
}

impl Number {
    /// Compares as zone maps do: floats are in total order.
    fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Integer(a), Self::Integer(b)) => a.cmp(b),
            (Self::Float(a), Self::Float(b)) => a.total_cmp(b),
            _ => unreachable!("an array has one type"),
        }
    }

    fn to_f64(self) -> f64 {
        match self {
            Self::Integer(number) => number as f64,
            Self::Float(number) => number,
        }
    }

    fn is_nan(self) -> bool {
        self.to_f64().is_nan()
    }

    fn bytes(self, tag: u32) -> Vec<u8> {
        match (self, width(tag)) {
            (Self::Integer(number), width) => number.to_le_bytes()[..width].to_vec(),
            (Self::Float(number), 2) => f16::from_f64(number).to_le_bytes().to_vec(),
            (Self::Float(number), 4) => (number as f32).to_le_bytes().to_vec(),
            (Self::Float(number), _) => number.to_le_bytes().to_vec(),
        }
    }
}

const FLOATS: [u32; 3] = [1, 2, 9];

/// The least and greatest integer of a type.
fn limits(tag: u32) -> (i128, i128) {
    let bits = 8 * width(tag) as u32;
    match tag {
        5 | 6 | 8 | 10 => (0, (1 << bits) - 1),
        _ => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
    }
}

/// The number of this type nearest to `quarters` / 4; for integers, nearest to `quarters` itself.
fn number(tag: u32, quarters: i128) -> Number {
    if !FLOATS.contains(&tag) {
        let (least, greatest) = limits(tag);
        return Number::Integer(quarters.clamp(least, greatest));
    }
    float(tag, quarters as f64 / 4.0)
}

fn float(tag: u32, number: f64) -> Number {
    Number::Float(match tag {
        1 => f64::from(number as f32),
        9 => f16::from_f64(number).to_f64(),
        _ => number,
    })
}

fn extreme(tag: u32, rng: &mut StdRng) -> Number {
    if FLOATS.contains(&tag) {
        let infinite = f64::INFINITY;
        let all = [
            infinite,
            -infinite,
            -0.0,
            0.0,
            f64::MAX,
            f64::MIN,
            5e-324,
            f64::MIN_POSITIVE,
            65504.0,
        ];
        return float(tag, choose(&all, rng));
    }
    let (least, greatest) = limits(tag);
    let all = [least, least + 1, greatest, greatest - 1, 0, -1, 1 << 53, (1 << 53) + 1];
    number(tag, choose(&all, rng))
}

/// How the values depend on their cell and chunk.
#[derive(Clone, Copy, Debug)]
enum Pattern {
    Noise,
    Rising,
    Falling,
    /// Values around a level, which differs from chunk to chunk.
    Levels,
    Constant,
    /// Integers that doubles cannot tell apart.
    Neighbours,
    Extremes,
}

impl Pattern {
    fn number(self, tag: u32, cell: usize, chunk: usize, rng: &mut StdRng) -> Number {
        let (cell, chunk) = (cell as i128, chunk as i128);
        let noise = rng.random_range(-3..4);
        number(
            tag,
            match self {
                Self::Noise => noise * 3,
                Self::Rising => cell / 2 + noise,
                Self::Falling => 40 - cell / 2 + noise,
                Self::Levels => (chunk * 37) % 101 - 20 + noise,
                Self::Constant => 7,
                Self::Neighbours => (1 << 53) * (1 - chunk % 3) + noise,
                Self::Extremes => return extreme(tag, rng),
            },
        )
    }
}

/// A random array with zone maps.
pub(crate) struct Zoned {
    pub(crate) case: Case,
    /// The options of every table over the array.
    pub(crate) options: ArrayOptions,
}

/// The greatest length of an axis and of its chunks, for arrays of one, two, … axes.
const LENGTHS: [(u64, u64); 3] = [(200, 30), (15, 6), (7, 4)];

impl Zoned {
    /// An array whose zone maps leave out fill values, as the format specifies.
    pub(crate) fn random(rng: &mut StdRng) -> Self {
        Self::written(rng, true)
    }

    /// An array whose zone maps sometimes treat the fill value as a value, as some writers do.
    pub(crate) fn of_any_writer(rng: &mut StdRng) -> Self {
        let knows_fill = rng.random_bool(0.85);
        Self::written(rng, knows_fill)
    }

    fn written(rng: &mut StdRng, knows_fill: bool) -> Self {
        let rank = rng.random_range(1..=LENGTHS.len());
        let (longest, of_chunk) = LENGTHS[rank - 1];
        let mut lens = |longest| (0..rank).map(|_| rng.random_range(1..=longest)).collect();
        let (shape, chunk): (Vec<u64>, Vec<u64>) = (lens(longest), lens(of_chunk));
        let axes: Vec<Axis> = shape.iter().map(|&len| Axis::random(rng, len)).collect();
        let tag = choose(&[1, 2, 2, 3, 4, 4, 5, 6, 7, 8, 9, 10, 10], rng);
        let options = ArrayOptions::default()
            .with_dataset("v")
            .with_nan_as_null(rng.random_bool(0.85))
            .with_fill_as_null(rng.random_bool(0.85));
        let fill = rng.random_bool(0.8).then(|| number(tag, choose(&[-396, 0, 4, 99], rng)));
        let grid = Grid::new(&shape, &chunk);
        let numbers = random_numbers(rng, tag, &grid, fill);
        let zones = grid.zones(rng, tag, &numbers, fill.filter(|_| knows_fill));
        let values = values(tag, &numbers, fill, &options);
        let mut case = Case::of_values(rng, axes, &shape, &chunk, values, Some(zones));
        case.description += &format!(", {options:?}, knows fill: {knows_fill}");
        Self { case, options }
    }
}

/// The chunks of an array, and the chunk of each cell.
struct Grid {
    /// Per chunk, its coordinates.
    chunks: Vec<Vec<u64>>,
    /// Per cell, in row-major order, the number of its chunk.
    chunk_of: Vec<usize>,
}

impl Grid {
    fn new(shape: &[u64], chunk: &[u64]) -> Self {
        let counts: Vec<u64> =
            shape.iter().zip(chunk).map(|(len, edge)| len.div_ceil(*edge)).collect();
        let chunks = positions(&counts);
        let at = |cell: &Vec<u64>| -> Vec<u64> {
            cell.iter().zip(chunk).map(|(place, edge)| place / edge).collect()
        };
        let number = |cell| chunks.iter().position(|coordinates| *coordinates == at(cell)).unwrap();
        let chunk_of = positions(shape).iter().map(number).collect();
        Self { chunks, chunk_of }
    }

    /// The zone maps that the reference writer stores, sometimes without entries for some chunks.
    fn zones(&self, rng: &mut StdRng, tag: u32, numbers: &[Number], fill: Option<Number>) -> Value {
        let is_null = |number: &Number| number.is_nan() || is_fill(tag, *number, fill);
        let zone = |(number, at): (usize, &Vec<u64>)| {
            let chunk_of = self.chunk_of.iter().zip(numbers);
            let cells: Vec<Number> =
                chunk_of.filter(|(chunk, _)| **chunk == number).map(|(_, cell)| *cell).collect();
            let values = cells.iter().filter(|cell| !is_null(cell));
            let least = values.clone().min_by(|a, b| a.order(b));
            let greatest = values.clone().max_by(|a, b| a.order(b));
            let mut zone = json!({"dataset_id": 0, "chunk_index": at,
                "element_count": cells.len(), "null_count": cells.len() - values.count()});
            if let (Some(least), Some(greatest)) = (least, greatest) {
                zone["min_le"] = hex(&least.bytes(tag)).into();
                zone["max_le"] = hex(&greatest.bytes(tag)).into();
            }
            zone
        };
        let missing = choose(&[0.0, 0.0, 0.2], rng);
        let mut zones: Vec<Value> = self.chunks.iter().enumerate().map(zone).collect();
        zones.retain(|_| !rng.random_bool(missing));
        zones.shuffle(rng);
        json!({"version": 1, "chunks": zones})
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a number is the fill value, bit for bit.
fn is_fill(tag: u32, number: Number, fill: Option<Number>) -> bool {
    fill.is_some_and(|fill| fill.bytes(tag) == number.bytes(tag))
}

fn random_numbers(rng: &mut StdRng, tag: u32, grid: &Grid, fill: Option<Number>) -> Vec<Number> {
    use Pattern::{Constant, Extremes, Falling, Levels, Neighbours, Noise, Rising};
    let patterns = [Noise, Rising, Rising, Falling, Levels, Levels, Constant, Neighbours, Extremes];
    let pattern = choose(&patterns, rng);
    let nulls = choose(&[0.0, 0.0, 0.1, 0.9], rng);
    let empty_chunks = choose(&[0.0, 0.2], rng);
    let extremes = choose(&[0.0, 0.0, 0.0, 0.03], rng);
    let is_empty: Vec<bool> = grid.chunks.iter().map(|_| rng.random_bool(empty_chunks)).collect();
    let nan = FLOATS.contains(&tag).then_some(Number::Float(f64::NAN));
    let nulls_of_type: Vec<Number> = nan.into_iter().chain(fill).collect();
    let random = |(cell, &chunk): (usize, &usize)| match nulls_of_type.is_empty() {
        false if is_empty[chunk] || rng.random_bool(nulls) => choose(&nulls_of_type, rng),
        _ if rng.random_bool(extremes) => extreme(tag, rng),
        _ => pattern.number(tag, cell, chunk, rng),
    };
    grid.chunk_of.iter().enumerate().map(random).collect()
}

/// The numbers as bytes, and as the column that a table with these options shows.
fn values(tag: u32, numbers: &[Number], fill: Option<Number>, options: &ArrayOptions) -> Values {
    let is_null = |number: &Number| {
        crate::support::open::read_options(options).nan_as_null && number.is_nan()
            || crate::support::open::read_options(options).fill_as_null
                && is_fill(tag, *number, fill)
    };
    let data: Vec<u8> = numbers.iter().flat_map(|number| number.bytes(tag)).collect();
    let nulls: NullBuffer = numbers.iter().map(|number| !is_null(number)).collect();
    let shown =
        numbers.iter().filter(|number| !is_null(number)).map(|number| number.to_f64().abs());
    let magnitude = shown.filter(|number| number.is_finite()).fold(0.0, f64::max);
    let column = column(tag, &data, nulls);
    let fill = fill.map(|fill| match fill {
        Number::Integer(number) => number.to_string(),
        Number::Float(number) => number.to_string(),
    });
    Values { tag, fill, packing: None, data, column, magnitude }
}

fn column(tag: u32, data: &[u8], nulls: NullBuffer) -> ArrayRef {
    fn typed<T: ArrowPrimitiveType>(data: &[u8], nulls: NullBuffer) -> ArrayRef {
        let values = ScalarBuffer::new(Buffer::from_slice_ref(data), 0, nulls.len());
        Arc::new(PrimitiveArray::<T>::new(values, Some(nulls)))
    }
    let typed = match tag {
        1 => typed::<Float32Type>,
        2 => typed::<Float64Type>,
        3 => typed::<Int32Type>,
        4 => typed::<Int64Type>,
        5 => typed::<UInt8Type>,
        6 => typed::<UInt16Type>,
        7 => typed::<Int16Type>,
        8 => typed::<UInt32Type>,
        9 => typed::<Float16Type>,
        _ => typed::<UInt64Type>,
    };
    typed(data, nulls)
}
