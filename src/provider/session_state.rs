//! [`GridfusionSessionStateBuilderExt`]: adds gridfusion to a session that is being built.

use std::sync::Arc;

use datafusion::catalog::{TableFunction, TableFunctionImpl};
use datafusion::execution::SessionStateBuilder;
use datafusion::optimizer::analyzer::type_coercion::TypeCoercion;
use datafusion::optimizer::{Analyzer, AnalyzerRule, Optimizer, OptimizerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::ensure_requirements::EnsureRequirements;

use super::ArrayTableFactory;
use super::named_arguments::NamedArguments;
use super::shown_names::ShownNames;
use super::table_functions::ArrayFunction;
use crate::exec::mended::{
    self, ForgottenConstantsRule, LossyFiltersRule, MendedEnd, MendedLogic, WhenExecuted,
};
use crate::exec::own_functions::{OwnFunctionsRule, own_aggregate, own_scalar};
use crate::exec::weighted_avg::weighted_avg_udaf;
use crate::exec::{
    AlignJoinsRule, BestFirstRule, EagerAggregateRule, GridLookupRule, GridReduceRule, GridTopRule,
    GridWindowRule, GridfusionConfig, JsonFloatsRule, ParquetTypesRule, SingleLabelPlanner,
    SingleLabelRule, SparseAnswerRule, WindowReduceRule,
};

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
    /// - `CREATE EXTERNAL TABLE … STORED AS ARRAY`, `TET` or `TILEDB`
    /// - table functions: `read_array`, `tet_info`, …
    /// - the aggregate function `weighted_avg(value, weight)`
    /// - versions of `sum`, `avg`, `min`, `max`, variances, `corr`, `covar`, `regr_…`, `date_trunc` and `date_bin`
    ///   without faults of DataFusion's; functions of the session itself stay
    /// - [`GridReduceRule`], which turns aggregations into array reductions, before repartitioning is added
    /// - [`WindowReduceRule`], which reduces arrays by the partitions of windows
    /// - [`GridWindowRule`] and [`GridTopRule`], which run windows on arrays instead of over sorted rows
    /// - [`EagerAggregateRule`], which reduces arrays before they are joined with tables
    /// - [`AlignJoinsRule`], which joins arrays on their dimensions by index
    /// - [`GridLookupRule`], which looks up rows by label instead of hashing
    /// - [`SparseAnswerRule`], which lets statistics of tiles answer aggregates over sparse arrays
    /// - [`BestFirstRule`], which orders the chunks that a TopK reads
    /// - [`ParquetTypesRule`] and [`JsonFloatsRule`], which write files whose values other programs read alike
    /// - rules that plan what DataFusion answers wrongly in another way; the book lists these faults
    /// - [`SingleLabelRule`], which compares labels of single precision in singles, and a planner that computes with them in singles
    /// - the settings, [`GridfusionConfig`]
    ///
    /// Does not change rules and settings that exist already, nor the formats in these settings.
    #[must_use]
    fn with_gridfusion(self) -> Self;
}

impl GridfusionSessionStateBuilderExt for SessionStateBuilder {
    fn with_gridfusion(mut self) -> Self {
        add_rules(&mut self);
        add_mended(&mut self);
        add_comparisons(&mut self);
        let config = self.config().get_or_insert_default().options_mut();
        if config.extensions.get::<GridfusionConfig>().is_none() {
            config.extensions.insert(GridfusionConfig::default());
        }
        let formats = GridfusionConfig::of(config).formats;
        let aggregates = self.aggregate_functions().get_or_insert_default();
        if !aggregates.iter().any(|it| it.name() == weighted_avg_udaf().name()) {
            aggregates.push(weighted_avg_udaf());
        }
        add_functions(&mut self);
        // A session with `read_array` has the planner of named arguments already. Two would be harmless.
        let functions = self.table_functions().get_or_insert_default();
        if !functions.contains_key(ArrayFunction::read_any().name()) {
            let planners = self.relation_planners().get_or_insert_default();
            planners.push(Arc::new(NamedArguments));
            planners.push(Arc::new(ShownNames));
        }
        let functions = self.table_functions().get_or_insert_default();
        for function in ArrayFunction::all(&formats) {
            let name = function.name().to_owned();
            let function: Arc<dyn TableFunctionImpl> = Arc::new(function);
            functions.insert(name.clone(), Arc::new(TableFunction::new(name, function)));
        }
        let any = ArrayTableFactory::FILE_TYPE.to_owned();
        let builder = self.with_table_factory(any, Arc::new(ArrayTableFactory::default()));
        formats.iter().fold(builder, |builder, format| {
            let factory = Arc::new(ArrayTableFactory::of(format.name()));
            builder.with_table_factory(format.name().to_uppercase(), factory)
        })
    }
}

/// Puts our versions of functions into the place of those of DataFusion. Functions of the session itself stay.
fn add_functions(builder: &mut SessionStateBuilder) {
    for function in builder.aggregate_functions().iter_mut().flatten() {
        if let Some(own) = own_aggregate(function) {
            *function = own;
        }
    }
    for function in builder.scalar_functions().iter_mut().flatten() {
        if let Some(own) = own_scalar(function) {
            *function = own;
        }
    }
    let is_there = |rules: &[Arc<dyn AnalyzerRule + Send + Sync>]| {
        rules.iter().any(|rule| rule.name() == OwnFunctionsRule.name())
    };
    let of_analyzer = builder.analyzer().as_ref().is_some_and(|it| is_there(&it.rules));
    let rules = builder.analyzer_rules().get_or_insert_default();
    if !of_analyzer && !is_there(rules) {
        rules.push(Arc::new(OwnFunctionsRule));
    }
}

/// Adds the rule and the planner for labels of single precision, if the session lacks them.
fn add_comparisons(builder: &mut SessionStateBuilder) {
    let rule = SingleLabelRule;
    let rules = &mut builder.analyzer().get_or_insert_default().rules;
    if rules.iter().any(|it| it.name() == rule.name()) {
        return;
    }
    let before = TypeCoercion::new();
    let at = rules.iter().position(|it| it.name() == before.name());
    rules.insert(at.unwrap_or(0), Arc::new(rule));
    builder.expr_planners().get_or_insert_default().push(Arc::new(SingleLabelPlanner));
}

/// Adds the optimizer rules that the session lacks.
fn add_rules(builder: &mut SessionStateBuilder) {
    let rules = &mut builder.physical_optimizers().get_or_insert_default().rules;
    let ours: [Arc<dyn PhysicalOptimizerRule + Send + Sync>; 10] = [
        Arc::new(WindowReduceRule),
        Arc::new(GridWindowRule),
        Arc::new(GridTopRule),
        Arc::new(EagerAggregateRule),
        Arc::new(AlignJoinsRule),
        Arc::new(GridReduceRule),
        Arc::new(GridLookupRule),
        Arc::new(BestFirstRule),
        Arc::new(LossyFiltersRule),
        Arc::new(ForgottenConstantsRule),
    ];
    for rule in ours {
        if !rules.iter().any(|it| it.name() == rule.name()) {
            // Reductions replace aggregations, so repartitioning is added only for the remaining operators.
            let before = EnsureRequirements::new();
            let at = rules.iter().position(|it| it.name() == before.name());
            rules.insert(at.unwrap_or(rules.len()), rule);
        }
    }
    // Statistics of tiles answer stages of aggregations, and the rules before make these stages.
    let last: [Arc<dyn PhysicalOptimizerRule + Send + Sync>; 2] =
        [Arc::new(SparseAnswerRule), Arc::new(JsonFloatsRule)];
    for rule in last {
        if !rules.iter().any(|it| it.name() == rule.name()) {
            rules.push(rule);
        }
    }
    let is_known = |rules: &[Arc<dyn AnalyzerRule + Send + Sync>]| {
        rules.iter().any(|it| it.name() == ParquetTypesRule.name())
    };
    let in_analyzer = builder.analyzer().as_ref().is_some_and(|it| is_known(&it.rules));
    let added = builder.analyzer_rules().get_or_insert_default();
    if !in_analyzer && !is_known(added) {
        added.push(Arc::new(ParquetTypesRule));
    }
}

/// Adds the rules and functions that avoid faults of DataFusion, if the session lacks them.
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
    let functions = builder.scalar_functions().get_or_insert_default();
    for function in mended::functions() {
        if !functions.iter().any(|it| it.name() == function.name()) {
            functions.push(function);
        }
    }
}
