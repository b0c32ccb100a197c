//! The [`SparseSource`] of a TileDB array.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryViewArray, StringViewArray, new_null_array};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::DataType;
use async_trait::async_trait;
use tokio::sync::Mutex;

use super::order::GlobalOrder;
use crate::bytes::{Block, CoordinateRange, Coordinates, Fragment, RTree, TileDbArray};
use crate::chunks::{is_worthwhile, versions, without_possible_nulls};
use crate::columns::{coordinate_value, table_values};
use crate::view::TileDbView;
use gridfusion_core::Result;
use gridfusion_core::array::{
    CellKeys, CellTimes, SparseArray, SparseFragment, SparseSource, TileBounds, TileNumber, Value,
    ValueColumn, without_negative_zeros,
};
use gridfusion_core::format::{StoredChunk, Zones};
use gridfusion_core::tile::{ObjectVersion, Objects, Tile, drive};

/// The tiles of one sparse TileDB array. Columns are numbered like those of the table.
#[derive(Debug)]
pub(super) struct TileDbTiles {
    pub(super) array: Arc<TileDbArray>,
    pub(super) objects: Arc<Objects>,
    /// The facts about each fragment of the array.
    fragments: Vec<SparseFragment>,
    order: GlobalOrder,
    /// The columns of the dimensions.
    dimensions: Vec<ValueColumn>,
    view: TileDbView,
    /// Held while blocks are read, so that concurrent partitions read them only once.
    reading: Mutex<()>,
}

/// Returns the table of a sparse array: a column per dimension, then a column per attribute.
///
/// # Errors
/// `Unsupported` for a type that columns cannot have.
pub(crate) fn sparse_array(
    name: &str,
    array: &Arc<TileDbArray>,
    objects: &Arc<Objects>,
    view: &TileDbView,
) -> Result<SparseArray> {
    let schema = array.schema();
    let dimensions = schema.dimensions.iter().map(|dimension| {
        let value = coordinate_value(dimension, view);
        value.map_err(|error| error.about(&format!("dimension \"{}\"", dimension.name)))
    });
    let dimensions: Vec<Value> = dimensions.collect::<Result<_>>()?;
    let values = table_values(array, view)?;
    let source = TileDbTiles {
        array: Arc::clone(array),
        objects: Arc::clone(objects),
        fragments: array.fragments().iter().map(|it| facts(array, it)).collect::<Result<_>>()?,
        order: GlobalOrder::new(schema),
        dimensions: dimensions.iter().map(|value| value.column.clone()).collect(),
        view: view.clone(),
        reading: Mutex::new(()),
    };
    Ok(SparseArray::new(name, Arc::new(source), dimensions, values))
}

/// Returns what a scan must know of a fragment.
fn facts(array: &TileDbArray, fragment: &Fragment) -> Result<SparseFragment> {
    let options = array.options();
    let has_times = fragment.time_field().is_some();
    let ends_outside = options.end.is_some_and(|end| fragment.t2 > end);
    let deleted_later = array.deletions().iter().any(|deletion| deletion.time >= fragment.t1);
    let last_tile_cells = fragment.tile_cells(fragment.tiles.saturating_sub(1))?;
    let tile_cells = fragment.tile_cells(0)?;
    let mut facts = SparseFragment::new(fragment.tiles, tile_cells, last_tile_cells, fragment.t1);
    facts.has_times = has_times;
    facts.may_be_outside = has_times && (fragment.t1 < options.start || ends_outside);
    facts.may_be_deleted = fragment.delete_time_field().is_some() || deleted_later;
    Ok(facts)
}

impl TileDbTiles {
    /// Reads those of `blocks` that were not read yet.
    pub(super) async fn read(&self, blocks: Vec<Block>) -> Result<()> {
        let machine = || {
            let machine = self.array.read_blocks(blocks.iter().copied());
            machine.map_err(|error| self.objects.named(error))
        };
        if machine()?.is_done() {
            return Ok(());
        }
        let _alone = self.reading.lock().await;
        drive(machine()?, &self.objects).await
    }

    /// Returns the field of a fragment with the cells of a column; `None` if the fragment does not have it.
    fn field(&self, fragment: usize, column: usize) -> Result<Option<usize>> {
        match column.checked_sub(self.dimensions.len()) {
            Some(attribute) => self.array.field_of(attribute, fragment),
            None => Ok(Some(self.array.fragments()[fragment].dimension_field(column))),
        }
    }

    /// Returns rectangles in the types of the table's columns.
    fn bounds(&self, rtree: &RTree) -> Result<TileBounds> {
        let column = |(column, all): (&ValueColumn, &Coordinates)| coordinates(column, all);
        let least = self.dimensions.iter().zip(&rtree.least).map(column);
        let greatest = self.dimensions.iter().zip(&rtree.greatest).map(column);
        Ok(TileBounds::new(least.collect::<Result<_>>()?, greatest.collect::<Result<_>>()?))
    }
}

/// Returns coordinates in the type of their column; NULL where the column cannot show them.
fn coordinates(column: &ValueColumn, all: &Coordinates) -> Result<ArrayRef> {
    let data_type = column.data_type();
    match (all, &data_type) {
        (Coordinates::Fixed(all), _) => {
            match column.bounds(all.iter().map(|bound| Some(*bound))) {
                Ok(values) => without_negative_zeros(values),
                // A single date beyond Arrow's types: nothing is known of any tile.
                Err(_) => Ok(new_null_array(&data_type, all.len())),
            }
        }
        (Coordinates::Text(all), DataType::BinaryView) => {
            Ok(Arc::new(BinaryViewArray::from_iter_values(all)))
        }
        (Coordinates::Text(all), _) => {
            let texts = all.iter().map(|text| std::str::from_utf8(text).ok());
            Ok(Arc::new(texts.collect::<StringViewArray>()))
        }
    }
}

#[async_trait]
impl SparseSource for TileDbTiles {
    fn objects(&self) -> &Arc<Objects> {
        &self.objects
    }

    fn versions(&self) -> Vec<ObjectVersion> {
        versions(&self.array, &self.objects)
    }

    fn fragments(&self) -> &[SparseFragment] {
        &self.fragments
    }

    fn allows_duplicates(&self) -> bool {
        self.array.schema().allows_duplicates
    }

    /// The current domain hides cells that lie outside it: those of an open at a time before it grew.
    fn limits(&self) -> Result<Option<TileBounds>> {
        let schema = self.array.schema();
        let Some(limits) = &schema.current_domain else { return Ok(None) };
        let reaches_out = |fragment: &Fragment| {
            let around = |(range, limit): (&CoordinateRange, &CoordinateRange)| {
                limit.clone().around(range.clone()) == *limit
            };
            !fragment.domain.iter().zip(limits).all(around)
        };
        if !self.array.fragments().iter().any(reaches_out) {
            return Ok(None);
        }
        self.bounds(&RTree::from_ranges(schema, limits)).map(Some)
    }

    fn sorted_by(&self, fragment: usize) -> Option<Vec<usize>> {
        let fragment = self.array.fragments().get(fragment)?;
        self.order.sorted_by(&RTree::from_domains(self.array.schema(), [fragment]))
    }

    fn fragment_bounds(&self, fragments: &[usize]) -> Result<TileBounds> {
        let all = self.array.fragments();
        let domains = fragments.iter().filter_map(|&number| all.get(number));
        self.bounds(&RTree::from_domains(self.array.schema(), domains))
    }

    async fn tile_bounds(&self, fragments: &[usize]) -> Result<Vec<Arc<TileBounds>>> {
        self.read(fragments.iter().map(|&number| Block::RTree(number)).collect()).await?;
        let bounds = |&number: &usize| {
            let rectangles = self.array.tile_rectangles(number)?;
            self.bounds(&rectangles).map(Arc::new)
        };
        fragments.iter().map(bounds).collect()
    }

    async fn prepare(&self, fragments: &[usize], columns: &[usize]) -> Result<()> {
        let mut blocks = vec![];
        for &fragment in fragments {
            for &column in columns {
                // A type that cannot be read is an error only if a cell of it is needed.
                let field = self.field(fragment, column).ok().flatten();
                blocks.extend(field.map(|field| Block::Tiles(fragment, field)));
            }
            blocks.extend(self.blocks_of_visibility(fragment));
        }
        self.read(blocks).await
    }

    async fn locate(&self, tile: TileNumber, columns: &[usize]) -> Result<Vec<StoredChunk>> {
        let named = |error| self.objects.named(error);
        let fields = columns.iter().map(|&column| self.field(tile.fragment, column));
        let fields: Vec<Option<usize>> = fields.collect::<Result<_>>().map_err(named)?;
        let blocks = fields.iter().flatten().map(|&field| Block::Tiles(tile.fragment, field));
        self.read(blocks.collect()).await?;
        let stored = |field: Option<usize>| {
            let layer = field.map(|field| self.array.sparse_tile(tile.fragment, field, tile.tile));
            Ok(StoredChunk::new(layer.transpose()?.into_iter().collect()))
        };
        fields.into_iter().map(stored).collect::<Result<_>>().map_err(named)
    }

    async fn times(&self, tile: TileNumber) -> Result<Option<CellTimes>> {
        self.cell_times(tile).await
    }

    async fn kept(
        &self,
        tile: TileNumber,
        times: Option<&CellTimes>,
    ) -> Result<Option<BooleanBuffer>> {
        self.cells_kept(tile, times).await
    }

    fn keys(&self, dimensions: &[Tile]) -> Result<CellKeys> {
        self.order.keys(dimensions)
    }

    fn least_keys(&self, fragment: usize) -> Result<Option<CellKeys>> {
        self.order.least_keys(&*self.array.tile_rectangles(fragment)?)
    }

    async fn zones(
        &self,
        value: usize,
        fragments: &[usize],
        bytes_to_read: u64,
    ) -> Option<Vec<Option<Arc<dyn Zones>>>> {
        let tiles = fragments.iter().map(|&number| self.fragments[number].tiles).sum();
        if !self.view.read.trust_zone_maps || !is_worthwhile(tiles, bytes_to_read) {
            return None;
        }
        let attribute = &self.array.schema().attributes[value];
        let machine = self.array.read_sparse_zones(value, fragments)?;
        let zones = match drive(machine, &self.objects).await {
            Ok(zones) => zones,
            Err(error) => {
                log::warn!("statistics of attribute \"{}\" are ignored: {error}", attribute.name);
                return None;
            }
        };
        let usable =
            |zones: Option<Arc<dyn Zones>>| without_possible_nulls(zones?, attribute, &self.view);
        Some(zones.into_iter().map(usable).collect())
    }
}
