//! [`Blocks`]: a list that takes elements in its middle without moving all behind them.
//!
//! ```text
//!   blocks   3 9 4 │ 7 1 │ 8 8 2 5        an element moves those of its block
//!   starts   0       3     5              and the starts behind it
//! ```

/// A list in blocks of at most [`MOST`] elements, none of which is empty.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    blocks: Vec<Vec<u32>>,
    /// The index of the first element of each block.
    starts: Vec<usize>,
    len: usize,
}

/// The most elements of a block.
const MOST: usize = 1024;

impl Blocks {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the elements in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> {
        self.blocks.iter().flatten().copied()
    }

    /// Returns the block of an index and the place in it. The end is behind the last element of the last block.
    fn place(&self, index: usize) -> (usize, usize) {
        let block = self.starts.partition_point(|it| *it <= index).saturating_sub(1);
        (block, index - self.starts.get(block).copied().unwrap_or_default())
    }

    pub(super) fn get(&self, index: usize) -> Option<u32> {
        let (block, at) = self.place(index);
        self.blocks.get(block)?.get(at).copied()
    }

    pub(super) fn set(&mut self, index: usize, element: u32) {
        let (block, at) = self.place(index);
        self.blocks[block][at] = element;
    }

    /// Returns the index of the first element that does not pass a test, which those before pass.
    pub(super) fn partition_point(&self, test: impl Fn(u32) -> bool) -> usize {
        let block = self.blocks.partition_point(|it| it.last().is_some_and(|last| test(*last)));
        match self.blocks.get(block) {
            Some(last) => self.starts[block] + last.partition_point(|it| test(*it)),
            None => self.len,
        }
    }

    /// Replaces the elements from `low` to just below `high`.
    pub(super) fn replace(&mut self, low: usize, high: usize, elements: &[u32]) {
        if self.blocks.is_empty() {
            self.blocks.push(vec![]);
            self.starts.push(0);
        }
        let (first, at) = self.place(low);
        let mut rest = high - low;
        let own = rest.min(self.blocks[first].len() - at);
        self.blocks[first].splice(at..at + own, elements.iter().copied());
        rest -= own;
        // Blocks behind the first one lose their elements at the front.
        let mut next = first + 1;
        while rest > 0 {
            let own = rest.min(self.blocks[next].len());
            self.blocks[next].drain(..own);
            rest -= own;
            next += 1;
        }
        let changed = self.blocks.drain(first..next).collect::<Vec<_>>();
        let whole = changed.iter().filter(|it| !it.is_empty());
        let parts: Vec<Vec<u32>> = whole
            .flat_map(|it| it.chunks(if it.len() > MOST { MOST / 2 } else { MOST }))
            .map(<[u32]>::to_vec)
            .collect();
        self.blocks.splice(first..first, parts);
        self.len = self.len + elements.len() - (high - low);
        self.starts.truncate(first);
        let mut start = match first.checked_sub(1) {
            Some(before) => self.starts[before] + self.blocks[before].len(),
            None => 0,
        };
        for block in &self.blocks[first..] {
            self.starts.push(start);
            start += block.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    #[test]
    fn a_list_in_blocks_is_a_list() {
        let mut rng = StdRng::seed_from_u64(3);
        let (mut blocks, mut list) = (Blocks::default(), Vec::<u32>::new());
        for step in 0..3000 {
            let low = rng.random_range(0..=list.len());
            let longest = if step % 50 == 0 { 5000 } else { 4 };
            let high = rng.random_range(low..=list.len().min(low + longest));
            let elements: Vec<u32> =
                (0..rng.random_range(0..longest)).map(|_| rng.random()).collect();
            blocks.replace(low, high, &elements);
            list.splice(low..high, elements);
            assert_eq!(blocks.len(), list.len());
            let at = rng.random_range(0..=list.len());
            assert_eq!(blocks.get(at), list.get(at).copied());
            if at < list.len() {
                blocks.set(at, 7);
                list[at] = 7;
            }
        }
        assert!(blocks.iter().eq(list.iter().copied()) && blocks.blocks.len() > 3);
        list.sort_unstable();
        let mut sorted = Blocks::default();
        sorted.replace(0, 0, &list);
        for _ in 0..100 {
            let limit = rng.random();
            let expected = list.partition_point(|it| *it < limit);
            assert_eq!(sorted.partition_point(|it| it < limit), expected);
        }
    }
}
