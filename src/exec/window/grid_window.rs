//! [`GridWindow`]: a window over an array, taken apart.

use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::window::WindowExpr;
use datafusion::physical_plan::ExecutionPlan;

use super::call::Call;
use super::frames::KnownFrames;
use super::parts::{ColumnSize, WindowPart, bytes, divided};
use super::window_axis::WindowAxis;
use crate::array::ColumnSource;
use crate::exec::GridScanExec;
use crate::exec::columns::{columns_of, over_columns};
use crate::exec::config::GridfusionConfig;
use crate::exec::matching::{ScanBelow, ScanCells, window_functions};
use crate::grid::AxisChunks;
use crate::plan::ChunkColumns;

/// A window whose frames move along one axis of an array.
#[derive(Debug)]
pub(super) struct GridWindow {
    /// The window over rows that it replaces.
    pub(super) rows: Arc<dyn ExecutionPlan>,
    pub(super) scan: GridScanExec,
    pub(super) axis: usize,
    pub(super) columns: ChunkColumns,
    pub(super) calls: Vec<Call>,
    /// The columns of the scan that arguments use. The arguments are over these.
    pub(super) argument_columns: Vec<usize>,
    /// The columns of the scan, and one per call.
    pub(super) schema: SchemaRef,
}

impl GridWindow {
    /// Takes a window apart. Also returns its input columns over the columns of the scan. `None` unless its input is a whole scan of
    /// a grid and its functions run along one axis.
    pub(super) fn try_new(
        plan: &Arc<dyn ExecutionPlan>,
    ) -> Result<Option<(Self, Vec<PhysicalExprRef>)>> {
        let inputs = plan.children();
        let (Some(functions), [input]) = (window_functions(plan.as_ref()), inputs.as_slice())
        else {
            return Ok(None);
        };
        let Some(below) = ScanBelow::find(input, ScanCells::Selected)? else { return Ok(None) };
        let (scan, is_whole) = (&below.scan, below.operators.predicate.is_none());
        let Some(first) = functions.first().filter(|_| is_whole) else { return Ok(None) };
        let is_same = |other: &Arc<dyn WindowExpr>| {
            other.partition_by() == first.partition_by() && other.order_by() == first.order_by()
        };
        if !functions.iter().all(is_same) {
            return Ok(None);
        }
        let over_scan = |expr: &PhysicalExprRef| below.over_scan(expr);
        let partition_by =
            first.partition_by().iter().map(over_scan).collect::<Result<Vec<_>>>()?;
        let mut order_by = first.order_by().to_vec();
        for key in &mut order_by {
            key.expr = over_scan(&key.expr)?;
        }
        let Some(axis) = WindowAxis::try_new(&partition_by, &order_by, scan)? else {
            return Ok(None);
        };
        let Some(columns) = scan.plan().chunk_columns(axis.axis) else { return Ok(None) };
        let of_scan = scan.schema_ref();
        let mut frames = KnownFrames::new(&axis);
        let mut calls = vec![];
        for function in functions {
            match Call::try_new(function, &axis, &mut frames, &over_scan, of_scan) {
                Ok(Some(call)) => calls.push(call),
                Ok(None) => return Ok(None),
                Err(error) => {
                    log::debug!("a window runs over rows, because its frames fail: {error}");
                    return Ok(None);
                }
            }
        }
        let argument_columns = columns_of(calls.iter().filter_map(|call| call.argument.as_ref()));
        for call in &mut calls {
            let argument = call.argument.as_ref();
            call.argument = argument.map(|it| over_columns(it, &argument_columns)).transpose()?;
        }
        let fields =
            of_scan.fields().iter().cloned().chain(calls.iter().map(|it| Arc::clone(&it.field)));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<Arc<Field>>>()));
        let window = Self {
            rows: Arc::clone(plan),
            scan: scan.clone(),
            axis: axis.axis,
            columns,
            calls,
            argument_columns,
            schema,
        };
        Ok(Some((window, below.operators.columns)))
    }

    /// Divides the window among so many partitions of the plan. `None` if it takes more memory than `config` allows.
    pub(super) fn parts(
        &self,
        partitions: usize,
        config: &GridfusionConfig,
    ) -> Option<Vec<WindowPart>> {
        let whole = WindowPart { columns: 0..self.columns.count(), chunks: 0..self.columns.len() };
        let mut parts = divided(&whole, &self.columns, &self.calls, partitions);
        let bytes = bytes(&self.columns, &self.calls, &self.column_size());
        let bytes = bytes.saturating_mul(parts.len() as u64);
        let budget =
            self.scan.budget().saturating_mul(2).min(config.optimizer.reduce_memory as u64);
        // With fewer partitions, DataFusion would distribute the rows anew, and they would lose their order.
        parts.resize(partitions.max(1), WindowPart::EMPTY);
        (bytes <= budget).then_some(parts)
    }

    /// Returns the size of the largest column of chunks.
    fn column_size(&self) -> ColumnSize {
        let grid = self.scan.array().grid();
        let selected = self.scan.plan().selection().axes();
        let product = |of_axis: &dyn Fn(usize, &AxisChunks) -> u64| {
            let lens = grid.axis_chunks().iter().enumerate();
            lens.map(|(axis, chunks)| of_axis(axis, chunks)).fold(1, u64::saturating_mul)
        };
        ColumnSize {
            rows_per_line: product(&|axis, chunks| match axis == self.axis {
                true => 1,
                false => chunks.edge().min(selected[axis].count()),
            }),
            cells_per_chunk: product(&|axis, chunks| chunks.edge().min(grid.shape()[axis])),
            bytes_per_cell: self.bytes_per_row(),
        }
    }

    /// Returns the bytes of a row that waits for later cells.
    fn bytes_per_row(&self) -> u64 {
        let width = |field: &Arc<Field>| field.data_type().primitive_width().unwrap_or(16) as u64;
        self.schema.fields().iter().map(width).sum()
    }

    /// Returns the source of an output column; `None` for a function.
    pub(super) fn source(&self, column: usize) -> Option<ColumnSource> {
        self.scan.columns().get(column).copied()
    }
}
