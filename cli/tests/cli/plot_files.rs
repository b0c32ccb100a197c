//! The files that `gridfusion plot` writes, and what it refuses before it writes one.

use std::fs;

use super::plot::{Folder, plot};
use crate::support::{STATIONS, run};

#[test]
fn a_png_has_the_size_that_was_asked_for() {
    let folder = Folder::new();
    let file = folder.file("map.png");
    let sql = "SELECT time, station, value FROM temperature";
    let outcome = plot(sql, &file, &["--width", "321", "--height", "234", "--timing"]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let printed = format!("{}: 321 × 234 pixels, 8640 values as a heat map\n", file.display());
    assert_eq!(outcome.stdout, printed);
    assert!(outcome.stderr.contains("; 8640 rows; chunks: 6 read, "), "{outcome:?}");
    let bytes = fs::read(&file).unwrap();
    assert_eq!(&bytes[..8], b"\x89PNG\r\n\x1a\n");
    assert_eq!(&bytes[12..16], b"IHDR");
    assert_eq!(bytes[16..24], [321_u32.to_be_bytes(), 234_u32.to_be_bytes()].concat());
    assert!(bytes.ends_with(b"IEND\xaeB`\x82"));
}

#[test]
fn what_cannot_be_plotted_is_explained_and_leaves_nothing() {
    let folder = Folder::new();
    let file = folder.file("a.svg");
    for (sql, more, reason) in [
        (
            "SELECT time, station FROM temperature",
            &[][..],
            "column \"station\" is text, and a value must be a number",
        ),
        ("SELECT 1 AS a, now() AS b", &[], "column \"b\" is times, and"),
        ("SELECT time FROM temperature", &[], "needs x and a value, and the query has 1 column"),
        ("SELECT time, value FROM temperature WHERE false", &[], "the query has no rows"),
        ("SELECT 1, CAST(NULL AS INT)", &[], "all values are NULL"),
        ("SELECT NULL AS a, NULL AS b", &[], "all values are NULL"),
        ("SELECT 1, [2]", &[], "cannot be plotted"),
        (
            "SELECT value AS a, -value AS b, value AS c FROM temperature",
            &[],
            "GROUP BY of the first two columns",
        ),
        (
            "SELECT 1, 2",
            &["--kind", "heatmap"],
            "a heat map needs three columns, x, y and a value, and the query has 2",
        ),
        (
            "SELECT value, -value FROM generate_series(1, 100001)",
            &[],
            "rows, and at most 100000 are plotted",
        ),
        (
            "SELECT a.time, b.value FROM temperature a, temperature b",
            &[],
            "rows, and at most 100000 are plotted",
        ),
        ("SELECT 1, 2; SELECT 3, 4", &[], "one query is needed"),
        ("DROP TABLE temperature", &[], "one query is needed"),
        ("SELECT a, b FROM tempreture", &[], "did you mean temperature?"),
        ("SELECT time, statoin FROM temperature", &[], "did you mean station?"),
    ] {
        let outcome = plot(sql, &file, more);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""), "{sql}: {outcome:?}");
        assert!(outcome.stderr.starts_with("Error: "), "{sql}: {outcome:?}");
        assert!(outcome.stderr.contains(reason), "{sql}: {outcome:?}");
        assert_eq!(folder.files(), Vec::<String>::new(), "{sql}");
    }
    let many: Vec<String> = (0..21).map(|at| format!("value AS v{at}")).collect();
    let sql = format!("SELECT station, {} FROM elevation", many.join(", "));
    assert!(plot(&sql, &file, &[]).stderr.contains("21 lines cannot be told apart"));
}

#[test]
fn a_scan_that_is_too_large_is_refused_before_it_is_read() {
    let folder = Folder::new();
    let sql = "SELECT a.time, b.value FROM temperature a, temperature b";
    let outcome = plot(sql, &folder.file("a.png"), &["--timing"]);
    assert_eq!(outcome.code, Some(1));
    assert!(
        outcome.stderr.contains("74649600 rows, and at most 1000000 are plotted"),
        "{outcome:?}"
    );
}

#[test]
fn files_that_cannot_be_written_are_refused() {
    let folder = Folder::new();
    let sql = "SELECT station, value FROM elevation";
    for (file, reason) in [("nowhere/a.png", "No such file"), ("folder.svg", "Is a directory")] {
        fs::create_dir_all(folder.file("folder.svg")).unwrap();
        let outcome = plot(sql, &folder.file(file), &[]);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""), "{outcome:?}");
        let message = format!("{file}: cannot write the file: {reason}");
        assert!(outcome.stderr.contains(&message), "{outcome:?}");
    }
    for file in ["a.jpg", "a", ""] {
        let outcome = run(&["plot", sql, STATIONS, "-o", file]);
        assert_eq!(outcome.code, Some(2), "{outcome:?}");
    }
    for args in [
        &["plot", sql][..],
        &["plot", "-o", "a.png"],
        &["plot", sql, "-o", "a.png", "--width", "9"],
    ] {
        assert_eq!(run(args).code, Some(2), "{args:?}");
    }
}

#[test]
fn a_failed_plot_keeps_the_picture_of_before() {
    let folder = Folder::new();
    let file = folder.file("a.svg");
    assert_eq!(plot("SELECT station, value FROM elevation", &file, &[]).code, Some(0));
    let before = fs::read(&file).unwrap();
    assert_eq!(plot("SELECT station, value FROM nope", &file, &[]).code, Some(1));
    assert_eq!(fs::read(&file).unwrap(), before);
    assert_eq!(plot("SELECT station, -value FROM elevation", &file, &[]).code, Some(0));
    assert_ne!(fs::read(&file).unwrap(), before);
    assert_eq!(folder.files(), ["a.svg"]);
}
