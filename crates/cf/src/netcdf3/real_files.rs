//! Files by netCDF4 and SciPy, read as netCDF4 reads them; cut-off and damaged files.
//!
//! `tests/data/netcdf3/make.py` writes the files, and `expected.json` with their values.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use bytes::Bytes;

use super::testing::{open, read};
use super::{NetCdf3File, is_netcdf3};
use crate::hierarchy::{Attribute, CellType};
use gridfusion_core::ErrorKind;
use gridfusion_core::format::{ElementType, Scratch};

/// The shape, the type and the bytes of a variable, in hexadecimal digits.
type ExpectedVariable = (Vec<u64>, String, String);

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/netcdf3")
}

fn file(name: &str) -> Bytes {
    fs::read(folder().join(name)).unwrap().into()
}

/// Returns the shape and NumPy's name of the type, with text as an axis of characters.
fn as_in_numpy(file: &NetCdf3File, variable: usize, has_text_axis: bool) -> (Vec<u64>, String) {
    let variable = &file.hierarchy().variables[variable];
    let mut shape = variable.shape();
    let kind = match variable.cell {
        CellType::Number(element) => {
            let kind = if element.is_unsigned() { "u" } else { "i" };
            let kind = if element.is_integer() { kind } else { "f" };
            format!("{kind}{}", element.size())
        }
        CellType::FixedUtf8(width) => {
            if has_text_axis {
                shape.push(width.into());
            }
            "S1".to_owned()
        }
        ref other => panic!("{other}"),
    };
    (shape, kind)
}

fn check(name: &str, bytes: &Bytes, expected: &BTreeMap<String, ExpectedVariable>) {
    let file = open(bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
    let variables = &file.hierarchy().variables;
    assert!(file.hierarchy().unreadable.is_empty() && file.missing_bytes() == 0, "{name}");
    assert_eq!(variables.len(), expected.len(), "{name}");
    for (place, variable) in variables.iter().enumerate() {
        let (shape, kind, hex) = &expected[&variable.path];
        let cells = read(&file, bytes, place).unwrap();
        let found: String = cells.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(found, *hex, "{name}, {}", variable.path);
        let has_text_axis = shape.len() > variable.axes.len();
        let found = as_in_numpy(&file, place, has_text_axis);
        assert_eq!(found, (shape.clone(), kind.clone()), "{name}, {}", variable.path);
        assert_eq!(variable.fill.len() as u64, variable.cell.width().unwrap());
    }
}

#[test]
fn values_are_those_that_netcdf4_reads() {
    let text = fs::read_to_string(folder().join("expected.json")).unwrap();
    let all: BTreeMap<String, Option<BTreeMap<String, ExpectedVariable>>> =
        serde_json::from_str(&text).unwrap();
    assert!(all.len() >= 10);
    for (name, expected) in all {
        let bytes = file(&name);
        assert!(is_netcdf3(&bytes));
        match expected {
            Some(expected) => check(&name, &bytes, &expected),
            None => {
                let error = open(&bytes).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Corrupt);
                let text = error.to_string();
                assert!(text.contains("variable \"height\"") && text.contains("SciPy"), "{text}");
            }
        }
    }
}

/// Compares files of a folder that `FOLDER_OF_NETCDF3` names, which has an `expected.json` of its own.
#[test]
fn values_of_further_files() {
    let Some(folder) = std::env::var_os("FOLDER_OF_NETCDF3").map(PathBuf::from) else { return };
    let text = fs::read_to_string(folder.join("expected.json")).unwrap();
    let all: BTreeMap<String, BTreeMap<String, ExpectedVariable>> =
        serde_json::from_str(&text).unwrap();
    for (name, expected) in all {
        check(&name, &fs::read(folder.join(&name)).unwrap().into(), &expected);
    }
}

#[test]
fn attributes_have_the_types_of_the_file() {
    let opened = open(&file("cdf5.nc")).unwrap();
    let attributes = &opened.hierarchy().groups[""];
    assert_eq!(attributes["title"], Attribute::from("Höhe über Meer"));
    assert_eq!(attributes["numbers"], Attribute::Integers(vec![1, -2, 3]));
    assert_eq!(attributes["real"], Attribute::Singles(vec![0.1]));
    assert_eq!(attributes["double"], Attribute::Doubles(vec![0.1]));

    let fills = open(&file("fills.nc")).unwrap();
    let variable = |path: &str| {
        fills.hierarchy().variables.iter().find(|variable| variable.path == path).unwrap()
    };
    assert_eq!(variable("declared").fill, (-999_i16).to_le_bytes());
    assert_eq!(variable("i8_default").cell, CellType::Number(ElementType::I64));
    let texts = open(&file("texts.nc")).unwrap();
    let name = &texts.hierarchy().variables[0];
    assert_eq!((name.cell.clone(), name.shape()), (CellType::FixedUtf8(9), vec![3]));
    assert_eq!(name.attributes["_Encoding"], Attribute::from("utf-8"));
}

/// The cells of variables that netCDF4 never wrote have the fill value of the variable.
#[test]
fn unwritten_cells_have_the_fill_value() {
    let bytes = file("fills.nc");
    let opened = open(&bytes).unwrap();
    for (place, variable) in opened.hierarchy().variables.iter().enumerate() {
        let cells = read(&opened, &bytes, place).unwrap();
        let width = variable.cell.width().unwrap() as usize;
        // One cell was written, which made the others.
        let unwritten = if variable.path == "i1_default" { cells.len() - 1 } else { cells.len() };
        let fills = cells.chunks(width).filter(|cell| *cell == variable.fill).count();
        assert_eq!(fills * width, unwritten, "{}", variable.path);
    }
}

/// Opens bytes that may be damaged, and decodes the first and the last chunk of each variable. No error may be a
/// bug, and nothing may need more memory than the file explains.
fn explore(bytes: &Bytes) -> bool {
    let opened = match open(bytes) {
        Ok(opened) => opened,
        Err(error) => {
            assert_ne!(error.kind(), ErrorKind::Internal, "{error}");
            return false;
        }
    };
    let mut is_whole = opened.missing_bytes() == 0;
    let fills: usize = opened.hierarchy().variables.iter().map(|it| it.fill.len()).sum();
    assert!(fills <= 4096 * opened.hierarchy().variables.len() + bytes.len());
    for (place, variable) in opened.hierarchy().variables.iter().enumerate() {
        if variable.axes.iter().any(|axis| axis.len == 0) {
            continue;
        }
        let last = variable.axes.iter().zip(&variable.chunk_shape);
        let last: Vec<u64> = last.map(|(axis, edge)| (axis.len - 1) / edge).collect();
        for chunk in [vec![0; last.len()], last] {
            let stored = match opened.locate(place, &chunk) {
                Ok(stored) => stored,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
                    is_whole = false;
                    continue;
                }
            };
            assert!(stored.layers.len() <= 512);
            for layer in stored.layers {
                let range = layer.values.at.range.within(bytes.len() as u64);
                let part = bytes.slice(range.start as usize..range.end as usize);
                assert!(layer.values.raw_len <= part.len() as u64);
                let tile = layer.values.decode(part, vec![], &mut Scratch::default()).unwrap();
                assert_eq!(tile.bytes.len() as u64, layer.values.raw_len);
            }
        }
    }
    is_whole
}

#[test]
fn files_cut_off_anywhere_are_not_whole() {
    for name in ["cdf1.nc", "cdf5.nc", "texts.nc", "scipy2.nc"] {
        let bytes = file(name);
        assert!(explore(&bytes), "{name}");
        for len in 0..bytes.len() {
            let is_whole = explore(&bytes.slice(..len));
            // Only the padding of the last record can be missing without loss.
            assert!(!is_whole || len + 3 >= bytes.len(), "{name} cut to {len} bytes");
        }
    }
}

#[test]
fn flipped_bytes_do_no_harm() {
    let mut refused = 0;
    for name in ["cdf2.nc", "cdf5.nc", "texts.nc", "only_chars.nc"] {
        let bytes = file(name);
        for at in 0..bytes.len() {
            for mask in [1, 2, 0x80, 0xff] {
                let mut damaged = bytes.to_vec();
                damaged[at] ^= mask;
                refused += usize::from(!explore(&damaged.into()));
            }
        }
    }
    assert!(refused > 1000, "{refused}");
}
