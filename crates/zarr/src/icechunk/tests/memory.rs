//! Metadata that decompresses to much more than is stored needs the memory of the session.

use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::bytes::icechunk::VersionChoice;
use crate::icechunk::reader::IcechunkReader;
use gridfusion_cf::conventions::VariableStore;
use gridfusion_core::Error;
use gridfusion_core::io::RemoteStore;
use gridfusion_core::source::{Place, Stores};

/// A session with so many bytes of memory.
#[derive(Debug, Clone, Default)]
struct Memory(Arc<AtomicU64>);

impl Stores for Memory {
    fn store(&self, url: &Url) -> Result<RemoteStore> {
        Err(Error::usage(format!("no store of {url}")))
    }

    fn reserve(&self, bytes: u64) -> Result<Box<dyn Send + Sync>> {
        match bytes <= self.0.load(Ordering::Relaxed) {
            true => Ok(Box::new(())),
            false => Err(Error::usage(format!("no room for {bytes} bytes"))),
        }
    }
}

/// The bytes before the content of an object; the last one tells that it is compressed.
const HEADER: usize = 39;

/// Adds zeros behind the content of each object of a folder, which no reader looks at, and compresses it.
fn pad(folder: &Path, zeros: usize) {
    for object in std::fs::read_dir(folder).unwrap() {
        let path = object.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        let (header, content) = bytes.split_at(HEADER);
        let mut content = match header[HEADER - 1] {
            0 => content.to_vec(),
            _ => zstd::decode_all(content).unwrap(),
        };
        content.resize(content.len() + zeros, 0);
        let packed = zstd::encode_all(&content[..], 3).unwrap();
        std::fs::write(&path, [&header[..HEADER - 1], &[1], &packed].concat()).unwrap();
    }
}

#[tokio::test]
async fn decompressed_metadata_needs_memory() {
    const MIB: u64 = 1 << 20;
    for spec in ["spec1", "spec2"] {
        for folder in ["snapshots", "manifests"] {
            let temporary = tempfile::tempdir().unwrap();
            let copy = temporary.path().join("x.icechunk");
            crate::tests::copy(Path::new(&repository(spec)), &copy);
            pad(&copy.join(folder), 2 << 20);
            let memory = Memory::default();
            let place = Place::new(copy.to_str().unwrap(), Arc::new(memory.clone())).unwrap();
            let open = async |bytes| {
                memory.0.store(bytes, Ordering::Relaxed);
                IcechunkReader::open(&place, VersionChoice::default()).await
            };
            let error = open(MIB).await.unwrap_err().to_string();
            assert!(error.contains("no room for"), "{spec} {folder}: {error}");
            let reader = open(64 * MIB).await.unwrap();
            // Opening reads no manifests of an array that is divided.
            memory.0.store(MIB, Ordering::Relaxed);
            let variables = &reader.hierarchy().variables;
            let split = variables.iter().position(|it| it.path == "split").unwrap();
            let located = reader.locate(split, (0..9).map(|at| vec![at, 0]).collect()).await;
            let error = located.err().map(|it| it.to_string()).unwrap_or_default();
            assert_eq!(error.contains("no room for"), folder == "manifests", "{spec}: {error}");
        }
    }
}
