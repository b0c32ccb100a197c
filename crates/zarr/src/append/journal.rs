//! [`Journal`]: an object that tells what is being written. Who finds one knows that a program was stopped.

use gridfusion_core::format::Content;
use gridfusion_core::{Error, Result};
use serde_json::{Value, json};

/// The object's name in the store.
pub(super) const JOURNAL: &str = ".gridfusion-append";

/// An append: a dimension, its length before, and after. If no dimension becomes longer, its name is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Journal {
    /// Tells the writer's staged objects from those of others.
    pub(super) id: String,
    pub(super) dimension: String,
    pub(super) from: u64,
    pub(super) to: u64,
    /// Whether staged objects take their places, although no length tells so.
    pub(super) is_committed: bool,
}

impl Journal {
    /// Reads a journal.
    ///
    /// # Errors
    /// `Usage` if the object is none.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self> {
        let parsed = || {
            let read: Value = serde_json::from_slice(bytes).ok()?;
            let id = read["id"].as_str().unwrap_or_default().to_owned();
            let dimension = read["dimension"].as_str()?.to_owned();
            let (from, to) = (read["from"].as_u64()?, read["to"].as_u64()?);
            let is_committed = read["committed"].as_bool().unwrap_or_default();
            (from <= to).then_some(Self { id, dimension, from, to, is_committed })
        };
        let not_one =
            || Error::usage("this is no journal of an append; remove it").in_file(JOURNAL);
        parsed().ok_or_else(not_one)
    }

    pub(super) fn content(&self) -> Content {
        let Self { id, dimension, from, to, is_committed } = self;
        let text = json!({"id": id, "dimension": dimension, "from": from, "to": to, "committed": is_committed});
        Content::new(JOURNAL, text.to_string())
    }

    /// Whether the dimension becomes longer.
    pub(super) fn adds(&self) -> bool {
        self.from < self.to
    }
}
