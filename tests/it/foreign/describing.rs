//! Descriptions of stores and files, as `gridfusion info` prints them.

use std::path::Path;

use gridfusion::source::{Detail, Fact};
use gridfusion::{ArrayOpener, ArrayOptions};
use serde_json::Value;

use super::tables::fixed_set;
use crate::support::reducing;

async fn described(path: &Path) -> Value {
    let ctx = reducing(1, 8192);
    let opener = ArrayOpener::from_session(&ctx.state());
    let group = opener.group(path.to_str().unwrap(), None, &ArrayOptions::default()).await;
    let document = group.unwrap().describe(&Detail::default()).await.unwrap().document;
    assert!(matches!(document, Fact::Record(_)));
    serde_json::to_value(&document).unwrap()
}

/// The files with chunks below a folder: their number, and their bytes.
fn stored(folder: &Path) -> (u64, u64) {
    let (mut count, mut bytes) = (0, 0);
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if entry.path().is_dir() {
            let below = stored(&entry.path());
            (count, bytes) = (count + below.0, bytes + below.1);
        } else if name != "zarr.json" && !name.starts_with('.') {
            (count, bytes) = (count + 1, bytes + entry.metadata().unwrap().len());
        }
    }
    (count, bytes)
}

/// The stored bytes of an array are those of the files in its folder. Indexes of shards do not count.
#[tokio::test]
async fn stored_bytes_of_zarr_are_those_of_its_files() {
    let (mut whole, mut shards) = (0, 0);
    for entry in std::fs::read_dir(fixed_set()).unwrap().map(Result::unwrap) {
        if !entry.path().join(".zgroup").exists() && !entry.path().join("zarr.json").exists() {
            continue;
        }
        let document = described(&entry.path()).await;
        for dataset in document["datasets"].as_array().unwrap() {
            let name = dataset["name"].as_str().unwrap();
            let (count, bytes) = stored(&entry.path().join(name));
            let (found, what) = (dataset["stored_bytes"].as_u64().unwrap(), entry.path());
            if dataset["codec"].as_str().unwrap().contains("in shards of") {
                assert!(found < bytes || bytes == 0, "{what:?} {name}: {found} of {bytes}");
                shards += 1;
            } else {
                assert_eq!((&dataset["stored_chunks"], found), (&count.into(), bytes), "{name}");
                whole += 1;
            }
        }
    }
    assert!(whole > 100 && shards > 5, "{whole} arrays, and {shards} with shards");
}

/// Classic files store each cell once, whatever lies between records.
#[tokio::test]
async fn stored_bytes_of_classic_files_are_those_of_their_cells() {
    let mut checked = 0;
    for entry in std::fs::read_dir(fixed_set()).unwrap().map(Result::unwrap) {
        if !std::fs::read(entry.path()).unwrap_or_default().starts_with(b"CDF") {
            continue;
        }
        let document = described(&entry.path()).await;
        let bytes_of = |kind: &str| -> u64 {
            let last = kind.rsplit_once("of ").map_or(kind, |(_, width)| width);
            let digits: String = last.chars().filter(char::is_ascii_digit).collect();
            let number: u64 = digits.parse().unwrap();
            if kind.starts_with("text") { number } else { number / 8 }
        };
        for dataset in document["datasets"].as_array().unwrap() {
            let shape = dataset["shape"].as_array().unwrap().iter();
            let cells: u64 = shape.map(|len| len.as_u64().unwrap()).product();
            let expected = cells * bytes_of(dataset["element_type"].as_str().unwrap());
            assert_eq!(dataset["stored_bytes"], expected, "{dataset}");
            assert_eq!(dataset["raw_bytes"], expected, "{dataset}");
            checked += 1;
        }
    }
    assert!(checked > 50, "{checked} variables");
}
