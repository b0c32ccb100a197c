//! The predicates on values that the kernels support: intervals.

use std::cmp::Ordering;

/// A limit that a predicate sets on the value, as written in the query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    /// The number to compare with; never NaN.
    pub number: Number,
    /// Whether the number itself passes.
    pub inclusive: bool,
}

/// A number in a predicate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// A number of a floating-point type.
    Float(f64),
    /// A number of an integer type.
    Integer(i128),
}

/// The interval of values that pass a predicate, unbounded where it has no limit. NULL is in no interval.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ValueRange {
    /// The lower limit.
    pub least: Option<Limit>,
    /// The upper limit.
    pub greatest: Option<Limit>,
}

impl ValueRange {
    /// Whether every value is in the interval.
    pub fn is_unbounded(&self) -> bool {
        self.least.is_none() && self.greatest.is_none()
    }

    /// Returns the interval of the values that are in both; `None` if two limits are of different types, so that
    /// they cannot be compared.
    pub fn and(&self, other: &Self) -> Option<Self> {
        Some(Self {
            least: stricter(self.least, other.least, Ordering::Greater)?,
            greatest: stricter(self.greatest, other.greatest, Ordering::Less)?,
        })
    }
}

/// Returns the stricter of two limits: the one whose number is `strict` compared with the other. `None` if the
/// limits cannot be compared.
fn stricter(a: Option<Limit>, b: Option<Limit>, strict: Ordering) -> Option<Option<Limit>> {
    let (Some(a), Some(b)) = (a, b) else { return Some(a.or(b)) };
    let order = match (a.number, b.number) {
        (Number::Float(a), Number::Float(b)) => a.partial_cmp(&b)?,
        (Number::Integer(a), Number::Integer(b)) => a.cmp(&b),
        _ => return None,
    };
    Some(Some(match order {
        Ordering::Equal => Limit { inclusive: a.inclusive && b.inclusive, ..a },
        order if order == strict => a,
        _ => b,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(least: Option<(f64, bool)>, greatest: Option<(f64, bool)>) -> ValueRange {
        let limit = |(number, inclusive)| Limit { number: Number::Float(number), inclusive };
        ValueRange { least: least.map(limit), greatest: greatest.map(limit) }
    }

    #[test]
    fn both_ranges_apply() {
        let (a, b) = (range(Some((1.0, true)), Some((9.0, true))), range(Some((2.0, false)), None));
        let both = range(Some((2.0, false)), Some((9.0, true)));
        assert_eq!((a.and(&b), b.and(&a)), (Some(both), Some(both)));
        // Of equal numbers, the limit that excludes the number itself is the stricter one.
        let open = range(Some((1.0, false)), Some((9.0, false)));
        assert_eq!((a.and(&open), open.and(&a)), (Some(open), Some(open)));
        assert_eq!(a.and(&ValueRange::default()), Some(a));
        assert!(ValueRange::default().is_unbounded() && !b.is_unbounded());
    }

    #[test]
    fn limits_that_cannot_be_compared_have_no_common_range() {
        let float = range(Some((1.0, true)), None);
        let limit = Limit { number: Number::Integer(1), inclusive: true };
        let integer = ValueRange { least: Some(limit), greatest: None };
        let nan = range(Some((f64::NAN, true)), None);
        assert_eq!((float.and(&integer), float.and(&nan)), (None, None));
        // They are only compared with limits of the same end.
        let greatest = ValueRange { least: None, greatest: Some(limit) };
        let both = ValueRange { least: float.least, greatest: Some(limit) };
        assert_eq!(float.and(&greatest), Some(both));
    }
}
