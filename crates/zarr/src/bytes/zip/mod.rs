//! Archives of the format zip that hold a Zarr store.
//!
//! ```text
//!   header data | header data (descriptor) | … | directory: an entry per member | end record
//!   └ a member ┘                                 └ name, method, sizes, CRC-32, place of the header
//! ```
//!
//! The directory is complete: its length and its count of members must agree. So a name that it lacks is absent. A
//! member with an odd name, such as `a\b` or `a//b`, is passed by outside of the store, and an error within it. The
//! data of a member begin behind its header, whose length only the header tells. So the span from one header to the
//! next is read, and the data are cut out of it.
//!
//! | module | contents |
//! |---|---|
//! | `end` | the end record, also that of ZIP64 |
//! | `directory` | the members by name and by place, and checks that they fit together |
//! | `entry` | one entry of the directory |
//! | `header` | the header before the data of a member |
//! | `unpack` | data of members, stored or deflated, and their checksums |
//! | `writer` | archives of tests |
//! | `open` | the machine that reads the directory |
//! | `places` | members as objects of a store |
//! | `head` | archives of Zarr stores, recognised by their first bytes or their directories |
//!
//! Facts: PKWARE's APPNOTE 6.3.10, and archives that zarr-python, Python and Info-ZIP write.

mod directory;
mod end;
mod entry;
mod head;
mod header;
mod open;
mod places;
#[cfg(test)]
mod tests;
mod unpack;
#[cfg(test)]
mod writer;

pub use directory::ZipDirectory;
pub use entry::Member;
pub(crate) use head::is_zip;
pub use head::is_zipped_zarr;
pub use open::OpenZip;
pub use places::ZipPlaces;
pub use unpack::MemberChecksum;
#[cfg(test)]
pub(crate) use writer::ZipWriter;

use gridfusion_core::{Error, Result};

/// The region of errors.
const REGION: &str = "zip archive";

fn corrupt(offset: u64, message: impl Into<String>) -> Error {
    Error::corrupt(REGION, offset, message)
}

/// Returns a little-endian number of two bytes; 0 beyond the end.
fn u16_at(bytes: &[u8], at: usize) -> u16 {
    let word = bytes.get(at..).and_then(|bytes| bytes.first_chunk::<2>());
    word.map_or(0, |word| u16::from_le_bytes(*word))
}

/// Returns a little-endian number of four bytes; 0 beyond the end.
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at..).and_then(|bytes| bytes.first_chunk::<4>());
    word.map_or(0, |word| u32::from_le_bytes(*word))
}

/// Returns a little-endian number of eight bytes; 0 beyond the end.
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let word = bytes.get(at..).and_then(|bytes| bytes.first_chunk::<8>());
    word.map_or(0, |word| u64::from_le_bytes(*word))
}

/// A number of four bytes that stands for one of eight bytes elsewhere.
const IN_ZIP64: u32 = u32::MAX;

/// Replaces numbers that a field of ZIP64 has. Each is replaced only if it is [`IN_ZIP64`], in this order.
fn from_zip64(numbers: &mut [&mut u64], extra: &[u8], at: u64) -> Result<()> {
    let mut field = zip64_field(extra);
    for number in numbers.iter_mut().filter(|number| ***number == u64::from(IN_ZIP64)) {
        let Some((word, rest)) = field.and_then(|field| field.split_first_chunk::<8>()) else {
            return Err(corrupt(at, "a length or place that is in no field of ZIP64"));
        };
        **number = u64::from_le_bytes(*word);
        field = Some(rest);
    }
    Ok(())
}

/// Returns the field of ZIP64 among the extra fields: a number and a length of two bytes each, and the field.
fn zip64_field(mut extra: &[u8]) -> Option<&[u8]> {
    while extra.len() >= 4 {
        let (id, len) = (u16_at(extra, 0), usize::from(u16_at(extra, 2)));
        let field = extra.get(4..4 + len)?;
        if id == 1 {
            return Some(field);
        }
        extra = &extra[4 + len..];
    }
    None
}
