//! [`ZarrAppender`]: the writes of an append.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::ops::Range;
use std::time::SystemTime;

use arrow::array::{Array, ArrayRef, UInt64Array, new_null_array};
use arrow::buffer::NullBuffer;
use arrow::compute::take;
use bytes::Bytes;
use gridfusion_core::array::failed_to;
use gridfusion_core::format::{Content, Publish, Write, Writer};
use gridfusion_core::grid::unravel;
use gridfusion_core::write::{
    ArrayWriter, ChangedCells, ExistingCells, NewArray, NewChunk, in_threads, lens,
};
use gridfusion_core::{Error, Result};
use tokio::runtime::Handle;

use super::change::{Change, Object, OldCells};
use super::finer_times::FinerTimes;
use super::metadata::axis_of;
use super::object_cells::NewCells;
use super::sides::SideCells;
use super::staged::StagedObjects;
use super::target::{MOST_LEFT, ZarrTarget};
use super::variable::TargetVariable;
use crate::document_text::with_length;
use crate::journal::{JOURNAL, Journal};
use crate::write::{DOCUMENT, document_of};

/// The most bytes of NULL of an array without a column, which are held in memory.
const MOST_NULLS: usize = 1 << 28;

/// Writes rows of an array into the store that has it.
#[derive(Debug)]
pub(super) struct ZarrAppender {
    target: ZarrTarget,
    /// The array with the rows, which are in its region. Its chunks have whole objects of each variable.
    array: NewArray,
    /// The cells that the rows have values for.
    changed: ChangedCells,
    /// The arrays without a column that become longer with NULL.
    filled: Vec<TargetVariable>,
    /// The labels of the dimension that becomes longer, if they get other units.
    finer: Option<FinerTimes>,
    /// The values of each of the target's side arrays.
    sides: Vec<SideCells>,
    /// The variables and coordinates of the chunks that were written.
    written: BTreeSet<(usize, Vec<u64>)>,
    /// Tells the staged objects from those of other writers.
    id: String,
    staged: StagedObjects,
    /// Whether the journal was written.
    has_begun: bool,
}

/// Returns a text that no other writer has.
fn new_id() -> String {
    let mut hasher = RandomState::new().build_hasher();
    SystemTime::now().hash(&mut hasher);
    std::process::id().hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

impl ZarrAppender {
    pub(super) fn try_new(
        target: ZarrTarget,
        array: NewArray,
        changed: ChangedCells,
        filled: Vec<TargetVariable>,
        finer: Option<FinerTimes>,
    ) -> Result<Self> {
        let id = new_id();
        let staged = StagedObjects::new(id.clone());
        let written = BTreeSet::new();
        let sides = target.sides.iter().map(|side| side.cells(&array)).collect::<Result<_>>()?;
        let has_begun = false;
        Ok(Self { target, array, changed, filled, finer, sides, written, id, staged, has_begun })
    }

    /// Returns the number of the side array that a variable is; `None` for other variables.
    fn side(&self, variable: usize) -> Option<usize> {
        let name = &self.array.variables()[variable].name;
        self.target.sides.iter().position(|side| side.name() == name)
    }

    fn variable(&self, number: usize) -> Result<&TargetVariable> {
        let name = &self.array.variables()[number].name;
        let found = self.target.variables.iter().find(|it| it.name() == name);
        found.ok_or_else(|| Error::internal("a variable of another name"))
    }

    fn journal(&self, is_committed: bool) -> Journal {
        let id = self.id.clone();
        let (dimension, Range { start: from, end: to }) = match self.changed.longer() {
            Some((axis, added)) => (self.target.dimensions[*axis].name.clone(), added.clone()),
            None => (String::new(), 0..0),
        };
        let separate = self.lengthened().filter(|_| self.target.root.is_none());
        let arrays = separate.map(|(variable, _)| variable.name().to_owned()).collect();
        let finer = self.finer.as_ref().map(|it| self.target.labels[it.axis].name().to_owned());
        Journal { id, dimension, from, to, arrays, finer, is_committed }
    }

    /// Returns the arrays that become longer, each with the axis; none if no dimension does. Their order does not depend on that of the
    /// rows' columns, so that two programs begin with the same document.
    fn lengthened(&self) -> impl Iterator<Item = (&TargetVariable, usize)> {
        let of_axis = |(longer, _): &(usize, Range<u64>)| {
            let dimension = &self.target.dimensions[*longer].name;
            let labels = &self.target.labels[*longer];
            let sides = self.target.sides.iter().map(|side| &side.variable);
            let mut all: Vec<&TargetVariable> =
                self.target.variables.iter().chain(sides).chain(&self.filled).collect();
            all.sort_by(|a, b| a.name().cmp(b.name()));
            all.push(labels);
            let axis = |variable: &TargetVariable| {
                axis_of(&self.target.metadata[variable.name()], dimension)
            };
            all.into_iter().filter_map(|it| Some((it, axis(it)?))).collect::<Vec<_>>()
        };
        self.changed.longer().into_iter().flat_map(of_axis)
    }

    /// Returns the own document of an array as it is before the array becomes longer.
    fn own_document(&self, variable: &TargetVariable) -> Result<Bytes> {
        let is_own = |it: &&FinerTimes| self.target.labels[it.axis].name() == variable.name();
        match self.finer.as_ref().filter(is_own) {
            Some(finer) => finer.document(&variable.document, &[]),
            None => Ok(variable.document.clone()),
        }
    }

    /// Returns the objects of a chunk.
    fn objects(&self, chunk: &NewChunk, runtime: &Handle) -> Result<Vec<Object>> {
        let ranges = self.array.ranges_of(chunk)?;
        if self.side(chunk.variable).is_some() {
            return Ok(vec![]);
        }
        let variable = self.variable(chunk.variable)?;
        let numbers = self.changed.numbers(&ranges, chunk.given.as_ref());
        let cells = match &numbers {
            None => ArrayRef::clone(&chunk.cells),
            Some(numbers) if numbers.is_empty() => return Ok(vec![]),
            Some(numbers) => {
                let numbers = UInt64Array::from_iter_values(numbers.iter().copied());
                take(&chunk.cells, &numbers, None).map_err(failed_to("choose cells"))?
            }
        };
        let number = |at: usize| numbers.as_ref().map_or(at, |numbers| numbers[at] as usize);
        let name =
            |number: u64| format!("the cell {}", self.array.labels_of(&ranges, number as usize));
        let stored = variable.stored(&cells, |at| name(number(at) as u64))?;
        let cells = NewCells::new(ranges.clone(), stored, numbers);
        let shape = self.array.grid().shape().to_vec();
        let existing = self.changed.existing();
        Change { variable, cells, shape, existing, name: &name }.objects(runtime)
    }

    /// Returns the objects of side arrays.
    fn side_objects(&self, runtime: &Handle) -> Result<Vec<Object>> {
        let existing = match self.changed.existing() {
            ExistingCells::Refuse | ExistingCells::Same => ExistingCells::Same,
            _ => ExistingCells::Overwrite,
        };
        let mut objects = vec![];
        for (side, told) in self.target.sides.iter().zip(&self.sides) {
            let cells = side.new_cells(told, &self.array, self.changed.longer())?;
            let Some(cells) = cells else { continue };
            let ranges = cells.ranges().to_vec();
            let name =
                |number| format!("the value{}", side.labels_of(&self.array, &ranges, number));
            let (variable, shape) = (&side.variable, side.shape(&self.array));
            let change = Change { variable, cells, shape, existing, name: &name };
            objects.extend(change.objects(runtime)?);
        }
        Ok(objects)
    }

    /// Returns the objects of an array without a column, whose new cells are NULL.
    fn filled_objects(&self, variable: &TargetVariable, runtime: &Handle) -> Result<Vec<Object>> {
        let Some((longer, added)) = self.changed.longer() else { return Ok(vec![]) };
        let dimension = &self.target.dimensions[*longer].name;
        let axis = axis_of(&self.target.metadata[variable.name()], dimension);
        let axis = axis.ok_or_else(|| Error::internal("an array of other dimensions"))?;
        let mut shape = variable.shape();
        if shape[axis] != added.start {
            return Err(Error::usage(format!(
                "\"{}\" has {} places along {dimension}, which has {} labels",
                variable.name(),
                shape[axis],
                added.start
            )));
        }
        shape[axis] = added.end;
        let edges = variable.object_shape();
        let mut numbers: Vec<Range<u64>> =
            shape.iter().zip(edges).map(|(len, edge)| 0..len.div_ceil(*edge)).collect();
        numbers[axis].start = added.start / edges[axis];
        let counts = lens(&numbers);
        if counts.iter().product::<u64>() > MOST_LEFT as u64 {
            return Err(Error::usage(format!(
                "\"{}\" would get more than {MOST_LEFT} objects of NULL at once; append a part of the rows",
                variable.name()
            )));
        }
        let (name, existing) = (|_| "a new cell".to_owned(), ExistingCells::Refuse);
        let mut objects = vec![];
        for number in 0..counts.iter().product() {
            let at = unravel(number, &counts).into_iter().zip(&numbers);
            let at = at.map(|(at, range)| at + range.start).zip(edges).zip(&shape);
            let mut ranges: Vec<Range<u64>> =
                at.map(|((at, edge), len)| at * edge..((at + 1) * edge).min(*len)).collect();
            ranges[axis].start = ranges[axis].start.max(added.start);
            let cells = lens(&ranges).iter().product::<u64>() as usize;
            let nulls = new_null_array(&variable.shown_type(), cells);
            let stored = variable.stored(&nulls, |_| "a new cell".to_owned())?;
            let cells = NewCells::new(ranges, stored, None);
            let change = Change { variable, cells, shape: shape.clone(), existing, name: &name };
            objects.extend(change.objects(runtime)?);
            let bytes: usize =
                objects.iter().filter_map(|it: &Object| it.bytes.as_ref()).map(Vec::len).sum();
            if bytes > MOST_NULLS {
                return Err(Error::usage(format!(
                    "\"{}\" would get more than {MOST_NULLS} bytes of NULL at once; append a part of the rows",
                    variable.name()
                )));
            }
        }
        Ok(objects)
    }

    /// Returns the objects with the new labels.
    fn labels(&self, runtime: &Handle) -> Result<Vec<Object>> {
        let Some((axis, added)) = self.changed.longer() else { return Ok(vec![]) };
        let variable = &self.target.labels[*axis];
        let dimension = &self.array.dimensions()[*axis];
        let Range { start, end } = *added;
        let new = dimension.labels.slice(start as usize, (end - start) as usize);
        if let Some(finer) = &self.finer {
            // Without the root's document, they must stay when an append fails: their own document is there by then.
            let is_separate = self.target.root.is_none();
            let cells = if is_separate { OldCells::Kept } else { OldCells::None };
            return finer.objects(variable, &new, cells);
        }
        let name = |at: u64| format!("the label {}", start + at);
        let stored = variable.stored(&new, |at| name(at as u64)).map_err(|error| {
            let error = error.about(&format!("the labels of {}", dimension.name));
            self.target.with_hint(error, *axis, &new)
        })?;
        let cells = NewCells::new(std::iter::once(start..end).collect(), stored, None);
        let existing = self.changed.existing();
        Change { variable, cells, shape: vec![end], existing, name: &name }.objects(runtime)
    }
    /// Returns the variables and coordinates of the chunks of the region that no row was in. A program that was stopped may have left cells
    /// there.
    fn left_out(&self) -> Vec<(usize, Vec<u64>)> {
        let numbers = self.array.chunks_of_region();
        let lens: Vec<u64> = numbers.iter().map(|range| range.end - range.start).collect();
        let all = (0..self.array.variables().len())
            .filter(|variable| self.side(*variable).is_none())
            .flat_map(|variable| (0..lens.iter().product()).map(move |number| (variable, number)));
        let chunk = |(variable, number)| {
            let at = unravel(number, &lens).into_iter().zip(&numbers);
            (variable, at.map(|(at, range)| at + range.start).collect())
        };
        all.map(chunk)
            .filter(|chunk| !self.written.contains(chunk) && self.must_be_written(&chunk.1))
            .collect()
    }

    /// Whether a chunk without rows is written: it has new cells, or such as become NULL.
    fn must_be_written(&self, chunk: &[u64]) -> bool {
        let is_new = |(axis, added): &(usize, Range<u64>)| {
            self.array.ranges_in(chunk)[*axis].end > added.start
        };
        self.changed.existing() == ExistingCells::Clear || self.changed.longer().is_some_and(is_new)
    }

    /// Returns a chunk of NULL.
    fn nulls(&self, variable: usize, coordinates: Vec<u64>) -> NewChunk {
        let ranges = self.array.ranges_in(&coordinates);
        let cells: u64 = ranges.iter().map(|range| range.end - range.start).product();
        let data_type = &self.array.variables()[variable].data_type;
        let given = Some(NullBuffer::new_null(cells as usize));
        let cells = new_null_array(data_type, cells as usize);
        NewChunk { variable, coordinates, cells, given }
    }

    /// Returns the write before those of objects: the journal.
    fn begin(&mut self) -> Vec<Write> {
        match std::mem::replace(&mut self.has_begun, true) {
            true => vec![],
            false => vec![Write::Overwrite(vec![self.journal(false).content()])],
        }
    }

    /// Returns the writes of objects, after the journal.
    ///
    /// # Errors
    /// `Usage` for more changed objects than the next program mends.
    fn writes(&mut self, objects: Vec<Object>) -> Result<Vec<Write>> {
        let mut writes = self.begin();
        let (mut added, mut replaced, mut absent) = (vec![], vec![], vec![]);
        for Object { name, bytes, cells } in objects {
            match (cells, bytes) {
                (OldCells::Changed, bytes) => added.push(self.staged.stage(name, bytes)),
                (OldCells::Kept, Some(bytes)) => replaced.push(Content::new(name, bytes)),
                (OldCells::None, Some(bytes)) => added.push(Content::new(name, bytes)),
                (_, None) => absent.push(name),
            }
        }
        if self.staged.len() > MOST_LEFT {
            return Err(Error::usage(format!(
                "cells of more than {MOST_LEFT} objects would change at once; change a part of them"
            )));
        }
        if !absent.is_empty() {
            writes.push(Write::Delete(absent));
        }
        if !replaced.is_empty() {
            writes.push(Write::Replace(replaced));
        }
        if !added.is_empty() {
            writes.push(Write::Overwrite(added));
        }
        Ok(writes)
    }
}

impl Writer for ZarrAppender {
    type Chunk = NewChunk;

    fn write(&mut self, chunk: NewChunk) -> Result<Vec<Write>> {
        self.write_many(vec![chunk], 1)
    }

    fn finish(&mut self) -> Result<(Vec<Write>, Publish)> {
        let mut writes = vec![];
        for (variable, coordinates) in self.left_out() {
            writes.extend(self.write(self.nulls(variable, coordinates))?);
        }
        let beside = in_threads(&[Handle::current()], 1, |runtime| {
            let mut objects = self.side_objects(runtime)?;
            for variable in &self.filled {
                objects.extend(self.filled_objects(variable, runtime)?);
            }
            objects.extend(self.labels(runtime)?);
            Ok(objects)
        })?;
        writes.extend(self.writes(beside.into_iter().flatten().collect())?);
        let Some((_, added)) = self.changed.longer() else {
            let (content, old) = (self.journal(true).content(), self.journal(false).content());
            return Ok((writes, Publish::Update { content, old: old.bytes }));
        };
        let Some(old) = self.target.root.clone() else {
            let first = self.lengthened().next();
            let (first, axis) =
                first.ok_or_else(|| Error::internal("an array without variables"))?;
            if let Some(finer) = &self.finer {
                let labels = &self.target.labels[finer.axis];
                let document = Content::new(document_of(labels.name()), self.own_document(labels)?);
                writes.push(Write::Replace(vec![document]));
            }
            let old = self.own_document(first)?;
            let bytes = with_length(&old, &[], axis, added.end)?;
            let content = Content::new(document_of(first.name()), bytes);
            return Ok((writes, Publish::Update { content, old }));
        };
        let mut bytes = old.clone();
        if let Some(finer) = &self.finer {
            let name = self.target.labels[finer.axis].name();
            bytes = finer.document(&bytes, &["consolidated_metadata", "metadata", name])?;
        }
        for (variable, axis) in self.lengthened() {
            let path = ["consolidated_metadata", "metadata", variable.name()];
            bytes = with_length(&bytes, &path, axis, added.end)?;
        }
        Ok((writes, Publish::Update { content: Content::new(DOCUMENT, bytes), old }))
    }
}

impl ArrayWriter for ZarrAppender {
    fn array(&self) -> &NewArray {
        &self.array
    }

    fn memory(&self) -> u64 {
        let of_labels = self.finer.as_ref().map_or(0, FinerTimes::memory);
        of_labels + self.sides.iter().map(SideCells::memory).sum::<u64>()
    }

    /// Only columns with a part of the dimensions are held.
    fn instead_of_memory(&self) -> &'static str {
        "append a part of the rows, or leave out columns with fewer dimensions"
    }

    fn chunk_memory(&self) -> u64 {
        let of = |variable: &TargetVariable| {
            let boxes = self.array.grid().chunk_shape().zip(variable.object_shape());
            let objects = boxes.map(|(whole, edge)| whole.div_ceil(*edge)).product::<u64>();
            variable.object_memory(self.changed.existing()).saturating_mul(objects)
        };
        self.target.variables.iter().map(of).max().unwrap_or(0)
    }

    fn write_many(&mut self, chunks: Vec<NewChunk>, threads: usize) -> Result<Vec<Write>> {
        for chunk in &chunks {
            let Some(side) = self.side(chunk.variable) else { continue };
            let ranges = self.array.ranges_of(chunk)?;
            self.target.sides[side].add(&mut self.sides[side], &self.array, &ranges, chunk)?;
        }
        let runtime = Handle::current();
        let objects = in_threads(&chunks, threads, |chunk| self.objects(chunk, &runtime))?;
        for NewChunk { variable, coordinates, .. } in chunks {
            if !self.written.insert((variable, coordinates.clone())) {
                let message = format!("chunk {coordinates:?} is written twice");
                return Err(Error::usage(message));
            }
        }
        self.writes(objects.into_iter().flatten().collect())
    }

    /// Gives the arrays' own documents the lengths that the root, or the first of them, has by now, and staged objects their places.
    fn afterwards(&mut self) -> Vec<Write> {
        let mut writes = vec![];
        let mut in_place = self.staged.in_place();
        if let Some((_, added)) = self.changed.longer() {
            let document = |(variable, axis): (&TargetVariable, usize)| {
                let own = self.own_document(variable).ok()?;
                let bytes = with_length(&own, &[], axis, added.end).ok()?;
                Some(Content::new(document_of(variable.name()), bytes))
            };
            let is_separate = self.target.root.is_none();
            let others = self.lengthened().skip(usize::from(is_separate)).filter_map(document);
            let others = Write::Replace(others.collect());
            // Readers of separate documents find arrays of several lengths until all are there, so these come first.
            match is_separate {
                true => writes.push(others),
                false => in_place.push(others),
            }
        }
        writes.append(&mut in_place);
        writes.push(Write::Delete(vec![JOURNAL.into()]));
        writes
    }
}
