//! The files of a fragment of a sparse array: its rows in global order, cut into data tiles.
//!
//! ```text
//!   rows ──▶ global order ──▶ tiles of `capacity` rows ──▶ aI.tdb, dI.tdb, t.tdb, dt.tdb, dci.tdb
//!                               └─▶ bounds ──▶ R-tree ──▶ __fragment_metadata.tdb
//! ```

use std::cmp::Ordering;

use rand::rngs::StdRng;

use crate::support::sparse_writer::{
    COLUMN_MAJOR, Coordinate, HILBERT, Row, SparseArray, SparseDimension, SparseFragment,
    SparseSchema, compare, range_bytes,
};
use crate::support::tiledb_statistics::{Block, blocks_of_statistics, float, no_statistics, whole};
use crate::support::tiledb_tiles::{Column, FieldMetadata, metadata_file};
use crate::support::tiledb_writer::{
    ASCII, CHAR, Cell, FLOAT32, FLOAT64, Files, Filters, TestAttribute, TestStatistics, UINT64,
    words,
};

/// The nodes below a node of an R-tree.
const FANOUT: usize = 10;

/// A stored field of a fragment.
struct Field {
    /// The beginning of its files' names.
    stem: String,
    /// Its type and filters; only attributes have names and fill values.
    stored: TestAttribute,
    source: Source,
}

/// The part of a row that a field stores.
#[derive(Clone, Copy)]
enum Source {
    Attribute(usize),
    Dimension(usize),
    Time,
    DeletionTime,
    /// The place of the deletion among the processed ones.
    DeletionPlace,
}

impl Source {
    fn cell(self, array: &SparseArray, fragment: &SparseFragment, row: &Row) -> Cell {
        let deletion = row.deletion;
        match self {
            Self::Attribute(number) => row.cells[number].clone(),
            Self::Dimension(number) => Some(row.coordinates[number].clone()),
            Self::Time => Some(words([row.time])),
            // The greatest number means that the row is not deleted.
            Self::DeletionTime => {
                Some(words([deletion.map_or(u64::MAX, |it| array.deletions[it].time)]))
            }
            Self::DeletionPlace => {
                let place = |it: usize| fragment.processed.iter().position(|at| *at == it).unwrap();
                Some(words([deletion.map_or(u64::MAX, |it| place(it) as u64)]))
            }
        }
    }
}

/// The files of a fragment, by their names.
pub(crate) fn fragment_files(
    array: &SparseArray,
    fragment: &SparseFragment,
    rng: &mut StdRng,
) -> Files {
    let schema = &array.schemas[fragment.schema];
    let rows = in_global_order(schema, &fragment.rows);
    let tiles: Vec<&[&Row]> = rows.chunks(schema.capacity as usize).collect();
    let fields = fields(schema, fragment);
    let mut columns = vec![];
    for field in &fields {
        let mut column = Column::default();
        for tile in &tiles {
            let all: Vec<Cell> =
                tile.iter().map(|row| field.source.cell(array, fragment, row)).collect();
            let cells: Vec<Option<&Cell>> = all.iter().map(Some).collect();
            column.add_tile(&field.stored, [schema.offsets, schema.validity], &cells, rng);
        }
        columns.push(column);
    }
    let mut files = Files::new();
    for (field, column) in fields.iter().zip(&columns) {
        files.extend(column.named_files(&field.stem));
    }
    let mut described: Vec<FieldMetadata<'_>> = vec![];
    for (field, column) in fields.iter().zip(&columns) {
        let statistics = match field.source {
            Source::Dimension(_) => no_statistics(),
            _ => statistics(&field.stored, &column.written, fragment.statistics, rng),
        };
        described.push((Some(column), statistics));
    }
    // A slot between attributes and dimensions is unused.
    described.insert(schema.attributes.len(), (None, no_statistics()));
    let head = footer(schema, fragment, &tiles);
    let processed = (fragment.version >= 16).then(|| processed(array, fragment));
    let metadata = metadata_file(head, rtree(schema, &tiles), &described, processed);
    files.insert("__fragment_metadata.tdb".into(), metadata);
    files
}

/// All fields, in the order of the metadata.
fn fields(schema: &SparseSchema, fragment: &SparseFragment) -> Vec<Field> {
    let mut fields = vec![];
    for (number, attribute) in schema.attributes.iter().enumerate() {
        let source = Source::Attribute(number);
        fields.push(Field { stem: format!("a{number}"), stored: attribute.clone(), source });
    }
    for (number, dimension) in schema.dimensions.iter().enumerate() {
        let filters = match dimension.filters {
            Filters::None => schema.coordinates,
            filters => filters,
        };
        let (stored, source) = (plain(dimension.code, filters), Source::Dimension(number));
        fields.push(Field { stem: format!("d{number}"), stored, source });
    }
    let mut add = |stem: &str, source: Source| {
        let stored = plain(UINT64, schema.coordinates);
        fields.push(Field { stem: stem.into(), stored, source });
    };
    if fragment.keeps_times {
        add("t", Source::Time);
    }
    if fragment.has_deletions {
        add("dt", Source::DeletionTime);
        add("dci", Source::DeletionPlace);
    }
    fields
}

/// A field that is no attribute.
fn plain(code: u8, filters: Filters) -> TestAttribute {
    TestAttribute {
        name: String::new(),
        code,
        values: (code != ASCII).then_some(1),
        nullable: false,
        fill: vec![],
        fill_valid: false,
        filters,
    }
}

/// The blocks of statistics of a field. In sparse arrays, the bounds of text are right.
fn statistics(
    field: &TestAttribute,
    tiles: &[Vec<Cell>],
    statistics: TestStatistics,
    rng: &mut StdRng,
) -> [Block; 4] {
    let [mins, maxs, sums, nulls] = blocks_of_statistics(field, tiles, statistics, rng);
    if statistics != TestStatistics::Right || field.values.is_some() {
        return [mins, maxs, sums, nulls];
    }
    match field.code {
        ASCII | CHAR => [text_bounds(tiles, false), text_bounds(tiles, true), sums, nulls],
        // TileDB stores no bounds of other types.
        _ => [vec![0; 16], vec![0; 16], sums, nulls],
    }
}

/// The block of the least or greatest text of each tile.
fn text_bounds(tiles: &[Vec<Cell>], greatest: bool) -> Block {
    let mut starts: Vec<u64> = vec![];
    let mut texts: Vec<u8> = vec![];
    for tile in tiles {
        starts.push(texts.len() as u64);
        let cells = tile.iter().flatten();
        let bound = if greatest { cells.max() } else { cells.min() };
        // The bound of NULLs means nothing.
        texts.extend(bound.cloned().unwrap_or_else(|| b"?".to_vec()));
    }
    let lens = words([8 * starts.len() as u64, texts.len() as u64]);
    [lens, words(starts), texts].concat()
}

/// The footer of a fragment, up to its lists of fields.
fn footer(schema: &SparseSchema, fragment: &SparseFragment, tiles: &[&[&Row]]) -> Vec<u8> {
    let name = schema.name();
    let mut footer = fragment.version.to_le_bytes().to_vec();
    footer.extend(words([name.len() as u64]));
    footer.extend(name.as_bytes());
    footer.extend([0, 0]); // sparse, with a domain
    let all: Vec<&Row> = fragment.rows.iter().collect();
    footer.extend(box_bytes(schema, &bounds(schema, &all)));
    footer.extend(words([tiles.len() as u64, tiles.last().unwrap().len() as u64]));
    footer.push(u8::from(fragment.keeps_times));
    if fragment.version >= 15 {
        footer.push(u8::from(fragment.has_deletions));
    }
    footer
}

/// The block of the deletions that consolidation applied.
fn processed(array: &SparseArray, fragment: &SparseFragment) -> Block {
    let mut block = words([fragment.processed.len() as u64]);
    for number in &fragment.processed {
        let file = array.deletion_file(*number);
        block.extend(words([file.len() as u64]));
        block.extend(file.as_bytes());
    }
    block
}

/// A range of coordinates per dimension.
type Bounds = Vec<[Coordinate; 2]>;

/// The least and greatest of some coordinates of one type.
fn ends(code: u8, coordinates: &[&Coordinate]) -> [Coordinate; 2] {
    let mut sorted = coordinates.to_vec();
    sorted.sort_by(|a, b| compare(code, a, b).unwrap());
    [sorted[0].clone(), sorted[sorted.len() - 1].clone()]
}

fn bounds(schema: &SparseSchema, rows: &[&Row]) -> Bounds {
    let axis = |(number, dimension): (usize, &SparseDimension)| {
        let all: Vec<&Coordinate> = rows.iter().map(|row| &row.coordinates[number]).collect();
        ends(dimension.code, &all)
    };
    schema.dimensions.iter().enumerate().map(axis).collect()
}

fn box_bytes(schema: &SparseSchema, bounds: &[[Coordinate; 2]]) -> Vec<u8> {
    let axes = schema.dimensions.iter().zip(bounds);
    axes.flat_map(|(dimension, ends)| range_bytes(dimension.code, ends)).collect()
}

/// The box around the boxes of a node's children.
fn parent(schema: &SparseSchema, children: &[Bounds]) -> Bounds {
    let axis = |(number, dimension): (usize, &SparseDimension)| {
        let all: Vec<&Coordinate> = children.iter().flat_map(|child| &child[number]).collect();
        ends(dimension.code, &all)
    };
    schema.dimensions.iter().enumerate().map(axis).collect()
}

/// The block of the R-tree. Its last level has a box per tile.
fn rtree(schema: &SparseSchema, tiles: &[&[&Row]]) -> Block {
    let leaves: Vec<Bounds> = tiles.iter().map(|tile| bounds(schema, tile)).collect();
    let mut levels = vec![leaves];
    while levels[0].len() > 1 {
        let parents: Vec<Bounds> =
            levels[0].chunks(FANOUT).map(|children| parent(schema, children)).collect();
        levels.insert(0, parents);
    }
    let mut block = (FANOUT as u32).to_le_bytes().to_vec();
    block.extend((levels.len() as u32).to_le_bytes());
    for level in levels {
        block.extend(words([level.len() as u64]));
        block.extend(level.iter().flat_map(|bounds| box_bytes(schema, bounds)));
    }
    block
}

/// Sorts rows as TileDB does. The later of two rows with the same coordinates comes first.
fn in_global_order<'a>(schema: &SparseSchema, rows: &'a [Row]) -> Vec<&'a Row> {
    let mut rows: Vec<&Row> = rows.iter().collect();
    rows.sort_by(|a, b| order(schema, a, b).then(b.time.cmp(&a.time)));
    rows
}

fn order(schema: &SparseSchema, a: &Row, b: &Row) -> Ordering {
    let rank = schema.dimensions.len();
    let by_coordinate = |number: usize| {
        let code = schema.dimensions[number].code;
        compare(code, &a.coordinates[number], &b.coordinates[number]).unwrap()
    };
    let by_tile = |number: usize| {
        let tile = |row: &Row| tile_of(&schema.dimensions[number], &row.coordinates[number]);
        tile(a).cmp(&tile(b))
    };
    let axes = |order: u8| -> Vec<usize> {
        match order {
            COLUMN_MAJOR => (0..rank).rev().collect(),
            _ => (0..rank).collect(),
        }
    };
    let first = if schema.cell_order == HILBERT {
        hilbert(schema, a).cmp(&hilbert(schema, b))
    } else {
        axes(schema.tile_order).into_iter().map(by_tile).fold(Ordering::Equal, Ordering::then)
    };
    let cells = axes(schema.cell_order).into_iter().map(by_coordinate);
    first.then(cells.fold(Ordering::Equal, Ordering::then))
}

/// The space tile of a coordinate along its dimension.
fn tile_of(dimension: &SparseDimension, coordinate: &[u8]) -> i128 {
    let (code, low) = (dimension.code, &dimension.domain[0]);
    match (&dimension.extent, code) {
        (None, _) => 0,
        (Some(extent), FLOAT32 | FLOAT64) => {
            ((float(code, coordinate) - float(code, low)) / float(code, extent)) as i128
        }
        (Some(extent), _) => (whole(code, coordinate) - whole(code, low)) / whole(code, extent),
    }
}

/// The place of a row on the Hilbert curve.
fn hilbert(schema: &SparseSchema, row: &Row) -> u64 {
    let bits = 63 / schema.dimensions.len() as u32;
    let axes = schema.dimensions.iter().zip(&row.coordinates);
    let mut axes: Vec<u64> =
        axes.map(|(dimension, coordinate)| place_on_axis(dimension, coordinate, bits)).collect();
    transpose(&mut axes, bits);
    let mut place = 0_u64;
    for bit in (0..bits).rev() {
        for axis in &axes {
            place = (place << 1) | ((axis >> bit) & 1);
        }
    }
    place
}

/// A coordinate as a number of so many bits.
fn place_on_axis(dimension: &SparseDimension, coordinate: &[u8], bits: u32) -> u64 {
    if dimension.code == ASCII {
        let mut first = [0_u8; 8];
        let len = coordinate.len().min(8);
        first[..len].copy_from_slice(&coordinate[..len]);
        return u64::from_be_bytes(first) >> (64 - bits);
    }
    let number = |bytes: &[u8]| match dimension.code {
        FLOAT32 | FLOAT64 => float(dimension.code, bytes),
        _ => whole(dimension.code, bytes) as f64,
    };
    let [low, high] = [&dimension.domain[0], &dimension.domain[1]].map(|end| number(end));
    let most = (1_u64 << bits) - 1;
    let share = (number(coordinate) - low) / (high - low);
    ((share * most as f64) as u64).min(most)
}

/// Converts a place in a grid to its place on the Hilbert curve, with the bits of the place divided
/// among the axes (J. Skilling, "Programming the Hilbert curve", 2004).
fn transpose(axes: &mut [u64], bits: u32) {
    let last = axes.len() - 1;
    for bit in (1..bits).rev() {
        let below = (1_u64 << bit) - 1;
        for number in 0..=last {
            if axes[number] & (1_u64 << bit) != 0 {
                axes[0] ^= below;
            } else {
                let swapped = (axes[0] ^ axes[number]) & below;
                axes[0] ^= swapped;
                axes[number] ^= swapped;
            }
        }
    }
    for number in 1..=last {
        axes[number] ^= axes[number - 1];
    }
    let flipped = (1..bits)
        .filter(|bit| axes[last] & (1_u64 << bit) != 0)
        .fold(0_u64, |flipped, bit| flipped ^ ((1_u64 << bit) - 1));
    axes.iter_mut().for_each(|axis| *axis ^= flipped);
}
