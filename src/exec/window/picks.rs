//! [`PickedLines`]: functions whose value is that of another line, such as `lag` and `first_value`.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, MutableArrayData, make_array};
use datafusion::common::{ScalarValue, internal_datafusion_err};
use datafusion::error::Result;

use super::window_state::{ColumnShape, WindowState};

/// The line whose value each line has. Neither the lines nor the most that was needed so far decrease.
#[derive(Debug)]
pub(super) struct Picks {
    picks: Vec<Option<usize>>,
    /// Per line, the least line that it or a later one picks; `usize::MAX` if there is none.
    from: Vec<usize>,
    /// Per line, the end of the lines that it and those before it pick.
    reach: Vec<usize>,
    /// The value of lines that pick none.
    default: ScalarValue,
}

impl Picks {
    /// Makes the picks of all lines. `None` if they do not ascend.
    pub(super) fn new(picks: Vec<Option<usize>>, default: ScalarValue) -> Option<Self> {
        if !picks.iter().flatten().is_sorted() {
            return None;
        }
        let mut from: Vec<usize> = picks
            .iter()
            .rev()
            .scan(usize::MAX, |least, pick| {
                *least = pick.unwrap_or(*least);
                Some(*least)
            })
            .collect();
        from.reverse();
        let reach = picks.iter().scan(0, |end, pick| {
            *end = pick.map_or(*end, |pick| pick + 1);
            Some(*end)
        });
        Some(Self { reach: reach.collect(), from, picks, default })
    }

    /// Returns the first line that `line` or a later one picks.
    pub(super) fn needed_from(&self, line: usize) -> usize {
        self.from.get(line).copied().unwrap_or(usize::MAX)
    }

    /// Returns the first line that is kept for `line` and later ones. One line that all of them pick does not count.
    pub(super) fn kept_from(&self, line: usize) -> usize {
        let last = self.reach.last().map_or(0, |reach| reach - reach.min(&1));
        let from = self.needed_from(line);
        if from == last { usize::MAX } else { from }
    }

    /// Returns the end of the lines that `line` and those before it pick.
    pub(super) fn reach(&self, line: usize) -> usize {
        self.reach[line]
    }

    /// Whether a line from `line` on picks one of `lines`.
    fn needs(&self, line: usize, lines: &Range<usize>) -> bool {
        // The first line from which on no pick lies before `lines`.
        let behind = self.from.partition_point(|from| *from < lines.start).max(line);
        lines.contains(&self.needed_from(behind))
    }
}

/// The arguments of a column of chunks from which later lines take their values.
pub(super) struct PickedLines {
    shape: ColumnShape,
    picks: Arc<Picks>,
    /// Chunks with their lines.
    chunks: VecDeque<(Range<usize>, ArrayRef)>,
}

impl PickedLines {
    pub(super) fn new(shape: ColumnShape, picks: Arc<Picks>) -> Self {
        Self { shape, picks, chunks: VecDeque::new() }
    }

    /// Returns the next lines that are picked one after the other from one chunk: the number of this chunk, its first
    /// line among them, and how many they are. Lines without a pick have no chunk.
    fn run(&self, lines: &Range<usize>) -> Result<(Option<(usize, usize)>, usize)> {
        let picks = &self.picks.picks[lines.clone()];
        let Some(first) = picks[0] else {
            return Ok((None, picks.iter().take_while(|pick| pick.is_none()).count()));
        };
        let chunk = self.chunks.iter().position(|(of_chunk, _)| of_chunk.contains(&first));
        let chunk = chunk.ok_or_else(|| internal_datafusion_err!("a picked line is gone"))?;
        let of_chunk = &self.chunks[chunk].0;
        let follows = |(at, pick): (usize, &Option<usize>)| *pick == Some(first + at);
        let count = picks.iter().enumerate().take_while(|(at, pick)| follows((*at, *pick))).count();
        Ok((Some((chunk, first - of_chunk.start)), count.min(of_chunk.end - first)))
    }
}

impl WindowState for PickedLines {
    fn push(&mut self, values: &ArrayRef, lines: Range<usize>) -> Result<()> {
        self.chunks.push_back((lines, Arc::clone(values)));
        Ok(())
    }

    fn values(&mut self, lines: Range<usize>) -> Result<ArrayRef> {
        let ColumnShape { outer, width } = self.shape;
        let mut sources: Vec<_> = self.chunks.iter().map(|(_, values)| values.to_data()).collect();
        // A source with NULLs costs a bitmap, so it is there only if it is needed.
        let has_default = self.picks.picks[lines.clone()].contains(&None);
        if has_default {
            sources.push(self.picks.default.to_array_of_size(width)?.to_data());
        }
        let default = self.chunks.len();
        let mut values =
            MutableArrayData::new(sources.iter().collect(), false, outer * lines.len() * width);
        for outer in 0..outer {
            let mut left = lines.clone();
            while !left.is_empty() {
                let (from, count) = self.run(&left)?;
                match from {
                    Some((chunk, line)) => {
                        let first = (outer * self.chunks[chunk].0.len() + line) * width;
                        values.try_extend(chunk, first, first + count * width)?;
                    }
                    None => {
                        for _ in 0..count {
                            values.try_extend(default, 0, width)?;
                        }
                    }
                }
                left.start += count;
            }
        }
        Ok(make_array(values.freeze()))
    }

    fn forget(&mut self, next: usize) {
        let picks = Arc::clone(&self.picks);
        self.chunks.retain(|(lines, _)| picks.needs(next, lines));
    }

    fn size(&self) -> usize {
        self.chunks.iter().map(|(_, values)| values.get_array_memory_size()).sum()
    }
}
