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

/// Returns the bits per axis that TileDB uses for this number of dimensions.
pub(super) fn bits_per_axis(dimensions: usize) -> u32 {
    63 / u32::try_from(dimensions.max(1)).unwrap_or(63)
}

/// Returns the number of a position on the curve. `position` has one number of `bits` bits per axis, and is
/// used as scratch space.
pub(super) fn number(position: &mut [u64], bits: u32) -> u64 {
    transpose(position, bits);
    // The number takes one bit of each axis in turn, from the highest on, the first axis first.
    let mut number = 0;
    for bit in (0..bits).rev() {
        for axis in position.iter() {
            number = (number << 1) | ((axis >> bit) & 1);
        }
    }
    number
}

/// Skilling's transform of a position: the bits of the curve's number, spread over the axes.
fn transpose(position: &mut [u64], bits: u32) {
    let highest = match bits {
        0 => return,
        bits => 1_u64 << (bits - 1),
    };
    // Undoes the rotations and reflections of smaller and smaller cubes.
    let mut cube = highest;
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
    // Gray code.
    for axis in 1..position.len() {
        position[axis] ^= position[axis - 1];
    }
    let mut flips = 0;
    let mut cube = highest;
    while cube > 1 {
        if position.last().is_some_and(|last| last & cube != 0) {
            flips ^= cube - 1;
        }
        cube >>= 1;
    }
    position.iter_mut().for_each(|axis| *axis ^= flips);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_visits_each_position_once_in_steps_of_one() {
        for (axes, bits) in [(1_usize, 4_u32), (2, 1), (2, 3), (3, 2), (4, 2)] {
            let side = 1_u64 << bits;
            let count = side.pow(axes as u32);
            let mut visited: Vec<Option<Vec<u64>>> = vec![None; count as usize];
            for at in 0..count {
                let position: Vec<u64> =
                    (0..axes as u32).map(|axis| at / side.pow(axis) % side).collect();
                let place = number(&mut position.clone(), bits) as usize;
                assert!(visited[place].replace(position).is_none(), "{axes} {bits} {place}");
            }
            for pair in visited.windows(2) {
                let [Some(a), Some(b)] = pair else { panic!("a gap in the curve") };
                let steps: u64 = a.iter().zip(b).map(|(a, b)| a.abs_diff(*b)).sum();
                assert_eq!(steps, 1, "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn bits_are_shared_by_the_axes() {
        assert_eq!([1, 2, 3, 4].map(bits_per_axis), [63, 31, 21, 15]);
    }
}
