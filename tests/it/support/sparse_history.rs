//! Random histories of sparse TileDB arrays: writes, deletions, consolidation, vacuuming, and changes of
//! the schema. Times strictly increase.

use std::collections::{BTreeMap, BTreeSet};

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use crate::support::sparse_cases::{
    SparseProfile, changed, first_schema, new_attribute, random_condition,
};
use crate::support::sparse_model::{Event, Window, carried, deletes, visible_fragments};
use crate::support::sparse_writer::{
    Coordinate, Deletion, Row, SparseArray, SparseFragment, SparseSchema, SparseVacuum, State,
};
use crate::support::tiledb_cases::Values;
use crate::support::tiledb_writer::{TestAttribute, TestStatistics};

/// An array, and the events that made it.
#[derive(Debug)]
pub(crate) struct History {
    pub(crate) array: SparseArray,
    pub(crate) events: Vec<Event>,
    /// Whether the events alone determine the rows at every time.
    pub(crate) is_exact: bool,
    /// Whether stored statistics are wrong. Then tables must not use them.
    pub(crate) has_wrong_statistics: bool,
    profile: SparseProfile,
    /// Per dimension, the coordinates that writes use.
    coordinates: Vec<Vec<Coordinate>>,
    /// The time of the latest event.
    time: u64,
}

/// A fragment of the latest format that a write at `time` makes.
fn fragment_of_write(time: u64, schema: usize, rows: Vec<Row>) -> SparseFragment {
    SparseFragment {
        times: (time, time),
        version: 22,
        state: State::Present,
        schema,
        rows,
        keeps_times: false,
        has_deletions: false,
        processed: vec![],
        statistics: TestStatistics::Right,
    }
}

impl History {
    pub(crate) fn random(rng: &mut StdRng, profile: SparseProfile) -> Self {
        let (schema, coordinates) = first_schema(rng, profile);
        let array = SparseArray {
            schemas: vec![schema],
            fragments: vec![],
            vacuums: vec![],
            deletions: vec![],
            commit_list: rng.random_bool(0.3),
        };
        let mut history = Self {
            array,
            events: vec![],
            is_exact: true,
            has_wrong_statistics: rng.random_bool(0.15),
            profile,
            coordinates,
            time: 9,
        };
        for _ in 0..rng.random_range(1..=profile.events) {
            history.step(rng);
        }
        history
    }

    /// The times of all events, also of those that vacuuming has removed.
    pub(crate) fn times(&self) -> BTreeSet<u64> {
        let schemas = self.array.schemas.iter().map(|schema| schema.time);
        let fragments = self.array.fragments.iter().map(|fragment| fragment.times.0);
        let deletions = self.array.deletions.iter().map(|deletion| deletion.time);
        schemas.chain(fragments).chain(deletions).collect()
    }

    fn step(&mut self, rng: &mut StdRng) {
        self.time += rng.random_range(1..8);
        match rng.random_range(0..20) {
            _ if self.array.fragments.is_empty() => self.write(rng),
            0..9 => self.write(rng),
            9..12 => self.delete(rng),
            12..16 => self.consolidate(rng),
            16 => self.flatten(rng),
            17 => self.vacuum(),
            _ => self.evolve(rng),
        }
    }

    /// The latest schema.
    fn schema(&self) -> &SparseSchema {
        &self.array.schemas[self.array.schemas.len() - 1]
    }

    fn statistics(&self, rng: &mut StdRng) -> TestStatistics {
        match self.has_wrong_statistics {
            true => TestStatistics::Wrong,
            false if rng.random_bool(0.7) => TestStatistics::Right,
            false => TestStatistics::Absent,
        }
    }

    /// Adds a fragment; returns its number.
    fn add(&mut self, fragment: SparseFragment) -> usize {
        self.array.fragments.push(fragment);
        self.array.fragments.len() - 1
    }

    fn write(&mut self, rng: &mut StdRng) {
        let schema = self.schema();
        let values: Vec<Values> = schema.attributes.iter().map(|_| Values::random(rng)).collect();
        let mut taken = BTreeSet::new();
        let mut rows: Vec<Row> = vec![];
        for _ in 0..rng.random_range(1..=self.profile.rows) {
            let all = self.coordinates.iter();
            let at: Vec<u64> = all.map(|all| rng.random_range(0..all.len()) as u64).collect();
            if !schema.allows_duplicates && !taken.insert(at.clone()) {
                continue;
            }
            let places = self.coordinates.iter().zip(&at);
            let coordinates = places.map(|(all, at)| all[*at as usize].clone()).collect();
            let attributes = schema.attributes.iter().zip(&values);
            let cells =
                attributes.map(|(attribute, values)| values.cell(rng, attribute, &at)).collect();
            rows.push(Row { time: self.time, deletion: None, coordinates, cells });
        }
        let is_interrupted = rng.random_bool(0.05);
        if !is_interrupted {
            self.events.push(Event::Write { time: self.time, rows: rows.clone() });
        }
        let state = if is_interrupted { State::Uncommitted } else { State::Present };
        let statistics = self.statistics(rng);
        let written = fragment_of_write(self.time, self.array.schemas.len() - 1, rows);
        self.add(SparseFragment { state, statistics, ..written });
    }

    fn delete(&mut self, rng: &mut StdRng) {
        let keeps = random_condition(rng, self.schema(), &self.coordinates, 0);
        let deletion = Deletion { time: self.time, keeps };
        self.events.push(Event::Delete(deletion.clone()));
        self.array.deletions.push(deletion);
    }

    /// Some visible fragments in a row, which consolidation may replace.
    fn run(&self, rng: &mut StdRng) -> Option<Vec<usize>> {
        let visible = visible_fragments(&self.array, Window::ALL);
        if visible.len() < 2 {
            return None;
        }
        let first = rng.random_range(0..visible.len() - 1);
        let last = rng.random_range(first + 1..visible.len());
        let run = visible[first..=last].to_vec();
        let is_recent = |number: &usize| self.array.fragments[*number].version >= 15;
        run.iter().all(is_recent).then_some(run)
    }

    /// The times of a run of fragments.
    fn times_of(&self, run: &[usize]) -> (u64, u64) {
        let times = |number: usize| self.array.fragments[number].times;
        (times(run[0]).0, times(run[run.len() - 1]).1)
    }

    /// The rows of some fragments in the latest schema. Marks those that one of the deletions deletes:
    /// also rows that later ones replace, because a window may end between the two.
    fn carry(&self, run: &[usize], processed: &[usize]) -> Vec<Row> {
        let mut rows = vec![];
        for number in run {
            let fragment = &self.array.fragments[*number];
            let stored = &self.array.schemas[fragment.schema];
            for row in &fragment.rows {
                let deletions = processed.iter().copied();
                let marks = deletions.filter(|it| deletes(&self.array, fragment, row, *it));
                let attributes = self.schema().attributes.iter();
                rows.push(Row {
                    time: row.time,
                    deletion: row.deletion.into_iter().chain(marks).min(),
                    coordinates: row.coordinates.clone(),
                    cells: attributes.map(|attribute| carried(stored, row, attribute)).collect(),
                });
            }
        }
        rows
    }

    /// Replaces some fragments by one, which keeps all of their rows with their times.
    fn consolidate(&mut self, rng: &mut StdRng) {
        let Some(run) = self.run(rng) else { return };
        let fragments: Vec<&SparseFragment> =
            run.iter().map(|number| &self.array.fragments[*number]).collect();
        let times = self.times_of(&run);
        let before: BTreeSet<usize> =
            fragments.iter().flat_map(|fragment| fragment.processed.clone()).collect();
        // A deletion may arrive after the consolidation, although its time is earlier.
        let processed: Vec<usize> = (0..self.array.deletions.len())
            .filter(|number| before.contains(number) || rng.random_bool(0.9))
            .collect();
        let is_in_time = |number: &usize| self.array.deletions[*number].time >= times.0;
        let has_deletions = processed.iter().any(is_in_time)
            || fragments.iter().any(|fragment| fragment.has_deletions);
        let rows = self.carry(&run, &processed);
        let statistics = self.statistics(rng);
        let written = fragment_of_write(self.time, self.array.schemas.len() - 1, rows);
        let by = self.add(SparseFragment {
            times,
            keeps_times: true,
            has_deletions,
            processed,
            statistics,
            ..written
        });
        self.array.vacuums.push(SparseVacuum { by, fragments: run });
    }

    /// Replaces some fragments by one of an older format, which keeps only the latest rows, and no times.
    fn flatten(&mut self, rng: &mut StdRng) {
        let Some(run) = self.run(rng) else { return };
        let times = self.times_of(&run);
        let is_inside = |deletion: &Deletion| times.0 <= deletion.time && deletion.time <= times.1;
        if self.array.deletions.iter().any(is_inside)
            || run.iter().any(|number| self.array.fragments[*number].has_deletions)
        {
            return;
        }
        let mut rows = self.carry(&run, &[]);
        rows.sort_by_key(|row| row.time);
        if !self.schema().allows_duplicates {
            let mut latest = BTreeMap::new();
            for row in rows {
                latest.insert(row.coordinates.clone(), row);
            }
            rows = latest.into_values().collect();
        }
        let statistics = self.statistics(rng);
        let written = fragment_of_write(self.time, self.array.schemas.len() - 1, rows);
        let by = self.add(SparseFragment { times, version: 14, statistics, ..written });
        self.array.vacuums.push(SparseVacuum { by, fragments: run });
    }

    /// Deletes the fragments that others replace.
    fn vacuum(&mut self) {
        for SparseVacuum { by, fragments } in std::mem::take(&mut self.array.vacuums) {
            // Without times, the rows are gone from windows that see a part of the fragment.
            self.is_exact &= self.array.fragments[by].keeps_times;
            for number in fragments {
                self.array.fragments[number].state = State::Removed;
            }
        }
    }

    /// Drops an attribute, adds a new one, or adds one again that was dropped.
    fn evolve(&mut self, rng: &mut StdRng) {
        let mut schema = self.schema().clone();
        // An array with an anonymous attribute has no other one.
        if schema.attributes[0].name.is_empty() {
            return self.write(rng);
        }
        schema.time = self.time;
        let dropped = self.dropped();
        let place = rng.random_range(0..schema.attributes.len());
        match dropped.choose(rng).cloned() {
            Some(attribute) if rng.random_bool(0.6) => {
                schema.attributes.insert(place, changed(rng, attribute));
            }
            _ if schema.attributes.len() > 1 && rng.random_bool(0.5) => {
                schema.attributes.remove(place);
            }
            _ => {
                let attribute = new_attribute(rng, self.time, self.profile);
                schema.attributes.insert(place, attribute);
            }
        }
        self.array.schemas.push(schema);
        self.is_exact = false;
    }

    /// The latest definitions of attributes that the latest schema lacks.
    fn dropped(&self) -> Vec<TestAttribute> {
        let mut latest = BTreeMap::new();
        for attribute in self.array.schemas.iter().flat_map(|schema| &schema.attributes) {
            latest.insert(attribute.name.clone(), attribute.clone());
        }
        for attribute in &self.schema().attributes {
            latest.remove(&attribute.name);
        }
        latest.into_values().collect()
    }
}
