//! Times of calendars that SQL lacks are numbers, and messages tell what to write. The years and months in the files are those of
//! cftime.

use crate::support::{failure, run};

fn file(name: &str) -> String {
    format!("{}/../tests/data/calendars/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn functions_of_times_are_explained() {
    for (name, expected) in
        [("360_day.nc", "of hours since 1859-12-01 00:00:00 in the calendar 360_day, whose dates")]
    {
        let from = format!("FROM '{}'", file(name));
        for sql in [
            format!("SELECT date_part('year', time) {from}"),
            format!("SELECT count(*) {from} WHERE date_part('year', time) = 1850"),
            format!("SELECT extract(year FROM time) + 1 AS y, count(*) {from} GROUP BY y"),
            format!("SELECT date_trunc('month', time) AS m, count(*) {from} GROUP BY m"),
            format!("SELECT date_bin(INTERVAL '5 days', time) {from}"),
            format!("SELECT to_char(time, '%Y') {from}"),
            format!("SELECT time + INTERVAL '1 day' {from}"),
            format!("SELECT DATE '1850-01-01' + time {from}"),
            format!("SELECT CAST(time AS DATE) {from}"),
            format!("SELECT date_part('month', t.time) FROM (SELECT time {from}) AS t"),
            format!("CREATE VIEW v AS SELECT date_part('year', time) AS year {from}"),
        ] {
            let message = failure(&[], &sql);
            assert!(message.contains(expected), "{sql}: {message}");
            assert!(message.ends_with("docs/time.md#other-calendars"), "{message}");
            // The formulas of the message give the parts of each date.
            let (_, said) = message.split_once("its year is ").unwrap();
            let (year, said) = said.split_once(", and its month ").unwrap();
            let (month, _) = said.split_once("; see ").unwrap();
            let table = if message.starts_with("t.") { " AS t" } else { "" };
            let sql = format!(
                "SELECT count(*) AS n {from}{table} WHERE year = {year} AND month = {month}"
            );
            let outcome = run(&["-q", "--format", "csv", "-c", &sql]);
            assert_eq!(outcome.stdout, "n\n24\n", "{sql}: {outcome:?}");
        }
    }
}

#[test]
fn comparisons_with_dates_are_explained() {
    for (name, condition, expected) in [
        ("360_day.nc", "time >= '1860-07-01'", "1860-07-01 is 5040; see docs/time.md"),
        ("360_day.nc", "time >= '1860-07'", "1860-07 is 5040;"),
        ("360_day.nc", "'1860-07-01' <= time", "1860-07-01 is 5040;"),
        ("360_day.nc", "time BETWEEN '1860-07-01' AND '1900-01-01'", "1860-07-01 is 5040;"),
        ("360_day.nc", "time >= DATE '1860-07-01'", "1860-07-01 is 5040;"),
        ("360_day.nc", "time >= TIMESTAMP '1860-07-01'", "is 5040;"),
        ("360_day.nc", "time IN ('1860-07-01 12:00')", "its year is 1859 + floor((time"),
        ("360_day.nc", "time > '1860-01-01'", "1860-01-01 is 720;"),
    ] {
        let from = format!("FROM '{}'", file(name));
        let message = failure(&[], &format!("SELECT * {from} WHERE {condition}"));
        assert!(message.contains(expected), "{condition}: {message}");
    }
    // The number selects what the date means.
    let sql = format!(
        "SELECT min(year * 100 + month) AS first, count(*) AS n FROM '{}' WHERE time >= 5040",
        file("360_day.nc")
    );
    let outcome = run(&["-q", "--format", "csv", "-c", &sql]);
    assert_eq!(outcome.stdout, "first,n\n186007,17\n", "{outcome:?}");
    // Other mistakes keep their messages.
    let message = failure(&[], &format!("SELECT sum('a') FROM '{}'", file("360_day.nc")));
    assert!(message.starts_with("there is no function sum(Utf8)"), "{message}");
    let message = failure(&[], &format!("SELECT time + true FROM '{}'", file("360_day.nc")));
    assert!(!message.contains("calendar"), "{message}");
}
