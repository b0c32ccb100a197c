//! The global heap, where values of any length are stored.
//!
//! Format: HDF5 File Format Specification version 3.0, III.E "Disk Format: Global Heap".
//!
//! ```text
//!   cell or attribute: length, address of a collection, number ─┐
//!   collection:  GCOL, length │ 1: "abc" │ 2: "de" │ …          │ 0: free space
//!                                          ▲────────────────────┘
//! ```

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::file_bytes::{Fields, FileBytes, Widths};
use gridfusion_core::Result;

/// The name of the region in errors.
const REGION: &str = "global heap";

/// A reference to a value in the heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reference {
    /// The elements of the value: bytes of a text.
    pub(super) len: u64,
    /// The address of the collection.
    pub(super) address: u64,
    /// The number of the object in the collection; 0 for an empty value.
    pub(super) object: u64,
}

impl Reference {
    /// Reads the references that begin in `bytes`, one after another.
    pub(super) fn all(bytes: &[u8], widths: Widths) -> impl Iterator<Item = Result<Self>> + '_ {
        bytes.chunks_exact(widths.reference()).map(move |bytes| {
            let mut fields = Fields::new("reference to a global heap", 0, bytes);
            Ok(Self {
                len: fields.uint(4)?,
                address: fields.uint(widths.address)?,
                object: fields.uint(4)?,
            })
        })
    }

    /// Whether the value is empty, so that it is not in the heap.
    pub(super) fn is_empty(&self, widths: Widths) -> bool {
        self.object == 0 || self.len == 0 || widths.is_undefined(self.address)
    }
}

/// A collection of objects.
#[derive(Debug)]
pub(super) struct Collection {
    address: u64,
    bytes: Bytes,
    objects: HashMap<u64, Range<usize>>,
}

impl Collection {
    /// Reads the collection at `address`.
    pub(super) fn read(file: &FileBytes, address: u64) -> Result<Self> {
        // Heads of collections and objects end at a multiple of 8 bytes, whatever the width of lengths is.
        let padding = 8 - usize::from(file.widths.length);
        let head = file.read(address, 16)?;
        let mut fields = Fields::new(REGION, address, &head);
        fields.magic(b"GCOL\x01")?;
        fields.take(3)?;
        let len = fields.uint(file.widths.length)?;
        let bytes = file.read(address, len.max(head.len() as u64))?;
        let mut fields = Fields::new(REGION, address, &bytes);
        fields.take(head.len())?;
        let mut objects = HashMap::new();
        while fields.left() >= head.len() {
            let number = fields.uint(2)?;
            fields.take(6)?;
            let len = fields.uint(file.widths.length)?;
            fields.take(padding)?;
            if number == 0 {
                break;
            }
            let at = fields.position();
            let len = usize::try_from(len).unwrap_or(usize::MAX);
            fields.take(len)?;
            fields.take((len.wrapping_neg() % 8).min(fields.left()))?;
            objects.insert(number, at..at + len);
        }
        Ok(Self { address, bytes, objects })
    }

    /// Returns all bytes of the object that `reference` is to.
    pub(super) fn whole(&self, reference: &Reference) -> Result<&[u8]> {
        let object = self.objects.get(&reference.object);
        let object = object.and_then(|range| self.bytes.get(range.clone()));
        object.ok_or_else(|| {
            let message = format!("no object {}", reference.object);
            Fields::new(REGION, self.address, &[]).corrupt(message)
        })
    }

    /// Returns the bytes of the value that `reference` is to; its elements are of `width` bytes.
    pub(super) fn value(&self, reference: &Reference, width: u64) -> Result<&[u8]> {
        let corrupt = |message: String| Fields::new(REGION, self.address, &[]).corrupt(message);
        let object = self.whole(reference)?;
        let len = reference.len.saturating_mul(width);
        let value = usize::try_from(len).ok().and_then(|len| object.get(..len));
        value.ok_or_else(|| {
            let found = object.len();
            corrupt(format!("object {} has {found} bytes of {len}", reference.object))
        })
    }

    /// Returns the number of bytes.
    pub(super) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }
}

/// Collections that were read.
#[derive(Debug, Default)]
pub(super) struct Collections(HashMap<u64, Arc<Collection>>);

impl Collections {
    /// Returns the collection at `address`, and reads it unless it was read before.
    pub(super) fn get(&mut self, file: &FileBytes, address: u64) -> Result<Arc<Collection>> {
        if let Some(collection) = self.0.get(&address) {
            return Ok(Arc::clone(collection));
        }
        let collection = Arc::new(Collection::read(file, address)?);
        self.0.insert(address, Arc::clone(&collection));
        Ok(collection)
    }

    /// Returns the bytes of all collections.
    pub(super) fn bytes(&self) -> u64 {
        self.0.values().map(|collection| collection.len()).fold(0, u64::saturating_add)
    }
}
