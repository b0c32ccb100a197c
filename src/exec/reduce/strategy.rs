//! [`ReduceStrategy`]: who folds the cells, and what that costs.

use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;

use super::accumulate::AccumulatePlan;
use super::dense::DensePlan;
use super::keys::Keys;
use super::query::Query;
use crate::exec::GridScanExec;
use crate::exec::config::GridfusionConfig;
use crate::plan::ScanPlan;

/// Who folds the cells.
#[derive(Debug, Clone)]
pub(super) enum ReduceStrategy {
    /// The dense kernels.
    Dense(DensePlan),
    /// DataFusion's accumulators.
    Accumulators(AccumulatePlan),
}

impl ReduceStrategy {
    /// The fastest that can do `query`, or `None` if it needs rows.
    pub(super) fn of(query: &Query, scan: &GridScanExec) -> Result<Option<Self>> {
        if let Some(dense) = DensePlan::of(query, scan) {
            return Ok(Some(Self::Dense(dense)));
        }
        Ok(AccumulatePlan::of(query, scan)?.map(Self::Accumulators))
    }

    /// As plans show it.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Dense(_) => "dense",
            Self::Accumulators(_) => "accumulators",
        }
    }

    /// Every expression that is evaluated per row.
    pub(super) fn expressions(&self) -> Vec<&PhysicalExprRef> {
        match self {
            Self::Accumulators(plan) => plan.expressions().collect(),
            Self::Dense(_) => vec![],
        }
    }

    /// Bytes that a table of groups takes per group.
    pub(super) fn bytes_per_group(&self, keys: &Keys) -> u64 {
        /// What an accumulator takes at least: a few words.
        const ACCUMULATOR: u64 = 32;
        let states = match self {
            Self::Dense(dense) => dense.bytes_per_group(),
            Self::Accumulators(plan) => ACCUMULATOR * plan.calls.len() as u64,
        };
        // The states, the output made of them, and the output again without groups that had no row; the
        // places of groups, and the keys.
        3 * states + 16 + 16 * keys.columns.len() as u64
    }

    /// Whether so many tables of groups are small enough, beside the memory allowed and the rows there are.
    pub(super) fn is_worthwhile(
        &self,
        keys: &Keys,
        plan: &ScanPlan,
        tables: u64,
        config: &GridfusionConfig,
    ) -> bool {
        /// Smaller tables cost nothing worth mentioning.
        const SMALL: u64 = 1 << 16;
        let bytes = keys.groups.saturating_mul(tables).saturating_mul(self.bytes_per_group(keys));
        bytes <= config.reduce_memory as u64
            && (keys.groups <= SMALL || keys.groups <= plan.rows(None))
    }

    /// Whether the same over rows may do with less memory. DataFusion spills the states of groups, and reads
    /// them back in batches: values that are held fit only if a batch has few of all groups.
    pub(super) fn rows_may_take_less(&self, keys: &Keys, batch_size: usize) -> bool {
        /// Batches of groups.
        const MANY: u64 = 8;
        match self {
            Self::Accumulators(plan) if plan.holds_values() => {
                keys.groups > MANY * batch_size as u64
            }
            _ => true,
        }
    }
}
