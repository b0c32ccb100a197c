//! Lookups compared with the hash joins that they replace.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema};
use arrow::util::display::array_value_to_string;
use datafusion::common::{JoinType, NullEquality};
use datafusion::config::ConfigOptions;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::{DynamicFilterPhysicalExpr, binary, col, lit};
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::filter_pushdown::{
    ChildFilterPushdownResult, ChildPushdownResult, FilterPushdownPhase,
};
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::metrics::MetricValue;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, collect};

use super::grid_lookup::GridLookup;
use super::node::GridLookupExec;
use crate::exec::test_array::scan;

const STATIONS: [&str; 4] = ["a", "b", "c", "d"];

/// Returns rows of stations, in a column called `key`, with their heights.
fn heights(key: &str, stations: &[Option<&str>]) -> Arc<dyn ExecutionPlan> {
    let of_array = scan(4, &STATIONS, 1).schema().field(1).data_type().clone();
    let keys: ArrayRef = Arc::new(StringArray::from(stations.to_vec()));
    let numbers = (0..stations.len()).map(|row| row as f64 * 100.0);
    let columns: Vec<ArrayRef> =
        vec![cast(&keys, &of_array).unwrap(), Arc::new(Float64Array::from_iter_values(numbers))];
    let fields =
        vec![Field::new(key, of_array, true), Field::new("height", DataType::Float64, false)];
    let schema = Arc::new(Schema::new(fields));
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns).unwrap();
    MemorySourceConfig::try_new_exec(&[vec![batch]], schema, None).unwrap()
}

/// Joins rows of stations, on the left, with an array.
fn join(
    other: Arc<dyn ExecutionPlan>,
    join_type: JoinType,
    null_equality: NullEquality,
) -> Arc<dyn ExecutionPlan> {
    let array: Arc<dyn ExecutionPlan> = Arc::new(scan(4, &STATIONS, 2));
    let key = other.schema().field(0).name().clone();
    let on = vec![(col(&key, &other.schema()).unwrap(), col("station", &array.schema()).unwrap())];
    let mode = PartitionMode::CollectLeft;
    let join =
        HashJoinExec::try_new(other, array, on, None, &join_type, None, mode, null_equality, false);
    Arc::new(join.unwrap())
}

/// Returns the lookup that replaces a join.
fn lookup(join: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    let found = Arc::new(GridLookup::try_new(join).unwrap()?.0);
    let other = Arc::clone(found.other().unwrap());
    Some(Arc::new(GridLookupExec::whole(&found, other).unwrap()))
}

fn inner(key: &str, stations: &[Option<&str>]) -> Arc<dyn ExecutionPlan> {
    let join = join(heights(key, stations), JoinType::Inner, NullEquality::NullEqualsNothing);
    lookup(&join).unwrap()
}

/// Returns the rows of a plan as text, with columns in the order of their names.
async fn rows(plan: &Arc<dyn ExecutionPlan>) -> Vec<String> {
    let mut lines = vec![];
    for batch in collect(Arc::clone(plan), Arc::default()).await.unwrap() {
        let schema = batch.schema();
        let mut columns: Vec<usize> = (0..batch.num_columns()).collect();
        columns.sort_by_key(|column| schema.field(*column).name().clone());
        lines.extend((0..batch.num_rows()).map(|row| {
            let cell = |column: &usize| array_value_to_string(batch.column(*column), row).unwrap();
            columns.iter().map(cell).collect::<Vec<_>>().join(" ")
        }));
    }
    lines.sort();
    lines
}

/// Pushes a dynamic filter down to a lookup; returns the node that took it.
fn pushed(
    lookup: &Arc<dyn ExecutionPlan>,
    filter: &Arc<DynamicFilterPhysicalExpr>,
) -> Option<Arc<dyn ExecutionPlan>> {
    let filter: PhysicalExprRef = Arc::<DynamicFilterPhysicalExpr>::clone(filter);
    let parent = ChildFilterPushdownResult { filter, child_results: vec![] };
    let pushed = ChildPushdownResult { parent_filters: vec![parent], self_filters: vec![] };
    let config = ConfigOptions::new();
    let answer = lookup.handle_child_pushdown_result(FilterPushdownPhase::Post, pushed, &config);
    answer.unwrap().updated_node
}

#[tokio::test]
async fn lookups_return_the_rows_of_hash_joins() {
    // Keys that occur twice, that the array does not have, and NULL.
    let stations = [Some("b"), None, Some("d"), Some("x"), Some("b"), None];
    for join_type in [JoinType::Inner, JoinType::Right, JoinType::RightSemi, JoinType::RightAnti] {
        for nulls in [NullEquality::NullEqualsNothing, NullEquality::NullEqualsNull] {
            let join = join(heights("at", &stations), join_type, nulls);
            let lookup = lookup(&join).unwrap();
            let expected = rows(&join).await;
            assert!(!expected.is_empty(), "{join_type}");
            assert_eq!(rows(&lookup).await, expected, "{join_type}");
        }
    }
    // These return rows of the other side.
    for join_type in [JoinType::Left, JoinType::Full, JoinType::LeftSemi, JoinType::LeftAnti] {
        let join = join(heights("at", &stations), join_type, NullEquality::NullEqualsNothing);
        assert!(lookup(&join).is_none(), "{join_type}");
    }
}

#[tokio::test]
async fn another_input_is_read_anew() {
    let first = inner("at", &[Some("a")]);
    assert_eq!(rows(&first).await.len(), 4);
    let recompute = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    let other = heights("at", &[Some("b"), Some("c")]);
    let second = Arc::clone(&first).replace_children(vec![other], recompute).unwrap();
    assert_eq!(rows(&second).await.len(), 8);
    assert_eq!(rows(&first).await.len(), 4);
    assert_eq!(rows(&second.reset_state().unwrap()).await.len(), 8);
}

#[test]
fn statistics_are_those_of_the_partition() {
    let lookup = inner("at", &[Some("a")]);
    let rows = |partition: Option<usize>| {
        let arguments = StatisticsArgs::new().with_partition(partition);
        let statistics = StatisticsContext::new().compute(lookup.as_ref(), &arguments).unwrap();
        statistics.num_rows.get_value().copied().unwrap()
    };
    assert_eq!(lookup.output_partitioning().partition_count(), 2);
    assert_eq!([rows(None), rows(Some(0)), rows(Some(1))], [16, 8, 8]);
}

#[tokio::test]
async fn dynamic_filters_over_the_array_skip_chunks() {
    let plain = inner("at", &STATIONS.map(Some));
    let station = col("station", &plain.schema()).unwrap();
    let filter = Arc::new(DynamicFilterPhysicalExpr::new(vec![Arc::clone(&station)], lit(true)));
    let filtered = pushed(&plain, &filter).unwrap();
    // An operator above learns this while the query runs.
    let schema = plain.schema();
    let text = schema.field(schema.index_of("station").unwrap()).data_type();
    let wanted = datafusion::common::ScalarValue::from("a").cast_to(text).unwrap();
    filter.update(binary(station, Operator::Eq, lit(wanted), &schema).unwrap()).unwrap();
    filter.mark_complete();
    let found = rows(&filtered).await;
    let of_station = |rows: &[String]| rows.iter().filter(|row| row.contains(" a ")).count();
    assert_eq!(of_station(&found), 4);
    assert!(found.len() <= 8, "{found:?}");
    assert_eq!(rows(&plain).await.len(), 16);
    // Two of four chunks have the station.
    let pruned = |plan: &Arc<dyn ExecutionPlan>| -> usize {
        let metrics = plan.metrics().unwrap();
        let of_metric = |metric: &MetricValue| match metric {
            MetricValue::PruningMetrics { name, pruning_metrics }
                if name == "chunks_pruned_dynamic_filter" =>
            {
                pruning_metrics.pruned()
            }
            _ => 0,
        };
        metrics.iter().map(|metric| of_metric(metric.value())).sum()
    };
    assert_eq!([pruned(&plain), pruned(&filtered)], [0, 2]);
}

/// DataFusion finds the columns of a filter by name, so it may mean the other side.
#[test]
fn filters_over_columns_that_may_be_those_of_the_other_side_are_left_out() {
    let same_name = inner("station", &[Some("a")]);
    let other_name = inner("at", &[Some("a")]);
    let taken = |lookup: &Arc<dyn ExecutionPlan>, column: &str| {
        let column = col(column, &lookup.schema()).unwrap();
        let filter = Arc::new(DynamicFilterPhysicalExpr::new(vec![column], lit(true)));
        pushed(lookup, &filter).is_some()
    };
    assert!(taken(&other_name, "station"));
    assert!(taken(&other_name, "hour"));
    assert!(!taken(&other_name, "at"));
    assert!(!taken(&other_name, "height"));
    assert!(!taken(&same_name, "station"));
    assert!(taken(&same_name, "hour"));
}
