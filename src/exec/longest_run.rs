//! The SQL function `longest_run(condition ORDER BY …)`: the most consecutive rows for which a condition is true.
//!
//! ```text
//!   time        0     1     2     3     4     5     6
//!   rain < 1    true  true  NULL  true  true  true  false        longest_run(rain < 1 ORDER BY time) = 3
//! ```
//!
//! Over dimensions, groups see their cells in order, and hold two numbers each ([`RunsOfGroups`]). Over other rows, the accumulator of
//! `array_agg` sorts the conditions, also those of several partitions.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array};
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{ScalarValue, internal_err, plan_err};
use datafusion::error::Result;
use datafusion::functions_aggregate::array_agg::array_agg_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, Volatility,
};

/// Returns `longest_run(condition ORDER BY …)`: the most consecutive rows for which the condition is true, and 0 if it is true for none.
/// NULL ends a run, as false does.
///
/// ```
/// use datafusion::prelude::SessionContext;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// let ctx = SessionContext::new();
/// ctx.register_udaf(gridfusion::functions::longest_run_udaf().as_ref().clone());
/// let days = "(VALUES (3, 0.0), (1, 0.0), (2, 7.5), (4, 0.2)) AS t (day, rain)";
/// let found = ctx.sql(&format!("SELECT longest_run(rain < 1 ORDER BY day) FROM {days}")).await?;
/// assert!(found.to_string().await?.contains("| 2 "));
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn longest_run_udaf() -> Arc<AggregateUDF> {
    static FUNCTION: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| {
        let signature = Signature::exact(vec![DataType::Boolean], Volatility::Immutable);
        Arc::new(AggregateUDF::from(LongestRun { signature, sorted: array_agg_udaf() }))
    });
    Arc::clone(&FUNCTION)
}

/// The definition of the function.
#[derive(Debug, PartialEq, Eq, Hash)]
struct LongestRun {
    signature: Signature,
    /// The function that sorts conditions.
    sorted: Arc<AggregateUDF>,
}

impl AggregateUDFImpl for LongestRun {
    fn name(&self) -> &'static str {
        "longest_run"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn is_nullable(&self) -> bool {
        false
    }

    fn default_value(&self, _: &DataType) -> Result<ScalarValue> {
        Ok(ScalarValue::Int64(Some(0)))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        self.sorted.state_fields(args)
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.sorted.order_sensitivity()
    }

    fn with_beneficial_ordering(
        self: Arc<Self>,
        _: bool,
    ) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        // Rows that are sorted already are sorted again, in little time.
        Ok(Some(self))
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        if args.is_distinct {
            return plan_err!("longest_run takes no DISTINCT: equal conditions make a run");
        }
        if args.ignore_nulls {
            return plan_err!("longest_run takes no IGNORE NULLS: NULL ends a run");
        }
        if args.order_bys.is_empty() {
            return plan_err!(
                "longest_run needs the order of rows, as in longest_run(rain < 1 ORDER BY time)"
            );
        }
        Ok(Box::new(SortedConditions(self.sorted.accumulator(args)?)))
    }
}

/// The conditions of a group, in order when they are complete.
#[derive(Debug)]
struct SortedConditions(Box<dyn Accumulator>);

impl Accumulator for SortedConditions {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0.update_batch(values)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.0.merge_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.0.state()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let ScalarValue::List(list) = self.0.evaluate()? else {
            return internal_err!("array_agg returned no list");
        };
        let mut run = Run::default();
        for conditions in list.iter().flatten() {
            conditions.as_boolean().iter().for_each(|condition| run.add(condition == Some(true)));
        }
        Ok(ScalarValue::Int64(Some(run.longest)))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.0.size()
    }
}

/// The run that a group is in, and its longest one.
#[derive(Debug, Default, Clone, Copy)]
struct Run {
    current: i64,
    longest: i64,
}

impl Run {
    fn add(&mut self, condition: bool) {
        self.current = (self.current + 1) * i64::from(condition);
        self.longest = self.longest.max(self.current);
    }
}

/// The runs of groups whose rows come in order. They have no states: no other partition may have rows of the same groups.
#[derive(Debug, Default)]
pub(super) struct RunsOfGroups(Vec<Run>);

impl GroupsAccumulator for RunsOfGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        count: usize,
    ) -> Result<()> {
        self.0.resize(count, Run::default());
        let conditions = values[0].as_boolean();
        let is_true = |row| conditions.is_valid(row) && conditions.value(row);
        let counts = |row| filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
        for (row, group) in groups.iter().enumerate().filter(|(row, _)| counts(*row)) {
            self.0[*group].add(is_true(row));
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let runs = emit_to.take_needed(&mut self.0);
        Ok(Arc::new(Int64Array::from_iter_values(runs.iter().map(|run| run.longest))))
    }

    fn state(&mut self, _: EmitTo) -> Result<Vec<ArrayRef>> {
        internal_err!("runs of rows in order have no states")
    }

    fn merge_batch(&mut self, _: &[ArrayRef], _: &[usize], _: usize) -> Result<()> {
        internal_err!("runs of rows in order have no states")
    }

    fn convert_to_state(&self, _: &[ArrayRef], _: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        internal_err!("runs of rows in order have no states")
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.0.capacity() * size_of::<Run>()
    }
}
