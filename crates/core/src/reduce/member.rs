//! The states of groups for one condition on the value: an array per statistic.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Float64Array, PrimitiveArray};
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::{Float16Type, Float32Type};

use super::batch::Batch;
use super::bounds::Bounds;
use super::cell::{Cell, Lane};
use super::cell_number::CellNumber;
use super::cell_states::{CellStates, ExtremeCells};
use super::cell_test::TestedTile;
use super::elements::Stored;
use super::group_cells::{FirstCells, GroupCells};
use super::group_stats::{GroupStats, RequestedCells, RequestedMember, RequestedStats};
use super::grouped_chunk::GroupedChunk;
use super::keep::{Keep, KeepAll, Numbers, Test};
use super::loops;
use super::masks::MaskedCells;
use super::moments::Moments;
use super::packing::Packing;
use super::pair_sums::Pairs;
use super::pairs::PairStates;
use super::statistic::{Count, Max, Min, Statistic, Sum, WideSum};
use super::weighted::{CellWeights, RowWeights, WeightedStates};
use crate::array::Element;
use crate::format::{Zone, ZoneBound};

/// The states of groups, indexed by the place of the group. Statistics that are not requested have no states.
pub(super) struct Member<T: Element>
where
    T::Native: Cell,
{
    /// The test for cells that are neither NULL nor excluded by the condition.
    pub(super) keep: Keep<T::Native>,
    /// The cells that fail tests of other variables, if there are any tests.
    left_out: Option<LeftOut<T::Native>>,
    /// The statistics of the stored numbers. If packing reverses their order, the least value is requested as
    /// the greatest number.
    pub(super) requested: RequestedStats,
    packing: Option<Packing>,
    /// Whether a condition on the value applies.
    pub(super) has_range: bool,
    pub(super) weights: Option<Arc<CellWeights>>,
    pub(super) numbers: Option<Arc<CellWeights>>,
    /// The counts of values. They are always kept, because they decide which groups are NULL.
    pub(super) counts: Vec<u64>,
    sums: Vec<f64>,
    wide_sums: Vec<<T::Native as Cell>::Wide>,
    mins: Vec<T::Native>,
    maxs: Vec<T::Native>,
    /// The spreads of runs.
    moments: Vec<Moments>,
    /// The spreads of columns, as pairs with a constant.
    spreads: PairStates,
    weighted: WeightedStates,
    pairs: PairStates,
    /// The cells of the stored numbers that are requested, as for `requested`.
    pub(super) requested_cells: RequestedCells,
    pub(super) cells: CellStates<T::Native>,
    /// The states of a pass that only counts: they take no memory.
    nothing: Vec<()>,
}

/// The cells that a member leaves out, because they fail a test of another variable.
struct LeftOut<N> {
    /// The numbers of the tests.
    tests: Vec<usize>,
    /// The element that replaces them, which does not pass the member's own test.
    failing: N,
    /// Whether cells that have this element, and pass all tests, are added apart.
    counts_apart: bool,
}

/// The numbers of the labels of a chunk that a member needs.
pub(super) struct LabelNumbers<'a> {
    weights: Option<RowWeights<'a>>,
    /// The numbers of the pairs.
    numbers: Option<RowWeights<'a>>,
}

impl<'a> LabelNumbers<'a> {
    /// Returns those of a chunk, from the weights and the numbers of a member.
    pub(super) fn of_chunk(
        (weights, numbers): &'a (Option<Arc<CellWeights>>, Option<Arc<CellWeights>>),
        chunk: GroupedChunk<'_>,
    ) -> Self {
        let of_rows = |weights: &'a Arc<CellWeights>| weights.of_rows(chunk.grid, chunk.task);
        Self { weights: weights.as_ref().map(of_rows), numbers: numbers.as_ref().map(of_rows) }
    }
}

impl<T: Element> Member<T>
where
    T::Native: Cell + Bounds,
{
    /// Makes the states of `groups` groups. `None` if cells that have to be left out cannot be told from others.
    pub(super) fn try_new(
        member: &RequestedMember,
        stored: &Stored<T>,
        groups: usize,
    ) -> Option<Self> {
        let packing = stored.packing;
        let (mut requested, mut cells) = (member.requested, member.cells);
        if packing.is_some_and(Packing::is_reversed) {
            std::mem::swap(&mut requested.min, &mut requested.max);
            std::mem::swap(&mut cells.least, &mut cells.greatest);
        }
        let (keep, left_out) = match (stored.keep(&member.range), member.tests.as_slice()) {
            (keep, []) => (keep, None),
            (keep, tests) => {
                let (keep, failing, counts_apart) = keep.leaving_out();
                let is_plain = member.weights.is_none() && member.numbers.is_none() && !cells.any();
                if counts_apart && !is_plain || cells.null {
                    return None;
                }
                (keep, Some(LeftOut { tests: tests.to_vec(), failing, counts_apart }))
            }
        };
        let places = |is_requested: bool| if is_requested { groups } else { 0 };
        Some(Self {
            keep,
            left_out,
            requested,
            packing,
            has_range: !member.range.is_unbounded(),
            weights: member.weights.clone(),
            numbers: member.numbers.clone(),
            counts: vec![0; groups],
            sums: vec![0.0; places(requested.sum)],
            wide_sums: vec![<WideSum as Statistic<T::Native>>::EMPTY; places(requested.wide_sum)],
            mins: vec![<Min as Statistic<T::Native>>::EMPTY; places(requested.min)],
            maxs: vec![<Max as Statistic<T::Native>>::EMPTY; places(requested.max)],
            moments: vec![Moments::default(); places(requested.spread)],
            spreads: PairStates::new(places(requested.spread)),
            weighted: WeightedStates::new(places(member.weights.is_some())),
            pairs: PairStates::new(places(requested.pairs)),
            requested_cells: cells,
            cells: CellStates::new(cells, groups),
            nothing: vec![(); groups],
        })
    }

    /// Returns the test for a chunk. Without NULLs, only a condition needs one.
    pub(super) fn keep_in(&self, may_hold_nulls: bool) -> Keep<T::Native> {
        let is_needed = may_hold_nulls || self.has_range || self.left_out.is_some();
        if is_needed { self.keep } else { Keep::All }
    }

    /// Adds the cells of `batch` that `keep` keeps and that pass the tests of other variables, and notes where extremes are.
    pub(super) fn add_tested(
        &mut self,
        batch: Batch<'_, T::Native>,
        keep: Keep<T::Native>,
        labels: &LabelNumbers<'_>,
        first: u64,
        (masks, tiles): (&mut MaskedCells<T::Native>, &[TestedTile<'_>]),
    ) {
        let Some(LeftOut { tests, failing, counts_apart }) = &self.left_out else {
            self.add(batch, keep, labels);
            return self.cells.add(batch, keep, first);
        };
        let (failing, counts_apart) = (*failing, *counts_apart);
        let masked = masks.masked(batch, tests, tiles, failing);
        self.add(masked, keep, labels);
        self.cells.add(masked, keep, first);
        if counts_apart {
            masks.each_passing(batch, failing, |place| self.add_cells(place, failing, 1));
        }
    }

    /// Adds the cells of `batch` that `keep` keeps. They are counted too, but for [`Keep::All`]: then the
    /// counts already include all cells of the chunk.
    fn add(
        &mut self,
        batch: Batch<'_, T::Native>,
        keep: Keep<T::Native>,
        labels: &LabelNumbers<'_>,
    ) {
        match keep {
            Keep::Nothing => {}
            Keep::All => self.fold(batch, KeepAll, labels),
            // No integer is NaN; the condition leaves out the code for that.
            Keep::Numbers if T::Native::IS_FLOAT => self.fold(batch, Numbers, labels),
            Keep::Numbers => self.fold(batch, KeepAll, labels),
            Keep::Between(between) => self.fold(batch, between, labels),
            Keep::Interval(interval) => self.fold(batch, interval, labels),
        }
    }

    /// Passes over the batch once per requested statistic. The first pass counts.
    fn fold<K: Test<T::Native>>(
        &mut self,
        batch: Batch<'_, T::Native>,
        test: K,
        labels: &LabelNumbers<'_>,
    ) {
        let weights = labels.weights.as_ref();
        let counts = &mut self.counts;
        if self.requested.sum {
            loops::pass::<T::Native, Sum, K>(&mut self.sums, counts, batch, test);
        } else if self.requested.wide_sum {
            loops::pass::<T::Native, WideSum, K>(&mut self.wide_sums, counts, batch, test);
        } else if K::MAY_FAIL && weights.is_none() {
            loops::pass::<T::Native, Count, K>(&mut self.nothing, counts, batch, test);
        }
        if self.requested.min {
            loops::pass::<T::Native, Min, K>(&mut self.mins, &mut [], batch, test);
        }
        if self.requested.max {
            loops::pass::<T::Native, Max, K>(&mut self.maxs, &mut [], batch, test);
        }
        if self.requested.spread {
            if batch.is_of_columns() {
                let test = test.common();
                loops::pairs::<T::Native, _>(&mut self.spreads, batch, &RowWeights::ONE, test);
            } else {
                loops::moments::<T::Native, K>(&mut self.moments, batch, test);
            }
        }
        if let Some(weights) = weights {
            // Sums have counted already.
            let is_counted = !K::MAY_FAIL || self.requested.sum || self.requested.wide_sum;
            let counts = if is_counted { &mut [] } else { self.counts.as_mut_slice() };
            loops::weighted::<T::Native, K>(&mut self.weighted, counts, batch, weights, test);
        }
        if let Some(numbers) = &labels.numbers {
            loops::pairs::<T::Native, _>(&mut self.pairs, batch, numbers, test.common());
        }
    }

    /// Adds `cells` equal cells that count to the group at `place`. No cell has a weight, and none is numbered.
    pub(super) fn add_cells(&mut self, place: usize, cell: T::Native, cells: u64) {
        self.counts[place] += cells;
        let number = cell.to_f64();
        if self.requested.sum {
            self.sums[place] += number * cells as f64;
        }
        if self.requested.wide_sum {
            let total = &mut self.wide_sums[place];
            *total = total.plus(times(T::Native::widen(cell.wide_lane()), cells));
        }
        if self.requested.min {
            <Min as Statistic<T::Native>>::merge(&mut self.mins[place], cell);
        }
        if self.requested.max {
            <Max as Statistic<T::Native>>::merge(&mut self.maxs[place], cell);
        }
        if self.requested.spread {
            // Infinite values have no spread.
            let m2 = if number.is_finite() { 0.0 } else { f64::NAN };
            self.moments[place].merge(Moments { count: cells, mean: number, m2 });
        }
    }

    /// Whether `zone` has what is requested of a chunk that is selected whole and lies in one group.
    pub(super) fn is_answered(&self, zone: &Zone) -> bool {
        let RequestedStats { sum, wide_sum, min, max, spread, pairs } = self.requested;
        // The zone has bounds if extremes are requested, and a sum if sums are. No zone has a spread.
        let is_stored =
            zone.bounds.is_some() | !(min | max) && zone.sum.is_some() | !(sum | wide_sum);
        let has_condition = self.has_range || self.left_out.is_some();
        let is_plain = !has_condition && self.weights.is_none() && !self.requested_cells.any();
        is_stored && !spread && !pairs && is_plain
    }

    /// Adds the statistics of `zone` for a chunk for which [`Member::is_answered`] is true.
    pub(super) fn add_zone(&mut self, chunk: GroupedChunk<'_>, place: usize, zone: &Zone) {
        self.counts[place] += chunk.task.cells() - zone.null_count;
        if let Some((least, greatest)) = &zone.bounds {
            if self.requested.min {
                <Min as Statistic<T::Native>>::merge(&mut self.mins[place], T::from_bound(*least));
            }
            if self.requested.max {
                <Max as Statistic<T::Native>>::merge(
                    &mut self.maxs[place],
                    T::from_bound(*greatest),
                );
            }
        }
        if let Some(sum) = zone.sum {
            if self.requested.sum {
                self.sums[place] += sum.to_f64();
            }
            if self.requested.wide_sum {
                let total = &mut self.wide_sums[place];
                *total = total.plus(T::Native::wide_sum(sum));
            }
        }
    }

    /// Returns the least and the greatest stored number of a group; `None` where not requested, or without a
    /// value.
    pub(super) fn extremes(&self, place: usize) -> (Option<ZoneBound>, Option<ZoneBound>) {
        // Without a value, the states still hold the neutral elements.
        let found = self.counts[place] > 0;
        let of = |states: &[T::Native], is_requested: bool| {
            (found && is_requested).then(|| T::to_bound(states[place]))
        };
        (of(&self.mins, self.requested.min), of(&self.maxs, self.requested.max))
    }

    /// Returns the statistics of all groups, as values. With `halves`, extremes are in half precision.
    pub(super) fn finish(mut self, halves: bool) -> GroupStats {
        let RequestedStats { sum, wide_sum, min, max, spread, pairs } = self.requested;
        let mut pairs = pairs.then(|| self.pairs.finish());
        let of_columns = self.spreads.finish().into_iter();
        self.moments.iter_mut().zip(of_columns).for_each(|(moments, of_columns)| {
            let Pairs { count, mean_y: mean, yy: m2, .. } = of_columns;
            moments.merge(Moments { count, mean, m2 });
        });
        if let Some(Packing { scale, offset }) = self.packing {
            let unpack = |sum: &mut f64, weight: f64| *sum = *sum * scale + offset * weight;
            let counts = self.counts.iter().map(|count| *count as f64);
            self.sums.iter_mut().zip(counts).for_each(|(sum, count)| unpack(sum, count));
            let WeightedStates { sums, weights } = &mut self.weighted;
            sums.iter_mut().zip(weights).for_each(|(sum, weight)| unpack(sum, *weight));
            self.moments.iter_mut().for_each(|moments| *moments = moments.rescaled(scale, offset));
            let pairs = pairs.iter_mut().flatten();
            pairs.for_each(|pairs: &mut Pairs| *pairs = pairs.rescaled(scale, offset));
        }
        let extremes = |states: Vec<T::Native>| extremes::<T>(states, self.packing, halves);
        let mut mins = min.then(|| extremes(self.mins));
        let mut maxs = max.then(|| extremes(self.maxs));
        let numbered = |cells: Vec<u64>| cells.into_iter().map(CellNumber).collect::<Vec<_>>();
        let first = |is_requested: bool, states: ExtremeCells<T::Native>| {
            is_requested.then(|| FirstCells {
                values: extremes(states.numbers),
                cells: numbered(states.cells),
            })
        };
        let RequestedCells { least, greatest, null } = self.requested_cells;
        let mut least = first(least, self.cells.least);
        let mut greatest = first(greatest, self.cells.greatest);
        let nulls = null.then(|| numbered(self.cells.nulls));
        if self.packing.is_some_and(Packing::is_reversed) {
            std::mem::swap(&mut mins, &mut maxs);
            std::mem::swap(&mut least, &mut greatest);
        }
        GroupStats {
            counts: self.counts,
            sums: sum.then_some(self.sums),
            wide_sums: wide_sum.then(|| T::Native::wide_array(self.wide_sums)),
            mins,
            maxs,
            spreads: spread.then_some(self.moments),
            weighted: self.weights.is_some().then_some(self.weighted),
            pairs,
            cells: self.requested_cells.any().then_some(GroupCells { least, greatest, nulls }),
        }
    }
}

/// Returns the sum of `count` equal numbers, by doubling; integers wrap.
fn times<L: Lane>(mut number: L, mut count: u64) -> L {
    let mut sum = L::ZERO;
    while count > 0 {
        if count & 1 == 1 {
            sum = sum.plus(number);
        }
        number = number.plus(number);
        count >>= 1;
    }
    sum
}

/// Returns extremes in the column's type.
fn extremes<T: Element>(values: Vec<T::Native>, packing: Option<Packing>, halves: bool) -> ArrayRef
where
    T::Native: Cell,
{
    if let Some(packing) = packing {
        let values = values.into_iter().map(|stored| packing.unpack(stored));
        return Arc::new(Float64Array::from_iter_values(values));
    }
    let array = PrimitiveArray::<T>::new(ScalarBuffer::from(values), None);
    match array.as_any().downcast_ref::<PrimitiveArray<Float32Type>>() {
        Some(singles) if halves => Arc::new(singles.unary::<_, Float16Type>(half::f16::from_f32)),
        _ => Arc::new(array),
    }
}
