//! Rows that `COPY … (mode 'append')` adds to Zarr stores.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

use super::zarr::Case;
use crate::support::{reducing, rows_from, shipped, sorted_rows_from};

pub(super) const APPEND: &str = "'mode' 'append'";

/// Copies a folder.
fn copied(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copied(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// Returns the files of a folder with their bytes.
pub(super) fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files(&entry.path())),
            false => {
                let bytes = fs::read(entry.path()).unwrap();
                found.insert(entry.path().display().to_string(), bytes);
            }
        }
    }
    found
}

/// One array in parts, each of which is appended to those before.
#[tokio::test]
async fn parts_become_the_array_that_is_written_at_once() {
    let case = Case::new(reducing(2, 512)).await;
    let stations =
        "SELECT time, station, value FROM stations.temperature WHERE time < TIMESTAMP '2024-01-03'";
    let air = "SELECT lat, lon, time, t2m, coalesce(t2m > 280, false) AS warm FROM air";
    let (hours, months) = ("TIMESTAMP '2024-01-01 07:00'", "TIMESTAMP '2023-04-15'");
    let cases = [
        (stations, hours, "'chunks' 'time=5,station=4'"),
        (stations, hours, "'chunks' 'time=6', 'codec' 'none'"),
        (stations, hours, "'chunks' 'time=3', 'codec' 'gzip', 'checksums' 'true'"),
        (stations, hours, "'dimensions' 'station, time', 'chunks' 'time=4,station=1'"),
        (stations, hours, "'chunks' 'time=2,station=3', 'shards' 'time=8,station=6'"),
        (air, months, "'chunks' 'time=2,lat=4'"),
        (air, months, "'dimensions' 'lat, time, lon', 'chunks' 'time=3,lat=7,lon=5'"),
    ];
    for (number, (sql, first, options)) in cases.into_iter().enumerate() {
        for (step, unit) in [(1, "day"), (5, "hours"), (90, "days")] {
            let (name, columns) = (
                format!("{number} {step}.zarr"),
                if sql == air { "lat, lon, time, t2m, warm" } else { "time, station, value" },
            );
            let mut from = String::from("TIMESTAMP '1900-01-01'");
            let mut to = first.to_owned();
            for part in 0..4 {
                let last = if part == 3 { "TIMESTAMP '2100-01-01'" } else { &to };
                let part_of =
                    format!("SELECT * FROM ({sql}) WHERE time >= {from} AND time < {last}");
                let options = if part == 0 { options } else { APPEND };
                case.copy(&part_of, &name, options).await.unwrap();
                from = last.to_owned();
                to = format!("{first} + INTERVAL '{} {unit}'", step * (part + 1));
            }
            let expected =
                sorted_rows_from(&case.ctx, &format!("SELECT {columns} FROM ({sql})")).await;
            assert_eq!(case.read(&name, columns).await, expected, "{name}");
            for left in [".gridfusion-lock", ".gridfusion-append"] {
                assert!(!case.at(&name).join(left).exists(), "{name} {left}");
            }
        }
    }
}

/// Random arrays of random types, appended to along any axis, with gaps and labels in any order.
#[tokio::test]
async fn random_appends_are_the_rows_together() {
    let mut rng = StdRng::seed_from_u64(4602);
    for round in 0..60 {
        let case = Case::new(reducing(1 + round % 3, 64)).await;
        let rank = rng.random_range(1..=4_usize);
        let axis = rng.random_range(0..rank);
        let lens: Vec<i64> = (0..rank).map(|_| rng.random_range(1..7)).collect();
        let total: i64 = lens.iter().product();
        let mut left = 1;
        let mut columns: Vec<String> = vec![];
        for (at, len) in lens.iter().enumerate().rev() {
            let label = format!("(value / {left}) % {len}");
            left *= len;
            columns.push(match rng.random_range(0..3) {
                0 => format!("{label} AS d{at}"),
                1 => format!("concat('l', {label}) AS d{at}"),
                _ => format!(
                    "arrow_cast(1709078400 + 3600 * ({label}), 'Timestamp(Second, None)') AS d{at}"
                ),
            });
        }
        columns.reverse();
        let types = [
            "Int8",
            "UInt16",
            "Int64",
            "Float32",
            "Float64",
            "Boolean",
            "Utf8",
            "Timestamp(Second, None)",
        ];
        let (v, w) = (types[round % types.len()], types[rng.random_range(0..types.len())]);
        let value = |of: &str, name: &str| match of {
            "Boolean" => format!("value % 3 = 0 AS {name}"),
            "Utf8" => format!("concat('t', value % 90) AS {name}"),
            of => format!("arrow_cast(value % 90, '{of}') AS {name}"),
        };
        columns.extend([value(v, "v"), value(w, "w")]);
        let may_be_absent = |of: &str| of.starts_with("Float") || of.starts_with("Time");
        let kept = if may_be_absent(v) && may_be_absent(w) { rng.random_range(3..=10) } else { 10 };
        let all = format!(
            "SELECT {} FROM range({total}) WHERE (value * 7919) % 10 < {kept}",
            columns.join(", ")
        );
        let mut cuts: Vec<i64> = (1..lens[axis]).collect();
        cuts.shuffle(&mut rng);
        cuts.truncate(3);
        cuts.sort_unstable();
        let number: i64 = lens[axis + 1..].iter().product();
        let dims: Vec<String> = (0..rank).map(|at| format!("d{at}")).collect();
        let chunks: Vec<String> =
            dims.iter().map(|name| format!("{name}={}", rng.random_range(1..5))).collect();
        let options =
            format!("'dimensions' '{}', 'chunks' '{}'", dims.join(", "), chunks.join(","));
        let bounds: Vec<i64> = [0].into_iter().chain(cuts).chain([lens[axis]]).collect();
        let mut expected = vec![];
        let mut labels: Vec<Vec<String>> = vec![];
        for (part, pair) in bounds.windows(2).enumerate() {
            let index = format!("((value / {number}) % {})", lens[axis]);
            let sql = format!("{all} AND {index} >= {} AND {index} < {}", pair[0], pair[1]);
            let rows = rows_from(&case.ctx, &sql).await;
            // A part may lack labels that the first has, and not the other way round.
            let has_new = !labels.is_empty()
                && rows
                    .iter()
                    .any(|row| (0..rank).any(|at| at != axis && !labels[at].contains(&row[at])));
            if rows.is_empty() || has_new || part == 0 && kept < 10 && rows.len() < 2 {
                continue;
            }
            let options = if expected.is_empty() { options.as_str() } else { APPEND };
            let mut shuffled = format!("{sql} ORDER BY (value * 31) % 17");
            if round % 2 == 0 {
                shuffled = sql;
            }
            case.copy(&shuffled, "x.zarr", options)
                .await
                .unwrap_or_else(|error| panic!("{shuffled}\n{options}\n{error}"));
            if labels.is_empty() {
                labels =
                    (0..rank).map(|at| rows.iter().map(|row| row[at].clone()).collect()).collect();
            }
            expected.extend(rows);
            // Cells without a row are NULL in both variables.
            let there = format!(
                "SELECT {}, v, w FROM read_array('{}') WHERE v IS NOT NULL OR w IS NOT NULL",
                dims.join(", "),
                case.at("x.zarr").display()
            );
            expected.sort();
            assert_eq!(
                sorted_rows_from(&case.ctx, &there).await,
                expected,
                "{round}: {shuffled} {options}"
            );
        }
    }
}

const GRID: &str = "SELECT arrow_cast(946684800 + 86400 * (value / 6), 'Timestamp(Second, None)') AS time, \
    CAST((value / 3) % 2 * 10 + 50 AS DOUBLE) AS lat, value % 3 AS lon, CAST(value AS REAL) AS t, CAST(value AS INT) AS n FROM range(12)";

/// The next day of [`GRID`], with changes.
fn next(time: &str, lat: &str, t: &str, n: &str) -> String {
    format!(
        "SELECT {time} AS time, {lat} AS lat, value % 3 AS lon, {t} AS t, {n} AS n FROM (SELECT value, (value / 3) % 2 * 10 + 50.0 AS lat FROM range(6))"
    )
}

#[tokio::test]
async fn what_does_not_fit_is_refused_and_changes_nothing() {
    let case = Case::new(reducing(2, 512)).await;
    case.copy(GRID, "x.zarr", "'dimensions' 'time, lat, lon', 'chunks' 'time=4', 'fill' 'n=-1'")
        .await
        .unwrap();
    let before = files(&case.at("x.zarr"));
    let day = "TIMESTAMP '2000-01-03'";
    let fine = next(day, "lat", "CAST(value AS REAL)", "CAST(value AS INT)");
    let cases = [
        // The four faults by which an append corrupts a store.
        (
            next("TIMESTAMP '2000-01-03 00:00:00.5'", "lat", "value", "value"),
            APPEND,
            "2000-01-03T00:00:00.500 would read as NULL, because the array stores i64, units seconds since",
        ),
        (next("TIMESTAMP '2000-01-02'", "lat", "value", "value"), APPEND, "nothing is appended"),
        (next(day, "lat + 1", "value", "value"), APPEND, "lat=51.0 are not in the array"),
        (
            next("TIMESTAMP '1999-12-31'", "lat", "value", "value"),
            APPEND,
            "time=1999-12-31T00:00:00 would follow time=2000-01-02T00:00:00, but the labels ascend",
        ),
        // Values.
        (
            next(day, "lat", "value + 0.1", "value"),
            APPEND,
            "lat=50.0, lon=0 of \"t\" cannot be appended: 0.1 would read as 0.1",
        ),
        (
            next(day, "lat", "value", "value * 1000000000000"),
            APPEND,
            "lon=1 of \"n\" cannot be appended: 1000000000000 would read as",
        ),
        (
            next(day, "lat", "value", "value - 1"),
            APPEND,
            "of \"n\" cannot be appended: -1 would read as NULL",
        ),
        (next(day, "lat", "concat('a', value)", "value"), APPEND, "\"t\" is of type Utf8"),
        (next(day, "lat", "value", day), APPEND, "\"n\" is of type Timestamp"),
        (
            format!("{fine} UNION ALL {fine}"),
            APPEND,
            "two rows have the labels time=2000-01-03T00:00:00, lat=50.0, lon=0",
        ),
        // Columns.
        (
            format!("SELECT time, lat, lon, t FROM ({fine})"),
            APPEND,
            "the store has \"n\" over time, too",
        ),
        (
            format!("SELECT time, lat, t, n FROM ({fine})"),
            APPEND,
            "\"lon\" needs a column with its labels",
        ),
        (
            format!("SELECT *, 1 AS z FROM ({fine})"),
            APPEND,
            "no array for the column \"z\"; it has lat, lon, n, t, time",
        ),
        (format!("SELECT time, lat, lon FROM ({fine})"), APPEND, "no column is a variable"),
        // Options.
        (fine.clone(), "'mode' 'append', 'chunks' 'time=1'", "'chunks' is for new arrays"),
        (
            fine.clone(),
            "'mode' 'append', 'dimensions' 'time, n'",
            "'n', which is no dimension of the array",
        ),
        (fine.clone(), "'mode' 'other'", "the format zarr has create and append and overwrite"),
        (fine.clone(), "'dimensions' 'time'", "choose a 'mode'"),
    ];
    for (sql, options, message) in cases {
        let error = case.copy(&sql, "x.zarr", options).await.unwrap_err();
        assert!(error.contains(message), "{sql} {options}\n{error}");
        assert!(files(&case.at("x.zarr")) == before, "{sql} {options}");
    }
    let error = case.copy(&fine, "absent.zarr", APPEND).await.unwrap_err();
    assert!(error.contains("absent.zarr"), "{error}");

    // Nothing to append is no error.
    case.copy(&format!("SELECT * FROM ({fine}) WHERE n > 100"), "x.zarr", APPEND).await.unwrap();
    assert!(files(&case.at("x.zarr")) == before);
    case.copy(&fine, "x.zarr", APPEND).await.unwrap();
    assert_eq!(case.read("x.zarr", "count(*), sum(t), count(n)").await, [["18", "81.0", "18"]]);
}

/// Stores of xarray: packed numbers, times in hours, single precision, and attributes that stay as they are.
#[tokio::test]
async fn stores_of_xarray_become_longer() {
    let case = Case::new(reducing(2, 512)).await;
    let from = shipped("tests/data/foreign/climate_v3.zarr");
    let store = case.at("x.zarr");
    copied(Path::new(&from), &store);
    let read = format!(
        "SELECT time, lat, lon, t2m, sst FROM read_array('{}', 't2m,sst')",
        store.display()
    );
    let rows = |sql: &str| {
        let sql = sql.to_owned();
        let ctx = case.ctx.clone();
        async move { sorted_rows_from(&ctx, &sql).await }
    };
    let later =
        format!("SELECT time + INTERVAL '100 days' AS time, lat, lon, t2m, sst FROM ({read})");
    let error = case.copy(&later, "x.zarr", APPEND).await.unwrap_err();
    assert!(error.contains("the store has \"step\" over time, too"), "{error}");

    // Without the coordinates of times alone, it becomes longer.
    for other in ["step", "updated"] {
        fs::remove_dir_all(store.join(other)).unwrap();
        let path = store.join("zarr.json");
        let mut root: serde_json::Value =
            serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        root["consolidated_metadata"]["metadata"].as_object_mut().unwrap().remove(other).unwrap();
        fs::write(&path, serde_json::to_vec_pretty(&root).unwrap()).unwrap();
    }
    let before = rows(&read).await;
    let expected = rows(&format!("{read} UNION ALL {later}")).await;
    let root = fs::read_to_string(store.join("zarr.json")).unwrap();
    case.copy(&later, "x.zarr", APPEND).await.unwrap();
    let found = rows(&read).await;
    assert_eq!(found.len(), 2 * before.len());
    assert_eq!(found, expected);
    let lengths = |text: &str| {
        text.split_whitespace()
            .collect::<String>()
            .replace("[8,4,5]", "[4,4,5]")
            .replace("\"shape\":[8]", "\"shape\":[4]")
    };
    assert_eq!(lengths(&fs::read_to_string(store.join("zarr.json")).unwrap()), lengths(&root));
    for name in ["t2m", "sst", "time"] {
        let own: serde_json::Value =
            serde_json::from_slice(&fs::read(store.join(name).join("zarr.json")).unwrap()).unwrap();
        assert_eq!(own["shape"][0], 8, "{name}");
    }

    let finer = later.replace("'100 days'", "'200 days 30 minutes'");
    let error = case.copy(&finer, "x.zarr", APPEND).await.unwrap_err();
    assert!(error.contains("the array stores i64, units hours since 2024-01-01"), "{error}");
    let unpacked =
        later.replace("100 days", "200 days").replace("sst FROM", "sst + 0.001 AS sst FROM");
    let error = case.copy(&unpacked, "x.zarr", APPEND).await.unwrap_err();
    assert!(
        error.contains("of \"sst\" cannot be appended") && error.contains("scale_factor 0.01"),
        "{error}"
    );
    assert_eq!(rows(&read).await, found);
}

/// Metadata that is not all of one age, and codecs in which cells cannot be written.
#[tokio::test]
async fn stores_that_cannot_become_longer_are_left_alone() {
    let case = Case::new(reducing(2, 512)).await;
    let day = next("TIMESTAMP '2000-01-03'", "lat", "CAST(value AS REAL)", "CAST(value AS INT)");
    let cases = [
        ("\"name\": \"zstd\"", "\"name\": \"blosc\"", "", "writing cells in the codec"),
        ("\"checksum\": false", "\"checksum\": true", "", "writing cells in the codec"),
        ("\"endian\": \"little\"", "\"endian\": \"big\"", "", "writing cells in the codec"),
        (
            "[\n    2,",
            "[\n    3,",
            "t/zarr.json",
            "another program has written without consolidating",
        ),
    ];
    for (number, (from, to, object, message)) in cases.into_iter().enumerate() {
        let name = format!("{number}.zarr");
        case.copy(GRID, &name, "'dimensions' 'time, lat, lon', 'fill' 'n=-1'").await.unwrap();
        for (path, bytes) in files(&case.at(&name)) {
            if path.ends_with("zarr.json")
                && (object.is_empty() || Path::new(&path) == case.at(&name).join(object))
            {
                let text = String::from_utf8(bytes).unwrap();
                let changed = text.replace(from, to);
                assert!(changed != text || object.is_empty(), "{path}");
                fs::write(path, changed).unwrap();
            }
        }
        let before = files(&case.at(&name));
        let error = case.copy(&day, &name, APPEND).await.unwrap_err();
        assert!(error.contains(message), "{to}: {error}");
        assert!(files(&case.at(&name)) == before, "{to}");
    }
}

/// A store becomes longer without consolidated metadata, too, and has the same rows.
#[tokio::test]
async fn stores_without_consolidated_metadata_become_longer() {
    let case = Case::new(reducing(2, 512)).await;
    let day = next("TIMESTAMP '2000-01-03'", "lat", "CAST(value AS REAL)", "CAST(value AS INT)");
    for (name, is_consolidated) in [("with.zarr", true), ("without.zarr", false)] {
        case.copy(GRID, name, "'dimensions' 'time, lat, lon', 'fill' 'n=-1'").await.unwrap();
        let root = case.at(name).join("zarr.json");
        if !is_consolidated {
            let text = fs::read_to_string(&root).unwrap();
            let mut document: serde_json::Value = serde_json::from_str(&text).unwrap();
            document.as_object_mut().unwrap().remove("consolidated_metadata").unwrap();
            fs::write(&root, document.to_string()).unwrap();
        }
        let before = fs::read(&root).unwrap();
        case.copy(&day, name, APPEND).await.unwrap();
        assert_eq!(fs::read(&root).unwrap() == before, !is_consolidated);
        // The table of an insert has the new rows.
        let columns = "time, lat, lon, t, n";
        let rows = case.read(name, columns).await;
        assert!(!rows.is_empty());
        assert_eq!(rows, case.read("with.zarr", columns).await);
        let error = case.copy(&day, name, APPEND).await.unwrap_err();
        assert!(error.contains("all labels are there already"), "{error}");
    }
}

/// Values of another type that are only nearly those of the array.
#[tokio::test]
async fn values_are_the_same_in_both_types() {
    let case = Case::new(reducing(1, 64)).await;
    let store = case.at("x.zarr");
    case.copy("SELECT 0 AS x, CAST(0 AS INT) AS v", "x.zarr", "'dimensions' 'x', 'codec' 'none'")
        .await
        .unwrap();
    for path in ["zarr.json", "v/zarr.json"] {
        let text = fs::read_to_string(store.join(path)).unwrap();
        let mut document: serde_json::Value = serde_json::from_str(&text).unwrap();
        let at = if path == "zarr.json" {
            "/consolidated_metadata/metadata/v/attributes"
        } else {
            "/attributes"
        };
        document.pointer_mut(at).unwrap()["scale_factor"] = serde_json::json!(0.7);
        fs::write(store.join(path), document.to_string()).unwrap();
    }
    let error = case.copy("SELECT 1 AS x, 2 AS v", "x.zarr", APPEND).await.unwrap_err();
    assert!(
        error.contains("2 would read as 2.09") && error.contains("scale_factor 0.7"),
        "{error}"
    );
    case.copy(
        "SELECT 1 AS x, 7 AS v UNION ALL SELECT 2, CAST(0.7 AS DOUBLE) * 3",
        "x.zarr",
        APPEND,
    )
    .await
    .unwrap();
    assert_eq!(
        case.read("x.zarr", "x, v").await,
        [["0", "0.0"], ["1", "7.0"], ["2", "2.0999999999999996"]]
    );
}

/// Labels of the first dimension that are in no order, and times with a zone.
#[tokio::test]
async fn rows_find_labels_in_any_order() {
    let case = Case::new(reducing(1, 16)).await;
    let part = |times: &str, of_one: &str| {
        format!(
            "SELECT s, arrow_cast(CAST(h AS TIMESTAMP), 'Timestamp(Second, Some(\"+02:00\"))') AS time, n * 0.5 AS v \
             FROM (VALUES ('Voss', 1), ('Bergen', 2), ('Oslo', 3), ('Alta', 4)) t(s, n) CROSS JOIN (VALUES {times}) u(h) {of_one}"
        )
    };
    let options = "'dimensions' 's, time', 'chunks' 's=2,time=2'";
    let first = "('2024-01-01'), ('2024-01-02')";
    case.copy(&part(first, "WHERE s = 'Voss'"), "x.zarr", options).await.unwrap();
    case.copy(&part(first, "WHERE s IN ('Bergen', 'Oslo')"), "x.zarr", APPEND).await.unwrap();
    case.copy(&part(first, "WHERE s = 'Alta'"), "x.zarr", APPEND).await.unwrap();
    let stations = format!(
        "SELECT s FROM read_array('{}') WHERE time = TIMESTAMP '2023-12-31 22:00'",
        case.at("x.zarr").display()
    );
    assert_eq!(rows_from(&case.ctx, &stations).await, [["Voss"], ["Bergen"], ["Oslo"], ["Alta"]]);
    case.copy(&part("('2024-01-03'), ('2024-01-04'), ('2024-01-05')", ""), "x.zarr", APPEND)
        .await
        .unwrap();
    let found = format!(
        "SELECT s, min(time), max(time), count(v), sum(v) FROM read_array('{}') GROUP BY s",
        case.at("x.zarr").display()
    );
    let expected =
        [("Alta", "10.0"), ("Bergen", "5.0"), ("Oslo", "7.5"), ("Voss", "2.5")].map(|(s, sum)| {
            [s, "2023-12-31T22:00:00", "2024-01-04T22:00:00", "5", sum].map(str::to_owned).to_vec()
        });
    assert_eq!(sorted_rows_from(&case.ctx, &found).await, expected);
}
