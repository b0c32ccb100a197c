//! [`GridWindowExec`]: the operator for windows along a dimension.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::{Statistics, internal_err};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExprRef};
use datafusion::physical_plan::execution_plan::{CardinalityEffect, EmissionType};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, Partitioning};

use super::grid_window::GridWindow;
use super::parts::{WindowPart, divided};
use super::stream;
use crate::array::ColumnSource;
use crate::error::Error;
use crate::exec::columns::projected;
use crate::exec::operator::{Frame, Operator, declared, operator_methods, shown_by_text};
use crate::exec::rows_because::as_planned;
use crate::exec::{GridScanExec, display, order};

/// An operator that computes the functions of a window along one dimension of an array, in all partitions of the window
/// at once.
///
/// ```text
/// GridWindowExec: along=time, functions=[avg(t.value) …], dataset=t, chunks=256/256, projection=[time, station]
/// ```
///
/// The rule `GridWindow` plans the operator. Each row of the scan is one row of the output, with a
/// column more per function. Rows come in the order of the array if chunks lie one behind the other along the dimension.
/// Otherwise they come column of chunks by column of chunks.
///
/// The operator has no children: it holds the scan's array and plan. So no optimizer rule that runs later changes either.
#[derive(Debug, Clone)]
pub struct GridWindowExec {
    window: Arc<GridWindow>,
    /// The part of each partition.
    parts: Vec<WindowPart>,
    /// The columns of the window's schema, in output order.
    projection: Vec<usize>,
    schema: SchemaRef,
    frame: Frame,
}

impl GridWindowExec {
    /// Makes the operator of a window, which returns `projection` of its columns.
    pub(super) fn try_new(
        window: Arc<GridWindow>,
        parts: Vec<WindowPart>,
        projection: Vec<usize>,
    ) -> Result<Self> {
        let schema = Arc::new(window.schema.project(&projection)?);
        let frame = Frame::new(declared(
            equivalences(&window, &projection, &schema),
            Partitioning::UnknownPartitioning(parts.len()),
            EmissionType::Incremental,
        ));
        Ok(Self { window, parts, projection, schema, frame })
    }

    /// Makes an operator that was planned before.
    ///
    /// # Errors
    /// `Unsupported` if the window does not run along an axis here; `Corrupt` if it has not such parts or columns.
    pub fn as_planned(
        rows: &Arc<dyn ExecutionPlan>,
        parts: Vec<WindowPart>,
        projection: Vec<usize>,
    ) -> Result<Self> {
        let (window, _) = as_planned("window along an axis", GridWindow::try_new(rows))?;
        let (columns, chunks) = (window.chunks.count(), window.chunks.len());
        let has = |part: &WindowPart| part.columns.end <= columns && part.chunks.end <= chunks;
        let width = window.schema.fields().len();
        if !parts.iter().all(has) || projection.iter().any(|column| *column >= width) {
            let message = "a window of chunks or columns that the array does not have";
            return Err(Error::corrupt_region("plan", message).into());
        }
        Self::try_new(Arc::new(window), parts, projection)
    }

    /// Returns `count` operators that together return the rows of this one, in as many partitions each. Some may be empty. None
    /// has more parts than this one, so that each keeps to the memory that planning allowed.
    ///
    /// # Errors
    /// Internal errors only.
    pub fn shares(&self, count: usize) -> Result<Vec<Self>> {
        let (partitions, window) = (self.parts.len(), &self.window);
        let own: Vec<&WindowPart> = self
            .parts
            .iter()
            .filter(|it| !it.columns.is_empty() && !it.chunks.is_empty())
            .collect();
        let divide = |part: &&WindowPart| divided(part, &window.chunks, &window.calls, count);
        let parts: Vec<WindowPart> = own.iter().flat_map(divide).collect();
        let border = |number: usize| number * parts.len() / count;
        let share = |number: usize| {
            let mut of_share = parts[border(number)..border(number + 1)].to_vec();
            of_share.resize(partitions, WindowPart::EMPTY);
            Self::try_new(Arc::clone(window), of_share, self.projection.clone())
        };
        (0..count).map(share).collect()
    }

    /// Returns the scan whose chunks are read.
    pub fn scan(&self) -> &GridScanExec {
        &self.window.scan
    }

    /// Returns the window over rows that the operator replaces.
    pub fn rows(&self) -> &Arc<dyn ExecutionPlan> {
        &self.window.rows
    }

    /// Returns the part of each partition.
    pub fn parts(&self) -> &[WindowPart] {
        &self.parts
    }

    /// Returns the number of the first chunk whose rows are returned.
    pub fn first_chunk(&self) -> u64 {
        let first = self.parts.iter().find(|it| !it.columns.is_empty() && !it.chunks.is_empty());
        first.map_or(0, |part| {
            let (plan, task) = self.window.chunks.task(part.columns.start, part.chunks.start);
            plan.task(task).chunk_number
        })
    }

    /// Returns the columns of the output: those of the scan, and behind them one per function.
    pub fn projection(&self) -> &[usize] {
        &self.projection
    }
}

/// Returns the orders of the rows. Rows of several columns of chunks are in no order, nor are rows with NULL that come at the other end.
fn equivalences(
    window: &GridWindow,
    projection: &[usize],
    schema: &SchemaRef,
) -> EquivalenceProperties {
    if !window.chunks.are_in_order() {
        return EquivalenceProperties::new(Arc::clone(schema));
    }
    // Only dimensions have an order, so a function may count as a variable.
    let source = |column: &usize| window.source(*column).unwrap_or(ColumnSource::Value(0));
    let columns: Vec<ColumnSource> = projection.iter().map(source).collect();
    order::equivalences(window.scan.array(), window.scan.plan(), &columns, schema, &[])
}

shown_by_text!(GridWindowExec);

impl Operator for GridWindowExec {
    fn frame(&self) -> &Frame {
        &self.frame
    }

    fn with_frame(&self, frame: Frame) -> Self {
        Self { frame, ..self.clone() }
    }

    fn text(&self) -> Vec<String> {
        let GridWindow { scan, axis, schema, .. } = self.window.as_ref();
        let scanned = scan.columns().len();
        let (columns, functions): (Vec<usize>, Vec<usize>) =
            self.projection.iter().partition(|column| **column < scanned);
        let names = |columns: Vec<usize>| {
            let names = columns.into_iter().map(|column| schema.field(column).name().as_str());
            names.collect::<Vec<_>>().join(", ")
        };
        let mut parts = vec![
            format!("along={}", scan.array().dims()[*axis].name()),
            format!("functions=[{}]", names(functions)),
        ];
        parts.extend(display::parts(scan.array(), scan.plan()));
        parts.push(format!("projection=[{}]", names(columns)));
        parts
    }

    fn expressions(&self) -> Vec<PhysicalExprRef> {
        self.window.calls.iter().filter_map(|call| call.argument.clone()).collect()
    }

    fn estimate(&self, partition: Option<usize>) -> Result<Statistics> {
        let mut statistics = Statistics::new_unknown(&self.schema);
        if partition.is_none() {
            let rows = usize::try_from(self.window.scan.plan().rows(None));
            // A share returns fewer rows.
            statistics.num_rows = rows.map_or(Precision::Absent, Precision::Inexact);
        }
        Ok(statistics)
    }

    fn stream(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let Some(part) = self.parts.get(partition) else {
            return internal_err!("a window of no part");
        };
        let output = stream::Output {
            projection: self.projection.clone(),
            schema: Arc::clone(&self.schema),
            partitions: self.parts.iter().filter(|it| !it.columns.is_empty()).count(),
        };
        let metrics = self.frame.metrics();
        Ok(stream::rows(&self.window, output, part, partition, metrics, &context))
    }
}

impl ExecutionPlan for GridWindowExec {
    operator_methods!();

    /// Returns an operator of fewer columns, below what a projection computes.
    fn try_swapping_with_projection(
        &self,
        projection: &ProjectionExec,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        projected(projection, self.projection.len(), |columns| {
            let columns = columns.into_iter().map(|column| self.projection[column]).collect();
            Ok(Arc::new(Self::try_new(Arc::clone(&self.window), self.parts.clone(), columns)?))
        })
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }
}
