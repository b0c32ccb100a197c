//! Arrays independent of any format: labels and numbers, and the rows of their tables, made cell by cell.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, Float32Array, Float64Array, Int32Array, Int64Array, RecordBatch, StringViewArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};

use super::format::Capabilities;
use crate::support::positions;

/// The labels of a dimension; no two are the same.
#[derive(Debug, Clone)]
pub(crate) enum Labels {
    /// No labels: the index, below this length.
    Index(u64),
    Integers(Vec<i64>),
    /// Hours since 1970.
    Hours(Vec<i64>),
    Floats(Vec<f64>),
    /// Floats of single precision. Doubles hold them exactly, so that both precisions compare alike.
    Singles(Vec<f32>),
    Text(Vec<String>),
}

impl Labels {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Index(len) => *len,
            Self::Integers(all) | Self::Hours(all) => all.len() as u64,
            Self::Floats(all) => all.len() as u64,
            Self::Singles(all) => all.len() as u64,
            Self::Text(all) => all.len() as u64,
        }
    }

    /// Whether these are the index, or integers or hours without gaps.
    pub(crate) fn count_up(&self) -> bool {
        match self {
            Self::Index(_) => true,
            Self::Integers(all) | Self::Hours(all) => all.windows(2).all(|it| it[1] == it[0] + 1),
            Self::Floats(_) | Self::Singles(_) | Self::Text(_) => false,
        }
    }

    /// The labels of a part of the axis; an index begins at 0 again.
    fn part(&self, from: usize, to: usize) -> Self {
        match self {
            Self::Index(_) => Self::Index((to - from) as u64),
            Self::Integers(all) => Self::Integers(all[from..to].to_vec()),
            Self::Hours(all) => Self::Hours(all[from..to].to_vec()),
            Self::Floats(all) => Self::Floats(all[from..to].to_vec()),
            Self::Singles(all) => Self::Singles(all[from..to].to_vec()),
            Self::Text(all) => Self::Text(all[from..to].to_vec()),
        }
    }

    fn column(&self, at: impl Iterator<Item = usize>, hours: &DataType) -> ArrayRef {
        match self {
            Self::Index(_) => Arc::new(Int64Array::from_iter_values(at.map(|at| at as i64))),
            Self::Integers(all) => Arc::new(Int64Array::from_iter_values(at.map(|at| all[at]))),
            Self::Hours(all) => {
                let seconds = Int64Array::from_iter_values(at.map(|at| all[at] * 3600));
                let seconds = cast(&seconds, &DataType::Timestamp(TimeUnit::Second, None)).unwrap();
                cast(&seconds, hours).unwrap()
            }
            Self::Floats(all) => Arc::new(Float64Array::from_iter_values(at.map(|at| all[at]))),
            Self::Singles(all) => Arc::new(Float32Array::from_iter_values(at.map(|at| all[at]))),
            Self::Text(all) => Arc::new(StringViewArray::from_iter_values(at.map(|at| &all[at]))),
        }
    }
}

/// One axis of an array.
#[derive(Debug, Clone)]
pub(crate) struct Axis {
    pub(crate) name: &'static str,
    pub(crate) labels: Labels,
    /// The length of a whole chunk.
    pub(crate) chunk: u64,
}

/// The type of stored numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Element {
    F32,
    F64,
    I32,
    I64,
}

/// A stored cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Cell {
    /// This integer; for floats, a quarter of it.
    Number(i32),
    /// NaN, which is NULL in the table.
    Nan,
    /// The declared fill value, which is NULL in the table.
    Fill,
}

/// The fill value of integers; the fill value of floats is a quarter of it.
const FILL: i32 = -40_000;

impl Element {
    pub(crate) fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }

    /// The stored bytes, little-endian.
    pub(crate) fn bytes(self, cell: Cell) -> Vec<u8> {
        let number = match cell {
            Cell::Number(number) => number,
            Cell::Fill => FILL,
            Cell::Nan if self == Self::F32 => return f32::NAN.to_le_bytes().to_vec(),
            Cell::Nan => return f64::NAN.to_le_bytes().to_vec(),
        };
        match self {
            Self::F32 => (number as f32 / 4.0).to_le_bytes().to_vec(),
            Self::F64 => (f64::from(number) / 4.0).to_le_bytes().to_vec(),
            Self::I32 => number.to_le_bytes().to_vec(),
            Self::I64 => i64::from(number).to_le_bytes().to_vec(),
        }
    }

    /// The declared fill value as text.
    pub(crate) fn fill(self) -> String {
        (if self.is_float() { FILL / 4 } else { FILL }).to_string()
    }

    /// The column of these cells in a table.
    fn column(self, cells: &[Cell]) -> ArrayRef {
        let number = |cell: &Cell| match cell {
            Cell::Number(number) => Some(*number),
            Cell::Nan | Cell::Fill => None,
        };
        let numbers = cells.iter().map(number);
        match self {
            Self::F32 => {
                let floats = numbers.map(|it| it.map(|it| it as f32 / 4.0));
                Arc::new(floats.collect::<Float32Array>())
            }
            Self::F64 => {
                let floats = numbers.map(|it| it.map(|it| f64::from(it) / 4.0));
                Arc::new(floats.collect::<Float64Array>())
            }
            Self::I32 => Arc::new(numbers.collect::<Int32Array>()),
            Self::I64 => Arc::new(numbers.map(|it| it.map(i64::from)).collect::<Int64Array>()),
        }
    }
}

/// The values of all cells, in row-major order.
#[derive(Debug, Clone)]
pub(crate) struct Values {
    /// The name of the column; `value` if there is only one.
    pub(crate) name: &'static str,
    pub(crate) element: Element,
    pub(crate) cells: Vec<Cell>,
}

impl Values {
    /// The stored bytes of these cells.
    pub(crate) fn bytes(&self, places: &[usize]) -> Vec<u8> {
        places.iter().flat_map(|place| self.element.bytes(self.cells[*place])).collect()
    }
}

/// An array.
#[derive(Debug, Clone)]
pub(crate) struct Logical {
    /// The name of the dataset, and of its file or folder without suffix.
    pub(crate) name: &'static str,
    pub(crate) axes: Vec<Axis>,
    pub(crate) values: Vec<Values>,
}

/// One chunk of an array, clipped at the end of the array.
#[derive(Debug, Clone)]
pub(crate) struct Chunk {
    /// Its coordinates in the chunk grid.
    pub(crate) at: Vec<u64>,
    /// The indices of its first cell.
    pub(crate) start: Vec<u64>,
    /// Its length along each axis.
    pub(crate) shape: Vec<u64>,
    /// The places of its cells in the array, in row-major order.
    pub(crate) places: Vec<usize>,
}

impl Logical {
    pub(crate) fn shape(&self) -> Vec<u64> {
        self.axes.iter().map(|axis| axis.labels.len()).collect()
    }

    /// The array as the format can hold it: labels that it cannot hold become the index, and it may have chunks of its
    /// own.
    pub(crate) fn held_by(&self, capabilities: &Capabilities) -> Self {
        let mut array = self.clone();
        for axis in &mut array.axes {
            if !(capabilities.holds)(&axis.labels) {
                axis.labels = Labels::Index(axis.labels.len());
            }
        }
        (capabilities.divides)(&mut array.axes);
        array
    }

    /// The chunks in row-major order.
    pub(crate) fn chunks(&self) -> Vec<Chunk> {
        let shape = self.shape();
        let counts: Vec<u64> =
            self.axes.iter().map(|axis| axis.labels.len().div_ceil(axis.chunk)).collect();
        let chunk = |at: Vec<u64>| {
            let start: Vec<u64> = at.iter().zip(&self.axes).map(|(at, it)| at * it.chunk).collect();
            let extents: Vec<u64> =
                (0..shape.len()).map(|d| self.axes[d].chunk.min(shape[d] - start[d])).collect();
            let place = |cell: Vec<u64>| {
                (0..shape.len()).fold(0, |place, d| place * shape[d] + start[d] + cell[d]) as usize
            };
            let places = positions(&extents).into_iter().map(place).collect();
            Chunk { at, start, shape: extents, places }
        };
        positions(&counts).into_iter().map(chunk).collect()
    }

    /// Whether all cells of a chunk are fill, so that a writer may leave it out.
    pub(crate) fn is_all_fill(&self, chunk: &Chunk) -> bool {
        let is_fill =
            |values: &Values| chunk.places.iter().all(|at| values.cells[*at] == Cell::Fill);
        self.values.iter().all(is_fill)
    }

    pub(crate) fn has_nulls(&self) -> bool {
        let is_null = |cell: &Cell| !matches!(cell, Cell::Number(_));
        self.values.iter().any(|values| values.cells.iter().any(is_null))
    }

    /// The rows that a table of the array has, in row-major order.
    pub(crate) fn rows(&self, hours: &DataType) -> RecordBatch {
        let cells = positions(&self.shape());
        let labels = self.axes.iter().enumerate().map(|(d, axis)| {
            let column = axis.labels.column(cells.iter().map(|cell| cell[d] as usize), hours);
            (Field::new(axis.name, column.data_type().clone(), false), column)
        });
        let values = self.values.iter().map(|values| {
            let column = values.element.column(&values.cells);
            (Field::new(values.name, column.data_type().clone(), true), column)
        });
        let (fields, columns): (Vec<Field>, Vec<ArrayRef>) = labels.chain(values).unzip();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
    }

    /// The number of the chunk of each row.
    pub(crate) fn chunk_of_rows(&self) -> Int64Array {
        let mut numbers = vec![0; self.values[0].cells.len()];
        for (number, chunk) in (0..).zip(self.chunks()) {
            chunk.places.iter().for_each(|place| numbers[*place] = number);
        }
        numbers.into()
    }

    /// The array cut in two along its first axis, at the border of a chunk.
    pub(crate) fn halves(&self) -> [Self; 2] {
        let len = self.axes[0].labels.len();
        let cut = self.axes[0].chunk.min(len - 1) as usize;
        let row = self.values[0].cells.len() / len as usize;
        [(0, cut), (cut, len as usize)].map(|(from, to)| {
            let mut half = self.clone();
            half.axes[0].labels = self.axes[0].labels.part(from, to);
            for values in &mut half.values {
                values.cells = values.cells[from * row..to * row].to_vec();
            }
            half
        })
    }

    /// The names of the dimensions, which must all differ.
    pub(crate) fn dimensions(&self) -> Vec<&'static str> {
        let names: Vec<_> = self.axes.iter().map(|axis| axis.name).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
        names
    }
}
