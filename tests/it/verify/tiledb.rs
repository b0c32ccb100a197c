//! Verification of TileDB arrays: arrays of libtiledb and random dense arrays pass, and each kind of damage to a
//! dense array is found.

use std::path::Path;
use std::sync::Arc;

use datafusion::prelude::SessionContext;
use gridfusion::verify::{Depth, Progress, Report};
use gridfusion_tiledb::verify as verify_tiledb;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::support::open::open_tiledb;
use crate::support::tiledb_cases::{OF_ONE_WRITE, QUERIED, SMALL, random_array};
use crate::support::tiledb_writer::{
    FLOAT64, Files, Filters, INT32, TestArray, TestAttribute, TestDimension, TestFragment,
    TestSchema, TestStatistics, integer, put_in_folder,
};
use crate::tiledb::libtiledb::{Case, shipped_cases};
use crate::verify::tet::{failed, findings};

pub(crate) async fn verify(path: &str, depth: Depth) -> Report {
    let options = Default::default();
    verify_with(path, &options, depth).await
}

async fn verify_with(path: &str, options: &gridfusion::ArrayOptions, depth: Depth) -> Report {
    let ctx = SessionContext::new();
    let array = match open_tiledb(path, options, &ctx).await {
        Ok(array) => array,
        Err(error) => return Report::from_error(path, depth, &error),
    };
    let progress = Arc::new(Progress::default());
    let report = verify_tiledb(&array, depth, &progress).await;
    assert_eq!(progress.done(), progress.total(), "{path}");
    report
}

pub(super) async fn verify_files(files: &Files, depth: Depth) -> Report {
    let dir = tempfile::tempdir().unwrap();
    put_in_folder(files, dir.path());
    verify(dir.path().to_str().unwrap(), depth).await
}

/// Asserts that an array of libtiledb passes without findings; returns whether its tiles were decoded.
pub(crate) async fn assert_passes(case: &Case) -> bool {
    let report = verify_with(&case.path, &case.options(), Depth::Cells).await;
    assert_eq!(findings(&report), "", "{}", case.name);
    report.check("tile_decode").is_some_and(|check| check.detail() != "0 tiles")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn arrays_of_the_reference_pass() {
    let mut decoded = 0;
    for case in shipped_cases() {
        decoded += usize::from(assert_passes(&case).await);
    }
    assert!(decoded > 15, "{decoded}");
}

/// Statistics about NaN, infinities and sums that overflow are not reported as wrong.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_arrays_pass() {
    let mut rng = StdRng::seed_from_u64(17);
    for number in 0..150 {
        let profile = [SMALL, QUERIED, OF_ONE_WRITE][number % 3];
        let files = random_array(&mut rng, profile).files(&mut rng);
        let report = verify_files(&files, Depth::Cells).await;
        assert_eq!(failed(&report), [""; 0], "{number}: {}", findings(&report));
    }
}

/// An array of 4 × 6 cells in tiles of 2 × 3. It has an attribute of nullable integers and one of doubles.
fn array() -> TestArray {
    let dimension = |name: &str, high, extent| TestDimension {
        name: name.into(),
        code: INT32,
        domain: (0, high),
        extent,
    };
    let attribute = |name: &str, code, nullable, fill: &[u8]| TestAttribute {
        name: name.into(),
        code,
        values: Some(1),
        nullable,
        fill: fill.to_vec(),
        fill_valid: false,
        filters: Filters::None,
    };
    let schema = TestSchema {
        time: 1,
        dimensions: vec![dimension("y", 3, 2), dimension("x", 5, 3)],
        attributes: vec![
            attribute("a", INT32, true, &[0; 4]),
            attribute("b", FLOAT64, false, &[0; 8]),
        ],
        column_major: [false, true],
        current_domain: None,
        offsets: Filters::None,
        validity: Filters::None,
    };
    let integers = (0..24).map(|cell| (cell % 7 != 3).then(|| integer(INT32, cell * 10))).collect();
    let doubles =
        (0..24).map(|cell| Some((f64::from(cell) / 3.0).to_le_bytes().to_vec())).collect();
    let fragment = TestFragment {
        times: (5, 5),
        schema: 0,
        ranges: vec![(0, 3), (0, 5)],
        cells: vec![integers, doubles],
        statistics: TestStatistics::Right,
    };
    TestArray {
        schemas: vec![schema],
        fragments: vec![fragment],
        vacuums: vec![],
        commit_list: false,
    }
}

/// The files of [`array`].
fn files() -> Files {
    array().files(&mut StdRng::seed_from_u64(1))
}

/// The path of a file of the only fragment.
pub(super) fn path_of(files: &Files, name: &str) -> String {
    let found = files.keys().find(|path| path.ends_with(&format!("/{name}")));
    found.unwrap_or_else(|| panic!("{name} among {:?}", files.keys())).clone()
}

/// Changes the bytes of a file of the only fragment.
pub(super) fn edit(files: &mut Files, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
    let path = path_of(files, name);
    change(files.get_mut(&path).unwrap());
}

/// A damage of an array.
pub(super) type Damage = fn(&mut Files);
/// The checks that fail at `Depth::Structure`, and those at `Depth::Cells`.
pub(super) type Failing = [&'static [&'static str]; 2];

/// Asserts that an array has no findings until it is damaged, and then those of the damage: their checks, and
/// a part of their text.
pub(super) async fn assert_found(array: fn() -> Files, damages: &[(&str, Damage, Failing, &str)]) {
    assert_eq!(findings(&verify_files(&array(), Depth::Cells).await), "");
    for (what, damage, [structure, cells], part) in damages {
        let mut files = array();
        damage(&mut files);
        let report = verify_files(&files, Depth::Structure).await;
        assert_eq!(failed(&report), *structure, "{what}: {}", findings(&report));
        let report = verify_files(&files, Depth::Cells).await;
        assert_eq!(failed(&report), *cells, "{what}: {}", findings(&report));
        assert!(findings(&report).contains(part), "{what}: {}", findings(&report));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_damage_is_found_by_its_check() {
    let damages: &[(&str, Damage, Failing, &str)] = &[
        (
            "shorter",
            |it| edit(it, "a0.tdb", |bytes| bytes.truncate(bytes.len() - 1)),
            [&["fragment_files", "tile_offsets"], &["fragment_files", "tile_offsets"]],
            "\"a\", chunk [1, 1]",
        ),
        (
            "missing",
            |it| {
                let path = path_of(it, "a1.tdb");
                it.remove(&path);
            },
            [&["fragment_files", "tile_offsets"], &["fragment_files", "tile_offsets"]],
            "it does not exist",
        ),
        (
            "longer",
            |it| edit(it, "a1.tdb", |bytes| bytes.push(0)),
            [&["fragment_files"], &["fragment_files"]],
            "the fragment's footer gives",
        ),
        // Changes the length of the first chunk of the first tile.
        (
            "length",
            |it| edit(it, "a1.tdb", |bytes| bytes[8] ^= 1),
            [&[], &["tile_decode"]],
            "\"b\", chunk [0, 0]",
        ),
        (
            "value",
            |it| edit(it, "a0.tdb", |bytes| *bytes.last_mut().unwrap() ^= 0x40),
            [&[], &["tile_statistics_stale"]],
            "\"a\", chunk [1, 1]: the stored statistics have values from",
        ),
        (
            "NULL",
            |it| edit(it, "a0_validity.tdb", |bytes| *bytes.last_mut().unwrap() ^= 1),
            [&[], &["tile_statistics_stale"]],
            "NULLs, the tile has",
        ),
        (
            "metadata",
            |it| edit(it, "__fragment_metadata.tdb", |bytes| bytes.truncate(40)),
            [&["parse"], &["parse"]],
            "fragment footer",
        ),
    ];
    assert_found(files, damages).await;
}

/// Every integer that is not NULL is part of the stored sum.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_changed_integer_is_found() {
    let files = files();
    let path = path_of(&files, "a0.tdb");
    for cell in 0..24 {
        let mut other = array();
        let Some(value) = &mut other.fragments[0].cells[0][cell] else { continue };
        value[0] ^= 1;
        let other = other.files(&mut StdRng::seed_from_u64(1));
        let mut changed = files.clone();
        changed.insert(path.clone(), other[&path].clone());
        let report = verify_files(&changed, Depth::Cells).await;
        assert_eq!(
            failed(&report),
            ["tile_statistics_stale"],
            "cell {cell}: {}",
            findings(&report)
        );
        assert_eq!(report.check("tile_statistics_stale").unwrap().failures(), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_damage_does_harm() {
    verify_damaged(&files(), 600).await;
}

/// Verifies an array many times, each time with another damage of one of its files.
pub(super) async fn verify_damaged(files: &Files, rounds: usize) {
    let mut rng = StdRng::seed_from_u64(9);
    let dir = tempfile::tempdir().unwrap();
    put_in_folder(files, dir.path());
    let paths: Vec<&String> = files.keys().collect();
    for _ in 0..rounds {
        let path = paths[rng.random_range(0..paths.len())];
        let mut bytes = files[path].clone();
        if bytes.is_empty() {
            continue;
        }
        let at = rng.random_range(0..bytes.len());
        match rng.random_bool(0.2) {
            true => bytes.truncate(at),
            false => bytes[at] = rng.random(),
        }
        put(dir.path(), path, &bytes);
        verify(dir.path().to_str().unwrap(), Depth::Cells).await;
        put(dir.path(), path, &files[path]);
    }
}

fn put(folder: &Path, path: &str, bytes: &[u8]) {
    std::fs::write(folder.join(path), bytes).unwrap();
}
