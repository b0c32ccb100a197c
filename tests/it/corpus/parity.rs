//! Every query of the reference engine that the corpus records, as SQL.
//!
//! `answers.json` has documents of `tet query`, the answers of the reference, and numpy's answers for the
//! same cells. numpy is always right; so is the reference, except for the cases of `is_wrong`.

use std::path::Path;

use datafusion::prelude::SessionContext;
use gridfusion::GridfusionSessionContextExt;
use serde_json::Value;

use super::answers::{Slack, truth_of};
use super::document::{Asked, Number, schemas};
use super::tables::{open, rows};
use super::{Report, Result, corpus, read_json};

/// The numbers of a JSON answer.
fn numbers(answer: &Value) -> Vec<Number> {
    match answer {
        Value::Array(items) => items.iter().flat_map(numbers).collect(),
        other => vec![other.as_f64().or(other.as_bool().map(|truth| f64::from(u8::from(truth))))],
    }
}

/// The answer of the reference; `None` if it refused the query.
fn of_reference(operation: &str, result: &Value) -> Option<Vec<Number>> {
    let cells = result.get("operation_element_count");
    let fields = [
        result.get(format!("operation_{operation}")),
        result.get(format!("operation_reduced_{operation}")),
        result.get(format!("operation_{operation}_counts")),
        result["alignment"].get("aligned"),
        cells.filter(|_| operation == "count"),
    ];
    let answer = numbers(fields.into_iter().flatten().next()?);
    // Without cells, the reference answers 0 and SQL NULL.
    Some(if cells.is_some_and(|cells| *cells == 0) && operation != "count" {
        vec![None; answer.len()]
    } else {
        answer
    })
}

/// numpy's answer, if `truth` has one.
fn of_numpy(kind: &str, truth: &Value) -> Option<Vec<Number>> {
    let number = |key: &str| Some(truth.get(key)?.as_f64());
    let (cells, nans) = (truth["count"].as_f64()?, truth["nan_count"].as_f64()?);
    let missing = truth["null_count_nan_or_fill"].as_f64()?;
    let nonnull = |key: &str| Some(truth["nonnull"].get(key)?.as_f64());
    let means = |key: &str| truth[key].as_array().filter(|_| missing == 0.0);
    let filter = truth.get("filter_gt_mean");
    let one = match kind {
        "sum" => number("sum_f64"),
        "mean" => number("mean_f64"),
        "min" | "max" => number(kind),
        "var" => number("var_pop"),
        "std" => number("var_pop").map(|variance| variance.map(f64::sqrt)),
        "count" => number("count"),
        "nan_count" => number("nan_count"),
        // A fill value may be NaN too.
        "null_count" if nans == 0.0 => number("null_count_nan_or_fill"),
        "nan_mean" if nans == 0.0 => number("mean_f64"),
        "nan_mean" if nans == missing => nonnull("mean"),
        "is_not_null_sum" => nonnull("sum"),
        "is_not_null_count" => nonnull("count"),
        "filter_gt_mean_count" => Some(filter?["count"].as_f64()),
        "filter_gt_mean_sum" => Some(filter?["sum"].as_f64().filter(|sum| *sum != 0.0)),
        "group_by_dim0_mean" => {
            return Some(means("group_by_dim0_nonnull_mean")?.iter().flat_map(numbers).collect());
        }
        "group_by_last_sum" => {
            let means = means("group_by_last_dim_nonnull_mean")?;
            let sum = |mean: &Value| Some(mean.as_f64()? * cells / means.len() as f64);
            return Some(means.iter().map(sum).collect());
        }
        _ => None,
    };
    one.map(|number| vec![number])
}

/// Whether the answer of the reference is wrong or missing; the comments below give the reasons.
fn is_wrong(file: &str, dataset: &str, kind: &str, element_type: &str, truth: &Value) -> bool {
    match kind {
        // Vectorised extremes of f32 lose cells if there are NaNs.
        "min" | "max" => truth["nan_count"] != 0,
        // These operations work for f32 only, and not in groups.
        "nan_mean" | "nan_count" | "null_count" if element_type != "f32" => true,
        // These are computed from sums beyond 2^53.
        "var" | "std" => (file, dataset) == ("converted/nc_stations.tet", "count"),
        // The declared fill value is not an f32, see `truth_of`.
        "is_not_null_sum" | "is_not_null_count" | "null_count" => {
            (file, dataset) == ("converted/nc_small_labels.tet", "v")
        }
        _ => false,
    }
}

/// Recorded queries that have no answer to compare with, and the reason.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("crafted/reject/missing_chunk.tet", "sum", "the file is not in the corpus"),
    ("crafted/reject/dtype_11.tet", "sum", "there is no such element type; refused by both"),
    ("crafted/dim_names_wrong_rank.tet", r#""sum":"t""#, "no axis has that name; refused by both"),
    (
        "crafted/labels_v1_inline.tet",
        "covariance",
        "refused for a NaN; over complete data in tests/it/tet/parity.rs",
    ),
];

/// A session with a file under each of `document::schemas`, and with reductions.
async fn session(path: &Path) -> Result<SessionContext> {
    let ctx = open(path, &schemas()).await?;
    ctx.enable_gridfusion();
    Ok(ctx)
}

/// A recorded query and its answers.
struct Entry<'a> {
    kind: &'a str,
    query: &'a Value,
    result: &'a Value,
    /// Whether the reference's answer is right.
    is_right: bool,
    truth: &'a Value,
}

async fn check(ctx: &SessionContext, entry: &Entry<'_>, report: &mut Report) -> Result<()> {
    let asked = Asked::new(ctx, entry.query).await?;
    let found: Vec<String> = rows(ctx, &asked.sql()).await?.iter().map(|row| last(row)).collect();
    let reference = of_reference(asked.operation(), entry.result).filter(|_| entry.is_right);
    let numpy = of_numpy(entry.kind, entry.truth);
    let naive = match (&reference, &numpy) {
        (None, None) => Some(asked.naive(ctx).await?),
        _ => None,
    };
    let slack = Slack::of(entry.truth);
    let slack = match asked.operation() {
        "var" => slack.variance,
        "std" => slack.variance.sqrt(),
        "mean" => slack.mean,
        _ => slack.sum,
    };
    for (who, answer) in [("the reference", reference), ("numpy", numpy), ("the cells", naive)] {
        let Some(answer) = answer else { continue };
        report.equal("number of cells", &found.len().to_string(), &answer.len().to_string());
        for (at, (found, expected)) in found.iter().zip(answer).enumerate() {
            report.close(&format!("cell {at}, compared with {who},"), found, expected, slack);
        }
    }
    let cells = entry.result["operation_element_count"].as_u64().filter(|_| entry.is_right);
    if let Some(cells) = cells {
        let sql = format!("SELECT count(*) FROM {} {}", asked.table(), asked.condition());
        let found = rows(ctx, &sql).await?.concat().concat();
        report.equal("number of cells taken", &found, &cells.to_string());
    }
    Ok(())
}

/// The last column of a row; numbers that JSON cannot represent are NULL.
fn last(row: &[String]) -> String {
    match row.last().expect("a column").as_str() {
        "true" => "1".into(),
        "false" => "0".into(),
        text if text.parse().is_ok_and(|number: f64| !number.is_finite()) => "NULL".into(),
        text => text.into(),
    }
}

/// Checks the element type and the shapes of a dataset.
async fn check_layout(
    ctx: &SessionContext,
    path: &Path,
    dataset: &str,
    answer: &Value,
    report: &mut Report,
) -> Result<()> {
    let (path, dataset) = (path.display(), dataset.replace('\'', "''"));
    let sql = format!(
        "SELECT element_type, shape, chunk_shape FROM tet_info('{path}', '{dataset}') LIMIT 1"
    );
    let found = rows(ctx, &sql).await?.concat();
    report.equal("element type", &found[0], answer["dtype"].as_str().unwrap_or_default());
    for (found, key) in found[1..].iter().zip(["shape", "chunk_shape"]) {
        report.equal(key, &found.replace(' ', ""), &answer[key].to_string());
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs GRIDFUSION_CORPUS: the shared corpora"]
async fn recorded_queries_have_the_same_answers() {
    let files = corpus();
    let answers = read_json(&files.join("answers.json"));
    let mut report = Report::default();
    let mut queries = 0;
    for (file, answer) in answers.as_object().expect("answers.json is an object") {
        // The next test is for `_extra_queries`; all other entries are files.
        let Some(datasets) = answer["datasets"].as_object() else { continue };
        if datasets.is_empty() {
            continue; // no queries were recorded
        }
        report.subject = file.clone();
        let path = files.join(file);
        let Some(ctx) = report.note(session(&path).await) else { continue };
        for (dataset, answer) in datasets {
            report.subject = format!("{file} {dataset}");
            let done = check_layout(&ctx, &path, dataset, answer, &mut report).await;
            report.note(done);
            let truth = truth_of(file, dataset, &answer["truth"]);
            let element_type = answer["dtype"].as_str().unwrap_or_default();
            for (kind, recorded) in answer["reference"].as_object().into_iter().flatten() {
                report.subject = format!("{file} {dataset} {kind}");
                let (query, result) = (&recorded["query"], &recorded["result"]);
                let is_right = !is_wrong(file, dataset, kind, element_type, &truth);
                let entry = Entry { kind, query, result, is_right, truth: &truth };
                let done = check(&ctx, &entry, &mut report).await;
                report.note(done);
                queries += 1;
            }
        }
    }
    assert!(queries > 1000, "only {queries} queries");
    report.finish();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs GRIDFUSION_CORPUS: the shared corpora"]
async fn further_queries_have_the_same_answers() {
    let files = corpus();
    let answers = read_json(&files.join("answers.json"));
    let mut report = Report::default();
    let mut excepted = vec![false; EXCEPTIONS.len()];
    for recorded in answers["_extra_queries"].as_array().expect("a list of queries") {
        let file = recorded["file"].as_str().expect("a query names its file");
        let (query, result) = (&recorded["query"], &recorded["result"]);
        let text = query.to_string();
        report.subject = format!("{file} {text}");
        let exception = |(name, part, _): &(&str, &str, &str)| *name == file && text.contains(part);
        if let Some(at) = EXCEPTIONS.iter().position(exception) {
            excepted[at] = true;
            continue;
        }
        let Some(ctx) = report.note(session(&files.join(file)).await) else { continue };
        // In groups, `nan_mean` of the reference has no answer.
        let is_right = query.get("nan_mean").is_none();
        let entry = Entry { kind: "", query, result, is_right, truth: &Value::Null };
        let done = check(&ctx, &entry, &mut report).await;
        report.note(done);
    }
    assert!(excepted.into_iter().all(|used| used), "an exception that no query needs");
    report.finish();
}
