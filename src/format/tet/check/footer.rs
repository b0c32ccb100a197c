//! What is wrong with a footer that can be read all the same: spills that are not where they should be,
//! and limits that the format sets and readers do without.

use std::ops::Range;

use serde_json::Value;

use super::limits;
use crate::error::{Error, Result};
use crate::format::tet::file::TetFile;
use crate::format::tet::footer::Tail;
use crate::format::tet::metadata::{FooterJson, SpillRef};
use crate::format::{Machine, Replies, Step};

impl TetFile {
    /// A machine that looks for what is wrong with the footer, though it can be read; `None` if the file
    /// has none.
    pub fn check_footer(&self) -> Option<CheckFooter> {
        self.tail.clone().map(|tail| CheckFooter::new(tail, self.payload_end))
    }
}

/// A footer, and what is wrong with it.
#[derive(Debug, Clone, Default)]
pub struct CheckedFooter {
    /// The version of its rules.
    pub version: u32,
    /// The bytes of its JSON in the file.
    pub json: Range<u64>,
    /// Spills that lie outside the footer, or over one another.
    pub misplaced: Vec<Error>,
    /// What the rules of its version ignore.
    pub ignored: Vec<Error>,
    /// Limits that it exceeds.
    pub exceeded: Vec<Error>,
}

/// Looks for what is wrong with a footer; made by [`TetFile::check_footer`].
#[derive(Debug)]
pub struct CheckFooter {
    tail: Tail,
    payload_end: u64,
    /// What is known before spilled metadata is.
    checked: Option<(CheckedFooter, u64)>,
}

impl CheckFooter {
    fn new(tail: Tail, payload_end: u64) -> Self {
        Self { tail, payload_end, checked: None }
    }

    fn corrupt(&self, message: impl Into<String>) -> Error {
        Error::corrupt("footer", self.tail.json.start, message)
    }

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

    fn check_len(&self, what: &str, len: u64, most: u64, checked: &mut CheckedFooter) {
        if len > most {
            let message = format!("{what} has {len} bytes, the format allows {most}");
            checked.exceeded.push(self.corrupt(message));
        }
    }

    fn check_refs(&self, json: &FooterJson, checked: &mut CheckedFooter) {
        if json.metadata.is_some() && json.metadata_ref.is_some() {
            checked.misplaced.push(self.corrupt("metadata both here and spilled"));
        }
        let refs = [json.zone_maps_ref, json.secondary_index_ref, json.metadata_ref];
        let spills = self.tail.spills(json);
        let mut found: Vec<(&str, SpillRef)> = vec![];
        for (what, (read, noted)) in NAMES.iter().zip(spills.into_iter().zip(refs)) {
            match (read, noted) {
                (Some(spill), _) => found.push((what, spill)),
                (None, Some(_)) => checked.ignored.push(self.corrupt(format!(
                    "{what}, which a footer of version {} does not have; ignored",
                    self.tail.version
                ))),
                (None, None) => {}
            }
        }
        found.sort_by_key(|(_, spill)| spill.offset);
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

/// What is spilled, in the order of [`Tail::spills`].
const NAMES: [&str; 3] = ["zone maps", "a secondary index", "metadata"];

impl Machine for CheckFooter {
    type Output = CheckedFooter;

    fn step(&mut self, replies: Replies) -> Result<Step<CheckedFooter>> {
        let replies = replies.into_bytes();
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
