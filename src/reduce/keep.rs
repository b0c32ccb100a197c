//! The test for cells that count: they are not NULL, and a predicate on the value does not exclude
//! them.

use super::bounds::Bounds;
use super::cell::Cell;
use super::value_range::ValueRange;

/// The test that decides which cells count, for elements of one type.
#[derive(Debug, Clone, Copy)]
pub(super) enum Keep<T> {
    /// Every cell counts.
    All,
    /// Every cell counts, except NaN.
    NotNan,
    /// Cells from `low` to `high` inclusive count, except `fill`. NaN counts only with `nan`.
    Within { low: T, high: T, fill: Option<T>, nan: bool },
    /// No cell counts.
    Nothing,
}

impl<T: Cell + Bounds> Keep<T> {
    /// Combines the NULLs of the column, which are NaN (`nan_is_null`) or `fill`, with the predicate
    /// `range`. A fill value or a limit makes it [`Keep::Within`]; a limit that no element meets,
    /// [`Keep::Nothing`].
    pub(super) fn new(nan_is_null: bool, fill: Option<T>, range: Option<&ValueRange>) -> Self {
        let least = range.and_then(|range| range.least);
        let greatest = range.and_then(|range| range.greatest);
        let nan = !nan_is_null && least.is_none() && greatest.is_none();
        let (low, high) = (
            least.map_or(Some(T::LEAST), T::least_at),
            greatest.map_or(Some(T::GREATEST), T::greatest_at),
        );
        let (Some(low), Some(high)) = (low, high) else { return Self::Nothing };
        match fill {
            _ if low.order(high).is_gt() => Self::Nothing,
            None if least.is_none() && greatest.is_none() && nan_is_null => Self::NotNan,
            None if least.is_none() && greatest.is_none() => Self::All,
            _ => Self::Within { low, high, fill, nan },
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
        match Keep::new(true, None, Some(range)) {
            Keep::Within { low, high, .. } => low <= element && element <= high,
            Keep::Nothing => false,
            Keep::All | Keep::NotNan => true,
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
        assert!(matches!(Keep::<i32>::new(false, None, Some(&range)), Keep::Nothing));
        let range = ValueRange { least: at(300, true), greatest: None };
        assert!(matches!(Keep::<u8>::new(false, None, Some(&range)), Keep::Nothing));
    }
}
