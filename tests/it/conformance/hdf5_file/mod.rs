//! A writer of small HDF5 files, such as NetCDF-4 files are: groups, datasets, attributes, and texts in global heaps.
//!
//! ```text
//!   superblock │ heap, chunks, index, header of a dataset │ … of the next │ headers of groups, the root last
//! ```
//!
//! Each object is written after those that it refers to, so no address changes later.
//!
//! Sources: HDF5 File Format Specification version 3.0; the sections are named where they apply.

mod chunk_index;
mod chunks;
mod lookup3;
mod messages;

use self::chunks::write_chunks;
use self::lookup3::lookup3;
use self::messages::{
    LINK, chunked, contiguous, dataset_messages, group_messages, header, link, message,
};

/// An address that refers to nothing.
const UNDEFINED: u64 = u64::MAX;

/// The type of a cell or of the value of an attribute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Type {
    /// A signed integer of this many bytes.
    Integer(u32, ByteOrder),
    Float(u32, ByteOrder),
    /// Text of this many bytes.
    Characters(u32),
    /// Text of any length, in a global heap.
    Text,
    /// Lists of references to objects, in a global heap.
    References,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ByteOrder {
    Little,
    Big,
}

impl Type {
    /// Bytes per cell. Values in a heap are a count, an address and a number here.
    pub(crate) fn width(self) -> u32 {
        match self {
            Self::Integer(width, _) | Self::Float(width, _) | Self::Characters(width) => width,
            Self::Text | Self::References => 16,
        }
    }
}

/// An attribute.
#[derive(Debug, Clone)]
pub(crate) struct Attribute {
    pub(crate) name: String,
    pub(crate) kind: Type,
    /// The number of values; `None` for a single value that is no list.
    pub(crate) len: Option<u64>,
    pub(crate) bytes: Vec<u8>,
}

impl Attribute {
    pub(crate) fn text(name: &str, text: &str) -> Self {
        let bytes = [text.as_bytes(), &[0]].concat();
        Self { name: name.to_owned(), kind: Type::Characters(bytes.len() as u32), len: None, bytes }
    }

    /// A list of values.
    pub(crate) fn list(name: &str, kind: Type, bytes: Vec<u8>) -> Self {
        let len = Some(bytes.len() as u64 / u64::from(kind.width()));
        Self { name: name.to_owned(), kind, len, bytes }
    }
}

/// How the cells of a dataset are stored.
#[derive(Debug, Clone)]
pub(crate) enum Storage {
    Absent,
    Contiguous,
    /// In chunks of this shape, with the filters shuffle and deflate or without. Chunks of fill values are left out.
    Chunked {
        shape: Vec<u64>,
        deflated: bool,
    },
}

/// A dataset.
#[derive(Debug, Clone)]
pub(crate) struct Dataset {
    pub(crate) kind: Type,
    pub(crate) shape: Vec<u64>,
    /// Whether the first axis may grow.
    pub(crate) grows: bool,
    pub(crate) fill: Option<Vec<u8>>,
    /// The cells in row-major order; none if the storage is absent.
    pub(crate) cells: Vec<Vec<u8>>,
    pub(crate) storage: Storage,
    pub(crate) attributes: Vec<Attribute>,
}

/// A file under construction.
#[derive(Debug)]
pub(crate) struct File {
    bytes: Vec<u8>,
}

/// Bytes of the superblock.
const SUPERBLOCK: usize = 48;

impl File {
    pub(crate) fn new() -> Self {
        Self { bytes: vec![0; SUPERBLOCK] }
    }

    /// Appends bytes, and returns their address.
    fn put(&mut self, bytes: &[u8]) -> u64 {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        let address = self.bytes.len() as u64;
        self.bytes.extend(bytes);
        address
    }

    fn overwrite(&mut self, address: u64, bytes: &[u8]) {
        self.bytes[address as usize..][..bytes.len()].copy_from_slice(bytes);
    }

    /// Writes values into a global heap (III.E), each of items of `unit` bytes. Returns a reference to each value: the
    /// number of items, the address of the heap, and the number of the value.
    pub(crate) fn heap(&mut self, values: &[Vec<u8>], unit: usize) -> Vec<Vec<u8>> {
        /// The library writes no smaller heap.
        const LEAST: usize = 4096;
        let mut objects = Vec::new();
        for (number, value) in (1_u16..).zip(values) {
            objects.extend(number.to_le_bytes());
            objects.extend([1, 0, 0, 0, 0, 0]);
            objects.extend((value.len() as u64).to_le_bytes());
            objects.extend(value);
            objects.resize(objects.len().next_multiple_of(8), 0);
        }
        // The object 0 is the rest of the heap.
        let size = LEAST.max(objects.len() + 32);
        let rest = (size - 16 - objects.len()) as u64;
        objects.extend([0; 8]);
        objects.extend(rest.to_le_bytes());
        let mut heap = [b"GCOL\x01\0\0\0", &(size as u64).to_le_bytes()[..], &objects].concat();
        heap.resize(size, 0);
        let address = self.put(&heap);
        let reference = |(number, value): (u32, &Vec<u8>)| {
            let items = (value.len() / unit) as u32;
            [&items.to_le_bytes()[..], &address.to_le_bytes(), &number.to_le_bytes()].concat()
        };
        (1..).zip(values).map(reference).collect()
    }

    /// Writes a dataset, and returns its address.
    pub(crate) fn dataset(&mut self, dataset: &Dataset) -> u64 {
        let layout = match &dataset.storage {
            Storage::Absent => contiguous(UNDEFINED, 0),
            Storage::Contiguous => {
                let cells = dataset.cells.concat();
                contiguous(self.put(&cells), cells.len() as u64)
            }
            Storage::Chunked { shape, deflated } => {
                let index = write_chunks(self, dataset, shape, *deflated);
                chunked(index, shape, dataset.kind.width())
            }
        };
        let header = header(&dataset_messages(dataset, &layout), &dataset.attributes);
        self.put(&header)
    }

    /// Writes a group of objects with these names and addresses, and returns its address.
    pub(crate) fn group(&mut self, members: &[(&str, u64)], attributes: &[Attribute]) -> u64 {
        let mut messages = group_messages(members.len());
        for (number, (name, address)) in members.iter().enumerate() {
            messages.extend(message(LINK, &link(number as u64, name, *address)));
        }
        let header = header(&messages, attributes);
        self.put(&header)
    }

    /// Returns the bytes of the file, whose root is the group at this address: the superblock of version 2 (II.A) is
    /// written last.
    pub(crate) fn finish(mut self, root: u64) -> Vec<u8> {
        let mut superblock = b"\x89HDF\r\n\x1a\n\x02\x08\x08\0".to_vec();
        for address in [0, UNDEFINED, self.bytes.len() as u64, root] {
            superblock.extend(address.to_le_bytes());
        }
        superblock.extend(lookup3(&superblock).to_le_bytes());
        self.overwrite(0, &superblock);
        self.bytes
    }
}

/// The address of the root of a file.
pub(crate) fn root_of(file: &[u8]) -> usize {
    u64::from_le_bytes(file[36..44].try_into().unwrap()) as usize
}
