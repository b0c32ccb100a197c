//! NetCDF-4 in the suite: HDF5 files with dimension scales. Variables differ in their encoding: the order of bytes,
//! filters, storage in chunks or in one piece, and texts of any or of a fixed length.

use std::ops::Range;
use std::path::{Path, PathBuf};

use arrow::datatypes::{DataType, TimeUnit};

use super::format::{Capabilities, FormatUnderTest, as_given};
use super::hdf5_file::{Attribute, ByteOrder, Dataset, File, Storage, Type, root_of};
use super::logical::{Axis, Cell, Element, Labels, Logical, Values};

pub(crate) struct NetCdf4;

impl FormatUnderTest for NetCdf4 {
    fn name(&self) -> &'static str {
        "netcdf"
    }

    fn suffix(&self) -> &'static str {
        ".nc"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            holds: |_| true,
            divides: as_given,
            hours: DataType::Timestamp(TimeUnit::Microsecond, None),
            notes_bounds: false,
            has_attributes: true,
            holds_chunks_in_metadata: false,
        }
    }

    fn write(&self, array: &Logical, path: &Path) {
        std::fs::write(path, file(array)).unwrap();
    }

    /// The header of the root group, which is written last.
    fn metadata(&self, path: &Path) -> (PathBuf, Range<usize>) {
        let file = std::fs::read(path).unwrap();
        (path.to_owned(), root_of(&file)..file.len())
    }
}

/// A name, and the address of a dataset or group.
type Member = (String, u64);

fn file(array: &Logical) -> Vec<u8> {
    let mut file = File::new();
    let mut members: Vec<Member> = Vec::new();
    for axis in &array.axes {
        put_axis(&mut file, axis, &mut members);
    }
    let scales: Vec<u64> = array.dimensions().iter().map(|it| address(&members, it)).collect();
    for (number, values) in array.values.iter().enumerate() {
        let dataset = of_values(&mut file, array, values, number, &scales);
        members.push((values.name.to_owned(), file.dataset(&dataset)));
    }
    let last = array.shape().len() - 1;
    members.push(diagnostics(&mut file, scales[last], array.shape()[last]));
    let attributes = [
        Attribute::text("_NCProperties", "version=2,hdf5=1.14.6"),
        Attribute::text("title", "conformance"),
    ];
    let root = file.group(&borrowed(&members), &attributes);
    file.finish(root)
}

/// Writes a group with another variable over the last dimension, which is not in the group. The variable is no column
/// of the table, because the root has data.
fn diagnostics(file: &mut File, scale: u64, len: u64) -> Member {
    let kind = Type::Float(4, ByteOrder::Little);
    let cells = (0..len).map(|at| (at as f32).to_le_bytes().to_vec());
    let mut bias = in_one_piece(kind, cells.collect());
    bias.attributes.push(dimension_list(file, &[scale]));
    let bias = file.dataset(&bias);
    ("diagnostics".to_owned(), file.group(&[("bias", bias)], &[Attribute::text("source", "model")]))
}

/// The attribute that refers to the dimension scale of each axis.
fn dimension_list(file: &mut File, scales: &[u64]) -> Attribute {
    let scales: Vec<Vec<u8>> = scales.iter().map(|scale| scale.to_le_bytes().to_vec()).collect();
    let lists = file.heap(&scales, 8);
    Attribute::list("DIMENSION_LIST", Type::References, lists.concat())
}

fn address(members: &[Member], name: &str) -> u64 {
    members.iter().find(|(it, _)| it == name).unwrap().1
}

fn borrowed(members: &[Member]) -> Vec<(&str, u64)> {
    members.iter().map(|(name, address)| (name.as_str(), *address)).collect()
}

/// A data variable: floats are compressed, and the first variable of two axes is big-endian.
fn of_values(
    file: &mut File,
    array: &Logical,
    values: &Values,
    number: usize,
    scales: &[u64],
) -> Dataset {
    let is_big = array.axes.len() == 2 && number == 0;
    let order = if is_big { ByteOrder::Big } else { ByteOrder::Little };
    let kind = match values.element {
        Element::F32 => Type::Float(4, order),
        Element::F64 => Type::Float(8, order),
        Element::I32 => Type::Integer(4, order),
        Element::I64 => Type::Integer(8, order),
    };
    let cell = |cell: Cell| {
        let mut bytes = values.element.bytes(cell);
        if is_big {
            bytes.reverse();
        }
        bytes
    };
    let fill = cell(Cell::Fill);
    Dataset {
        kind,
        shape: array.shape(),
        grows: matches!(array.axes[0].labels, Labels::Hours(_)),
        cells: values.cells.iter().map(|it| cell(*it)).collect(),
        storage: Storage::Chunked {
            shape: array.axes.iter().map(|axis| axis.chunk).collect(),
            deflated: values.element.is_float(),
        },
        attributes: vec![
            dimension_list(file, scales),
            Attribute::list("_FillValue", kind, fill.clone()),
        ],
        fill: Some(fill),
    }
}

/// Writes the dimension of an axis, which is also the variable of its labels. Texts of the first axis have a fixed
/// length.
fn put_axis(file: &mut File, axis: &Axis, members: &mut Vec<Member>) {
    let number = members.len();
    let mut dataset = match &axis.labels {
        Labels::Text(all) if number == 0 => {
            let letters = all.iter().map(String::len).max().unwrap();
            let mut dimension = dimension_only(letters as u64);
            dimension.attributes = scale(None, letters as u64, 1);
            members.push((format!("{}_strlen", axis.name), file.dataset(&dimension)));
            characters(all, letters)
        }
        labels => of_labels(file, labels),
    };
    let is_variable = !matches!(axis.labels, Labels::Index(_));
    let name = is_variable.then_some(axis.name);
    dataset.attributes.extend(scale(name, axis.labels.len(), number));
    members.push((axis.name.to_owned(), file.dataset(&dataset)));
}

/// Labels of one axis. The dimension of hours may grow, so they are in chunks.
fn of_labels(file: &mut File, labels: &Labels) -> Dataset {
    let integers = Type::Integer(8, ByteOrder::Little);
    match labels {
        Labels::Index(len) => dimension_only(*len),
        Labels::Integers(all) => in_one_piece(integers, in_little_endian(all)),
        Labels::Hours(all) => Dataset {
            grows: true,
            storage: Storage::Chunked { shape: vec![5], deflated: true },
            attributes: vec![
                Attribute::text("units", "hours since 1970-01-01"),
                Attribute::text("calendar", "proleptic_gregorian"),
            ],
            ..in_one_piece(integers, in_little_endian(all))
        },
        Labels::Floats(all) => {
            let cells = all.iter().map(|it| it.to_be_bytes().to_vec());
            in_one_piece(Type::Float(8, ByteOrder::Big), cells.collect())
        }
        Labels::Singles(all) => {
            let cells = all.iter().map(|it| it.to_le_bytes().to_vec());
            in_one_piece(Type::Float(4, ByteOrder::Little), cells.collect())
        }
        Labels::Text(all) => {
            let texts: Vec<Vec<u8>> = all.iter().map(|it| it.as_bytes().to_vec()).collect();
            in_one_piece(Type::Text, file.heap(&texts, 1))
        }
    }
}

fn in_little_endian(integers: &[i64]) -> Vec<Vec<u8>> {
    integers.iter().map(|it| it.to_le_bytes().to_vec()).collect()
}

/// A coordinate variable in one piece.
fn in_one_piece(kind: Type, cells: Vec<Vec<u8>>) -> Dataset {
    Dataset {
        kind,
        shape: vec![cells.len() as u64],
        grows: false,
        fill: None,
        cells,
        storage: Storage::Contiguous,
        attributes: vec![],
    }
}

/// A coordinate variable of texts of a fixed length: its second axis are their letters.
fn characters(all: &[String], letters: usize) -> Dataset {
    let cells = all.iter().flat_map(|text| {
        let zeros = std::iter::repeat_n(0, letters - text.len());
        text.bytes().chain(zeros).map(|byte| vec![byte])
    });
    let numbers = [0_i32, 1].map(i32::to_le_bytes).concat();
    Dataset {
        kind: Type::Characters(1),
        shape: vec![all.len() as u64, letters as u64],
        grows: false,
        fill: Some(vec![0]),
        cells: cells.collect(),
        storage: Storage::Chunked { shape: vec![5, letters as u64], deflated: false },
        attributes: vec![
            Attribute::list("_Netcdf4Coordinates", DIMENSION_NUMBER, numbers),
            Attribute::text("_Encoding", "utf-8"),
        ],
    }
}

/// A dimension that is no variable.
fn dimension_only(len: u64) -> Dataset {
    let kind = Type::Float(4, ByteOrder::Big);
    Dataset { shape: vec![len], storage: Storage::Absent, ..in_one_piece(kind, vec![]) }
}

const DIMENSION_NUMBER: Type = Type::Integer(4, ByteOrder::Little);

/// The attributes of the dimension with this number: the name of its variable if it has one.
///
/// Sources: the HDF5 Dimension Scale Specification, and "File Format Specifications" of the NetCDF User's Guide.
fn scale(variable: Option<&str>, len: u64, number: usize) -> Vec<Attribute> {
    let name = variable.map_or_else(
        || format!("This is a netCDF dimension but not a netCDF variable. {len:9}"),
        str::to_owned,
    );
    vec![
        Attribute::text("CLASS", "DIMENSION_SCALE"),
        Attribute::text("NAME", &name),
        Attribute {
            name: "_Netcdf4Dimid".to_owned(),
            kind: DIMENSION_NUMBER,
            len: None,
            bytes: (number as i32).to_le_bytes().to_vec(),
        },
    ]
}
