//! Statements in DataFusion's command line, as a user writes them.

use std::path::Path;
use std::process::Command;

/// Runs statements in the folder of the examples' data. Returns what the program prints, and whether it succeeds.
fn run(statements: &[&str]) -> (String, bool) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data");
    let mut program = Command::new(env!("CARGO_BIN_EXE_gridfusion-datafusion-cli"));
    let done = program.args(statements).current_dir(folder).output().expect("the program starts");
    let printed = [done.stdout, done.stderr].map(|it| String::from_utf8(it).expect("text"));
    (printed.concat(), done.status.success())
}

fn printed(statements: &[&str]) -> String {
    let (printed, succeeded) = run(statements);
    assert!(succeeded, "{statements:?}: {printed}");
    printed
}

const TEMPERATURE: &str = "CREATE VIEW temperature AS SELECT * FROM 'stations.tet#temperature'";
const AIR: &str = "CREATE EXTERNAL TABLE air STORED AS ARRAY LOCATION 'air.nc'";
const ROWS: &str = "SET gridfusion.optimizer.enable_all = false";

/// The queries of the README's idea: a mean by label, a mean by month and latitude, and a join of two arrays.
const QUERIES: [&str; 3] = [
    "SELECT station, round(avg(value), 9) AS mean FROM temperature GROUP BY station ORDER BY station",
    "SELECT date_trunc('month', time) AS month, lat, round(avg(t2m), 6) AS mean FROM air \
     WHERE lat BETWEEN 30 AND 60 GROUP BY month, lat ORDER BY month, lat",
    "SELECT e.value AS elevation, round(max(t.value), 9) AS hottest FROM temperature t \
     JOIN 'stations.tet#elevation' e ON t.station = e.station GROUP BY elevation ORDER BY elevation",
];

#[test]
fn tables_are_reduced_and_joined() {
    for query in QUERIES {
        let reduced = printed(&[TEMPERATURE, AIR, query]);
        assert_eq!(reduced, printed(&[TEMPERATURE, AIR, ROWS, query]), "{query}");
        assert!(reduced.matches('\n').count() > 8, "{reduced}");
        let explain = format!("EXPLAIN {query}");
        assert!(printed(&[TEMPERATURE, AIR, &explain]).contains("GridReduceExec"), "{query}");
        assert!(
            !printed(&[TEMPERATURE, AIR, ROWS, &explain]).contains("GridReduceExec"),
            "{query}"
        );
    }
    // The answer of the book's first page, which the program gridfusion prints.
    let celsius = printed(&["SELECT lat, round(avg(t2m) - 273.15, 1) AS celsius FROM 'air.nc' \
                             WHERE lat BETWEEN 36 AND 60 GROUP BY lat ORDER BY lat"]);
    for row in ["| 36.0 | 17.1    |", "| 48.0 | 9.7     |", "| 60.0 | 1.2     |"] {
        assert!(celsius.contains(row), "{celsius}");
    }
}

#[test]
fn every_way_in_is_there() {
    for statement in [
        "SELECT count(*) FROM 'air.nc'",
        "SELECT count(*) FROM read_array('air.nc')",
        "SELECT count(*) FROM read_netcdf('air.nc')",
        "SELECT CAST(raw_bytes AS BIGINT) / 2 AS cells FROM array_info('air.nc') WHERE dataset = 't2m'",
    ] {
        assert!(
            printed(&[statement]).contains("| 8640 "),
            "{statement}: {}",
            printed(&[statement])
        );
    }
    for (format, location, rows) in
        [("ZARR", "sea.zarr", 5760), ("TILEDB", "ships", 2876), ("NETCDF", "air.nc", 8640)]
    {
        let create = format!("CREATE EXTERNAL TABLE t STORED AS {format} LOCATION '{location}'");
        let counted = printed(&[&create, "SELECT count(*) FROM t"]);
        assert!(counted.contains(&format!("| {rows} ")), "{format}: {counted}");
    }
    let set =
        printed(&["SET gridfusion.index_columns = true", "SELECT lat_idx FROM 'air.nc' LIMIT 1"]);
    assert!(set.contains("lat_idx"), "{set}");
    let export = std::env::temp_dir().join(format!("gridfusion-{}.parquet", std::process::id()));
    let path = export.display();
    let copy = format!("COPY (SELECT lat, t2m FROM 'air.nc') TO '{path}'");
    let back = printed(&[&copy, &format!("SELECT count(*) FROM '{path}'")]);
    std::fs::remove_file(&export).expect("the file is there");
    assert_eq!(back.matches("| 8640 ").count(), 2, "{back}");
}

#[test]
fn errors_name_the_file_and_what_to_do() {
    let (shown, succeeded) = run(&["SELECT * FROM 'none.nc'"]);
    assert!(!succeeded && shown.contains("none.nc"), "{shown}");
    let (shown, succeeded) = run(&["SELECT * FROM 'stations.tet'"]);
    assert!(
        !succeeded && shown.contains("stations.tet") && shown.contains("temperature"),
        "{shown}"
    );
}

/// Once it runs, a sentence of the page "Embed gridfusion" and one of the proposal to DataFusion can go.
#[test]
fn options_of_other_formats_are_refused_upstream() {
    let create = "CREATE EXTERNAL TABLE t STORED AS ARRAY LOCATION 'stations.tet' OPTIONS (dataset 'temperature')";
    let (shown, succeeded) = run(&[create]);
    assert!(!succeeded && shown.contains("Specify a format for TableOptions"), "{shown}");
}
