//! Writing an array: the writes, their order, and the last one, which makes the array visible. No I/O.
//!
//! A [`Writer`] is the mirror image of a [`Machine`](super::Machine): it takes the cells of chunks and
//! returns writes. A driver applies them to a folder, a store or a test's memory.
//!
//! ```text
//!            write(chunk)                        finish()
//!   driver ──────────────▶ writer ──▶ Put [c0, c1]   ──▶ Append header ──▶ … ──▶ Publish(…)
//!                             whole objects,     one object, from its         nothing can be seen
//!                             side by side       beginning to its end         before, all of it after
//! ```
//!
//! Readers of an array begin with one object: a header, a commit, a pointer to a generation, or the only
//! file. The writer publishes that object last. Until then no reader finds the other new objects, so a
//! writer that fails or is stopped has changed nothing.

use std::sync::Arc;

use bytes::Bytes;

use crate::error::Result;

/// Bytes to write to an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// The object's path in the folder that is written to, with `/` between parts.
    pub object: Arc<str>,
    /// All bytes of the object, or the next ones to append.
    pub bytes: Bytes,
}

impl Content {
    /// Returns the content `bytes` for `object`.
    pub fn new(object: impl Into<Arc<str>>, bytes: impl Into<Bytes>) -> Self {
        Self { object: object.into(), bytes: bytes.into() }
    }
}

/// A new name for an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    /// The present path.
    pub from: Arc<str>,
    /// The new path.
    pub to: Arc<str>,
}

/// A write that a [`Writer`] requests before the array is visible.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Write {
    /// Put whole objects, in any order or concurrently. None of them may exist yet.
    Put(Vec<Content>),
    /// Put whole objects that no reader finds yet. Writers that were stopped may have left some of these names, which are replaced.
    Overwrite(Vec<Content>),
    /// Replace whole objects that readers may use before and after: they mean the same to those who read the old array. They stay if the
    /// session is aborted.
    Replace(Vec<Content>),
    /// Delete objects that no reader finds, if they are there.
    Delete(Vec<Arc<str>>),
    /// Give objects these other names, in any order or concurrently. They replace the objects that have them.
    Move(Vec<Move>),
    /// Append bytes to an object; the first bytes begin it. The object is not visible before it is complete.
    Append(Content),
    /// Complete an object that was appended to. No object of this name may exist yet.
    Complete(Arc<str>),
    /// Rename an object, or a folder where the store has folders. The new name must not exist yet.
    Rename {
        /// The present path.
        from: Arc<str>,
        /// The new path.
        to: Arc<str>,
    },
}

/// The last write, which makes everything visible.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Publish {
    /// Put an object that must not exist yet: of two concurrent writers, the second fails.
    Create(Content),
    /// Put an object; replace the existing one, if any.
    Replace(Content),
    /// Replace an object that has the old bytes; fail if it has others, because another writer was faster.
    Update {
        /// The object and its new bytes.
        content: Content,
        /// The bytes that it has until then.
        old: Bytes,
    },
    /// Complete an object that was appended to.
    Complete {
        /// The object's path.
        object: Arc<str>,
        /// Whether it may replace an existing object.
        replace: bool,
    },
}

/// A sans-IO writer of one array.
pub trait Writer {
    /// The input of one call of `write`, such as the cells and the coordinates of a chunk.
    type Chunk;

    /// Takes a chunk and returns the writes to apply, in order.
    ///
    /// # Errors
    /// `Unsupported` or `Usage` if the format cannot store this chunk.
    fn write(&mut self, chunk: Self::Chunk) -> Result<Vec<Write>>;

    /// Ends the input: returns the remaining writes, and the one that makes all of them visible.
    ///
    /// # Errors
    /// `Unsupported` or `Usage` if the format cannot store this array.
    fn finish(&mut self) -> Result<(Vec<Write>, Publish)>;
}
