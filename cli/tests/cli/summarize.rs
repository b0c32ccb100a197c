//! `SUMMARIZE`, and unnamed columns whose names would clash.

use crate::support::{STATIONS, failure, run, run_with_input};

fn csv(sql: &str) -> String {
    let outcome = run(&[STATIONS, "-q", "--format", "csv", "-c", sql]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{sql}: {outcome:?}");
    outcome.stdout
}

/// Returns the count, NULLs, minimum and maximum of a column, from plain SQL.
fn expected(column: &str) -> String {
    let columns = format!(
        "count({column}) AS k, count(*) - count({column}) AS n, CAST(min({column}) AS VARCHAR) AS a, \
         CAST(max({column}) AS VARCHAR) AS z"
    );
    csv(&format!("SELECT {columns} FROM temperature")).lines().nth(1).unwrap().to_owned()
}

#[test]
fn a_row_per_column() {
    let rows = csv("SUMMARIZE temperature");
    let rows: Vec<&str> = rows.lines().collect();
    assert_eq!(rows[0], "column_name,data_type,count,nulls,min,max,mean,std,q25,q50,q75");
    assert_eq!(rows.len(), 4, "{rows:?}");
    for (row, (column, data_type)) in rows[1..].iter().zip([
        ("time", "Timestamp(µs)"),
        ("station", "Utf8View"),
        ("value", "Float32"),
    ]) {
        let begin = format!("{column},{data_type},{}", expected(column));
        assert!(row.starts_with(&begin), "{begin}: {row}");
    }
    let exact = csv("SELECT avg(value) AS m, stddev(value) AS s, \
         CAST(percentile_cont(0.25) WITHIN GROUP (ORDER BY CAST(value AS DOUBLE)) AS VARCHAR) AS q \
         FROM temperature");
    assert!(rows[3].contains(exact.lines().nth(1).unwrap()), "{exact}: {}", rows[3]);
}

#[test]
fn in_every_way_in() {
    let of_table = csv("SUMMARIZE temperature");
    let path = format!("SUMMARIZE '{STATIONS}#temperature'");
    for sql in ["summarize (SELECT * FROM temperature);", "SUMMARIZE stations.temperature", &path] {
        assert_eq!(csv(sql).replace("temperature,", "value,"), of_table, "{sql}");
    }
    let one =
        csv("SELECT 1 AS before; SUMMARIZE SELECT station FROM temperature WHERE station = 'Oslo'");
    assert!(one.contains("station,Utf8View,") && one.contains(",Oslo,Oslo,"), "{one}");
    let piped =
        run_with_input(&[STATIONS, "-q", "--format", "csv"], "-- first\nSUMMARIZE temperature;");
    assert_eq!(piped.stdout, of_table);
    assert!(failure(&[STATIONS], "SUMMARIZE").starts_with("name a table or query: "));
    assert!(failure(&[STATIONS], "SUMMARIZE tempreture").ends_with("did you mean temperature?"));
}

#[test]
fn many_rows_are_summed_up_too() {
    let sql = "CREATE TABLE big AS SELECT * FROM generate_series(1, 2000000) AS t(value)";
    let rows = csv(&format!("{sql}; SUMMARIZE big"));
    assert!(rows.contains("value,Int64,2000000,0,1,2000000,1000000.5,"), "{rows}");
}

#[test]
fn clashing_names_become_different() {
    for (sql, names) in [
        ("SELECT count(*), count(*) FROM temperature", "count(*),count(*)_2"),
        ("SELECT time, CAST(time AS DATE) FROM temperature LIMIT 1", "time,CAST(time AS DATE)"),
        (
            "SELECT mean(value), mean(value) FILTER (WHERE station = 'Oslo') FROM temperature",
            "mean(temperature.value),mean(value) FILTER (WHERE station = 'Oslo')",
        ),
        (
            "SELECT min(time), min(CAST(time AS DATE)) FROM temperature",
            "min(temperature.time),min(CAST(time AS DATE))",
        ),
        (
            "SELECT time AS t, time::DATE, count(*) FROM temperature GROUP BY time, time::DATE LIMIT 1",
            "t,time::DATE,count(*)",
        ),
        ("SELECT station, station FROM temperature LIMIT 1", "station,station_2"),
        ("SELECT 1 AS a, count(*), count(*) AS b FROM temperature", "a,count(*),b"),
    ] {
        assert_eq!(csv(sql).lines().next(), Some(names), "{sql}");
    }
}
