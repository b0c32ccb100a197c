//! The `.tet` format in the suite, written by the tests' own writer.

use std::ops::Range;
use std::path::{Path, PathBuf};

use arrow::datatypes::{DataType, TimeUnit};
use serde_json::{Map, Value, json};

use super::format::{Capabilities, FormatUnderTest, as_given};
use super::logical::{Cell, Element, Labels, Logical, Values};
use crate::support::{F32, F64, I32, I64, Layout, TestDataset, tet_bytes};

pub(crate) struct Tet;

impl FormatUnderTest for Tet {
    fn name(&self) -> &'static str {
        "tet"
    }

    fn suffix(&self) -> &'static str {
        ".tet"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            holds: |_| true,
            divides: as_given,
            hours: DataType::Timestamp(TimeUnit::Microsecond, None),
            notes_bounds: true,
            has_attributes: true,
            holds_chunks_in_metadata: false,
        }
    }

    fn write(&self, array: &Logical, path: &Path) {
        let (shape, chunk) =
            (array.shape(), array.axes.iter().map(|it| it.chunk).collect::<Vec<_>>());
        let places: Vec<usize> = (0..array.values[0].cells.len()).collect();
        let mut datasets: Vec<TestDataset> = array
            .values
            .iter()
            .map(|values| {
                TestDataset::new(
                    values.name,
                    tag(values.element),
                    &shape,
                    &chunk,
                    values.bytes(&places),
                )
                .with_zstd(values.element.is_float())
                .with_metadata(metadata(array, values))
            })
            .collect();
        datasets.extend(array.axes.iter().filter_map(|axis| labels(axis.name, &axis.labels)));
        let zones = Some(zones(array));
        let layout = Layout { history_version: Some(2), zones, ..Layout::default() };
        std::fs::write(path, tet_bytes(&datasets, &layout)).unwrap();
    }

    /// The superblock, the directory, and the head of the index.
    fn metadata(&self, path: &Path) -> (PathBuf, Range<usize>) {
        (path.to_owned(), 0..140)
    }
}

fn tag(element: Element) -> u32 {
    match element {
        Element::F32 => F32,
        Element::F64 => F64,
        Element::I32 => I32,
        Element::I64 => I64,
    }
}

fn metadata(array: &Logical, values: &Values) -> Value {
    let text = array.axes.iter().filter_map(|axis| match &axis.labels {
        Labels::Text(labels) => Some((axis.name.to_owned(), json!({ "labels": labels }))),
        _ => None,
    });
    json!({
        "dim_names": array.dimensions(),
        "coords": text.collect::<Map<_, _>>(),
        "attrs": {"_FillValue": values.element.fill()},
    })
}

/// The dataset that stores labels; `None` if they need no dataset.
fn labels(name: &str, labels: &Labels) -> Option<TestDataset> {
    let (tag, data, attributes) = match labels {
        Labels::Index(_) | Labels::Text(_) => return None,
        Labels::Integers(all) => (I64, le(all), json!({})),
        Labels::Hours(all) => (I64, le(all), json!({"units": "hours since 1970-01-01"})),
        Labels::Floats(all) => {
            (F64, all.iter().flat_map(|it| it.to_le_bytes()).collect(), json!({}))
        }
        Labels::Singles(all) => {
            (F32, all.iter().flat_map(|it| it.to_le_bytes()).collect(), json!({}))
        }
    };
    let metadata = json!({"dim_names": [name], "attrs": attributes});
    let len = labels.len();
    Some(TestDataset::new(name, tag, &[len], &[len], data).with_metadata(metadata))
}

fn le(integers: &[i64]) -> Vec<u8> {
    integers.iter().flat_map(|it| it.to_le_bytes()).collect()
}

/// The zone maps of all chunks, which have their least and greatest values.
fn zones(array: &Logical) -> Value {
    let mut zones = Vec::new();
    for (dataset, values) in array.values.iter().enumerate() {
        for chunk in array.chunks() {
            let numbers = chunk.places.iter().filter_map(|place| match values.cells[*place] {
                Cell::Number(number) => Some(number),
                Cell::Nan | Cell::Fill => None,
            });
            let mut zone = json!({"dataset_id": dataset, "chunk_index": chunk.at,
                "element_count": chunk.places.len(),
                "null_count": chunk.places.len() - numbers.clone().count()});
            if let (Some(least), Some(greatest)) = (numbers.clone().min(), numbers.max()) {
                let hex = |number| -> String {
                    let bytes = values.element.bytes(Cell::Number(number));
                    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
                };
                zone["min_le"] = hex(least).into();
                zone["max_le"] = hex(greatest).into();
            }
            zones.push(zone);
        }
    }
    json!({"version": 1, "chunks": zones})
}
