//! The targets that open, locate and decode whole `.tet` files and packages.

use std::sync::Arc;

use bytes::Bytes;

use crate::check::check;
use crate::cut::Cut;
use crate::folder::Folder;
use crate::tiledb::MOST_RAW;
use gridfusion_core::format::{Scratch, Zones};
use gridfusion_tet::bytes::{LabelSource, OpenFile, OpenPackage, TetFile};

/// The most chunks of a dataset to read.
const MOST_CHUNKS: u64 = 32;
/// The length of a head that is known before a file is opened. It cuts most inputs.
const KNOWN_HEAD: usize = 300;
/// The most datasets of a file to read.
const MOST_DATASETS: usize = 16;

/// Opens a file and reads its index, zone maps and first chunks.
pub fn file(input: &[u8]) {
    let Some((folder, file)) = open(Bytes::copy_from_slice(input)) else { return };
    let file = Arc::new(file);
    for dataset in 0..file.datasets().len().min(MOST_DATASETS) {
        describe(&file, dataset);
        cells(&folder, &file, dataset);
        zones(&folder, &file, dataset);
    }
    index(&folder, &file);
    all_zones(&folder, &file);
}

/// Opens a package and reads its zone maps. The input is the number of the generation, 0 for the
/// current one, and a folder.
pub fn package(input: &[u8]) {
    let mut input = Cut(input);
    let wanted = Some(u64::from(input.byte())).filter(|wanted| *wanted > 0);
    let folder = Folder::cut(input);
    let Some(generation) = check(folder.drive(OpenPackage::new(wanted))) else { return };
    assert!(wanted.is_none_or(|wanted| wanted == generation.number));
    let packed = folder.0[&generation.packed_file].clone();
    let Some((_, file)) = open(packed) else { return };
    if file.zone_maps_at().is_none() {
        let machine = check(file.read_all_zone_maps(Some(&generation))).flatten();
        machine.and_then(|machine| check(folder.drive(machine)));
    }
    let Some(at) = generation.zone_file else { return };
    for dataset in 0..file.datasets().len().min(MOST_DATASETS) {
        let machine = check(file.read_zone_file(dataset, at.clone(), generation.number));
        machine.and_then(|machine| check(folder.drive(machine)));
    }
}

/// Opens a file as the only object of a folder; also as if its first bytes were known.
fn open(file: Bytes) -> Option<(Folder, TetFile)> {
    let len = file.len() as u64;
    let head = file.slice(..file.len().min(KNOWN_HEAD));
    let folder = Folder([(String::new(), file)].into());
    let file = check(folder.drive(OpenFile::new(len)));
    let same = check(folder.drive(OpenFile::with_head(len, head)));
    assert_eq!(file.is_some(), same.is_some());
    Some((folder, file?))
}

fn describe(file: &TetFile, dataset: usize) {
    file.is_packed(dataset);
    file.is_coordinate(dataset);
    let (dimensions, _) = file.dimensions(dataset);
    assert_eq!(dimensions.len(), file.datasets()[dataset].shape().len());
    for (axis, dimension) in dimensions.iter().enumerate() {
        assert!(dimensions[..axis].iter().all(|other| other.name != dimension.name));
        match &dimension.labels {
            LabelSource::Text(labels) | LabelSource::Singles(labels) => {
                assert_eq!(labels.len() as u64, dimension.len);
            }
            LabelSource::Dataset(other) => {
                assert_eq!(file.datasets()[*other].shape(), [dimension.len]);
            }
            LabelSource::Index => {}
        }
    }
}

fn cells(folder: &Folder, file: &Arc<TetFile>, dataset: usize) {
    let described = &file.datasets()[dataset];
    let (Some(grid), Some(element)) = (check(described.grid()), check(described.element())) else {
        return;
    };
    let chunks: Vec<u64> = (0..grid.chunks().min(MOST_CHUNKS)).collect();
    let locate = check(file.locate(dataset, chunks.clone()));
    let Some(stored) = locate.and_then(|locate| check(folder.drive(locate))) else { return };
    assert_eq!(stored.len(), chunks.len());
    let mut scratch = Scratch::default();
    for (chunk, stored) in chunks.iter().zip(stored) {
        let [layer] = &stored.layers[..] else { panic!("{stored:?}") };
        let cells: u64 = grid.extents(&grid.chunk_coordinates(*chunk)).iter().product();
        assert_eq!(layer.values.raw_len, cells * element.size());
        if layer.values.raw_len <= MOST_RAW {
            let stored = folder.read(&layer.values.at);
            let decoded = layer.values.decode(stored, vec![], &mut scratch);
            let len = check(decoded).map(|decoded| decoded.bytes.len() as u64);
            assert!(len.is_none_or(|len| len == layer.values.raw_len));
        }
    }
}

fn zones(folder: &Folder, file: &TetFile, dataset: usize) {
    let Some(Some(machine)) = check(file.read_zone_maps(dataset)) else { return };
    let Some(zones) = check(folder.drive(machine)) else { return };
    for chunk in 0..MOST_CHUNKS {
        let _ = zones.zone(chunk);
    }
}

/// Reads the first rows of the index, of all datasets.
fn index(folder: &Folder, file: &Arc<TetFile>) {
    let machine = file.read_index(0..MOST_CHUNKS, None);
    for entry in check(folder.drive(machine)).unwrap_or_default() {
        let described = &file.datasets()[entry.dataset];
        let grid = check(described.grid()).expect("chunks of a dataset that can be read");
        assert!(grid.chunk_number(&entry.coordinates).is_some());
    }
}

fn all_zones(folder: &Folder, file: &TetFile) {
    let Some(Some(machine)) = check(file.read_all_zone_maps(None)) else { return };
    let Some(all) = check(folder.drive(machine)) else { return };
    assert_eq!(all.len(), file.datasets().len());
    for (dataset, zones) in all.into_iter().enumerate().take(MOST_DATASETS) {
        // Reading the zone maps of one dataset gives the same result.
        let one = check(file.read_zone_maps(dataset)).flatten();
        let one = one.and_then(|machine| check(folder.drive(machine)));
        assert_eq!(check(zones), one);
    }
}
