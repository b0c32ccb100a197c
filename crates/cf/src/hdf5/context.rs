//! Facts that all variables of a file share.

use super::dimensions::Dimensions;
use super::file_bytes::Widths;

/// Facts that all variables share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) dimensions: &'a Dimensions,
    pub(super) widths: Widths,
    pub(super) file_len: u64,
    /// Whether the file follows the conventions of NetCDF-4.
    pub(super) is_netcdf: bool,
}
