//! Times before the Gregorian calendar, dates that do not exist, and units in upper and lower case.

use std::collections::BTreeMap;

use gridfusion::verify::{Depth, Severity};
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use serde_json::json;

use crate::support::{
    F64, I32, Layout, TempTet, TestDataset, query, reducing, rows_of, shipped, tet_bytes,
};
use crate::tet::fills::logged;
use crate::verify::tet::verify;

/// The result of a query over a time coordinate: its rows, the log, and the warnings of `verify`.
struct Shown {
    rows: Vec<Vec<String>>,
    log: Vec<(log::Level, String)>,
    warnings: u64,
}

async fn shown(units: &str, calendar: Option<&str>, labels: &[i32], sql: &str) -> Shown {
    let bytes = labels.iter().flat_map(|it| it.to_le_bytes()).collect();
    shown_of(units, calendar, (I32, labels.len() as u64, bytes), sql).await
}

/// As `shown`, for labels of any type: their type, number and bytes.
async fn shown_of(
    units: &str,
    calendar: Option<&str>,
    (element, len, bytes): (u32, u64, Vec<u8>),
    sql: &str,
) -> Shown {
    let file = written(units, calendar, (element, len, bytes));
    let mut rows = vec![];
    let log = logged(file.location(), async || {
        let ctx = reducing(1, 8192);
        let options = ArrayOptions::default().with_dataset("v");
        ctx.register_array("t", file.location(), options).await.unwrap();
        rows = rows_of(&query(&ctx, sql).await.unwrap());
    });
    let log = log.await;
    let report = verify(std::fs::read(&file.path).unwrap(), Depth::Structure).await;
    assert!(report.is_ok());
    let check = report.check("attributes").unwrap();
    assert!(check.severity() <= Some(Severity::Warning));
    Shown { rows, log, warnings: check.warnings() }
}

/// Writes a variable `v` with the values of its labels `time`.
fn written(
    units: &str,
    calendar: Option<&str>,
    (element, len, bytes): (u32, u64, Vec<u8>),
) -> TempTet {
    let mut attributes = BTreeMap::from([("units", units)]);
    attributes.extend(calendar.map(|calendar| ("calendar", calendar)));
    let time = TestDataset::new("time", element, &[len], &[len], bytes.clone())
        .with_metadata(json!({"dim_names": ["time"], "attrs": attributes}));
    let v = TestDataset::new("v", element, &[len], &[len], bytes)
        .with_metadata(json!({"dim_names": ["time"]}));
    let layout = Layout { history_version: Some(2), ..Layout::default() };
    TempTet::new(&tet_bytes(&[time, v], &layout))
}

/// Files that count from other instants, in other units and types, or with timestamps after the reform are one table.
#[tokio::test]
async fn files_count_times_alike() {
    let integers = |all: &[i32]| {
        (I32, all.len() as u64, all.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<u8>>())
    };
    let doubles = |all: &[f64]| {
        (F64, all.len() as u64, all.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<u8>>())
    };
    let days = Some("360_day");
    for (files, expected) in [
        (
            vec![
                written("days since 2000-01-01", days, integers(&[28, 29, 59])),
                written("hours since 2001-02-30", days, doubles(&[0.0, 12.5])),
                written("days since 1999-12-30", days, integers(&[-1, 0])),
            ],
            [
                ("1999-12-29", -1),
                ("1999-12-30", 0),
                ("2000-01-29", 28),
                ("2000-01-30", 29),
                ("2000-02-30", 59),
                ("2001-02-30", 0),
                ("2001-02-30T12:30:00", 12),
            ]
            .as_slice(),
        ),
        (
            vec![
                written("days since 1582-10-01", None, integers(&[2, 4])),
                written("hours since 1600-02-29", Some("standard"), integers(&[0, 6])),
            ],
            &[("1582-10-03", 2), ("1582-10-15", 4), ("1600-02-29", 0), ("1600-02-29T06:00:00", 6)],
        ),
    ] {
        for reversed in [false, true] {
            let mut paths: Vec<&str> = files.iter().map(TempTet::location).collect();
            if reversed {
                paths.reverse();
            }
            let ctx = reducing(1, 8192);
            let options = ArrayOptions::default().with_dataset("v");
            ctx.register_array("t", paths, options).await.unwrap();
            let sql = "SELECT time::TEXT AS date, floor(value)::INT FROM t ORDER BY time";
            let found = rows_of(&query(&ctx, sql).await.unwrap());
            let expected: Vec<_> =
                expected.iter().map(|(time, v)| vec![(*time).to_owned(), v.to_string()]).collect();
            assert_eq!(found, expected);
            let sql = "SELECT count(*) FROM t WHERE time >= '1600-02-29' AND time < '2000-02-28'";
            let found = rows_of(&query(&ctx, sql).await.unwrap());
            let times = expected.iter().map(|row| row[0].as_str());
            let wanted = times.filter(|it| *it >= "1600-02-29" && *it < "2000-02-28").count();
            assert_eq!(found, [[wanted.to_string()]]);
        }
    }
}

/// The days around the reform, as in `docs/time.md`.
#[tokio::test]
async fn times_before_the_reform_have_the_dates_of_the_file() {
    let sql = "SELECT time::TEXT AS date, date_part('month', time), value FROM t ORDER BY time";
    let (units, labels) = ("days since 1582-10-01", [-1, 0, 3, 4]);
    for calendar in [None, Some("standard"), Some("gregorian"), Some("GREGORIAN")] {
        let found = shown(units, calendar, &labels, sql).await;
        let expected = [
            ["1582-09-30", "9", "-1"],
            ["1582-10-01", "10", "0"],
            ["1582-10-04", "10", "3"],
            ["1582-10-15", "10", "4"],
        ];
        assert_eq!(found.rows, expected, "{calendar:?}");
        assert_eq!((found.log, found.warnings), (vec![], 0));
    }
    let found = shown(units, Some("proleptic_gregorian"), &labels, sql).await;
    assert_eq!(found.rows[0][1..], ["9", "-1"]);
    assert_eq!(found.log, []);
    for (condition, rows) in [
        ("time >= '1582-10-04'", 2),
        ("time = '1582-10-04'", 1),
        ("time < '2000-01-01'", 4),
        ("date_part('day', time) < 14", 2),
    ] {
        let sql = format!("SELECT time FROM t WHERE {condition}");
        assert_eq!(shown(units, None, &labels, &sql).await.rows.len(), rows, "{condition}");
    }
    let found =
        shown("days since 1582-10-01", Some("standard"), &[4, 5], "SELECT time FROM t").await;
    assert_eq!(found.rows[0], ["1582-10-15T00:00:00"], "no time is before the reform");
}

/// The dates of cftime, over all units and years from -4700 to 9999. `dates.py` writes them.
#[tokio::test]
async fn dates_are_those_of_cftime() {
    let dates = std::fs::read_to_string(shipped("tests/data/calendars/dates.csv")).unwrap();
    let mut tables: BTreeMap<(&str, &str), Vec<(f64, &str)>> = BTreeMap::new();
    for line in dates.lines() {
        let [units, calendar, number, date] = line.split('|').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        // Earlier times of the standard calendar are no timestamps.
        if calendar == "standard" && date < "1582-10-15" {
            continue;
        }
        tables.entry((units, calendar)).or_default().push((number.parse().unwrap(), date));
    }
    let mut compared = 0;
    for ((units, calendar), dates) in tables {
        if !["standard", "proleptic_gregorian", "noleap"].contains(&calendar) {
            continue;
        }
        let bytes = dates.iter().flat_map(|(number, _)| number.to_le_bytes()).collect();
        let labels = (F64, dates.len() as u64, bytes);
        let found = shown_of(units, Some(calendar), labels, "SELECT time FROM t").await;
        let expected: Vec<_> = dates.iter().map(|(_, date)| vec![(*date).to_owned()]).collect();
        assert_eq!(found.rows, expected, "{units} {calendar}");
        compared += dates.len();
    }
    assert!(compared > 150, "{compared}");
}

#[tokio::test]
async fn dates_that_do_not_exist_leave_numbers() {
    let sql = "SELECT time FROM t ORDER BY time";
    for (units, why) in [
        ("days since 1582-10-10", "there is no 1582-10-10 in this calendar: 1582-10-15 follows"),
        ("hours since 2001-02-29 06:00", "there is no 2001-02-29"),
        ("days since the flood", "\"the flood\" is not a date and time"),
    ] {
        let found = shown(units, Some("standard"), &[7, 8], sql).await;
        assert_eq!(found.rows, [["7"], ["8"]], "{units}");
        let [(log::Level::Warn, line)] = found.log.as_slice() else { panic!("{:?}", found.log) };
        assert!(
            line.contains(why) && line.contains(units) && line.contains("stay numbers"),
            "{line}"
        );
        assert_eq!(found.warnings, 1, "{units}");
    }
}

#[tokio::test]
async fn units_are_recognised_in_any_case() {
    for units in
        ["Days Since 2024-01-01", "DAYS SINCE 2024-01-01 00:00", "days  since 2024-01-01t00"]
    {
        let found = shown(units, None, &[0, 31], "SELECT time FROM t ORDER BY time").await;
        assert_eq!(found.rows, [["2024-01-01T00:00:00"], ["2024-02-01T00:00:00"]], "{units}");
        assert_eq!(found.log, [], "{units}");
    }
}
