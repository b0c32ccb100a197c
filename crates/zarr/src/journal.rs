//! [`Journal`]: an object that tells what is being written. Who finds one knows that a program was stopped.

use std::collections::BTreeMap;

use gridfusion_core::format::Content;
use gridfusion_core::{Error, Result};
use serde_json::{Value, json};

/// The object's name in the store.
pub(crate) const JOURNAL: &str = ".gridfusion-append";

/// An append: a dimension, its length before, and after. If no dimension becomes longer, its name is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Journal {
    /// Tells the writer's staged objects from those of others.
    pub(crate) id: String,
    pub(crate) dimension: String,
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// The arrays whose documents get the new length one after the other, if no document has all lengths. The first one decides whether the
    /// rows are visible.
    pub(crate) arrays: Vec<String>,
    /// The labels that get other units of time. Their own document may lack what the root has by now.
    pub(crate) finer: Option<String>,
    /// Whether staged objects take their places, although no length tells so.
    pub(crate) is_committed: bool,
}

impl Journal {
    /// Reads a journal.
    ///
    /// # Errors
    /// `Usage` if the object is none.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self> {
        let parsed = || {
            let read: Value = serde_json::from_slice(bytes).ok()?;
            let id = read["id"].as_str().unwrap_or_default().to_owned();
            let dimension = read["dimension"].as_str()?.to_owned();
            let (from, to) = (read["from"].as_u64()?, read["to"].as_u64()?);
            let is_committed = read["committed"].as_bool().unwrap_or_default();
            let names = read["arrays"].as_array().map_or(&[][..], Vec::as_slice);
            let arrays = names.iter().map(|name| name.as_str().map(str::to_owned));
            let arrays = arrays.collect::<Option<_>>()?;
            let finer = read["finer"].as_str().map(str::to_owned);
            (from <= to).then_some(Self { id, dimension, from, to, arrays, finer, is_committed })
        };
        let not_one =
            || Error::usage("this is no journal of an append; remove it").in_file(JOURNAL);
        parsed().ok_or_else(not_one)
    }

    pub(crate) fn content(&self) -> Content {
        let Self { id, dimension, from, to, arrays, finer, is_committed } = self;
        let text = json!({
            "id": id, "dimension": dimension, "from": from, "to": to, "arrays": arrays, "finer": finer, "committed": is_committed,
        });
        Content::new(JOURNAL, text.to_string())
    }

    /// Whether the dimension becomes longer.
    pub(crate) fn adds(&self) -> bool {
        self.from < self.to
    }

    /// Gives all arrays that become longer one by one the length of the first of them, which decides whether the rows are visible. `metadata`
    /// has that of arrays by path.
    pub(crate) fn settle(&self, metadata: &mut BTreeMap<String, Value>) {
        let first = self.arrays.first().and_then(|first| self.len(metadata.get(first)?));
        let (decided, other) = match first {
            Some(len) if len == self.to => (self.to, self.from),
            Some(len) if len == self.from => (self.from, self.to),
            _ => return,
        };
        for name in &self.arrays {
            if let Some(array) = metadata.get_mut(name)
                && self.len(array) == Some(other)
                && let Some(axis) = self.axis(array)
            {
                array["shape"][axis] = Value::from(decided);
            }
        }
    }

    fn axis(&self, array: &Value) -> Option<usize> {
        let names = array["dimension_names"].as_array()?;
        names.iter().position(|name| name == &self.dimension)
    }

    /// Returns the length of an array along the dimension.
    pub(crate) fn len(&self, array: &Value) -> Option<u64> {
        array["shape"][self.axis(array)?].as_u64()
    }
}
