//! Casts of timestamps to times of day. DataFusion declares them as sorted like the timestamps, and so leaves out sorts and returns
//! groups several times.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, TryCast, Volatility, cast,
};

/// The type of SQL's `TIME`.
const TIME: DataType = DataType::Time64(TimeUnit::Nanosecond);

/// Returns the function that replaces the cast, and declares no order.
pub(crate) fn time_of_day() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        Arc::new(ScalarUDF::from(TimeOfDay(Signature::any(1, Volatility::Immutable))))
    });
    Arc::clone(&FUNCTION)
}

/// Replaces a cast of a timestamp to a time of day.
pub(super) fn rewrite(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let (from, to) = match &expr {
        Expr::Cast(Cast { expr, field }) | Expr::TryCast(TryCast { expr, field }) => {
            (expr, field.data_type())
        }
        _ => return Ok(Transformed::no(expr)),
    };
    let is_of_timestamp = matches!(from.get_type(schema), Ok(DataType::Timestamp(..)));
    if !is_of_timestamp || !matches!(to, DataType::Time32(_) | DataType::Time64(_)) {
        return Ok(Transformed::no(expr));
    }
    let time = time_of_day().call(vec![from.as_ref().clone()]);
    Ok(Transformed::yes(if *to == TIME { time } else { cast(time, to.clone()) }))
}

/// `gridfusion_time_of_day(timestamp)`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct TimeOfDay(Signature);

impl ScalarUDFImpl for TimeOfDay {
    fn name(&self) -> &'static str {
        "gridfusion_time_of_day"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(TIME)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.first() {
            Some(timestamp) => timestamp.cast_to(&TIME, None),
            None => Ok(ColumnarValue::Scalar(ScalarValue::try_from(&TIME)?)),
        }
    }
}
