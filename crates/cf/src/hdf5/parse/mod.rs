//! Everything that comes from the crate `hdf5-reader`. No other module names the crate, so that it can be replaced.
//!
//! The crate parses single messages, local heaps, and the indexes of names from [`FileBlocks`](super::blocks::Blocks), whose bytes may
//! be missing; see there. Its own readers of datasets and attributes are not used, because they ignore errors.

mod attributes;
mod cell;
mod compound;
mod external;
mod filter;
mod group;
mod layout;
mod message;
mod object;
mod records;
mod storage;

pub(super) use attributes::Value;
pub(super) use cell::{AfterText, StoredCell};
pub(super) use filter::{Filter, LibraryFilter};
pub(super) use layout::Layout;
pub(super) use message::filters;
pub(super) use object::{Dataset, Group, Object, Parser};
pub(super) use records::huge_objects;

use gridfusion_core::Error;

/// Returns the checksum of a piece of metadata.
pub(super) fn checksum(bytes: &[u8]) -> u32 {
    hdf5_reader::checksum::jenkins_lookup3(bytes)
}

/// Returns the crate's error as ours.
#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` passes")]
fn converted(error: hdf5_reader::error::Error) -> Error {
    use hdf5_reader::error::Error as Theirs;
    let text = error.to_string();
    match error {
        Theirs::UnsupportedDatatypeClass(11) => {
            Error::unsupported("the complex datatype of HDF5 2.0")
        }
        Theirs::UnsupportedDatatypeClass(_)
        | Theirs::UnsupportedLayoutClass(_)
        | Theirs::UnsupportedLayoutVersion(_)
        | Theirs::UnsupportedFilterPipelineVersion(_)
        | Theirs::UnsupportedFillValueVersion(_)
        | Theirs::UnsupportedChunkIndexType(_)
        | Theirs::UnsupportedFilter(_)
        | Theirs::UnsupportedDataspaceVersion(_)
        | Theirs::UnsupportedBTreeVersion(_)
        | Theirs::UnsupportedEncoding(_)
        | Theirs::ResourceLimit(_) => Error::unsupported(format!("HDF5 metadata: {text}")),
        Theirs::InvalidData(_) if text.contains("invalid UTF-8") => {
            Error::unsupported("a name of a type that is not UTF-8")
        }
        _ => Error::corrupt_region("HDF5 metadata", text),
    }
}
