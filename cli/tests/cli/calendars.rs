//! Times of other calendars are numbers, and messages tell what to write. The years and months in the files are those of cftime.

use crate::support::{failure, run};

fn file(name: &str) -> String {
    format!("{}/../tests/data/calendars/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn functions_of_times_are_explained() {
    for (name, expected) in [
        ("noleap.nc", "time is a number (Float64) of days since 1850-01-01 in the calendar noleap"),
        ("360_day.nc", "of hours since 1859-12-01 00:00:00 in the calendar 360_day, whose dates"),
    ] {
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
        ("noleap.nc", "time >= '1851-07-01'", "1851-07-01 is 546; see docs/time.md"),
        ("noleap.nc", "time >= '1851-07'", "1851-07 is 546;"),
        ("noleap.nc", "'1851-07-01' <= time", "1851-07-01 is 546;"),
        ("noleap.nc", "time BETWEEN '1851-07-01' AND '1900-01-01'", "1851-07-01 is 546;"),
        ("noleap.nc", "time >= DATE '1851-07-01'", "1851-07-01 is 546;"),
        ("noleap.nc", "time >= TIMESTAMP '1851-07-01'", "is 546;"),
        ("noleap.nc", "time IN ('1851-07-01 12:00')", "its year is 1850 + floor(time"),
        ("360_day.nc", "time > '1860-01-01'", "1860-01-01 is 720;"),
    ] {
        let from = format!("FROM '{}'", file(name));
        let message = failure(&[], &format!("SELECT * {from} WHERE {condition}"));
        assert!(message.contains(expected), "{condition}: {message}");
    }
    // The number selects what the date means.
    let sql = format!(
        "SELECT min(year * 100 + month) AS first, count(*) AS n FROM '{}' WHERE time >= 546",
        file("noleap.nc")
    );
    let outcome = run(&["-q", "--format", "csv", "-c", &sql]);
    assert_eq!(outcome.stdout, "first,n\n185107,6\n", "{outcome:?}");
    // Other mistakes keep their messages.
    let message = failure(&[], &format!("SELECT sum('a') FROM '{}'", file("noleap.nc")));
    assert!(message.starts_with("there is no function sum(Utf8)"), "{message}");
    let message = failure(&[], &format!("SELECT time + true FROM '{}'", file("noleap.nc")));
    assert!(!message.contains("calendar"), "{message}");
}
