//! [`Window`]: finds equal keys in sorted runs of cells, and which of the cells is the newest.
//!
//! Comparing cells one by one mispredicts a branch for nearly each. So a first pass hashes the keys of all runs, and leaves
//! the cells whose place in a small table is theirs alone. The keys of the few others are packed in one number each. A sort
//! then merges the numbers of all runs without branches:
//!
//! ```text
//!   run 0   A  C  D ─┐  hash      run 0  C ─┐  pack   sort
//!   run 1   B  C     ├────────▶   run 1  C  ├───────▶ ───────▶  C C C     of the three C the newest stays
//!   run 2   C       ─┘            run 2  C ─┘
//! ```
//!
//! If the parts need more than 64 bits, equal numbers may belong to different keys. Only cells with equal numbers
//! are then compared part by part.

use std::cmp::{Ordering, Reverse};

use super::shared_places::SharedPlaces;
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
    /// The part of the keys that tells the cells apart; see [`CellKeys::distinct_part`].
    pub distinct_part: Option<usize>,
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

/// The bytes of memory that a window takes per cell: its hash and places, its entry, as much for sorting, and the rank of
/// a text.
pub const BYTES_PER_CELL: usize =
    SharedPlaces::BYTES_PER_CELL + 2 * size_of::<Entry>() + size_of::<u64>();

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
        let mut decided = Decisions { replaced: vec![], last: self.last() };
        let mut from = 0;
        while let Some(before) =
            entries[from..].windows(2).position(|pair| pair[0].prefix == pair[1].prefix)
        {
            let start = from + before;
            let prefix = entries[start].prefix;
            let len = entries[start..].iter().take_while(|entry| entry.prefix == prefix).count();
            from = start + len;
            self.decide_equal(&mut entries[start..from], is_exact, &mut decided);
        }
        decided
    }

    /// Returns the newest cell of the greatest key: one of the last cells of a run.
    fn last(&self) -> Option<RunCell> {
        let mut last: Option<RunCell> = None;
        for (at, run) in self.runs.iter().enumerate() {
            for position in (run.start..run.end).rev() {
                let cell = RunCell { run: at as u32, position: position as u32 };
                let order = last.map_or(Ordering::Greater, |last| self.compare(cell, last));
                let is_newer = || last.is_some_and(|last| self.age(cell) > self.age(last));
                match order {
                    Ordering::Less => break,
                    Ordering::Equal if !is_newer() => {}
                    _ => last = Some(cell),
                }
            }
        }
        last
    }

    /// Returns the cells that may have the key of another one, run by run.
    fn entries(&self) -> Vec<Entry> {
        let mut places = SharedPlaces::new(self.runs.iter().map(SortedRun::len).sum());
        for part in self.hashed_parts() {
            let mut hashes = places.hashes();
            for run in &self.runs {
                hashes.add(&run.keys.columns()[part], run.start..run.end);
            }
        }
        let shared = places.shared();
        let (mut entries, mut first) = (Vec::with_capacity(shared.len()), 0);
        let mut shared = shared.into_iter();
        let mut next = shared.next();
        for (at, run) in self.runs.iter().enumerate() {
            let end = first + run.len();
            while let Some(place) = next.filter(|place| (*place as usize) < end) {
                let position = (run.start + place as usize - first) as u32;
                entries.push(Entry { prefix: 0, cell: RunCell { run: at as u32, position } });
                next = shared.next();
            }
            first = end;
        }
        entries
    }

    /// Returns the parts that are hashed, the same ones for all runs. Cells whose hashes differ have different keys.
    fn hashed_parts(&self) -> std::ops::Range<usize> {
        let parts = self.runs.first().map_or(0, |run| run.keys.columns().len());
        let distinct = self.runs.first().and_then(|run| run.distinct_part);
        match distinct.filter(|_| self.runs.iter().all(|run| run.distinct_part == distinct)) {
            Some(part) => part..part + 1,
            None => 0..parts,
        }
    }

    /// Packs the keys. Returns whether equal numbers mean equal keys.
    fn pack(&self, entries: &mut [Entry]) -> bool {
        let mut free = u64::BITS;
        let parts = self.runs.first().map_or(0, |run| run.keys.columns().len());
        // A part that tells the cells of each run apart leaves few equal ones.
        let packed = self.hashed_parts().end;
        for part in 0..packed {
            let numbers = self.ranks(part, entries).unwrap_or_else(|| self.numbers(part, entries));
            let (least, greatest) = (numbers.iter().min(), numbers.iter().max());
            let (Some(&least), Some(&greatest)) = (least, greatest) else { return true };
            let width = u64::BITS - (greatest - least).leading_zeros();
            let dropped = width.saturating_sub(free);
            let used = width - dropped;
            free -= used;
            for (entry, number) in entries.iter_mut().zip(numbers) {
                let number = (number - least).unbounded_shr(dropped);
                entry.prefix = entry.prefix.unbounded_shl(used) | number;
            }
            if dropped > 0 {
                return false;
            }
        }
        packed == parts
    }

    /// Returns one part of the keys of some cells.
    fn numbers(&self, part: usize, entries: &[Entry]) -> Vec<u64> {
        let number = |entry: &Entry| {
            let column = &self.run(entry.cell).keys.columns()[part];
            column.number(entry.cell.position as usize)
        };
        entries.iter().map(number).collect()
    }

    /// Returns the ranks of the texts of some cells among each other; `None` if the part has numbers.
    fn ranks(&self, part: usize, entries: &[Entry]) -> Option<Vec<u64>> {
        let column = |run: &SortedRun<'a>| &run.keys.columns()[part];
        if !matches!(self.runs.first().map(column), Some(KeyColumn::Texts { .. })) {
            return None;
        }
        let text = |entry: &Entry| column(self.run(entry.cell)).text(entry.cell.position as usize);
        // Neighbours often have the same text, so each stretch of equal texts is ranked once.
        let mut start = 0;
        let stretches = entries.chunk_by(|a, b| text(a) == text(b)).map(|stretch| {
            start += stretch.len();
            (text(&stretch[0]), start - stretch.len()..start)
        });
        let mut stretches: Vec<_> = stretches.collect();
        stretches.sort_by_key(|(text, _)| *text);
        let mut ranks = vec![0; entries.len()];
        for (rank, equal) in stretches.chunk_by(|a, b| a.0 == b.0).enumerate() {
            equal.iter().for_each(|(_, range)| ranks[range.clone()].fill(rank as u64));
        }
        Some(ranks)
    }

    /// Decides cells whose packed keys are equal.
    fn decide_equal(&self, entries: &mut [Entry], is_exact: bool, decided: &mut Decisions) {
        let is_equal = |a: &Entry, b: &Entry| self.compare(a.cell, b.cell).is_eq();
        if is_exact || entries.windows(2).all(|pair| is_equal(&pair[0], &pair[1])) {
            return self.keep_newest(entries, decided);
        }
        entries.sort_by(|a, b| self.compare(a.cell, b.cell));
        entries.chunk_by(is_equal).for_each(|equal| self.keep_newest(equal, decided));
    }

    /// Replaces all cells of one key but the newest.
    fn keep_newest(&self, equal: &[Entry], decided: &mut Decisions) {
        let cells = || equal.iter().map(|entry| entry.cell);
        let newest = cells().max_by_key(|cell| self.age(*cell));
        decided.replaced.extend(cells().filter(|cell| Some(*cell) != newest));
    }

    fn compare(&self, a: RunCell, b: RunCell) -> Ordering {
        let (left, right) = (self.run(a), self.run(b));
        left.keys.compare(a.position as usize, right.keys, b.position as usize)
    }

    fn age(&self, cell: RunCell) -> (u64, TileNumber, Reverse<usize>) {
        self.run(cell).age(cell.position as usize)
    }

    fn run(&self, cell: RunCell) -> &SortedRun<'a> {
        &self.runs[cell.run as usize]
    }
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
                distinct_part: keys[at].distinct_part(),
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
