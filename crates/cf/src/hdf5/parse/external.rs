//! The message with the names of files that hold the cells of a dataset.
//!
//! Format: HDF5 File Format Specification version 3.0, IV.A.2.h "The Data Storage - External Data Files Message". The
//! names are in a heap: III.D "Local Heaps".

use std::sync::Arc;

use hdf5_reader::local_heap::LocalHeap;

use super::super::file_bytes::{Fields, FileBytes};
use super::super::link::text;
use super::super::raw_header::{EXTERNAL_FILES, RawMessage};
use super::super::segment::Segment;
use super::converted;
use super::storage::KnownBytes;
use gridfusion_core::{Error, Result};

/// The name of the region in errors.
const REGION: &str = "external file list";

/// Returns the parts of other files that hold the cells of a dataset, in order; `None` if it has no such.
pub(super) fn segments(
    file: &FileBytes,
    messages: &[RawMessage],
) -> Result<Option<Arc<[Segment]>>> {
    let Some(message) = messages.iter().find(|message| message.kind == EXTERNAL_FILES) else {
        return Ok(None);
    };
    if message.is_shared {
        return Err(Error::unsupported("a shared list of external files"));
    }
    let widths = file.widths;
    let mut fields = Fields::new(REGION, message.address, &message.bytes);
    let version = fields.uint(1)?;
    if version != 1 {
        let text = format!("a list of external files of version {version}, expected 1");
        return Err(Error::unsupported(text));
    }
    fields.take(3)?;
    let (_allocated, used, heap) = (fields.uint(2)?, fields.uint(2)?, fields.address(widths)?);
    let storage = KnownBytes::new(file);
    let heap = LocalHeap::parse_at_storage(&storage, heap, widths.address, widths.length);
    let heap = heap.map_err(converted)?;
    let names = file.read(heap.data_segment_address, heap.data_segment_size)?;
    let mut segment = || {
        let (at, offset, len) =
            (fields.length(widths)?, fields.length(widths)?, fields.length(widths)?);
        let from = usize::try_from(at).ok().and_then(|at| names.get(at..));
        let name = from.and_then(|from| from.split(|&byte| byte == 0).next());
        let name = name.filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| fields.corrupt(format!("no name at byte {at}")))?;
        let len = Some(len).filter(|&len| !widths.is_unlimited(len));
        Ok(Segment { file: text(name).into(), offset, len })
    };
    let all = (0..used).map(|_| segment()).collect::<Result<Vec<Segment>>>()?;
    let ends = all.iter().rev().skip(1).all(|segment| segment.len.is_some());
    match ends {
        true => Ok(Some(all.into())),
        false => Err(fields.corrupt("a part of any length before another")),
    }
}
