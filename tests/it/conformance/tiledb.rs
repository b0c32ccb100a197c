//! The TileDB format in the suite, written by the tests' own writer: in one fragment, or in a fragment per
//! chunk if some chunks are left out.

use std::ops::Range;
use std::path::{Path, PathBuf};

use arrow::datatypes::{DataType, TimeUnit};
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::format::{Capabilities, FormatUnderTest, as_given};
use super::logical::{Axis, Cell, Chunk, Element, Labels, Logical, Values};
use crate::support::tiledb_writer::{
    FLOAT32, FLOAT64, Filters, INT32, INT64, TestArray, TestAttribute, TestDimension, TestFragment,
    TestSchema, TestStatistics, put_in_folder,
};

const DATETIME_HR: u8 = 22;

pub(crate) struct TileDb;

impl FormatUnderTest for TileDb {
    fn name(&self) -> &'static str {
        "tiledb"
    }

    fn suffix(&self) -> &'static str {
        ""
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            holds: Labels::count_up,
            divides: as_given,
            hours: DataType::Timestamp(TimeUnit::Second, None),
            notes_bounds: true,
            has_attributes: false,
            holds_chunks_in_metadata: false,
        }
    }

    fn write(&self, array: &Logical, path: &Path) {
        let schema = TestSchema {
            time: 1,
            dimensions: array.axes.iter().map(dimension).collect(),
            attributes: array.values.iter().map(attribute).collect(),
            column_major: [false, array.axes.len() > 1],
            current_domain: Some(array.axes.iter().map(|axis| domain(&axis.labels)).collect()),
            offsets: Filters::None,
            validity: Filters::None,
        };
        let array = TestArray {
            schemas: vec![schema],
            fragments: fragments(array),
            vacuums: vec![],
            commit_list: false,
        };
        put_in_folder(&array.files(&mut StdRng::seed_from_u64(1)), path);
    }

    /// The schema, without the version of its envelope, as another version may be valid.
    fn metadata(&self, path: &Path) -> (PathBuf, Range<usize>) {
        let mut files = std::fs::read_dir(path.join("__schema")).unwrap();
        let file = files.next().unwrap().unwrap().path();
        let len = std::fs::read(&file).unwrap().len();
        (file, 4..len)
    }
}

/// The range of coordinates, which have no gaps.
fn domain(labels: &Labels) -> (i128, i128) {
    match labels {
        Labels::Integers(all) | Labels::Hours(all) => {
            (all[0].into(), (*all.last().unwrap()).into())
        }
        _ => (0, i128::from(labels.len()) - 1),
    }
}

fn dimension(axis: &Axis) -> TestDimension {
    TestDimension {
        name: axis.name.into(),
        code: if matches!(axis.labels, Labels::Hours(_)) { DATETIME_HR } else { INT64 },
        domain: domain(&axis.labels),
        extent: axis.chunk.into(),
    }
}

fn attribute(values: &Values) -> TestAttribute {
    let code = match values.element {
        Element::F32 => FLOAT32,
        Element::F64 => FLOAT64,
        Element::I32 => INT32,
        Element::I64 => INT64,
    };
    TestAttribute {
        name: values.name.into(),
        code,
        values: Some(1),
        nullable: false,
        fill: values.element.bytes(Cell::Fill),
        fill_valid: false,
        filters: if values.element.is_float() { Filters::ShuffleZstd } else { Filters::None },
    }
}

fn fragments(array: &Logical) -> Vec<TestFragment> {
    let chunks = array.chunks();
    let mut written: Vec<Chunk> =
        chunks.iter().filter(|chunk| !array.is_all_fill(chunk)).cloned().collect();
    if written.len() == chunks.len() {
        let shape = array.shape();
        let places = (0..array.values[0].cells.len()).collect();
        let zeros = vec![0; shape.len()];
        written = vec![Chunk { at: zeros.clone(), start: zeros, shape, places }];
    }
    let fragment = |(time, chunk): (u64, &Chunk)| {
        let range = |d: usize| {
            let low = domain(&array.axes[d].labels).0 + i128::from(chunk.start[d]);
            (low, low + i128::from(chunk.shape[d]) - 1)
        };
        let cells = |values: &Values| {
            let bytes = chunk.places.iter().map(|at| Some(values.element.bytes(values.cells[*at])));
            bytes.collect()
        };
        TestFragment {
            times: (time, time),
            schema: 0,
            ranges: (0..chunk.shape.len()).map(range).collect(),
            cells: array.values.iter().map(cells).collect(),
            statistics: TestStatistics::Right,
        }
    };
    (10..).zip(&written).map(fragment).collect()
}
