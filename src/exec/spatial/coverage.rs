//! [`GridCoverageExec`]: a row per polygon and cell that it covers.
//!
//! The node has a batch of polygons and one batch of cells in memory. A polygon's cells are made while they are asked for.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::Statistics;
use datafusion::common::stats::Precision;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::metrics::{BaselineMetrics, Count, MetricBuilder};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning};
use futures::StreamExt;
use gridfusion_spatial::{CoverageRule, CoveredCell, Region};

use super::geometries::{Geometries, row_name};
use super::labelled_grid::{GridCells, LabelledGrid};
use crate::error::{Error, Result as GridResult};
use crate::exec::batches::{Batches, stream_of};
use crate::exec::operator::{Frame, Operator, declared, operator_methods, shown_by_text};

/// The most bytes of a batch that repeats wide rows of polygons.
const MOST_BYTES: usize = 16 << 20;

/// A column of the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CoverageColumn {
    /// A column of the polygons, by its number in the input.
    Own(usize),
    /// The labels of the cells' rows.
    Y,
    /// The labels of the cells' columns.
    X,
    /// The part of a cell that is covered.
    Coverage,
    /// The covered area.
    Area,
}

impl CoverageColumn {
    /// Returns the field of the column. `own` is the schema of the polygons.
    pub(crate) fn field(self, own: &Schema, grid: &LabelledGrid) -> Field {
        match self {
            Self::Own(at) => own.field(at).clone(),
            Self::Y => grid.y.field.as_ref().clone(),
            Self::X => grid.x.field.as_ref().clone(),
            Self::Coverage => Field::new("coverage", DataType::Float64, false),
            Self::Area => Field::new("area_m2", DataType::Float64, grid.metres.is_none()),
        }
    }
}

/// Computes the cells that polygons cover.
#[derive(Debug, Clone)]
pub(crate) struct GridCoverageExec {
    frame: Frame,
    input: Arc<dyn ExecutionPlan>,
    work: Arc<CoverageWork>,
}

/// The work, which all partitions share.
#[derive(Debug)]
pub(crate) struct CoverageWork {
    /// A grid whose cells have edges.
    pub(crate) grid: Arc<LabelledGrid>,
    pub(crate) rule: CoverageRule,
    /// The number of the input's column of polygons.
    pub(crate) geometry: usize,
    /// The columns, whose fields `schema` has.
    pub(crate) columns: Vec<CoverageColumn>,
    /// Whether messages may number the rows: no filter has left some out.
    pub(crate) is_numbered: bool,
    pub(crate) schema: SchemaRef,
}

impl GridCoverageExec {
    /// Makes the node over rows of polygons.
    ///
    /// # Errors
    /// If the cells of the grid have no edges.
    pub(crate) fn try_new(input: Arc<dyn ExecutionPlan>, work: CoverageWork) -> Result<Self> {
        if matches!(work.grid.cells, GridCells::Curvilinear(_)) {
            return Err(no_edges().into());
        }
        Ok(Self::over_input(input, Arc::new(work)))
    }

    /// The work of the node.
    #[cfg(feature = "codec")]
    pub(crate) fn work(&self) -> &Arc<CoverageWork> {
        &self.work
    }

    fn over_input(input: Arc<dyn ExecutionPlan>, work: Arc<CoverageWork>) -> Self {
        let partitions = input.output_partitioning().partition_count();
        let properties = declared(
            EquivalenceProperties::new(Arc::clone(&work.schema)),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
        );
        Self { frame: Frame::new(properties), input, work }
    }
}

shown_by_text!(GridCoverageExec);

impl ExecutionPlan for GridCoverageExec {
    operator_methods!();
}

impl Operator for GridCoverageExec {
    fn frame(&self) -> &Frame {
        &self.frame
    }

    fn with_frame(&self, frame: Frame) -> Self {
        Self { frame, ..self.clone() }
    }

    fn text(&self) -> Vec<String> {
        let rule = format!("{:?}", self.work.rule).to_lowercase();
        let geometry = self.input.schema().field(self.work.geometry).name().clone();
        vec![
            self.work.grid.shown(),
            format!("rule={rule}"),
            format!("geometry={geometry}"),
            crate::exec::display::projection(&self.work.schema),
        ]
    }

    fn inputs(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn over(&self, inputs: &[Arc<dyn ExecutionPlan>]) -> Result<Self> {
        Ok(Self::over_input(Arc::clone(&inputs[0]), Arc::clone(&self.work)))
    }

    /// Polygons often divide a grid among them, and so cover each cell about once.
    fn estimate(&self, _: Option<usize>) -> Result<Statistics> {
        let num_rows = Precision::Inexact(self.work.grid.cells());
        Ok(Statistics { num_rows, ..Statistics::new_unknown(&self.schema()) })
    }

    fn stream(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let metrics = self.frame.metrics();
        let is_alone = self.input.output_partitioning().partition_count() == 1;
        let cells = Cells {
            work: Arc::clone(&self.work),
            input: self.input.execute(partition, Arc::clone(&context))?,
            most_rows: context.session_config().batch_size().max(1),
            polygons: None,
            seen: (is_alone && self.work.is_numbered).then_some(0),
            baseline: BaselineMetrics::new(metrics, partition),
            count: MetricBuilder::new(metrics).counter("polygons", partition),
        };
        Ok(stream_of(self.schema(), cells.into_stream()))
    }
}

/// The rows of one partition.
struct Cells {
    work: Arc<CoverageWork>,
    input: SendableRecordBatchStream,
    most_rows: usize,
    polygons: Option<Polygons>,
    /// How many polygons were in earlier batches; `None` if rows have no numbers, because other partitions have some, too.
    seen: Option<usize>,
    baseline: BaselineMetrics,
    count: Count,
}

/// The cells that one polygon covers.
type CellsOfPolygon = Box<dyn Iterator<Item = CoveredCell> + Send>;

/// The polygons of one batch.
struct Polygons {
    batch: RecordBatch,
    geometries: Geometries,
    /// The row whose cells are being made, and these cells.
    at: usize,
    coverage: Option<CellsOfPolygon>,
    /// The most rows of a batch of cells.
    most_rows: usize,
    /// The bytes of the columns of one row of `at`, which each of its cells repeats.
    row_bytes: usize,
}

/// Cells of the polygons of one batch.
#[derive(Default)]
struct Covered {
    polygons: Vec<u32>,
    rows: Vec<u32>,
    columns: Vec<u32>,
    fractions: Vec<f64>,
}

impl Covered {
    fn push(&mut self, polygon: usize, cell: CoveredCell) {
        // A grid has fewer rows and columns, and a batch fewer polygons.
        self.polygons.push(polygon as u32);
        self.rows.push(cell.row as u32);
        self.columns.push(cell.column as u32);
        self.fractions.push(cell.fraction);
    }
}

impl Batches for Cells {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(polygons) = &mut self.polygons {
                let timer = self.baseline.elapsed_compute().timer();
                let covered = polygons.next_cells(&self.work, self.seen)?;
                let rows = covered.fractions.len();
                if rows > 0 {
                    let batch = self.work.batch(&polygons.batch, covered)?;
                    self.baseline.record_output(rows);
                    return Ok(Some(batch));
                }
                drop(timer);
                if polygons.at < polygons.batch.num_rows() {
                    // Many polygons without a cell: others run, and a query may end.
                    tokio::task::yield_now().await;
                    continue;
                }
                self.seen = self.seen.map(|it| it + polygons.batch.num_rows());
            }
            let Some(batch) = self.input.next().await.transpose()? else {
                self.polygons = None;
                return Ok(None);
            };
            self.count.add(batch.num_rows());
            self.polygons = Some(Polygons::try_new(batch, &self.work, self.most_rows)?);
        }
    }
}

impl Polygons {
    fn try_new(batch: RecordBatch, work: &CoverageWork, most_rows: usize) -> Result<Self> {
        let geometries = Geometries::try_new(batch.column(work.geometry))?;
        Ok(Self { batch, geometries, at: 0, coverage: None, most_rows, row_bytes: 0 })
    }

    /// Returns the next cells, as many as a batch may have. None if a number of polygons covered no cell.
    fn next_cells(&mut self, work: &CoverageWork, seen: Option<usize>) -> Result<Covered> {
        /// The polygons after which other tasks may run.
        const MOST_POLYGONS: usize = 256;
        let mut covered = Covered::default();
        let mut bytes = 0;
        let end = self.batch.num_rows().min(self.at + MOST_POLYGONS);
        while self.at < end {
            if self.coverage.is_none() {
                self.coverage = self.begin(work, seen)?;
                self.row_bytes = self.bytes_of_row(work);
            }
            for cell in self.coverage.iter_mut().flatten() {
                covered.push(self.at, cell);
                bytes += self.row_bytes;
                if covered.fractions.len() == self.most_rows || bytes >= MOST_BYTES {
                    return Ok(covered);
                }
            }
            self.coverage = None;
            self.at += 1;
        }
        Ok(covered)
    }

    /// Returns the bytes of the polygon's own columns, with its part of texts.
    fn bytes_of_row(&self, work: &CoverageWork) -> usize {
        let own = work.columns.iter().filter_map(|it| match it {
            CoverageColumn::Own(at) => Some(self.batch.column(*at).slice(self.at, 1)),
            _ => None,
        });
        let bytes = |it: ArrayRef| {
            let whole = it.get_array_memory_size();
            it.to_data().get_slice_memory_size().unwrap_or(whole)
        };
        own.map(bytes).sum()
    }

    /// Returns the cells of the next polygon; `None` if it is NULL.
    fn begin(&self, work: &CoverageWork, seen: Option<usize>) -> Result<Option<CellsOfPolygon>> {
        let region = self
            .geometries
            .region(self.at)
            .and_then(|region| region.map(|region| work.cells_of(&region)).transpose());
        region.map_err(|error| {
            let number = seen.map(|seen| seen + self.at + 1);
            error.about(&row_name(&self.batch, work.geometry, self.at, number)).into()
        })
    }
}

fn no_edges() -> Error {
    Error::internal("polygons on a grid whose cells have no edges")
}

impl CoverageWork {
    /// Returns the cells that a polygon covers.
    fn cells_of(&self, region: &Region) -> GridResult<CellsOfPolygon> {
        Ok(match &self.grid.cells {
            GridCells::Rectilinear { grid, .. } => Box::new(grid.coverage(region, self.rule)?),
            GridCells::Quadrilaterals(cells) => Box::new(cells.coverage(region, self.rule)?),
            GridCells::Curvilinear(_) => return Err(no_edges()),
        })
    }

    /// Returns the columns of cells.
    fn batch(&self, polygons: &RecordBatch, covered: Covered) -> Result<RecordBatch> {
        let count = covered.fractions.len();
        let area = self.columns.contains(&CoverageColumn::Area).then(|| self.area(&covered));
        let [own, rows, columns] =
            [covered.polygons, covered.rows, covered.columns].map(UInt32Array::from);
        let fractions: ArrayRef = Arc::new(Float64Array::from(covered.fractions));
        let column = |column: &CoverageColumn| -> Result<ArrayRef> {
            match column {
                CoverageColumn::Own(at) => Ok(take(polygons.column(*at), &own, None)?),
                CoverageColumn::Y => self.grid.y.at(&rows),
                CoverageColumn::X => self.grid.x.at(&columns),
                CoverageColumn::Coverage => Ok(Arc::clone(&fractions)),
                CoverageColumn::Area => {
                    Ok(Arc::new(area.clone().unwrap_or_else(|| Float64Array::new_null(count))))
                }
            }
        };
        let columns = self.columns.iter().map(column).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }

    /// Returns the covered areas in square metres; NULL if the grid's coordinates are no lengths.
    fn area(&self, covered: &Covered) -> Float64Array {
        let Some(metres) = self.grid.metres else {
            return Float64Array::new_null(covered.fractions.len());
        };
        let area_of = |row: usize, column: usize| match &self.grid.cells {
            GridCells::Rectilinear { grid, .. } => grid.cell_area(row, column),
            GridCells::Quadrilaterals(cells) => cells.cell_area(row, column),
            GridCells::Curvilinear(_) => f64::NAN,
        };
        let cells = covered.rows.iter().zip(&covered.columns).zip(&covered.fractions);
        let area = |((row, column), fraction): ((&u32, &u32), &f64)| {
            fraction * area_of(*row as usize, *column as usize) * metres * metres
        };
        Float64Array::from_iter_values(cells.map(area))
    }
}
