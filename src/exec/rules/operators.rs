//! [`Operators`]: which kinds of operators a plan has.
//!
//! Most plans have nothing that a rule could replace, such as those without arrays. One walk through a plan finds that out for all
//! rules.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::sink::DataSinkExec;
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::sorts::sort::SortExec;

use crate::exec::matching::window_functions;
use crate::exec::{GridLookupExec, GridScanExec, SparseScanExec};

/// A kind of operator that rules look for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub(super) enum OperatorKind {
    GridScan = 1,
    SparseScan = 1 << 1,
    Window = 1 << 2,
    Aggregate = 1 << 3,
    GroupingSets = 1 << 4,
    HashJoin = 1 << 5,
    Filter = 1 << 6,
    TopK = 1 << 7,
    Sink = 1 << 8,
    Offset = 1 << 9,
    GridLookup = 1 << 10,
}

/// The kinds of operators that a plan has, as a sum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Operators(u16);

impl Operators {
    /// Walks through a plan.
    ///
    /// # Errors
    /// None in fact.
    fn try_new(plan: &Arc<dyn ExecutionPlan>) -> Result<Self> {
        let mut operators = Self::default();
        plan.apply(|node| {
            operators.0 |= kinds(node.as_ref());
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(operators)
    }

    /// Whether the plan has operators of all these kinds.
    pub(super) fn have_all(self, kinds: &[OperatorKind]) -> bool {
        kinds.iter().all(|kind| self.0 & *kind as u16 != 0)
    }
}

/// Returns the kinds of an operator, as a sum.
fn kinds(node: &dyn ExecutionPlan) -> u16 {
    if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
        let sets = aggregate.group_expr().has_grouping_set();
        return OperatorKind::Aggregate as u16
            | if sets { OperatorKind::GroupingSets as u16 } else { 0 };
    }
    let is_top_k = || node.downcast_ref::<SortExec>().is_some_and(|sort| sort.fetch().is_some());
    let kind = if node.is::<FilterExec>() {
        OperatorKind::Filter
    } else if node.is::<HashJoinExec>() {
        OperatorKind::HashJoin
    } else if node.is::<GridScanExec>() {
        OperatorKind::GridScan
    } else if node.is::<GridLookupExec>() {
        OperatorKind::GridLookup
    } else if node.is::<SparseScanExec>() {
        OperatorKind::SparseScan
    } else if window_functions(node).is_some() {
        OperatorKind::Window
    } else if is_top_k() {
        OperatorKind::TopK
    } else if node.downcast_ref::<GlobalLimitExec>().is_some_and(|limit| limit.skip() > 0) {
        OperatorKind::Offset
    } else if node.is::<DataSinkExec>() {
        OperatorKind::Sink
    } else {
        return 0;
    };
    kind as u16
}

/// The plan that the rules of a session saw last. A rule that changes nothing passes on the same plan to the next one.
#[derive(Debug, Default)]
pub(super) struct LastPlan(Mutex<Option<(Weak<dyn ExecutionPlan>, Operators)>>);

impl LastPlan {
    /// Returns the operators of a plan. Walks through it unless it is the last one.
    pub(super) fn operators(&self, plan: &Arc<dyn ExecutionPlan>) -> Result<Operators> {
        // A weak pointer keeps the memory of its plan, so no other plan has the same address.
        let is_same = |last: &Weak<_>| std::ptr::addr_eq(last.as_ptr(), Arc::as_ptr(plan));
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, operators)) = last.filter(|(last, _)| is_same(last)) {
            return Ok(operators);
        }
        let operators = Operators::try_new(plan)?;
        let last = Some((Arc::downgrade(plan), operators));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = last;
        Ok(operators)
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field, Schema};
    use datafusion::physical_expr::expressions::{col, lit};
    use datafusion::physical_plan::empty::EmptyExec;

    use super::*;

    #[test]
    fn the_operators_of_the_last_plan_are_known() {
        let schema = Arc::new(Schema::new(vec![Field::new("x", DataType::Boolean, true)]));
        let empty: Arc<dyn ExecutionPlan> = Arc::new(EmptyExec::new(Arc::clone(&schema)));
        let condition = |value| {
            let equal = datafusion::logical_expr::Operator::Eq;
            let (x, value) = (col("x", &schema).unwrap(), lit(value));
            datafusion::physical_expr::expressions::binary(x, equal, value, &schema).unwrap()
        };
        let filtered: Arc<dyn ExecutionPlan> =
            Arc::new(FilterExec::try_new(condition(true), Arc::clone(&empty)).unwrap());
        let last = LastPlan::default();
        for _ in 0..2 {
            assert_eq!(last.operators(&empty).unwrap(), Operators::default());
            for _ in 0..2 {
                let found = last.operators(&filtered).unwrap();
                assert!(found.have_all(&[OperatorKind::Filter]));
                assert!(!found.have_all(&[OperatorKind::Filter, OperatorKind::GridScan]));
            }
        }
        // Plans that follow one another may get the same memory.
        for at in 0..100 {
            let plan: Arc<dyn ExecutionPlan> = match at % 2 {
                0 => Arc::new(FilterExec::try_new(condition(true), Arc::clone(&empty)).unwrap()),
                _ => Arc::new(EmptyExec::new(Arc::clone(&schema))),
            };
            let found = last.operators(&plan).unwrap();
            assert_eq!(found.have_all(&[OperatorKind::Filter]), at % 2 == 0);
        }
    }
}
