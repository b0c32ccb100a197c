//! [`GridPointsExec`]: the cells that points are in, as labels beside the points' own columns.
//!
//! Points stream through: the node has one batch of them in memory.

use std::sync::Arc;

use super::labelled_grid::{GridCells, LabelledGrid};
use super::times::TimeLabels;
use crate::exec::batches::{Batches, stream_of};
use crate::exec::operator::{Frame, Operator, declared, operator_methods, shown_by_text};
use arrow::array::{ArrayRef, AsArray, Float64Array, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, Field, Float64Type, Schema, SchemaRef};
use datafusion::common::Statistics;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::metrics::{BaselineMetrics, Count, MetricBuilder};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning};
use futures::StreamExt;

/// The input's columns of coordinates, by number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PointInputs {
    pub(crate) y: usize,
    pub(crate) x: usize,
    pub(crate) time: Option<usize>,
}

/// Which cells a point gets.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PointCells {
    /// The nearest one, if it is at most so many metres away.
    Nearest { within: f64 },
    /// The cells around it on a grid with coordinates per axis, with the weights of bilinear interpolation.
    Linear,
}

/// A column of the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PointColumn {
    /// A column of the points, by its number in the input.
    Own(usize),
    /// The label of the cell's row.
    Y,
    /// The label of the cell's column.
    X,
    /// The label of the time.
    Time,
    /// The distance of the cell's labels.
    Distance,
    /// The weight of the cell.
    Weight,
}

/// The begin of the names of labels, which keeps them apart from columns of the points.
const PREFIX: &str = "cell_";

impl PointColumn {
    /// Returns the field of the column. `own` is the schema of the points.
    pub(crate) fn field(
        self,
        own: &Schema,
        grid: &LabelledGrid,
        times: Option<&TimeLabels>,
    ) -> Field {
        let label = |field: &Field| {
            let name = format!("{PREFIX}{}", field.name());
            field.clone().with_name(name).with_nullable(true)
        };
        match (self, times) {
            (Self::Own(at), _) => own.field(at).clone(),
            (Self::Y, _) => label(&grid.y.field),
            (Self::X, _) => label(&grid.x.field),
            (Self::Time, Some(times)) => label(&times.axis.field),
            (Self::Time, None) => Field::new(format!("{PREFIX}time"), DataType::Null, true),
            (Self::Distance, _) => Field::new("distance_m", DataType::Float64, true),
            (Self::Weight, _) => Field::new("weight", DataType::Float64, true),
        }
    }
}

/// Finds the cells of points.
#[derive(Debug, Clone)]
pub(crate) struct GridPointsExec {
    frame: Frame,
    input: Arc<dyn ExecutionPlan>,
    work: Arc<PointWork>,
}

/// The work, which all partitions share.
#[derive(Debug)]
pub(crate) struct PointWork {
    pub(crate) grid: Arc<LabelledGrid>,
    pub(crate) times: Option<Arc<TimeLabels>>,
    pub(crate) cells: PointCells,
    pub(crate) inputs: PointInputs,
    /// The columns, whose fields `schema` has.
    pub(crate) columns: Vec<PointColumn>,
    pub(crate) schema: SchemaRef,
}

impl GridPointsExec {
    /// Makes the node over rows of points.
    pub(crate) fn new(input: Arc<dyn ExecutionPlan>, work: PointWork) -> Self {
        Self::over_input(input, Arc::new(work))
    }

    /// The work of the node.
    #[cfg(feature = "codec")]
    pub(crate) fn work(&self) -> &Arc<PointWork> {
        &self.work
    }

    fn over_input(input: Arc<dyn ExecutionPlan>, work: Arc<PointWork>) -> Self {
        let partitions = input.output_partitioning().partition_count();
        let properties = declared(
            EquivalenceProperties::new(Arc::clone(&work.schema)),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
        );
        Self { frame: Frame::new(properties), input, work }
    }
}

shown_by_text!(GridPointsExec);

impl ExecutionPlan for GridPointsExec {
    operator_methods!();
}

impl Operator for GridPointsExec {
    fn frame(&self) -> &Frame {
        &self.frame
    }

    fn with_frame(&self, frame: Frame) -> Self {
        Self { frame, ..self.clone() }
    }

    fn text(&self) -> Vec<String> {
        let method = match self.work.cells {
            PointCells::Nearest { within } if within.is_finite() => {
                format!("method=nearest within {within} m")
            }
            PointCells::Nearest { .. } => "method=nearest".to_owned(),
            PointCells::Linear => "method=linear".to_owned(),
        };
        let times = self.work.times.as_ref().map(|it| it.shown());
        let projection = crate::exec::display::projection(&self.work.schema);
        [self.work.grid.shown(), method].into_iter().chain(times).chain([projection]).collect()
    }

    fn inputs(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn over(&self, inputs: &[Arc<dyn ExecutionPlan>]) -> Result<Self> {
        Ok(Self::over_input(Arc::clone(&inputs[0]), Arc::clone(&self.work)))
    }

    fn estimate(&self, partition: Option<usize>) -> Result<Statistics> {
        let arguments = StatisticsArgs::new().with_partition(partition);
        let input = StatisticsContext::new().compute(self.input.as_ref(), &arguments)?.num_rows;
        let num_rows = match self.work.cells {
            PointCells::Nearest { .. } => input,
            PointCells::Linear => {
                input.to_inexact().multiply(&datafusion::common::stats::Precision::Exact(4))
            }
        };
        Ok(Statistics { num_rows, ..Statistics::new_unknown(&self.schema()) })
    }

    fn stream(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let points = Points {
            work: Arc::clone(&self.work),
            input: self.input.execute(partition, Arc::clone(&context))?,
            most_rows: context.session_config().batch_size().max(1),
            batch: None,
            baseline: BaselineMetrics::new(self.frame.metrics(), partition),
            count: MetricBuilder::new(self.frame.metrics()).counter("points", partition),
        };
        Ok(stream_of(self.schema(), points.into_stream()))
    }
}

/// The rows of one partition.
struct Points {
    work: Arc<PointWork>,
    input: SendableRecordBatchStream,
    most_rows: usize,
    /// The points that are still to be done.
    batch: Option<RecordBatch>,
    baseline: BaselineMetrics,
    count: Count,
}

impl Batches for Points {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        let batch = loop {
            let batch = match self.batch.take() {
                Some(batch) => batch,
                None => match self.input.next().await.transpose()? {
                    Some(batch) => batch,
                    None => return Ok(None),
                },
            };
            if batch.num_rows() > 0 {
                break batch;
            }
        };
        let _timer = self.baseline.elapsed_compute().timer();
        let rows = batch.num_rows().min(self.most_rows);
        if rows < batch.num_rows() {
            self.batch = Some(batch.slice(rows, batch.num_rows() - rows));
        }
        self.count.add(rows);
        let found = self.work.batch(&batch.slice(0, rows))?;
        self.baseline.record_output(found.num_rows());
        Ok(Some(found))
    }
}

/// The cells of the points of a batch.
struct Found {
    /// The point of each row; `None` if each point has one row.
    points: Option<UInt32Array>,
    rows: UInt32Array,
    columns: UInt32Array,
    /// Distances in metres, or weights.
    measures: ArrayRef,
}

impl PointWork {
    /// Returns the rows of a batch of points.
    fn batch(&self, points: &RecordBatch) -> Result<RecordBatch> {
        let coordinate = |at: usize| {
            Ok::<_, arrow::error::ArrowError>(
                cast(points.column(at), &DataType::Float64)?.as_primitive::<Float64Type>().clone(),
            )
        };
        let (y, x) = (coordinate(self.inputs.y)?, coordinate(self.inputs.x)?);
        let found = match &self.cells {
            PointCells::Nearest { within } => self.nearest(&y, &x, *within),
            PointCells::Linear => self.linear(&y, &x),
        };
        let per_row = |column: &ArrayRef| match &found.points {
            None => Ok(Arc::clone(column)),
            Some(points) => take(column, points, None),
        };
        let column = |column: &PointColumn| -> Result<ArrayRef> {
            Ok(match (column, &self.times, self.inputs.time) {
                (PointColumn::Own(at), ..) => per_row(points.column(*at))?,
                (PointColumn::Y, ..) => self.grid.y.at(&found.rows)?,
                (PointColumn::X, ..) => self.grid.x.at(&found.columns)?,
                (PointColumn::Time, Some(times), Some(at)) => {
                    per_row(&times.axis.at(&times.find(points.column(at))?)?)?
                }
                (PointColumn::Time, ..) => {
                    arrow::array::new_null_array(&DataType::Null, found.rows.len())
                }
                (PointColumn::Distance | PointColumn::Weight, ..) => Arc::clone(&found.measures),
            })
        };
        let columns = self.columns.iter().map(column).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(found.rows.len()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }

    /// Finds the nearest cell of each point.
    fn nearest(&self, y: &Float64Array, x: &Float64Array, within: f64) -> Found {
        let (mut rows, mut columns) = (Vec::with_capacity(y.len()), Vec::with_capacity(y.len()));
        let is_length = self.grid.metres.is_some();
        let distances: Float64Array = y
            .iter()
            .zip(x)
            .map(|point| {
                let cell = match point {
                    (Some(y), Some(x)) => self.grid.nearest(y, x, within),
                    _ => None,
                };
                // A grid has fewer rows and columns.
                rows.push(cell.map(|it| it.row as u32));
                columns.push(cell.map(|it| it.column as u32));
                cell.filter(|_| is_length).map(|it| it.distance)
            })
            .collect();
        let measures = Arc::new(distances);
        Found { points: None, rows: rows.into(), columns: columns.into(), measures }
    }

    /// Finds the cells around each point. A point outside of the grid has one row of NULL.
    fn linear(&self, y: &Float64Array, x: &Float64Array) -> Found {
        let grid = match &self.grid.cells {
            GridCells::Rectilinear { grid, .. } => Some(grid),
            GridCells::Curvilinear(_) | GridCells::Quadrilaterals(_) => None,
        };
        let most = 4 * y.len();
        let mut points = Vec::with_capacity(most);
        let (mut rows, mut columns) = (Vec::with_capacity(most), Vec::with_capacity(most));
        let mut weights = Vec::with_capacity(most);
        for (point, at) in y.iter().zip(x).zip(0_u32..) {
            let neighbours = match point {
                (Some(y), Some(x)) => grid.and_then(|it| it.neighbours(y, x)),
                _ => None,
            };
            let cells = neighbours.as_ref().map_or(&[] as &[_], |it| it.cells());
            for (row, column, weight) in cells {
                points.push(at);
                rows.push(Some(*row as u32));
                columns.push(Some(*column as u32));
                weights.push(Some(*weight));
            }
            if cells.is_empty() {
                points.push(at);
                rows.push(None);
                columns.push(None);
                weights.push(None);
            }
        }
        let measures = Arc::new(Float64Array::from(weights));
        Found { points: Some(points.into()), rows: rows.into(), columns: columns.into(), measures }
    }
}
