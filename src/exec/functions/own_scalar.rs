//! [`OwnScalar`]: a scalar function of DataFusion that also has values where DataFusion's has none.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::types::logical_string;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    Coercion, ColumnarValue, Documentation, Expr, ExprSchemable, ExpressionPlacement,
    ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, StructFieldMapping,
    TypeSignature, TypeSignatureClass, lit,
};

use super::{date_bin, date_trunc};
use crate::exec::counted_times::{date_field, number_of_time, possible_date_field};

/// A scalar function of DataFusion, for times of all years, or for times of all calendars.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::exec) struct OwnScalar {
    wrapped: Arc<ScalarUDF>,
    kind: ScalarKind,
    /// The arguments: those of DataFusion, and numbers that may count time.
    signature: Signature,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ScalarKind {
    Truncate,
    Bin,
    /// Nothing else than numbers is replaced.
    OfNumbers,
}

impl OwnScalar {
    /// Wraps `function`, which must be DataFusion's own; `None` if nothing about it is replaced.
    pub(in crate::exec) fn over(function: &Arc<ScalarUDF>) -> Option<Self> {
        let kind = match function.name() {
            "date_trunc" => ScalarKind::Truncate,
            "date_bin" => ScalarKind::Bin,
            "date_part" | "to_char" => ScalarKind::OfNumbers,
            _ => return None,
        };
        let mut signature = function.signature().clone();
        if let (TypeSignature::OneOf(all), true) =
            (&mut signature.type_signature, kind != ScalarKind::Bin)
        {
            let text = Coercion::new_exact(TypeSignatureClass::Native(logical_string()));
            let number = Coercion::new_exact(TypeSignatureClass::Numeric);
            all.push(TypeSignature::Coercible(match function.name() {
                "to_char" => vec![number, text],
                _ => vec![text, number],
            }));
        }
        Some(Self { wrapped: Arc::clone(function), kind, signature })
    }

    /// Returns the function of DataFusion.
    pub(in crate::exec) fn wrapped(&self) -> &ScalarUDF {
        &self.wrapped
    }

    fn inner(&self) -> &dyn ScalarUDFImpl {
        self.wrapped.inner().as_ref()
    }

    fn takes_number<'a>(&self, mut types: impl Iterator<Item = &'a DataType>) -> bool {
        self.kind != ScalarKind::Bin && types.any(DataType::is_numeric)
    }

    /// Refuses numbers, of which a rule has replaced those that count time.
    ///
    /// # Errors
    /// That of DataFusion for arguments of these types.
    pub(in crate::exec) fn check(&self, types: &[DataType]) -> Result<()> {
        if !self.takes_number(types.iter()) {
            return Ok(());
        }
        let nulls = types.iter().map(|it| Ok(lit(ScalarValue::try_from(it)?)));
        let call = self.wrapped.call(nulls.collect::<Result<_>>()?);
        call.to_field(&DFSchema::empty()).map(|_| ())
    }

    /// Replaces a NULL in the place of a time by one of times: the signature takes it for a number, which needs no cast.
    fn give_null_a_type(&self, args: &mut ScalarFunctionArgs) {
        let at = number_of_time(self.name());
        let (Some(time), Some(field)) = (args.args.get_mut(at), args.arg_fields.get_mut(at)) else {
            return;
        };
        if self.kind != ScalarKind::Bin && time.data_type().is_null() {
            let null = ScalarValue::TimestampNanosecond(None, None);
            *field = Arc::new(Field::new(field.name(), null.data_type(), true));
            *time = ColumnarValue::Scalar(null);
        }
    }
}

impl ScalarUDFImpl for OwnScalar {
    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.give_null_a_type(&mut args);
        match self.kind {
            ScalarKind::Truncate => match date_trunc::truncated(&args.args)? {
                Some(truncated) => Ok(truncated),
                None => self.inner().invoke_with_args(args),
            },
            ScalarKind::OfNumbers => self.inner().invoke_with_args(args),
            ScalarKind::Bin => {
                let (arguments, rows) = (args.args.clone(), args.number_rows);
                let binned = self.inner().invoke_with_args(args)?;
                date_bin::with_all_bins(&arguments, binned, rows)
            }
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        if let Some(field) = date_field(self.name(), &args)? {
            return Ok(field);
        }
        // Times lose their metadata in expressions such as CASE, until a rule adds it again. `check` refuses other numbers behind it.
        match self.takes_number(args.arg_fields.iter().map(|it| it.data_type())) {
            true => Ok(possible_date_field(self.name(), &args)),
            false => self.inner().return_field_from_args(args),
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

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner().coerce_types(types)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner().return_type(types)
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
