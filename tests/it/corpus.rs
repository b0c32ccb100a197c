//! The corpus: `.tet` files that other programs wrote, with answers computed by numpy and xarray.
//!
//! `GRIDFUSION_CORPUS` names the directory that holds it; the files are in `tet/files` below. Without
//! the variable these tests do nothing. Each of them goes on after a failure and lists all at the end.

use std::path::{Path, PathBuf};

use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;
use gridfusion::format::Location;
use gridfusion::io::LocalFolder;
use gridfusion::source::TetReader;
use gridfusion::tile::{Objects, drive};
use gridfusion::{GridfusionSessionContextExt, TetReadOptions};
use serde_json::{Value, json};

use crate::support::{query, rows_of};

pub(crate) type Result<T> = std::result::Result<T, DataFusionError>;

/// The directory of the files, or `None` where there is no corpus.
pub(crate) fn corpus() -> Option<PathBuf> {
    let Some(root) = std::env::var_os("GRIDFUSION_CORPUS") else {
        eprintln!("GRIDFUSION_CORPUS is not set; nothing is tested");
        return None;
    };
    let files = Path::new(&root).join("tet").join("files");
    assert!(files.is_dir(), "GRIDFUSION_CORPUS is set, but {} is no directory", files.display());
    Some(files)
}

pub(crate) fn read_json(path: &Path) -> Value {
    let text = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All `.tet` files below `directory`, sorted.
pub(crate) fn tet_files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        let listed = listing(&directory);
        for path in listed.unwrap_or_else(|error| panic!("{}: {error}", directory.display())) {
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "tet") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn listing(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    std::fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect()
}

/// The path below `files`, with slashes.
pub(crate) fn relative(files: &Path, path: &Path) -> String {
    path.strip_prefix(files).unwrap_or(path).to_string_lossy().replace('\\', "/")
}

/// What was checked and what went wrong.
#[derive(Default)]
pub(crate) struct Report {
    /// What is being checked: begins with the file's path below the corpus.
    pub(crate) subject: String,
    checks: usize,
    failures: Vec<String>,
}

impl Report {
    pub(crate) fn fail(&mut self, failure: &str) {
        self.failures.push(format!("{}: {failure}", self.subject));
    }

    /// The value of what should have worked.
    pub(crate) fn note<T>(&mut self, result: Result<T>) -> Option<T> {
        self.checks += 1;
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.fail(&error.to_string());
                None
            }
        }
    }

    pub(crate) fn equal(&mut self, what: &str, found: &str, expected: &str) {
        self.checks += 1;
        if found != expected {
            self.fail(&format!("{what} is {found}, expected {expected}"));
        }
    }

    /// Numbers agree to 9 digits, or to within `slack`. `None` stands for NULL.
    pub(crate) fn close(&mut self, what: &str, found: &str, expected: Option<f64>, slack: f64) {
        let Some(expected) = expected else { return self.equal(what, found, "NULL") };
        self.checks += 1;
        let is_close = |found: f64| (found - expected).abs() <= 1e-9 * expected.abs() + slack;
        if !found.parse::<f64>().is_ok_and(is_close) {
            self.fail(&format!("{what} is {found}, expected {expected}"));
        }
    }

    /// Every error names the file.
    fn names_the_file(&mut self, error: &DataFusionError) {
        self.checks += 1;
        let name = self.subject.rsplit('/').next().unwrap_or(&self.subject);
        if !error.to_string().contains(name) {
            self.fail(&format!("an error that does not name the file: {error}"));
        }
    }

    /// An error that names the file and says `part`.
    pub(crate) fn refused(&mut self, what: &str, error: Option<&DataFusionError>, part: &str) {
        let Some(error) = error else {
            return self.fail(&format!("{what} works, expected an error with '{part}'"));
        };
        self.names_the_file(error);
        if !error.to_string().contains(part) {
            self.fail(&format!("{what} gives '{error}', expected '{part}'"));
        }
    }

    /// The same for bytes that contradict the format: the error says where they are.
    pub(crate) fn corrupt(&mut self, what: &str, error: Option<&DataFusionError>, part: &str) {
        self.refused(what, error, part);
        if error.is_some_and(|error| !error.to_string().contains(" at byte ")) {
            self.fail(&format!("{what} gives an error without a place"));
        }
    }

    pub(crate) fn finish(self) {
        let Self { checks, failures, .. } = self;
        assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
        assert!(checks > 0, "nothing was checked");
    }
}

/// The schema `f`: a file as users see it by default.
fn plain() -> (&'static str, TetReadOptions) {
    ("f", TetReadOptions::default())
}

/// The schema `indexed`: with index columns.
fn indexed() -> (&'static str, TetReadOptions) {
    ("indexed", TetReadOptions::default().with_index_columns(true))
}

/// The schema `raw`: stored values as they are.
fn raw() -> (&'static str, TetReadOptions) {
    ("raw", TetReadOptions::default().with_nan_as_null(false).with_fill_as_null(false))
}

/// A session with `path` registered under each schema.
pub(crate) async fn open(
    path: &Path,
    schemas: &[(&str, TetReadOptions)],
) -> Result<SessionContext> {
    let ctx = SessionContext::new();
    let location = path.to_str().expect("corpus paths are UTF-8");
    for (schema, options) in schemas {
        ctx.register_tet_schema(schema, location, options.clone()).await?;
    }
    Ok(ctx)
}

/// The datasets of the file that is registered as `f`.
fn dataset_names(ctx: &SessionContext) -> Vec<String> {
    let catalog = ctx.catalog("datafusion").expect("the default catalog is called 'datafusion'");
    catalog.schema("f").expect("the schema was registered").table_names()
}

pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn table(schema: &str, dataset: &str) -> String {
    format!("{schema}.{}", quoted(dataset))
}

/// The rows of a query as text; NULL is `NULL`.
pub(crate) async fn rows(ctx: &SessionContext, sql: &str) -> Result<Vec<Vec<String>>> {
    let batches = Box::pin(query(ctx, sql)).await.map_err(|error| error.context(sql))?;
    Ok(rows_of(&batches))
}

/// The names of a dataset's columns.
pub(crate) async fn columns(
    ctx: &SessionContext,
    schema: &str,
    dataset: &str,
) -> Result<Vec<String>> {
    let sql = format!("SELECT * FROM {}", table(schema, dataset));
    let frame = Box::pin(ctx.sql(&sql)).await.map_err(|error| error.context(&sql))?;
    Ok(frame.schema().fields().iter().map(|field| field.name().clone()).collect())
}

/// The value column of a dataset without index columns, quoted.
async fn value_column(ctx: &SessionContext, dataset: &str) -> Result<String> {
    let columns = columns(ctx, "f", dataset).await?;
    Ok(quoted(columns.last().expect("every table has a value column")))
}

/// The only row of some `aggregates`, in which `$value` stands for the value column.
async fn aggregate(ctx: &SessionContext, dataset: &str, aggregates: &str) -> Result<Vec<String>> {
    let aggregates = aggregates.replace("$value", &value_column(ctx, dataset).await?);
    let sql = format!("SELECT {aggregates} FROM {}", table("f", dataset));
    Ok(rows(ctx, &sql).await?.concat())
}

#[tokio::test(flavor = "multi_thread")]
async fn answers() {
    let Some(files) = corpus() else { return };
    let answers = read_json(&files.join("answers.json"));
    let mut report = Report::default();
    for (file, answer) in answers.as_object().expect("answers.json is an object") {
        // Other entries hold more of what the reference engine said, which is no oracle.
        let Some(datasets) = answer["datasets"].as_object() else { continue };
        if datasets.is_empty() {
            continue; // nothing to ask; whether the file opens is asked below
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

/// The truth about a dataset, which is not what the answers say in two cases.
pub(crate) fn truth_of(file: &str, dataset: &str, truth: &Value) -> Value {
    match (file, dataset) {
        // Two datasets have this name. The answers are about the second; a name means the first.
        ("crafted/dup_dataset_names.tet", "a") => json!({
            "count": 4,
            "null_count_nan_or_fill": 0,
            "nonnull": {
                "count": 4, "sum": 6.0, "mean": 1.5, "min": 0.0, "max": 3.0, "var_pop": 1.25
            },
        }),
        // The fill value 1e20 is no f32. The file stores the nearest one, which is what it means;
        // the answers look for 1e20 itself and find no fill.
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

async fn check_dataset(ctx: &SessionContext, dataset: &str, truth: &Value, report: &mut Report) {
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

/// What rounding may cost, beyond the last digits of the result: terms of a sum may cancel out, and
/// are not added in numpy's order.
pub(crate) struct Slack {
    pub(crate) sum: f64,
    pub(crate) mean: f64,
    pub(crate) variance: f64,
}

impl Slack {
    pub(crate) fn of(truth: &Value) -> Self {
        let number = |key: &str| truth["nonnull"][key].as_f64().unwrap_or(0.0);
        let size = number("min").abs().max(number("max").abs());
        // Around 2^53 a variance of a few thousand is nothing but rounding.
        let variance = 1e-14 * number("mean").powi(2);
        Self { sum: 1e-12 * size * number("count"), mean: 1e-12 * size, variance }
    }
}

/// Aggregates of the cells that are neither NaN nor fill.
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
    // An empty array has a count and nothing else.
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

/// Integers are exact, whatever their size.
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

/// Without NULLs for NaN and fill, the stored values are all there.
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

/// The cells above the mean. NaN and the fill values of these files are never above it.
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
    // SQL's sum of nothing is NULL.
    let sum = filter["sum"].as_f64().filter(|_| filter["count"] != 0);
    report.close("sum of a filter", &found[1], sum, Slack::of(truth).sum);
    Ok(())
}

/// The mean for each index of the first and of the last axis.
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

/// A key of `answers_netcdf.json`, the query whose cells are the answer, and an absolute tolerance.
type Question = (&'static str, &'static str, f64);

/// Long lists of answers are printed with ten decimals.
const PRINTED: f64 = 1e-9;
/// Means in single precision.
const SINGLE: f64 = 1e-4;

const CLIMATE: &[Question] = &[
    ("temperature/nonnull", "SELECT count(value) FROM f.temperature", 0.0),
    ("temperature/nan", "SELECT count(*) - count(value) FROM f.temperature", 0.0),
    ("temperature/mean", "SELECT avg(value) FROM f.temperature", 0.0),
    ("temperature/min", "SELECT min(value)::double FROM f.temperature", 0.0),
    ("temperature/max", "SELECT max(value)::double FROM f.temperature", 0.0),
    ("temperature/std_pop", "SELECT stddev_pop(value::double) FROM f.temperature", 0.0),
    ("temperature/median", "SELECT median(value)::double FROM f.temperature", 0.0),
    (
        "temperature/q95",
        "SELECT q::double
         FROM (SELECT percentile_cont(0.95) WITHIN GROUP (ORDER BY value) AS q FROM f.temperature)",
        0.0,
    ),
    (
        "temperature/mean_by_lat",
        "SELECT avg(value) FROM f.temperature GROUP BY lat ORDER BY lat DESC",
        PRINTED,
    ),
    (
        "temperature/mean_by_month",
        "SELECT avg(value)
         FROM (SELECT date_part('month', time) AS month, value FROM f.temperature)
         GROUP BY month ORDER BY month",
        PRINTED,
    ),
    ("temperature/count_gt_290", "SELECT count(*) FROM f.temperature WHERE value > 290", 0.0),
    (
        "temperature/mean_lat_between_30_60_july",
        "SELECT avg(value) FROM f.temperature
         WHERE lat BETWEEN 30 AND 60 AND date_part('month', time) = 7",
        0.0,
    ),
    (
        "temperature/argmax_time_lat_lon",
        "SELECT time_idx, lat_idx, lon_idx FROM indexed.temperature
         ORDER BY value DESC NULLS LAST LIMIT 1",
        0.0,
    ),
    (
        // Double precision gives 273.0167270870, the answer is 273.0167320936: its weights were
        // added up in single precision.
        "temperature/cos_lat_weighted_mean",
        "SELECT sum(value * cos(radians(lat))) / sum(cos(radians(lat))) FROM f.temperature
         WHERE value IS NOT NULL",
        SINGLE,
    ),
    ("precipitation/sum", "SELECT sum(value) FROM f.precipitation", 0.0),
    ("precipitation/mean", "SELECT avg(value) FROM f.precipitation", 0.0),
    ("precipitation/max", "SELECT max(value)::double FROM f.precipitation", 0.0),
    ("precipitation/zero_count", "SELECT count(*) FROM f.precipitation WHERE value = 0", 0.0),
    (
        "precipitation/sum_by_month",
        "SELECT sum(value)
         FROM (SELECT date_part('month', time) AS month, value FROM f.precipitation)
         GROUP BY month ORDER BY month",
        PRINTED,
    ),
    (
        "join_same_grid/corr_t_p",
        "SELECT corr(t.value::double, p.value::double)
         FROM f.temperature t JOIN f.precipitation p USING (time, lat, lon)",
        PRINTED,
    ),
    (
        "join_same_grid/mean_t_where_p_gt_10",
        "SELECT avg(t.value) FROM f.temperature t JOIN f.precipitation p USING (time, lat, lon)
         WHERE p.value > 10",
        0.0,
    ),
    (
        "join_same_grid/count_p_gt_10_and_t_lt_273",
        "SELECT count(*) FROM f.temperature t JOIN f.precipitation p USING (time, lat, lon)
         WHERE p.value > 10 AND t.value < 273",
        0.0,
    ),
    ("lat", "SELECT lat FROM f.temperature GROUP BY lat ORDER BY lat DESC", 0.0),
    ("lon_first5", "SELECT lon FROM f.precipitation GROUP BY lon ORDER BY lon LIMIT 5", 0.0),
    (
        "xarray_mean_by_month",
        "SELECT avg(value)
         FROM (SELECT date_part('month', time) AS month, value FROM f.temperature)
         GROUP BY month ORDER BY month",
        SINGLE,
    ),
    ("xarray_time_first_last", "SELECT min(time), max(time) FROM f.temperature", 0.0),
];

const STATIONS: &[Question] = &[
    ("nonnull", "SELECT count(value) FROM f.temperature", 0.0),
    ("null", "SELECT count(*) - count(value) FROM f.temperature", 0.0),
    ("mean", "SELECT avg(value) FROM f.temperature", 0.0),
    ("min", "SELECT min(value) FROM f.temperature", 0.0),
    ("max", "SELECT max(value) FROM f.temperature", 0.0),
    (
        "mean_by_station_first5",
        "SELECT avg(value) FROM f.temperature WHERE station < 5 GROUP BY station ORDER BY station",
        PRINTED,
    ),
    (
        "daily_mean_station0_first5",
        "SELECT avg(value)
         FROM (SELECT date_trunc('day', time) AS day, value FROM f.temperature WHERE station = 0)
         GROUP BY day ORDER BY day LIMIT 5",
        PRINTED,
    ),
    (
        "hour_of_day_mean",
        "SELECT avg(value)
         FROM (SELECT date_part('hour', time) AS hour, value FROM f.temperature)
         GROUP BY hour ORDER BY hour",
        PRINTED,
    ),
    (
        "quality_i1_minus1_becomes_u8_255_count",
        "SELECT count(*) FROM f.quality WHERE value = 255",
        0.0,
    ),
    ("count_sum_exact", r#"SELECT sum(cast(value AS decimal(38, 0))) FROM f."count""#, 0.0),
    ("count_max", r#"SELECT max(value) FROM f."count""#, 0.0),
    ("count_min", r#"SELECT min(value) FROM f."count""#, 0.0),
    ("xarray_time_first_last", "SELECT min(time), max(time) FROM f.temperature", 0.0),
];

/// Answers that the converted files cannot give: the converter drops text variables.
const LOST: [&str; 1] = ["station_codes_lost_in_convert"];

#[tokio::test(flavor = "multi_thread")]
async fn netcdf_answers() {
    let Some(files) = corpus() else { return };
    let answers = read_json(&files.join("answers_netcdf.json"));
    let mut report = Report::default();
    for (file, section, questions) in [
        ("converted/nc_climate_small.tet", "climate_small", CLIMATE),
        ("converted/nc_stations.tet", "stations", STATIONS),
    ] {
        report.subject = file.to_owned();
        let opened = open(&files.join(file), &[plain(), indexed()]).await;
        let Some(ctx) = report.note(opened) else { continue };
        let mut keys = Vec::new();
        leaves("", &answers[section], &mut keys);
        for key in keys {
            report.subject = format!("{file} {key}");
            match questions.iter().find(|(asked, ..)| *asked == key) {
                Some(question) => ask(&ctx, question, &answers[section], &mut report).await,
                None if LOST.contains(&key.as_str()) => {}
                None => report.fail("an answer without a query"),
            }
        }
    }
    report.finish();
}

/// The paths of everything in `value` that is not an object.
fn leaves(path: &str, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(entries) => {
            for (key, value) in entries {
                let path = if path.is_empty() { key.clone() } else { format!("{path}/{key}") };
                leaves(&path, value, found);
            }
        }
        _ => found.push(path.to_owned()),
    }
}

/// Compares the cells of a query, row by row, with an answer or a list of them.
async fn ask(ctx: &SessionContext, question: &Question, answers: &Value, report: &mut Report) {
    let (key, sql, slack) = question;
    let answer = answers.pointer(&format!("/{key}")).expect("the key is from these answers");
    let expected = match answer {
        Value::Array(answers) => answers.as_slice(),
        answer => std::slice::from_ref(answer),
    };
    let found = rows(ctx, sql).await;
    let Some(found) = report.note(found) else { return };
    let found = found.concat();
    report.equal("number of cells", &found.len().to_string(), &expected.len().to_string());
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        let what = format!("cell {at}");
        match expected {
            // Exact integers, and instants with nanoseconds.
            Value::String(text) => {
                report.equal(&what, found, text.trim_end_matches(".000000000"));
            }
            _ => report.close(&what, found, expected.as_f64(), *slack),
        }
    }
}

/// What becomes of a file that is not as it should be.
pub(crate) enum Expected {
    /// It is refused, with an error that says this.
    OpenFails(&'static str),
    /// This dataset is refused; the others can be read.
    DatasetFails(&'static str, &'static str),
    /// These datasets are tables, but scans of them fail; the others can be read.
    ScanFails(&'static [&'static str], &'static str),
    /// It can be read: a dataset, its number of values and their sum.
    Reads(&'static str, u64, f64),
}

use Expected::{DatasetFails, OpenFails, Reads, ScanFails};

/// Every file of the `reject` directories and of `corrupt_footer`, and one that needs `tet repair`.
const BAD_FILES: &[(&str, Expected)] = &[
    // Zone maps: no wrong answer, whatever they say. Version 1 of the footer does not know them.
    ("corrupt_footer/v1_with_zone_refs.tet", Reads("a", 4, 24.0)),
    ("corrupt_footer/zone_bad_json.tet", Reads("a", 4, 24.0)),
    ("corrupt_footer/zone_lies.tet", Reads("a", 4, 24.0)),
    // One index row has a codec that does not exist.
    ("crafted/reject/codec_2.tet", ScanFails(&["f32"], "codec 2")),
    // More labels than the reference's `verify` allows; a reader has no reason to mind.
    ("crafted/reject/coord_labels_65.tet", Reads("x", 65, 2080.0)),
    // The row of the first chunk belongs to dataset 99 of 10, so that chunk has none.
    ("crafted/reject/dataset_id_oob.tet", ScanFails(&["f32"], "no row for chunk [0, 0]")),
    ("crafted/reject/dtype_11.tet", DatasetFails("f32", "element type 11")),
    // Two rows for one chunk, none is missing. The first counts, as in the reference.
    ("crafted/reject/duplicate_row.tet", Reads("v", 12, 66.0)),
    ("crafted/reject/flag_set_footer_missing.tet", OpenFails("corrupt footer")),
    ("crafted/reject/history_version_3.tet", OpenFails("history version 3")),
    ("crafted/reject/index_version_2.tet", OpenFails("index version 2")),
    ("crafted/reject/layout_version_2.tet", OpenFails("layout version 2")),
    // A conversion that gave up before it wrote payloads: directory and index are whole.
    (
        "crafted/reject/partial_failed_convert.tet",
        ScanFails(&["t2m", "time"], "payloads end at byte 376"),
    ),
    // The footer's JSON is a row of X.
    ("reference/plan.tet", OpenFails("corrupt footer")),
    // The row of chunk [0, 0] says [99, 0], outside the grid.
    ("reference/reject/chunk_coord_out_of_grid.tet", ScanFails(&["a"], "no row for chunk [0, 0]")),
    // Two chunks share their bytes: 1, 2, 4, 5 and 1, 2. Only `verify` can mind.
    ("reference/reject/duplicate_payload_offset.tet", Reads("a", 6, 15.0)),
    (
        "reference/reject/inflated_stored_past_eof.tet",
        ScanFails(&["a"], "a tile of 88 bytes, expected 16"),
    ),
    // Neither row belongs to a chunk of the grid.
    ("reference/reject/overflow_tile_extent.tet", ScanFails(&["a"], "no row for chunk [0, ")),
    ("reference/reject/payload_offset_past_eof.tet", ScanFails(&["a"], "payloads end at byte 360")),
    (
        "reference/reject/raw_stored_len_mismatch.tet",
        ScanFails(&["a"], "8 stored bytes of a raw tile of 16"),
    ),
    ("reference/reject/truncated_payload.tet", ScanFails(&["a"], "payloads end at byte 344")),
    ("reference/reject/zero_chunk_shape.tet", DatasetFails("a", "chunk shape [0, 2] has a 0")),
    ("reference/reject/zstd_garbage_payload.tet", ScanFails(&["a"], "corrupt chunk payload")),
];

pub(crate) fn expectation(file: &str) -> Option<&'static Expected> {
    BAD_FILES.iter().find(|(name, _)| *name == file).map(|(_, expected)| expected)
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects() {
    let Some(files) = corpus() else { return };
    let mut report = Report::default();
    let mut seen = 0;
    for path in tet_files(&files) {
        let file = relative(&files, &path);
        report.subject = file.clone();
        let is_bad = file.split('/').any(|part| part == "reject" || part == "corrupt_footer");
        match expectation(&file) {
            Some(expected) => {
                seen += 1;
                check_bad_file(&path, expected, &mut report).await;
            }
            None if is_bad => report.fail("nothing says what to expect of this file"),
            None => {}
        }
    }
    report.subject = "files with expectations".to_owned();
    report.equal("their number", &seen.to_string(), &BAD_FILES.len().to_string());
    report.finish();
}

async fn check_bad_file(path: &Path, expected: &Expected, report: &mut Report) {
    let opened = open(path, &[plain()]).await;
    if let OpenFails(part) = expected {
        return report.corrupt("opening", opened.as_ref().err(), part);
    }
    let Some(ctx) = report.note(opened) else { return };
    for dataset in dataset_names(&ctx) {
        let planned = columns(&ctx, "f", &dataset).await;
        match expected {
            DatasetFails(bad, part) if *bad == dataset => {
                report.refused(&dataset, planned.as_ref().err(), part);
            }
            ScanFails(bad, part) if bad.contains(&dataset.as_str()) => {
                report.note(planned);
                for sql in ["sum($value)", "count($value)"] {
                    let found = aggregate(&ctx, &dataset, sql).await;
                    report.corrupt(&format!("{sql} of {dataset}"), found.as_ref().err(), part);
                }
            }
            _ => {
                let found = aggregate(&ctx, &dataset, "count($value), sum($value)::double").await;
                let Some(found) = report.note(found) else { continue };
                if let Reads(name, count, sum) = expected {
                    report.equal("the dataset", &dataset, name);
                    report.equal("count(value)", &found[0], &count.to_string());
                    report.close("sum(value)", &found[1], Some(*sum), 0.0);
                }
            }
        }
    }
}

/// The values are 1, 2, 10, 11. One of the files claims that its second chunk ends at 1, which makes
/// the reference engine leave it out here.
#[tokio::test(flavor = "multi_thread")]
async fn zone_maps_never_change_answers() {
    let Some(files) = corpus() else { return };
    let mut report = Report::default();
    for file in [
        "reference/embedded_zone.tet",
        "corrupt_footer/v1_with_zone_refs.tet",
        "corrupt_footer/zone_bad_json.tet",
        "corrupt_footer/zone_lies.tet",
    ] {
        // Well-formed lies are believed by those who trust them.
        let trusts: &[bool] =
            if file.ends_with("zone_lies.tet") { &[false] } else { &[true, false] };
        for &trust in trusts {
            report.subject = format!("{file} with trust_zone_maps = {trust}");
            let options = TetReadOptions::default().with_trust_zone_maps(trust);
            let opened = open(&files.join(file), &[("f", options)]).await;
            let Some(ctx) = report.note(opened) else { continue };
            let sql =
                "SELECT count(*), sum(value), min(value), max(value) FROM f.a WHERE value > 5";
            let found = rows(&ctx, sql).await;
            let Some(found) = report.note(found) else { continue };
            report.equal("the answer", &found.concat().join(", "), "2, 21.0, 10.0, 11.0");
        }
    }
    report.finish();
}

/// The generations of a package and the files that their datasets come from. Publishing drops what
/// footers say, so the one fill value among them is an ordinary value, as the answers have it.
const GENERATIONS: [(u64, &[&str]); 2] = [
    (1, &["reference/sample.tet"]),
    (2, &["converted/nc_small_labels.tet", "reference/sample.tet"]),
];
const PACKAGE: &str = "package/demo.tet.d";

#[tokio::test(flavor = "multi_thread")]
async fn packages() {
    let Some(files) = corpus() else { return };
    let answers = read_json(&files.join("answers.json"));
    let mut report = Report::default();
    let current = (None, GENERATIONS[1].1);
    let pinned = GENERATIONS.map(|(generation, parts)| (Some(generation), parts));
    for (generation, parts) in pinned.into_iter().chain([current]) {
        report.subject = format!("generation {generation:?} of {PACKAGE}");
        let schemas = [plain(), indexed(), raw()]
            .map(|(schema, options)| (schema, TetReadOptions { generation, ..options }));
        let opened = open(&files.join(PACKAGE), &schemas).await;
        let Some(ctx) = report.note(opened) else { continue };
        let mut expected = 0;
        for part in parts {
            let datasets = answers[part]["datasets"].as_object().expect("a part has datasets");
            expected += datasets.len();
            for (dataset, answer) in datasets {
                check_dataset(&ctx, dataset, &answer["truth"], &mut report).await;
            }
        }
        let found = dataset_names(&ctx).len();
        report.equal("the number of datasets", &found.to_string(), &expected.to_string());
    }
    report.finish();
}

/// `ZONE.json` repeats what is embedded in the file beside it.
#[tokio::test]
async fn zone_files_say_what_the_file_says() {
    let Some(files) = corpus() else { return };
    for (generation, _) in GENERATIONS {
        let open = || LocalFolder::open(&files.join(PACKAGE), true).map(std::sync::Arc::new);
        let (folder, objects) = (open().unwrap(), Objects::many(open().unwrap()));
        let file = TetReader::open_package(folder, Some(generation)).await.unwrap();
        let path = format!("generations/{generation:08}");
        let size = |name: &str| std::fs::metadata(files.join(PACKAGE).join(name)).unwrap().len();
        let (packed, zones) = (format!("{path}/packed.tet"), format!("{path}/ZONE.json"));
        let at = Location::new(zones.as_str(), 0..size(&zones));
        let within = file.tet().zone_maps_at().expect("zone maps are embedded");
        for dataset in 0..file.tet().datasets().len() {
            let beside = file.tet().read_zone_file(dataset, at.clone(), generation).unwrap();
            let beside = drive(beside, &objects).await.unwrap();
            let at = Location::new(packed.as_str(), within.clone());
            let embedded = file.tet().read_zone_file(dataset, at, generation).unwrap();
            assert_eq!(beside, drive(embedded, &objects).await.unwrap());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_file_opens_or_says_why() {
    let Some(files) = corpus() else { return };
    let mut report = Report::default();
    for path in tet_files(&files) {
        report.subject = relative(&files, &path);
        let ctx = match open(&path, &[plain()]).await {
            Ok(ctx) => ctx,
            Err(error) => {
                check_excuse(&error, &mut report);
                continue;
            }
        };
        for dataset in dataset_names(&ctx) {
            match aggregate(&ctx, &dataset, "count(*), count($value)").await {
                Ok(found) => report.equal("number of cells", &found.len().to_string(), "2"),
                Err(error) => check_excuse(&error, &mut report),
            }
        }
    }
    report.finish();
}

/// Only files that are known to be bad may give errors, and those name the file.
fn check_excuse(error: &DataFusionError, report: &mut Report) {
    report.names_the_file(error);
    if expectation(&report.subject).is_none() {
        report.fail(&error.to_string());
    }
}
