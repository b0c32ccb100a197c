//! [`GridfusionSessionStateBuilderExt`]: adds gridfusion to a session that is being built.

use std::sync::Arc;

use datafusion::common::GetExt;
use datafusion::execution::SessionStateBuilder;
use datafusion::optimizer::analyzer::type_coercion::TypeCoercion;
use datafusion::optimizer::{Analyzer, AnalyzerRule, Optimizer, OptimizerRule};

use super::ArrayTableFactory;
use super::derived_extremes::DerivedExtremes;
use super::inserts::InsertedTypesRule;
use super::merged_types::MergedTypesRule;
use super::named_arguments::NamedArguments;
use super::nearest_rule::NearestRule;
use super::shown_names::ShownNames;
use super::updates::UpdatesRule;
use crate::exec::ArrayFormatFactory;
use crate::exec::mended::{MendedEnd, MendedLogic, WhenExecuted};
use crate::exec::own_functions::{
    OwnFunctionsRule, is_own_aggregate, is_own_scalar, own_aggregate, own_scalar,
};
use crate::exec::{
    CountedDatesRule, CountedTimesRule, ExtractPlanner, GridfusionConfig, ParquetTypesRule,
    SingleLabelPlanner, SingleLabelRule, WrittenTimesRule, gridfusion_rules,
};
use crate::functions::{GridfusionFunctions, read_array};

/// A method of [`SessionStateBuilder`] that adds gridfusion to the session.
///
/// ```
/// use datafusion::execution::SessionStateBuilder;
/// use datafusion::prelude::SessionContext;
/// use gridfusion::GridfusionSessionStateBuilderExt;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// let state = SessionStateBuilder::new().with_default_features().with_gridfusion().build();
/// let ctx = SessionContext::new_with_state(state);
/// ctx.sql(
///     "CREATE EXTERNAL TABLE temperature STORED AS ARRAY LOCATION 'examples/data/stations.tet'
///      OPTIONS ('dataset' 'temperature')",
/// )
/// .await?;
/// # Ok(())
/// # }
/// ```
pub trait GridfusionSessionStateBuilderExt {
    /// Adds to the session:
    ///
    /// - `CREATE EXTERNAL TABLE … STORED AS ARRAY`, or as the name of a format
    /// - the [functions](crate::functions) of gridfusion: table functions such as `read_array` and `array_info`, and the aggregate
    ///   `weighted_avg(value, weight)`, `max_by(x, y)` and `min_by(x, y)`
    /// - versions of `sum`, `avg`, `min`, `max`, variances, `corr`, `covar`, `regr_…`, `date_trunc` and `date_bin`
    ///   without faults of DataFusion's; functions of the session itself stay
    /// - versions of `date_part`, `to_char`, `array_agg` and `nth_value` for times of all calendars
    /// - rules for physical plans, in the places that [`gridfusion_rules`] gives them
    /// - a rule that casts columns of `COPY` to types that Parquet has
    /// - the function `nearest(dimension, value)`, and a rule that finds the labels of its dimension
    /// - the function `cf_days(a, b, calendar)`
    /// - a rule that reads times without seconds, minutes or days, such as `'2022-07-01 12:00'` and `'2022-07'`
    /// - rules and a planner for numbers that count time in a calendar that SQL lacks: they compare with dates, have their parts, and
    ///   become text, but no timestamps
    /// - rules that plan what DataFusion answers wrongly in another way; the book lists these faults
    /// - a rule that computes extremes such as `max(value - 273.15)` and `max(abs(value))` of arrays from those of the variable
    /// - a rule that compares labels of single precision in singles, and a planner that computes with them in singles
    /// - `COPY … TO 'x.tet'`, or `STORED AS TET`; with features, Zarr and NetCDF
    /// - a rule by which `UPDATE` changes the cells of an array
    /// - rules by which `INSERT INTO` and `MERGE INTO` an array refuse values that the array cannot hold, instead of rounding them
    /// - the settings, [`GridfusionConfig`]
    ///
    /// Does not change settings that exist already, nor the formats in these settings. A second call changes nothing.
    #[must_use]
    fn with_gridfusion(self) -> Self;
}

impl GridfusionSessionStateBuilderExt for SessionStateBuilder {
    fn with_gridfusion(mut self) -> Self {
        let rules = &mut self.physical_optimizers().get_or_insert_default().rules;
        *rules = gridfusion_rules(std::mem::take(rules));
        add_analyzer_rule(&mut self, Arc::new(ParquetTypesRule));
        add_analyzer_rule(&mut self, Arc::new(WrittenTimesRule));
        add_analyzer_rule(&mut self, Arc::new(CountedTimesRule));
        add_analyzer_rule(&mut self, Arc::new(NearestRule));
        add_analyzer_rule(&mut self, Arc::new(InsertedTypesRule));
        add_mended(&mut self);
        add_comparisons(&mut self);
        let config = self.config().get_or_insert_default().options_mut();
        if config.extensions.get::<GridfusionConfig>().is_none() {
            config.extensions.insert(GridfusionConfig::default());
        }
        let formats = GridfusionConfig::from_options(config).formats.clone();
        let ours = GridfusionFunctions::new(&formats);
        add_functions(&mut self, &ours);
        add_analyzer_rule(&mut self, Arc::new(DerivedExtremes));
        // A session with `read_array` has the planner of named arguments already. Two would be harmless.
        let functions = self.table_functions().get_or_insert_default();
        if !functions.contains_key(read_array().name()) {
            let planners = self.relation_planners().get_or_insert_default();
            planners.push(Arc::new(NamedArguments));
            planners.push(Arc::new(ShownNames));
        }
        let functions = self.table_functions().get_or_insert_default();
        functions.extend(ours.table.into_iter().map(|it| (it.name().to_owned(), it)));
        add_file_formats(&mut self);
        let any = ArrayTableFactory::FILE_TYPE.to_owned();
        let builder = self.with_table_factory(any, Arc::new(ArrayTableFactory::default()));
        formats.iter().fold(builder, |builder, format| {
            let factory = Arc::new(ArrayTableFactory::for_format(format.name()));
            builder.with_table_factory(format.name().to_uppercase(), factory)
        })
    }
}

/// Adds the formats of arrays that `COPY` writes, if the session lacks them.
fn add_file_formats(builder: &mut SessionStateBuilder) {
    let present = builder.file_formats().get_or_insert_default();
    for ours in ArrayFormatFactory::all() {
        if !present.iter().any(|it| it.get_ext() == ours.get_ext()) {
            present.push(Arc::new(ours));
        }
    }
}

/// Puts our versions of functions into the place of those of DataFusion, and adds functions that DataFusion lacks. Functions of the
/// session itself stay.
fn add_functions(builder: &mut SessionStateBuilder, ours: &GridfusionFunctions) {
    let present = builder.aggregate_functions().get_or_insert_default();
    for function in present.iter_mut() {
        if let Some(own) = own_aggregate(function) {
            *function = own;
        }
    }
    for function in &ours.aggregate {
        if !is_own_aggregate(function) && !present.iter().any(|it| it.name() == function.name()) {
            present.push(Arc::clone(function));
        }
    }
    let present = builder.scalar_functions().get_or_insert_default();
    for function in present.iter_mut() {
        if let Some(own) = own_scalar(function) {
            *function = own;
        }
    }
    for function in &ours.scalar {
        if !is_own_scalar(function) && !present.iter().any(|it| it.name() == function.name()) {
            present.push(Arc::clone(function));
        }
    }
    add_analyzer_rule(builder, Arc::new(OwnFunctionsRule));
}

/// Adds a rule behind those of the analyzer, if the session lacks it.
fn add_analyzer_rule(builder: &mut SessionStateBuilder, rule: Arc<dyn AnalyzerRule + Send + Sync>) {
    let is_there = |rules: &[Arc<dyn AnalyzerRule + Send + Sync>]| {
        rules.iter().any(|it| it.name() == rule.name())
    };
    let of_analyzer = builder.analyzer().as_ref().is_some_and(|it| is_there(&it.rules));
    let rules = builder.analyzer_rules().get_or_insert_default();
    if !of_analyzer && !is_there(rules) {
        rules.push(rule);
    }
}

/// Adds the rules that come before the coercion of types, and the planner for labels of single precision, if the session lacks them.
fn add_comparisons(builder: &mut SessionStateBuilder) {
    let rule = SingleLabelRule;
    let rules = &mut builder.analyzer().get_or_insert_default().rules;
    if rules.iter().any(|it| it.name() == rule.name()) {
        return;
    }
    let before = TypeCoercion::new();
    let at = rules.iter().position(|it| it.name() == before.name());
    // A date of another calendar becomes a number first, which is then compared like all others.
    let at = at.unwrap_or(0);
    rules.insert(at, Arc::new(rule));
    rules.insert(at, Arc::new(CountedDatesRule));
    rules.insert(at, Arc::new(MergedTypesRule));
    rules.insert(at, Arc::new(UpdatesRule));
    let planners = builder.expr_planners().get_or_insert_default();
    planners.insert(0, Arc::new(ExtractPlanner));
    planners.push(Arc::new(SingleLabelPlanner));
}

/// Adds the rules that avoid faults of DataFusion, if the session lacks them.
fn add_mended(builder: &mut SessionStateBuilder) {
    let before: Arc<dyn AnalyzerRule + Send + Sync> = Arc::new(MendedLogic);
    let rules = &mut builder.analyzer().get_or_insert_with(Analyzer::new).rules;
    if !rules.iter().any(|it| it.name() == before.name()) {
        rules.push(before);
    }
    let end: Arc<dyn OptimizerRule + Send + Sync> = Arc::new(MendedEnd);
    let rules = &mut builder.optimizer().get_or_insert_with(Optimizer::new).rules;
    if !rules.iter().any(|it| it.name() == end.name()) {
        rules.push(end);
        for rule in rules {
            *rule = Arc::new(WhenExecuted(Arc::clone(rule)));
        }
    }
}
