//! Opening a file: a machine that reads its head and its tail, and rarely more.
//!
//! ```text
//!  Start ──▶ Ends (head and tail, 64 KiB each) ──▶ Directory and index header ──▶ Footer ──▶ Spill ──▶ Done
//! ```
//!
//! The machine does not request bytes that an earlier reply holds, so a file with a modest directory and
//! footer opens with one request. If the head of a remote file is known beforehand, the first requests are for
//! its tail and for its probable labels.
//!
//! These phases have no states. After every reply, the parser starts at the beginning. Where it lacks bytes,
//! it stops with [`Pause::Need`], and these bytes are the next request.
//!
//! In an object store, one request fetches the first 128 KiB of the file and its length. It is the only request if the
//! file is not longer. Otherwise, these bytes usually have the chunk index, which shows where one-dimensional datasets
//! lie (`likely_labels`). The second round trip then fetches the tail and these datasets.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;

use bytes::Bytes;

use super::directory;
use super::file::TetFile;
use super::footer::{TAIL_LEN, Tail};
use super::index::{HEADER_LEN, Index};
use super::likely_labels::likely_labels;
use super::metadata::{HistoryEvent, Metadata};
use super::superblock::{SUPERBLOCK_LEN, Superblock};
use gridfusion_core::format::{Foreign, Machine, Replies, Step};
use gridfusion_core::{Error, Result};

/// Bytes read from either end of the file at first. Writers limit the footer's JSON to the same length, and
/// few come near it.
const GUESS_LEN: u64 = 64 * 1024;

/// A machine that opens a `.tet` file of a known length.
///
/// ```
/// use bytes::Bytes;
/// use gridfusion_core::format::{Machine, Replies, Step};
/// use gridfusion_tet::bytes::OpenFile;
///
/// // The smallest file: a superblock that declares no datasets.
/// let mut file = b"TETR".to_vec();
/// file.extend([1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
/// let file = Bytes::from(file);
///
/// let mut open = OpenFile::new(file.len() as u64);
/// let mut replies = Replies::Start;
/// let tet = loop {
///     match open.step(replies)? {
///         Step::Read(wanted) => {
///             let bytes = |r: std::ops::Range<u64>| file.slice(r.start as usize..r.end as usize);
///             replies = Replies::Bytes(wanted.into_iter().map(|at| bytes(at.range.within(file.len() as u64))).collect());
///         }
///         Step::Done(tet) => break tet,
///         _ => unreachable!("a .tet file is one object, which is there"),
///     }
/// };
/// assert!(tet.datasets().is_empty());
/// # Ok::<(), gridfusion_core::Error>(())
/// ```
#[derive(Debug)]
pub struct OpenFile {
    file_len: u64,
    /// The start and the bytes of each range received so far.
    known: Vec<(u64, Bytes)>,
    /// The ranges requested last.
    asked: Vec<Range<u64>>,
}

impl OpenFile {
    /// Starts opening a file of `file_len` bytes.
    pub fn new(file_len: u64) -> Self {
        Self { file_len, known: vec![], asked: vec![] }
    }

    /// Starts opening a file of `file_len` bytes, of which the first are in `head`. Reads the tail and, together with
    /// it, bytes that are probably labels.
    pub fn with_head(file_len: u64, head: Bytes) -> Self {
        Self { file_len, known: vec![(0, head)], asked: vec![] }
    }
}

impl Machine for OpenFile {
    type Output = TetFile;

    fn subject(&self) -> &'static str {
        "header and footer"
    }

    fn step(&mut self, replies: Replies) -> Result<Step<TetFile>> {
        let is_first = matches!(replies, Replies::Start);
        let replies = replies.into_bytes();
        self.known.extend(self.asked.drain(..).map(|range| range.start).zip(replies));
        if is_first {
            return self.read_ends();
        }
        // Parsing starts over with each reply: it is cheap, and there are few replies.
        match self.parse() {
            Ok(file) => Ok(Step::Done(file)),
            Err(Pause::Need(range)) => {
                self.asked = vec![range];
                Ok(Step::read(self.asked.iter().cloned()))
            }
            Err(Pause::Fail(error)) => Err(error),
        }
    }
}

/// The reason why parsing stopped: bytes are missing, or wrong.
enum Pause {
    Need(Range<u64>),
    Fail(Error),
}

impl From<Error> for Pause {
    fn from(error: Error) -> Self {
        Self::Fail(error)
    }
}

/// The parts of a [`TetFile`] that come from its footer.
#[derive(Default)]
struct FooterParts {
    metadata: Metadata,
    history: Vec<HistoryEvent>,
    payload_end: u64,
    zone_maps_at: Option<Range<u64>>,
    tail: Option<Tail>,
    warnings: Vec<String>,
}

impl OpenFile {
    /// Requests those ends of the file that are unknown; one range if they meet.
    fn read_ends(&mut self) -> Result<Step<TetFile>> {
        if self.file_len < SUPERBLOCK_LEN {
            let message = format!(
                "the file has {} bytes; a .tet file has at least {SUPERBLOCK_LEN}",
                self.file_len
            );
            return Err(Error::corrupt("superblock", 0, message));
        }
        let known = self.known.first().map_or(0, |(_, head)| head.len() as u64);
        let head = known..self.file_len.min(GUESS_LEN);
        let head_end = head.end.max(known);
        let tail = self.file_len.saturating_sub(GUESS_LEN).max(head_end)..self.file_len;
        self.asked = [head, tail].into_iter().filter(|range| !range.is_empty()).collect();
        if !self.asked.is_empty() {
            self.asked.extend(self.likely_labels().unwrap_or_default());
        }
        Ok(Step::read(self.asked.iter().cloned()))
    }

    /// Returns the bytes beyond the known head that are probably labels; `None` if the head has no directory.
    fn likely_labels(&self) -> Option<Vec<Range<u64>>> {
        let (_, head) = self.known.first()?;
        let superblock = Superblock::parse(&self.bytes(0..SUPERBLOCK_LEN).ok()?).ok()?;
        let (datasets, index) = self.directory_and_index(&superblock).ok()?;
        let labels = likely_labels(head, self.file_len, &datasets, &index).into_iter();
        Some(labels.filter(|range| range.end > head.len() as u64).collect())
    }

    /// Returns the bytes of `range`, which must lie in the file, or a request for them.
    fn bytes(&self, range: Range<u64>) -> Result<Bytes, Pause> {
        let held = self.known.iter().find_map(|(start, bytes)| {
            let from = usize::try_from(range.start.checked_sub(*start)?).ok()?;
            let to = usize::try_from(range.end - start).ok()?;
            (to <= bytes.len()).then(|| bytes.slice(from..to))
        });
        held.ok_or(Pause::Need(range))
    }

    /// Parses the file from the bytes known so far.
    fn parse(&self) -> Result<TetFile, Pause> {
        let superblock = match Superblock::parse(&self.bytes(0..SUPERBLOCK_LEN)?) {
            Ok(superblock) => superblock,
            Err(error) => return Err(self.of_another_format().unwrap_or(error).into()),
        };
        let (datasets, index) = self.directory_and_index(&superblock)?;
        let mut footer = self.footer(&superblock)?;
        let by_name = ids_by_name(&datasets, &mut footer.warnings);
        let mut file = TetFile {
            datasets,
            by_name,
            listed_coordinates: Default::default(),
            metadata: footer.metadata,
            history: footer.history,
            index,
            payload_end: footer.payload_end,
            zone_maps_at: footer.zone_maps_at,
            tail: footer.tail,
            warnings: footer.warnings,
            row_map: Default::default(),
        };
        file.listed_coordinates = file.find_listed_coordinates();
        Ok(file)
    }

    /// Returns the error that names the format of a foreign file, if its first bytes show one.
    fn of_another_format(&self) -> Option<Error> {
        let (_, head) = self.known.first()?;
        Foreign::from_bytes(head).map(Foreign::error)
    }

    /// Parses the directory and the header of the chunk index, which follows it directly.
    fn directory_and_index(
        &self,
        superblock: &Superblock,
    ) -> Result<(Vec<directory::Dataset>, Index), Pause> {
        if superblock.dataset_count == 0 {
            return Ok(Default::default());
        }
        let index = superblock.index_range(self.file_len)?;
        let records_at = directory::RECORDS_OFFSET;
        if index.start < records_at || index.end - index.start < HEADER_LEN {
            let message = format!(
                "a chunk index at bytes {index:?}, which leaves no room for datasets or for its header"
            );
            return Err(Error::corrupt("superblock", 16, message).into());
        }
        let len = self.bytes(SUPERBLOCK_LEN..records_at)?;
        let records_len = u64::from_le_bytes(
            (&*len).try_into().map_err(|_| Error::internal("a slice of the wrong length"))?,
        );
        if directory::index_offset(records_len) != Some(index.start) {
            let message = format!(
                "{records_len} bytes of dataset records, but the chunk index is at byte {}",
                index.start
            );
            return Err(Error::corrupt("dataset directory", SUPERBLOCK_LEN, message).into());
        }
        // Directory and index header are neighbours, so they are one request.
        let header_end = index.start + HEADER_LEN;
        let bytes = self.bytes(records_at..header_end)?;
        let records = bytes.slice(..records_len as usize);
        let header = bytes.slice((index.start - records_at) as usize..);
        let datasets = directory::parse(&records, superblock.dataset_count)?;
        let index = Index::parse(&header, &index, &datasets)?;
        Ok((datasets, index))
    }

    /// Parses the footer, from its tail backwards. Without a footer, payloads end at the end of the file.
    fn footer(&self, superblock: &Superblock) -> Result<FooterParts, Pause> {
        if !superblock.has_footer {
            return Ok(FooterParts { payload_end: self.file_len, ..Default::default() });
        }
        let tail =
            Tail::parse(&self.bytes(self.file_len - TAIL_LEN..self.file_len)?, self.file_len)?;
        let json = tail.parse_json(&self.bytes(tail.json.clone())?)?;

        let mut parts = FooterParts { payload_end: tail.json.start, ..Default::default() };
        let [zones, secondary, metadata] = tail.spills(&json);
        for (what, spill) in [("zone maps", zones), ("secondary index", secondary)] {
            let Some(spill) = spill else { continue };
            let Some(range) = spill.range(tail.json.start) else {
                parts.warnings.push(format!(
                    "the footer places {what} at bytes {}+{}, outside the file; ignored",
                    spill.offset, spill.len
                ));
                continue;
            };
            // Spills are stored between the payloads and the JSON, whether they are used or not.
            parts.payload_end = parts.payload_end.saturating_sub(spill.len);
            if what == "zone maps" {
                parts.zone_maps_at = Some(range);
            }
        }
        parts.metadata = match metadata {
            Some(spill) => {
                let range = spill.range(tail.json.start).ok_or_else(|| {
                    let message = format!(
                        "metadata at bytes {}+{}, outside the file",
                        spill.offset, spill.len
                    );
                    Error::corrupt("footer", tail.json.start, message)
                })?;
                parts.payload_end = parts.payload_end.saturating_sub(spill.len);
                self.spilled_metadata(range)?
            }
            None => json.metadata.unwrap_or_default(),
        };
        parts.history = json.history;
        parts.tail = Some(tail);
        Ok(parts)
    }

    fn spilled_metadata(&self, range: Range<u64>) -> Result<Metadata, Pause> {
        let bytes = self.bytes(range.clone())?;
        let metadata = serde_json::from_slice(&bytes).map_err(|error| {
            let message = format!("not the JSON expected here ({error})");
            Error::corrupt("spilled metadata", range.start, message)
        })?;
        Ok(metadata)
    }
}

/// Returns the id of each name; the first id of a repeated name, with a warning.
fn ids_by_name(
    datasets: &[directory::Dataset],
    warnings: &mut Vec<String>,
) -> HashMap<String, usize> {
    let mut by_name = HashMap::with_capacity(datasets.len());
    for (id, dataset) in datasets.iter().enumerate() {
        match by_name.entry(dataset.name().to_owned()) {
            Entry::Vacant(place) => _ = place.insert(id),
            Entry::Occupied(place) => {
                warnings.push(format!("two datasets named \"{}\"; the first is used", place.key()));
            }
        }
    }
    by_name
}
