//! Finds faults of a footer that can still be read: misplaced spills, and exceeded limits of the format that
//! readers do not enforce.

use std::ops::Range;

use serde_json::Value;

use super::limits;
use crate::bytes::file::TetFile;
use crate::bytes::footer::Tail;
use crate::bytes::metadata::{FooterJson, SpillRef};
use gridfusion_core::format::{Machine, Replies, Step};
use gridfusion_core::{Error, Result};

impl TetFile {
    /// Returns a machine that finds faults of the footer that do not stop a reader; `None` if the file has
    /// no footer.
    pub fn check_footer(&self) -> Option<CheckFooter> {
        self.tail.clone().map(|tail| CheckFooter::new(tail, self.payload_end))
    }
}

/// The facts and the faults of a footer.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct CheckedFooter {
    /// The version of the footer.
    pub version: u32,
    /// The bytes of the footer's JSON in the file.
    pub json: Range<u64>,
    /// Spills that lie outside the footer or overlap, and metadata stored both in the JSON and in a spill.
    pub misplaced: Vec<Error>,
    /// Spills that the version of the footer does not define, and readers ignore.
    pub ignored: Vec<Error>,
    /// Limits of the format that the footer exceeds.
    pub exceeded: Vec<Error>,
}

/// A machine that finds faults of a footer; made by [`TetFile::check_footer`].
#[derive(Debug)]
pub struct CheckFooter {
    tail: Tail,
    payload_end: u64,
    /// The faults found before spilled metadata is read, and the offset of that metadata.
    /// `None` before.
    checked: Option<(CheckedFooter, u64)>,
}

impl CheckFooter {
    fn new(tail: Tail, payload_end: u64) -> Self {
        Self { tail, payload_end, checked: None }
    }

    fn corrupt(&self, message: impl Into<String>) -> Error {
        Error::corrupt("footer", self.tail.json.start, message)
    }

    /// Checks the JSON. Returns the result, or requests spilled metadata, whose limits are checked too.
    ///
    /// # Errors
    /// `Corrupt` if the JSON cannot be parsed; an opened file has passed this already.
    fn check_json(&mut self, bytes: &[u8]) -> Result<Step<CheckedFooter>> {
        let json = self.tail.parse_json(bytes)?;
        let text: Value = serde_json::from_slice(bytes).unwrap_or_default();
        let mut checked = CheckedFooter {
            version: self.tail.version,
            json: self.tail.json.clone(),
            ..CheckedFooter::default()
        };
        let limits = limits::of_footer(&text).into_iter();
        checked.exceeded.extend(limits.map(|message| self.corrupt(message)));
        self.check_len("the JSON", bytes.len() as u64, limits::FOOTER_BYTES, &mut checked);
        self.check_refs(&json, &mut checked);
        let spilled = json.metadata_ref.and_then(|spill| spill.range(self.tail.json.start));
        let Some(spilled) = spilled else { return Ok(Step::Done(checked)) };
        let len = spilled.end - spilled.start;
        self.check_len("the spilled metadata", len, limits::SPILLED_BYTES, &mut checked);
        self.checked = Some((checked, spilled.start));
        Ok(Step::read([spilled]))
    }

    /// Adds a fault if `what` has more than `most` bytes.
    fn check_len(&self, what: &str, len: u64, most: u64, checked: &mut CheckedFooter) {
        if len > most {
            let message = format!("{what} has {len} bytes, the format allows {most}");
            checked.exceeded.push(self.corrupt(message));
        }
    }

    /// Checks that spills lie one after the other between the payloads and the JSON, in any order of kinds.
    /// Each must begin at or after the end of the one before.
    fn check_refs(&self, json: &FooterJson, checked: &mut CheckedFooter) {
        if json.metadata.is_some() && json.metadata_ref.is_some() {
            checked.misplaced.push(self.corrupt("metadata both in the JSON and in a spill"));
        }
        let refs = [json.zone_maps_ref, json.secondary_index_ref, json.metadata_ref];
        let spills = self.tail.spills(json);
        let mut found: Vec<(&str, SpillRef)> = vec![];
        for (what, (read, listed)) in NAMES.iter().zip(spills.into_iter().zip(refs)) {
            match (read, listed) {
                (Some(spill), _) => found.push((what, spill)),
                (None, Some(_)) => checked.ignored.push(self.corrupt(format!(
                    "{what}, which a footer of version {} does not have; ignored",
                    self.tail.version
                ))),
                (None, None) => {}
            }
        }
        found.sort_by_key(|(_, spill)| spill.offset);
        // `end` is where the next spill may begin: after the payloads and the spills before it.
        let mut end = self.payload_end;
        for (what, spill) in found {
            match spill.range(self.tail.json.start) {
                Some(range) if range.start >= end => end = range.end,
                _ => checked.misplaced.push(self.corrupt(format!(
                    "{what} of {} bytes at byte {}, expected between bytes {end} and {}",
                    spill.len, spill.offset, self.tail.json.start
                ))),
            }
        }
    }
}

/// The names of the spills, in the order of [`Tail::spills`].
const NAMES: [&str; 3] = ["zone maps", "a secondary index", "metadata"];

impl Machine for CheckFooter {
    type Output = CheckedFooter;

    fn subject(&self) -> &'static str {
        "footer"
    }

    fn step(&mut self, replies: Replies) -> Result<Step<CheckedFooter>> {
        let replies = replies.into_bytes();
        // First without a reply, then with the JSON, and last with spilled metadata.
        let Some(bytes) = replies.first() else {
            return Ok(Step::read([self.tail.json.clone()]));
        };
        let Some((mut checked, at)) = self.checked.take() else { return self.check_json(bytes) };
        let text: Value = serde_json::from_slice(bytes).unwrap_or_default();
        let limits = limits::of_metadata(&text).into_iter();
        let corrupt = |message| Error::corrupt("spilled metadata", at, message);
        checked.exceeded.extend(limits.map(corrupt));
        Ok(Step::Done(checked))
    }
}
