//! [`SlidingFold`]: aggregates of frames that only move forwards, without taking anything back.
//!
//! A frame is a range of *lines*. A line has one cell per partition, so that one step serves all of them:
//!
//! ```text
//!   frame of line 7: 4..8          4   5 │ 6   7         suffixes of 4..6, and the running aggregate of 6..8
//!                                  ├───┴─┤ ├─►
//!   result                         suffix of 4 ⊕ running
//! ```
//!
//! Each line is added to the running aggregate once. If a frame begins behind all suffixes, new suffixes are made of all its
//! lines, from the last to the first. That makes three additions per line, however long frames are. Because nothing is
//! subtracted, a large value or NaN leaves no trace in later frames. It works for each associative operation.

use std::ops::Range;

/// An associative operation.
pub trait Fold {
    /// An aggregate of cells.
    type Item: Copy + Send + 'static;

    /// The aggregate of no cell.
    const IDENTITY: Self::Item;

    /// Returns the aggregate of the cells of `earlier` and of `later`.
    fn combine(earlier: Self::Item, later: Self::Item) -> Self::Item;
}

/// The aggregates of the frames of lines.
#[derive(Debug)]
pub struct SlidingFold<F: Fold> {
    /// Cells per line.
    width: usize,
    /// The lines from `first` on that frames may still need.
    lines: Vec<F::Item>,
    first: usize,
    /// Per line of `base..middle`, the aggregate from this line to `middle`.
    suffixes: Vec<F::Item>,
    base: usize,
    middle: usize,
    /// The aggregate of the lines `middle..end`.
    running: Vec<F::Item>,
    end: usize,
}

impl<F: Fold> SlidingFold<F> {
    /// Starts with line number `first`.
    pub fn new(width: usize, first: usize) -> Self {
        Self {
            width,
            lines: vec![],
            first,
            suffixes: vec![],
            base: first,
            middle: first,
            running: vec![F::IDENTITY; width],
            end: first,
        }
    }

    /// Returns the state after the same lines and frames, if all cells so far had been equal. `of` gives the aggregate of a
    /// number of them.
    #[must_use]
    pub fn with_same_cells<G: Fold>(&self, of: impl Fn(usize) -> G::Item) -> SlidingFold<G> {
        let width = self.width;
        let mut suffixes = Vec::with_capacity((self.middle - self.base) * width);
        for line in self.base..self.middle {
            suffixes.extend(std::iter::repeat_n(of(self.middle - line), width));
        }
        SlidingFold {
            width,
            lines: vec![of(1); self.lines.len()],
            first: self.first,
            suffixes,
            base: self.base,
            middle: self.middle,
            running: vec![of(self.end - self.middle); width],
            end: self.end,
        }
    }

    /// Adds whole lines behind the ones before.
    pub fn push(&mut self, cells: impl IntoIterator<Item = F::Item>) {
        let cells = cells.into_iter();
        make_room(&mut self.lines, cells.size_hint().0);
        self.lines.extend(cells);
    }

    /// Removes all lines before `line`, which no later frame may hold.
    pub fn forget(&mut self, line: usize) {
        let line = line.clamp(self.first, self.end);
        let cells = (line - self.first) * self.width;
        self.lines.drain(..cells);
        self.first = line;
    }

    /// Returns the bytes that the state takes.
    pub fn size(&self) -> usize {
        let items = self.lines.capacity() + self.suffixes.capacity() + self.running.capacity();
        items * size_of::<F::Item>()
    }

    /// Writes the aggregates of a frame, one per cell of a line. Neither end may lie before that of the frame before, and
    /// all lines of the frame must have been added.
    pub fn aggregate(&mut self, frame: &Range<usize>, out: &mut [F::Item]) {
        for line in self.end..frame.end {
            let at = (line - self.first) * self.width;
            add::<F>(&mut self.running, &self.lines[at..at + self.width]);
        }
        self.end = self.end.max(frame.end);
        if frame.start > self.middle {
            self.turn(frame.start);
        }
        if frame.start < self.middle {
            let at = (frame.start - self.base) * self.width;
            let suffix = &self.suffixes[at..at + self.width];
            for ((out, suffix), running) in out.iter_mut().zip(suffix).zip(&self.running) {
                *out = F::combine(*suffix, *running);
            }
        } else {
            out.copy_from_slice(&self.running);
        }
    }

    /// Makes suffixes of all lines from `start` to the end of the frame.
    fn turn(&mut self, start: usize) {
        let (width, count) = (self.width, self.end - start);
        let from = (start - self.first) * width;
        self.suffixes.clear();
        make_room(&mut self.suffixes, count * width);
        self.suffixes.extend_from_slice(&self.lines[from..from + count * width]);
        for line in (1..count).rev() {
            let (earlier, later) = self.suffixes.split_at_mut(line * width);
            let earlier = &mut earlier[(line - 1) * width..];
            for (earlier, later) in earlier.iter_mut().zip(&later[..width]) {
                *earlier = F::combine(*earlier, *later);
            }
        }
        self.running.fill(F::IDENTITY);
        (self.base, self.middle) = (start, self.end);
    }
}

/// Makes room for `more` items. A vector has at most a quarter more than it has ever needed, so that planning can tell how much.
fn make_room<T>(items: &mut Vec<T>, more: usize) {
    if items.capacity() - items.len() < more {
        items.reserve_exact(more.max(items.capacity() / 4));
    }
}

fn add<F: Fold>(running: &mut [F::Item], line: &[F::Item]) {
    for (running, cell) in running.iter_mut().zip(line) {
        *running = F::combine(*running, *cell);
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    /// Text shows whether cells are combined in order, and each once.
    struct Digits;

    impl Fold for Digits {
        type Item = (u64, u32);
        const IDENTITY: (u64, u32) = (0, 0);

        fn combine(earlier: (u64, u32), later: (u64, u32)) -> (u64, u32) {
            let shift = 13_u64.wrapping_pow(later.1);
            (earlier.0.wrapping_mul(shift).wrapping_add(later.0), earlier.1 + later.1)
        }
    }

    #[test]
    fn frames_agree_with_loops_over_their_lines() {
        let mut random = StdRng::seed_from_u64(7);
        for _ in 0..2_000 {
            let (width, count) = (random.random_range(1..4), random.random_range(1..40_usize));
            let cells: Vec<(u64, u32)> =
                (0..count * width).map(|_| (random.random_range(0..13), 1)).collect();
            let first = random.random_range(0..3);
            let mut sliding = SlidingFold::<Digits>::new(width, first);
            let mut same = SlidingFold::<Digits>::new(width, first);
            let (mut start, mut end, mut pushed) = (first, first, 0);
            let switch = random.random_range(0..count);
            for step in 0..count {
                end = (end + random.random_range(0..4)).min(first + count);
                start = (start + random.random_range(0..4)).min(end);
                while pushed < end - first {
                    sliding.push(cells[pushed * width..(pushed + 1) * width].iter().copied());
                    pushed += 1;
                }
                let mut out = vec![(0, 0); width];
                sliding.aggregate(&(start..end), &mut out);
                for (cell, out) in out.iter().enumerate() {
                    let of_frame =
                        (start - first..end - first).map(|line| cells[line * width + cell]);
                    assert_eq!(*out, of_frame.fold(Digits::IDENTITY, Digits::combine));
                }
                if step == switch {
                    same = sliding.with_same_cells(|count| {
                        std::iter::repeat_n((1, 1), count).fold(Digits::IDENTITY, Digits::combine)
                    });
                } else if step > switch {
                    let missing = pushed * width - (same.first - first) * width - same.lines.len();
                    same.push(std::iter::repeat_n((1, 1), missing));
                    same.aggregate(&(start..end), &mut out);
                    assert!(out.iter().all(|it| it.1 as usize == end - start));
                    same.forget(start);
                }
                sliding.forget(start);
            }
            assert!(sliding.size() > 0);
        }
    }
}
