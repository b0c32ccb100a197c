//! Sums of the elements of a tile, to compare with the stored sums.
//!
//! Stored sums are `i64`, `u64` or doubles. Writers stop at the limit of the type when a partial sum
//! overflows, and go on from there. So a sum is compared only if no order of addition can overflow:
//!
//! ```text
//!   i64    MAX, 1, -1     exact sum MAX     magnitude MAX + 2     may have stopped at MAX, then MAX - 1
//!   i16    -1, 5, (NULL)  exact sum 4       magnitude 6           must be 4
//! ```

use gridfusion_core::array::{Element, ElementVisitor, visit_element_type};
use gridfusion_core::format::{ElementType, bound};

/// The sum of the elements of a tile that are not NULL.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum TileSum {
    /// The exact sum; `magnitude` is the sum of absolute values.
    Integer { sum: i128, magnitude: u128, signed: bool },
    /// The sum in doubles; `magnitude` is the sum of absolute values.
    Float { sum: f64, magnitude: f64 },
}

/// The accepted difference between sums in doubles, as a share of the magnitude. It allows for other
/// orders of addition.
///
/// Each addition rounds by at most 1.1e-16 of the partial sum, which never exceeds the magnitude. So this
/// allows for about nine million additions that all round the same way.
const ROUNDING: f64 = 1e-9;

/// The arguments of [`TileSum::sum`].
struct AddUp<'a> {
    element: ElementType,
    elements: &'a [u8],
    validity: Option<&'a [u8]>,
}

impl ElementVisitor for AddUp<'_> {
    type Output = TileSum;

    fn visit<T: Element>(self) -> TileSum {
        TileSum::sum::<T>(self.element, self.elements, self.validity)
    }
}

impl TileSum {
    /// Adds up little-endian `elements`, without those that have a 0 in `validity`.
    pub(crate) fn new(element: ElementType, elements: &[u8], validity: Option<&[u8]>) -> Self {
        visit_element_type(element, AddUp { element, elements, validity })
    }

    fn sum<T: Element>(element: ElementType, elements: &[u8], validity: Option<&[u8]>) -> Self {
        let is_valid =
            |at: usize| validity.is_none_or(|valid| valid.get(at).is_none_or(|byte| *byte != 0));
        let elements = elements.chunks_exact(size_of::<T::Native>()).enumerate();
        let valid = elements.filter(|(at, _)| is_valid(*at));
        let values = valid.map(|(_, bytes)| T::from_bound(bound(bytes)));
        if element.is_integer() {
            let add = |(sum, magnitude): (i128, u128), value: i128| {
                (sum + value, magnitude + value.unsigned_abs())
            };
            let (sum, magnitude) = values.filter_map(T::to_integer).fold((0, 0), add);
            return Self::Integer { sum, magnitude, signed: !element.is_unsigned() };
        }
        let add = |(sum, magnitude): (f64, f64), value: f64| (sum + value, magnitude + value.abs());
        let (sum, magnitude) = values.map(T::to_f64).fold((0.0, 0.0), add);
        Self::Float { sum, magnitude }
    }

    /// Whether no partial sum, in any order of addition, can overflow the type of stored sums.
    pub(super) fn cannot_overflow(self) -> bool {
        match self {
            Self::Integer { magnitude, signed: true, .. } => {
                magnitude <= i64::MAX.unsigned_abs().into()
            }
            Self::Integer { magnitude, signed: false, .. } => magnitude <= u64::MAX.into(),
            // The factor leaves room for rounding. It also excludes infinities and NaN.
            Self::Float { magnitude, .. } => magnitude < f64::MAX / 4.0,
        }
    }

    /// Returns the bits of the sum that is stored: the limit of its type if it exceeds that.
    pub(crate) fn stored(self) -> u64 {
        match self {
            Self::Integer { sum, signed: true, .. } => {
                let sum = sum.clamp(i64::MIN.into(), i64::MAX.into());
                i64::try_from(sum).unwrap_or_default().cast_unsigned()
            }
            Self::Integer { sum, .. } => u64::try_from(sum).unwrap_or(u64::MAX),
            Self::Float { sum, .. } => sum.to_bits(),
        }
    }

    /// Returns the sum of both.
    pub(crate) fn plus(self, other: Self) -> Self {
        match (self, other) {
            (
                Self::Integer { sum, magnitude, signed },
                Self::Integer { sum: more, magnitude: wider, .. },
            ) => Self::Integer { sum: sum + more, magnitude: magnitude + wider, signed },
            (Self::Float { sum, magnitude }, Self::Float { sum: more, magnitude: wider }) => {
                Self::Float { sum: sum + more, magnitude: magnitude + wider }
            }
            // Sums of one type are alike.
            (sum, _) => sum,
        }
    }

    /// Whether a stored sum, given as its bits, equals this sum; for doubles, within rounding errors.
    pub(super) fn is(self, stored: u64) -> bool {
        match self {
            Self::Integer { sum, signed: true, .. } => sum == i128::from(stored.cast_signed()),
            Self::Integer { sum, signed: false, .. } => sum == i128::from(stored),
            Self::Float { sum, magnitude } => {
                (f64::from_bits(stored) - sum).abs() <= magnitude * ROUNDING
            }
        }
    }

    /// Formats a stored sum, given as its bits, as a number.
    pub(super) fn text(self, stored: u64) -> String {
        match self {
            Self::Integer { signed: true, .. } => stored.cast_signed().to_string(),
            Self::Integer { signed: false, .. } => stored.to_string(),
            Self::Float { .. } => f64::from_bits(stored).to_string(),
        }
    }
}

impl std::fmt::Display for TileSum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Integer { sum, .. } => sum.fmt(f),
            Self::Float { sum, .. } => sum.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_exact_or_nearly_so() {
        let of = TileSum::new(ElementType::I16, &[0xff, 0xff, 5, 0, 7, 0], Some(&[1, 1, 0]));
        assert!(of.is(4) && !of.is(5));
        assert_eq!(of.to_string(), "4");
        let negative = TileSum::new(ElementType::I8, &[0xfe], None);
        assert!(negative.is(u64::MAX - 1));
        assert_eq!(negative.text(u64::MAX), "-1");
        assert!(TileSum::new(ElementType::U8, &[0xfe, 1], None).is(255));
        let huge: Vec<u8> = [i64::MAX, 1, -1].iter().flat_map(|it| it.to_le_bytes()).collect();
        assert!(!TileSum::new(ElementType::I64, &huge, None).cannot_overflow());
        assert!(of.cannot_overflow());
        let sum = |of: &[i64]| {
            let bytes: Vec<u8> = of.iter().flat_map(|it| it.to_le_bytes()).collect();
            TileSum::new(ElementType::I64, &bytes, None)
        };
        assert_eq!(sum(&[i64::MAX, 1]).stored(), i64::MAX as u64);
        assert_eq!(sum(&[i64::MAX]).plus(sum(&[1, -3])).stored(), i64::MAX as u64 - 2);
        assert_eq!(sum(&[-1]).stored(), u64::MAX);
        let floats: Vec<u8> = [0.1_f32, 0.2, -0.3].iter().flat_map(|it| it.to_le_bytes()).collect();
        let sum = f64::from(0.1_f32) + f64::from(0.2_f32) - f64::from(0.3_f32);
        let of = TileSum::new(ElementType::F32, &floats, None);
        assert!(
            of.is(sum.to_bits()) && !of.is((sum + 1e-6).to_bits()) && !of.is(f64::NAN.to_bits())
        );
    }
}
