//! Conversion of numbers from the type of a dataset to that of a virtual dataset, as the HDF5 library does it.

use crate::hierarchy::CellType;
use gridfusion_core::format::ElementType;
use gridfusion_core::{Error, Result};

/// A conversion of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Conversion {
    pub(super) from: ElementType,
    pub(super) to: ElementType,
}

/// A number of any type.
#[derive(Clone, Copy)]
enum Number {
    Integer(i128),
    Float(f64),
}

impl Conversion {
    /// Returns the conversion from one type of cells to another; `None` if cells of these types are not converted.
    pub(super) fn between(from: &CellType, to: &CellType) -> Option<Self> {
        let (CellType::Number(from), CellType::Number(to)) = (from, to) else { return None };
        let is_half = [from, to].contains(&&ElementType::F16);
        (!is_half).then_some(Self { from: *from, to: *to })
    }

    /// Converts little-endian cells. Integers out of range become the least or greatest one, and fractions are cut off.
    pub(super) fn apply(self, cells: &[u8]) -> Result<Vec<u8>> {
        let (from, to) = (self.from.size() as usize, self.to.size() as usize);
        let mut converted = Vec::with_capacity(cells.len() / from * to);
        for cell in cells.chunks_exact(from) {
            let bytes = encoded(self.to, number(self.from, cell)).ok_or_else(|| {
                Error::unsupported(format!("NaN in cells of {} as {}", self.from, self.to))
            })?;
            converted.extend_from_slice(bytes.get(..to).unwrap_or_default());
        }
        Ok(converted)
    }
}

fn number(element: ElementType, cell: &[u8]) -> Number {
    let mut word = [0; 8];
    word.iter_mut().zip(cell).for_each(|(to, from)| *to = *from);
    let bits = u64::from_le_bytes(word);
    match element {
        ElementType::F32 => Number::Float(f64::from(f32::from_bits(bits as u32))),
        ElementType::F64 => Number::Float(f64::from_bits(bits)),
        _ if element.is_unsigned() => Number::Integer(i128::from(bits)),
        _ => {
            let unused = 64 - 8 * element.size() as u32;
            Number::Integer(i128::from((bits << unused) as i64 >> unused))
        }
    }
}

/// Returns the little-endian bytes of a number; `None` for NaN as an integer.
fn encoded(element: ElementType, number: Number) -> Option<[u8; 8]> {
    let bits = match (element, number) {
        (ElementType::F32, Number::Integer(it)) => u64::from((it as f32).to_bits()),
        (ElementType::F32, Number::Float(it)) => u64::from(single(it).to_bits()),
        (ElementType::F64, Number::Integer(it)) => (it as f64).to_bits(),
        (ElementType::F64, Number::Float(it)) => it.to_bits(),
        (_, Number::Float(it)) if it.is_nan() => return None,
        (_, Number::Float(it)) => clamped(element, it as i128),
        (_, Number::Integer(it)) => clamped(element, it),
    };
    Some(bits.to_le_bytes())
}

/// Returns the nearest single. All beyond the greatest one is infinite, also what would be rounded to it.
fn single(number: f64) -> f32 {
    match number.abs() > f64::from(f32::MAX) {
        true => f32::INFINITY.copysign(number as f32),
        false => number as f32,
    }
}

fn clamped(element: ElementType, number: i128) -> u64 {
    let bits = 8 * element.size() as u32;
    let (least, greatest) = match element.is_unsigned() {
        true => (0, (1_i128 << bits) - 1),
        false => (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1),
    };
    number.clamp(least, greatest) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The HDF5 library returns these numbers.
    #[test]
    fn numbers_out_of_range_are_the_nearest() {
        use ElementType::{F32, F64, I8, I64, U8, U64};
        let convert = |from, to, cell: &[u8]| Conversion { from, to }.apply(cell).unwrap();
        for (number, i8, u8) in
            [(2.9, 2_i8, 2_u8), (-1.9, -1, 0), (256.0, 127, 255), (-1e30, -128, 0)]
        {
            assert_eq!(convert(F64, I8, &f64::to_le_bytes(number)), i8.to_le_bytes());
            assert_eq!(convert(F64, U8, &f64::to_le_bytes(number)), u8.to_le_bytes());
        }
        assert_eq!(convert(F64, I8, &f64::INFINITY.to_le_bytes()), [127]);
        assert_eq!(convert(I64, U8, &(-5_i64).to_le_bytes()), [0]);
        assert_eq!(convert(I64, U64, &i64::MAX.to_le_bytes()), i64::MAX.to_le_bytes());
        assert_eq!(convert(U64, I64, &u64::MAX.to_le_bytes()), i64::MAX.to_le_bytes());
        assert_eq!(convert(I64, F32, &16_777_217_i64.to_le_bytes()), 16_777_216_f32.to_le_bytes());
        let (beyond, infinite) = (3.4028235e38_f64.to_le_bytes(), f32::INFINITY.to_le_bytes());
        assert_eq!(convert(F64, F32, &beyond), infinite);
        let least = f64::from(f32::MIN).to_le_bytes();
        assert_eq!(convert(F64, F32, &least), f32::MIN.to_le_bytes());
        assert!(Conversion { from: F32, to: I8 }.apply(&f32::NAN.to_le_bytes()).is_err());
        assert!(convert(F32, F64, &f32::NAN.to_le_bytes()).len() == 8);
    }
}
