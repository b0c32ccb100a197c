//! [`ManifestRefs`]: which manifests may list a chunk of an array.
//!
//! Each has a box of chunks. With very many of them, comparing all boxes for each chunk takes long. They are sorted
//! along the axis on which they begin at the most places:
//!
//! ```text
//!   boxes   0..10  10..20  20..30  30..40       chunk 25: those that begin at 16 to 25, because none is longer than 10
//! ```

use std::collections::HashSet;
use std::ops::Range;

use super::id::ObjectId;

/// A manifest that lists chunks of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ManifestRef {
    pub(super) id: ObjectId,
    /// The chunks that it may list, per axis; empty for all.
    pub(super) extents: Vec<Range<u64>>,
}

impl ManifestRef {
    fn holds(&self, chunk: &[u64]) -> bool {
        self.extents.iter().zip(chunk).all(|(range, at)| range.contains(at))
    }
}

/// The manifests of an array.
#[derive(Debug, Default)]
pub(super) struct ManifestRefs {
    /// In the order of their begin along `axis`, those for all chunks first.
    all: Vec<ManifestRef>,
    /// The number of those for all chunks.
    everywhere: usize,
    axis: usize,
    /// The greatest length along the axis.
    longest: u64,
}

impl ManifestRefs {
    /// Takes the manifests of an array with so many axes. An error is the end of a sentence about the array.
    pub(super) fn new(mut all: Vec<ManifestRef>, rank: usize) -> Result<Self, String> {
        let is_wrong = |it: &&ManifestRef| !it.extents.is_empty() && it.extents.len() != rank;
        if let Some(wrong) = all.iter().find(is_wrong) {
            let (id, axes) = (wrong.id, wrong.extents.len());
            return Err(format!("has {rank} axes, and its manifest {id} has {axes}"));
        }
        let begins = |axis: &usize| {
            let begins = all.iter().filter_map(|it| Some(it.extents.get(*axis)?.start));
            begins.collect::<HashSet<u64>>().len()
        };
        let axis = (0..rank).rev().max_by_key(begins).unwrap_or_default();
        let begin = |it: &ManifestRef| it.extents.get(axis).map(|range| range.start);
        all.sort_by_key(begin);
        let everywhere = all.partition_point(|it| begin(it).is_none());
        let lens = all.iter().filter_map(|it| it.extents.get(axis));
        let longest = lens.map(|it| it.end.saturating_sub(it.start)).max().unwrap_or_default();
        Ok(Self { all, everywhere, axis, longest })
    }

    /// Returns all manifests.
    pub(super) fn all(&self) -> &[ManifestRef] {
        &self.all
    }

    /// Returns the manifests that may list a chunk.
    pub(super) fn of_chunk(&self, chunk: &[u64]) -> impl Iterator<Item = &ManifestRef> {
        let (everywhere, boxes) = self.all.split_at(self.everywhere);
        let at = chunk.get(self.axis).copied().unwrap_or_default();
        let begin = |it: &ManifestRef| it.extents.get(self.axis).map_or(0, |range| range.start);
        // A box that ends behind the chunk begins at most its length before it.
        let first = boxes.partition_point(|it| begin(it).saturating_add(self.longest) <= at);
        let end = boxes.partition_point(|it| begin(it) <= at);
        let near = boxes.get(first..end).unwrap_or_default();
        everywhere.iter().chain(near.iter().filter(move |it| it.holds(chunk)))
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    #[test]
    fn all_boxes_with_a_chunk_are_found() {
        let mut rng = StdRng::seed_from_u64(1);
        for rank in 0..3 {
            for _ in 0..200 {
                let mut range = || {
                    let start = rng.random_range(0..12_u64);
                    start..start + rng.random_range(0..5)
                };
                let mut all: Vec<ManifestRef> = (0..9_u8)
                    .map(|id| ManifestRef {
                        id: ObjectId([id; 12]),
                        extents: (0..rank).map(|_| range()).collect(),
                    })
                    .collect();
                all[3].extents.clear();
                let refs = ManifestRefs::new(all.clone(), rank).unwrap();
                let chunk: Vec<u64> = (0..rank).map(|_| rng.random_range(0..16)).collect();
                let mut found: Vec<ObjectId> = refs.of_chunk(&chunk).map(|it| it.id).collect();
                found.sort_unstable();
                let expected = all.iter().filter(|it| it.holds(&chunk)).map(|it| it.id);
                assert_eq!(found, expected.collect::<Vec<_>>(), "{all:?} {chunk:?}");
            }
        }
        let wrong = ManifestRef { id: ObjectId([0; 12]), extents: vec![0..1, 0..1, 0..1] };
        assert!(ManifestRefs::new(vec![wrong], 2).is_err());
    }
}
