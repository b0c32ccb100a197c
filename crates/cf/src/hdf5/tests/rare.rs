//! Rarely used parts of HDF5. `tests/data/hdf5/make_rare.py` writes the files.

use std::io::Read;

use flate2::read::GzDecoder;

use super::driver::{ExpectedCells, File, open};
use super::expected::compare;
use super::{file, folder};
use crate::hdf5::is_hdf5;
use crate::hierarchy::Attribute;
use gridfusion_core::ErrorKind;

/// The files that are small enough to be damaged at many places.
pub(super) const FILES: [&str; 9] = [
    "legal.h5",
    "deep.h5",
    "bits.h5",
    "sizes_2_4.h5",
    "sizes_4_8.h5",
    "sizes_8_2.h5",
    "shared_once.h5",
    "shared.h5",
    "image.h5",
];

/// Returns the bytes of a file that is stored compressed.
pub(super) fn unpacked(name: &str) -> Vec<u8> {
    let mut bytes = vec![];
    let packed = std::fs::File::open(folder().join(name)).unwrap();
    GzDecoder::new(packed).read_to_end(&mut bytes).unwrap();
    bytes
}

fn unreadable(file: &File) -> Vec<String> {
    let unreadable = &file.file.hierarchy().unreadable;
    assert!(unreadable.iter().all(|it| it.error.kind() == ErrorKind::Unsupported));
    let mut all: Vec<_> = unreadable.iter().map(|it| it.error.to_string()).collect();
    all.sort();
    all
}

#[test]
fn rare_files_hold_what_h5py_reads() {
    for name in FILES {
        compare(&folder().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        if name != "legal.h5" {
            assert!(unreadable(&file(name)).is_empty(), "{name}");
        }
    }
}

#[test]
fn groups_have_all_their_paths_and_other_links_are_named() {
    let file = file("legal.h5");
    for path in ["run42", "latest", "same"] {
        assert_eq!(file.cells(&format!("{path}/x")), file.cells("run42/x"), "{path}");
        assert!(file.find(&format!("{path}/inner/y")).is_some(), "{path}");
        assert!(file.file.hierarchy().groups.contains_key(path), "{path}");
    }
    // The root is not shown within itself.
    assert!(file.find("run42/up/a").is_none());
    let what = "a link of class 187, which only the program that defined it can follow";
    let mut expected =
        ["latest", "run42", "same"].map(|at| format!("dataset \"{at}/zzlink\": {what}")).to_vec();
    expected.push("dataset \"far\": a link to the file \"other.h5\"; open that file".to_owned());
    expected.sort();
    assert_eq!(unreadable(&file), expected);
}

#[test]
fn user_blocks_of_any_length_are_skipped() {
    for name in ["legal.h5", "image.h5", "sizes_2_4.h5"] {
        let bytes = std::fs::read(folder().join(name)).unwrap();
        let whole = open(bytes.clone()).unwrap();
        // The image lies behind a user block of its own.
        let start = if name == "image.h5" { 512 } else { 0 };
        for len in [512, 32 << 10, 64 << 10, 128 << 10, 4 << 20] {
            let moved = [&vec![7; len][..], &bytes[start..]].concat();
            assert_eq!(is_hdf5(&moved[..moved.len().min(64 << 10)]), len < 64 << 10);
            let file = open(moved).unwrap();
            assert_eq!(file.cells("a"), whole.cells("a"), "{name} {len}");
            assert!(file.rounds <= 6, "{} rounds", file.rounds);
        }
        assert!(open([&[7; 700][..], &bytes[start..]].concat()).is_err());
    }
}

#[test]
fn heaps_of_more_than_512_kib_are_read() {
    for (name, links, attributes) in [("many.h5.gz", 260, 260), ("many_compressed.h5.gz", 40, 0)] {
        let file = open(unpacked(name)).unwrap();
        let long = "x".repeat(3000);
        let first = file.variable("links/first");
        for at in 0..attributes {
            let value = &first.attributes[&format!("attribute {at:03} {long}")];
            assert_eq!(*value, Attribute::Integers(vec![at]));
        }
        assert_eq!(first.attributes.len() as i128, attributes + 2);
        for (name, len) in [("long", 5_000), ("longer", 100_000)] {
            assert_eq!(first.attributes[name].text().unwrap(), "y".repeat(len));
        }
        let cells = file.cells("links/first");
        assert_eq!(cells, ExpectedCells::Bytes([0_i64, 1, 2].map(i64::to_le_bytes).concat()));
        for at in 0..links {
            assert_eq!(file.cells(&format!("links/link {at:03} {long}")), cells, "{name} {at}");
        }
        assert_eq!(file.file.hierarchy().variables.len(), links + 1);
        assert!(unreadable(&file).is_empty());
    }
}

/// Without its units, the numbers of a variable would mean something else.
#[test]
fn a_variable_without_its_meaning_is_left_out() {
    let mut bytes = std::fs::read(folder().join("legal.h5")).unwrap();
    let at = bytes.windows(6).position(|it| it == b"units\0").unwrap();
    // The class of the type, which follows the name.
    bytes[at + 8] |= 15;
    let file = open(bytes).unwrap();
    let [lost] = &file
        .file
        .hierarchy()
        .unreadable
        .iter()
        .filter(|it| it.path == "b")
        .collect::<Vec<_>>()[..]
    else {
        panic!()
    };
    assert!(lost.error.to_string().contains("attribute \"units\""), "{}", lost.error);
    assert!(file.find("a").is_some() && file.find("b").is_none());
}
