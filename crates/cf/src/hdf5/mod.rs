//! NetCDF-4 and HDF5 files.
//!
//! ```text
//!   superblock ─▶ root group ─▶ groups, datasets                 metadata, read once:    OpenHdf5
//!                                   │ layout
//!                                   ▼
//!                               index of chunks ─▶ chunks        per request:            LocateHdf5
//!                                                    │ filters
//!                                                    ▼
//!                                                  tiles         codecs::Pipeline
//! ```
//!
//! Messages of headers, and indexes of names, are parsed by the crate `hdf5-reader`, in `parse`. The superblock,
//! headers, most heaps, indexes of chunks and filters are ours. The crate reads bytes itself, so parsing
//! runs on the blocks that are known, and again when those that it lacks were read.
//!
//! The format is the HDF5 File Format Specification version 3.0. NetCDF-4 is a convention upon it: how dimensions
//! and text are stored is in `dimensions` and `variable`.

mod assemble;
mod attributes;
mod bits;
mod blocks;
mod cache_image;
mod check_index;
mod context;
mod dimensions;
mod external;
mod field;
mod file;
mod file_bytes;
mod filters;
mod fractal_heap;
mod global_heap;
mod heap_place;
mod index;
mod inner;
mod link;
mod locate;
mod metadata_memory;
mod numbered;
mod open;
mod own_bytes;
mod parse;
mod parsed_objects;
mod raw_header;
mod raw_type;
mod segment;
mod shared;
mod steps;
mod stored_variable;
mod superblock;
mod text;
mod tree;
mod variable;
mod virtual_layout;

#[cfg(test)]
mod tests;

pub use check_index::CheckIndex;
pub use file::Hdf5File;
pub use locate::LocateHdf5;
pub use open::OpenHdf5;
pub use segment::Segment;
pub use steps::Steps;
pub use variable::virtual_chunks;
pub use virtual_layout::Mapping;

/// The signature of an HDF5 file, at its start or after a user block.
pub const SIGNATURE: &[u8] = b"\x89HDF\r\n\x1a\n";

/// Returns the positions of the signature behind a user block: 512, 1024, 2048, …
///
/// ```
/// let ends: Vec<u64> = gridfusion_cf::hdf5::user_block_ends().take(3).collect();
/// assert_eq!(ends, [512, 1024, 2048]);
/// ```
pub fn user_block_ends() -> impl Iterator<Item = u64> {
    std::iter::successors(Some(512), |place: &u64| place.checked_mul(2))
}

/// Whether `head`, the first bytes of a file, holds the HDF5 signature: at the start, or after a user block of 512,
/// 1024, 2048, … bytes.
///
/// ```
/// use gridfusion_cf::hdf5::is_hdf5;
///
/// assert!(is_hdf5(b"\x89HDF\r\n\x1a\n\0\0\0\0"));
/// assert!(!is_hdf5(b"CDF\x01"));
/// ```
pub fn is_hdf5(head: &[u8]) -> bool {
    let places = std::iter::once(0).chain(user_block_ends().map_while(|at| at.try_into().ok()));
    let mut places = places.take_while(|place: &usize| *place < head.len());
    places.any(|place| head.get(place..).is_some_and(|rest| rest.starts_with(SIGNATURE)))
}
