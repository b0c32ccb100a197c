//! The target that opens, locates and decodes whole NetCDF-4 and HDF5 files.

use bytes::Bytes;

use crate::check::check;
use crate::folder::Folder;
use crate::tiledb::MOST_RAW;
use gridfusion_cf::hdf5::{Hdf5File, OpenHdf5};
use gridfusion_core::format::Scratch;

/// The most variables of a file to read.
const MOST_VARIABLES: usize = 16;
/// The most chunks of a variable to read, along each axis.
const MOST_CHUNKS: u64 = 3;

/// Opens a file and reads its first chunks.
pub fn file(input: &[u8]) {
    let file = Bytes::copy_from_slice(input);
    let len = file.len() as u64;
    let folder = Folder([(String::new(), file)].into());
    let Some(file) = check(folder.drive(OpenHdf5::new(len))) else { return };
    for variable in 0..file.hierarchy().variables.len().min(MOST_VARIABLES) {
        assert!(file.layout(variable).is_some() && file.filters(variable).is_some());
        cells(&folder, &file, variable);
        check(file.check_index(variable)).and_then(|machine| check(folder.drive(machine)));
    }
}

fn cells(folder: &Folder, file: &Hdf5File, number: usize) {
    let variable = &file.hierarchy().variables[number];
    assert_eq!(variable.axes.len(), variable.chunk_shape.len());
    assert_eq!(variable.fill.len() as u64, variable.cell.width().unwrap_or_default());
    let mut chunks = vec![vec![]];
    for (axis, len) in variable.axes.iter().zip(&variable.chunk_shape) {
        let few = axis.len.div_ceil(*len).min(MOST_CHUNKS);
        let longer = |chunk: Vec<u64>| (0..few).map(move |at| [&chunk[..], &[at]].concat());
        chunks = chunks.into_iter().flat_map(longer).take(64).collect();
    }
    let machine = check(file.locate(number, chunks.clone()));
    let Some(located) = machine.and_then(|machine| check(folder.drive(machine))) else { return };
    assert_eq!(located.len(), chunks.len());
    let mut scratch = Scratch::default();
    for payload in located.iter().flat_map(|chunk| &chunk.layers).flat_map(|it| it.payloads()) {
        if payload.raw_len <= MOST_RAW {
            let stored = folder.read(&payload.at);
            let decoded = check(payload.decode(stored, vec![], &mut scratch));
            let len = decoded.map(|decoded| decoded.bytes.len() as u64);
            assert!(len.is_none_or(|len| len == payload.raw_len));
        }
    }
}
