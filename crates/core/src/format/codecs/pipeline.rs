//! Runs the steps of a chunk.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::output::{Fault, Output, OutputLength};
use super::step::{MOST_VARIABLE, Step};
use super::step_memory::StepMemory;
use crate::error::{Error, Result};
use crate::format::wire::to_usize;
use crate::format::{Codec, DecodedPayload, PayloadDecoder, Scratch};

/// Buffers of more bytes are freed after each tile.
const MOST_KEPT: usize = 64 << 20;

/// The steps from stored bytes to a tile.
///
/// `Display` lists the steps in the order of storing, as the metadata of formats do.
///
/// ```
/// use gridfusion_core::format::codecs::{Pipeline, Step};
///
/// let pipeline = Pipeline::new(vec![Step::Zlib, Step::Shuffle { element: 4 }]);
/// assert_eq!(pipeline.to_string(), "shuffle 4, zlib");
/// ```
#[derive(Debug, Clone)]
pub struct Pipeline {
    /// In the order of decoding.
    steps: Vec<Step>,
    /// The index of the last step that makes new bytes; none if all steps only cut off bytes.
    last_writer: Option<usize>,
}

/// Memory that a pipeline keeps from tile to tile.
#[derive(Default)]
struct Buffers {
    kept: StepMemory,
    between: [Vec<u8>; 2],
}

/// The memory with the current bytes.
#[derive(Clone, Copy)]
enum Holder {
    Stored,
    Between(usize),
    Tile,
}

impl Pipeline {
    /// Returns a pipeline of these steps, in the order of decoding.
    pub fn new(steps: Vec<Step>) -> Self {
        let steps: Vec<_> = steps.into_iter().filter(|step| !step.is_noop()).collect();
        let last_writer = steps.iter().rposition(Step::writes);
        Self { steps, last_writer }
    }

    /// Returns the codec of these steps, in the order of decoding: one that all formats share, if it does the
    /// same.
    pub fn codec(steps: Vec<Step>) -> Codec {
        let pipeline = Self::new(steps);
        match pipeline.steps.as_slice() {
            [] => Codec::Raw,
            [Step::Zstd] => Codec::Zstd,
            _ => Codec::Custom(Arc::new(pipeline)),
        }
    }

    /// Returns the length that the output of a step must or may have, if the tile has `raw_len` bytes.
    fn bound(&self, step: usize, raw_len: u64) -> OutputLength {
        let last = match self.knows_length() {
            true => OutputLength::Exactly(to_usize(raw_len)),
            false => OutputLength::AtMost(MOST_VARIABLE),
        };
        let later = self.steps.iter().skip(step + 1).rev();
        later.fold(last, |output, step| step.input_bound(output))
    }

    /// Runs all steps. Returns the holder and the range of the tile's bytes; a tile of several steps is in
    /// `tile`.
    fn run(
        &self,
        stored: &[u8],
        raw_len: u64,
        tile: &mut Vec<u8>,
        buffers: &mut Buffers,
        offsets: &mut Vec<u64>,
    ) -> Result<(Holder, Range<usize>), (usize, Fault)> {
        let Buffers { kept, between: [first, second] } = buffers;
        let (mut holder, mut range) = (Holder::Stored, 0..stored.len());
        for (number, step) in self.steps.iter().enumerate() {
            let bound = self.bound(number, raw_len);
            let input = match holder {
                Holder::Stored => stored,
                Holder::Between(0) => first,
                Holder::Between(_) => second,
                Holder::Tile => tile,
            };
            let input = input.get(range.clone()).unwrap_or_default();
            let fail = |fault| (number, fault);
            if !step.writes() {
                let kept = step.narrow(input).map_err(fail)?;
                bound.check(kept.len()).map_err(fail)?;
                range = range.start + kept.start..range.start + kept.end;
                continue;
            }
            let is_last = self.last_writer == Some(number);
            // The input is never where the output goes: only the last step that writes does so to the tile.
            let (input, memory, next) = match holder {
                Holder::Between(0) if is_last => (&first[range], &mut *tile, Holder::Tile),
                Holder::Between(_) if is_last => (&second[range], &mut *tile, Holder::Tile),
                Holder::Between(0) => (&first[range], &mut *second, Holder::Between(1)),
                Holder::Between(_) => (&second[range], &mut *first, Holder::Between(0)),
                Holder::Stored if is_last => (&stored[range], &mut *tile, Holder::Tile),
                Holder::Stored | Holder::Tile => (&stored[range], &mut *first, Holder::Between(0)),
            };
            let output = Output { memory: &mut *memory, bound };
            step.run(input, output, kept, offsets).map_err(fail)?;
            bound.check(memory.len()).map_err(fail)?;
            (holder, range) = (next, 0..memory.len());
        }
        Ok((holder, range))
    }

    /// Returns the error of a step.
    fn error(&self, number: usize, fault: Fault, offset: u64) -> Error {
        let step = self.steps.get(number).map(ToString::to_string).unwrap_or_default();
        match fault {
            Fault::Corrupt(message) => {
                Error::corrupt("chunk payload", offset, format!("{step}: {message}"))
            }
            Fault::Unsupported(message) => Error::unsupported(format!("{step}: {message}")),
        }
    }
}

impl PayloadDecoder for Pipeline {
    fn decode(
        &self,
        stored: &Bytes,
        raw_len: u64,
        offset: u64,
        spare: Vec<u8>,
        scratch: &mut Scratch,
    ) -> Result<DecodedPayload> {
        let last = self.steps.len().saturating_sub(1);
        if self.steps.iter().take(last).any(Step::is_variable) {
            let message = format!("values of any length are encoded further: {self}");
            return Err(Error::unsupported(message));
        }
        let (mut tile, mut offsets) = (spare, vec![]);
        let run = scratch.lend(|buffers: &mut Buffers| {
            let run = self.run(stored, raw_len, &mut tile, buffers, &mut offsets);
            buffers.shrink();
            run
        });
        let (holder, range) = run.map_err(|(step, fault)| self.error(step, fault, offset))?;
        let bytes = match holder {
            Holder::Tile => {
                tile.truncate(range.end);
                Bytes::from(tile).slice(range.start..)
            }
            Holder::Stored | Holder::Between(_) => stored.slice(range),
        };
        Ok(DecodedPayload { bytes, offsets: (!self.knows_length()).then_some(offsets) })
    }

    fn knows_length(&self) -> bool {
        !self.steps.last().is_some_and(Step::is_variable)
    }
}

impl Buffers {
    /// Frees memory that an unusually large tile needed.
    fn shrink(&mut self) {
        let [first, second] = &mut self.between;
        for memory in [first, second, &mut self.kept.block, &mut self.kept.planes] {
            if memory.capacity() > MOST_KEPT {
                *memory = vec![];
            }
        }
    }
}

impl fmt::Display for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, step) in self.steps.iter().rev().enumerate() {
            let before = if number == 0 { "" } else { ", " };
            write!(f, "{before}{step}")?;
        }
        Ok(())
    }
}
