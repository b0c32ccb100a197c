//! `gridfusion verify`.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{NOT_TET, Outcome, STATIONS, gridfusion, run, tiledb};

/// Runs `verify`; without the path in the text, which is not the same everywhere.
fn verify(path: &str, more: &[&str], code: i32) -> String {
    let outcome = run(&[&["verify", path][..], more].concat());
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(code), ""), "{path}: {outcome:?}");
    outcome.stdout.replace(path, "PATH")
}

fn json(path: &str, more: &[&str], code: i32) -> Value {
    serde_json::from_str(&verify(path, &[&["--json"], more].concat(), code)).unwrap()
}

/// The example with a payload of `temperature` that two chunks claim, and a digit of a zone map that is
/// another.
fn damaged(folder: &Path) -> String {
    let mut bytes = fs::read(STATIONS).unwrap();
    let place = |bytes: &[u8], text: &[u8]| {
        bytes.windows(text.len()).position(|window| window == text).unwrap()
    };
    let rows = place(&bytes, b"TIDX") + 32;
    let first: [u8; 8] = bytes[rows + 72..rows + 80].try_into().unwrap();
    bytes[rows + 104 + 72..rows + 104 + 80].copy_from_slice(&first);
    let digit = place(&bytes, b"\"min_le\"") + 10;
    bytes[digit] = if bytes[digit] == b'0' { b'1' } else { b'0' };
    let path = folder.join("damaged.tet");
    fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_good_file() {
    let expected = "\
PATH
  ok       superblock            layout version 1
  ok       dataset_directory     4 datasets
  ok       chunk_index           20 rows
  ok       chunk_payloads
  ok       chunk_dataset_ids
  ok       dataset_tensor_bytes
  ok       chunk_coords
  ok       unused_coords
  ok       payload_offsets
  ok       payload_overlap
  ok       payload_order
  ok       footer                version 2
  ok       footer_metadata
  ok       labels
  ok       attributes
  ok       zone_maps             20 maps

OK: 16 checks; cells were not read, --deep reads them
";
    assert_eq!(verify(STATIONS, &[], 0), expected);
    let deep = verify(STATIONS, &["--deep"], 0);
    assert!(deep.contains("  ok       chunk_decode          20 chunks\n"), "{deep}");
    assert!(deep.ends_with("\n\nOK: 18 checks\n"), "{deep}");
}

#[test]
fn a_damaged_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = damaged(dir.path());
    let text = verify(&path, &[], 1);
    let lines = "\
  FAILED   payload_offsets
             \"temperature\", chunk [1, 0], byte 2368: its payload is at the same place as that of chunk [0, 0] of \"temperature\"
";
    assert!(text.contains(lines), "{text}");
    let verdict = "FAILED: 1 of 16 checks, 1 warning; cells were not read, --deep reads them\n";
    assert!(text.ends_with(verdict), "{text}");
    let text = verify(&path, &["--deep"], 1);
    assert!(text.contains("  FAILED   zone_maps_stale\n"), "{text}");
}

#[test]
fn a_document_for_programs() {
    let good = json(STATIONS, &[], 0);
    assert_eq!((&good["status"], &good["deep"]), (&"ok".into(), &false.into()));
    let dir = tempfile::tempdir().unwrap();
    let path = damaged(dir.path());
    let document = json(&path, &["--deep"], 1);
    assert_eq!((&document["status"], &document["deep"]), (&"failed".into(), &true.into()));
    let checks = document["subjects"][0]["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["check"] == "payload_offsets").unwrap();
    assert_eq!((&check["failures"], &check["left_out"]), (&1.into(), &0.into()));
    let finding = &check["findings"][0];
    assert_eq!(finding["status"], "failed");
    assert_eq!(finding["dataset"], "temperature");
    assert_eq!(finding["chunk"], serde_json::json!([1, 0]));
    assert!(finding["offset"].is_u64() && finding["file"].is_null(), "{finding}");
}

#[test]
fn what_cannot_be_opened_is_a_failure() {
    for (path, check) in [(NOT_TET, "parse"), ("no/such/file.tet", "open"), (".", "open")] {
        let text = verify(path, &[], 1);
        assert!(text.contains(&format!("  FAILED   {check}\n")), "{text}");
        assert_eq!(json(path, &[], 1)["subjects"][0]["checks"][0]["check"], check);
    }
}

#[test]
fn arrays_and_groups_of_them() {
    let text = verify(&tiledb("overlap"), &["--deep"], 0);
    assert!(text.contains("  ok       tile_decode") && text.contains("OK: 9 checks\n"), "{text}");
    let text = verify(&tiledb("weather"), &["--deep"], 0);
    assert!(text.contains("OK: ") && text.contains(" checks of "), "{text}");
    let text = verify(&tiledb("sparse"), &[], 0);
    assert!(text.contains("the tiles of sparse arrays are not looked at"), "{text}");
    let encrypted = verify(&tiledb("encrypted"), &[], 1);
    assert!(encrypted.contains("the array is encrypted"), "{encrypted}");
}

#[test]
fn who_reads_no_further_still_gets_the_verdict() {
    for (path, code) in [(STATIONS, 0), (NOT_TET, 1)] {
        let mut child = gridfusion(&["verify", path]).spawn().unwrap();
        drop(child.stdout.take());
        let outcome: Outcome = child.wait_with_output().unwrap().into();
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(code), ""));
    }
}
