//! Ends an append that was stopped: the writes that it lacks.

use std::sync::Arc;

use gridfusion_core::format::{Content, Write};
use gridfusion_core::{Error, Result};
use serde_json::Value;

use super::metadata::{axis_of, parse};
use super::target::{MOST_LEFT, ZarrTarget};
use crate::document_text::with_length;
use crate::journal::{JOURNAL, Journal};
use crate::write::DOCUMENT;

impl ZarrTarget {
    /// Staged objects take their places, or are forgotten. Documents get the length that they lack, and objects behind the array are deleted.
    pub(super) fn repaired(&mut self) -> Result<(Vec<Write>, bool)> {
        let Some(left) = self.left.take() else { return Ok((vec![], false)) };
        let staged = std::mem::take(&mut self.staged);
        let is_committed = self.is_committed(&left);
        let changes_cells = is_committed && staged.has_own();
        let mut writes = if is_committed { staged.in_place() } else { vec![] };
        writes.push(staged.forgotten());
        writes.push(Write::Replace(self.documents_of(&left)?));
        writes.push(Write::Delete(self.objects_of(&left)?));
        writes.push(Write::Delete(vec![JOURNAL.into()]));
        Ok((writes, changes_cells))
    }

    /// Returns the documents of arrays that lack the length, or the units, that the root has.
    fn documents_of(&self, left: &Journal) -> Result<Vec<Content>> {
        let own = self.arrays().map(|variable| (variable.name(), &variable.document));
        let others = self.others.iter().map(|(name, document)| (name.as_str(), document));
        let mut documents = vec![];
        for (name, document) in own.chain(others) {
            let metadata = &self.metadata[name];
            let Some(axis) = axis_of(metadata, &left.dimension) else { continue };
            let len = metadata["shape"][axis].as_u64().unwrap_or_default();
            let own = match left.finer.as_deref() == Some(name) && self.root.is_some() {
                true => self.with_units_of_root(name, document)?,
                false => document.clone(),
            };
            if own != *document || parse(document)?["shape"][axis].as_u64() != Some(len) {
                let bytes = with_length(&own, &[], axis, len)?;
                documents.push(Content::new(format!("{name}/{DOCUMENT}"), bytes));
            }
        }
        Ok(documents)
    }

    /// Returns the names of objects behind the array.
    ///
    /// # Errors
    /// `Usage` if the journal names more of them than a program writes.
    fn objects_of(&self, left: &Journal) -> Result<Vec<Arc<str>>> {
        let mut objects = vec![];
        for variable in self.arrays() {
            let metadata = &self.metadata[variable.name()];
            let Some(axis) = axis_of(metadata, &left.dimension) else { continue };
            let most = MOST_LEFT.saturating_sub(objects.len());
            objects.extend(variable.objects_behind(axis, left.to, most).ok_or_else(|| {
                let Journal { dimension, from, to, .. } = left;
                Error::usage(format!(
                    "it tells of {dimension} from {from} to {to}, which are too many objects; remove it if no program appends"
                ))
                .in_file(JOURNAL)
            })?);
        }
        Ok(objects)
    }

    /// Whether a program that was stopped had made its append visible.
    fn is_committed(&self, left: &Journal) -> bool {
        let has_length = |metadata: &Value| {
            axis_of(metadata, &left.dimension)
                .is_some_and(|axis| metadata["shape"][axis] == left.to)
        };
        match left.adds() {
            true => self.metadata.get(&left.dimension).is_some_and(has_length),
            false => left.is_committed,
        }
    }
}
