//! [`cast_exactly`], [`exactly`] and [`rounded`]: rows and expressions in the types of a table.
//!
//! A value that would be another one is an error.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::{CastOptions, cast as cast_array, cast_with_options};
use arrow::datatypes::DataType::Float64;
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type, Schema};
use arrow::util::display::array_value_to_string;
use datafusion::common::{DFSchema, exec_err, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility, cast,
};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use gridfusion_core::array::without_negative_zeros;

/// Returns the rows of a plan in the types of a schema, whose columns it has in the same order.
///
/// # Errors
/// For another number of columns. The plan fails for a value that its new type lacks.
pub(super) fn cast_exactly(
    input: Arc<dyn ExecutionPlan>,
    schema: &Schema,
) -> Result<Arc<dyn ExecutionPlan>> {
    let from = input.schema();
    if from.fields().len() != schema.fields().len() {
        return internal_err!("{} columns for {}", from.fields().len(), schema.fields().len());
    }
    let column = |(at, (own, to)): (usize, (&FieldRef, &FieldRef))| {
        let column = Arc::new(Column::new(own.name(), at)) as Arc<dyn PhysicalExpr>;
        let expr = match own.data_type() == to.data_type() {
            true => column,
            false => {
                let function = Arc::new(ScalarUDF::from(ExactCast::new(to)));
                let options = Arc::new(ConfigOptions::default());
                let cast = ScalarFunctionExpr::try_new(function, vec![column], &from, options)?;
                Arc::new(cast)
            }
        };
        Ok(ProjectionExpr::new(expr, to.name()))
    };
    let columns = from.fields().iter().zip(schema.fields()).enumerate().map(column);
    let columns = columns.collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(ProjectionExec::try_new(columns, input)?))
}

/// Returns an expression in the type of a field, or an error for a value that would be another one.
pub(super) fn exactly(expr: Expr, field: &Field, schema: &DFSchema) -> Result<Expr> {
    Ok(match expr.get_type(schema)? {
        own if own == *field.data_type() => expr,
        // NULL is NULL in each type.
        DataType::Null => cast(expr, field.data_type().clone()),
        _ => ScalarUDF::from(ExactCast::new(field)).call(vec![expr]),
    })
}

/// Returns a float in the type of a field, rounded as in any computation, or an error for a number that would be infinite.
pub(super) fn rounded(expr: Expr, field: &Field) -> Expr {
    ScalarUDF::from(ExactCast { rounds: true, ..ExactCast::new(field) }).call(vec![expr])
}

/// A cast that fails for a value that its type lacks.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ExactCast {
    name: String,
    to: DataType,
    /// Whether a float may become the next one of a narrower type.
    rounds: bool,
    signature: Signature,
}

impl ExactCast {
    fn new(field: &Field) -> Self {
        let signature = Signature::any(1, Volatility::Immutable);
        let to = field.data_type().clone();
        Self { name: field.name().clone(), to, rounds: false, signature }
    }
}

impl ScalarUDFImpl for ExactCast {
    fn name(&self) -> &str {
        "exact_cast"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let field = args.arg_fields.first().map(|field| field.as_ref().clone());
        let field = field.unwrap_or_else(|| Field::new("", DataType::Null, true));
        Ok(Arc::new(field.with_data_type(self.to.clone())))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [values] = args.args.as_slice() else { return internal_err!("a cast has one value") };
        let values = values.to_array(args.number_rows)?;
        // Integers have one zero.
        let values = match values.data_type().is_floating() && self.to.is_integer() {
            true => without_negative_zeros(values)?,
            false => values,
        };
        let options = CastOptions { safe: false, ..CastOptions::default() };
        let cast = |values: &ArrayRef, to: &DataType| cast_with_options(values, to, &options);
        let found = cast(&values, &self.to)?;
        // A text is read, and may have several forms.
        if values.data_type().is_string() && !self.to.is_string() {
            return Ok(ColumnarValue::Array(found));
        }
        let differs = match self.rounds {
            true => first_infinite(&values, &found)?,
            false => first_other(&values, &cast(&found, values.data_type())?),
        };
        match differs {
            None => Ok(ColumnarValue::Array(found)),
            Some(at) => exec_err!(
                "{} of \"{}\" is no {}, of which type the column is",
                array_value_to_string(&values, at)?,
                self.name,
                self.to
            ),
        }
    }
}

/// Returns the index of the first finite value that a cast has made infinite.
fn first_infinite(values: &ArrayRef, found: &ArrayRef) -> Result<Option<usize>> {
    let [values, found] = [cast_array(values, &Float64)?, cast_array(found, &Float64)?];
    let [values, found] = [&values, &found].map(|it| it.as_primitive::<Float64Type>());
    let is_lost = |(value, found): (Option<f64>, Option<f64>)| {
        value.is_some_and(f64::is_finite) && found.is_some_and(f64::is_infinite)
    };
    Ok(values.iter().zip(found).position(is_lost))
}

/// Returns the index of the first value that differs.
fn first_other(values: &ArrayRef, others: &ArrayRef) -> Option<usize> {
    let differs = |at: &usize| others.slice(*at, 1) != values.slice(*at, 1);
    (others.as_ref() != values.as_ref()).then(|| (0..values.len()).find(differs)).flatten()
}
