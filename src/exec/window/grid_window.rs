//! [`GridWindow`]: a window over an array, taken apart.

use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::window::WindowExpr;
use datafusion::physical_plan::ExecutionPlan;

use super::call::Call;
use super::frames::KnownFrames;
use super::lines::LineChunks;
use super::memory::most_bytes;
use super::parts::{WindowPart, divided};
use super::window_axis::WindowAxis;
use crate::array::ColumnSource;
use crate::exec::GridScanExec;
use crate::exec::columns::{columns_of, over_columns};
use crate::exec::config::GridfusionConfig;
use crate::exec::matching::{ScanBelow, ScanCells, window_functions};
use crate::exec::rows_because::{Attempt, Declined, because};

/// A window whose frames move along one axis of an array.
#[derive(Debug)]
pub(super) struct GridWindow {
    /// The window over rows that it replaces.
    pub(super) rows: Arc<dyn ExecutionPlan>,
    pub(super) scan: GridScanExec,
    pub(super) axis: usize,
    pub(super) chunks: LineChunks,
    pub(super) calls: Vec<Call>,
    /// The columns of the scan that arguments use. The arguments are over these.
    pub(super) argument_columns: Vec<usize>,
    /// The columns of the scan, and one per call.
    pub(super) schema: SchemaRef,
}

impl GridWindow {
    /// Takes a window apart. Also returns its input columns over the columns of the scan. Its input must be a whole scan of a grid,
    /// and its functions must run along one axis.
    pub(super) fn try_new(plan: &Arc<dyn ExecutionPlan>) -> Attempt<(Self, Vec<PhysicalExprRef>)> {
        let inputs = plan.children();
        let (Some(functions), [input]) = (window_functions(plan.as_ref()), inputs.as_slice())
        else {
            return Err(Declined::NoArray);
        };
        let below = ScanBelow::find(input, ScanCells::Selected)?.ok_or(Declined::NoArray)?;
        let (scan, first) = (&below.scan, functions.first().ok_or(Declined::NoArray)?);
        if below.operators.predicate.is_some() {
            return Err(because("a condition leaves out rows below the window"));
        }
        let is_same = |other: &Arc<dyn WindowExpr>| {
            other.partition_by() == first.partition_by() && other.order_by() == first.order_by()
        };
        if !functions.iter().all(is_same) {
            return Err(because("the windows have several partitions or orders"));
        }
        let over_scan = |expr: &PhysicalExprRef| below.over_scan(expr);
        let partition_by =
            first.partition_by().iter().map(over_scan).collect::<Result<Vec<_>>>()?;
        let mut order_by = first.order_by().to_vec();
        for key in &mut order_by {
            key.expr = over_scan(&key.expr)?;
        }
        let axis = WindowAxis::try_new(&partition_by, &order_by, scan)?;
        let chunks = LineChunks::try_new(scan.plan(), axis.axis, axis.nulls.as_ref())?;
        let chunks = chunks.ok_or_else(|| because("the scan leaves out cells"))?;
        let of_scan = scan.schema_ref();
        let mut frames = KnownFrames::new(&axis);
        let mut calls = vec![];
        for function in functions {
            let call = Call::try_new(function, &axis, &mut frames, &over_scan, of_scan);
            // Over rows, frames may never be computed.
            let call =
                call.map_err(|error| because(format!("the frames of the window fail: {error}")))?;
            calls.push(call.ok_or_else(|| {
                because(format!("{} does not run along a dimension", function.name()))
            })?);
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
            chunks,
            calls,
            argument_columns,
            schema,
        };
        Ok((window, below.operators.columns))
    }

    /// Divides the window among so many partitions of the plan, of which some are empty if memory is short. Even one part may
    /// take more than `config` allows.
    pub(super) fn parts(
        &self,
        partitions: usize,
        config: &GridfusionConfig,
    ) -> Attempt<Vec<WindowPart>> {
        let whole = WindowPart { columns: 0..self.chunks.count(), chunks: 0..self.chunks.len() };
        let bytes = most_bytes(self, &whole.chunks).max(1);
        let (budget, limit) = self.budget(config);
        let most = usize::try_from(budget / bytes).unwrap_or(usize::MAX).min(partitions.max(1));
        // A part that does not begin with the first chunk keeps what lies before it.
        let fit = |parts: &Vec<WindowPart>| {
            let same = parts.chunk_by(|a, b| a.chunks == b.chunks);
            let bytes =
                same.map(|of| most_bytes(self, &of[0].chunks).saturating_mul(of.len() as u64));
            bytes.fold(0, u64::saturating_add) <= budget
        };
        let divided = (1..=most).rev().map(|most| divided(&whole, &self.chunks, &self.calls, most));
        let Some(mut parts) = divided.into_iter().find(fit) else {
            return Err(because(format!(
                "the lines of the window take {bytes} bytes, and {limit} is {budget}"
            )));
        };
        // With fewer partitions, DataFusion would distribute the rows anew, and they would lose their order.
        parts.resize(partitions.max(1), WindowPart::EMPTY);
        Ok(parts)
    }

    /// Returns the bytes that all parts may take together, and their name: half of a limited pool, of which a scan has a quarter.
    fn budget(&self, config: &GridfusionConfig) -> (u64, &'static str) {
        let setting = (config.optimizer.reduce_memory as u64, "gridfusion.reduce_memory");
        let of_pool = (self.scan.budget().saturating_mul(2), "half of the memory pool");
        if self.scan.is_limited() { setting.min(of_pool) } else { setting }
    }

    /// Returns the source of an output column; `None` for a function.
    pub(super) fn source(&self, column: usize) -> Option<ColumnSource> {
        self.scan.columns().get(column).copied()
    }
}
