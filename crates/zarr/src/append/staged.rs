//! [`StagedObjects`]: objects whose cells readers see already, and that wait beside the array until all of them are written.
//!
//! ```text
//!   .gridfusion-staged/ID/t2m/c/0/1           ──▶ t2m/c/0/1
//!   .gridfusion-staged/ID/t2m/c/0/2.absent    ──▶ t2m/c/0/2 is deleted: all of its cells have the fill value
//! ```
//!
//! The journal has the ID of its writer. Objects with another ID are those of a writer that failed, and belong to no array.

use std::sync::Arc;

use gridfusion_core::format::{Content, Move, Write};

/// The folder of staged objects.
pub(super) const STAGED: &str = ".gridfusion-staged";
/// The end of the name of an object that tells of another one's absence. Names of chunks end in digits, or in the letter c.
const ABSENT: &str = ".absent";

/// Names of objects that a writer stages.
#[derive(Debug, Clone, Default)]
pub(super) struct StagedObjects {
    /// Tells them from those of other writers.
    id: String,
    /// The names in the array of objects that are replaced.
    replaced: Vec<Arc<str>>,
    /// The names in the array of objects that are deleted.
    absent: Vec<Arc<str>>,
    /// All names that were found below [`STAGED`].
    found: Vec<Arc<str>>,
}

impl StagedObjects {
    pub(super) fn new(id: String) -> Self {
        Self { id, ..Self::default() }
    }

    /// Finds those of a writer among the names of objects below [`STAGED`].
    pub(super) fn from_names(id: &str, names: &[String]) -> Self {
        let mut staged = Self::new(id.to_owned());
        for name in names {
            staged.found.push(format!("{STAGED}/{name}").into());
            let own = name.strip_prefix(id).and_then(|it| it.strip_prefix('/'));
            let Some(own) = own.filter(|_| !id.is_empty()) else { continue };
            match own.strip_suffix(ABSENT) {
                Some(own) => staged.absent.push(own.into()),
                None => staged.replaced.push(own.into()),
            }
        }
        staged
    }

    /// Whether the writer has staged any object.
    pub(super) fn has_own(&self) -> bool {
        self.len() > 0
    }

    pub(super) fn len(&self) -> usize {
        self.replaced.len() + self.absent.len()
    }

    /// Returns the object that is staged for one of the array, which has these bytes; without bytes, it is deleted.
    pub(super) fn stage(&mut self, object: Arc<str>, bytes: Option<Vec<u8>>) -> Content {
        match bytes {
            Some(bytes) => {
                let staged = Content::new(self.staged(&object), bytes);
                self.replaced.push(object);
                staged
            }
            None => {
                let marker = Content::new(self.marker(&object), vec![]);
                self.absent.push(object);
                marker
            }
        }
    }

    /// Returns the writes that give the objects their places.
    pub(super) fn in_place(&self) -> Vec<Write> {
        let moved =
            self.replaced.iter().map(|it| Move { from: self.staged(it), to: Arc::clone(it) });
        let markers = self.absent.iter().map(|it| self.marker(it));
        vec![
            Write::Move(moved.collect()),
            Write::Delete(self.absent.clone()),
            Write::Delete(markers.collect()),
        ]
    }

    /// Returns the write that deletes all that was found and has not been moved.
    pub(super) fn forgotten(self) -> Write {
        Write::Delete(self.found)
    }

    fn staged(&self, object: &str) -> Arc<str> {
        format!("{STAGED}/{}/{object}", self.id).into()
    }

    fn marker(&self, object: &str) -> Arc<str> {
        format!("{STAGED}/{}/{object}{ABSENT}", self.id).into()
    }
}
