//! Decodes the frames that numcodecs and filters of HDF5 wrote to `tests/data/codecs`; `make.py` there
//! describes the files.

use bytes::Bytes;

use super::checksum::ChecksumPlace;
use super::*;
use crate::format::{Codec, DecodedPayload, ElementType, Scratch};
use crate::{Error, ErrorKind};

/// A stored frame, the bytes that it decodes to, and the words of its line.
struct Frame {
    words: Vec<String>,
    stored: Bytes,
    decoded: Vec<u8>,
}

impl Frame {
    fn number(&self, word: usize) -> usize {
        self.words[word].parse().unwrap()
    }
}

/// The counterpart of `data` in `make.py`.
fn data(kind: &str, element: usize, len: usize) -> Vec<u8> {
    let mut state = 12345_u32;
    let noise = (0..len).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    });
    if kind == "noise" {
        return noise.collect();
    }
    let run = if kind == "slow" { 8_000 } else { 9 };
    let value = |at: usize| (at / run * 3).to_le_bytes().into_iter().chain([0; 8]).take(element);
    let mut steps: Vec<u8> = (0..=len / element).flat_map(value).take(len).collect();
    if kind == "mixed" {
        for (at, byte) in noise.enumerate().step_by(4) {
            steps[at] = byte;
        }
    }
    steps
}

fn frames(mut file: &[u8]) -> Vec<Frame> {
    fn part<'a>(file: &mut &'a [u8]) -> &'a [u8] {
        let len = u32::from_le_bytes(*file.split_off(..4).unwrap().as_array().unwrap());
        file.split_off(..len as usize).unwrap()
    }
    let mut frames = vec![];
    while let Some(end) = file.iter().position(|byte| *byte == b'\n') {
        let line = String::from_utf8(file.split_off(..=end).unwrap().to_vec()).unwrap();
        let words: Vec<String> = line.trim_end().split(' ').map(str::to_owned).collect();
        let stored = Bytes::copy_from_slice(part(&mut file));
        let decoded = match words[0].as_str() {
            "inline" => part(&mut file).to_vec(),
            kind => data(kind, words[1].parse().unwrap(), words[2].parse().unwrap()),
        };
        frames.push(Frame { words, stored, decoded });
    }
    assert!(file.is_empty() && !frames.is_empty());
    frames
}

macro_rules! frames {
    ($name:literal) => {
        frames(include_bytes!(concat!("../../../tests/data/codecs/", $name, ".bin")))
    };
}

fn decode(
    codec: &Codec,
    stored: &Bytes,
    len: usize,
    scratch: &mut Scratch,
) -> Result<DecodedPayload, Error> {
    codec.decode(stored.clone(), len as u64, 70, vec![0xEE; 50], scratch)
}

/// Decodes a frame with `steps`, also where other lengths are expected, and where the frame is damaged.
fn check(frame: &Frame, steps: Vec<Step>) {
    let name = frame.words.join(" ");
    let codec = Pipeline::codec(steps.clone());
    let (len, scratch) = (frame.decoded.len(), &mut Scratch::default());
    for _ in 0..2 {
        let decoded = decode(&codec, &frame.stored, len, scratch);
        let decoded = decoded.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(decoded.bytes, frame.decoded, "{name}");
    }
    if !steps.iter().any(Step::is_variable) {
        for wrong in [len + 1, len * 2 + 7, len.saturating_sub(1), 1 << 50] {
            assert!(
                wrong == len || decode(&codec, &frame.stored, wrong, scratch).is_err(),
                "{name}"
            );
        }
    }
    // In front of a step of an unknown input length, steps may decode to fewer bytes.
    let more = [steps, vec![Step::Custom(std::sync::Arc::new(Copied))]].concat();
    let decoded = decode(&Pipeline::codec(more), &frame.stored, len, scratch);
    assert_eq!(decoded.unwrap().bytes, frame.decoded, "{name}");
    damage(frame, &codec);
}

/// Decodes the frame with an end cut off, and with each byte changed.
fn damage(frame: &Frame, codec: &Codec) {
    let (len, scratch) = (frame.decoded.len(), &mut Scratch::default());
    // Every byte of short frames, and fewer of long ones.
    let step = (frame.stored.len() / 300).max(1);
    for end in (0..frame.stored.len()).step_by(step) {
        let cut = decode(codec, &frame.stored.slice(..end), len, scratch);
        let is_same = cut.as_ref().is_ok_and(|decoded| decoded.bytes == frame.decoded);
        assert!(cut.is_err() || is_same, "{} cut at {end}", frame.words.join(" "));
    }
    for at in (0..frame.stored.len()).step_by(step) {
        for change in [1, 0x10, 0x80, 0xFF] {
            let mut stored = frame.stored.to_vec();
            stored[at] ^= change;
            if let Ok(decoded) = decode(codec, &Bytes::from(stored), len, scratch) {
                assert!(decoded.bytes.len() == len || decoded.offsets.is_some());
            }
        }
    }
}

/// A step that copies.
#[derive(Debug)]
struct Copied;

impl std::fmt::Display for Copied {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("copied")
    }
}

impl StepDecoder for Copied {
    fn decode(&self, stored: &[u8], most: usize) -> Result<Vec<u8>, String> {
        if stored.len() <= most { Ok(stored.to_vec()) } else { Err("too long".to_owned()) }
    }
}

#[test]
fn chunks_of_blosc() {
    let files = [
        frames!("blosc-blosclz"),
        frames!("blosc-lz4"),
        frames!("blosc-lz4hc"),
        frames!("blosc-zlib"),
        frames!("blosc-zstd"),
        frames!("hdf5-blosc"),
    ];
    for frame in files.into_iter().flatten() {
        check(&frame, vec![Step::Blosc]);
    }
}

#[test]
fn streams() {
    for (frames, step) in [
        (frames!("zstd"), Step::Zstd),
        (frames!("gzip"), Step::Gzip),
        (frames!("zlib"), Step::Zlib),
        (frames!("bzip2"), Step::Bzip2),
        (frames!("lz4"), Step::Lz4),
        (frames!("hdf5-zstd"), Step::Zstd),
        (frames!("hdf5-deflate"), Step::Zlib),
        (frames!("hdf5-bzip2"), Step::Bzip2),
        (frames!("hdf5-lz4"), Step::Lz4Frames),
        (frames!("hdf5-lzf"), Step::Lzf),
    ] {
        frames.iter().for_each(|frame| check(frame, vec![step.clone()]));
    }
}

#[test]
fn checksums_find_every_change() {
    for (frames, step) in [
        (frames!("crc32c"), Step::Crc32c(ChecksumPlace::End)),
        (frames!("crc32"), Step::Crc32(ChecksumPlace::Start)),
        (frames!("adler32"), Step::Adler32(ChecksumPlace::Start)),
        (frames!("fletcher32"), Step::Fletcher32Numcodecs),
        (frames!("fletcher32"), Step::Fletcher32Hdf5),
        (frames!("hdf5-fletcher32"), Step::Fletcher32Hdf5),
        (frames!("hdf5-fletcher32"), Step::Fletcher32Numcodecs),
    ] {
        for frame in &frames {
            check(frame, vec![step.clone()]);
            let codec = Pipeline::codec(vec![step.clone()]);
            for at in 0..frame.stored.len() {
                let mut stored = frame.stored.to_vec();
                stored[at] ^= 4;
                let len = frame.decoded.len();
                let changed = decode(&codec, &Bytes::from(stored), len, &mut Scratch::default());
                assert!(changed.unwrap_err().to_string().contains("checksum differs"));
            }
        }
    }
}

#[test]
fn shuffled_elements() {
    for frame in frames!("shuffle") {
        check(&frame, vec![Step::Shuffle { element: frame.number(1) }]);
    }
    for frame in frames!("hdf5-shuffle-deflate-fletcher32") {
        let shuffle = Step::Shuffle { element: frame.number(1) };
        check(&frame, vec![Step::Fletcher32Hdf5, Step::Zlib, shuffle]);
    }
    for (frames, compressor) in [
        (frames!("hdf5-bitshuffle-none"), BlockCompressor::None),
        (frames!("hdf5-bitshuffle-lz4"), BlockCompressor::Lz4),
        (frames!("hdf5-bitshuffle-zstd"), BlockCompressor::Zstd),
    ] {
        for frame in frames {
            let (element, block) = (frame.number(1), frame.number(3));
            check(&frame, vec![Step::Bitshuffle { element, block, compressor }]);
        }
    }
}

/// Returns the type that numpy gives this name, and whether it is big-endian.
fn element(name: &str) -> (ElementType, bool) {
    use ElementType::*;
    let all = [
        ("i1", I8),
        ("i2", I16),
        ("i4", I32),
        ("i8", I64),
        ("u1", U8),
        ("u2", U16),
        ("u4", U32),
        ("f2", F16),
        ("f4", F32),
        ("f8", F64),
    ];
    let (_, element) = all.iter().find(|(known, _)| name.ends_with(known)).unwrap();
    (*element, name.starts_with('>'))
}

#[test]
fn numbers_as_numpy_computes_them() {
    for frame in frames!("delta") {
        let ((element, big), (stored, stored_big)) =
            (element(&frame.words[1]), element(&frame.words[2]));
        check(&frame, vec![Step::Delta { element, stored, big, stored_big }]);
    }
    for frame in frames!("fixedscaleoffset") {
        let ((element, big), (stored, stored_big)) =
            (element(&frame.words[1]), element(&frame.words[2]));
        let (offset, scale) = (2.7, 0.3);
        check(
            &frame,
            vec![Step::FixedScaleOffset { offset, scale, element, stored, big, stored_big }],
        );
    }
}

#[test]
fn values_of_any_length() {
    for (frames, step) in
        [(frames!("vlen-utf8"), Step::VlenUtf8), (frames!("vlen-bytes"), Step::VlenBytes)]
    {
        for frame in frames {
            let starts: Vec<u64> = frame
                .words
                .last()
                .unwrap()
                .split(',')
                .filter_map(|start| start.parse().ok())
                .collect();
            let packed = zstd::encode_all(&frame.stored[..], 1).unwrap();
            let cases = [
                (vec![step.clone()], frame.stored.clone()),
                (vec![Step::Zstd, step.clone()], packed.into()),
            ];
            for (steps, stored) in cases {
                let codec = Pipeline::codec(steps);
                // The length is an estimate.
                for len in [0, 3, 1 << 50] {
                    let decoded = decode(&codec, &stored, len, &mut Scratch::default()).unwrap();
                    assert_eq!(decoded.bytes, frame.decoded);
                    assert_eq!(decoded.offsets.as_ref(), Some(&starts));
                }
                damage(&Frame { stored, words: vec![], decoded: frame.decoded.clone() }, &codec);
            }
        }
    }
    let codec = Pipeline::codec(vec![Step::VlenUtf8, Step::Zstd]);
    let error = decode(&codec, &Bytes::new(), 0, &mut Scratch::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

#[test]
fn snappy_and_other_versions_are_named() {
    let header = |version: u8, flags: u8| {
        let lens = [1000_u32, 1000, 40].map(u32::to_le_bytes).concat();
        Bytes::from([&[version, 1, flags, 4], &lens[..], &[0; 24]].concat())
    };
    for (version, flags, name) in
        [(2, 2 << 5, "Snappy"), (5, 1 << 5, "version 5"), (2, 7 << 5, "number 7")]
    {
        let codec = Pipeline::codec(vec![Step::Blosc]);
        let stored = header(version, flags);
        let error = decode(&codec, &stored, 1000, &mut Scratch::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains(name), "{error}");
    }
}

#[test]
fn pipelines_are_named_as_they_store() {
    let named = |steps| Pipeline::codec(steps).to_string();
    let shuffle = Step::Shuffle { element: 4 };
    assert_eq!(
        named(vec![Step::Fletcher32Hdf5, Step::Zlib, shuffle]),
        "shuffle 4, zlib, fletcher32"
    );
    assert!(matches!(Pipeline::codec(vec![Step::Shuffle { element: 1 }]), Codec::Raw));
    assert!(matches!(Pipeline::codec(vec![Step::Zstd]), Codec::Zstd));
    let compressor = BlockCompressor::Lz4;
    let bits = Step::Bitshuffle { element: 2, block: 0, compressor };
    assert_eq!(named(vec![Step::Blosc, bits]), "bitshuffle 2 lz4, blosc");
    let error = decode(
        &Pipeline::codec(vec![Step::Crc32c(ChecksumPlace::End), Step::Zstd]),
        &Bytes::from_static(b"none"),
        9,
        &mut Scratch::default(),
    );
    let text = error.unwrap_err().to_string();
    assert_eq!(text, "corrupt chunk payload at byte 70: crc32c: 0 bytes whose checksum differs");
}

#[test]
fn memory_is_reused_and_stored_bytes_are_viewed() {
    let raw = data("steps", 4, 100_000);
    let packed = crate::format::compress::tests::compress(
        crate::format::compress::Compressor::Gzip,
        &crate::format::shuffle::shuffle_bytes(4, &raw),
    );
    let stored = Bytes::from([&packed[..], &crc32c::crc32c(&packed).to_le_bytes()].concat());
    let codec = Pipeline::codec(vec![
        Step::Crc32c(ChecksumPlace::End),
        Step::Zlib,
        Step::Shuffle { element: 4 },
    ]);
    let scratch = &mut Scratch::default();
    let mut spare = vec![1; 100_000];
    for _ in 0..3 {
        let place = spare.as_ptr();
        let decoded = codec.decode(stored.clone(), 100_000, 0, spare, scratch).unwrap().bytes;
        assert_eq!((decoded.as_ptr(), &decoded[..]), (place, &raw[..]));
        spare = decoded.try_into_mut().unwrap().into();
    }
    // Only a checksum: no copy.
    let codec = Pipeline::codec(vec![Step::Crc32c(ChecksumPlace::End)]);
    let decoded = codec.decode(stored.clone(), packed.len() as u64, 0, vec![], scratch).unwrap();
    assert_eq!((decoded.bytes.as_ptr(), decoded.bytes.len()), (stored.as_ptr(), packed.len()));
    // A checksum after the last step that writes is cut off in place.
    let inner = [&[0; 4][..], &[]].concat();
    let packed = zstd::encode_all(&inner[..], 1).unwrap();
    let codec = Pipeline::codec(vec![Step::Zstd, Step::Crc32(ChecksumPlace::Start)]);
    assert_eq!(codec.decode(packed.into(), 0, 0, vec![], scratch).unwrap().bytes.len(), 0);
}

#[test]
fn bombs_reserve_no_memory_and_honest_zeros_decode() {
    let zeros = vec![0; 30_000_000];
    let zstd = zstd::encode_all(&zeros[..], 19).unwrap();
    let blosc = |len: usize, block: usize, packing: u8, packed: &[u8]| {
        let count = len.div_ceil(block);
        let stored_len = 16 + count * 4 + 4 + packed.len();
        let lens = [len, block, stored_len].map(|len| (len as u32).to_le_bytes()).concat();
        let place = ((16 + count * 4) as u32).to_le_bytes().repeat(count);
        let len = (packed.len() as u32).to_le_bytes();
        Bytes::from([&[2, 1, packing << 5 | 16 | 1, 4], &lens[..], &place, &len, packed].concat())
    };
    let lz4 = lz4_flex::block::compress(&zeros);
    let codec = Pipeline::codec(vec![Step::Blosc]);
    let scratch = &mut Scratch::default();
    // One frame serves all blocks.
    for (packing, packed) in [(4, &zstd), (1, &lz4)] {
        let stored = blosc(60_000_000, 30_000_000, packing, packed);
        let decoded = decode(&codec, &stored, 60_000_000, scratch).unwrap();
        assert!(decoded.bytes.len() == 60_000_000 && decoded.bytes.iter().all(|byte| *byte == 0));
        let stored = blosc(4_000_000_000, 4_000_000_000, packing, packed);
        assert!(decode(&codec, &stored, 4_000_000_000, scratch).is_err());
        assert!(decode(&codec, &stored, 1_000_000, scratch).is_err());
    }
    for step in [Step::Lz4, Step::Lz4Frames, Step::Lzf, Step::Zstd, Step::Gzip, Step::Bzip2] {
        for byte in [0, 1, 0x7F, 0xFF] {
            let stored = Bytes::from(vec![byte; 40]);
            for steps in [vec![step.clone()], vec![step.clone(), Step::Zstd]] {
                let decoded = decode(&Pipeline::codec(steps), &stored, 1 << 50, scratch);
                assert!(decoded.is_err(), "{step:?} {byte}");
            }
        }
    }
}
