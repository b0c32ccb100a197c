//! Arrays that are legal and rare: `tests/data/tiledb/odd.py` describes them.

use std::sync::Arc;

use gridfusion::verify::Depth;
use gridfusion::{ArrayOpener, ArrayOptions, GridfusionSessionContextExt};

use crate::support::{query, reducing, rows_from};

const ODD: &str = "tests/data/tiledb/odd";

/// TileDB stores the extent of a dimension without one as a number of the dimension's type, which wraps around.
#[tokio::test]
async fn an_extent_of_more_than_half_of_the_type() {
    let ctx = reducing(2, 8192);
    for name in ["extent_i8", "extent_i64", "extent_ns"] {
        let table = format!("read_tiledb('{ODD}/{name}')");
        let rows = rows_from(&ctx, &format!("SELECT count(*), sum(a) FROM {table}")).await;
        assert_eq!(rows, [["3", "60"]], "{name}");
        let least = rows_from(&ctx, &format!("SELECT a FROM {table} ORDER BY x")).await;
        assert_eq!(least, [["10"], ["20"], ["30"]], "{name}");
        let facts = format!(
            "SELECT value FROM tiledb_info('{ODD}/{name}') WHERE name = 'x' AND property = 'tile extent'"
        );
        let extent = &rows_from(&ctx, &facts).await[0][0];
        assert!(!extent.starts_with('-'), "{name}: {extent}");
    }
}

/// A domain of 2⁶³ cells has 10¹⁵ tiles. Plans list only those that a condition or a limit leaves.
#[tokio::test]
async fn boxes_and_limits_of_the_widest_domain() {
    let ctx = reducing(2, 8192);
    let options = ArrayOptions::default().with_option("full_domain", true);
    ctx.register_array("t", format!("{ODD}/widest"), options).await.unwrap();
    for (condition, expected) in [
        ("x BETWEEN 90 AND 102", "13 3"),
        ("x BETWEEN 90 AND 102 AND x NOT BETWEEN 90 AND 101", "1 2"),
        ("x >= 100 AND x < 105", "5 10"),
        ("101 < x AND 104 >= x AND a >= 0", "3 9"),
        ("x IN (101, 104, 9999999)", "3 5"),
        ("x = 101 OR x = 103 OR x = -5", "2 4"),
        ("NOT x > 100", "101 0"),
        ("NOT (x > 102 OR x < 100)", "3 3"),
        ("x < 103 AND x <> 100 AND x NOT IN (101, 102)", "100 0"),
        ("x > 9223372036854765800", "6 0"),
        ("CAST(x AS DOUBLE) < 3.5", "4 0"),
        ("x < 104.5 AND x > 100.5", "4 10"),
        ("x < 0", "0 0"),
    ] {
        let sql = format!(
            "SELECT count(*) || ' ' || coalesce(sum(CASE WHEN a >= 0 THEN a END), 0) FROM t WHERE {condition}"
        );
        assert_eq!(rows_from(&ctx, &sql).await, [[expected]], "{condition}");
    }
    let first = rows_from(&ctx, "SELECT x FROM t LIMIT 3").await;
    assert_eq!(first, [["0"], ["1"], ["2"]]);
    let later = rows_from(&ctx, "SELECT x, a FROM t WHERE x >= 104 LIMIT 1").await;
    assert_eq!(later, [["104", "4"]]);
    assert_eq!(
        rows_from(&ctx, "SELECT x FROM t WHERE x > 7 LIMIT 1 OFFSET 99990").await,
        [["99998"]]
    );
    for all in ["SELECT sum(a) FROM t", "SELECT * FROM t WHERE a > 2 LIMIT 3"] {
        let error = query(&ctx, all).await.unwrap_err().to_string();
        assert!(error.contains("reads 922337203685477 chunks"), "{error}");
        assert!(error.contains("\"x\" BETWEEN"), "{error}");
    }
    // The index counts from 0 too, beside labels that do not.
    let indices =
        ArrayOptions::default().with_option("full_domain", true).with_option("index_columns", true);
    ctx.register_array("i", format!("{ODD}/widest"), indices).await.unwrap();
    let rows = rows_from(&ctx, "SELECT x, a FROM i WHERE x_idx = 102 AND x > 5").await;
    assert_eq!(rows, [["102", "2"]]);
}

/// Several dimensions of up to 2⁶⁴ coordinates have more than 2⁶⁴ cells. Boxes and limits of them are answered all the same.
#[tokio::test]
async fn boxes_and_limits_of_several_wide_dimensions() {
    let ctx = reducing(2, 8192);
    for name in ["widest_i8", "widest_u8", "widest_ns"] {
        let options = ArrayOptions::default().with_option("full_domain", true);
        ctx.register_array(name, format!("{ODD}/{name}"), options).await.unwrap();
    }
    let written = "count(*) || ' ' || coalesce(sum(CASE WHEN a >= 0 THEN a END), 0)";
    // The written boxes hold 0, 1, … in row-major order, from the corner that the script names.
    for (table, condition, expected) in [
        (
            "widest_i8",
            "x BETWEEN -3 AND -1 AND y BETWEEN 4611686018427387904 AND 4611686018427387905",
            "6 15",
        ),
        (
            "widest_i8",
            "x BETWEEN -10 AND 0 AND y BETWEEN 4611686018427387900 AND 4611686018427387910",
            "121 15",
        ),
        ("widest_i8", "x = -2 AND y = 4611686018427387905 AND a >= 0", "1 3"),
        ("widest_i8", "x = 4611686018427387904 AND y < 6 AND y > 4", "1 0"),
        ("widest_i8", "x IN (-3, 4611686018427387904) AND y IN (4611686018427387904, 5)", "4 0"),
        ("widest_i8", "x < -4611686018427387900 AND y > 9223372036854774800", "24 0"),
        ("widest_i8", "x < -9 AND y < 3 AND x > 7", "0 0"),
        (
            "widest_u8",
            "x = 8 AND y >= 9223372036854775808 AND y <= 9223372036854775809 AND z >= 18446744073709550611 AND z < 18446744073709550614",
            "6 51",
        ),
        (
            "widest_u8",
            "x <= 9 AND y BETWEEN 9223372036854775807 AND 9223372036854775810 AND z > 18446744073709550610",
            "160 66",
        ),
        ("widest_u8", "x = 0 AND y = 0 AND z = 0", "1 0"),
        (
            "widest_ns",
            "x BETWEEN TIMESTAMP '1999-12-31T23:59:59.999999998' AND TIMESTAMP '2000-01-01' AND y <= TIMESTAMP '1970-01-01T00:00:00.000000001' AND y >= TIMESTAMP '1970-01-01'",
            "6 6",
        ),
    ] {
        let sql = format!("SELECT {written} FROM {table} WHERE {condition}");
        assert_eq!(rows_from(&ctx, &sql).await, [[expected]], "{table}: {condition}");
        let sql = format!(
            "SELECT count(a) FROM (SELECT * FROM {table} WHERE {condition} ORDER BY x DESC)"
        );
        let counted = rows_from(&ctx, &sql).await;
        let sql = format!(
            "SELECT sum(n) FROM (SELECT x, count(a) AS n FROM {table} WHERE {condition} GROUP BY x)"
        );
        let of_groups = rows_from(&ctx, &sql).await;
        assert!(
            counted == of_groups || counted == [["0"]],
            "{table}: {condition}: {counted:?} {of_groups:?}"
        );
    }
    let first = rows_from(&ctx, "SELECT x, y, z FROM widest_u8 LIMIT 2").await;
    assert_eq!(first, [["0", "0", "0"], ["0", "0", "1"]]);
    let later = rows_from(&ctx, "SELECT x, y FROM widest_i8 WHERE y >= 7 LIMIT 1 OFFSET 3").await;
    assert_eq!(later, [["-4611686018427387904", "10"]]);
    let least =
        rows_from(&ctx, "SELECT CAST(x AS BIGINT), CAST(y AS BIGINT) FROM widest_ns LIMIT 1").await;
    assert_eq!(least, [["-8520336000000000000", "-8520336000000000000"]]);
    // Chunks of one number modulo 2⁶⁴ are different chunks.
    let joined = rows_from(
        &ctx,
        "SELECT sum(p.a) FROM widest_i8 p JOIN widest_i8 q ON p.x = q.x AND p.y = q.y
         WHERE p.x BETWEEN -3 AND -1 AND q.x BETWEEN -3 AND -1
           AND p.y BETWEEN 4611686018427387904 AND 4611686018427387905 AND q.y BETWEEN 4611686018427387904 AND 4611686018427387905",
    )
    .await;
    assert_eq!(joined, [["15"]]);
    for (all, name) in [
        ("SELECT sum(a) FROM widest_i8", "y"),
        ("SELECT sum(a) FROM widest_i8 WHERE y = 4", "x"),
        ("SELECT sum(a) FROM widest_u8 WHERE y = 4 AND x = 3", "z"),
        ("SELECT * FROM widest_ns WHERE a > 2 LIMIT 3", "x"),
        ("SELECT x, count(*) FROM widest_u8 GROUP BY x", "x"),
    ] {
        let error = query(&ctx, all).await.unwrap_err().to_string();
        assert!(error.contains("chunks of \"widest_"), "{all}: {error}");
        assert!(error.contains(&format!("\"{name}\" BETWEEN")), "{all}: {error}");
    }
    // Without the option, the table is the box around the fragments, which may be as large.
    let plain = format!("read_tiledb('{ODD}/widest_i8')");
    let sql = format!(
        "SELECT {written} FROM {plain} WHERE x < 0 AND y BETWEEN 4611686018427387900 AND 4611686018427387905"
    );
    assert_eq!(rows_from(&ctx, &sql).await, [["18 15"]]);
    for (name, expected) in
        [("widest_u8", "12 66"), ("widest_ns", "4 6"), ("widest_sparse", "5 10")]
    {
        let sql = format!("SELECT {written} FROM read_tiledb('{ODD}/{name}')");
        assert_eq!(rows_from(&ctx, &sql).await, [[expected]], "{name}");
    }
}

/// Cells of sparse arrays are found in domains of any size.
#[tokio::test]
async fn cells_of_a_wide_sparse_domain() {
    let ctx = reducing(2, 8192);
    for options in ["", ", full_domain => true"] {
        let table = format!("read_tiledb('{ODD}/widest_sparse'{options})");
        for (condition, expected) in [
            ("x < 0", "2 1"),
            ("y > 9223372036854775807", "2 2"),
            ("x = 9223372036854774806 AND y = 1", "1 4"),
            ("x BETWEEN -4611686018427387904 AND 0 AND y <= 3", "1 1"),
        ] {
            let sql = format!("SELECT count(*) || ' ' || sum(a) FROM {table} WHERE {condition}");
            assert_eq!(rows_from(&ctx, &sql).await, [[expected]], "{condition}");
        }
        assert_eq!(rows_from(&ctx, &format!("SELECT x FROM {table} LIMIT 2")).await.len(), 2);
    }
}

/// An enumeration that cannot be shown is an error of its own column, and NaN in one is NULL.
#[tokio::test]
async fn a_bad_enumeration_blocks_no_other_attribute() {
    let ctx = reducing(2, 8192);
    let location = format!("{ODD}/enumerations");
    let table = format!("read_tiledb('{location}')");
    let good = format!("SELECT sum(v), count(f), max(f), count(*) FROM {table}");
    assert_eq!(rows_from(&ctx, &good).await, [["6.0", "2", "0.5", "4"]]);
    for bad in
        [format!("SELECT b FROM {table}"), format!("SELECT b, count(*) FROM {table} GROUP BY b")]
    {
        let error = query(&ctx, &bad).await.unwrap_err().to_string();
        assert!(error.contains("attribute \"b\": enumeration \"bytes\""), "{error}");
        assert!(error.contains("text_as_binary"), "{error}");
    }
    let bytes = format!("read_tiledb('{location}', text_as_binary => true)");
    let rows =
        rows_from(&ctx, &format!("SELECT encode(b, 'hex'), f FROM {bytes} ORDER BY i")).await;
    assert_eq!(rows, [["61", "0.5"], ["61", "NULL"], ["fffe", "0.5"], ["61", "NULL"]]);
    let nan = format!("SELECT count(f) FROM read_tiledb('{location}', nan_as_null => false)");
    assert_eq!(rows_from(&ctx, &nan).await, [["4"]]);
    let opener = ArrayOpener::from_session(&ctx.state());
    let group = opener.group(&location, None, &ArrayOptions::default()).await.unwrap();
    let reports = group.verify(Depth::Structure, &Arc::default()).await;
    assert_eq!(reports[0].1.check("table").unwrap().warnings(), 1);
}

/// Groups of TileDB before 2.8 have a mark, and no list of members: the arrays in their folders are the members.
#[tokio::test]
async fn a_group_without_a_list_of_members() {
    let ctx = reducing(2, 8192);
    for name in ["first", "inner/second"] {
        let sql = format!("SELECT sum(a) FROM read_tiledb('{ODD}/old_group', '{name}')");
        assert_eq!(rows_from(&ctx, &sql).await, [["60"]], "{name}");
    }
    let opener = ArrayOpener::from_session(&ctx.state());
    let options = ArrayOptions::default();
    let group = opener.group(&format!("{ODD}/old_group"), None, &options).await.unwrap();
    assert_eq!(group.names(), ["first", "inner/second"]);
    let empty = tempfile::tempdir().unwrap();
    std::fs::write(empty.path().join("__tiledb_group.tdb"), b"").unwrap();
    let sql = format!("SELECT * FROM read_tiledb('{}')", empty.path().display());
    let error = query(&ctx, &sql).await.unwrap_err().to_string();
    assert!(error.contains("a TileDB group without arrays"), "{error}");
}
