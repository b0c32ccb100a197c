//! The numbers of chunks in indexes that are arrays.

use super::chunk_index::ChunkIndex;
use super::too_far;
use gridfusion_core::Result;

/// The row-major numbers of chunks, as if the dataset had its greatest shape.
#[derive(Debug, Clone)]
pub(super) struct Numbering {
    /// The axes, slowest first. An unlimited axis is the slowest.
    order: Vec<usize>,
    /// Chunks per axis; `u64::MAX` for an unlimited one.
    counts: Vec<u64>,
}

impl Numbering {
    pub(super) fn new(index: &ChunkIndex) -> Self {
        let unlimited = index.max_shape.iter().position(|&len| len == u64::MAX);
        let others = (0..index.max_shape.len()).filter(|&axis| Some(axis) != unlimited);
        let counts = index.max_shape.iter().zip(&index.chunk_shape);
        let count = |(&len, &chunk): (&u64, &u64)| match len {
            u64::MAX => u64::MAX,
            len => len.div_ceil(chunk.max(1)),
        };
        Self {
            order: unlimited.into_iter().chain(others).collect(),
            counts: counts.map(count).collect(),
        }
    }

    /// Returns the number of all chunks; `None` if there is no end.
    pub(super) fn chunks(&self) -> Option<u64> {
        let counts = self.counts.iter();
        let has_end = counts.clone().all(|&count| count < u64::MAX);
        counts.copied().try_fold(1_u64, u64::checked_mul).filter(|_| has_end)
    }

    /// Returns the number of a chunk.
    pub(super) fn number(&self, chunk: &[u64]) -> Result<u64> {
        let mut number = 0_u64;
        for (place, &axis) in self.order.iter().enumerate() {
            let (at, count) = (chunk.get(axis).copied(), self.counts.get(axis).copied());
            let longer = match place {
                0 => Some(0),
                _ => number.checked_mul(count.unwrap_or_default()),
            };
            number = longer.and_then(|it| it.checked_add(at?)).ok_or_else(too_far)?;
        }
        Ok(number)
    }

    /// Returns the chunk with this number; `None` if an axis has no chunk.
    pub(super) fn chunk(&self, mut number: u64) -> Option<Vec<u64>> {
        let mut chunk = vec![0; self.order.len()];
        for (place, &axis) in self.order.iter().enumerate().rev() {
            let count = self.counts[axis];
            let at = if place == 0 { number } else { number.checked_rem(count)? };
            chunk[axis] = Some(at).filter(|&at| at < count)?;
            number = number.checked_div(count)?;
        }
        Some(chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::super::IndexKind;
    use super::*;

    #[test]
    fn chunks_have_numbers_and_back() {
        for (max_shape, all) in [
            (vec![10, 7], Some(5 * 3)),
            (vec![u64::MAX, 7], None),
            (vec![10, u64::MAX], None),
            (vec![0, 7], Some(0)),
            (vec![], Some(1)),
        ] {
            let rank = max_shape.len();
            let chunk_shape = [2, 3][..rank].to_vec();
            let (kind, address, chunk_len) = (IndexKind::FixedArray, 0, 8);
            let index =
                ChunkIndex { kind, address, max_shape, chunk_shape, chunk_len, has_filters: false };
            let numbering = Numbering::new(&index);
            assert_eq!(numbering.chunks(), all);
            for number in 0..all.unwrap_or(20) {
                let chunk = numbering.chunk(number).unwrap();
                assert_eq!(numbering.number(&chunk).unwrap(), number, "{chunk:?}");
            }
            assert!(all.is_none_or(|all| numbering.chunk(all).is_none() || rank == 0));
        }
    }

    #[test]
    fn the_unlimited_axis_is_the_slowest() {
        let numbering = Numbering { order: vec![1, 0], counts: vec![5, u64::MAX] };
        assert_eq!(numbering.number(&[4, 2]).unwrap(), 2 * 5 + 4);
        assert!(numbering.number(&[0, u64::MAX / 2]).is_err());
    }
}
