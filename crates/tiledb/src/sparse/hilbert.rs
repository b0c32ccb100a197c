//! The Hilbert curve, along which TileDB can sort cells.
//!
//! The curve visits every point of a cube of 2^bits positions per axis, and neighbours on it are neighbours in
//! space. Coordinates are first scaled to these positions:
//!
//! ```text
//!   bits 1, two axes      0 ─ 3      position (0, 0) (0, 1) (1, 1) (1, 0)
//!                         │   │      number      0      1      2      3
//!                         1 ─ 2
//! ```
//!
//! The steps are those of J. Skilling, "Programming the Hilbert curve", AIP Conference Proceedings 707 (2004).

use super::hilbert_table::{CurveTable, NUMBER_BITS};

/// Returns the bits per axis that TileDB uses for this number of dimensions.
pub(super) fn bits_per_axis(dimensions: usize) -> u32 {
    NUMBER_BITS / u32::try_from(dimensions.max(1)).unwrap_or(NUMBER_BITS)
}

/// Cells that are numbered at once; their positions fit the nearest cache.
const BLOCK: usize = 512;

/// Returns the numbers of positions on the curve. `positions` has a list per axis, of numbers of `bits` bits, and is
/// used as scratch space.
///
/// Few axes have a table. For more axes, each step goes over many cells, without a branch: half of all branches on
/// random bits would be mispredicted.
pub(super) fn numbers(positions: &mut [Vec<u64>], bits: u32) -> Vec<u64> {
    let count = positions.first().map_or(0, Vec::len);
    let mut numbers = Vec::with_capacity(count);
    if let Some(table) = CurveTable::try_new(positions.len()) {
        table.extend(&mut numbers, positions, bits);
        return numbers;
    }
    for start in (0..count).step_by(BLOCK) {
        let end = (start + BLOCK).min(count);
        let mut block: Vec<&mut [u64]> =
            positions.iter_mut().map(|axis| &mut axis[start..end]).collect();
        transpose(&mut block, bits);
        interleave(&block, bits, &mut numbers);
    }
    numbers
}

/// Appends numbers that take one bit of each axis in turn, from the highest on, the first axis first.
fn interleave(axes: &[&mut [u64]], bits: u32, numbers: &mut Vec<u64>) {
    let start = numbers.len();
    numbers.resize(start + axes.first().map_or(0, |axis| axis.len()), 0);
    for bit in (0..bits).rev() {
        for axis in axes {
            for (number, position) in numbers[start..].iter_mut().zip(axis.iter()) {
                *number = (*number << 1) | ((position >> bit) & 1);
            }
        }
    }
}

/// All bits if this bit of a number is set, else none.
fn mask(number: u64, bit: u32) -> u64 {
    ((number >> bit) & 1).wrapping_neg()
}

/// Skilling's transform of positions: the bits of the curve's numbers, spread over the axes.
fn transpose(axes: &mut [&mut [u64]], bits: u32) {
    let Some((first, others)) = axes.split_first_mut() else { return };
    // Undoes the rotations and reflections of smaller and smaller cubes.
    for bit in (1..bits).rev() {
        let below = (1_u64 << bit) - 1;
        first.iter_mut().for_each(|position| *position ^= below & mask(*position, bit));
        for axis in others.iter_mut() {
            for (first, position) in first.iter_mut().zip(axis.iter_mut()) {
                let is_set = mask(*position, bit);
                *first ^= below & is_set;
                let exchanged = (*first ^ *position) & below & !is_set;
                *first ^= exchanged;
                *position ^= exchanged;
            }
        }
    }
    gray_code(axes);
}

/// Turns each position into its Gray code, across the axes.
fn gray_code(axes: &mut [&mut [u64]]) {
    for at in 1..axes.len() {
        let (before, after) = axes.split_at_mut(at);
        for (position, previous) in after[0].iter_mut().zip(before[at - 1].iter()) {
            *position ^= previous;
        }
    }
    let Some(last) = axes.last() else { return };
    // Each bit of `flips` is the parity of the higher bits of the last axis.
    let flips = last.iter().map(|position| {
        [1, 2, 4, 8, 16, 32].iter().fold(position >> 1, |flips, shift| flips ^ (flips >> shift))
    });
    let flips: Vec<u64> = flips.collect();
    for axis in axes.iter_mut() {
        axis.iter_mut().zip(&flips).for_each(|(position, flips)| *position ^= flips);
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    #[test]
    fn the_curve_visits_each_position_once_in_steps_of_one() {
        for (axes, bits) in [(1_usize, 4_u32), (2, 1), (2, 3), (3, 2), (4, 2)] {
            let side = 1_u64 << bits;
            let count = side.pow(axes as u32);
            let axis = |axis: u32| (0..count).map(|at| at / side.pow(axis) % side).collect();
            let positions: Vec<Vec<u64>> = (0..axes as u32).map(axis).collect();
            let places = numbers(&mut positions.clone(), bits);
            let mut visited: Vec<Option<Vec<u64>>> = vec![None; count as usize];
            for (at, place) in places.iter().enumerate() {
                let position = positions.iter().map(|axis| axis[at]).collect();
                let before = visited[*place as usize].replace(position);
                assert!(before.is_none(), "{axes} {bits} {place}");
            }
            for pair in visited.windows(2) {
                let [Some(a), Some(b)] = pair else { panic!("a gap in the curve") };
                let steps: u64 = a.iter().zip(b).map(|(a, b)| a.abs_diff(*b)).sum();
                assert_eq!(steps, 1, "{a:?} {b:?}");
            }
        }
    }

    /// The steps of the paper, for one position.
    fn number(position: &mut [u64], bits: u32) -> u64 {
        let mut cube = 1_u64 << (bits - 1);
        while cube > 1 {
            let below = cube - 1;
            for axis in 0..position.len() {
                if position[axis] & cube != 0 {
                    position[0] ^= below;
                } else {
                    let exchanged = (position[0] ^ position[axis]) & below;
                    position[0] ^= exchanged;
                    position[axis] ^= exchanged;
                }
            }
            cube >>= 1;
        }
        (1..position.len()).for_each(|axis| position[axis] ^= position[axis - 1]);
        let (mut flips, mut cube) = (0, 1_u64 << (bits - 1));
        while cube > 1 {
            flips ^= if position[position.len() - 1] & cube != 0 { cube - 1 } else { 0 };
            cube >>= 1;
        }
        position.iter_mut().for_each(|axis| *axis ^= flips);
        let bits = (0..bits).rev().flat_map(|bit| position.iter().map(move |it| (it >> bit) & 1));
        bits.fold(0, |number, bit| (number << 1) | bit)
    }

    #[test]
    fn many_positions_have_the_numbers_of_single_ones() {
        let mut rng = StdRng::seed_from_u64(5);
        for axes in 1..=7 {
            let bits = bits_per_axis(axes);
            let axis = |_| (0..1300).map(|_| rng.random_range(0..1_u64 << bits)).collect();
            let positions: Vec<Vec<u64>> = (0..axes).map(axis).collect();
            let found = numbers(&mut positions.clone(), bits);
            for (at, found) in found.iter().enumerate() {
                let mut position: Vec<u64> = positions.iter().map(|axis| axis[at]).collect();
                assert_eq!(*found, number(&mut position, bits), "{axes} {at}");
            }
        }
    }

    #[test]
    fn bits_are_shared_by_the_axes() {
        assert_eq!([1, 2, 3, 4].map(bits_per_axis), [63, 31, 21, 15]);
    }
}
