//! Coordinates as columns beside the variables of a file, and of several files.
#![cfg(test)]

use std::sync::Arc;

use arrow::util::pretty::pretty_format_batches;
use futures::TryStreamExt;
use gridfusion_cf::NetCdf;
use gridfusion_core::array::GridArray;
use gridfusion_core::options::ArrayOptions;
use gridfusion_core::read::{Dataset, Opener};
use gridfusion_core::source::{FileArrays, MosaicOptions, Stack, TableArrays};
use gridfusion_core::{Result, array::Labels};

fn at(name: &str) -> String {
    format!("{}/tests/data/hdf5/coordinates/{name}", env!("CARGO_MANIFEST_DIR"))
}

async fn open(name: &str, options: &[(&str, &str)]) -> Dataset {
    let all = options
        .iter()
        .fold(ArrayOptions::default(), |all, (name, value)| all.with_option(*name, *value));
    let opener = Opener::new(vec![Arc::new(NetCdf)]).with_options(all);
    opener.open(&at(name)).await.unwrap()
}

/// The columns of the table of a file.
async fn columns(name: &str, options: &[(&str, &str)]) -> Vec<String> {
    let table = open(name, options).await.variables().await.unwrap();
    names(table.array())
}

fn names(array: &GridArray) -> Vec<String> {
    array.schema().fields().iter().map(|field| field.name().clone()).collect()
}

/// The rows of some columns, each in one line.
async fn rows(name: &str, options: &[(&str, &str)], columns: &[&str]) -> Vec<String> {
    let table = open(name, options).await.variables().await.unwrap();
    let batches: Vec<_> =
        table.with_columns(columns).unwrap().batches().try_collect().await.unwrap();
    let text = pretty_format_batches(&batches).unwrap().to_string();
    let rows = text.lines().skip(3).filter(|line| line.starts_with('|'));
    rows.map(|line| line.split_whitespace().filter(|it| *it != "|").collect::<Vec<_>>().join(" "))
        .collect()
}

#[tokio::test]
async fn cheap_coordinates_are_columns() {
    let temp = [("dataset", "temp")];
    let all = ["time", "station", "value", "lat", "lon", "station_name", "height", "campaign"];
    assert_eq!(columns("stations.nc", &temp).await, all);
    let wide = columns("stations.nc", &[]).await;
    assert_eq!(wide[..5], ["time", "station", "temp", "temp_flag", "wind"]);
    assert_eq!(wide[5..], ["lat", "lon", "station_name", "height", "campaign", "reference"]);
    for (choice, expected) in [
        ("cheap", &all[3..]),
        ("TRUE", &["lat", "lon", "station_name", "height", "slope", "campaign"]),
        ("false", &[]),
        ("slope, area", &["slope", "area"]),
    ] {
        let options = [("dataset", "temp"), ("coordinates", choice)];
        assert_eq!(columns("stations.nc", &options).await[3..], *expected, "{choice}");
    }
    let unknown = open("stations.nc", &[("coordinates", "lat,latt")]).await.variables().await;
    let unknown = unknown.unwrap_err().to_string();
    assert!(
        unknown.contains("no variable \"latt\"") && unknown.contains("stations.nc"),
        "{unknown}"
    );
    // A coordinate has a table without others.
    assert_eq!(columns("stations.nc", &[("dataset", "lat")]).await, ["station", "value"]);
}

#[tokio::test]
async fn coordinates_are_repeated() {
    let shown = ["temp", "station_name", "lat", "height", "reference"];
    let found = rows("stations.nc", &[], &shown).await;
    assert_eq!(found.len(), 12);
    assert_eq!(found[0], "0.0 Oslo 59.9 2.0 2024-01-01T00:00:00");
    assert_eq!(found[5], "5.0 Bodø 67.3 2.0 2024-01-01T00:00:00");
    assert_eq!(found[7], "7.0 Bergen 60.4 2.0 2024-01-01T12:00:00");
}

#[cfg(feature = "hdf5")]
#[tokio::test]
async fn groups_inherit_coordinates() {
    let shown = ["level", "station", "temp", "lat", "lon", "pressure", "height"];
    let found = rows("nested.nc", &[("group", "upper/deep")], &shown).await;
    assert_eq!(found[1], "850 20 1.0 60.4 5.3 85000.0 2.0");
    assert_eq!(found[5], "500 30 5.0 67.3 14.4 50000.0 2.0");
}

async fn file(name: &str, options: &[(&str, &str)]) -> FileArrays {
    match open(name, options).await.group().columns(None).await.unwrap() {
        TableArrays::Grids(file) => file,
        TableArrays::Sparse(_) => unreachable!("NetCDF has no sparse arrays"),
    }
}

async fn combined(names: &[&str], coordinates: &str, united: bool) -> Result<GridArray> {
    let mut files = vec![];
    for name in names {
        files.push(file(name, &[("coordinates", coordinates)]).await);
    }
    let options = MosaicOptions { union_by_name: united, ..MosaicOptions::default() };
    GridArray::combine("years".to_owned(), files, &options)
}

#[tokio::test]
async fn files_share_coordinates_or_do_without() {
    let some = ["time", "x", "t", "height", "issued", "place"];
    let both = combined(&["year_1.nc", "year_2.nc"], "cheap", false).await.unwrap();
    assert_eq!(names(&both), some);
    let all = ["year_3.nc", "year_1.nc", "year_2.nc"];
    let table = combined(&all, "cheap", false).await.unwrap();
    assert_eq!(names(&table), ["time", "x", "t", "issued", "place"]);
    let asked = combined(&all, "true", false).await.unwrap_err().to_string();
    assert!(asked.contains("height") && asked.contains("year_1.nc"), "{asked}");
    let united = combined(&all, "cheap", true).await.unwrap();
    assert_eq!(names(&united), ["time", "x", "t", "issued", "place", "height"]);
}

#[tokio::test]
async fn a_coordinate_that_becomes_a_dimension_is_no_column() {
    let stack = Stack::parse("issued").unwrap();
    let labels = Labels::from_array(Arc::new(arrow::array::Int32Array::from(vec![1]))).unwrap();
    let along = stack.along(labels);
    let stacked = Stack::stacked(file("year_1.nc", &[]).await, &along, 0).unwrap();
    let array = GridArray::combine("t".to_owned(), vec![stacked], &MosaicOptions::default());
    assert_eq!(names(&array.unwrap()), ["issued", "time", "x", "t", "height", "place"]);
}
