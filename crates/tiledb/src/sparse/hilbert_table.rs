//! [`CurveTable`]: numbers positions on the Hilbert curve of a few axes, several bits of each at a time.
//!
//! Skilling's steps take one bit of each axis per level, from the highest on. A level exchanges and flips
//! axes for all levels below it. A machine with few states keeps track of these exchanges and flips:
//!
//! ```text
//!   state, bits of each axis  ─▶  bits of the number, next state
//!
//!   bits of x   0 1101 0110        one level, then four levels per look-up
//!   bits of y   1 0011 1100
//! ```

use std::collections::HashMap;
use std::sync::OnceLock;

/// The bits of a number on the curve, which the axes share.
pub(super) const NUMBER_BITS: u32 = 63;
/// The number of axes for which there are tables. More axes would need large ones.
const MAX_AXES: usize = 3;
/// The levels per look-up for 1, 2, 3 axes. The tables fit the nearest cache.
const LEVELS: [u32; MAX_AXES] = [8, 5, 2];

/// The machine that numbers positions, as tables.
#[derive(Debug)]
pub(super) struct CurveTable {
    axes: usize,
    /// By state and one bit per axis.
    one: Vec<u16>,
    /// By state and several bits per axis: all bits of the first axis before those of the second.
    several: Vec<u16>,
}

/// The exchanges and flips of axes that apply to the levels below.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct CurveState {
    /// For each axis, the axis whose bits it has now, and whether they are flipped.
    sources: Vec<(usize, bool)>,
    /// Whether all bits of the number are flipped.
    flips: bool,
}

impl CurveTable {
    /// Returns the table of a number of axes; `None` for too many axes.
    pub(super) fn try_new(axes: usize) -> Option<&'static Self> {
        static TABLES: [OnceLock<CurveTable>; MAX_AXES] = [const { OnceLock::new() }; MAX_AXES];
        let at = axes.checked_sub(1)?;
        Some(TABLES.get(at)?.get_or_init(|| Self::new(axes, LEVELS[at])))
    }

    fn new(axes: usize, levels: u32) -> Self {
        let first =
            CurveState { sources: (0..axes).map(|axis| (axis, false)).collect(), flips: false };
        let mut numbers = HashMap::from([(first.clone(), 0_u16)]);
        let mut states = vec![first];
        let mut one = vec![];
        let mut at = 0;
        while at < states.len() {
            for bits in 0..1_usize << axes {
                let (next, number) = states[at].clone().step(bits);
                let known = states.len() as u16;
                let next = *numbers.entry(next).or_insert_with_key(|next| {
                    states.push(next.clone());
                    known
                });
                one.push((next << axes) | number);
            }
            at += 1;
        }
        let mut table = Self { axes, one, several: vec![] };
        let bits = axes as u32 * levels;
        for state in 0..states.len() {
            for index in 0..1_usize << bits {
                let position = |axis: usize| index >> ((axes - 1 - axis) as u32 * levels);
                let (mut next, mut number) = (state, 0);
                for level in (0..levels).rev() {
                    let at =
                        (0..axes).fold(0, |at, axis| (at << 1) | (position(axis) >> level & 1));
                    let entry = usize::from(table.one[(next << axes) | at]);
                    number = (number << axes) | (entry & ((1 << axes) - 1));
                    next = entry >> axes;
                }
                table.several.push(((next << bits) | number) as u16);
            }
        }
        table
    }

    /// Appends the numbers of positions, which have `bits` bits per axis.
    pub(super) fn extend(&self, numbers: &mut Vec<u64>, positions: &[Vec<u64>], bits: u32) {
        match positions {
            [x] => self.extend_of(numbers, [x], bits),
            [x, y] => self.extend_of(numbers, [x, y], bits),
            [x, y, z] => self.extend_of(numbers, [x, y, z], bits),
            _ => debug_assert!(false, "a table for {} axes", self.axes),
        }
    }

    fn extend_of<const N: usize>(&self, numbers: &mut Vec<u64>, axes: [&[u64]; N], bits: u32) {
        let usual = const { NUMBER_BITS / N as u32 };
        let count = axes[0].len();
        for start in (0..count).step_by(LANES) {
            let len = LANES.min(count - start);
            let mut lanes = [Lane { position: [0; N], state: 0, number: 0 }; LANES];
            for (axis, positions) in axes.iter().enumerate() {
                let lanes = lanes.iter_mut().zip(&positions[start..start + len]);
                lanes.for_each(|(lane, position)| lane.position[axis] = *position);
            }
            // The compiler unrolls a constant number of look-ups, which halves the time.
            if bits == usual {
                self.descend(&mut lanes, usual);
            } else {
                self.descend(&mut lanes, bits);
            }
            numbers.extend(lanes[..len].iter().map(|lane| lane.number));
        }
    }

    #[inline(always)]
    fn descend<const N: usize>(&self, lanes: &mut [Lane<N>; LANES], bits: u32) {
        let levels = const { LEVELS[N - 1] };
        for level in (bits - bits % levels..bits).rev() {
            lanes.iter_mut().for_each(|lane| lane.descend(&self.one, level, 1));
        }
        for look_up in (0..bits / levels).rev() {
            lanes.iter_mut().for_each(|lane| lane.descend(&self.several, look_up * levels, levels));
        }
    }
}

/// Positions that are numbered side by side, because each look-up waits for the one before.
const LANES: usize = 4;

/// A position, and what the levels so far have given.
#[derive(Clone, Copy)]
struct Lane<const N: usize> {
    position: [u64; N],
    state: usize,
    number: u64,
}

impl<const N: usize> Lane<N> {
    /// Takes `count` levels, of which `low` is the lowest.
    #[inline(always)]
    fn descend(&mut self, table: &[u16], low: u32, count: u32) {
        let bits = |axis: &u64| (axis >> low) as usize & ((1 << count) - 1);
        let index = self.position.iter().fold(self.state, |at, axis| (at << count) | bits(axis));
        let width = N as u32 * count;
        let entry = u64::from(table[index]);
        self.number = (self.number << width) | (entry & ((1 << width) - 1));
        self.state = (entry >> width) as usize;
    }
}

impl CurveState {
    /// Takes one bit of each axis, the first axis in the highest. Returns the next state, and the bits of the
    /// number.
    fn step(mut self, bits: usize) -> (Self, u16) {
        let axes = self.sources.len();
        let bit = |(source, is_flipped): &(usize, bool)| {
            ((bits >> (axes - 1 - source)) & 1 == 1) != *is_flipped
        };
        let bits: Vec<bool> = self.sources.iter().map(bit).collect();
        for (axis, &bit) in bits.iter().enumerate() {
            if bit {
                self.sources[0].1 ^= true;
            } else {
                self.sources.swap(0, axis);
            }
        }
        let (mut gray, mut number) = (false, 0);
        for bit in bits {
            gray ^= bit;
            number = (number << 1) | u16::from(gray != self.flips);
        }
        self.flips ^= gray;
        (self, number)
    }
}
