//! Stored chunks in mapped files, and loops that decode them with plain libraries.

#![allow(unsafe_code, reason = "the loops read mapped files, as the library does")]

use std::collections::HashMap;
use std::fs::File;
use std::hint::black_box;
use std::ops::Range;
use std::path::PathBuf;

use flate2::{Decompress, FlushDecompress, Status};
use memmap2::Mmap;
use multiversion::multiversion;
use zstd::bulk::Decompressor;

use super::zarr_files::Place;

/// How the bytes of chunks become cells.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Encoding {
    Raw,
    BigEndian,
    Zstd,
    ShuffledZlib,
    /// A Blosc frame of shuffled blocks, compressed with LZ4.
    Blosc,
}

/// The stored chunks of an array.
pub(crate) struct StoredChunks {
    maps: Vec<Mmap>,
    /// The map and the bytes of each chunk.
    chunks: Vec<(usize, Range<usize>)>,
    encoding: Encoding,
    /// The most bytes of a decoded chunk.
    raw_len: usize,
}

impl StoredChunks {
    /// Maps the files of these chunks.
    pub(crate) fn new(encoding: Encoding, raw_len: usize, places: &[Place]) -> Self {
        let (mut maps, mut numbers, mut chunks) =
            (vec![], HashMap::<&PathBuf, usize>::new(), vec![]);
        for (path, range) in places {
            let number = *numbers.entry(path).or_insert_with(|| {
                let file = File::open(path).unwrap();
                // SAFETY: the files are in a temporary folder of this process, and nothing changes them.
                maps.push(unsafe { Mmap::map(&file) }.unwrap());
                maps.len() - 1
            });
            chunks.push((number, range.clone()));
        }
        Self { maps, chunks, encoding, raw_len }
    }

    /// The number of chunks.
    pub(crate) fn count(&self) -> usize {
        self.chunks.len()
    }

    /// Decodes all chunks on two threads, each into a buffer that it uses again.
    pub(crate) fn decode(&self) {
        std::thread::scope(|scope| {
            for half in self.chunks.chunks(self.chunks.len().div_ceil(2)) {
                scope.spawn(move || {
                    let mut decoder = Decoder::new(self.raw_len);
                    for (map, range) in half {
                        let stored = &self.maps[*map][range.clone()];
                        black_box(decoder.decode(self.encoding, stored));
                    }
                });
            }
        });
    }

    /// The sum of all cells, without the NaN and the fill values that pad chunks. It shows that the loops decode
    /// the right cells.
    pub(crate) fn sum(&self) -> f64 {
        let mut decoder = Decoder::new(self.raw_len);
        let mut sum = 0.0;
        for (map, range) in &self.chunks {
            let cells = decoder.decode(self.encoding, &self.maps[*map][range.clone()]);
            let cells = cells.as_chunks::<4>().0.iter().map(|cell| f32::from_le_bytes(*cell));
            sum += cells.filter(|cell| cell.abs() < 1e30).map(f64::from).sum::<f64>();
        }
        sum
    }
}

/// The buffers of a thread, and its decompressors.
struct Decoder {
    raw: Vec<u8>,
    cells: Vec<u8>,
    zstd: Decompressor<'static>,
    zlib: Decompress,
}

impl Decoder {
    fn new(raw_len: usize) -> Self {
        let (raw, cells) = (vec![0; raw_len], vec![0; raw_len]);
        Self { raw, cells, zstd: Decompressor::new().unwrap(), zlib: Decompress::new(true) }
    }

    fn decode(&mut self, encoding: Encoding, stored: &[u8]) -> &[u8] {
        match encoding {
            Encoding::Raw => {
                self.cells[..stored.len()].copy_from_slice(stored);
                return &self.cells[..stored.len()];
            }
            Encoding::BigEndian => {
                swap(stored, &mut self.cells);
                return &self.cells[..stored.len()];
            }
            Encoding::Zstd => {
                let len = self.zstd.decompress_to_buffer(stored, &mut self.cells[..]).unwrap();
                assert_eq!(len, self.cells.len());
            }
            Encoding::ShuffledZlib => {
                self.zlib.reset(true);
                let finish = FlushDecompress::Finish;
                let status = self.zlib.decompress(stored, &mut self.raw, finish).unwrap();
                assert!(
                    status == Status::StreamEnd && self.zlib.total_out() == self.raw.len() as u64
                );
                unshuffle(&self.raw, &mut self.cells);
            }
            Encoding::Blosc => blosc(stored, &mut self.raw, &mut self.cells),
        }
        &self.cells
    }
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn swap(stored: &[u8], cells: &mut [u8]) {
    for (cell, stored) in cells.as_chunks_mut::<4>().0.iter_mut().zip(stored.as_chunks::<4>().0) {
        *cell = u32::from_be_bytes(*stored).to_le_bytes();
    }
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn unshuffle(planes: &[u8], cells: &mut [u8]) {
    let (low, high) = planes.split_at(planes.len() / 2);
    let (a, b) = low.split_at(low.len() / 2);
    let (c, d) = high.split_at(high.len() / 2);
    let cells = cells.as_chunks_mut::<4>().0.iter_mut();
    for ((((cell, a), b), c), d) in cells.zip(a).zip(b).zip(c).zip(d) {
        *cell = [*a, *b, *c, *d];
    }
}

/// Decodes a frame of cells of four bytes. Facts: the chunk format of c-blosc 1.
fn blosc(frame: &[u8], raw: &mut [u8], cells: &mut [u8]) {
    const COPIED: u8 = 2;
    const UNSPLIT: u8 = 16;
    let word = |at: usize| u32::from_le_bytes(frame[at..at + 4].try_into().unwrap()) as usize;
    let (flags, len, block_len) = (frame[2], word(4), word(8));
    assert_eq!((frame[3], len), (4, cells.len()));
    if flags & COPIED != 0 {
        return cells.copy_from_slice(&frame[16..16 + len]);
    }
    let blocks = raw.chunks_mut(block_len).zip(cells.chunks_mut(block_len));
    for (number, (raw, cells)) in blocks.enumerate() {
        let is_split = flags & UNSPLIT == 0 && raw.len() == block_len;
        let mut at = word(16 + 4 * number);
        let part_len = if is_split { raw.len() / 4 } else { raw.len() };
        for part in raw.chunks_mut(part_len) {
            let stored_len = word(at);
            let stored = &frame[at + 4..at + 4 + stored_len];
            at += 4 + stored_len;
            if stored_len == part.len() {
                part.copy_from_slice(stored);
            } else {
                let len = lz4_flex::block::decompress_into(stored, part).unwrap();
                assert_eq!(len, part.len());
            }
        }
        unshuffle(raw, cells);
    }
}
