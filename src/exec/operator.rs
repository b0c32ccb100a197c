//! [`Operator`]: what all plan nodes of this library share, so that the file of a node holds only what is special to it.
//!
//! ```text
//!   Operator            what is special to a node: inputs, expressions, text, statistics, rows
//!   Frame               what every node holds: properties, dynamic filters, metrics
//!   operator_methods!   the methods of `ExecutionPlan` that follow from these two
//! ```
//!
//! The frame holds the dynamic filters, so no node can forget them. `EXPLAIN` shows each filter, and `apply_expressions`
//! visits it: DataFusion computes a filter only if it finds it there. New inputs keep the filters, and a reset drops them.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Statistics, internal_err};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExprRef};
use datafusion::physical_plan::execution_plan::{
    Boundedness, EmissionType, SchedulingType, apply_expression_roots,
};
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation,
};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::{DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};

use super::display;
use super::pruning::dynamic::dynamic_filters;

/// The parts that every node holds.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    properties: Arc<PlanProperties>,
    /// Dynamic filters over the output; rows for which one is not true may be left out.
    filters: Vec<PhysicalExprRef>,
    metrics: ExecutionPlanMetricsSet,
}

impl Frame {
    /// Makes the frame of a node that has not run, without filters.
    pub(crate) fn new(properties: impl Into<Arc<PlanProperties>>) -> Self {
        let metrics = ExecutionPlanMetricsSet::new();
        Self { properties: properties.into(), filters: vec![], metrics }
    }

    /// Returns the same frame with these filters instead of its own.
    pub(crate) fn with_filters(self, filters: Vec<PhysicalExprRef>) -> Self {
        Self { filters, ..self }
    }

    /// Returns the same frame for a node that counts in these metrics.
    pub(crate) fn with_metrics(self, metrics: ExecutionPlanMetricsSet) -> Self {
        Self { metrics, ..self }
    }

    /// Returns the same frame for a node that has not run.
    pub(crate) fn anew(&self) -> Self {
        Self { metrics: ExecutionPlanMetricsSet::new(), ..self.clone() }
    }

    pub(crate) fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    pub(crate) fn filters(&self) -> &[PhysicalExprRef] {
        &self.filters
    }

    pub(crate) fn metrics(&self) -> &ExecutionPlanMetricsSet {
        &self.metrics
    }
}

/// The part that is special to a node.
pub(crate) trait Operator: ExecutionPlan + Clone {
    /// Returns what the node holds as all others do.
    fn frame(&self) -> &Frame;

    /// Returns the same node with another frame, as one that has not run.
    fn with_frame(&self, frame: Frame) -> Self;

    /// Returns the name in `EXPLAIN`.
    fn title(&self) -> &str {
        Self::static_name()
    }

    /// Returns the parts of the text in `EXPLAIN`, without the dynamic filters.
    fn text(&self) -> Vec<String> {
        vec![]
    }

    /// Returns the children.
    fn inputs(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![]
    }

    /// Returns the same node over other inputs, of which there are as many.
    fn over(&self, inputs: &[Arc<dyn ExecutionPlan>]) -> Result<Self> {
        let _ = inputs;
        Ok(self.clone())
    }

    /// Returns the node as it was before it ran. Operators above make new filters then, which they do not push down again.
    fn reset(&self) -> Result<Self> {
        Ok(self.with_frame(self.frame().anew().with_filters(vec![])))
    }

    /// Returns the expressions that the node evaluates besides the dynamic filters.
    fn expressions(&self) -> Vec<PhysicalExprRef> {
        vec![]
    }

    /// Returns those of the dynamic filters over the output that the node can use.
    fn usable(&self, filters: Vec<PhysicalExprRef>) -> Vec<PhysicalExprRef> {
        let _ = filters;
        vec![]
    }

    /// Answers to filters that operators above pushed down.
    fn pushed(
        &self,
        phase: FilterPushdownPhase,
        pushed: ChildPushdownResult,
    ) -> FilterPushdownPropagation<Arc<dyn ExecutionPlan>> {
        take_filters(self, phase, pushed)
    }

    /// Returns the statistics of the rows of one partition or of all, as they are without dynamic filters.
    fn estimate(&self, partition: Option<usize>) -> Result<Statistics> {
        let _ = partition;
        Ok(Statistics::new_unknown(&self.schema()))
    }

    /// Returns the rows of a partition that the node has. Nothing runs before the first poll.
    fn stream(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream>;

    /// Returns what the node has measured.
    fn measured(&self) -> Option<MetricsSet> {
        Some(self.frame().metrics.clone_inner())
    }
}

/// Writes the methods of `ExecutionPlan` that follow from [`Operator`]. A node adds those that only it has.
macro_rules! operator_methods {
    () => {
        fn name(&self) -> &str {
            $crate::exec::operator::Operator::title(self)
        }

        fn properties(&self) -> &::std::sync::Arc<::datafusion::physical_plan::PlanProperties> {
            $crate::exec::operator::Operator::frame(self).properties()
        }

        fn children(
            &self,
        ) -> Vec<&::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>> {
            $crate::exec::operator::Operator::inputs(self)
        }

        fn apply_expressions(
            &self,
            visit: &mut dyn FnMut(
                &::datafusion::physical_expr::PhysicalExprRef,
            ) -> ::datafusion::error::Result<
                ::datafusion::common::tree_node::TreeNodeRecursion,
            >,
        ) -> ::datafusion::error::Result<::datafusion::common::tree_node::TreeNodeRecursion> {
            $crate::exec::operator::visit_expressions(self, visit)
        }

        fn replace_children(
            self: ::std::sync::Arc<Self>,
            children: Vec<::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>>,
            _: ::datafusion::physical_plan::execution_plan::ReplaceChildrenOptions,
        ) -> ::datafusion::error::Result<
            ::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>,
        > {
            $crate::exec::operator::replace_inputs(self, &children)
        }

        fn with_new_children(
            self: ::std::sync::Arc<Self>,
            children: Vec<::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>>,
        ) -> ::datafusion::error::Result<
            ::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>,
        > {
            $crate::exec::operator::replace_inputs(self, &children)
        }

        fn reset_state(
            self: ::std::sync::Arc<Self>,
        ) -> ::datafusion::error::Result<
            ::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>,
        > {
            Ok(::std::sync::Arc::new($crate::exec::operator::Operator::reset(&*self)?))
        }

        fn handle_child_pushdown_result(
            &self,
            phase: ::datafusion::physical_plan::filter_pushdown::FilterPushdownPhase,
            pushed: ::datafusion::physical_plan::filter_pushdown::ChildPushdownResult,
            _: &::datafusion::config::ConfigOptions,
        ) -> ::datafusion::error::Result<
            ::datafusion::physical_plan::filter_pushdown::FilterPushdownPropagation<
                ::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>,
            >,
        > {
            Ok($crate::exec::operator::Operator::pushed(self, phase, pushed))
        }

        fn statistics_from_inputs(
            &self,
            _: &[::std::sync::Arc<::datafusion::common::Statistics>],
            args: &::datafusion::physical_plan::statistics::StatisticsArgs,
        ) -> ::datafusion::error::Result<::std::sync::Arc<::datafusion::common::Statistics>> {
            $crate::exec::operator::statistics(self, args.partition())
        }

        fn execute(
            &self,
            partition: usize,
            context: ::std::sync::Arc<::datafusion::execution::TaskContext>,
        ) -> ::datafusion::error::Result<::datafusion::execution::SendableRecordBatchStream> {
            $crate::exec::operator::execute(self, partition, context)
        }

        fn metrics(&self) -> Option<::datafusion::physical_plan::metrics::MetricsSet> {
            $crate::exec::operator::Operator::measured(self)
        }
    };
}
pub(crate) use operator_methods;

/// Makes the text of a node that of [`Operator::text`].
macro_rules! shown_by_text {
    ($node:ty) => {
        impl ::datafusion::physical_plan::DisplayAs for $node {
            fn fmt_as(
                &self,
                format: ::datafusion::physical_plan::DisplayFormatType,
                f: &mut ::std::fmt::Formatter<'_>,
            ) -> ::std::fmt::Result {
                $crate::exec::operator::show(self, format, f)
            }
        }
    };
}
pub(crate) use shown_by_text;

/// Writes a node as `name: part, part`, or its parts alone in a drawn tree.
pub(crate) fn show<O: Operator>(
    node: &O,
    format: DisplayFormatType,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let mut parts = node.text();
    parts.extend(display::filters(&node.frame().filters));
    match format {
        DisplayFormatType::Default | DisplayFormatType::Verbose => {
            write!(f, "{}: {}", node.title(), parts.join(", "))
        }
        DisplayFormatType::TreeRender => display::tree(&parts, f),
    }
}

/// Visits the expressions of a node, and its dynamic filters.
pub(crate) fn visit_expressions<O: Operator>(
    node: &O,
    visit: &mut dyn FnMut(&PhysicalExprRef) -> Result<TreeNodeRecursion>,
) -> Result<TreeNodeRecursion> {
    apply_expression_roots(node.expressions().iter().chain(&node.frame().filters), visit)
}

/// Returns `node` over other inputs.
pub(crate) fn replace_inputs<O: Operator>(
    node: Arc<O>,
    inputs: &[Arc<dyn ExecutionPlan>],
) -> Result<Arc<dyn ExecutionPlan>> {
    match (node.inputs().len(), inputs.len()) {
        (0, 0) => Ok(node),
        (known, count) if known == count => Ok(Arc::new(node.over(inputs)?)),
        (known, count) => {
            internal_err!("{} has {known} children, and {count} were given", node.title())
        }
    }
}

/// Adds the dynamic filters to a node that it can use.
pub(crate) fn take_filters<O: Operator>(
    node: &O,
    phase: FilterPushdownPhase,
    pushed: ChildPushdownResult,
) -> FilterPushdownPropagation<Arc<dyn ExecutionPlan>> {
    dynamic_filters(phase, pushed, |filters| {
        let (usable, known) = (node.usable(filters), node.frame().filters.clone());
        let frame = |usable| node.frame().anew().with_filters([known, usable].concat());
        (!usable.is_empty()).then(|| node.with_frame(frame(usable)))
    })
}

/// Returns the statistics of a partition, or of all. With dynamic filters, some of the planned rows do not come.
pub(crate) fn statistics<O: Operator>(
    node: &O,
    partition: Option<usize>,
) -> Result<Arc<Statistics>> {
    if let Some(partition) = partition {
        check(node, partition)?;
    }
    let statistics = node.estimate(partition)?;
    let exact = node.frame().filters.is_empty();
    Ok(Arc::new(if exact { statistics } else { statistics.to_inexact() }))
}

/// Returns the rows of a partition.
pub(crate) fn execute<O: Operator>(
    node: &O,
    partition: usize,
    context: Arc<TaskContext>,
) -> Result<SendableRecordBatchStream> {
    check(node, partition)?;
    node.stream(partition, context)
}

/// Fails unless a node has a partition of this number.
fn check<O: Operator>(node: &O, partition: usize) -> Result<()> {
    match node.frame().properties.output_partitioning().partition_count() {
        count if partition < count => Ok(()),
        count => internal_err!("{} has no partition {partition} but {count}", node.title()),
    }
}

/// Returns what a node declares whose rows end. All nodes let others run between their batches.
pub(crate) fn declared(
    equivalences: EquivalenceProperties,
    partitioning: Partitioning,
    emission: EmissionType,
) -> PlanProperties {
    PlanProperties::new(equivalences, partitioning, emission, Boundedness::Bounded)
        .with_scheduling_type(SchedulingType::Cooperative)
}

#[cfg(test)]
mod tests;
