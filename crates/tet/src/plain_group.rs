//! Tests the defaults of `ArrayGroup` with a group that overrides none of them, over files with known contents.

use std::fs;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use url::Url;

use gridfusion_core::io::RemoteStore;
use gridfusion_core::options::ResolvedOptions;
use gridfusion_core::source::{
    ArrayGroup, Description, Detail, Formats, OpenedArray, Place, Stores,
};
use gridfusion_core::verify::{Depth, Finding, Progress, Report};
use gridfusion_core::{Error, ErrorKind, Result};

const STATIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/stations.tet");

/// A group with the required methods only, and the variables of the group below it.
#[derive(Debug)]
struct Plain {
    names: Vec<String>,
    group: Arc<dyn ArrayGroup>,
}

#[async_trait]
impl ArrayGroup for Plain {
    fn location(&self) -> &str {
        self.group.location()
    }

    fn names(&self) -> Vec<String> {
        self.names.clone()
    }

    async fn arrays(&self, names: &[String]) -> Result<Vec<OpenedArray>> {
        self.group.arrays(names).await
    }

    async fn variables(&self) -> Result<Vec<OpenedArray>> {
        self.group.variables().await
    }
}

#[derive(Debug)]
struct NoStores;

impl Stores for NoStores {
    fn store(&self, url: &Url) -> Result<RemoteStore> {
        Err(Error::usage(format!("no store for {url}")))
    }
}

async fn open(path: &str, names: &[&str]) -> Plain {
    let (formats, place) =
        (Formats::new(vec![Arc::new(crate::Tet)]), Place::new(path, Arc::new(NoStores)).unwrap());
    let format = formats.get("tet").unwrap();
    let group = formats.open(format, &place, &ResolvedOptions::default()).await.unwrap();
    Plain { names: names.iter().map(|&name| name.to_owned()).collect(), group }
}

async fn describe(names: &[&str], detail: &Detail) -> Result<Description> {
    open(STATIONS, names).await.describe(detail).await
}

/// Verifies a copy of the example in which some bytes were changed.
async fn verify(changes: &[(usize, u8)], names: &[&str], depth: Depth) -> Report {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.tet");
    let mut bytes = fs::read(STATIONS).unwrap();
    changes.iter().for_each(|&(at, byte)| bytes[at] = byte);
    fs::write(&path, bytes).unwrap();
    let group = open(path.to_str().unwrap(), names).await;
    let progress = Arc::new(Progress::default());
    let [(location, report)] = group.verify(depth, &progress).await.try_into().unwrap();
    assert_eq!((location.as_str(), progress.done()), (group.location(), progress.total()));
    report
}

fn findings<'a>(report: &'a Report, check: &str) -> &'a [Finding] {
    report.check(check).unwrap().findings()
}

#[tokio::test]
async fn arrays_are_described() {
    let found = describe(&["elevation", "temperature"], &Detail::default()).await.unwrap();
    let document: Value = serde_json::to_value(&found.document).unwrap();
    let station = json!({
        "name": "station", "length": 6, "type": "Utf8View", "first": "Bergen", "last": "Tromso",
        "units": null,
    });
    let expected = json!({
        "name": "elevation", "shape": [6], "chunk_shape": [6], "chunks": 1,
        "dimensions": [station],
        "columns": [
            {"name": "station", "type": "Utf8View", "nullable": false},
            {"name": "value", "type": "Float32", "nullable": true},
        ],
    });
    assert_eq!(document["arrays"][0], expected);
    let temperature = &document["arrays"][1];
    assert_eq!((&temperature["chunks"], &temperature["shape"]), (&json!(6), &json!([1440, 6])));
    assert_eq!(temperature["dimensions"][0]["last"], "2024-02-29T23:00:00");
    assert_eq!(document["format"], "array_group");
    assert!(document.get("metadata").is_none());
    let [page] = &found.pages[..] else { panic!("{found:?}") };
    assert_eq!(
        (page.title.as_str(), page.lines.as_slice()),
        (STATIONS, &["2 arrays".to_owned()][..])
    );
    let rows = |table: usize| -> Vec<Vec<&str>> {
        let rows = page.tables[table].rows.iter();
        rows.map(|row| row.iter().map(|cell| cell.as_deref().unwrap_or("-")).collect()).collect()
    };
    assert_eq!(rows(0)[1], ["temperature", "1440 × 6", "6 of 240 × 6", "time, station"]);
    assert_eq!(rows(1)[0], ["value", "elevation", "Float32", "yes"]);
    // Both arrays share the dimension `station`, so there are two dimensions.
    assert_eq!(rows(2).len(), 2);
}

#[tokio::test]
async fn attributes_of_columns_on_request() {
    let found = describe(&["elevation"], &Detail::default().with_metadata(true)).await.unwrap();
    let document: Value = serde_json::to_value(&found.document).unwrap();
    let units = json!({"dataset": "elevation.value", "key": "units", "value": "m"});
    assert!(document["metadata"].as_array().unwrap().contains(&units), "{document}");
    assert_eq!(found.pages[0].tables.len(), 4);
}

#[tokio::test]
async fn an_array_that_cannot_be_opened_is_an_error_alone_and_a_warning_among_others() {
    let error = describe(&["nowhere"], &Detail::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    let found = describe(&["nowhere", "elevation"], &Detail::default()).await.unwrap();
    let [warning] = &found.pages[0].warnings[..] else { panic!("{found:?}") };
    assert!(warning.starts_with("array \"nowhere\": "), "{warning}");
    assert_eq!(found.pages[0].tables[0].rows.len(), 1);
}

#[tokio::test]
async fn what_cannot_be_located_or_decoded_is_found() {
    let names = ["elevation", "temperature", "precipitation"];
    let report = verify(&[], &names, Depth::Cells).await;
    assert!(report.is_ok(), "{report:?}");
    assert_eq!(report.check("chunk_decode").unwrap().detail(), "19 chunks");
    // Damages the payload of a chunk of temperature, and the coordinates in the index row of a chunk of
    // precipitation.
    let changes = [(4906, 0), (920, 9)];
    let report = verify(&changes, &names, Depth::Cells).await;
    for (check, array, chunk) in
        [("chunk_decode", "temperature", [1, 0]), ("chunk_locations", "precipitation", [0, 0])]
    {
        let [finding] = findings(&report, check) else { panic!("{report:?}") };
        let place = (finding.dataset.as_deref(), finding.chunk.as_deref());
        assert_eq!(place, (Some(array), Some(&chunk[..])), "{finding}");
    }
    let report = verify(&changes, &names, Depth::Structure).await;
    assert!(report.is_ok() && report.checks().len() == 1, "{report:?}");
}

#[tokio::test]
async fn an_array_that_cannot_be_opened_fails() {
    let report = verify(&[], &["nowhere", "elevation"], Depth::Cells).await;
    let [finding] = findings(&report, "arrays") else { panic!("{report:?}") };
    assert_eq!(finding.dataset.as_deref(), Some("nowhere"));
    assert_eq!(report.check("arrays").unwrap().detail(), "1 array");
    assert!(findings(&report, "chunk_decode").is_empty());
}
