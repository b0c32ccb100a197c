//! Sparse arrays that TileDB-Py wrote, read without SQL. The expected rows are those of `tests/data/tiledb/*.expected.json`.

use std::sync::Arc;

use arrow::array::{Int32Array, Int64Array, RecordBatch, StringViewArray};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use futures::TryStreamExt;
use gridfusion_core::options::ArrayOptions;
use gridfusion_core::read::{Opener, SparseReader};
use gridfusion_core::{ErrorKind, Result};

use crate::TileDb;

async fn open(name: &str, options: ArrayOptions) -> Result<SparseReader> {
    let path = format!("{}/../../tests/data/tiledb/{name}", env!("CARGO_MANIFEST_DIR"));
    let opener = Opener::new(vec![Arc::new(TileDb)]).with_options(options);
    let dataset = opener.open(&path).await?;
    dataset.sparse_array(&dataset.names()[0]).await
}

/// Returns the rows as text, sorted.
async fn rows(reader: &SparseReader) -> Result<Vec<String>> {
    let batches: Vec<RecordBatch> = reader.batches().try_collect().await?;
    let options = FormatOptions::new();
    let mut rows = vec![];
    for batch in batches {
        let columns = batch.columns().iter();
        let columns: Vec<_> =
            columns.map(|column| ArrayFormatter::try_new(column, &options).unwrap()).collect();
        let cells = |row: usize| columns.iter().map(move |column| column.value(row).to_string());
        rows.extend((0..batch.num_rows()).map(|row| cells(row).collect::<Vec<_>>().join(" ")));
    }
    rows.sort();
    Ok(rows)
}

#[tokio::test]
async fn the_newest_cells_that_are_not_deleted_are_read() {
    let at = |time: u64| ArrayOptions::default().with_option("timestamp", time);
    let early =
        ["1 1 100 10:0", "2 1 101 10:1", "3 1 102 10:2", "50 50 103 10:3", "60 60 104 10:4"];
    let late = [
        "1 1 100 10:0",
        "2 1 300 30:0",
        "3 1 102 10:2",
        "4 4 301 30:1",
        "50 50 201 20:1",
        "60 60 104 10:4",
        "60 61 302 30:2",
        "99 99 202 20:2",
    ];
    let window =
        ["2 1 300 30:0", "4 4 301 30:1", "50 50 201 20:1", "60 61 302 30:2", "99 99 202 20:2"];
    let array = "sparse_delete_consolidated";
    assert_eq!(rows(&open(array, at(10)).await.unwrap()).await.unwrap(), early);
    assert_eq!(rows(&open(array, at(30)).await.unwrap()).await.unwrap(), late);
    let options = at(30).with_option("timestamp_start", 15_u64);
    assert_eq!(rows(&open(array, options).await.unwrap()).await.unwrap(), window);
}

#[tokio::test]
async fn overlapping_fragments_are_merged_by_text() {
    let reader = open("sparse_1d_string", ArrayOptions::default()).await.unwrap();
    let reader = reader.with_columns(&["v", "k"]).unwrap();
    let all = [
        "0 a", "10 nn", "2 ab", "3 b", "4 bb", "5 zeta", "500 aa", "501 q", "6 z", "7 zz", "8 m",
        "9 n",
    ];
    assert_eq!(rows(&reader).await.unwrap(), all);
    let (low, high) = (StringViewArray::new_scalar("aa"), StringViewArray::new_scalar("b"));
    let some = reader.with_between("k", &low, &high).unwrap();
    assert_eq!(rows(&some).await.unwrap(), ["2 ab", "3 b", "500 aa"]);
}

#[tokio::test]
async fn selections_that_do_not_fit_are_explained() {
    let reader = open("sparse", ArrayOptions::default()).await.unwrap();
    let (low, high) = (Int32Array::new_scalar(2), Int32Array::new_scalar(8));
    let some = reader.clone().with_between("x", &low, &high).unwrap();
    assert_eq!(rows(&some).await.unwrap(), ["3 30", "8 80"]);
    let none = some.with_between("x", &low, &low).unwrap();
    assert!(rows(&none).await.unwrap().is_empty());
    let error = |reader: Result<SparseReader>| {
        let error = reader.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
        error.to_string()
    };
    let long = Int64Array::new_scalar(2);
    let found = error(reader.clone().with_between("x", &long, &long));
    assert!(found.contains("type Int64") && found.contains("the type Int32"), "{found}");
    let found = error(reader.clone().with_between("a", &low, &high));
    assert!(found.contains("\"a\" is not a dimension"), "{found}");
    let found = error(reader.with_columns(&["y"]));
    assert!(found.contains("no column \"y\"; there are x, a"), "{found}");
    let found = error(open("fill", ArrayOptions::default()).await);
    assert!(found.contains("is a dense array"), "{found}");
}
