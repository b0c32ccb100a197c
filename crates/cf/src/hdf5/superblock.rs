//! The superblock: where the root group is, and how wide addresses are.
//!
//! Format: HDF5 File Format Specification version 3.0, II.A "Disk Format: Level 0A - Format Signature and
//! Superblock". It lies at the start of the file, or after a user block of 512, 1024, 2048, … bytes.

use super::blocks::FileBlocks;
use super::file_bytes::{Fields, Widths};
use super::user_block_ends;
use gridfusion_core::{Error, Result};

/// The name of the region in errors.
const REGION: &str = "superblock";
/// More bytes than any superblock has.
const MOST: u64 = 160;

/// The facts of a superblock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Superblock {
    pub(super) version: u8,
    pub(super) widths: Widths,
    /// The address of the root group's header.
    pub(super) root: u64,
    /// The address of a header with further messages about the file.
    pub(super) extension: Option<u64>,
}

impl Superblock {
    /// Finds and reads the superblock.
    ///
    /// # Errors
    /// `Corrupt` if there is none, `Unsupported` if its version is not known.
    pub(super) fn read(blocks: &FileBlocks) -> Result<Self> {
        let base = find(blocks)?;
        let bytes = blocks.read(base, MOST.min(blocks.size() - base))?;
        let mut fields = Fields::new(REGION, base, &bytes);
        fields.magic(super::SIGNATURE)?;
        match fields.uint(1)? {
            version @ (0 | 1) => old(base, version as u8, fields),
            version @ (2 | 3) => new(base, version as u8, &bytes, fields),
            version => Err(Error::unsupported(format!(
                "version {version} of the HDF5 superblock, expected 0 to 3"
            ))),
        }
    }
}

/// Returns the position of the signature. All positions after the first block are asked for at once.
fn find(blocks: &FileBlocks) -> Result<u64> {
    let mut failed = None;
    for at in std::iter::once(0).chain(user_block_ends()) {
        let len = super::SIGNATURE.len() as u64;
        if at.saturating_add(len) > blocks.size() {
            break;
        }
        match blocks.read(at, len) {
            Ok(found) if failed.is_none() && found == super::SIGNATURE => return Ok(at),
            Ok(_) => {}
            Err(error) if at == 0 => return Err(error),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    Err(failed.unwrap_or_else(|| Error::corrupt_region(REGION, "there is no HDF5 signature")))
}

/// Reads versions 0 and 1, which end with the symbol table entry of the root group.
fn old(base: u64, version: u8, mut fields: Fields<'_>) -> Result<Superblock> {
    fields.take(4)?;
    let widths = widths(base, &mut fields)?;
    fields.take(9)?;
    if version == 1 {
        fields.take(4)?;
    }
    // The base address, free space, the end of the file, driver information.
    for _ in 0..4 {
        fields.address(widths)?;
    }
    // The place of a name is a length, not an address.
    fields.length(widths)?;
    let root = fields.address(widths)?;
    Ok(Superblock { version, widths, root, extension: None })
}

/// Reads versions 2 and 3, which have a checksum.
fn new(base: u64, version: u8, bytes: &[u8], mut fields: Fields<'_>) -> Result<Superblock> {
    let widths = widths(base, &mut fields)?;
    fields.take(1)?;
    let [_, extension, _, root] = [(); 4].map(|()| fields.address(widths));
    let (extension, root) = (extension?, root?);
    fields.take(4)?;
    let all = bytes.get(..fields.position()).unwrap_or_default();
    Fields::new(REGION, base, all).checked()?;
    let extension = Some(extension).filter(|&address| !widths.is_undefined(address));
    Ok(Superblock { version, widths, root, extension })
}

/// Reads the widths. Addresses count from the superblock, not from the base address that it has. libhdf5 does the
/// same, so that a user block may be added later.
fn widths(base: u64, fields: &mut Fields<'_>) -> Result<Widths> {
    let [address, length] = [fields.uint(1)?, fields.uint(1)?];
    for (what, width) in [("addresses", address), ("lengths", length)] {
        match width {
            2 | 4 | 8 => {}
            16 | 32 => {
                let message = format!("{what} of {width} bytes; `h5repack` writes others");
                return Err(Error::unsupported(message));
            }
            _ => {
                return Err(fields.corrupt(format!("{what} of {width} bytes, expected 2, 4 or 8")));
            }
        }
    }
    Ok(Widths { base, address: address as u8, length: length as u8 })
}
