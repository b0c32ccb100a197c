//! Floats stored as integers: `value = integer * scale + offset`.
//!
//! With scale 0.25 and offset 10, the stored integer 3 is the float 10.75. The filter loses what is between
//! two such steps, so cells may differ from those that were written
//! ([`Pipeline::is_lossy`](super::Pipeline::is_lossy)).

use super::word::{Width, load};

/// How integers become floats.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scaling {
    pub(super) scale: f64,
    pub(super) offset: f64,
    /// The width of the signed integers.
    pub(super) stored: Width,
    /// Whether the floats have double precision.
    pub(super) is_double: bool,
}

impl Scaling {
    /// The number of bytes to which `len` stored bytes decode.
    pub(super) fn raw_len(&self, len: u64) -> Result<u64, String> {
        let stored = self.stored.bytes() as u64;
        if !len.is_multiple_of(stored) {
            return Err(format!("{len} bytes of scaled floats, not a multiple of {stored}"));
        }
        Ok(len / stored * if self.is_double { 8 } else { 4 })
    }

    /// Turns `integers` into `floats`, whose length [`raw_len`](Self::raw_len) gives.
    pub(super) fn run(&self, integers: &[u8], floats: &mut [u8]) {
        match self.stored {
            Width::One => self.run_width::<1>(integers, floats),
            Width::Two => self.run_width::<2>(integers, floats),
            Width::Four => self.run_width::<4>(integers, floats),
            Width::Eight => self.run_width::<8>(integers, floats),
        }
    }

    // Casts integers to the type of the float first, as TileDB does; the loss of precision is intended.
    fn run_width<const N: usize>(&self, integers: &[u8], floats: &mut [u8]) {
        let value = |float: f64| self.scale * float + self.offset;
        let integers = integers.as_chunks::<N>().0.iter().map(|integer| signed(*integer));
        if self.is_double {
            for (integer, place) in integers.zip(floats.as_chunks_mut().0) {
                *place = value(integer as f64).to_le_bytes();
            }
        } else {
            for (integer, place) in integers.zip(floats.as_chunks_mut().0) {
                *place = (value(f64::from(integer as f32)) as f32).to_le_bytes();
            }
        }
    }
}

/// Sign-extends a little-endian integer of `N` bytes, at most 8.
pub(super) fn signed<const N: usize>(bytes: [u8; N]) -> i64 {
    // The shift up puts the sign in the highest bit, and the shift down copies it.
    let unused = 64 - 8 * N;
    (load(bytes) << unused).cast_signed() >> unused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_all_widths_become_floats_of_both() {
        for stored in [Width::One, Width::Two, Width::Four, Width::Eight] {
            let integers: Vec<u8> = [-128_i64, -1, 0, 3]
                .iter()
                .flat_map(|integer| integer.to_le_bytes()[..stored.bytes()].to_vec())
                .collect();
            let expected = [-22.0, 9.75, 10.0, 10.75];
            let mut scaling = Scaling { scale: 0.25, offset: 10.0, stored, is_double: true };
            let mut doubles = [0; 32];
            assert_eq!(scaling.raw_len(integers.len() as u64), Ok(32));
            scaling.run(&integers, &mut doubles);
            assert_eq!(doubles.as_chunks().0, expected.map(f64::to_le_bytes));
            scaling.is_double = false;
            let mut singles = [0; 16];
            assert_eq!(scaling.raw_len(integers.len() as u64), Ok(16));
            scaling.run(&integers, &mut singles);
            assert_eq!(singles.as_chunks().0, expected.map(|value| (value as f32).to_le_bytes()));
            assert_eq!(scaling.raw_len(3).is_ok(), stored == Width::One);
        }
    }

    #[test]
    fn singles_round_the_integer_first() {
        let scaling = Scaling { scale: 1.0, offset: 1.0, stored: Width::Eight, is_double: false };
        let mut single = [0; 4];
        scaling.run(&0x0100_0001_i64.to_le_bytes(), &mut single);
        assert_eq!(f32::from_le_bytes(single), 16_777_216.0);
    }
}
