//! Files that netCDF4 wrote, against the rows that numpy expanded: `tests/data/hdf5/ragged/make.py` writes both.
#![cfg(feature = "hdf5")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::Array;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use futures::TryStreamExt;
use gridfusion_core::array::{ColumnSource, GridArray};
use gridfusion_core::grid::Selection;
use gridfusion_core::options::ArrayOptions;
use gridfusion_core::read::{ArrayReader, Dataset, Opener};
use gridfusion_core::source::{Detail, FileArrays, MosaicOptions, TableArrays};
use serde_json::Value as Json;

use crate::netcdf::NetCdf;

/// The values of a table by column; `None` for NULL.
type Rows = BTreeMap<String, Vec<Option<String>>>;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/hdf5/ragged")
}

async fn opened(file: &str, options: ArrayOptions) -> Dataset {
    let opener = Opener::new(vec![Arc::new(NetCdf)]).with_options(options);
    opener.open(folder().join(file).to_str().unwrap()).await.unwrap()
}

async fn rows(array: GridArray) -> Rows {
    let batches: Vec<_> = ArrayReader::new(array).batches().try_collect().await.unwrap();
    let mut rows = Rows::new();
    for batch in batches {
        for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
            let options = FormatOptions::default().with_null("NULL");
            let shown = ArrayFormatter::try_new(column, &options).unwrap();
            let text = |at| (!column.is_null(at)).then(|| shown.value(at).to_string());
            rows.entry(field.name().clone()).or_default().extend((0..column.len()).map(text));
        }
    }
    rows
}

fn expected(name: &str) -> Rows {
    let text = std::fs::read_to_string(folder().join(format!("{name}.json"))).unwrap();
    let columns: BTreeMap<String, Vec<Json>> = serde_json::from_str(&text).unwrap();
    let shown = |value: Json| match value {
        Json::Null => None,
        Json::String(text) => Some(text),
        other => Some(other.to_string()),
    };
    let column =
        |(name, values): (String, Vec<Json>)| (name, values.into_iter().map(shown).collect());
    columns.into_iter().map(column).collect()
}

async fn table(files: &[&str], options: &MosaicOptions) -> gridfusion_core::Result<GridArray> {
    let mut all: Vec<FileArrays> = vec![];
    for file in files {
        let dataset = opened(file, ArrayOptions::default()).await;
        match dataset.group().columns(None).await? {
            TableArrays::Grids(arrays) => all.push(arrays),
            TableArrays::Sparse(_) => unreachable!(),
        }
    }
    GridArray::combine("table".to_owned(), all, options)
}

#[tokio::test]
async fn samples_have_the_columns_of_their_instances() {
    for name in ["contiguous", "indexed", "nested"] {
        let dataset = opened(&format!("{name}.nc"), ArrayOptions::default()).await;
        let array = dataset.variables().await.unwrap();
        let array =
            table(&[&format!("{name}.nc")], &MosaicOptions::default()).await.inspect(|it| {
                assert_eq!(it.schema().fields(), array.schema().unwrap().fields());
            });
        assert_eq!(rows(array.unwrap()).await, expected(name), "{name}");
    }
}

#[tokio::test]
async fn files_of_other_lengths_are_one_table() {
    let array = table(&["floats_2.nc", "floats_1.nc"], &MosaicOptions::default()).await.unwrap();
    assert_eq!(rows(array).await, expected("floats"));
    // Files of equal lengths follow one another, too.
    let array = table(&["nested.nc", "nested.nc"], &MosaicOptions::default()).await.unwrap();
    let (twice, once) = (rows(array).await, expected("nested"));
    assert_eq!(twice["obs"].len(), 2 * once["obs"].len());
    assert_eq!(twice["trajectory"], [&once["trajectory"][..], &once["trajectory"]].concat());
    let files = ["padded_2.nc", "padded_1.nc"];
    let options =
        MosaicOptions { concat_dimension: Some("N_PROF".to_owned()), ..MosaicOptions::default() };
    let array = table(&files, &options).await.unwrap();
    assert_eq!(rows(array).await, expected("padded"));
    let error = table(&files, &MosaicOptions::default()).await.unwrap_err().to_string();
    assert!(error.contains("'concat_dimension'"), "{error}");
}

#[tokio::test]
async fn bounds_of_chunks_are_those_of_their_rows() {
    for files in
        [&["contiguous.nc"][..], &["indexed.nc"], &["nested.nc"], &["floats_2.nc", "floats_1.nc"]]
    {
        let array = table(files, &MosaicOptions::default()).await.unwrap();
        let grid = array.grid().clone();
        let all: Vec<u64> = (0..grid.chunks()).collect();
        let mut of_columns = vec![];
        for (column, field) in array.columns().iter().zip(array.schema().fields()) {
            if let ColumnSource::Value(value) = column
                && let Some(known) = array.value_bounds(*value, &Selection::all(grid.shape())).await
            {
                of_columns.push((field.name().clone(), known.bounds(&all).unwrap()));
            }
        }
        let rows = rows(array).await;
        assert!(!of_columns.is_empty());
        for (name, (least, greatest)) in of_columns {
            let options = FormatOptions::default().with_null("NULL");
            for (chunk, bound) in all.iter().flat_map(|it| [(*it, &least), (*it, &greatest)]) {
                let range = grid.axis_range(0, chunk);
                let values = &rows[&name][range.start as usize..range.end as usize];
                let shown = ArrayFormatter::try_new(bound, &options).unwrap();
                let shown = shown.value(chunk as usize).to_string();
                let number = |text: &String| text.parse::<f64>().ok();
                let order = |a: &&String, b: &&String| match (number(a), number(b)) {
                    (Some(a), Some(b)) => a.total_cmp(&b),
                    _ => a.cmp(b),
                };
                let values = values.iter().flatten();
                let wanted = match std::ptr::eq(bound, &raw const least) {
                    true => values.min_by(order),
                    false => values.max_by(order),
                };
                let shown = (shown != "NULL").then_some(&shown);
                assert_eq!(shown, wanted, "{name} of {files:?}, chunk {chunk}");
            }
        }
    }
}

#[tokio::test]
async fn counts_and_indices_that_contradict_the_dimensions_are_errors() {
    for (file, expected) in [
        ("sum.nc", "\"row_size\": the counts add up to 4 samples, and the sample dimension has 5"),
        ("beyond.nc", "\"station_index\": sample 2 belongs to instance 2, and there are 2"),
    ] {
        let error = table(&[file], &MosaicOptions::default()).await.unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains(file), "{error}");
    }
    // Without the columns, the counts do not matter.
    let options = ArrayOptions::default().with_coordinates(false);
    for (file, columns) in [
        ("sum.nc", vec!["obs", "value_of"]),
        ("beyond.nc", vec!["obs", "station_index", "value_of"]),
    ] {
        let table = opened(file, options.clone()).await.variables().await.unwrap();
        let schema = table.schema().unwrap();
        let names = schema.fields().iter().map(|field| field.name().as_str());
        assert_eq!(names.collect::<Vec<_>>(), columns);
    }
}

#[tokio::test]
async fn descriptions_name_the_instances() {
    for (file, expected) in [
        ("contiguous.nc", "ragged: obs of station"),
        ("nested.nc", "ragged: profile of trajectory, ragged: obs of profile"),
    ] {
        let dataset = opened(file, ArrayOptions::default()).await;
        let described = dataset.group().describe(&Detail::default()).await.unwrap();
        assert!(format!("{described:?}").contains(expected), "{described:?}");
    }
}
