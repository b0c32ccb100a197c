//! The statistics that a writer should have stored for a tile, computed from its elements.
//!
//! The deep verification of formats with chunk statistics compares them with the stored ones. The code is simple and separate
//! from the kernels of queries, so that one fault cannot hide in both.

use arrow::array::ArrowNativeTypeOp;

use crate::array::{Element, decimal, for_element_type};
use crate::format::{ElementType, ZoneBound, bound};

/// The statistics of the elements of a tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CellStatistics {
    /// The number of elements that are NaN, fill or NULL.
    pub nulls: u64,
    /// The least and the greatest of the other elements, as stored; -0 is less than 0.
    pub bounds: Option<(ZoneBound, ZoneBound)>,
}

impl CellStatistics {
    /// Computes the statistics of little-endian `elements`. Besides NaN, elements with the bits of
    /// `fill` and elements with a 0 in `validity` are NULL.
    pub fn new(
        element: ElementType,
        elements: &[u8],
        fill: Option<ZoneBound>,
        validity: Option<&[u8]>,
    ) -> Self {
        for_element_type!(element, T => scan::<T>(elements, fill, validity))
    }
}

/// Computes the statistics by one pass over the elements. A missing validity byte counts as valid.
fn scan<T: Element>(
    elements: &[u8],
    fill: Option<ZoneBound>,
    validity: Option<&[u8]>,
) -> CellStatistics {
    let fill = fill.map(T::from_bound);
    let is_valid = |at: usize| validity.is_none_or(|valid| valid.get(at).is_none_or(|&it| it != 0));
    let mut nulls = 0;
    let mut ends: Option<(T::Native, T::Native)> = None;
    for (at, bytes) in elements.chunks_exact(size_of::<T::Native>()).enumerate() {
        let value = T::from_bound(bound(bytes));
        let is_fill = fill.is_some_and(|fill| T::same_bits(value, fill));
        if T::is_nan(value) || is_fill || !is_valid(at) {
            nulls += 1;
            continue;
        }
        // Arrow's order has -0 before 0.
        let (least, greatest) = ends.unwrap_or((value, value));
        let least = if value.is_lt(least) { value } else { least };
        let greatest = if value.is_gt(greatest) { value } else { greatest };
        ends = Some((least, greatest));
    }
    let bounds = ends.map(|(least, greatest)| (T::to_bound(least), T::to_bound(greatest)));
    CellStatistics { nulls, bounds }
}

/// Whether two stored elements are the same number; zeros of different sign are the same.
pub fn is_same(element: ElementType, a: &ZoneBound, b: &ZoneBound) -> bool {
    a == b || is_zero(element, a) && is_zero(element, b)
}

fn is_zero(element: ElementType, stored: &ZoneBound) -> bool {
    let size = element.size() as usize;
    // The last stored byte is the highest, which has the sign.
    let Some((sign, rest)) = stored[..size].split_last() else { return false };
    let sign = if element.is_integer() { *sign } else { sign & 0x7f };
    sign == 0 && rest.iter().all(|byte| *byte == 0)
}

/// Formats two bounds in decimal, for messages.
pub fn range_text(element: ElementType, bounds: &Option<(ZoneBound, ZoneBound)>) -> String {
    let Some((least, greatest)) = bounds else { return "no values".to_owned() };
    let text = |bound: &ZoneBound| decimal(element, bound).unwrap_or_default();
    format!("values from {} to {}", text(least), text(greatest))
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    const ALL: [ElementType; 11] = [
        ElementType::F16,
        ElementType::F32,
        ElementType::F64,
        ElementType::I8,
        ElementType::I16,
        ElementType::I32,
        ElementType::I64,
        ElementType::U8,
        ElementType::U16,
        ElementType::U32,
        ElementType::U64,
    ];

    /// Computes the statistics element by element, by their definition.
    fn naively(
        element: ElementType,
        elements: &[u8],
        fill: Option<ZoneBound>,
        validity: Option<&[u8]>,
    ) -> CellStatistics {
        let size = element.size() as usize;
        let mut values: Vec<&[u8]> = vec![];
        let mut nulls = 0;
        for (at, bytes) in elements.chunks(size).enumerate() {
            let is_fill = fill.is_some_and(|fill| fill[..size] == *bytes);
            let is_null = validity.is_some_and(|validity| validity[at] == 0);
            match is_fill || is_null || element.rank(bytes).is_none() {
                true => nulls += 1,
                false => values.push(bytes),
            }
        }
        values.sort_by_key(|bytes| element.rank(bytes));
        let bounds = values.first().zip(values.last()).map(|(a, b)| (bound(a), bound(b)));
        CellStatistics { nulls, bounds }
    }

    #[test]
    fn statistics_are_those_of_looking_at_each() {
        let mut rng = StdRng::seed_from_u64(11);
        for round in 0..4_000 {
            let element = ALL[round % ALL.len()];
            let size = element.size() as usize;
            // With few different bytes, zeros, NaN, infinities and fills occur.
            let bytes = [0, 0, 0x80, 0x7f, 0xff, 0x7c, 0xfc, 0xf0, 1];
            let cells = rng.random_range(0..9);
            let elements: Vec<u8> =
                (0..cells * size).map(|_| bytes[rng.random_range(0..bytes.len())]).collect();
            let fill = elements.first_chunk::<8>().filter(|_| round % 3 == 0).copied();
            let validity: Vec<u8> = (0..cells).map(|_| rng.random_range(0..2)).collect();
            let validity = (round % 5 == 0).then_some(&validity[..]);
            let found = CellStatistics::new(element, &elements, fill, validity);
            assert_eq!(
                found,
                naively(element, &elements, fill, validity),
                "{element} {elements:?}"
            );
        }
    }

    #[test]
    fn zeros_are_the_same_of_floats_only() {
        let (plus, minus) = (bound(&0_f32.to_le_bytes()), bound(&(-0_f32).to_le_bytes()));
        assert!(is_same(ElementType::F32, &plus, &minus));
        assert!(!is_same(ElementType::I32, &plus, &minus));
        assert!(!is_same(ElementType::F32, &plus, &bound(&1_f32.to_le_bytes())));
        assert_eq!(range_text(ElementType::F32, &Some((minus, plus))), "values from -0.0 to 0.0");
        assert_eq!(range_text(ElementType::F32, &None), "no values");
    }
}
