//! TileDB arrays: folders of schemas and fragments. The bytes are described in
//! `docs/format-tiledb.md`.
//!
//! ```text
//!   array/
//!   ├── __schema/                 schema.rs: domain.rs, attribute.rs, label.rs
//!   │   └── __enumerations/       enumeration.rs
//!   ├── __commits/                visible.rs: which fragments an open sees
//!   ├── __fragments/
//!   │   └── __t1_t2_uuid_v/       fragment.rs
//!   │       ├── __fragment_metadata.tdb   footer.rs, tile_index.rs, statistics.rs
//!   │       └── a0.tdb, a0_var.tdb, …     tiles: filter/
//!   └── __meta/                   metadata.rs
//! ```
//!
//! [`Open`] reads schemas, commits and the footers of the fragments that are visible, in a handful
//! of round trips. A [`Window`] makes a table of a dense array: its tiles are the chunks.
//! [`TileDbArray::locate`] finds the tiles that lie over one another in a chunk, and reads where
//! they are stored when a fragment's attribute is first wanted. A [group](ReadGroup) is a folder
//! that lists arrays and other groups.

mod attribute;
mod check_tiles;
mod datatype;
mod domain;
mod enumeration;
mod evolution;
mod figures;
mod filter;
mod footer;
mod fragment;
#[cfg(fuzzing)]
pub mod fuzzing;
mod generic_tile;
mod group;
mod label;
mod locate;
mod metadata;
mod names;
mod open;
mod options;
mod overlay;
mod schema;
mod statistics;
#[cfg(any(test, fuzzing))]
#[cfg_attr(fuzzing, allow(dead_code))] // Fuzzing builds fewer arrays than the tests.
mod testing;
mod text;
mod tile_index;
mod timed_folder;
mod visible;
mod window;

use std::sync::{Arc, OnceLock};

pub use attribute::{Attribute, ValuesPerCell};
pub use check_tiles::{FragmentTiles, NotedFigures, ReadTiles};
pub use datatype::{Datatype, TimeUnit};
pub use domain::{DimensionDomain, DimensionSchema};
pub use enumeration::Enumeration;
pub use filter::{EncryptionKey, FilterBuffers, Pipeline, TileCodec};
pub use fragment::Fragment;
pub use group::{GroupMember, ReadGroup};
pub use label::{DimensionLabel, DimensionLabelOrder};
pub use locate::Locate;
pub use metadata::{MetadataValue, ReadMetadata};
pub use open::Open;
pub use options::{FolderKind, OpenOptions, folder_kind};
pub use schema::{ArrayKind, ArraySchema, CellOrder};
pub use statistics::{ReadZones, TileZones};
pub use window::Window;

use crate::error::{Error, Result};
use overlay::Overlay;
use tile_index::TileIndex;

/// The newest format version that this reader knows.
const LATEST_VERSION: u32 = 23;
/// The number of values of cells that can have any number.
const VARIABLE: u32 = u32::MAX;
/// The only schema of arrays before format 10, in the array's own folder.
const OLD_SCHEMA_FILE: &str = "__array_schema.tdb";

/// An opened array: everything but its cells, and where they are stored.
#[derive(Debug)]
pub struct TileDbArray {
    options: OpenOptions,
    schema: Arc<ArraySchema>,
    /// The visible ones, later over earlier.
    fragments: Vec<Fragment>,
    /// Per attribute.
    enumerations: Vec<Option<Arc<Enumeration>>>,
    /// Per fragment and attribute, what was read of where tiles are.
    tile_indexes: Vec<Vec<OnceLock<Arc<TileIndex>>>>,
}

impl TileDbArray {
    fn new(
        options: OpenOptions,
        schema: Arc<ArraySchema>,
        fragments: Vec<Fragment>,
        enumerations: Vec<Option<Arc<Enumeration>>>,
    ) -> Self {
        let none_yet = || schema.attributes.iter().map(|_| OnceLock::new()).collect();
        let tile_indexes = fragments.iter().map(|_| none_yet()).collect();
        Self { options, schema, fragments, enumerations, tile_indexes }
    }

    /// The schema at the time of the open.
    pub fn schema(&self) -> &ArraySchema {
        &self.schema
    }

    /// The fragments that the open sees; cells of later ones lie over those of earlier ones.
    pub fn fragments(&self) -> &[Fragment] {
        &self.fragments
    }

    /// How the array was opened.
    pub fn options(&self) -> &OpenOptions {
        &self.options
    }

    /// The enumeration that the values of an attribute are places in.
    pub fn enumeration(&self, attribute: usize) -> Option<&Arc<Enumeration>> {
        self.enumerations.get(attribute)?.as_ref()
    }

    /// The part of a dense array that is the table: the current domain if there is one, else the
    /// least box that holds all fragments or, if asked for, the `full` domain.
    ///
    /// # Errors
    /// `Unsupported` for sparse arrays, for orders other than those of rows and columns, and if
    /// there are 2⁶⁴ cells or more.
    pub fn window(&self, full: bool) -> Result<Window> {
        self.check_dense()?;
        let axes = self.schema.tile_axes()?;
        let ranges = match &self.schema.current_domain {
            Some(ranges) => Some(ranges.clone()),
            None if full => Some(axes.iter().map(|axis| (axis.low, axis.high)).collect()),
            None => window::bounding_box(self.boxes().map(|(_, ranges)| ranges), &axes),
        };
        Window::new(&self.schema, ranges.as_deref())
    }

    /// A machine that finds where `attributes` (their places in the schema) of `chunks`
    /// (coordinates in the grid of `window`) are stored: per chunk and attribute, in the order
    /// given.
    ///
    /// # Errors
    /// Those of [`TileDbArray::window`], and `Unsupported` for an attribute whose type changed.
    pub fn locate(
        self: &Arc<Self>,
        window: &Arc<Window>,
        chunks: Vec<Vec<u64>>,
        attributes: Vec<usize>,
    ) -> Result<Locate> {
        self.check_dense()?;
        Locate::new(Arc::clone(self), Arc::clone(window), chunks, attributes)
    }

    /// A machine that reads what the fragments note about `attribute`; `None` if nothing that they
    /// note can be believed.
    pub fn read_zones(
        self: &Arc<Self>,
        window: &Arc<Window>,
        attribute: usize,
    ) -> Option<ReadZones> {
        self.check_dense().ok()?;
        ReadZones::new(Arc::clone(self), Arc::clone(window), attribute)
    }

    /// A machine that reads the array's metadata.
    pub fn read_metadata(&self) -> ReadMetadata {
        ReadMetadata::new(self.options.clone())
    }

    fn check_dense(&self) -> Result<()> {
        let schema = &self.schema;
        if schema.kind == ArrayKind::Sparse {
            return Err(Error::unsupported("sparse arrays are not read yet"));
        }
        let is_read = |order| matches!(order, CellOrder::RowMajor | CellOrder::ColumnMajor);
        if !is_read(schema.tile_order) || !is_read(schema.cell_order) {
            let (tiles, cells) = (schema.tile_order, schema.cell_order);
            let message =
                format!("a dense array with tiles in {tiles:?} and cells in {cells:?} order");
            return Err(Error::unsupported(message));
        }
        Ok(())
    }

    /// The coordinates that each fragment covers.
    fn boxes(&self) -> impl Iterator<Item = (usize, &[(i128, i128)])> {
        let covered = self.fragments.iter().map(|fragment| fragment.non_empty_domain.as_deref());
        covered.enumerate().filter_map(|(number, ranges)| Some((number, ranges?)))
    }

    fn overlay(&self, window: &Window) -> Overlay {
        Overlay::new(window, self.boxes())
    }

    fn tile_index(&self, fragment: usize, attribute: usize) -> Option<&Arc<TileIndex>> {
        self.tile_indexes.get(fragment)?.get(attribute)?.get()
    }

    fn keep_tile_index(&self, fragment: usize, attribute: usize, index: TileIndex) {
        let place = self.tile_indexes.get(fragment).and_then(|of| of.get(attribute));
        if let Some(place) = place {
            // Another query may have been faster; it found the same.
            let _ = place.set(Arc::new(index));
        }
    }
}
