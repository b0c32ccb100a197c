//! The plan of a join of arrays as one scan.

use std::sync::Arc;

use datafusion::common::JoinSide;
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column as PhysicalColumn;
use datafusion::physical_expr::{PhysicalExprRef, conjunction_opt};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::projection::ProjectionExec;

use super::sides::Sides;
use crate::array::{ColumnSource, GridArray};
use crate::exec::GridScanExec;
use crate::exec::columns::{
    columns_of, have_same_types, output_columns, over_columns, replace_columns,
};
use crate::exec::config::GridfusionConfig;
use crate::exec::eager::reduce_below_joins;
use crate::exec::matching::may_fail;
use crate::exec::rules::walk::up;
use crate::plan::{ScanPlan, ScanRequest};
use crate::source::{AlignedArray, JoinedOrigin, TableOrigin};

/// Puts arrays side by side, if a query joins them on all dimensions of one of them. The labels that both have must be a range of
/// both.
pub(in crate::exec) fn put_side_by_side(
    plan: Arc<dyn ExecutionPlan>,
    config: &GridfusionConfig,
) -> Result<Arc<dyn ExecutionPlan>> {
    // From the bottom up, because a join of three arrays is a join of one with two.
    let put = up(plan, |node| {
        let Some(join) = node.downcast_ref::<HashJoinExec>() else { return Ok(None) };
        let Some(sides) = Sides::try_new(join)? else { return Ok(None) };
        aligned(join, &sides, config)
    })?;
    let reduces = config.optimizer.enable_reduce && config.optimizer.enable_eager_aggregation;
    match put.transformed && reduces {
        // Arrays side by side may be joined with a table, too.
        true => reduce_below_joins(put.data, config),
        false => Ok(put.data),
    }
}

/// Returns a scan of both arrays side by side instead of `join`, with the operators above it. `None` if they cannot be
/// combined.
fn aligned(
    join: &HashJoinExec,
    sides: &Sides,
    config: &GridfusionConfig,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(one) = OneScan::try_new(sides)? else { return Ok(None) };
    let columns = output_columns(join).into_iter().map(|(side, column)| {
        let (side, below) = (number(side), &sides.below[number(side)]);
        one.over_array(&below.operators.columns[column], side)
    });
    let columns: Vec<PhysicalExprRef> = columns.collect::<Result<_>>()?;
    if guards(join, sides) {
        return Ok(None);
    }
    let predicate = one.predicate(join, sides)?;
    // The rows of a broadcast array are several, and each would have a random number of its own.
    if columns.iter().chain(&predicate).any(is_volatile) {
        return Ok(None);
    }
    // The scan returns only the columns of the array that are needed.
    let needed = columns_of(columns.iter().chain(&predicate));
    let scan = one.scan(sides, needed.clone(), config)?;
    // The scan has its columns in the order of their numbers.
    let over_scan = |expr: &PhysicalExprRef| over_columns(expr, &needed);
    let columns = columns.iter().map(over_scan).collect::<Result<Vec<_>>>()?;
    let predicate = predicate.as_ref().map(over_scan).transpose()?;
    let mut plan: Arc<dyn ExecutionPlan> = Arc::new(scan);
    if let Some(predicate) = predicate {
        plan = Arc::new(FilterExec::try_new(predicate, plan)?);
    }
    let schema = join.schema();
    let names = schema.fields().iter().map(|field| field.name().clone());
    let columns = columns.into_iter().zip(names).collect::<Vec<_>>();
    // A label of one array stands for that of the other, which may have other attributes.
    let plan = ProjectionExec::try_new_with_schema_metadata(columns, plan, &schema)?;
    let plan: Arc<dyn ExecutionPlan> = Arc::new(plan);
    Ok(have_same_types(plan.as_ref(), join).then_some(plan))
}

/// Whether a predicate below the join may keep rows away on which the condition of the join fails.
fn guards(join: &HashJoinExec, sides: &Sides) -> bool {
    let may_fail = join.filter().is_some_and(|it| may_fail(it.expression(), it.schema()));
    may_fail && sides.below.iter().any(|below| below.operators.predicate.is_some())
}

fn number(side: JoinSide) -> usize {
    usize::from(side == JoinSide::Right)
}

/// Both arrays side by side.
struct OneScan {
    array: Arc<GridArray>,
    origin: Option<TableOrigin>,
    /// Per side and column of its scan, the column of the array.
    columns: [Vec<usize>; 2],
}

impl OneScan {
    /// Puts the arrays of both sides side by side; `None` if they are no table.
    fn try_new(sides: &Sides) -> Result<Option<Self>> {
        let (first, other) = (sides.first, 1 - sides.first);
        let (of_first, of_other) = (sides.scan(first), sides.scan(other));
        let own: Vec<usize> = (0..of_first.array().grid().rank()).collect();
        let both =
            [(of_first, &own, first), (of_other, &sides.axes, other)].map(|(scan, axes, side)| {
                AlignedArray { array: scan.array(), axes, ranges: &sides.ranges[side] }
            });
        let array = match GridArray::side_by_side(&both) {
            Ok(array) => Arc::new(array),
            Err(error) => {
                log::debug!("a join runs over rows, because its arrays are no table: {error}");
                return Ok(None);
            }
        };
        let before = of_first.array().columns().iter().filter_map(|it| it.value()).count();
        let place = |source: ColumnSource| array.columns().iter().position(|it| *it == source);
        let columns = |scan: &GridScanExec, is_first: bool| {
            let column = |source: ColumnSource| {
                place(match (source, is_first) {
                    (source, true) => source,
                    (ColumnSource::Label(axis), _) => ColumnSource::Label(sides.axes[axis]),
                    (ColumnSource::Index(axis), _) => ColumnSource::Index(sides.axes[axis]),
                    (ColumnSource::Value(value), _) => ColumnSource::Value(before + value),
                    (ColumnSource::File(_), _) => return None,
                })
            };
            scan.columns().into_iter().map(column).collect::<Option<Vec<usize>>>()
        };
        let [Some(a), Some(b)] = [columns(of_first, true), columns(of_other, false)] else {
            return Ok(None);
        };
        let columns = if first == 0 { [a, b] } else { [b, a] };
        let origin = origin(&[(of_first, &both[0]), (of_other, &both[1])]);
        Ok(Some(Self { array, origin, columns }))
    }

    /// Rewrites an expression over the scan of a side, over the columns of the array.
    fn over_array(&self, expr: &PhysicalExprRef, side: usize) -> Result<PhysicalExprRef> {
        replace_columns(expr, &|column| {
            let column = *self.columns[side].get(column.index())?;
            let name = self.array.schema().field(column).name();
            Some(Arc::new(PhysicalColumn::new(name, column)))
        })
    }

    /// Returns the predicates of both sides and the condition of the join, over the columns of the array.
    fn predicate(&self, join: &HashJoinExec, sides: &Sides) -> Result<Option<PhysicalExprRef>> {
        let mut predicates = vec![];
        for (side, below) in sides.below.iter().enumerate() {
            predicates
                .extend(below.operators.predicate.as_ref().map(|it| self.over_array(it, side)));
        }
        if let Some(filter) = join.filter() {
            predicates.push(replace_columns(filter.expression(), &|column| {
                let column = filter.column_indices().get(column.index())?;
                let side = number(column.side);
                self.over_array(sides.below[side].operators.columns.get(column.index)?, side).ok()
            }));
        }
        Ok(conjunction_opt(predicates.into_iter().collect::<Result<Vec<_>>>()?))
    }

    /// Returns the scan of the selected cells, with `projection` of the array's columns.
    fn scan(
        &self,
        sides: &Sides,
        projection: Vec<usize>,
        config: &GridfusionConfig,
    ) -> Result<GridScanExec> {
        let scans = [0, 1].map(|side| sides.scan(side));
        let partitions = scans.iter().map(|scan| scan.plan().partition_count()).max();
        let request = ScanRequest {
            selection: sides.selection.clone(),
            partitions: partitions.unwrap_or(1),
            declares_range: config.optimizer.declare_range,
            ..ScanRequest::all(self.array.grid())
        };
        let plan = ScanPlan::new(self.array.grid().clone(), request)?;
        let scan = GridScanExec::try_new(Arc::clone(&self.array), plan, projection)?;
        let scan = scan.with_budget_of(scans[sides.first]);
        Ok(scan.with_origin(self.origin.clone().map(Arc::new)))
    }
}

/// Returns the origin of the arrays of scans side by side; `None` if one has none.
fn origin(scans: &[(&GridScanExec, &AlignedArray<'_>)]) -> Option<TableOrigin> {
    let parts = scans.iter().map(|(scan, AlignedArray { axes, ranges, .. })| {
        let (origin, versions) = (Arc::clone(scan.origin()?), scan.array().versions());
        let (contents, axes, ranges) = (scan.array().contents(), axes.to_vec(), ranges.to_vec());
        Some(JoinedOrigin { origin, versions, contents, axes, ranges })
    });
    TableOrigin::from_side_by_side(parts.collect::<Option<_>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::test_array::rewritten;

    #[tokio::test]
    async fn arrays_are_put_side_by_side() {
        let query = "SELECT t.hour, t.station, t.value - u.value FROM t JOIN u
            ON t.hour = u.hour AND t.station = u.station";
        insta::assert_snapshot!(rewritten(query, put_side_by_side).await.unwrap(), @r#"
OutputRequirementExec: order_by=[], dist_by=Unspecified
  ProjectionExec: expr=[hour@0 as hour, station@1 as station, value@2 - value@5 as t.value - u.value]
    ProjectionExec: expr=[hour@0 as hour, station@1 as station, test_@3 as value, hour@0 as hour, station@1 as station, test@2 as value]
      GridScanExec: dataset=test + test, chunks=16/16, projection=[hour, station, test, test_]
"#);
    }

    #[tokio::test]
    async fn other_joins_stay() {
        let join =
            |kind: &str, on: &str| format!("SELECT t.value, u.value FROM t {kind} u ON {on}");
        let of_cells = "t.hour = u.hour AND t.station = u.station";
        // A row has several matches.
        let on_one = join("JOIN", "t.station = u.station");
        let on_value = join("JOIN", "t.hour = u.hour AND t.value = u.value");
        // Station a of `t` has no match.
        let outer = join("LEFT JOIN", of_cells);
        let crossed =
            join("JOIN", "t.hour = u.hour AND t.station = u.station AND t.hour = u.value");
        let random = format!("{} AND random() > 0.5", join("JOIN", of_cells));
        let with_table = "SELECT value, height FROM t JOIN heights USING (station)".to_owned();
        for query in [on_one, on_value, outer, crossed, random, with_table] {
            assert_eq!(rewritten(&query, put_side_by_side).await, None, "{query}");
        }
    }
}
