//! `gridfusion verify`.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{NOT_TET, Outcome, STATIONS, gridfusion, run, tiledb};

/// Runs `verify`. Replaces the path in the text, which differs between machines.
fn verify(path: &str, more: &[&str], code: i32) -> String {
    let outcome = run(&[&["verify", path][..], more].concat());
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(code), ""), "{path}: {outcome:?}");
    outcome.stdout.replace(path, "PATH")
}

fn document(path: &str, more: &[&str], code: i32) -> Value {
    serde_json::from_str(&verify(path, &[&["--json"], more].concat(), code)).unwrap()
}

/// Writes the example with the damage that `docs/verify.md` describes.
fn damaged(folder: &Path) -> String {
    let mut bytes = fs::read(STATIONS).unwrap();
    for (place, byte) in [(920, 0o11), (4906, 0), (51987, 0o77)] {
        bytes[place] = byte;
    }
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
fn a_damaged_file_as_the_documentation_shows_it() {
    let documented = include_str!("../../../docs/verify.md");
    let dir = tempfile::tempdir().unwrap();
    let path = damaged(dir.path());
    let text = verify(&path, &["--deep"], 1).replace("PATH", "damaged.tet");
    let command = "$ gridfusion verify damaged.tet --deep || echo \"exit status $?\"";
    let block = format!("{command}\n{text}exit status 1\n");
    assert!(documented.contains(&block), "{text}");
    let text = verify(&path, &[], 1);
    let verdict = "FAILED: 2 of 16 checks; cells were not read, --deep reads them\n";
    assert!(text.ends_with(verdict), "{text}");
}

#[test]
fn a_document_for_programs() {
    let good = document(STATIONS, &[], 0);
    assert_eq!((&good["status"], &good["deep"]), (&"ok".into(), &false.into()));
    let dir = tempfile::tempdir().unwrap();
    let path = damaged(dir.path());
    let document = document(&path, &["--deep"], 1);
    assert_eq!((&document["status"], &document["deep"]), (&"failed".into(), &true.into()));
    let checks = document["subjects"][0]["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["check"] == "chunk_decode").unwrap();
    assert_eq!((&check["failures"], &check["left_out"]), (&1.into(), &0.into()));
    let finding = json!({
        "status": "failed", "file": null, "region": "chunk payload", "offset": 4906,
        "dataset": "temperature", "chunk": [1, 0], "message": check["findings"][0]["message"],
    });
    assert_eq!(check["findings"], json!([finding]));
}

#[test]
fn what_cannot_be_opened_is_a_failure() {
    for (path, check) in [(NOT_TET, "open"), ("no/such/file.tet", "open"), (".", "open")] {
        let text = verify(path, &[], 1);
        assert!(text.contains(&format!("  FAILED   {check}\n")), "{text}");
        assert_eq!(document(path, &[], 1)["subjects"][0]["checks"][0]["check"], check);
    }
}

#[test]
fn arrays_and_groups_of_them() {
    let text = verify(&tiledb("overlap"), &["--deep"], 0);
    assert!(text.contains("  ok       tile_decode") && text.contains("OK: 9 checks\n"), "{text}");
    let text = verify(&tiledb("weather"), &["--deep"], 0);
    assert!(text.contains("OK: ") && text.contains(" checks of "), "{text}");
    let text = verify(&tiledb("sparse"), &[], 0);
    assert!(text.contains("  ok       rtree") && text.contains("OK: 9 checks;"), "{text}");
    let text = verify(&tiledb("sparse"), &["--deep"], 0);
    assert!(text.contains("  ok       cell_order") && text.contains("OK: 15 checks\n"), "{text}");
    let encrypted = verify(&tiledb("encrypted"), &[], 1);
    assert!(encrypted.contains("the array is encrypted"), "{encrypted}");
}

/// A group or array that cannot be read is a failure, because its cells cannot be verified.
#[test]
fn groups_that_cannot_be_read_are_failures() {
    let dir = tempfile::tempdir().unwrap();
    let bad = dir.path().join("bad/__group");
    fs::create_dir_all(&bad).unwrap();
    fs::write(bad.join(format!("__1_1_{}_2", "0".repeat(32))), "garbage").unwrap();
    fs::create_dir_all(dir.path().join("empty/__schema")).unwrap();
    let text = verify(dir.path().to_str().unwrap(), &[], 1);
    assert!(text.contains("PATH/bad\n  FAILED   parse\n"), "{text}");
    assert!(text.contains("PATH/empty\n  FAILED "), "{text}");
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
