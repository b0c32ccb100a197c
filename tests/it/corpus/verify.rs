//! Compares the findings of verification with the expected ones, for each file of the corpus.

use std::sync::Arc;

use gridfusion::ArrayOptions;
use gridfusion::verify::{Depth, Progress, Report};
use gridfusion_tet::verify as verify_tet;

use crate::support::open::open_tet;

use super::{corpus, relative, tet_files};
use crate::tiledb::libtiledb::corpus_cases;
use crate::verify::tet::{failed, findings};
use crate::verify::tiledb::assert_passes;

/// Files with findings: the checks that fail, none if all findings are warnings, and a part of a finding.
const FILES: &[(&str, &[&str], &str)] = &[
    (
        "corrupt_footer/v1_with_zone_refs.tet",
        &[],
        "zone maps, which a footer of version 1 does not have",
    ),
    ("corrupt_footer/zone_bad_json.tet", &["zone_maps"], "not zone maps"),
    (
        "corrupt_footer/zone_lies.tet",
        &["zone_maps_stale"],
        "\"a\", chunk [1]: the zone map has 0 NULLs and values from 0.0 to 1.0, the cells have 0 NULLs and values from 10.0 to 11.0",
    ),
    ("crafted/dim_names_wrong_rank.tet", &[], "1 dimension names for 2 axes"),
    ("crafted/dup_dataset_names.tet", &[], "an earlier dataset with the same name"),
    ("crafted/labels_len_mismatch.tet", &[], "2 labels for dimension \"t\", which has 6 elements"),
    // The file can be read, but no writer lets two chunks share bytes.
    (
        "crafted/overlapping_payloads.tet",
        &["payload_overlap"],
        "\"x\", chunk [1], byte 332: its payload overlaps that of chunk [0] of \"x\"",
    ),
    ("crafted/reject/codec_2.tet", &["chunk_index"], "codec 2"),
    (
        "crafted/reject/coord_labels_65.tet",
        &["footer_metadata"],
        "has 65 labels, the format allows 64",
    ),
    (
        "crafted/reject/dataset_id_oob.tet",
        &["chunk_dataset_ids", "dataset_tensor_bytes"],
        "a chunk of dataset 99, but there are 10",
    ),
    ("crafted/reject/dtype_11.tet", &["dataset_tensor_bytes"], "element type 11"),
    (
        "crafted/reject/duplicate_row.tet",
        &["chunk_coords"],
        "\"v\", chunk [0, 1]: more than one row",
    ),
    ("crafted/reject/flag_set_footer_missing.tet", &["parse"], "footer at byte 332"),
    ("crafted/reject/history_version_3.tet", &["parse"], "history version 3"),
    ("crafted/reject/index_version_2.tet", &["parse"], "index version 2"),
    ("crafted/reject/layout_version_2.tet", &["parse"], "layout version 2"),
    ("crafted/reject/partial_failed_convert.tet", &["chunk_payloads"], "payloads end at byte 376"),
    ("reference/plan.tet", &["parse"], "footer at byte 360: not the JSON expected here"),
    (
        "reference/reject/chunk_coord_out_of_grid.tet",
        &["dataset_tensor_bytes", "chunk_coords"],
        "chunk [99, 0], but there are [1, 2]",
    ),
    (
        "reference/reject/duplicate_payload_offset.tet",
        &["payload_offsets"],
        "\"a\", chunk [0, 1], byte 336: its payload begins at the same byte",
    ),
    (
        "reference/reject/inflated_stored_past_eof.tet",
        &["chunk_payloads", "dataset_tensor_bytes"],
        "a tile of 88 bytes, expected 16",
    ),
    (
        "reference/reject/overflow_tile_extent.tet",
        &["dataset_tensor_bytes", "chunk_coords"],
        "coordinate 1125899906842624 on axis 2 of 2",
    ),
    (
        "reference/reject/payload_offset_past_eof.tet",
        &["chunk_payloads"],
        "payloads end at byte 360",
    ),
    (
        "reference/reject/raw_stored_len_mismatch.tet",
        &["chunk_index"],
        "8 stored bytes of a raw tile of 16",
    ),
    ("reference/reject/truncated_payload.tet", &["chunk_payloads"], "payloads end at byte 344"),
    (
        "reference/reject/zero_chunk_shape.tet",
        &["dataset_tensor_bytes"],
        "chunk shape [0, 2] has a 0",
    ),
    ("reference/reject/zstd_garbage_payload.tet", &["chunk_decode"], "\"a\", chunk [0, 0]"),
];

async fn verify(location: &str) -> Report {
    match open_tet(location, &ArrayOptions::default(), &datafusion::prelude::SessionContext::new())
        .await
    {
        Ok(file) => verify_tet(&file, Depth::Cells, &Arc::new(Progress::default())).await,
        Err(error) => Report::from_error(location, Depth::Cells, &error),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs GRIDFUSION_CORPUS: the shared corpora"]
async fn every_file_is_verified_as_expected() {
    let files = corpus();
    let mut report = super::Report::default();
    let mut seen = 0;
    for path in tet_files(&files) {
        report.subject = relative(&files, &path);
        let verified = verify(path.to_str().unwrap()).await;
        let expected = FILES.iter().find(|(file, ..)| *file == report.subject);
        seen += usize::from(expected.is_some());
        let (checks, part) = expected.map_or((&[][..], ""), |(_, checks, part)| (*checks, *part));
        report.equal("failed checks", &format!("{:?}", failed(&verified)), &format!("{checks:?}"));
        let text = findings(&verified);
        match expected {
            Some(_) if !text.contains(part) => report.fail(&format!("missing: {part}\n{text}")),
            None if !text.is_empty() => report.fail(&text),
            _ => {}
        }
    }
    report.subject = "files with expectations".to_owned();
    report.equal("their number", &seen.to_string(), &FILES.len().to_string());
    report.finish();
}

#[tokio::test]
#[ignore = "needs GRIDFUSION_CORPUS: the shared corpora"]
async fn the_package_passes() {
    let files = corpus();
    let verified = verify(files.join("package/demo.tet.d").to_str().unwrap()).await;
    assert_eq!(failed(&verified), [""; 0], "{}", findings(&verified));
    let warned = verified.checks().iter().filter(|check| check.warnings() > 0);
    assert_eq!(warned.map(|check| check.name()).collect::<Vec<_>>(), ["staging"]);
    for check in ["zone_maps_stale", "zone_file", "secondary_indexes", "manifest_sha256"] {
        assert!(verified.check(check).is_some(), "{check}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs GRIDFUSION_CORPUS: the shared corpora"]
async fn arrays_pass() {
    let mut decoded = 0;
    for case in corpus_cases() {
        decoded += usize::from(assert_passes(&case).await);
    }
    assert!(decoded > 40, "{decoded}");
}
