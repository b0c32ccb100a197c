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
