//! The SQL functions `max_by(x, y)` and `min_by(x, y)`: `x` of the row in which `y` is greatest or least. Rows in which `y` is
//! NULL do not count.
//!
//! ```text
//!   max_by(x, y)    ─▶    first_value(x ORDER BY y DESC NULLS LAST) FILTER (WHERE y IS NOT NULL)
//! ```
//!
//! The optimizer rewrites them so, and what is true of `first_value` is true of them: over dimensions they are reduced.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{not_impl_err, plan_err};
use datafusion::error::Result;
use datafusion::functions_aggregate::first_last::first_value_udaf;
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams};
use datafusion::logical_expr::function::{AccumulatorArgs, AggregateFunctionSimplification};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Expr, Signature, SortExpr, Volatility,
};

/// Returns `max_by(x, y)`, also named `arg_max`: `x` of the row in which `y` is greatest. Rows in which `y` is NULL do not count.
///
/// ```
/// use datafusion::prelude::SessionContext;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// let ctx = SessionContext::new();
/// ctx.register_udaf(gridfusion::functions::max_by_udaf().as_ref().clone());
/// let found = ctx.sql("SELECT max_by(x, y) FROM (VALUES ('a', 2), ('b', 3), ('c', NULL)) AS t (x, y)").await?;
/// assert!(found.to_string().await?.contains("| b "));
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn max_by_udaf() -> Arc<AggregateUDF> {
    static FUNCTION: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| ArgExtreme::udaf(true));
    Arc::clone(&FUNCTION)
}

/// Returns `min_by(x, y)`, also named `arg_min`: `x` of the row in which `y` is least. Rows in which `y` is NULL do not count.
///
/// ```
/// let function = gridfusion::functions::min_by_udaf();
/// assert_eq!((function.name(), function.aliases()), ("min_by", ["arg_min".to_owned()].as_slice()));
/// ```
#[must_use]
pub fn min_by_udaf() -> Arc<AggregateUDF> {
    static FUNCTION: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| ArgExtreme::udaf(false));
    Arc::clone(&FUNCTION)
}

/// The definition of a function.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ArgExtreme {
    is_max: bool,
    aliases: Vec<String>,
    signature: Signature,
}

impl ArgExtreme {
    fn udaf(is_max: bool) -> Arc<AggregateUDF> {
        let alias = if is_max { "arg_max" } else { "arg_min" };
        let signature = Signature::any(2, Volatility::Immutable);
        let aliases = vec![alias.to_owned()];
        Arc::new(AggregateUDF::from(Self { is_max, aliases, signature }))
    }

    /// Rewrites a call as one of `first_value`.
    fn rewritten(is_max: bool, call: AggregateFunction) -> Result<Expr> {
        let AggregateFunctionParams { args, filter, order_by, null_treatment, .. } = call.params;
        let Ok([x, y]) = <[Expr; 2]>::try_from(args) else {
            return plan_err!("max_by and min_by take two arguments");
        };
        if !order_by.is_empty() {
            return plan_err!(
                "max_by and min_by are ordered by their second argument: leave out ORDER BY"
            );
        }
        let is_known = y.clone().is_not_null();
        let filter = match filter {
            Some(filter) => filter.and(is_known),
            None => is_known,
        };
        let order = SortExpr::new(y, !is_max, false);
        Ok(Expr::AggregateFunction(AggregateFunction::new_udf(
            first_value_udaf(),
            vec![x],
            false,
            Some(Box::new(filter)),
            vec![order],
            null_treatment,
        )))
    }
}

impl AggregateUDFImpl for ArgExtreme {
    fn name(&self) -> &str {
        if self.is_max { "max_by" } else { "min_by" }
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, args: &[DataType]) -> Result<DataType> {
        Ok(args[0].clone())
    }

    fn return_field(&self, args: &[FieldRef]) -> Result<FieldRef> {
        let field = Field::new(self.name(), args[0].data_type().clone(), true);
        Ok(Arc::new(field.with_metadata(args[0].metadata().clone())))
    }

    fn simplify(&self) -> Option<AggregateFunctionSimplification> {
        let is_max = self.is_max;
        Some(Box::new(move |call, _| Self::rewritten(is_max, call)))
    }

    fn supports_null_handling_clause(&self) -> bool {
        true
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let (name, order) = (self.name(), if self.is_max { "DESC NULLS LAST" } else { "ASC" });
        not_impl_err!(
            "{name} is no window function, use first_value(x) OVER (… ORDER BY y {order})"
        )
    }
}
