//! Random reductions compared with their definition, cell by cell.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use bytes::Bytes;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

#[path = "tests_of_others.rs"]
mod others;

use others::Other;

use super::*;
use crate::array::{NumberColumn, ReadOptions};
use crate::format::{ElementType, Sum, Zone, ZoneBound, bound};
use crate::grid::{AxisSelection, ChunkGrid, ChunkTask, unravel};
use crate::plan::{RowBlocks, ScanPlan, ScanRequest};
use crate::tile::Tile;

/// A number from which the numbers of labels are not far.
const BASE: f64 = 1e6;

/// The integer that stands for NULL.
const FILL: i64 = 33;

/// A column of small numbers: stored integers, or quarters of integers. Sums of them are exact.
struct Column {
    element: ElementType,
    has_validity: bool,
    is_packed: bool,
}

impl Column {
    fn random(rng: &mut StdRng) -> Self {
        use ElementType::{F16, F32, F64, I8, I16, I64, U8, U32};
        let element = [F16, F32, F64, I8, I16, I64, U8, U32][rng.random_range(0..8)];
        let has_validity = matches!(element, F32 | F64) && rng.random_bool(0.3);
        Self { element, has_validity, is_packed: element.is_integer() && rng.random_bool(0.3) }
    }

    fn column(&self) -> NumberColumn {
        let options = ReadOptions::default();
        if self.has_validity {
            return NumberColumn::plain(self.element, None, true, &options);
        }
        let fill = self.element.is_integer().then_some(("_FillValue", "33"));
        // Greater stored numbers have lesser values.
        let packing = [("scale_factor", "-0.5"), ("add_offset", "3")];
        let packing = packing.into_iter().filter(|_| self.is_packed);
        let attributes = fill.into_iter().chain(packing);
        let attributes = attributes.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let (column, misunderstood) =
            NumberColumn::new(self.element, &attributes.collect(), self.is_packed, &options);
        assert!(misunderstood.is_empty());
        column
    }

    /// Returns the value of a stored number.
    fn value(&self, stored: i64) -> f64 {
        match self.element.is_integer() {
            true if self.is_packed => stored as f64 * -0.5 + 3.0,
            true => stored as f64,
            false => stored as f64 / 4.0,
        }
    }

    /// Returns the stored element.
    fn bytes(&self, stored: Option<i64>) -> Vec<u8> {
        use ElementType::{F16, F32, F64, I8, I16, I64, U8};
        let float = match stored {
            Some(stored) => stored as f64 / 4.0,
            None if self.has_validity => 5.0,
            None => f64::NAN,
        };
        let integer = stored.unwrap_or(FILL);
        match self.element {
            F16 => half::f16::from_f64(float).to_le_bytes().to_vec(),
            F32 => (float as f32).to_le_bytes().to_vec(),
            F64 => float.to_le_bytes().to_vec(),
            I8 => (integer as i8).to_le_bytes().to_vec(),
            I16 => (integer as i16).to_le_bytes().to_vec(),
            I64 => integer.to_le_bytes().to_vec(),
            U8 => vec![integer as u8],
            _ => (integer as u32).to_le_bytes().to_vec(),
        }
    }

    fn tile(&self, cells: &[Option<i64>]) -> Tile {
        let validity: Vec<u8> = cells.iter().map(|cell| u8::from(cell.is_some())).collect();
        let validity = self.has_validity.then(|| validity.into());
        // Files may hold elements at any offset.
        let unused = cells.len() % 3;
        let elements = cells.iter().flat_map(|cell| self.bytes(*cell));
        let bytes: Vec<u8> = std::iter::repeat_n(0, unused).chain(elements).collect();
        let bytes = Bytes::from(bytes).slice(unused..);
        Tile::fixed(bytes, self.element.size() as usize).with_validity(validity)
    }

    /// Returns the statistics that a writer stores.
    fn zone(&self, cells: &[Option<i64>]) -> Zone {
        use ElementType::{U8, U32};
        let known = || cells.iter().copied().flatten();
        let element = |stored: i64| -> ZoneBound { bound(&self.bytes(Some(stored))) };
        let sum: i64 = known().sum();
        let sum = match self.element {
            U8 | U32 => Sum::Unsigned(sum as u64),
            element if element.is_integer() => Sum::Signed(sum),
            _ => Sum::Float(sum as f64 / 4.0),
        };
        Zone {
            null_count: cells.iter().filter(|cell| cell.is_none()).count() as u64,
            bounds: known().min().zip(known().max()).map(|(a, b)| (element(a), element(b))),
            sum: Some(sum),
        }
    }
}

/// An array whose chunks are reduced.
struct Case {
    column: Column,
    plan: ScanPlan,
    groups: Vec<AxisGroups>,
    plane: Option<PlaneGroups>,
    /// The stored numbers of all cells.
    cells: Vec<Option<i64>>,
}

impl Case {
    fn random(rng: &mut StdRng) -> Self {
        let column = Column::random(rng);
        let rank = rng.random_range(1..=3);
        let mut shape: Vec<u64> = (0..rank).map(|_| rng.random_range(1..7)).collect();
        // Runs that fill all lanes.
        shape[rank - 1] *= [1, 50][rng.random_range(0..2)];
        let chunk: Vec<u64> = shape.iter().map(|len| rng.random_range(1..=*len)).collect();
        let grid = ChunkGrid::new(&shape, &chunk).unwrap();
        let partitions = rng.random_range(1..4);
        let mut request = ScanRequest { partitions, ..ScanRequest::all(&grid) };
        for (axis, len) in shape.iter().enumerate() {
            let kept = [1.0, 0.7][rng.random_range(0..2)];
            let mask: Vec<bool> = (0..*len).map(|_| rng.random_bool(kept)).collect();
            request.selection.restrict(axis, &AxisSelection::from_mask(&mask));
        }
        let groups = request.selection.axes().iter().map(|axis| groups(rng, axis)).collect();
        let least =
            if matches!(column.element, ElementType::U8 | ElementType::U32) { 0 } else { -20 };
        let nulls = [0.0, 0.3][rng.random_range(0..2)];
        let cell = |_| (!rng.random_bool(nulls)).then(|| rng.random_range(least..20));
        let cells = (0..grid.cells()).map(cell).collect();
        let plan = ScanPlan::new(grid, request).unwrap();
        Self { column, plan, groups, plane: None, cells }
    }

    /// Adds groups of the cells of some axes. Some cells do not count.
    fn with_plane(mut self, rng: &mut StdRng) -> Self {
        let selection = self.plan.selection().axes();
        let first = rng.random_range(0..selection.len());
        let axes = first..rng.random_range(first..selection.len()) + 1;
        let cells: u64 = selection[axes.clone()].iter().map(AxisSelection::count).product();
        // Groups of one cell, of some neighbours, or each next cell is in the next group.
        let (most, run) = [(5, 1), (5, 9), (12, 9)][rng.random_range(0..3)];
        let groups = rng.random_range(1..most.max(2));
        let mut number = 0;
        let number = |at| {
            if at % run == 0 {
                number = [PlaneGroups::NONE, rng.random_range(0..groups)][rng.random_range(0..2)];
            } else if most > 5 && number != PlaneGroups::NONE {
                number = (number + 1) % groups;
            }
            number
        };
        let numbers = (0..cells).map(number).collect();
        self.plane = Some(PlaneGroups { axes, numbers, groups });
        self
    }

    /// Returns the table of a partition.
    fn table(&self, partition: usize) -> GroupTable {
        let selection = self.plan.selection().axes();
        let table = GroupTable::new(&self.plan, partition, selection, &self.groups).unwrap();
        match &self.plane {
            Some(plane) => table.with_plane(plane, selection).unwrap(),
            None => table,
        }
    }

    /// Returns the number of a cell of the plane.
    fn number_on_plane(&self, cell: u64) -> u32 {
        let Some(plane) = &self.plane else { return 0 };
        let (index, selection) = (self.index_of(cell), self.plan.selection().axes());
        let rank = plane.axes.clone().fold(0, |rank, axis| {
            rank * selection[axis].count() + selection[axis].count_before(index[axis])
        });
        plane.numbers[rank as usize]
    }

    /// Returns the numbers of all cells of a chunk, in order.
    fn cells_of(&self, task: &ChunkTask) -> Vec<u64> {
        let grid = self.plan.grid();
        let extents: Vec<u64> = task.selection.iter().map(AxisSelection::len).collect();
        let cell = |at: u64| {
            let at = unravel(at, &extents).into_iter().enumerate();
            at.fold(0, |cell, (axis, at)| {
                let start = grid.axis_range(axis, task.coordinates[axis]).start;
                cell * grid.shape()[axis] + start + at
            })
        };
        (0..task.cells()).map(cell).collect()
    }

    fn index_of(&self, cell: u64) -> Vec<u64> {
        unravel(cell, self.plan.grid().shape())
    }

    fn is_selected(&self, cell: u64) -> bool {
        let mut axes = self.index_of(cell).into_iter().zip(self.plan.selection().axes());
        axes.all(|(at, axis)| axis.contains(at)) && self.number_on_plane(cell) != PlaneGroups::NONE
    }

    /// Returns the number of a cell's group on each axis.
    fn group_of(&self, cell: u64) -> Vec<u64> {
        let axes = self.plan.selection().axes().iter().zip(&self.groups);
        let number = |(at, (axis, groups)): (u64, (&AxisSelection, &AxisGroups))| {
            let rank = axis.count_before(at);
            match groups {
                AxisGroups::One => 0,
                AxisGroups::Each => rank,
                AxisGroups::Numbered { numbers, .. } => u64::from(numbers[rank as usize]),
            }
        };
        let of_axes = self.index_of(cell).into_iter().zip(axes).map(number);
        of_axes.chain([self.number_on_plane(cell).into()]).collect()
    }

    /// Returns the group at each place of a table.
    fn groups_of(&self, table: &GroupTable) -> Vec<Vec<u64>> {
        let of_axis = |(axis, groups): (usize, &AxisGroups)| match groups {
            AxisGroups::One => vec![0; table.len()],
            _ => table.numbers_of(axis, 0..table.len()),
        };
        let of_plane = match &self.plane {
            Some(plane) if plane.groups > 1 => table.numbers_of(self.groups.len(), 0..table.len()),
            _ => vec![0; table.len()],
        };
        let axes = self.groups.iter().enumerate().map(of_axis).chain([of_plane]);
        let axes: Vec<_> = axes.collect();
        (0..table.len()).map(|place| axes.iter().map(|axis| axis[place]).collect()).collect()
    }
}

fn groups(rng: &mut StdRng, selection: &AxisSelection) -> AxisGroups {
    let groups = rng.random_range(1..5);
    let run = [1, 20][rng.random_range(0..2)];
    match rng.random_range(0..4) {
        0 => AxisGroups::One,
        1 => AxisGroups::Each,
        _ => {
            let mut number = 0;
            let number = |at| {
                if at % run == 0 {
                    number = rng.random_range(0..groups);
                }
                number
            };
            AxisGroups::Numbered { numbers: (0..selection.count()).map(number).collect(), groups }
        }
    }
}

fn random_limit(rng: &mut StdRng, column: &Column) -> Option<Limit> {
    let number = rng.random_range(-15..15);
    let number = match column.element.is_integer() && !column.is_packed {
        true => Number::Integer(number.into()),
        false => Number::Float(f64::from(number) / 4.0),
    };
    rng.random_bool(0.3).then(|| Limit { number, inclusive: rng.random() })
}

/// `others` is the number of tests that it may have.
fn random_member(rng: &mut StdRng, case: &Case, others: usize) -> RequestedMember {
    let is_wide = case.column.element.is_integer() && !case.column.is_packed && rng.random();
    let requested = RequestedStats {
        sum: !is_wide && rng.random_bool(0.7),
        wide_sum: is_wide,
        min: rng.random(),
        max: rng.random(),
        spread: rng.random(),
        pairs: case.plane.is_none() && rng.random(),
    };
    let (least, greatest) = (random_limit(rng, &case.column), random_limit(rng, &case.column));
    let axis = |len: &u64| -> Option<Arc<[f64]>> {
        let weights = (0..*len).map(|_| f64::from(rng.random_range(-4..8)) / 2.0).collect();
        rng.random_bool(0.6).then_some(weights)
    };
    let axes = case.plan.grid().shape().iter().map(axis).collect();
    let weights =
        (case.plane.is_none() && rng.random_bool(0.5)).then(|| Arc::new(CellWeights { axes }));
    let numbers = requested.pairs.then(|| {
        let (shape, of) = (case.plan.grid().shape(), rng.random_range(0..case.groups.len()));
        // Some labels have no number. All numbers are far from 0.
        let number = |rng: &mut StdRng| match rng.random_range(0..9) {
            0 => f64::NAN,
            _ => BASE + f64::from(rng.random_range(-4..8)) / 2.0,
        };
        let axis = |axis: usize| -> Option<Arc<[f64]>> {
            (axis == of).then(|| (0..shape[axis]).map(|_| number(rng)).collect())
        };
        Arc::new(CellWeights { axes: (0..shape.len()).map(axis).collect() })
    });
    let range = ValueRange { least, greatest };
    let tests: Vec<usize> = (0..others).filter(|_| rng.random_bool(0.7)).collect();
    let null = range.is_unbounded() && tests.is_empty() && rng.random();
    let cells = match rng.random_bool(0.5) {
        true => RequestedCells { least: rng.random(), greatest: rng.random(), null },
        false => RequestedCells::default(),
    };
    RequestedMember { requested, range, tests, weights, numbers, cells }
}

/// Whether a value is in a range.
fn passes(value: f64, range: &ValueRange) -> bool {
    let number = |limit: Limit| match limit.number {
        Number::Float(number) => number,
        Number::Integer(number) => number as f64,
    };
    let is_in = |limit: Limit, beyond: bool| beyond || limit.inclusive && value == number(limit);
    range.least.is_none_or(|limit| is_in(limit, value > number(limit)))
        && range.greatest.is_none_or(|limit| is_in(limit, value < number(limit)))
}

/// The value of a cell, its weight, and the number of its label.
type Numbers = (f64, f64, f64);

/// Compares the pairs of a group with those of its cells.
fn check_pairs(found: Pairs, cells: &[Numbers]) {
    let pairs: Vec<(f64, f64)> = cells.iter().map(|(y, _, x)| (*x, *y)).collect();
    let pairs: Vec<_> = pairs.into_iter().filter(|(x, _)| !x.is_nan()).collect();
    assert_eq!(found.count, pairs.len() as u64);
    // Distances from the base are small numbers, whose sums are exact.
    let n = pairs.len().max(1) as f64;
    let (x, y) = (pairs.iter().map(|it| it.0 - BASE), pairs.iter().map(|it| it.1));
    let (x, y) = (x.sum::<f64>() / n, y.sum::<f64>() / n);
    let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
        pairs.iter().map(|pair| of(pair.0 - BASE - x, pair.1 - y)).sum()
    };
    let (xx, yy, xy) = (sum(&|x, _| x * x), sum(&|_, y| y * y), sum(&|x, y| x * y));
    let mean_x = if pairs.is_empty() { 0.0 } else { BASE + x };
    let found = [found.mean_x, found.mean_y, found.xx, found.yy, found.xy];
    for (found, expected) in found.into_iter().zip([mean_x, y, xx, yy, xy]) {
        // Means that are joined are rounded: those of x by 10⁻¹⁰.
        let near = 1e-6 + 1e-12 * expected.abs();
        assert!((found - expected).abs() < near, "{found}, {expected}: {pairs:?}");
    }
}

/// Compares the statistics of one group with the values and weights of its cells.
fn check(stats: &GroupStats, place: usize, cells: &[Numbers], member: &RequestedMember) {
    let RequestedStats { sum, wide_sum, min, max, spread, pairs } = member.requested;
    assert_eq!(stats.pairs.is_some(), pairs);
    if let Some(pairs) = &stats.pairs {
        check_pairs(pairs[place], cells);
    }
    let values = || cells.iter().map(|(value, ..)| *value);
    let (count, total) = (cells.len() as f64, values().sum::<f64>());
    let double = |array: &ArrayRef| {
        cast(array, &DataType::Float64).unwrap().as_primitive::<Float64Type>().value(place)
    };
    assert_eq!(stats.counts[place], cells.len() as u64);
    assert_eq!(stats.sums.as_ref().map(|sums| sums[place]), sum.then_some(total));
    assert_eq!(stats.wide_sums.as_ref().map(double), wide_sum.then_some(total));
    assert_eq!((stats.mins.is_some(), stats.maxs.is_some()), (min, max));
    assert_eq!(stats.spreads.is_some(), spread);
    if !cells.is_empty() {
        let expected = |is_requested: bool, value: Option<f64>| value.filter(|_| is_requested);
        let (least, greatest) = (values().reduce(f64::min), values().reduce(f64::max));
        assert_eq!(stats.mins.as_ref().map(double), expected(min, least));
        assert_eq!(stats.maxs.as_ref().map(double), expected(max, greatest));
    }
    if let Some(Moments { count: found, mean, m2 }) = stats.spreads.as_ref().map(|it| it[place]) {
        let exact = if cells.is_empty() { 0.0 } else { total / count };
        let squares: f64 = values().map(|value| (value - exact).powi(2)).sum();
        assert_eq!(found, cells.len() as u64);
        assert!((mean - exact).abs() < 1e-9, "{mean}, {exact}");
        assert!((m2 - squares).abs() < 1e-6, "{m2}, {squares}");
    }
    let weighted = stats.weighted.as_ref().map(|it| (it.sums[place], it.weights[place]));
    let sum: f64 = cells.iter().map(|(value, weight, _)| value * weight).sum();
    let weight: f64 = cells.iter().map(|(_, weight, _)| weight).sum();
    assert_eq!(weighted, member.weights.is_some().then_some((sum, weight)));
}

/// A cell of a group: its value, its chunk, its place in the chunk, and its number in the array.
type CellOfGroup = (Option<f64>, u64, usize, u64);

/// Compares the cells with extremes, and the first NULL, with the first ones of the group.
fn check_cells(stats: &GroupStats, place: usize, cells: &[CellOfGroup], case: &Case) {
    let Some(found) = &stats.cells else { return };
    let grid = case.plan.grid();
    let index = |cell: CellNumber| -> Option<Vec<u64>> {
        let index = (0..grid.rank()).map(|axis| cell.index(grid, axis));
        (cell != CellNumber::NONE).then(|| index.collect())
    };
    let first_with = |value: Option<f64>| {
        let mut cells: Vec<_> = cells.iter().filter(|cell| cell.0 == value).collect();
        cells.sort_by_key(|(_, chunk, at, _)| (*chunk, *at));
        cells.first().map(|cell| case.index_of(cell.3))
    };
    let values = || cells.iter().filter_map(|cell| cell.0);
    let (least, greatest) = (values().reduce(f64::min), values().reduce(f64::max));
    for (found, best) in [(&found.least, least), (&found.greatest, greatest)] {
        let Some(found) = found else { continue };
        let expected = best.and_then(|best| first_with(Some(best)));
        assert_eq!(index(found.cells[place]), expected, "{best:?} in {cells:?}");
        let double = cast(&found.values, &DataType::Float64).unwrap();
        assert!(best.is_none_or(|best| double.as_primitive::<Float64Type>().value(place) == best));
    }
    if let Some(nulls) = &found.nulls {
        assert_eq!(index(nulls[place]), first_with(None), "NULL in {cells:?}");
    }
}

/// The values, weights and numbers of each group, by its number on each axis.
type ValuesByGroup = BTreeMap<Vec<u64>, Vec<Numbers>>;

/// Reduces a partition of a case, and compares all groups. Chunks are stored as one of `forms`, whose first has the widest type.
fn check_partition(rng: &mut StdRng, case: &Case, partition: usize, forms: &[&Column]) {
    let (plan, grid) = (&case.plan, case.plan.grid());
    let table = case.table(partition);
    let others: Vec<Other> =
        (0..[0, 0, 1, 2][rng.random_range(0..4)]).map(|_| Other::random(rng, case)).collect();
    let mut cell_tests: Vec<CellTest> = others.iter().map(Other::test).collect();
    let mut members: Vec<_> =
        (0..rng.random_range(1..4)).map(|_| random_member(rng, case, others.len())).collect();
    let passes_others = |member: &RequestedMember, number: u64| {
        member.tests.iter().all(|test| others[*test].passes(number))
    };
    if forms.len() > 1 {
        // Conditions and sums of integers are for variables of one type.
        members.iter_mut().for_each(|member| {
            member.range = ValueRange::default();
            member.requested.wide_sum = false;
        });
    }
    let columns: Vec<NumberColumn> = forms.iter().map(|form| form.column()).collect();
    let columns: Vec<&NumberColumn> = columns.iter().collect();
    let mut reducer = reducer_of_forms(&columns, &members, table.len()).unwrap();
    let groups = case.groups_of(&table);
    let places: BTreeMap<Vec<u64>, usize> = groups.iter().cloned().zip(0..).collect();
    let (mut form, mut selected, mut rows) = (0, 0, vec![0; table.len()]);
    let mut expected = vec![ValuesByGroup::new(); members.len()];
    let mut of_groups = vec![BTreeMap::<Vec<u64>, Vec<CellOfGroup>>::new(); members.len()];
    for task in plan.tasks(partition).map(|task| plan.task(task)) {
        let chunk = GroupedChunk::new(&table, grid, &task);
        let numbers = case.cells_of(&task);
        let cells: Vec<_> = numbers.iter().map(|cell| case.cells[*cell as usize]).collect();
        let zone = case.column.zone(&cells);
        if rng.random_bool(0.3) {
            form = rng.random_range(0..forms.len());
        }
        if rng.random_bool(0.5) && reducer.is_answered(chunk, &zone) {
            reducer.add_zone(chunk, &zone);
        } else {
            let may_hold_nulls = zone.null_count > 0 || rng.random();
            let tile = forms[form].tile(&cells).with_form(form as u32);
            let tiles: Vec<Tile> = others.iter().map(|other| other.tile(&numbers)).collect();
            let tested = cell_tests.iter_mut().zip(&tiles);
            let tested: Vec<_> =
                tested.map(|(test, tile)| test.of_tile(tile, true).unwrap()).collect();
            reducer.add(chunk, &tile, may_hold_nulls, &tested).unwrap();
        }
        for number in numbers.iter().filter(|number| case.is_selected(**number)) {
            rows[places[&case.group_of(*number)]] += 1;
            selected += 1;
        }
        for (at, (number, cell)) in numbers.iter().zip(&cells).enumerate() {
            let value = cell.map(|stored| forms[form].value(stored));
            for (member, cells) in members.iter().zip(&mut of_groups) {
                let counts = value.is_none_or(|value| passes(value, &member.range));
                if case.is_selected(*number) && counts && passes_others(member, *number) {
                    let cell = (value, task.chunk_number, at, *number);
                    cells.entry(case.group_of(*number)).or_default().push(cell);
                }
            }
        }
        for (number, cell) in numbers.into_iter().zip(cells) {
            let Some(value) = cell.map(|stored| forms[form].value(stored)) else { continue };
            for (member, expected) in members.iter().zip(&mut expected) {
                let counts = passes(value, &member.range) && passes_others(member, number);
                if !case.is_selected(number) || !counts {
                    continue;
                }
                let of_axis = |(axis, at): (&Option<Arc<[f64]>>, u64)| {
                    axis.as_ref().map_or(1.0, |axis| axis[at as usize])
                };
                let index = case.index_of(number);
                let product = |weights: &Option<Arc<CellWeights>>| {
                    let axes = weights.iter().flat_map(|weights| &weights.axes);
                    axes.zip(index.iter().copied()).map(of_axis).product::<f64>()
                };
                let numbers = (value, product(&member.weights), product(&member.numbers));
                expected.entry(case.group_of(number)).or_default().push(numbers);
            }
        }
    }
    assert_eq!(rows_per_group(&table, plan, partition), rows);
    assert!(case.plane.is_some() || selected == plan.rows(Some(partition)));
    let finished = reducer.finish().unwrap();
    for (((stats, member), mut expected), cells) in
        finished.iter().zip(&members).zip(expected).zip(of_groups)
    {
        assert_eq!(stats.cells.is_some(), member.cells.any());
        for (place, group) in groups.iter().enumerate() {
            check(stats, place, &expected.remove(group).unwrap_or_default(), member);
            check_cells(stats, place, cells.get(group).map_or(&[], Vec::as_slice), case);
        }
        assert!(expected.is_empty(), "groups without a place: {expected:?}");
    }
}

#[test]
fn reductions_are_those_of_the_definition() {
    let mut rng = StdRng::seed_from_u64(40);
    for _ in 0..1_500 {
        let case = Case::random(&mut rng);
        for partition in 0..case.plan.partition_count() {
            check_partition(&mut rng, &case, partition, &[&case.column]);
        }
        let case = case.with_plane(&mut rng);
        for partition in 0..case.plan.partition_count() {
            check_partition(&mut rng, &case, partition, &[&case.column]);
        }
    }
}

/// Chunks of several files, each of which stores its values in another form.
#[test]
fn reductions_of_several_forms_are_those_of_the_definition() {
    let mut rng = StdRng::seed_from_u64(42);
    let doubles = Column { element: ElementType::F64, has_validity: false, is_packed: false };
    for _ in 0..1_000 {
        let mut case = Case::random(&mut rng);
        if rng.random_bool(0.3) {
            case = case.with_plane(&mut rng);
        }
        // Numbers that all types hold.
        case.cells.iter_mut().for_each(|cell| *cell = cell.filter(|it| (0..30).contains(it)));
        let others = [Column::random(&mut rng), Column::random(&mut rng)];
        for partition in 0..case.plan.partition_count() {
            check_partition(&mut rng, &case, partition, &[&doubles, &others[0], &others[1]]);
        }
    }
}

/// The places of rows, block by block, are those of their cells' groups.
#[test]
fn rows_have_the_places_of_their_groups() {
    let mut rng = StdRng::seed_from_u64(41);
    for _ in 0..500 {
        let case = Case::random(&mut rng);
        let plan = &case.plan;
        for partition in 0..plan.partition_count() {
            let table = case.table(partition);
            let (groups, mut places) = (case.groups_of(&table), RowPlaces::default());
            for task in plan.tasks(partition).map(|task| plan.task(task)) {
                let mut selected =
                    case.cells_of(&task).into_iter().filter(|cell| case.is_selected(*cell));
                for block in RowBlocks::new(&task, rng.random_range(1..40)) {
                    let before = places.of(&table, plan.grid(), &task, &block).0.to_vec();
                    assert_eq!(before.len() as u64, block.rows());
                    for place in &before {
                        assert_eq!(groups[*place], case.group_of(selected.next().unwrap()));
                    }
                    let (again, is_repeated) = places.of(&table, plan.grid(), &task, &block);
                    assert!(is_repeated && again == before);
                }
                assert_eq!(selected.next(), None);
            }
        }
    }
}

/// A tile that is too small is an error, not a wrong sum.
#[test]
fn small_tiles_are_refused() {
    let grid = ChunkGrid::new(&[4], &[4]).unwrap();
    let plan = ScanPlan::new(grid.clone(), ScanRequest::all(&grid)).unwrap();
    let table = GroupTable::new(&plan, 0, plan.selection().axes(), &[AxisGroups::One]).unwrap();
    let column = Column { element: ElementType::F32, has_validity: false, is_packed: false };
    let mut reducer = reducer(&column.column(), &[RequestedMember::default()], 1).unwrap();
    let task = ChunkTask::whole(&grid, 0);
    let chunk = GroupedChunk::new(&table, &grid, &task);
    let error = reducer.add(chunk, &column.tile(&[Some(1); 3]), true, &[]).unwrap_err();
    assert!(error.to_string().contains("smaller than its chunk"), "{error}");
}
