//! The contract of all operators of the library: dynamic filters, statistics of partitions, resets.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::physical_plan::execution_plan::{
    ChildrenPropertiesMode, ReplaceChildrenOptions, reset_plan_states,
};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, collect, displayable};
use datafusion::prelude::SessionContext;
use gridfusion::codec::{TravelledExec, with_shared_joins, with_work_lists};

use crate::codec::sent::{bytes, plan, received};
use crate::codec::shapes::{metric, tables};
use crate::docs::style::checked_files;
use crate::support::{query, rows_of, shipped, sorted_rows_from};

/// The operator that stands in a plan only while `EnsureRequirements` runs.
const OF_PLANNING: &str = "OffsetBarrierExec";

/// The operators below sinks of arrays. Plans that write stay in their process.
const OF_SINKS: [&str; 2] = ["GridCellsExec", "InOrderExec"];

/// Each operator of finished plans, and whether it can hold dynamic filters.
const OPERATORS: [(&str, bool); 14] = [
    ("GridCoverageExec", false),
    ("GridJoinReduceExec", false),
    ("GridLookupExec", true),
    ("GridPointsExec", false),
    ("GridReduceExec", true),
    ("GridScanExec", true),
    ("GridTopExec", false),
    ("GridWindowExec", false),
    ("JoinShareExec", false),
    ("SharedJoinExec", true),
    ("SparseAnswerExec", false),
    ("SparseScanExec", true),
    ("TravelledExec", true),
    ("WorkListExec", true),
];

#[test]
fn all_operators_of_the_sources_are_listed() {
    let mut found = BTreeSet::new();
    for path in checked_files().iter().filter(|path| path.starts_with("src/")) {
        let text = std::fs::read_to_string(shipped(path)).unwrap();
        let names = text.lines().filter_map(|line| line.strip_prefix("impl Operator for "));
        found.extend(names.map(|name| name.trim_end_matches(" {").to_owned()));
    }
    assert!(found.remove("Dummy"), "the operator of the unit tests: {found:?}");
    assert!(found.remove(OF_PLANNING), "{found:?}");
    assert!(OF_SINKS.iter().all(|name| found.remove(*name)), "{found:?}");
    assert_eq!(found, OPERATORS.map(|(name, _)| name.to_owned()).into());
}

/// Queries in whose plans all operators occur.
const QUERIES: [&str; 11] = [
    "SELECT t.* FROM temperature t JOIN hours ON t.time = hours.hour",
    "SELECT q.* FROM (SELECT time, avg(value) AS v FROM temperature GROUP BY time) q JOIN hours ON q.time = hours.hour",
    "SELECT t.time, t.value, p.height, h.tag FROM temperature t JOIN places p ON t.station = p.station \
     JOIN hours h ON t.time = h.hour",
    "SELECT *, avg(value) OVER (PARTITION BY station ORDER BY time ROWS 3 PRECEDING) AS w FROM temperature",
    "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY station ORDER BY value) AS n FROM temperature) WHERE n <= 2",
    "SELECT * FROM temperature ORDER BY value, time, station LIMIT 2",
    "SELECT ship, speed, time FROM ships ORDER BY speed DESC NULLS LAST, ship, time LIMIT 3",
    "SELECT count(*), sum(speed), min(depth) FROM ships WHERE lat < 60",
    "SELECT * FROM grid_coverage(air, (SELECT 'A' AS name, 'POLYGON ((0 40, 20 40, 9 60, 0 40))' AS wkt))",
    "SELECT * FROM grid_points(air, (SELECT 50.0 AS lat, 7.0 AS lon))",
    "SELECT t.time, p.height, avg(t.value * p.height) FROM temperature t JOIN places p ON t.station = p.station GROUP BY t.time, p.height",
];

/// The query whose plan has a hash join above a lookup.
const ABOVE_LOOKUP: &str = QUERIES[2];

async fn session() -> SessionContext {
    let ctx = tables().await;
    for sql in [
        "CREATE TABLE hours AS SELECT hour, 'a' AS tag FROM (SELECT DISTINCT time AS hour FROM temperature \
         ORDER BY hour LIMIT 2)",
        "CREATE TABLE places AS SELECT station, value AS height FROM elevation",
    ] {
        query(&ctx, sql).await.unwrap();
    }
    ctx
}

/// An operator of the library in a plan.
#[derive(Debug, PartialEq)]
struct Seen {
    name: String,
    /// The number of dynamic filters in the text.
    shown: usize,
    /// The identities of those among the expressions.
    visited: Vec<u64>,
}

/// Returns the operators of the library in a plan, parents first.
fn operators(plan: &Arc<dyn ExecutionPlan>) -> Vec<Seen> {
    // A node that travelled has the name of the one that it becomes.
    let name = if plan.is::<TravelledExec>() { "TravelledExec" } else { plan.name() };
    let mut seen = vec![];
    if OPERATORS.iter().any(|it| it.0 == name) {
        let text = displayable(plan.as_ref()).one_line().to_string();
        let shown = text.matches("DynamicFilter [").count();
        let mut visited = vec![];
        plan.apply_expressions(&mut |root| {
            root.apply(|expr| {
                visited.extend(expr.expression_id());
                Ok(TreeNodeRecursion::Continue)
            })
        })
        .unwrap();
        seen.push(Seen { name: name.to_owned(), shown, visited });
    }
    seen.extend(plan.children().into_iter().flat_map(operators));
    seen
}

/// Returns the identities of the dynamic filters that the operators of a plan compute.
fn computed(plan: &Arc<dyn ExecutionPlan>) -> BTreeSet<u64> {
    let own = plan.dynamic_expressions_produced();
    let own = own.iter().filter_map(|expr| expr.expression_id());
    own.chain(plan.children().into_iter().flat_map(computed)).collect()
}

/// Fails unless each dynamic filter in the text of an operator is among its expressions, and another one computes it.
fn check(plan: &Arc<dyn ExecutionPlan>, what: &str) {
    let computed = computed(plan);
    for seen in operators(plan) {
        assert_eq!(seen.visited.len(), seen.shown, "{what}: {seen:?}");
        assert!(seen.visited.iter().all(|id| computed.contains(id)), "{what}: {seen:?}");
    }
}

/// Returns the filters of each operator as places among all filters of the plan, so that those of two plans compare.
fn places(seen: &[Seen]) -> Vec<Vec<usize>> {
    let all: Vec<u64> = seen.iter().flat_map(|it| it.visited.clone()).collect();
    let place = |id: &u64| all.iter().position(|it| it == id).unwrap();
    seen.iter().map(|it| it.visited.iter().map(place).collect()).collect()
}

/// Makes each node of a plan again.
fn rewritten(plan: &Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    let again = |node: Arc<dyn ExecutionPlan>| {
        let children = node.children().into_iter().map(Arc::clone).collect();
        let recompute = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        node.replace_children(children, recompute).map(Transformed::yes)
    };
    Arc::clone(plan).transform_up(again).data().unwrap()
}

/// Returns the names behind `impl ExecutionPlan for` in the sources.
fn declared(folder: &Path, names: &mut Vec<String>) {
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            declared(&path, names);
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let of_line = |line: &str| Some(line.strip_prefix("impl ExecutionPlan for ")?.to_owned());
        let found = text.lines().filter_map(of_line);
        names.extend(found.map(|it| it.trim_end_matches([' ', '{']).to_owned()));
    }
}

/// A hash join computes a dynamic filter only if it finds the filter among the expressions of its probe side.
#[tokio::test]
async fn dynamic_filters_are_visited_kept_and_sent() {
    let ctx = session().await;
    let (mut seen, mut filtered) = (BTreeSet::new(), BTreeSet::new());
    let mut note = |operators: Vec<Seen>| {
        for it in operators {
            if it.shown > 0 {
                filtered.insert(it.name.clone());
            }
            seen.insert(it.name);
        }
    };
    for sql in QUERIES {
        for lookups in [true, false] {
            query(&ctx, &format!("SET gridfusion.optimizer.enable_lookup_joins = {lookups}"))
                .await
                .unwrap();
            let planned = plan(&ctx, sql).await.unwrap();
            check(&planned, sql);
            let known = operators(&planned);
            assert_eq!(operators(&rewritten(&planned)), known, "{sql}");
            // Sent on without having run.
            let worker = SessionContext::new();
            let sent = received(&bytes(&planned).unwrap(), &worker).unwrap();
            let sent = received(&bytes(&sent).unwrap(), &worker).unwrap();
            check(&sent, sql);
            assert_eq!(places(&operators(&sent)), places(&known), "{sql}");
            assert_eq!(operators(&rewritten(&sent)), operators(&sent), "{sql}");
            let listed = with_work_lists(Arc::clone(&planned)).unwrap();
            check(&listed, sql);
            assert_eq!(places(&operators(&listed)), places(&known), "{sql}");
            let shared = with_shared_joins(Arc::clone(&planned), usize::MAX, &|rows| rows).unwrap();
            check(&shared, sql);
            assert_eq!(operators(&rewritten(&shared)), operators(&shared), "{sql}");
            check(&received(&bytes(&shared).unwrap(), &worker).unwrap(), sql);
            for plan in [planned, sent, listed, shared] {
                let reset = reset_plan_states(Arc::clone(&plan)).unwrap();
                let left = operators(&reset);
                // A node that travelled has its planned text until it runs.
                let is_shown = |it: &Seen| it.shown > 0 && it.name != "TravelledExec";
                let empty = |it: &Seen| it.visited.is_empty() && !is_shown(it);
                assert!(left.iter().all(empty), "{sql}: {left:?}");
                note(operators(&plan));
            }
        }
    }
    let all: Vec<&str> = OPERATORS.iter().map(|it| it.0).collect();
    let with_filters = OPERATORS.iter().filter(|it| it.1).map(|it| it.0);
    assert!(seen.iter().eq(all.iter()), "{seen:?}");
    assert!(filtered.iter().eq(with_filters), "{filtered:?}");
    let mut names = vec![];
    declared(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut names);
    names.retain(|name| {
        name.ends_with("Exec") && name != OF_PLANNING && !OF_SINKS.contains(&name.as_str())
    });
    names.sort();
    assert_eq!(names, all, "an operator that this test does not know");
}

/// A hash join above a lookup skips chunks in another session, too.
#[tokio::test]
async fn joins_above_lookups_skip_chunks_where_they_were_sent() {
    let ctx = session().await;
    let worker = SessionContext::new();
    let planned = plan(&ctx, ABOVE_LOOKUP).await.unwrap();
    assert!(operators(&planned).iter().any(|it| it.name == "GridLookupExec" && it.shown == 1));
    let sent = received(&bytes(&planned).unwrap(), &worker).unwrap();
    let expected = sorted_rows_from(&ctx, ABOVE_LOOKUP).await;
    for (plan, session) in [(planned, &ctx), (sent, &worker)] {
        let mut rows = rows_of(&collect(Arc::clone(&plan), session.task_ctx()).await.unwrap());
        rows.sort();
        assert_eq!((rows.len(), &rows), (12, &expected));
        let [read, pruned, bytes] =
            ["chunks_read", "chunks_pruned_dynamic_filter", "bytes_decoded"]
                .map(|name| metric(&plan, name));
        // The first two hours of six stations are in one chunk of six.
        assert_eq!((read, pruned), (1, 5));
        assert!(bytes > 0 && bytes < 100_000, "{bytes}");
    }
}

/// The statistics of the partitions of an operator add up to those of all its rows, and no partition has more.
#[tokio::test]
async fn statistics_are_those_of_the_partition() {
    fn walk(plan: &Arc<dyn ExecutionPlan>, sql: &str, known: &mut BTreeSet<String>) {
        plan.children().into_iter().for_each(|child| walk(child, sql, known));
        if operators(plan).first().is_none_or(|it| it.name != plan.name()) {
            return;
        }
        let rows = |partition: Option<usize>| {
            let arguments = StatisticsArgs::new().with_partition(partition);
            let statistics = StatisticsContext::new().compute(plan.as_ref(), &arguments).unwrap();
            statistics.num_rows.get_value().copied()
        };
        let count = plan.output_partitioning().partition_count();
        let of_partitions: Option<Vec<usize>> = (0..count).map(|it| rows(Some(it))).collect();
        if let (Some(of_partitions), Some(all)) = (of_partitions, rows(None)) {
            let sum = of_partitions.iter().sum::<usize>();
            // Each may be rounded down.
            assert!(sum <= all && sum + count > all, "{sql}: {} {sum} of {all}", plan.name());
            if count > 1 {
                assert!(of_partitions.iter().all(|rows| *rows < all), "{sql}: {of_partitions:?}");
                known.insert(plan.name().to_owned());
            }
        }
        // A partition that is not there is an error, and no panic.
        let inputs: Vec<_> = plan.children().iter().map(|_| Arc::default()).collect();
        for missing in [count, usize::MAX] {
            let arguments = StatisticsArgs::new().with_partition(Some(missing));
            assert!(plan.statistics_from_inputs(&inputs, &arguments).is_err(), "{}", plan.name());
            let context = Arc::new(datafusion::execution::TaskContext::default());
            assert!(plan.execute(missing, context).is_err(), "{}", plan.name());
        }
    }
    let ctx = session().await;
    let mut known = BTreeSet::new();
    for sql in QUERIES {
        walk(&plan(&ctx, sql).await.unwrap(), sql, &mut known);
    }
    for operator in ["GridLookupExec", "GridScanExec"] {
        assert!(known.contains(operator), "{known:?}");
    }
}

/// The numbers of a run are no longer there after a reset.
#[tokio::test]
async fn a_reset_forgets_the_run() {
    let ctx = session().await;
    for sql in QUERIES {
        let ran = with_work_lists(plan(&ctx, sql).await.unwrap()).unwrap();
        collect(Arc::clone(&ran), ctx.task_ctx()).await.unwrap();
        let rows = |plan: &Arc<dyn ExecutionPlan>| {
            ["tiles_answered", "chunks_read", "tiles_read", "polygons", "points"]
                .map(|name| metric(plan, name))
        };
        assert_ne!(rows(&ran), [0; 5], "{sql}");
        let reset = reset_plan_states(ran).unwrap();
        assert_eq!(rows(&reset), [0; 5], "{sql}");
    }
}
