//! [`ScanBelow`]: a scan that a rule may replace, with the operators above it.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_plan::ExecutionPlan;

use super::input::InputOperators;
use crate::exec::GridScanExec;

/// The cells of a scan that a rule needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::exec) enum ScanCells {
    /// All that the scan reads. It may leave out chunks, because the predicate above it is true for none of their cells.
    Read,
    /// All selected ones. A frame of a window counts rows, and arrays side by side have the same cells.
    Selected,
}

/// A scan, and the operators between it and the operator that a rule replaces.
pub(in crate::exec) struct ScanBelow {
    pub(in crate::exec) scan: GridScanExec,
    /// The operators; their input is the scan.
    pub(in crate::exec) operators: InputOperators,
}

impl ScanBelow {
    /// Walks down from `plan` to a scan. `None` if there is none, or it may not be replaced.
    pub(in crate::exec) fn find(
        plan: &Arc<dyn ExecutionPlan>,
        cells: ScanCells,
    ) -> Result<Option<Self>> {
        let found = InputOperators::above(plan, &|it| it.is::<GridScanExec>())?;
        Ok(found.and_then(|operators| {
            let scan = operators.input.downcast_ref::<GridScanExec>()?.clone();
            may_replace(&scan, cells).then_some(Self { scan, operators })
        }))
    }

    /// Rewrites an expression over the output of the operators, over the columns of the scan.
    ///
    /// # Errors
    /// Internal errors only.
    pub(in crate::exec) fn over_scan(&self, expr: &PhysicalExprRef) -> Result<PhysicalExprRef> {
        self.operators.over_input(expr)
    }

    /// Returns the expressions of the operators, over the columns of the scan.
    pub(in crate::exec) fn expressions(&self) -> impl Iterator<Item = &PhysicalExprRef> {
        self.operators.columns.iter().chain(&self.operators.predicate)
    }
}

/// Whether another operator may read the cells of a scan in its place.
///
/// Dynamic filters of the scan do not matter, because they only save work.
fn may_replace(scan: &GridScanExec, cells: ScanCells) -> bool {
    let plan = scan.plan();
    // A scalar has one row, and no axis that keys could be over.
    scan.array().grid().rank() > 0
        // A limit keeps the first rows of the scan, and another operator reads others first.
        && plan.limit().is_none()
        // A query may rely on an order that the scan took over from a sort, and another operator has its own. Such scans are
        // seen only if a rule runs after DataFusion has pushed sorts down.
        && plan.reordered().is_none()
        && (cells == ScanCells::Read || plan.is_selection())
}
