//! Boxes around wanted chunks, for indexes that are queried by box.

/// The chunks that a box may hold for each wanted one, beyond a few.
const MOST_WASTE: u64 = 4;
/// The chunks that any box may hold.
const FEW: u64 = 64;

/// A box of chunks: the first and the last coordinate per axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::format::hdf5) struct ChunkBox {
    pub(in crate::format::hdf5) first: Vec<u64>,
    pub(in crate::format::hdf5) last: Vec<u64>,
}

impl ChunkBox {
    fn with(&self, chunk: &[u64]) -> Self {
        let pairs = |ends: &[u64], pick: fn(u64, u64) -> u64| {
            ends.iter().zip(chunk).map(|(&end, &at)| pick(end, at)).collect()
        };
        Self { first: pairs(&self.first, u64::min), last: pairs(&self.last, u64::max) }
    }

    fn chunks(&self) -> u64 {
        let lens = self.first.iter().zip(&self.last).map(|(first, last)| last - first + 1);
        lens.fold(1, u64::saturating_mul)
    }
}

/// Returns boxes that cover the sorted chunks, without many others.
pub(in crate::format::hdf5) fn boxes(wanted: &[Vec<u64>]) -> Vec<ChunkBox> {
    let mut boxes: Vec<(ChunkBox, u64)> = vec![];
    for chunk in wanted {
        if let Some((last, count)) = boxes.last_mut() {
            let wider = last.with(chunk);
            if wider.chunks() <= FEW.max(MOST_WASTE * (*count + 1)) {
                (*last, *count) = (wider, *count + 1);
                continue;
            }
        }
        boxes.push((ChunkBox { first: chunk.clone(), last: chunk.clone() }, 1));
    }
    boxes.into_iter().map(|(chunks, _)| chunks).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_cover_all_chunks_and_few_others() {
        let near: Vec<Vec<u64>> = (0..10).flat_map(|y| (0..10).map(move |x| vec![y, x])).collect();
        assert_eq!(boxes(&near).len(), 1);
        let far: Vec<Vec<u64>> = (0..10).map(|at| vec![at * 1000, 7]).collect();
        let all = boxes(&far);
        assert_eq!(all.len(), 10);
        assert_eq!(all[3], ChunkBox { first: vec![3000, 7], last: vec![3000, 7] });
        let column: Vec<Vec<u64>> = (0..1000).map(|at| vec![at, 7]).collect();
        assert_eq!(boxes(&column).len(), 1);
        assert_eq!(boxes(&[vec![]]), [ChunkBox { first: vec![], last: vec![] }]);
    }
}
