//! Locating chunks: from their coordinates to bytes of the file.
//!
//! ```text
//!   coordinates ──▶ index ──▶ places of chunks ───────────────────────────────▶ layers
//!                                  └─▶ references of texts ──▶ global heap ──▶ layers that hold texts
//! ```
//!
//! Chunks are stored whole, also where the end of an axis cuts them: only a region of the tile is of the array.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;

use super::blocks::Replay;
use super::field::{HeapField, HeapItems, HeapPart};
use super::file_bytes::FileBytes;
use super::global_heap::{Collections, Reference};
use super::index::{Entry, lookup};
use super::inner::Inner;
use super::stored_variable::{ChunkPlace, StoredVariable, location};
use super::{own_bytes, text};
use crate::hierarchy::Variable;
use gridfusion_core::format::{
    Layer, Location, Machine, Payload, Placement, Replies, Scratch, Step, StoredChunk,
};
use gridfusion_core::grid::ravel;
use gridfusion_core::{Error, Result};

/// A machine that locates chunks of a variable.
#[derive(Debug)]
pub struct LocateHdf5 {
    file: Arc<Inner>,
    variable: usize,
    chunks: Vec<Vec<u64>>,
    /// The field of compounds whose values in the global heap are located; `None` for whole cells.
    field: Option<HeapField>,
    replay: Replay,
    state: LocateState,
}

#[derive(Debug)]
enum LocateState {
    /// Looking up chunks in the index.
    Index,
    /// Reading the references of texts, of these payloads.
    References(Vec<StoredChunk>),
    /// Reading the texts of chunks.
    Heaps(Vec<HeapCells>, Collections),
}

/// The cells of a chunk that refer to the heap.
#[derive(Debug, Default)]
struct HeapCells {
    bytes: Vec<u8>,
    references: Vec<Reference>,
}

/// The reference that a text is.
const TEXT: &[HeapPart] = &[HeapPart { offset: 0, items: HeapItems::TEXT }];

impl LocateHdf5 {
    pub(super) fn new(file: Arc<Inner>, variable: usize, chunks: Vec<Vec<u64>>) -> Self {
        let replay = Replay::new(file.blocks.fork());
        Self { file, variable, chunks, field: None, replay, state: LocateState::Index }
    }

    /// Locates the values of a field of compounds, which are in the global heap.
    pub(super) fn with_field(self, field: HeapField) -> Self {
        Self { field: Some(field), ..self }
    }

    fn parts(&self) -> Result<(&StoredVariable, &Variable)> {
        let stored = self.file.stored.get(self.variable).map(|stored| &**stored);
        let parts = stored.zip(self.file.hierarchy.variables.get(self.variable));
        parts.ok_or_else(|| Error::internal("no such variable"))
    }

    fn bytes(&self) -> FileBytes {
        FileBytes { blocks: Arc::clone(self.replay.blocks()), widths: self.file.widths }
    }
}

impl Machine for LocateHdf5 {
    type Output = Vec<StoredChunk>;

    fn subject(&self) -> &'static str {
        "chunk index"
    }

    fn step(&mut self, replies: Replies) -> Result<Step<Vec<StoredChunk>>> {
        let replies = replies.into_bytes();
        let step = match std::mem::replace(&mut self.state, LocateState::Index) {
            LocateState::Index => {
                self.replay.supply(replies)?;
                self.look_up()
            }
            LocateState::References(chunks) => self.read_references(&chunks, replies),
            LocateState::Heaps(cells, heaps) => {
                self.replay.supply(replies)?;
                self.read_heaps(cells, heaps)
            }
        };
        step.map_err(|error| match self.parts() {
            Ok((_, variable)) => error.about(&format!("dataset {:?}", variable.path)),
            Err(_) => error,
        })
    }
}

impl LocateHdf5 {
    fn look_up(&mut self) -> Result<Step<Vec<StoredChunk>>> {
        let (stored, _) = self.parts()?;
        let numbers: Vec<Option<u64>> =
            self.chunks.iter().map(|chunk| stored.number(chunk)).collect();
        let looked_up = self.look_up_unknown(stored, &numbers);
        let request = self.replay.request()?;
        if !request.is_empty() {
            return Ok(Step::read(request));
        }
        let entries = looked_up?;
        self.file.blocks.keep(self.replay.blocks());

        let (stored, _) = self.parts()?;
        let mut located = vec![];
        for (chunk, number) in self.chunks.iter().zip(&numbers) {
            let layer = match number {
                Some(number) => self.layer(chunk, entries.get(number).copied().flatten())?,
                None => None,
            };
            located.push(StoredChunk::new(layer.into_iter().collect()));
        }
        if !stored.is_text && self.field.is_none() {
            return Ok(Step::Done(located));
        }
        let layers = located.iter().flat_map(|chunk| &chunk.layers);
        let locations: Vec<Location> = layers.map(|layer| layer.values.at.clone()).collect();
        if locations.is_empty() {
            return Ok(Step::Done(located));
        }
        self.state = LocateState::References(located);
        Ok(Step::Read(locations))
    }

    /// Returns the entries of chunks in the index. Looks up those that are not known yet, and remembers them.
    fn look_up_unknown(
        &self,
        stored: &StoredVariable,
        numbers: &[Option<u64>],
    ) -> Result<HashMap<u64, Option<Entry>>> {
        let ChunkPlace::Chunked { index, .. } = &stored.place else { return Ok(HashMap::new()) };
        let mut entries = stored.found.get(numbers.iter().copied().flatten());
        let unknown = self.chunks.iter().zip(numbers).filter_map(|(chunk, number)| {
            let number = (*number).filter(|number| !entries.contains_key(number))?;
            let characters = stored.has_characters.then_some(0);
            Some((chunk.iter().copied().chain(characters).collect::<Vec<u64>>(), number))
        });
        let mut unknown: Vec<_> = unknown.collect();
        unknown.sort_unstable();
        unknown.dedup();
        let (chunks, numbers): (Vec<_>, Vec<_>) = unknown.into_iter().unzip();
        let found = lookup(&self.bytes(), index, &chunks)?;
        if !self.replay.blocks().has_missed() {
            stored.found.add(numbers.iter().copied().zip(found.iter().copied()));
        }
        entries.extend(numbers.into_iter().zip(found));
        Ok(entries)
    }

    /// Returns the layer of a chunk; `None` if it was never written.
    fn layer(&self, chunk: &[u64], entry: Option<Entry>) -> Result<Option<Layer>> {
        let (stored, _) = self.parts()?;
        let extents = stored.extents(chunk);
        let bytes = |shape: &[u64]| shape.iter().fold(stored.width, |all, len| all * len);
        let (payload, placement) = match &stored.place {
            ChunkPlace::Nowhere => return Ok(None),
            ChunkPlace::Virtual(_) | ChunkPlace::External(_) => {
                return Err(Error::unsupported("a dataset whose cells are elsewhere"));
            }
            ChunkPlace::Inline(held) => {
                let held = held.slice(..(bytes(&extents) as usize).min(held.len()));
                (own_bytes::payload(held, None), None)
            }
            ChunkPlace::Contiguous(start) => {
                let firsts = chunk.iter().zip(&stored.chunk_shape).map(|(at, len)| at * len);
                let firsts: Vec<u64> = firsts.collect();
                let start = start + ravel(&firsts, &stored.shape) * stored.width;
                let len = bytes(&extents);
                (Payload::new(location(start, len), len, stored.filters.plain()), None)
            }
            ChunkPlace::Chunked { index, are_cut_chunks_plain } => {
                let Some(entry) = entry else { return Ok(None) };
                let is_cut = extents != stored.chunk_shape;
                let is_plain = is_cut && *are_cut_chunks_plain && !stored.filters.is_empty();
                let size = if is_plain { index.chunk_len } else { index.stored_len(&entry) };
                let at = self.file.place(entry.address, size)?;
                let codec = match is_plain {
                    true => stored.filters.plain(),
                    false => stored.filters.codec(entry.skipped)?,
                };
                let placement = is_cut.then(|| region(&extents, stored.chunk_shape.clone()));
                (Payload::new(at, index.chunk_len, codec), placement)
            }
        };
        let values = payload.with_byte_order(stored.byte_order);
        Ok(Some(Layer::whole(values).with_placement(placement)))
    }

    /// Decodes chunks of references.
    fn read_references(
        &mut self,
        located: &[StoredChunk],
        replies: Vec<Bytes>,
    ) -> Result<Step<Vec<StoredChunk>>> {
        let (stored, _) = self.parts()?;
        let mut scratch = Scratch::default();
        let mut replies = replies.into_iter();
        let mut all = vec![];
        for (chunk, located) in self.chunks.iter().zip(located) {
            let Some(layer) = located.layers.first() else {
                all.push(HeapCells::default());
                continue;
            };
            let reply = replies.next().ok_or_else(|| Error::internal("a reply is missing"))?;
            let tile = layer.values.decode(reply, vec![], &mut scratch)?;
            let extents = stored.extents(chunk);
            // A piece of a contiguous dataset ends where the dataset ends.
            let tile_shape = layer.placement.as_ref().map_or(&extents, |it| &it.tile_shape);
            let (bytes, width) = match &self.field {
                None => (tile.bytes, self.file.widths.reference()),
                Some(field) => (of_field(field, &tile.bytes, stored.width), field.bytes.len()),
            };
            let bytes = text::cells(&bytes, tile_shape, &extents, width)?;
            let references = text::references(&bytes, width, self.heap_parts(), self.file.widths)?;
            all.push(HeapCells { bytes, references });
        }
        self.replay = Replay::new(self.file.blocks.fork());
        self.read_heaps(all, Collections::default())
    }

    /// Returns the references in each cell.
    fn heap_parts(&self) -> &[HeapPart] {
        self.field.as_ref().map_or(TEXT, |field| &field.parts)
    }

    /// Reads texts, and makes layers of them.
    fn read_heaps(
        &mut self,
        cells: Vec<HeapCells>,
        mut heaps: Collections,
    ) -> Result<Step<Vec<StoredChunk>>> {
        let file = self.bytes();
        let references: Vec<&[Reference]> = cells.iter().map(|it| &*it.references).collect();
        let read = text::read_heaps(&file, &references, &mut heaps);
        let request = self.replay.request()?;
        if !request.is_empty() {
            self.state = LocateState::Heaps(cells, heaps);
            return Ok(Step::read(request));
        }
        read?;
        let texts = text::texts(&file, &references, &mut heaps, self.heap_parts())?;
        let (stored, variable) = self.parts()?;
        let mut located = vec![];
        for ((chunk, texts), cells) in self.chunks.iter().zip(texts).zip(&cells) {
            let texts = match self.field.as_ref().filter(|field| !field.is_single) {
                Some(field) => text::packed(&cells.bytes, field, &texts),
                None => texts,
            };
            let mut layers = vec![];
            if !texts.offsets.is_empty() {
                let extents = stored.extents(chunk);
                let is_whole = extents == chunk_extents(variable, chunk);
                let placement = (!is_whole).then(|| region(&extents, extents.clone()));
                layers.push(own_bytes::text_layer(texts.bytes, texts.offsets, placement));
            }
            located.push(StoredChunk::new(layers));
        }
        Ok(Step::Done(located))
    }
}

/// Returns the bytes of a field in compounds of `width` bytes.
fn of_field(field: &HeapField, records: &[u8], width: u64) -> Bytes {
    let records = records.chunks_exact(width.max(1) as usize);
    records.filter_map(|record| record.get(field.bytes.clone())).flatten().copied().collect()
}

/// Returns the placement of the first `extents` cells per axis of a tile.
fn region(extents: &[u64], tile_shape: Vec<u64>) -> Placement {
    Placement::new(extents.iter().map(|&len| 0..len).collect(), tile_shape)
}

/// Returns the cells of a chunk of the variable, per axis.
pub(super) fn chunk_extents(variable: &Variable, chunk: &[u64]) -> Vec<u64> {
    let axes = variable.axes.iter().zip(&variable.chunk_shape).zip(chunk);
    axes.map(|((axis, len), at)| axis.len.saturating_sub(at.saturating_mul(*len)).min(*len))
        .collect()
}
