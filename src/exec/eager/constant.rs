//! [`Constant`]: how the states of an argument of the other side follow from the number of rows.
//!
//! All rows of a state are joined with the same row of the other side, so the argument is the same in all of them:
//!
//! ```text
//!   sum(s.area)   =   s.area * count(*)          max(s.height)   =   s.height, if there is a row
//! ```

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::{ScalarValue, internal_datafusion_err};
use datafusion::error::Result;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::{CastExpr, is_not_null, lit};

use super::expressions::{binary, either, product};
use super::single_state::empty_state;
use crate::exec::matching::known_aggregate;

/// An aggregate of an argument of the other side.
pub(super) struct Constant {
    pub(super) argument: PhysicalExprRef,
    kind: ConstantKind,
    /// The fields of the states.
    fields: Vec<Arc<Field>>,
    /// The states without a row.
    empty: Vec<ScalarValue>,
}

#[derive(Clone, Copy)]
enum ConstantKind {
    Count,
    Sum,
    Average,
    /// A function whose value for equal arguments is this argument, such as `max`.
    Same,
}

impl Constant {
    /// Returns how to aggregate `argument`, over the columns of both sides, which `schema` has. `None` if more than the number
    /// of rows is needed.
    pub(super) fn try_new(
        function: &AggregateFunctionExpr,
        argument: &PhysicalExprRef,
        schema: &Schema,
    ) -> Result<Option<Self>> {
        let data_type = argument.data_type(schema)?;
        let fields = function.state_fields()?;
        let types: Vec<&DataType> = fields.iter().map(|field| field.data_type()).collect();
        use DataType::{Float64, Int64, UInt64};
        let Some(name) = known_aggregate(function.fun()) else { return Ok(None) };
        let kind = match (name, types.as_slice()) {
            ("count", [Int64]) => ConstantKind::Count,
            ("sum", [of @ (Float64 | Int64 | UInt64)]) if **of == data_type => ConstantKind::Sum,
            ("avg", [UInt64, Float64]) if data_type == Float64 => ConstantKind::Average,
            ("min" | "max" | "bool_and" | "bool_or" | "bit_and" | "bit_or", [of])
                if **of == data_type =>
            {
                ConstantKind::Same
            }
            _ => return Ok(None),
        };
        let empty = empty_state(function, std::slice::from_ref(argument), schema)?;
        Ok(Some(Self { argument: Arc::clone(argument), kind, fields, empty }))
    }

    /// Returns the states of the argument from the number of rows. `over_join` rewrites expressions over the output of the join.
    ///
    /// # Errors
    /// Internal errors only.
    pub(super) fn states(
        &self,
        rows: &[PhysicalExprRef],
        over_join: &dyn Fn(&PhysicalExprRef) -> Result<PhysicalExprRef>,
    ) -> Result<Vec<PhysicalExprRef>> {
        let [rows] = rows else {
            return Err(internal_datafusion_err!("a count has other states"));
        };
        let argument = over_join(&self.argument)?;
        let count = |field: usize| -> PhysicalExprRef {
            let data_type = self.fields[field].data_type().clone();
            Arc::new(CastExpr::new(Arc::clone(rows), data_type, None))
        };
        let states = match self.kind {
            ConstantKind::Count => vec![Arc::clone(rows)],
            ConstantKind::Sum => vec![product(&argument, &count(0))],
            ConstantKind::Average => vec![count(0), product(&argument, &count(1))],
            ConstantKind::Same => vec![Arc::clone(&argument)],
        };
        let some = binary(rows, Operator::Gt, &lit(0_i64));
        let counts = binary(&is_not_null(argument)?, Operator::And, &some);
        either(&counts, &states, &self.empty)
    }
}
