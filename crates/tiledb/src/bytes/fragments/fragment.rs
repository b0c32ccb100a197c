//! Fragments: the files that one write, or the consolidation of several writes, added to an array.
//!
//! ```text
//!   domain, cut into tiles       A fragment stores whole every tile that its box touches,
//!   ┌─────┬─────┬─────┬─────┐    and numbers these tiles in tile order.
//!   │   ┌─┼─────┼──┐  │     │
//!   │   │0│  1  │ 2│  │     │    Cells outside the fragment's box have arbitrary values.
//!   ├───┼─┼─────┼──┼──┼─────┤
//!   │   │3│  4  │ 5│  │     │
//!   │   └─┼─────┼──┘  │     │
//!   └─────┴─────┴─────┴─────┘
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use super::footer::Footer;
use crate::bytes::folder::Commit;
use crate::bytes::generic_tile::MAX_RATIO;
use crate::bytes::schema::{
    ArrayKind, ArraySchema, CellOrder, CoordinateRange, DimensionDomain, DimensionSchema, integers,
};
use gridfusion_core::grid::ravel;
use gridfusion_core::{Error, Result};

/// A fragment: cells that were written at one time, or consolidated from several fragments.
#[derive(Debug, Clone)]
pub struct Fragment {
    /// The name of its folder.
    pub name: String,
    /// When its first cell was written, in milliseconds since 1970.
    pub t1: u64,
    /// When its last cell was written, in milliseconds since 1970.
    pub t2: u64,
    /// The format version of its metadata.
    pub version: u32,
    /// The name of the file with its schema.
    pub schema_name: String,
    /// The least and greatest coordinate that it covers on each axis, both included; `None` unless all
    /// are whole numbers.
    pub non_empty_domain: Option<Vec<(i128, i128)>>,
    /// The least and greatest coordinate on each axis, of any type.
    pub domain: Vec<CoordinateRange>,
    /// The number of its tiles. Each attribute has as many in its files.
    pub tiles: u64,
    /// The number of its cells; `None` if there are 2⁶⁴ or more.
    pub cells: Option<u64>,
    /// The names of the files in its folder, and their sizes in bytes.
    pub files: BTreeMap<String, u64>,
    /// The path of its folder in the array's folder.
    pub(in crate::bytes) folder: String,
    /// The schema that it was written with. The positions of attributes in it are the fields of the footer,
    /// and the numbers in names of files.
    pub(in crate::bytes) schema: Arc<ArraySchema>,
    pub(in crate::bytes) footer: Footer,
    /// The tiles of a dense fragment; empty for sparse ones.
    pub(in crate::bytes) tile_box: TileBox,
}

/// A box of tiles: per axis, the number of the first tile and the count of tiles. Tiles are numbered from the
/// low end of the domain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::bytes) struct TileBox {
    pub(in crate::bytes) first: Vec<u64>,
    pub(in crate::bytes) count: Vec<u64>,
}

impl TileBox {
    /// Returns the position of a tile among those of the box, in `order`. The tile must lie in the box.
    ///
    /// The box of the picture above begins at tile (0, 0) and has 2 × 3 tiles. There, tile (1, 0) is at
    /// place 3 in row-major order, and at place 1 in column-major order.
    pub(in crate::bytes) fn place(&self, tile: &[u64], order: CellOrder) -> u64 {
        let within = tile.iter().zip(&self.first).map(|(at, first)| at.saturating_sub(*first));
        // Column-major order is row-major order of the reversed axes.
        if order == CellOrder::ColumnMajor {
            let (within, count): (Vec<u64>, Vec<u64>) =
                within.zip(self.count.clone()).rev().unzip();
            return ravel(&within, &count);
        }
        ravel(&within.collect::<Vec<_>>(), &self.count)
    }

    /// Returns the number of tiles; `None` if it overflows.
    fn tiles(&self) -> Option<u64> {
        self.count.iter().try_fold(1_u64, |product, count| product.checked_mul(*count))
    }
}

/// The name of the file with a fragment's metadata.
pub(in crate::bytes) const METADATA_FILE: &str = "__fragment_metadata.tdb";
/// The suffixes of an attribute's files: values, content of variable length, and validity.
pub(in crate::bytes) const VALUES: &str = "";
pub(in crate::bytes) const CONTENT: &str = "_var";
pub(in crate::bytes) const VALIDITY: &str = "_validity";
/// The greatest ratio of decoded to stored bytes of a tile. Several filters can compress one after the other.
const MAX_TILE_RATIO: u64 = 1 << 20;
const REGION: &str = "fragment footer";

impl Fragment {
    /// Makes the fragment of a `commit` to an array of `schema`. `files` are the names and sizes of the
    /// files in the fragment's folder.
    ///
    /// # Errors
    /// `Corrupt` if the footer contradicts the schema of the array, or gives a box outside the domain or with
    /// too many tiles. `Unsupported` for a fragment of loose cells in a dense array.
    pub(in crate::bytes) fn new(
        commit: &Commit,
        files: BTreeMap<String, u64>,
        footer: Footer,
        schema: &ArraySchema,
    ) -> Result<Self> {
        check_same_axes(&footer.schema, schema)?;
        let mut fragment = Self {
            name: commit.name.clone(),
            t1: commit.time.t1,
            t2: commit.time.t2,
            version: footer.version,
            schema_name: footer.schema_name.clone(),
            non_empty_domain: integers(&footer.domain),
            domain: footer.domain.clone(),
            tiles: footer.sparse_tiles,
            cells: None,
            files,
            folder: commit.folder.clone(),
            schema: Arc::clone(&footer.schema),
            footer,
            tile_box: TileBox::default(),
        };
        match (schema.kind, fragment.footer.is_dense) {
            (ArrayKind::Dense, true) => fragment.cover_tiles()?,
            (ArrayKind::Sparse, false) => {
                fragment.cells = fragment.sparse_cells()?;
                fragment.check_tiles()?;
                fragment.check_coordinates()?;
            }
            (ArrayKind::Dense, false) => {
                let message =
                    "a sparse fragment in a dense array, as very old versions of TileDB wrote";
                return Err(Error::unsupported(message));
            }
            (ArrayKind::Sparse, true) => {
                return Err(Error::corrupt_region(REGION, "a dense fragment in a sparse array"));
            }
        }
        fragment.check_tiles()?;
        Ok(fragment)
    }

    /// Fails if the fragment has more tiles than its metadata file can describe. Each tile takes 8
    /// bytes of a block, which decoding makes at most [`MAX_RATIO`] times longer.
    ///
    /// A footer of few bytes can give a box of 2^60 tiles. Without this check, loops over the tiles would
    /// hardly end.
    fn check_tiles(&self) -> Result<()> {
        let len = self.files.get(METADATA_FILE).copied().unwrap_or(0);
        if self.tiles / (MAX_RATIO / 8) <= len {
            return Ok(());
        }
        let message = format!("{} tiles, too many for {len} bytes of metadata", self.tiles);
        Err(Error::corrupt_region(REGION, message))
    }

    /// Returns the number of cells of a sparse fragment: all tiles but the last have as many as the schema's
    /// capacity. `None` if there are 2⁶⁴ or more.
    fn sparse_cells(&self) -> Result<Option<u64>> {
        let Some(full) = self.tiles.checked_sub(1) else { return Ok(Some(0)) };
        let (last, capacity) = (self.footer.last_tile_cells, self.schema.capacity);
        if last == 0 || last > capacity {
            let message = format!("{last} cells in the last tile, expected 1 to {capacity}");
            return Err(Error::corrupt_region(REGION, message));
        }
        Ok(full.checked_mul(capacity).and_then(|cells| cells.checked_add(last)))
    }

    /// Fails if the files of coordinates are too short for the tiles and cells that the footer gives. Nothing
    /// else confirms these numbers before memory is made for them.
    fn check_coordinates(&self) -> Result<()> {
        /// The bytes of the count of chunks, with which each stored tile begins.
        const TILE_HEAD: u64 = 8;
        let largest =
            if self.tiles > 1 { self.schema.capacity } else { self.footer.last_tile_cells };
        for (number, dimension) in self.schema.dimensions.iter().enumerate() {
            let field = self.dimension_field(number);
            let bytes = |suffix| {
                let name = self.data_file(field, suffix);
                self.files.get(&name).copied().unwrap_or(0)
            };
            let values = bytes(VALUES);
            // Each value of variable length has an offset, but compression may leave little of it.
            let (size, stored) = match dimension.domain {
                DimensionDomain::Text => (1, values.saturating_add(bytes(CONTENT))),
                _ => (dimension.datatype.size(), values),
            };
            let needed = largest.saturating_mul(size) / MAX_TILE_RATIO;
            if self.tiles.saturating_mul(TILE_HEAD) > values || needed > stored {
                let (tiles, file) = (self.tiles, self.data_file(field, VALUES));
                let message = format!(
                    "{tiles} tiles of up to {largest} cells, but {file} has {values} bytes"
                );
                return Err(Error::corrupt_region(REGION, message));
            }
        }
        Ok(())
    }

    /// Returns the number of cells in tile number `tile` of a fragment. Tiles of dense fragments are stored
    /// whole.
    ///
    /// # Errors
    /// `Unsupported` if a dense array is not divided into tiles, or a tile has 2⁶⁴ cells or more.
    pub fn tile_cells(&self, tile: u64) -> Result<u64> {
        if self.schema.kind == ArrayKind::Sparse {
            let is_last = tile.checked_add(1) == Some(self.tiles);
            return Ok(if is_last { self.footer.last_tile_cells } else { self.schema.capacity });
        }
        let axes = self.schema.tile_axes()?;
        let cells = axes.iter().try_fold(1_u64, |cells, axis| cells.checked_mul(axis.extent));
        cells.ok_or_else(|| Error::unsupported("tiles of 2^64 cells or more"))
    }

    /// Computes which tiles a dense fragment has, and how many cells it covers. On an axis from 1 to 7 in
    /// tiles of 3, a box from 3 to 7 has tiles 0 to 2, and 5 positions.
    fn cover_tiles(&mut self) -> Result<()> {
        let corrupt = |message: String| Error::corrupt_region(REGION, message);
        let covered = self.non_empty_domain.as_deref().unwrap_or_default();
        let axes = self.schema.tile_axes()?;
        for (&(low, high), axis) in covered.iter().zip(&axes) {
            // Consolidation may round a box up to whole tiles, beyond the domain.
            let begins_inside = axis.low <= low && low <= axis.high;
            if !begins_inside || axis.tile_of(high) > axis.tile_of(axis.high) {
                let message = format!(
                    "cells from {low} to {high} in a domain of {} to {}",
                    axis.low, axis.high
                );
                return Err(corrupt(message));
            }
            let first = axis.tile_of(low);
            self.tile_box.first.push(first);
            self.tile_box.count.push((axis.tile_of(high) - first).saturating_add(1));
        }
        self.tiles = self.tile_box.tiles().ok_or_else(|| corrupt("2^64 tiles or more".into()))?;
        self.cells = covered.iter().try_fold(1_u64, |product, (low, high)| {
            product.checked_mul(u64::try_from(high - low + 1).ok()?)
        });
        Ok(())
    }

    /// Returns the size of all its files together, in bytes.
    pub fn bytes(&self) -> u64 {
        self.files.values().fold(0, |sum, size| sum.saturating_add(*size))
    }

    /// Returns the size of the files with an attribute's tiles, in bytes; 0 if the fragment was written
    /// without the attribute.
    pub fn attribute_bytes(&self, name: &str) -> u64 {
        let Some(field) = self.schema.attribute_index(name) else { return 0 };
        let size = |suffix| self.files.get(&self.data_file(field, suffix)).copied().unwrap_or(0);
        ["", CONTENT, VALIDITY].map(size).into_iter().fold(0, u64::saturating_add)
    }

    /// Returns the size of an attribute's decoded tiles in bytes. `None` if its values have variable
    /// length, or if the size overflows.
    pub fn attribute_raw_bytes(&self, name: &str) -> Option<u64> {
        let Some(field) = self.schema.attribute_index(name) else { return Some(0) };
        let attribute = &self.schema.attributes[field];
        // Bytes per cell: the value, and the validity byte.
        let cell = attribute.cell_size()?.checked_add(u64::from(attribute.nullable))?;
        let cells = match self.schema.kind {
            ArrayKind::Sparse => self.cells?,
            // Tiles are stored whole, so they have more cells than the fragment's box.
            ArrayKind::Dense => {
                let axes = self.schema.tile_axes().ok()?;
                axes.iter().try_fold(self.tiles, |cells, axis| cells.checked_mul(axis.extent))?
            }
        };
        cells.checked_mul(cell)
    }

    /// Returns the path of the file with the fragment's metadata.
    pub(in crate::bytes) fn metadata_object(&self) -> String {
        format!("{}/{METADATA_FILE}", self.folder)
    }
}

/// Fails unless the fragment's own schema has the array's dimensions, kind and orders. Schema evolution
/// does not change these.
fn check_same_axes(own: &ArraySchema, array: &ArraySchema) -> Result<()> {
    let axes = |schema: &ArraySchema| {
        let axis = |at: &DimensionSchema| (at.name.clone(), at.datatype, at.domain);
        let axes: Vec<_> = schema.dimensions.iter().map(axis).collect();
        (axes, schema.kind, schema.tile_order, schema.cell_order)
    };
    if axes(own) == axes(array) {
        return Ok(());
    }
    Err(Error::corrupt_region(REGION, "a schema whose dimensions or orders are not the array's"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::folder::OpenOptions;
    use crate::bytes::open_array::OpenArray;
    use crate::bytes::testing::{Folder, SCHEMA_NAME, SchemaBytes, generic_tile};
    use gridfusion_core::ErrorKind;

    #[test]
    fn tiles_are_numbered_in_their_box() {
        let tiles = TileBox { first: vec![2, 5], count: vec![2, 3] };
        let place = |tile: [u64; 2], order| tiles.place(&tile, order);
        assert_eq!(place([2, 5], CellOrder::RowMajor), 0);
        assert_eq!(place([2, 6], CellOrder::RowMajor), 1);
        assert_eq!(place([3, 5], CellOrder::RowMajor), 3);
        assert_eq!(place([3, 5], CellOrder::ColumnMajor), 1);
        assert_eq!(place([2, 6], CellOrder::ColumnMajor), 2);
        assert_eq!(place([3, 7], CellOrder::ColumnMajor), 5);
    }

    #[test]
    fn fragments_begin_in_the_domain_and_end_in_its_last_tiles() {
        let open = |rows: (i32, i32)| {
            let mut folder = Folder::default();
            let schema = SchemaBytes { high: [5, 7], ..SchemaBytes::dense_2d() }.content();
            folder.put(&format!("__schema/{SCHEMA_NAME}"), &generic_tile(&schema));
            folder.write(1, [rows, (1, 1)], [0, 0], |_, _| 0);
            folder.drive(OpenArray::new(OpenOptions::default()))
        };
        assert!(open((5, 6)).is_ok());
        for rows in [(0, 1), (5, 7), (6, 6)] {
            assert_eq!(open(rows).unwrap_err().kind(), ErrorKind::Corrupt, "{rows:?}");
        }
    }
}
