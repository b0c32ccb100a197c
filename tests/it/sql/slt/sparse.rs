//! Sparse TileDB arrays that have every cell of a dense array, in two fragments.

use std::ops::Range;
use std::path::{Path, PathBuf};

use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::conformance::format::{Capabilities, FormatUnderTest};
use crate::conformance::logical::{Axis, Cell, Element, Labels, Logical, Values};
use crate::conformance::tiledb::TileDb;
use crate::support::positions;
use crate::support::sparse_writer::{
    Coordinate, ROW_MAJOR, Row, SparseArray, SparseDimension, SparseFragment, SparseSchema, State,
};
use crate::support::tiledb_writer::{
    ASCII, FLOAT32, FLOAT64, Filters, INT32, INT64, TestAttribute, TestStatistics, put_in_folder,
};

const DATETIME_HR: u8 = 22;

pub(super) struct SparseTileDb;

impl FormatUnderTest for SparseTileDb {
    fn name(&self) -> &'static str {
        "tiledb"
    }

    fn suffix(&self) -> &'static str {
        ""
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { holds: |_| true, ..TileDb.capabilities() }
    }

    fn write(&self, array: &Logical, path: &Path) {
        let schema = SparseSchema {
            time: 1,
            dimensions: array.axes.iter().map(dimension).collect(),
            attributes: array.values.iter().map(attribute).collect(),
            allows_duplicates: false,
            tile_order: ROW_MAJOR,
            cell_order: ROW_MAJOR,
            capacity: 7,
            current_domain: None,
            coordinates: Filters::None,
            offsets: Filters::None,
            validity: Filters::None,
        };
        let mut fragments = [10, 20].map(fragment);
        for (place, index) in positions(&array.shape()).into_iter().enumerate() {
            let fragment = &mut fragments[place % 2];
            fragment.rows.push(Row {
                time: fragment.times.0,
                deletion: None,
                coordinates: array
                    .axes
                    .iter()
                    .zip(index)
                    .map(|(axis, at)| coordinates(axis)[at as usize].clone())
                    .collect(),
                cells: array.values.iter().map(|values| stored(values, place)).collect(),
            });
        }
        let array = SparseArray {
            schemas: vec![schema],
            fragments: fragments.to_vec(),
            vacuums: vec![],
            deletions: vec![],
            commit_list: false,
        };
        put_in_folder(&array.files(&mut StdRng::seed_from_u64(1)), path);
    }

    fn metadata(&self, path: &Path) -> (PathBuf, Range<usize>) {
        TileDb.metadata(path)
    }
}

/// An empty fragment of a time.
fn fragment(time: u64) -> SparseFragment {
    SparseFragment {
        times: (time, time),
        version: 22,
        state: State::Present,
        schema: 0,
        rows: vec![],
        keeps_times: false,
        has_deletions: false,
        processed: vec![],
        statistics: TestStatistics::Right,
    }
}

/// The coordinates of an axis, in order.
fn coordinates(axis: &Axis) -> Vec<Coordinate> {
    match &axis.labels {
        Labels::Index(len) => (0..*len as i64).map(|it| it.to_le_bytes().to_vec()).collect(),
        Labels::Integers(all) | Labels::Hours(all) => {
            all.iter().map(|it| it.to_le_bytes().to_vec()).collect()
        }
        Labels::Floats(all) => all.iter().map(|it| it.to_le_bytes().to_vec()).collect(),
        Labels::Singles(all) => all.iter().map(|it| it.to_le_bytes().to_vec()).collect(),
        Labels::Text(all) => all.iter().map(|it| it.as_bytes().to_vec()).collect(),
    }
}

fn dimension(axis: &Axis) -> SparseDimension {
    let code = match axis.labels {
        Labels::Index(_) | Labels::Integers(_) => INT64,
        Labels::Hours(_) => DATETIME_HR,
        Labels::Floats(_) => FLOAT64,
        Labels::Singles(_) => FLOAT32,
        Labels::Text(_) => ASCII,
    };
    let all = coordinates(axis);
    let domain = match code {
        ASCII => [vec![], vec![]],
        _ => [all[0].clone(), all[all.len() - 1].clone()],
    };
    SparseDimension { name: axis.name.into(), code, domain, extent: None, filters: Filters::None }
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
        nullable: true,
        fill: values.element.bytes(Cell::Fill),
        fill_valid: false,
        filters: Filters::ShuffleZstd,
    }
}

/// The bytes of a cell; `None` for NULL.
fn stored(values: &Values, place: usize) -> Option<Vec<u8>> {
    let cell = values.cells[place];
    matches!(cell, Cell::Number(_)).then(|| values.element.bytes(cell))
}
