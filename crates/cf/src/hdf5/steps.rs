//! Cells along an axis that a selection has.

/// The number of blocks, or of cells of a block, that has no end.
pub(super) const ENDLESS: u64 = u64::MAX;

/// Cells along an axis: `count` blocks of `block` cells each, whose first cells are `stride` apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Steps {
    /// The first cell.
    pub start: u64,
    /// The distance of the first cells of two blocks.
    pub stride: u64,
    /// The number of blocks.
    pub count: u64,
    /// The cells of a block.
    pub block: u64,
    /// The cells that the last block lacks.
    pub lacks: u64,
}

impl Steps {
    /// Returns the first `len` cells.
    pub fn all(len: u64) -> Self {
        Self { start: 0, stride: 1, count: 1, block: len, lacks: 0 }
    }

    /// Returns the number of cells.
    pub fn cells(&self) -> u64 {
        self.count * self.block - self.lacks
    }

    /// Returns the cell behind the last one.
    pub fn end(&self) -> u64 {
        match self.cells() {
            0 => self.start,
            _ => self.start + (self.count - 1) * self.stride + self.block - self.lacks,
        }
    }

    /// Whether the cells have no end: such steps only have [`Steps::before`], [`Steps::first`] and [`Steps::nth`].
    pub fn is_endless(&self) -> bool {
        self.count == ENDLESS || self.block == ENDLESS
    }

    /// Whether the cells are blocks without end.
    pub fn has_endless_blocks(&self) -> bool {
        self.count == ENDLESS
    }

    /// Returns the number of cells before cell `len`, if the cells have no end.
    pub fn before(&self, len: u64) -> u64 {
        let len = len.saturating_sub(self.start);
        if self.block == ENDLESS || self.block == self.stride {
            return len;
        }
        let stride = self.stride.max(1);
        // At most `len`, for blocks do not overlap.
        (len / stride) * self.block + (len % stride).min(self.block)
    }

    /// Returns the first cells, if the cells have no end; `None` if their numbers overflow.
    pub fn first(&self, cells: u64) -> Option<Self> {
        if self.block == ENDLESS || self.block == self.stride {
            return Self { stride: 1, count: 1, block: cells, ..*self }.checked();
        }
        let count = cells.div_ceil(self.block.max(1));
        let whole = Self { count, ..*self }.checked()?;
        Some(Self { lacks: whole.cells().checked_sub(cells)?, ..whole })
    }

    /// Returns a block; `None` if its numbers overflow.
    pub fn nth(&self, number: u64) -> Option<Self> {
        let start = number.checked_mul(self.stride)?.checked_add(self.start)?;
        Self { start, stride: 1, count: 1, ..*self }.checked()
    }

    /// Returns steps without numbers that overflow, or blocks that overlap.
    pub(super) fn checked(self) -> Option<Self> {
        if self.is_endless() {
            let is_one = self.block == ENDLESS && self.count == 1;
            let are_apart = self.count == ENDLESS && (1..=self.stride).contains(&self.block);
            return Some(self).filter(|_| is_one || are_apart);
        }
        let last = self.count.saturating_sub(1).checked_mul(self.stride)?;
        self.start.checked_add(last)?.checked_add(self.block)?;
        self.count.checked_mul(self.block)?;
        let is_apart = self.count <= 1 || self.stride >= self.block;
        // Neighbouring blocks are one.
        Some(match self.stride == self.block {
            true => Self { count: 1, block: self.cells(), ..self },
            false => self,
        })
        .filter(|_| is_apart)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endless(start: u64, stride: u64, block: u64) -> Steps {
        Steps { start, stride, count: ENDLESS, block, lacks: 0 }.checked().unwrap()
    }

    /// The first cells, one by one.
    fn listed(steps: Steps, cells: u64) -> Vec<u64> {
        (0..cells)
            .map(|at| steps.start + at / steps.block * steps.stride + at % steps.block)
            .collect()
    }

    #[test]
    fn the_first_cells_of_endless_steps() {
        for steps in [endless(0, 1, 1), endless(3, 2, 1), endless(1, 5, 3), endless(2, 4, 4)] {
            for len in 0..40 {
                let cells = listed(steps, 40).into_iter().filter(|cell| *cell < len).count() as u64;
                assert_eq!(steps.before(len), cells, "{steps:?} {len}");
                let first = steps.first(cells).unwrap();
                assert_eq!(first.cells(), cells, "{steps:?} {len}");
                if let Some(last) = listed(steps, cells).last() {
                    assert_eq!(first.end(), last + 1, "{steps:?} {len}");
                }
            }
            let third = steps.nth(2).unwrap();
            let block = (steps.start + 2 * steps.stride, steps.block);
            assert_eq!((third.start, third.cells()), block, "{steps:?}");
        }
        let one = Steps { start: 4, stride: 1, count: 1, block: ENDLESS, lacks: 0 };
        let one = one.checked().unwrap();
        assert_eq!((one.before(3), one.before(9), one.first(5).unwrap().end()), (0, 5, 9));
    }

    #[test]
    fn steps_that_overflow_or_overlap_are_none() {
        for (start, stride, count, block) in [
            (0, 1, ENDLESS, ENDLESS),
            (0, 1, 2, ENDLESS),
            (0, 0, ENDLESS, 0),
            (0, 0, ENDLESS, 1),
            (0, 2, ENDLESS, 3),
            (1, 1 << 63, 3, 1),
        ] {
            let steps = Steps { start, stride, count, block, lacks: 0 };
            assert_eq!(steps.checked(), None, "{steps:?}");
        }
        let far = endless(u64::MAX - 5, 4, 2);
        assert!(far.first(4).is_none() && far.nth(2).is_none() && far.nth(u64::MAX).is_none());
    }
}
