//! Entry points of the fuzz targets to private parsers; `fuzz/README.md` describes the targets.
//!
//! There is one entry point per parser. Content of generic tiles first gets an [`envelope`] without
//! filters: then each byte that the fuzzer changes is a byte that the parser reads.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::datatype::{Datatype, VARIABLE};
use super::filter::{EncryptionKey, Field, Pipeline, TileCodec};
use super::folder::{Commit, CommitFiles, OLD_SCHEMA_FILE, OpenOptions, TimedName};
use super::fragments::{Footer, Fragment, METADATA_FILE, block_locations, footer_range};
use super::generic_tile;
use super::metadata::ReadMetadata;
use super::schema::{ArrayKind, ArraySchema, Enumeration};
use super::testing::{self, Folder, FooterBytes, SCHEMA_NAME, SchemaBytes, UUID, words};
use crate::error::Result;
use crate::format::Entry;
use crate::format::wire::{Reader, to_usize};

/// Makes a generic tile of `content`, without filters.
pub fn envelope(content: &[u8]) -> Vec<u8> {
    testing::generic_tile(content)
}

/// Decodes the content of the generic tile `stored`.
///
/// # Errors
/// Fails if the tile is malformed or unsupported, or if the key does not fit.
pub fn open_envelope(stored: &[u8], key: Option<&EncryptionKey>) -> Result<Bytes> {
    generic_tile::decode("generic tile", 0, stored, key)
}

/// Parses a file of the folder `__schema`.
///
/// # Errors
/// Fails if the schema is malformed or unsupported, or if the key does not fit.
pub fn schema(stored: &[u8], key: Option<&EncryptionKey>) -> Result<ArraySchema> {
    ArraySchema::parse(stored, key)
}

/// Parses a file of the folder `__schema/__enumerations`.
///
/// # Errors
/// Fails if the enumeration is malformed or unsupported, or if the key does not fit.
pub fn enumeration(stored: &[u8], key: Option<&EncryptionKey>) -> Result<Enumeration> {
    Enumeration::parse(stored, key)
}

/// Parses the footer in the metadata `file` of a fragment, and returns the byte ranges of the blocks
/// with its tile indexes. `name_version` is the format version in the fragment's name; the array has a
/// single schema.
///
/// # Errors
/// Fails if the footer or the fragment is malformed or unsupported.
pub fn footer(
    file: &[u8],
    name_version: u32,
    schema_name: &str,
    schema: ArraySchema,
) -> Result<Vec<Range<u64>>> {
    let schema = Arc::new(schema);
    let schemas = HashMap::from([(schema_name.to_owned(), Arc::clone(&schema))]);
    let len = file.len() as u64;
    let range = footer_range(file, len, name_version, Some(&schema))?;
    let bytes = &file[to_usize(range.start)..to_usize(range.end)];
    let footer = Footer::parse(bytes, range.start, &schemas)?;
    let files = BTreeMap::from([(METADATA_FILE.to_owned(), len)]);
    let time = TimedName { t1: 1, t2: 1, version: Some(name_version) };
    let commit = Commit { name: "fragment".into(), folder: "fragment".into(), time };
    let fragment = Fragment::new(&commit, files, footer, &schema)?;
    let mut blocks = vec![];
    for field in 0..schema.attributes.len() {
        blocks
            .extend(block_locations(&fragment, field)?.into_iter().map(|at| at.range.within(len)));
    }
    Ok(blocks)
}

/// The listings of an array's folders, and the files that determine which fragments are visible.
#[derive(Debug, Default)]
pub struct Listings {
    /// The entries of the array's own folder.
    pub root: Vec<Entry>,
    /// The entries of `__commits`.
    pub commits: Vec<Entry>,
    /// The contents of the `.con` files.
    pub consolidated: Vec<Bytes>,
    /// The contents of the `.ign` files.
    pub ignored: Vec<Bytes>,
    /// The names and contents of the `.vac` files.
    pub vacuumed: Vec<(String, Bytes)>,
}

/// Returns the folders of the fragments that an open sees.
///
/// # Errors
/// Fails if the listings or the files are malformed or unsupported.
pub fn commits(listings: Listings, kind: ArrayKind, options: &OpenOptions) -> Result<Vec<String>> {
    let Listings { root, commits, consolidated, ignored, vacuumed } = listings;
    let files = CommitFiles { root: &root, commits: &commits, consolidated, ignored, vacuumed };
    let visible = files.visible(kind, options)?;
    Ok(visible.into_iter().map(|commit| commit.folder).collect())
}

/// Makes a machine that reads the metadata of an array without opening the array.
pub fn read_metadata(options: OpenOptions) -> ReadMetadata {
    ReadMetadata::new(options)
}

/// The kind of a tile's content.
#[derive(Debug, Clone, Copy)]
pub struct TileKind {
    /// The type of the values.
    pub datatype: Datatype,
    /// The size of a cell in bytes.
    pub cell_size: u64,
    /// Whether the tile holds strings of variable length that are encoded together with their offsets.
    pub var_strings: bool,
    /// The format version of both schema and fragment.
    pub version: u32,
}

/// Parses a pipeline, as schemas store it, and makes a codec that decodes tiles.
///
/// # Errors
/// Fails if the pipeline is malformed or unsupported.
pub fn tile_codec(
    pipeline: &[u8],
    kind: TileKind,
    key: Option<&EncryptionKey>,
) -> Result<TileCodec> {
    let mut reader = Reader::new("pipeline", 0, pipeline);
    let pipeline = Pipeline::parse(&mut reader, kind.version)?;
    reader.end()?;
    let TileKind { datatype, cell_size, var_strings, version } = kind;
    let field = Field { datatype, cell_size, var_strings, fragment_version: version };
    pipeline.codec(&field, key)
}

/// The only attribute of an [`array`].
#[derive(Debug, Clone, Copy)]
pub struct AttributeKind {
    /// The code of its type.
    pub datatype: u8,
    /// Values per cell; `u32::MAX` for any number.
    pub values: u32,
    /// Whether cells can be NULL.
    pub nullable: bool,
}

/// Makes the files of an array of 5 × 7 cells with one attribute and one fragment of four tiles.
/// `blocks` are the attribute's blocks in the order of the footer; `files` hold values, content and
/// validity.
pub fn array(
    attribute: AttributeKind,
    blocks: [&[u8]; 8],
    files: [&[u8]; 3],
) -> BTreeMap<String, Bytes> {
    let AttributeKind { datatype, values, nullable } = attribute;
    let size = Datatype::from_code(datatype).map_or(1, Datatype::size);
    let fill = vec![0; if values == VARIABLE { 0 } else { to_usize(u64::from(values) * size) }];
    let attributes = vec![testing::attribute("a", datatype, values, &fill, nullable, "")];
    let schema = SchemaBytes { attributes, ..SchemaBytes::dense_2d() };
    let (starts, mut metadata) = testing::in_a_row(&blocks.map(<[u8]>::to_vec));
    let mut columns = [0; 8];
    columns.copy_from_slice(&starts);
    let file_sizes = files.map(|file| file.len() as u64);
    let footer = FooterBytes { file_sizes, columns, ..FooterBytes::dense_2d() }.content();
    metadata.extend(&footer);
    metadata.extend(words(&[footer.len() as u64]));

    let mut folder = with_schema(&schema);
    let name = format!("__5_5_{UUID}_22");
    folder.put(&format!("__fragments/{name}/{METADATA_FILE}"), &metadata);
    folder.put(&format!("__commits/{name}.wrt"), b"");
    for (file, content) in ["a0", "a0_var", "a0_validity"].iter().zip(files) {
        folder.put(&format!("__fragments/{name}/{file}.tdb"), content);
    }
    folder.0
}

/// Makes the files of an array of integers with three fragments; the two newer ones override cells of
/// the first.
pub fn overlapping_writes() -> BTreeMap<String, Bytes> {
    let mut folder = with_schema(&SchemaBytes::dense_2d());
    folder.write(1, [(1, 5), (1, 7)], [0, 0], |y, x| 10 * y + x);
    folder.write(2, [(2, 3), (4, 6)], [0, 0], |y, x| -10 * y - x);
    folder.write(3, [(5, 5), (1, 4)], [0, 0], |_, _| 7);
    folder.0
}

/// Makes the content of a schema of format `version`. Its attribute is nullable text since version 20,
/// and an integer before.
pub fn schema_of_version(version: u32) -> Vec<u8> {
    let text = testing::attribute("s", 12, VARIABLE, &[0], true, "e");
    let schema = SchemaBytes {
        version,
        attributes: if version < 20 { vec![] } else { vec![text] },
        labels: vec![testing::label(1, "l", "__labels/l0")],
        enumerations: vec![("e", "__e")],
        current_domain: Some(vec![(1, 3), (2, 2)]),
        ..SchemaBytes::dense_2d()
    };
    schema.content()
}

/// Makes the metadata file of a fragment of format `version`, without blocks. Also returns the name of
/// the file of its schema.
pub fn footer_of_version(version: u32) -> (&'static str, Vec<u8>) {
    let footer = FooterBytes { version, ..FooterBytes::dense_2d() }.content();
    let mut file = envelope(b"");
    file.extend(&footer);
    if version < 10 {
        return (OLD_SCHEMA_FILE, file);
    }
    file.extend(words(&[footer.len() as u64]));
    (SCHEMA_NAME, file)
}

fn with_schema(schema: &SchemaBytes) -> Folder {
    let mut folder = Folder::default();
    folder.put(&format!("__schema/{SCHEMA_NAME}"), &envelope(&schema.content()));
    folder
}
