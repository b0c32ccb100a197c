//! The frame gives a node what all share.

use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::stats::Precision;
use datafusion::config::ConfigOptions;
use datafusion::physical_expr::expressions::{
    Column as PhysicalColumn, DynamicFilterPhysicalExpr, lit,
};
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::filter_pushdown::ChildFilterPushdownResult;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{displayable, metrics::MetricBuilder};

use super::*;

/// An operator of two partitions with an input, which can use filters over its first column.
#[derive(Debug, Clone)]
struct Dummy {
    frame: Frame,
    input: Arc<dyn ExecutionPlan>,
}

shown_by_text!(Dummy);

impl Operator for Dummy {
    fn frame(&self) -> &Frame {
        &self.frame
    }

    fn with_frame(&self, frame: Frame) -> Self {
        Self { frame, ..self.clone() }
    }

    fn text(&self) -> Vec<String> {
        vec!["a=1".to_owned(), "b=2".to_owned()]
    }

    fn inputs(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn over(&self, inputs: &[Arc<dyn ExecutionPlan>]) -> Result<Self> {
        Ok(Self { input: Arc::clone(&inputs[0]), ..self.with_frame(self.frame.anew()) })
    }

    fn expressions(&self) -> Vec<PhysicalExprRef> {
        vec![lit(5)]
    }

    fn usable(&self, filters: Vec<PhysicalExprRef>) -> Vec<PhysicalExprRef> {
        let of_first = |it: &PhysicalExprRef| crate::exec::columns::columns_of([it]) == [0];
        filters.into_iter().filter(of_first).collect()
    }

    fn estimate(&self, partition: Option<usize>) -> Result<Statistics> {
        let rows = partition.map_or(30, |partition| 10 * (partition + 1));
        let unknown = Statistics::new_unknown(&self.schema());
        Ok(Statistics { num_rows: Precision::Exact(rows), ..unknown })
    }

    fn stream(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        MetricBuilder::new(self.frame.metrics()).counter("runs", 0).add(1);
        self.input.execute(0, context)
    }
}

impl ExecutionPlan for Dummy {
    operator_methods!();
}

fn dummy() -> Arc<dyn ExecutionPlan> {
    let fields = ["x", "y"].map(|name| Field::new(name, DataType::Int64, false));
    let schema = Arc::new(Schema::new(fields.to_vec()));
    let properties = declared(
        EquivalenceProperties::new(Arc::clone(&schema)),
        Partitioning::UnknownPartitioning(2),
        EmissionType::Incremental,
    );
    let input = Arc::new(EmptyExec::new(schema));
    Arc::new(Dummy { frame: Frame::new(properties), input })
}

/// A dynamic filter over a column.
fn filter(name: &str, at: usize) -> PhysicalExprRef {
    let column: PhysicalExprRef = Arc::new(PhysicalColumn::new(name, at));
    Arc::new(DynamicFilterPhysicalExpr::new(vec![column], lit(true)))
}

/// Pushes filters down to a node; returns the node that took some.
fn push(
    node: &Arc<dyn ExecutionPlan>,
    phase: FilterPushdownPhase,
    filters: &[PhysicalExprRef],
) -> Option<Arc<dyn ExecutionPlan>> {
    let parent = |filter: &PhysicalExprRef| ChildFilterPushdownResult {
        filter: Arc::clone(filter),
        child_results: vec![],
    };
    let parent_filters = filters.iter().map(parent).collect();
    let pushed = ChildPushdownResult { parent_filters, self_filters: vec![] };
    let config = ConfigOptions::new();
    let answer = node.handle_child_pushdown_result(phase, pushed, &config).unwrap();
    assert_eq!(answer.filters.len(), filters.len());
    answer.updated_node
}

fn text(node: &Arc<dyn ExecutionPlan>) -> String {
    displayable(node.as_ref()).one_line().to_string().trim_end().to_owned()
}

fn visited(node: &Arc<dyn ExecutionPlan>) -> Vec<String> {
    let mut found = vec![];
    let mut visit = |expr: &PhysicalExprRef| {
        found.push(expr.to_string());
        Ok(TreeNodeRecursion::Continue)
    };
    node.apply_expressions(&mut visit).unwrap();
    found
}

fn rows(node: &Arc<dyn ExecutionPlan>, partition: Option<usize>) -> Result<Precision<usize>> {
    let arguments = StatisticsArgs::new().with_partition(partition);
    Ok(node.statistics_from_inputs(&[], &arguments)?.num_rows)
}

#[test]
fn a_dynamic_filter_is_taken_shown_visited_and_kept() {
    const FILTER: &str = "DynamicFilter [ empty ]";
    let plain = dummy();
    assert_eq!(text(&plain), "Dummy: a=1, b=2");
    let (x, y) = (filter("x", 0), filter("y", 1));
    // Rules may still replace the operators that compute filters.
    assert!(push(&plain, FilterPushdownPhase::Pre, std::slice::from_ref(&x)).is_none());
    assert!(push(&plain, FilterPushdownPhase::Post, &[lit(true), Arc::clone(&y)]).is_none());
    let once = push(&plain, FilterPushdownPhase::Post, &[Arc::clone(&x), y]).unwrap();
    let twice = push(&once, FilterPushdownPhase::Post, &[x]).unwrap();
    assert_eq!(visited(&plain), ["5"]);
    assert_eq!(visited(&twice), ["5", FILTER, FILTER]);
    let keep = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
    let children = twice.children().into_iter().map(Arc::clone).collect();
    let again = Arc::clone(&twice).replace_children(children, keep).unwrap();
    for node in [&twice, &again] {
        assert_eq!(text(node), format!("Dummy: a=1, b=2, filters=[{FILTER}, {FILTER}]"));
        assert_eq!(visited(node), ["5", FILTER, FILTER]);
    }
    let reset = again.reset_state().unwrap();
    assert_eq!((text(&reset), visited(&reset)), (text(&plain), visited(&plain)));
}

#[test]
fn statistics_are_those_of_the_partition() {
    let plain = dummy();
    for (partition, expected) in [(None, 30), (Some(0), 10), (Some(1), 20)] {
        assert_eq!(rows(&plain, partition).unwrap(), Precision::Exact(expected));
        // A filter leaves out some of the rows.
        let filtered = push(&plain, FilterPushdownPhase::Post, &[filter("x", 0)]).unwrap();
        assert_eq!(rows(&filtered, partition).unwrap(), Precision::Inexact(expected));
    }
    let error = rows(&plain, Some(2)).unwrap_err().to_string();
    assert!(error.contains("Dummy has no partition 2 but 2"), "{error}");
}

#[test]
fn other_partitions_and_children_are_errors() {
    let node = dummy();
    let error = node.execute(2, Arc::default()).err().unwrap().to_string();
    assert!(error.contains("Dummy has no partition 2 but 2"), "{error}");
    let recompute = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    for children in [vec![], vec![dummy(), dummy()]] {
        let given = children.len();
        let replaced = Arc::clone(&node).replace_children(children, recompute);
        let error = replaced.unwrap_err().to_string();
        assert!(error.contains(&format!("Dummy has 1 children, and {given}")), "{error}");
    }
}

#[test]
fn what_was_measured_is_not_shared() {
    let node = dummy();
    drop(node.execute(0, Arc::default()).unwrap());
    let count = |node: &Arc<dyn ExecutionPlan>| node.metrics().unwrap().iter().count();
    let children = node.children().into_iter().map(Arc::clone).collect();
    let recompute = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    let again = Arc::clone(&node).replace_children(children, recompute).unwrap();
    assert_eq!((count(&node), count(&again)), (1, 0));
    assert_eq!(count(&node.reset_state().unwrap()), 0);
}
