//! Writing Zarr stores of version 3, and new ones of version 2. Only the place of a group is read; all else does no I/O.
//!
//! ```text
//!   write(chunk)   t2m/c/3/0                       an object per chunk, or per shard
//!   finish()       time/c/0  lat/c/0               labels
//!                  time/zarr.json  t2m/zarr.json   an array each
//!   published      zarr.json                       the group, with all metadata: readers find the store from here on
//! ```
//!
//! zarr-python and xarray read such a store without warnings: names of dimensions, consolidated metadata, and missing values as the
//! attribute `_FillValue`.
//!
//! | file | contents |
//! |---|---|
//! | `writer` | the writes of a store |
//! | `group` | the place of an array that is a group of a store |
//! | `encoding` | codecs and shards |
//! | `blosc` | the codec `blosc` |
//! | `object` | the bytes of an object |
//! | `cell_type` | the types of cells, and their bytes |
//! | `metadata` | the documents |
//! | `version2` | the documents of stores of version 2 |
//!
//! Facts: the specification of Zarr version 3, and stores that zarr-python and xarray wrote.

mod blosc;
mod cell_type;
mod encoding;
mod group;
mod metadata;
mod object;
mod version2;
mod writer;

pub use blosc::ZarrBlosc;
pub(crate) use cell_type::ZarrType;
pub use encoding::{ZarrCompressor, ZarrEncoding};
pub use group::ZarrGroup;
pub(crate) use group::{ALL, DOCUMENT, document_of, groups_above};
pub(crate) use object::ObjectEncoder;
pub use writer::ZarrWriter;
