//! The dataset directory: name, element type, shape and chunk shape of every dataset.
//!
//! See crates/tet/FORMAT.md, section 3. A record with a name of 4 bytes and 2 axes has 56 bytes:
//!
//! ```text
//!   0         4      8      12         16     20        24      40            56
//!   ├ name len┼ type ┼ rank ┼ reserved ┼ name ┼ padding ┼ shape ┼ chunk shape ┤
//! ```

use super::superblock::SUPERBLOCK_LEN;
use gridfusion_core::format::ElementType;
use gridfusion_core::format::wire::{Reader, align8};
use gridfusion_core::grid::{ChunkGrid, MAX_RANK};
use gridfusion_core::{Error, Result};

/// The offset of the records: after the superblock and the `u64` length of the records.
pub(super) const RECORDS_OFFSET: u64 = SUPERBLOCK_LEN + 8;

/// The smallest possible record: a header, and one axis of shape and chunk shape.
const MIN_RECORD_LEN: u64 = 16 + 16;

/// One dataset of the directory.
///
/// A dataset with an impossible element type or chunk shape stays in the directory: it cannot be read, but
/// the other datasets of the file can.
#[derive(Debug, Clone)]
pub struct Dataset {
    name: String,
    shape: Vec<u64>,
    /// The error if the type tag is undefined.
    element: Result<ElementType>,
    /// The error of `element`, or of an impossible chunk shape or size.
    grid: Result<ChunkGrid>,
}

impl Dataset {
    /// Returns the name: any UTF-8, with `/` between groups.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of elements per axis.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Returns the type of the elements.
    ///
    /// # Errors
    /// `Unsupported` for a type tag that layout version 1 does not define.
    pub fn element(&self) -> Result<ElementType> {
        self.element.clone()
    }

    /// Returns the grid of the dataset's chunks.
    ///
    /// # Errors
    /// `Unsupported` for an undefined element type, or a 0 in the chunk shape. Also `Unsupported` for an axis
    /// or a size in bytes that does not fit in an `i64`.
    pub fn grid(&self) -> Result<&ChunkGrid> {
        self.grid.as_ref().map_err(Clone::clone)
    }

    /// Parses the next record.
    ///
    /// # Errors
    /// `Corrupt` if the record is cut off, or has an impossible rank or a name that is not UTF-8. They refuse
    /// the whole file. Other faults become errors of this dataset alone.
    fn parse(reader: &mut Reader<'_>) -> Result<Self> {
        let name_len = reader.u32()? as usize;
        let tag = reader.u32()?;
        let rank_at = reader.offset();
        let rank = reader.u32()? as usize;
        if rank == 0 || rank > MAX_RANK {
            let message = format!("rank {rank}, expected 1 to {MAX_RANK}");
            return Err(Error::corrupt("dataset directory", rank_at, message));
        }
        reader.u32()?; // reserved
        let name_at = reader.offset();
        let name = std::str::from_utf8(reader.take(name_len)?)
            .map_err(|error| {
                Error::corrupt(
                    "dataset directory",
                    name_at,
                    format!("a name that is not UTF-8 ({error})"),
                )
            })?
            .to_owned();
        reader.take(name_len.next_multiple_of(8) - name_len)?;
        let mut lengths = || (0..rank).map(|_| reader.u64()).collect::<Result<Vec<_>>>();
        let (shape, chunk_shape) = (lengths()?, lengths()?);

        let element = element_type(tag).map_err(|error| bad_dataset(&name, &error));
        let grid = element.clone().and_then(|element| {
            grid_of(element, &shape, &chunk_shape).map_err(|error| bad_dataset(&name, &error))
        });
        Ok(Self { name, shape, element, grid })
    }
}

/// Returns the element type that the tag of a directory record stands for.
fn element_type(tag: u32) -> Result<ElementType> {
    Ok(match tag {
        1 => ElementType::F32,
        2 => ElementType::F64,
        3 => ElementType::I32,
        4 => ElementType::I64,
        5 => ElementType::U8,
        6 => ElementType::U16,
        7 => ElementType::I16,
        8 => ElementType::U32,
        9 => ElementType::F16,
        10 => ElementType::U64,
        _ => return Err(Error::unsupported(format!("element type {tag}, expected 1 to 10"))),
    })
}

/// Builds the chunk grid; fails unless all its indices and byte counts fit in an `i64`, the type of index
/// columns.
fn grid_of(element: ElementType, shape: &[u64], chunk_shape: &[u64]) -> Result<ChunkGrid> {
    let grid = ChunkGrid::new(shape, chunk_shape)?;
    let bytes = grid.cells().checked_mul(element.size());
    let addressable = |count: u64| i64::try_from(count).is_ok();
    if bytes.is_some_and(addressable) && shape.iter().copied().all(addressable) {
        return Ok(grid);
    }
    Err(Error::unsupported(format!("shape {shape:?} has an axis or a size beyond 2^63")))
}

/// Parses the records of the directory, which fill `bytes` exactly.
pub(super) fn parse(bytes: &[u8], count: u32) -> Result<Vec<Dataset>> {
    let mut reader = Reader::new("dataset directory", RECORDS_OFFSET, bytes);
    // Before allocating: a damaged count could ask for any amount of memory.
    if u64::from(count) > bytes.len() as u64 / MIN_RECORD_LEN {
        return Err(reader.corrupt(format!("{} bytes cannot hold {count} datasets", bytes.len())));
    }
    let datasets = (0..count).map(|_| Dataset::parse(&mut reader)).collect::<Result<Vec<_>>>()?;
    if !reader.is_at_end() {
        return Err(reader.corrupt("bytes after the last dataset record"));
    }
    Ok(datasets)
}

/// Returns the offset at which the chunk index must begin after records of `records_len` bytes.
pub(super) fn index_offset(records_len: u64) -> Option<u64> {
    align8(RECORDS_OFFSET.checked_add(records_len)?)
}

/// Returns the error for a dataset that cannot be read, while the rest of the file can.
fn bad_dataset(name: &str, error: &Error) -> Error {
    Error::unsupported(format!("dataset \"{name}\" cannot be read: {error}"))
}
