//! Random arrays: each as a `.tet` file, and as the rows that a table over the file must have.
//!
//! The rows are built cell by cell from the numbers that were written, without code of the library.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, Float64Array, Int64Array, PrimitiveArray, RecordBatch, StringViewArray,
    TimestampMicrosecondArray,
};
use arrow::compute::cast;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Field, Float16Type, Float32Type, Float64Type, Int16Type,
    Int32Type, Int64Type, Schema, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use datafusion::datasource::MemTable;
use datafusion::prelude::SessionContext;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use serde_json::{Map, Value, json};

use crate::support::{F64, I32, Layout, TempTet, TestDataset, positions, reducing, tet_bytes};

/// The labels of one dimension, and how the file stores them.
#[derive(Clone)]
pub(crate) enum Axis {
    /// No labels: the column shows the index. The number is the length of the axis.
    Index(u64),
    /// Text labels in the footer.
    Text(Vec<String>),
    /// Numbers in a sibling dataset.
    Numbers(Vec<f64>),
    /// `hours since 2024-01-01` in a sibling dataset.
    Hours(Vec<i32>),
}

const EPOCH_2024: i64 = 1_704_067_200_000_000;

impl Axis {
    /// Ascending, descending, unsorted or repeating labels.
    pub(crate) fn random(rng: &mut StdRng, len: u64) -> Self {
        let order = rng.random_range(0..4);
        let number = |i: u64, rng: &mut StdRng| match order {
            0 => i as i32 * 3 - 4,
            1 => 9 - i as i32 * 2,
            2 => (i as i32 * 7) % 11 - 3,
            _ => rng.random_range(0..3),
        };
        let numbers: Vec<i32> = (0..len).map(|i| number(i, rng)).collect();
        match rng.random_range(0..4) {
            0 => Self::Index(len),
            1 => Self::Text(numbers.iter().map(|n| format!("s{n}")).collect()),
            2 => Self::Numbers(numbers.iter().map(|&n| f64::from(n) / 4.0).collect()),
            _ => Self::Hours(numbers),
        }
    }

    /// The column of labels at these positions.
    pub(crate) fn column(&self, at: impl Iterator<Item = u64>) -> ArrayRef {
        match self {
            Self::Index(_) => Arc::new(Int64Array::from_iter_values(at.map(|i| i as i64))),
            Self::Text(labels) => {
                Arc::new(StringViewArray::from_iter_values(at.map(|i| &labels[i as usize])))
            }
            Self::Numbers(labels) => {
                let label = |i| Some(labels[i as usize]).filter(|label| !label.is_nan());
                Arc::new(at.map(label).collect::<Float64Array>())
            }
            Self::Hours(labels) => Arc::new(TimestampMicrosecondArray::from_iter_values(
                at.map(|i| EPOCH_2024 + i64::from(labels[i as usize]) * 3_600_000_000),
            )),
        }
    }

    /// The dataset that stores the labels; `None` if the labels need no dataset.
    pub(crate) fn dataset(&self, name: &str) -> Option<TestDataset> {
        let metadata = |attrs: Value| json!({"dim_names": [name], "attrs": attrs});
        Some(match self {
            Self::Index(_) | Self::Text(_) => return None,
            Self::Numbers(labels) => {
                let data = labels.iter().flat_map(|n| n.to_le_bytes()).collect();
                let len = labels.len() as u64;
                TestDataset::new(name, F64, &[len], &[3], data).with_metadata(metadata(json!({})))
            }
            Self::Hours(labels) => {
                let data = labels.iter().flat_map(|n| n.to_le_bytes()).collect();
                let units = json!({"units": "hours since 2024-01-01"});
                let len = labels.len() as u64;
                TestDataset::new(name, I32, &[len], &[len], data).with_metadata(metadata(units))
            }
        })
    }

    /// A literal near the labels.
    pub(crate) fn literal(&self, rng: &mut StdRng) -> String {
        match self {
            Self::Index(_) => rng.random_range(-1..9).to_string(),
            Self::Text(_) => format!("'s{}'", rng.random_range(-4..10)),
            Self::Numbers(_) => (f64::from(rng.random_range(-20..40)) / 4.0).to_string(),
            Self::Hours(_) => {
                let hour = rng.random_range(-8..30);
                format!("TIMESTAMP '2024-01-01' + INTERVAL '{hour} hours'")
            }
        }
    }

    /// A predicate over this dimension alone.
    pub(crate) fn predicate(&self, name: &str, rng: &mut StdRng) -> String {
        let a = self.literal(rng);
        let b = self.literal(rng);
        let special = match self {
            Self::Index(_) => format!("{name} % 3 = 1"),
            Self::Text(_) => format!("{name} LIKE '%{}'", rng.random_range(0..5)),
            Self::Numbers(_) => format!("abs({name}) < {}", rng.random_range(0..4)),
            Self::Hours(_) => format!("date_part('hour', {name}) < {}", rng.random_range(0..24)),
        };
        let choices = [
            format!("{name} = {a}"),
            format!("{name} <> {a}"),
            format!("{name} < {a}"),
            format!("{name} >= {a}"),
            format!("{name} BETWEEN {a} AND {b}"),
            format!("{name} IN ({a}, {b})"),
            format!("NOT ({name} > {a})"),
            format!("({name} < {a} OR {name} = {b})"),
            format!("CASE WHEN {name} > {a} THEN true ELSE {name} < {b} END"),
            format!("{name} IS NOT NULL"),
            special,
        ];
        choices.choose(rng).unwrap().clone()
    }
}

/// One random array, as a file and as rows.
pub(crate) struct Case {
    pub(crate) axes: Vec<Axis>,
    pub(crate) file: TempTet,
    pub(crate) rows: RecordBatch,
    pub(crate) description: String,
    /// The greatest distance of a finite value from 0.
    pub(crate) magnitude: f64,
}

/// The values of an array, as bytes and as a column.
pub(crate) struct Values {
    /// The element type.
    pub(crate) tag: u32,
    /// The declared fill value.
    pub(crate) fill: Option<String>,
    /// The declared scale and offset, which the column has applied.
    pub(crate) packing: Option<(f64, f64)>,
    pub(crate) data: Vec<u8>,
    pub(crate) column: ArrayRef,
    pub(crate) magnitude: f64,
}

/// The name of the dimension of this axis.
pub(crate) fn name(axis: usize) -> String {
    format!("d{axis}")
}

impl Case {
    /// An array of at most four axes shorter than 8.
    pub(crate) fn random(rng: &mut StdRng) -> Self {
        let rank = rng.random_range(1..=4);
        let shape: Vec<u64> = (0..rank).map(|_| rng.random_range(1..8)).collect();
        let chunk: Vec<u64> = (0..rank).map(|_| rng.random_range(1..9)).collect();
        Self::of_shape(rng, &shape, &chunk, false)
    }

    /// An array of this shape. `wild` adds infinities and the extremes of integers to its values.
    pub(crate) fn of_shape(rng: &mut StdRng, shape: &[u64], chunk: &[u64], wild: bool) -> Self {
        let axes: Vec<Axis> = shape.iter().map(|&len| Axis::random(rng, len)).collect();
        Self::of_axes(rng, axes, shape, chunk, wild)
    }

    /// An array of this shape with these labels.
    pub(crate) fn of_axes(
        rng: &mut StdRng,
        axes: Vec<Axis>,
        shape: &[u64],
        chunk: &[u64],
        wild: bool,
    ) -> Self {
        let count = shape.iter().product::<u64>() as usize;
        let values = Values::random(rng, count, wild);
        Self::of_values(rng, axes, shape, chunk, values, None)
    }

    /// An array of two variables, `v` and `w`, in chunks of their own, whose columns have their names.
    pub(crate) fn of_two(rng: &mut StdRng, shape: &[u64], wild: bool) -> Self {
        let axes: Vec<Axis> = shape.iter().map(|&len| Axis::random(rng, len)).collect();
        let count = shape.iter().product::<u64>() as usize;
        let variables = ["v", "w"].map(|name| {
            let chunk = shape.iter().map(|len| rng.random_range(1..=*len)).collect();
            Variable { name, column: name, chunk, values: Values::random(rng, count, wild) }
        });
        Self::of_variables(rng, axes, shape, variables.into(), None)
    }

    /// An array of these values, in row-major order, with these zone maps.
    pub(crate) fn of_values(
        rng: &mut StdRng,
        axes: Vec<Axis>,
        shape: &[u64],
        chunk: &[u64],
        values: Values,
        zones: Option<Value>,
    ) -> Self {
        let variable = Variable { name: "v", column: "value", chunk: chunk.to_vec(), values };
        Self::of_variables(rng, axes, shape, vec![variable], zones)
    }

    fn of_variables(
        rng: &mut StdRng,
        axes: Vec<Axis>,
        shape: &[u64],
        variables: Vec<Variable>,
        zones: Option<Value>,
    ) -> Self {
        let rank = shape.len();
        let cells = positions(shape);
        let magnitude = variables.iter().map(|it| it.values.magnitude).fold(0.0, f64::max);
        let mut description = format!("shape {shape:?}");
        for Variable { name, chunk, values, .. } in &variables {
            let Values { tag, fill, packing, .. } = values;
            description += &format!(
                ", {name}: chunk {chunk:?}, element type {tag}, fill {fill:?}, packing {packing:?}"
            );
        }
        let mut columns: Vec<ArrayRef> = axes
            .iter()
            .enumerate()
            .map(|(axis, labels)| labels.column(cells.iter().map(|cell| cell[axis])))
            .collect();
        columns.extend(variables.iter().map(|it| Arc::clone(&it.values.column)));
        let of_variables = variables.iter().map(|it| it.column.to_owned());
        let names: Vec<String> = (0..rank).map(name).chain(of_variables).collect();
        let mut datasets: Vec<TestDataset> =
            variables.into_iter().map(|it| it.dataset(rng, &axes, shape)).collect();
        datasets.extend(
            axes.iter().enumerate().filter_map(|(axis, labels)| labels.dataset(&name(axis))),
        );
        let shuffle = rng.random_bool(0.5).then(|| StdRng::seed_from_u64(rng.random()));
        let version = if zones.is_some() { 2 } else { rng.random_range(1..=2) };
        let layout = Layout { shuffle, history_version: Some(version), zones, ..Layout::default() };

        let fields: Vec<Field> = names
            .into_iter()
            .zip(&columns)
            .map(|(name, column)| Field::new(name, column.data_type().clone(), true))
            .collect();
        let rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
        let file = TempTet::new(&tet_bytes(&datasets, &layout));
        Self { axes, file, rows, description, magnitude }
    }

    /// A session over the same rows in memory.
    pub(crate) fn in_memory(&self) -> SessionContext {
        let ctx = reducing(1, 8192);
        let table = MemTable::try_new(self.rows.schema(), vec![vec![self.rows.clone()]]).unwrap();
        ctx.register_table("t", Arc::new(table)).unwrap();
        ctx
    }
}

/// A variable of an array.
struct Variable {
    /// The name of its dataset.
    name: &'static str,
    /// The name of its column.
    column: &'static str,
    chunk: Vec<u64>,
    values: Values,
}

impl Variable {
    fn dataset(self, rng: &mut StdRng, axes: &[Axis], shape: &[u64]) -> TestDataset {
        let Values { tag, fill, packing, data, .. } = self.values;
        let rank = shape.len();
        let mut metadata = Map::new();
        metadata.insert("dim_names".into(), (0..rank).map(name).collect());
        let mut attributes = Map::new();
        if let Some(fill) = fill {
            attributes.insert("_FillValue".into(), fill.into());
        }
        if let Some((scale, offset)) = packing {
            attributes.insert("scale_factor".into(), scale.to_string().into());
            attributes.insert("add_offset".into(), offset.to_string().into());
        }
        metadata.insert("attrs".into(), attributes.into());
        let text: Map<String, Value> = axes
            .iter()
            .enumerate()
            .filter_map(|(axis, labels)| match labels {
                Axis::Text(labels) => Some((name(axis), json!({"labels": labels}))),
                _ => None,
            })
            .collect();
        metadata.insert("coords".into(), text.into());
        TestDataset::new(self.name, tag, shape, &self.chunk, data)
            .with_zstd(rng.random_bool(0.5))
            .with_metadata(metadata.into())
    }
}

impl Values {
    /// Small numbers of any type, some of them NULL.
    fn random(rng: &mut StdRng, count: usize, wild: bool) -> Self {
        let tag = rng.random_range(1..=10);
        // Many files declare NaN as their fill value, or nothing at all.
        let nan_only = is_float(tag) && rng.random_bool(0.5);
        let fill = match (nan_only, is_unsigned(tag)) {
            (true, _) => rng.random_bool(0.5).then_some("NaN"),
            (false, true) => Some("99"),
            (false, false) => Some("-99"),
        };
        let (data, column, magnitude) = random_values(rng, tag, count, wild, nan_only);
        let packing = (!is_float(tag) && rng.random_bool(0.4)).then(|| {
            let scale = *[0.5, 0.1, -0.25].choose(rng).unwrap();
            (scale, *[0.0, 10.0, -273.15].choose(rng).unwrap())
        });
        let (column, magnitude) = match packing {
            Some((scale, offset)) => {
                (unpacked(&column, scale, offset), magnitude * scale.abs() + offset.abs())
            }
            None => (column, magnitude),
        };
        Self { tag, fill: fill.map(Into::into), packing, data, column, magnitude }
    }
}

fn is_float(tag: u32) -> bool {
    matches!(tag, 1 | 2 | 9)
}

/// The values that packed integers stand for.
fn unpacked(packed: &ArrayRef, scale: f64, offset: f64) -> ArrayRef {
    let packed = cast(packed, &DataType::Float64).unwrap();
    let packed = packed.as_primitive::<Float64Type>();
    Arc::new(packed.unary::<_, Float64Type>(|value| value * scale + offset))
}

pub(crate) fn is_unsigned(tag: u32) -> bool {
    matches!(tag, 5 | 6 | 8 | 10)
}

/// Returns the bytes of small random numbers, their column, and the greatest distance from 0. Some
/// of the numbers are NaN or the fill value, which are NULL in the column; with `nan_only`, only NaN.
fn random_values(
    rng: &mut StdRng,
    tag: u32,
    count: usize,
    wild: bool,
    nan_only: bool,
) -> (Vec<u8>, ArrayRef, f64) {
    let nulls = *[0.0, 0.1, 0.9].choose(rng).unwrap();
    macro_rules! of {
        ($t:ty, $from:expr, $extremes:expr, $nan:expr) => {{
            let number = |rng: &mut StdRng| {
                let number: i32 = rng.random_range(if is_unsigned(tag) { 0..13 } else { -6..7 });
                let extremes: &[_] = &$extremes;
                match extremes.choose(rng) {
                    Some(&extreme) if wild && rng.random_bool(0.05) => extreme,
                    _ => $from(number),
                }
            };
            let fill = $from(if is_unsigned(tag) { 99 } else { -99 });
            let nan: Option<_> = $nan;
            let (mut bytes, mut shown, mut magnitude) = (Vec::new(), Vec::new(), 0.0_f64);
            for _ in 0..count {
                let null = rng.random_bool(nulls);
                let value = match nan {
                    _ if !null => number(rng),
                    Some(nan) if nan_only || rng.random_bool(0.5) => nan,
                    _ => fill,
                };
                bytes.extend_from_slice(&value.to_le_bytes());
                shown.push((!null).then_some(value));
                let distance = format!("{value:?}").parse::<f64>().unwrap().abs();
                if distance.is_finite() {
                    magnitude = magnitude.max(distance);
                }
            }
            (bytes, column::<$t>(shown), magnitude)
        }};
    }
    use half::f16;
    match tag {
        1 => of!(
            Float32Type,
            |n| n as f32,
            [f32::INFINITY, f32::NEG_INFINITY, -0.0, 0.1, 1e9],
            Some(f32::NAN)
        ),
        2 => of!(
            Float64Type,
            f64::from,
            [f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.1, 1e9],
            Some(f64::NAN)
        ),
        3 => of!(Int32Type, |n: i32| n, [i32::MIN, i32::MAX], None),
        4 => of!(Int64Type, i64::from, [i64::MIN, i64::MAX, 1 << 53], None),
        5 => of!(UInt8Type, |n| n as u8, [u8::MAX], None),
        6 => of!(UInt16Type, |n| n as u16, [u16::MAX], None),
        7 => of!(Int16Type, |n| n as i16, [i16::MIN, i16::MAX], None),
        8 => of!(UInt32Type, |n| n as u32, [u32::MAX], None),
        9 => {
            of!(Float16Type, |n| f16::from_f32(n as f32), [f16::INFINITY, f16::MAX], Some(f16::NAN))
        }
        _ => of!(UInt64Type, |n| n as u64, [u64::MAX, (1 << 53) + 1], None),
    }
}

fn column<T: ArrowPrimitiveType>(values: Vec<Option<T::Native>>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<PrimitiveArray<T>>())
}
