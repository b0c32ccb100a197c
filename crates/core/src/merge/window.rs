//! [`Window`]: finds equal keys in sorted runs of cells, and which of the cells is the newest.
//!
//! Comparing cells one by one mispredicts a branch for nearly each. So the parts of each key are packed in one
//! number. A sort then merges the numbers of all runs without branches:
//!
//! ```text
//!   run 0   A  C  D ─┐  pack   sort
//!   run 1   B  C     ├───────▶ ───────▶  A B C C C D     of the three C the newest stays
//!   run 2   C       ─┘
//! ```
//!
//! If the parts need more than 64 bits, equal numbers may belong to different keys. Only cells with equal numbers
//! are then compared part by part.

use std::cmp::Reverse;

use crate::array::{CellKeys, KeyColumn, TileNumber};

/// Cells of one tile in the order of their keys.
#[derive(Debug)]
pub struct SortedRun<'a> {
    /// The keys of the cells, ascending.
    pub keys: &'a CellKeys,
    /// The position of the first cell in `keys`.
    pub start: usize,
    /// The position after the last cell.
    pub end: usize,
    /// The tile of the cells.
    pub tile: TileNumber,
    /// Whether the first parts of the keys ascend, so that the other parts are not needed to order them.
    pub is_ordered_by_first: bool,
    /// The time of all cells, unless `times` has one for each.
    pub time: u64,
    /// The time of each cell of the tile.
    pub times: Option<&'a [u64]>,
    /// The cell of each position of `keys`; `None` if both are the same.
    pub cells: Option<&'a [u32]>,
}

/// A cell: its run, and its position in the keys of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunCell {
    /// The number of the run.
    pub run: u32,
    /// The position in the keys of the run.
    pub position: u32,
}

/// A cell, and as much of its key as fits a number.
#[derive(Debug, Clone, Copy)]
struct Entry {
    prefix: u64,
    cell: RunCell,
}

/// The bytes of memory that a window takes per cell: its entry, as much for sorting, and the rank of a text.
pub const BYTES_PER_CELL: usize = 2 * size_of::<Entry>() + size_of::<u64>();

/// The decisions about the cells of a window.
#[derive(Debug)]
pub struct Decisions {
    /// The cells that a newer one replaces.
    pub replaced: Vec<RunCell>,
    /// The newest cell of the greatest key.
    pub last: Option<RunCell>,
}

/// Runs whose cells are compared.
#[derive(Debug)]
pub struct Window<'a> {
    runs: Vec<SortedRun<'a>>,
}

impl SortedRun<'_> {
    fn len(&self) -> usize {
        self.end - self.start
    }

    /// Returns a number that is greatest for the cell that stays.
    ///
    /// Of equal times, the later fragment wins. Within a fragment, consolidation has put the newer cell first,
    /// but TileDB takes the last one if the two lie in different tiles.
    fn age(&self, position: usize) -> (u64, TileNumber, Reverse<usize>) {
        let cell = self.cells.map_or(position, |cells| cells[position] as usize);
        (self.times.map_or(self.time, |times| times[cell]), self.tile, Reverse(cell))
    }
}

impl<'a> Window<'a> {
    /// Makes a window of runs, whose keys have the same parts.
    #[must_use]
    pub fn new(runs: Vec<SortedRun<'a>>) -> Self {
        Self { runs }
    }

    /// Finds the newest cell of each key.
    #[must_use]
    pub fn decide(&self) -> Decisions {
        let mut entries = self.entries();
        let is_exact = self.pack(&mut entries);
        // The sort finds runs that are in order, and merges them.
        entries.sort_by_key(|entry| entry.prefix);
        let mut decided =
            Decisions { replaced: vec![], last: entries.last().map(|last| last.cell) };
        let mut from = 0;
        while let Some(before) =
            entries[from..].windows(2).position(|pair| pair[0].prefix == pair[1].prefix)
        {
            let start = from + before;
            let prefix = entries[start].prefix;
            let len = entries[start..].iter().take_while(|entry| entry.prefix == prefix).count();
            from = start + len;
            let newest = self.decide_equal(&mut entries[start..from], is_exact, &mut decided);
            if from == entries.len() {
                decided.last = newest;
            }
        }
        decided
    }

    fn entries(&self) -> Vec<Entry> {
        let mut entries = Vec::with_capacity(self.runs.iter().map(SortedRun::len).sum());
        for (at, run) in self.runs.iter().enumerate() {
            let cell = |position: usize| RunCell { run: at as u32, position: position as u32 };
            entries.extend(
                (run.start..run.end).map(|position| Entry { prefix: 0, cell: cell(position) }),
            );
        }
        entries
    }

    /// Packs the keys. Returns whether equal numbers mean equal keys.
    fn pack(&self, entries: &mut [Entry]) -> bool {
        let mut free = u64::BITS;
        let parts = self.runs.first().map_or(0, |run| run.keys.columns().len());
        let needed = if self.runs.iter().all(|run| run.is_ordered_by_first) { 1 } else { parts };
        for part in 0..needed {
            let ranks = self.ranks(part);
            let numbers = match &ranks {
                Some(ranks) => ranks.iter().map(Vec::as_slice).collect(),
                None => self.numbers(part),
            };
            let Some((least, greatest)) = range(&numbers, part == 0) else { return true };
            let width = u64::BITS - (greatest - least).leading_zeros();
            let dropped = width.saturating_sub(free);
            let used = width - dropped;
            free -= used;
            let numbers = numbers.iter().copied().flatten();
            for (entry, number) in entries.iter_mut().zip(numbers) {
                let number = (number - least).unbounded_shr(dropped);
                entry.prefix = entry.prefix.unbounded_shl(used) | number;
            }
            if dropped > 0 {
                return false;
            }
        }
        needed == parts
    }

    /// Returns the numbers of one part of the keys, run by run.
    fn numbers(&self, part: usize) -> Vec<&[u64]> {
        let numbers = self.runs.iter().map(|run| match &run.keys.columns()[part] {
            KeyColumn::Numbers(numbers) => &numbers[run.start..run.end],
            KeyColumn::Texts { .. } => &[],
        });
        numbers.collect()
    }

    /// Returns the ranks of texts among those of all runs; `None` if the part has numbers.
    fn ranks(&self, part: usize) -> Option<Vec<Vec<u64>>> {
        // Neighbours often have the same text, so each stretch of equal texts is ranked once.
        let mut stretches = vec![];
        for (at, run) in self.runs.iter().enumerate() {
            let column = &run.keys.columns()[part];
            if matches!(column, KeyColumn::Numbers(_)) {
                return None;
            }
            let mut start = run.start;
            while start < run.end {
                let text = column.text(start);
                let same = (start + 1..run.end).take_while(|&cell| column.text(cell) == text);
                let len = same.count() + 1;
                stretches.push((text, at, start - run.start, len));
                start += len;
            }
        }
        stretches.sort_by_key(|(text, ..)| *text);
        let mut ranks: Vec<Vec<u64>> = self.runs.iter().map(|run| vec![0; run.len()]).collect();
        for (rank, equal) in stretches.chunk_by(|a, b| a.0 == b.0).enumerate() {
            for &(_, run, start, len) in equal {
                ranks[run][start..start + len].fill(rank as u64);
            }
        }
        Some(ranks)
    }

    /// Decides cells whose packed keys are equal. Returns the newest cell of the greatest key.
    fn decide_equal(
        &self,
        entries: &mut [Entry],
        is_exact: bool,
        decided: &mut Decisions,
    ) -> Option<RunCell> {
        let compare = |a: &Entry, b: &Entry| {
            let (left, right) = (self.run(a.cell), self.run(b.cell));
            left.keys.compare(a.cell.position as usize, right.keys, b.cell.position as usize)
        };
        if !is_exact {
            entries.sort_by(compare);
        }
        let mut last = None;
        for equal in entries.chunk_by(|a, b| is_exact || compare(a, b).is_eq()) {
            let cells = || equal.iter().map(|entry| entry.cell);
            last = cells().max_by_key(|cell| self.run(*cell).age(cell.position as usize));
            decided.replaced.extend(cells().filter(|cell| Some(*cell) != last));
        }
        last
    }

    fn run(&self, cell: RunCell) -> &SortedRun<'a> {
        &self.runs[cell.run as usize]
    }
}

/// Returns the least and the greatest of some numbers. With `is_sorted`, those of each run ascend.
fn range(runs: &[&[u64]], is_sorted: bool) -> Option<(u64, u64)> {
    let ends = |run: &&[u64]| match is_sorted {
        true => run.first().copied().zip(run.last().copied()),
        false => run.iter().copied().min().zip(run.iter().copied().max()),
    };
    let ends = runs.iter().filter_map(ends);
    ends.reduce(|(least, greatest), (first, last)| (least.min(first), greatest.max(last)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    /// A key: numbers, then maybe a text.
    type Key = (Vec<u64>, Option<String>);

    fn cell_keys(keys: &[Key]) -> CellKeys {
        let parts = keys.first().map_or(0, |(numbers, _)| numbers.len());
        let mut columns: Vec<KeyColumn> = (0..parts)
            .map(|part| KeyColumn::Numbers(keys.iter().map(|key| key.0[part]).collect()))
            .collect();
        if keys.iter().any(|key| key.1.is_some()) {
            let (mut spans, mut content) = (vec![], vec![]);
            for text in keys.iter().filter_map(|key| key.1.as_ref()) {
                let start = content.len() as u64;
                content.extend_from_slice(text.as_bytes());
                spans.push(start..content.len() as u64);
            }
            columns.push(KeyColumn::Texts { spans, content: content.into() });
        }
        CellKeys::new(columns)
    }

    #[test]
    fn the_newest_cell_of_each_key_stays() {
        let mut rng = StdRng::seed_from_u64(16);
        for round in 0..400 {
            // Parts of few bits fit one number together, and two parts of 64 bits do not.
            let masks: Vec<u64> = (0..rng.random_range(1..4))
                .map(|_| [0, 3, 0xff00, u64::MAX][rng.random_range(0..4)])
                .collect();
            let has_text: bool = rng.random();
            let mut key = || -> Key {
                let numbers = masks
                    .iter()
                    .map(|mask| mask & [0, 1, u64::MAX / 3, u64::MAX][rng.random_range(0..4)]);
                let numbers = numbers.collect();
                let text = ["", "b", "ba", "a long text"][rng.random_range(0..4)];
                (numbers, has_text.then(|| text.to_owned()))
            };
            let mut runs: Vec<Vec<Key>> = (0..4).map(|_| (0..9).map(|_| key()).collect()).collect();
            runs.iter_mut().for_each(|run| run.sort());
            let own: Vec<Vec<u64>> =
                (0..4).map(|_| (0..9).map(|_| rng.random_range(0..4)).collect()).collect();
            let keys: Vec<CellKeys> = runs.iter().map(|run| cell_keys(run)).collect();
            let run = |at: usize| SortedRun {
                keys: &keys[at],
                start: 1,
                end: 8,
                tile: TileNumber { fragment: at / 2, tile: at as u64 % 2 },
                is_ordered_by_first: keys[at].is_ordered_by_first(),
                time: at as u64,
                times: (at == 1).then_some(own[at].as_slice()),
                cells: None,
            };
            let mut newest: BTreeMap<&Key, RunCell> = BTreeMap::new();
            let mut replaced = vec![];
            for (at, cells) in runs.iter().enumerate() {
                for (position, key) in cells.iter().enumerate().take(8).skip(1) {
                    let cell = RunCell { run: at as u32, position: position as u32 };
                    let Some(before) = newest.insert(key, cell) else { continue };
                    let (age, other) = (
                        run(at).age(position),
                        run(before.run as usize).age(before.position as usize),
                    );
                    if age < other {
                        newest.insert(key, before);
                    }
                    replaced.push(if age < other { cell } else { before });
                }
            }
            let mut found = Window::new((0..4).map(run).collect()).decide();
            let place = |cell: &RunCell| (cell.run, cell.position);
            replaced.sort_by_key(place);
            found.replaced.sort_by_key(place);
            assert_eq!(found.replaced, replaced, "{round}");
            assert_eq!(found.last, newest.values().last().copied(), "{round}");
        }
    }
}
