//! Tables of compounds: what is read of the files is what h5py reads. `tests/data/hdf5/compounds/make.py` writes the files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::DataType;
use arrow::util::display::array_value_to_string;
use futures::TryStreamExt;
use gridfusion_core::ErrorKind;
use gridfusion_core::array::GridArray;
use gridfusion_core::read::Dataset;
use gridfusion_core::source::{MosaicOptions, TableArrays};
use serde_json::Value;

use crate::open;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/hdf5/compounds")
}

async fn dataset(path: &Path) -> Dataset {
    open(path.to_str().unwrap()).await.unwrap()
}

async fn batches(dataset: &Dataset, name: &str, columns: &[&str]) -> Vec<RecordBatch> {
    let reader = dataset.array(name).await.unwrap().with_columns(columns).unwrap();
    reader.batches().try_collect().await.unwrap()
}

/// Returns the rows of columns as texts; NULL is the empty text.
async fn rows(dataset: &Dataset, name: &str, columns: &[&str]) -> Vec<Vec<String>> {
    let batches = batches(dataset, name, columns).await;
    let rows = batches.iter().flat_map(|batch| {
        (0..batch.num_rows()).map(|row| {
            let cells = batch.columns().iter();
            cells.map(|it| array_value_to_string(it, row).unwrap()).collect()
        })
    });
    rows.collect()
}

#[tokio::test]
async fn fields_are_what_h5py_reads() {
    for file in ["compounds.h5", "compounds.nc", "latest.h5", "nested.h5", "elsewhere.h5"] {
        let description = folder().join(format!("{}.json", file.replace('.', "_")));
        let expected: Value = serde_json::from_slice(&std::fs::read(description).unwrap()).unwrap();
        let opened = dataset(&folder().join(file)).await;
        for (name, expected) in expected.as_object().unwrap() {
            let columns: Vec<String> = serde_json::from_value(expected["columns"].clone()).unwrap();
            let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
            let mut expected: Vec<Vec<String>> =
                serde_json::from_value(expected["rows"].clone()).unwrap();
            let mut found = rows(&opened, name, &columns).await;
            if name == "plane" {
                // Rows come chunk by chunk.
                found.sort();
                expected.sort();
            }
            assert_eq!(found, expected, "{file} {name}");
            // Each column alone.
            for (at, column) in columns.iter().enumerate() {
                let mut alone: Vec<_> = expected.iter().map(|row| vec![row[at].clone()]).collect();
                let mut found = rows(&opened, name, &[column]).await;
                if name == "plane" {
                    found.sort();
                    alone.sort();
                }
                assert_eq!(found, alone, "{file} {name} {column}");
            }
        }
    }
}

#[tokio::test]
async fn types_of_columns() {
    let opened = dataset(&folder().join("compounds.h5")).await;
    let schema = opened.array("plane").await.unwrap().schema().unwrap();
    let names: Vec<&str> = schema.fields().iter().map(|it| it.name().as_str()).collect();
    let expected = [
        "dim_0", "dim_1", "station", "temp", "pos", "quality", "ok", "samples", "note", "flags",
        "grid", "corners", "codes", "z",
    ];
    assert_eq!(names, expected);
    let of = |name: &str| schema.field_with_name(name).unwrap().data_type().clone();
    assert_eq!(of("temp"), DataType::Float32);
    assert_eq!(of("ok"), DataType::Boolean);
    assert_eq!([of("station"), of("quality"), of("note")], [const { DataType::Utf8View }; 3]);
    assert!(matches!(of("pos"), DataType::Struct(fields) if fields.len() == 2));
    assert!(
        matches!(of("samples"), DataType::List(item) if *item.data_type() == DataType::Float64)
    );
    let is_list = |name: &str, len: i32| matches!(of(name), DataType::FixedSizeList(_, found) if found == len);
    assert!(is_list("flags", 3) && is_list("grid", 4) && is_list("corners", 2));
}

#[tokio::test]
async fn cells_that_were_never_written_have_the_fields_of_the_fill_value() {
    let opened = dataset(&folder().join("compounds.h5")).await;
    let found = rows(&opened, "unwritten", &["b", "a"]).await;
    assert_eq!(found[1..], vec![vec!["zz".to_owned(), "5".to_owned()]; 3]);
}

#[tokio::test]
async fn compounds_beside_other_variables_have_columns_with_their_names() {
    let opened = dataset(&folder().join("compounds.nc")).await;
    let schema = opened.variables().await.unwrap().schema().unwrap();
    let names: Vec<&str> = schema.fields().iter().map(|it| it.name().as_str()).collect();
    let expected =
        ["station", "both_id", "both_wind", "both_levels", "one_speed", "one_direction", "t"];
    assert_eq!(names, expected);
    let found = rows(&opened, "both", &["wind"]).await;
    assert_eq!(found[1], ["{speed: 1.5, direction: 10}"]);
}

#[tokio::test]
async fn chosen_compounds_have_columns_with_their_names() {
    let opened = dataset(&folder().join("compounds.nc")).await;
    let table = opened.group().columns(Some("one, both")).await.unwrap();
    let TableArrays::Grids(file) = table else { panic!("grids") };
    let array = GridArray::combine("table".to_owned(), vec![file], &MosaicOptions::default());
    let schema = Arc::clone(array.unwrap().schema());
    let names: Vec<&str> = schema.fields().iter().map(|it| it.name().as_str()).collect();
    let expected = ["station", "one_speed", "one_direction", "both_id", "both_wind", "both_levels"];
    assert_eq!(names, expected);
}

#[tokio::test]
async fn texts_of_compounds_elsewhere_are_refused() {
    let opened = dataset(&folder().join("elsewhere.h5")).await;
    let error = opened.array("texts").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("compounds with texts or lists"), "{error}");
}

/// `make.py` writes a virtual dataset beside the compounds.
#[tokio::test]
async fn lists_are_read_to_locate_chunks_beside_virtual_datasets_too() {
    let opened = dataset(&folder().join("lists_first.h5")).await;
    for (name, expected) in [("lists", false), ("part", true), ("virtual", true)] {
        let array = opened.array(name).await.unwrap();
        let listed = opened.group().listed_values(name, array.array());
        assert_eq!(listed[0].is_located, expected, "{name}");
    }
    let found = rows(&opened, "lists", &["samples", "n"]).await;
    assert_eq!(found, [["[0.5]", "0"], ["[0.5, 1.5]", "1"]]);
}

/// Each byte of a small file is changed: an error, or other values, and never a panic.
#[tokio::test]
async fn damaged_compounds_are_errors() {
    for (file, name, field) in
        [("latest.h5", "latest", "station\0"), ("nested.h5", "contiguous", "inner\0")]
    {
        damaged(file, name, field).await;
    }
}

async fn damaged(file: &str, name: &str, field: &str) {
    let bytes = std::fs::read(folder().join(file)).unwrap();
    let at = bytes.windows(field.len()).position(|it| it == field.as_bytes()).unwrap();
    let temporary = std::env::temp_dir().join(format!("compound-{}.h5", std::process::id()));
    let mut failed = 0;
    for place in at.saturating_sub(16)..at + 400 {
        for flip in [0xff, 0x10] {
            let mut damaged = bytes.clone();
            damaged[place] ^= flip;
            std::fs::write(&temporary, damaged).unwrap();
            let Ok(opened) = open(temporary.to_str().unwrap()).await else {
                failed += 1;
                continue;
            };
            let Ok(reader) = opened.array(name).await else {
                failed += 1;
                continue;
            };
            if let Err(error) = reader.batches().try_collect::<Vec<_>>().await {
                assert_ne!(error.kind(), ErrorKind::Internal, "{place}: {error}");
                failed += 1;
            }
        }
    }
    std::fs::remove_file(temporary).unwrap();
    assert!(failed > 300, "{failed}");
}
