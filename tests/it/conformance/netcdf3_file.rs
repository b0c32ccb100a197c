//! A writer of small files of NetCDF's classic format.
//!
//! ```text
//!   header │ fixed variables, one after another │ record 0 of each record variable │ record 1 of each │ …
//! ```
//!
//! Source: "The NetCDF Classic Format Specification", and its extension CDF-5. All numbers are big-endian, and all
//! parts are padded to four bytes.

/// The types of values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Type {
    Char = 2,
    I32 = 4,
    F32 = 5,
    F64 = 6,
    /// In CDF-5 only.
    I64 = 10,
}

impl Type {
    /// Bytes per value.
    fn width(self) -> usize {
        match self {
            Self::Char => 1,
            Self::I32 | Self::F32 => 4,
            Self::F64 | Self::I64 => 8,
        }
    }
}

/// An attribute: its name, and the type and the bytes of its values.
pub(crate) type Attribute = (&'static str, Type, Vec<u8>);

/// A variable.
#[derive(Debug)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) kind: Type,
    /// The numbers of its dimensions.
    pub(crate) dimensions: Vec<usize>,
    pub(crate) attributes: Vec<Attribute>,
    /// The cells in row-major order, big-endian.
    pub(crate) bytes: Vec<u8>,
}

/// A file.
#[derive(Debug)]
pub(crate) struct File {
    /// 2: offsets of eight bytes; 5: also counts of eight bytes, and more types.
    pub(crate) version: u8,
    /// The length of the record dimension, if there is one: it is the first.
    pub(crate) records: Option<usize>,
    pub(crate) dimensions: Vec<(String, u64)>,
    pub(crate) variables: Vec<Variable>,
}

const DIMENSIONS: u32 = 10;
const VARIABLES: u32 = 11;
const ATTRIBUTES: u32 = 12;

impl File {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut begins = vec![0; self.variables.len()];
        let mut file = self.header(&begins);
        for (variable, begin) in self.variables.iter().zip(&mut begins) {
            if !self.has_records(variable) {
                *begin = file.len() as u64;
                file.extend(&variable.bytes);
                pad(&mut file);
            }
        }
        for record in 0..self.records.unwrap_or(0) {
            for (variable, begin) in self.variables.iter().zip(&mut begins) {
                if self.has_records(variable) {
                    if record == 0 {
                        *begin = file.len() as u64;
                    }
                    let len = self.slab(variable);
                    file.extend(&variable.bytes[record * len..][..len]);
                    pad(&mut file);
                }
            }
        }
        let header = self.header(&begins);
        file[..header.len()].copy_from_slice(&header);
        file
    }

    fn has_records(&self, variable: &Variable) -> bool {
        self.records.is_some() && variable.dimensions.first() == Some(&0)
    }

    /// The bytes of a variable, or of one of its records.
    fn slab(&self, variable: &Variable) -> usize {
        match self.records {
            Some(records) if self.has_records(variable) => variable.bytes.len() / records,
            _ => variable.bytes.len(),
        }
    }

    /// The header, if the variables begin at these offsets.
    fn header(&self, begins: &[u64]) -> Vec<u8> {
        let of_records = self.variables.iter().filter(|it| self.has_records(it)).count();
        assert_ne!(of_records, 1, "the records of a single variable are not padded");
        let mut out = Out { bytes: [b"CDF", &[self.version][..]].concat(), version: self.version };
        out.count(self.records.unwrap_or(0));
        out.list(DIMENSIONS, self.dimensions.len());
        for (number, (name, len)) in self.dimensions.iter().enumerate() {
            out.name(name);
            out.count(if number == 0 && self.records.is_some() { 0 } else { *len as usize });
        }
        out.list(ATTRIBUTES, 0);
        out.list(VARIABLES, self.variables.len());
        for (variable, begin) in self.variables.iter().zip(begins) {
            out.name(&variable.name);
            out.count(variable.dimensions.len());
            variable.dimensions.iter().for_each(|number| out.count(*number));
            out.attributes(&variable.attributes);
            out.word(variable.kind as u32);
            out.count(self.slab(variable).next_multiple_of(4));
            out.bytes.extend(begin.to_be_bytes());
        }
        out.bytes
    }
}

/// Appends zeros up to a multiple of four bytes.
fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

/// The fields of a header.
struct Out {
    bytes: Vec<u8>,
    version: u8,
}

impl Out {
    fn word(&mut self, number: u32) {
        self.bytes.extend(number.to_be_bytes());
    }

    fn count(&mut self, count: usize) {
        match self.version {
            5 => self.bytes.extend((count as u64).to_be_bytes()),
            _ => self.word(count as u32),
        }
    }

    fn list(&mut self, tag: u32, count: usize) {
        self.word(if count == 0 { 0 } else { tag });
        self.count(count);
    }

    fn name(&mut self, name: &str) {
        self.count(name.len());
        self.bytes.extend(name.as_bytes());
        pad(&mut self.bytes);
    }

    fn attributes(&mut self, attributes: &[Attribute]) {
        self.list(ATTRIBUTES, attributes.len());
        for (name, kind, bytes) in attributes {
            self.name(name);
            self.word(*kind as u32);
            self.count(bytes.len() / kind.width());
            self.bytes.extend(bytes);
            pad(&mut self.bytes);
        }
    }
}
