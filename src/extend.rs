//! The traits and types for adding a storage format in another crate.
//!
//! ```text
//!   ArrayFormat   the name in SQL, how to recognise it, its options            you implement
//!       │ open(place, options)
//!       ▼
//!   ArrayGroup    the arrays of one place, by name                             you implement
//!       │ arrays(names)
//!       ▼
//!   GridArray     GridArrayBuilder: a grid, dimensions with labels, values     you build
//!       │ locates chunks in its
//!       ▼
//!   ChunkSource   where the bytes of chunks are, and their chunk statistics    you implement
//!   SparseSource  the same for the tiles of sparse arrays                      you implement
//! ```
//!
//! gridfusion implements the rest for all formats: reading, decoding, pruning, reductions, tables from
//! paths, `verify` and `info`. A format only locates the stored bytes of cells, and never reads or decodes them.
//!
//! 1. **Open.** Make [`Objects`] from [`Place::folder`] or [`Place::object`]. Read metadata with
//!    [`Objects::read`]. If that takes several steps, write a [`Machine`], which requests bytes, and run it with
//!    [`drive`]. Report bad metadata as [`Error::corrupt`](crate::Error::corrupt), with the name of the object.
//! 2. **Build.** Pass a [`Dimension`] with its [`Labels`] per axis, and a [`Value`] per variable, to a
//!    [`GridArrayBuilder`].
//! 3. **Locate.** Return a [`StoredChunk`] per chunk and variable: a list of [`Layer`]s. Each has a [`Payload`]
//!    with its [`Location`], [`Codec`] and [`ByteOrder`]. A layer that covers only a part of the chunk, or has
//!    another [`StorageOrder`] than row-major, has a [`Placement`] too. Implement an encoding of your own as a
//!    [`PayloadDecoder`].
//! 4. **Register.** Call `ctx.register_array_format(Arc::new(YourFormat))` of
//!    [`GridfusionSessionContextExt`](crate::GridfusionSessionContextExt). The session then has
//!    `STORED AS YOURS` and `read_yours(…)`; quoted paths, schemas and catalogs recognise the format.
//! 5. **Write**, if your program writes the format: a [`Writer`] lists the objects, and [`write_all`] writes them.
//!
//! This example is a format of one object. Its header of 16 bytes holds the number of float64 cells and the
//! number of cells per chunk:
//!
//! ```
//! use std::sync::Arc;
//! use datafusion::prelude::SessionContext;
//! use gridfusion::extend::*;
//! use gridfusion::{ArrayOptions, Error, GridfusionSessionContextExt, Result};
//!
//! #[derive(Debug)]
//! struct Flat;
//!
//! #[async_trait::async_trait]
//! impl ArrayFormat for Flat {
//!     fn name(&self) -> &'static str { "flat" }
//!     fn title(&self) -> &'static str { ".flat" }
//!     fn nouns(&self) -> &'static [&'static str] { &[".flat file"] }
//!     fn endings(&self) -> &'static [Ending] {
//!         const ENDINGS: &[Ending] = &[Ending::new(".flat", false, Some("a .flat file"))];
//!         ENDINGS
//!     }
//!     fn probe_folder(&self, _: &[Entry]) -> Option<RecognisedFormat> { None }
//!
//!     async fn open(&self, place: &Place, options: &ResolvedOptions) -> Result<Arc<dyn ArrayGroup>> {
//!         let object = place.object().await?;
//!         let size = object.size();
//!         let objects = Arc::new(Objects::one(object));
//!         let header = objects.read(&[Location::new("", 0..8), Location::new("", 8..16)]).await?;
//!         let word = |at: usize| u64::from_le_bytes(header[at][..].try_into().unwrap_or_default());
//!         let (len, chunk) = (word(0), word(1));
//!         // Files may be damaged: sums and products of their numbers may overflow.
//!         if len.checked_mul(8).and_then(|bytes| bytes.checked_add(16)) != Some(size) {
//!             let message = format!("{len} cells in an object of {size} bytes");
//!             return Err(Error::corrupt("header", 0, message).in_file(place.location()));
//!         }
//!         let (location, read) = (place.location().to_owned(), options.read(&self.read_defaults()));
//!         Ok(Arc::new(FlatFile { location, objects, len, chunk, read }))
//!     }
//! }
//!
//! #[derive(Debug)]
//! struct FlatFile { location: String, objects: Arc<Objects>, len: u64, chunk: u64, read: ReadOptions }
//!
//! #[async_trait::async_trait]
//! impl ArrayGroup for FlatFile {
//!     fn location(&self) -> &str { &self.location }
//!     fn names(&self) -> Vec<String> { vec!["cells".to_owned()] }
//!
//!     async fn arrays(&self, names: &[String]) -> Result<Vec<OpenedArray>> {
//!         names.iter().map(|name| {
//!             if name != "cells" {
//!                 return Err(Error::usage(format!("no array \"{name}\"; there is \"cells\"")));
//!             }
//!             let source = FlatChunks { objects: Arc::clone(&self.objects), chunk: self.chunk };
//!             let grid = ChunkGrid::new(&[self.len], &[self.chunk])?;
//!             let array = GridArrayBuilder::new(name, Arc::new(source), grid)
//!                 .dimension(Dimension::indexed("place", self.len))
//!                 .value(Value::numbers("value", ElementType::F64, None, &self.read))
//!                 .index_columns(self.read.index_columns)
//!                 .build()?;
//!             Ok(array.into())
//!         }).collect()
//!     }
//! }
//!
//! #[derive(Debug)]
//! struct FlatChunks { objects: Arc<Objects>, chunk: u64 }
//!
//! #[async_trait::async_trait]
//! impl ChunkSource for FlatChunks {
//!     fn objects(&self) -> &Arc<Objects> { &self.objects }
//!
//!     async fn locate(&self, tasks: &[ChunkTask], _: &[usize]) -> Result<Vec<Vec<StoredChunk>>> {
//!         let stored = |task: &ChunkTask| {
//!             let start = 16 + task.chunk_number * self.chunk * 8;
//!             let at = Location::new("", start..start + task.cells() * 8);
//!             let layer = Layer::whole(Payload::new(at, task.cells() * 8, Codec::Raw));
//!             vec![StoredChunk::new(vec![layer])]
//!         };
//!         Ok(tasks.iter().map(stored).collect())
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let path = folder.path().join("squares.flat");
//! let words = [10_u64, 4].map(u64::to_le_bytes).concat();
//! let cells: Vec<u8> = (0..10_u32).flat_map(|cell| f64::from(cell * cell).to_le_bytes()).collect();
//! std::fs::write(&path, [words, cells].concat())?;
//!
//! let ctx = SessionContext::new();
//! ctx.enable_gridfusion();
//! ctx.register_array_format(Arc::new(Flat));
//! ctx.register_array("squares", path.display().to_string(), ArrayOptions::default()).await?;
//! let found = ctx.sql("SELECT sum(cells) FROM squares WHERE place >= 8").await?.collect().await?;
//! assert_eq!(found[0].column(0).to_data().buffers()[0].typed_data::<f64>(), [64.0 + 81.0]);
//! # Ok(())
//! # }
//! ```
//!
//! `tests/it/conformance/blocks.rs` is a format of many objects, with labels, fill values, chunk statistics
//! and a writer. The page `docs/extending.md` explains it.

pub use crate::array::{
    CellColumn, CellKeys, CellKind, CellTimes, Charset, ChunkSource, Counter, Dimension, Encoding,
    GridArray, GridArrayBuilder, KeyColumn, LabelOrder, Labels, NumberColumn, ReadOptions,
    RepeatedInFiles, Scalar, SparseArray, SparseFragment, SparseSource, StoredNumbers, Temporal,
    TileBounds, TileNumber, Value, ValueColumn,
};
pub use crate::format::{
    ByteOrder, Codec, Content, DecodedPayload, ElementType, Entry, Layer, Location, Machine,
    MemoryBudget, Payload, PayloadDecoder, Placement, Publish, Replies, Scratch, Step,
    StorageOrder, StoredChunk, Sum, TimeUnit, Write, Writer, Zone, ZoneBound, Zones,
};
pub use crate::grid::{AxisChunks, AxisSelection, ChunkGrid, ChunkTask, Selection};
pub use crate::io::{
    ByteRange, ByteSource, ExistingObject, Folder, FolderEntry, FolderLock, LocalFolder,
    MemorySource, ObjectStamp, StoreFolder, Upload, VersionBelow, WritableFolder,
};
pub use crate::options::{OptionInfo, OptionTable, ResolvedOptions, ValueKind};
pub use crate::source::{
    ArrayFormat, ArrayGroup, BesideArray, Column, Description, Detail, Ending, Fact, FactRows,
    FactTable, Facts, FileArrays, GroupPattern, InfoFunction, KnownDataset, ListedValue,
    MatchedGroup, MatchedGroups, Needs, OpenedArray, Page, PageTable, Place, RecognisedFormat,
    Role, Side, TableArrays, facts::KnownAttribute,
};
pub use crate::tile::{CellFormat, ObjectVersion, Objects, Request, Tile, drive, write_all};
