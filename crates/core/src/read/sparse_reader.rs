//! [`SparseReader`]: reads the visible cells of a sparse array as record batches.
//!
//! ```text
//!   with_between ─▶ fragments ─ rectangles ─▶ tiles ─ overlaps ─▶ groups: the newest cell of each key stays
//!                                                             └▶ other tiles, one by one
//! ```

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, Datum, RecordBatch, Scalar, make_array};
use arrow::buffer::BooleanBuffer;
use arrow::compute::kernels::cmp::{gt_eq, lt_eq};
use arrow::compute::{and, filter_record_batch};
use arrow::datatypes::SchemaRef;
use futures::stream::{self, Stream, TryStreamExt};

use super::array_reader::BATCH_ROWS;
use super::open_tile::{OpenTile, Tiles};
use crate::array::{SparseArray, TileBounds, TileNumber, failed_to, without_negative_zeros};
use crate::error::{Error, Result};
use crate::merge::{SortedRun, Window, overlapping_fragments, overlaps};

/// The most cells that are compared at once. Each takes about 100 bytes.
const MOST_COMPARED: usize = 1 << 24;

/// A reader of the visible cells of a sparse array: none that is deleted, and of several cells with the same coordinates the
/// newest, unless the array allows duplicates. Cheap to clone.
///
/// ```
/// use arrow::array::{Int32Array, RecordBatch};
/// use futures::TryStreamExt;
/// use gridfusion_core::read::SparseReader;
///
/// async fn read(ships: SparseReader) -> gridfusion_core::Result<()> {
///     let (low, high) = (Int32Array::new_scalar(10), Int32Array::new_scalar(20));
///     let some = ships.with_between("x", &low, &high)?.with_columns(&["x", "speed"])?;
///     let batches: Vec<RecordBatch> = some.batches().try_collect().await?;
///     println!("{} batches", batches.len());
///     Ok(())
/// }
/// ```
#[derive(Debug, Clone)]
pub struct SparseReader {
    array: Arc<SparseArray>,
    /// The positions of the columns in the array's schema.
    columns: Vec<usize>,
    between: Vec<Between>,
}

/// The selected coordinates of a dimension.
#[derive(Debug, Clone)]
struct Between {
    axis: usize,
    /// One coordinate each.
    low: Scalar<ArrayRef>,
    high: Scalar<ArrayRef>,
}

impl Between {
    /// Returns which of some cells are selected.
    fn cells(&self, coordinates: &ArrayRef) -> Result<BooleanBuffer> {
        let both = gt_eq(coordinates, &self.low)
            .and_then(|above| and(&above, &lt_eq(coordinates, &self.high)?));
        Ok(selected(&both.map_err(failed_to("compare coordinates"))?, false))
    }

    /// Returns in which of some rectangles a selected cell may lie. Unknown ends exclude nothing.
    fn rectangles(&self, bounds: &TileBounds) -> Result<BooleanBuffer> {
        let (least, greatest) = (&bounds.least[self.axis], &bounds.greatest[self.axis]);
        let ends =
            gt_eq(greatest, &self.low).and_then(|above| Ok((above, lt_eq(least, &self.high)?)));
        let (above, below) = ends.map_err(failed_to("compare rectangles"))?;
        Ok(&selected(&above, true) & &selected(&below, true))
    }
}

/// Returns the results of a comparison, with a value for NULL.
fn selected(results: &BooleanArray, null: bool) -> BooleanBuffer {
    results.iter().map(|result| result.unwrap_or(null)).collect()
}

impl SparseReader {
    /// Makes a reader of all cells and columns of `array`.
    #[must_use]
    pub fn new(array: SparseArray) -> Self {
        let columns = (0..array.schema().fields().len()).collect();
        Self { array: Arc::new(array), columns, between: vec![] }
    }

    /// The array, whatever is selected.
    #[must_use]
    pub fn array(&self) -> &SparseArray {
        &self.array
    }

    /// The schema of the record batches: a column per dimension, then one per variable.
    ///
    /// # Errors
    /// `Internal` if the reader has a column that the array lacks.
    pub fn schema(&self) -> Result<SchemaRef> {
        let projected = self.array.schema().project(&self.columns);
        projected.map(Arc::new).map_err(failed_to("choose columns"))
    }

    /// Keeps the cells whose coordinate of a dimension lies between two, both included. Only tiles whose rectangle may
    /// hold such a cell are read.
    ///
    /// # Errors
    /// `Usage` for a dimension that the array does not have, and for coordinates that are NULL, or have another type than the
    /// dimension's column.
    pub fn with_between(
        mut self,
        dimension: &str,
        low: &dyn Datum,
        high: &dyn Datum,
    ) -> Result<Self> {
        let axis = self.column(dimension)?;
        if axis >= self.array.rank() {
            return Err(self.error(format!("\"{dimension}\" is not a dimension")));
        }
        let (low, high) = (self.coordinate(axis, low)?, self.coordinate(axis, high)?);
        self.between.push(Between { axis, low, high });
        Ok(self)
    }

    /// Reads only these columns, in this order: dimensions and variables.
    ///
    /// # Errors
    /// `Usage` for a column that the array does not have.
    pub fn with_columns(self, names: &[&str]) -> Result<Self> {
        let columns = names.iter().map(|name| self.column(name)).collect::<Result<_>>()?;
        Ok(Self { columns, ..self })
    }

    /// Reads the selected cells, at most 8,192 in a batch, in no particular order. Tiles whose cells may replace others are
    /// in memory together.
    pub fn batches(&self) -> impl Stream<Item = Result<RecordBatch>> + Send + use<> {
        stream::once(Batches::open(self.clone())).map_ok(Batches::into_stream).try_flatten()
    }

    fn coordinate(&self, axis: usize, datum: &dyn Datum) -> Result<Scalar<ArrayRef>> {
        let (values, _) = datum.get();
        let field = self.array.schema().field(axis);
        if values.len() != 1 || values.is_null(0) || values.data_type() != field.data_type() {
            return Err(self.error(format!(
                "{} values of type {} are not a coordinate of \"{}\", which has the type {}",
                values.len() - values.null_count(),
                values.data_type(),
                field.name(),
                field.data_type()
            )));
        }
        Ok(Scalar::new(one_zero(make_array(values.to_data()))?))
    }

    fn column(&self, name: &str) -> Result<usize> {
        self.array.schema().index_of(name).map_err(|_| {
            let fields = self.array.schema().fields().iter();
            let names: Vec<&str> = fields.map(|field| field.name().as_str()).collect();
            self.error(format!("no column \"{name}\"; there are {}", names.join(", ")))
        })
    }

    fn error(&self, message: String) -> Error {
        self.array.objects().named(Error::usage(message))
    }
}

/// Returns coordinates as columns have them: -0.0 and 0.0 are the same.
fn one_zero(values: ArrayRef) -> Result<ArrayRef> {
    match values.data_type().is_floating() {
        true => without_negative_zeros(values),
        false => Ok(values),
    }
}

/// The rest of a stream of batches.
struct Batches {
    tiles: Tiles,
    schema: SchemaRef,
    columns: Vec<usize>,
    between: Vec<Between>,
    /// Tiles that may hold cells of the same coordinates.
    groups: VecDeque<Vec<TileNumber>>,
    /// Tiles that share no coordinates with others.
    alone: VecDeque<TileNumber>,
    /// Tiles of a group whose replaced cells are left out.
    merged: VecDeque<OpenTile>,
    ready: VecDeque<RecordBatch>,
}

impl Batches {
    /// Chooses the tiles that may hold selected cells.
    async fn open(reader: SparseReader) -> Result<Self> {
        let array = &reader.array;
        let source = array.source();
        let mut between = reader.between.clone();
        between.extend(limits(array)?);
        let facts = source.fragments();
        let mut fragments: Vec<usize> =
            (0..facts.len()).filter(|&at| facts[at].tiles > 0).collect();
        let kept = kept(&between, &source.fragment_bounds(&fragments)?, fragments.len())?;
        fragments =
            fragments.into_iter().zip(&kept).filter(|(_, kept)| *kept).map(|it| it.0).collect();
        let needed = match between.is_empty() {
            true => overlapping_fragments(array, &fragments)?,
            false => fragments.clone(),
        };
        let mut rectangles = vec![None; facts.len()];
        for (&fragment, bounds) in needed.iter().zip(source.tile_bounds(&needed).await?) {
            rectangles[fragment] = Some(bounds);
        }
        let mut tiles = vec![];
        for &fragment in &fragments {
            let all = (0..facts[fragment].tiles).map(|tile| TileNumber { fragment, tile });
            match &rectangles[fragment] {
                Some(bounds) => {
                    let kept = self::kept(&between, bounds, facts[fragment].tiles as usize)?;
                    tiles.extend(all.zip(&kept).filter(|(_, kept)| *kept).map(|it| it.0));
                }
                None => tiles.extend(all),
            }
        }
        let overlaps = overlaps(array, &rectangles, &tiles)?;
        let groups =
            overlaps.groups.iter().map(|group| group.iter().map(|&at| tiles[at]).collect());
        let alone = tiles.iter().zip(&overlaps.merged).filter(|(_, merged)| !**merged);
        let mut columns: Vec<usize> = (0..array.rank()).chain(reader.columns.clone()).collect();
        columns.sort_unstable();
        columns.dedup();
        source.prepare(&fragments, &columns).await?;
        Ok(Self {
            groups: groups.collect(),
            alone: alone.map(|(tile, _)| *tile).collect(),
            tiles: Tiles::new(array),
            schema: reader.schema()?,
            columns: reader.columns,
            between,
            merged: VecDeque::new(),
            ready: VecDeque::new(),
        })
    }

    fn into_stream(self) -> impl Stream<Item = Result<RecordBatch>> + Send {
        stream::try_unfold(self, |mut this| async move {
            let next = this.next().await?;
            Ok(next.map(|batch| (batch, this)))
        })
    }

    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Some(batch));
            }
            if let Some(tile) = self.merged.pop_front() {
                self.finish(tile).await?;
            } else if let Some(group) = self.groups.pop_front() {
                self.merge(group).await?;
            } else if let Some(tile) = self.alone.pop_front() {
                let mut open = self.tiles.open(tile);
                self.restrict(&mut open).await?;
                self.tiles.select_times(&mut open, false).await?;
                self.finish(open).await?;
            } else {
                return Ok(None);
            }
        }
    }

    /// Leaves only selected coordinates.
    async fn restrict(&mut self, open: &mut OpenTile) -> Result<()> {
        for between in &self.between {
            self.tiles.read(open, &[between.axis]).await?;
            open.restrict(&between.cells(open.column(between.axis)?)?);
        }
        Ok(())
    }

    /// Opens the tiles of a group, and leaves only the newest cell of each key.
    async fn merge(&mut self, group: Vec<TileNumber>) -> Result<()> {
        let array = Arc::clone(self.tiles.array());
        let axes: Vec<usize> = (0..array.rank()).collect();
        let (mut members, mut cells) = (vec![], 0_usize);
        for tile in group {
            let mut open = self.tiles.open(tile);
            cells = cells.saturating_add(open.rows());
            if cells > MOST_COMPARED {
                let message = format!(
                    "cells of {} fragments overlap, and at most {MOST_COMPARED} are compared at once; select less, or consolidate the array",
                    array.source().fragments().len()
                );
                return Err(array.objects().named(Error::unsupported(message)));
            }
            let tiles = self.tiles.read(&mut open, &axes).await?;
            self.restrict(&mut open).await?;
            self.tiles.select_times(&mut open, true).await?;
            if open.count() > 0 {
                let keys = array.source().keys(&tiles)?;
                members.push(open.in_order(&array, &keys)?);
            }
        }
        let fragments = array.source().fragments();
        let runs = members.iter().map(|(open, keys, cells)| SortedRun {
            keys,
            start: 0,
            end: keys.len(),
            tile: open.tile(),
            distinct_part: keys.distinct_part(),
            time: fragments[open.tile().fragment].time,
            times: open.times().map(|times| times.times.as_slice()),
            cells: Some(cells),
        });
        let mut replaced: Vec<Vec<usize>> = vec![vec![]; members.len()];
        for cell in Window::new(runs.collect()).decide().replaced {
            let (run, position) = (cell.run as usize, cell.position as usize);
            replaced[run].push(members[run].2[position] as usize);
        }
        for ((mut open, ..), replaced) in members.into_iter().zip(replaced) {
            open.leave_out(&replaced);
            self.merged.push_back(open);
        }
        Ok(())
    }

    /// Leaves out deleted cells, and makes batches of the others.
    async fn finish(&mut self, mut open: OpenTile) -> Result<()> {
        self.tiles.leave_out_deleted(&mut open).await?;
        if open.count() == 0 {
            return Ok(());
        }
        self.tiles.read(&mut open, &self.columns).await?;
        let batch = open.batch(&self.schema, &self.columns)?;
        let batch = match open.selected() {
            Some(selected) => {
                filter_record_batch(&batch, &BooleanArray::new(selected.clone(), None))
                    .map_err(failed_to("select cells"))?
            }
            None => batch,
        };
        let rows = batch.num_rows();
        let parts = (0..rows).step_by(BATCH_ROWS as usize);
        self.ready.extend(parts.map(|at| batch.slice(at, (rows - at).min(BATCH_ROWS as usize))));
        Ok(())
    }
}

/// Returns which rectangles may hold selected cells.
fn kept(between: &[Between], bounds: &TileBounds, count: usize) -> Result<BooleanBuffer> {
    between.iter().try_fold(BooleanBuffer::new_set(count), |kept, between| {
        Ok(&kept & &between.rectangles(bounds)?)
    })
}

/// Returns the only coordinates that the array shows; none if it shows all.
fn limits(array: &SparseArray) -> Result<Vec<Between>> {
    let Some(limits) = array.source().limits()? else { return Ok(vec![]) };
    let ends = limits.least.iter().zip(&limits.greatest).enumerate();
    let limit = |(axis, (least, greatest)): (usize, (&ArrayRef, &ArrayRef))| {
        if least.is_null(0) || greatest.is_null(0) {
            let name = array.schema().field(axis).name();
            let message = format!("a current domain of \"{name}\" that its column cannot show");
            return Err(array.objects().named(Error::unsupported(message)));
        }
        let end = |end: &ArrayRef| one_zero(end.slice(0, 1)).map(Scalar::new);
        Ok(Between { axis, low: end(least)?, high: end(greatest)? })
    };
    ends.map(limit).collect()
}
