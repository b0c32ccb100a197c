//! The targets of sparse TileDB arrays: R-trees, delete conditions, and arrays whose blocks and tiles are
//! the input.

use std::sync::Arc;

use crate::check::check;
use crate::cut::Cut;
use crate::folder::Folder;
use crate::parsers::attribute;
use crate::tiledb;
use gridfusion_tiledb::bytes::fuzzing::{self, SparseField, SparseKind, SparseParts, envelope};
use gridfusion_tiledb::bytes::{Block, Condition, Fragment, OpenOptions, RTree, TileDbArray};

/// The most dimensions of an array.
const MOST_DIMENSIONS: usize = 8;
/// The most attributes or dimensions of an array to read.
const MOST_FIELDS: usize = 16;
/// The most tiles to read from either end of a fragment.
const MOST_TILES: u64 = 8;
/// The code of the orders is less than this.
const ORDERS: u8 = 5;

/// Parses an R-tree. The input is the number of tiles, the codes of the types of dimensions, and the
/// content of the block.
pub fn rtree(input: &[u8]) {
    let mut input = Cut(input);
    let (tiles, dimensions) = (input.number(2), dimensions(&mut input));
    let attribute = attribute(&mut Cut(&[0, 1, 0]));
    let (allows_duplicates, orders, capacity) = (false, [0, 0], 1);
    let kind = SparseKind { dimensions, attribute, allows_duplicates, orders, capacity };
    let schema = fuzzing::schema(&envelope(&fuzzing::sparse_schema(&kind)), None);
    let Some(schema) = check(schema) else { return };
    let Some(rtree) = check(fuzzing::rtree(&schema, tiles, input.rest())) else { return };
    check_rectangles(&rtree, dimensions.len(), tiles);
}

/// Parses the content of a delete condition.
pub fn delete_condition(input: &[u8]) {
    let parsed = check(fuzzing::delete_condition(&envelope(input), None));
    let Some(parsed) = parsed else { return };
    check_fields(&parsed.keep);
    assert!(bytes_of(&parsed.keep) <= input.len(), "{parsed:?}");
}

/// Opens and reads a sparse array of one fragment. The input is its schema and footer, the blocks of its
/// metadata, its delete condition, and the tiles of each field.
pub fn array(input: &[u8]) {
    let mut input = Cut(input);
    let (flags, orders) = (input.byte(), input.byte());
    let kind = SparseKind {
        attribute: attribute(&mut input),
        allows_duplicates: flags & 1 == 1,
        orders: [orders % ORDERS, orders / ORDERS % ORDERS],
        capacity: input.number(4),
        dimensions: dimensions(&mut input),
    };
    let (tiles, last_tile_cells) = (input.number(2), input.number(4));
    let (rtree, applied, condition) = (input.piece(), input.piece(), input.piece());
    let statistics = input.pieces();
    // The attribute, the dimensions, and at most three fields of times.
    let fields: Vec<SparseField<'_>> = (0..kind.dimensions.len() + 4)
        .map(|_| SparseField { blocks: input.pieces(), files: input.pieces() })
        .collect();
    let parts = SparseParts {
        kind,
        has_times: flags & 2 == 2,
        has_deletions: flags & 4 == 4,
        tiles,
        last_tile_cells,
        rtree,
        applied,
        statistics,
        fields: &fields,
        condition,
    };
    tiledb::array(&Folder(fuzzing::sparse_array(&parts)), &OpenOptions::default());
}

fn dimensions<'a>(input: &mut Cut<'a>) -> &'a [u8] {
    let codes = input.piece();
    &codes[..codes.len().min(MOST_DIMENSIONS)]
}

/// Reads the delete conditions, rectangles, tiles and statistics of a sparse array.
pub fn read(folder: &Folder, array: &Arc<TileDbArray>) {
    for deletion in array.deletions() {
        check_fields(&deletion.keep);
    }
    for (number, fragment) in array.fragments().iter().enumerate() {
        if read_blocks(folder, array, Block::RTree(number)) {
            let rtree = array.tile_rectangles(number).expect("rectangles that were read");
            check_rectangles(&rtree, array.schema().dimensions.len(), fragment.tiles);
        }
        for field in fields(fragment) {
            if read_blocks(folder, array, Block::Tiles(number, field)) {
                tiles(folder, array, number, field);
            }
        }
        if read_blocks(folder, array, Block::AppliedConditions(number)) {
            array.applied_conditions(number).expect("conditions that were read");
        }
    }
    for attribute in 0..array.schema().attributes.len().min(MOST_FIELDS) {
        zones(folder, array, attribute);
    }
}

/// Reads a block, and returns whether it is valid. The array must keep a valid one.
fn read_blocks(folder: &Folder, array: &Arc<TileDbArray>, block: Block) -> bool {
    let machine = check(array.read_blocks([block]));
    if machine.and_then(|machine| check(folder.drive(machine))).is_none() {
        return false;
    }
    assert!(array.read_blocks([block]).is_ok_and(|machine| machine.is_done()), "{block:?}");
    true
}

/// Returns the first attributes and dimensions of a fragment, and its fields of times.
fn fields(fragment: &Fragment) -> Vec<usize> {
    let schema = fragment.schema();
    let dimensions = 0..schema.dimensions.len().min(MOST_FIELDS);
    let mut fields: Vec<usize> = (0..schema.attributes.len().min(MOST_FIELDS)).collect();
    fields.extend(dimensions.map(|dimension| fragment.dimension_field(dimension)));
    fields.extend(fragment.time_field());
    fields.extend(fragment.delete_time_field().into_iter().flat_map(|time| [time, time + 1]));
    fields
}

/// Returns the numbers of the first and last tiles of a fragment.
fn ends(fragment: &Fragment) -> impl Iterator<Item = u64> + use<> {
    let count = fragment.tiles;
    let first = MOST_TILES.min(count);
    (0..first).chain(count.saturating_sub(MOST_TILES).max(first)..count)
}

/// Decodes the first and last tiles of a field whose tile index was read.
fn tiles(folder: &Folder, array: &TileDbArray, number: usize, field: usize) {
    let fragment = &array.fragments()[number];
    let stored = fragment.field(field).expect("a field of the fragment");
    for tile in ends(fragment) {
        let Some(layer) = check(array.sparse_tile(number, field, tile)) else { continue };
        assert!(layer.placement.is_none());
        assert_eq!(layer.content.is_some(), stored.is_variable());
        assert_eq!(layer.validity.is_some(), stored.nullable);
        let cells = fragment.tile_cells(tile).expect("tiles of a sparse fragment");
        if let Some(size) = stored.cell_size() {
            assert_eq!(Some(layer.values.raw_len), cells.checked_mul(size));
        }
        tiledb::decode(folder, &layer);
    }
}

fn zones(folder: &Folder, array: &Arc<TileDbArray>, attribute: usize) {
    let all: Vec<usize> = (0..array.fragments().len()).collect();
    let Some(machine) = array.read_sparse_zones(attribute, &all) else { return };
    let Some(zones) = check(folder.drive(machine)) else { return };
    assert_eq!(zones.len(), all.len());
    for (fragment, zones) in array.fragments().iter().zip(zones) {
        let Some(zones) = zones else { continue };
        for tile in ends(fragment) {
            let cells = fragment.tile_cells(tile).expect("tiles of a sparse fragment");
            assert!(zones.zone(tile).is_none_or(|zone| zone.null_count <= cells));
        }
    }
}

/// Checks that there is a rectangle per tile.
fn check_rectangles(rtree: &RTree, dimensions: usize, tiles: u64) {
    assert_eq!([rtree.least.len(), rtree.greatest.len()], [dimensions; 2]);
    for ends in rtree.least.iter().chain(&rtree.greatest) {
        assert_eq!(ends.len() as u64, tiles);
    }
}

/// Checks that each field of a condition is listed once.
fn check_fields(condition: &Condition) {
    let fields = condition.fields();
    assert!(fields.is_sorted_by(|a, b| a < b), "{fields:?}");
}

/// Returns the bytes of all names and values of a condition.
fn bytes_of(condition: &Condition) -> usize {
    match condition {
        Condition::And(parts) | Condition::Or(parts) => parts.iter().map(bytes_of).sum(),
        Condition::Not(part) => bytes_of(part),
        Condition::Compare { field, value, .. } => field.len() + value.len(),
        Condition::In { field, values, .. } => {
            field.len() + values.iter().map(Vec::len).sum::<usize>()
        }
        Condition::Constant(_) => 0,
    }
}
