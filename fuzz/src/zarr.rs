//! The targets that open, locate and decode whole Zarr stores, archives and repositories of such, and references to them.

use bytes::Bytes;

use crate::check::check;
use crate::cut::Cut;
use crate::folder::Folder;
use crate::tiledb::{MOST_RAW, check_placement};
use gridfusion_cf::hierarchy::{Hierarchy, Variable};
use gridfusion_core::Result;
use gridfusion_core::format::{Location, NOTHING, Payload, Scratch, StoredChunk};
use gridfusion_zarr::bytes::icechunk::{
    ListReferences, OpenIcechunk, OpenedIcechunk, VersionChoice,
};
use gridfusion_zarr::bytes::{LocateZarr, OpenReferences, OpenZarr, OpenZip};

/// The most members of an archive to read.
const MOST_MEMBERS: usize = 64;
/// The most variables of a store to read.
const MOST_VARIABLES: usize = 16;
/// The most chunks of a variable to read, along each axis.
const MOST_CHUNKS: u64 = 3;
/// The most chunks of a variable to read.
const MOST_CHUNKS_IN_ALL: usize = 32;

/// Opens a folder as a store, and reads its first and last chunks. The input is the files of the folder.
pub fn store(input: &[u8]) {
    let folder = Folder::cut(Cut(input));
    let Some(store) = check(folder.drive(OpenZarr::new())) else { return };
    describe(store.hierarchy());
    for number in 0..store.arrays().len().min(MOST_VARIABLES) {
        let (variable, array) = (&store.hierarchy().variables[number], &store.arrays()[number]);
        assert_eq!(array.variable().path, variable.path);
        assert!(!array.encoding().is_empty());
        let located = locate(&folder, variable, |at| store.locate(number, at));
        read(variable, &located, |at| check(folder.read_if_present(at)).flatten());
    }
}

/// Opens a reference file and reads its first and last chunks. The file stands for all objects that it names.
pub fn references(input: &[u8]) {
    let file = Bytes::copy_from_slice(input);
    let folder = Folder([(String::new(), file)].into());
    let Some(file) = check(folder.drive(OpenReferences)) else { return };
    describe(file.store().hierarchy());
    for number in 0..file.store().arrays().len().min(MOST_VARIABLES) {
        let variable = &file.store().hierarchy().variables[number];
        let located = locate_by_names(&folder, variable, |at| file.locate(number, at));
        read(variable, &located, |at| match &*at.object {
            NOTHING => Some(Bytes::new()),
            _ => check(folder.read_if_present(&Location::new("", at.range.clone()))).flatten(),
        });
    }
}

/// Opens an archive, and reads all of its members as metadata.
pub fn archive(input: &[u8]) {
    let file = Bytes::copy_from_slice(input);
    let folder = Folder([(String::new(), file.clone())].into());
    let Some(directory) = check(folder.drive(OpenZip::new(file.len() as u64, MOST_RAW))) else {
        return;
    };
    for (_, member) in directory.below("").take(MOST_MEMBERS) {
        let span = member.span();
        assert!(span.start <= span.end && span.end <= file.len() as u64, "{span:?}");
        let span = file.slice(span.start as usize..span.end as usize);
        if member.len() <= MOST_RAW {
            check(directory.document(member, &span));
        }
    }
}

/// Opens a folder as an Icechunk repository, and finds its first and last chunks. The input is the files of the folder.
pub fn repository(input: &[u8]) {
    let folder = Folder::cut(Cut(input));
    check(folder.drive_by_names(ListReferences::default()));
    let open = OpenIcechunk::new(VersionChoice::default(), MOST_RAW);
    let Some(OpenedIcechunk::Store(store)) = check(folder.drive_by_names(open)) else { return };
    let hierarchy = store.store().hierarchy();
    describe(hierarchy);
    check(store.history());
    for number in 0..hierarchy.variables.len().min(MOST_VARIABLES) {
        let variable = &hierarchy.variables[number];
        let located = locate_by_names(&folder, variable, |at| store.locate(number, at));
        read(variable, &located, |at| match &*at.object {
            NOTHING => Some(Bytes::new()),
            _ => check(folder.read_if_present(at)).flatten(),
        });
    }
}

/// Chunks, and their coordinates.
struct Located {
    coordinates: Vec<Vec<u64>>,
    chunks: Vec<StoredChunk>,
}

/// Formats what the metadata holds.
fn describe(hierarchy: &Hierarchy) {
    for unreadable in &hierarchy.unreadable {
        check::<()>(Err(unreadable.error.clone()));
    }
    let of_variables = hierarchy.variables.iter().map(|variable| &variable.attributes);
    for attributes in of_variables.chain(hierarchy.groups.values()) {
        attributes.values().for_each(|value| _ = value.to_string());
    }
}

/// Finds the first and the last chunks of a variable, in objects that were listed.
fn locate(
    folder: &Folder,
    variable: &Variable,
    machine: impl Fn(Vec<Vec<u64>>) -> Result<LocateZarr>,
) -> Located {
    located(variable, |at| folder.drive(machine(at)?))
}

/// As [`locate`], in objects that others name.
fn locate_by_names(
    folder: &Folder,
    variable: &Variable,
    machine: impl Fn(Vec<Vec<u64>>) -> Result<LocateZarr>,
) -> Located {
    located(variable, |at| folder.drive_by_names(machine(at)?))
}

fn located(
    variable: &Variable,
    locate: impl Fn(Vec<Vec<u64>>) -> Result<Vec<StoredChunk>>,
) -> Located {
    let coordinates = coordinates(variable);
    match check(locate(coordinates.clone())) {
        Some(chunks) => {
            assert_eq!(chunks.len(), coordinates.len());
            Located { coordinates, chunks }
        }
        None => Located { coordinates: vec![], chunks: vec![] },
    }
}

/// Returns the coordinates of the first chunks along each axis, and of the last chunk.
fn coordinates(variable: &Variable) -> Vec<Vec<u64>> {
    assert_eq!(variable.axes.len(), variable.chunk_shape.len());
    assert!(variable.chunk_shape.iter().all(|edge| *edge > 0));
    let axes = variable.axes.iter().zip(&variable.chunk_shape);
    let counts: Vec<u64> = axes.map(|(axis, edge)| axis.len.div_ceil(*edge)).collect();
    let mut chunks = vec![vec![]];
    for count in &counts {
        let few = (*count).min(MOST_CHUNKS);
        let longer = |chunk: Vec<u64>| (0..few).map(move |at| [&chunk[..], &[at]].concat());
        chunks = chunks.into_iter().flat_map(longer).take(MOST_CHUNKS_IN_ALL).collect();
    }
    if !chunks.is_empty() {
        chunks.push(counts.iter().map(|count| count - 1).collect());
    }
    chunks
}

/// Decodes the payloads of chunks, of which `stored` returns the bytes that are not absent.
fn read(variable: &Variable, located: &Located, stored: impl Fn(&Location) -> Option<Bytes>) {
    if let Some(width) = variable.cell.width() {
        assert_eq!(variable.fill.len() as u64, width);
    }
    for (coordinates, chunk) in located.coordinates.iter().zip(&located.chunks) {
        let extents = extents(variable, coordinates);
        for layer in &chunk.layers {
            if let Some(placement) = &layer.placement {
                check_placement(placement, &extents);
            }
            for payload in layer.payloads().filter(|payload| payload.raw_len <= MOST_RAW) {
                if let Some(stored) = stored(&payload.at) {
                    decode(payload, &stored);
                }
            }
        }
    }
}

/// Returns the cells of a chunk along each axis.
fn extents(variable: &Variable, chunk: &[u64]) -> Vec<u64> {
    let axes = variable.axes.iter().zip(&variable.chunk_shape);
    axes.zip(chunk).map(|((axis, edge), at)| (axis.len - at * edge).min(*edge)).collect()
}

/// Decodes a payload into fresh memory and into used memory.
fn decode(payload: &Payload, stored: &Bytes) {
    let mut scratch = Scratch::default();
    let fresh = check(payload.decode(stored.clone(), vec![], &mut scratch));
    let used = check(payload.decode(stored.clone(), vec![7; 100], &mut scratch));
    let [fresh, used] = [fresh, used].map(|decoded| decoded.map(|it| (it.bytes, it.offsets)));
    assert_eq!(fresh, used);
    let Some((bytes, offsets)) = fresh else { return };
    let len = bytes.len() as u64;
    assert!(len == payload.raw_len || !payload.codec.knows_length());
    assert!(offsets.iter().flatten().all(|offset| *offset <= len));
}
