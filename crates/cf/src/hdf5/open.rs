//! Opening a file: a machine that reads the superblock and the headers of all objects.
//!
//! ```text
//!   superblock ──▶ root group ──▶ its links ──▶ headers of all of them ──▶ links of groups ──▶ … ──▶ Hierarchy
//! ```
//!
//! Each round parses the objects that could not be parsed before, and requests the blocks that they lack. It
//! keeps all that it parsed.

use std::collections::HashSet;

use super::assemble;
use super::blocks::{FileBlocks, Replay};
use super::file::Hdf5File;
use super::link::Target;
use super::metadata_memory::MetadataMemory;
use super::parse::{Object, Parser};
use super::parsed_objects::{ParsedObjects, Whole};
use gridfusion_core::format::{Machine, Replies, Step};
use gridfusion_core::{Error, Result};

/// The most objects of a file.
const MAX_OBJECTS: usize = 1 << 17;

/// The most bytes of metadata in memory beyond a few for each byte that was read, if nothing else is set.
const MAX_KEPT: u64 = 64 << 20;

/// A machine that opens a NetCDF-4 or HDF5 file of a known length.
#[derive(Debug)]
pub struct OpenHdf5 {
    replay: Replay,
    objects: Objects,
}

#[derive(Debug)]
struct Objects {
    parsed: ParsedObjects,
    kept: MetadataMemory,
    /// Addresses that were found in links, whether parsed or not.
    known: HashSet<u64>,
    pending: Vec<u64>,
}

impl OpenHdf5 {
    /// Starts opening a file of `size` bytes, whose name is empty in requests.
    pub fn new(size: u64) -> Self {
        Self { replay: Replay::new(FileBlocks::new(size)), objects: Objects::new(MAX_KEPT) }
    }

    /// Sets the most bytes that metadata may take in memory, beyond a few for each byte that it has in the file. Links,
    /// heaps and shared messages let a small file name one object many times.
    #[must_use]
    pub fn with_metadata_limit(self, most: u64) -> Self {
        Self { objects: Objects::new(most), ..self }
    }
}

impl Machine for OpenHdf5 {
    type Output = Hdf5File;

    fn subject(&self) -> &'static str {
        "HDF5 metadata"
    }

    fn step(&mut self, replies: Replies) -> Result<Step<Hdf5File>> {
        self.replay.supply_replies(replies)?;
        let parsed = self.parse();
        self.objects.kept.check(self.replay.fetched())?;
        let request = self.replay.request()?;
        if !request.is_empty() {
            return Ok(Step::read(request));
        }
        let (whole, blocks) = (parsed?, self.replay.blocks().fork());
        blocks.forget_most();
        let parsed = std::mem::take(&mut self.objects.parsed);
        let (kept, read) = (self.objects.kept, self.replay.fetched());
        assemble::file(whole, parsed, blocks, (kept, read)).map(Step::Done)
    }
}

impl OpenHdf5 {
    /// Parses what the known blocks allow.
    fn parse(&mut self) -> Result<Whole> {
        let blocks = self.replay.blocks();
        let mut parser = Parser::new(blocks)?;
        let root = parser.root();
        self.objects.found(root)?;
        self.objects.parse(&mut parser, || blocks.misses(), self.replay.fetched())?;
        let (superblock_version, widths) = (parser.superblock_version(), parser.widths());
        Ok(Whole { root, superblock_version, widths })
    }
}

impl Objects {
    fn new(most: u64) -> Self {
        let (parsed, kept) = (ParsedObjects::new(), MetadataMemory::new(most));
        Self { parsed, kept, known: HashSet::new(), pending: vec![] }
    }

    fn found(&mut self, address: u64) -> Result<()> {
        if self.known.insert(address) {
            self.pending.push(address);
        }
        if self.known.len() > MAX_OBJECTS {
            return Err(Error::unsupported(format!(
                "the HDF5 file has more than {MAX_OBJECTS} groups and datasets"
            )));
        }
        Ok(())
    }

    /// Parses pending objects, and those that they refer to, as far as no byte of them is missing.
    fn parse(&mut self, parser: &mut Parser, misses: impl Fn() -> u64, read: u64) -> Result<()> {
        let (mut waiting, at_first) = (vec![], misses());
        while let Some(address) = self.pending.pop() {
            let before = misses();
            let object = parser.object(address);
            // The parser remembers failures, so an error may be the consequence of an earlier miss.
            let may_be_late = object.is_err() && before > at_first;
            if misses() > before || may_be_late {
                waiting.push(address);
                continue;
            }
            self.kept.add_object(&object);
            self.kept.check(read)?;
            if let Ok(Object::Group(group)) = &object {
                let targets = group.links.iter().filter_map(|link| match link.target {
                    Target::Object(address) => Some(address),
                    Target::Path(_) | Target::Unreadable(_) => None,
                });
                targets.collect::<Vec<_>>().into_iter().try_for_each(|at| self.found(at))?;
            }
            self.parsed.insert(address, object);
        }
        self.pending = waiting;
        Ok(())
    }
}
