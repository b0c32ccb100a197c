//! Times of calendars that SQL lacks are dates in queries and results. The years and months in the files are those of cftime.

use crate::support::{failure, run};

fn file(name: &str) -> String {
    format!("{}/../tests/data/calendars/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn shown(sql: &str) -> String {
    let outcome = run(&["-q", "--format", "csv", "-c", sql]);
    assert_eq!(outcome.stderr, "", "{sql}");
    outcome.stdout
}

#[test]
fn functions_take_dates_of_the_calendar() {
    let from = format!("FROM '{}' AS t", file("360_day.nc"));
    for (what, expected) in [
        (
            "count(*) AS n {} WHERE date_part('year', time) = year AND extract(month FROM time) = month",
            "n\n24\n",
        ),
        (
            "date_trunc('year', t.time) AS y, count(*) AS n {} GROUP BY y ORDER BY y DESC",
            "y,n\n1861-01-01,11\n1860-01-01,12\n1859-01-01,1\n",
        ),
        ("min(time) AS a, max(time) AS b {}", "a,b\n1859-12-16,1861-11-16\n"),
        ("to_char(time, '%d %b %Y') AS d {} WHERE time = '1860-02-16'", "d\n16 Feb 1860\n"),
        (
            "'on ' || time AS d, time::text AS x {} ORDER BY time LIMIT 1",
            "d,x\non 1859-12-16,1859-12-16\n",
        ),
        ("concat('on ', max(time)) AS d {}", "d\non 1861-11-16\n"),
        ("time::DOUBLE AS n, time + 12 AS m {} ORDER BY time LIMIT 1", "n,m\n360.0,372.0\n"),
        (
            "m, d FROM (SELECT month AS m, max(time) AS d {} GROUP BY month) WHERE d >= '1861-11-01' ORDER BY m",
            "m,d\n11,1861-11-16\n",
        ),
        (
            "month, max(time) AS d {} GROUP BY month HAVING max(time) > '1861-11-01'",
            "month,d\n11,1861-11-16\n",
        ),
        ("count(*) AS n {} WHERE date_trunc('month', time) = '1860-02-01'", "n\n1\n"),
        // Four digits are a year, and other digits a number of the file.
        ("count(*) AS n {} WHERE time >= '1860' AND time < '1861'", "n\n12\n"),
        ("count(*) AS n {} WHERE time = '360.0'", "n\n1\n"),
        ("count(*) AS n {} WHERE time = (SELECT max(time) {})", "n\n1\n"),
        ("count(*) AS n {} JOIN (SELECT time AS b {}) ON t.time = b", "n\n24\n"),
        (
            "date_part('doy', max(time)) AS d, date_part('quarter', min(time)) AS q {}",
            "d,q\n316,4\n",
        ),
    ] {
        assert_eq!(shown(&format!("SELECT {}", what.replace("{}", &from))), expected, "{what}");
    }
}

/// Expressions that choose times return times.
#[test]
fn chosen_times_are_dates() {
    let from = format!("FROM '{}'", file("360_day.nc"));
    for (what, expected) in [
        (
            "CASE month WHEN 2 THEN time ELSE '1860-02-30' END AS d {} WHERE year = 1860 AND month < 3 ORDER BY time",
            "d\n1860-02-30\n1860-02-16\n",
        ),
        (
            "coalesce(nullif(time, '1860-01-16'), '1860-01-30') AS d {} WHERE year = 1860 AND month < 3 ORDER BY time",
            "d\n1860-01-30\n1860-02-16\n",
        ),
        (
            "greatest(time, '1860-02-01') AS g, least(time, '1860-02-01') AS l {} WHERE year = 1860 AND month IN (1, 3) ORDER BY time",
            "g,l\n1860-02-01,1860-01-16\n1860-03-16,1860-02-01\n",
        ),
        (
            "nvl(NULL, time) AS a, nvl2(month, time, time) AS b, ifnull(time, time) AS c {} WHERE time = '1860-01-16'",
            "a,b,c\n1860-01-16,1860-01-16,1860-01-16\n",
        ),
        (
            "lag(time, 1, '1859-01-30') OVER (ORDER BY time) AS d {} ORDER BY time LIMIT 2",
            "d\n1859-01-30\n1859-12-16\n",
        ),
        (
            "date_part('month', lag(time) OVER (ORDER BY time)) AS m {} ORDER BY time DESC LIMIT 1",
            "m\n10\n",
        ),
        ("date_part('day', CASE WHEN true THEN time ELSE time END) AS d {} LIMIT 1", "d\n16\n"),
        (
            "array_agg(time ORDER BY time)[1] AS a, nth_value(time, 2 ORDER BY time) AS b {}",
            "a,b\n1859-12-16,1860-01-16\n",
        ),
        (
            "date_part('month', nth_value(time, 2 ORDER BY time)) AS m, date_part('year', first_value(time ORDER BY time)) AS y {}",
            "m,y\n1,1859\n",
        ),
        (
            "max(d) AS m FROM (SELECT CASE WHEN month = 1 THEN time END AS d {}) WHERE d > '1860-02-30'",
            "m\n1861-01-16\n",
        ),
        (
            "count(*) AS n FROM (SELECT coalesce(time, time) AS d {}) AS a JOIN (SELECT time {}) AS b ON a.d = b.time WHERE date_trunc('year', d) = '1860-01-01'",
            "n\n12\n",
        ),
        (
            "max(d) AS m FROM (SELECT time AS d {} UNION ALL SELECT least(time, '1860-01-30') {})",
            "m\n1861-11-16\n",
        ),
        ("coalesce((SELECT max(time) {}), '1860-01-30') AS d", "d\n1861-11-16\n"),
        (
            "CASE WHEN month < 6 THEN time ELSE '1860-06-30' END AS d, count(*) AS n {} WHERE year = 1860 GROUP BY d HAVING d > '1860-05-01' ORDER BY d",
            "d,n\n1860-05-16,1\n1860-06-30,7\n",
        ),
        ("x.a AS d FROM (SELECT named_struct('a', max(time)) AS x {})", "d\n1861-11-16\n"),
        // Numbers that are no times are not mistaken for them.
        ("greatest(time, 0) AS n {} WHERE time = '1860-01-16'", "n\n1080.0\n"),
    ] {
        assert_eq!(shown(&format!("SELECT {}", what.replace("{}", &from))), expected, "{what}");
    }
    let lists = format!(
        "WITH t AS (SELECT time AS d {from} WHERE time < '1860-02-01') SELECT array_agg(d ORDER BY d) AS d FROM t"
    );
    let outcome = run(&["-q", "--format", "line", "-c", &lists]);
    assert_eq!(outcome.stdout, "d = [1859-12-16, 1860-01-16]\n", "{outcome:?}");
}

/// The functions are evaluated once per label: they select cells, and make the groups of a reduction.
#[test]
fn arrays_know_the_functions() {
    let from = format!("FROM '{}'", file("360_day.nc"));
    for condition in ["time >= '1861-03-01'", "date_part('year', time) = 1861"] {
        let plan = shown(&format!(
            "EXPLAIN FORMAT INDENT SELECT date_part('month', time) AS m, date_trunc('year', time) AS y, avg(year) {from} \
             WHERE {condition} GROUP BY m, y"
        ));
        assert!(plan.contains("GridReduceExec"), "{condition}: {plan}");
        assert!(plan.contains("selection=[time="), "{condition}: {plan}");
        assert!(!plan.contains("FilterExec"), "{condition}: {plan}");
    }
}

#[test]
fn every_format_shows_dates() {
    let sql = format!("SELECT max(time) AS t, count(*) AS n FROM '{}'", file("360_day.nc"));
    for (format, expected) in [
        ("csv", "t,n\n1861-11-16,24\n"),
        ("json", "[{\"t\":\"1861-11-16\",\"n\":24}]\n"),
        ("markdown", "| t | n |\n|---|---:|\n| 1861-11-16 | 24 |\n"),
        ("line", "t = 1861-11-16\nn = 24\n"),
        ("table", "| 1861-11-16 | 24 |"),
        ("box", "│ 1861-11-16 │ 24 │"),
    ] {
        let outcome = run(&["-q", "--format", format, "-c", &sql]);
        assert!(outcome.stdout.contains(expected), "{format}: {outcome:?}");
    }
    let numbers = format!(
        "SELECT max(time) AS t FROM read_netcdf('{}', decode_times => false)",
        file("360_day.nc")
    );
    assert_eq!(shown(&numbers), "t\n16920.0\n");
}

#[test]
fn files_of_text_have_dates() {
    let folder = tempfile::tempdir().unwrap();
    for (ending, expected) in [
        ("csv", "t,n\n1861-11-16,24\n"),
        ("json", "{\"t\":\"1861-11-16\",\"n\":24}\n"),
        ("parquet", "gridfusion"),
    ] {
        let path = folder.path().join(format!("dates.{ending}"));
        let from = file("360_day.nc");
        let sql = format!(
            "COPY (SELECT max(time) AS t, count(*) AS n FROM '{from}') TO '{}'",
            path.display()
        );
        run(&["-q", "-c", &sql]);
        let written = std::fs::read(path).unwrap();
        // Parquet keeps the number.
        match ending {
            "parquet" => {
                assert!(written.starts_with(b"PAR1"));
                let path = folder.path().join("dates.parquet");
                let read = format!(
                    "SELECT t, date_part('day', t) AS d FROM '{}' WHERE t > '1861-02-30'",
                    path.display()
                );
                let keep = "SET datafusion.execution.parquet.skip_metadata = false";
                let outcome = run(&["-q", "--format", "csv", "-c", keep, "-c", &read]);
                assert_eq!(outcome.stdout, "t,d\n1861-11-16,16\n", "{outcome:?}");
            }
            _ => assert_eq!(String::from_utf8(written).unwrap(), expected),
        }
    }
}

#[test]
fn what_such_times_lack_is_explained() {
    let from = format!("FROM '{}'", file("360_day.nc"));
    let counts = "time counts hours since 1859-12-01 00:00:00 in the calendar 360_day, whose dates SQL lacks";
    for (what, expected) in [
        ("date_bin(INTERVAL '5 days', time)", counts),
        ("time + INTERVAL '1 day'", counts),
        ("DATE '1850-01-01' + time", counts),
        ("date_part('week', time)", "times in the calendar 360_day have no week"),
        ("extract(epoch FROM time)", "times in the calendar 360_day have no "),
        ("date_trunc('week', max(time))", "times in the calendar 360_day have no week"),
        ("to_char(time, '%U')", "\"%U\" is no part of a date"),
        ("-time", "is a time, of hours since 1859-12-01 00:00:00 in the calendar 360_day"),
    ] {
        let message = failure(&[], &format!("SELECT {what} {from}"));
        assert!(message.contains(expected), "{what}: {message}");
    }
    let numbers = format!(
        "SELECT date_part('year', time) FROM read_netcdf('{}', decode_times => false)",
        file("360_day.nc")
    );
    let message = failure(&[], &numbers);
    assert!(message.contains("hours since 1859-12-01 00:00:00, and no time"), "{message}");
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
        ("time >= '5040.0'", 17),
    ] {
        let sql =
            format!("SELECT count(*) AS n FROM '{}' AS t WHERE {condition}", file("360_day.nc"));
        let outcome = run(&["-q", "--format", "csv", "-c", &sql]);
        assert_eq!(outcome.stdout, format!("n\n{rows}\n"), "{condition}: {outcome:?}");
    }
    for (condition, expected) in [
        ("time = '1860-07-31'", "in the calendar 360_day: there is no 1860-07-31"),
        ("time = 'soon'", "in the calendar 360_day: \"soon\" is not a date and time"),
        ("time >= DATE '1860-07-01'", "such as '2000-01-31', in place of 1860-07-01"),
        ("time >= TIMESTAMP '1860-07-01'", "write a date of the calendar as text"),
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
        "CAST(max(time) AS TIMESTAMP)",
        "to_timestamp(min(time))",
        "CAST(date_trunc('month', time) AS DATE)",
        "time AT TIME ZONE 'UTC'",
        "CAST(time + 1 AS TIMESTAMP)",
        "to_timestamp(2 * max(time))",
        "to_timestamp(coalesce(time, 0))",
        "arrow_cast(time / 2, 'Timestamp(Second, None)')",
        "CAST((SELECT max(time) FROM t) + 1 AS DATE)",
        "to_timestamp_millis(n) FROM (SELECT sum(time) AS n",
        "CAST(n AS TIMESTAMP) FROM (SELECT month, avg(time) - 1 AS n FROM t GROUP BY 1 UNION ALL SELECT 1, 2",
        "to_date(n::INT) FROM (SELECT lag(time) OVER (ORDER BY time) + 1 AS n",
    ] {
        let open = what.matches('(').count() - what.matches(')').count();
        let sql = format!(
            "WITH t AS (SELECT * FROM '{}') SELECT {what} FROM t{}",
            file("360_day.nc"),
            ")".repeat(open)
        );
        let message = failure(&[], &sql);
        let expected = "hours since 1859-12-01 00:00:00 in the calendar 360_day";
        assert!(message.contains(expected) && message.contains("1970"), "{sql}: {message}");
    }
    // Parts of dates and counts are numbers of their own.
    for what in ["to_timestamp(date_part('year', time))", "CAST(count(time) AS TIMESTAMP)"] {
        shown(&format!("SELECT {what} AS d FROM '{}' GROUP BY time LIMIT 1", file("360_day.nc")));
    }
}
