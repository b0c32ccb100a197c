//! Whole files: what is read of them is what h5py and netCDF4 read. `tests/data/hdf5/make.py` writes the files.

mod damage;
mod driver;
mod expected;
mod lost_chunks;
mod names;
mod rare;

use std::path::{Path, PathBuf};

use self::driver::{ExpectedCells, File, open};
use self::expected::compare;
use crate::hierarchy::{Attribute, Axis, CellType};
use gridfusion_core::format::{ElementType, TimeUnit};

const FILES: [&str; 9] = [
    "types.h5",
    "filters.h5",
    "indexes.h5",
    "trees.h5",
    "dense.h5",
    "compact.h5",
    "netcdf.nc",
    "unlimited.nc",
    "h5netcdf.nc",
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/hdf5")
}

fn file(name: &str) -> File {
    open(std::fs::read(folder().join(name)).unwrap()).unwrap()
}

#[test]
fn files_hold_what_other_readers_read() {
    for name in FILES {
        compare(&folder().join(name)).unwrap();
    }
}

/// Compares all files of a folder with the descriptions that `make.py` wrote beside them.
#[test]
#[ignore = "needs a folder of files in GRIDFUSION_HDF5_FILES"]
fn more_files_hold_what_other_readers_read() {
    let folder = std::env::var("GRIDFUSION_HDF5_FILES").unwrap();
    let (mut compared, mut failed) = (0, 0);
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.extension().is_some_and(|it| it == "nc" || it == "h5") {
            compared += 1;
            if let Err(error) = compare(&path) {
                eprintln!("{}: {error}", path.display());
                failed += 1;
            }
        }
    }
    assert!(compared > 0 && failed == 0, "{failed} of {compared} files differ");
}

#[test]
fn types_of_cells() {
    let file = file("types.h5");
    let cell = |path: &str| file.variable(path).cell.clone();
    for (path, expected) in [
        ("i8be", CellType::Number(ElementType::I64)),
        ("f2le", CellType::Number(ElementType::F16)),
        ("c8", CellType::Complex(ElementType::F32)),
        ("bool", CellType::Boolean),
        ("fixed", CellType::FixedUtf8(5)),
        ("space", CellType::FixedUtf8(6)),
        ("text", CellType::Text),
        ("opaque", CellType::FixedBytes(3)),
        ("when", CellType::TimePoint(TimeUnit::Second)),
        ("span", CellType::TimeSpan(TimeUnit::Millisecond)),
    ] {
        assert_eq!(cell(path), expected, "{path}");
    }
    let CellType::Enumeration { index, names } = cell("enum") else { panic!() };
    let mut names = names.to_vec();
    names.sort();
    let expected = [(-1, "none"), (0, "clear"), (7, "cloudy")].map(|(at, it)| (at, it.to_owned()));
    assert_eq!((index, names), (ElementType::I16, expected.to_vec()));
    // Links to the same dataset.
    assert_eq!(file.cells("point"), file.cells("f4le"));
    assert_eq!(file.cells("again"), file.cells("i2le"));
    assert!(file.find("a/b/loop/b/c").is_none() && file.find("gone").is_none());
}

#[test]
fn what_cannot_be_read_is_named() {
    let mut found: Vec<String> = vec![];
    for name in ["types.h5", "filters.h5", "netcdf.nc"] {
        let file = file(name);
        let unreadable = &file.file.hierarchy().unreadable;
        found.extend(unreadable.iter().map(|it| it.error.to_string()));
    }
    found.sort();
    insta::assert_snapshot!(found.join("\n"));
}

#[test]
fn facts_of_files() {
    let describe = |file: &File, path: &str| {
        let number = file.find(path).unwrap();
        format!("{} {}", file.file.layout(number).unwrap(), file.file.filters(number).unwrap())
    };
    let file_of = file("indexes.h5");
    assert_eq!(file_of.file.superblock_version(), 3);
    assert!(!file_of.file.is_netcdf());
    for (path, expected) in [
        ("single_filtered", "chunked (single chunk) deflate"),
        ("fixed", "chunked (fixed array) "),
        ("extensible", "chunked (extensible array) "),
        ("tree_filtered", "chunked (version 2 B-tree) shuffle, deflate"),
        ("implicit", "chunked (implicit) "),
    ] {
        assert_eq!(describe(&file_of, path), expected);
    }
    let netcdf = file("netcdf.nc");
    assert!(netcdf.file.is_netcdf());
    assert_eq!(describe(&netcdf, "t2m"), "chunked (version 1 B-tree) fletcher32, shuffle, deflate");
    assert_eq!(describe(&netcdf, "unwritten_fixed"), "never written ");
    let compact = file("compact.h5");
    assert_eq!(compact.file.superblock_version(), 0);
    assert_eq!(describe(&compact, "tree"), "chunked (version 1 B-tree) ");
    // The bytes lie in the header, behind a user block.
    assert_eq!(describe(&compact, "compact"), "contiguous ");
}

#[test]
fn dimensions_of_netcdf() {
    let file = file("netcdf.nc");
    let axis = |name: &str, len, labels: Option<&str>| Axis {
        labels: labels.map(str::to_owned),
        ..Axis::new(Some(name.to_owned()), len)
    };
    let t2m = file.variable("t2m");
    assert_eq!(t2m.axes[0], axis("time", 6, Some("time")));
    assert_eq!(t2m.axes[2], axis("lon", 7, Some("lon")));
    assert_eq!(t2m.chunk_shape, [2, 3, 4]);
    assert_eq!(file.variable("forecast/t2m").axes[0], axis("step", 2, None));
    assert_eq!(file.variable("forecast/inner/x").axes, [axis("lat", 5, Some("lat"))]);
    let y = &file.variable("forecast/inner/y").axes;
    assert_eq!(y[..], [axis("y", 3, None), axis("lat", 5, Some("lat"))]);
    for (path, text) in [("characters", 4), ("one_text", 4)] {
        assert_eq!(file.variable(path).cell, CellType::FixedUtf8(text), "{path}");
    }
    assert!(file.find("nothing").is_none() && file.find("string4").is_none());
    assert_eq!(t2m.fill, (-999_i16).to_le_bytes());
    assert_eq!(t2m.attributes["valid_range"], Attribute::Integers(vec![-5, 1000]));
    assert_eq!(t2m.attributes["add_offset"], Attribute::Singles(vec![273.15]));
    assert_eq!(file.file.hierarchy().groups["forecast"]["purpose"].text(), Some("groups"));
}

#[test]
fn variables_may_be_shorter_than_their_dimension() {
    let file = file("unlimited.nc");
    assert_eq!(file.variable("short").axes[0].len, 6);
    let short = file.find("short").unwrap();
    let (located, _) = file.locate(short, file.chunks(short));
    let placement = located[0].layers[0].placement.as_ref().unwrap();
    assert_eq!(
        (&placement.region[..], &placement.tile_shape[..]),
        (&[0..3, 0..5][..], &[4, 5][..])
    );
    assert!(located[1].layers.is_empty());
    assert_eq!(file.variable("packed_characters").cell, CellType::FixedUtf8(4));
}

#[test]
fn places_of_chunks_are_remembered() {
    let file = file("indexes.h5");
    let tree = file.find("tree").unwrap();
    let chunks: Vec<Vec<u64>> = file.chunks(tree);
    let (first, rounds) = file.locate(tree, chunks.clone());
    let (again, no_rounds) = file.locate(tree, chunks);
    assert!(rounds <= 2 && no_rounds == 0, "{rounds} {no_rounds}");
    assert_eq!(format!("{first:?}"), format!("{again:?}"));
    assert!(first.iter().any(|chunk| chunk.layers.is_empty()));
}

#[test]
fn texts_of_a_cut_chunk_are_those_of_the_array() {
    let file = file("filters.h5");
    let texts = file.find("texts").unwrap();
    let (located, _) = file.locate(texts, vec![vec![2, 1]]);
    let placement = &located[0].layers[0].placement;
    assert!(placement.is_none(), "{placement:?}");
    let ExpectedCells::Texts(all) = file.cells("texts") else { panic!() };
    assert_eq!(all.len(), 30);
}

/// Measures a file of many chunks, whose path is in `GRIDFUSION_HDF5_CHUNKS`.
#[test]
#[ignore = "measures"]
fn many_chunks_are_located_in_time() {
    let path = std::env::var("GRIDFUSION_HDF5_CHUNKS").unwrap();
    let bytes = std::fs::read(path).unwrap();
    let start = std::time::Instant::now();
    let file = open(bytes).unwrap();
    let (time, rounds, fetched) = (start.elapsed(), file.rounds, file.fetched);
    eprintln!("opened in {time:?}, {rounds} rounds, {fetched} bytes");
    for number in 0..file.file.hierarchy().variables.len() {
        let all = file.chunks(number);
        let some: Vec<_> = all.iter().step_by(all.len() / 1000 + 1).cloned().collect();
        eprintln!(
            "{} {}",
            file.file.hierarchy().variables[number].path,
            file.file.layout(number).unwrap()
        );
        for chunks in
            [all[..1].to_vec(), all[all.len() / 2..][..1].to_vec(), some, all.clone(), all]
        {
            let (count, start) = (chunks.len(), std::time::Instant::now());
            let (_, rounds) = file.locate(number, chunks);
            eprintln!("  {count} chunks: {:?}, {rounds} rounds", start.elapsed());
        }
    }
}
