//! [`ArraySink`]: writes the rows of a query as an array.

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, new_empty_array};
use arrow::datatypes::{FieldRef, SchemaRef};
use async_trait::async_trait;
use datafusion::common::{ScalarValue, exec_err, plan_err};
use datafusion::datasource::physical_plan::FileSinkConfig;
use datafusion::datasource::sink::{DataSink, DataSinkExec};
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use futures::TryStreamExt;
use gridfusion_core::write::{ExistingCells, NewArray, NewDimension, NewVariable};

use super::append::AfterWrite;
use super::copy::{CopiedArray, GridCellsExec, Sections};
use super::dimensions::DimensionColumn;
use super::labels::Labels;
use super::new_store::ChunkRows;
use super::options::{WriteMode, WriteOptions, word_for};
use super::row_runs::{runs_of_rows, runs_schema};
use super::row_slabs::RowSlabs;
use super::stored_rows::StoredRows;
use super::targets::TargetFormat;

/// The bytes of a chunk, unless options choose its shape.
const CHUNK_BYTES: u64 = 4 << 20;
/// The cells per row above which an array is taken for a mistake, such as a point cloud.
const SPARSE: u64 = 100;
/// The cells that an array may have with any number of rows.
const SMALL: u64 = 1 << 20;

/// All rows of a query, and the labels of each dimension, in order.
pub(super) struct RowsAndLabels {
    pub(super) labels: Vec<ArrayRef>,
    /// Per dimension, the place of each number of a label.
    pub(super) places: Vec<Vec<u64>>,
    pub(super) cells: Cells,
    pub(super) rows: u64,
    /// The memory of labels.
    pub(super) _reservation: MemoryReservation,
}

/// The cells that are written.
pub(super) enum Cells {
    /// Cells of rows: their values, and the runs of their cells.
    Rows(Box<(StoredRows, StoredRows)>),
    /// Cells of an array.
    Copied(GridCellsExec),
}

impl Cells {
    /// Returns the cells in the order of an array in which `places` are the indices of the labels of each dimension.
    pub(super) fn in_order(
        self,
        places: Vec<Vec<u64>>,
        context: &Arc<TaskContext>,
    ) -> Result<Box<dyn ChunkRows>> {
        Ok(match self {
            Self::Rows(rows) => {
                let (values, runs) = *rows;
                Box::new(RowSlabs::try_new(values, runs, places)?)
            }
            Self::Copied(cells) => Box::new(Sections::new(&cells, places, context)),
        })
    }
}

/// Writes rows, sorted by the dimensions, as a new array.
#[derive(Clone)]
pub(super) struct ArraySink {
    pub(super) config: FileSinkConfig,
    pub(super) dimensions: Vec<DimensionColumn>,
    /// The columns that are variables.
    variables: Vec<usize>,
    pub(super) options: WriteOptions,
    pub(super) target: &'static dyn TargetFormat,
    /// The cells to write instead of those of rows.
    copied: Option<GridCellsExec>,
    /// Work that follows when rows have been written.
    pub(super) after: Option<Arc<dyn AfterWrite>>,
    /// The versions of the array from which rows may be computed; none if that does not matter.
    snapshot: Vec<String>,
    pub(super) metrics: ExecutionPlanMetricsSet,
}

impl ArraySink {
    /// Makes a sink.
    ///
    /// # Errors
    /// If a dimension comes twice, there is no variable, or options name other columns.
    pub(super) fn try_new(
        config: FileSinkConfig,
        dimensions: Vec<DimensionColumn>,
        options: WriteOptions,
        target: &'static dyn TargetFormat,
    ) -> Result<Self> {
        let schema = config.output_schema();
        let is_dimension = |column: &usize| dimensions.iter().any(|it| it.column == *column);
        let variables: Vec<usize> =
            (0..schema.fields().len()).filter(|column| !is_dimension(column)).collect();
        let name = |column: usize| schema.field(column).name().as_str();
        let of_dimensions: Vec<&str> = dimensions.iter().map(|it| name(it.column)).collect();
        let of_variables: Vec<&str> = variables.iter().map(|column| name(*column)).collect();
        if variables.is_empty() {
            return plan_err!("all columns are dimensions; an array needs a variable");
        }
        if dimensions.len() + variables.len() != schema.fields().len() {
            return plan_err!("a dimension is named twice: {}", of_dimensions.join(", "));
        }
        options.check_names(&of_dimensions, &of_variables)?;
        let (copied, after, snapshot, metrics) = (None, None, vec![], Default::default());
        let sink = Self {
            config,
            dimensions,
            variables,
            options,
            target,
            copied,
            after,
            snapshot,
            metrics,
        };
        if sink.options.mode == WriteMode::Append {
            return Ok(sink);
        }
        // Types and encodings that cannot be written fail before the query runs. A label stands for those to come.
        let any = sink.dimensions.iter().map(|it| {
            let data_type = sink.config.output_schema().field(it.column).data_type();
            ScalarValue::new_default(data_type)
                .and_then(|label| label.to_array())
                .unwrap_or_else(|_| new_empty_array(data_type))
        });
        sink.target.writer(sink.new_array(any.collect())?, "", &sink.options)?;
        Ok(sink)
    }

    /// Sets the work that follows when rows have been written.
    pub(super) fn with_work_after(self, after: Option<Arc<dyn AfterWrite>>) -> Self {
        Self { after, ..self }
    }

    /// Sets the versions of the array that its table has read.
    pub(super) fn with_snapshot(self, snapshot: Vec<String>) -> Self {
        Self { snapshot, ..self }
    }

    /// Whether an array of these versions is the one that its table has read.
    pub(super) fn is_snapshot(&self, versions: &[String]) -> bool {
        versions.is_empty() || self.snapshot.is_empty() || self.snapshot == versions
    }

    /// Finds the array whose cells are all that the sink writes; `None` if there is none.
    pub(super) fn copied_from(
        &self,
        input: &Arc<dyn ExecutionPlan>,
    ) -> Result<Option<CopiedArray>> {
        CopiedArray::find(input, &self.dimensions, &self.variables)
    }

    /// Returns the sink that writes these cells instead of those of rows.
    pub(super) fn copying(&self, cells: GridCellsExec) -> Self {
        Self { copied: Some(cells), metrics: Default::default(), ..self.clone() }
    }

    pub(super) fn field(&self, column: usize) -> &FieldRef {
        &self.config.output_schema().fields()[column]
    }

    /// Returns the dimensions with these labels.
    pub(super) fn new_dimensions(&self, labels: Vec<ArrayRef>) -> Result<Vec<NewDimension>> {
        let dimension = |(dimension, labels): (&DimensionColumn, ArrayRef)| {
            let field = self.field(dimension.column);
            let attributes = self.options.attributes.of(field)?;
            Ok(NewDimension { name: field.name().clone(), labels, attributes })
        };
        self.dimensions.iter().zip(labels).map(dimension).collect()
    }

    pub(super) fn new_variables(&self) -> Result<Vec<NewVariable>> {
        let variable = |column: &usize| {
            let field = self.field(*column);
            Ok(NewVariable {
                name: field.name().clone(),
                data_type: field.data_type().clone(),
                fill: self.options.fill(field.name(), field.data_type())?,
                attributes: self.options.attributes.of(field)?,
            })
        };
        self.variables.iter().map(variable).collect()
    }

    /// Returns the array with these labels.
    pub(super) fn new_array(&self, labels: Vec<ArrayRef>) -> Result<NewArray> {
        let (dimensions, variables) = (self.new_dimensions(labels)?, self.new_variables()?);
        let shape: Vec<u64> = dimensions.iter().map(|it| it.labels.len() as u64).collect();
        let chunk_shape = self.chunk_shape(&shape);
        Ok(NewArray::try_new(dimensions, variables, &chunk_shape)?
            .with_attributes(self.options.attributes.of_array.clone()))
    }

    /// Returns the shape of chunks: the lengths of the options, and otherwise whole inner dimensions up to some megabytes.
    fn chunk_shape(&self, shape: &[u64]) -> Vec<u64> {
        let width =
            |column: &usize| self.field(*column).data_type().primitive_width().unwrap_or(16);
        let mut cells = CHUNK_BYTES / self.variables.iter().map(width).max().unwrap_or(8) as u64;
        let mut chunk = vec![1; shape.len()];
        for (axis, len) in shape.iter().enumerate().rev() {
            let name = self.field(self.dimensions[axis].column).name();
            let most = cells.min(*len).max(1);
            chunk[axis] = match (self.options.chunks.get(name), self.options.shards.get(name)) {
                (Some(chosen), _) => (*chosen).min(*len).max(1),
                // The chunks of a shard divide it.
                (None, Some(shard)) => {
                    (1..=most).rev().find(|chunk| shard % chunk == 0).unwrap_or(1)
                }
                (None, None) => most,
            };
            cells = (cells / chunk[axis]).max(1);
        }
        chunk
    }

    /// Returns the cells and labels of the array that is copied, or else of the rows.
    pub(super) async fn cells(
        &self,
        data: SendableRecordBatchStream,
        context: &TaskContext,
    ) -> Result<RowsAndLabels> {
        let Some(cells) = &self.copied else { return self.read(data, context).await };
        let copied = cells.copied();
        let reservation = labels_consumer().register(context.memory_pool());
        let bytes =
            |labels: &ArrayRef| labels.get_array_memory_size() + size_of::<u64>() * labels.len();
        reservation.try_grow(copied.labels.iter().map(bytes).sum())?;
        Ok(RowsAndLabels {
            labels: copied.labels.clone(),
            places: copied.places.clone(),
            rows: copied.cells(),
            cells: Cells::Copied(cells.clone()),
            _reservation: reservation,
        })
    }

    /// Reads all rows, and numbers their labels.
    async fn read(
        &self,
        mut data: SendableRecordBatchStream,
        context: &TaskContext,
    ) -> Result<RowsAndLabels> {
        let schema = data.schema();
        let of_values = Arc::new(schema.project(&self.variables)?);
        let of_runs = runs_schema(self.dimensions.len());
        let stored = |schema| StoredRows::new(Arc::clone(schema), &self.metrics, context);
        let (mut values, mut runs) = (stored(&of_values), stored(&of_runs));
        let reservation = labels_consumer().register(context.memory_pool());
        let mut labels = vec![];
        for dimension in &self.dimensions {
            let name = self.field(dimension.column).name();
            let data_type = schema.field(dimension.column).data_type();
            labels.push(Labels::try_new(name, data_type, dimension.order)?);
        }
        let mut rows = 0;
        while let Some(batch) = data.try_next().await? {
            let of_labels = labels.iter_mut().zip(&self.dimensions);
            let of_labels =
                of_labels.map(|(it, dimension)| it.runs(batch.column(dimension.column)));
            let of_labels = of_labels.collect::<Result<Vec<_>>>()?;
            rows += batch.num_rows() as u64;
            runs.push(runs_of_rows(&of_runs, &of_labels, batch.num_rows())?)?;
            values.push(batch.project(&self.variables)?)?;
            reservation.try_resize(labels.iter().map(Labels::memory).sum())?;
        }
        let ordered = labels.into_iter().map(Labels::in_order).collect::<Result<Vec<_>>>()?;
        let (labels, places) = ordered.into_iter().unzip();
        let cells = Cells::Rows(Box::new((values, runs)));
        Ok(RowsAndLabels { labels, places, cells, rows, _reservation: reservation })
    }

    /// Fails if the array has far more cells than rows.
    pub(super) fn check_cells(&self, array: &NewArray, rows: u64) -> Result<()> {
        let shape: Vec<u64> = array.region().iter().map(|it| it.end - it.start).collect();
        let cells = shape.iter().product::<u64>();
        let most = self.options.max_cells.unwrap_or(rows.saturating_mul(SPARSE).max(SMALL));
        if cells > most {
            return exec_err!(
                "an array of shape {shape:?} has {cells} cells for {rows} rows, and at most {most} are written; check the dimensions, or raise 'max_cells'"
            );
        }
        Ok(())
    }
}

fn labels_consumer() -> MemoryConsumer {
    MemoryConsumer::new("labels of a new array")
}

/// Whether a plan writes an array. Its files do not appear one by one when they are complete, as others do.
pub fn writes_array(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let sink = plan.downcast_ref::<DataSinkExec>();
    sink.is_some_and(|it| it.sink().is::<ArraySink>())
        || plan.children().into_iter().any(writes_array)
}

impl fmt::Debug for ArraySink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArraySink").field("format", &self.target.name()).finish_non_exhaustive()
    }
}

impl DisplayAs for ArraySink {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |columns: Vec<usize>| {
            columns
                .into_iter()
                .map(|at| self.field(at).name().as_str())
                .collect::<Vec<_>>()
                .join(", ")
        };
        let dimensions = names(self.dimensions.iter().map(|it| it.column).collect());
        let variables = names(self.variables.clone());
        write!(f, "ArraySink: format={}", self.target.name())?;
        if self.options.mode != WriteMode::Create {
            write!(f, ", mode={}", self.options.mode)?;
        }
        if self.options.existing != ExistingCells::Refuse {
            write!(f, ", existing={}", word_for(self.options.existing))?;
        }
        write!(f, ", dimensions=[{dimensions}], variables=[{variables}]")
    }
}

#[async_trait]
impl DataSink for ArraySink {
    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn schema(&self) -> &SchemaRef {
        self.config.output_schema()
    }

    async fn write_all(
        &self,
        data: SendableRecordBatchStream,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        let rows = self.write(data, context).await?;
        if let Some(after) = self.after.as_ref().filter(|_| rows > 0) {
            let opened = after.written(context).await;
            opened.map_err(|error| error.context("all rows are in the array"))?;
        }
        Ok(rows)
    }
}
