//! The limits of the formats, which `netcdf-writer` leaves to its callers.

use arrow::array::Array;
use gridfusion_core::write::{NewArray, NewDimension};
use gridfusion_core::{Error, Result};

use super::encoding::{NetcdfEncoding, NetcdfVersion};
use super::variable::FileVariable;

/// The most bytes of a name, `NC_MAX_NAME`.
const NAME: usize = 256;
/// The most bytes of a chunk of HDF5.
const CHUNK: u64 = u32::MAX as u64;
/// The greatest length and offset of CDF-1, which are signed.
const SIGNED: u64 = i32::MAX as u64;
/// The most bytes of a variable of CDF-2, which are padded to four.
const UNSIGNED: u64 = u32::MAX as u64 - 3;

/// Checks that a file can hold the array, before any cell is known.
///
/// # Errors
/// `Unsupported` for lengths, names and numbers that the version of the file lacks, and for more bytes than the encoding allows.
pub(super) fn check(
    array: &NewArray,
    variables: &[FileVariable],
    encoding: &NetcdfEncoding,
) -> Result<()> {
    let (shape, version) = (array.grid().shape(), encoding.version);
    let names = array.dimensions().iter().map(|it| it.name.as_str());
    names.chain(variables.iter().map(|it| it.name.as_str())).try_for_each(check_name)?;
    for (dimension, len) in array.dimensions().iter().zip(shape) {
        let name = &dimension.name;
        if is_32_bit(version) && *len > SIGNED {
            return Err(Error::unsupported(format!(
                "\"{name}\" with {len} labels in a classic file, which has at most {SIGNED}; write version 'netcdf4'"
            )));
        }
    }
    let width: u64 = variables.iter().map(FileVariable::width).sum();
    check_bytes(array.grid().cells().saturating_mul(width), encoding)?;
    let chunk = array.grid().chunk_shape().zip(shape).map(|(chunk, len)| chunk.min(*len));
    let chunk = chunk.fold(1, u64::saturating_mul);
    for variable in variables {
        let (name, width) = (&variable.name, variable.width());
        let bytes = chunk.saturating_mul(width);
        if version == NetcdfVersion::Netcdf4 && bytes > CHUNK {
            return Err(Error::unsupported(format!(
                "chunks of {bytes} bytes of \"{name}\" in NetCDF-4, which has at most {CHUNK}; choose smaller chunks"
            )));
        }
        let bytes = array.grid().cells().saturating_mul(width);
        if version == NetcdfVersion::Offset64 && bytes > UNSIGNED {
            return Err(Error::unsupported(format!(
                "{bytes} bytes of \"{name}\" in this version of NetCDF, which has at most {UNSIGNED}; write version 'netcdf4'"
            )));
        }
    }
    Ok(())
}

/// Checks that each dimension has a label. A writer may be made to check the types of an array whose labels are not known yet.
///
/// # Errors
/// `Unsupported` if one has none.
pub(super) fn check_labels(array: &NewArray) -> Result<()> {
    match array.dimensions().iter().find(|it| it.labels.is_empty()) {
        None => Ok(()),
        Some(NewDimension { name, .. }) => Err(Error::unsupported(format!(
            "\"{name}\" without labels, because a NetCDF dimension of no length is an unlimited one; the query has no rows"
        ))),
    }
}

/// Checks the bytes of all cells, of which texts are counted as they come.
///
/// # Errors
/// `Unsupported` for more than the encoding allows.
pub(super) fn check_bytes(bytes: u64, encoding: &NetcdfEncoding) -> Result<()> {
    if bytes <= encoding.max_bytes {
        return Ok(());
    }
    Err(Error::unsupported(format!(
        "a NetCDF file of {bytes} bytes, because it is put together in memory, and at most {} are; write Zarr, or raise 'max_bytes'",
        encoding.max_bytes
    )))
}

/// Checks the bytes of a complete file.
///
/// # Errors
/// `Unsupported` if its offsets do not fit.
pub(super) fn check_file(bytes: usize, version: NetcdfVersion) -> Result<()> {
    if version != NetcdfVersion::Classic || bytes as u64 <= SIGNED {
        return Ok(());
    }
    Err(Error::unsupported(format!(
        "a file of {bytes} bytes in CDF-1, whose offsets are at most {SIGNED}; write another version"
    )))
}

fn is_32_bit(version: NetcdfVersion) -> bool {
    matches!(version, NetcdfVersion::Classic | NetcdfVersion::Offset64)
}

/// Fails for a name that netCDF-C refuses to open.
fn check_name(name: &str) -> Result<()> {
    let begins = |first: char| first.is_ascii_alphanumeric() || first == '_' || !first.is_ascii();
    let is_name = name.starts_with(begins)
        && !name.ends_with(' ')
        && !name.contains(|letter: char| letter == '/' || letter.is_ascii_control())
        && name.len() <= NAME;
    if is_name {
        return Ok(());
    }
    Err(Error::unsupported(format!(
        "\"{name}\" as the name of a NetCDF variable, which begins with a letter, a digit or _ and has at most {NAME} bytes; name the column: AS …"
    )))
}
