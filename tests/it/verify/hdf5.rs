//! Verification of HDF5 files: an index that lost chunks is found, with and without decoding.

use std::sync::Arc;

use datafusion::prelude::SessionContext;
use gridfusion::verify::{Depth, Progress, Report};
use gridfusion::{ArrayOpener, ArrayOptions};

use crate::support::shipped;
use crate::verify::tet::{failed, findings};

async fn verify(file: &[u8], depth: Depth) -> Report {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trees.h5");
    std::fs::write(&path, file).unwrap();
    let opener = ArrayOpener::from_session(&SessionContext::new().state());
    let options = ArrayOptions::default();
    let group = opener.group(path.to_str().unwrap(), None, &options).await.unwrap();
    let mut reports = group.verify(depth, &Arc::new(Progress::default())).await;
    reports.remove(0).1
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_lost_an_entry_are_found() {
    let whole = std::fs::read(shipped("crates/cf/tests/data/hdf5/trees.h5")).unwrap();
    for depth in [Depth::Structure, Depth::Cells] {
        let report = verify(&whole, depth).await;
        assert!(report.is_ok(), "{}", findings(&report));
        // All datasets together.
        assert_eq!(report.check("chunk_index").unwrap().detail(), "198 chunks");
    }
    // The first leaf of a tree has a neighbour on its right only.
    let is_leaf = |at: &usize| {
        let node = &whole[*at..];
        node.starts_with(b"TREE\x01\0") && node[8..16] == [0xff; 8] && node[16..24] != [0xff; 8]
    };
    let leaves: Vec<usize> = (0..whole.len() - 24).filter(is_leaf).collect();
    let mut found = 0;
    for at in leaves {
        let mut damaged = whole.clone();
        damaged[at + 6] -= 1;
        let report = verify(&damaged, Depth::Structure).await;
        found += usize::from(failed(&report).contains(&"chunk_index"));
    }
    assert!(found >= 8, "{found}");
}
