//! Stores whose arrays have become longer one by one, because no document has all lengths.
//!
//! ```text
//!   t2m/zarr.json  5 places along time      ┐ differ ──▶ read the journal ──▶ read the documents again
//!   time/zarr.json 3 labels                 ┘            of the append         all have the length of the first one
//! ```
//!
//! The journal is there before the first document changes, and until the last one has. Without it, the documents that are read next are those
//! of an append that has ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::node::{self, Node};
use super::open_store::ZarrStore;
use crate::journal::Journal;

impl ZarrStore {
    /// Returns the paths of the arrays in the root, if labels have another length than the dimension of an array.
    pub(super) fn torn(&self) -> Option<Vec<String>> {
        let in_root =
            || self.arrays().iter().map(|it| it.variable()).filter(|it| it.group().is_empty());
        let mut labels = BTreeMap::new();
        for variable in in_root() {
            if let [axis] = variable.axes.as_slice()
                && axis.name.as_deref() == Some(variable.path.as_str())
            {
                labels.insert(variable.path.as_str(), axis.len);
            }
        }
        let differs = in_root().flat_map(|it| &it.axes).any(|axis| {
            let labels = axis.name.as_deref().and_then(|name| labels.get(name));
            labels.is_some_and(|labels| *labels != axis.len)
        });
        differs.then(|| in_root().map(|it| it.path.clone()).collect())
    }

    /// Reads arrays again, with the lengths that a journal tells.
    pub(super) fn read_again(
        &mut self,
        paths: &[String],
        found: Vec<Option<Bytes>>,
        journal: Option<&Journal>,
    ) {
        let mut documents = BTreeMap::new();
        for (path, bytes) in paths.iter().zip(found) {
            // Documents that cannot be read by now leave the array as it was.
            let document = bytes.and_then(|bytes| node::parse(&bytes).ok());
            documents.extend(document.map(|document| (path.clone(), Value::Object(document))));
        }
        if let Some(journal) = journal {
            journal.settle(&mut documents);
        }
        let known: BTreeSet<&String> = documents.keys().collect();
        for (number, array) in self.arrays.iter_mut().enumerate() {
            let path = array.variable().path.clone();
            if !known.contains(&path) {
                continue;
            }
            if let Some(document) = documents[&path].as_object()
                && let Ok(Node::Array(read)) = node::version3(&path, document)
            {
                self.hierarchy.variables[number] = read.variable().clone();
                *array = Arc::new(*read);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use gridfusion_core::format::{Entry, Machine, Replies, Step};
    use serde_json::json;

    use super::*;
    use crate::bytes::OpenZarr;
    use crate::journal::JOURNAL;

    fn array(name: &str, len: u64) -> Option<Bytes> {
        let document = json!({
            "zarr_format": 3, "node_type": "array", "shape": [len], "data_type": "int8", "fill_value": 0,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
            "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes"}],
            "dimension_names": ["x"], "attributes": {"name": name},
        });
        Some(Bytes::from(document.to_string()))
    }

    /// Opens a store whose documents have these lengths, and others when they are read again. Returns the lengths that are found.
    fn opened(first: [u64; 3], journal: Option<&str>, again: [u64; 3]) -> (Vec<u64>, bool) {
        let names = ["v", "w", "x"];
        let all = |lens: [u64; 3]| {
            names.iter().zip(lens).map(|(name, len)| array(name, len)).collect::<Vec<_>>()
        };
        let mut machine = OpenZarr::new();
        machine.step(Replies::Start).unwrap();
        let root = Bytes::from_static(br#"{"zarr_format": 3, "node_type": "group"}"#);
        machine.step(Replies::IfPresent(vec![Some(root)])).unwrap();
        let entries = names.map(|name| Entry::new(name.to_owned(), None)).to_vec();
        machine.step(Replies::Listings(vec![entries])).unwrap();
        let mut step = machine.step(Replies::IfPresent(all(first))).unwrap();
        let is_again = matches!(&step, Step::List(_));
        if is_again {
            let listed =
                journal.map(|text| Entry::new(JOURNAL.to_owned(), Some(text.len() as u64)));
            machine.step(Replies::Listings(vec![listed.into_iter().collect()])).unwrap();
            if let Some(text) = journal {
                machine.step(Replies::IfPresent(vec![Some(Bytes::from(text.to_owned()))])).unwrap();
            }
            step = machine.step(Replies::IfPresent(all(again))).unwrap();
        }
        let Step::Done(store) = step else { panic!("{step:?}") };
        (store.arrays().iter().map(|it| it.variable().axes[0].len).collect(), is_again)
    }

    #[test]
    fn arrays_have_the_length_of_the_first_that_changes() {
        let journal = r#"{"dimension": "x", "from": 3, "to": 5, "arrays": ["v", "w", "x"]}"#;
        for (first, journal, again, expected) in [
            ([3, 3, 3], None, [0; 3], [3; 3]),
            ([5, 3, 3], Some(journal), [5, 3, 3], [5; 3]),
            ([5, 5, 3], Some(journal), [5, 5, 5], [5; 3]),
            // The first was read before the others.
            ([3, 5, 3], Some(journal), [3, 5, 5], [3; 3]),
            // The append has ended meanwhile.
            ([5, 3, 3], None, [5; 3], [5; 3]),
            // Lengths that no journal explains stay.
            ([5, 3, 3], None, [5, 3, 3], [5, 3, 3]),
            ([5, 3, 3], Some("no journal"), [5, 3, 3], [5, 3, 3]),
            ([7, 3, 3], Some(journal), [7, 3, 3], [7, 3, 3]),
        ] {
            let (found, is_again) = opened(first, journal, again);
            assert_eq!(found, expected, "{first:?} {journal:?}");
            assert_eq!(is_again, first != [3; 3], "{first:?}");
        }
    }
}
