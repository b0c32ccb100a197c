//! Virtual datasets whose lengths are those of their sources, with mappings of fixed lengths instead. The HDF5 library
//! counts their cells too when it opens a file.
//!
//! ```text
//!   line[0:∞:2]  = a[0:∞]     a has 7 cells          ─▶  line[0:13:2] = a[0:7]
//!   stack[0:∞]   = file_%b    file_2 is missing      ─▶  stack[0:1] = file_0,  stack[1:2] = file_1
//! ```
//!
//! An axis ends behind the last cell of any mapping: the view "last available". Numbered sources end before the first that
//! is missing: the gap is 0.

use crate::hdf5::{Mapping, Steps, virtual_chunks};
use crate::hierarchy::Variable;
use gridfusion_core::{Error, Result};

/// The most cells of an axis.
const MAX_LEN: u64 = u64::MAX / 2;
/// The bytes of a cell of text of any length: its length, and its place in a heap.
const TEXT: u64 = 16;

/// A virtual dataset whose sources are being counted.
#[derive(Debug)]
pub(super) struct SourceCounter {
    variable: Variable,
    /// The ends of the cells that grow, per axis. They replace the stored length.
    ends: Vec<Option<u64>>,
    /// The ends of all other cells.
    least: Vec<u64>,
    mappings: Vec<Mapping>,
    missing: Vec<Mapping>,
}

/// A virtual dataset after its sources were counted.
#[derive(Debug)]
pub(super) struct GrownDataset {
    pub(super) variable: Variable,
    pub(super) mappings: Vec<Mapping>,
    /// Mappings without their sources.
    pub(super) missing: Vec<Mapping>,
}

impl SourceCounter {
    /// A variable with its stored shape, and no mappings yet.
    pub(super) fn new(variable: Variable) -> Self {
        let rank = variable.axes.len();
        let (ends, least) = (vec![None; rank], vec![0; rank]);
        Self { variable, ends, least, mappings: vec![], missing: vec![] }
    }

    /// Adds a mapping whose length is fixed.
    pub(super) fn add_fixed(&mut self, mapping: &Mapping) -> Result<()> {
        self.count(mapping, None)?;
        self.mappings.push(mapping.clone());
        Ok(())
    }

    /// Adds a mapping whose source is missing.
    pub(super) fn add_missing(&mut self, mapping: &Mapping) -> Result<()> {
        self.count(mapping, Some(0))?;
        self.missing.push(mapping.of_block(0));
        Ok(())
    }

    /// Adds a mapping of this many numbered sources.
    pub(super) fn add_blocks(&mut self, mapping: &Mapping, count: u64) -> Result<()> {
        let mut end = 0;
        for number in 0..count {
            let mut part = mapping.of_block(number);
            end = fix(&mut part.target, |steps| steps.nth(number))?.end();
            self.mappings.push(part);
        }
        self.count(mapping, Some(end))
    }

    /// Adds a mapping of all cells that a source of this shape has.
    pub(super) fn add_cells(&mut self, mapping: &Mapping, shape: &[u64]) -> Result<()> {
        let axes = mapping.source.as_deref().unwrap_or_default();
        if axes.len() != shape.len() {
            let message = format!("a mapping of another rank than {:?} has", mapping.dataset);
            return Err(Error::unsupported(message));
        }
        let grows = axes.iter().zip(shape).find(|(steps, _)| steps.is_endless());
        let cells = grows.map_or(0, |(steps, len)| steps.before(*len));
        // The HDF5 library counts the whole block then, and fails to read it.
        let is_apart = |steps: &Steps| steps.has_endless_blocks() && steps.block != steps.stride;
        if let Some((steps, len)) = grows.filter(|(steps, _)| is_apart(steps))
            && (1..steps.block).contains(&cells)
        {
            let (dataset, block) = (&mapping.dataset, steps.block);
            return Err(Error::unsupported(format!(
                "a virtual dataset of blocks of {block} cells of {dataset:?}, whose {len} cells end within the first"
            )));
        }
        if cells == 0 {
            return self.count(mapping, Some(0));
        }
        let mut part = mapping.clone();
        fix(&mut part.source, |steps| steps.first(cells))?;
        let end = fix(&mut part.target, |steps| steps.first(cells))?.end();
        self.mappings.push(part);
        self.count(mapping, Some(end))
    }

    /// Counts the cells of a mapping, which has `end` along the axis where it grows.
    fn count(&mut self, mapping: &Mapping, end: Option<u64>) -> Result<()> {
        let target = mapping.target.as_ref().ok_or_else(|| {
            Error::unsupported("a virtual dataset that grows, of which a mapping has all cells")
        })?;
        for ((steps, least), known) in target.iter().zip(&mut self.least).zip(&mut self.ends) {
            match steps.is_endless() {
                true => *known = (*known).max(end),
                false => *least = steps.end().max(*least),
            }
        }
        Ok(())
    }

    /// Returns the dataset with its shape.
    pub(super) fn finish(self) -> Result<GrownDataset> {
        let Self { mut variable, ends, least, mappings, missing } = self;
        for ((axis, end), least) in variable.axes.iter_mut().zip(ends).zip(least) {
            axis.len = end.map_or(axis.len, |end| end.max(least));
        }
        let (shape, width) = (variable.shape(), variable.cell.width().unwrap_or(TEXT));
        let bytes = shape.iter().try_fold(width, |bytes, len| bytes.checked_mul(*len));
        if bytes.is_none() || shape.iter().any(|len| *len > MAX_LEN) {
            return Err(Error::unsupported(format!("cells of shape {shape:?} are too many")));
        }
        variable.chunk_shape = virtual_chunks(&shape, width, &mappings)?;
        Ok(GrownDataset { variable, mappings, missing })
    }
}

/// Replaces the steps without end, and returns the others.
fn fix(all: &mut Option<Vec<Steps>>, by: impl Fn(&Steps) -> Option<Steps>) -> Result<Steps> {
    let place = all.iter_mut().flatten().find(|steps| steps.is_endless());
    let place = place.ok_or_else(|| Error::internal("a mapping that does not grow"))?;
    *place = by(place).ok_or_else(|| {
        Error::unsupported(format!("a virtual dataset that grows by {place:?}, which overflows"))
    })?;
    Ok(*place)
}
