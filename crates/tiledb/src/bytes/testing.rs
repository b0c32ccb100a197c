//! Builders of small arrays for tests: they make bytes from the description of the format, without the
//! reader.
//!
//! Most tests use the schema of [`SchemaBytes::dense_2d`] and fragments of [`Folder::write`]. Rows `y` go
//! from 1 to 5 in tiles of 2, and columns `x` from 1 to 7 in tiles of 3:
//!
//! ```text
//!          x 1 2 3 │ 4 5 6 │ 7 (8 9)
//!   y 1, 2   tile 0│ tile 1│ tile 2
//!   y 3, 4   tile 3│ tile 4│ tile 5
//!   y 5 (6)  tile 6│ tile 7│ tile 8
//! ```

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;

use gridfusion_core::Result;
use gridfusion_core::format::{Entry, Location, Machine, Replies, Step};

pub(super) const UUID: &str = "0123456789abcdef0123456789abcdef";
pub(super) const SCHEMA_NAME: &str = "__1_1_0123456789abcdef0123456789abcdef";
/// An empty pipeline.
pub(super) const NO_FILTERS: [u8; 8] = [0, 0, 1, 0, 0, 0, 0, 0];

fn text32(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat()
}

fn text64(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}

pub(super) fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Makes a tile of one chunk, without filters.
pub(super) fn tile(content: &[u8]) -> Vec<u8> {
    let len = (content.len() as u32).to_le_bytes();
    [&1_u64.to_le_bytes()[..], &len, &len, &[0; 4], content].concat()
}

/// Makes a generic tile of `content`: format 22, type CHAR, cells of 1 byte, not encrypted, without filters.
pub(super) fn generic_tile(content: &[u8]) -> Vec<u8> {
    let tile = tile(content);
    let mut bytes = 22_u32.to_le_bytes().to_vec();
    bytes.extend(words(&[tile.len() as u64, content.len() as u64]));
    bytes.push(4);
    bytes.extend(words(&[1]));
    bytes.push(0);
    bytes.extend(8_u32.to_le_bytes());
    bytes.extend(NO_FILTERS);
    bytes.extend(tile);
    bytes
}

/// Makes a dimension whose type has 4 bytes.
pub(super) fn dimension(name: &str, code: u8, low: i32, high: i32, extent: i32) -> Vec<u8> {
    let mut bytes = text32(name);
    bytes.push(code);
    bytes.extend(1_u32.to_le_bytes());
    bytes.extend(NO_FILTERS);
    bytes.extend(8_u64.to_le_bytes());
    bytes.extend([low, high].map(i32::to_le_bytes).concat());
    bytes.push(0);
    bytes.extend(extent.to_le_bytes());
    bytes
}

/// Makes an attribute of format 22.
pub(super) fn attribute(
    name: &str,
    code: u8,
    values: u32,
    fill: &[u8],
    nullable: bool,
    enumeration: &str,
) -> Vec<u8> {
    let mut bytes = text32(name);
    bytes.push(code);
    bytes.extend(values.to_le_bytes());
    bytes.extend(NO_FILTERS);
    bytes.extend((fill.len() as u64).to_le_bytes());
    bytes.extend(fill);
    bytes.extend([u8::from(nullable), 0, 0]);
    bytes.extend(text32(enumeration));
    bytes
}

/// Makes the attribute "v" of 4-byte integers, as format `version` stores it.
fn plain_attribute(version: u32) -> Vec<u8> {
    let all = attribute("v", 0, 1, &(-7_i32).to_le_bytes(), false, "");
    // Older formats lack fields at the end: the fill value (length and 4 bytes), two flags, the order, and
    // the length of the enumeration's name.
    let left_out = match version {
        ..6 => 12 + 2 + 1 + 4,
        6 => 2 + 1 + 4,
        7..17 => 1 + 4,
        17..20 => 4,
        _ => 0,
    };
    all[..all.len() - left_out].to_vec()
}

pub(super) fn label(dimension: u32, name: &str, uri: &str) -> Vec<u8> {
    let mut bytes = dimension.to_le_bytes().to_vec();
    bytes.extend(text32(name));
    bytes.push(1);
    bytes.extend(text64(uri));
    bytes.extend(text32("label"));
    bytes.extend([1, 3]);
    bytes.extend(1_u32.to_le_bytes());
    bytes.push(0);
    bytes
}

pub(super) fn enumeration(
    name: &str,
    code: u8,
    values: u32,
    data: &[u8],
    offsets: &[u64],
) -> Vec<u8> {
    let mut bytes = 0_u32.to_le_bytes().to_vec();
    bytes.extend([text32(name), text32("file")].concat());
    bytes.push(code);
    bytes.extend(values.to_le_bytes());
    bytes.push(0);
    bytes.extend((data.len() as u64).to_le_bytes());
    bytes.extend(data);
    if values == u32::MAX {
        bytes.extend((offsets.len() as u64 * 8).to_le_bytes());
        bytes.extend(words(offsets));
    }
    bytes
}

/// A schema of rows in tiles of 2 and columns in tiles of 3.
pub(super) struct SchemaBytes {
    pub(super) version: u32,
    pub(super) orders: [u8; 2],
    /// The greatest row and column; the least are 1.
    pub(super) high: [i32; 2],
    /// Attributes in format 22; if empty, the schema has the integer "v".
    pub(super) attributes: Vec<Vec<u8>>,
    pub(super) labels: Vec<Vec<u8>>,
    pub(super) enumerations: Vec<(&'static str, &'static str)>,
    pub(super) current_domain: Option<Vec<(i32, i32)>>,
}

impl SchemaBytes {
    pub(super) fn dense_2d() -> Self {
        Self {
            version: 22,
            orders: [0, 0],
            high: [5, 7],
            attributes: vec![],
            labels: vec![],
            enumerations: vec![],
            current_domain: None,
        }
    }

    pub(super) fn content(&self) -> Vec<u8> {
        let count = |len: usize| (len as u32).to_le_bytes();
        let mut bytes = self.version.to_le_bytes().to_vec();
        bytes.extend([0, 0]);
        bytes.extend(self.orders);
        bytes.extend(words(&[10_000]));
        bytes.extend(NO_FILTERS.repeat(if self.version < 7 { 2 } else { 3 }));
        bytes.extend(count(2));
        bytes.extend(dimension("y", 0, 1, self.high[0], 2));
        bytes.extend(dimension("x", 0, 1, self.high[1], 3));
        let attributes = match self.attributes.is_empty() {
            true => vec![plain_attribute(self.version)],
            false => self.attributes.clone(),
        };
        bytes.extend(count(attributes.len()));
        bytes.extend(attributes.concat());
        if self.version >= 18 {
            bytes.extend(count(self.labels.len()));
            bytes.extend(self.labels.concat());
        }
        if self.version >= 20 {
            bytes.extend(count(self.enumerations.len()));
            for (name, file) in &self.enumerations {
                bytes.extend([text32(name), text32(file)].concat());
            }
        }
        if self.version >= 22 {
            bytes.extend([0, 0, 0, 0, u8::from(self.current_domain.is_none())]);
            if let Some(ranges) = &self.current_domain {
                bytes.push(0);
                bytes.extend(
                    ranges
                        .iter()
                        .flat_map(|(low, high)| [low, high].map(|at| at.to_le_bytes()))
                        .flatten(),
                );
            }
        }
        bytes
    }
}

/// The footer of a fragment; only its first field has files and blocks.
pub(super) struct FooterBytes {
    pub(super) version: u32,
    pub(super) schema_name: &'static str,
    pub(super) domain: [(i32, i32); 2],
    /// The sizes of the attribute's files: values, content and validity.
    pub(super) file_sizes: [u64; 3],
    /// The offsets of the attribute's blocks, in the order of the footer.
    pub(super) columns: [u64; 8],
    pub(super) fields: usize,
}

impl FooterBytes {
    pub(super) fn dense_2d() -> Self {
        Self {
            version: 22,
            schema_name: SCHEMA_NAME,
            domain: [(1, 4), (1, 4)],
            file_sizes: [0; 3],
            columns: [0; 8],
            fields: 4,
        }
    }

    pub(super) fn content(&self) -> Vec<u8> {
        let version = self.version;
        let since = |first: u32| usize::from(version >= first);
        let column = |first: &u64| {
            let mut column = vec![0; self.fields];
            column[0] = *first;
            words(&column)
        };
        let mut bytes = version.to_le_bytes().to_vec();
        if version >= 10 {
            bytes.extend(text64(self.schema_name));
        }
        bytes.extend([1, 0]);
        bytes.extend(
            self.domain.iter().flat_map(|(a, b)| [a, b].map(|at| at.to_le_bytes())).flatten(),
        );
        bytes.extend(words(&[0, 0]));
        bytes.extend([0, 0][..since(14) + since(15)].iter());
        bytes.extend(self.file_sizes[..2 + since(7)].iter().flat_map(column));
        bytes.extend(words(&[0]));
        bytes.extend(self.columns[..3 + since(7) + 4 * since(11)].iter().flat_map(column));
        bytes.extend(words(&[0, 0][..since(12) + since(16)]));
        if version >= 23 {
            bytes.extend([&1_u32.to_le_bytes()[..], &words(&[0]), &[3, 0, 0, 0, 7, 7, 7]].concat());
        }
        bytes
    }
}

/// The files of an array, by path.
#[derive(Debug, Clone, Default)]
pub(super) struct Folder(pub(super) BTreeMap<String, Bytes>);

impl Folder {
    pub(super) fn put(&mut self, path: &str, bytes: &[u8]) {
        self.0.insert(path.to_owned(), Bytes::copy_from_slice(bytes));
    }

    /// Returns the entries of a folder. Paths are sorted, so those of one subfolder follow one another.
    pub(super) fn list(&self, folder: &str) -> Vec<Entry> {
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let mut entries: Vec<Entry> = vec![];
        for (path, bytes) in &self.0 {
            let Some(below) = path.strip_prefix(&prefix) else { continue };
            let entry = match below.split_once('/') {
                Some((name, _)) => Entry::new(name, None),
                None => Entry::new(below, Some(bytes.len() as u64)),
            };
            if entries.last() != Some(&entry) {
                entries.push(entry);
            }
        }
        entries
    }

    /// Returns the bytes of a location, which must exist.
    pub(super) fn read(&self, at: &Location) -> Bytes {
        let object = &self.0[&*at.object];
        let range = at.range.within(object.len() as u64);
        object.slice(range.start as usize..range.end as usize)
    }

    /// Runs a machine to its end.
    pub(super) fn drive<M: Machine>(&self, machine: M) -> Result<M::Output> {
        self.drive_counting(machine).map(|(output, _)| output)
    }

    /// Runs a machine to its end, and counts the round trips.
    pub(super) fn drive_counting<M: Machine>(&self, mut machine: M) -> Result<(M::Output, usize)> {
        let mut replies = Replies::Start;
        for trips in 0.. {
            replies = match machine.step(replies)? {
                Step::Done(output) => return Ok((output, trips)),
                Step::List(folders) => {
                    Replies::Listings(folders.iter().map(|folder| self.list(folder)).collect())
                }
                Step::Read(locations) => {
                    Replies::Bytes(locations.iter().map(|at| self.read(at)).collect())
                }
                Step::ReadIfPresent(_) => unreachable!("folders are listed before they are read"),
            };
        }
        unreachable!()
    }

    /// Adds the fragment of one write at time `t` over `domain`, with the values that `value` returns for a
    /// row and a column. `orders` are those of tiles and cells, which must be the schema's.
    ///
    /// Cells of its tiles outside `domain` get a value that no test expects, and no part in the statistics.
    pub(super) fn write(
        &mut self,
        t: u64,
        domain: [(i32, i32); 2],
        orders: [u8; 2],
        value: impl Fn(i32, i32) -> i32,
    ) {
        let name = format!("__{t}_{t}_{UUID}_22");
        let tiles = tiles_of(domain, orders[0]);
        let cells: Vec<Vec<(i32, i32)>> = tiles.iter().map(|at| cells_of(*at, orders[1])).collect();
        let inside = |(y, x): &(i32, i32)| {
            (domain[0].0..=domain[0].1).contains(y) && (domain[1].0..=domain[1].1).contains(x)
        };
        let count = tiles.len() as u64;
        let (mut data, mut offsets) = (vec![], vec![count]);
        let (mut mins, mut maxs, mut sums) = (vec![], vec![], vec![count]);
        for cells in &cells {
            offsets.push(data.len() as u64);
            let stored = |at: &(i32, i32)| if inside(at) { value(at.0, at.1) } else { i32::MAX };
            data.extend(tile(
                &cells.iter().flat_map(|at| stored(at).to_le_bytes()).collect::<Vec<_>>(),
            ));
            let written = cells.iter().filter(|at| inside(at)).map(|(y, x)| value(*y, *x));
            mins.extend(written.clone().min());
            maxs.extend(written.clone().max());
            sums.push(written.map(i64::from).sum::<i64>().cast_unsigned());
        }
        let blocks = [words(&offsets), bounds(&mins), bounds(&maxs), words(&sums)];
        let (starts, mut metadata) = in_a_row(&blocks);
        let footer = FooterBytes {
            domain,
            file_sizes: [data.len() as u64, 0, 0],
            columns: [starts[0], 0, 0, 0, starts[1], starts[2], starts[3], 0],
            ..FooterBytes::dense_2d()
        };
        let footer = footer.content();
        metadata.extend(&footer);
        metadata.extend(words(&[footer.len() as u64]));
        self.put(&format!("__fragments/{name}/__fragment_metadata.tdb"), &metadata);
        self.put(&format!("__fragments/{name}/a0.tdb"), &data);
        self.put(&format!("__commits/{name}.wrt"), b"");
    }
}

/// Makes a block of least or greatest values.
fn bounds(bounds: &[i32]) -> Vec<u8> {
    let mut block = words(&[4 * bounds.len() as u64, 0]);
    block.extend(bounds.iter().flat_map(|bound| bound.to_le_bytes()));
    block
}

/// Puts `blocks` after an empty R-tree; returns the offset of each block, and all bytes.
pub(super) fn in_a_row(blocks: &[Vec<u8>]) -> (Vec<u64>, Vec<u8>) {
    let mut metadata = generic_tile(b"");
    let mut starts = vec![];
    for block in blocks {
        starts.push(metadata.len() as u64);
        metadata.extend(generic_tile(block));
    }
    (starts, metadata)
}

/// Returns the low corners of the tiles that a box touches, in tile order.
fn tiles_of(domain: [(i32, i32); 2], order: u8) -> Vec<(i32, i32)> {
    let lows = |(low, high): (i32, i32), extent: i32| {
        let tile = move |at: i32| (at - 1) / extent;
        (tile(low)..=tile(high)).map(move |tile| 1 + tile * extent)
    };
    let [ys, xs] = [(domain[0], 2), (domain[1], 3)]
        .map(|(range, extent)| -> Vec<i32> { lows(range, extent).collect() });
    in_order(&ys, &xs, order)
}

/// Returns the coordinates of the cells of a tile, in cell order.
fn cells_of((y, x): (i32, i32), order: u8) -> Vec<(i32, i32)> {
    let axis = |range: Range<i32>| -> Vec<i32> { range.collect() };
    in_order(&axis(y..y + 2), &axis(x..x + 3), order)
}

fn in_order(ys: &[i32], xs: &[i32], order: u8) -> Vec<(i32, i32)> {
    match order {
        0 => ys.iter().flat_map(|y| xs.iter().map(|x| (*y, *x))).collect(),
        _ => xs.iter().flat_map(|x| ys.iter().map(|y| (*y, *x))).collect(),
    }
}
