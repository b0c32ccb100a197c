//! [`ArraySink`]: writes the rows of a query as an array.

use std::sync::Arc;
use std::time::SystemTime;
use std::{fmt, fs};

use arrow::array::{ArrayRef, new_empty_array};
use arrow::datatypes::{FieldRef, SchemaRef};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use datafusion::common::{ScalarValue, exec_err, plan_err};
use datafusion::datasource::physical_plan::FileSinkConfig;
use datafusion::datasource::sink::{DataSink, DataSinkExec};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use futures::TryStreamExt;
use gridfusion_core::io::{Folder, StoreFolder};
use gridfusion_core::tile::{Objects, WriteSession};
use gridfusion_core::write::{ArrayWriter, ExistingCells, NewArray, NewDimension, NewVariable};

use super::append::AfterWrite;
use super::copy::{CopiedArray, GridCellsExec, Sections};
use super::dimensions::DimensionColumn;
use super::labels::Labels;
use super::new_store::{ChunkRows, NewStore};
use super::options::{WriteMode, WriteOptions, word_for};
use super::place::TargetPlace;
use super::replacement::Replacement;
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

/// The object that locks an array for one writer.
pub(super) const LOCK: &str = ".gridfusion-lock";

/// All rows of a query, and the labels of each dimension, in order.
struct RowsAndLabels {
    labels: Vec<ArrayRef>,
    /// Per dimension, the place of each number of a label.
    places: Vec<Vec<u64>>,
    cells: Cells,
    rows: u64,
    /// The memory of labels.
    _reservation: MemoryReservation,
}

/// The cells that are written.
enum Cells {
    /// Cells of rows: their values, and the runs of their cells.
    Rows(Box<(StoredRows, StoredRows)>),
    /// Cells of an array.
    Copied(GridCellsExec),
}

impl Cells {
    /// Returns the cells in the order of an array in which `places` are the indices of the labels of each dimension.
    fn in_order(
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
    config: FileSinkConfig,
    dimensions: Vec<DimensionColumn>,
    /// The columns that are variables.
    variables: Vec<usize>,
    options: WriteOptions,
    target: &'static dyn TargetFormat,
    /// The cells to write instead of those of rows.
    copied: Option<GridCellsExec>,
    /// Work that follows when rows have been written.
    after: Option<Arc<dyn AfterWrite>>,
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
        let (copied, after, metrics) = (None, None, Default::default());
        let sink = Self { config, dimensions, variables, options, target, copied, after, metrics };
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

    fn field(&self, column: usize) -> &FieldRef {
        &self.config.output_schema().fields()[column]
    }

    /// Returns the dimensions with these labels.
    fn new_dimensions(&self, labels: Vec<ArrayRef>) -> Result<Vec<NewDimension>> {
        let dimension = |(dimension, labels): (&DimensionColumn, ArrayRef)| {
            let field = self.field(dimension.column);
            let attributes = self.options.attributes.of(field)?;
            Ok(NewDimension { name: field.name().clone(), labels, attributes })
        };
        self.dimensions.iter().zip(labels).map(dimension).collect()
    }

    fn new_variables(&self) -> Result<Vec<NewVariable>> {
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
    fn new_array(&self, labels: Vec<ArrayRef>) -> Result<NewArray> {
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
    async fn cells(
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

    /// Writes rows to the place, as the mode tells.
    async fn write(
        &self,
        data: SendableRecordBatchStream,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        let (session, runtime) = (context.session_config(), context.runtime_env());
        let place = TargetPlace::try_new(&self.config, session, &runtime, self.target)?;
        if self.options.mode == WriteMode::Append {
            let mut session = WriteSession::new(place.existing()?.1);
            let appended = self.append(data, &place, &mut session, context).await;
            return ended(appended, session).await;
        }
        let replaces = self.options.mode == WriteMode::Overwrite;
        if self.target.keeps_versions() {
            return self.add_version(data, &place, context).await;
        }
        if replaces && !self.target.is_one_file() {
            place.check_no_store_above(self.target.marks()).await?;
            let unlocks = self.options.unlocks;
            let replacement = Replacement::begin(&place, self.target, unlocks).await?;
            if let Some(replacement) = replacement {
                return self.replace(data, replacement, context).await;
            }
        } else if !replaces {
            place.check_empty(self.target).await?;
        }
        self.create(data, place.folder, &place.object, context).await
    }

    /// Writes rows as a new array in a folder that has none.
    async fn create(
        &self,
        data: SendableRecordBatchStream,
        folder: Arc<StoreFolder>,
        object: &str,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        let mut session = WriteSession::new(folder);
        let writer = |array| self.target.writer(array, object, &self.options);
        let written = self.write_array(data, writer, &mut session, context).await;
        ended(written, session).await
    }

    /// Writes rows as the first version of an array, or as another one. Both need the lock of its folder.
    async fn add_version(
        &self,
        data: SendableRecordBatchStream,
        place: &TargetPlace,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        // A program that was stopped may have left its lock.
        let is_new = place.folder.some_below("", 2).await?.iter().all(|it| it == LOCK);
        if !is_new && self.options.mode == WriteMode::Create {
            place.check_empty(self.target).await?;
        }
        if let Some(path) = place.local.as_ref().filter(|_| is_new) {
            fs::create_dir_all(path)?;
        }
        let (folder, writable) = place.existing()?;
        let mut session = WriteSession::new(writable);
        let written = async {
            lock(&mut session, self.options.unlocks).await?;
            if is_new {
                let writer = |array| self.target.writer(array, "", &self.options);
                return self.write_array(data, writer, &mut session, context).await;
            }
            let objects = Objects::many_rewritten(folder);
            let mut versions = self.target.open_versions(&objects, &self.options).await?;
            session.write(versions.repair()).await?;
            let writer = |array| Ok(versions.writer(array)?);
            self.write_array(data, writer, &mut session, context).await
        };
        let written = ended(written.await, session).await;
        if let Some(path) = place.local.as_ref().filter(|_| is_new && written.is_err()) {
            // Nothing is in it by now, unless another program writes there.
            drop(fs::remove_dir(path));
        }
        written
    }

    /// Writes rows with a writer, and publishes them. The caller aborts the session if that fails.
    async fn write_array(
        &self,
        data: SendableRecordBatchStream,
        writer: impl FnOnce(NewArray) -> Result<Box<dyn ArrayWriter>>,
        session: &mut WriteSession,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        let RowsAndLabels { labels, places, cells, rows, _reservation } =
            self.cells(data, context).await?;
        // A table without rows is no array yet: nothing is known of its labels.
        if rows == 0 && self.after.is_some() {
            return Ok(0);
        }
        let writer = writer(self.new_array(labels)?)?;
        self.check_cells(writer.array(), rows)?;
        // A folder has no array by now, and two writers may be making one.
        let replaces = self.options.mode == WriteMode::Overwrite && self.target.is_one_file();
        let cells = cells.in_order(places, context)?;
        let store = NewStore::new(writer, replaces, &self.metrics, context);
        store.write(cells, session, context).await?;
        Ok(rows)
    }

    /// Writes rows as a new array beside one that is there, and then puts it into the place of that one.
    async fn replace(
        &self,
        data: SendableRecordBatchStream,
        replacement: Replacement,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        let folder = Arc::clone(&replacement.folder);
        match self.create(data, folder, "", context).await {
            Ok(rows) => replacement.finish().await.map(|()| rows),
            Err(error) => {
                replacement.abort().await;
                Err(error)
            }
        }
    }

    /// Appends rows to the array that is there. The caller aborts the session if that fails.
    async fn append(
        &self,
        data: SendableRecordBatchStream,
        place: &TargetPlace,
        session: &mut WriteSession,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        place.check_no_store_above(self.target.marks()).await?;
        lock(session, self.options.unlocks).await?;
        let objects =
            || Ok::<_, DataFusionError>(Arc::new(Objects::many_rewritten(place.existing()?.0)));
        let columns: Vec<&str> =
            self.schema().fields().iter().map(|it| it.name().as_str()).collect();
        let mut array = self.target.open(objects()?, &columns, &self.options).await?;
        let (repair, changes_cells) = array.repair()?;
        if !repair.is_empty() {
            session.write(repair).await?;
            if changes_cells {
                return exec_err!(
                    "another program was stopped while it changed cells of the array; all of its cells are in place now, so run the statement again"
                );
            }
            array = self.target.open(objects()?, &columns, &self.options).await?;
        }
        let planned =
            self.dimensions.iter().map(|it| (self.field(it.column).name(), it.order.descending));
        let found = array.dimensions().iter().map(|it| (&it.name, it.descends));
        if !planned.eq(found) {
            return exec_err!("the array was replaced since the statement was planned; try again");
        }
        let RowsAndLabels { labels, places, cells, rows, _reservation } =
            self.cells(data, context).await?;
        if rows == 0 {
            session.release().await?;
            return Ok(0);
        }
        let (writer, of_labels) = array.writer(
            self.new_dimensions(labels)?,
            self.new_variables()?,
            self.options.existing,
        )?;
        if self.options.existing == ExistingCells::Refuse {
            self.check_cells(writer.array(), rows)?;
        }
        let at = |(places, of_labels): (Vec<u64>, &Vec<u64>)| {
            places.into_iter().map(|place| of_labels[place as usize]).collect()
        };
        let places = places.into_iter().zip(&of_labels).map(at).collect();
        let cells = cells.in_order(places, context)?;
        let store = NewStore::new(writer, false, &self.metrics, context);
        store.write(cells, session, context).await?;
        Ok(rows)
    }

    /// Fails if the array has far more cells than rows.
    fn check_cells(&self, array: &NewArray, rows: u64) -> Result<()> {
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

/// Locks an array for this writer.
pub(super) async fn lock(session: &mut WriteSession, unlocks: bool) -> Result<()> {
    let now: DateTime<Utc> = SystemTime::now().into();
    let note = format!("process {} writes since {now}", std::process::id());
    Ok(session.lock(LOCK, note.into(), unlocks).await?)
}

/// Removes what was written if it failed.
async fn ended(written: Result<u64>, session: WriteSession) -> Result<u64> {
    if written.is_err() {
        session.abort().await;
    }
    written
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
