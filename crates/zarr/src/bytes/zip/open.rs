//! The machine that reads the directory of an archive.

use std::sync::Arc;

use super::REGION;
use super::directory::ZipDirectory;
use super::end::{self, EndRecord};
use gridfusion_core::format::{Machine, Replies, Step};
use gridfusion_core::{Error, Result};

/// The last bytes of an archive that are read at once. They have the directory of a few thousand members.
const TAIL: u64 = 1 << 18;
const _: () = assert!(TAIL >= end::MOST);

/// A machine that reads the directory of an archive, in one or two steps.
#[derive(Debug)]
pub struct OpenZip {
    size: u64,
    /// The most bytes of the directory.
    most: u64,
    end: Option<EndRecord>,
}

impl OpenZip {
    /// Makes a machine for an archive of `size` bytes, whose directory may have `most` bytes.
    pub fn new(size: u64, most: u64) -> Self {
        Self { size, most, end: None }
    }

    fn tail(&self) -> u64 {
        self.size.saturating_sub(TAIL)
    }
}

impl Machine for OpenZip {
    type Output = Arc<ZipDirectory>;

    fn subject(&self) -> &'static str {
        REGION
    }

    fn step(&mut self, replies: Replies) -> Result<Step<Self::Output>> {
        let Some(bytes) = replies.into_bytes().pop() else {
            return Ok(Step::read(std::iter::once(self.tail()..self.size)));
        };
        if let Some(end) = self.end.take() {
            return Ok(Step::Done(Arc::new(ZipDirectory::parse(&bytes, &end)?)));
        }
        let end = EndRecord::find(&bytes, self.tail())?;
        let len = end.directory.end - end.directory.start;
        if len > self.most {
            let most = self.most;
            return Err(Error::unsupported(format!(
                "an archive with a directory of {len} bytes; the option 'metadata_limit' allows {most}"
            )));
        }
        match end.directory.start.checked_sub(self.tail()) {
            Some(start) => {
                let directory = &bytes[start as usize..(start + len) as usize];
                Ok(Step::Done(Arc::new(ZipDirectory::parse(directory, &end)?)))
            }
            None => {
                let directory = end.directory.clone();
                self.end = Some(end);
                Ok(Step::read([directory]))
            }
        }
    }
}
