//! Compares the table functions about files of the corpus with numpy's answers about their cells.

use std::path::Path;

use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;
use serde_json::Value;

use super::rejects::Expected::{DatasetFails, OpenFails, Reads, ScanFails};
use super::rejects::expectation;
use super::{Report, corpus, read_json, relative, tet_files};
use crate::support::{query, reducing, rows_of};

/// The rows of `columns` of a table function over a file.
async fn call(
    ctx: &SessionContext,
    columns: &str,
    function: &str,
    path: &Path,
    rest: &str,
) -> Result<Vec<Vec<String>>, DataFusionError> {
    let sql = format!("SELECT {columns} FROM {function}('{}'{rest})", path.display());
    Box::pin(query(ctx, &sql)).await.map(|batches| rows_of(&batches))
}

/// The error of a table function over a bad file, which for some files differs from the error of a query.
/// `None` if only a payload is bad.
fn error_of_index<'a>(file: &str, of_query: &'a str) -> Option<&'a str> {
    match file {
        "crafted/reject/dataset_id_oob.tet" => Some("a chunk of dataset 99, but there are 10"),
        "reference/reject/chunk_coord_out_of_grid.tet"
        | "reference/reject/overflow_tile_extent.tet" => Some("but there are ["),
        "reference/reject/zstd_garbage_payload.tet" => None,
        _ => Some(of_query),
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs GRIDFUSION_CORPUS: the shared corpora"]
async fn every_file_is_described_or_gives_the_reason() {
    let files = corpus();
    let ctx = reducing(2, 8192);
    let mut report = Report::default();
    for path in tet_files(&files) {
        let file = relative(&files, &path);
        report.subject = file.clone();
        for function in ["tet_info", "tet_chunks", "tet_attributes"] {
            let found = call(&ctx, "*", function, &path, "").await;
            let of_index =
                |part| error_of_index(&file, part).filter(|_| function != "tet_attributes");
            let error = match expectation(&file) {
                Some(OpenFails(part)) => Some(*part),
                Some(ScanFails(_, part)) => of_index(part),
                Some(DatasetFails(..) | Reads(..)) | None => None,
            };
            match error {
                Some(part) => report.corrupt(function, found.as_ref().err(), part),
                None => _ = report.note(found),
            }
        }
        if let Some(DatasetFails(dataset, part)) = expectation(&file) {
            let rest = format!(", '{dataset}'");
            let found =
                call(&ctx, "array_to_string(warnings, ';')", "tet_info", &path, &rest).await;
            let found = report.note(found).unwrap_or_default().concat().concat();
            report.equal("a warning with the reason", &found.contains(part).to_string(), "true");
        }
    }
    report.finish();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs GRIDFUSION_CORPUS: the shared corpora"]
async fn zone_maps_and_sizes_are_those_of_the_cells() {
    let files = corpus();
    let answers = read_json(&files.join("answers.json"));
    let ctx = reducing(2, 8192);
    let mut report = Report::default();
    for (file, answer) in answers.as_object().expect("answers.json is an object") {
        let Some(datasets) = answer["datasets"].as_object() else { continue };
        if expectation(file).is_some() || file.ends_with("dup_dataset_names.tet") {
            continue; // a bad file, or answers about another dataset of the same name
        }
        for (dataset, answer) in datasets {
            report.subject = format!("{file} {dataset}");
            let checked =
                check(&ctx, &files.join(file), dataset, &answer["truth"], &mut report).await;
            report.note(checked);
        }
    }
    report.finish();
}

async fn check(
    ctx: &SessionContext,
    path: &Path,
    dataset: &str,
    truth: &Value,
    report: &mut Report,
) -> Result<(), DataFusionError> {
    let rest = format!(", '{}'", dataset.replace('\'', "''"));
    let columns = "element_type, chunks = stored_chunks, raw_bytes, has_zone_maps, stored_bytes";
    let known = call(ctx, columns, "tet_info", path, &rest).await?.concat();
    let bits: u64 = known[0][1..].parse().expect("the name of an element type ends in its bits");
    let cells = truth["count"].as_u64().unwrap_or_default();
    report.equal("whether all chunks are stored", &known[1], "true");
    report.equal("raw bytes", &known[2], &(cells * bits / 8).to_string());
    // The text of an f32 has the digits of an f32, so the test parses it as one.
    let number = if known[0] == "f32" { "REAL" } else { "DOUBLE" };
    let columns = format!(
        "sum(raw_bytes), sum(stored_bytes), sum(null_count), count(*) - count(null_count), \
         min(CAST(min_value AS {number}))::double, max(CAST(max_value AS {number}))::double"
    );
    let chunks = call(ctx, &columns, "tet_chunks", path, &rest).await?.concat();
    if cells > 0 {
        report.equal("raw bytes of chunks", &chunks[0], &known[2]);
        report.equal("stored bytes of chunks", &chunks[1], &known[4]);
    }
    // The answers miss the fill value of this file, see `answers::truth_of`.
    if known[3] == "true" && chunks[3] == "0" && !path.ends_with("nc_small_labels.tet") {
        let nulls = truth["null_count_nan_or_fill"].as_u64().unwrap_or_default();
        report.equal("NULLs", &chunks[2], &nulls.to_string());
        report.close("least", &chunks[4], truth["nonnull"]["min"].as_f64(), 0.0);
        report.close("greatest", &chunks[5], truth["nonnull"]["max"].as_f64(), 0.0);
    }
    Ok(())
}
