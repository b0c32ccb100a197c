//! Encoders for tests: the filters that [`TileEncoder`](super::TileEncoder) does not have, beside those that it has.
//!
//! Unlike TileDB, all encoders refuse data that TileDB would cut off, so all that they encode comes back.

use std::borrow::Cow;
use std::collections::BTreeMap;

use aes_gcm::aead::AeadInOut;
use aes_gcm::{Aes256Gcm, KeyInit};
use rand::Rng;
use rand::rngs::SmallRng;

use super::encoder::{EncodedChunk, append_chunk, encode, encoded, in_parts, in_segments};
use super::pipeline::Filter;
use super::plan::Field;
use super::word::Width;
use crate::bytes::datatype::Datatype;

/// The key that [`Writer`] encrypts with.
pub(super) const KEY: [u8; 32] = *b"0123456789abcdeF0123456789abcdeF";

/// A chunk between two filters, as [`TileEncoder`](super::TileEncoder) has it.
pub(super) type Written = EncodedChunk<'static>;

/// Returns a chunk with these parts of data.
pub(super) fn parts(data: impl IntoIterator<Item = Vec<u8>>) -> Written {
    Written { metadata: vec![], data: data.into_iter().map(Cow::Owned).collect() }
}

/// Filters chunks of one field.
pub(super) struct Writer<'a> {
    pub(super) datatype: Datatype,
    pub(super) cell_size: usize,
    pub(super) rng: &'a mut SmallRng,
}

impl Writer<'_> {
    /// Applies one filter; `None` if it cannot encode such data.
    pub(super) fn apply(&mut self, filter: Filter, chunk: Written) -> Option<Written> {
        let written = match filter {
            Filter::Lz4 => in_parts(&chunk, |part| Ok(Some(lz4_flex::block::compress(part)))),
            Filter::ScaleFloat { scale, offset, width } => {
                let datatype = Some(self.datatype).filter(|datatype| datatype.is_float())?;
                in_segments(chunk, |part| scale_floats(datatype, scale, offset, width, part))
            }
            Filter::AesGcm => Ok(Some(self.encrypt_parts(&chunk))),
            _ => {
                let field = Field {
                    datatype: self.datatype,
                    cell_size: self.cell_size as u64,
                    var_strings: false,
                    fragment_version: 22,
                };
                let window = self.rng.random_range(1..1_600);
                encode(filter, self.datatype, &field, window, chunk)
            }
        };
        let written = written.unwrap()?;
        self.datatype = filter.output_type(self.datatype);
        Some(written)
    }

    fn encrypt_parts(&mut self, chunk: &Written) -> Written {
        let counts = [chunk.metadata.len() as u32, chunk.data.len() as u32];
        let (mut entries, mut data) = (counts.map(u32::to_le_bytes).concat(), vec![]);
        let metadata = chunk.metadata.iter().map(Vec::as_slice);
        for part in metadata.chain(chunk.data.iter().map(AsRef::as_ref)) {
            let (stored, seal) = encrypt(&KEY, self.rng.random(), part);
            entries.extend([part.len() as u32, stored.len() as u32].map(u32::to_le_bytes).concat());
            entries.extend(seal);
            data.extend(stored);
        }
        encoded(entries, vec![], data)
    }
}

/// Returns the encrypted bytes of `part`, and the nonce followed by the tag.
pub(super) fn encrypt(key: &[u8; 32], nonce: [u8; 12], part: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let mut stored = part.to_vec();
    let cipher = Aes256Gcm::new(key.into());
    let tag = cipher.encrypt_inout_detached(&nonce.into(), &[], (&mut stored[..]).into()).unwrap();
    (stored, [&nonce[..], &tag[..]].concat())
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
    encoded([header, rest].concat(), vec![], data)
}

/// A tile of `chunks`, each with the length of its cells and its filtered bytes.
pub(super) fn tile(chunks: &[(usize, Written)]) -> Vec<u8> {
    let mut tile = (chunks.len() as u64).to_le_bytes().to_vec();
    for (raw_len, chunk) in chunks {
        append_chunk(&mut tile, *raw_len, chunk).unwrap();
    }
    tile
}
