//! [`StagedObjects`]: objects whose cells readers see already, and that wait beside the array until all of them are written.
//!
//! ```text
//!   .gridfusion-staged/t2m/c/0/1           ──▶ t2m/c/0/1
//!   .gridfusion-staged/t2m/c/0/2.absent    ──▶ t2m/c/0/2 is deleted: all of its cells have the fill value
//! ```

use std::sync::Arc;

use gridfusion_core::format::{Content, Move, Write};

/// The folder of staged objects.
pub(super) const STAGED: &str = ".gridfusion-staged";
/// The end of the name of an object that tells of another one's absence. Names of chunks end in digits, or in the letter c.
const ABSENT: &str = ".absent";

/// Names of objects that are staged.
#[derive(Debug, Clone, Default)]
pub(super) struct StagedObjects {
    /// The names in the array of objects that are replaced.
    replaced: Vec<Arc<str>>,
    /// The names in the array of objects that are deleted.
    absent: Vec<Arc<str>>,
}

impl StagedObjects {
    /// Sorts the names of objects below [`STAGED`].
    pub(super) fn from_names(names: &[String]) -> Self {
        let mut staged = Self::default();
        for name in names {
            match name.strip_suffix(ABSENT) {
                Some(name) => staged.absent.push(name.into()),
                None => staged.replaced.push(name.as_str().into()),
            }
        }
        staged
    }

    /// Returns the object that is staged for one of the array, which has these bytes; without bytes, it is deleted.
    pub(super) fn stage(&mut self, object: Arc<str>, bytes: Option<Vec<u8>>) -> Content {
        let staged = match bytes {
            Some(bytes) => Content::new(staged(&object), bytes),
            None => Content::new(marker(&object), vec![]),
        };
        let names = if staged.bytes.is_empty() { &mut self.absent } else { &mut self.replaced };
        names.push(object);
        staged
    }

    /// Returns the writes that give the objects their places.
    pub(super) fn in_place(&self) -> Vec<Write> {
        let moved = self.replaced.iter().map(|it| Move { from: staged(it), to: Arc::clone(it) });
        let absent = self.absent.clone();
        let markers = self.absent.iter().map(|it| marker(it));
        vec![Write::Move(moved.collect()), Write::Delete(absent), Write::Delete(markers.collect())]
    }

    /// Returns the write that forgets them.
    pub(super) fn forgotten(&self) -> Write {
        let replaced = self.replaced.iter().map(|it| staged(it));
        Write::Delete(replaced.chain(self.absent.iter().map(|it| marker(it))).collect())
    }
}

fn staged(object: &str) -> Arc<str> {
    format!("{STAGED}/{object}").into()
}

fn marker(object: &str) -> Arc<str> {
    format!("{STAGED}/{object}{ABSENT}").into()
}
