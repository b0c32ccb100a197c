//! Appends whose times fall between the units of a store, with `times 'rewrite'`.

use std::fs;
use std::ops::Range;
use std::sync::Arc;

use datafusion::prelude::SessionContext;
use object_store::ObjectStoreExt;
use serde_json::{Value, json};
use url::Url;

use super::append::{APPEND, files};
use super::faults::{Failing, broken_at};
use super::zarr::Case;
use crate::support::{query, reducing, rows_from, sorted_rows_from};

const REWRITE: &str = "'mode' 'append', 'times' 'rewrite'";

const DAY: i64 = 24 * HOUR;
const HOUR: i64 = 60 * MINUTE;
const MINUTE: i64 = 60 * SECOND;
const SECOND: i64 = 1_000_000_000;

/// Rows whose times are these numbers of steps after the beginning of 2024. A step has so many nanoseconds.
fn rows(range: Range<i64>, step: i64) -> String {
    let (start, end) = (range.start, range.end);
    format!(
        "SELECT arrow_cast(1704067200000000000 + value * {step}, 'Timestamp(Nanosecond, None)') AS time, CAST(value AS DOUBLE) AS v FROM range({start}, {end})"
    )
}

/// Rows of days, whose times have this type.
fn days(range: Range<i64>, data_type: &str) -> String {
    format!("SELECT arrow_cast(time, '{data_type}') AS time, v FROM ({})", rows(range, DAY))
}

fn document(case: &Case, path: &str) -> Value {
    serde_json::from_slice(&fs::read(case.at(path)).unwrap()).unwrap()
}

/// Changes the documents of a store, the root's and the own one of an array.
fn change(case: &Case, store: &str, array: &str, change: impl Fn(&mut Value)) {
    let own = format!("{store}/{array}/zarr.json");
    let mut of_array = document(case, &own);
    change(&mut of_array);
    fs::write(case.at(&own), of_array.to_string()).unwrap();
    let mut root = document(case, &format!("{store}/zarr.json"));
    if !root["consolidated_metadata"].is_null() {
        change(&mut root["consolidated_metadata"]["metadata"][array]);
        fs::write(case.at(&format!("{store}/zarr.json")), root.to_string()).unwrap();
    }
}

fn without_consolidated(case: &Case, store: &str) {
    let mut root = document(case, &format!("{store}/zarr.json"));
    root.as_object_mut().unwrap().remove("consolidated_metadata");
    fs::write(case.at(&format!("{store}/zarr.json")), root.to_string()).unwrap();
}

/// Each append needs finer units than the one before. All times and values are those of the rows, and each document tells the same.
#[tokio::test]
async fn times_get_finer_step_by_step() {
    let case = Case::new(reducing(2, 512)).await;
    for (number, options) in [
        "'chunks' 'time=1'",
        "'chunks' 'time=2', 'codec' 'none'",
        "'chunks' 'time=3', 'checksums' 'true'",
        "'chunks' 'time=100', 'codec' 'gzip'",
        "'chunks' 'time=2', 'shards' 'time=4'",
    ]
    .into_iter()
    .enumerate()
    {
        for is_consolidated in [true, false] {
            let store = format!("{number}-{is_consolidated}.zarr");
            let options = format!("'dimensions' 'time', {options}");
            case.copy(&days(0..5, "Date32"), &store, &options).await.unwrap();
            if !is_consolidated {
                without_consolidated(&case, &store);
            }
            let mut all = rows(0..5, DAY);
            let steps = [
                (121..124, HOUR, "hours since 1970-01-01"),
                (7501..7502, MINUTE, "minutes since 1970-01-01"),
                (6..8, DAY, "minutes since 1970-01-01"),
                (691_201..691_203, SECOND, "seconds since 1970-01-01"),
            ];
            for (range, step, units) in steps {
                let new = rows(range, step);
                if step != DAY {
                    let error = case.copy(&new, &store, APPEND).await.unwrap_err();
                    assert!(
                        error.contains("the option 'times' of COPY may be 'rewrite'"),
                        "{error}"
                    );
                    let before = sorted_rows_from(&case.ctx, &all).await;
                    assert_eq!(read(&case, &store).await, before);
                }
                case.copy(&new, &store, REWRITE).await.unwrap();
                all = format!("{all} UNION ALL {new}");
                let own = document(&case, &format!("{store}/time/zarr.json"));
                assert_eq!(own["attributes"]["units"], units);
                if is_consolidated {
                    let root = document(&case, &format!("{store}/zarr.json"));
                    assert_eq!(root["consolidated_metadata"]["metadata"]["time"], own);
                }
                assert_eq!(read(&case, &store).await, sorted_rows_from(&case.ctx, &all).await);
                assert!(!case.at(&format!("{store}/.gridfusion-append")).exists());
            }
            // Milliseconds since 1970 are more than 32 bits tell.
            let millis = rows(691_203_001..691_203_002, 1_000_000);
            let error = case.copy(&millis, &store, REWRITE).await.unwrap_err();
            assert!(error.contains("units seconds since 1970-01-01"), "{error}");
        }
    }
}

/// Returns the rows of a store, with times as those of [`rows`].
async fn read(case: &Case, store: &str) -> Vec<Vec<String>> {
    case.read(store, "arrow_cast(time, 'Timestamp(Nanosecond, None)'), v").await
}

#[tokio::test]
async fn what_other_units_would_break_is_refused() {
    let case = Case::new(reducing(2, 512)).await;
    let options = "'dimensions' 'time'";
    let (first, hours) = (days(0..1, "Date32"), rows(121..122, HOUR));
    for attribute in ["bounds", "valid_max"] {
        let store = format!("{attribute}.zarr");
        case.copy(&first, &store, options).await.unwrap();
        change(&case, &store, "time", |it| it["attributes"][attribute] = json!("time_bnds"));
        let before = files(&case.at(&store));
        let error = case.copy(&hours, &store, REWRITE).await.unwrap_err();
        assert!(error.contains(attribute) && error.contains("\"time\""), "{error}");
        assert!(files(&case.at(&store)) == before);
    }
    // No units tell a text or a number.
    case.copy(&first, "x.zarr", options).await.unwrap();
    for (label, message) in [("5", "is of type"), ("'later'", "is of type")] {
        let sql = format!("SELECT {label} AS time, 1.5 AS v");
        let error = case.copy(&sql, "x.zarr", REWRITE).await.unwrap_err();
        assert!(error.contains(message), "{error}");
    }
    let error =
        case.copy(&hours, "new.zarr", "'dimensions' 'time', 'times' 'rewrite'").await.unwrap_err();
    assert!(error.contains("the option 'times' needs mode 'append'"), "{error}");
    let error = case.copy(&hours, "x.zarr", "'mode' 'append', 'times' 'null'").await.unwrap_err();
    assert!(error.contains("expected 'refuse' or 'rewrite'"), "{error}");
    // The metadata of the store repeats that of the group.
    case.copy(&first, "s.zarr", "'dimensions' 'time', 'group' 'g'").await.unwrap();
    let group = format!("{REWRITE}, 'group' 'g'");
    let error = case.copy(&hours, "s.zarr", &group).await.unwrap_err();
    assert!(error.contains("'times' for a group of a store"), "{error}");
}

/// Each call to a store may fail, before or after its effect: the times are the same, with old rows or with all, and the next append works.
#[tokio::test]
async fn each_call_may_fail() {
    const FIRST: i64 = 3 * DAY + 1;
    let copy = |rows: String, options: &str| {
        format!("COPY ({rows}) TO 'mem://bucket/x.zarr' OPTIONS ({options})")
    };
    let old_rows = || days(0..3, "Timestamp(Second, None)");
    let (mut old, mut new) = (0, 0);
    for is_consolidated in [true, false] {
        for has_effect in [false, true] {
            for fails in 0.. {
                let store = Arc::new(Failing::new(usize::MAX, has_effect));
                let session = || {
                    let ctx = reducing(2, 16);
                    let url = Url::parse("mem://bucket").unwrap();
                    ctx.register_object_store(&url, Arc::clone(&store) as _);
                    ctx
                };
                let found = async |ctx: &SessionContext| {
                    let from = "read_array('mem://bucket/x.zarr')";
                    let time = "arrow_cast(time, 'Timestamp(Nanosecond, None)')";
                    rows_from(ctx, &format!("SELECT {time} AS time, v FROM {from} ORDER BY 1"))
                        .await
                };
                let with = |nanos: Range<i64>| {
                    format!("{} UNION ALL {} ORDER BY 1", rows(0..3, DAY), rows(nanos, 1))
                };
                let ctx = session();
                let options = "'dimensions' 'time', 'chunks' 'time=2'";
                query(&ctx, &copy(old_rows(), options)).await.unwrap();
                if !is_consolidated {
                    let root = json!({"zarr_format": 3, "node_type": "group"}).to_string();
                    store.put(&"x.zarr/zarr.json".into(), root.into()).await.unwrap();
                }
                broken_at(&store, fails);
                let written = query(&ctx, &copy(rows(FIRST..FIRST + 2, 1), REWRITE)).await;
                broken_at(&store, usize::MAX);
                let fresh = session();
                let now = found(&fresh).await;
                let is_new = now == rows_from(&fresh, &with(FIRST..FIRST + 2)).await;
                let is_old = now == rows_from(&fresh, &rows(0..3, DAY)).await;
                assert!(is_new || is_old, "{fails} {has_effect}: {now:?}");
                if is_new {
                    new += 1
                } else {
                    old += 1
                }
                if written.is_ok() {
                    assert!(is_new);
                    break;
                }
                let options = format!("{REWRITE}, 'unlock' 'true'");
                let next = if is_new { FIRST + 2 } else { FIRST };
                query(&fresh, &copy(rows(next..FIRST + 4, 1), &options)).await.unwrap();
                let expected = rows_from(&fresh, &with(FIRST..FIRST + 4)).await;
                assert_eq!(found(&fresh).await, expected, "{fails} {has_effect}");
            }
        }
    }
    assert!(old > 20 && new > 8, "{old} {new}");
}

/// Statements that are refused leave each file as it was: labels, cells and units.
#[tokio::test]
async fn refused_rows_change_nothing() {
    let case = Case::new(reducing(2, 512)).await;
    let grid = |time: &str, x: &str, v: &str| {
        format!("SELECT {time} AS time, {x} AS x, {v} AS v FROM range(3)")
    };
    let at = |hours: i64| {
        format!(
            "arrow_cast({}, 'Timestamp(Nanosecond, None)')",
            1_704_067_200_000_000_000 + hours * HOUR
        )
    };
    let days = |day: i64| format!("arrow_cast({}, 'Date32')", 19_723 + day);
    let first = grid(&days(0), "value", "CAST(value AS REAL)");
    let first = format!("{first} UNION ALL {}", grid(&days(1), "value", "CAST(value AS REAL)"));
    case.copy(&first, "x.zarr", "'dimensions' 'time, x', 'chunks' 'time=1'").await.unwrap();
    let before = files(&case.at("x.zarr"));
    for (time, x, v, message) in [
        (54, "value + 1", "CAST(value AS REAL)", "x=3 are not in the array"),
        (6, "value", "CAST(value AS REAL)", "but the labels ascend"),
        (54, "value", "0.1", "0.1 would read as"),
        (54, "value", "'text'", "of type"),
        (54, "value % 2", "CAST(value AS REAL)", "two rows have the labels"),
    ] {
        let error = case.copy(&grid(&at(time), x, v), "x.zarr", REWRITE).await.unwrap_err();
        assert!(error.contains(message), "{error}");
        assert!(files(&case.at("x.zarr")) == before, "{message}");
    }
    // Rows of the store itself, of all its cells.
    let own = format!(
        "SELECT time + INTERVAL '2 days 6 hours' AS time, x, v FROM read_array('{}')",
        case.at("x.zarr").display()
    );
    let options = format!("'dimensions' 'time, x', {REWRITE}");
    case.copy(&own, "x.zarr", &options).await.unwrap();
    let units = "hours since 1970-01-01";
    assert_eq!(document(&case, "x.zarr/time/zarr.json")["attributes"]["units"], units);
    let expected = [
        ("2024-01-01T00:00:00", 3),
        ("2024-01-02T00:00:00", 3),
        ("2024-01-03T06:00:00", 3),
        ("2024-01-04T06:00:00", 3),
    ];
    let found = rows_from(
        &case.ctx,
        &format!(
            "SELECT time, count(v) FROM read_array('{}') GROUP BY time ORDER BY time",
            case.at("x.zarr").display()
        ),
    )
    .await;
    assert_eq!(found, expected.map(|(time, count)| [time.to_owned(), count.to_string()]));
}

/// Numbers that stand for NULL stay NULL, and are no times in any units.
#[tokio::test]
async fn missing_numbers_are_no_labels() {
    let case = Case::new(reducing(2, 512)).await;
    // 2024-01-02 is 19724 days, and 473376 hours.
    for (attribute, value) in
        [("missing_value", json!(473_376)), ("missing_value", json!([-1, 473_376]))]
    {
        let store = format!("{}.zarr", value.is_array());
        case.copy(&days(0..2, "Date32"), &store, "'dimensions' 'time'").await.unwrap();
        change(&case, &store, "time", |it| {
            it["attributes"]["_FillValue"] = json!(-7);
            it["attributes"][attribute] = value.clone();
        });
        case.copy(&rows(54..55, HOUR), &store, REWRITE).await.unwrap();
        let own = document(&case, &format!("{store}/time/zarr.json"));
        assert_eq!(own["attributes"]["units"], "minutes since 1970-01-01");
        let all = format!("{} UNION ALL {}", rows(0..2, DAY), rows(54..55, HOUR));
        assert_eq!(read(&case, &store).await, sorted_rows_from(&case.ctx, &all).await);
    }
}

/// Calendars have the units that other programs read in them, and dates are times.
#[tokio::test]
async fn calendars_and_dates_have_their_units() {
    let case = Case::new(reducing(2, 512)).await;
    let seconds = days(0..2, "Timestamp(Second, None)");
    case.copy(&seconds, "noleap.zarr", "'dimensions' 'time'").await.unwrap();
    change(&case, "noleap.zarr", "time", |it| it["attributes"]["calendar"] = "noleap".into());
    let before = files(&case.at("noleap.zarr"));
    let nanos = rows(30 * DAY + 1..30 * DAY + 2, 1);
    let error = case.copy(&nanos, "noleap.zarr", REWRITE).await.unwrap_err();
    assert!(!error.contains("'times' of COPY"), "{error}");
    assert!(files(&case.at("noleap.zarr")) == before);
    // The calendar lacks 14 days by now.
    let micros = rows(30 * DAY / 1000 + 1..30 * DAY / 1000 + 2, 1000);
    case.copy(&micros, "noleap.zarr", REWRITE).await.unwrap();
    case.copy(&days(0..2, "Date32"), "noon.zarr", "'dimensions' 'time'").await.unwrap();
    change(&case, "noon.zarr", "time", |it| {
        it["attributes"]["units"] = "days since 1970-01-01 12:00".into();
    });
    case.copy(&days(2..3, "Date32"), "noon.zarr", REWRITE).await.unwrap();
    let times = ["2024-01-01T12:00:00", "2024-01-02T12:00:00", "2024-01-03T00:00:00"];
    assert_eq!(case.read("noon.zarr", "time").await, times.map(|it| [it.to_owned()]));
}
