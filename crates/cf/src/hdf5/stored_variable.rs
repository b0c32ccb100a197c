//! How a variable is stored: all that locating its chunks needs.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use super::field::HeapField;
use super::filters::Filters;
use super::index::{ChunkIndex, Entry};
use super::segment::Segment;
use super::virtual_layout::Mapping;
use gridfusion_core::format::{ByteOrder, Location};

/// A variable as the file stores it. Its shapes are without the axis of characters that was made part of the cell.
#[derive(Debug)]
pub(super) struct StoredVariable {
    /// The elements per axis that the file has, which may be fewer than its dimensions have.
    pub(super) shape: Vec<u64>,
    pub(super) chunk_shape: Vec<u64>,
    /// Bytes of a stored cell.
    pub(super) width: u64,
    pub(super) byte_order: ByteOrder,
    /// Whether cells are references to texts in the global heap.
    pub(super) is_text: bool,
    /// For each field of compounds, the values in the global heap that it refers to; `None` for a field that refers to none.
    pub(super) heap: Vec<Option<HeapField>>,
    /// Whether the last axis of the dataset is part of the cell.
    pub(super) has_characters: bool,
    pub(super) filters: Filters,
    pub(super) place: ChunkPlace,
    pub(super) found: ChunkPlaces,
}

/// Where a variable has its chunks.
#[derive(Debug)]
pub(super) enum ChunkPlace {
    /// Nowhere: no cell was ever written.
    Nowhere,
    /// At a place in the file, one after another.
    Contiguous(u64),
    /// In the object header, of which the metadata parser knows the bytes but not their place.
    Inline(bytes::Bytes),
    /// In chunks.
    Chunked {
        index: ChunkIndex,
        /// Whether chunks that the end of an axis cuts have no filters.
        are_cut_chunks_plain: bool,
    },
    /// In parts of other files, one after another.
    External(Arc<[Segment]>),
    /// In other datasets, some of which are in other files.
    Virtual(Arc<[Mapping]>),
}

impl StoredVariable {
    /// Returns the number of a chunk, in row-major order; `None` if the file has no cell of it.
    pub(super) fn number(&self, chunk: &[u64]) -> Option<u64> {
        let mut axes = chunk.iter().zip(&self.shape).zip(&self.chunk_shape);
        axes.try_fold(0_u64, |number, ((&at, len), chunk)| {
            let count = len.div_ceil((*chunk).max(1));
            (at < count).then(|| number * count + at)
        })
    }

    /// Returns the cells of a chunk that the file has, per axis.
    pub(super) fn extents(&self, chunk: &[u64]) -> Vec<u64> {
        let axes = chunk.iter().zip(&self.chunk_shape).zip(&self.shape);
        let extent = |((at, len), all): ((&u64, &u64), &u64)| {
            all.saturating_sub(at.saturating_mul(*len)).min(*len)
        };
        axes.map(extent).collect()
    }

    /// Describes the layout for people.
    pub(super) fn layout(&self) -> String {
        match &self.place {
            ChunkPlace::Nowhere => "never written".to_owned(),
            ChunkPlace::Contiguous(_) => "contiguous".to_owned(),
            ChunkPlace::Inline(_) => "compact".to_owned(),
            ChunkPlace::External(_) => "external".to_owned(),
            ChunkPlace::Virtual(_) => "virtual".to_owned(),
            ChunkPlace::Chunked { index, .. } => format!("chunked ({})", index.kind.name()),
        }
    }
}

/// The most chunks whose places are remembered per variable.
const MOST_FOUND: usize = 1 << 18;

/// The places of chunks that were looked up, by number.
#[derive(Default)]
pub(super) struct ChunkPlaces(Mutex<HashMap<u64, Option<Entry>>>);

impl fmt::Debug for ChunkPlaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChunkPlaces").finish_non_exhaustive()
    }
}

impl ChunkPlaces {
    /// Returns the places of those of these chunks that are known.
    pub(super) fn get(&self, chunks: impl Iterator<Item = u64>) -> HashMap<u64, Option<Entry>> {
        let found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        chunks.filter_map(|chunk| Some((chunk, *found.get(&chunk)?))).collect()
    }

    /// Remembers places of chunks.
    pub(super) fn add(&self, chunks: impl Iterator<Item = (u64, Option<Entry>)>) {
        let mut found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if found.len() >= MOST_FOUND {
            found.clear();
        }
        found.extend(chunks.take(MOST_FOUND));
    }
}

/// The name of the file in requests. All locations share it.
static OBJECT: LazyLock<Arc<str>> = LazyLock::new(|| Arc::from(""));

/// Returns the location of bytes of the file.
pub(super) fn location(start: u64, len: u64) -> Location {
    Location::new(Arc::clone(&OBJECT), start..start.saturating_add(len))
}
