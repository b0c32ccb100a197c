//! Writing an array: what to put where, in which order, and what makes it visible. No I/O.
//!
//! A [`Writer`] is the mirror image of a [`Machine`](super::Machine): it is given the cells of chunks and
//! says what to write, and whoever drives it writes that to a folder, a store or a test's memory.
//!
//! ```text
//!            write(chunk)                        finish()
//!   driver ──────────────▶ writer ──▶ Put [c0, c1]   ──▶ Append header ──▶ … ──▶ Publish(…)
//!                             whole objects,     one object, from its         nothing can be seen
//!                             side by side       beginning to its end         before, all of it after
//! ```
//!
//! Whoever reads an array begins with one object: a header, a commit, a pointer to a generation, or the
//! only file there is. That object is published last. What was written before is named by nothing that
//! anybody reads, so a writer that fails or is stopped has changed nothing.

use std::sync::Arc;

use bytes::Bytes;

use crate::error::Result;

/// Bytes of an object, whose path is relative to the folder that is written to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// The object's path, with `/` between parts.
    pub object: Arc<str>,
    /// All its bytes, or the next of them.
    pub bytes: Bytes,
}

impl Content {
    /// These bytes of this object.
    pub fn new(object: impl Into<Arc<str>>, bytes: impl Into<Bytes>) -> Self {
        Self { object: object.into(), bytes: bytes.into() }
    }
}

/// A write that a [`Writer`] asks for before anything is visible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Put whole objects, in any order and at the same time. None of them may exist yet.
    Put(Vec<Content>),
    /// Add bytes to an object that is written from its beginning to its end, and begin it with the first
    /// of them. It is not there before it is complete.
    Append(Content),
    /// An object has all its bytes and takes its place, where there must be none yet.
    Complete(Arc<str>),
    /// Move an object, or a folder where the store has folders. There must be none of the new name yet.
    Rename {
        /// Where it is.
        from: Arc<str>,
        /// Where it goes.
        to: Arc<str>,
    },
}

/// The last write, which makes everything visible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Publish {
    /// Put an object, which must not exist: of two writers the second fails.
    Create(Content),
    /// Put an object in the place of the one that is there, if any.
    Replace(Content),
    /// The object that was appended to has all its bytes and takes its place.
    Complete {
        /// Its path.
        object: Arc<str>,
        /// Whether it may take the place of another.
        replace: bool,
    },
}

/// A sans-IO writer of one array.
pub trait Writer {
    /// Its input, one after the other: say, the cells of a chunk and which chunk that is.
    type Chunk;

    /// Takes a chunk and says what to write, one thing after the other.
    ///
    /// # Errors
    /// `Unsupported` or `Usage` if the format has no way to write this.
    fn write(&mut self, chunk: Self::Chunk) -> Result<Vec<Write>>;

    /// There are no more chunks: says what is left to write, and what makes all of it visible.
    ///
    /// # Errors
    /// `Unsupported` or `Usage` if the format has no way to write this.
    fn finish(&mut self) -> Result<(Vec<Write>, Publish)>;
}
