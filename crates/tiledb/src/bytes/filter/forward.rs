//! Encoders for tests: each filter in the direction of writing, one value and one bit at a time.
//!
//! They are the naive counterpart of the inverses, written from the description of the format. Speed does
//! not matter here. Unlike TileDB, they refuse data that TileDB would cut off, so all that they encode
//! comes back.

use std::collections::BTreeMap;

use aes_gcm::aead::AeadInOut;
use aes_gcm::{Aes256Gcm, KeyInit};
use md5::{Digest, Md5};
use rand::Rng;
use rand::rngs::SmallRng;
use sha2::Sha256;

use super::pipeline::Filter;
use super::word::Width;
use crate::bytes::datatype::Datatype;
use gridfusion_core::format::compress::Compressor;
use gridfusion_core::format::shuffle::{shuffle_bits, shuffle_bytes};

/// The key that [`Writer`] encrypts with.
pub(super) const KEY: [u8; 32] = *b"0123456789abcdeF0123456789abcdeF";

/// A chunk between two filters: parts of metadata, the last filter's first, and parts of data.
#[derive(Clone, Default)]
pub(super) struct Written {
    pub(super) metadata: Vec<Vec<u8>>,
    pub(super) data: Vec<Vec<u8>>,
}

/// Filters chunks of one field.
pub(super) struct Writer<'a> {
    pub(super) datatype: Datatype,
    pub(super) cell_size: usize,
    pub(super) rng: &'a mut SmallRng,
}

fn width_of(datatype: Datatype) -> Width {
    Width::from_bytes(datatype.size()).unwrap()
}

fn integer_of(width: Width) -> Datatype {
    let integers = [Datatype::Int8, Datatype::Int16, Datatype::Int32, Datatype::Int64];
    integers[width.bytes().ilog2() as usize]
}

impl Writer<'_> {
    /// Applies one filter; `None` if it cannot encode such data.
    pub(super) fn apply(&mut self, filter: Filter, chunk: Written) -> Option<Written> {
        let width = width_of(self.datatype);
        let cell = self.cell_size;
        Some(match filter {
            Filter::Noop => chunk,
            Filter::Gzip { .. } => in_parts(&chunk, |part| Some(compress(Compressor::Gzip, part)))?,
            Filter::Zstd { .. } => in_parts(&chunk, |part| Some(compress(Compressor::Zstd, part)))?,
            Filter::Lz4 => in_parts(&chunk, |part| Some(compress(Compressor::Lz4, part)))?,
            Filter::Bzip2 { .. } => {
                in_parts(&chunk, |part| Some(compress(Compressor::Bzip2, part)))?
            }
            Filter::RunLength => in_parts(&chunk, |part| run_lengths(cell, part))?,
            Filter::Delta { reinterpret } => {
                self.datatype = reinterpret.unwrap_or(self.datatype);
                in_parts(&chunk, |part| deltas(self.datatype, part))?
            }
            Filter::DoubleDelta { reinterpret } => {
                self.datatype = reinterpret.unwrap_or(self.datatype);
                in_parts(&chunk, |part| double_deltas(self.datatype, part))?
            }
            Filter::BitWidthReduction => self.reduce(chunk),
            Filter::PositiveDelta => self.positive_deltas(chunk),
            Filter::Byteshuffle => {
                in_segments(chunk, |part| Some(shuffle_bytes(width.bytes(), part)))?
            }
            Filter::Bitshuffle => {
                in_segments(cut_at_8(chunk), |part| Some(shuffle_bit_blocks(width, part)))?
            }
            Filter::Xor => {
                self.datatype = integer_of(width);
                in_segments(chunk, |part| xor(width, part))?
            }
            Filter::ScaleFloat { scale, offset, width: stored } => {
                let datatype = Some(self.datatype).filter(|datatype| datatype.is_float())?;
                self.datatype = integer_of(stored);
                in_segments(chunk, |part| scale_floats(datatype, scale, offset, stored, part))?
            }
            Filter::Md5 => checksums(chunk, |bytes| Md5::digest(bytes).to_vec()),
            Filter::Sha256 => checksums(chunk, |bytes| Sha256::digest(bytes).to_vec()),
            Filter::AesGcm => {
                self.datatype = Datatype::Blob;
                self.encrypt_parts(&chunk)
            }
            Filter::Dictionary | Filter::Webp => return None,
        })
    }

    /// Bit width reduction: each integer of a window less the least, in 1, 2, 4 or 8 bytes.
    fn reduce(&mut self, chunk: Written) -> Written {
        let (datatype, size) = (self.datatype, self.datatype.size() as usize);
        let is_integer = datatype.is_signed() || datatype.is_unsigned();
        if !is_integer || size == 1 {
            return chunk;
        }
        let total = chunk.data.concat().len() as u32;
        let (mut windows, mut data, mut count) = (vec![], vec![], 0_u32);
        for window in self.windows(&chunk, size) {
            let integers = integers(datatype, window);
            let low = integers.iter().min().copied().unwrap_or(0);
            let high = integers.iter().max().copied().unwrap_or(0);
            // Signed types store signed differences, so one bit less holds the range of values.
            let highest = if datatype.is_signed() { [7, 15, 31, 63] } else { [8, 16, 32, 64] };
            let bits = highest.iter().position(|bits| high - low + 1 < 1_i128 << bits).unwrap_or(3);
            let bits = (8 << bits).min(8 * size);
            windows.extend(&low.to_le_bytes()[..size]);
            windows.push(bits as u8);
            windows.extend((window.len() as u32).to_le_bytes());
            count += 1;
            if bits == 8 * size || window.len() % size != 0 {
                data.extend(window);
            } else {
                let narrow = |integer: &i128| (integer - low).to_le_bytes()[..bits / 8].to_vec();
                data.extend(integers.iter().flat_map(narrow));
            }
        }
        let header = [total, count].map(u32::to_le_bytes).concat();
        written([header, windows].concat(), chunk.metadata, data)
    }

    /// Positive delta: each integer of a window less the one before it. Negative differences wrap.
    fn positive_deltas(&mut self, chunk: Written) -> Written {
        let (datatype, size) = (self.datatype, self.datatype.size() as usize);
        let is_integer = datatype.is_signed() || datatype.is_unsigned();
        if !is_integer && datatype != Datatype::Blob && datatype != Datatype::Bool {
            return chunk;
        }
        let (mut windows, mut data, mut count) = (vec![], vec![], 0_u32);
        for window in self.windows(&chunk, size) {
            let integers = integers(datatype, window);
            let mut last = integers.first().copied().unwrap_or(9);
            windows.extend(&last.to_le_bytes()[..size]);
            windows.extend((window.len() as u32).to_le_bytes());
            count += 1;
            if window.len() % size != 0 {
                data.extend(window);
                continue;
            }
            for integer in integers {
                data.extend(&(integer - last).to_le_bytes()[..size]);
                last = integer;
            }
        }
        written([count.to_le_bytes().to_vec(), windows].concat(), chunk.metadata, data)
    }

    /// Cuts parts into windows of one random length, which do not cross parts.
    fn windows<'a>(&mut self, chunk: &'a Written, size: usize) -> Vec<&'a [u8]> {
        let len = self.rng.random_range(1..200) * size;
        chunk.data.iter().flat_map(|part| part.chunks(len)).collect()
    }

    fn encrypt_parts(&mut self, chunk: &Written) -> Written {
        let counts = [chunk.metadata.len() as u32, chunk.data.len() as u32];
        let (mut entries, mut data) = (counts.map(u32::to_le_bytes).concat(), vec![]);
        for part in chunk.metadata.iter().chain(&chunk.data) {
            let (stored, seal) = encrypt(&KEY, self.rng.random(), part);
            entries.extend([part.len() as u32, stored.len() as u32].map(u32::to_le_bytes).concat());
            entries.extend(seal);
            data.extend(stored);
        }
        written(entries, vec![], data)
    }
}

/// A chunk after a filter: its own metadata comes first, and its data is one part for the next filter.
fn written(own: Vec<u8>, mut metadata: Vec<Vec<u8>>, data: Vec<u8>) -> Written {
    metadata.insert(0, own);
    Written { metadata, data: vec![data] }
}

/// Encodes each part by itself: the parts of metadata, and then those of data.
fn in_parts(chunk: &Written, encode: impl Fn(&[u8]) -> Option<Vec<u8>>) -> Option<Written> {
    let counts = [chunk.metadata.len() as u32, chunk.data.len() as u32];
    let (mut entries, mut data) = (counts.map(u32::to_le_bytes).concat(), vec![]);
    for part in chunk.metadata.iter().chain(&chunk.data) {
        let stored = encode(part)?;
        entries.extend([part.len() as u32, stored.len() as u32].map(u32::to_le_bytes).concat());
        data.extend(stored);
    }
    Some(written(entries, vec![], data))
}

/// Encodes the parts of the data, and lists their encoded lengths.
fn in_segments(chunk: Written, encode: impl Fn(&[u8]) -> Option<Vec<u8>>) -> Option<Written> {
    let stored = chunk.data.iter().map(|part| encode(part)).collect::<Option<Vec<_>>>()?;
    let mut lens = (stored.len() as u32).to_le_bytes().to_vec();
    lens.extend(stored.iter().flat_map(|part| (part.len() as u32).to_le_bytes()));
    Some(written(lens, chunk.metadata, stored.concat()))
}

fn checksums(chunk: Written, digest: impl Fn(&[u8]) -> Vec<u8>) -> Written {
    let counts = [chunk.metadata.len() as u32, chunk.data.len() as u32];
    let mut own = counts.map(u32::to_le_bytes).concat();
    for part in chunk.metadata.iter().chain(&chunk.data) {
        own.extend((part.len() as u64).to_le_bytes());
        own.extend(digest(part));
    }
    let mut chunk = chunk;
    chunk.metadata.insert(0, own);
    chunk
}

/// Returns the encrypted bytes of `part`, and the nonce followed by the tag.
pub(super) fn encrypt(key: &[u8; 32], nonce: [u8; 12], part: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let mut stored = part.to_vec();
    let cipher = Aes256Gcm::new(key.into());
    let tag = cipher.encrypt_inout_detached(&nonce.into(), &[], (&mut stored[..]).into()).unwrap();
    (stored, [&nonce[..], &tag[..]].concat())
}

/// The integers in `bytes`; none unless `bytes` has a whole number of them.
fn integers(datatype: Datatype, bytes: &[u8]) -> Vec<i128> {
    let size = datatype.size() as usize;
    if !bytes.len().is_multiple_of(size) {
        return vec![];
    }
    let integer = |bytes: &[u8]| {
        let sign = datatype.is_signed() && bytes[size - 1] >= 128;
        let mut extended = [if sign { 255 } else { 0 }; 16];
        extended[..size].copy_from_slice(bytes);
        i128::from_le_bytes(extended)
    };
    bytes.chunks(size).map(integer).collect()
}

/// Runs of at most 300 cells, so that tests have runs of more than 255 and also several of one value.
fn run_lengths(cell: usize, part: &[u8]) -> Option<Vec<u8>> {
    if !part.len().is_multiple_of(cell) {
        return None;
    }
    let mut runs: Vec<(&[u8], u16)> = vec![];
    for value in part.chunks(cell) {
        match runs.last_mut() {
            Some((last, count)) if *last == value && *count < 300 => *count += 1,
            _ => runs.push((value, 1)),
        }
    }
    Some(
        runs.iter().flat_map(|(value, count)| [value, &count.to_be_bytes()[..]].concat()).collect(),
    )
}

fn deltas(datatype: Datatype, part: &[u8]) -> Option<Vec<u8>> {
    let size = datatype.size() as usize;
    if datatype.is_float() || !part.len().is_multiple_of(size) {
        return None;
    }
    let values = integers(datatype, part);
    let mut stored = (values.len() as u64).to_le_bytes().to_vec();
    let before = std::iter::once(&0).chain(&values);
    for (value, before) in values.iter().zip(before) {
        stored.extend(&(value - before).to_le_bytes()[..size]);
    }
    Some(stored)
}

/// Writes a bit at a time to a list, and packs the list into words at the end.
fn double_deltas(datatype: Datatype, part: &[u8]) -> Option<Vec<u8>> {
    let size = datatype.size() as usize;
    if datatype.is_float() || !part.len().is_multiple_of(size) {
        return None;
    }
    let values = integers(datatype, part);
    let differences: Vec<i128> =
        values.windows(3).map(|three| three[2] - 2 * three[1] + three[0]).collect();
    let magnitude = differences.iter().map(|difference| difference.unsigned_abs()).max();
    // Bits of the greatest magnitude, at least 1 if there is any difference.
    let bits = magnitude.map_or(0, |most| (128 - most.leading_zeros()).max(1));
    let mut stored = vec![bits as u8];
    stored.extend((values.len() as u64).to_le_bytes());
    if bits as usize >= 8 * size - 1 {
        stored.extend(part);
        return Some(stored);
    }
    stored.extend(&part[..part.len().min(2 * size)]);
    let mut stream: Vec<bool> = vec![];
    for difference in differences {
        stream.push(difference < 0);
        stream.extend((0..bits).rev().map(|bit| difference.unsigned_abs() >> bit & 1 == 1));
    }
    for word in stream.chunks(64) {
        let bit = |(place, is_set): (usize, &bool)| u64::from(*is_set) << (63 - place);
        stored.extend(word.iter().enumerate().map(bit).sum::<u64>().to_le_bytes());
    }
    Some(stored)
}

/// Cuts each part into a multiple of 8 bytes and a rest.
fn cut_at_8(chunk: Written) -> Written {
    let cut = |part: &Vec<u8>| {
        let (whole, rest) = part.split_at(part.len() / 8 * 8);
        [whole.to_vec(), rest.to_vec()].into_iter().filter(|part| !part.is_empty())
    };
    let data = chunk.data.iter().flat_map(cut).collect();
    Written { data, ..chunk }
}

pub(super) fn shuffle_bit_blocks(width: Width, part: &[u8]) -> Vec<u8> {
    let size = width.bytes();
    if !part.len().is_multiple_of(size) || !part.len().is_multiple_of(8) {
        return part.to_vec();
    }
    let block = |block: &[u8]| {
        let (whole, rest) = block.split_at(block.len() / size / 8 * 8 * size);
        [shuffle_bits(size, whole), rest.to_vec()].concat()
    };
    part.chunks(8192).flat_map(block).collect()
}

fn xor(width: Width, part: &[u8]) -> Option<Vec<u8>> {
    let size = width.bytes();
    let is_whole = part.len().is_multiple_of(size);
    let stored = |at: usize| part[at] ^ if at < size { 0 } else { part[at - size] };
    is_whole.then(|| (0..part.len()).map(stored).collect())
}

/// `None` if a float would not come back exactly.
fn scale_floats(
    datatype: Datatype,
    scale: f64,
    offset: f64,
    stored: Width,
    part: &[u8],
) -> Option<Vec<u8>> {
    let size = datatype.size() as usize;
    if !part.len().is_multiple_of(size) {
        return None;
    }
    let encode = |bytes: &[u8]| {
        let value = match size {
            4 => f64::from(f32::from_le_bytes(bytes.try_into().unwrap())),
            _ => f64::from_le_bytes(bytes.try_into().unwrap()),
        };
        let integer = ((value - offset) / scale).round();
        let is_exact = integer.abs() < 128.0 && integer * scale + offset == value && value != 0.0;
        is_exact.then(|| (integer as i64).to_le_bytes()[..stored.bytes()].to_vec())
    };
    part.chunks(size).map(encode).collect::<Option<Vec<_>>>().map(|integers| integers.concat())
}

/// A chunk of encoded `strings`. Counts or entry numbers have `width`, lengths have `len_width`.
pub(super) fn encode_strings(
    strings: &[&str],
    is_dictionary: bool,
    [width, len_width]: [Width; 2],
) -> Written {
    let big_endian =
        |width: Width, integer: usize| (integer as u64).to_be_bytes()[8 - width.bytes()..].to_vec();
    let entry =
        |string: &str| [big_endian(len_width, string.len()), string.as_bytes().to_vec()].concat();
    let (mut rest, mut data) = (vec![width.bytes() as u8, len_width.bytes() as u8], vec![]);
    if is_dictionary {
        let mut numbers = BTreeMap::new();
        let mut dictionary = vec![];
        for string in strings {
            let next = numbers.len();
            let number = *numbers.entry(string).or_insert_with(|| {
                dictionary.extend(entry(string));
                next
            });
            data.extend(big_endian(width, number));
        }
        rest.extend((dictionary.len() as u32).to_le_bytes());
        rest.extend(dictionary);
    } else {
        for run in strings.chunk_by(|left, right| left == right) {
            for run in run.chunks(200) {
                data.extend([big_endian(width, run.len()), entry(run[0])].concat());
            }
        }
    }
    let lens = [0, 1, strings.concat().len(), data.len(), 8 * strings.len()];
    let header: Vec<u8> = lens.iter().flat_map(|len| (*len as u32).to_le_bytes()).collect();
    written([header, rest].concat(), vec![], data)
}

/// A tile of `chunks`, each with the length of its cells and its filtered bytes.
pub(super) fn tile(chunks: &[(usize, Written)]) -> Vec<u8> {
    let mut tile = (chunks.len() as u64).to_le_bytes().to_vec();
    for (raw_len, Written { metadata, data }) in chunks {
        let (metadata, data) = (metadata.concat(), data.concat());
        let lens = [*raw_len, data.len(), metadata.len()];
        tile.extend(lens.iter().flat_map(|len| (*len as u32).to_le_bytes()));
        tile.extend(metadata);
        tile.extend(data);
    }
    tile
}

/// Compresses a part.
fn compress(compressor: Compressor, part: &[u8]) -> Vec<u8> {
    use std::io::{Read, Write};

    let mut packed = vec![];
    match compressor {
        Compressor::Gzip => {
            let level = flate2::Compression::new(6);
            flate2::read::ZlibEncoder::new(part, level).read_to_end(&mut packed).unwrap();
        }
        Compressor::Zstd => packed = zstd::encode_all(part, 1).unwrap(),
        Compressor::Lz4 => packed = lz4_flex::block::compress(part),
        Compressor::Bzip2 => {
            let mut stream = bzip2::write::BzEncoder::new(packed, bzip2::Compression::new(1));
            stream.write_all(part).unwrap();
            packed = stream.finish().unwrap();
        }
    }
    packed
}
