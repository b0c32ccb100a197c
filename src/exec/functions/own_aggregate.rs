//! [`OwnAggregate`]: an aggregate function of DataFusion whose wrong accumulators are replaced.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::expr::{
    AggregateFunction, AggregateFunctionParams, WindowFunctionParams,
};
use datafusion::logical_expr::function::{
    AccumulatorArgs, AggregateFunctionSimplification, StateFieldsArgs,
};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, Expr, GroupsAccumulator, Operator,
    ReversedUDAF, SetMonotonicity, Signature, StatisticsArgs,
};

use super::extremes::{ExtremeOfAll, ExtremeOfGroups};
use super::one_nan::{OneNan, OneNanPerGroup};
use super::pairs::PairFunction;
use super::pairs_of_groups::PairsOfGroups;
use super::sliding_rows::{OfSteps, SlidingRows};
use crate::exec::counted_times::with_metadata_of;
use crate::exec::window::{Extreme, SumStep, Variance};
use crate::reduce::{Greatest, Least};

/// An aggregate function of DataFusion, with accumulators of ours where its own are wrong.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::exec) struct OwnAggregate {
    wrapped: Arc<AggregateUDF>,
    kind: AggregateKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum AggregateKind {
    Sum,
    Average,
    Variance {
        is_sample: bool,
        is_root: bool,
    },
    /// A function of pairs, which its name tells.
    OfPairs,
    Least,
    Greatest,
    /// DataFusion's, with the metadata of the values.
    Listed,
    /// As [`Self::Listed`], and never reversed: DataFusion reverses only the first of two stages.
    Nth,
}

impl AggregateKind {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "sum" => Self::Sum,
            "avg" => Self::Average,
            "min" => Self::Least,
            "max" => Self::Greatest,
            "var" => Self::Variance { is_sample: true, is_root: false },
            "var_pop" => Self::Variance { is_sample: false, is_root: false },
            "stddev" => Self::Variance { is_sample: true, is_root: true },
            "stddev_pop" => Self::Variance { is_sample: false, is_root: true },
            "array_agg" => Self::Listed,
            "nth_value" => Self::Nth,
            of_pairs if PairFunction::named(of_pairs).is_some() => Self::OfPairs,
            _ => return None,
        })
    }
}

impl OwnAggregate {
    /// Wraps `function`, which must be DataFusion's own; `None` if nothing about it is replaced.
    pub(in crate::exec) fn over(function: &Arc<AggregateUDF>) -> Option<Self> {
        let kind = AggregateKind::named(function.name())?;
        Some(Self { wrapped: Arc::clone(function), kind })
    }

    /// Returns the function of DataFusion.
    pub(in crate::exec) fn wrapped(&self) -> &AggregateUDF {
        &self.wrapped
    }

    fn inner(&self) -> &dyn AggregateUDFImpl {
        self.wrapped.inner().as_ref()
    }

    /// Whether the accumulators are those of DataFusion.
    fn is_wrapper(&self) -> bool {
        matches!(self.kind, AggregateKind::Listed | AggregateKind::Nth)
    }

    /// Returns our accumulator for a moving frame; `None` if that of DataFusion is right, as for integers and decimals.
    fn sliding(&self, args: &AccumulatorArgs<'_>) -> Option<Box<dyn Accumulator>> {
        let is_double = |data_type: &DataType| *data_type == DataType::Float64;
        let of = args.expr_fields.iter().all(|field| is_double(field.data_type()));
        let to = args.return_field.data_type();
        let are_doubles = of && is_double(to);
        Some(match self.kind {
            _ if args.is_distinct => return None,
            AggregateKind::Least if to.is_floating() => {
                Box::new(SlidingRows::new(OfSteps(Extreme::<Least>::new(to))))
            }
            AggregateKind::Greatest if to.is_floating() => {
                Box::new(SlidingRows::new(OfSteps(Extreme::<Greatest>::new(to))))
            }
            _ if !are_doubles => return None,
            AggregateKind::Sum => {
                Box::new(SlidingRows::new(OfSteps(SumStep { is_average: false })))
            }
            AggregateKind::Average => {
                Box::new(SlidingRows::new(OfSteps(SumStep { is_average: true })))
            }
            AggregateKind::Variance { is_sample, is_root } => {
                Box::new(SlidingRows::new(OfSteps(Variance { is_sample, is_root })))
            }
            AggregateKind::OfPairs => Box::new(SlidingRows::new(PairFunction::named(self.name())?)),
            _ => return None,
        })
    }
}

impl AggregateUDFImpl for OwnAggregate {
    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let data_type = args.return_field.data_type();
        match self.kind {
            _ if self.is_wrapper() || !data_type.is_floating() => self.inner().accumulator(args),
            AggregateKind::Least => Ok(Box::new(ExtremeOfAll::<Least>::new(data_type))),
            AggregateKind::Greatest => Ok(Box::new(ExtremeOfAll::<Greatest>::new(data_type))),
            _ => Ok(Box::new(OneNan(self.inner().accumulator(args)?))),
        }
    }

    fn create_sliding_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        let is_float = args.return_field.data_type().is_floating();
        let sliding = match self.sliding(&args) {
            Some(sliding) => sliding,
            None => self.inner().create_sliding_accumulator(args)?,
        };
        Ok(if is_float && !self.is_wrapper() { Box::new(OneNan(sliding)) } else { sliding })
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        let data_type = args.return_field.data_type();
        match self.kind {
            _ if self.is_wrapper() || !data_type.is_floating() => {
                self.inner().create_groups_accumulator(args)
            }
            AggregateKind::Least => Ok(Box::new(ExtremeOfGroups::<Least>::new(data_type))),
            AggregateKind::Greatest => Ok(Box::new(ExtremeOfGroups::<Greatest>::new(data_type))),
            _ => {
                let accumulator = match PairFunction::named(self.name()) {
                    Some(function) => Box::new(PairsOfGroups::new(function)),
                    None => self.inner().create_groups_accumulator(args)?,
                };
                Ok(Box::new(OneNanPerGroup(accumulator)))
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

    fn signature(&self) -> &Signature {
        self.inner().signature()
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner().coerce_types(types)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner().return_type(types)
    }

    fn return_field(&self, fields: &[FieldRef]) -> Result<FieldRef> {
        let field = self.inner().return_field(fields)?;
        Ok(match self.kind {
            AggregateKind::Least
            | AggregateKind::Greatest
            | AggregateKind::Listed
            | AggregateKind::Nth => with_metadata_of(fields.first(), field),
            _ => field,
        })
    }

    fn is_nullable(&self) -> bool {
        self.inner().is_nullable()
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        self.inner().state_fields(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        self.kind == AggregateKind::OfPairs || self.inner().groups_accumulator_supported(args)
    }

    fn schema_name(&self, params: &AggregateFunctionParams) -> Result<String> {
        self.inner().schema_name(params)
    }

    fn human_display(&self, params: &AggregateFunctionParams) -> Result<String> {
        self.inner().human_display(params)
    }

    fn display_name(&self, params: &AggregateFunctionParams) -> Result<String> {
        self.inner().display_name(params)
    }

    fn window_function_schema_name(&self, params: &WindowFunctionParams) -> Result<String> {
        self.inner().window_function_schema_name(params)
    }

    fn window_function_display_name(&self, params: &WindowFunctionParams) -> Result<String> {
        self.inner().window_function_display_name(params)
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.inner().order_sensitivity()
    }

    fn with_beneficial_ordering(
        self: Arc<Self>,
        is_ordered: bool,
    ) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        let wrapped = self.wrapped.as_ref().clone().with_beneficial_ordering(is_ordered)?;
        let own = |wrapped| Self { wrapped: Arc::new(wrapped), kind: self.kind };
        Ok(wrapped.map(|wrapped| Arc::new(own(wrapped)) as Arc<dyn AggregateUDFImpl>))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        match self.kind {
            AggregateKind::Nth => ReversedUDAF::NotSupported,
            _ => self.inner().reverse_expr(),
        }
    }

    fn simplify(&self) -> Option<AggregateFunctionSimplification> {
        self.inner().simplify()
    }

    fn simplify_expr_op_literal(
        &self,
        function: &AggregateFunction,
        argument: &Expr,
        operator: Operator,
        literal: &Expr,
        is_left: bool,
    ) -> Result<Option<Expr>> {
        self.inner().simplify_expr_op_literal(function, argument, operator, literal, is_left)
    }

    fn is_descending(&self) -> Option<bool> {
        self.inner().is_descending()
    }

    fn value_from_stats(&self, args: &StatisticsArgs<'_>) -> Option<ScalarValue> {
        self.inner().value_from_stats(args)
    }

    fn default_value(&self, data_type: &DataType) -> Result<ScalarValue> {
        self.inner().default_value(data_type)
    }

    fn supports_null_handling_clause(&self) -> bool {
        self.inner().supports_null_handling_clause()
    }

    fn supports_within_group_clause(&self) -> bool {
        self.inner().supports_within_group_clause()
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.inner().set_monotonicity(data_type)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner().documentation()
    }
}
