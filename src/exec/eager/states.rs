//! [`States`]: the aggregates below a join, and the states of those above it.
//!
//! ```text
//!   above the join                below                state above, over the columns of the join
//!   max(t.value)                  max(value)           max
//!   avg(t.value - c.mean)         avg(value)           count, sum - c.mean * count
//!   sum(value) FILTER (s.a > 0)   sum(value)           CASE WHEN s.a > 0 THEN sum ELSE (sum of no row)
//! ```
//!
//! Rows that an outer join adds have NULL in all columns of the array. Their states are those of one row of NULLs.

use std::sync::Arc;

use arrow::array::{BooleanArray, RecordBatch, RecordBatchOptions, new_null_array};
use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::{ScalarValue, internal_datafusion_err};
use datafusion::error::Result;
use datafusion::functions_aggregate::average::avg_udaf;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::stddev::{stddev_pop_udaf, stddev_udaf};
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::functions_aggregate::variance::{var_pop_udaf, var_samp_udaf};
use datafusion::logical_expr::{EmitTo, Operator};
use datafusion::physical_expr::aggregate::{AggregateExprBuilder, AggregateFunctionExpr};
use datafusion::physical_expr::expressions::{
    BinaryExpr, CastExpr, Column as PhysicalColumn, Literal, case, is_not_null, lit,
};
use datafusion::physical_expr::{PhysicalExprRef, conjunction_opt, split_conjunction};

use super::affine::{Affine, product, sum};
use super::joined::Joined;
use super::keys::Keys;
use crate::exec::columns::{columns_of, move_columns};
use crate::exec::fallible::may_fail;

/// An aggregate below the join, over the input that is reduced.
struct Below {
    function: Arc<AggregateFunctionExpr>,
    filter: Option<PhysicalExprRef>,
}

/// The states of an aggregate above the join.
struct Above {
    /// The number of the aggregate below whose states these are.
    below: usize,
    /// The condition on rows of the join, over both sides.
    condition: Option<PhysicalExprRef>,
    /// The argument as a function of that of the aggregate below; `None` if they are equal.
    affine: Option<Scaled>,
}

/// How the states of `scale * x + shift` follow from those of `x`.
struct Scaled {
    kind: Kind,
    scale: PhysicalExprRef,
    shift: PhysicalExprRef,
}

/// The states of an aggregate of numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A count.
    Count,
    /// A sum, and the number of the aggregate below that counts its terms.
    Sum { count: usize },
    /// A count and a sum.
    Average,
    /// A count, a mean, and a sum of squared deviations.
    Variance,
}

/// The aggregates of a join, below and above it.
pub(super) struct States<'a> {
    joined: Joined<'a>,
    below: Vec<Below>,
    above: Vec<Above>,
    /// The number of the aggregate below that counts rows, if the join adds rows of NULLs.
    rows: Option<usize>,
}

impl<'a> States<'a> {
    pub(super) fn new(joined: Joined<'a>) -> Result<Self> {
        let mut this = Self { joined, below: vec![], above: vec![], rows: None };
        if joined.adds_null_rows() {
            this.rows = Some(this.count(lit(1_i64), None)?);
        }
        Ok(this)
    }

    /// Adds an aggregate with its arguments and filter over both sides. The stage above the join `is_grouped` or not. Returns
    /// whether its states follow from states below the join.
    ///
    /// # Errors
    /// Internal errors only.
    pub(super) fn add(
        &mut self,
        function: &AggregateFunctionExpr,
        args: &[PhysicalExprRef],
        filter: Option<&PhysicalExprRef>,
        is_grouped: bool,
    ) -> Result<bool> {
        if !function.order_bys().is_empty() || !is_grouped && !has_one_kind_of_state(function) {
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
        let filter = conjunction_opt(own).map(|filter| self.over_input(&filter)).transpose()?;
        let condition = conjunction_opt(others);
        if args.iter().all(|arg| self.is_own(arg)) {
            let args = args.iter().map(|arg| self.over_input(arg));
            let below = self.call(function, args.collect::<Result<_>>()?, filter)?;
            self.above.push(Above { below, condition, affine: None });
            return Ok(true);
        }
        let ([arg], false) = (args, function.is_distinct()) else { return Ok(false) };
        let affine = Affine::of(arg, &self.joined.own(), &schema)?;
        let Some(affine) = affine.filter(|affine| !affine.is_plain()) else { return Ok(false) };
        let is_finite = affine.has_finite_scale(&schema)?;
        let x = self.over_input(&affine.x)?;
        let Some(kind) = self.kind(function, &x, filter.as_ref())? else { return Ok(false) };
        // Infinity times a sum is not the sum of the products, if a term is 0 or if terms have both signs.
        if !is_finite && matches!(kind, Kind::Sum { .. } | Kind::Average) {
            return Ok(false);
        }
        let below = self.call(function, vec![x], filter)?;
        let affine = Some(Scaled { kind, scale: affine.scale, shift: affine.shift });
        self.above.push(Above { below, condition, affine });
        Ok(true)
    }

    /// Returns the kind of the states of `function`, which needs a count of `x` for some; `None` for others.
    fn kind(
        &mut self,
        function: &AggregateFunctionExpr,
        x: &PhysicalExprRef,
        filter: Option<&PhysicalExprRef>,
    ) -> Result<Option<Kind>> {
        let fun = function.fun();
        let variances = [var_samp_udaf(), var_pop_udaf(), stddev_udaf(), stddev_pop_udaf()];
        Ok(if *fun == *count_udaf() {
            Some(Kind::Count)
        } else if *fun == *sum_udaf() {
            Some(Kind::Sum { count: self.count(Arc::clone(x), filter.cloned())? })
        } else if *fun == *avg_udaf() {
            Some(Kind::Average)
        } else {
            variances.iter().any(|it| *fun == **it).then_some(Kind::Variance)
        })
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
        filter: Option<PhysicalExprRef>,
    ) -> Result<usize> {
        let function = function
            .with_new_expressions(args, vec![])
            .ok_or_else(|| internal_datafusion_err!("an aggregate takes no other arguments"))?;
        self.below.push(Below { function: Arc::new(function), filter });
        Ok(self.below.len() - 1)
    }

    /// Adds a count below the join; returns its number.
    fn count(&mut self, arg: PhysicalExprRef, filter: Option<PhysicalExprRef>) -> Result<usize> {
        let name = format!("count({arg})");
        let function = AggregateExprBuilder::new(count_udaf(), vec![arg])
            .schema(self.joined.input().schema())
            .alias(name)
            .build()?;
        self.below.push(Below { function: Arc::new(function), filter });
        Ok(self.below.len() - 1)
    }

    /// Returns the aggregates below the join, and their filters.
    pub(super) fn functions(
        &self,
    ) -> (Vec<Arc<AggregateFunctionExpr>>, Vec<Option<PhysicalExprRef>>) {
        self.below.iter().map(|it| (Arc::clone(&it.function), it.filter.clone())).unzip()
    }

    /// Returns the expressions over both sides that the states above the join need.
    pub(super) fn needed(&self) -> impl Iterator<Item = &PhysicalExprRef> {
        self.above.iter().flat_map(|above| {
            let affine = above.affine.iter().flat_map(|it| [&it.scale, &it.shift]);
            above.condition.iter().chain(affine)
        })
    }

    /// Returns the states above the join, over its output, with `width` columns of the reduced side.
    ///
    /// # Errors
    /// Internal errors only.
    pub(super) fn above(&self, keys: &Keys<'_>, width: usize) -> Result<Vec<PhysicalExprRef>> {
        let mut states = vec![];
        for above in &self.above {
            let mut own = self.columns(above.below, keys, width)?;
            if let Some(affine) = &above.affine {
                own = self.scaled(affine, &own, keys, width)?;
            }
            if let Some(condition) = &above.condition {
                let condition = keys.above(condition, width)?;
                let empty = state_of(&self.below[above.below].function, &self.nulls()?, false)?;
                own = either(&condition, &own, &empty)?;
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

    /// Returns the states of `scale * x + shift` from those of `x`. All rows of a state have the same scale and shift.
    fn scaled(
        &self,
        affine: &Scaled,
        of_x: &[PhysicalExprRef],
        keys: &Keys<'_>,
        width: usize,
    ) -> Result<Vec<PhysicalExprRef>> {
        let (scale, shift) = (keys.above(&affine.scale, width)?, keys.above(&affine.shift, width)?);
        // Where one of them is NULL, so is the argument of all rows.
        let known = both(known(&scale)?, known(&shift)?);
        let zero = |count: &PhysicalExprRef, data_type: DataType| {
            let zero = [ScalarValue::new_zero(&data_type)?];
            match &known {
                Some(known) => Ok::<_, datafusion::error::DataFusionError>(
                    either(known, std::slice::from_ref(count), &zero)?.remove(0),
                ),
                None => Ok(Arc::clone(count)),
            }
        };
        let wide = |count: &PhysicalExprRef| -> PhysicalExprRef {
            Arc::new(CastExpr::new(Arc::clone(count), DataType::Float64, None))
        };
        let shifted = |total: &PhysicalExprRef, count: &PhysicalExprRef| {
            sum(&product(&scale, total), &product(&shift, &wide(count)))
        };
        Ok(match (affine.kind, of_x) {
            (Kind::Count, [count]) => vec![zero(count, DataType::Int64)?],
            (Kind::Sum { count }, [total]) => {
                vec![shifted(total, &self.columns(count, keys, width)?.remove(0))]
            }
            (Kind::Average, [count, total]) => {
                // A group without a value has NULL as both.
                let count_known = match &known {
                    Some(known) => case(None, vec![(Arc::clone(known), Arc::clone(count))], None)?,
                    None => Arc::clone(count),
                };
                vec![count_known, shifted(total, count)]
            }
            (Kind::Variance, [count, mean, m2]) => {
                let squared = product(&scale, &scale);
                vec![
                    zero(count, DataType::UInt64)?,
                    zero(&sum(&product(&scale, mean), &shift), DataType::Float64)?,
                    zero(&product(&squared, m2), DataType::Float64)?,
                ]
            }
            _ => return Err(internal_datafusion_err!("an aggregate has other states")),
        })
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
    const KNOWN: [&str; 15] = [
        "count",
        "sum",
        "avg",
        "min",
        "max",
        "var",
        "var_samp",
        "var_pop",
        "stddev",
        "stddev_pop",
        "bool_and",
        "bool_or",
        "bit_and",
        "bit_or",
        "weighted_avg",
    ];
    !function.groups_accumulator_supported() || KNOWN.contains(&function.fun().name())
}

/// Returns the state of an aggregate over a row, or over none unless the row `counts`. Some functions have NULL as the count
/// of a group without a value, and so has this.
fn state_of(
    function: &AggregateFunctionExpr,
    row: &RecordBatch,
    counts: bool,
) -> Result<Vec<ScalarValue>> {
    let args = function.expressions().into_iter();
    let args = args.map(|arg| arg.evaluate(row)?.into_array(1)).collect::<Result<Vec<_>>>()?;
    if !function.groups_accumulator_supported() {
        let mut state = function.create_accumulator()?;
        if counts {
            state.update_batch(&args)?;
        }
        return state.state();
    }
    // A group that an accumulator never hears of counts as one with values.
    let mut states = function.create_groups_accumulator()?;
    states.update_batch(&args, &[0], Some(&BooleanArray::from(vec![counts])), 1)?;
    let state = states.state(EmitTo::All)?;
    state.iter().map(|column| ScalarValue::try_from_array(column, 0)).collect()
}

/// Returns each of `states` where `condition` is true, and each of `otherwise` elsewhere.
fn either(
    condition: &PhysicalExprRef,
    states: &[PhysicalExprRef],
    otherwise: &[ScalarValue],
) -> Result<Vec<PhysicalExprRef>> {
    let choose = |(state, otherwise): (&PhysicalExprRef, &ScalarValue)| {
        let otherwise: PhysicalExprRef = Arc::new(Literal::new(otherwise.clone()));
        case(None, vec![(Arc::clone(condition), Arc::clone(state))], Some(otherwise))
    };
    states.iter().zip(otherwise).map(choose).collect()
}

/// Returns the condition that an expression is not NULL; `None` for a number.
fn known(expr: &PhysicalExprRef) -> Result<Option<PhysicalExprRef>> {
    let is_number = |literal: &Literal| !literal.value().is_null();
    match expr.downcast_ref::<Literal>().is_some_and(is_number) {
        true => Ok(None),
        false => is_not_null(Arc::clone(expr)).map(Some),
    }
}

fn both(a: Option<PhysicalExprRef>, b: Option<PhysicalExprRef>) -> Option<PhysicalExprRef> {
    match (a, b) {
        (Some(a), Some(b)) => Some(Arc::new(BinaryExpr::new(a, Operator::And, b))),
        (a, b) => a.or(b),
    }
}
