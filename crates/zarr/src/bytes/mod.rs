//! Zarr, versions 2 and 3: groups of arrays, each a metadata document and one object per chunk.
//!
//! ```text
//!   version 2                             version 3
//!   x.zarr/.zmetadata   all metadata      x.zarr/zarr.json     the group, perhaps with all metadata
//!         /.zgroup  .zattrs
//!         /t2m/.zarray  .zattrs                 /t2m/zarr.json
//!         /t2m/0.0.1    a chunk                 /t2m/c/0/0/1   a chunk, or a shard of several
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `json` | documents, which may have bare `NaN`; attributes |
//! | `data_type`, `fill_value` | the types of cells, and the value of absent chunks |
//! | `codec_chain` | how a chunk is encoded, from the lists of codecs, filters and compressors |
//! | `chunk_key` | the names of chunks |
//! | `array` | one array: its variable, its encoding, and the places of its chunks |
//! | `characters` | texts that are stored as single characters |
//! | `nczarr` | names of dimensions as the NetCDF library writes them |
//! | `multiples` | times that count a multiple of a unit |
//! | `node` | the metadata documents of both versions |
//! | `open_store` | the machine that finds all arrays |
//! | `torn` | stores whose arrays become longer one by one |
//! | `half` | stores with only half of the marks, and the marks of references in Parquet |
//! | `places` | where objects are that are not under their own names |
//! | `icechunk` | repositories of Icechunk |
//! | `references` | reference files: stores whose chunks lie in other objects |
//! | `reference_table` | tables of references in Parquet |
//! | `parquet_file`, `parquet_pages`, `thrift` | columns of Parquet files within bounds |
//! | `zip` | archives of stores |
//! | `shard`, `locate` | indexes of shards, and the machine that finds chunks |
//!
//! Facts: the specifications of Zarr versions 2 and 3, the sharding codec's, and files written by zarr-python,
//! numcodecs and xarray.

mod array;
mod characters;
mod chunk_key;
mod codec_chain;
mod data_type;
mod fill_value;
mod half;
pub mod icechunk;
mod json;
mod locate;
mod multiples;
mod nczarr;
mod node;
mod open_store;
mod parquet_file;
mod parquet_pages;
mod places;
mod reference_table;
mod references;
mod shard;
mod thrift;
mod torn;
mod zip;

pub use array::ZarrArray;
pub(crate) use half::has_reference_tables;
pub use locate::LocateZarr;
pub(crate) use open_store::may_be_node;
pub use open_store::{OpenZarr, ZarrStore, is_zarr};
pub use places::{KnownTable, ObjectPlace, ObjectPlaces, PackedObject, Packing, PlaceTable};
#[cfg(test)]
pub(crate) use reference_table::tests::table;
pub use reference_table::{ReadReferences, ReadTables, ReferenceTable, TableNames};
pub use references::{OpenReferences, ReferencedStore, is_references};
#[cfg(test)]
pub(crate) use zip::ZipWriter;
pub(crate) use zip::is_zip;
pub use zip::{Member, MemberChecksum, OpenZip, ZipDirectory, ZipPlaces, is_zipped_zarr};
