//! The targets that run one parser of a TileDB structure.

use bytes::Bytes;

use crate::check::check;
use crate::cut::Cut;
use crate::folder::Folder;
use crate::tiledb;
use gridfusion_core::format::Entry;
use gridfusion_tiledb::bytes::fuzzing::{self, AttributeKind, Listings, envelope};
use gridfusion_tiledb::bytes::{ArrayKind, OpenOptions, ReadGroup};

/// The UUID in the names of all files.
const UUID: &str = "0123456789abcdef0123456789abcdef";

/// Decodes a generic tile, without and with a key.
pub fn generic_tile(input: &[u8]) {
    let key = tiledb::key();
    for key in [None, Some(&key)] {
        check(fuzzing::open_envelope(input, key));
    }
}

/// Parses the content of a schema.
pub fn schema(input: &[u8]) {
    let Some(schema) = check(fuzzing::schema(&envelope(input), None)) else { return };
    for attribute in &schema.attributes {
        let len = attribute.fill.len() as u64;
        assert!(attribute.cell_size().is_none_or(|size| size == len && size > 0), "{attribute:?}");
    }
    assert!(schema.labels.iter().all(|label| label.dimension < schema.dimensions.len()));
}

/// Parses the content of an enumeration.
pub fn enumeration(input: &[u8]) {
    let Some(values) = check(fuzzing::enumeration(&envelope(input), None)) else { return };
    let len: usize =
        (0..values.len()).map(|place| values.value(place).map_or(0, <[u8]>::len)).sum();
    assert!(len <= input.len());
}

/// Parses the footer of a fragment. The input is the format version in the name of the fragment, the
/// name and content of the schema, and the metadata file.
pub fn footer(input: &[u8]) {
    let mut input = Cut(input);
    let version = u32::from(input.byte());
    let (name, schema, file) = (input.text(), input.piece(), input.rest());
    let Some(schema) = check(fuzzing::schema(&envelope(schema), None)) else { return };
    for block in check(fuzzing::footer(file, version, &name, schema)).into_iter().flatten() {
        assert!(block.start <= block.end && block.end <= file.len() as u64, "{block:?}");
    }
}

/// Opens and reads an array whose input is an attribute, the blocks with the positions of its tiles,
/// and the files of its tiles.
pub fn tile_index(input: &[u8]) {
    let mut input = Cut(input);
    let attribute = attribute(&mut input);
    let [a, b, c, d] = input.pieces();
    let files = array(attribute, [a, b, c, d, &[], &[], &[], &[]], input.pieces());
    tiledb::array(&files, &OpenOptions::default());
}

/// Opens and reads an array whose input is an attribute and its blocks of statistics.
pub fn statistics(input: &[u8]) {
    let mut input = Cut(input);
    let attribute = attribute(&mut input);
    let [a, b, c, d] = input.pieces();
    let files = array(attribute, [&[], &[], &[], &[], a, b, c, d], [&[]; 3]);
    tiledb::array(&files, &OpenOptions::default());
}

/// Cuts off an attribute: the code of its type, values per cell, and flags.
pub fn attribute(input: &mut Cut<'_>) -> AttributeKind {
    let (datatype, values, flags) = (input.byte(), input.byte(), input.byte());
    let values = if values == u8::MAX { u32::MAX } else { u32::from(values) };
    AttributeKind { datatype, values, nullable: flags & 1 == 1 }
}

fn array(attribute: AttributeKind, blocks: [&[u8]; 8], files: [&[u8]; 3]) -> Folder {
    Folder(fuzzing::array(attribute, blocks, files))
}

/// Reads the metadata of an array from files whose contents are the input.
pub fn metadata(input: &[u8]) {
    let folder = timed_folder("__meta", Cut(input));
    let metadata = check(folder.drive(fuzzing::read_metadata(OpenOptions::default())));
    for (_, value) in metadata.into_iter().flatten() {
        let _ = value.to_string();
    }
}

/// Reads a group from files whose contents are the input.
pub fn group(input: &[u8]) {
    check(timed_folder("__group", Cut(input)).drive(ReadGroup::new(OpenOptions::default())));
}

/// Cuts files from an input: a byte, which is the time, and the content. A file with an odd time
/// lists the files that it replaces.
fn timed_folder(folder: &str, mut input: Cut<'_>) -> Folder {
    let mut files = Folder::default();
    while !input.is_empty() && files.0.len() < 16 {
        let (time, content) = (input.byte(), input.piece());
        let (ending, content) = match time % 2 {
            1 => (".vac", content.to_vec()),
            _ => ("", envelope(content)),
        };
        files.0.insert(format!("{folder}/__{time}_{time}_{UUID}{ending}"), content.into());
    }
    files
}

/// Finds the visible fragments and delete conditions. The input is the range of time, the kind of array, the
/// names in the array's folder and in `__commits`, and the contents of files.
pub fn commits(input: &[u8]) {
    let mut input = Cut(input);
    let (start, end, flags) = (input.number(1), input.number(1), input.byte());
    let options = OpenOptions::new(start, (flags & 1 == 1).then_some(end));
    let kind = if flags & 2 == 2 { ArrayKind::Sparse } else { ArrayKind::Dense };
    let (root, commits) = (entries(&input.text()), entries(&input.text()));
    let [consolidated, ignored] = input.pieces().map(Bytes::copy_from_slice);
    let deletions = vec![(input.text(), Bytes::copy_from_slice(input.piece()))];
    let vacuumed = vec![(input.text(), Bytes::copy_from_slice(input.rest()))];
    let (consolidated, ignored) = (vec![consolidated], vec![ignored]);
    let listings = Listings { root, commits, consolidated, ignored, vacuumed, deletions };
    let Some(visible) = check(fuzzing::commits(listings, kind, &options)) else { return };
    for folder in visible.folders {
        let name = folder.strip_prefix("__fragments/").unwrap_or(&folder);
        assert!(name.starts_with("__") && !name.contains('/'), "{folder:?}");
    }
    for (marker, time) in visible.deletions {
        assert!(marker.starts_with("__commits/__"), "{marker:?}");
        let is_before_end = options.end.is_none_or(|end| time <= end);
        assert!(options.start <= time && is_before_end, "{marker:?} at {time}");
    }
}

/// Parses one name per line; names of folders end with `/`.
fn entries(lines: &str) -> Vec<Entry> {
    let entry = |line: &str| match line.strip_suffix('/') {
        Some(name) => Entry::new(name, None),
        None => Entry::new(line, Some(0)),
    };
    lines.lines().map(entry).collect()
}
