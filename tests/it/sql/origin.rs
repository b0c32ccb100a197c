//! The origin of a table (locations, format and options), from which another process can open it.

use datafusion::prelude::SessionContext;
use gridfusion::{
    ArrayOpener, ArrayOptions, GridTable, GridfusionSessionContextExt, Locations, TableOrigin,
};

use crate::support::{reducing, shipped, sorted_rows_from};

const STATIONS: &str = "examples/data/stations.tet";
const KEY: &str = "0123456789abcdef0123456789ABCDEF";

async fn origin_of(ctx: &SessionContext, name: &str) -> TableOrigin {
    let table = ctx.table_provider(name).await.unwrap();
    table.downcast_ref::<GridTable>().unwrap().origin().expect(name).clone()
}

/// Opens the table `name` again from its origin, in another session, and compares all rows.
async fn opens_again(ctx: &SessionContext, name: &str) {
    let origin = origin_of(ctx, name).await;
    let other = reducing(2, 8192);
    let opener = ArrayOpener::from_session(&other.state());
    let format = origin.format.as_deref();
    let again = opener.table(origin.locations.clone(), format, &origin.options).await.unwrap();
    assert_eq!(again.origin(), Some(&origin), "{name}");
    let again = again.into_provider();
    assert_eq!(again.schema(), ctx.table_provider(name).await.unwrap().schema(), "{name}");
    other.register_table("again", again).unwrap();
    let expected = sorted_rows_from(ctx, &format!("SELECT * FROM {name}")).await;
    assert!(!expected.is_empty(), "{name}");
    assert_eq!(sorted_rows_from(&other, "SELECT * FROM again").await, expected, "{name}");
}

#[tokio::test]
async fn tables_of_schemas_and_catalogs_open_again() {
    let ctx = reducing(2, 8192);
    let options = ArrayOptions::default().with_index_columns(true);
    ctx.register_array_schema("stations", &shipped(STATIONS), options).await.unwrap();
    let elevation = origin_of(&ctx, "stations.elevation").await;
    assert_eq!(elevation.locations, Locations::from(shipped(STATIONS)));
    assert_eq!(elevation.format.as_deref(), Some("tet"));
    let option = |name| elevation.options.get(name).map(ToString::to_string);
    assert_eq!(option("dataset").as_deref(), Some("elevation"));
    assert_eq!(option("index_columns").as_deref(), Some("true"));
    for name in ["elevation", "precipitation", "time"] {
        opens_again(&ctx, &format!("stations.{name}")).await;
    }
    for (schema, location) in [("weather", "weather"), ("overlap", "overlap")] {
        let location = shipped(&format!("tests/data/tiledb/{location}"));
        let options = ArrayOptions::default().with_nan_as_null(false);
        ctx.register_array_schema(schema, &location, options).await.unwrap();
        for table in ctx.catalog("datafusion").unwrap().schema(schema).unwrap().table_names() {
            opens_again(&ctx, &format!("{schema}.\"{table}\"")).await;
        }
    }
    let data = shipped("examples/data");
    ctx.register_array_catalog("climate", &data, ArrayOptions::default()).await.unwrap();
    opens_again(&ctx, "climate.stations.elevation").await;
}

/// Tables and schemas take the encryption key as text, and never show it.
#[tokio::test]
async fn keys_stay_hidden() {
    let ctx = reducing(2, 8192);
    let location = shipped("tests/data/tiledb/encrypted");
    let options = ArrayOptions::default().with_option("encryption_key", KEY);
    ctx.register_array("encrypted", &location, options.clone()).await.unwrap();
    ctx.register_array_schema("locked", &location, options).await.unwrap();
    for name in ["encrypted", "locked.encrypted"] {
        let origin = origin_of(&ctx, name).await;
        let key = origin.options.get("encryption_key").unwrap();
        assert!(!format!("{key} {key:?} {origin:?}").contains(KEY), "{name}");
        opens_again(&ctx, name).await;
    }
}
