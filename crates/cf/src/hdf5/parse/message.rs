//! Single messages of object headers.

use hdf5_reader::io::Cursor;
use hdf5_reader::messages::{HdfMessage, filter_pipeline, parse_message};

use super::super::file_bytes::Widths;
use super::converted;
use super::filter::Filter;
use gridfusion_core::Result;

/// Parses the bytes of a message of this kind.
pub(super) fn message(kind: u16, bytes: &[u8], widths: Widths) -> Result<HdfMessage> {
    let mut cursor = Cursor::new(bytes);
    parse_message(kind, bytes.len(), &mut cursor, widths.address, widths.length).map_err(converted)
}

/// Parses the bytes of a message with filters.
pub(in crate::hdf5) fn filters(bytes: &[u8], widths: Widths) -> Result<Vec<Filter>> {
    let (address, length) = (widths.address, widths.length);
    let pipeline = filter_pipeline::parse(&mut Cursor::new(bytes), address, length, bytes.len());
    let filters = pipeline.map_err(converted)?.filters.into_iter().map(|filter| Filter {
        id: filter.id,
        name: filter.name.map(|name| name.trim_end_matches('\0').to_owned()),
        parameters: filter.client_data,
    });
    Ok(filters.collect())
}
