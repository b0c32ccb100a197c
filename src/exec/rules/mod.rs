//! The physical optimizer rules of gridfusion, in their order.
//!
//! ```text
//!   DataFusion's rules   … WindowTopN │         │ EnsureRequirements … FilterPushdown │        │ SanityCheckPlan
//!   ours                              ▼ EARLY                                        ▼ LATE
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `mod` | the list, and [`gridfusion_rules`] |
//! | `rule` | a rule of the list, as DataFusion calls it |
//! | `operators` | the operators of a plan, so that a rule walks only plans that have what it looks for |
//! | `walk` | the walks of rules through plans |

mod operators;
mod rule;
pub(super) mod walk;

use std::sync::Arc;

use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::aggregate_statistics::AggregateStatistics;
use datafusion::physical_optimizer::ensure_requirements::EnsureRequirements;
use datafusion::physical_optimizer::filter_pushdown::FilterPushdown;
use datafusion::physical_optimizer::sanity_checker::SanityCheckPlan;

use self::operators::LastPlan;
use self::operators::OperatorKind::{
    Aggregate, Filter, GridLookup, GridScan, GroupingSets, HashJoin, Offset, Sink, SparseScan,
    TopK, Window,
};
use self::rule::{GridRule, Row};
use super::counted_times::KeptMetadata;
use super::{
    align, best_first, eager, join_reduce, lookup, mended, offset, reduce, sparse, top, window,
    write,
};

/// Rules before `EnsureRequirements`. Behind it, windows are reversed, and rows are sorted and repartitioned already.
const EARLY: [Row; 13] = [
    Row {
        name: "WindowReduce",
        looks_for: &[GridScan, Window],
        switch: Some(|it| it.enable_reduce && it.enable_reduce_windows),
        rewrite: |plan, settings, _| window::reduce_windows(plan, settings),
    },
    Row {
        name: "GridWindow",
        looks_for: &[GridScan, Window],
        switch: Some(|it| it.enable_grid_windows),
        rewrite: |plan, settings, options| {
            window::run_on_arrays(plan, options.execution.target_partitions, settings)
        },
    },
    Row {
        name: "GridTop",
        looks_for: &[GridScan, Window, Filter],
        switch: Some(|it| it.enable_top_rows),
        rewrite: |plan, settings, _| top::leave_out_rows(plan, settings),
    },
    Row {
        name: "EagerAggregate",
        looks_for: &[GridScan, HashJoin, Aggregate],
        switch: Some(|it| it.enable_reduce && it.enable_eager_aggregation),
        rewrite: |plan, settings, _| eager::reduce_below_joins(plan, settings),
    },
    Row {
        name: "AlignJoins",
        looks_for: &[GridScan, HashJoin],
        switch: Some(|it| it.enable_align_joins),
        rewrite: |plan, settings, _| align::put_side_by_side(plan, settings),
    },
    Row {
        name: "GridReduce",
        looks_for: &[GridScan, Aggregate],
        switch: Some(|it| it.enable_reduce),
        rewrite: |plan, settings, _| reduce::reduce_arrays(plan, settings),
    },
    Row {
        name: "GridLookup",
        looks_for: &[GridScan, HashJoin],
        switch: Some(|it| it.enable_lookup_joins),
        rewrite: |plan, settings, _| lookup::look_up_rows(plan, settings),
    },
    Row {
        name: "GridJoinReduce",
        looks_for: &[GridLookup, Aggregate],
        switch: Some(|it| it.enable_reduce && it.enable_join_reduce),
        rewrite: |plan, settings, _| join_reduce::reduce_joins(plan, settings),
    },
    Row {
        name: "GridCopy",
        looks_for: &[GridScan, Sink],
        switch: Some(|it| it.enable_copies),
        rewrite: |plan, _, _| write::copy_arrays(plan),
    },
    Row {
        name: "GridBestFirst",
        looks_for: &[GridScan, TopK],
        switch: Some(|_| true),
        rewrite: |plan, _, _| best_first::read_best_first(plan),
    },
    Row {
        name: "GridLossyFilters",
        looks_for: &[Filter],
        switch: None,
        rewrite: |plan, _, _| mended::with_honest_filters(plan),
    },
    Row {
        name: "GridForgottenConstants",
        looks_for: &[GroupingSets],
        switch: None,
        rewrite: |plan, _, _| mended::with_forgotten_constants(plan),
    },
    Row {
        name: "GridKeptOffsets",
        looks_for: &[Offset],
        switch: None,
        rewrite: |plan, _, _| mended::with_kept_offsets(plan),
    },
];

/// Rules before `SanityCheckPlan`, which checks what they make.
const LATE: [Row; 5] = [
    Row {
        name: "GridOpenOffsets",
        looks_for: &[Offset],
        switch: None,
        rewrite: |plan, _, _| mended::with_open_offsets(plan),
    },
    Row {
        name: "GridOffset",
        looks_for: &[GridScan, Offset],
        switch: Some(|_| true),
        rewrite: |plan, _, _| offset::skip_chunks(plan),
    },
    Row {
        name: "GridInOrder",
        looks_for: &[GridScan, Sink],
        switch: Some(|_| true),
        rewrite: |plan, _, _| write::read_in_order(plan),
    },
    Row {
        name: "SparseAnswer",
        looks_for: &[SparseScan, Aggregate],
        switch: Some(|it| it.enable_reduce),
        rewrite: |plan, _, _| sparse::answer_by_statistics(plan),
    },
    Row {
        name: "gridfusion_text_files",
        looks_for: &[Sink],
        switch: None,
        rewrite: |plan, _, _| write::with_text_formatters(plan),
    },
];

/// Returns the physical optimizer `rules` of a session with those of gridfusion in their places. Rules of gridfusion that are
/// among `rules` move there, too.
///
/// [`with_gridfusion`](crate::GridfusionSessionStateBuilderExt::with_gridfusion) calls it. A program needs it only for a list of
/// rules of its own:
///
/// ```
/// use datafusion::execution::SessionStateBuilder;
/// use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
/// use gridfusion::gridfusion_rules;
///
/// let rules = gridfusion_rules(PhysicalOptimizer::new().rules);
/// let state = SessionStateBuilder::new()
///     .with_default_features()
///     .with_physical_optimizer_rules(rules)
///     .build();
/// # let _ = state;
/// ```
///
/// Rules up to `GridKeptOffsets` stand before `EnsureRequirements`, and the others before `SanityCheckPlan`. In a list
/// without these two, all stand at the end.
///
/// | rule | what it does | why it stands here |
/// |---|---|---|
/// | `WindowReduce` | reduces arrays by whole partitions of windows, and joins the results with the rows | before `GridWindow`, because a reduction is cheaper than a window; before `GridLookup`, which replaces the join that it makes |
/// | `GridWindow` | runs windows along a dimension on arrays | behind `WindowReduce`, for the windows that are left |
/// | `GridTop` | leaves out rows below windows of which a filter keeps the first | behind `GridWindow`, which needs no sort for such a window |
/// | `EagerAggregate` | reduces arrays before they are joined | before `AlignJoins`: an aggregation that needs states of one array reads no cells of the other |
/// | `AlignJoins` | joins arrays on their dimensions by index | before `GridReduce`, which reduces the one scan that it makes; runs `EagerAggregate` on what it made |
/// | `GridReduce` | turns aggregations into array reductions | before `GridLookup`, whose rows are no scan any more |
/// | `GridLookup` | looks up rows of joins by label | behind the three rules that may replace the join by less work |
/// | `GridJoinReduce` | aggregates joins that look up rows without hashing their pairs | behind `GridLookup`, which makes these joins |
/// | `GridCopy` | writes the cells of an array as another one without rows | behind all that replace scans; before `EnsureRequirements`, which sorts below the sink |
/// | `GridBestFirst` | lets a scan below a TopK read its best chunks first | behind all that replace scans; before filters of TopKs are pushed down |
/// | `GridLossyFilters` | plans filters that DataFusion takes for constants in another way | behind the rules that take filters apart; before `EnsureRequirements`, which relies on what filters declare |
/// | `GridForgottenConstants` | plans grouping sets over constants in another way | as the rule before |
/// | `GridKeptOffsets` | keeps DataFusion from sorting below an `OFFSET` | before `EnsureRequirements`, which sorts there |
/// | `GridOpenOffsets` | takes away what `GridKeptOffsets` put there | before `GridOffset`, which looks below limits |
/// | `GridOffset` | leaves out the chunks of rows that an `OFFSET` skips | behind the rules that push limits down to scans |
/// | `GridInOrder` | reads partitions one after the other, where their rows are written | behind `EnsureRequirements`, which merges them |
/// | `SparseAnswer` | lets statistics of tiles answer aggregates over sparse arrays | behind the rules that divide aggregations into stages, because it answers states of the first |
/// | `gridfusion_text_files` | writes infinity and NaN to JSON as texts, and formats CSV faster | at the end, because it replaces the operator that writes |
///
/// DataFusion's two rules that push filters down stay in their places, and tell columns of the same name apart. Each walks a plan once
/// more.
///
/// The settings `gridfusion.optimizer.…` turn rules off, all or single ones. Rules that mend faults of DataFusion stay on. A plan
/// without arrays is walked once before `EnsureRequirements` and once before `SanityCheckPlan`, for all rules together.
#[must_use]
pub fn gridfusion_rules(
    mut rules: Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>>,
) -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    rules.retain(|rule| !EARLY.iter().chain(&LATE).any(|row| row.name == rule.name()));
    let (requirements, check) = (EnsureRequirements::new(), SanityCheckPlan::new());
    let last = Arc::new(LastPlan::default());
    for (rows, places) in
        [(&EARLY[..], &[requirements.name(), check.name()][..]), (&LATE, &[check.name()])]
    {
        let place = |name: &&str| rules.iter().position(|rule| rule.name() == *name);
        let at = places.iter().find_map(place).unwrap_or(rules.len());
        let ours = rows.iter().map(|row| Arc::new(GridRule::new(row, &last)) as _);
        rules.splice(at..at, ours.collect::<Vec<_>>());
    }
    let (before, after) = (FilterPushdown::new(), FilterPushdown::new_post_optimization());
    for rule in rules.iter_mut().filter(|rule| [before.name(), after.name()].contains(&rule.name()))
    {
        *rule = Arc::new(mended::PushdownByIndex(Arc::clone(rule)));
    }
    let statistics = AggregateStatistics::new();
    for rule in rules.iter_mut().filter(|rule| rule.name() == statistics.name()) {
        *rule = Arc::new(KeptMetadata(Arc::clone(rule)));
    }
    rules
}

#[cfg(test)]
mod tests {
    use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;

    use super::*;

    fn names(rules: &[Arc<dyn PhysicalOptimizerRule + Send + Sync>]) -> Vec<String> {
        rules.iter().map(|rule| rule.name().to_owned()).collect()
    }

    #[test]
    fn the_design_has_the_table_of_rules() {
        let (own, design) = (include_str!("mod.rs"), include_str!("../../../DESIGN.md"));
        let rows: Vec<&str> = own.lines().filter_map(|line| line.strip_prefix("/// | ")).collect();
        assert_eq!(rows.len(), 1 + EARLY.len() + LATE.len());
        for row in rows {
            assert!(design.lines().any(|line| line.strip_prefix("| ") == Some(row)), "{row}");
        }
        let last_early = format!("Rules up to `{}`", EARLY[EARLY.len() - 1].name);
        assert!(own.contains(&last_early) && design.contains(&last_early), "{last_early}");
    }

    #[test]
    fn the_rules_stand_in_their_places_once() {
        let plain = PhysicalOptimizer::new().rules;
        let ours = gridfusion_rules(plain.clone());
        let all = names(&ours);
        let at = |name: &str| all.iter().position(|it| it == name).unwrap();
        assert_eq!(at("WindowReduce") + EARLY.len(), at("EnsureRequirements"));
        assert_eq!(at("GridOpenOffsets") + LATE.len(), at("SanityCheckPlan"));
        assert_eq!(at("SanityCheckPlan"), all.len() - 1);
        assert_eq!(all.len(), plain.len() + EARLY.len() + LATE.len());
        assert_eq!(names(&gridfusion_rules(ours.clone())), all, "again");
        // A session has some of the rules, in wrong places.
        let mut some = plain;
        for name in ["GridReduce", "SparseAnswer", "WindowReduce"] {
            some.push(Arc::clone(&ours[at(name)]));
        }
        some.insert(0, Arc::clone(&ours[at("GridLookup")]));
        assert_eq!(names(&gridfusion_rules(some)), all, "moved");
    }

    #[test]
    fn lists_without_known_places_get_the_rules_at_their_end() {
        let rows = EARLY.iter().chain(&LATE).map(|row| row.name);
        assert_eq!(names(&gridfusion_rules(vec![])), rows.collect::<Vec<_>>());
        let check: Arc<dyn PhysicalOptimizerRule + Send + Sync> = Arc::new(SanityCheckPlan::new());
        let all = names(&gridfusion_rules(vec![check]));
        assert_eq!(all.last().unwrap(), "SanityCheckPlan");
    }

    /// The table of the documentation lists the rules in their order.
    #[test]
    fn the_documentation_lists_the_rules() {
        let cells = include_str!("mod.rs").lines().filter_map(|it| it.strip_prefix("/// | `"));
        let listed: Vec<&str> = cells.filter_map(|it| it.split('`').next()).collect();
        let rows: Vec<&str> = EARLY.iter().chain(&LATE).map(|row| row.name).collect();
        assert_eq!(listed, rows);
    }
}
