//! Access to the single tiles of one field of one fragment, for verification. The field is an attribute of the
//! fragment's own schema, which may differ from the array's schema. Sparse fragments have fields of
//! coordinates and times too.
//!
//! Queries go from a chunk to the tiles that it shows (`tiles/locate.rs`). Verification goes from a
//! fragment to all its tiles: also to those that newer fragments hide, or that lie outside the table. So
//! there is neither a window nor an overlay here. A tile is addressed by its number in the fragment, from 0
//! to the fragment's count of tiles.

use std::sync::Arc;

use bytes::Bytes;

use super::array::TileDbArray;
use super::fragments::{
    CONTENT, FieldSchema, Fragment, TileBox, TileIndex, VALIDITY, VALUES, block_locations,
};
use super::schema::{ArrayKind, ArraySchema, CellOrder, TileAxis};
use super::statistics::{
    StoredStatistics, TileStatistics, has_statistics, statistics_locations,
    stored_statistics_locations,
};
use gridfusion_core::format::{Layer, Location, Machine, Replies, Step};
use gridfusion_core::grid::unravel;
use gridfusion_core::{Error, Result};

/// The tiles of one field of one fragment.
#[derive(Debug)]
pub struct FragmentTiles {
    array: Arc<TileDbArray>,
    /// The number of the fragment in the array.
    fragment: usize,
    /// The number of the field in the fragment.
    field: usize,
    /// The axes of a dense fragment; empty for sparse ones.
    axes: Vec<TileAxis>,
    index: TileIndex,
    /// Statistics of the tiles: `None` if the fragment has none, an error if they are malformed.
    statistics: Result<Option<TileStatistics>>,
}

impl FragmentTiles {
    /// The fragment that stores the tiles.
    pub fn fragment(&self) -> &Fragment {
        &self.array.fragments[self.fragment]
    }

    /// The field of the tiles, as the fragment's schema declares it.
    ///
    /// # Errors
    /// `Internal` if the fragment has no such field, which [`TileDbArray::read_tiles`] has excluded.
    pub fn field(&self) -> Result<FieldSchema<'_>> {
        self.fragment().field(self.field)
    }

    /// The name of the attribute or dimension; `t`, `dt` or `dci` for times.
    pub fn name(&self) -> &str {
        self.field().map_or("", |field| field.name)
    }

    /// Cells per axis of tile number `place` of the fragment; of a sparse fragment, its number of cells.
    ///
    /// # Errors
    /// `Unsupported` if the number of cells overflows.
    pub fn tile_shape(&self, place: u64) -> Result<Vec<u64>> {
        match self.array.schema.kind {
            ArrayKind::Dense => Ok(self.axes.iter().map(|axis| axis.extent).collect()),
            ArrayKind::Sparse => Ok(vec![self.fragment().tile_cells(place)?]),
        }
    }

    /// Coordinates, in the grid of the domain's tiles, of tile number `place` of the fragment. Tiles of sparse
    /// fragments lie in no grid: their only coordinate is their number.
    pub fn coordinates(&self, place: u64) -> Vec<u64> {
        let fragment = self.fragment();
        match self.array.schema.kind {
            ArrayKind::Dense => fragment.tile_box.coordinates(place, fragment.schema.tile_order),
            ArrayKind::Sparse => vec![place],
        }
    }

    /// The location of tile number `place` of the fragment. The layer has no placement, so its cells decode
    /// in their stored order, which may be column-major.
    ///
    /// # Errors
    /// `Corrupt` if a file of the tile is missing or too short.
    pub fn stored(&self, place: u64) -> Result<Layer> {
        let (values, content, validity) = self.index.payloads(place)?;
        Ok(Layer::whole(values).with_content(content).with_validity(validity))
    }

    /// The error in the stored statistics, if they are malformed.
    pub fn statistics_error(&self) -> Option<&Error> {
        self.statistics.as_ref().err()
    }

    /// Whether the fragment has well-formed statistics of these tiles.
    pub fn has_statistics(&self) -> bool {
        matches!(self.statistics, Ok(Some(_)))
    }

    /// The stored statistics of tile number `place`; `None` if there are none, or if the border of a dense
    /// fragment or domain cuts the tile. Such a tile stores padding, which its statistics may leave out.
    pub fn stored_statistics(&self, place: u64) -> Option<StoredStatistics> {
        let statistics = self.statistics.as_ref().ok()?.as_ref()?;
        let is_whole = match self.array.schema.kind {
            ArrayKind::Dense => self.is_whole(place)?,
            ArrayKind::Sparse => true,
        };
        if is_whole { statistics.stored_statistics(place) } else { None }
    }

    /// Whether a tile of a dense fragment lies wholly in the fragment's box and in the domain.
    fn is_whole(&self, place: u64) -> Option<bool> {
        let covered = self.fragment().non_empty_domain.as_deref()?;
        let coordinates = self.coordinates(place);
        Some(self.axes.iter().zip(&coordinates).zip(covered).all(|((axis, tile), range)| {
            let first = axis.first_of(*tile);
            let last = first + i128::from(axis.extent) - 1;
            range.0.max(axis.low) <= first && last <= range.1.min(axis.high)
        }))
    }
}

/// A machine that reads locations and statistics of tiles; made by [`TileDbArray::read_tiles`].
#[derive(Debug)]
pub struct ReadTiles {
    array: Arc<TileDbArray>,
    /// The number of the fragment in the array.
    fragment: usize,
    /// The number of the field in the fragment.
    field: usize,
    /// The blocks of the tile index.
    blocks: Vec<Location>,
    /// The blocks of statistics; empty if there are none that can be used.
    statistics: Vec<Location>,
}

impl ReadTiles {
    fn new(array: Arc<TileDbArray>, fragment: usize, field: usize) -> Result<Self> {
        let of = array.fragment(fragment)?;
        if !of.stored_fields().any(|stored| stored == field) {
            return Err(Error::usage(format!("no field number {field} in {}", of.name)));
        }
        let blocks = block_locations(of, field)?;
        let attribute = of.schema.attributes.get(field);
        let statistics = match attribute.filter(|attribute| has_statistics(attribute)) {
            None => None,
            // Statistics of consolidated dense fragments count fill values, which are no cells.
            Some(_) => match array.schema.kind {
                ArrayKind::Dense => statistics_locations(of, field),
                ArrayKind::Sparse => stored_statistics_locations(of, field),
            },
        };
        let statistics = statistics.unwrap_or_default();
        Ok(Self { array, fragment, field, blocks, statistics })
    }

    fn finish(&self, replies: &[Bytes]) -> Result<FragmentTiles> {
        let fragment = self.array.fragment(self.fragment)?;
        let (blocks, statistics) = replies
            .split_at_checked(self.blocks.len())
            .ok_or_else(|| Error::internal("blocks were asked for and not delivered"))?;
        let key = self.array.options.key.as_ref();
        let index = TileIndex::parse(fragment, self.field, &self.blocks, blocks, key)?;
        // Malformed statistics are a finding, and no reason to leave the tiles unchecked.
        let statistics = match self.statistics.is_empty() {
            true => Ok(None),
            false => {
                let datatype = fragment.field(self.field)?.datatype;
                TileStatistics::parse(fragment, datatype, &self.statistics, statistics, key)
                    .map_err(|error| error.about(&fragment.metadata_object()))
            }
        };
        let axes = match self.array.schema.kind {
            ArrayKind::Dense => fragment.schema.tile_axes()?,
            ArrayKind::Sparse => vec![],
        };
        Ok(FragmentTiles {
            array: Arc::clone(&self.array),
            fragment: self.fragment,
            field: self.field,
            axes,
            index,
            statistics,
        })
    }
}

impl Machine for ReadTiles {
    type Output = FragmentTiles;

    fn subject(&self) -> &'static str {
        "tiles"
    }

    fn step(&mut self, replies: Replies) -> Result<Step<FragmentTiles>> {
        match replies {
            Replies::Start => Ok(Step::Read([&self.blocks[..], &self.statistics].concat())),
            replies => self.finish(&replies.into_bytes()).map(Step::Done),
        }
    }
}

impl TileDbArray {
    /// Makes a machine that reads locations and statistics of the tiles of one field of one fragment.
    /// `fragment` is an index of [`TileDbArray::fragments`], and `field` one of [`Fragment::stored_fields`].
    ///
    /// # Errors
    /// `Unsupported` for dense arrays in an unknown order, and `Corrupt` if the footer lacks valid offsets of
    /// the tile index. `Usage` if there is no such fragment or field.
    pub fn read_tiles(self: &Arc<Self>, fragment: usize, field: usize) -> Result<ReadTiles> {
        if self.schema.kind == ArrayKind::Dense {
            self.check_dense()?;
        }
        ReadTiles::new(Arc::clone(self), fragment, field)
    }
}

impl Fragment {
    /// The schema with which the fragment was written.
    pub fn schema(&self) -> &ArraySchema {
        &self.schema
    }

    /// Errors for the files of tiles that are missing, or whose size differs from the size in the footer.
    pub fn data_file_errors(&self) -> Vec<Error> {
        let fields = &self.footer.fields;
        let mut misfits = vec![];
        for field in self.stored_fields() {
            let Ok(schema) = self.field(field) else { continue };
            // Suffix, sizes in the footer, and whether the field has such a file. The footer gives 0 for
            // others.
            let files = [
                (VALUES, &fields.file_sizes, true),
                (CONTENT, &fields.var_file_sizes, schema.is_variable()),
                (VALIDITY, &fields.validity_file_sizes, schema.nullable),
            ];
            let values = self.data_file(field, VALUES);
            for (suffix, sizes, wanted) in files {
                let stored = sizes.get(field).copied().filter(|_| wanted).unwrap_or(0);
                let name = self.data_file(field, suffix);
                // Times have one file, whose name has no suffix.
                if !wanted && name == values {
                    continue;
                }
                let found = self.files.get(&name).copied();
                if found.unwrap_or(0) == stored {
                    continue;
                }
                let found = match found {
                    Some(found) => format!("it has {found} bytes"),
                    None => "it does not exist".to_owned(),
                };
                let message = format!("{found}; the fragment's footer gives {stored} bytes");
                let file = format!("{}/{name}", self.folder);
                misfits.push(Error::corrupt_region("fragment", message).in_file(&file));
            }
        }
        misfits
    }
}

impl TileBox {
    /// The coordinates of tile number `place` of the box: the inverse of [`TileBox::place`].
    fn coordinates(&self, place: u64, order: CellOrder) -> Vec<u64> {
        let mut count = self.count.clone();
        let column_major = order == CellOrder::ColumnMajor;
        if column_major {
            count.reverse();
        }
        let mut within = unravel(place, &count);
        if column_major {
            within.reverse();
        }
        within.iter().zip(&self.first).map(|(at, first)| at.saturating_add(*first)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::folder::OpenOptions;
    use crate::bytes::open_array::OpenArray;
    use crate::bytes::testing::{Folder, SCHEMA_NAME, SchemaBytes, generic_tile};
    use gridfusion_core::ErrorKind;

    #[test]
    fn fragments_and_fields_that_are_not_there_are_mistakes() {
        let mut folder = Folder::default();
        let schema = generic_tile(&SchemaBytes::dense_2d().content());
        folder.put(&format!("__schema/{SCHEMA_NAME}"), &schema);
        folder.write(5, [(1, 4), (1, 7)], [0, 0], |_, _| 0);
        let array = Arc::new(folder.drive(OpenArray::new(OpenOptions::default())).unwrap());
        let tiles = folder.drive(array.read_tiles(0, 0).unwrap()).unwrap();
        assert_eq!(tiles.fragment().name, array.fragments()[0].name);
        for (fragment, field, what) in [(1, 0, "fragment number 1"), (0, 9, "field number 9")] {
            let error = array.read_tiles(fragment, field).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage);
            assert!(error.to_string().contains(what), "{error}");
        }
    }
}
