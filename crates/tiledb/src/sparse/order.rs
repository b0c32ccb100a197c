//! The global order of the cells of a sparse array, in which every fragment has its cells.
//!
//! ```text
//!   row- and column-major   tile on each axis in tile order, then coordinates in cell order
//!   Hilbert                 number on the curve, then coordinates in row-major order
//! ```
//!
//! A dimension without a tile extent, or of text, has no tile. Coordinates become unsigned numbers of the
//! same order, so that one comparison fits all types.

use bytes::Bytes;

use super::hilbert;
use crate::bytes::{
    ArraySchema, CellOrder, Coordinates, Datatype, DimensionDomain, DimensionSchema, RTree,
};
use gridfusion_core::array::{CellKeys, KeyColumn, StoredNumbers};
use gridfusion_core::format::ElementType;
use gridfusion_core::grid::AxisSelection;
use gridfusion_core::tile::Tile;
use gridfusion_core::{Error, Result};

/// The order of the cells of one array.
#[derive(Debug, Clone)]
pub(crate) struct GlobalOrder {
    dimensions: Vec<DimensionSchema>,
    tile_order: CellOrder,
    cell_order: CellOrder,
}

/// The top bit, which makes signed numbers sort like unsigned ones.
const SIGN: u64 = 1 << 63;

impl GlobalOrder {
    pub(crate) fn new(schema: &ArraySchema) -> Self {
        let dimensions = schema.dimensions.clone();
        Self { dimensions, tile_order: schema.tile_order, cell_order: schema.cell_order }
    }

    /// Returns the axes in `order`, the one that varies slowest first.
    fn axes(&self, order: CellOrder) -> Vec<usize> {
        let axes = 0..self.dimensions.len();
        if order == CellOrder::ColumnMajor { axes.rev().collect() } else { axes.collect() }
    }

    /// Returns the dimensions by which the cells in a box are sorted; `None` if they are sorted in another
    /// way.
    ///
    /// That is so if the box spans several tiles at most on the axis that varies slowest: the tiles then
    /// follow one another like the coordinates on that axis.
    pub(super) fn sorted_by(&self, bounds: &RTree) -> Option<Vec<usize>> {
        let axes = match self.cell_order {
            CellOrder::RowMajor | CellOrder::ColumnMajor => self.axes(self.cell_order),
            _ => return None,
        };
        let is_one_tile = |&axis: &usize| {
            let dimension = &self.dimensions[axis];
            let (least, greatest) = (&bounds.least[axis], &bounds.greatest[axis]);
            match (least, greatest) {
                (Coordinates::Fixed(least), Coordinates::Fixed(greatest)) => {
                    let of = |all: &[[u8; 8]]| {
                        let bytes = all.iter().flat_map(|it| &it[..size(dimension)]).copied();
                        tile_numbers(dimension, &bytes.collect::<Vec<u8>>())
                    };
                    of(least) == of(greatest)
                }
                _ => true,
            }
        };
        // Writers sort texts by signed bytes, which is SQL's order for ASCII only.
        let is_text = |axis: &usize| self.dimensions[*axis].domain == DimensionDomain::Text;
        let sorted = || axes.iter().copied().take_while(|axis| !is_text(axis)).collect();
        axes[1..].iter().all(is_one_tile).then(sorted)
    }

    /// Returns the keys of cells with these coordinates, one tile per dimension.
    pub(crate) fn keys(&self, coordinates: &[Tile]) -> Result<CellKeys> {
        if coordinates.len() != self.dimensions.len() {
            return Err(Error::internal("keys of cells without all coordinates"));
        }
        let mut columns = vec![];
        let cells = if self.cell_order == CellOrder::Hilbert {
            columns.push(self.hilbert_numbers(coordinates)?);
            self.axes(CellOrder::RowMajor)
        } else {
            for axis in self.axes(self.tile_order) {
                columns.extend(tile_keys(&self.dimensions[axis], &coordinates[axis]));
            }
            self.axes(self.cell_order)
        };
        for axis in cells {
            columns.push(coordinate_keys(&self.dimensions[axis], &coordinates[axis])?);
        }
        Ok(CellKeys::new(columns))
    }

    /// Returns a key per rectangle that is not greater than those of the cells in it: the key of its least
    /// corner. `None` for the Hilbert curve, which may begin anywhere in a rectangle.
    pub(super) fn least_keys(&self, bounds: &RTree) -> Result<Option<CellKeys>> {
        if self.cell_order == CellOrder::Hilbert {
            return Ok(None);
        }
        let corner = |(dimension, least): (&DimensionSchema, &Coordinates)| match least {
            Coordinates::Fixed(all) => {
                let width = size(dimension);
                let bytes: Vec<u8> = all.iter().flat_map(|it| &it[..width]).copied().collect();
                Ok(Tile::fixed(bytes.into(), width))
            }
            Coordinates::Text(all) => {
                let mut spans = Vec::with_capacity(all.len());
                let mut content = vec![];
                for text in all {
                    let start = content.len() as u64;
                    content.extend_from_slice(text);
                    spans.push(start..content.len() as u64);
                }
                Tile::variable(spans, content.into())
            }
        };
        let corners: Vec<Tile> =
            self.dimensions.iter().zip(&bounds.least).map(corner).collect::<Result<_>>()?;
        self.keys(&corners).map(Some)
    }

    /// Returns the numbers of cells on the Hilbert curve.
    fn hilbert_numbers(&self, coordinates: &[Tile]) -> Result<KeyColumn> {
        let bits = hilbert::bits_per_axis(self.dimensions.len());
        let axes = self.dimensions.iter().zip(coordinates);
        let positions = axes.map(|(dimension, tile)| positions(dimension, tile, bits));
        let mut positions: Vec<Vec<u64>> = positions.collect::<Result<_>>()?;
        Ok(KeyColumn::Numbers(hilbert::numbers(&mut positions, bits)))
    }
}

fn size(dimension: &DimensionSchema) -> usize {
    dimension.datatype.size() as usize
}

/// Returns whole numbers as unsigned numbers of the same order and the same differences.
fn integers(datatype: Datatype, bytes: &[u8]) -> Vec<u64> {
    StoredNumbers::new(Bytes::copy_from_slice(bytes), element(datatype)).all()
}

/// Calls `each` with floating-point numbers as doubles.
fn doubles(datatype: Datatype, bytes: &[u8], each: impl Fn(f64) -> u64) -> Vec<u64> {
    if datatype == Datatype::Float32 {
        let words = bytes.as_chunks::<4>().0.iter();
        return words.map(|word| each(f64::from(f32::from_le_bytes(*word)))).collect();
    }
    bytes.as_chunks::<8>().0.iter().map(|word| each(f64::from_le_bytes(*word))).collect()
}

/// Returns how the numbers of a type are compared.
fn element(datatype: Datatype) -> ElementType {
    match (datatype.size(), datatype.is_unsigned()) {
        _ if datatype == Datatype::Float32 => ElementType::F32,
        _ if datatype == Datatype::Float64 => ElementType::F64,
        (1, true) => ElementType::U8,
        (2, true) => ElementType::U16,
        (4, true) => ElementType::U32,
        (_, true) => ElementType::U64,
        (1, false) => ElementType::I8,
        (2, false) => ElementType::I16,
        (4, false) => ElementType::I32,
        (_, false) => ElementType::I64,
    }
}

/// Returns the part of the keys that is the coordinate of one dimension.
fn coordinate_keys(dimension: &DimensionSchema, coordinates: &Tile) -> Result<KeyColumn> {
    let datatype = dimension.datatype;
    Ok(match dimension.domain {
        DimensionDomain::Integer { .. } | DimensionDomain::Float { .. } => {
            KeyColumn::Stored(StoredNumbers::new(coordinates.shared_bytes(), element(datatype)))
        }
        DimensionDomain::Text => {
            let (spans, content) = texts(coordinates)?;
            KeyColumn::Texts { spans, content: content.clone() }
        }
    })
}

fn texts(coordinates: &Tile) -> Result<(Vec<std::ops::Range<u64>>, &Bytes)> {
    coordinates.spans(&[AxisSelection::all(coordinates.cells() as u64)])
}

/// Returns the part of the keys that is the number of the tile on one dimension; `None` for a dimension without
/// tiles, or with one.
///
/// Numbers ascend with coordinates, so two divisions tell whether all cells lie in one tile, as most do.
fn tile_keys(dimension: &DimensionSchema, coordinates: &Tile) -> Option<KeyColumn> {
    tile_numbers(dimension, &[])?;
    let (bytes, width) = (coordinates.bytes(), size(dimension));
    let all = StoredNumbers::new(coordinates.shared_bytes(), element(dimension.datatype));
    let (mut least, mut greatest) = ((u64::MAX, 0), (0, 0));
    let mut cell = 0;
    all.for_each(0..all.len(), |number| {
        least = least.min((number, cell));
        greatest = greatest.max((number, cell));
        cell += 1;
    });
    let one = |cell: usize| bytes.get(cell * width..(cell + 1) * width).unwrap_or_default();
    let is_nan = |cell: usize| dimension.datatype.is_float() && holds_nan(dimension, one(cell));
    let tile = |cell: usize| tile_numbers(dimension, one(cell)).unwrap_or_default();
    match (tile(least.1).first(), tile(greatest.1).first()) {
        (Some(first), Some(last)) if first == last && !is_nan(least.1) && !is_nan(greatest.1) => {
            Some(KeyColumn::Repeated { number: *first, cells: all.len() })
        }
        _ => tile_numbers(dimension, bytes).map(KeyColumn::Numbers),
    }
}

/// Whether a floating-point coordinate is NaN, which has no tile.
fn holds_nan(dimension: &DimensionSchema, bytes: &[u8]) -> bool {
    doubles(dimension.datatype, bytes, |number| number.is_nan().into()).contains(&1)
}

/// Returns the number of the tile that holds each coordinate of a dimension; `None` if the dimension has no
/// tiles, or only one.
fn tile_numbers(dimension: &DimensionSchema, bytes: &[u8]) -> Option<Vec<u64>> {
    let datatype = dimension.datatype;
    match dimension.domain {
        DimensionDomain::Integer { low, high, extent: Some(extent) } if high - low >= extent => {
            // Differences of whole numbers fit an unsigned number of the same width.
            let first = integers(datatype, &low.to_le_bytes()[..size(dimension)]);
            let first = first.first().copied().unwrap_or_default();
            let extent = u64::try_from(extent).ok()?;
            let mut numbers = integers(datatype, bytes);
            numbers.iter_mut().for_each(|number| *number = number.wrapping_sub(first) / extent);
            Some(numbers)
        }
        // The arithmetic is that of the dimension's type, as in the writer.
        DimensionDomain::Float { low, extent: Some(extent), .. } => {
            if datatype == Datatype::Float32 {
                let (low, extent) = (low as f32, extent as f32);
                let words = bytes.as_chunks::<4>().0.iter();
                let tile = |word: &[u8; 4]| ((f32::from_le_bytes(*word) - low) / extent) as u64;
                return Some(words.map(tile).collect());
            }
            Some(doubles(datatype, bytes, |number| ((number - low) / extent) as u64))
        }
        _ => None,
    }
}

/// Returns the position of each coordinate on an axis of a cube of 2^bits positions.
fn positions(dimension: &DimensionSchema, coordinates: &Tile, bits: u32) -> Result<Vec<u64>> {
    let most = (1_u64 << bits) - 1;
    // With 63 bits, the greatest position is not a double, and rounds up to one that is too great.
    let scaled = |offset: f64, length: f64| (((offset / length) * most as f64) as u64).min(most);
    let (datatype, bytes) = (dimension.datatype, coordinates.bytes());
    Ok(match dimension.domain {
        DimensionDomain::Integer { low, high, .. } => {
            // The writer converts each number to a double before it subtracts.
            let (first, length) = (low as f64, high as f64 - low as f64);
            let double = |number: u64| match datatype.is_unsigned() {
                true => number as f64,
                false => (number ^ SIGN).cast_signed() as f64,
            };
            let mut numbers = integers(datatype, bytes);
            numbers.iter_mut().for_each(|number| *number = scaled(double(*number) - first, length));
            numbers
        }
        DimensionDomain::Float { low, high, .. } => {
            doubles(datatype, bytes, |number| scaled(number - low, high - low))
        }
        DimensionDomain::Text => {
            let (spans, content) = texts(coordinates)?;
            let position = |span: &std::ops::Range<u64>| {
                let text = &content[span.start as usize..span.end as usize];
                let mut first = [0; 8];
                let len = text.len().min(first.len());
                first[..len].copy_from_slice(&text[..len]);
                u64::from_be_bytes(first).checked_shr(64 - bits).unwrap_or(0)
            };
            spans.iter().map(position).collect()
        }
    })
}
