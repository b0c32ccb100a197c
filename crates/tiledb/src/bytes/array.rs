//! An opened array: its schema, fragments and enumerations. Each machine that reads more of the array has a
//! file of its own:
//!
//! ```text
//!   OpenArray ─▶ TileDbArray ┬─ window          tiles/window.rs      the cells that a table shows
//!                            ├─ locate          tiles/locate.rs      where the tiles of chunks are stored
//!                            ├─ read_zones      statistics/zones.rs  the statistics of chunks
//!                            ├─ sparse tiles    sparse/              rectangles and tiles of sparse arrays
//!                            ├─ read_metadata   metadata.rs          keys and values
//!                            ├─ read_tiles      check_tiles.rs       the tiles of one fragment, to verify
//!                            └─ read_rtree      sparse/              their rectangles, to verify
//! ```
//!
//! All readers share one array in an `Arc`. Only its tile indexes are filled in after the open, each once.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use super::folder::{OpenOptions, TimedName};
use super::fragments::{Fragment, TileIndex};
use super::schema::{ArrayKind, ArraySchema, CellOrder, Enumeration};
use super::sparse::{DeleteCondition, RTree};
use gridfusion_core::{Error, Result};

/// An opened array, without its cells. The locations of tiles are read when first needed, and then kept.
#[derive(Debug)]
pub struct TileDbArray {
    /// The options of the open; machines that read more use the same time window and key.
    pub(super) options: OpenOptions,
    /// The name of the file of the schema.
    schema_name: String,
    /// The schema at the end of the time window. Fragments may have been written with other schemas. In this
    /// module, an attribute's number is its position in this schema. Its number as a *field* is its position
    /// in the schema of a fragment; `field_of` in `tiles` maps one to the other.
    pub(super) schema: Arc<ArraySchema>,
    /// The visible fragments; later ones override earlier ones.
    pub(super) fragments: Vec<Fragment>,
    /// Per attribute of `schema`; `None` if it has no enumeration, an error if that cannot be read.
    pub(super) enumerations: Vec<Option<Result<Arc<Enumeration>>>>,
    /// The delete conditions that the open sees, oldest first; only sparse arrays have any.
    pub(super) deletions: Vec<DeleteCondition>,
    /// Per fragment and field of it, the tile index once it is read.
    tile_indexes: Vec<Vec<OnceLock<Arc<TileIndex>>>>,
    /// Per fragment, its R-tree once it is read.
    rtrees: Vec<OnceLock<Arc<RTree>>>,
    /// Per fragment, the markers of the delete conditions that were applied to it, once they are read.
    processed: Vec<OnceLock<Arc<HashSet<String>>>>,
}

impl TileDbArray {
    pub(super) fn new(
        options: OpenOptions,
        (schema_name, schema): (String, Arc<ArraySchema>),
        fragments: Vec<Fragment>,
        enumerations: Vec<Option<Result<Arc<Enumeration>>>>,
        deletions: Vec<DeleteCondition>,
    ) -> Self {
        let none_yet = |it: &Fragment| (0..it.fields()).map(|_| OnceLock::new()).collect();
        let tile_indexes = fragments.iter().map(none_yet).collect();
        let rtrees = fragments.iter().map(|_| OnceLock::new()).collect();
        let processed = fragments.iter().map(|_| OnceLock::new()).collect();
        Self {
            options,
            schema_name,
            schema,
            fragments,
            enumerations,
            deletions,
            tile_indexes,
            rtrees,
            processed,
        }
    }

    /// The name of the file of the schema.
    pub(crate) fn schema_name(&self) -> &str {
        &self.schema_name
    }

    /// When the schema was written, in milliseconds since 1970.
    pub(crate) fn schema_time(&self) -> u64 {
        TimedName::parse(&self.schema_name).map_or(0, |name| name.t2)
    }

    /// The delete conditions that the open sees, oldest first; only sparse arrays have any.
    pub fn deletions(&self) -> &[DeleteCondition] {
        &self.deletions
    }

    /// The schema at the time of the open.
    pub fn schema(&self) -> &ArraySchema {
        &self.schema
    }

    /// The fragments that the open sees, oldest first; later ones override earlier ones.
    pub fn fragments(&self) -> &[Fragment] {
        &self.fragments
    }

    /// The fragment at this index of [`Self::fragments`], or a `Usage` error.
    pub(super) fn fragment(&self, number: usize) -> Result<&Fragment> {
        let count = self.fragments.len();
        let none = || Error::usage(format!("no fragment number {number}; the array has {count}"));
        self.fragments.get(number).ok_or_else(none)
    }

    /// The options with which the array was opened.
    pub fn options(&self) -> &OpenOptions {
        &self.options
    }

    /// The enumeration that lists the values behind an attribute's integers; `None` if it has none.
    ///
    /// # Errors
    /// `Corrupt` if the file of the enumeration is missing or malformed, `Unsupported` for its version, and
    /// `Usage` if the key does not fit. The other attributes can still be read.
    pub fn enumeration(&self, attribute: usize) -> Result<Option<&Arc<Enumeration>>> {
        match self.enumerations.get(attribute) {
            Some(Some(read)) => read.as_ref().map(Some).map_err(Error::clone),
            _ => Ok(None),
        }
    }

    /// Fails unless the array is sparse.
    pub(super) fn check_sparse(&self) -> Result<()> {
        match self.schema.kind {
            ArrayKind::Sparse => Ok(()),
            ArrayKind::Dense => Err(Error::internal("a dense array is read as a sparse one")),
        }
    }

    /// Fails unless the array is dense, with tiles and cells in row-major or column-major order.
    pub(super) fn check_dense(&self) -> Result<()> {
        let schema = &self.schema;
        if schema.kind == ArrayKind::Sparse {
            return Err(Error::internal("a sparse array is read as a dense one"));
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

    /// The index of each fragment, and the box of coordinates that it covers, both ends included.
    pub(super) fn boxes(&self) -> impl Iterator<Item = (usize, &[(i128, i128)])> {
        let covered = self.fragments.iter().map(|fragment| fragment.non_empty_domain.as_deref());
        covered.enumerate().filter_map(|(number, ranges)| Some((number, ranges?)))
    }

    /// The tile index of a field of a fragment, if it was read before.
    pub(super) fn tile_index(&self, fragment: usize, field: usize) -> Option<&Arc<TileIndex>> {
        self.tile_indexes.get(fragment)?.get(field)?.get()
    }

    /// Keeps a tile index for later queries.
    pub(super) fn keep_tile_index(&self, fragment: usize, field: usize, index: TileIndex) {
        let place = self.tile_indexes.get(fragment).and_then(|of| of.get(field));
        if let Some(place) = place {
            // Another query may have set the index first; both are equal.
            let _ = place.set(Arc::new(index));
        }
    }

    /// The R-tree of a fragment, once it is read.
    pub(super) fn rtree(&self, fragment: usize) -> Option<&OnceLock<Arc<RTree>>> {
        self.rtrees.get(fragment)
    }

    /// The markers of the delete conditions that were applied to a fragment, once they are read.
    pub(super) fn processed(&self, fragment: usize) -> Option<&OnceLock<Arc<HashSet<String>>>> {
        self.processed.get(fragment)
    }
}
