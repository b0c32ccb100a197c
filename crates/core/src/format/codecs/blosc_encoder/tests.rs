//! Chunks of all settings, as the decoder and numcodecs read them.

use std::io::Write;
use std::process::Command;

use bytes::Bytes;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::*;
use crate::ErrorKind;
use crate::format::Scratch;
use crate::format::codecs::{Pipeline, Step};

const COMPRESSORS: [BloscCompressor; 3] =
    [BloscCompressor::Zstd, BloscCompressor::Lz4, BloscCompressor::Zlib];
const SHUFFLES: [BloscShuffle; 3] = [BloscShuffle::None, BloscShuffle::Bytes, BloscShuffle::Bits];

/// Bytes of a kind: noise, numbers that ascend slowly, or both side by side.
fn data(rng: &mut SmallRng, kind: usize, element: u8, len: usize) -> Vec<u8> {
    let slow = |at: usize| {
        let number = (at / usize::from(element) / 9) as u64;
        number.to_le_bytes().get(at % usize::from(element)).copied().unwrap_or(0)
    };
    match kind {
        0 => (0..len).map(|_| rng.random()).collect(),
        1 => (0..len).map(slow).collect(),
        _ => (0..len).map(|at| if at / 5000 % 2 == 0 { slow(at) } else { rng.random() }).collect(),
    }
}

/// Calls a function with chunks of all settings, and lengths around those of blocks.
fn each(mut visit: impl FnMut(&str, &BloscEncoder, &[u8])) {
    let mut rng = SmallRng::seed_from_u64(11);
    let small = [0, 1, 7, 8, 15, 16, 64, 127, 128, 129, 1000, 1023, 1024, 1025];
    let large = [32_767, 32_768, 65_535, 65_536, 65_537, 131_080, 262_144, 300_000];
    for (round, len) in small.into_iter().chain(large).chain([1_048_577, 2_100_000]).enumerate() {
        for (number, compressor) in COMPRESSORS.into_iter().enumerate() {
            let few = [1, 2, 4, 8];
            let many = [1, 2, 3, 4, 8, 12, 16, 17, 255];
            for element in many.into_iter().filter(|it| len < 70_000 || few.contains(it)) {
                let shuffle = SHUFFLES[rng.random_range(0..3)];
                // The greatest level of zstd takes long.
                let levels: &[u8] = if len > 70_000 { &[1, 3, 5] } else { &[0, 1, 2, 5, 8, 9] };
                let level = levels[rng.random_range(0..levels.len())];
                let encoder = BloscEncoder::try_new(compressor, level, shuffle, element).unwrap();
                let own = [0, 0, 1, 777, 4096, 1 << 20][rng.random_range(0..6)];
                let encoder = encoder.with_block_len(own);
                let bytes =
                    data(&mut rng, (round + number + usize::from(element)) % 3, element, len);
                visit(&format!("{encoder:?} {len}"), &encoder, &bytes);
            }
        }
    }
}

#[test]
fn chunks_of_all_settings_are_decoded() {
    let codec = Pipeline::codec(vec![Step::Blosc]);
    let scratch = &mut Scratch::default();
    each(|name, encoder, bytes| {
        let stored = encoder.encode(bytes).unwrap();
        assert!(stored.len() <= HEADER_LEN + bytes.len(), "{name}");
        let decoded = codec.decode(Bytes::from(stored), bytes.len() as u64, 70, vec![], scratch);
        assert!(decoded.unwrap_or_else(|error| panic!("{name}: {error}")).bytes == bytes, "{name}");
    });
}

#[test]
fn shuffled_numbers_shrink_and_noise_does_not() {
    let numbers: Vec<u8> = (0..100_000_u32).flat_map(|at| (at * 3).to_le_bytes()).collect();
    for compressor in COMPRESSORS {
        let encode = |shuffle, bytes: &[u8]| {
            let encoder = BloscEncoder::try_new(compressor, 5, shuffle, 4).unwrap();
            encoder.encode(bytes).unwrap()
        };
        let stored = encode(BloscShuffle::Bytes, &numbers);
        assert!(stored.len() < numbers.len() / 3, "{compressor:?} {}", stored.len());
        let noise = data(&mut SmallRng::seed_from_u64(1), 0, 4, 400_000);
        let stored = encode(BloscShuffle::Bits, &noise);
        assert_eq!(stored.len(), HEADER_LEN + noise.len());
        assert_eq!(stored[2] & 0b10, 0b10, "stored as it is");
    }
}

#[test]
fn settings_that_do_not_exist_are_refused() {
    for (level, element, message) in [(10, 4, "blosc has no level 10"), (5, 0, "elements of 0")] {
        let error =
            BloscEncoder::try_new(BloscCompressor::Zstd, level, BloscShuffle::None, element);
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.to_string().contains(message), "{error}");
    }
}

/// Runs the Python that checks chunks in a folder.
fn python(folder: &std::path::Path) -> String {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/codecs/read_blosc.py");
    let python = std::env::var("GRIDFUSION_READERS_PYTHON").unwrap();
    let outcome = Command::new(python).arg(script).arg(folder).output().unwrap();
    let [text, errors] = [&outcome.stdout, &outcome.stderr].map(|it| String::from_utf8_lossy(it));
    assert!(outcome.status.success(), "{text}{errors}");
    text.into_owned()
}

#[test]
#[ignore = "needs GRIDFUSION_READERS_PYTHON: a Python with numcodecs"]
fn numcodecs_decodes_chunks_of_all_settings() {
    let folder = tempfile::tempdir().unwrap();
    let mut file = std::fs::File::create(folder.path().join("chunks.bin")).unwrap();
    let mut count = 0;
    each(|_, encoder, bytes| {
        let stored = encoder.encode(bytes).unwrap();
        for part in [&stored[..], bytes] {
            file.write_all(&(part.len() as u32).to_le_bytes()).unwrap();
            file.write_all(part).unwrap();
        }
        count += 1;
    });
    drop(file);
    assert!(python(folder.path()).contains(&format!("{count} chunks")));
}
