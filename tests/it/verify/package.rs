//! Verification of packages: the files next to `packed.tet`, and the other generations.

use std::path::Path;
use std::sync::Arc;

use gridfusion::ArrayOptions;
use gridfusion::io::LocalFolder;
use gridfusion::verify::{Depth, Progress, Report};
use gridfusion_tet::{TetReader, verify as verify_tet};

use crate::support::open::open_tet;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::{I32, Layout, TestDataset, tet_bytes};
use crate::verify::tet::{failed, findings};

const CURRENT: &str = "generations/00000002";

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn packed(generation: i32) -> Vec<u8> {
    let data = (generation..generation + 4).flat_map(i32::to_le_bytes).collect();
    tet_bytes(&[TestDataset::new("v", I32, &[4], &[4], data)], &Layout::default())
}

fn zones(generation: i32, sha: &str) -> String {
    let hex = |value: i32| -> String {
        value.to_le_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
    };
    let chunk = json!({"dataset_id": 0, "chunk_index": [0], "element_count": 4, "null_count": 0,
        "min_le": hex(generation), "max_le": hex(generation + 3)});
    json!({"version": 1, "generation": generation, "packed_sha256": sha, "chunks": [chunk]})
        .to_string()
}

/// A package of two generations, of which the second is current.
fn package(root: &Path) {
    for generation in [1, 2] {
        let folder = root.join(format!("generations/{generation:08}"));
        std::fs::create_dir_all(&folder).unwrap();
        let packed = packed(generation);
        let sha = hash(&packed);
        let zones = zones(generation, &sha);
        let index =
            json!({"version": 1, "generation": generation, "packed_sha256": sha, "indexes": []});
        let index = index.to_string();
        let manifest = json!({
            "generation": generation, "protocol_version": 2, "part_ids": [],
            "packed_byte_len": packed.len(), "packed_sha256": sha,
            "zone_maps": "required", "zone_maps_sha256": hash(zones.as_bytes()),
            "secondary_indexes": "present", "secondary_indexes_sha256": hash(index.as_bytes()),
        });
        std::fs::write(folder.join("packed.tet"), packed).unwrap();
        std::fs::write(folder.join("ZONE.json"), zones).unwrap();
        std::fs::write(folder.join("INDEX.json"), index).unwrap();
        std::fs::write(folder.join("MANIFEST.json"), manifest.to_string()).unwrap();
    }
    std::fs::write(root.join("PROTOCOL"), r#"{"protocol_version":2}"#).unwrap();
    std::fs::write(root.join("CURRENT"), "2\n").unwrap();
}

async fn verify(root: &Path, depth: Depth) -> Report {
    let location = root.to_str().unwrap();
    let opened =
        open_tet(location, &ArrayOptions::default(), &datafusion::prelude::SessionContext::new())
            .await;
    let progress = Arc::new(Progress::default());
    let report = match opened {
        Ok(file) => verify_tet(&file, depth, &progress).await,
        Err(error) => Report::from_error(location, depth, &error),
    };
    assert_eq!(progress.done(), progress.total());
    report
}

#[tokio::test]
async fn good_packages_pass() {
    let dir = tempfile::tempdir().unwrap();
    package(dir.path());
    for depth in [Depth::Structure, Depth::Cells] {
        let report = verify(dir.path(), depth).await;
        assert_eq!(findings(&report), "");
        for check in ["protocol", "current_manifest", "zone_file", "generation_packed", "staging"] {
            assert!(report.check(check).is_some(), "{check}");
        }
        // The file has no zone maps, so those of `ZONE.json` are checked.
        assert_eq!(report.check("zone_maps_stale").is_some(), depth == Depth::Cells);
    }
    let folder = Arc::new(LocalFolder::open(dir.path(), false).unwrap());
    let file = TetReader::open_package(folder, Some(1)).await.unwrap();
    let report = verify_tet(&file, Depth::Cells, &Arc::default()).await;
    assert_eq!(findings(&report), "");
}

/// Sets a member in the manifest of the current generation.
fn manifest(root: &Path, key: &str, value: Value) {
    let path = root.join(CURRENT).join("MANIFEST.json");
    let mut json: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    json[key] = value;
    std::fs::write(path, json.to_string()).unwrap();
}

#[tokio::test]
async fn each_damage_is_found_by_its_check() {
    type Damage = fn(&Path);
    let damages: &[(&str, Damage, &[&str], &str)] = &[
        (
            "protocol",
            |it| std::fs::write(it.join("PROTOCOL"), "{\"protocol_version\":3}").unwrap(),
            &["parse"],
            "protocol version 3",
        ),
        (
            "current",
            |it| std::fs::write(it.join("CURRENT"), "9").unwrap(),
            &["parse"],
            "generation 9",
        ),
        (
            "no manifest",
            |it| std::fs::remove_file(it.join(CURRENT).join("MANIFEST.json")).unwrap(),
            &["current_manifest"],
            "there is no MANIFEST.json",
        ),
        (
            "manifest",
            |it| std::fs::write(it.join(CURRENT).join("MANIFEST.json"), "{").unwrap(),
            &["current_manifest"],
            "not the JSON expected here",
        ),
        (
            "generation",
            |it| manifest(it, "generation", 7.into()),
            &["current_manifest"],
            "\"generation\" is 7, the number of the folder is 2",
        ),
        (
            "length",
            |it| manifest(it, "packed_byte_len", 7.into()),
            &["current_manifest"],
            "\"packed_byte_len\" is 7, the length of the file is",
        ),
        (
            "no zones",
            |it| std::fs::remove_file(it.join(CURRENT).join("ZONE.json")).unwrap(),
            &["zone_file"],
            "there is no ZONE.json",
        ),
        (
            "zones of another hash",
            |it| manifest(it, "zone_maps_sha256", "00".into()),
            &["zone_file"],
            "the manifest has 00",
        ),
        (
            "zones of another kind",
            |it| manifest(it, "zone_maps", "maybe".into()),
            &["zone_file"],
            "\"maybe\", expected \"required\"",
        ),
        (
            "index",
            |it| std::fs::write(it.join(CURRENT).join("INDEX.json"), "{}").unwrap(),
            &["secondary_indexes"],
            "its SHA-256 is",
        ),
        (
            "index that is not there",
            |it| manifest(it, "secondary_indexes", "omitted".into()),
            &["secondary_indexes"],
            "the manifest lists it as omitted",
        ),
        (
            "semantics",
            |it| manifest(it, "semantics", "present".into()),
            &["semantics"],
            "the manifest lists this file, but it is missing",
        ),
        (
            "another generation",
            |it| {
                let path = it.join("generations/00000001/packed.tet");
                let bytes = std::fs::read(&path).unwrap();
                std::fs::write(path, &bytes[..bytes.len() - 1]).unwrap();
            },
            &["generation_packed"],
            "generations/00000001",
        ),
    ];
    for (what, damage, checks, part) in damages {
        let dir = tempfile::tempdir().unwrap();
        package(dir.path());
        damage(dir.path());
        let report = verify(dir.path(), Depth::Structure).await;
        assert_eq!(failed(&report), *checks, "{what}: {}", findings(&report));
        assert!(findings(&report).contains(part), "{what}: {}", findings(&report));
    }
}

#[tokio::test]
async fn hashes_and_zone_maps_of_the_cells_are_found_with_cells() {
    let dir = tempfile::tempdir().unwrap();
    package(dir.path());
    let path = dir.path().join(CURRENT).join("packed.tet");
    let mut bytes = std::fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(path, bytes).unwrap();
    assert!(verify(dir.path(), Depth::Structure).await.is_ok());
    let report = verify(dir.path(), Depth::Cells).await;
    assert_eq!(failed(&report), ["zone_maps_stale", "manifest_sha256"], "{}", findings(&report));
}

#[tokio::test]
async fn what_writers_left_is_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    package(dir.path());
    for folder in
        ["publishing/00000003", "staging/part", "generations/odd", "generations/quarantine-7"]
    {
        std::fs::create_dir_all(dir.path().join(folder)).unwrap();
    }
    std::fs::write(dir.path().join("generations/README"), "not a generation").unwrap();
    let report = verify(dir.path(), Depth::Structure).await;
    assert!(report.is_ok(), "{}", findings(&report));
    assert_eq!(report.check("generations").unwrap().detail(), "4 folders");
    let warned = report.checks().iter().filter(|check| check.warnings() > 0);
    let warned: Vec<&str> = warned.map(|check| check.name()).collect();
    assert_eq!(warned, ["generations", "publishing", "staging"]);
}
