//! A writer of sparse TileDB arrays (format 22) that uses no code of the library.
//!
//! ```text
//!   SparseArray ──▶ __schema/__t_t_uuid              one per SparseSchema
//!                   __commits/*.wrt, *.del           one per fragment, one per deletion,
//!                   __commits/*.con, *.ign           or both in a list
//!                   __commits/*.vac                  one per SparseVacuum
//!                   __fragments/__t1_t2_uuid_22/     one per SparseFragment, by `sparse_fragment`
//! ```

use std::cmp::Ordering;

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use crate::support::sparse_fragment::fragment_files;
use crate::support::tiledb_statistics::{float, whole};
use crate::support::tiledb_writer::{
    ASCII, BLOB, CHAR, Cell, FLOAT32, FLOAT64, Files, Filters, TestAttribute, TestStatistics, UTF8,
    generic_tile, text32, uuid, words,
};

/// The orders of tiles and cells.
pub(crate) const ROW_MAJOR: u8 = 0;
pub(crate) const COLUMN_MAJOR: u8 = 1;
/// An order of cells only.
pub(crate) const HILBERT: u8 = 4;

/// The bytes of a coordinate.
pub(crate) type Coordinate = Vec<u8>;

#[derive(Debug, Clone)]
pub(crate) struct SparseDimension {
    pub(crate) name: String,
    /// The type: of numbers, of dates, or `ASCII`.
    pub(crate) code: u8,
    /// The least and the greatest coordinate; empty for text.
    pub(crate) domain: [Coordinate; 2],
    /// The extent of space tiles; always `None` for text.
    pub(crate) extent: Option<Vec<u8>>,
    /// A dimension without filters inherits the schema's filters of coordinates.
    pub(crate) filters: Filters,
}

/// A schema that applies from `time` on.
#[derive(Debug, Clone)]
pub(crate) struct SparseSchema {
    pub(crate) time: u64,
    pub(crate) dimensions: Vec<SparseDimension>,
    pub(crate) attributes: Vec<TestAttribute>,
    pub(crate) allows_duplicates: bool,
    pub(crate) tile_order: u8,
    pub(crate) cell_order: u8,
    /// Cells per data tile.
    pub(crate) capacity: u64,
    pub(crate) current_domain: Option<Vec<[Coordinate; 2]>>,
    pub(crate) coordinates: Filters,
    pub(crate) offsets: Filters,
    pub(crate) validity: Filters,
}

/// A cell of all attributes, with its coordinates.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// The time of its write.
    pub(crate) time: u64,
    /// The number of the deletion that deleted it, if consolidation marked it.
    pub(crate) deletion: Option<usize>,
    pub(crate) coordinates: Vec<Coordinate>,
    /// Per attribute of the fragment's schema.
    pub(crate) cells: Vec<Cell>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum State {
    Present,
    /// The writer was interrupted: the folder is there, but nothing commits it.
    Uncommitted,
    /// Vacuuming deleted the folder.
    Removed,
}

#[derive(Debug, Clone)]
pub(crate) struct SparseFragment {
    pub(crate) times: (u64, u64),
    /// The format version of the fragment. Since 15, windows of time see parts of a fragment.
    pub(crate) version: u32,
    pub(crate) state: State,
    /// The index of its schema in `SparseArray::schemas`.
    pub(crate) schema: usize,
    pub(crate) rows: Vec<Row>,
    /// Whether the fragment stores the time of each row.
    pub(crate) keeps_times: bool,
    /// Whether the fragment stores the deletion of each row.
    pub(crate) has_deletions: bool,
    /// The numbers of the deletions that consolidation applied.
    pub(crate) processed: Vec<usize>,
    pub(crate) statistics: TestStatistics,
}

/// A vacuum file: it hides the fragments that a consolidated fragment replaces.
#[derive(Debug, Clone)]
pub(crate) struct SparseVacuum {
    /// The number of the consolidated fragment.
    pub(crate) by: usize,
    /// The numbers of the replaced fragments.
    pub(crate) fragments: Vec<usize>,
}

/// A deletion of the rows for which `keeps` is false.
#[derive(Debug, Clone)]
pub(crate) struct Deletion {
    pub(crate) time: u64,
    pub(crate) keeps: Condition,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Operator {
    Less = 0,
    LessOrEqual = 1,
    Greater = 2,
    GreaterOrEqual = 3,
    Equal = 4,
    NotEqual = 5,
    In = 6,
    NotIn = 7,
}

/// A condition on the dimensions and attributes of a row.
#[derive(Debug, Clone)]
pub(crate) enum Condition {
    /// A comparison with one value, or with several for `In` and `NotIn`.
    Compare {
        field: String,
        operator: Operator,
        values: Vec<Vec<u8>>,
    },
    And(Vec<Condition>),
    Or(Vec<Condition>),
}

#[derive(Debug, Clone)]
pub(crate) struct SparseArray {
    /// In order of time.
    pub(crate) schemas: Vec<SparseSchema>,
    pub(crate) fragments: Vec<SparseFragment>,
    pub(crate) vacuums: Vec<SparseVacuum>,
    /// In order of time.
    pub(crate) deletions: Vec<Deletion>,
    /// Whether a list contains some commits and deletions, instead of a file each.
    pub(crate) commit_list: bool,
}

/// The order of two values of the type with this code; `None` if one is NaN.
pub(crate) fn compare(code: u8, a: &[u8], b: &[u8]) -> Option<Ordering> {
    match code {
        FLOAT32 | FLOAT64 => float(code, a).partial_cmp(&float(code, b)),
        ASCII | UTF8 | CHAR | BLOB => Some(a.cmp(b)),
        _ => Some(whole(code, a).cmp(&whole(code, b))),
    }
}

/// The two ends of a range of coordinates. Text is preceded by its lengths.
pub(crate) fn range_bytes(code: u8, [low, high]: &[Coordinate; 2]) -> Vec<u8> {
    let lens = match code {
        ASCII => words([(low.len() + high.len()) as u64, low.len() as u64]),
        _ => vec![],
    };
    [&lens[..], low, high].concat()
}

impl SparseDimension {
    fn bytes(&self) -> Vec<u8> {
        let values: u32 = if self.code == ASCII { u32::MAX } else { 1 };
        let mut bytes = text32(&self.name);
        bytes.push(self.code);
        bytes.extend(values.to_le_bytes());
        bytes.extend(self.filters.pipeline());
        let domain = self.domain.concat();
        bytes.extend(words([domain.len() as u64]));
        bytes.extend(domain);
        bytes.push(u8::from(self.extent.is_none()));
        bytes.extend(self.extent.iter().flatten());
        bytes
    }
}

impl SparseSchema {
    pub(crate) fn name(&self) -> String {
        format!("__{0}_{0}_{1}", self.time, uuid(0xabc))
    }

    fn content(&self) -> Vec<u8> {
        let mut bytes = 22_u32.to_le_bytes().to_vec();
        bytes.extend([u8::from(self.allows_duplicates), 1, self.tile_order, self.cell_order]);
        bytes.extend(words([self.capacity]));
        for filters in [self.coordinates, self.offsets, self.validity] {
            bytes.extend(filters.pipeline());
        }
        bytes.extend((self.dimensions.len() as u32).to_le_bytes());
        bytes.extend(self.dimensions.iter().flat_map(SparseDimension::bytes));
        bytes.extend((self.attributes.len() as u32).to_le_bytes());
        bytes.extend(self.attributes.iter().flat_map(TestAttribute::bytes));
        bytes.extend([0; 8]); // no labels, no enumerations
        bytes.extend([0, 0, 0, 0, u8::from(self.current_domain.is_none())]);
        if let Some(ranges) = &self.current_domain {
            bytes.push(0);
            let axes = self.dimensions.iter().zip(ranges);
            bytes.extend(axes.flat_map(|(axis, ends)| range_bytes(axis.code, ends)));
        }
        bytes
    }
}

impl Condition {
    /// The content of a file of a deletion.
    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Compare { field, operator, values } => {
                let mut bytes = vec![1, *operator as u8];
                bytes.extend(text32(field));
                let value = values.concat();
                bytes.extend(words([value.len() as u64]));
                bytes.extend(value);
                if matches!(operator, Operator::In | Operator::NotIn) {
                    let mut starts = vec![];
                    let mut next = 0;
                    for value in values {
                        starts.push(next);
                        next += value.len() as u64;
                    }
                    bytes.extend(words([8 * starts.len() as u64]));
                    bytes.extend(words(starts));
                }
                bytes
            }
            Self::And(parts) => Self::joined(0, parts),
            Self::Or(parts) => Self::joined(1, parts),
        }
    }

    fn joined(operator: u8, parts: &[Self]) -> Vec<u8> {
        let mut bytes = vec![0, operator];
        bytes.extend(words([parts.len() as u64]));
        bytes.extend(parts.iter().flat_map(Self::bytes));
        bytes
    }
}

impl SparseArray {
    /// The name of a fragment's folder.
    pub(crate) fn fragment_name(&self, number: usize) -> String {
        let SparseFragment { times: (t1, t2), version, .. } = self.fragments[number];
        format!("__{t1}_{t2}_{}_{version}", uuid(number))
    }

    /// The file of a deletion, which also identifies it in fragments that it was applied to.
    pub(crate) fn deletion_file(&self, number: usize) -> String {
        let time = self.deletions[number].time;
        format!("__commits/__{time}_{time}_{}_22.del", uuid(0xde00 + number))
    }

    /// All files of the array.
    pub(crate) fn files(&self, rng: &mut StdRng) -> Files {
        let mut files = Files::new();
        for schema in &self.schemas {
            files.insert(format!("__schema/{}", schema.name()), generic_tile(&schema.content()));
        }
        for (number, fragment) in self.fragments.iter().enumerate() {
            if fragment.state != State::Removed {
                let name = self.fragment_name(number);
                for (file, bytes) in fragment_files(self, fragment, rng) {
                    files.insert(format!("__fragments/{name}/{file}"), bytes);
                }
            }
        }
        self.add_commits(&mut files, rng);
        for SparseVacuum { by, fragments } in &self.vacuums {
            let lines =
                fragments.iter().map(|at| format!("/__fragments/{}\n", self.fragment_name(*at)));
            let name = format!("__commits/{}.vac", self.fragment_name(*by));
            files.insert(name, lines.collect::<String>().into());
        }
        files
    }

    /// Adds the files and lists of commits and deletions.
    fn add_commits(&self, files: &mut Files, rng: &mut StdRng) {
        let mut list: Vec<Vec<u8>> = vec![];
        let mut ignored = String::new();
        for (number, fragment) in self.fragments.iter().enumerate() {
            let path = format!("__commits/{}.wrt", self.fragment_name(number));
            let line = format!("{path}\n");
            let is_listed = self.commit_list && rng.random_bool(0.5);
            match (fragment.state, is_listed) {
                (State::Uncommitted, _) | (State::Removed, false) => {}
                (State::Present, false) => _ = files.insert(path, vec![]),
                (State::Present, true) => list.push(line.into_bytes()),
                // Vacuuming leaves the list as it is, and revokes the line in another file.
                (State::Removed, true) => {
                    ignored += &line;
                    list.push(line.into_bytes());
                }
            }
        }
        for (number, deletion) in self.deletions.iter().enumerate() {
            let path = self.deletion_file(number);
            let tile = generic_tile(&deletion.keeps.bytes());
            let is_listed = self.commit_list && rng.random_bool(0.5);
            if is_listed {
                let line = format!("{path}\n").into_bytes();
                list.push([line, words([tile.len() as u64]), tile.clone()].concat());
            }
            // A deletion may be in a file and in the list; it counts once.
            if !is_listed || rng.random_bool(0.2) {
                files.insert(path, tile);
            }
        }
        list.shuffle(rng);
        let name = format!("__commits/__1_2_{}_22", uuid(0xc0));
        if !list.is_empty() {
            files.insert(format!("{name}.con"), list.concat());
        }
        if !ignored.is_empty() {
            files.insert(format!("{name}.ign"), ignored.into_bytes());
        }
    }
}
