//! The target that opens, locates and decodes whole TileDB arrays.

use std::sync::Arc;

use crate::check::check;
use crate::cut::Cut;
use crate::folder::Folder;
use crate::sparse;
use gridfusion_core::format::{Codec, Layer, Payload, Placement, Scratch, Zones};
use gridfusion_tiledb::bytes::{
    ArrayKind, EncryptionKey, OpenArray, OpenOptions, ReadGroup, TileDbArray, ValuesPerCell, Window,
};

/// The most chunks to read from either end of an array.
const MOST_CHUNKS: u64 = 8;
/// The most attributes of an array to read.
const MOST_ATTRIBUTES: usize = 16;
/// The most bytes of a decoded tile; larger tiles are not decoded.
pub const MOST_RAW: u64 = 1 << 20;

/// The key of all encrypted arrays.
pub fn key() -> EncryptionKey {
    EncryptionKey::new(b"0123456789abcdef0123456789ABCDEF").unwrap()
}

/// Opens a folder as an array and as a group. The input is flags, a time and the files of the folder.
pub fn folder(input: &[u8]) {
    let mut input = Cut(input);
    let (flags, time) = (input.byte(), input.number(1));
    let options = OpenOptions::new(0, (flags & 1 == 1).then_some(time));
    let options = options.with_key((flags & 2 == 2).then(key));
    let folder = Folder::cut(input);
    array(&folder, &options);
    check(folder.drive(ReadGroup::new(options)));
}

/// Opens an array, and reads its first and last chunks or tiles, its statistics and its metadata.
pub fn array(folder: &Folder, options: &OpenOptions) {
    let Some(array) = check(folder.drive(OpenArray::new(options.clone()))) else { return };
    let array = Arc::new(array);
    match array.schema().kind {
        ArrayKind::Dense => dense(folder, &array),
        ArrayKind::Sparse => sparse::read(folder, &array),
    }
    check(folder.drive(array.read_metadata()));
}

/// Reads the first and last chunks of a dense array, and its statistics.
fn dense(folder: &Folder, array: &Arc<TileDbArray>) {
    for full in [false, true] {
        let Some(window) = check(array.window(full)) else { continue };
        let (window, chunks) = (Arc::new(window), chunks(array, full));
        for attribute in 0..array.schema().attributes.len().min(MOST_ATTRIBUTES) {
            cells(folder, array, &window, &chunks, attribute);
            zones(folder, array, &window, &chunks, attribute);
        }
    }
}

/// Returns the numbers of the first and last chunks.
fn chunks(array: &TileDbArray, full: bool) -> Vec<u64> {
    let count = array.window(full).map_or(0, |window| window.grid.chunks());
    let last = count.saturating_sub(MOST_CHUNKS).max(MOST_CHUNKS.min(count));
    (0..MOST_CHUNKS.min(count)).chain(last..count).collect()
}

fn cells(
    folder: &Folder,
    array: &Arc<TileDbArray>,
    window: &Arc<Window>,
    chunks: &[u64],
    attribute: usize,
) {
    let coordinates: Vec<_> = chunks.iter().map(|at| window.grid.chunk_coordinates(*at)).collect();
    let locate = array.locate(window, coordinates.clone(), vec![attribute]);
    let stored = check(locate).and_then(|locate| check(folder.drive(locate)));
    let Some(stored) = stored else { return };
    assert_eq!(stored.len(), chunks.len());
    let values = array.schema().attributes[attribute].values_per_cell;
    for (chunk, attributes) in coordinates.iter().zip(stored) {
        assert_eq!(attributes.len(), 1);
        for layer in attributes.iter().flat_map(|stored| &stored.layers) {
            if let Some(placement) = &layer.placement {
                check_placement(placement, &window.grid.extents(chunk));
            }
            assert_eq!(layer.content.is_some(), values == ValuesPerCell::Variable);
            decode(folder, layer);
        }
    }
}

/// Checks that the cells of a layer lie in the chunk and in the stored tile.
pub fn check_placement(placement: &Placement, extents: &[u64]) {
    let Placement { region, tile_shape, origin, .. } = placement;
    assert_eq!([region.len(), tile_shape.len(), origin.len()], [extents.len(); 3]);
    for (axis, cells) in region.iter().enumerate() {
        assert!(cells.start < cells.end && cells.end <= extents[axis], "{placement:?}");
        let len = cells.end - cells.start;
        assert!(origin[axis] + len <= tile_shape[axis], "{placement:?}");
    }
}

/// Decodes the payloads of a layer, except large ones.
pub fn decode(folder: &Folder, layer: &Layer) {
    let mut scratch = Scratch::default();
    for payload in layer.payloads().filter(|payload| payload.raw_len <= MOST_RAW) {
        let Payload { at, raw_len, codec, .. } = payload;
        let decoded = payload.decode(folder.read(at), vec![0xAA; 9], &mut scratch);
        let Some(decoded) = check(decoded) else { continue };
        assert_eq!(decoded.bytes.len() as u64, *raw_len);
        assert!(decoded.offsets.iter().flatten().all(|offset| offset <= raw_len));
        assert!(matches!(codec, Codec::Custom(_)));
    }
}

fn zones(
    folder: &Folder,
    array: &Arc<TileDbArray>,
    window: &Arc<Window>,
    chunks: &[u64],
    attribute: usize,
) {
    let Some(machine) = array.read_zones(window, attribute) else { return };
    let Some(zones) = check(folder.drive(machine)) else { return };
    for chunk in chunks {
        let extents = window.grid.extents(&window.grid.chunk_coordinates(*chunk));
        let cells: u64 = extents.iter().product();
        assert!(zones.zone(*chunk).is_none_or(|zone| zone.null_count <= cells));
    }
}
