//! Groups of one file that a pattern makes one table: the rows of each group, with its label.

use std::fs;
use std::path::Path;

use gridfusion::GridfusionSessionContextExt;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::json;

use crate::codec::sent::{bytes, plan, received};
use crate::support::{query, reducing, rows_from, rows_of, sorted_rows_from};

/// Writes an array of version 3 of Zarr. Some chunks are missing; others have random small integers, some of which are fill.
fn write(rng: &mut StdRng, path: &Path, dims: &[&str], shape: &[u64], kind: &str, fill: i32) {
    let chunk: Vec<u64> = shape.iter().map(|len| rng.random_range(1..=*len)).collect();
    let metadata = json!({
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": kind,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
        "fill_value": fill, "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "attributes": {"_FillValue": fill, "units": "K"}, "dimension_names": dims,
    });
    fs::create_dir_all(path).unwrap();
    fs::write(path.join("zarr.json"), metadata.to_string()).unwrap();
    let counts: Vec<u64> = shape.iter().zip(&chunk).map(|(len, by)| len.div_ceil(*by)).collect();
    for number in 0..counts.iter().product() {
        let mut rest = number;
        let mut key: Vec<String> = vec![];
        for count in counts.iter().rev() {
            key.insert(0, (rest % count).to_string());
            rest /= count;
        }
        if rng.random_bool(0.2) {
            continue;
        }
        let cells = (0..chunk.iter().product()).map(|_| rng.random_range(0..9_i32));
        let cells: Vec<u8> = match kind {
            "int32" => cells.flat_map(i32::to_le_bytes).collect(),
            _ => cells.flat_map(|cell| f64::from(cell).to_le_bytes()).collect(),
        };
        fs::write(path.join(format!("c.{}", key.join("."))), cells).unwrap();
    }
}

/// Writes whole numbers as labels.
fn write_labels(path: &Path, dim: &str, labels: &[i32]) {
    let metadata = json!({
        "zarr_format": 3, "node_type": "array", "shape": [labels.len()], "data_type": "int32",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [labels.len()]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
        "fill_value": 0, "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "attributes": {}, "dimension_names": [dim],
    });
    fs::create_dir_all(path).unwrap();
    fs::write(path.join("zarr.json"), metadata.to_string()).unwrap();
    fs::write(path.join("c.0"), labels.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<_>>())
        .unwrap();
}

fn write_group(path: &Path) {
    fs::create_dir_all(path).unwrap();
    let group = json!({"zarr_format": 3, "node_type": "group", "attributes": {}});
    fs::write(path.join("zarr.json"), group.to_string()).unwrap();
}

/// Writes groups `swaths/1`, `swaths/2`, … with variables `a` and `b` over `y` and `x`. Their fill values, chunks and the types of
/// `b` differ, and so do the lengths of `y` if `differ`. `x` has labels, which the first group has for all.
fn write_store(
    rng: &mut StdRng,
    store: &Path,
    names: &[&str],
    differ: bool,
    times: Option<&[i32]>,
) {
    write_group(store);
    write_group(&store.join("swaths"));
    // A group without arrays has no rows.
    write_group(&store.join("swaths/0empty"));
    for (at, name) in names.iter().enumerate() {
        let group = store.join("swaths").join(name);
        write_group(&group);
        let (mut dims, mut shape) = (vec!["y", "x"], vec![3, 2]);
        if differ {
            shape[0] = rng.random_range(1..6);
        }
        if let Some(times) = times {
            dims.insert(0, "time");
            shape.insert(0, times.len() as u64);
            write_labels(&group.join("time"), "time", times);
        }
        write_labels(&group.join("x"), "x", &[7, 5]);
        if differ {
            write_labels(&group.join("width"), "x", &[2, 1]);
        }
        write(rng, &group.join("a"), &dims, &shape, "int32", at as i32);
        let kind = if rng.random_bool(0.5) { "int32" } else { "float64" };
        write(rng, &group.join("b"), &dims, &shape, kind, 4);
    }
}

#[tokio::test]
async fn groups_are_the_rows_of_each() {
    let mut rng = StdRng::seed_from_u64(41);
    for round in 0..12 {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("x.zarr");
        let names = &["1", "2", "10", "11"][..rng.random_range(1..=4)];
        let times = [3, 4, 9];
        let times = rng.random_bool(0.5).then_some(&times[..]);
        write_store(&mut rng, &store, names, false, times);
        let store = store.to_str().unwrap();
        let dims = if times.is_some() { "time, y, x" } else { "y, x" };
        let one = |name: &&str| {
            format!(
                "SELECT {name} AS swath, {dims}, arrow_cast(a, 'Float64') + 0 AS a, arrow_cast(b, 'Float64') + 0 AS b FROM read_zarr('{store}', 'a, b', group => 'swaths/{name}')"
            )
        };
        let each: Vec<String> = names.iter().map(one).collect();
        let ctx = reducing(rng.random_range(1..4), rng.random_range(1..20));
        query(&ctx, &format!("CREATE VIEW e AS {}", each.join(" UNION ALL "))).await.unwrap();
        let all = format!("read_zarr('{store}', group => 'swaths/{{swath}}')");
        for rest in [
            "",
            "WHERE swath = 2",
            "WHERE swath > 1 AND x = 5",
            "WHERE a > 3 OR b IS NULL",
            "WHERE swath = 99",
        ] {
            let columns =
                format!("swath, {dims}, arrow_cast(a, 'Float64'), arrow_cast(b, 'Float64')");
            assert_eq!(
                sorted_rows_from(&ctx, &format!("SELECT {columns} FROM {all} {rest}")).await,
                sorted_rows_from(&ctx, &format!("SELECT {columns} FROM e {rest}")).await,
                "{round}: {rest}"
            );
            for keys in ["swath", "x, y", "swath % 2"] {
                let sql = |table: &str| {
                    format!(
                        "SELECT {keys}, arrow_cast(sum(a), 'Float64'), count(b), max(b)::DOUBLE FROM {table} {rest} GROUP BY {keys}"
                    )
                };
                let (found, expected) = (sql(&all), sql("e"));
                assert_eq!(
                    sorted_rows_from(&ctx, &found).await,
                    sorted_rows_from(&ctx, &expected).await,
                    "{round}: {found}"
                );
            }
        }
        // The plan is a reduction, and travels.
        let sql = format!("SELECT swath, count(b) AS n FROM {all} GROUP BY swath ORDER BY swath");
        let planned = plan(&ctx, &sql).await.unwrap();
        let shown = datafusion::physical_plan::displayable(planned.as_ref()).indent(false);
        assert!(shown.to_string().contains("GridReduceExec"), "{shown}");
        let other = reducing(2, 100);
        let there = received(&bytes(&planned).unwrap(), &other).unwrap();
        let rows = datafusion::physical_plan::collect(there, other.task_ctx()).await.unwrap();
        assert_eq!(rows_of(&rows), rows_from(&ctx, &sql).await);
    }
}

#[tokio::test]
async fn names_and_labels_follow_the_pattern() {
    let mut rng = StdRng::seed_from_u64(42);
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("x.zarr");
    write_store(&mut rng, &store, &["20240101", "20240103"], false, None);
    let store = store.to_str().unwrap();
    let ctx = reducing(2, 100);
    for (from, column, labels) in [
        (
            format!("read_zarr('{store}', group => 'swaths/*')"),
            "\"group\"",
            ["swaths/20240101", "swaths/20240103"],
        ),
        (
            format!("read_zarr('{store}', group => '/swaths/*/')"),
            "\"group\"",
            ["swaths/20240101", "swaths/20240103"],
        ),
        (
            format!("read_zarr('{store}', group => '**')"),
            "\"group\"",
            ["swaths/20240101", "swaths/20240103"],
        ),
        (
            format!("read_zarr('{store}', 'a', group => 'swaths/{{day:%Y%m%d}}')"),
            "day",
            ["2024-01-01T00:00:00", "2024-01-03T00:00:00"],
        ),
        (
            format!("read_zarr('{store}', group => 'swaths/{{n}}', index_columns => true)"),
            "n",
            ["20240101", "20240103"],
        ),
    ] {
        if from.contains("**") {
            // The group of groups matches, too, and has no variable of its own.
            let error =
                query(&ctx, &format!("SELECT * FROM {from}")).await.unwrap_err().to_string();
            assert!(error.contains("x.zarr#swaths"), "{error}");
            continue;
        }
        let sql = format!("SELECT DISTINCT {column} FROM {from} ORDER BY 1");
        let rows: Vec<String> = rows_from(&ctx, &sql).await.concat();
        assert_eq!(rows, labels, "{sql}");
    }
    let one = format!(
        "SELECT n, n_idx, y_idx, x, value FROM read_zarr('{store}', 'a', group => 'swaths/{{n}}', index_columns => true) LIMIT 1"
    );
    assert_eq!(rows_from(&ctx, &one).await[0][..4], ["20240101", "0", "0", "7"]);
    ctx.enable_gridfusion_urls();
    let quoted = format!("SELECT count(*) FROM '{store}#swaths/{{n}}' WHERE n = 20240103");
    assert_eq!(rows_from(&ctx, &quoted).await, [["6"]]);
}

#[tokio::test]
async fn groups_may_differ_as_files_do() {
    let mut rng = StdRng::seed_from_u64(43);
    let folder = tempfile::tempdir().unwrap();
    let ctx = reducing(2, 100);
    // Lengths without labels differ: shorter groups end in rows of NULL.
    for round in 0..20 {
        let store = folder.path().join(format!("{round}.zarr"));
        write_store(&mut rng, &store, &["0", "1", "2"], true, None);
        let store = store.to_str().unwrap();
        let each = (0..3).map(|name| {
            format!("SELECT {name} AS level, y, x, arrow_cast(a, 'Float64') AS a FROM read_zarr('{store}', 'a, b', group => 'swaths/{name}')")
        });
        let each = each.collect::<Vec<_>>().join(" UNION ALL ");
        let found = format!(
            "SELECT level, y, x, arrow_cast(a, 'Float64') AS a FROM read_zarr('{store}', 'a, b', group => 'swaths/{{level}}') WHERE a IS NOT NULL"
        );
        let expected = format!("SELECT * FROM ({each}) WHERE a IS NOT NULL");
        assert_eq!(
            sorted_rows_from(&ctx, &found).await,
            sorted_rows_from(&ctx, &expected).await,
            "{round}"
        );
        // Values that repeat along a dimension repeat along all of a longer one.
        let repeated = format!(
            "SELECT DISTINCT level, x, width FROM read_zarr('{store}', group => 'swaths/{{level}}', union_by_name => true)"
        );
        let rows = sorted_rows_from(&ctx, &repeated).await;
        let expected = (0..3).flat_map(|level| [[level, 5, 1], [level, 7, 2]]);
        let expected: Vec<Vec<String>> =
            expected.map(|row| row.map(|it| it.to_string()).to_vec()).collect();
        assert_eq!(rows, expected, "{round}");
    }
    // A variable that some lack.
    let store = folder.path().join("0.zarr");
    fs::remove_dir_all(store.join("swaths/1/b")).unwrap();
    let store = store.to_str().unwrap();
    let from = format!("read_zarr('{store}', group => 'swaths/{{level}}', dataset => 'a, b'");
    let error = query(&ctx, &format!("SELECT * FROM {from})")).await.unwrap_err().to_string();
    assert!(error.contains("0.zarr#swaths/1: no variable \"b\"; there is \"a\""), "{error}");
    let sql = format!(
        "SELECT level, count(a) > 0, count(b) > 0 FROM {from}, union_by_name => true) GROUP BY level ORDER BY level"
    );
    let rows = rows_from(&ctx, &sql).await;
    assert_eq!(rows[1], ["1", "true", "false"], "{rows:?}");
    for (options, expected) in [
        (
            "group => 'swaths/x*'",
            "no group matches \"swaths/x*\"; there is \"swaths\", \"swaths/0\"",
        ),
        ("group => 'swaths/{x'", "option 'group' is 'swaths/{x', without a '}'"),
        ("group => 'swaths/{y}', dataset => 'a'", "has the dimension \"y\""),
        ("group => 'none'", "no group \"none\"; there is \"swaths\""),
    ] {
        let sql = format!("SELECT * FROM read_zarr('{store}', {options})");
        let error = query(&ctx, &sql).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{options}: {error}");
    }
}

/// A group of arrays that cannot be read is not a group without arrays.
#[tokio::test]
async fn groups_that_cannot_be_read_are_not_left_out() {
    let mut rng = StdRng::seed_from_u64(45);
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("x.zarr");
    write_store(&mut rng, &store, &["0", "1"], false, None);
    for name in ["a", "b"] {
        let path = store.join("swaths/1").join(name).join("zarr.json");
        let text = fs::read_to_string(&path).unwrap();
        fs::write(path, text.replace("int32", "int31").replace("float64", "float65")).unwrap();
    }
    fs::remove_dir_all(store.join("swaths/1/x")).unwrap();
    let ctx = reducing(2, 100);
    for options in ["", ", union_by_name => true"] {
        let sql = format!(
            "SELECT * FROM read_zarr('{}', group => 'swaths/{{swath}}'{options})",
            store.display()
        );
        let error = query(&ctx, &sql).await.unwrap_err().to_string();
        assert!(
            error.contains("x.zarr#swaths/1: there is no data variable that can be read"),
            "{error}"
        );
    }
}

/// Each file has the groups, and files follow one another in time.
#[tokio::test]
async fn groups_of_many_files() {
    let mut rng = StdRng::seed_from_u64(44);
    let folder = tempfile::tempdir().unwrap();
    let ctx = reducing(2, 100);
    let mut each = vec![];
    for (at, times) in [[1, 2], [5, 8]].iter().enumerate() {
        let store = folder.path().join(format!("{at}.zarr"));
        write_store(&mut rng, &store, &["left", "right"], false, Some(times));
        for name in ["left", "right"] {
            each.push(format!("SELECT '{name}' AS swath, time, y, x, arrow_cast(a, 'Float64') AS a FROM read_zarr('{}', group => 'swaths/{name}')", store.display()));
        }
    }
    let all = format!(
        "SELECT swath, time, y, x, arrow_cast(a, 'Float64') AS a FROM read_zarr('{}/*.zarr', group => 'swaths/{{swath}}')",
        folder.path().display()
    );
    assert_eq!(
        sorted_rows_from(&ctx, &all).await,
        sorted_rows_from(&ctx, &each.join(" UNION ALL ")).await
    );
}
