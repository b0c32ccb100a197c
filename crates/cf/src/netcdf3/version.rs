//! The first bytes of a file: its kind and its version.

use std::fmt;

/// The first bytes of a file. The next byte is the version: 1, 2 or 5.
pub const MAGIC: [u8; 3] = *b"CDF";

/// The version of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// Classic: offsets of 32 bits.
    Cdf1,
    /// Offsets of 64 bits.
    Cdf2,
    /// Offsets, lengths and counts of 64 bits, and more types.
    Cdf5,
}

impl Version {
    /// Returns the version of the fourth byte of a file.
    pub(super) fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Cdf1),
            2 => Some(Self::Cdf2),
            5 => Some(Self::Cdf5),
            _ => None,
        }
    }

    pub(super) fn is_cdf5(self) -> bool {
        self == Self::Cdf5
    }

    /// Returns the bytes of a count.
    pub(super) fn count_len(self) -> u64 {
        if self.is_cdf5() { 8 } else { 4 }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cdf1 => "CDF-1",
            Self::Cdf2 => "CDF-2",
            Self::Cdf5 => "CDF-5",
        })
    }
}

/// Whether the first bytes of an object are those of a NetCDF classic file.
///
/// ```
/// use gridfusion_cf::netcdf3::is_netcdf3;
///
/// assert!(is_netcdf3(b"CDF\x05\0\0\0\0") && !is_netcdf3(b"CDF\x07") && !is_netcdf3(b"CDF"));
/// ```
pub fn is_netcdf3(head: &[u8]) -> bool {
    let rest = head.strip_prefix(&MAGIC);
    rest.and_then(|rest| rest.first()).is_some_and(|code| Version::from_code(*code).is_some())
}
