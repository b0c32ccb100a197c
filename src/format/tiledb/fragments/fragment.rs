//! Fragments: what one write, or one consolidation of several, left behind.
//!
//! ```text
//!   domain, cut into tiles       the tiles of a fragment are those that its box touches,
//!   ┌─────┬─────┬─────┬─────┐    stored whole and numbered within their own box
//!   │   ┌─┼─────┼──┐  │     │
//!   │   │0│  1  │ 2│  │     │    cells of these tiles outside the fragment's box mean nothing
//!   ├───┼─┼─────┼──┼──┼─────┤
//!   │   │3│  4  │ 5│  │     │
//!   │   └─┼─────┼──┘  │     │
//!   └─────┴─────┴─────┴─────┘
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use super::footer::Footer;
use crate::error::{Error, Result};
use crate::format::tiledb::folder::Commit;
use crate::format::tiledb::generic_tile::MAX_RATIO;
use crate::format::tiledb::schema::{ArrayKind, ArraySchema, CellOrder, DimensionSchema};
use crate::grid::ravel;

/// A fragment: cells written at one time, or consolidated from several.
#[derive(Debug, Clone)]
pub struct Fragment {
    /// The name of its folder.
    pub name: String,
    /// The earliest millisecond since 1970 at which a cell of it was written.
    pub t1: u64,
    /// The latest.
    pub t2: u64,
    /// The format version of its metadata.
    pub version: u32,
    /// The file of its schema.
    pub schema_name: String,
    /// The box of coordinates that it covers, both ends included, if they are whole numbers.
    pub non_empty_domain: Option<Vec<(i128, i128)>>,
    /// The number of its tiles.
    pub tiles: u64,
    /// The number of its cells; `None` if there are more than 2⁶⁴.
    pub cells: Option<u64>,
    /// The files in its folder, and their bytes.
    pub files: BTreeMap<String, u64>,
    /// The path of its folder.
    pub(in crate::format::tiledb) folder: String,
    pub(in crate::format::tiledb) schema: Arc<ArraySchema>,
    pub(in crate::format::tiledb) footer: Footer,
    /// The tiles of a dense fragment; empty for others.
    pub(in crate::format::tiledb) tile_box: TileBox,
}

/// A box of tiles, by their numbers on each axis.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::format::tiledb) struct TileBox {
    pub(in crate::format::tiledb) first: Vec<u64>,
    pub(in crate::format::tiledb) count: Vec<u64>,
}

impl TileBox {
    /// The place of a tile of the box.
    pub(in crate::format::tiledb) fn place(&self, tile: &[u64], order: CellOrder) -> u64 {
        let within = tile.iter().zip(&self.first).map(|(at, first)| at.saturating_sub(*first));
        if order == CellOrder::ColumnMajor {
            let (within, count): (Vec<u64>, Vec<u64>) =
                within.zip(self.count.clone()).rev().unzip();
            return ravel(&within, &count);
        }
        ravel(&within.collect::<Vec<_>>(), &self.count)
    }

    /// The number of tiles, unless it overflows.
    fn tiles(&self) -> Option<u64> {
        self.count.iter().try_fold(1_u64, |product, count| product.checked_mul(*count))
    }
}

/// The name of the file with a fragment's metadata.
pub(in crate::format::tiledb) const METADATA_FILE: &str = "__fragment_metadata.tdb";
/// The ends of file names after the attribute's.
pub(in crate::format::tiledb) const VALUES: &str = "";
pub(in crate::format::tiledb) const CONTENT: &str = "_var";
pub(in crate::format::tiledb) const VALIDITY: &str = "_validity";
const REGION: &str = "fragment footer";

impl Fragment {
    /// The fragment of an array of `schema` with the `files` of its folder.
    pub(in crate::format::tiledb) fn new(
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
            non_empty_domain: footer.non_empty_domain.clone(),
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
            (ArrayKind::Sparse, false) => fragment.cells = fragment.sparse_cells(),
            (ArrayKind::Dense, false) => {
                let message =
                    "a fragment of loose cells in a dense array, as very old libraries wrote";
                return Err(Error::unsupported(message));
            }
            (ArrayKind::Sparse, true) => {
                return Err(Error::corrupt_region(REGION, "a dense fragment in a sparse array"));
            }
        }
        fragment.check_tiles()?;
        Ok(fragment)
    }

    /// Each tile has 8 bytes in a block of the metadata, which cannot have shrunk without limit.
    fn check_tiles(&self) -> Result<()> {
        let len = self.files.get(METADATA_FILE).copied().unwrap_or(0);
        if self.tiles / (MAX_RATIO / 8) <= len {
            return Ok(());
        }
        let message = format!("{} tiles, too many for {len} bytes of metadata", self.tiles);
        Err(Error::corrupt_region(REGION, message))
    }

    fn sparse_cells(&self) -> Option<u64> {
        match self.tiles.checked_sub(1) {
            None => Some(0),
            Some(full) => {
                full.checked_mul(self.schema.capacity)?.checked_add(self.footer.last_tile_cells)
            }
        }
    }

    /// Finds the tiles and cells of a dense fragment.
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

    /// The name of the file with the tiles of attribute number `field` of the fragment's own
    /// schema; `suffix` says which of them.
    pub(in crate::format::tiledb) fn data_file(&self, field: usize, suffix: &str) -> String {
        let name = || self.schema.attributes.get(field).map_or("", |at| &at.name);
        match self.version {
            ..8 => format!("{}{suffix}.tdb", name()),
            8 => format!("{}{suffix}.tdb", percent_encode(name())),
            _ => format!("a{field}{suffix}.tdb"),
        }
    }

    /// Bytes of all its files.
    pub fn bytes(&self) -> u64 {
        self.files.values().fold(0, |sum, size| sum.saturating_add(*size))
    }

    /// Bytes of the files with the tiles of an attribute; 0 if the fragment was written without it.
    pub fn attribute_bytes(&self, name: &str) -> u64 {
        let Some(field) = self.schema.attribute_index(name) else { return 0 };
        let size = |suffix| self.files.get(&self.data_file(field, suffix)).copied().unwrap_or(0);
        ["", CONTENT, VALIDITY].map(size).into_iter().fold(0, u64::saturating_add)
    }

    /// Bytes of the decoded tiles of an attribute; `None` if its values have any length, or if there are
    /// too many.
    pub fn attribute_raw_bytes(&self, name: &str) -> Option<u64> {
        let Some(field) = self.schema.attribute_index(name) else { return Some(0) };
        let attribute = &self.schema.attributes[field];
        let cell = attribute.cell_size()?.checked_add(u64::from(attribute.nullable))?;
        let cells = match self.schema.kind {
            ArrayKind::Sparse => self.cells?,
            ArrayKind::Dense => {
                let axes = self.schema.tile_axes().ok()?;
                axes.iter().try_fold(self.tiles, |cells, axis| cells.checked_mul(axis.extent))?
            }
        };
        cells.checked_mul(cell)
    }

    /// The path of the file with the fragment's metadata.
    pub(in crate::format::tiledb) fn metadata_object(&self) -> String {
        format!("{}/{METADATA_FILE}", self.folder)
    }
}

/// Schemas may change in all but their axes.
fn check_same_axes(own: &ArraySchema, array: &ArraySchema) -> Result<()> {
    let axes = |schema: &ArraySchema| {
        let axis = |at: &DimensionSchema| (at.name.clone(), at.datatype, at.domain);
        let axes: Vec<_> = schema.dimensions.iter().map(axis).collect();
        (axes, schema.kind, schema.tile_order, schema.cell_order)
    };
    if axes(own) == axes(array) {
        return Ok(());
    }
    Err(Error::corrupt_region(REGION, "a schema with other dimensions than the array's"))
}

/// How format 8 writes attributes' names in those of files; the last five codes are not those of
/// the characters, and that is how it is.
fn percent_encode(name: &str) -> String {
    let encode = |c: char| match c {
        '!' | '#' | '$' | '%' | '&' | '\'' | '(' | ')' | '*' | '+' | ',' | '/' | ':' | ';'
        | '=' | '?' | '@' | '[' | ']' | '"' => format!("%{:02X}", u32::from(c)),
        '<' => "%20".into(),
        '>' => "%2D".into(),
        '\\' => "%30".into(),
        '|' => "%3C".into(),
        other => other.into(),
    };
    name.chars().map(encode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::format::tiledb::folder::OpenOptions;
    use crate::format::tiledb::open_array::OpenArray;
    use crate::format::tiledb::testing::{Folder, SCHEMA_NAME, SchemaBytes, generic_tile};

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

    #[test]
    fn old_names_of_files() {
        assert_eq!(percent_encode("a/b c|\"é"), "a%2Fb c%3C%22é");
    }
}
