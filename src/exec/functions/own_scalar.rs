//! [`OwnScalar`]: a scalar function of DataFusion that also has values where DataFusion's has none.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ExpressionPlacement, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, StructFieldMapping,
};

use super::{date_bin, date_trunc};

/// A scalar function of DataFusion, for times of all years.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::exec) struct OwnScalar {
    wrapped: Arc<ScalarUDF>,
    kind: ScalarKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ScalarKind {
    Truncate,
    Bin,
}

impl OwnScalar {
    /// Wraps `function`, which must be DataFusion's own; `None` if nothing about it is replaced.
    pub(in crate::exec) fn over(function: &Arc<ScalarUDF>) -> Option<Self> {
        let kind = match function.name() {
            "date_trunc" => ScalarKind::Truncate,
            "date_bin" => ScalarKind::Bin,
            _ => return None,
        };
        Some(Self { wrapped: Arc::clone(function), kind })
    }

    /// Returns the function of DataFusion.
    pub(in crate::exec) fn wrapped(&self) -> &ScalarUDF {
        &self.wrapped
    }

    fn inner(&self) -> &dyn ScalarUDFImpl {
        self.wrapped.inner().as_ref()
    }
}

impl ScalarUDFImpl for OwnScalar {
    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match self.kind {
            ScalarKind::Truncate => match date_trunc::truncated(&args.args)? {
                Some(truncated) => Ok(truncated),
                None => self.inner().invoke_with_args(args),
            },
            ScalarKind::Bin => {
                let (arguments, rows) = (args.args.clone(), args.number_rows);
                let binned = self.inner().invoke_with_args(args)?;
                date_bin::with_all_bins(&arguments, binned, rows)
            }
        }
    }

    // All else is that of the function of DataFusion.

    fn name(&self) -> &str {
        self.inner().name()
    }

    fn aliases(&self) -> &[String] {
        self.inner().aliases()
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        self.inner().schema_name(args)
    }

    fn signature(&self) -> &Signature {
        self.inner().signature()
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner().coerce_types(types)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner().return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.inner().return_field_from_args(args)
    }

    fn is_strict(&self) -> bool {
        self.inner().is_strict()
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.inner().simplify(args, info)
    }

    fn preimage(
        &self,
        args: &[Expr],
        literal: &Expr,
        info: &SimplifyContext,
    ) -> Result<PreimageResult> {
        self.inner().preimage(args, literal, info)
    }

    fn short_circuits(&self) -> bool {
        self.inner().short_circuits()
    }

    fn conditional_arguments<'a>(
        &self,
        args: &'a [Expr],
    ) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.inner().conditional_arguments(args)
    }

    fn evaluate_bounds(&self, inputs: &[&Interval]) -> Result<Interval> {
        self.inner().evaluate_bounds(inputs)
    }

    fn propagate_constraints(
        &self,
        interval: &Interval,
        inputs: &[&Interval],
    ) -> Result<Option<Vec<Interval>>> {
        self.inner().propagate_constraints(interval, inputs)
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.inner().output_ordering(inputs)
    }

    fn preserves_lex_ordering(&self, inputs: &[ExprProperties]) -> Result<bool> {
        self.inner().preserves_lex_ordering(inputs)
    }

    fn strictly_order_preserving(&self, inputs: &[ExprProperties]) -> Result<bool> {
        self.inner().strictly_order_preserving(inputs)
    }

    fn struct_field_mapping(&self, literals: &[Option<ScalarValue>]) -> Option<StructFieldMapping> {
        self.inner().struct_field_mapping(literals)
    }

    fn placement(&self, args: &[ExpressionPlacement]) -> ExpressionPlacement {
        self.inner().placement(args)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner().documentation()
    }
}
