//! Labels and attributes of single precision, in files of `tests/data/singles` and in a `.tet` file.

/// Comparisons of labels with numbers of other types.
mod comparisons;
/// Joins, subqueries and tables of many files.
mod joined;
/// Attributes: packing, missing values and limits.
mod packed;

use arrow::array::{ArrayRef, Float32Array};
use datafusion::prelude::SessionContext;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use serde_json::json;

use crate::support::{F32, Layout, TempTet, TestDataset, query, reducing, shipped, tet_bytes};

/// The labels, in the decimals of a person. As singles they are exactly those of the files.
pub(crate) const LATS: [&str; 5] = ["50.0", "50.1", "50.2", "50.3", "50.4"];
pub(crate) const LONS: [&str; 3] = ["5.0", "5.1", "5.25"];

/// Rows of stations: some of the grid, and some beside it.
pub(crate) const STATIONS: [(&str, &str); 6] = [
    ("50.1", "5.1"),
    ("50.3", "5.25"),
    ("50.0", "5.0"),
    ("49.9", "5.0"),
    ("50.4", "5.2"),
    ("50.1", "5.0"),
];

/// The types in which the stations are tables of the same decimals.
pub(crate) const TYPES: [(&str, &str); 4] = [
    ("floats", "FLOAT"),
    ("doubles", "DOUBLE"),
    ("texts", "VARCHAR"),
    ("decimals", "DECIMAL(6, 2)"),
];

pub(crate) fn at(name: &str) -> String {
    shipped(&format!("tests/data/singles/{name}"))
}

pub(crate) fn single(text: &str) -> f32 {
    text.parse().unwrap()
}

/// The same grid in a `.tet` file. The footer has the latitudes as text, as converters write them.
pub(crate) fn tet_file() -> TempTet {
    let bytes = |all: &[f32]| all.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<u8>>();
    let [lat, lon] = [LATS.map(single).to_vec(), LONS.map(single).to_vec()];
    let cells: Vec<f32> = (0..15_u8).map(f32::from).collect();
    let datasets = [
        TestDataset::new("lat", F32, &[5], &[5], bytes(&lat))
            .with_metadata(json!({"dim_names": ["lat"], "coords": {"lat": {"labels": LATS}}})),
        TestDataset::new("lon", F32, &[3], &[3], bytes(&lon))
            .with_metadata(json!({"dim_names": ["lon"]})),
        TestDataset::new("t", F32, &[5, 3], &[2, 2], bytes(&cells)).with_metadata(
            json!({"dim_names": ["lat", "lon"], "coords": {"lat": {"labels": LATS}}}),
        ),
    ];
    let layout = Layout { history_version: Some(2), ..Layout::default() };
    TempTet::new(&tet_bytes(&datasets, &layout))
}

/// The grid in each format.
pub(crate) fn grids(tet: &TempTet) -> Vec<String> {
    let names = ["grid_cdf2.nc", "grid_nc4.nc", "grid_v2.zarr", "grid_v3.zarr"];
    let mut grids: Vec<String> = names.into_iter().map(at).collect();
    grids.push(tet.location().to_owned());
    grids
}

/// A session with the grid at a location as the table `g`, with the columns lat, lon and value, and the stations.
pub(crate) async fn with_grid(location: &str) -> SessionContext {
    let ctx = reducing(2, 4);
    register(&ctx, "g", location).await;
    add_stations(&ctx).await;
    ctx
}

pub(crate) async fn register(ctx: &SessionContext, name: &str, location: &str) {
    let options = ArrayOptions::default().with_option("dataset", "t");
    ctx.register_array(name, location, options).await.unwrap();
}

pub(crate) async fn add_stations(ctx: &SessionContext) {
    let rows: Vec<String> =
        STATIONS.iter().map(|(lat, lon)| format!("('{lat}', '{lon}')")).collect();
    for (name, data_type) in TYPES {
        let sql = format!(
            "CREATE TABLE {name} AS SELECT CAST(column1 AS {data_type}) AS lat, CAST(column2 AS {data_type}) AS lon \
             FROM (VALUES {})",
            rows.join(", ")
        );
        query(ctx, &sql).await.unwrap();
    }
}

/// The labels of the first column of a query, bit by bit.
pub(crate) async fn labels(ctx: &SessionContext, sql: &str) -> Vec<f32> {
    let batches = query(ctx, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let column = |column: &ArrayRef| -> Vec<f32> {
        let singles = column.as_any().downcast_ref::<Float32Array>();
        singles.unwrap_or_else(|| panic!("{sql}: {}", column.data_type())).values().to_vec()
    };
    batches.iter().flat_map(|batch| column(batch.column(0))).collect()
}
