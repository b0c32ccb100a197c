//! [`ReduceStrategy`]: the choice between dense kernels, accumulators and rows, by support and memory.
//!
//! The table of groups is accounted to the memory pool. If planning finds it larger than `gridfusion.reduce_memory`, or
//! finds more groups than rows, the aggregation runs over rows. If the pool refuses the table or its growth at run time,
//! the reduction aggregates the same partition over rows. Accumulators that hold values of few groups are an exception,
//! because DataFusion would read spilled lists back whole: the query fails.

use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;

use super::accumulate::AccumulatePlan;
use super::dense::DensePlan;
use super::keys::Keys;
use super::partitions::Cuts;
use super::query::Query;
use crate::exec::GridScanExec;
use crate::exec::config::GridfusionConfig;
use crate::exec::rows_because::{Attempt, because};
use crate::plan::ScanPlan;
use crate::reduce::AxisGroups;

/// The code that aggregates the cells of a reduction.
#[derive(Debug, Clone)]
pub(super) enum ReduceStrategy {
    /// The dense kernels.
    Dense(DensePlan),
    /// DataFusion's accumulators.
    Accumulators(AccumulatePlan),
}

impl ReduceStrategy {
    /// Returns the fastest strategy that supports `query`; `None` if `query` needs rows. `is_whole` wants final values, if
    /// partitions share no group.
    pub(super) fn try_new(
        query: &Query,
        scan: &GridScanExec,
        keys: &Keys,
        config: &GridfusionConfig,
        is_whole: bool,
    ) -> Result<Option<Self>> {
        let weighs = config.optimizer.enable_reduce_weights;
        if let Some(dense) = DensePlan::try_new(query, scan, keys, weighs, is_whole) {
            return Ok(Some(Self::Dense(dense)));
        }
        if keys.are_over_plane() {
            return Ok(None); // rows have places along axes only
        }
        Ok(AccumulatePlan::try_new(query, scan)?.map(Self::Accumulators))
    }

    /// Returns the name that `EXPLAIN` shows.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Dense(_) => "dense",
            Self::Accumulators(_) => "accumulators",
        }
    }

    /// Returns the greatest number of groups that a table may have. It is greater than that of the query's
    /// groups if these are weighed.
    pub(super) fn groups(&self, keys: &Keys) -> u64 {
        match self {
            Self::Dense(DensePlan { refinement: Some(refinement), .. }) => refinement.groups,
            _ => keys.groups,
        }
    }

    /// Returns the numbers of fine groups, if groups are weighed.
    pub(super) fn fine_groups(&self) -> Option<&Vec<AxisGroups>> {
        match self {
            Self::Dense(dense) => Some(&dense.refinement.as_ref()?.axes),
            Self::Accumulators(_) => None,
        }
    }

    /// Returns the functions of dimensions that are evaluated once per label, besides keys.
    pub(super) fn functions_of_labels(&self) -> &[PhysicalExprRef] {
        match self {
            Self::Dense(dense) => &dense.functions,
            Self::Accumulators(_) => &[],
        }
    }

    /// Whether aggregates are computed of labels, and no variable is read. Then one partition does all the work.
    pub(super) fn is_of_labels(&self) -> bool {
        matches!(self, Self::Dense(dense) if dense.is_of_labels())
    }

    /// Whether cells are multiplied by weights of their own, besides groups.
    pub(super) fn multiplies_cells(&self) -> bool {
        match self {
            Self::Dense(dense) => dense.members.iter().any(|it| it.member.weights.is_some()),
            Self::Accumulators(_) => false,
        }
    }

    /// Returns where partitions may be cut.
    pub(super) fn cuts(&self) -> Cuts {
        match self {
            Self::Accumulators(plan) if plan.needs_order || self.gathers_values() => Cuts::Anywhere,
            _ => Cuts::Cheap,
        }
    }

    /// Whether values of groups are kept until all are there.
    pub(super) fn gathers_values(&self) -> bool {
        matches!(self, Self::Accumulators(plan) if plan.gathered_bytes_per_row > 0)
    }

    /// Whether values may be gathered for which summaries may take less memory.
    pub(super) fn has_summaries(&self) -> bool {
        matches!(self, Self::Accumulators(plan) if plan.has_summaries)
    }

    /// Whether groups need their rows in order, so that partitions must not share groups.
    pub(super) fn needs_order(&self) -> bool {
        matches!(self, Self::Accumulators(plan) if plan.needs_order)
    }

    /// Returns every expression that is evaluated per row.
    pub(super) fn expressions(&self) -> Vec<&PhysicalExprRef> {
        match self {
            Self::Accumulators(plan) => plan.expressions().collect(),
            Self::Dense(_) => vec![],
        }
    }

    /// Returns the bytes that a table of groups takes per group. `avg(value)` by one key takes 128:
    /// states of 32 bytes, three times, and 32 for the place and the key.
    pub(super) fn bytes_per_group(&self, keys: &Keys) -> u64 {
        /// The least bytes of an accumulator: a few words.
        const ACCUMULATOR: u64 = 32;
        let states = match self {
            Self::Dense(dense) => dense.bytes_per_group(),
            Self::Accumulators(plan) => ACCUMULATOR * plan.calls.len() as u64,
        };
        // Three times the states: themselves, their output, and a copy of it without empty groups. Then
        // the places of groups, and the keys.
        3 * states + 16 + 16 * keys.columns.len() as u64
    }

    /// Checks that `tables` tables of groups fit in the allowed memory, and that large ones have no more groups
    /// than there are rows. A table has a state for each combination of keys, with or without rows.
    /// Hashing needs memory only for groups with rows, so it is better for few rows of many possible
    /// groups.
    pub(super) fn is_worthwhile(
        &self,
        keys: &Keys,
        plan: &ScanPlan,
        tables: u64,
        config: &GridfusionConfig,
    ) -> Attempt<()> {
        /// The number of groups up to which a table costs almost nothing.
        const SMALL: u64 = 1 << 16;
        let groups = self.groups(keys);
        let bytes = groups.saturating_mul(tables).saturating_mul(self.bytes_per_group(keys));
        let (most, rows) = (config.optimizer.reduce_memory as u64, plan.rows(None));
        if bytes > most {
            return Err(because(format!(
                "{groups} groups take {bytes} bytes, and gridfusion.reduce_memory is {most}"
            )));
        }
        if groups > SMALL.max(rows) {
            return Err(because(format!(
                "the keys allow {groups} groups, and there are {rows} rows"
            )));
        }
        Ok(())
    }

    /// Whether aggregating rows instead may take less memory. DataFusion spills the states of groups, and
    /// reads them back in batches. States that hold values fit only if a batch has a small part of all
    /// groups.
    pub(super) fn rows_may_take_less(&self, keys: &Keys, batch_size: usize) -> bool {
        /// With more batches of groups than this, one batch has a small part of them.
        const MANY: u64 = 8;
        match self {
            Self::Accumulators(plan) if plan.holds_values() => {
                keys.groups > MANY * batch_size as u64
            }
            _ => true,
        }
    }
}
