//! [`ArrayReader`]: selects cells of an array, and reads them as record batches or as an N-dimensional array.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{ArrowPrimitiveType, SchemaRef};
use arrow::error::ArrowError;
use futures::future::ready;
use futures::stream::{self, Stream, TryStreamExt};

use super::cells::{Cells, Target};
use super::chunks::{Chunks, DecodedChunk};
use crate::array::{ColumnSource, Dimension, GridArray, failed_to};
use crate::error::{Error, Result};
use crate::grid::{AxisSelection, Selection};
use crate::plan::{Assembler, RowBlocks};

/// The most rows of a record batch.
pub(super) const BATCH_ROWS: u64 = 8192;
/// The labels that are compared at once, and of one selection.
const LABELS_AT_ONCE: u64 = 1 << 20;
const MOST_LABELS: u64 = 1 << 32;

/// A reader of the selected cells of an array. Cheap to clone.
///
/// ```
/// use arrow::array::{RecordBatch, StringArray};
/// use arrow::compute::kernels::cmp::eq;
/// use arrow::datatypes::Float32Type;
/// use futures::TryStreamExt;
/// use gridfusion_core::read::ArrayReader;
///
/// async fn read(temperature: ArrayReader) -> gridfusion_core::Result<()> {
///     let oslo = StringArray::new_scalar("Oslo");
///     let day = temperature.with_range("time", 0..24)?.with_labels("station", |it| eq(it, &oslo))?;
///     let cells = day.cells::<Float32Type>("temperature").await?;
///     println!("{:?}: {:?}", cells.shape(), cells.values());
///     let batches: Vec<RecordBatch> = day.batches().try_collect().await?;
///     println!("{} batches", batches.len());
///     Ok(())
/// }
/// ```
#[derive(Debug, Clone)]
pub struct ArrayReader {
    array: Arc<GridArray>,
    selection: Selection,
    /// The positions of the columns in the array's schema.
    columns: Vec<usize>,
}

impl ArrayReader {
    /// Makes a reader of all cells and columns of `array`.
    #[must_use]
    pub fn new(array: GridArray) -> Self {
        let selection = Selection::all(array.grid().shape());
        let columns = (0..array.schema().fields().len()).collect();
        Self { array: Arc::new(array), selection, columns }
    }

    /// Makes a reader of the cells of `selection`, which has the axes of the array.
    #[must_use]
    pub fn of_selection(array: Arc<GridArray>, selection: Selection) -> Self {
        let columns = (0..array.schema().fields().len()).collect();
        Self { array, selection, columns }
    }

    /// The array, whatever is selected.
    #[must_use]
    pub fn array(&self) -> &GridArray {
        &self.array
    }

    /// The dimensions of the whole array, in the order of its axes.
    #[must_use]
    pub fn dims(&self) -> &[Dimension] {
        self.array.dims()
    }

    /// The number of selected indices of each dimension.
    #[must_use]
    pub fn shape(&self) -> Vec<u64> {
        self.selection.axes().iter().map(AxisSelection::count).collect()
    }

    /// The schema of the record batches: a column per dimension, then one per variable.
    ///
    /// # Errors
    /// `Internal` if the reader has a column that the array lacks.
    pub fn schema(&self) -> Result<SchemaRef> {
        let projected = self.array.schema().project(&self.columns);
        projected.map(Arc::new).map_err(failed_to("choose columns"))
    }

    /// Keeps the indices of a dimension that are in `range`, counted from 0.
    ///
    /// # Errors
    /// `Usage` for a dimension that the array does not have, or a range beyond its length.
    pub fn with_range(mut self, dimension: &str, range: Range<u64>) -> Result<Self> {
        let axis = self.axis(dimension)?;
        let len = self.dims()[axis].len();
        if range.start > range.end || range.end > len {
            return Err(self.error(format!(
                "the indices {range:?} of dimension \"{dimension}\", which has {len}"
            )));
        }
        self.selection.restrict(axis, &AxisSelection::from_range(len, range));
        Ok(self)
    }

    /// Keeps the indices of a dimension for whose labels `keep` is true, among those that are selected. `keep` compares
    /// many labels at once, such as with a kernel of Arrow; NULL leaves a label out.
    ///
    /// # Errors
    /// `Usage` for a dimension that the array does not have, for more than 2³² labels, and if `keep` fails or returns
    /// another number of results.
    pub fn with_labels(
        mut self,
        dimension: &str,
        mut keep: impl FnMut(&ArrayRef) -> std::result::Result<BooleanArray, ArrowError>,
    ) -> Result<Self> {
        let axis = self.axis(dimension)?;
        let (dim, selected) = (&self.dims()[axis], &self.selection.axes()[axis]);
        if selected.count() > MOST_LABELS {
            let count = selected.count();
            return Err(self.error(format!(
                "{count} labels of dimension \"{dimension}\" are too many to compare; choose a range first"
            )));
        }
        let mut kept: Vec<Range<u64>> = vec![];
        for range in selected.ranges() {
            let mut start = range.start;
            while start < range.end {
                let end = range.end.min(start + LABELS_AT_ONCE);
                let labels = dim.labels().slice(start..end)?;
                let results = keep(&labels).map_err(|error| {
                    self.error(format!("cannot compare labels of \"{dimension}\"")).caused_by(error)
                })?;
                if results.len() != labels.len() {
                    let (found, wanted) = (results.len(), labels.len());
                    let message = format!("{found} results for {wanted} labels of \"{dimension}\"");
                    return Err(self.error(message));
                }
                let is_kept = |at: &usize| results.is_valid(*at) && results.value(*at);
                let indices = (0..results.len()).filter(is_kept).map(|at| start + at as u64);
                kept.extend(indices.map(|index| index..index + 1));
                start = end;
            }
        }
        let kept = AxisSelection::from_ranges(dim.len(), kept);
        self.selection.restrict(axis, &kept);
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

    /// Returns the labels of the selected indices of a dimension.
    ///
    /// # Errors
    /// `Usage` for a dimension that the array does not have; `Unsupported` for more labels than Arrow can hold.
    pub fn labels(&self, dimension: &str) -> Result<ArrayRef> {
        let axis = self.axis(dimension)?;
        self.dims()[axis].labels().select(&self.selection.axes()[axis], 0)
    }

    /// Reads the selected cells: a row per cell, at most 8,192 in a batch. Chunks follow one another in row-major order of the
    /// grid, and so do the rows within a chunk. A stream that ends early leaves out the check whether objects were
    /// written meanwhile.
    pub fn batches(&self) -> impl Stream<Item = Result<RecordBatch>> + Send + use<> {
        stream::once(ready(Batches::new(self))).map_ok(Batches::into_stream).try_flatten()
    }

    /// Reads the selected cells of a variable into memory, as an array of the shape [`shape`](Self::shape).
    ///
    /// # Errors
    /// `Usage` for a variable that the array does not have, for another type than its column's, and for more cells than
    /// fit into memory. Otherwise if chunks cannot be read.
    pub async fn cells<T: ArrowPrimitiveType>(&self, variable: &str) -> Result<Cells<T>> {
        let value = self.value_of::<T>(variable)?;
        let mut cells =
            Cells::new(&self.selection).map_err(|error| self.about(&error, variable))?;
        self.place(value, &mut cells.target()).await?;
        Ok(cells)
    }

    /// Reads the selected cells of a variable into `values`, in row-major order. If cells are NULL, `valid` has a mark per cell
    /// then, and is false for these; otherwise it stays empty. Returns the chunks and the stored bytes that were read.
    ///
    /// # Errors
    /// As [`cells`](Self::cells), and `Usage` if `values` has not as many elements as cells are selected.
    pub async fn cells_into<T: ArrowPrimitiveType>(
        &self,
        variable: &str,
        values: &mut [T::Native],
        valid: &mut Vec<bool>,
    ) -> Result<(u64, u64)> {
        let value = self.value_of::<T>(variable)?;
        let shape: Vec<usize> = self.shape().iter().map(|len| *len as usize).collect();
        if self.selection.cells() != values.len() as u64 {
            return Err(self.error(format!("{} places for cells of {shape:?}", values.len())));
        }
        self.place(value, &mut Target::<T> { shape: &shape, values, valid }).await
    }

    /// Reads the selected cells of a variable to their places.
    async fn place<T: ArrowPrimitiveType>(
        &self,
        value: usize,
        target: &mut Target<'_, T>,
    ) -> Result<(u64, u64)> {
        let mut chunks = Chunks::new(&self.array, &self.selection, vec![value])?;
        let mut count = 0;
        while let Some(chunk) = chunks.next().await? {
            let tile = chunk.tile(value)?;
            let column = self.array.column_of(value, tile, &chunk.task.selection, true)?;
            target.place(self.array.grid(), &self.selection, &chunk.task, &column)?;
            drop(column);
            chunks.release(chunk)?;
            count += 1;
        }
        Ok((count, chunks.bytes()))
    }

    /// Returns the number of a variable whose column has this type.
    fn value_of<T: ArrowPrimitiveType>(&self, variable: &str) -> Result<usize> {
        let column = self.column(variable)?;
        let field = self.array.schema().field(column);
        let Some(value) = self.array.columns()[column].value() else {
            return Err(
                self.error(format!("\"{variable}\" is a dimension; `labels` returns its labels"))
            );
        };
        match field.data_type() == &T::DATA_TYPE {
            true => Ok(value),
            false => Err(self.error(format!(
                "\"{variable}\" has the type {}, not {}",
                field.data_type(),
                T::DATA_TYPE
            ))),
        }
    }

    fn about(&self, error: &Error, variable: &str) -> Error {
        self.error(format!("cannot hold the cells of \"{variable}\": {error}"))
    }

    fn axis(&self, dimension: &str) -> Result<usize> {
        let found = self.dims().iter().position(|dim| dim.name() == dimension);
        found.ok_or_else(|| {
            let names: Vec<&str> = self.dims().iter().map(Dimension::name).collect();
            self.error(format!("no dimension \"{dimension}\"; there are {}", names.join(", ")))
        })
    }

    fn column(&self, name: &str) -> Result<usize> {
        self.array.schema().index_of(name).map_err(|_| {
            let names: Vec<&str> =
                self.array.schema().fields().iter().map(|field| field.name().as_str()).collect();
            self.error(format!("no column \"{name}\"; there are {}", names.join(", ")))
        })
    }

    fn error(&self, message: String) -> Error {
        self.array.objects().named(Error::usage(message))
    }
}

/// The rest of a stream of batches.
struct Batches {
    array: Arc<GridArray>,
    schema: SchemaRef,
    columns: Vec<ColumnSource>,
    chunks: Chunks,
    assembler: Assembler,
    /// The chunk whose rows come next, and its blocks that are left.
    open: Option<(DecodedChunk, RowBlocks)>,
}

impl Batches {
    fn new(reader: &ArrayReader) -> Result<Self> {
        let array = Arc::clone(&reader.array);
        let columns: Vec<_> = reader.columns.iter().map(|at| array.columns()[*at]).collect();
        let mut values: Vec<usize> = columns.iter().filter_map(|column| column.value()).collect();
        values.sort_unstable();
        values.dedup();
        Ok(Self {
            schema: reader.schema()?,
            chunks: Chunks::new(&array, &reader.selection, values)?,
            assembler: Assembler::new(&array),
            open: None,
            columns,
            array,
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
            let Some((chunk, blocks)) = &mut self.open else {
                let Some(chunk) = self.chunks.next().await? else { return Ok(None) };
                let blocks = RowBlocks::new(&chunk.task, BATCH_ROWS);
                self.open = Some((chunk, blocks));
                continue;
            };
            let Some(block) = blocks.next() else {
                if let Some((chunk, _)) = self.open.take() {
                    self.chunks.release(chunk)?;
                }
                continue;
            };
            let mut columns = Vec::with_capacity(self.columns.len());
            for column in &self.columns {
                columns.push(match column.value() {
                    Some(value) => {
                        let (tile, cells) = (chunk.tile(value)?, block.cells(&chunk.task));
                        self.array.column_of(value, tile, &cells, true)?
                    }
                    None => self.assembler.dimension(*column, &chunk.task, &block)?,
                });
            }
            let rows = RecordBatchOptions::new().with_row_count(Some(block.rows() as usize));
            let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &rows);
            return batch.map(Some).map_err(failed_to("make a record batch"));
        }
    }
}
