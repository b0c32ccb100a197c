//! Damaged and hostile sparse TileDB arrays: files that are cut off, changed or missing, impossible
//! numbers, and metadata that contradicts itself.
//!
//! The rule is that of `hostile.rs`: no panic, no hang, no huge allocation, and every error names its file.
//! A query of all rows needs all bytes of the files that it opens, because no cell hides the tile of
//! another.

use std::collections::BTreeSet;
use std::path::Path;

use gridfusion::ArrayOptions;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::support::sparse_writer::{
    Condition, Deletion, Operator, ROW_MAJOR, Row, SparseArray, SparseDimension, SparseFragment,
    SparseSchema, State,
};
use crate::support::tiledb_writer::{
    ASCII, Files, Filters, INT32, TestAttribute, TestStatistics, UTF8, generic_tile, integer,
    text32, words,
};
use crate::support::{rows_of, shipped};
use crate::tiledb::hostile::{Reader, assert_grew_little, is_list, peak_memory};
use crate::tiledb::memory_folder::{NAME, files_below};

/// The most bytes of a file that are cut off or changed one by one. Only builds with debug assertions take a
/// sample of them.
const MOST_PLACES: usize = if cfg!(debug_assertions) { 20 } else { 1 << 20 };
/// The fewest bytes of all files together.
const FEWEST_PLACES: usize = if cfg!(debug_assertions) { 400 } else { 24_000 };

/// Small arrays, and queries that use rectangles, statistics and dynamic filters.
const SHIPPED: [(&str, &[&str]); 3] = [
    (
        "sparse_1d_string",
        &["SELECT v FROM t WHERE k >= 'b' AND k < 'n'", "SELECT k FROM t ORDER BY v LIMIT 3"],
    ),
    (
        "sparse_delete_consolidated",
        &["SELECT v FROM t WHERE x < 50 AND y > 0", "SELECT s FROM t ORDER BY x, y LIMIT 3"],
    ),
    (
        "sparse_enum",
        &["SELECT c FROM t WHERE x BETWEEN 1 AND 3", "SELECT x FROM t WHERE n IS NULL"],
    ),
];

/// An array, and the reader that opens it.
struct SmallArray {
    name: &'static str,
    files: Files,
    reader: Reader,
}

fn small_arrays() -> Vec<SmallArray> {
    let array = |(name, queries): (&'static str, &[&str])| {
        let files = files_below(Path::new(&shipped(&format!("tests/data/tiledb/{name}"))));
        let reader = Reader::new(ArrayOptions::default()).with_queries(queries);
        SmallArray { name, files, reader }
    };
    SHIPPED.into_iter().map(array).collect()
}

/// Positions in a file of `len` bytes: all of a small file. In a larger one, half of them are in its last
/// tenth, where fragments have their footer.
fn places(len: usize, rng: &mut StdRng) -> BTreeSet<usize> {
    if len <= MOST_PLACES {
        return (0..len).collect();
    }
    let mut places = BTreeSet::from([0, len - 1]);
    while places.len() < MOST_PLACES {
        let first = if rng.random_bool(0.5) { len - len / 10 - 1 } else { 0 };
        places.insert(rng.random_range(first..len));
    }
    places
}

/// Cuts off the files of an array. Returns the number of cuts.
async fn cut_off(array: &SmallArray) -> usize {
    let SmallArray { name, files, reader } = array;
    let mut rng = StdRng::seed_from_u64(3);
    let read = reader.read(files).await.unwrap();
    let mut cuts = 0;
    for (path, bytes) in files {
        for len in places(bytes.len(), &mut rng) {
            let mut files = files.clone();
            files.insert(path.clone(), bytes[..len].to_vec());
            let what = format!("{name}/{path} cut at byte {len} of {}", bytes.len());
            let outcome = reader.survive(&files, &what).await;
            if read.contains(path) && !is_list(path) {
                assert!(outcome.is_err(), "{what} still reads");
            }
            cuts += 1;
        }
    }
    cuts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sparse_files_that_are_cut_off_are_errors() {
    let arrays = small_arrays().into_iter();
    let tasks: Vec<_> =
        arrays.map(|array| tokio::spawn(async move { cut_off(&array).await })).collect();
    let mut cuts = 0;
    for task in tasks {
        cuts += task.await.unwrap();
    }
    assert!(cuts >= FEWEST_PLACES, "{cuts}");
}

/// Changes bytes of an array. Returns how many of the changes were noticed, and the number of changes.
async fn change(array: &SmallArray) -> (usize, usize) {
    let SmallArray { name, files, reader } = array;
    let mut rng = StdRng::seed_from_u64(4);
    let (mut refused, mut total) = (0, 0);
    for (path, bytes) in files {
        for at in places(bytes.len(), &mut rng) {
            let mut files = files.clone();
            let flip = [0x01, 0x80, 0xff, rng.random_range(1..=255)][rng.random_range(0..4)];
            files.get_mut(path).unwrap()[at] ^= flip;
            let what = format!("{name}/{path} byte {at} ^ {flip:#x}");
            refused += usize::from(reader.survive(&files, &what).await.is_err());
            total += 1;
        }
    }
    (refused, total)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changed_bytes_of_sparse_files_are_survived() {
    let before = peak_memory();
    let arrays = small_arrays().into_iter();
    let tasks: Vec<_> =
        arrays.map(|array| tokio::spawn(async move { change(&array).await })).collect();
    let (mut refused, mut total) = (0, 0);
    for task in tasks {
        let (of_array, changes) = task.await.unwrap();
        (refused, total) = (refused + of_array, total + changes);
    }
    assert!(total >= FEWEST_PLACES, "{total}");
    assert!(refused > total / 8, "only {refused} of {total} changes were noticed");
    assert_grew_little(before);
}

/// The error about a missing file names the file, or the folder `__schema` if no schema is left. Without the
/// file of a deletion, its cells are back.
#[tokio::test]
async fn missing_sparse_files_are_named() {
    for SmallArray { name, files, reader } in small_arrays() {
        let read = reader.read(&files).await.unwrap();
        for path in read.iter().filter(|path| !is_list(path) && !path.ends_with(".del")) {
            let mut files = files.clone();
            files.remove(path);
            let error = reader.survive(&files, path).await.unwrap_err();
            let file = path.rsplit('/').next().unwrap();
            let is_schema = path.starts_with("__schema/__") && error.contains("__schema");
            assert!(error.contains(file) || is_schema, "{name} without {path}: {error}");
            assert!(error.contains(NAME), "{name} without {path}: {error}");
        }
    }
}

/// The rows with these values of `x`, each with a text as its second coordinate.
fn rows(
    time: u64,
    xs: impl IntoIterator<Item = i128>,
    deletion: Option<usize>,
    v: impl Fn(i128) -> i128,
) -> Vec<Row> {
    let row = |x: i128| Row {
        time,
        deletion,
        coordinates: vec![integer(INT32, x), format!("k{x:02}").into()],
        cells: vec![Some(integer(INT32, v(x))), (x % 3 != 0).then(|| format!("s{x}").into())],
    };
    xs.into_iter().map(row).collect()
}

/// A plain array with tiles of 3 cells:
///
/// ```text
///   fragment 0, time 1     x 1 … 10, v = x
///   fragment 1, time 2     x 3 … 6, v = 10 x            deleted by the deletion, which is applied
///               time 4     x 5, 6, v = 6
///   deletion at time 3     keeps v < 8
/// ```
fn plain() -> SparseArray {
    let attribute = |name: &str, code, values, nullable, fill: &[u8]| TestAttribute {
        name: name.into(),
        code,
        values,
        nullable,
        fill: fill.into(),
        fill_valid: false,
        filters: Filters::None,
    };
    let dimension = |name: &str, code, domain, extent| SparseDimension {
        name: name.into(),
        code,
        domain,
        extent,
        filters: Filters::None,
    };
    let ends = [integer(INT32, 1), integer(INT32, 20)];
    let schema = SparseSchema {
        time: 1,
        dimensions: vec![
            dimension("x", INT32, ends, Some(integer(INT32, 4))),
            dimension("k", ASCII, [vec![], vec![]], None),
        ],
        attributes: vec![
            attribute("v", INT32, Some(1), false, &[9, 0, 0, 0]),
            attribute("s", UTF8, None, true, b"-"),
        ],
        allows_duplicates: false,
        tile_order: ROW_MAJOR,
        cell_order: ROW_MAJOR,
        capacity: 3,
        current_domain: None,
        coordinates: Filters::None,
        offsets: Filters::None,
        validity: Filters::None,
    };
    let written = SparseFragment {
        times: (1, 1),
        version: 22,
        state: State::Present,
        schema: 0,
        rows: rows(1, 1..=10, None, |x| x),
        keeps_times: false,
        has_deletions: false,
        processed: vec![],
        statistics: TestStatistics::Right,
    };
    let replaced = rows(2, 3..=6, Some(0), |x| 10 * x);
    let consolidated = SparseFragment {
        times: (2, 4),
        rows: [replaced, rows(4, 5..=6, None, |_| 6)].concat(),
        keeps_times: true,
        has_deletions: true,
        processed: vec![0],
        ..written.clone()
    };
    let value = vec![integer(INT32, 8)];
    let keeps = Condition::Compare { field: "v".into(), operator: Operator::Less, values: value };
    SparseArray {
        schemas: vec![schema],
        fragments: vec![written, consolidated],
        vacuums: vec![],
        deletions: vec![Deletion { time: 3, keeps }],
        commit_list: false,
    }
}

fn files_of(array: &SparseArray) -> Files {
    array.files(&mut StdRng::seed_from_u64(0))
}

fn metadata_path(array: &SparseArray, fragment: usize) -> String {
    format!("__fragments/{}/__fragment_metadata.tdb", array.fragment_name(fragment))
}

/// The position of the footer in a file of metadata.
fn footer_of(file: &[u8]) -> usize {
    file.len() - 8 - file.last_chunk().map_or(0, |len| u64::from_le_bytes(*len) as usize)
}

#[tokio::test]
async fn the_plain_sparse_array_is_valid() {
    let reader = Reader::new(ArrayOptions::default());
    let files = files_of(&plain());
    reader.read(&files).await.unwrap();
    let answer = reader.survive_query(&files, "SELECT x, k, v, s FROM t ORDER BY x").await.unwrap();
    let expected = [
        ["1", "k01", "1", "s1"],
        ["2", "k02", "2", "s2"],
        ["5", "k05", "6", "s5"],
        ["6", "k06", "6", "NULL"],
        ["7", "k07", "7", "s7"],
    ];
    assert_eq!(rows_of(&answer), expected);
}

/// Writes impossible numbers at every byte of the schema, of footers and of the deletion, and at a sixth of
/// the other bytes. Builds without optimisation take a seventh of these.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn impossible_numbers_anywhere_in_a_sparse_array() {
    let before = peak_memory();
    let files = files_of(&plain());
    let reader = Reader::new(ArrayOptions::default()).with_queries(&[
        "SELECT v FROM t WHERE x > 2 AND k < 'k09'",
        "SELECT k FROM t ORDER BY v LIMIT 2",
    ]);
    let (mut refused, mut total) = (0, 0);
    for (path, bytes) in &files {
        let is_metadata = path.ends_with("metadata.tdb");
        let thorough = if is_metadata { footer_of(bytes) } else { 0 };
        let step = if cfg!(debug_assertions) { 7 } else { 1 };
        for at in (0..bytes.len()).step_by(step) {
            let lies = [u64::MAX, u64::MAX >> 1, 1 << 63, 1 << 40, 1 << 20, 7];
            let is_tile = path.starts_with("__fragments") && !is_metadata;
            let is_sampled = is_tile || at < thorough;
            let chosen = if is_sampled { at % 36 } else { at % 6 };
            if let Some(lie) = lies.get(chosen) {
                let mut files = files.clone();
                let room = &mut files.get_mut(path).unwrap()[at..];
                let len = room.len().min(8);
                room[..len].copy_from_slice(&lie.to_le_bytes()[..len]);
                let what = format!("{path}: {lie:#x} at byte {at}");
                refused += usize::from(reader.survive(&files, &what).await.is_err());
                total += 1;
            }
        }
    }
    assert!(refused > total / 6, "only {refused} of {total} impossible numbers were noticed");
    assert_grew_little(before);
}

/// The error of reading a plain array whose files were changed.
async fn error_of(change: impl FnOnce(&SparseArray, &mut Files)) -> String {
    let array = plain();
    let mut files = files_of(&array);
    change(&array, &mut files);
    let reader = Reader::new(ArrayOptions::default());
    reader.survive(&files, "a changed array").await.unwrap_err()
}

/// The error of reading a plain array with these bytes at a place in the metadata of a fragment.
async fn error_with(
    fragment: usize,
    bytes: &[u8],
    place: impl FnOnce(&SparseArray, &[u8]) -> usize,
) -> String {
    let change = |array: &SparseArray, files: &mut Files| {
        let file = files.get_mut(&metadata_path(array, fragment)).unwrap();
        let at = place(array, file);
        file[at..at + bytes.len()].copy_from_slice(bytes);
    };
    error_of(change).await
}

#[tokio::test]
async fn sparse_footers_that_contradict_their_array_are_refused() {
    let name_len = plain().schemas[0].name().len();
    let (flags, ranges) = (12 + name_len, 14 + name_len);
    // After the range of `x` in 8 bytes: two lengths, and the ends "k01" and "k10".
    let texts = ranges + 8;
    let tiles = texts + 16 + 6;
    let low_high = |low: i128, high: i128| [integer(INT32, low), integer(INT32, high)].concat();
    for (at, bytes, expected) in [
        (14, b"9".to_vec(), "which the array does not have"),
        (flags, vec![1], "a dense fragment in a sparse array"),
        (flags, vec![2], "corrupt fragment footer"),
        (flags + 1, vec![1], "a fragment without a domain"),
        (ranges, low_high(4, 3), "dimension \"x\" from 4 down to 3"),
        (texts + 8, words([7]), "a text of 7 bytes in 6 bytes of two"),
        (texts + 16, b"k10k01".to_vec(), "dimension \"k\" from \"k10\" down to \"k01\""),
        (tiles, words([1 << 40]), "tiles, too many for"),
        (tiles, words([u64::MAX]), "tiles, too many for"),
        (tiles, words([5]), "4 rectangles, expected 5"),
        (tiles + 8, words([0]), "0 cells in the last tile, expected 1 to 3"),
        (tiles + 8, words([4]), "4 cells in the last tile, expected 1 to 3"),
        (tiles + 8, words([2]), ".tdb: corrupt tile"),
        (tiles + 16, vec![2], "flag \"timestamps\" is 2"),
        (tiles + 17, vec![2], "flag \"deletions\" is 2"),
    ] {
        let error = error_with(0, &bytes, |_, file| footer_of(file) + at).await;
        assert!(error.contains(expected), "expected {expected:?}: {error}");
        assert!(error.contains(NAME) && error.contains("fragment"), "{error}");
    }
}

/// The metadata begins with the R-tree: its fanout, its levels, the root, the leaves.
#[tokio::test]
async fn sparse_rectangles_that_contradict_their_fragment_are_refused() {
    let rectangle = 8 + 16 + 6;
    let leaves = 8 + 8 + rectangle;
    for (at, bytes, expected) in [
        (4, vec![0; 4], "0 rectangles, expected 4"),
        (4, vec![1, 0, 0, 0], "1 rectangles, expected 4"),
        (4, vec![255; 4], "corrupt R-tree"),
        (8, words([u64::MAX]), "corrupt R-tree"),
        (leaves, words([3]), "3 rectangles, expected 4"),
        (leaves, words([u64::MAX]), "corrupt R-tree"),
        (leaves + 8, integer(INT32, 11), "dimension \"x\" from 11 down to 3"),
        (leaves + 16, words([u64::MAX]), "corrupt R-tree"),
        (leaves + 24, words([9]), "a text of 9 bytes in 6 bytes of two"),
    ] {
        let start = |_: &SparseArray, file: &[u8]| {
            let begin: [u8; 8] = [10, 0, 0, 0, 2, 0, 0, 0];
            file.windows(8).position(|bytes| bytes == begin).unwrap() + at
        };
        let error = error_with(0, &bytes, start).await;
        assert!(error.contains(expected), "expected {expected:?}: {error}");
        assert!(error.contains("__fragment_metadata.tdb"), "{error}");
    }
}

/// Changes the list of deletions that were applied to a fragment.
#[tokio::test]
async fn applied_deletions_that_do_not_fit_their_block_are_refused() {
    for (before_name, number) in [(16, u64::MAX), (16, 2), (16, 0), (8, u64::MAX), (8, 3)] {
        let place = |array: &SparseArray, file: &[u8]| {
            let name = array.deletion_file(0);
            let at = file.windows(name.len()).position(|bytes| bytes == name.as_bytes());
            at.unwrap() - before_name
        };
        let error = error_with(1, &words([number]), place).await;
        assert!(error.contains("corrupt applied delete conditions"), "{error}");
        assert!(error.contains("__fragment_metadata.tdb"), "{error}");
    }
}

/// Replaces the condition of the deletion.
#[tokio::test]
async fn deletions_that_cannot_be_evaluated_are_refused() {
    let compare = |op: u8, field: &str, value: &[u8]| {
        let len = words([value.len() as u64]);
        [&[1, op][..], &text32(field), &len, value].concat()
    };
    let nested = |levels: usize| [0, 2, 1, 0, 0, 0, 0, 0, 0, 0].repeat(levels);
    let many = [vec![0, 1], words([u64::MAX])].concat();
    let list = |offsets: &[u64]| {
        let lens = words([8 * offsets.len() as u64]);
        let offsets = words(offsets.iter().copied());
        [compare(6, "v", &[0; 8]), lens, offsets].concat()
    };
    for (content, expected) in [
        (vec![], "corrupt delete condition"),
        (vec![2], "kind 2, expected 0 or 1"),
        (compare(9, "v", &[0; 4]), "operator 9 in a delete condition"),
        (compare(0, "v", &[0; 3]), "a value of 3 bytes, but its field has 4"),
        (compare(0, "v", &[]), "an empty value, which has no order"),
        (list(&[4, 0]), "offsets that do not ascend"),
        (list(&[0, 5]), "a value of 5 bytes, but its field has 4"),
        (nested(10_000), "more than 64 levels"),
        (many, "corrupt delete condition"),
    ] {
        let error = error_of(|array, files| {
            files.insert(array.deletion_file(0), generic_tile(&content));
        });
        let error = error.await;
        assert!(error.contains(expected), "expected {expected:?}: {error}");
        assert!(error.contains(NAME) && error.contains(".del"), "{error}");
    }
}

/// The only tile of a fragment claims more cells than it has. No query allocates memory for them.
#[tokio::test]
async fn enormous_sparse_tiles_cost_nothing() {
    let before = peak_memory();
    let name_len = plain().schemas[0].name().len();
    let last_tile_cells = 14 + name_len + 8 + 16 + 6 + 8;
    // A deletion by a field that the fragment lacks reads no tile.
    for deletes in [false, true] {
        for cells in [1 << 27, 1 << 30, 1 << 33] {
            let mut array = plain();
            array.schemas[0].capacity = cells;
            array.fragments.truncate(1);
            array.deletions.truncate(usize::from(deletes));
            if let Some(Deletion { keeps: Condition::Compare { field, .. }, .. }) =
                array.deletions.first_mut()
            {
                "absent".clone_into(field);
            }
            let mut files = files_of(&array);
            let file = files.get_mut(&metadata_path(&array, 0)).unwrap();
            let at = footer_of(file) + last_tile_cells;
            file[at..at + 8].copy_from_slice(&cells.to_le_bytes());
            let reader = Reader::new(ArrayOptions::default());
            for sql in [
                "SELECT * FROM t",
                "SELECT count(*) FROM t",
                "SELECT min(x), max(k) FROM t",
                "SELECT count(s) FROM t WHERE v > 3",
                "SELECT x FROM t WHERE x > 3 ORDER BY v LIMIT 1",
            ] {
                // The footer alone may answer a query.
                let _ = reader.survive_query(&files, sql).await;
            }
            if cells == 1 << 27 {
                let _ = reader.survive_query(&files, "SELECT 1 FROM t").await;
            }
        }
    }
    assert_grew_little(before);
}
