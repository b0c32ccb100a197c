//! The target that opens, locates and decodes whole NetCDF classic files.

use std::ops::Range;

use bytes::Bytes;

use crate::check::check;
use crate::folder::Folder;
use gridfusion_cf::hierarchy::Variable;
use gridfusion_cf::netcdf3::{NetCdf3File, OpenNetCdf3, is_netcdf3};
use gridfusion_core::format::{Layer, Scratch};

/// The most chunks of a variable to read, from either end.
const MOST_CHUNKS: u64 = 4;
/// The most variables of a file to read.
const MOST_VARIABLES: usize = 16;
/// The most bytes of a text cell that need not lie in the file.
const MOST_ABSENT_TEXT: usize = 4096;
/// The most layers of a chunk.
const MOST_LAYERS: usize = 512;

/// Opens a file, and reads the first and last chunks of its variables.
pub fn file(input: &[u8]) {
    let size = input.len() as u64;
    let folder = Folder([(String::new(), Bytes::copy_from_slice(input))].into());
    let Some(file) = check(folder.drive(OpenNetCdf3::new(size))) else { return };
    assert!(is_netcdf3(input));
    let variables = &file.hierarchy().variables;
    let fills: usize = variables.iter().map(|variable| variable.fill.len()).sum();
    assert!(fills <= variables.len() * MOST_ABSENT_TEXT + input.len());
    for unreadable in &file.hierarchy().unreadable {
        check::<()>(Err(unreadable.error.clone()));
    }
    for (place, variable) in variables.iter().enumerate().take(MOST_VARIABLES) {
        describe(variable);
        cells(&folder, &file, place);
    }
}

fn describe(variable: &Variable) {
    assert_eq!(variable.chunk_shape.len(), variable.axes.len());
    assert!(variable.chunk_shape.iter().all(|edge| *edge > 0));
    assert_eq!(variable.cell.width(), Some(variable.fill.len() as u64));
    variable.attributes.values().for_each(|value| _ = value.to_string());
}

/// Reads the first and the last chunks along each axis.
fn cells(folder: &Folder, file: &NetCdf3File, place: usize) {
    let variable = &file.hierarchy().variables[place];
    let axes = variable.axes.iter().zip(&variable.chunk_shape);
    let chunks: Vec<u64> = axes.map(|(axis, edge)| axis.len.div_ceil(*edge)).collect();
    if chunks.contains(&0) {
        return;
    }
    let mut scratch = Scratch::default();
    for at in 0..MOST_CHUNKS {
        let first: Vec<u64> = chunks.iter().map(|count| at.min(count - 1)).collect();
        let last: Vec<u64> = chunks.iter().map(|count| (count - 1).saturating_sub(at)).collect();
        for chunk in [first, last] {
            let Some(stored) = check(file.locate(place, &chunk)) else { continue };
            let extents = extents(variable, &chunk);
            let cells: u64 = extents.iter().product();
            assert!(stored.layers.len() <= MOST_LAYERS);
            let len: u64 = stored
                .layers
                .iter()
                .map(|layer| decode(folder, layer, &extents, &mut scratch))
                .sum();
            assert_eq!(len, cells * variable.fill.len() as u64);
        }
    }
}

/// Returns the cells of a chunk along each axis.
fn extents(variable: &Variable, chunk: &[u64]) -> Vec<u64> {
    let along = |((axis, edge), at): ((_, &u64), &u64)| {
        let axis: &gridfusion_cf::hierarchy::Axis = axis;
        (axis.len - at * edge).min(*edge)
    };
    variable.axes.iter().zip(&variable.chunk_shape).zip(chunk).map(along).collect()
}

/// Decodes a layer, which located bytes must allow, and returns its length.
fn decode(folder: &Folder, layer: &Layer, extents: &[u64], scratch: &mut Scratch) -> u64 {
    if let Some(placement) = &layer.placement {
        let is_within =
            |(range, len): (&Range<u64>, &u64)| range.start < range.end && range.end <= *len;
        assert_eq!(placement.region.len(), extents.len());
        assert!(placement.region.iter().zip(extents).all(is_within), "{placement:?}");
    }
    let stored = folder.read(&layer.values.at);
    assert!(layer.values.raw_len <= stored.len() as u64);
    let fresh = check(layer.values.decode(stored.clone(), vec![], scratch)).expect("whole runs");
    let used = check(layer.values.decode(stored, vec![7; 100], scratch)).expect("whole runs");
    assert_eq!(fresh.bytes, used.bytes);
    assert_eq!(fresh.bytes.len() as u64, layer.values.raw_len);
    layer.values.raw_len
}
