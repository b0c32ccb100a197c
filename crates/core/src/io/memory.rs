//! An object that is already in memory.

use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;

use super::{ByteSource, check_bounds};
use crate::error::Result;

/// An object in memory; replies share its bytes without a copy.
///
/// ```
/// use gridfusion_core::io::{ByteSource, MemorySource};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let source = MemorySource::new("greeting", &b"hello"[..]);
/// assert_eq!(source.read(&[1..3, 0..1]).await?, [&b"el"[..], b"h"]);
/// # Ok::<(), gridfusion_core::Error>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct MemorySource {
    name: String,
    bytes: Bytes,
}

impl MemorySource {
    /// Returns a source of `bytes`; errors call it `name`.
    pub fn new(name: impl Into<String>, bytes: impl Into<Bytes>) -> Self {
        Self { name: name.into(), bytes: bytes.into() }
    }
}

#[async_trait]
impl ByteSource for MemorySource {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn is_resident(&self) -> bool {
        true
    }

    async fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        check_bounds(self, ranges)?;
        Ok(ranges
            .iter()
            .map(|range| self.bytes.slice(range.start as usize..range.end as usize))
            .collect())
    }
}
