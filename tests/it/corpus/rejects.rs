//! Bad files: refused with a reason, or read correctly.

use std::path::Path;

use datafusion::error::DataFusionError;
use gridfusion::ArrayOptions;

use super::tables::{aggregate, columns, dataset_names, open, plain, rows};
use super::{Report, corpus, relative, tet_files};

/// The expected result of opening and reading a bad file.
pub(crate) enum Expected {
    /// The file is refused, with an error that contains this text.
    OpenFails(&'static str),
    /// This dataset is refused; the others can be read.
    DatasetFails(&'static str, &'static str),
    /// These datasets are tables, but scans of them fail; the others can be read.
    ScanFails(&'static [&'static str], &'static str),
    /// The file can be read: a dataset, its number of values and their sum.
    Reads(&'static str, u64, f64),
}

use Expected::{DatasetFails, OpenFails, Reads, ScanFails};

/// Every file of the `reject` directories and of `corrupt_footer`, and one that needs `tet repair`.
const BAD_FILES: &[(&str, Expected)] = &[
    // Bad zone maps do not change answers. A footer of version 1 has no zone maps.
    ("corrupt_footer/v1_with_zone_refs.tet", Reads("a", 4, 24.0)),
    ("corrupt_footer/zone_bad_json.tet", Reads("a", 4, 24.0)),
    ("corrupt_footer/zone_lies.tet", Reads("a", 4, 24.0)),
    // One index row has a codec that does not exist.
    ("crafted/reject/codec_2.tet", ScanFails(&["f32"], "codec 2")),
    // More labels than the reference's `verify` allows, but a reader can read them.
    ("crafted/reject/coord_labels_65.tet", Reads("x", 65, 2080.0)),
    // The row of the first chunk belongs to dataset 99 of 10, so that chunk has none.
    ("crafted/reject/dataset_id_oob.tet", ScanFails(&["f32"], "no row for chunk [0, 0]")),
    ("crafted/reject/dtype_11.tet", DatasetFails("f32", "element type 11")),
    // Two rows for one chunk, none is missing. The first counts, as in the reference.
    ("crafted/reject/duplicate_row.tet", Reads("v", 12, 66.0)),
    ("crafted/reject/flag_set_footer_missing.tet", OpenFails("corrupt footer")),
    ("crafted/reject/history_version_3.tet", OpenFails("history version 3")),
    ("crafted/reject/index_version_2.tet", OpenFails("index version 2")),
    ("crafted/reject/layout_version_2.tet", OpenFails("layout version 2")),
    // A conversion that gave up before it wrote payloads: directory and index are whole.
    (
        "crafted/reject/partial_failed_convert.tet",
        ScanFails(&["t2m", "time"], "payloads end at byte 376"),
    ),
    // The footer's JSON is replaced by letters X.
    ("reference/plan.tet", OpenFails("corrupt footer")),
    // The row of chunk [0, 0] has the coordinates [99, 0], outside the grid.
    ("reference/reject/chunk_coord_out_of_grid.tet", ScanFails(&["a"], "no row for chunk [0, 0]")),
    // Two chunks share their bytes: 1, 2, 4, 5 and 1, 2. Only `verify` reports that.
    ("reference/reject/duplicate_payload_offset.tet", Reads("a", 6, 15.0)),
    (
        "reference/reject/inflated_stored_past_eof.tet",
        ScanFails(&["a"], "a tile of 88 bytes, expected 16"),
    ),
    // Neither row belongs to a chunk of the grid.
    ("reference/reject/overflow_tile_extent.tet", ScanFails(&["a"], "no row for chunk [0, ")),
    ("reference/reject/payload_offset_past_eof.tet", ScanFails(&["a"], "payloads end at byte 360")),
    (
        "reference/reject/raw_stored_len_mismatch.tet",
        ScanFails(&["a"], "8 stored bytes of a raw tile of 16"),
    ),
    ("reference/reject/truncated_payload.tet", ScanFails(&["a"], "payloads end at byte 344")),
    ("reference/reject/zero_chunk_shape.tet", DatasetFails("a", "chunk shape [0, 2] has a 0")),
    ("reference/reject/zstd_garbage_payload.tet", ScanFails(&["a"], "corrupt chunk payload")),
];

pub(crate) fn expectation(file: &str) -> Option<&'static Expected> {
    BAD_FILES.iter().find(|(name, _)| *name == file).map(|(_, expected)| expected)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs GRIDFUSION_CORPUS: the shared corpora"]
async fn rejects() {
    let files = corpus();
    let mut report = Report::default();
    let mut seen = 0;
    for path in tet_files(&files) {
        let file = relative(&files, &path);
        report.subject = file.clone();
        let is_bad = file.split('/').any(|part| part == "reject" || part == "corrupt_footer");
        match expectation(&file) {
            Some(expected) => {
                seen += 1;
                check_bad_file(&path, expected, &mut report).await;
            }
            None if is_bad => report.fail("BAD_FILES has no expectation for this file"),
            None => {}
        }
    }
    report.subject = "files with expectations".to_owned();
    report.equal("their number", &seen.to_string(), &BAD_FILES.len().to_string());
    report.finish();
}

async fn check_bad_file(path: &Path, expected: &Expected, report: &mut Report) {
    let opened = open(path, &[plain()]).await;
    if let OpenFails(part) = expected {
        return report.corrupt("opening", opened.as_ref().err(), part);
    }
    let Some(ctx) = report.note(opened) else { return };
    for dataset in dataset_names(&ctx) {
        let planned = columns(&ctx, "f", &dataset).await;
        match expected {
            DatasetFails(bad, part) if *bad == dataset => {
                report.refused(&dataset, planned.as_ref().err(), part);
            }
            ScanFails(bad, part) if bad.contains(&dataset.as_str()) => {
                report.note(planned);
                for sql in ["sum($value)", "count($value)"] {
                    let found = aggregate(&ctx, &dataset, sql).await;
                    report.corrupt(&format!("{sql} of {dataset}"), found.as_ref().err(), part);
                }
            }
            _ => {
                let found = aggregate(&ctx, &dataset, "count($value), sum($value)::double").await;
                let Some(found) = report.note(found) else { continue };
                if let Reads(name, count, sum) = expected {
                    report.equal("the dataset", &dataset, name);
                    report.equal("count(value)", &found[0], &count.to_string());
                    report.close("sum(value)", &found[1], Some(*sum), 0.0);
                }
            }
        }
    }
}

/// The values are 1, 2, 10, 11. The zone map of one file gives 1 as the greatest value of its second
/// chunk, so the reference engine skips that chunk here.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs GRIDFUSION_CORPUS: the shared corpora"]
async fn zone_maps_never_change_answers() {
    let files = corpus();
    let mut report = Report::default();
    for file in [
        "reference/embedded_zone.tet",
        "corrupt_footer/v1_with_zone_refs.tet",
        "corrupt_footer/zone_bad_json.tet",
        "corrupt_footer/zone_lies.tet",
    ] {
        // A well-formed zone map cannot be recognized as wrong, so trust in it changes answers.
        let trusts: &[bool] =
            if file.ends_with("zone_lies.tet") { &[false] } else { &[true, false] };
        for &trust in trusts {
            report.subject = format!("{file} with trust_zone_maps = {trust}");
            let options = ArrayOptions::default().with_trust_zone_maps(trust);
            let opened = open(&files.join(file), &[("f", options)]).await;
            let Some(ctx) = report.note(opened) else { continue };
            let sql =
                "SELECT count(*), sum(value), min(value), max(value) FROM f.a WHERE value > 5";
            let found = rows(&ctx, sql).await;
            let Some(found) = report.note(found) else { continue };
            report.equal("the answer", &found.concat().join(", "), "2, 21.0, 10.0, 11.0");
        }
    }
    report.finish();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs GRIDFUSION_CORPUS: the shared corpora"]
async fn every_file_opens_or_gives_the_reason() {
    let files = corpus();
    let mut report = Report::default();
    for path in tet_files(&files) {
        report.subject = relative(&files, &path);
        let ctx = match open(&path, &[plain()]).await {
            Ok(ctx) => ctx,
            Err(error) => {
                check_excuse(&error, &mut report);
                continue;
            }
        };
        for dataset in dataset_names(&ctx) {
            match aggregate(&ctx, &dataset, "count(*), count($value)").await {
                Ok(found) => report.equal("number of cells", &found.len().to_string(), "2"),
                Err(error) => check_excuse(&error, &mut report),
            }
        }
    }
    report.finish();
}

/// Only files that are known to be bad may give errors, and the errors must name the file.
fn check_excuse(error: &DataFusionError, report: &mut Report) {
    report.names_the_file(error);
    if expectation(&report.subject).is_none() {
        report.fail(&error.to_string());
    }
}
