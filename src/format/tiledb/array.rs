//! An opened array: what is known of it. Each machine that reads more of it is in a file of its own.

use std::sync::{Arc, OnceLock};

use super::folder::OpenOptions;
use super::fragments::{Fragment, TileIndex};
use super::schema::{ArrayKind, ArraySchema, CellOrder, Enumeration};
use crate::error::{Error, Result};

/// An opened array: everything but its cells, and where they are stored.
#[derive(Debug)]
pub struct TileDbArray {
    pub(super) options: OpenOptions,
    pub(super) schema: Arc<ArraySchema>,
    /// The visible ones, later over earlier.
    pub(super) fragments: Vec<Fragment>,
    /// Per attribute.
    pub(super) enumerations: Vec<Option<Arc<Enumeration>>>,
    /// Per fragment and attribute, what was read of where tiles are.
    tile_indexes: Vec<Vec<OnceLock<Arc<TileIndex>>>>,
}

impl TileDbArray {
    pub(super) fn new(
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

    /// The fragment with this number.
    pub(super) fn fragment(&self, number: usize) -> Result<&Fragment> {
        let count = self.fragments.len();
        let none = || Error::usage(format!("no fragment number {number}; the array has {count}"));
        self.fragments.get(number).ok_or_else(none)
    }

    /// How the array was opened.
    pub fn options(&self) -> &OpenOptions {
        &self.options
    }

    /// The enumeration that the values of an attribute are places in.
    pub fn enumeration(&self, attribute: usize) -> Option<&Arc<Enumeration>> {
        self.enumerations.get(attribute)?.as_ref()
    }

    /// Fails for arrays whose cells are not read: sparse ones, and odd orders.
    pub(super) fn check_dense(&self) -> Result<()> {
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
    pub(super) fn boxes(&self) -> impl Iterator<Item = (usize, &[(i128, i128)])> {
        let covered = self.fragments.iter().map(|fragment| fragment.non_empty_domain.as_deref());
        covered.enumerate().filter_map(|(number, ranges)| Some((number, ranges?)))
    }

    /// Where the tiles of an attribute of a fragment are, if that was read before.
    pub(super) fn tile_index(&self, fragment: usize, attribute: usize) -> Option<&Arc<TileIndex>> {
        self.tile_indexes.get(fragment)?.get(attribute)?.get()
    }

    /// Keeps what was read for later queries.
    pub(super) fn keep_tile_index(&self, fragment: usize, attribute: usize, index: TileIndex) {
        let place = self.tile_indexes.get(fragment).and_then(|of| of.get(attribute));
        if let Some(place) = place {
            // Another query may have been faster; it found the same.
            let _ = place.set(Arc::new(index));
        }
    }
}
