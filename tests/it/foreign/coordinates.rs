//! Coordinates as columns beside the variables that name them.

use datafusion::prelude::SessionContext;
use gridfusion::GridfusionSessionContextExt;

use crate::support::{query, reducing, rows_from, shipped};

fn data(name: &str) -> String {
    shipped(&format!("crates/cf/tests/data/hdf5/coordinates/{name}"))
}

/// A session that reads quoted paths.
fn session(partitions: usize, batch_size: usize) -> SessionContext {
    let ctx = reducing(partitions, batch_size);
    ctx.enable_gridfusion_urls();
    ctx
}

/// Returns the names of the columns of a table.
async fn columns(ctx: &SessionContext, table: &str) -> Vec<String> {
    let found = ctx.sql(&format!("SELECT * FROM {table}")).await.unwrap();
    found.schema().fields().iter().map(|field| field.name().clone()).collect()
}

async fn only(ctx: &SessionContext, sql: &str) -> String {
    let rows = rows_from(ctx, sql).await;
    assert_eq!((rows.len(), rows[0].len()), (1, 1), "{sql}: {rows:?}");
    rows[0][0].clone()
}

/// A variable has the coordinates that it names, and those of its group.
#[tokio::test]
async fn cheap_coordinates_are_columns() {
    let ctx = session(2, 5);
    let path = data("stations.nc");
    let all = ["time", "station", "value", "lat", "lon", "station_name", "height", "campaign"];
    assert_eq!(columns(&ctx, &format!("'{path}#temp'")).await, all);
    let wind = columns(&ctx, &format!("'{path}#wind'")).await;
    assert_eq!(wind, ["time", "station", "value", "reference", "lat", "campaign"]);
    // Coordinates, flags and measures are no data of the wide table, except flags that have the shape of data.
    let wide = columns(&ctx, &format!("'{path}'")).await;
    let data_variables = ["time", "station", "temp", "temp_flag", "wind"];
    assert_eq!(wide[..5], data_variables);
    assert_eq!(wide[5..], ["lat", "lon", "station_name", "height", "campaign", "reference"]);
    // A coordinate, and what describes a variable, has a table without them.
    for (name, expected) in [("lat", vec!["station", "value"]), ("area", vec!["station", "value"])]
    {
        assert_eq!(columns(&ctx, &format!("'{path}#{name}'")).await, expected);
    }
    let roles = format!(
        "SELECT dataset, role FROM array_info('{path}') WHERE dataset IN ('area', 'lat', 'temp_flag') ORDER BY dataset"
    );
    let roles = rows_from(&ctx, &roles).await.concat();
    assert_eq!(roles, ["area", "helper", "lat", "helper", "temp_flag", "data"]);
}

#[tokio::test]
async fn queries_use_coordinates() {
    let ctx = session(2, 5);
    let path = data("stations.nc");
    let one = |select: &str| format!("SELECT {select} FROM '{path}'");
    for (select, expected) in [
        ("sum(temp)", "66.0"),
        ("sum(temp) FILTER (WHERE lat > 60)", "48.0"),
        ("count(DISTINCT height)", "1"),
        ("max(height) + max(campaign)", "9.0"),
        ("count(reference)", "12"),
    ] {
        assert_eq!(only(&ctx, &one(select)).await, expected, "{select}");
    }
    let oslo = format!(
        "SELECT time, temp FROM '{path}' WHERE station_name = 'Oslo' AND reference > '2024-01-01' ORDER BY time"
    );
    let oslo = rows_from(&ctx, &oslo).await;
    assert_eq!(oslo, [["2024-01-01T12:00:00", "6.0"], ["2024-01-01T18:00:00", "9.0"]]);
    let groups = format!(
        "SELECT station_name, sum(wind), max(lat) FROM '{path}' GROUP BY station_name ORDER BY station_name"
    );
    let groups = rows_from(&ctx, &groups).await;
    assert_eq!(
        groups,
        [["Bergen", "44.0", "60.4"], ["Bodø", "52.0", "67.3"], ["Oslo", "36.0", "59.9"]]
    );
}

#[tokio::test]
async fn the_option_chooses_coordinates() {
    let ctx = session(1, 8192);
    let path = data("stations.nc");
    let table = |option: &str| format!("read_netcdf('{path}', 'temp', coordinates => {option})");
    for (option, expected) in [
        ("'cheap'", &["lat", "lon", "station_name", "height", "campaign"][..]),
        ("true", &["lat", "lon", "station_name", "height", "slope", "campaign"]),
        ("'True'", &["lat", "lon", "station_name", "height", "slope", "campaign"]),
        ("false", &[]),
        ("'FALSE'", &[]),
        ("'slope, area'", &["slope", "area"]),
    ] {
        assert_eq!(columns(&ctx, &table(option)).await[3..], *expected, "{option}");
    }
    let wrong = query(&ctx, &format!("SELECT * FROM {}", table("'lat,latt'"))).await;
    let wrong = wrong.unwrap_err().to_string();
    assert!(wrong.contains("no variable \"latt\"") && wrong.contains("stations.nc"), "{wrong}");
    rows_from(&ctx, "SET gridfusion.coordinates = false").await;
    assert_eq!(columns(&ctx, &format!("'{path}#temp'")).await.len(), 3);
}

/// Variables of nested groups find coordinates in the groups around them, also by paths.
#[cfg(feature = "hdf5")]
#[tokio::test]
async fn groups_inherit_coordinates() {
    let ctx = session(1, 8192);
    let path = data("nested.nc");
    for table in [
        format!("'{path}#upper/deep/temp'"),
        format!("read_netcdf('{path}', 'temp', \"group\" => 'upper/deep')"),
        format!("read_netcdf('{path}', 'deep/temp', \"group\" => 'upper')"),
    ] {
        let sql = format!("SELECT * FROM {table} ORDER BY level DESC, station LIMIT 2");
        let rows = rows_from(&ctx, &sql).await;
        let first = ["850", "10", "0.0", "59.9", "10.7", "85000.0", "2.0"];
        assert_eq!(rows, [first, ["850", "20", "1.0", "60.4", "5.3", "85000.0", "2.0"]], "{table}");
    }
    let wide = columns(&ctx, &format!("'{path}#upper/deep'")).await;
    assert_eq!(wide[2..], ["temp", "lat", "lon", "pressure", "height"]);
}

/// Values of coordinates are those of the file of a row. A coordinate that some files lack is no column.
#[tokio::test]
async fn coordinates_follow_files() {
    let ctx = session(2, 3);
    let [first, second, third] = [1, 2, 3].map(|number| data(&format!("year_{number}.nc")));
    let both = format!("read_netcdf(['{first}', '{second}'])");
    let named = columns(&ctx, &both).await;
    assert_eq!(named, ["time", "x", "t", "height", "issued", "place"]);
    let rows = format!(
        "SELECT time, max(t), max(height), min(issued), max(issued) FROM {both} GROUP BY time ORDER BY time"
    );
    let rows = rows_from(&ctx, &rows).await;
    let issued = ["2023-12-31T00:00:00", "2024-01-02T00:00:00"];
    assert_eq!(rows.len(), 4);
    for (row, issued) in rows.iter().zip([issued[0], issued[0], issued[1], issued[1]]) {
        assert_eq!(row[2..], ["2.0", issued, issued], "{rows:?}");
    }
    let all = format!("read_netcdf(['{first}', '{second}', '{third}'])");
    assert_eq!(columns(&ctx, &all).await, ["time", "x", "t", "issued", "place"]);
    assert_eq!(only(&ctx, &format!("SELECT count(DISTINCT issued) FROM {all}")).await, "3");
    // Asked for, it is an error; and NULL where files may lack variables.
    let asked = format!("SELECT * FROM read_netcdf(['{first}', '{third}'], coordinates => true)");
    let asked = query(&ctx, &asked).await.unwrap_err().to_string();
    assert!(asked.contains("height") && asked.contains("year_3.nc"), "{asked}");
    let united = format!(
        "SELECT time, max(height) FROM read_netcdf(['{first}', '{third}'], union_by_name => true) GROUP BY time ORDER BY time"
    );
    let united: Vec<String> =
        rows_from(&ctx, &united).await.into_iter().map(|row| row[1].clone()).collect();
    assert_eq!(united, ["2.0", "2.0", "NULL", "NULL"]);
    // A coordinate that gives the labels of a new dimension is this dimension.
    let stacked = format!("read_netcdf('{first}', stack => 'issued')");
    assert_eq!(columns(&ctx, &stacked).await, ["issued", "time", "x", "t", "height", "place"]);
}

/// Joins and aggregations that use no coordinate are planned as without.
#[tokio::test]
async fn coordinates_cost_nothing_unless_used() {
    let ctx = session(2, 8192);
    let path = data("stations.nc");
    let plan = |option: &str, query: &str| {
        let table = format!("read_netcdf('{path}', coordinates => {option})");
        let sql = format!("EXPLAIN FORMAT INDENT {}", query.replace("TABLE", &table));
        let ctx = ctx.clone();
        async move { rows_from(&ctx, &sql).await.pop().unwrap().pop().unwrap() }
    };
    for query in [
        "SELECT station, avg(temp) FROM TABLE GROUP BY station",
        "SELECT a.temp + b.wind AS total FROM TABLE a JOIN TABLE b USING (time, station)",
        "SELECT temp FROM TABLE WHERE time > '2024-01-01T06:00:00'",
    ] {
        assert_eq!(plan("'cheap'", query).await, plan("false", query).await, "{query}");
    }
}
