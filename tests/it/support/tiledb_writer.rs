//! A writer of dense TileDB arrays (format 22) that uses no code of the library.
//!
//! ```text
//!   TestArray ──▶ __schema/__t_t_uuid            one per TestSchema
//!                 __commits/*.wrt, *.con, *.vac
//!                 __fragments/__t1_t2_uuid_22/   one per TestFragment: metadata, a0.tdb, …
//! ```
//!
//! Bytes without a meaning are random: cells of edge tiles outside of the fragment, NULL cells, and the
//! least and greatest values of tiles that are all NULL.

use std::collections::BTreeMap;
use std::path::Path;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::support::positions;
use crate::support::tiledb_statistics::{blocks_of_statistics, no_statistics};
use crate::support::tiledb_tiles::{Column, FieldMetadata, metadata_file};

pub(crate) const INT32: u8 = 0;
pub(crate) const INT64: u8 = 1;
pub(crate) const FLOAT32: u8 = 2;
pub(crate) const FLOAT64: u8 = 3;
pub(crate) const CHAR: u8 = 4;
pub(crate) const INT8: u8 = 5;
pub(crate) const UINT8: u8 = 6;
pub(crate) const INT16: u8 = 7;
pub(crate) const UINT16: u8 = 8;
pub(crate) const UINT32: u8 = 9;
pub(crate) const UINT64: u8 = 10;
pub(crate) const ASCII: u8 = 11;
pub(crate) const UTF8: u8 = 12;
pub(crate) const UTF16: u8 = 13;
/// Dates, from years to attoseconds.
pub(crate) const DATE_TIMES: std::ops::Range<u8> = 18..31;
/// Lengths of time, from hours to attoseconds.
pub(crate) const TIMES: std::ops::Range<u8> = 31..40;
pub(crate) const BLOB: u8 = 40;
pub(crate) const BOOL: u8 = 41;

/// Bytes of a value of the type with this code.
pub(crate) fn width(code: u8) -> usize {
    match code {
        INT64 | FLOAT64 | UINT64 | 18..40 => 8,
        INT32 | FLOAT32 | UINT32 => 4,
        INT16 | UINT16 | UTF16 => 2,
        _ => 1,
    }
}

pub(crate) fn is_temporal(code: u8) -> bool {
    DATE_TIMES.contains(&code) || TIMES.contains(&code)
}

pub(crate) fn is_unsigned(code: u8) -> bool {
    matches!(code, UINT8 | UINT16 | UINT32 | UINT64)
}

pub(crate) fn is_integer(code: u8) -> bool {
    is_unsigned(code) || matches!(code, INT8 | INT16 | INT32 | INT64)
}

/// A filter pipeline of tiles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Filters {
    None,
    Zstd,
    ShuffleZstd,
}

#[derive(Debug, Clone)]
pub(crate) struct TestDimension {
    pub(crate) name: String,
    pub(crate) code: u8,
    /// The domain, both ends included.
    pub(crate) domain: (i128, i128),
    pub(crate) extent: i128,
}

#[derive(Debug, Clone)]
pub(crate) struct TestAttribute {
    pub(crate) name: String,
    pub(crate) code: u8,
    /// Values per cell; `None` for any number.
    pub(crate) values: Option<u32>,
    pub(crate) nullable: bool,
    pub(crate) fill: Vec<u8>,
    pub(crate) fill_valid: bool,
    pub(crate) filters: Filters,
}

/// A schema that applies from `time` on.
#[derive(Debug, Clone)]
pub(crate) struct TestSchema {
    pub(crate) time: u64,
    pub(crate) dimensions: Vec<TestDimension>,
    pub(crate) attributes: Vec<TestAttribute>,
    /// Whether the first axis varies fastest: in the order of tiles, and in the order of cells.
    pub(crate) column_major: [bool; 2],
    pub(crate) current_domain: Option<Vec<(i128, i128)>>,
    pub(crate) offsets: Filters,
    pub(crate) validity: Filters,
}

/// The bytes of a cell; `None` for NULL.
pub(crate) type Cell = Option<Vec<u8>>;

/// The tile statistics that a fragment stores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum TestStatistics {
    Absent,
    /// The statistics that TileDB computes.
    Right,
    /// Wrong statistics, which a reader must ignore: those of consolidated fragments include cells
    /// that no write made.
    Wrong,
}

#[derive(Debug, Clone)]
pub(crate) struct TestFragment {
    pub(crate) times: (u64, u64),
    /// The index of its schema in `TestArray::schemas`.
    pub(crate) schema: usize,
    /// The covered coordinates per axis, both ends included.
    pub(crate) ranges: Vec<(i128, i128)>,
    /// Per attribute of the schema, the covered cells in row-major order.
    pub(crate) cells: Vec<Vec<Cell>>,
    pub(crate) statistics: TestStatistics,
}

/// A vacuum file: it hides fragments from every open whose range of times includes `times`.
#[derive(Debug, Clone)]
pub(crate) struct TestVacuum {
    pub(crate) times: (u64, u64),
    /// The numbers of the fragments.
    pub(crate) fragments: Vec<usize>,
}

#[derive(Debug, Clone)]
pub(crate) struct TestArray {
    /// In order of time.
    pub(crate) schemas: Vec<TestSchema>,
    pub(crate) fragments: Vec<TestFragment>,
    pub(crate) vacuums: Vec<TestVacuum>,
    /// Whether some fragments are committed by a list instead of a file each.
    pub(crate) commit_list: bool,
}

/// The files of an array, by their paths below it.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// Writes files below a folder.
pub(crate) fn put_in_folder(files: &Files, folder: &Path) {
    for (path, bytes) in files {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}

pub(crate) fn words(words: impl IntoIterator<Item = u64>) -> Vec<u8> {
    words.into_iter().flat_map(u64::to_le_bytes).collect()
}

/// A text after its length of four bytes.
pub(crate) fn text32(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat()
}

/// An integer of the type with this code.
pub(crate) fn integer(code: u8, number: i128) -> Vec<u8> {
    number.to_le_bytes()[..width(code)].to_vec()
}

impl Filters {
    /// The list of filters in a schema.
    pub(crate) fn pipeline(self) -> Vec<u8> {
        const SHUFFLE: [u8; 5] = [9, 0, 0, 0, 0];
        const ZSTD: [u8; 10] = [2, 5, 0, 0, 0, 2, 1, 0, 0, 0];
        let (count, filters) = match self {
            Self::None => (0_u32, vec![]),
            Self::Zstd => (1, ZSTD.to_vec()),
            Self::ShuffleZstd => (2, [&SHUFFLE[..], &ZSTD].concat()),
        };
        [&65_536_u32.to_le_bytes()[..], &count.to_le_bytes(), &filters].concat()
    }

    /// Filters a chunk; returns its metadata and its data.
    fn apply(self, data: &[u8], width: usize) -> (Vec<u8>, Vec<u8>) {
        let zstd = |part: &[u8]| zstd::encode_all(part, 1).unwrap();
        let numbers = |numbers: &[usize]| -> Vec<u8> {
            numbers.iter().flat_map(|number| (*number as u32).to_le_bytes()).collect()
        };
        match self {
            Self::None => (vec![], data.to_vec()),
            Self::Zstd => {
                let packed = zstd(data);
                (numbers(&[0, 1, data.len(), packed.len()]), packed)
            }
            Self::ShuffleZstd => {
                let parts = numbers(&[1, data.len()]);
                let (metadata, content) = (zstd(&parts), zstd(&shuffle(data, width)));
                let lens = [1, 1, parts.len(), metadata.len(), data.len(), content.len()];
                (numbers(&lens), [metadata, content].concat())
            }
        }
    }

    /// Filters the data of a tile in one to three chunks, each a multiple of `unit` bytes.
    pub(crate) fn tile(self, data: &[u8], unit: usize, width: usize, rng: &mut StdRng) -> Vec<u8> {
        let count = data.len() / unit;
        let mut cuts: Vec<usize> = (0..rng.random_range(0..3))
            .filter(|_| count > 0)
            .map(|_| rng.random_range(0..count) * unit)
            .chain([0, data.len()])
            .collect();
        cuts.sort_unstable();
        let chunks: Vec<&[u8]> = cuts.windows(2).map(|ends| &data[ends[0]..ends[1]]).collect();
        let mut tile = words([chunks.len() as u64]);
        for chunk in chunks {
            let (metadata, filtered) = self.apply(chunk, width);
            for len in [chunk.len(), filtered.len(), metadata.len()] {
                tile.extend((len as u32).to_le_bytes());
            }
            tile.extend(metadata);
            tile.extend(filtered);
        }
        tile
    }
}

fn shuffle(data: &[u8], width: usize) -> Vec<u8> {
    let count = data.len() / width;
    let plane = |byte| (0..count).map(move |element| data[element * width + byte]);
    (0..width).flat_map(plane).chain(data[count * width..].iter().copied()).collect()
}

/// A generic tile (an envelope around `content`) with one unfiltered chunk.
pub(crate) fn generic_tile(content: &[u8]) -> Vec<u8> {
    let mut rng = StdRng::seed_from_u64(0);
    let tile = Filters::None.tile(content, content.len().max(1), 1, &mut rng);
    let mut bytes = 22_u32.to_le_bytes().to_vec();
    bytes.extend(words([tile.len() as u64, content.len() as u64]));
    bytes.push(CHAR);
    bytes.extend(words([1]));
    bytes.push(0);
    let pipeline = Filters::None.pipeline();
    bytes.extend((pipeline.len() as u32).to_le_bytes());
    bytes.extend(pipeline);
    bytes.extend(tile);
    bytes
}

/// The UUID in the name of a fragment or another file.
pub(crate) fn uuid(number: usize) -> String {
    format!("{number:032x}")
}

impl TestDimension {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = text32(&self.name);
        bytes.push(self.code);
        bytes.extend(1_u32.to_le_bytes());
        bytes.extend(Filters::None.pipeline());
        bytes.extend(words([2 * width(self.code) as u64]));
        bytes.extend(range(self, self.domain));
        bytes.push(0);
        bytes.extend(integer(self.code, self.extent));
        bytes
    }

    /// The number of the tile that holds a coordinate.
    fn tile_of(&self, coordinate: i128) -> i128 {
        (coordinate - self.domain.0) / self.extent
    }
}

fn range(dimension: &TestDimension, (low, high): (i128, i128)) -> Vec<u8> {
    [integer(dimension.code, low), integer(dimension.code, high)].concat()
}

impl TestAttribute {
    /// The attribute in a schema.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = text32(&self.name);
        bytes.push(self.code);
        bytes.extend(self.values.unwrap_or(u32::MAX).to_le_bytes());
        bytes.extend(self.filters.pipeline());
        bytes.extend(words([self.fill.len() as u64]));
        bytes.extend(&self.fill);
        bytes.extend([u8::from(self.nullable), u8::from(self.fill_valid), 0]);
        bytes.extend(text32("")); // no enumeration
        bytes
    }

    /// Bytes of a cell, if all have the same number.
    pub(crate) fn cell_width(&self) -> Option<usize> {
        self.values.map(|values| values as usize * width(self.code))
    }
}

impl TestSchema {
    pub(crate) fn name(&self) -> String {
        format!("__{0}_{0}_{1}", self.time, uuid(0xabc))
    }

    pub(crate) fn content(&self) -> Vec<u8> {
        let mut bytes = 22_u32.to_le_bytes().to_vec();
        bytes.extend([0, 0]); // no duplicates, dense
        bytes.extend(self.column_major.map(u8::from));
        bytes.extend(words([10_000]));
        for filters in [Filters::Zstd, self.offsets, self.validity] {
            bytes.extend(filters.pipeline());
        }
        bytes.extend((self.dimensions.len() as u32).to_le_bytes());
        bytes.extend(self.dimensions.iter().flat_map(TestDimension::bytes));
        bytes.extend((self.attributes.len() as u32).to_le_bytes());
        bytes.extend(self.attributes.iter().flat_map(TestAttribute::bytes));
        bytes.extend([0; 8]); // no labels, no enumerations
        bytes.extend([0, 0, 0, 0, u8::from(self.current_domain.is_none())]);
        if let Some(ranges) = &self.current_domain {
            bytes.push(0);
            let ranges = self.dimensions.iter().zip(ranges).map(|(axis, it)| range(axis, *it));
            bytes.extend(ranges.flatten());
        }
        bytes
    }
}

impl TestArray {
    /// The name of a fragment's folder.
    pub(crate) fn fragment_name(&self, number: usize) -> String {
        let (t1, t2) = self.fragments[number].times;
        format!("__{t1}_{t2}_{}_22", uuid(number))
    }

    /// All files of the array.
    pub(crate) fn files(&self, rng: &mut StdRng) -> Files {
        let mut files = Files::new();
        for schema in &self.schemas {
            files.insert(format!("__schema/{}", schema.name()), generic_tile(&schema.content()));
        }
        let mut listed = String::new();
        for (number, fragment) in self.fragments.iter().enumerate() {
            let name = self.fragment_name(number);
            let written = Written::new(&self.schemas[fragment.schema], fragment, rng);
            for (file, bytes) in written.files {
                files.insert(format!("__fragments/{name}/{file}"), bytes);
            }
            match self.commit_list && rng.random_bool(0.5) {
                true => listed += &format!("__commits/{name}.wrt\n"),
                false => _ = files.insert(format!("__commits/{name}.wrt"), vec![]),
            }
        }
        if !listed.is_empty() {
            files.insert(format!("__commits/__1_2_{}_22.con", uuid(0xc0)), listed.into());
        }
        for (number, TestVacuum { times: (t1, t2), fragments }) in self.vacuums.iter().enumerate() {
            let lines =
                fragments.iter().map(|at| format!("/__fragments/{}\n", self.fragment_name(*at)));
            let name = format!("__commits/__{t1}_{t2}_{}_22.vac", uuid(0xd0 + number));
            files.insert(name, lines.collect::<String>().into());
        }
        files
    }
}

/// All positions of a box, in row-major or column-major order.
fn in_order(shape: &[u64], column_major: bool) -> Vec<Vec<u64>> {
    if !column_major {
        return positions(shape);
    }
    let mut all = positions(&shape.iter().rev().copied().collect::<Vec<_>>());
    all.iter_mut().for_each(|at| at.reverse());
    all
}

/// The files of a fragment, by their names.
struct Written {
    files: Files,
}

impl Written {
    fn new(schema: &TestSchema, fragment: &TestFragment, rng: &mut StdRng) -> Self {
        let columns = columns(schema, fragment, rng);
        let mut files = Files::new();
        for (number, column) in columns.iter().enumerate() {
            files.extend(column.named_files(&format!("a{number}")));
        }
        files.insert("__fragment_metadata.tdb".into(), metadata(schema, fragment, &columns, rng));
        Self { files }
    }
}

fn columns(schema: &TestSchema, fragment: &TestFragment, rng: &mut StdRng) -> Vec<Column> {
    let axes = || schema.dimensions.iter().zip(&fragment.ranges);
    let first: Vec<i128> = axes().map(|(axis, range)| axis.tile_of(range.0)).collect();
    let counts: Vec<u64> = axes()
        .zip(&first)
        .map(|((axis, range), first)| (axis.tile_of(range.1) - first + 1) as u64)
        .collect();
    let extents: Vec<u64> = schema.dimensions.iter().map(|axis| axis.extent as u64).collect();
    let mut columns: Vec<Column> = schema.attributes.iter().map(|_| Column::default()).collect();
    let in_tile = in_order(&extents, schema.column_major[1]);
    for tile in in_order(&counts, schema.column_major[0]) {
        // The place of a tile's cell among the cells of the fragment; `None` outside of it.
        let place = |cell: &Vec<u64>| {
            axes().enumerate().try_fold(0_usize, |place, (at, (axis, range))| {
                let tile = first[at] + i128::from(tile[at]);
                let coordinate = axis.domain.0 + tile * axis.extent + i128::from(cell[at]);
                let inside = range.0 <= coordinate && coordinate <= range.1;
                let len = (range.1 - range.0 + 1) as usize;
                inside.then(|| place * len + (coordinate - range.0) as usize)
            })
        };
        let places: Vec<Option<usize>> = in_tile.iter().map(place).collect();
        for (number, column) in columns.iter_mut().enumerate() {
            let all = &fragment.cells[number];
            let cells: Vec<_> = places.iter().map(|place| place.map(|at| &all[at])).collect();
            let filters = [schema.offsets, schema.validity];
            column.add_tile(&schema.attributes[number], filters, &cells, rng);
        }
    }
    columns
}

/// The file of a fragment's metadata.
fn metadata(
    schema: &TestSchema,
    fragment: &TestFragment,
    columns: &[Column],
    rng: &mut StdRng,
) -> Vec<u8> {
    let attributes = schema.attributes.iter().zip(columns).map(|(attribute, column)| {
        let statistics = blocks_of_statistics(attribute, &column.written, fragment.statistics, rng);
        (Some(column), statistics)
    });
    let mut fields: Vec<FieldMetadata<'_>> = attributes.collect();
    // An unused slot, and the dimensions, which have no tiles in dense arrays.
    fields.extend((0..=schema.dimensions.len()).map(|_| (None, no_statistics())));
    let no_rtree = [10_u32.to_le_bytes(), [0; 4]].concat();
    let no_conditions = vec![0; 8];
    metadata_file(footer(schema, fragment), no_rtree, &fields, Some(no_conditions))
}

/// The footer of a fragment, up to its lists of fields.
fn footer(schema: &TestSchema, fragment: &TestFragment) -> Vec<u8> {
    let name = schema.name();
    let mut footer = 22_u32.to_le_bytes().to_vec();
    footer.extend(words([name.len() as u64]));
    footer.extend(name.as_bytes());
    footer.extend([1, 0]);
    let ranges = schema.dimensions.iter().zip(&fragment.ranges).map(|(axis, it)| range(axis, *it));
    footer.extend(ranges.flatten());
    footer.extend(words([0, 0]));
    footer.extend([0, 0]);
    footer
}

/// Random bytes, in place of bytes without a meaning.
pub(crate) fn junk(len: usize, rng: &mut StdRng) -> Vec<u8> {
    (0..len).map(|_| rng.random()).collect()
}
