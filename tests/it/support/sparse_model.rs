//! A naive model of a table over a sparse TileDB array: its rows, computed row by row from what was
//! written. The model shares only the parsing of options with the library.
//!
//! ```text
//!   SparseArray ──▶ visible fragments ──▶ rows in time ──▶ latest per coordinates ──▶ not deleted
//!   Event       ──▶                       rows in time ──▶ latest per coordinates ──▶ not deleted
//! ```
//!
//! The second way knows nothing of fragments. Both must agree, unless a schema changes or consolidation
//! drops times.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{Field, Schema};
use gridfusion::ArrayOptions;

use crate::support::open::open_options;
use crate::support::sparse_writer::{
    Condition, Coordinate, Deletion, Operator, Row, SparseArray, SparseFragment, SparseSchema,
    State, compare,
};
use crate::support::tiledb_model::{attribute_column, dimension_column};
use crate::support::tiledb_writer::{Cell, TestAttribute};

/// The times that an open sees, both ends included.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl Window {
    pub(crate) const ALL: Self = Self { start: 0, end: u64::MAX };

    fn of(options: &ArrayOptions) -> Self {
        let open = open_options(options);
        Self { start: open.start, end: open.end.unwrap_or(u64::MAX) }
    }

    fn sees(self, time: u64) -> bool {
        self.start <= time && time <= self.end
    }

    /// Whether the window sees a fragment, or a vacuum file with the name of one. Fragments before
    /// format 15 have no time per row, so they must be wholly in the window.
    fn sees_fragment(self, fragment: &SparseFragment) -> bool {
        let (t1, t2) = fragment.times;
        match fragment.version {
            ..15 => self.sees(t1) && self.sees(t2),
            _ => t1 <= self.end && self.start <= t2,
        }
    }
}

/// A row of the table: its coordinates, and a cell per attribute of the schema.
pub(crate) type Shown = (Vec<Coordinate>, Vec<Cell>);

/// The rows that an open shows, and how many rows it hides.
#[derive(Debug, Default)]
pub(crate) struct Visible {
    pub(crate) rows: Vec<Shown>,
    /// Rows in the window that later rows replace.
    pub(crate) replaced: usize,
    /// Latest rows that a deletion deletes.
    pub(crate) deleted: usize,
}

/// The cell of an attribute in a row that was written with the schema `from`. An attribute that the
/// schema lacks has its fill value.
pub(crate) fn carried(from: &SparseSchema, row: &Row, to: &TestAttribute) -> Cell {
    let is_it = |stored: &TestAttribute| {
        stored.name == to.name && stored.values.is_none() == to.values.is_none()
    };
    match from.attributes.iter().position(is_it) {
        Some(number) => row.cells[number].clone(),
        None => (!to.nullable || to.fill_valid).then(|| to.fill.clone()),
    }
}

/// The type and the bytes of a field of a row; `None` if the schema lacks it.
fn field_of(schema: &SparseSchema, row: &Row, name: &str) -> Option<(u8, Cell)> {
    let dimension = schema.dimensions.iter().position(|dimension| dimension.name == name);
    if let Some(number) = dimension {
        return Some((schema.dimensions[number].code, Some(row.coordinates[number].clone())));
    }
    let number = schema.attributes.iter().position(|attribute| attribute.name == name)?;
    Some((schema.attributes[number].code, row.cells[number].clone()))
}

/// Whether a condition holds for a row. A comparison with NULL, or of a field that the schema lacks, is
/// false. So is a comparison with NaN, unless it is for inequality.
fn holds(condition: &Condition, schema: &SparseSchema, row: &Row) -> bool {
    let (field, operator, values) = match condition {
        Condition::And(parts) => return parts.iter().all(|part| holds(part, schema, row)),
        Condition::Or(parts) => return any_holds(false, parts, schema, row),
        Condition::Compare { field, operator, values } => (field, operator, values),
    };
    let Some((code, Some(cell))) = field_of(schema, row, field) else { return false };
    let order = compare(code, &cell, &values[0]);
    match operator {
        Operator::Less => order == Some(Ordering::Less),
        Operator::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        Operator::Greater => order == Some(Ordering::Greater),
        Operator::GreaterOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        Operator::Equal => order == Some(Ordering::Equal),
        Operator::NotEqual => order != Some(Ordering::Equal),
        // Sets are compared byte by byte.
        Operator::In => values.contains(&cell),
        Operator::NotIn => !values.contains(&cell),
    }
}

/// Whether `first` or one of the parts holds. As in TileDB, a comparison of a field that the schema lacks
/// makes the parts before it count for nothing.
fn any_holds(first: bool, parts: &[Condition], schema: &SparseSchema, row: &Row) -> bool {
    parts.iter().fold(first, |any, part| match part {
        Condition::Compare { field, .. } if field_of(schema, row, field).is_none() => false,
        part => any || holds(part, schema, row),
    })
}

/// Whether a deletion that was not applied to a fragment yet deletes a row of it.
pub(crate) fn deletes(
    array: &SparseArray,
    fragment: &SparseFragment,
    row: &Row,
    number: usize,
) -> bool {
    let Deletion { time, keeps } = &array.deletions[number];
    let was_applied = fragment.has_deletions && fragment.processed.contains(&number);
    if was_applied || *time < fragment.times.0 {
        return false;
    }
    let schema = &array.schemas[fragment.schema];
    let is_inside = fragment.keeps_times && *time <= fragment.times.1;
    let is_kept = match keeps {
        _ if !is_inside || row.time <= *time => holds(keeps, schema, row),
        // A row after the deletion is kept, as if by the first part of an OR.
        Condition::Or(parts) => any_holds(true, parts, schema, row),
        part => any_holds(true, std::slice::from_ref(part), schema, row),
    };
    !is_kept
}

/// The numbers of the visible fragments, the oldest first.
pub(crate) fn visible_fragments(array: &SparseArray, window: Window) -> Vec<usize> {
    let sees = |number: usize| window.sees_fragment(&array.fragments[number]);
    let vacuums = array.vacuums.iter().filter(|vacuum| sees(vacuum.by));
    let replaced: Vec<usize> = vacuums.flat_map(|vacuum| vacuum.fragments.clone()).collect();
    let is_present = |number: usize| array.fragments[number].state == State::Present;
    let mut numbers: Vec<usize> = (0..array.fragments.len())
        .filter(|at| is_present(*at) && sees(*at) && !replaced.contains(at))
        .collect();
    numbers.sort_by_key(|at| (array.fragments[*at].times.0, array.fragment_name(*at)));
    numbers
}

/// The schema of an open: the last one in its time, or else the first.
fn schema_at(array: &SparseArray, end: u64) -> &SparseSchema {
    let in_time = |schema: &&SparseSchema| schema.time <= end;
    array.schemas.iter().rfind(in_time).unwrap_or(&array.schemas[0])
}

/// Keeps the latest of the rows with equal coordinates, unless the array allows duplicates. Each row
/// comes after its time; of equal times, the last counts.
fn latest<'a, T>(
    schema: &SparseSchema,
    rows: Vec<(u64, &'a Row, T)>,
) -> (Vec<(u64, &'a Row, T)>, usize) {
    if schema.allows_duplicates {
        return (rows, 0);
    }
    let all = rows.len();
    let mut kept: BTreeMap<&Vec<Coordinate>, (u64, &Row, T)> = BTreeMap::new();
    for (time, row, of) in rows {
        let is_later = kept.get(&row.coordinates).is_none_or(|(other, ..)| *other <= time);
        if is_later {
            kept.insert(&row.coordinates, (time, row, of));
        }
    }
    let replaced = all - kept.len();
    (kept.into_values().collect(), replaced)
}

/// The rows that an open shows, by its fragments.
pub(crate) fn visible(array: &SparseArray, window: Window) -> Visible {
    let schema = schema_at(array, window.end);
    let mut rows = vec![];
    for number in visible_fragments(array, window) {
        let fragment = &array.fragments[number];
        for row in &fragment.rows {
            let time = if fragment.keeps_times { row.time } else { fragment.times.0 };
            if !fragment.keeps_times || window.sees(time) {
                rows.push((time, row, fragment));
            }
        }
    }
    let (rows, replaced) = latest(schema, rows);
    let mut visible = Visible { replaced, ..Visible::default() };
    let in_time = |number: &usize| window.sees(array.deletions[*number].time);
    let deletions: Vec<usize> = (0..array.deletions.len()).filter(in_time).collect();
    for (_, row, fragment) in rows {
        let marked = row.deletion.is_some_and(|at| array.deletions[at].time <= window.end);
        if marked || deletions.iter().any(|at| deletes(array, fragment, row, *at)) {
            visible.deleted += 1;
            continue;
        }
        let stored = &array.schemas[fragment.schema];
        let cells = schema.attributes.iter().map(|attribute| carried(stored, row, attribute));
        visible.rows.push((row.coordinates.clone(), cells.collect()));
    }
    visible
}

/// A change that a user made to an array.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    Write { time: u64, rows: Vec<Row> },
    Delete(Deletion),
}

/// The rows that an open shows, by the events up to then. All have the same schema.
pub(crate) fn visible_by_events(
    schema: &SparseSchema,
    events: &[Event],
    window: Window,
) -> Vec<Shown> {
    let mut rows = vec![];
    let mut deletions = vec![];
    for event in events {
        match event {
            Event::Write { time, rows: written } if window.sees(*time) => {
                rows.extend(written.iter().map(|row| (*time, row, ())));
            }
            Event::Delete(deletion) if window.sees(deletion.time) => deletions.push(deletion),
            _ => {}
        }
    }
    let (mut rows, _) = latest(schema, rows);
    rows.retain(|(time, row, ())| {
        let mut later = deletions.iter().filter(|deletion| deletion.time > *time);
        later.all(|deletion| holds(&deletion.keeps, schema, row))
    });
    rows.into_iter().map(|(_, row, ())| (row.coordinates.clone(), row.cells.clone())).collect()
}

/// The table under these options, in any order of rows, and how many rows it hides.
pub(crate) fn table(array: &SparseArray, options: &ArrayOptions) -> (RecordBatch, Visible) {
    let window = Window::of(options);
    let schema = schema_at(array, window.end);
    let visible = visible(array, window);
    let (mut fields, mut columns) = (vec![], vec![]);
    let mut add = |name: &str, column: ArrayRef| {
        fields.push(Field::new(name, column.data_type().clone(), true));
        columns.push(column);
    };
    for (number, dimension) in schema.dimensions.iter().enumerate() {
        let rows = visible.rows.iter();
        let cells: Vec<Cell> =
            rows.map(|(coordinates, _)| Some(coordinates[number].clone())).collect();
        add(&dimension.name, dimension_column(dimension.code, &cells, options).unwrap());
    }
    for (number, attribute) in schema.attributes.iter().enumerate() {
        let name = if attribute.name.is_empty() { "value" } else { &attribute.name };
        let cells: Vec<Cell> =
            visible.rows.iter().map(|(_, cells)| cells[number].clone()).collect();
        add(name, attribute_column(attribute, cells, options).unwrap());
    }
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
    (batch, visible)
}
