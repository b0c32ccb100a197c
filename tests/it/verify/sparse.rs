//! Verification of sparse TileDB arrays: random arrays pass, and each kind of damage is found.

use gridfusion::verify::Depth;
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::support::sparse_cases::{QUERIED_SPARSE, SMALL_SPARSE};
use crate::support::sparse_history::History;
use crate::support::sparse_writer::{
    Condition, Coordinate, Deletion, Operator, ROW_MAJOR, Row, SparseArray, SparseDimension,
    SparseFragment, SparseSchema, State,
};
use crate::support::tiledb_writer::{
    ASCII, FLOAT64, Files, Filters, INT32, TestAttribute, TestStatistics, integer, words,
};
use crate::verify::tet::{failed, findings};
use crate::verify::tiledb::{
    Damage, Failing, assert_found, edit, path_of, verify_damaged, verify_files,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_arrays_pass() {
    let mut rng = StdRng::seed_from_u64(23);
    for number in 0..150 {
        let profile = [SMALL_SPARSE, QUERIED_SPARSE][number % 2];
        let history = History::random(&mut rng, profile);
        let files = history.array.files(&mut rng);
        let report = verify_files(&files, Depth::Cells).await;
        let mut failed = failed(&report);
        if history.has_wrong_statistics {
            failed.retain(|check| *check != "tile_statistics_stale");
        }
        assert_eq!(failed, [""; 0], "{number}: {}", findings(&report));
    }
}

/// An array with an integer per cell. `cells` are coordinates in the global order; the integers count up from
/// 10 in tens.
fn array(
    dimensions: Vec<SparseDimension>,
    capacity: u64,
    cells: Vec<Vec<Coordinate>>,
) -> SparseArray {
    let attribute = TestAttribute {
        name: "a".into(),
        code: INT32,
        values: Some(1),
        nullable: false,
        fill: vec![0; 4],
        fill_valid: false,
        filters: Filters::None,
    };
    let schema = SparseSchema {
        time: 1,
        dimensions,
        attributes: vec![attribute],
        allows_duplicates: false,
        tile_order: ROW_MAJOR,
        cell_order: ROW_MAJOR,
        capacity,
        current_domain: None,
        coordinates: Filters::None,
        offsets: Filters::None,
        validity: Filters::None,
    };
    let row = |(number, coordinates): (i128, Vec<Coordinate>)| Row {
        time: 5,
        deletion: None,
        coordinates,
        cells: vec![Some(integer(INT32, 10 * number))],
    };
    let fragment = SparseFragment {
        times: (5, 5),
        version: 22,
        state: State::Present,
        schema: 0,
        rows: (1..).zip(cells).map(row).collect(),
        keeps_times: false,
        has_deletions: false,
        processed: vec![],
        statistics: TestStatistics::Right,
    };
    SparseArray {
        schemas: vec![schema],
        fragments: vec![fragment],
        vacuums: vec![],
        deletions: vec![],
        commit_list: false,
    }
}

fn dimension(name: &str, code: u8, domain: [Coordinate; 2]) -> SparseDimension {
    SparseDimension { name: name.into(), code, domain, extent: None, filters: Filters::None }
}

/// An array of 8 cells, in tiles of 3:
///
/// ```text
///   tile 0           tile 1           tile 2
///   x 0  y 1, 2, 3   x 1  y 1, 2, 3   x 2  y 1, 2
/// ```
fn plain() -> SparseArray {
    let axis = |name| dimension(name, INT32, [0, 9].map(|end| integer(INT32, end)));
    let cell = |number: i128| [number / 3, number % 3 + 1].map(|at| integer(INT32, at)).to_vec();
    array(vec![axis("x"), axis("y")], 3, (0..8).map(cell).collect())
}

/// The same array, consolidated: cells have the times 5 and 9 in turn. A deletion at 12 has deleted the first
/// of them.
fn consolidated() -> SparseArray {
    let mut array = plain();
    let fragment = &mut array.fragments[0];
    fragment.times = (5, 9);
    (fragment.keeps_times, fragment.has_deletions) = (true, true);
    fragment.processed = vec![0];
    for (number, row) in fragment.rows.iter_mut().enumerate() {
        row.time = if number % 2 == 0 { 5 } else { 9 };
        row.deletion = (number == 0).then_some(0);
    }
    let values = vec![integer(INT32, 10)];
    let keeps = Condition::Compare { field: "a".into(), operator: Operator::Greater, values };
    array.deletions = vec![Deletion { time: 12, keeps }];
    array
}

fn files_of(array: &SparseArray) -> Files {
    array.files(&mut StdRng::seed_from_u64(3))
}

/// The places of the bytes of all cells in a file of tiles without filters.
fn places(file: &[u8]) -> Vec<usize> {
    let number = |at: usize, len: usize| {
        file[at..at + len]
            .iter()
            .rev()
            .fold(0_usize, |number, byte| number << 8 | usize::from(*byte))
    };
    let (mut places, mut at) = (vec![], 0);
    while at < file.len() {
        let chunks = number(at, 8);
        at += 8;
        for _ in 0..chunks {
            let (len, metadata) = (number(at, 4), number(at + 8, 4));
            at += 12 + metadata;
            places.extend(at..at + len);
            at += len;
        }
    }
    places
}

/// Overwrites a cell in a file of tiles without filters.
fn set(files: &mut Files, name: &str, cell: usize, value: &[u8]) {
    edit(files, name, |bytes| {
        let places = places(bytes);
        for (place, byte) in places[cell * value.len()..].iter().zip(value) {
            bytes[*place] = *byte;
        }
    });
}

/// Overwrites the coordinates of a cell of [`plain`].
fn set_cell(files: &mut Files, cell: usize, [x, y]: [i128; 2]) {
    set(files, "d0.tdb", cell, &integer(INT32, x));
    set(files, "d1.tdb", cell, &integer(INT32, y));
}

/// Overwrites the first rectangle in the metadata of [`plain`] that has these ends: the least and the greatest
/// x, and then those of y.
fn set_rectangle(files: &mut Files, from: [i128; 4], to: [i128; 4]) {
    let bytes_of = |ends: [i128; 4]| ends.map(|end| integer(INT32, end)).concat();
    edit(files, "__fragment_metadata.tdb", |bytes| {
        let (from, to) = (bytes_of(from), bytes_of(to));
        let at = bytes.windows(from.len()).position(|window| *window == *from).unwrap();
        bytes[at..at + to.len()].copy_from_slice(&to);
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_damage_is_found_by_its_check() {
    let damages: &[(&str, Damage, Failing, &str)] = &[
        (
            "rectangle too large",
            |it| set_rectangle(it, [1, 1, 1, 3], [1, 1, 1, 4]),
            [&["rtree"], &["rtree"]],
            "\"y\", chunk [1]: the R-tree has values from 1 to 4, the tile has values from 1 to 3",
        ),
        (
            "rectangle too small",
            |it| set_rectangle(it, [1, 1, 1, 3], [1, 1, 2, 3]),
            [&[], &["rtree"]],
            "\"y\", chunk [1]: the R-tree has values from 2 to 3, the tile has values from 1 to 3",
        ),
        (
            "root of the R-tree",
            |it| set_rectangle(it, [0, 2, 1, 3], [1, 2, 1, 3]),
            [&["rtree"], &["rtree"]],
            "rectangle 0 of level 1 reaches out of that in level 0",
        ),
        (
            "domain of the fragment",
            |it| {
                // The root of the R-tree has the same bytes, and comes first.
                set_rectangle(it, [0, 2, 1, 3], [7, 7, 7, 7]);
                set_rectangle(it, [0, 2, 1, 3], [0, 5, 1, 3]);
                set_rectangle(it, [7, 7, 7, 7], [0, 2, 1, 3]);
            },
            [&["rtree"], &["rtree"]],
            "\"x\": the R-tree has values from 0 to 2, and the fragment's footer has values from 0 to 5",
        ),
        (
            "order in a tile",
            |it| {
                set_cell(it, 3, [1, 2]);
                set_cell(it, 4, [1, 1]);
            },
            [&[], &["cell_order"]],
            "chunk [1]: cell 1 precedes cell 0 in the global order",
        ),
        (
            "order of tiles",
            |it| set_cell(it, 3, [0, 1]),
            [&[], &["rtree", "cell_order"]],
            "chunk [1]: its first cell precedes the last one of tile 0 in the global order",
        ),
        (
            "the same cell in a tile",
            |it| set_cell(it, 1, [0, 1]),
            [&[], &["duplicates"]],
            "chunk [0]: cells 0 and 1 have the same coordinates",
        ),
        (
            "the same cell in two tiles",
            |it| set_cell(it, 3, [0, 3]),
            [&[], &["rtree", "duplicates"]],
            "chunk [1]: its first cell has the coordinates of the last one of tile 0",
        ),
        (
            "coordinate outside the domain",
            |it| set_cell(it, 7, [10, 2]),
            [&[], &["rtree", "coordinates"]],
            "\"x\", chunk [2]: the tile has values from 2 to 10, the domain has values from 0 to 9",
        ),
        (
            "value",
            |it| set(it, "a0.tdb", 4, &integer(INT32, 51)),
            [&[], &["tile_statistics_stale"]],
            "\"a\", chunk [1]: the stored sum is 150, the tile has 151",
        ),
        (
            "shorter",
            |it| edit(it, "d1.tdb", |bytes| bytes.truncate(bytes.len() - 1)),
            [&["fragment_files", "tile_offsets"], &["fragment_files", "tile_offsets"]],
            "\"y\", chunk [2]",
        ),
        // Changes the length of the first chunk of the first tile.
        (
            "length",
            |it| edit(it, "d0.tdb", |bytes| bytes[8] ^= 1),
            [&[], &["tile_decode"]],
            "\"x\", chunk [0]",
        ),
    ];
    assert_found(|| files_of(&plain()), damages).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_damage_of_a_consolidated_fragment_is_found_by_its_check() {
    let damages: &[(&str, Damage, Failing, &str)] = &[
        (
            "written too early",
            |it| set(it, "t.tdb", 2, &words([4])),
            [&[], &["cell_times"]],
            "chunk [0]: cell 2 has time 4, and the fragment begins at 5",
        ),
        // TileDB writes such fragments, so that is a warning.
        (
            "written too late",
            |it| set(it, "t.tdb", 2, &words([10])),
            [&[], &[]],
            "chunk [0]: cell 2 has time 10, and the fragment ends at 9",
        ),
        (
            "deleted too early",
            |it| set(it, "dt.tdb", 0, &words([4])),
            [&[], &["cell_times"]],
            "chunk [0]: cell 0 has time 5, and was deleted at 4",
        ),
        (
            "missing",
            |it| {
                let path = path_of(it, "dci.tdb");
                it.remove(&path);
            },
            [&["fragment_files", "tile_offsets"], &["fragment_files", "tile_offsets"]],
            "it does not exist",
        ),
        (
            "longer",
            |it| edit(it, "dt.tdb", |bytes| bytes.push(0)),
            [&["fragment_files"], &["fragment_files"]],
            "the fragment's footer gives",
        ),
        (
            "length",
            |it| edit(it, "t.tdb", |bytes| bytes[8] ^= 1),
            [&[], &["tile_decode"]],
            "\"t\", chunk [0]",
        ),
        // Statistics count all cells, also deleted ones.
        (
            "value",
            |it| set(it, "a0.tdb", 0, &integer(INT32, 11)),
            [&[], &["tile_statistics_stale"]],
            "\"a\", chunk [0]: the stored statistics have values from 10 to 30",
        ),
        (
            "applied conditions",
            |it| {
                edit(it, "__fragment_metadata.tdb", |bytes| {
                    let marker = b"__commits/";
                    let at = bytes.windows(marker.len()).position(|window| window == marker);
                    // The count of conditions precedes the length of the first.
                    bytes[at.unwrap() - 16] = 9;
                });
            },
            [&["delete_conditions"], &["delete_conditions"]],
            "applied delete conditions",
        ),
    ];
    assert_found(|| files_of(&consolidated()), damages).await;
}

/// A consolidated fragment may have several cells of the same coordinates, and so may an array that allows
/// them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn some_arrays_may_have_equal_cells() {
    let mut allowing = plain();
    allowing.schemas[0].allows_duplicates = true;
    for array in [allowing, consolidated()] {
        let mut files = files_of(&array);
        set_cell(&mut files, 1, [0, 1]);
        assert_eq!(findings(&verify_files(&files, Depth::Cells).await), "");
    }
}

/// Both zeros are different cells with one place in the order, and NaN has no place at all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn zeros_and_nan_are_coordinates() {
    let bytes = |number: f64| number.to_le_bytes().to_vec();
    let cells = [-1.0, -0.0, 0.0, 2.0].map(|number| vec![bytes(number)]);
    let axis = dimension("x", FLOAT64, [-5.0, 5.0].map(bytes));
    let mut files = files_of(&array(vec![axis], 2, cells.into()));
    assert_eq!(findings(&verify_files(&files, Depth::Cells).await), "");
    set(&mut files, "d0.tdb", 1, &bytes(f64::NAN));
    assert_eq!(findings(&verify_files(&files, Depth::Cells).await), "");
}

/// Writers compare texts beyond ASCII in another way than readers do, so these may have any order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_ascii_texts_have_an_order() {
    for (last, failing) in [(b'b', &["cell_order"][..]), (0xe9, &[][..])] {
        let axis = dimension("s", ASCII, [vec![], vec![]]);
        let cells = vec![vec![vec![b'a']], vec![vec![last]]];
        let mut files = files_of(&array(vec![axis], 3, cells));
        assert_eq!(findings(&verify_files(&files, Depth::Cells).await), "");
        set(&mut files, "d0_var.tdb", 0, &[last, b'a']);
        let report = verify_files(&files, Depth::Cells).await;
        assert_eq!(failed(&report), failing, "{}", findings(&report));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_damage_does_harm() {
    verify_damaged(&files_of(&plain()), 300).await;
    verify_damaged(&files_of(&consolidated()), 300).await;
}
