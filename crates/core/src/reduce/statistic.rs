//! The statistics that the loops compute: counts, sums, extremes.
//!
//! Each has a neutral element, which is folded in for a cell that does not count, without a branch: 0 for a
//! sum, the greatest element for a minimum.

use super::cell::{Cell, Lane};

/// A statistic of the cells of a group.
///
/// ```text
///   cells of a run ─▶ lanes, in registers ─▶ fold ─▶ merge into the state of the group
/// ```
pub(super) trait Statistic<T: Cell> {
    /// A part of a run's result, which fits in a register.
    type Lane: Copy;
    /// The state of one group.
    type State: Copy + Send + Sync + 'static;
    /// The lane without cells.
    const NEUTRAL: Self::Lane;
    /// The state of a group without cells.
    const EMPTY: Self::State;
    /// Whether the pass also counts the cells that pass the test.
    const COUNTS: bool;

    /// Makes a lane of one cell.
    fn lane(cell: T) -> Self::Lane;
    /// Makes a lane of one cell, or a neutral one unless `keep`, without a branch.
    #[inline(always)]
    fn lane_if(cell: T, keep: bool) -> Self::Lane {
        if keep { Self::lane(cell) } else { Self::NEUTRAL }
    }
    /// Folds two lanes into one.
    fn fold(a: Self::Lane, b: Self::Lane) -> Self::Lane;
    /// Adds a lane to a state.
    fn merge(state: &mut Self::State, lane: Self::Lane);
    /// Adds a state to another.
    fn join(state: &mut Self::State, other: Self::State);
}

/// The sum of the cells as doubles, and their count.
pub(super) struct Sum;

impl<T: Cell> Statistic<T> for Sum {
    type Lane = T::Lane;
    type State = f64;
    const NEUTRAL: T::Lane = T::Lane::ZERO;
    const EMPTY: f64 = 0.0;
    const COUNTS: bool = true;

    #[inline(always)]
    fn lane(cell: T) -> T::Lane {
        cell.lane()
    }
    #[inline(always)]
    fn lane_if(cell: T, keep: bool) -> T::Lane {
        cell.zero_unless(keep).lane()
    }
    #[inline(always)]
    fn fold(a: T::Lane, b: T::Lane) -> T::Lane {
        a.plus(b)
    }
    #[inline(always)]
    fn merge(state: &mut f64, lane: T::Lane) {
        *state += lane.to_f64();
    }
    #[inline(always)]
    fn join(state: &mut f64, other: f64) {
        *state += other;
    }
}

/// The sum of integers, wrapping as DataFusion's does, and their count.
pub(super) struct WideSum;

impl<T: Cell> Statistic<T> for WideSum {
    type Lane = T::WideLane;
    type State = T::Wide;
    const NEUTRAL: T::WideLane = T::WideLane::ZERO;
    const EMPTY: T::Wide = T::Wide::ZERO;
    const COUNTS: bool = true;

    #[inline(always)]
    fn lane(cell: T) -> T::WideLane {
        cell.wide_lane()
    }
    #[inline(always)]
    fn lane_if(cell: T, keep: bool) -> T::WideLane {
        cell.zero_unless(keep).wide_lane()
    }
    #[inline(always)]
    fn fold(a: T::WideLane, b: T::WideLane) -> T::WideLane {
        a.plus(b)
    }
    #[inline(always)]
    fn merge(state: &mut T::Wide, lane: T::WideLane) {
        *state = state.plus(T::widen(lane));
    }
    #[inline(always)]
    fn join(state: &mut T::Wide, other: T::Wide) {
        *state = state.plus(other);
    }
}

/// The count alone.
pub(super) struct Count;

impl<T: Cell> Statistic<T> for Count {
    type Lane = ();
    type State = ();
    const NEUTRAL: () = ();
    const EMPTY: () = ();
    const COUNTS: bool = true;

    #[inline(always)]
    fn lane(_: T) {}
    #[inline(always)]
    fn fold((): (), (): ()) {}
    #[inline(always)]
    fn merge((): &mut (), (): ()) {}
    #[inline(always)]
    fn join((): &mut (), (): ()) {}
}

/// The least cell; no cell that counts may be NaN, because comparisons with it are false.
pub(super) struct Min;

impl<T: Cell> Statistic<T> for Min {
    type Lane = T;
    type State = T;
    const NEUTRAL: T = T::GREATEST;
    const EMPTY: T = T::GREATEST;
    const COUNTS: bool = false;

    #[inline(always)]
    fn lane(cell: T) -> T {
        cell
    }
    #[inline(always)]
    fn fold(a: T, b: T) -> T {
        if b < a { b } else { a }
    }
    #[inline(always)]
    fn merge(state: &mut T, lane: T) {
        *state = <Self as Statistic<T>>::fold(*state, lane);
    }
    #[inline(always)]
    fn join(state: &mut T, other: T) {
        <Self as Statistic<T>>::merge(state, other);
    }
}

/// The greatest cell; no cell that counts may be NaN.
pub(super) struct Max;

impl<T: Cell> Statistic<T> for Max {
    type Lane = T;
    type State = T;
    const NEUTRAL: T = T::LEAST;
    const EMPTY: T = T::LEAST;
    const COUNTS: bool = false;

    #[inline(always)]
    fn lane(cell: T) -> T {
        cell
    }
    #[inline(always)]
    fn fold(a: T, b: T) -> T {
        if b > a { b } else { a }
    }
    #[inline(always)]
    fn merge(state: &mut T, lane: T) {
        *state = <Self as Statistic<T>>::fold(*state, lane);
    }
    #[inline(always)]
    fn join(state: &mut T, other: T) {
        <Self as Statistic<T>>::merge(state, other);
    }
}
