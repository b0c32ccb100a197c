//! Comparison with what `tests/data/hdf5/make.py` wrote about a file.

use std::path::Path;

use serde_json::Value;

use super::driver::{ExpectedCells, open};
use crate::hierarchy::{Attribute, Attributes, CellType};

/// Returns the description beside a file.
pub(super) fn description(path: &Path) -> Value {
    let description = std::fs::read(path.with_extension("json")).unwrap();
    serde_json::from_slice(&description).unwrap()
}

/// Compares a file with the description beside it.
pub(super) fn compare(path: &Path) -> Result<(), String> {
    let file = open(std::fs::read(path).unwrap()).map_err(|error| error.to_string())?;
    if file.rounds > 6 {
        return Err(format!("{} rounds to open it", file.rounds));
    }
    let expected = description(path);
    let hierarchy = file.file.hierarchy();
    same_attributes(&hierarchy.groups[""], &expected["attributes"])?;
    for (path, expected) in expected["variables"].as_object().unwrap() {
        let about = |error: String| format!("{path}: {error}");
        let Some(number) = file.find(path) else {
            if path == "cut_characters" {
                continue;
            }
            let why = hierarchy.unreadable.iter().find(|it| it.path == *path);
            let why = why.map(|it| it.error.to_string()).unwrap_or_default();
            return Err(about(format!("it is missing {why}")));
        };
        let variable = &hierarchy.variables[number];
        let shape: Vec<u64> = serde_json::from_value(expected["shape"].clone()).unwrap();
        if variable.shape() != shape {
            return Err(about(format!("shape {:?}, expected {shape:?}", variable.shape())));
        }
        let names: Vec<Option<String>> = serde_json::from_value(expected["dims"].clone()).unwrap();
        let found: Vec<_> = variable.axes.iter().map(|axis| axis.name.clone()).collect();
        if found != names {
            return Err(about(format!("axes {found:?}, expected {names:?}")));
        }
        same_attributes(&variable.attributes, &expected["attributes"]).map_err(about)?;
        let chunks = file.check_index(number).map_err(|error| about(error.to_string()))?;
        // h5py counts the chunks of most indexes.
        if let expected @ Some(_) = expected["chunks"].as_u64()
            && chunks != expected
        {
            return Err(about(format!("{chunks:?} chunks, expected {expected:?}")));
        }
        let cells = file.read(number).map_err(|error| about(error.to_string()))?;
        let cells = comparable(cells, &variable.cell);
        let expected = match expected["texts"].as_array() {
            Some(texts) => ExpectedCells::Texts(
                texts.iter().map(|it| it.as_str().unwrap().to_owned()).collect(),
            ),
            None => ExpectedCells::Bytes(unhex(expected["bytes"].as_str().unwrap())),
        };
        if cells != expected {
            return Err(about(format!("cells {cells:?}, expected {expected:?}")));
        }
    }
    Ok(())
}

/// Texts of a fixed length as texts.
fn comparable(cells: ExpectedCells, cell: &CellType) -> ExpectedCells {
    match (cells, cell) {
        (ExpectedCells::Bytes(bytes), CellType::FixedUtf8(width)) => {
            let text =
                |text: &[u8]| String::from_utf8_lossy(text).trim_end_matches('\0').to_owned();
            ExpectedCells::Texts(bytes.chunks(*width as usize).map(text).collect())
        }
        (cells, _) => cells,
    }
}

fn unhex(text: &str) -> Vec<u8> {
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    text.as_bytes().chunks(2).map(byte).collect()
}

fn same_attributes(found: &Attributes, expected: &Value) -> Result<(), String> {
    let expected = expected.as_object().unwrap();
    let names: Vec<&String> = expected.keys().collect();
    let found_names: Vec<&String> = found.keys().collect();
    if found_names != names {
        return Err(format!("attributes {found_names:?}, expected {names:?}"));
    }
    for (name, value) in expected {
        let value = value.as_array().unwrap();
        let numbers: Vec<f64> = value.iter().filter_map(Value::as_f64).collect();
        let is_same = match &found[name] {
            Attribute::Text(text) => *value == [Value::from(text.as_str())],
            Attribute::Texts(texts) => {
                *value == texts.iter().map(|it| Value::from(it.as_str())).collect::<Vec<_>>()
            }
            Attribute::Integers(all) => {
                numbers == all.iter().map(|&it| it as f64).collect::<Vec<_>>()
            }
            // Infinity and NaN are texts there.
            Attribute::Singles(all) => {
                all.iter().map(|&it| f64::from(it)).filter(|it| it.is_finite()).eq(numbers)
            }
            Attribute::Doubles(all) => all.iter().copied().filter(|it| it.is_finite()).eq(numbers),
        };
        if !is_same {
            return Err(format!("attribute {name} {:?}, expected {value:?}", found[name]));
        }
    }
    Ok(())
}
