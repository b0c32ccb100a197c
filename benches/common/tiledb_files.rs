//! The arrays of TileDB-Py and their compressed tiles, for the benches that compare with both.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs a script of `benches`, which makes the arrays that `directory` lacks; returns its output. `None` if
/// TileDB-Py is not installed.
pub(crate) fn peer(script: &str, directory: &Path, arguments: &[&str]) -> Option<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches").join(script);
    let output = Command::new("python3").arg(script).arg(directory).args(arguments).output();
    match output {
        Ok(output) if output.status.success() => Some(String::from_utf8(output.stdout).unwrap()),
        Ok(output) if output.status.code() == Some(3) => None,
        Ok(output) => panic!("{}", String::from_utf8_lossy(&output.stderr)),
        Err(_) => None,
    }
}

/// Returns the path of a data file of the array's only fragment.
pub(crate) fn data_file(array: &Path, name: &str) -> PathBuf {
    let mut fragments = std::fs::read_dir(array.join("__fragments")).unwrap();
    fragments.next().unwrap().unwrap().path().join(name)
}

/// The zstd frames of data files whose last filter is zstd, a list per thread.
pub(crate) struct Frames {
    halves: [Vec<Frame>; 2],
}

/// One compressed part of a chunk.
struct Frame {
    bytes: Vec<u8>,
    raw_len: usize,
}

fn u32_at(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

impl Frames {
    /// Reads the frames of all tiles of data files, and gives each thread half of their bytes.
    pub(crate) fn new(files: &[PathBuf]) -> Self {
        let (mut halves, mut lens) = ([vec![], vec![]], [0, 0]);
        for file in files {
            for frame in frames(&std::fs::read(file).unwrap()) {
                let lighter = usize::from(lens[1] < lens[0]);
                lens[lighter] += frame.raw_len;
                halves[lighter].push(frame);
            }
        }
        Self { halves }
    }

    /// Decompresses everything, on two threads. Passes each part to `then`, with a buffer of the thread.
    pub(crate) fn decode(&self, then: impl Fn(&[u8], &mut Vec<u8>) + Sync) {
        let then = &then;
        std::thread::scope(|scope| {
            for half in &self.halves {
                scope.spawn(move || {
                    let mut decompressor = zstd::bulk::Decompressor::new().unwrap();
                    let (mut raw, mut buffer) = (Vec::<u8>::new(), Vec::<u8>::new());
                    for frame in half {
                        raw.clear();
                        raw.reserve(frame.raw_len);
                        decompressor.decompress_to_buffer(&frame.bytes, &mut raw).unwrap();
                        then(&raw, &mut buffer);
                        black_box((&raw, &buffer));
                    }
                });
            }
        });
    }
}

/// Returns the frames of a data file. A tile has the number of its chunks, then per chunk lengths, metadata and
/// data.
fn frames(bytes: &[u8]) -> Vec<Frame> {
    let (mut frames, mut at) = (vec![], 0);
    while at < bytes.len() {
        let chunks = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        at += 8;
        for _ in 0..chunks {
            let (filtered, metadata) = (u32_at(bytes, at + 4), u32_at(bytes, at + 8));
            let header = at + 12;
            let (meta_parts, parts) = (u32_at(bytes, header), u32_at(bytes, header + 4));
            let mut data = header + metadata;
            for part in 0..meta_parts + parts {
                let lens = header + 8 + 8 * part;
                let (raw_len, len) = (u32_at(bytes, lens), u32_at(bytes, lens + 4));
                if part >= meta_parts {
                    frames.push(Frame { bytes: bytes[data..data + len].to_vec(), raw_len });
                }
                data += len;
            }
            at = header + metadata + filtered;
        }
    }
    frames
}
