//! Appends to stores with arrays that have a part of the rows' dimensions, such as bounds of times.

use std::fs;

use serde_json::{Value, json};

use super::append::files;
use super::zarr::Case;
use crate::support::{reducing, rows_from};

/// Rows of days, each with two bounds.
fn days(from: u32, to: u32, bounds: &str) -> String {
    format!(
        "SELECT arrow_cast(day, 'Int32') AS day, arrow_cast(site, 'Int32') AS site, CAST(day * 10 + site AS REAL) AS t{bounds} FROM unnest(range({from}, {to})) AS a(day), unnest(range(0, 3)) AS b(site)"
    )
}

const BOUNDS: &str = ", make_array(day, day + 1) AS bounds";

/// Adds an array of 64-bit integers to the store `x.zarr`, whose chunks have `chunk` values along the first dimension.
fn add_array(
    case: &Case,
    name: &str,
    shape: &[u64],
    dimensions: &[&str],
    chunk: u64,
    has_fill: bool,
) {
    let store = case.at("x.zarr");
    let read = |path: &str| -> Value {
        serde_json::from_slice(&fs::read(store.join(path)).unwrap()).unwrap()
    };
    let (mut root, mut array) = (read("zarr.json"), read("t/zarr.json"));
    let mut chunk_shape = shape.to_vec();
    chunk_shape[0] = chunk;
    array["data_type"] = json!("int64");
    array["fill_value"] = json!(-1);
    array["attributes"] = if has_fill { json!({"missing_value": -1}) } else { json!({}) };
    array["shape"] = json!(shape);
    array["dimension_names"] = json!(dimensions);
    array["chunk_grid"]["configuration"]["chunk_shape"] = json!(chunk_shape);
    array["codecs"] = json!([{"name": "bytes", "configuration": {"endian": "little"}}]);
    let rest: u64 = shape[1..].iter().product();
    for number in 0..shape[0].div_ceil(chunk) {
        // Behind the end are cells that no reader sees.
        let cell = |at: u64| (number * chunk + at / rest) as i64 + (at % rest) as i64;
        let cells = (0..chunk * rest).flat_map(|at| cell(at).to_le_bytes());
        let path = store.join(format!("{name}/c/{number}{}", "/0".repeat(shape.len() - 1)));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, cells.collect::<Vec<_>>()).unwrap();
    }
    fs::write(store.join(name).join("zarr.json"), array.to_string()).unwrap();
    root["consolidated_metadata"]["metadata"][name] = array;
    fs::write(store.join("zarr.json"), root.to_string()).unwrap();
}

/// Returns the values of an array, in order.
async fn values(case: &Case, name: &str, order: &str) -> Vec<String> {
    let sql = format!(
        "SELECT value FROM read_array('{}', dataset => '{name}') ORDER BY {order}",
        case.at("x.zarr").display()
    );
    rows_from(&case.ctx, &sql).await.into_iter().map(|row| row.join(" ")).collect()
}

/// Chunks that end with the array, before it, and behind it; rows in any order; one dimension, and two.
#[tokio::test]
async fn bounds_become_longer_with_their_dimension() {
    for partitions in [1, 4] {
        for chunk in 1..=6 {
            let case = Case::new(reducing(partitions, 16)).await;
            case.copy(
                &days(0, 4, ""),
                "x.zarr",
                "'dimensions' 'day,site', 'chunks' 'day=1,site=2'",
            )
            .await
            .unwrap();
            add_array(&case, "bounds", &[4, 2], &["day", "bnds"], chunk, false);
            for (from, to) in [(4, 5), (5, 9)] {
                let rows = format!("{} ORDER BY t DESC", days(from, to, BOUNDS));
                case.copy(&rows, "x.zarr", "'mode' 'append'").await.unwrap();
            }
            let expected: Vec<String> =
                (0..9).flat_map(|day| [day, day + 1]).map(|it| it.to_string()).collect();
            assert_eq!(values(&case, "bounds", "day, bnds").await, expected, "{chunk}");
            let t = (0..9).flat_map(|day| (0..3).map(move |site| format!("{}.0", day * 10 + site)));
            assert_eq!(values(&case, "t", "day, site").await, t.collect::<Vec<_>>());
        }
        // A series, whose bounds have more dimensions than itself.
        let case = Case::new(reducing(partitions, 16)).await;
        let series = |from: u32, to: u32, bounds: &str| {
            format!("SELECT value AS day, value * 2 AS t{bounds} FROM range({from}, {to})")
        };
        case.copy(&series(0, 3, ""), "x.zarr", "'dimensions' 'day'").await.unwrap();
        add_array(&case, "bounds", &[3, 2], &["day", "bnds"], 2, false);
        let rows = series(3, 5, ", make_array(value, value + 1) AS bounds");
        case.copy(&rows, "x.zarr", "'mode' 'append'").await.unwrap();
        let expected = ["0", "1", "1", "2", "2", "3", "3", "4", "4", "5"];
        assert_eq!(values(&case, "bounds", "day, bnds").await, expected);
    }
}

#[tokio::test]
async fn bounds_may_be_corrected_and_have_no_value() {
    let case = Case::new(reducing(2, 16)).await;
    case.copy(&days(0, 4, ""), "x.zarr", "'dimensions' 'day,site'").await.unwrap();
    add_array(&case, "bounds", &[4, 2], &["day", "bnds"], 3, true);
    let missing = days(4, 5, ", CAST(NULL AS BIGINT[]) AS bounds");
    case.copy(&missing, "x.zarr", "'mode' 'append'").await.unwrap();
    let half = days(5, 6, ", make_array(CAST(NULL AS BIGINT), 6) AS bounds");
    case.copy(&half, "x.zarr", "'mode' 'append'").await.unwrap();
    let expected = ["0", "1", "1", "2", "2", "3", "3", "4", "NULL", "NULL", "NULL", "6"];
    assert_eq!(values(&case, "bounds", "day, bnds").await, expected);
    // Days that are there may come again with the same bounds.
    let same = "'mode' 'append', 'existing' 'same'";
    case.copy(&days(2, 4, BOUNDS), "x.zarr", same).await.unwrap();
    let other = days(3, 5, ", make_array(day, day + 2) AS bounds");
    let error = case.copy(&other, "x.zarr", same).await.unwrap_err();
    let expected = "the value of day=3, number 2 of its list, of \"bounds\" is 4 in the array, and 5 in the rows";
    assert!(error.contains(expected), "{error}");
    case.copy(&other, "x.zarr", "'mode' 'append', 'existing' 'overwrite'").await.unwrap();
    let expected = ["0", "1", "1", "2", "2", "3", "3", "5", "4", "6", "NULL", "6"];
    assert_eq!(values(&case, "bounds", "day, bnds").await, expected);
}

#[tokio::test]
async fn rows_without_the_bounds_of_their_labels_change_nothing() {
    let case = Case::new(reducing(2, 16)).await;
    case.copy(&days(0, 4, ""), "x.zarr", "'dimensions' 'day,site'").await.unwrap();
    add_array(&case, "bounds", &[4, 2], &["day", "bnds"], 2, false);
    let before = files(&case.at("x.zarr"));
    for (rows, message) in [
        (
            days(4, 5, ""),
            "select a list of 2 values, one for each bnds, as in make_array(…) AS \"bounds\"",
        ),
        (
            days(4, 5, ", day AS bounds"),
            "the array has 2 values for each row; select a list of them",
        ),
        (
            days(4, 5, ", make_array(day, day, day) AS bounds"),
            "the list \"bounds\" of day=4 has 3 values, and the array 2",
        ),
        (
            days(4, 5, ", make_array(day, day + site) AS bounds"),
            "rows of day=4 have [4, 4] and [4, 5] for \"bounds\", of which the array has one value there",
        ),
        (
            days(4, 5, ", make_array(day, CAST(NULL AS BIGINT)) AS bounds"),
            "the value of day=4, number 2 of its list, of \"bounds\" cannot be appended: it is NULL",
        ),
        (
            days(4, 5, ", make_array(day + 0.5, day + 1) AS bounds"),
            "of \"bounds\" cannot be appended: 4.5 would read as",
        ),
        (days(4, 5, ", make_array('a', 'b') AS bounds"), "the column \"bounds\" is of type Utf8"),
        (
            days(4, 5, BOUNDS).replace("CAST(day * 10 + site AS REAL)", "make_array(1.5)"),
            "the column \"t\" is of type List",
        ),
    ] {
        let error = case.copy(&rows, "x.zarr", "'mode' 'append'").await.unwrap_err();
        assert!(error.contains(message), "{error}");
        assert!(files(&case.at("x.zarr")) == before, "{message}");
    }
    // Rows of sites and days have no column for depths.
    add_array(&case, "soil", &[4, 2, 2], &["day", "depth", "side"], 4, false);
    let before = files(&case.at("x.zarr"));
    let error = case.copy(&days(4, 5, BOUNDS), "x.zarr", "'mode' 'append'").await.unwrap_err();
    let expected = "because \"soil\" has the dimensions day, depth, side, and rows have day, site; the option 'others' may be 'null'";
    assert!(error.contains(expected), "{error}");
    let others = "'mode' 'append', 'others' 'null'";
    for (rows, options, message) in [
        (days(4, 5, BOUNDS), others, "a new cell of \"soil\" cannot be appended: it is NULL"),
        (
            days(4, 5, ""),
            "'dimensions' 'day,site', 'others' 'null'",
            "'others' needs mode 'append'",
        ),
        (days(4, 5, ""), "'mode' 'append', 'others' 'all'", "expected 'refuse' or 'null'"),
    ] {
        let error = case.copy(&rows, "x.zarr", options).await.unwrap_err();
        assert!(error.contains(message), "{error}");
    }
    assert!(files(&case.at("x.zarr")) == before);
    let mut metadata: Value =
        serde_json::from_slice(&fs::read(case.at("x.zarr/zarr.json")).unwrap()).unwrap();
    metadata["consolidated_metadata"]["metadata"].as_object_mut().unwrap().remove("soil");
    fs::write(case.at("x.zarr/zarr.json"), metadata.to_string()).unwrap();
    fs::remove_dir_all(case.at("x.zarr/soil")).unwrap();
    for (name, dimensions, message) in [
        ("covariance", ["day", "day"], "\"covariance\" has this dimension twice"),
        ("inner/t", ["day", "side"], "\"inner/t\" of a group has a dimension of this name"),
    ] {
        add_array(&case, name, &[4, 4], &dimensions, 4, true);
        let before = files(&case.at("x.zarr"));
        let error = case.copy(&days(4, 5, BOUNDS), "x.zarr", others).await.unwrap_err();
        assert!(error.contains(message), "{error}");
        assert!(files(&case.at("x.zarr")) == before);
        fs::remove_dir_all(case.at("x.zarr").join(name)).unwrap();
        let root = case.at("x.zarr/zarr.json");
        let mut metadata: Value = serde_json::from_slice(&fs::read(&root).unwrap()).unwrap();
        let all = &mut metadata["consolidated_metadata"]["metadata"];
        all.as_object_mut().unwrap().remove(name);
        fs::write(&root, metadata.to_string()).unwrap();
    }
}

/// Arrays of another grid get NULL, whatever lies behind their end, and then their own rows.
#[tokio::test]
async fn arrays_of_other_grids_get_null_and_then_their_rows() {
    for chunk in 1..=6 {
        for is_consolidated in [true, false] {
            let case = Case::new(reducing(2, 16)).await;
            case.copy(&days(0, 4, ""), "x.zarr", "'dimensions' 'day,site'").await.unwrap();
            add_array(&case, "depth", &[3], &["depth"], 3, false);
            add_array(&case, "soil", &[4, 3], &["day", "depth"], chunk, true);
            if !is_consolidated {
                let root = case.at("x.zarr/zarr.json");
                let read = fs::read(&root).unwrap();
                let mut metadata: Value = serde_json::from_slice(&read).unwrap();
                metadata.as_object_mut().unwrap().remove("consolidated_metadata");
                fs::write(root, metadata.to_string()).unwrap();
            }
            for (from, to) in [(4, 5), (5, 8)] {
                let others = "'mode' 'append', 'others' 'null'";
                case.copy(&days(from, to, ""), "x.zarr", others).await.unwrap();
            }
            let there = (0..4).flat_map(|day| [day, day + 1, day + 2]).map(|it| it.to_string());
            let mut expected: Vec<String> = there.collect();
            expected.extend((0..12).map(|_| "NULL".to_owned()));
            assert_eq!(values(&case, "soil", "day, depth").await, expected, "{chunk}");
            let t = (0..8).flat_map(|day| (0..3).map(move |site| format!("{}.0", day * 10 + site)));
            assert_eq!(values(&case, "t", "day, site").await, t.collect::<Vec<_>>());
            let rows = "SELECT arrow_cast(day, 'Int32') AS day, depth, day * 5 AS soil FROM unnest(range(4, 8)) AS a(day), unnest([1, 2]) AS b(depth)";
            let overwrite = "'mode' 'append', 'existing' 'overwrite'";
            case.copy(rows, "x.zarr", overwrite).await.unwrap();
            for day in 4..8 {
                let row = (3 * day + 1)..(3 * day + 3);
                expected[row].fill((day * 5).to_string());
            }
            assert_eq!(values(&case, "soil", "day, depth").await, expected, "{chunk}");
        }
    }
}
