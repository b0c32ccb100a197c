//! [`ArraySink`]: writes the rows of a query as an array.

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, new_empty_array};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::common::{exec_err, plan_err};
use datafusion::datasource::physical_plan::FileSinkConfig;
use datafusion::datasource::sink::{DataSink, DataSinkExec};
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use futures::TryStreamExt;
use gridfusion_core::tile::WriteSession;
use gridfusion_core::write::{ArrayWriter, Attributes, NewArray, NewDimension, NewVariable};

use super::dimensions::DimensionColumn;
use super::labels::Labels;
use super::new_store::NewStore;
use super::options::WriteOptions;
use super::place::TargetPlace;
use super::stored_rows::StoredRows;
use super::targets::TargetFormat;
use crate::array::COUNTED_TIMES;

/// The bytes of a chunk, unless options choose its shape.
const CHUNK_BYTES: u64 = 4 << 20;
/// The cells per row above which an array is taken for a mistake, such as a point cloud.
const SPARSE: u64 = 100;
/// The cells that an array may have with any number of rows.
const SMALL: u64 = 1 << 20;

/// Attributes that tell how values are stored, or that name variables beside.
const OF_STORAGE: [&str; 14] = [
    "_FillValue",
    "_Unsigned",
    "add_offset",
    "ancillary_variables",
    "bounds",
    "cell_measures",
    "climatology",
    "coordinates",
    "grid_mapping",
    "missing_value",
    "scale_factor",
    "valid_max",
    "valid_min",
    "valid_range",
];

/// All rows of a query, and the labels of each dimension.
struct RowsAndLabels {
    labels: Vec<Labels>,
    stored: StoredRows,
    rows: u64,
    /// The memory of labels.
    _reservation: MemoryReservation,
}

/// Writes rows, sorted by the dimensions, as a new array.
pub(super) struct ArraySink {
    config: FileSinkConfig,
    dimensions: Vec<DimensionColumn>,
    /// The columns that are variables.
    variables: Vec<usize>,
    options: WriteOptions,
    target: &'static dyn TargetFormat,
    metrics: ExecutionPlanMetricsSet,
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
        let metrics = Default::default();
        let sink = Self { config, dimensions, variables, options, target, metrics };
        // Types and encodings that cannot be written fail before the query runs.
        let empty = sink
            .dimensions
            .iter()
            .map(|it| new_empty_array(sink.config.output_schema().field(it.column).data_type()));
        sink.writer(empty.collect(), "")?;
        Ok(sink)
    }

    fn field(&self, column: usize) -> &FieldRef {
        &self.config.output_schema().fields()[column]
    }

    /// Returns the writer of the array with these labels.
    fn writer(&self, labels: Vec<ArrayRef>, object: &str) -> Result<Box<dyn ArrayWriter>> {
        let mut dimensions = vec![];
        for (dimension, labels) in self.dimensions.iter().zip(labels) {
            let field = self.field(dimension.column);
            let attributes = attributes(field);
            dimensions.push(NewDimension { name: field.name().clone(), labels, attributes });
        }
        let mut variables = vec![];
        for column in &self.variables {
            let field = self.field(*column);
            variables.push(NewVariable {
                name: field.name().clone(),
                data_type: field.data_type().clone(),
                fill: self.options.fill(field.name(), field.data_type())?,
                attributes: attributes(field),
            });
        }
        let shape: Vec<u64> = dimensions.iter().map(|it| it.labels.len() as u64).collect();
        let chunk_shape = self.chunk_shape(&shape);
        let array = NewArray::try_new(dimensions, variables, &chunk_shape)?;
        self.target.writer(array, object, &self.options)
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

    /// Reads all rows, and numbers their labels.
    async fn read(
        &self,
        mut data: SendableRecordBatchStream,
        context: &TaskContext,
    ) -> Result<RowsAndLabels> {
        let schema = data.schema();
        let number = |axis: usize| Field::new(format!("#{axis}"), DataType::UInt32, false);
        let values = self.variables.iter().map(|at| schema.field(*at).clone());
        let fields = (0..self.dimensions.len()).map(number).chain(values).collect::<Vec<_>>();
        let numbered = Arc::new(Schema::new(fields));
        let mut stored = StoredRows::new(Arc::clone(&numbered), &self.metrics, context);
        let consumer = MemoryConsumer::new("labels of a new array");
        let reservation = consumer.register(context.memory_pool());
        let mut labels = vec![];
        for dimension in &self.dimensions {
            let name = self.field(dimension.column).name();
            let data_type = schema.field(dimension.column).data_type();
            labels.push(Labels::try_new(name, data_type, dimension.order)?);
        }
        let mut rows = 0;
        while let Some(batch) = data.try_next().await? {
            let numbers = labels.iter_mut().zip(&self.dimensions).map(|(labels, dimension)| {
                Ok(Arc::new(labels.number(batch.column(dimension.column))?) as ArrayRef)
            });
            let mut columns = numbers.collect::<Result<Vec<_>>>()?;
            columns.extend(self.variables.iter().map(|at| ArrayRef::clone(batch.column(*at))));
            rows += batch.num_rows() as u64;
            stored.push(RecordBatch::try_new(Arc::clone(&numbered), columns)?)?;
            reservation.try_resize(labels.iter().map(Labels::memory).sum())?;
        }
        Ok(RowsAndLabels { labels, stored, rows, _reservation: reservation })
    }

    /// Fails if the array has far more cells than rows.
    fn check_cells(&self, array: &NewArray, rows: u64) -> Result<()> {
        let (shape, cells) = (array.grid().shape(), array.grid().cells());
        let most = self.options.max_cells.unwrap_or(rows.saturating_mul(SPARSE).max(SMALL));
        if cells > most {
            return exec_err!(
                "an array of shape {shape:?} has {cells} cells for {rows} rows, and at most {most} are written; check the dimensions, or raise 'max_cells'"
            );
        }
        Ok(())
    }
}

/// Whether a plan writes an array. Its files do not appear one by one when they are complete, as others do.
pub fn writes_array(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let sink = plan.downcast_ref::<DataSinkExec>();
    sink.is_some_and(|it| it.sink().is::<ArraySink>())
        || plan.children().into_iter().any(writes_array)
}

/// Returns the attributes of a column that hold for its values.
fn attributes(field: &Field) -> Attributes {
    // Units of times hold for numbers only if these count time. A cast keeps the attributes of what it casts.
    let metadata = field.metadata();
    let is_since = metadata.get("units").is_some_and(|units| units.contains(" since "));
    let is_time = matches!(field.data_type(), DataType::Timestamp(..) | DataType::Date32)
        || is_since && !metadata.contains_key(COUNTED_TIMES)
        || metadata.get("dtype").is_some_and(|dtype| dtype.starts_with("timedelta"));
    let left_out = |name: &str| {
        name.starts_with("gridfusion.")
            || OF_STORAGE.contains(&name)
            || is_time && ["units", "calendar", "dtype"].contains(&name)
    };
    let pairs = field.metadata().iter().filter(|(name, _)| !left_out(name));
    pairs.map(|(name, value)| (name.clone(), value.clone().into())).collect()
}

impl fmt::Debug for ArraySink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArraySink").field("config", &self.config).finish_non_exhaustive()
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
        write!(
            f,
            "ArraySink: format={}, dimensions=[{dimensions}], variables=[{variables}]",
            self.target.name()
        )
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
        let [url] = self.config.table_paths.as_slice() else {
            return plan_err!("an array is written to one place");
        };
        let store = context.runtime_env().object_store(&self.config.object_store_url)?;
        let name = &self.config.original_url;
        let place = TargetPlace::try_new(name, store, url.prefix(), self.target)?;
        if !self.options.overwrites {
            place.check_empty().await?;
        }
        let RowsAndLabels { labels, stored, rows, _reservation } = self.read(data, context).await?;
        let ordered = labels.into_iter().map(Labels::in_order).collect::<Result<Vec<_>>>()?;
        let (labels, places): (Vec<_>, Vec<_>) = ordered.into_iter().unzip();
        let writer = self.writer(labels, &place.object)?;
        self.check_cells(writer.array(), rows)?;
        let mut session = WriteSession::new(place.folder);
        let store = NewStore::new(writer, places, self.options.overwrites, &self.metrics, context);
        match store.write(stored, &mut session, context).await {
            Ok(()) => Ok(rows),
            Err(error) => {
                session.abort().await;
                Err(error)
            }
        }
    }
}
