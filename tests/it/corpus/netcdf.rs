//! Typical queries of climate data over converted NetCDF files, compared with xarray's answers.

use datafusion::prelude::SessionContext;
use serde_json::Value;

use super::tables::{indexed, open, plain, rows};
use super::{Report, corpus, read_json};

/// A key of `answers_netcdf.json`, the query whose cells are the answer, and an absolute tolerance.
type Question = (&'static str, &'static str, f64);

/// The tolerance for long lists of answers, which are printed with ten decimals.
const PRINTED: f64 = 1e-9;
/// The tolerance for means in single precision.
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
        // Double precision gives 273.0167270870. The answer is 273.0167320936, as its weights were
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
#[ignore = "needs GRIDFUSION_CORPUS: the shared corpora"]
async fn netcdf_answers() {
    let files = corpus();
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

/// Collects the paths of all values in `value` that are not objects.
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
            // Exact integers, and times with nanoseconds.
            Value::String(text) => {
                report.equal(&what, found, text.trim_end_matches(".000000000"));
            }
            _ => report.close(&what, found, expected.as_f64(), *slack),
        }
    }
}
