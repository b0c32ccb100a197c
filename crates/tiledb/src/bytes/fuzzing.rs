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
use super::folder::{COMMITS, Commit, CommitFiles, OLD_SCHEMA_FILE, OpenOptions, TimedName};
use super::fragments::{Footer, Fragment, METADATA_FILE, block_locations, footer_range};
use super::generic_tile;
use super::metadata::ReadMetadata;
use super::schema::{ArrayKind, ArraySchema, Enumeration};
use super::sparse::{DeleteCondition, RTree};
use super::testing::{
    self, Folder, FooterBytes, NO_FILTERS, SCHEMA_NAME, SchemaBytes, UUID, words,
};
use gridfusion_core::Result;
use gridfusion_core::format::Entry;
use gridfusion_core::format::wire::{Reader, to_usize};

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

/// Parses the content of the block of an R-tree, of a fragment with this many tiles.
///
/// # Errors
/// Fails if the R-tree is malformed, or does not have one rectangle per tile.
pub fn rtree(schema: &ArraySchema, tiles: u64, content: &[u8]) -> Result<RTree> {
    RTree::parse_content(schema, tiles, content)
}

/// Parses a file of a delete condition.
///
/// # Errors
/// Fails if the condition is malformed or unsupported, or if the key does not fit.
pub fn delete_condition(stored: &[u8], key: Option<&EncryptionKey>) -> Result<DeleteCondition> {
    DeleteCondition::parse(condition_file(), 7, stored, key)
}

/// Parses the footer in the metadata `file` of a fragment, and returns the byte ranges of the blocks
/// with its tile indexes. Also returns those of the R-tree and of applied delete conditions, if the
/// fragment is sparse. `name_version` is the format version in the fragment's name; the array has a single
/// schema.
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
    let mut files = BTreeMap::from([(METADATA_FILE.to_owned(), len)]);
    // Footers of sparse fragments are compared with the sizes of the files of coordinates.
    files.extend((0..8).map(|dimension| (format!("d{dimension}.tdb"), 1 << 40)));
    let time = TimedName { t1: 1, t2: 1, version: Some(name_version) };
    let commit = Commit { name: "fragment".into(), folder: "fragment".into(), time };
    let fragment = Fragment::new(&commit, files, footer, &schema)?;
    let mut blocks = vec![];
    let mut fields = 0..schema.attributes.len();
    if schema.kind == ArrayKind::Sparse {
        fields.end = fragment.fields();
        let footer = &fragment.footer;
        for offset in [Some(footer.rtree), footer.processed_conditions].into_iter().flatten() {
            blocks.push(footer.block(offset)?);
        }
    }
    // The slot after the attributes is unused.
    for field in fields.filter(|field| *field != schema.attributes.len()) {
        blocks
            .extend(block_locations(&fragment, field)?.into_iter().map(|at| at.range.within(len)));
    }
    Ok(blocks)
}

/// The listings of an array's folders, and the files that determine which fragments and which delete
/// conditions are visible.
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
    /// The names and contents of the `.del` files.
    pub deletions: Vec<(String, Bytes)>,
}

/// The fragments and delete conditions that an open sees.
#[derive(Debug)]
pub struct Visible {
    /// The folders of the fragments.
    pub folders: Vec<String>,
    /// The marker and the time of each delete condition.
    pub deletions: Vec<(String, u64)>,
}

/// Returns the fragments and delete conditions that an open sees.
///
/// # Errors
/// Fails if the listings or the files are malformed or unsupported.
pub fn commits(listings: Listings, kind: ArrayKind, options: &OpenOptions) -> Result<Visible> {
    let Listings { root, commits, consolidated, ignored, vacuumed, deletions } = listings;
    let (root, commits) = (&root, &commits);
    let files = CommitFiles { root, commits, consolidated, ignored, vacuumed, deletions };
    let folders = files.visible(kind, options)?.into_iter().map(|commit| commit.folder).collect();
    let deletions = match kind {
        ArrayKind::Dense => vec![],
        ArrayKind::Sparse => files.visible_deletions(options)?,
    };
    let deletions = deletions.into_iter().map(|it| (it.marker, it.time)).collect();
    Ok(Visible { folders, deletions })
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

impl AttributeKind {
    /// Makes the attribute of a schema, whose fill value is zeros.
    fn bytes(self) -> Vec<u8> {
        let Self { datatype, values, nullable } = self;
        let size = Datatype::from_code(datatype).map_or(1, Datatype::size);
        let fill = vec![0; if values == VARIABLE { 0 } else { to_usize(u64::from(values) * size) }];
        testing::attribute("a", datatype, values, &fill, nullable, "")
    }
}

/// Makes the files of an array of 5 × 7 cells with one attribute and one fragment of four tiles.
/// `blocks` are the attribute's blocks in the order of the footer; `files` hold values, content and
/// validity.
pub fn array(
    attribute: AttributeKind,
    blocks: [&[u8]; 8],
    files: [&[u8]; 3],
) -> BTreeMap<String, Bytes> {
    let schema = SchemaBytes { attributes: vec![attribute.bytes()], ..SchemaBytes::dense_2d() };
    let (starts, mut metadata) = testing::in_a_row(&blocks.map(<[u8]>::to_vec));
    let mut columns = [0; 8];
    columns.copy_from_slice(&starts);
    let file_sizes = files.map(|file| file.len() as u64);
    let footer = FooterBytes { file_sizes, columns, ..FooterBytes::dense_2d() }.content();
    metadata.extend(&footer);
    metadata.extend(words(&[footer.len() as u64]));

    let mut folder = with_schema(&schema.content());
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
    let mut folder = with_schema(&SchemaBytes::dense_2d().content());
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

/// Makes an array with one schema, which has this content.
fn with_schema(content: &[u8]) -> Folder {
    let mut folder = Folder::default();
    folder.put(&format!("__schema/{SCHEMA_NAME}"), &envelope(content));
    folder
}

/// The schema of a [`sparse_array`].
#[derive(Debug, Clone, Copy)]
pub struct SparseKind<'a> {
    /// The codes of the types of its dimensions. Numbers go from 0 to 100, in tiles of 10.
    pub dimensions: &'a [u8],
    /// Its only attribute.
    pub attribute: AttributeKind,
    /// Whether several cells may have the same coordinates.
    pub allows_duplicates: bool,
    /// The codes of the orders of tiles and cells.
    pub orders: [u8; 2],
    /// Cells per tile.
    pub capacity: u64,
}

/// The tiles of one field of a [`sparse_array`].
#[derive(Debug, Clone, Copy, Default)]
pub struct SparseField<'a> {
    /// The blocks of its tile index, in the order of the footer.
    pub blocks: [&'a [u8]; 4],
    /// Its files: values, content and validity.
    pub files: [&'a [u8]; 3],
}

/// The parts of a [`sparse_array`]; all blocks without their envelopes.
#[derive(Debug, Clone, Copy)]
pub struct SparseParts<'a> {
    /// Its schema.
    pub kind: SparseKind<'a>,
    /// Whether its fragment stores the time of each cell.
    pub has_times: bool,
    /// Whether its fragment stores when each cell was deleted.
    pub has_deletions: bool,
    /// The number of tiles.
    pub tiles: u64,
    /// The number of cells in the last tile.
    pub last_tile_cells: u64,
    /// The block of the R-tree.
    pub rtree: &'a [u8],
    /// The block of the delete conditions that were applied to the fragment.
    pub applied: &'a [u8],
    /// The blocks of statistics of the attribute, in the order of the footer.
    pub statistics: [&'a [u8]; 4],
    /// The attribute, the dimensions, and the fields of times. Missing fields are empty.
    pub fields: &'a [SparseField<'a>],
    /// The content of the only delete condition; empty if there is none.
    pub condition: &'a [u8],
}

/// Returns the path of the file of the delete condition, by which fragments list it.
pub fn condition_file() -> String {
    format!("{COMMITS}/__7_7_{UUID}_22.del")
}

/// Returns the content of the schema of a sparse array.
pub fn sparse_schema(kind: &SparseKind<'_>) -> Vec<u8> {
    let mut bytes = 22_u32.to_le_bytes().to_vec();
    bytes.extend([u8::from(kind.allows_duplicates), 1]);
    bytes.extend(kind.orders);
    bytes.extend(words(&[kind.capacity]));
    bytes.extend(NO_FILTERS.repeat(3));
    bytes.extend((kind.dimensions.len() as u32).to_le_bytes());
    for (number, code) in kind.dimensions.iter().enumerate() {
        bytes.extend(sparse_dimension(&format!("d{number}"), *code));
    }
    bytes.extend(1_u32.to_le_bytes());
    bytes.extend(kind.attribute.bytes());
    // No labels, no enumerations, no current domain.
    bytes.extend([0; 8]);
    bytes.extend([0, 0, 0, 0, 1]);
    bytes
}

fn sparse_dimension(name: &str, code: u8) -> Vec<u8> {
    let mut bytes = (name.len() as u32).to_le_bytes().to_vec();
    bytes.extend(name.as_bytes());
    bytes.push(code);
    let Some([low, high, extent]) = numbers_of(code) else {
        bytes.extend(VARIABLE.to_le_bytes());
        bytes.extend(NO_FILTERS);
        bytes.extend(words(&[0]));
        bytes.push(1);
        return bytes;
    };
    bytes.extend(1_u32.to_le_bytes());
    bytes.extend(NO_FILTERS);
    bytes.extend(words(&[2 * low.len() as u64]));
    bytes.extend([low, high].concat());
    bytes.push(0);
    bytes.extend(extent);
    bytes
}

/// Returns 0, 100 and 10 in the bytes of a type; `None` for text.
fn numbers_of(code: u8) -> Option<[Vec<u8>; 3]> {
    let datatype = Datatype::from_code(code).unwrap_or(Datatype::Any);
    if datatype.is_string() {
        return None;
    }
    Some([0_u8, 100, 10].map(|number| match datatype {
        Datatype::Float32 => f32::from(number).to_le_bytes().to_vec(),
        Datatype::Float64 => f64::from(number).to_le_bytes().to_vec(),
        _ => u64::from(number).to_le_bytes()[..to_usize(datatype.size())].to_vec(),
    }))
}

/// Returns the range of all coordinates of a dimension: numbers from 0 to 100, or texts from "a" to "z".
fn whole_range(code: u8) -> Vec<u8> {
    match numbers_of(code) {
        Some([low, high, _]) => [low, high].concat(),
        None => [words(&[2, 1]), b"az".to_vec()].concat(),
    }
}

/// Makes the files of a sparse array with one attribute, one fragment and at most one delete condition.
pub fn sparse_array(parts: &SparseParts<'_>) -> BTreeMap<String, Bytes> {
    let SparseParts { kind, has_times, has_deletions, .. } = *parts;
    let dimensions = (0..kind.dimensions.len()).map(|number| format!("d{number}"));
    let mut stems: Vec<String> = ["a0".to_owned()].into_iter().chain(dimensions).collect();
    stems.extend(has_times.then(|| "t".to_owned()));
    stems.extend(["dt", "dci"].into_iter().filter(|_| has_deletions).map(str::to_owned));
    let field = |number: usize| parts.fields.get(number).copied().unwrap_or_default();
    let mut fields: Vec<SparseField<'_>> = (0..stems.len()).map(field).collect();
    // The slot after the attribute is unused.
    fields.insert(1, SparseField::default());

    let mut blocks = vec![parts.rtree.to_vec()];
    for block in 0..4 {
        blocks.extend(fields.iter().map(|field| field.blocks[block].to_vec()));
    }
    for statistics in parts.statistics {
        blocks.push(statistics.to_vec());
        blocks.resize(blocks.len() + fields.len() - 1, vec![]);
    }
    // The statistics of the whole fragment are not read.
    blocks.extend([vec![], parts.applied.to_vec()]);
    let (starts, mut metadata) = testing::in_a_row(&blocks);

    let mut footer = 22_u32.to_le_bytes().to_vec();
    footer.extend(words(&[SCHEMA_NAME.len() as u64]));
    footer.extend(SCHEMA_NAME.as_bytes());
    footer.extend([0, 0]);
    footer.extend(kind.dimensions.iter().flat_map(|code| whole_range(*code)));
    footer.extend(words(&[parts.tiles, parts.last_tile_cells]));
    footer.extend([u8::from(has_times), u8::from(has_deletions)]);
    for file in 0..3 {
        footer.extend(fields.iter().flat_map(|field| words(&[field.files[file].len() as u64])));
    }
    footer.extend(words(&starts));
    metadata.extend(&footer);
    metadata.extend(words(&[footer.len() as u64]));

    let mut folder = with_schema(&sparse_schema(&kind));
    let last = if has_times { 9 } else { 5 };
    let name = format!("__5_{last}_{UUID}_22");
    folder.put(&format!("__fragments/{name}/{METADATA_FILE}"), &metadata);
    folder.put(&format!("{COMMITS}/{name}.wrt"), b"");
    for (number, stem) in stems.iter().enumerate() {
        for (suffix, content) in ["", "_var", "_validity"].iter().zip(field(number).files) {
            folder.put(&format!("__fragments/{name}/{stem}{suffix}.tdb"), content);
        }
    }
    if !parts.condition.is_empty() {
        folder.put(&condition_file(), &envelope(parts.condition));
    }
    folder.0
}
