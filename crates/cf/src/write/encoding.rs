//! [`NetcdfEncoding`]: the version of a file, and its compression.

use gridfusion_core::{Error, Result};
use netcdf_writer::{NcWriteFormat, NcWriteOptions};

/// A version of the file format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NetcdfVersion {
    /// NetCDF-4, an HDF5 file.
    Netcdf4,
    /// The classic format, CDF-1.
    Classic,
    /// The classic format with offsets of 64 bits, CDF-2.
    Offset64,
    /// The classic format with numbers of 64 bits, CDF-5.
    Data64,
}

impl NetcdfVersion {
    pub(super) fn options(self) -> NcWriteOptions {
        let format = match self {
            Self::Netcdf4 => NcWriteFormat::Nc4,
            Self::Classic => NcWriteFormat::Classic,
            Self::Offset64 => NcWriteFormat::Offset64,
            Self::Data64 => NcWriteFormat::Cdf5,
        };
        NcWriteOptions { format }
    }
}

/// How a file is encoded.
///
/// ```
/// use gridfusion_cf::{NetcdfEncoding, NetcdfVersion};
///
/// let encoding = NetcdfEncoding::default(); // NetCDF-4, deflated
/// assert_eq!(encoding.deflate, Some(4));
/// let classic = NetcdfEncoding { version: NetcdfVersion::Classic, deflate: None, ..encoding };
/// # let _ = classic;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetcdfEncoding {
    /// The version of the file format.
    pub version: NetcdfVersion,
    /// The level of deflate, 0 to 9, of a NetCDF-4 file; `None` stores the bytes of cells. Classic files are not compressed.
    pub deflate: Option<u8>,
    /// The most bytes of all cells, because the file is put together in memory.
    pub max_bytes: u64,
}

impl Default for NetcdfEncoding {
    fn default() -> Self {
        Self { version: NetcdfVersion::Netcdf4, deflate: Some(4), max_bytes: 1 << 30 }
    }
}

impl NetcdfEncoding {
    pub(super) fn check(&self) -> Result<()> {
        match (self.version, self.deflate) {
            (_, Some(level)) if level > 9 => {
                Err(Error::usage(format!("deflate has no level {level}; it has 0 to 9")))
            }
            (NetcdfVersion::Netcdf4, _) | (_, None) => Ok(()),
            _ => Err(Error::usage("classic NetCDF files have no compression; write NetCDF-4")),
        }
    }
}
