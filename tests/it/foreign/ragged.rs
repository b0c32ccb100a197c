//! Ragged arrays in SQL: conditions on instances skip chunks, and answers are those of the rows.

use datafusion::prelude::SessionContext;
use gridfusion::GridfusionSessionContextExt;

use crate::support::{reducing, rows_from, shipped};

/// A session that reads quoted paths.
fn session(partitions: usize, batch_size: usize) -> SessionContext {
    let ctx = reducing(partitions, batch_size);
    ctx.enable_gridfusion_urls();
    ctx
}

fn file(name: &str) -> String {
    shipped(&format!("crates/cf/tests/data/hdf5/ragged/{name}"))
}

#[tokio::test]
async fn conditions_on_instances_skip_chunks() {
    let ctx = session(1, 8192);
    let table = file("contiguous.nc");
    // Chunks of 4 samples; Oslo has samples 0 to 4, Bergen 5 to 16, Ås 17 and Tromsø the rest. So the bounds of chunk 4 are
    // Bergen and Ås.
    for (condition, chunks, rows) in [
        ("station_name = 'Oslo'", "3/6", "5"),
        ("station_name = 'Bergen'", "4/6", "12"),
        ("station_name = 'nobody'", "1/6", "0"),
        ("station_name = 'Zürich'", "1/6", "0"),
        ("station_name = 'A'", "0/6", "0"),
        ("station = 4", "2/6", "6"),
        ("lat > 69", "2/6", "6"),
        // Two chunks hold NULL alone, which has no bounds.
        ("since = '2020-01-02'", "4/6", "5"),
        ("station_name = 'Ås' AND temperature > 0", "1/6", "1"),
    ] {
        let sql = format!("SELECT count(*), count(temperature) FROM '{table}' WHERE {condition}");
        assert_eq!(rows_from(&ctx, &sql).await, [[rows, rows]], "{condition}");
        let sql = format!("EXPLAIN SELECT obs, temperature FROM '{table}' WHERE {condition}");
        let plan = rows_from(&ctx, &sql).await.concat().concat();
        assert!(plan.contains(&format!("chunks={chunks}")), "{condition}: {plan}");
    }
}

#[tokio::test]
async fn groups_of_instances_are_those_of_rows() {
    for partitions in [1, 3] {
        let ctx = session(partitions, 5);
        let sql = format!(
            "SELECT station_name, count(*), min(obs), max(temperature) FROM '{}' GROUP BY station_name ORDER BY station_name",
            file("contiguous.nc")
        );
        let expected = [
            ["Bergen", "12", "5", "5.0"],
            ["Oslo", "5", "0", "-1.0"],
            ["Tromsø", "6", "18", "8.5"],
            ["Ås", "1", "17", "5.5"],
        ];
        assert_eq!(rows_from(&ctx, &sql).await, expected);
    }
}

#[tokio::test]
async fn files_are_one_table_and_conditions_skip_chunks_of_each() {
    let ctx = session(2, 8192);
    let table = file("floats_*.nc");
    let sql = |condition: &str| {
        format!("SELECT min(obs), max(obs), sum(depth) FROM '{table}' WHERE {condition}")
    };
    assert_eq!(rows_from(&ctx, &sql("true")).await, [["0", "12", "97.0"]]);
    assert_eq!(rows_from(&ctx, &sql("wmo = '2901'")).await, [["6", "9", "28.0"]]);
    let plan = format!("EXPLAIN SELECT depth FROM '{table}' WHERE wmo = '2901'");
    let plan = rows_from(&ctx, &plan).await.concat().concat();
    assert!(plan.contains("chunks=3/7"), "{plan}");
    let padded = file("padded_*.nc");
    let sql = format!(
        "SELECT count(*), count(\"TEMP\"), sum(\"PRES\") FROM read_netcdf('{padded}', concat_dimension => 'N_PROF')"
    );
    assert_eq!(rows_from(&ctx, &sql).await, [["25", "21", "3414.0"]]);
}

#[tokio::test]
async fn numbers_of_instances_count_within_each_file() {
    let ctx = session(2, 8192);
    let table = file("floats_*.nc");
    let sql = format!("SELECT profile, count(*) FROM '{table}' GROUP BY profile ORDER BY profile");
    assert_eq!(rows_from(&ctx, &sql).await, [["0", "4"], ["1", "6"], ["3", "3"]]);
    let sql = format!(
        "SELECT profile, count(*) FROM read_netcdf('{table}', file_column => true) GROUP BY _file, profile ORDER BY _file, profile"
    );
    let expected = [["0", "3"], ["1", "2"], ["0", "1"], ["1", "4"], ["3", "3"]];
    assert_eq!(rows_from(&ctx, &sql).await, expected);
}

#[tokio::test]
async fn samples_are_a_table_without_their_instances() {
    let ctx = session(1, 8192);
    // The counts of this file do not add up.
    let sql = format!("SELECT * FROM read_netcdf('{}', coordinates => false)", file("sum.nc"));
    let expected = [["0", "0.0"], ["1", "1.0"], ["2", "2.0"], ["3", "3.0"], ["4", "4.0"]];
    assert_eq!(rows_from(&ctx, &sql).await, expected);
    // Indices are data then.
    let sql = format!(
        "SELECT obs, station_index, value_of FROM read_netcdf('{}', coordinates => false)",
        file("beyond.nc")
    );
    let expected = [["0", "0", "0.0"], ["1", "1", "1.0"], ["2", "2", "2.0"]];
    assert_eq!(rows_from(&ctx, &sql).await, expected);
}
