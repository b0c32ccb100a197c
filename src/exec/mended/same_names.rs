//! Columns with the same name, such as those of joined arrays: DataFusion pushes filters down by the names of their columns. So a
//! filter on one side of a join may end at the other side, and a TopK may leave out its own rows.
//!
//! | operator | DataFusion finds columns | so it confuses |
//! |---|---|---|
//! | projection | of its output by name, of its input by index | names that it returns twice |
//! | hash join | by its sides, and in each by the first of the name | a later column of a name in one side |
//! | semi join, for its keys | of the side that it does not return, by the name of the other side | a key whose name another column there has |
//! | others | by name | names that they read or return twice |

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{FieldRef, Schema};
use datafusion::common::tree_node::{TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinSide, JoinType};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::Column as PhysicalColumn;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterDescription, FilterPushdownPhase, FilterPushdownPropagation,
};
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::joins::utils::build_join_schema;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use crate::exec::columns::replace_columns;
use crate::exec::rules::walk::up;

/// A rule of DataFusion that pushes filters down, for plans with columns of the same name.
#[derive(Debug)]
pub(in crate::exec) struct PushdownByIndex(
    pub(in crate::exec) Arc<dyn PhysicalOptimizerRule + Send + Sync>,
);

impl PhysicalOptimizerRule for PushdownByIndex {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if !plan.exists(|node| Ok(is_ambiguous(node.as_ref())))? {
            return self.0.optimize(plan, config);
        }
        let wrap = |node: &Arc<dyn ExecutionPlan>| {
            let is_ambiguous = is_ambiguous(node.as_ref());
            Ok(is_ambiguous.then(|| Arc::new(ByIndex(Arc::clone(node))) as _))
        };
        let pushed = self.0.optimize(up(plan, wrap).data()?, config)?;
        up(pushed, |node| Ok(node.downcast_ref::<ByIndex>().map(|it| Arc::clone(&it.0)))).data()
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

/// Whether DataFusion may confuse columns when it pushes filters through an operator.
fn is_ambiguous(node: &dyn ExecutionPlan) -> bool {
    let repeats_input = || node.children().iter().any(|it| has_same_names(&it.schema()));
    if node.is::<ProjectionExec>() {
        return has_same_names(&node.schema());
    }
    if let Some(join) = node.downcast_ref::<HashJoinExec>() {
        let mut keys = join.on().iter().flat_map(|(left, right)| [left, right]);
        let is_other = |key: &PhysicalColumn| is_other_key(join, key.index(), key.name());
        return repeats_input() || keys.any(|key| key.downcast_ref().is_some_and(is_other));
    }
    !node.children().is_empty() && (has_same_names(&node.schema()) || repeats_input())
}

/// Whether a semi join would push a filter over this key of the side that it returns to a wrong column of the other side: one that
/// has the name of the key, and is not the key.
fn is_other_key(join: &HashJoinExec, key: usize, name: &str) -> bool {
    let (is_left, other) = match join.join_type() {
        JoinType::LeftSemi => (true, join.right()),
        JoinType::RightSemi => (false, join.left()),
        _ => return false,
    };
    let Ok(found) = other.schema().index_of(name) else { return false };
    let index =
        |it: &PhysicalExprRef| it.downcast_ref::<PhysicalColumn>().map(PhysicalColumn::index);
    let pairs =
        join.on().iter().map(|(left, right)| if is_left { (left, right) } else { (right, left) });
    let mut keys =
        pairs.filter(|(own, _)| index(own) == Some(key)).map(|(_, its)| index(its)).peekable();
    keys.peek().is_some() && keys.all(|its| its != Some(found))
}

/// Whether a hash join would find another column than this one of its output, by the name in one of its sides.
fn is_confused(join: &HashJoinExec, column: &PhysicalColumn) -> bool {
    let (left, right) = (join.left().schema(), join.right().schema());
    let (_, sources) = build_join_schema(&left, &right, join.join_type());
    let at = match &join.projection {
        Some(projection) => projection.get(column.index()).copied(),
        None => Some(column.index()),
    };
    let Some(source) = at.and_then(|at| sources.get(at)) else { return true };
    let side = match source.side {
        JoinSide::Left => left,
        JoinSide::Right => right,
        JoinSide::None => return true,
    };
    side.index_of(column.name()).ok() != Some(source.index)
        || is_other_key(join, source.index, column.name())
}

/// Whether several columns have the same name. Few columns are compared without a set, because every plan is checked.
fn has_same_names(schema: &Schema) -> bool {
    const FEW: usize = 16;
    let fields = schema.fields();
    if fields.len() > FEW {
        let mut seen = HashSet::new();
        return !fields.iter().all(|field| seen.insert(field.name()));
    }
    let is_again = |(at, field): (usize, &FieldRef)| {
        fields[..at].iter().any(|before| before.name() == field.name())
    };
    fields.iter().enumerate().any(is_again)
}

/// Whether several columns have this name.
fn is_repeated(schema: &Schema, name: &str) -> bool {
    schema.fields().iter().filter(|field| field.name() == name).count() > 1
}

/// An operator that has columns of the same name, or reads them. It is in plans only while filters are pushed down.
#[derive(Debug)]
struct ByIndex(Arc<dyn ExecutionPlan>);

impl ByIndex {
    /// Whether the operator would confuse a column of the filter with another one.
    fn confuses(&self, filter: &PhysicalExprRef) -> bool {
        if let Some(join) = self.0.downcast_ref::<HashJoinExec>() {
            return collect_columns(filter).iter().any(|column| is_confused(join, column));
        }
        let all = self.0.children().into_iter().chain([&self.0]);
        let schemas: Vec<_> = all.map(|it| it.schema()).collect();
        let is_confused = |column: &PhysicalColumn| {
            schemas.iter().any(|schema| is_repeated(schema, column.name()))
        };
        collect_columns(filter).iter().any(is_confused)
    }
}

/// Returns a projection with the same columns, whose names are their indices.
fn with_numbers(projection: &ProjectionExec) -> Result<ProjectionExec> {
    let columns = projection.expr().iter().enumerate();
    let columns = columns.map(|(at, column)| (Arc::clone(&column.expr), at.to_string()));
    ProjectionExec::try_new(columns.collect::<Vec<_>>(), Arc::clone(projection.input()))
}

/// A filter that no operator pushes down.
fn no_filter() -> PhysicalExprRef {
    Arc::new(PhysicalColumn::new("no column", usize::MAX))
}

impl DisplayAs for ByIndex {
    fn fmt_as(&self, kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt_as(kind, f)
    }
}

impl ExecutionPlan for ByIndex {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.0.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.0.children()
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&PhysicalExprRef) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.0.apply_expressions(visit)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self(Arc::clone(&self.0).replace_children(children, options)?)))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let recompute = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        self.replace_children(children, recompute)
    }

    fn gather_filters_for_pushdown(
        &self,
        phase: FilterPushdownPhase,
        filters: Vec<PhysicalExprRef>,
        config: &ConfigOptions,
    ) -> Result<FilterDescription> {
        let Some(projection) = self.0.downcast_ref::<ProjectionExec>() else {
            let known = |it: PhysicalExprRef| if self.confuses(&it) { no_filter() } else { it };
            let filters = filters.into_iter().map(known).collect();
            return self.0.gather_filters_for_pushdown(phase, filters, config);
        };
        let by_number = |filter: &PhysicalExprRef| {
            replace_columns(filter, &|column| {
                let at = column.index();
                Some(Arc::new(PhysicalColumn::new(&at.to_string(), at)))
            })
        };
        let filters = filters.iter().map(by_number).collect::<Result<_>>()?;
        with_numbers(projection)?.gather_filters_for_pushdown(phase, filters, config)
    }

    fn handle_child_pushdown_result(
        &self,
        phase: FilterPushdownPhase,
        pushed: ChildPushdownResult,
        config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        // A filter that returns only some columns takes over those of its parent by the names in its input.
        let is_projected = |it: &FilterExec| it.projection().is_some();
        if self.0.downcast_ref::<FilterExec>().is_some_and(is_projected)
            && pushed.parent_filters.iter().any(|it| self.confuses(&it.filter))
        {
            return Ok(FilterPushdownPropagation::if_all(pushed));
        }
        self.0.handle_child_pushdown_result(phase, pushed, config)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.0.execute(partition, context)
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field};
    use datafusion::common::NullEquality;
    use datafusion::logical_expr::Operator;
    use datafusion::physical_expr::expressions::{binary, col, is_null, lit};
    use datafusion::physical_optimizer::filter_pushdown::FilterPushdown;
    use datafusion::physical_plan::displayable;
    use datafusion::physical_plan::empty::EmptyExec;
    use datafusion::physical_plan::joins::PartitionMode;

    use super::*;

    #[test]
    fn repeated_names_are_found_among_few_and_many() {
        for count in [0, 1, 2, 15, 16, 17, 40] {
            let field = |at: usize| Field::new(format!("c{at}"), DataType::Int64, true);
            let fields: Vec<Field> = (0..count).map(field).collect();
            assert!(!has_same_names(&Schema::new(fields.clone())), "{count}");
            for again in 0..count {
                let twice = [&fields[..], &[field(again)]].concat();
                assert!(has_same_names(&Schema::new(twice)), "{count} {again}");
            }
        }
    }

    /// Returns a table whose columns are `k` and `v`, with a filter to which others are added.
    fn table() -> Arc<dyn ExecutionPlan> {
        let fields = ["k", "v"].map(|name| Field::new(name, DataType::Int64, true));
        let empty = Arc::new(EmptyExec::new(Arc::new(Schema::new(fields.to_vec()))));
        let known = is_null(col("v", &empty.schema()).unwrap()).unwrap();
        Arc::new(FilterExec::try_new(known, empty).unwrap())
    }

    /// Returns a join of two tables, and both columns `v` above it.
    fn joined(join_type: JoinType) -> Arc<dyn ExecutionPlan> {
        let (left, right) = (table(), table());
        let key = || col("k", &left.schema()).unwrap();
        let (on, nulls) = (vec![(key(), key())], NullEquality::NullEqualsNothing);
        let mode = PartitionMode::CollectLeft;
        let join =
            HashJoinExec::try_new(left, right, on, None, &join_type, None, mode, nulls, false);
        let columns = [1, 3].map(|at| -> (PhysicalExprRef, String) {
            (Arc::new(PhysicalColumn::new("v", at)), "v".to_owned())
        });
        Arc::new(ProjectionExec::try_new(columns.to_vec(), Arc::new(join.unwrap())).unwrap())
    }

    /// Pushes `v > 0` down, where `column` is the number of one of both columns.
    fn pushed(column: usize, join_type: JoinType) -> String {
        let input = joined(join_type);
        let column: PhysicalExprRef = Arc::new(PhysicalColumn::new("v", column));
        let filter = binary(column, Operator::Gt, lit(0_i64), &input.schema()).unwrap();
        let plan = Arc::new(FilterExec::try_new(filter, input).unwrap());
        let rule = PushdownByIndex(Arc::new(FilterPushdown::new()));
        let plan = rule.optimize(plan, &ConfigOptions::new()).unwrap();
        displayable(plan.as_ref()).indent(false).to_string()
    }

    #[test]
    fn filters_go_to_their_own_side() {
        insta::assert_snapshot!(pushed(0, JoinType::Inner), @r"
        ProjectionExec: expr=[v@1 as v, v@3 as v]
          HashJoinExec: mode=CollectLeft, join_type=Inner, on=[(k@0, k@0)]
            FilterExec: v@1 > 0 AND v@1 IS NULL
              EmptyExec
            FilterExec: v@1 IS NULL
              EmptyExec
        ");
        insta::assert_snapshot!(pushed(1, JoinType::Inner), @r"
        ProjectionExec: expr=[v@1 as v, v@3 as v]
          HashJoinExec: mode=CollectLeft, join_type=Inner, on=[(k@0, k@0)]
            FilterExec: v@1 IS NULL
              EmptyExec
            FilterExec: v@1 > 0 AND v@1 IS NULL
              EmptyExec
        ");
    }

    /// Rows without a match have NULL there.
    #[test]
    fn filters_on_the_side_that_a_join_fills_up_stay_above_it() {
        for (join_type, column) in [(JoinType::Right, 0), (JoinType::Left, 1), (JoinType::Full, 0)]
        {
            let plan = pushed(column, join_type);
            let (above, below) = plan.split_once("HashJoinExec").unwrap();
            assert!(above.contains(" > 0") && !below.contains(" > 0"), "{plan}");
        }
    }

    /// Returns `l(a, k)` where a row of `r(k, a)` has `l.k = r.a`, or the other way round.
    fn semi_joined(join_type: JoinType) -> (Arc<dyn ExecutionPlan>, usize) {
        let side = |names: [&str; 2]| -> Arc<dyn ExecutionPlan> {
            let fields = names.map(|name| Field::new(name, DataType::Int64, true));
            Arc::new(EmptyExec::new(Arc::new(Schema::new(fields.to_vec()))))
        };
        let (left, right) = (side(["a", "k"]), side(["k", "a"]));
        let key = |input: &Arc<dyn ExecutionPlan>, at: usize| -> PhysicalExprRef {
            Arc::new(PhysicalColumn::new(input.schema().field(at).name(), at))
        };
        let on = vec![(key(&left, 1), key(&right, 1))];
        let (mode, nulls) = (PartitionMode::CollectLeft, NullEquality::NullEqualsNothing);
        let join =
            HashJoinExec::try_new(left, right, on, None, &join_type, None, mode, nulls, false);
        (Arc::new(join.unwrap()), 1)
    }

    /// The side that a semi join does not return has another column of the name of the key.
    #[test]
    fn keys_of_semi_joins_do_not_become_other_columns() {
        for join_type in [JoinType::LeftSemi, JoinType::RightSemi] {
            let (join, key) = semi_joined(join_type);
            let column = PhysicalColumn::new(join.schema().field(key).name(), key);
            let filter = binary(Arc::new(column), Operator::Gt, lit(0_i64), &join.schema());
            let plan = Arc::new(FilterExec::try_new(filter.unwrap(), join).unwrap());
            let rule = PushdownByIndex(Arc::new(FilterPushdown::new()));
            let plan = rule.optimize(plan, &ConfigOptions::new()).unwrap();
            let plan = displayable(plan.as_ref()).indent(false).to_string();
            let (above, below) = plan.split_once("HashJoinExec").unwrap();
            assert!(above.contains(" > 0") && !below.contains(" > 0"), "{plan}");
        }
    }

    /// The first of several columns of a name in one side is found, and the others are not.
    #[test]
    fn the_first_column_of_a_name_is_still_pushed_down() {
        let (left, right) = (joined(JoinType::Inner), table());
        let key = |at| -> PhysicalExprRef { Arc::new(PhysicalColumn::new("v", at)) };
        let (mode, nulls) = (PartitionMode::CollectLeft, NullEquality::NullEqualsNothing);
        let on = vec![(key(0), key(1))];
        let join = HashJoinExec::try_new(
            left,
            right,
            on,
            None,
            &JoinType::Inner,
            None,
            mode,
            nulls,
            false,
        );
        let node = ByIndex(Arc::new(join.unwrap()));
        assert!(!node.confuses(&key(0)) && node.confuses(&key(1)) && !node.confuses(&key(3)));
    }

    /// Operators that pass rows on know columns only by name.
    #[test]
    fn names_that_an_input_has_twice_stop_a_filter() {
        let columns: PhysicalExprRef = Arc::new(PhysicalColumn::new("v", 1));
        let twice = joined(JoinType::Inner);
        let filter = Arc::new(FilterExec::try_new(is_null(columns).unwrap(), twice).unwrap());
        let node = ByIndex(filter);
        let [first, second] =
            [0, 1].map(|at| -> PhysicalExprRef { Arc::new(PhysicalColumn::new("v", at)) });
        assert!(node.confuses(&first) && node.confuses(&second));
        let own = ByIndex(table());
        assert!(!own.confuses(&col("v", &own.schema()).unwrap()));
    }
}
