//! Tests of whole pipelines: with bytes of the encoders in `forward`, and with damaged and hostile bytes.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::forward::{KEY, Writer, Written, encode_strings, parts, tile};
use super::pipeline::{Filter, Pipeline};
use super::plan::Field;
use super::word::Width;
use super::{EncryptionKey, FilterBuffers, TileCodec};
use crate::bytes::datatype::Datatype;
use gridfusion_core::format::DecodedPayload;
use gridfusion_core::{ErrorKind, Result};

const DATATYPES: [Datatype; 14] = [
    Datatype::Int8,
    Datatype::Int16,
    Datatype::Int32,
    Datatype::Int64,
    Datatype::UInt8,
    Datatype::UInt16,
    Datatype::UInt32,
    Datatype::UInt64,
    Datatype::Float32,
    Datatype::Float64,
    Datatype::Bool,
    Datatype::Char,
    Datatype::StringAscii,
    Datatype::Blob,
];

const LEVEL: i32 = -1;

fn filters(rng: &mut SmallRng) -> [Filter; 20] {
    let widths = [Width::One, Width::Two, Width::Four, Width::Eight];
    let reinterpret = [None, Some(Datatype::UInt8), Some(Datatype::Int32)][rng.random_range(0..3)];
    let width = widths[rng.random_range(0..4)];
    [
        Filter::Noop,
        Filter::Gzip { level: LEVEL },
        Filter::Zstd { level: LEVEL },
        Filter::Lz4,
        Filter::RunLength,
        Filter::Bzip2 { level: LEVEL },
        Filter::Delta { reinterpret: None },
        Filter::Delta { reinterpret },
        Filter::DoubleDelta { reinterpret: None },
        Filter::DoubleDelta { reinterpret },
        Filter::BitWidthReduction,
        Filter::PositiveDelta,
        Filter::Bitshuffle,
        Filter::Byteshuffle,
        Filter::Xor,
        Filter::ScaleFloat { scale: 0.5, offset: 3.0, width },
        Filter::Md5,
        Filter::Sha256,
        Filter::AesGcm,
        Filter::Zstd { level: LEVEL },
    ]
}

fn field(datatype: Datatype, cell_size: usize) -> Field {
    Field { datatype, cell_size: cell_size as u64, var_strings: false, fragment_version: 22 }
}

fn key() -> EncryptionKey {
    EncryptionKey::new(&KEY).unwrap()
}

/// Random cells: small steps, long runs or noise. Scaling to integers and back leaves floats unchanged.
fn cells(datatype: Datatype, count: usize, rng: &mut SmallRng) -> Vec<u8> {
    let (size, kind) = (datatype.size() as usize, rng.random_range(0..4));
    let mut last = rng.random_range(-50..50_i64);
    let mut cell = || {
        last = match kind {
            0 => last + rng.random_range(0..3),
            1 if rng.random_range(0..40) > 0 => last,
            2 => rng.random(),
            _ => rng.random_range(-100..100),
        };
        let float = (last % 100) as f64 * 0.5 + 3.0;
        match datatype {
            Datatype::Float32 => (float as f32).to_le_bytes().to_vec(),
            Datatype::Float64 => float.to_le_bytes().to_vec(),
            _ => last.to_le_bytes()[..size].to_vec(),
        }
    };
    (0..count).flat_map(|_| cell()).collect()
}

/// A tile that went through random filters.
struct Sample {
    codec: TileCodec,
    raw: Vec<u8>,
    stored: Vec<u8>,
}

impl Sample {
    fn decode(&self, stored: &[u8], buffers: &mut FilterBuffers) -> Result<DecodedPayload> {
        self.codec.decode_with(stored, self.raw.len() as u64, 1_000, vec![], buffers)
    }
}

fn sample(rng: &mut SmallRng, most_filters: usize, most_cells: usize) -> Sample {
    let datatype = DATATYPES[rng.random_range(0..DATATYPES.len())];
    let size = datatype.size() as usize;
    let cell_size = size * rng.random_range(1..4);
    let mut chunks: Vec<(usize, Written)> = vec![];
    let mut raw = vec![];
    for _ in 0..rng.random_range(1..4) {
        let values = rng.random_range(0..most_cells) * cell_size / size;
        let mut data = cells(datatype, values, rng);
        raw.extend(&data);
        let raw_len = data.len();
        // Half of the chunks are cut into two parts, possibly within a cell.
        let rest = data.split_off(rng.random_range(0..=data.len()));
        let data = if rng.random() { vec![[data, rest].concat()] } else { vec![data, rest] };
        chunks.push((raw_len, parts(data)));
    }
    let mut pipeline = Pipeline { filters: vec![] };
    let mut input = datatype;
    for _ in 0..rng.random_range(0..=most_filters) {
        let filter = filters(rng)[rng.random_range(0..20)];
        let mut output = input;
        let filtered: Option<Vec<_>> = chunks
            .iter()
            .map(|(raw_len, chunk)| {
                let mut writer = Writer { datatype: input, cell_size, rng };
                let chunk = writer.apply(filter, chunk.clone())?;
                output = writer.datatype;
                Some((*raw_len, chunk))
            })
            .collect();
        if let Some(filtered) = filtered {
            (chunks, input) = (filtered, output);
            pipeline.filters.push(filter);
        }
    }
    let is_encrypted = pipeline.filters.contains(&Filter::AesGcm);
    let key = is_encrypted.then(key);
    let codec = pipeline.codec(&field(datatype, cell_size), key.as_ref()).unwrap();
    Sample { codec, raw, stored: tile(&chunks) }
}

#[test]
fn random_pipelines_come_back() {
    let mut rng = SmallRng::seed_from_u64(7);
    let mut buffers = FilterBuffers::default();
    for round in 0..6_000 {
        let most_cells = if round % 50 == 0 { 20_000 } else { 300 };
        let sample = sample(&mut rng, 5, most_cells);
        let decoded = sample.decode(&sample.stored, &mut buffers);
        let decoded = decoded.unwrap_or_else(|error| panic!("{}: {error}", sample.codec));
        assert!(decoded.bytes == sample.raw, "{}", sample.codec);
        assert!(decoded.offsets.is_none());
    }
}

#[test]
fn every_filter_alone_comes_back_for_every_type() {
    let mut rng = SmallRng::seed_from_u64(8);
    let mut buffers = FilterBuffers::default();
    let mut done = std::collections::BTreeSet::new();
    for _ in 0..20_000 {
        let sample = sample(&mut rng, 1, 100);
        assert_eq!(sample.decode(&sample.stored, &mut buffers).unwrap().bytes, sample.raw);
        done.insert(sample.codec.to_string().split(" by").next().unwrap().to_owned());
    }
    // All filters except dictionary and webp, then "none", and each delta filter with two types.
    assert_eq!(done.len(), 17 + 1 + 4, "{done:?}");
}

#[test]
fn every_truncation_is_an_error() {
    let mut rng = SmallRng::seed_from_u64(9);
    let mut buffers = FilterBuffers::default();
    for _ in 0..300 {
        let sample = sample(&mut rng, 4, 60);
        for end in 0..sample.stored.len() {
            let error = sample.decode(&sample.stored[..end], &mut buffers).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt);
        }
        assert!(sample.decode(&[&sample.stored[..], &[0]].concat(), &mut buffers).is_err());
    }
}

#[test]
fn flipped_bytes_never_give_a_wrong_length() {
    let mut rng = SmallRng::seed_from_u64(10);
    let mut buffers = FilterBuffers::default();
    for _ in 0..600 {
        let sample = sample(&mut rng, 4, 100);
        for _ in 0..100 {
            let mut stored = sample.stored.clone();
            for _ in 0..rng.random_range(1..4) {
                let at = rng.random_range(0..stored.len());
                stored[at] = [rng.random(), 0, 255][rng.random_range(0..3)];
            }
            if let Ok(decoded) = sample.decode(&stored, &mut buffers) {
                assert_eq!(decoded.bytes.len(), sample.raw.len());
            }
        }
    }
}

fn strings_codec(filters: &[Filter], key: Option<&EncryptionKey>) -> TileCodec {
    let field = Field { var_strings: true, ..field(Datatype::StringUtf8, 1) };
    Pipeline { filters: filters.to_vec() }.codec(&field, key).unwrap()
}

#[test]
fn strings_come_back_with_their_offsets() {
    let mut rng = SmallRng::seed_from_u64(11);
    let mut buffers = FilterBuffers::default();
    let widths = [Width::One, Width::Two, Width::Four, Width::Eight];
    for _ in 0..600 {
        let words = ["", "a", "word", "a longer one", "µ"];
        let strings: Vec<&str> = (0..rng.random_range(0..400))
            .flat_map(|_| vec![words[rng.random_range(0..5)]; rng.random_range(1..4)])
            .collect();
        let is_dictionary = rng.random();
        let widths = [widths[rng.random_range(0..4)], widths[rng.random_range(0..4)]];
        let mut chunk = encode_strings(&strings, is_dictionary, widths);
        let mut all = vec![if is_dictionary { Filter::Dictionary } else { Filter::RunLength }];
        let mut writer = Writer { datatype: Datatype::StringUtf8, cell_size: 1, rng: &mut rng };
        for filter in [Filter::Zstd { level: 1 }, Filter::Byteshuffle, Filter::AesGcm] {
            if writer.rng.random() {
                chunk = writer.apply(filter, chunk).unwrap();
                all.push(filter);
            }
        }
        let key = all.contains(&Filter::AesGcm).then(key);
        all.retain(|filter| *filter != Filter::AesGcm);
        let codec = strings_codec(&all, key.as_ref());
        let raw = strings.concat();
        let mut stored = tile(&[(raw.len(), chunk)]);
        let decode = |stored: &[u8], buffers: &mut FilterBuffers| {
            codec.decode_with(stored, raw.len() as u64, 0, vec![], buffers)
        };
        let decoded = decode(&stored, &mut buffers).unwrap();
        assert_eq!(decoded.bytes, raw.as_bytes());
        let begins = (0..strings.len()).map(|at| strings[..at].concat().len() as u64);
        assert_eq!(decoded.offsets.unwrap(), begins.collect::<Vec<_>>());
        for _ in 0..20 {
            let at = rng.random_range(0..stored.len());
            let kept = std::mem::replace(&mut stored[at], rng.random());
            if let Ok(decoded) = decode(&stored, &mut buffers) {
                assert_eq!(decoded.bytes.len(), raw.len());
            }
            assert!(decode(&stored[..at], &mut buffers).is_err());
            stored[at] = kept;
        }
    }
}

#[test]
fn strings_are_one_chunk_or_none() {
    let codec = strings_codec(&[Filter::RunLength], None);
    let mut buffers = FilterBuffers::default();
    let chunk = || (2, encode_strings(&["a", "b"], false, [Width::One; 2]));
    let mut decode = |chunks: &[_], raw_len| {
        codec.decode_with(&tile(chunks), raw_len, 0, vec![], &mut buffers).map(|tile| tile.offsets)
    };
    assert_eq!(decode(&[chunk()], 2).unwrap(), Some(vec![0, 1]));
    assert_eq!(decode(&[], 0).unwrap(), Some(vec![]));
    assert!(decode(&[chunk(), chunk()], 4).is_err());
    assert!(decode(&[], 1).is_err());
}

#[test]
fn spare_memory_is_used_and_not_seen() {
    let mut buffers = FilterBuffers::default();
    let pipeline = Pipeline { filters: vec![Filter::Noop] };
    let codec = pipeline.codec(&field(Datatype::Int8, 1), None).unwrap();
    let written = parts([vec![5; 100]]);
    let stored = tile(&[(100, written.clone()), (100, written)]);
    for (len, capacity) in [(0, 0), (7, 199), (0, 200), (200, 200), (900, 1_000)] {
        let mut spare = Vec::with_capacity(capacity);
        spare.resize(len, 0xAA);
        let memory = spare.as_ptr();
        let decoded = codec.decode_with(&stored, 200, 0, spare, &mut buffers).unwrap();
        assert_eq!(decoded.bytes, vec![5; 200]);
        assert_eq!(decoded.bytes.as_ptr() == memory, capacity >= 200);
    }
}

/// A tile of one chunk of `raw_len` bytes, whose only part `data` claims to unpack to `part_len` bytes.
fn packed(raw_len: u32, part_len: u32, data: &[u8]) -> Vec<u8> {
    let entries = [0, 1, part_len, data.len() as u32].map(u32::to_le_bytes).concat();
    tile(&[(raw_len as usize, Written { metadata: vec![entries], ..parts([data.to_vec()]) })])
}

#[test]
fn bombs_are_cut_off() {
    let mut buffers = FilterBuffers::default();
    let bomb = zstd::encode_all(&vec![0_u8; 60_000_000][..], 19).unwrap();
    let zstd = Filter::Zstd { level: 1 };
    let codec = |filters: &[Filter]| {
        Pipeline { filters: filters.to_vec() }.codec(&field(Datatype::Int8, 1), None).unwrap()
    };
    let mut decode = |filters: &[Filter], raw_len, part_len, tile_len| {
        let stored = packed(raw_len, part_len, &bomb);
        codec(filters).decode_with(&stored, tile_len, 0, vec![], &mut buffers)
    };
    // A bomb is decoded if its length is the tile's.
    let len = 60_000_000;
    assert_eq!(decode(&[zstd], len, len, u64::from(len)).unwrap().bytes.len(), len as usize);
    for (raw_len, part_len, tile_len) in [
        (1_000, 1_000, 1_000),
        (1_000, len, 1_000),
        (len, len, 1_000),
        (len + 1, len + 1, 1 << 40),
        (u32::MAX, u32::MAX, 1 << 40),
    ] {
        assert!(decode(&[zstd], raw_len, part_len, tile_len).is_err());
    }
    let error = decode(&[Filter::Xor, zstd], 1_000, len, 1_000).unwrap_err();
    assert_eq!(
        error.to_string(),
        "corrupt tile chunk at byte 8: chunk 0: zstd: data that decodes to 60000000 bytes, \
         expected at most 1064576 bytes"
    );
}

#[test]
fn many_small_claims_are_no_claim() {
    let mut buffers = FilterBuffers::default();
    let codec = Pipeline { filters: vec![] }.codec(&field(Datatype::Int8, 1), None).unwrap();
    for stored in [&[0xFF; 8][..], &[0xFF; 80], &[1, 0, 0, 0, 0, 0, 0, 0]] {
        let error = codec.decode_with(stored, 1 << 50, 20, vec![], &mut buffers).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.offset().unwrap() >= 20);
    }
}

#[test]
fn a_wrong_key_and_a_changed_byte_are_errors() {
    let mut rng = SmallRng::seed_from_u64(12);
    let mut buffers = FilterBuffers::default();
    let mut writer = Writer { datatype: Datatype::Int32, cell_size: 4, rng: &mut rng };
    let raw = vec![9; 400];
    let chunk = parts([raw.clone()]);
    let chunk = writer.apply(Filter::Byteshuffle, chunk).unwrap();
    let stored = tile(&[(400, writer.apply(Filter::AesGcm, chunk).unwrap())]);
    let pipeline = Pipeline { filters: vec![Filter::Byteshuffle] };
    let codec =
        |key: &EncryptionKey| pipeline.codec(&field(Datatype::Int32, 4), Some(key)).unwrap();
    let mut decode = |key: &EncryptionKey, stored: &[u8]| {
        codec(key).decode_with(stored, 400, 0, vec![], &mut buffers)
    };
    assert_eq!(decode(&key(), &stored).unwrap().bytes, raw);
    let error = decode(&EncryptionKey::new(&[1; 32]).unwrap(), &stored).unwrap_err();
    assert!(error.to_string().contains("key may be wrong"), "{error}");
    for at in 0..stored.len() {
        let mut changed = stored.clone();
        changed[at] ^= 4;
        assert!(decode(&key(), &changed).is_err(), "{at}");
    }
}

/// Five integers that libtiledb 2.30 wrote through bit width reduction and then delta. The first filter makes
/// 17 bytes of metadata and 5 of data; delta stored 16 and 4 of them. In place of the last bytes, libtiledb
/// reads arbitrary memory.
#[rustfmt::skip]
const CUT_OFF: [u8; 80] = [
    1, 0, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0, 36, 0, 0, 0, 24, 0, 0, 0,
    1, 0, 0, 0, 1, 0, 0, 0, 17, 0, 0, 0, 24, 0, 0, 0, 5, 0, 0, 0,
    12, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0, 237, 255, 255, 255,
    2, 0, 0, 0, 5, 20, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 44, 48, 72, 92,
];

#[test]
fn what_tiledb_lost_itself_is_not_called_corrupt() {
    let delta = Filter::Delta { reinterpret: None };
    let decode = |filters: &[Filter]| {
        let pipeline = Pipeline { filters: filters.to_vec() };
        let codec = pipeline.codec(&field(Datatype::Int32, 4), None).unwrap();
        codec.decode_with(&CUT_OFF, 20, 0, vec![], &mut FilterBuffers::default()).unwrap_err()
    };
    let error = decode(&[Filter::BitWidthReduction, delta]);
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(
        error.to_string().contains("lost the last 1 of 17 bytes, so TileDB cannot restore them"),
        "{error}"
    );
    assert_eq!(decode(&[delta]).kind(), ErrorKind::Corrupt);
}
