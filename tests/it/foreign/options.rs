//! The options of formats with groups of variables.

use datafusion::prelude::SessionContext;

use crate::support::{query, reducing, rows_from, shipped};

fn data(name: &str) -> String {
    shipped(&format!("tests/data/foreign/{name}"))
}

async fn error(ctx: &SessionContext, sql: &str) -> String {
    query(ctx, sql).await.unwrap_err().to_string()
}

#[tokio::test]
async fn a_group_has_its_own_names() {
    let ctx = reducing(1, 8192);
    let store = data("groups_v3.zarr");
    let sql = |group: &str, dataset: &str| {
        format!(
            "SELECT * FROM read_zarr('{store}', dataset => '{dataset}', \"group\" => '{group}')"
        )
    };
    let whole = format!("SELECT * FROM read_zarr('{store}', dataset => 'forecast/temperature')");
    let expected = rows_from(&ctx, &whole).await;
    assert!(!expected.is_empty());
    for group in ["forecast", "/forecast/"] {
        assert_eq!(rows_from(&ctx, &sql(group, "temperature")).await, expected, "{group}");
    }
    let found = error(&ctx, &sql("forecasts", "temperature")).await;
    assert!(
        found.contains("no group \"forecasts\"; there is \"") && found.contains("\"forecast\""),
        "{found}"
    );
    let found = error(&ctx, &sql("forecast", "wind")).await;
    assert!(found.contains("no variable \"wind\"") && found.contains("\"temperature\""), "{found}");
}

#[tokio::test]
async fn times_may_stay_numbers() {
    let ctx = reducing(1, 8192);
    let sql = |decode: bool| {
        let file = data("climate_nc4.nc");
        format!(
            "SELECT arrow_typeof(value) FROM read_netcdf('{file}', dataset => 'time', decode_times => {decode}) LIMIT 1"
        )
    };
    assert!(rows_from(&ctx, &sql(true)).await[0][0].starts_with("Timestamp"));
    assert!(!rows_from(&ctx, &sql(false)).await[0][0].starts_with("Timestamp"));
}

#[tokio::test]
async fn values_outside_the_valid_range_may_be_null() {
    let ctx = reducing(1, 8192);
    let file = data("attributes_nc4.nc");
    for (variable, all, valid) in [("several_missing", "4", "2"), ("goes", "5", "4")] {
        for (option, expected) in [(false, all), (true, valid)] {
            let sql = format!(
                "SELECT count(value), count(*) FROM read_netcdf('{file}', dataset => '{variable}', valid_range => {option})"
            );
            assert_eq!(rows_from(&ctx, &sql).await, [[expected, "6"]], "{variable} {option}");
        }
    }
}

#[tokio::test]
async fn axes_without_names_get_names_and_labels() {
    let ctx = reducing(1, 8192);
    let file = data("plain.h5");
    let sql = |names: &str| {
        format!(
            "SELECT half, min(x), max(x), count(*) FROM read_netcdf('{file}', dataset => 'sparse', dimension_names => '{names}') GROUP BY half ORDER BY half"
        )
    };
    // `half` is a dataset of one axis of this length, so it labels the axis.
    let found = rows_from(&ctx, &sql("half, x")).await;
    let labels = format!(
        "SELECT DISTINCT value::DOUBLE FROM read_netcdf('{file}', dataset => 'half') ORDER BY 1"
    );
    let labels: Vec<String> =
        rows_from(&ctx, &labels).await.into_iter().map(|row| row[0].clone()).collect();
    assert_eq!(found.iter().map(|row| row[0].clone()).collect::<Vec<_>>(), labels);
    assert!(found.iter().all(|row| row[1..3] == ["0", "5"]), "{found:?}");
    let wrong = error(&ctx, &sql("half")).await;
    assert!(wrong.contains("half"), "{wrong}");
}

/// Returns the named columns of the rows of a table and of its coordinates, by joins and by the option.
async fn joined_and_beside(
    ctx: &SessionContext,
    path: &str,
    coordinates: &[(&str, &str)],
    end: &str,
) -> [Vec<Vec<String>>; 2] {
    let joins: String = coordinates
        .iter()
        .map(|(name, keys)| {
            let one = format!("read_array('{path}', '{name}') AS {name}");
            match *keys {
                "" => format!(" CROSS JOIN {one}"),
                keys => {
                    let on = keys.split(", ").map(|key| format!("t.{key} = {name}.{key}"));
                    format!(" JOIN {one} ON {}", on.collect::<Vec<_>>().join(" AND "))
                }
            }
        })
        .collect();
    let names: Vec<&str> = coordinates.iter().map(|(name, _)| *name).collect();
    let values: Vec<String> = names.iter().map(|name| format!("{name}.value AS {name}")).collect();
    let joined = format!(
        "SELECT * FROM (SELECT t.time, t.y, t.x, t.value AS t, {} FROM read_array('{path}', 't') AS t{joins}) {end}",
        values.join(", ")
    );
    let beside = format!(
        "SELECT * FROM (SELECT time, y, x, value AS t, {} FROM read_array('{path}', 't', coordinates => true)) {end}",
        names.join(", ")
    );
    [rows_from(ctx, &joined).await, rows_from(ctx, &beside).await]
}

/// Coordinates of fewer dimensions, in another order or of text are the columns that joins would give.
#[tokio::test]
async fn coordinates_are_columns() {
    let ctx = reducing(2, 7);
    let all = [("lat", "y, x"), ("lon", "y, x"), ("run", "time"), ("height", ""), ("name", "y")];
    let files = [("curvilinear_cdf1.nc", 4), ("curvilinear_v3.zarr", 5), ("curvilinear_nc4.nc", 4)];
    for (file, count) in files {
        if file == "curvilinear_nc4.nc" && !cfg!(feature = "hdf5") {
            continue;
        }
        let path = data(file);
        for end in [
            "ORDER BY time, y, x",
            "WHERE time BETWEEN 1 AND 3 AND x > 2 AND lat > -20 ORDER BY time, y, x",
            "WHERE t = 77",
            "WHERE lat IS NULL AND run > 10 ORDER BY time",
        ] {
            let [joined, beside] = joined_and_beside(&ctx, &path, &all[..count], end).await;
            assert!(!joined.is_empty(), "{file} {end}");
            assert_eq!(joined, beside, "{file} {end}");
        }
        let sql = format!(
            "SELECT y, count(lat), round(sum(lon), 2), max(run) FROM read_array('{path}', coordinates => true) GROUP BY y ORDER BY y"
        );
        let cells = "SELECT y, count(value) * 5, round(sum(value) * 5, 2), 40";
        let lon = format!("{cells} FROM read_array('{path}', 'lon') GROUP BY y ORDER BY y");
        let (found, lon) = (rows_from(&ctx, &sql).await, rows_from(&ctx, &lon).await);
        let column = |rows: &[Vec<String>], at: usize| -> Vec<String> {
            rows.iter().map(|row| row[at].clone()).collect()
        };
        for at in [0, 2, 3] {
            assert_eq!(column(&found, at), column(&lon, at), "{file}");
        }
        assert_eq!(column(&found, 1), ["30", "25", "30", "30"], "{file}");
    }
    // A single value that names coordinates stays a table of its own.
    let scalar = format!(
        "SELECT * FROM read_array('{}', 'forecast/run', coordinates => true)",
        data("groups_v3.zarr")
    );
    assert_eq!(rows_from(&ctx, &scalar).await, [["5"]]);
    // By default, only those of one dimension at most are columns; `SET` adds all.
    let path = data("curvilinear_v3.zarr");
    let width = |sql: String| {
        let ctx = ctx.clone();
        async move { ctx.sql(&sql).await.unwrap().schema().fields().len() }
    };
    assert_eq!(width(format!("SELECT * FROM read_array('{path}')")).await, 7);
    rows_from(&ctx, "SET gridfusion.coordinates = true").await;
    assert_eq!(width(format!("SELECT * FROM read_array('{path}')")).await, 9);
}
