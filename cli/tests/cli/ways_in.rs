//! Quoted paths, directories, table functions and settings on the command line.

use std::fs;
use std::path::Path;

use crate::support::{NOT_TET, STATIONS, package, run, tiledb};

/// Runs SQL that must succeed. Returns its results as CSV, and the text on standard error.
fn csv(paths: &[&str], sql: &str) -> (String, String) {
    let outcome = run(&[paths, &["--format", "csv", "-q", "-c", sql]].concat());
    assert_eq!(outcome.code, Some(0), "{sql}: {}", outcome.stderr);
    (outcome.stdout, outcome.stderr)
}

fn failure(paths: &[&str], sql: &str) -> String {
    let outcome = run(&[paths, &["-q", "-c", sql]].concat());
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""), "{sql}");
    outcome.stderr
}

/// Makes a directory `climate` with a `.tet` file, a broken one, a CSV file and a package.
fn climate(folder: &Path) -> String {
    let root = folder.join("climate");
    fs::create_dir(&root).unwrap();
    fs::copy(STATIONS, root.join("stations.tet")).unwrap();
    fs::copy(NOT_TET, root.join("broken.tet")).unwrap();
    fs::write(root.join("notes.csv"), "a,b\n1,2\n").unwrap();
    package(&root, "demo.tet.d");
    root.to_str().unwrap().to_owned()
}

#[test]
fn a_table_of_a_directory_is_guessed() {
    let folder = tempfile::tempdir().unwrap();
    let message = failure(&[&climate(folder.path())], "SELECT * FROM stations.elevation");
    assert!(message.contains("did you mean climate.stations.elevation?"), "{message}");
}

#[test]
fn quoted_paths_are_tables_beside_those_of_datafusion() {
    let folder = tempfile::tempdir().unwrap();
    let climate = climate(folder.path());
    let overlap = tiledb("overlap");
    for (name, rows) in [
        (format!("{climate}/stations.tet#elevation"), 6),
        (format!("file://{climate}/stations.tet#elevation"), 6),
        (format!("{climate}/demo.tet.d#elevation"), 6),
        (format!("{climate}/notes.csv"), 1),
        (overlap, 42),
    ] {
        let (found, warnings) = csv(&[], &format!("SELECT count(*) AS n FROM '{name}'"));
        assert_eq!((found, warnings.as_str()), (format!("n\n{rows}\n"), ""), "{name}");
    }
    let parquet = folder.path().join("out.parquet");
    let sql = format!(
        "COPY (SELECT * FROM '{climate}/stations.tet#elevation') TO '{0}';
         SELECT count(*) AS n FROM '{0}'",
        parquet.display()
    );
    assert!(csv(&[], &sql).0.ends_with("n\n6\n"));
    for (name, expected) in [
        ("nowhere.tet", "nowhere.tet: cannot open the file"),
        (&format!("{climate}/stations.tet#t"), "no dataset \"t\"; the file has"),
        ("nowhere.csv", "'nowhere.csv' not found; there is no such file"),
    ] {
        let message = failure(&[], &format!("SELECT * FROM '{name}'"));
        assert!(message.contains(expected), "{name}: {message}");
    }
}

#[test]
fn a_directory_is_a_catalog_and_names_what_is_broken() {
    let folder = tempfile::tempdir().unwrap();
    let climate = climate(folder.path());
    let sql = "SELECT count(*) AS n FROM climate.stations.elevation JOIN climate.demo.elevation USING (station)";
    for path in [climate.clone(), format!("{climate}/"), format!("file://{climate}")] {
        assert_eq!(csv(&[&path], sql), ("n\n6\n".into(), String::new()), "{path}");
    }
    // A file beside the directory keeps its bare names.
    assert_eq!(csv(&[STATIONS, &climate], "SELECT count(*) AS n FROM elevation").0, "n\n6\n");

    let listed = "SELECT DISTINCT table_schema AS s FROM information_schema.tables
        WHERE table_catalog = 'climate' AND table_schema <> 'information_schema' ORDER BY s";
    let outcome = run(&[&climate, "--format", "csv", "-c", listed]);
    assert!(outcome.stdout.starts_with("s\ndemo\nstations\n"), "{outcome:?}");
    assert!(
        outcome.stderr.contains("warning: left out of the list of tables: ")
            && outcome.stderr.contains("broken.tet: corrupt superblock"),
        "{outcome:?}"
    );
    let message = failure(&[&climate], "SELECT * FROM climate.broken.t");
    assert!(message.contains("broken.tet: corrupt superblock"), "{message}");

    let info = run(&["info", &climate]);
    assert_eq!(info.code, Some(1));
    assert!(info.stdout.contains("1 file that cannot be opened"), "{info:?}");
    assert!(info.stdout.contains("broken.tet: corrupt superblock"), "{info:?}");
}

#[test]
fn functions_and_settings_take_the_same_names() {
    let sql = format!(
        "SELECT max(time_idx) AS n FROM read_tet('{STATIONS}', 'temperature', index_columns => true)"
    );
    assert_eq!(csv(&[], &sql).0, "n\n1439\n");
    let sql = format!(
        "SET gridfusion.index_columns = true; SELECT max(time_idx) AS n FROM read_tet('{STATIONS}', 'temperature')"
    );
    assert_eq!(csv(&[], &sql).0, "n\n1439\n");
    let message = failure(&[], "SET gridfusion.index_colums = true");
    assert!(message.contains("did you mean 'gridfusion.index_columns'?"), "{message}");
}
