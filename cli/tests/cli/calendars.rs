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
fn dates_of_the_calendar_are_compared() {
    for (condition, rows) in [
        ("time >= '1860-07-01'", 17),
        ("time >= '1860-07'", 17),
        ("'1860-07-01 00:00' <= t.time", 17),
        ("NOT time < '1860-07-16T00:00:00'", 17),
        ("time BETWEEN '1860-07-01' AND '1860-09-30'", 3),
        ("time IN ('1860-02-16', '1860-07-16', '1860-02-30')", 2),
        ("time >= '5040'", 17),
    ] {
        let sql =
            format!("SELECT count(*) AS n FROM '{}' AS t WHERE {condition}", file("360_day.nc"));
        let outcome = run(&["-q", "--format", "csv", "-c", &sql]);
        assert_eq!(outcome.stdout, format!("n\n{rows}\n"), "{condition}: {outcome:?}");
    }
    for (condition, expected) in [
        ("time = '1860-07-31'", "in the calendar 360_day: there is no 1860-07-31"),
        ("time = 'soon'", "in the calendar 360_day: \"soon\" is not a date and time"),
        ("time >= DATE '1860-07-01'", "1860-07-01 is 5040;"),
        ("time >= TIMESTAMP '1860-07-01'", "is 5040;"),
    ] {
        let from = format!("FROM '{}'", file("360_day.nc"));
        let message = failure(&[], &format!("SELECT * {from} WHERE {condition}"));
        assert!(message.contains(expected), "{condition}: {message}");
    }
    // Other mistakes keep their messages.
    let message = failure(&[], &format!("SELECT sum('a') FROM '{}'", file("360_day.nc")));
    assert!(message.starts_with("there is no function sum(Utf8)"), "{message}");
    let message = failure(&[], &format!("SELECT time + true FROM '{}'", file("360_day.nc")));
    assert!(!message.contains("calendar"), "{message}");
}

/// Such a cast would count from 1970 and ignore the units.
#[test]
fn casts_to_times_are_refused() {
    for what in [
        "CAST(time AS TIMESTAMP)",
        "CAST(time AS DATE)",
        "time::BIGINT::TIMESTAMP",
        "TRY_CAST(time AS TIMESTAMP)",
        "to_timestamp(time)",
        "to_timestamp_seconds(t.time)",
        "time AT TIME ZONE 'UTC'",
    ] {
        let sql = format!("SELECT {what} FROM '{}' AS t", file("360_day.nc"));
        let message = failure(&[], &sql);
        let expected = "hours since 1859-12-01 00:00:00 in the calendar 360_day";
        assert!(message.contains(expected) && message.contains("1970"), "{sql}: {message}");
    }
    let numbers = format!(
        "SELECT count(CAST(max AS VARCHAR)) AS n FROM (SELECT max(time) AS max FROM '{}')",
        file("360_day.nc")
    );
    let outcome = run(&["-q", "--format", "csv", "-c", &numbers]);
    assert_eq!(outcome.stdout, "n\n1\n", "{outcome:?}");
}
