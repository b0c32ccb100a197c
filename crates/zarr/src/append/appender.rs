//! [`ZarrAppender`]: the writes of an append.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt64Array, new_null_array};
use arrow::compute::{concat, take};
use gridfusion_core::array::failed_to;
use gridfusion_core::format::{Content, Publish, Write, Writer};
use gridfusion_core::grid::unravel;
use gridfusion_core::write::{ArrayWriter, NewArray, NewChunk, cells_of_box, in_threads};
use gridfusion_core::{Error, Result};
use tokio::runtime::Handle;

use super::journal::{JOURNAL, Journal};
use super::shape_in_document::with_length;
use super::target::{DOCUMENT, ZarrTarget, axis_of};
use super::variable::TargetVariable;

/// Writes new rows of an array into the store that has it.
#[derive(Debug)]
pub(super) struct ZarrAppender {
    target: ZarrTarget,
    /// The array with the new rows, of which they are the region. Its chunks have whole objects of each variable.
    array: NewArray,
    /// The dimension that becomes longer.
    axis: usize,
    /// The variables and coordinates of the chunks that were written.
    written: BTreeSet<(usize, Vec<u64>)>,
    /// Whether the journal was written.
    has_begun: bool,
}

/// An object of a variable: its name, and its bytes if it is stored.
struct Object {
    name: Arc<str>,
    bytes: Option<Vec<u8>>,
    /// Whether it has cells that readers see already.
    has_old_cells: bool,
}

impl ZarrAppender {
    pub(super) fn new(target: ZarrTarget, array: NewArray, axis: usize) -> Self {
        Self { target, array, axis, written: BTreeSet::new(), has_begun: false }
    }

    /// The indices that are new along the dimension that becomes longer.
    fn added(&self) -> Range<u64> {
        self.array.region()[self.axis].clone()
    }

    fn variable(&self, number: usize) -> Result<&TargetVariable> {
        let name = &self.array.variables()[number].name;
        let found = self.target.variables.iter().find(|it| it.name() == name);
        found.ok_or_else(|| Error::internal("a variable of another name"))
    }

    fn journal(&self) -> Journal {
        let Range { start: from, end: to } = self.added();
        Journal { dimension: self.target.dimensions[self.axis].name.clone(), from, to }
    }

    /// Returns the objects of a chunk.
    fn objects(&self, chunk: &NewChunk, runtime: &Handle) -> Result<Vec<Object>> {
        let ranges = self.array.ranges_of(chunk)?;
        let variable = self.variable(chunk.variable)?;
        let cell = |at| format!("the cell {}", self.array.labels_of(&ranges, at));
        let stored = variable.stored(&chunk.cells, cell)?;
        self.cut(variable, &stored, &ranges, self.axis, runtime)
    }

    /// Cuts stored cells of a box into the objects of a variable. The cells of an object that are in the array already are read.
    fn cut(
        &self,
        variable: &TargetVariable,
        stored: &ArrayRef,
        ranges: &[Range<u64>],
        axis: usize,
        runtime: &Handle,
    ) -> Result<Vec<Object>> {
        let edges = variable.object_shape();
        let numbers = ranges
            .iter()
            .zip(edges)
            .map(|(range, edge)| range.start / edge..range.end.div_ceil(*edge));
        let numbers: Vec<Range<u64>> = numbers.collect();
        let lens: Vec<u64> = numbers.iter().map(|range| range.end - range.start).collect();
        let shape: Vec<u64> = ranges.iter().map(|range| range.end - range.start).collect();
        let mut objects = vec![];
        for number in 0..lens.iter().product() {
            let at = unravel(number, &lens);
            let at: Vec<u64> =
                at.iter().zip(&numbers).map(|(at, range)| at + range.start).collect();
            let part = |axis: usize| {
                let Range { start, end } = &ranges[axis];
                let first = (at[axis] * edges[axis]).max(*start);
                first - start..((at[axis] + 1) * edges[axis]).min(*end) - start
            };
            let part: Vec<Range<u64>> = (0..edges.len()).map(part).collect();
            let new = cells_of_box(stored, &shape, &part)?;
            let mut lens: Vec<u64> = part.iter().map(|range| range.end - range.start).collect();
            let has_old_cells = at[axis] * edges[axis] < ranges[axis].start;
            let cells = match has_old_cells {
                false => new,
                true => {
                    let (old, old_lens) = runtime.block_on(variable.old_cells(&at))?;
                    let cells = stacked(&old, &old_lens, &new, &lens, axis)?;
                    lens[axis] += old_lens[axis];
                    cells
                }
            };
            let bytes = variable.object_bytes(&cells, &lens)?;
            objects.push(Object { name: variable.object(&at), bytes, has_old_cells });
        }
        Ok(objects)
    }

    /// Returns the objects with the new labels.
    fn labels(&self, runtime: &Handle) -> Result<Vec<Object>> {
        let variable = &self.target.labels[self.axis];
        let dimension = &self.array.dimensions()[self.axis];
        let Range { start, end } = self.added();
        let new = dimension.labels.slice(start as usize, (end - start) as usize);
        let name = &dimension.name;
        let stored = variable
            .stored(&new, |at| format!("the label {}", start + at as u64))
            .map_err(|error| error.about(&format!("the labels of {name}")))?;
        self.cut(variable, &stored, std::slice::from_ref(&(start..end)), 0, runtime)
    }

    /// Returns the variables and coordinates of the chunks of the region that no row was in. A program that was stopped may have left cells
    /// there.
    fn left_out(&self) -> Vec<(usize, Vec<u64>)> {
        let numbers = self.array.chunks_of_region();
        let lens: Vec<u64> = numbers.iter().map(|range| range.end - range.start).collect();
        let all = (0..self.array.variables().len())
            .flat_map(|variable| (0..lens.iter().product()).map(move |number| (variable, number)));
        let chunk = |(variable, number)| {
            let at = unravel(number, &lens).into_iter().zip(&numbers);
            (variable, at.map(|(at, range)| at + range.start).collect())
        };
        all.map(chunk).filter(|chunk| !self.written.contains(chunk)).collect()
    }

    /// Returns a chunk of NULL.
    fn nulls(&self, variable: usize, coordinates: Vec<u64>) -> NewChunk {
        let ranges = self.array.ranges_in(&coordinates);
        let cells: u64 = ranges.iter().map(|range| range.end - range.start).product();
        let data_type = &self.array.variables()[variable].data_type;
        NewChunk { variable, coordinates, cells: new_null_array(data_type, cells as usize) }
    }

    /// Returns the writes before those of objects: the end of an append that was stopped, and the journal of this one.
    fn begin(&mut self) -> Result<Vec<Write>> {
        if std::mem::replace(&mut self.has_begun, true) {
            return Ok(vec![]);
        }
        let (documents, behind) = self.target.repair()?;
        let journal = self.journal().content();
        Ok(vec![Write::Replace(documents), Write::Delete(behind), Write::Overwrite(vec![journal])])
    }

    /// Returns the writes of objects, after the journal.
    ///
    /// # Errors
    /// As [`ZarrTarget::repair`].
    fn writes(&mut self, objects: Vec<Object>) -> Result<Vec<Write>> {
        let mut writes = self.begin()?;
        let (mut added, mut replaced, mut absent) = (vec![], vec![], vec![]);
        for Object { name, bytes, has_old_cells } in objects {
            match bytes {
                Some(bytes) if has_old_cells => replaced.push(Content::new(name, bytes)),
                Some(bytes) => added.push(Content::new(name, bytes)),
                None => absent.push(name),
            }
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
        let labels = in_threads(&[Handle::current()], 1, |runtime| self.labels(runtime))?;
        writes.extend(self.writes(labels.into_iter().flatten().collect())?);
        let dimension = self.target.dimensions[self.axis].name.clone();
        let mut bytes = self.target.root.clone();
        for variable in self.target.variables.iter().chain([&self.target.labels[self.axis]]) {
            let name = variable.name();
            let axis = axis_of(&self.target.metadata[name], &dimension).unwrap_or_default();
            let path = ["consolidated_metadata", "metadata", name];
            bytes = with_length(&bytes, &path, axis, self.added().end)?;
        }
        let old = self.target.root.clone();
        Ok((writes, Publish::Update { content: Content::new(DOCUMENT, bytes), old }))
    }
}

impl ArrayWriter for ZarrAppender {
    fn array(&self) -> &NewArray {
        &self.array
    }

    fn chunk_memory(&self) -> u64 {
        let of = |variable: &TargetVariable| {
            let boxes = self.array.grid().chunk_shape().zip(variable.object_shape());
            let objects = boxes.map(|(whole, edge)| whole.div_ceil(*edge)).product::<u64>();
            variable.object_memory().saturating_mul(objects)
        };
        self.target.variables.iter().map(of).max().unwrap_or(0)
    }

    fn write_many(&mut self, chunks: Vec<NewChunk>, threads: usize) -> Result<Vec<Write>> {
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

    /// Gives the arrays' own documents the lengths that the root has by now.
    fn afterwards(&mut self) -> Vec<Write> {
        let dimension = &self.target.dimensions[self.axis].name;
        let variables = self.target.variables.iter().chain([&self.target.labels[self.axis]]);
        let document = |variable: &TargetVariable| {
            let axis = axis_of(&self.target.metadata[variable.name()], dimension)?;
            let bytes = with_length(&variable.document, &[], axis, self.added().end).ok()?;
            Some(Content::new(format!("{}/{DOCUMENT}", variable.name()), bytes))
        };
        let documents = variables.filter_map(document).collect();
        vec![Write::Replace(documents), Write::Delete(vec![JOURNAL.into()])]
    }
}

/// Returns the cells of two boxes, one behind the other along an axis. They have the same lengths along the others.
fn stacked(
    first: &ArrayRef,
    first_lens: &[u64],
    second: &ArrayRef,
    second_lens: &[u64],
    axis: usize,
) -> Result<ArrayRef> {
    let failed = failed_to("put cells together");
    let run = |lens: &[u64]| lens[axis..].iter().product::<u64>();
    let (outer, first_run, second_run) =
        (first_lens[..axis].iter().product::<u64>(), run(first_lens), run(second_lens));
    let behind = first.len() as u64;
    let both = concat(&[first.as_ref(), second.as_ref()]).map_err(&failed)?;
    if outer == 1 {
        return Ok(both);
    }
    let indices = (0..outer).flat_map(|at| {
        let second = behind + at * second_run;
        (at * first_run..(at + 1) * first_run).chain(second..second + second_run)
    });
    take(&both, &UInt64Array::from_iter_values(indices), None).map_err(failed)
}
