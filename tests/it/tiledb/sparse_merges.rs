//! Merges of one to nine fragments, in each order and each kind of overlap, compared with the naive model.

use gridfusion::{ArrayOptions, GridfusionSessionContextExt};
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

use super::sparse::{metrics, points, register, run};
use crate::support::sparse_model::table;
use crate::support::sparse_writer::{
    COLUMN_MAJOR, Condition, Deletion, HILBERT, Operator, ROW_MAJOR, SparseArray,
};
use crate::support::tiledb_writer::put_in_folder;
use crate::support::{reducing, rows_of};

/// How the cells of fragments lie to each other.
#[derive(Debug, Clone, Copy)]
enum Overlap {
    /// In columns of their own.
    Apart,
    /// Each shares a column with the next.
    AtEdges,
    /// Anywhere in one rectangle.
    Anywhere,
    /// The same cells.
    Same,
}

const OVERLAPS: [Overlap; 4] = [Overlap::Apart, Overlap::AtEdges, Overlap::Anywhere, Overlap::Same];

/// Returns random cells of each fragment, about half of those of its rectangle.
fn cells(rng: &mut StdRng, fragments: i32, overlap: Overlap) -> Vec<Vec<(i32, i32)>> {
    let mut some = |x: std::ops::Range<i32>| -> Vec<(i32, i32)> {
        let all = x.flat_map(|x| (0..12).map(move |y| (x, y)));
        let mut cells: Vec<(i32, i32)> = all.filter(|_| rng.random_bool(0.5)).collect();
        cells.push((x_of(&cells), 12));
        cells
    };
    let same = some(0..9);
    let of = |at: i32| match overlap {
        Overlap::Apart => some(5 * at..5 * at + 5),
        Overlap::AtEdges => some(4 * at..4 * at + 5),
        Overlap::Anywhere => some(0..15),
        Overlap::Same => same.clone(),
    };
    (0..fragments).map(of).collect()
}

/// Any column of some cells.
fn x_of(cells: &[(i32, i32)]) -> i32 {
    cells.first().map_or(0, |(x, _)| *x)
}

/// Compares all rows of an array with those of the model, in a window of time. Returns how many cells were replaced and
/// deleted.
async fn check(array: &SparseArray, end: Option<u64>, about: &str) -> (usize, usize) {
    let options = match end {
        Some(end) => ArrayOptions::default().with_option("timestamp", end),
        None => ArrayOptions::default(),
    };
    let (expected, seen) = table(array, &options);
    let ctx = reducing(4, 8192);
    let folder = register(&ctx, array).await;
    let location = folder.path().to_str().unwrap();
    ctx.register_array("u", location, options).await.unwrap();
    let (mut found, plan) = run(&ctx, "SELECT * FROM u").await;
    let mut expected = rows_of(&[expected]);
    found.sort();
    expected.sort();
    assert_eq!(found, expected, "{about}");
    let [replaced, deleted] = metrics(&plan, ["cells_duplicate", "cells_deleted"]);
    assert_eq!((replaced, deleted), (seen.replaced, seen.deleted), "{about}");
    (seen.replaced, seen.deleted)
}

#[tokio::test]
async fn merges_of_any_number_of_fragments_keep_the_newest_cells() {
    let mut rng = StdRng::seed_from_u64(45);
    let (mut replaced, mut deleted, mut arrays) = (0, 0, 0);
    for fragments in 1..=9 {
        for overlap in OVERLAPS {
            for order in [ROW_MAJOR, COLUMN_MAJOR, HILBERT] {
                let mut array = points(order, &cells(&mut rng, fragments, overlap));
                array.schemas[0].capacity = [3, 10, 1000][arrays % 3];
                array.schemas[0].allows_duplicates = arrays % 7 == 6;
                if arrays % 2 == 1 {
                    let keeps = Condition::Compare {
                        field: "x".into(),
                        operator: Operator::NotEqual,
                        values: vec![3_i32.to_le_bytes().to_vec()],
                    };
                    array.deletions.push(Deletion { time: 5 * fragments as u64 + 6, keeps });
                }
                let about = format!("{fragments} fragments, {overlap:?}, order {order}, {arrays}");
                let end = rng.random_range(1..=fragments as u64) * 10;
                for end in [None, Some(end)] {
                    let seen = check(&array, end, &about).await;
                    (replaced, deleted) = (replaced + seen.0, deleted + seen.1);
                }
                arrays += 1;
            }
        }
    }
    assert!(arrays == 108 && replaced > 5_000 && deleted > 200, "{replaced} {deleted}");
}

/// Several partitions merge ranges of a dimension. Only tiles at their borders have cells of two.
#[tokio::test]
async fn ranges_of_merges_divide_the_cells() {
    let mut rng = StdRng::seed_from_u64(46);
    let mut all: Vec<(i32, i32)> = (0..400).flat_map(|x| (0..60).map(move |y| (x, y))).collect();
    let mut fragment = || {
        all.shuffle(&mut rng);
        all[..12_000].to_vec()
    };
    let fragments: Vec<Vec<(i32, i32)>> = (0..5).map(|_| fragment()).collect();
    for order in [ROW_MAJOR, COLUMN_MAJOR, HILBERT] {
        let mut array = points(order, &fragments);
        array.schemas[0].capacity = 500;
        let (_, seen) = table(&array, &ArrayOptions::default());
        let ctx = reducing(3, 8192);
        let _folder = register(&ctx, &array).await;
        let (rows, plan) = run(&ctx, "SELECT x, y, v, f FROM t").await;
        assert_eq!(plan.properties().output_partitioning().partition_count(), 3);
        let (expected, _) = table(&array, &ArrayOptions::default());
        let (mut rows, mut expected) = (rows, rows_of(&[expected]));
        rows.sort();
        expected.sort();
        assert_eq!(rows, expected, "{order}");
        let [replaced, outside] = metrics(&plan, ["cells_duplicate", "cells_outside"]);
        assert_eq!(replaced, seen.replaced, "{order}");
        // Tiles at borders are read twice.
        let read: u64 = fragments.iter().map(|cells| cells.len() as u64).sum();
        let [decoded] = metrics(&plan, ["cells_decoded"]);
        assert_eq!(decoded as u64, read + outside as u64, "{order}");
    }
}

/// The files of many fragments are opened on a few threads. Errors still name the one file that is at fault.
#[tokio::test]
async fn many_fragments_are_opened_together() {
    let fragments: Vec<Vec<(i32, i32)>> = (0..100).map(|x| vec![(x, 0), (x, 1)]).collect();
    let array = points(ROW_MAJOR, &fragments);
    let folder = tempfile::tempdir().unwrap();
    put_in_folder(&array.files(&mut StdRng::seed_from_u64(1)), folder.path());
    let location = folder.path().to_str().unwrap();
    for io in ["mmap", "pread"] {
        let options = ArrayOptions::default().with_option("io", io);
        let ctx = reducing(2, 8192);
        ctx.register_array("t", location, options.clone()).await.unwrap();
        let (rows, _) = run(&ctx, "SELECT count(v), sum(v - 101 * x - y), max(x) FROM t").await;
        assert_eq!(rows, [["200", "0", "99"]], "{io}");
        let name = format!("{}/__fragment_metadata.tdb", array.fragment_name(57));
        let path = folder.path().join("__fragments").join(&name);
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..20]).unwrap();
        let error = reducing(2, 8192).register_array("t", location, options).await.unwrap_err();
        assert!(error.to_string().contains(&name), "{io}: {error}");
        std::fs::write(&path, whole).unwrap();
    }
}
