//! NetCDF's classic format in the suite. The first axis is the record dimension, except in arrays of three axes.
//!
//! The format has no chunks. The reader takes records together, as many as fit a chunk of its own, but at most 512 of
//! them if they are far apart. So an array of more records gets another record variable, which moves them apart.

use std::ops::Range;
use std::path::{Path, PathBuf};

use arrow::datatypes::{DataType, TimeUnit};

use super::format::{Capabilities, FormatUnderTest};
use super::logical::{Axis, Cell, Element, Labels, Logical, Values};
use super::netcdf3_file::{Attribute, File, Type, Variable};

/// The most records of a chunk, if records are far apart.
const RECORDS: u64 = 512;

/// Bytes per record of the variable that moves records apart: more than are read for a gap.
const REMARK: usize = 5000;

pub(crate) struct NetCdf3;

impl FormatUnderTest for NetCdf3 {
    fn name(&self) -> &'static str {
        "netcdf"
    }

    fn suffix(&self) -> &'static str {
        ".nc"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            holds: |_| true,
            divides: |axes| {
                axes.iter_mut().for_each(|axis| axis.chunk = axis.labels.len());
                axes[0].chunk = axes[0].chunk.min(RECORDS);
            },
            hours: DataType::Timestamp(TimeUnit::Microsecond, None),
            notes_bounds: false,
            has_attributes: true,
            holds_chunks_in_metadata: false,
        }
    }

    fn write(&self, array: &Logical, path: &Path) {
        std::fs::write(path, file(array).bytes()).unwrap();
    }

    /// The dimensions and the first variables; before them are the version and the number of records.
    fn metadata(&self, path: &Path) -> (PathBuf, Range<usize>) {
        let start = if std::fs::read(path).unwrap()[3] == 5 { 12 } else { 8 };
        (path.to_owned(), start..start + 120)
    }
}

fn file(array: &Logical) -> File {
    let lens = array.dimensions().into_iter().map(str::to_owned).zip(array.shape());
    let mut file = File {
        version: 2,
        records: (array.axes.len() != 3).then(|| array.shape()[0] as usize),
        dimensions: lens.collect(),
        variables: array.values.iter().map(|values| of_values(array, values)).collect(),
    };
    for (number, axis) in array.axes.iter().enumerate() {
        file.variables.extend(of_labels(axis, number, &mut file.dimensions));
    }
    if let Some(records) = file.records.filter(|records| *records as u64 > RECORDS) {
        add_remarks(&mut file, array.values.len(), records);
    }
    if file.variables.iter().any(|variable| variable.kind == Type::I64) {
        file.version = 5;
    }
    file
}

fn of_values(array: &Logical, values: &Values) -> Variable {
    let kind = match values.element {
        Element::F32 => Type::F32,
        Element::F64 => Type::F64,
        Element::I32 => Type::I32,
        Element::I64 => Type::I64,
    };
    let cell = |cell: &Cell| values.element.bytes(*cell).into_iter().rev();
    Variable {
        name: values.name.to_owned(),
        kind,
        dimensions: (0..array.axes.len()).collect(),
        attributes: vec![("_FillValue", kind, cell(&Cell::Fill).collect())],
        bytes: values.cells.iter().flat_map(cell).collect(),
    }
}

/// The coordinate variable of an axis, and the dimension of its letters if it is text.
fn of_labels(axis: &Axis, number: usize, dimensions: &mut Vec<(String, u64)>) -> Option<Variable> {
    let mut variable = Variable {
        name: axis.name.to_owned(),
        kind: Type::Char,
        dimensions: vec![number],
        attributes: vec![],
        bytes: vec![],
    };
    (variable.kind, variable.bytes) = match &axis.labels {
        Labels::Index(_) => return None,
        Labels::Integers(all) => (Type::I64, all.iter().flat_map(|it| it.to_be_bytes()).collect()),
        Labels::Hours(all) => {
            variable.attributes.push(text("units", "hours since 1970-01-01"));
            (Type::I32, all.iter().flat_map(|it| (*it as i32).to_be_bytes()).collect())
        }
        Labels::Floats(all) => (Type::F64, all.iter().flat_map(|it| it.to_be_bytes()).collect()),
        Labels::Singles(all) => (Type::F32, all.iter().flat_map(|it| it.to_be_bytes()).collect()),
        Labels::Text(all) => {
            let most = all.iter().map(String::len).max().unwrap();
            variable.dimensions.push(dimensions.len());
            dimensions.push((format!("{}_strlen", axis.name), most as u64));
            (Type::Char, all.iter().flat_map(|it| padded(it, most)).collect())
        }
    };
    Some(variable)
}

fn text(name: &'static str, text: &str) -> Attribute {
    (name, Type::Char, text.as_bytes().to_vec())
}

/// A text with zeros after it.
fn padded(text: &str, len: usize) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(len, 0);
    bytes
}

/// Adds a text to each record. It is ancillary to the first variables, and so it is no column.
fn add_remarks(file: &mut File, data: usize, records: usize) {
    for variable in &mut file.variables[..data] {
        variable.attributes.push(text("ancillary_variables", "remark"));
    }
    file.variables.push(Variable {
        name: "remark".to_owned(),
        kind: Type::Char,
        dimensions: vec![0, file.dimensions.len()],
        attributes: vec![],
        bytes: (0..records).flat_map(|record| padded(&format!("{record}"), REMARK)).collect(),
    });
    file.dimensions.push(("remark_strlen".to_owned(), REMARK as u64));
}
