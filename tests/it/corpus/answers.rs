//! Compares the cells of each dataset with numpy's answers.

use datafusion::prelude::SessionContext;
use serde_json::{Value, json};

use super::tables::{
    aggregate, columns, indexed, open, plain, quoted, raw, rows, table, value_column,
};
use super::{Report, Result, corpus, read_json};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs GRIDFUSION_CORPUS: the shared corpora"]
async fn answers() {
    let files = corpus();
    let answers = read_json(&files.join("answers.json"));
    let mut report = Report::default();
    for (file, answer) in answers.as_object().expect("answers.json is an object") {
        // Other entries hold only answers of the reference engine, which is no oracle.
        let Some(datasets) = answer["datasets"].as_object() else { continue };
        if datasets.is_empty() {
            continue; // no answers; `rejects` tests whether the file opens
        }
        report.subject = file.clone();
        let opened = open(&files.join(file), &[plain(), indexed(), raw()]).await;
        let Some(ctx) = report.note(opened) else { continue };
        for (dataset, answer) in datasets {
            report.subject = format!("{file} {dataset}");
            let truth = truth_of(file, dataset, &answer["truth"]);
            check_dataset(&ctx, dataset, &truth, &mut report).await;
        }
    }
    report.finish();
}

/// The expected values of a dataset. For two datasets, `answers.json` is corrected.
pub(crate) fn truth_of(file: &str, dataset: &str, truth: &Value) -> Value {
    match (file, dataset) {
        // Two datasets have this name. The answers are for the second; in SQL the name means the first.
        ("crafted/dup_dataset_names.tet", "a") => json!({
            "count": 4,
            "null_count_nan_or_fill": 0,
            "nonnull": {
                "count": 4, "sum": 6.0, "mean": 1.5, "min": 0.0, "max": 3.0, "var_pop": 1.25
            },
        }),
        // The fill value 1e20 is not an f32. The file stores the nearest f32, which counts as fill; the
        // answers look for 1e20 itself and find no fill.
        ("converted/nc_small_labels.tet", "v") => json!({
            "count": 60,
            "null_count_nan_or_fill": 1,
            "nan_count": 0,
            "sum_f64": 1.000_000_020_040_877_3e20,
            "nonnull": {
                "count": 59, "sum": 1753.0, "mean": 29.711_864_406_779_66,
                "min": 0.0, "max": 59.0, "var_pop": 302.306_808_388_394_13
            },
            "group_by_dim0_nonnull_mean":
                [2.0, 7.0, 12.0, 17.0, 22.0, 27.0, 32.0, 37.0, 42.0, 47.0, 52.0, 57.0],
            "group_by_last_dim_nonnull_mean": [27.5, 28.5, 30.636_363_636_363_637, 30.5, 31.5],
        }),
        _ => truth.clone(),
    }
}

pub(crate) async fn check_dataset(
    ctx: &SessionContext,
    dataset: &str,
    truth: &Value,
    report: &mut Report,
) {
    let done = check_aggregates(ctx, dataset, truth, report).await;
    report.note(done);
    let done = check_integers(ctx, dataset, truth, report).await;
    report.note(done);
    let done = check_raw(ctx, dataset, truth, report).await;
    report.note(done);
    let done = check_filter(ctx, dataset, truth, report).await;
    report.note(done);
    let done = check_groups(ctx, dataset, truth, report).await;
    report.note(done);
}

/// Tolerances for rounding, beyond the last digits of a result: terms of a sum may cancel out, and are
/// not added in numpy's order.
pub(crate) struct Slack {
    pub(crate) sum: f64,
    pub(crate) mean: f64,
    pub(crate) variance: f64,
}

impl Slack {
    pub(crate) fn of(truth: &Value) -> Self {
        let number = |key: &str| truth["nonnull"][key].as_f64().unwrap_or(0.0);
        let size = number("min").abs().max(number("max").abs());
        // Around 2^53, a variance of a few thousand is only rounding.
        let variance = 1e-14 * number("mean").powi(2);
        Self { sum: 1e-12 * size * number("count"), mean: 1e-12 * size, variance }
    }
}

/// Checks aggregates of the cells that are neither NaN nor fill.
async fn check_aggregates(
    ctx: &SessionContext,
    dataset: &str,
    truth: &Value,
    report: &mut Report,
) -> Result<()> {
    let sql = "count(*), count($value), count(*) - count($value), sum($value)::double, \
               avg($value), min($value)::double, max($value)::double, var_pop($value::double)";
    let found = aggregate(ctx, dataset, sql).await?;
    let nonnull = &truth["nonnull"];
    report.equal("count(*)", &found[0], &truth["count"].to_string());
    // For an empty array, the answers have only a count.
    let values = nonnull["count"].as_u64().unwrap_or(0);
    report.equal("count(value)", &found[1], &values.to_string());
    let nulls = truth["null_count_nan_or_fill"].as_u64().unwrap_or(0);
    report.equal("number of NULLs", &found[2], &nulls.to_string());

    // SQL sums of integers wrap beyond 64 bits; `check_integers` sums decimals.
    let exact_sum = truth["sum_exact_int"].as_str();
    let slack = Slack::of(truth);
    if exact_sum.is_none_or(|sum| sum.parse::<i64>().is_ok()) {
        report.close("sum", &found[3], nonnull["sum"].as_f64(), slack.sum);
    }
    report.close("avg", &found[4], nonnull["mean"].as_f64(), slack.mean);
    report.close("min", &found[5], nonnull["min"].as_f64(), 0.0);
    report.close("max", &found[6], nonnull["max"].as_f64(), 0.0);
    report.close("var_pop", &found[7], nonnull["var_pop"].as_f64(), slack.variance);
    Ok(())
}

/// Checks the sum and the extremes of integers, which are exact.
async fn check_integers(
    ctx: &SessionContext,
    dataset: &str,
    truth: &Value,
    report: &mut Report,
) -> Result<()> {
    if truth["sum_exact_int"].is_null() {
        return Ok(());
    }
    let sql = "sum(cast($value AS decimal(38, 0))), min($value), max($value)";
    let found = aggregate(ctx, dataset, sql).await?;
    for (found, key) in found.iter().zip(["sum_exact_int", "min_exact", "max_exact"]) {
        report.equal(key, found, truth[key].as_str().unwrap_or_default());
    }
    Ok(())
}

/// Checks the stored values, without NULLs for NaN and fill.
async fn check_raw(
    ctx: &SessionContext,
    dataset: &str,
    truth: &Value,
    report: &mut Report,
) -> Result<()> {
    if truth["nan_count"].is_null() {
        return Ok(());
    }
    let value = value_column(ctx, dataset).await?;
    let sql = format!(
        "SELECT count({value}), count(*) FILTER (WHERE isnan({value}::double)), sum({value}::double)
         FROM {}",
        table("raw", dataset)
    );
    let found = rows(ctx, &sql).await?.concat();
    report.equal("count of raw values", &found[0], &truth["count"].to_string());
    report.equal("number of NaNs", &found[1], &truth["nan_count"].to_string());
    if truth["nan_count"] == 0 {
        report.close(
            "sum of raw values",
            &found[2],
            truth["sum_f64"].as_f64(),
            Slack::of(truth).sum,
        );
    }
    Ok(())
}

/// Checks the cells above the mean. NaN and the fill values of these files are never above it.
async fn check_filter(
    ctx: &SessionContext,
    dataset: &str,
    truth: &Value,
    report: &mut Report,
) -> Result<()> {
    let filter = &truth["filter_gt_mean"];
    if filter.is_null() {
        return Ok(());
    }
    let value = value_column(ctx, dataset).await?;
    let sql = format!(
        "SELECT count(*), sum({value}::double) FROM {} WHERE {value}::double > {}",
        table("f", dataset),
        filter["threshold"]
    );
    let found = rows(ctx, &sql).await?.concat();
    report.equal("count of a filter", &found[0], &filter["count"].to_string());
    // SQL's sum of no rows is NULL.
    let sum = filter["sum"].as_f64().filter(|_| filter["count"] != 0);
    report.close("sum of a filter", &found[1], sum, Slack::of(truth).sum);
    Ok(())
}

/// Checks the means for each index of the first and of the last axis.
async fn check_groups(
    ctx: &SessionContext,
    dataset: &str,
    truth: &Value,
    report: &mut Report,
) -> Result<()> {
    // dimensions, value, index columns
    let names = columns(ctx, "indexed", dataset).await?;
    let rank = (names.len() - 1) / 2;
    for axis in 0..rank {
        let expected = format!("{}_idx", names[axis]);
        report.equal("name of an index column", &names[rank + 1 + axis], &expected);
    }
    let value = quoted(&names[rank]);
    for (key, axis) in
        [("group_by_dim0_nonnull_mean", 0), ("group_by_last_dim_nonnull_mean", rank - 1)]
    {
        let Some(means) = truth[key].as_array() else { continue };
        let index = quoted(&names[rank + 1 + axis]);
        let table = table("indexed", dataset);
        let sql =
            format!("SELECT {index}, avg({value}) FROM {table} GROUP BY {index} ORDER BY {index}");
        let found = rows(ctx, &sql).await?;
        report.equal("number of groups", &found.len().to_string(), &means.len().to_string());
        for (at, (row, mean)) in found.iter().zip(means).enumerate() {
            report.equal(key, &row[0], &at.to_string());
            report.close(&format!("{key} {at}"), &row[1], mean.as_f64(), Slack::of(truth).mean);
        }
    }
    Ok(())
}
