//! [`States`]: the aggregates below a join, and the states of those above it.
//!
//! ```text
//!   above the join                below                state above, over the columns of the join
//!   max(t.value)                  max(value)           max
//!   avg(t.value - c.mean)         avg(value)           count, (sum / count - c.mean) * count
//!   sum(s.area)                   count(*)             s.area * count
//!   sum(value) FILTER (s.a > 0)   sum(value)           CASE WHEN s.a > 0 THEN sum ELSE (sum of no row)
//! ```
//!
//! Rows that an outer join adds have NULL in all columns of the array. Their states are those of one row of NULLs.

use std::sync::Arc;

use arrow::array::{BooleanArray, RecordBatch, RecordBatchOptions, new_null_array};
use arrow::datatypes::{Field, Schema};
use datafusion::common::{ScalarValue, internal_datafusion_err};
use datafusion::error::Result;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::logical_expr::AggregateUDF;
use datafusion::physical_expr::aggregate::{AggregateExprBuilder, AggregateFunctionExpr};
use datafusion::physical_expr::expressions::{Column as PhysicalColumn, is_not_null, lit};
use datafusion::physical_expr::{PhysicalExprRef, conjunction_opt, split_conjunction};

use super::affine::{Affine, uncast};
use super::affine_aggregate::{AffineAggregate, OfX};
use super::constant::Constant;
use super::expressions::either;
use super::join_sides::{HashJoinSides, uses};
use super::keys::Keys;
use super::single_state::{empty_state, state_of};
use crate::exec::columns::{columns_of, move_columns};
use crate::exec::matching::{known_aggregate, may_fail};
use crate::exec::own_functions::is_own_aggregate;
use crate::exec::reduce::is_never_nan;

/// An aggregate below the join, over the input that is reduced.
struct Below {
    function: Arc<AggregateFunctionExpr>,
    filter: Option<PhysicalExprRef>,
}

/// The states of an aggregate above the join.
struct Above {
    /// The number of the aggregate below from which these states follow.
    below: usize,
    argument: Argument,
    condition: Option<Condition>,
}

/// A condition on the rows of the join that an aggregate above it counts.
struct Condition {
    /// The condition, over both sides.
    expr: PhysicalExprRef,
    /// The states of the aggregate without a row.
    empty: Vec<ScalarValue>,
}

/// The argument of an aggregate above the join.
enum Argument {
    /// That of the aggregate below.
    Same,
    /// A function of that of the aggregate below.
    Scaled(AffineAggregate),
    /// An expression over the other side.
    Constant(Constant),
}

/// The aggregates of a join, below and above it.
pub(super) struct States<'a> {
    joined: HashJoinSides<'a>,
    /// Whether the stage above the join has groups.
    is_grouped: bool,
    below: Vec<Below>,
    above: Vec<Above>,
    /// The number of the aggregate below that counts rows, if the join adds rows of NULLs.
    rows: Option<usize>,
}

impl<'a> States<'a> {
    pub(super) fn new(joined: HashJoinSides<'a>, is_grouped: bool) -> Result<Self> {
        let mut this = Self { joined, is_grouped, below: vec![], above: vec![], rows: None };
        if joined.adds_null_rows() {
            this.rows = Some(this.count(&lit(1_i64), None)?);
        }
        Ok(this)
    }

    /// Adds an aggregate with its arguments and filter over both sides. Returns whether its states follow from states below the
    /// join.
    ///
    /// # Errors
    /// Internal errors only.
    pub(super) fn add(
        &mut self,
        function: &AggregateFunctionExpr,
        args: &[PhysicalExprRef],
        filter: Option<&PhysicalExprRef>,
    ) -> Result<bool> {
        if !function.order_bys().is_empty() || !self.is_grouped && !has_one_kind_of_state(function)
        {
            return Ok(false);
        }
        // Conditions on the array alone filter its cells, and the others filter states.
        let parts = filter.map(split_conjunction).unwrap_or_default();
        let (own, others): (Vec<_>, Vec<_>) =
            parts.into_iter().cloned().partition(|part| self.is_own(part));
        // Below the join are rows without a match, on which these must not fail.
        let schema = self.joined.schema();
        if own.iter().chain(args).any(|expr| may_fail(expr, &schema)) {
            return Ok(false);
        }
        let is_constant =
            args.len() == 1 && !self.is_own(&args[0]) && !uses(&args[0], &self.joined.own());
        if !is_constant && self.has_two_extremes(function, args)? {
            return Ok(false);
        }
        let filter = conjunction_opt(own).map(|filter| self.over_input(&filter)).transpose()?;
        let condition = match conjunction_opt(others) {
            Some(expr) => Some(Condition { expr, empty: empty_state(function, args, &schema)? }),
            None => None,
        };
        if args.iter().all(|arg| self.is_own(arg)) {
            let args = args.iter().map(|arg| self.over_input(arg));
            let below = self.call(function, args.collect::<Result<_>>()?, filter.as_ref())?;
            self.above.push(Above { below, argument: Argument::Same, condition });
            return Ok(true);
        }
        if function.is_distinct() {
            return Ok(false);
        }
        let derived = match args {
            [arg] if is_constant => self.of_constant(function, arg, filter.as_ref(), &schema)?,
            [arg] => self.of_affine(function, arg, None, filter.as_ref(), &schema)?,
            [arg, weight] => {
                self.of_affine(function, arg, Some(weight), filter.as_ref(), &schema)?
            }
            _ => None,
        };
        let Some((below, argument)) = derived else { return Ok(false) };
        self.above.push(Above { below, argument, condition });
        Ok(true)
    }

    /// Whether the least or greatest argument differs with and without groups. DataFusion 55 takes NaN for the greatest number
    /// without groups. With groups, it depends on the order of rows. Our versions of these functions have one answer.
    fn has_two_extremes(
        &self,
        function: &AggregateFunctionExpr,
        args: &[PhysicalExprRef],
    ) -> Result<bool> {
        let is_extreme = matches!(known_aggregate(function.fun()), Some("min" | "max"));
        if self.is_grouped || !is_extreme || is_own_aggregate(function.fun()) {
            return Ok(false);
        }
        let schema = self.joined.schema();
        for arg in args {
            let is_number =
                self.is_own(arg) && is_never_nan(&self.over_input(arg)?, self.joined.input())?;
            if arg.data_type(&schema)?.is_floating() && !is_number {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Adds what the states of an argument of the other side need below the join; `None` if they do not follow from it.
    fn of_constant(
        &mut self,
        function: &AggregateFunctionExpr,
        arg: &PhysicalExprRef,
        filter: Option<&PhysicalExprRef>,
        schema: &Schema,
    ) -> Result<Option<(usize, Argument)>> {
        let Some(constant) = Constant::try_new(function, arg, schema)? else { return Ok(None) };
        let rows = self.count(&lit(1_i64), filter)?;
        Ok(Some((rows, Argument::Constant(constant))))
    }

    /// Adds what the states of `scale * x + shift` need below the join, possibly with a weight; `None` if they do not follow
    /// from it.
    fn of_affine(
        &mut self,
        function: &AggregateFunctionExpr,
        arg: &PhysicalExprRef,
        weight: Option<&PhysicalExprRef>,
        filter: Option<&PhysicalExprRef>,
        schema: &Schema,
    ) -> Result<Option<(usize, Argument)>> {
        let affine = Affine::try_new(arg, &self.joined.own(), schema)?;
        let is_extreme = matches!(known_aggregate(function.fun()), Some("min" | "max"));
        if let Some(affine) = affine.as_ref().filter(|affine| is_extreme && !affine.is_plain()) {
            // Of NaN and infinite numbers, the extremes tell too little about the values between.
            let x = self.over_input(uncast(&affine.x, schema)?)?;
            if !is_never_nan(&x, self.joined.input())? {
                return Ok(None);
            }
        }
        let scaled = match (affine, weight) {
            (Some(affine), None) if !affine.is_plain() => {
                AffineAggregate::try_new(function, affine, schema)?
            }
            (Some(affine), Some(weight))
                if known_aggregate(function.fun()) == Some("weighted_avg")
                    && !uses(weight, &self.joined.own()) =>
            {
                Some(AffineAggregate::weighted(affine, weight, schema)?)
            }
            _ => None,
        };
        let Some(scaled) = scaled else { return Ok(None) };
        let below = match &scaled.main {
            Some(main) => self.of_x(&main.function, &self.over_input(&main.argument)?, filter)?,
            None => self.call(function, vec![self.over_input(scaled.x())?], filter)?,
        };
        // These follow the first one.
        for OfX { function, argument } in &scaled.further {
            self.of_x(function, &self.over_input(argument)?, filter)?;
        }
        Ok(Some((below, Argument::Scaled(scaled))))
    }

    /// Whether an expression over both sides needs nothing of the other side.
    fn is_own(&self, expr: &PhysicalExprRef) -> bool {
        let own = self.joined.own();
        columns_of([expr]).iter().all(|at| own.contains(at))
    }

    /// Rewrites an expression over the reduced side, over its input.
    fn over_input(&self, expr: &PhysicalExprRef) -> Result<PhysicalExprRef> {
        let start = self.joined.own().start;
        move_columns(expr, &|at| at.checked_sub(start))
    }

    /// Adds `function` with other arguments below the join; returns its number.
    fn call(
        &mut self,
        function: &AggregateFunctionExpr,
        args: Vec<PhysicalExprRef>,
        filter: Option<&PhysicalExprRef>,
    ) -> Result<usize> {
        let function = function
            .with_new_expressions(args, vec![])
            .ok_or_else(|| internal_datafusion_err!("an aggregate takes no other arguments"))?;
        self.below.push(Below { function: Arc::new(function), filter: filter.cloned() });
        Ok(self.below.len() - 1)
    }

    /// Adds a count below the join; returns its number.
    fn count(&mut self, arg: &PhysicalExprRef, filter: Option<&PhysicalExprRef>) -> Result<usize> {
        self.of_x(&count_udaf(), arg, filter)
    }

    /// Adds an aggregate of `x` below the join; returns its number.
    fn of_x(
        &mut self,
        function: &Arc<AggregateUDF>,
        x: &PhysicalExprRef,
        filter: Option<&PhysicalExprRef>,
    ) -> Result<usize> {
        let name = format!("{}({x})", function.name());
        let function = AggregateExprBuilder::new(Arc::clone(function), vec![Arc::clone(x)])
            .schema(self.joined.input().schema())
            .alias(name)
            .build()?;
        self.below.push(Below { function: Arc::new(function), filter: filter.cloned() });
        Ok(self.below.len() - 1)
    }

    /// Returns the aggregates below the join, and their filters.
    pub(super) fn functions(
        &self,
    ) -> (Vec<Arc<AggregateFunctionExpr>>, Vec<Option<PhysicalExprRef>>) {
        self.below.iter().map(|it| (Arc::clone(&it.function), it.filter.clone())).unzip()
    }

    /// Returns the expressions over both sides that the states above the join need. Expressions of the other side need nothing.
    pub(super) fn needed(&self) -> impl Iterator<Item = &PhysicalExprRef> {
        self.above.iter().filter_map(|above| above.condition.as_ref()).map(|it| &it.expr)
    }

    /// Returns the states above the join, over its output, with `width` columns of the reduced side.
    ///
    /// # Errors
    /// Internal errors only.
    pub(super) fn above(&self, keys: &Keys<'_>, width: usize) -> Result<Vec<PhysicalExprRef>> {
        let mut states = vec![];
        for above in &self.above {
            let below = self.columns(above.below, keys, width)?;
            let over_join = |expr: &PhysicalExprRef| keys.above(expr, width);
            let mut own = match &above.argument {
                Argument::Same => below,
                Argument::Scaled(scaled) => {
                    let further = (1..=scaled.further.len())
                        .map(|after| self.columns(above.below + after, keys, width));
                    let further = further.collect::<Result<Vec<_>>>()?.concat();
                    scaled.states(&below, &further, &over_join)?
                }
                Argument::Constant(constant) => constant.states(&below, &over_join)?,
            };
            if let Some(Condition { expr, empty }) = &above.condition {
                own = either(&over_join(expr)?, &own, empty)?;
            }
            states.extend(own);
        }
        Ok(states)
    }

    /// Returns the state columns of an aggregate below the join.
    fn columns(&self, below: usize, keys: &Keys<'_>, width: usize) -> Result<Vec<PhysicalExprRef>> {
        let mut first = keys.reduced(width).start + keys.exprs().len();
        for before in &self.below[..below] {
            first += before.function.state_fields()?.len();
        }
        let fields = self.below[below].function.state_fields()?;
        let column = |(at, field): (usize, &Arc<Field>)| -> PhysicalExprRef {
            Arc::new(PhysicalColumn::new(field.name(), first + at))
        };
        let columns: Vec<_> = fields.iter().enumerate().map(column).collect();
        match self.rows {
            Some(rows) if rows != below => {
                let rows = self.columns(rows, keys, width)?.remove(0);
                either(&is_not_null(rows)?, &columns, &self.of_nulls(below)?)
            }
            _ => Ok(columns),
        }
    }

    /// Returns the states of an aggregate below the join over one row of NULLs.
    fn of_nulls(&self, below: usize) -> Result<Vec<ScalarValue>> {
        let Below { function, filter } = &self.below[below];
        let row = self.nulls()?;
        let counts = match filter {
            None => true,
            Some(filter) => {
                let filter = filter.evaluate(&row)?.into_array(1)?;
                let filter = filter.as_any().downcast_ref::<BooleanArray>();
                filter.is_some_and(|it| it.iter().next() == Some(Some(true)))
            }
        };
        state_of(function, &row, counts)
    }

    /// Returns a row of NULLs of the input that is reduced.
    fn nulls(&self) -> Result<RecordBatch> {
        let schema = self.joined.input().schema();
        let nullable = |field: &Arc<Field>| field.as_ref().clone().with_nullable(true);
        let fields: Vec<Field> = schema.fields().iter().map(nullable).collect();
        let columns = fields.iter().map(|field| new_null_array(field.data_type(), 1)).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(1));
        Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)?)
    }
}

/// Whether the states of an aggregate by group merge into one without groups, as below a join and above it. In DataFusion 55, the
/// states of `corr` do not: its two accumulators have different numbers in fields of the same names.
fn has_one_kind_of_state(function: &AggregateFunctionExpr) -> bool {
    const KNOWN: [&str; 14] = [
        "count",
        "sum",
        "avg",
        "min",
        "max",
        "var",
        "var_pop",
        "stddev",
        "stddev_pop",
        "bool_and",
        "bool_or",
        "bit_and",
        "bit_or",
        "weighted_avg",
    ];
    let is_known = known_aggregate(function.fun()).is_some_and(|name| KNOWN.contains(&name));
    !function.groups_accumulator_supported() || is_known
}
