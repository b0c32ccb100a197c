//! The test for cells that count: they are not NULL, and a condition on the value does not exclude them.

use super::bounds::Bounds;
use super::cell::Cell;
use super::value_range::ValueRange;

/// The test that decides which cells count, for elements of one type.
#[derive(Debug, Clone, Copy)]
pub(super) enum Keep<T> {
    /// Every cell counts.
    All,
    /// Every cell counts, except NaN.
    Numbers,
    /// The cells in an interval count.
    Between(Between<T>),
    /// The cells in an interval count, except a fill value.
    Interval(Interval<T>),
    /// No cell counts.
    Nothing,
}

/// A test of cells in the loops, which are compiled for each test.
pub(super) trait Test<T>: Copy {
    /// The test that large loops are compiled for instead, so that they take less of the program.
    type Common: Test<T>;

    /// Whether a cell may fail the test. If not, no cell is counted: the extents of a chunk tell how many
    /// there are.
    const MAY_FAIL: bool;
    /// Whether the cell counts.
    fn keeps(self, cell: T) -> bool;
    /// Returns the test that large loops have for this one.
    fn common(self) -> Self::Common;
}

/// The test that every cell passes.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeepAll;

/// The test that every cell except NaN passes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbers;

/// The test for cells from `low` to `high` inclusive. NaN fails.
#[derive(Debug, Clone, Copy)]
pub(super) struct Between<T> {
    low: T,
    high: T,
}

/// The test for cells from `low` to `high` inclusive, except `fill`. NaN passes only with `nan`. With `zeros`, `fill`
/// is a zero, and zeros of either sign fail.
#[derive(Debug, Clone, Copy)]
pub(super) struct Interval<T> {
    low: T,
    high: T,
    fill: T,
    nan: bool,
    zeros: bool,
}

impl<T> Test<T> for KeepAll {
    type Common = Self;
    const MAY_FAIL: bool = false;
    #[inline(always)]
    fn keeps(self, _: T) -> bool {
        true
    }
    fn common(self) -> Self {
        self
    }
}

impl<T: Cell> Test<T> for Numbers {
    type Common = Self;
    const MAY_FAIL: bool = true;
    #[inline(always)]
    fn keeps(self, cell: T) -> bool {
        cell.is_number()
    }
    fn common(self) -> Self {
        self
    }
}

impl<T: Cell> Test<T> for Between<T> {
    type Common = Interval<T>;
    const MAY_FAIL: bool = true;
    #[inline(always)]
    fn keeps(self, cell: T) -> bool {
        (self.low <= cell) & (cell <= self.high)
    }
    /// Returns an interval whose fill value is outside, so that it is no second test.
    fn common(self) -> Interval<T> {
        let Self { low, high } = self;
        let fill = [T::NAN, T::LEAST].into_iter().find(|end| !self.keeps(*end));
        Interval { low, high, fill: fill.unwrap_or(T::GREATEST), nan: false, zeros: false }
    }
}

impl<T: Cell> Test<T> for Interval<T> {
    type Common = Self;
    const MAY_FAIL: bool = true;
    /// Uses `&` and `|`, which do not branch, so that loops vectorise. Comparisons with NaN are false.
    #[inline(always)]
    fn keeps(self, cell: T) -> bool {
        let inside = (self.low <= cell) & (cell <= self.high);
        let nan = T::IS_FLOAT & self.nan & !cell.is_number();
        let is_fill = cell.same_bits(self.fill) | (T::IS_FLOAT & self.zeros & (cell == self.fill));
        (inside | nan) & !is_fill
    }
    fn common(self) -> Self {
        self
    }
}

impl<T: Cell + Bounds> Keep<T> {
    /// Whether the cell counts.
    pub(super) fn keeps(self, cell: T) -> bool {
        match self {
            Self::All => true,
            Self::Numbers => Numbers.keeps(cell),
            Self::Between(between) => between.keeps(cell),
            Self::Interval(interval) => interval.keeps(cell),
            Self::Nothing => false,
        }
    }

    /// Returns the test of cells of which some are left out, and the element that replaces these, which fails. If no element
    /// fails, one is chosen, and `true` tells that cells that have it count apart.
    pub(super) fn leaving_out(self) -> (Self, T, bool) {
        let failing = [T::NAN, T::GREATEST, T::LEAST].into_iter().find(|end| !self.keeps(*end));
        match (self, failing) {
            (_, Some(failing)) => (self, failing, false),
            (Self::Interval(interval), None) => (self, interval.fill, false),
            (_, None) => {
                let fill = if T::IS_FLOAT { T::NAN } else { T::GREATEST };
                let (low, high, nan) = (T::LEAST, T::GREATEST, true);
                (Self::Interval(Interval { low, high, fill, nan, zeros: false }), fill, true)
            }
        }
    }

    /// Combines the NULLs of the column, which are NaN (`nan_is_null`) or `fill`, with the condition
    /// `range`.
    pub(super) fn new(nan_is_null: bool, fill: Option<T>, range: &ValueRange) -> Self {
        let (low, high) = (
            range.least.map_or(Some(T::LEAST), T::least_at),
            range.greatest.map_or(Some(T::GREATEST), T::greatest_at),
        );
        match (low, high) {
            (Some(low), Some(high)) => {
                let nan = T::IS_FLOAT && !nan_is_null && range.is_unbounded();
                Self::between(low, high, fill, nan)
            }
            _ => Self::Nothing,
        }
    }

    /// Lets zeros of either sign fail; `zero` is one of them, and the fill value.
    pub(super) fn without_zeros(self, zero: T) -> Self {
        match self {
            Self::Interval(interval) => Self::Interval(Interval { zeros: true, ..interval }),
            // The test was left out because the fill value itself lies outside.
            Self::Between(Between { low, high }) => {
                Self::Interval(Interval { low, high, fill: zero, nan: false, zeros: true })
            }
            other => other,
        }
    }

    /// Returns the test for cells from `low` to `high` inclusive, except `fill`. `nan` tells whether NaN
    /// counts.
    pub(super) fn between(low: T, high: T, fill: Option<T>, nan: bool) -> Self {
        if low.order(high).is_gt() {
            return Self::Nothing;
        }
        // A fill value that does not count anyway is no second test. Many writers declare NaN.
        let fails_anyway = |fill: T| {
            let inside = fill.order(low).is_ge() && fill.order(high).is_le();
            if fill.is_number() { !inside } else { !nan }
        };
        let fill = fill.filter(|fill| !fails_anyway(*fill));
        let unbounded = low.order(T::LEAST).is_eq() && high.order(T::GREATEST).is_eq();
        match fill {
            Some(fill) => Self::Interval(Interval { low, high, fill, nan, zeros: false }),
            None if !unbounded => Self::Between(Between { low, high }),
            None if nan || !T::IS_FLOAT => Self::All,
            None => Self::Numbers,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reduce::{Limit, Number};

    /// Checks that an element passes the converted limits exactly if it passes the comparison as
    /// written.
    fn agrees<T: Cell + Bounds + std::fmt::Debug>(elements: &[T], numbers: &[Number]) {
        for &number in numbers {
            for inclusive in [true, false] {
                let limit = Limit { number, inclusive };
                for &element in elements {
                    let order = match number {
                        Number::Float(number) => element.to_f64().partial_cmp(&number).unwrap(),
                        Number::Integer(number) => (element.to_f64() as i128).cmp(&number),
                    };
                    let equal = inclusive && order.is_eq();
                    let above = ValueRange { least: Some(limit), greatest: None };
                    assert_eq!(
                        keeps(&above, element),
                        order.is_gt() || equal,
                        "{element:?} {above:?}"
                    );
                    let below = ValueRange { least: None, greatest: Some(limit) };
                    assert_eq!(
                        keeps(&below, element),
                        order.is_lt() || equal,
                        "{element:?} {below:?}"
                    );
                }
            }
        }
    }

    fn keeps<T: Cell + Bounds>(range: &ValueRange, element: T) -> bool {
        match Keep::new(true, None, range) {
            Keep::Interval(interval) => interval.keeps(element),
            Keep::Between(between) => {
                let keeps = between.keeps(element);
                assert_eq!(keeps, between.common().keeps(element));
                keeps
            }
            Keep::Nothing => false,
            Keep::All | Keep::Numbers => true,
        }
    }

    #[test]
    fn limits_are_exact() {
        let floats: Vec<Number> = [
            0.0,
            -0.0,
            1e-300,
            -1e-300,
            0.1,
            300.1,
            -300.1,
            1.5,
            127.0,
            255.0,
            255.5,
            1e30,
            -1e30,
            1e300,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::from(f32::MAX),
            f64::from(0.1_f32),
        ]
        .map(Number::Float)
        .to_vec();
        let integers =
            [0, 1, -1, 255, 256, 32767, -32768, 65536, i128::from(i64::MAX)].map(Number::Integer);
        let f32s = [
            0.0,
            -0.0,
            f32::from_bits(1),
            0.1,
            0.1_f32.next_up(),
            0.1_f32.next_down(),
            300.1,
            300.1_f32.next_up(),
            300.1_f32.next_down(),
            f32::MAX,
            f32::MIN,
            f32::INFINITY,
            f32::NEG_INFINITY,
            1e30,
        ];
        agrees(&f32s, &floats);
        agrees(&f32s.map(f64::from), &floats);
        let all_u8: Vec<u8> = (0..=255).collect();
        agrees(&all_u8, &floats);
        agrees(&all_u8, &integers);
        let some_i16: Vec<i16> = (-32768..32767).step_by(97).chain([32767]).collect();
        agrees(&some_i16, &floats);
        agrees(&some_i16, &integers);
    }

    #[test]
    fn an_empty_range_keeps_nothing() {
        let at = |number, inclusive| Some(Limit { number: Number::Integer(number), inclusive });
        let range = ValueRange { least: at(7, false), greatest: at(8, false) };
        assert!(matches!(Keep::<i32>::new(false, None, &range), Keep::Nothing));
        let range = ValueRange { least: at(300, true), greatest: None };
        assert!(matches!(Keep::<u8>::new(false, None, &range), Keep::Nothing));
    }

    #[test]
    fn zeros_of_either_sign_may_be_the_fill_value() {
        let at = |number, inclusive| Some(Limit { number: Number::Float(number), inclusive });
        let ranges = [
            ValueRange::default(),
            ValueRange { least: at(0.0, true), greatest: None },
            ValueRange { least: None, greatest: at(0.0, true) },
        ];
        for range in ranges {
            for zero in [0.0_f64, -0.0] {
                let keep = Keep::new(true, Some(zero), &range).without_zeros(zero);
                let Keep::Interval(fill) = keep else { panic!("{keep:?}") };
                assert_eq!([0.0, -0.0].map(|cell| fill.keeps(cell)), [false; 2]);
                assert_eq!(fill.keeps(1.0), range.greatest.is_none());
            }
        }
        let Keep::Interval(fill) = Keep::new(true, Some(0.0_f64), &ranges[0]) else { panic!() };
        assert_eq!([0.0, -0.0].map(|cell| fill.keeps(cell)), [false, true]);
    }

    #[test]
    fn a_fill_value_that_never_counts_is_no_second_test() {
        let all = ValueRange::default();
        assert!(matches!(Keep::new(true, Some(f32::NAN), &all), Keep::Numbers));
        assert!(matches!(Keep::new(false, Some(f32::NAN), &all), Keep::Interval(_)));
        assert!(matches!(Keep::<i16>::new(false, None, &all), Keep::All));
        let Keep::Interval(fill) = Keep::new(true, Some(-9999.0_f64), &all) else { panic!() };
        assert_eq!([1.0, -9999.0, f64::NAN].map(|cell| fill.keeps(cell)), [true, false, false]);
        let Keep::Interval(fill) = Keep::new(false, Some(-9999.0_f64), &all) else { panic!() };
        assert_eq!([1.0, -9999.0, f64::NAN].map(|cell| fill.keeps(cell)), [true, false, true]);
    }
}
