//! Files made by hand, and a naive reader of their values.
//!
//! The values of a file are a pattern of its bytes, so that no two places look alike. The naive reader follows the
//! specification: it computes the offset of each cell from the declarations of the test, and not from the header.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::{NetCdf3File, OpenNetCdf3};
use gridfusion_core::Result;
use gridfusion_core::format::{Machine, Replies, Scratch, Step};

pub(super) const BYTE: u32 = 1;
pub(super) const CHAR: u32 = 2;
pub(super) const SHORT: u32 = 3;
pub(super) const INT: u32 = 4;
pub(super) const FLOAT: u32 = 5;
pub(super) const DOUBLE: u32 = 6;

/// Bytes per value of each type.
fn width(code: u32) -> u64 {
    [0, 1, 1, 2, 4, 4, 8, 1, 2, 4, 8, 8][code as usize]
}

/// A file under construction.
#[derive(Debug, Clone)]
pub(super) struct File {
    pub(super) version: u8,
    pub(super) records: u64,
    pub(super) dimensions: Vec<(String, u64)>,
    pub(super) attributes: Vec<AttributeParts>,
    pub(super) variables: Vec<VariableParts>,
}

/// A name, the code of a type, a number of values, and their bytes.
pub(super) type AttributeParts = (String, u32, u64, Vec<u8>);

#[derive(Debug, Clone)]
pub(super) struct VariableParts {
    name: String,
    code: u32,
    dimensions: Vec<u64>,
    attributes: Vec<AttributeParts>,
    /// The place of its values, if it is not the one that a writer gives it.
    begin: Option<u64>,
}

impl File {
    pub(super) fn new(version: u8, records: u64) -> Self {
        let (dimensions, attributes, variables) = (vec![], vec![], vec![]);
        Self { version, records, dimensions, attributes, variables }
    }

    pub(super) fn dimension(mut self, name: &str, len: u64) -> Self {
        self.dimensions.push((name.to_owned(), len));
        self
    }

    pub(super) fn variable(mut self, name: &str, code: u32, dimensions: &[u64]) -> Self {
        self.variables.push(VariableParts {
            name: name.to_owned(),
            code,
            dimensions: dimensions.to_vec(),
            attributes: vec![],
            begin: None,
        });
        self
    }

    /// Adds an attribute to the last variable, or to the file if there is none.
    pub(super) fn attribute(mut self, name: &str, code: u32, bytes: &[u8]) -> Self {
        let count = bytes.len() as u64 / width(code);
        let attribute = (name.to_owned(), code, count, bytes.to_vec());
        match self.variables.last_mut() {
            Some(variable) => variable.attributes.push(attribute),
            None => self.attributes.push(attribute),
        }
        self
    }

    /// Moves the values of a variable.
    pub(super) fn moved(mut self, variable: usize, begin: u64) -> Self {
        self.variables[variable].begin = Some(begin);
        self
    }

    fn has_records(&self, variable: &VariableParts) -> bool {
        variable.dimensions.first().is_some_and(|id| self.dimensions[*id as usize].1 == 0)
    }

    /// Returns the bytes of a variable, or of one of its records.
    fn len(&self, variable: &VariableParts) -> u64 {
        let lens = variable.dimensions.iter().map(|id| self.dimensions[*id as usize].1.max(1));
        lens.product::<u64>() * width(variable.code)
    }

    /// Returns the bytes from one record to the next.
    pub(super) fn stride(&self) -> u64 {
        let slabs: Vec<u64> = self
            .variables
            .iter()
            .filter(|it| self.has_records(it))
            .map(|it| self.len(it))
            .collect();
        if slabs.len() == 1 {
            slabs[0]
        } else {
            slabs.iter().map(|len| len.next_multiple_of(4)).sum()
        }
    }

    /// Returns the place of each variable: the fixed ones first, then those of the first record.
    pub(super) fn begins(&self) -> Vec<u64> {
        let header = self.header(&vec![0; self.variables.len()]).len() as u64;
        let (mut at, mut begins) = (header, vec![0; self.variables.len()]);
        for of_records in [false, true] {
            for (place, variable) in self.variables.iter().enumerate() {
                if self.has_records(variable) == of_records {
                    begins[place] = variable.begin.unwrap_or(at);
                    at += self.len(variable).next_multiple_of(4);
                }
            }
        }
        begins
    }

    /// Returns the header alone.
    pub(super) fn head(&self) -> Vec<u8> {
        let begins = self.variables.iter().map(|it| it.begin.unwrap_or(1 << 20));
        self.header(&begins.collect::<Vec<_>>())
    }

    fn header(&self, begins: &[u64]) -> Vec<u8> {
        let mut out = Out { bytes: [b"CDF", &[self.version][..]].concat(), version: self.version };
        out.count(self.records);
        out.list(10, self.dimensions.len());
        for (name, len) in &self.dimensions {
            out.name(name);
            out.count(*len);
        }
        out.attributes(&self.attributes);
        out.list(11, self.variables.len());
        for (variable, begin) in self.variables.iter().zip(begins) {
            out.name(&variable.name);
            out.count(variable.dimensions.len() as u64);
            variable.dimensions.iter().for_each(|id| out.count(*id));
            out.attributes(&variable.attributes);
            out.number(variable.code.into(), 4);
            // The length is for information, so readers must not use it.
            out.count(77);
            out.number(*begin, if self.version == 1 { 4 } else { 8 });
        }
        out.bytes
    }

    /// Returns the whole file.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let begins = self.begins();
        let mut bytes = self.header(&begins);
        let ends = self.variables.iter().zip(&begins).map(|(variable, begin)| {
            match (self.has_records(variable), self.records) {
                (true, 0) => 0,
                (true, records) => {
                    let padding = if self.stride() == self.len(variable) { 1 } else { 4 };
                    let len = self.len(variable).next_multiple_of(padding);
                    begin.saturating_add((records - 1) * self.stride() + len)
                }
                (false, _) => begin.saturating_add(self.len(variable)),
            }
        });
        let end = ends.max().unwrap_or(0).min(bytes.len() as u64 + 50_000_000);
        bytes
            .extend((bytes.len() as u64..end).map(|at| (at.wrapping_mul(0x9e37_79b9) >> 16) as u8));
        bytes
    }

    /// Returns the cells of a variable in row-major order, little-endian.
    pub(super) fn values(&self, variable: usize, bytes: &[u8]) -> Vec<u8> {
        let (begin, variable) = (self.begins()[variable], &self.variables[variable]);
        let (len, word) = (self.len(variable), width(variable.code));
        let starts: Vec<u64> = match self.has_records(variable) {
            true => (0..self.records).map(|record| begin + record * self.stride()).collect(),
            false => vec![begin],
        };
        let words =
            starts.into_iter().flat_map(|start| (start..start + len).step_by(word as usize));
        words.flat_map(|at| (at..at + word).rev().map(|at| bytes[at as usize])).collect()
    }
}

/// Big-endian fields.
struct Out {
    bytes: Vec<u8>,
    version: u8,
}

impl Out {
    fn number(&mut self, number: u64, len: usize) {
        self.bytes.extend(&number.to_be_bytes()[8 - len..]);
    }

    fn count(&mut self, count: u64) {
        self.number(count, if self.version == 5 { 8 } else { 4 });
    }

    fn list(&mut self, tag: u64, count: usize) {
        self.number(if count == 0 { 0 } else { tag }, 4);
        self.count(count as u64);
    }

    fn padded(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn name(&mut self, name: &str) {
        self.count(name.len() as u64);
        self.padded(name.as_bytes());
    }

    fn attributes(&mut self, attributes: &[AttributeParts]) {
        self.list(12, attributes.len());
        for (name, code, count, bytes) in attributes {
            self.name(name);
            self.number((*code).into(), 4);
            self.count(*count);
            self.padded(bytes);
        }
    }
}

/// Opens a file, and counts the requests.
pub(super) fn open_counting(bytes: &Bytes) -> Result<(NetCdf3File, usize)> {
    let size = bytes.len() as u64;
    let mut machine = OpenNetCdf3::new(size);
    let mut replies = Replies::Start;
    for requests in 0..20 {
        match machine.step(replies)? {
            Step::Read(wanted) => {
                let read = |at: &gridfusion_core::format::Location| {
                    let range = at.range.within(size);
                    assert!(range.start < range.end && at.object.is_empty(), "{range:?}");
                    bytes.slice(range.start as usize..range.end as usize)
                };
                replies = Replies::Bytes(wanted.iter().map(read).collect());
            }
            Step::Done(file) => return Ok((file, requests)),
            other => panic!("{other:?}"),
        }
    }
    panic!("a machine that does not end");
}

/// Opens a file.
pub(super) fn open(bytes: &Bytes) -> Result<NetCdf3File> {
    open_counting(bytes).map(|(file, _)| file)
}

/// Locates and decodes all chunks of a variable, and returns its cells in row-major order.
pub(super) fn read(file: &NetCdf3File, bytes: &Bytes, variable: usize) -> Result<Vec<u8>> {
    let described = &file.hierarchy().variables[variable];
    let width = described.cell.width().unwrap() as usize;
    let shape = described.shape();
    let mut cells = BTreeMap::new();
    for chunk in all_coordinates(&grid(&shape, &described.chunk_shape)) {
        let stored = file.locate(variable, &chunk)?;
        assert!(stored.layers.len() <= 512);
        let origin: Vec<u64> =
            chunk.iter().zip(&described.chunk_shape).map(|(at, edge)| at * edge).collect();
        let left = shape.iter().zip(&origin).map(|(len, at)| len - at);
        let extents: Vec<u64> =
            left.zip(&described.chunk_shape).map(|(left, edge)| left.min(*edge)).collect();
        for layer in &stored.layers {
            let range = layer.values.at.range.within(bytes.len() as u64);
            let part = bytes.slice(range.start as usize..range.end as usize);
            let tile = layer.values.decode(part, vec![9; 3], &mut Scratch::default())?;
            let (starts, lens): (Vec<u64>, Vec<u64>) = match &layer.placement {
                None => (vec![0; extents.len()], extents.clone()),
                Some(placement) => {
                    let lens = placement.region.iter().map(|range| range.end - range.start);
                    assert_eq!(placement.tile_shape, lens.collect::<Vec<_>>());
                    assert!(placement.origin.iter().all(|at| *at == 0));
                    let starts = placement.region.iter().map(|range| range.start).collect();
                    (starts, placement.tile_shape.clone())
                }
            };
            let places = all_coordinates(&lens);
            assert_eq!(tile.bytes.len(), places.len() * width);
            for (place, cell) in places.iter().zip(tile.bytes.chunks(width)) {
                let at = place.iter().zip(&starts).zip(&origin);
                let at: Vec<u64> = at.map(|((at, start), origin)| at + start + origin).collect();
                assert!(cells.insert(at, cell.to_vec()).is_none());
            }
        }
    }
    // Coordinates sort in row-major order.
    assert_eq!(cells.len() as u64, shape.iter().product::<u64>());
    Ok(cells.into_values().flatten().collect())
}

/// Returns the number of chunks along each axis.
fn grid(shape: &[u64], chunk_shape: &[u64]) -> Vec<u64> {
    shape.iter().zip(chunk_shape).map(|(len, edge)| len.div_ceil(*edge)).collect()
}

/// Returns the coordinates in a box, in row-major order.
fn all_coordinates(lens: &[u64]) -> Vec<Vec<u64>> {
    lens.iter().fold(vec![vec![]], |before, len| {
        let longer = |start: &Vec<u64>| {
            let start = start.clone();
            (0..*len).map(move |at| [&start[..], &[at]].concat()).collect::<Vec<_>>()
        };
        before.iter().flat_map(longer).collect()
    })
}
