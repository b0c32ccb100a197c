//! Random medians and percentiles, compared with rows in memory.

use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use super::pairs::compare_cases;
use super::random::tier;
use crate::support::cases::{Case, name};
use crate::support::{query, reducing};

/// A random quantile.
fn aggregate(case: &Case, rng: &mut StdRng) -> String {
    let axis = rng.random_range(0..case.axes.len());
    let predicate = case.axes[axis].predicate(&name(axis), rng);
    let number = rng.random_range(-4..6);
    let fraction = ["0.0", "0.1", "0.5", "0.75", "0.9", "1.0"].choose(rng).unwrap();
    let choices = [
        "median(value)".to_owned(),
        "median(CAST(value AS DOUBLE))".to_owned(),
        format!("median(value * 2) FILTER (WHERE {predicate})"),
        format!("percentile_cont(value, {fraction})"),
        format!("percentile_cont(value, {fraction})"),
        format!("percentile_cont({fraction}) WITHIN GROUP (ORDER BY value)"),
        format!("percentile_cont({fraction}) WITHIN GROUP (ORDER BY value DESC)"),
        format!("percentile_cont(CAST(value AS DOUBLE), {fraction})"),
        format!(
            "percentile_cont(value, {fraction}) FILTER (WHERE value > {number} OR {predicate})"
        ),
        format!("percentile_cont(DISTINCT value, {fraction})"),
        "approx_percentile_cont(0.0) WITHIN GROUP (ORDER BY value)".to_owned(),
    ];
    choices.choose(rng).unwrap().clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quantiles_agree_with_rows() {
    let compared = |seed| compare_cases(seed, (60, 10), aggregate, "tier=accumulators");
    let halves = [45, 46].map(|seed| tokio::spawn(compared(seed)));
    let mut found = 0;
    for half in halves {
        found += half.await.unwrap();
    }
    assert!(found > 500, "{found} queries were reductions");
}

/// The spelling of the SQL standard sorts no rows.
#[tokio::test]
async fn percentiles_within_groups_are_reductions() {
    let mut rng = rand::SeedableRng::seed_from_u64(1);
    let case = Case::of_shape(&mut rng, &[12, 5], &[4, 5], false);
    let ctx = reducing(2, 8192);
    let options = ArrayOptions::default().with_dataset("v");
    ctx.register_array("t", case.file.location(), options).await.unwrap();
    for call in [
        "percentile_cont(0.9) WITHIN GROUP (ORDER BY value)",
        "percentile_cont(0.1) WITHIN GROUP (ORDER BY value DESC)",
        "approx_percentile_cont(0.9) WITHIN GROUP (ORDER BY value)",
    ] {
        let sql = format!("SELECT d1, {call} FROM t GROUP BY d1");
        let plan = tier(&ctx, &sql).await;
        assert!(plan.contains("tier=accumulators"), "{sql}\n{plan}");
    }
    let sql = "SELECT percentile_cont(value, 1.5) FROM t GROUP BY d1";
    let error = query(&ctx, sql).await.unwrap_err().to_string();
    assert!(error.contains("between 0.0 and 1.0"), "{error}");
}
