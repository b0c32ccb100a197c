//! Files in which few objects have many names. `tests/data/hdf5/make_names.py` writes them.

use std::sync::Arc;

use super::driver::{ExpectedCells, File, drive, open};
use super::rare::unpacked;
use super::{file, folder};
use crate::hdf5::OpenHdf5;
use gridfusion_core::ErrorKind;

#[test]
fn an_object_of_many_names_is_kept_once() {
    for name in ["names.h5.gz", "names_1.h5.gz"] {
        let bytes = unpacked(name);
        let len = bytes.len() as u64;
        let file = open(bytes).unwrap();
        let hierarchy = file.file.hierarchy();
        // The dataset itself, its links, and each path of the group around it.
        assert_eq!(hierarchy.variables.len(), 1 + 399 + 1 + 99, "{name}");
        assert_eq!(hierarchy.groups.len(), 3 + 99, "{name}");
        let first = &hierarchy.variables[0].attributes;
        assert_eq!(first.len(), 100, "{name}");
        assert!(hierarchy.variables.iter().all(|it| Arc::ptr_eq(&it.attributes, first)), "{name}");
        let group = &hierarchy.groups["deep"];
        let aliases = hierarchy.groups.iter().filter(|(path, _)| path.contains("group_"));
        assert!(aliases.clone().all(|(_, it)| Arc::ptr_eq(it, group)), "{name}");
        assert_eq!((aliases.count(), group.len()), (99, 100), "{name}");
        let stored = &file.file.0.stored;
        assert!(stored.iter().all(|it| Arc::ptr_eq(it, &stored[0])), "{name}");
        // 400 copies of the attributes would have 8 MB.
        let kept = file.file.kept_bytes();
        assert!(kept < 400_000, "{name}: {kept} bytes of {len}");
        assert!(file.fetched <= len, "{name}: {} bytes of {len}", file.fetched);
        assert_eq!(file.cells("links/link_398"), file.cells("v"), "{name}");
    }
}

#[test]
fn metadata_has_a_limit() {
    let bytes = bytes::Bytes::from(std::fs::read(folder().join("diamonds.h5")).unwrap());
    let len = bytes.len() as u64;
    let kept = drive(OpenHdf5::new(len), &bytes).unwrap().0.kept_bytes();
    assert!(kept > 1 << 20);
    drive(OpenHdf5::new(len).with_metadata_limit(kept), &bytes).unwrap();
    let error = drive(OpenHdf5::new(len).with_metadata_limit(kept / 2), &bytes).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("metadata_limit"), "{error}");
}

fn only_cell(file: &File, path: &str) -> i64 {
    let ExpectedCells::Bytes(bytes) = file.cells(path) else { panic!("{path}") };
    i64::from_le_bytes(bytes.try_into().unwrap())
}

/// 2^30 paths lead to a dataset, and the root is in each group.
#[test]
fn groups_of_exponentially_many_paths_end() {
    let file = file("diamonds.h5");
    let hierarchy = file.file.hierarchy();
    assert!(hierarchy.groups.len() < 1 << 18 && hierarchy.unreadable.len() == 1);
    let first = vec!["a"; 30].join("/");
    assert!(hierarchy.groups.contains_key(&first));
    assert_eq!(only_cell(&file, &format!("{first}/x")), 7);
}

/// Each of 14 links names the one before 20 times, so that 20^14 links are followed one by one.
#[test]
fn links_that_name_links_end() {
    let file = file("soft.h5");
    assert_eq!(only_cell(&file, "y"), 7);
    assert_eq!(only_cell(&file, "x"), 7);
}
