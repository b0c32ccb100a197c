//! `.tet` files that `COPY` writes, read back, verified, and read by the reference.

use std::fs;
use std::path::Path;

use gridfusion::verify::Depth;
use tetration::prelude::{ExecuteQueryOptions, TetFile, execute_query_json};
use tetration::verify::{VerifyOptions, verify_tet_file_with_options};

use super::zarr::Case;
use crate::support::{query, reducing, rows_from, sorted_rows_from};
use crate::verify::tet::{findings, verify};

/// Asserts that a file has no fault, as gridfusion and the reference see it: all payloads, and the bounds of each chunk.
async fn assert_sound(path: &Path) {
    let report = verify(fs::read(path).unwrap(), Depth::Cells).await;
    assert_eq!(findings(&report), "", "{}", path.display());
    let options = VerifyOptions { deep_decode: true };
    let report = verify_tet_file_with_options(path, options).unwrap();
    assert!(report.ok && report.recommendations.is_empty(), "{report:#?}");
}

/// Asks the reference for one number about a dataset.
fn ask(path: &Path, dataset: &str, operation: &str) -> Option<f64> {
    let file = TetFile::open(path).unwrap();
    let document = format!("{{\"dataset\": \"{dataset}\", \"{operation}\": []}}");
    let options = ExecuteQueryOptions { preview_max: Some(0) };
    let answer = execute_query_json(&document, path, file.mmap(), options, None).unwrap();
    let answer = serde_json::to_value(answer).unwrap();
    let fields = answer["execution"].as_object().unwrap();
    let about = ["_element_count", "_shape", "_order", "_edges"];
    let answer = fields.iter().find(|(key, _)| {
        key.starts_with("operation_") && !about.iter().any(|end| key.ends_with(end))
    });
    answer.and_then(|(_, value)| value.as_f64().or_else(|| value[0].as_f64()))
}

#[tokio::test]
async fn queries_are_read_back() {
    let case = Case::new(reducing(2, 512)).await;
    let air = "SELECT time, lat, lon, t2m FROM air WHERE time < TIMESTAMP '2023-03-01'";
    let stations = "SELECT time, station, value FROM stations.temperature";
    let queries = [
        (air, "time, lat, lon, t2m", ""),
        (air, "time, lat, lon, t2m", "'chunks' 'time=1,lat=4,lon=5', 'level' '9'"),
        (air, "time, lat, lon, t2m", "'codec' 'none', 'fill' '-999'"),
        (stations, "time, station, value", "'chunks' 'time=100,station=4'"),
        (stations, "time, station, value", "'dimensions' 'station, time', 'max_bytes' '1000000'"),
        (
            "SELECT station, date_part('hour', time) AS hour, avg(value) AS mean, count(*) AS n FROM stations.temperature GROUP BY station, hour",
            "station, hour, mean, n",
            "'chunks' 'station=2'",
        ),
        (
            "SELECT arrow_cast(x, 'Int32') AS x, v, i FROM (VALUES (3, 0.5, NULL), (1, NULL, 7), (9, -1.5, 0)) t(x, v, i)",
            "x, v, i",
            "'dimensions' 'x', 'fill' 'i=-1', 'chunks' 'x=2'",
        ),
        (
            "SELECT CAST(value AS DATE) AS day, 1.0 AS v FROM (VALUES ('2024-02-29'), ('1999-12-31')) t(value)",
            "CAST(day AS DATE), v",
            "'dimensions' 'day'",
        ),
    ];
    for (number, (sql, columns, options)) in queries.into_iter().enumerate() {
        let name = format!("{number}.tet");
        case.copy(sql, &name, options).await.unwrap();
        assert_sound(&case.at(&name)).await;
        let expected = sorted_rows_from(&case.ctx, &format!("SELECT {columns} FROM ({sql})")).await;
        assert_eq!(case.read(&name, columns).await, expected, "{sql} {options}");
    }
}

/// All ten types, with their extremes, raw and compressed: the reference counts and adds the same cells.
#[tokio::test]
async fn the_reference_reads_every_type() {
    let case = Case::new(reducing(2, 64)).await;
    for (number, name) in [
        "Float16", "Float32", "Float64", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32",
        "UInt64",
    ]
    .into_iter()
    .enumerate()
    {
        for codec in ["zstd", "none"] {
            let file = format!("{number}{codec}.tet");
            let value = if name.starts_with('U') { "value % 120" } else { "value % 120 - 60" };
            let sql = format!(
                "SELECT value / 10 AS y, value % 10 AS x, arrow_cast({value}, '{name}') AS v FROM range(230)"
            );
            let options = format!("'dimensions' 'y, x', 'chunks' 'y=4,x=3', 'codec' '{codec}'");
            case.copy(&sql, &file, &options).await.unwrap();
            let path = case.at(&file);
            assert_sound(&path).await;
            assert_eq!(
                case.read(&file, "y, x, v").await,
                sorted_rows_from(&case.ctx, &sql).await,
                "{name}"
            );
            let sql = format!(
                "SELECT CAST(sum(CAST(v AS DOUBLE)) AS DOUBLE), CAST(min(v) AS DOUBLE), CAST(max(v) AS DOUBLE) FROM ({sql})"
            );
            let expected: Vec<f64> =
                rows_from(&case.ctx, &sql).await[0].iter().map(|it| it.parse().unwrap()).collect();
            let found = ["sum", "min", "max"].map(|operation| ask(&path, "v", operation).unwrap());
            assert_eq!(found.to_vec(), expected, "{name} {codec}");
        }
    }
}

/// More attributes than the footer's JSON takes, which go before it.
#[tokio::test]
async fn long_metadata_is_spilled() {
    let case = Case::new(reducing(1, 64)).await;
    let columns: Vec<String> = (0..90).map(|at| format!("avg(t2m) AS v{at}")).collect();
    let labels = "concat(repeat('é', 500), value) AS name";
    let sql = format!(
        "SELECT {labels}, {} FROM (SELECT value, value * 1.0 AS t2m FROM range(60)) GROUP BY 1",
        columns.join(", ")
    );
    case.copy(&sql, "x.tet", "").await.unwrap();
    assert_sound(&case.at("x.tet")).await;
    let bytes = fs::read(case.at("x.tet")).unwrap();
    assert!(bytes.windows(12).any(|it| it == b"metadata_ref"));
    assert_eq!(case.read("x.tet", "count(*), sum(v89)").await, [["60", "1770.0"]]);
}

#[tokio::test]
async fn a_file_is_replaced_on_request() {
    let case = Case::new(reducing(1, 64)).await;
    let sql = |v: i64| format!("SELECT value AS x, value * {v} AS v FROM range(4)");
    case.copy(&sql(1), "x.tet", "'dimensions' 'x'").await.unwrap();
    let error = case.copy(&sql(2), "x.tet", "'dimensions' 'x'").await.unwrap_err();
    assert!(error.contains("(mode 'overwrite')"), "{error}");
    case.copy(&sql(2), "x.tet", "'dimensions' 'x', 'mode' 'overwrite'").await.unwrap();
    assert_eq!(case.read("x.tet", "sum(v)").await, [["12"]]);
    // Also the file that the query reads.
    let own = format!("SELECT x, v + 1 AS v FROM read_array('{}')", case.at("x.tet").display());
    case.copy(&own, "x.tet", "'mode' 'overwrite'").await.unwrap();
    assert_eq!(case.read("x.tet", "sum(v)").await, [["16"]]);
}

#[tokio::test]
async fn what_has_no_place_in_a_tet_file_is_refused_and_leaves_nothing() {
    let case = Case::new(reducing(2, 512)).await;
    let of = |column: &str| format!("SELECT value AS x, {column} AS v FROM range(100)");
    let many = "SELECT concat('station ', value) AS x, value AS v FROM range(65)";
    let cases = [
        (
            of("arrow_cast(value, 'Int8')"),
            "",
            "\"v\": a .tet file has no Int8; cast the column to another number",
        ),
        (of("value > 3"), "", "\"v\": a .tet file has no Boolean"),
        (of("concat('a', value)"), "", "\"v\": a .tet file has no Utf8"),
        (of("now()"), "", "times in a .tet file are labels, and no variables"),
        (
            of("CASE WHEN value > 3 THEN value END"),
            "",
            "the cell x=0 of \"v\" cannot be written: it is NULL",
        ),
        (
            of("value"),
            "'fill' '50'",
            "the cell x=50 of \"v\" cannot be written: it has the fill value",
        ),
        (of("random()"), "'max_bytes' '100'", "a .tet file of more than 100 bytes"),
        (of("value"), "'codec' 'gzip'", "there is no codec 'gzip'; there are zstd, none"),
        (of("value"), "'shards' 'x=7'", "the format tet has no option 'shards'"),
        (of("value"), "'mode' 'append'", "the format tet has create and overwrite"),
        (many.to_owned(), "", "65 texts label \"x\", and a .tet file has at most 64"),
        (format!("{many} WHERE false"), "", "a dimension \"x\" without labels"),
        (
            "SELECT concat('', value) AS x, value AS v FROM range(5)".to_owned(),
            "",
            "the labels \"x\" are texts that a .tet file reads as numbers",
        ),
        (
            "SELECT repeat('a', value) AS x, value AS v FROM range(5)".to_owned(),
            "",
            "a label of \"x\" has 0 bytes",
        ),
        (
            "SELECT value > 2 AS x, value AS v FROM range(2, 4)".to_owned(),
            "",
            "\"x\": a .tet file has no Boolean",
        ),
        (
            "SELECT * FROM (VALUES (1, 1, 1), (2, 2, 2)) t(x, y, v)".to_owned(),
            "'dimensions' 'x, y', 'chunks' 'x=1,y=1'",
            "cannot be written: it is NULL",
        ),
    ];
    for (sql, options, message) in cases {
        let options = match options.contains("dimensions") {
            true => options.to_owned(),
            false => ["'dimensions' 'x'", options]
                .into_iter()
                .filter(|it| !it.is_empty())
                .collect::<Vec<_>>()
                .join(", "),
        };
        let error = case.copy(&sql, "x.tet", &options).await.unwrap_err();
        assert!(error.contains(message), "{sql} {options}\n{error}");
        assert_eq!(fs::read_dir(case.at("")).unwrap().count(), 0, "{sql} {options}");
    }
    let named = format!(
        "COPY ({}) TO '{}' OPTIONS (dimensions 'x')",
        of("value"),
        case.at("y.tet").display()
    );
    query(&case.ctx, &named).await.unwrap();
    assert_sound(&case.at("y.tet")).await;
}
