//! The blocks of a file that are known so far, and replay: parsing again until nothing is missing.
//!
//! A parser reads from [`FileBlocks`] as if it held the file. A read of an unknown block fails, and is remembered.
//! The machine requests the missed blocks and parses again:
//!
//! ```text
//!   parse ──▶ missed 0        parse ──▶ missed 3, 9        parse ──▶ nothing missed: the result counts
//!        └─ Read([0..64K]) ─▶      └─ Read([3.., 9..]) ─▶
//! ```
//!
//! A result counts only if nothing was missed, because a parser may have ignored the error.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};

use gridfusion_core::format::Replies;
use gridfusion_core::{Error, Result};

/// Bytes per block.
const BLOCK: u64 = 64 << 10;
/// The most bytes of one read. No piece of metadata comes near it.
const MAX_READ: u64 = 64 << 20;
/// The most bytes that a machine requests of a file that is not larger.
const MAX_FETCHED: u64 = 1 << 30;
/// The most bytes that parsers of one machine may take from blocks, many of them more than once.
const MAX_TAKEN: u64 = 8 << 30;
/// The most blocks that a file keeps for later machines: 32 MiB.
const MAX_KEPT: usize = 512;
/// The most blocks requested for one missed block, after many rounds.
const MAX_AHEAD: u64 = 16;
/// The most missed blocks after which others are requested as well.
const MOST_STRUCTURES: usize = 8;

/// The known blocks of a file, by number.
pub(super) struct FileBlocks {
    size: u64,
    state: Mutex<BlockState>,
}

#[derive(Default)]
struct BlockState {
    known: HashMap<u64, Bytes>,
    missed: BTreeSet<u64>,
    /// The reads that failed since the last request, by position and length.
    failed: HashSet<(u64, u64)>,
    /// The bytes of all of them so far.
    wanted: u64,
    /// The number of reads that failed because their bytes are not known.
    misses: u64,
    taken: u64,
    /// Bytes that count instead of those of the file, by position, from the image of the metadata cache.
    image: Arc<[(u64, Bytes)]>,
}

impl fmt::Debug for FileBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.state().known.len();
        f.debug_struct("FileBlocks").field("size", &self.size).field("known", &known).finish()
    }
}

impl FileBlocks {
    /// Returns the blocks of a file of `size` bytes, none of which is known.
    pub(super) fn new(size: u64) -> Self {
        Self { size, state: Mutex::default() }
    }

    /// Returns blocks of the same file, of which the same are known.
    pub(super) fn fork(&self) -> Self {
        let state = self.state();
        let (known, image) = (state.known.clone(), Arc::clone(&state.image));
        Self {
            size: self.size,
            state: Mutex::new(BlockState { known, image, ..BlockState::default() }),
        }
    }

    /// Keeps the blocks that `other` learned, as far as there is room.
    pub(super) fn keep(&self, other: &Self) {
        let learned = std::mem::take(&mut other.state().known);
        let mut state = self.state();
        for (number, block) in learned {
            if state.known.len() >= MAX_KEPT {
                break;
            }
            state.known.entry(number).or_insert(block);
        }
    }

    /// Forgets blocks until no more remain than a file keeps.
    pub(super) fn forget_most(&self) {
        let mut state = self.state();
        let numbers: Vec<u64> = state.known.keys().copied().collect();
        for number in numbers.into_iter().skip(MAX_KEPT) {
            state.known.remove(&number);
        }
    }

    /// Makes bytes count instead of those at their positions. They are in order, and do not overlap.
    pub(super) fn replace(&self, image: Vec<(u64, Bytes)>) {
        self.state().image = image.into();
    }

    /// Whether bytes count instead of those of the file.
    pub(super) fn has_image(&self) -> bool {
        !self.state().image.is_empty()
    }

    /// Returns the length of the file in bytes.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Returns bytes of the file. Fails if they are not known, and notes their blocks.
    pub(super) fn read(&self, at: u64, len: u64) -> Result<Bytes> {
        let end = at.checked_add(len).filter(|&end| end <= self.size).ok_or_else(|| {
            let size = self.size;
            Error::corrupt("metadata", at, format!("{len} bytes in a file of {size} bytes"))
        })?;
        if len == 0 {
            return Ok(Bytes::new());
        }
        let implausible = || {
            let message = format!("{len} bytes of metadata at byte {at}, more than is plausible");
            Error::corrupt("metadata", at, message)
        };
        if len > MAX_READ {
            return Err(implausible());
        }
        let mut state = self.state();
        let not_yet = || Error::internal("metadata that was not read yet");
        if state.failed.contains(&(at, len)) {
            // All records of a heap may try to read the same block before it is known.
            state.misses += 1;
            return Err(not_yet());
        }
        // Each byte may be a part of several objects, but not of thousands.
        let most = MAX_TAKEN.min(self.size.saturating_mul(64).saturating_add(256 << 20));
        let blocks = at / BLOCK..(end - 1) / BLOCK + 1;
        let missing: Vec<u64> =
            blocks.clone().filter(|block| !state.known.contains_key(block)).collect();
        if !missing.is_empty() {
            state.wanted = state.wanted.saturating_add(len);
            if state.wanted > most {
                return Err(implausible());
            }
            state.failed.insert((at, len));
            state.missed.extend(missing);
            state.misses += 1;
            return Err(not_yet());
        }
        state.taken = state.taken.saturating_add(len);
        if state.taken > most {
            return Err(implausible());
        }
        let mut parts = blocks.filter_map(|number| {
            let block = state.known.get(&number)?;
            let start = number * BLOCK;
            let from = at.saturating_sub(start) as usize;
            let to = (end - start).min(block.len() as u64) as usize;
            (from <= to).then(|| block.slice(from..to))
        });
        let first = parts.next().unwrap_or_default();
        if first.len() as u64 == len {
            return Ok(replaced(first, at, &state.image));
        }
        let mut bytes = BytesMut::with_capacity(len as usize);
        bytes.extend_from_slice(&first);
        parts.for_each(|part| bytes.extend_from_slice(&part));
        if bytes.len() as u64 != len {
            return Err(Error::internal("a block of another length"));
        }
        Ok(replaced(bytes.freeze(), at, &state.image))
    }

    /// Whether a read failed since the last request because its bytes are not known.
    pub(super) fn has_missed(&self) -> bool {
        !self.state().missed.is_empty()
    }

    /// Returns the number of reads that failed so far because their bytes are not known.
    pub(super) fn misses(&self) -> u64 {
        self.state().misses
    }

    fn state(&self) -> MutexGuard<'_, BlockState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, start: u64, bytes: &Bytes) {
        let mut state = self.state();
        for (number, from) in (start / BLOCK..).zip((0..bytes.len()).step_by(BLOCK as usize)) {
            let to = bytes.len().min(from + BLOCK as usize);
            state.known.insert(number, bytes.slice(from..to));
        }
    }
}

/// Returns bytes of the file from position `at` on, with those of the image instead of the file's.
fn replaced(bytes: Bytes, at: u64, image: &[(u64, Bytes)]) -> Bytes {
    let end = at + bytes.len() as u64;
    let first = image.partition_point(|(start, piece)| start + piece.len() as u64 <= at);
    let mut pieces = image.iter().skip(first).take_while(|(start, _)| *start < end).peekable();
    if pieces.peek().is_none() {
        return bytes;
    }
    let mut bytes = BytesMut::from(bytes);
    for (start, piece) in pieces {
        let from = at.saturating_sub(*start) as usize;
        let target = bytes.iter_mut().skip(start.saturating_sub(at) as usize);
        target.zip(piece.iter().skip(from)).for_each(|(byte, new)| *byte = *new);
    }
    bytes.freeze()
}

/// The state that a machine keeps from round to round.
#[derive(Debug)]
pub(super) struct Replay {
    blocks: Arc<FileBlocks>,
    asked: Vec<Range<u64>>,
    fetched: u64,
    rounds: u32,
}

impl Replay {
    pub(super) fn new(blocks: FileBlocks) -> Self {
        Self { blocks: Arc::new(blocks), asked: vec![], fetched: 0, rounds: 0 }
    }

    /// Returns the blocks, to parse from.
    pub(super) fn blocks(&self) -> &Arc<FileBlocks> {
        &self.blocks
    }

    /// Returns the number of bytes that were requested.
    pub(super) fn fetched(&self) -> u64 {
        self.fetched
    }

    /// Adds the bytes that were requested.
    pub(super) fn supply(&mut self, replies: Vec<Bytes>) -> Result<()> {
        for (range, bytes) in self.asked.drain(..).zip(replies) {
            if bytes.len() as u64 != range.end - range.start {
                return Err(Error::internal("a reply of another length"));
            }
            self.blocks.add(range.start, &bytes);
        }
        Ok(())
    }

    /// As [`Replay::supply`], of a machine that requests nothing else.
    pub(super) fn supply_replies(&mut self, replies: Replies) -> Result<()> {
        self.supply(replies.into_bytes())
    }

    /// Returns the ranges of the file to request next; none if nothing was missed. After a few rounds, blocks that
    /// follow are requested as well, because a structure of many parts lies there.
    pub(super) fn request(&mut self) -> Result<Vec<Range<u64>>> {
        let mut state = self.blocks.state();
        let missed = std::mem::take(&mut state.missed);
        state.failed.clear();
        let ahead = match missed.len() {
            // Scattered blocks belong to many small structures.
            0..=MOST_STRUCTURES => (1 << self.rounds.saturating_sub(2).min(8)).min(MAX_AHEAD),
            _ => 1,
        };
        let last = self.blocks.size.saturating_sub(1) / BLOCK;
        let mut wanted = BTreeSet::new();
        for block in missed {
            let run = block..=last.min(block + ahead - 1);
            wanted.extend(run.take_while(|block| !state.known.contains_key(block)));
        }
        drop(state);
        for block in wanted {
            let range = block * BLOCK..((block + 1) * BLOCK).min(self.blocks.size);
            self.fetched = self.fetched.saturating_add(range.end - range.start);
            match self.asked.last_mut() {
                Some(before) if before.end == range.start => before.end = range.end,
                _ => self.asked.push(range),
            }
        }
        // Small pieces between large datasets may lie in nearly all blocks of a file.
        let most = MAX_FETCHED.max(self.blocks.size.min(16 * MAX_FETCHED));
        if self.fetched > most {
            return Err(Error::unsupported(format!(
                "the metadata of the HDF5 file is scattered over more than {} MiB; `h5repack` may shrink it",
                most >> 20
            )));
        }
        self.rounds = self.rounds.saturating_add(1);
        Ok(self.asked.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gridfusion_core::ErrorKind;

    fn bytes_of(range: &Range<u64>) -> Bytes {
        range.clone().map(|at| (at % 251) as u8).collect::<Vec<u8>>().into()
    }

    #[test]
    fn reads_succeed_once_their_blocks_were_supplied() {
        let size = 10 * BLOCK + 7;
        let mut replay = Replay::new(FileBlocks::new(size));
        let blocks = Arc::clone(replay.blocks());
        for range in [0..9, BLOCK - 1..BLOCK + 1, 5 * BLOCK..7 * BLOCK + 1, size - 7..size, 3..3] {
            let read = || blocks.read(range.start, range.end - range.start);
            let mut rounds = 0;
            let bytes = loop {
                let read = read();
                if !blocks.has_missed() {
                    break read.unwrap();
                }
                rounds += 1;
                let replies = replay.request().unwrap().iter().map(bytes_of).collect();
                replay.supply(replies).unwrap();
            };
            assert!(rounds <= 1, "{range:?}");
            assert_eq!(bytes, bytes_of(&range));
        }
        assert!(replay.request().unwrap().is_empty());
        assert!(blocks.read(size - 3, 4).is_err() && blocks.read(u64::MAX, 4).is_err());
        assert!(!blocks.has_missed());
    }

    #[test]
    fn only_bytes_that_are_known_count_as_taken() {
        let mut replay = Replay::new(FileBlocks::new(BLOCK));
        let blocks = Arc::clone(replay.blocks());
        let most = (64 * BLOCK + (256 << 20)) / BLOCK;
        for _ in 0..2 * most {
            assert_eq!(blocks.read(0, BLOCK).unwrap_err().kind(), ErrorKind::Internal);
        }
        let replies = replay.request().unwrap().iter().map(bytes_of).collect();
        replay.supply(replies).unwrap();
        assert!((0..most).all(|_| blocks.read(0, BLOCK).is_ok()));
        assert_eq!(blocks.read(0, BLOCK).unwrap_err().kind(), ErrorKind::Corrupt);
    }

    #[test]
    fn different_reads_of_unknown_bytes_are_limited() {
        let replay = Replay::new(FileBlocks::new(BLOCK));
        let most = (64 * BLOCK + (256 << 20)) / BLOCK;
        let read = |at: u64| replay.blocks().read(at, BLOCK - at).unwrap_err().kind();
        assert!((0..most).all(|at| read(at) == ErrorKind::Internal));
        let kinds: Vec<ErrorKind> = (most..3 * most).map(read).collect();
        assert_eq!(kinds.last(), Some(&ErrorKind::Corrupt));
    }

    #[test]
    fn neighbours_are_requested_together() {
        let mut replay = Replay::new(FileBlocks::new(100 * BLOCK));
        for block in [3, 4, 9] {
            let _ = replay.blocks().read(block * BLOCK, 1);
        }
        assert_eq!(replay.request().unwrap(), [3 * BLOCK..5 * BLOCK, 9 * BLOCK..10 * BLOCK]);
    }

    #[test]
    fn many_rounds_read_ahead() {
        let mut replay = Replay::new(FileBlocks::new(1000 * BLOCK));
        let mut rounds = 0;
        while let Some(block) = (0..1000).find(|at| replay.blocks().read(at * BLOCK, 1).is_err()) {
            assert!(replay.blocks().has_missed(), "{block}");
            let replies = replay.request().unwrap().iter().map(bytes_of).collect();
            replay.supply(replies).unwrap();
            rounds += 1;
        }
        assert!(rounds < 80, "{rounds}");
    }

    #[test]
    fn only_some_blocks_are_kept() {
        let file = FileBlocks::new(2000 * BLOCK);
        let fork = file.fork();
        fork.add(0, &bytes_of(&(0..1000 * BLOCK)));
        file.keep(&fork);
        assert_eq!(file.state().known.len(), MAX_KEPT);
        fork.add(0, &bytes_of(&(0..1000 * BLOCK)));
        fork.forget_most();
        assert_eq!(fork.state().known.len(), MAX_KEPT);
    }
}
