//! [`ArrayWriter`]: a writer that takes the chunks of a new array.

use std::fmt::Debug;

use super::{NewArray, NewChunk};
use crate::error::Result;
use crate::format::{Write, Writer};

/// Writes a [`NewArray`] in some format.
pub trait ArrayWriter: Writer<Chunk = NewChunk> + Debug + Send {
    /// Returns the array, whose chunks are those that the writer takes. Their shape may be another one than that which was asked for.
    fn array(&self) -> &NewArray;

    /// Returns the bytes of memory that the writer takes until the array is finished, besides those of the chunks that it encodes. They may
    /// become more as chunks come.
    fn memory(&self) -> u64 {
        0
    }

    /// Returns what to do if that memory is refused, for the message.
    fn instead_of_memory(&self) -> &'static str {
        "write Zarr"
    }

    /// Returns the bytes of memory that encoding one chunk takes at most, if that is more than the chunk itself; 0 if it is not.
    fn chunk_memory(&self) -> u64 {
        0
    }

    /// Returns some of the writes of cells that no chunk has had; none if there are no more. A caller who does not ask gets all of them from
    /// [`Writer::finish`] at once.
    ///
    /// # Errors
    /// As [`Writer::write`].
    fn write_rest(&mut self) -> Result<Vec<Write>> {
        Ok(vec![])
    }

    /// Returns the writes that follow when the array is visible: copies of what readers have found by then.
    fn afterwards(&mut self) -> Vec<Write> {
        vec![]
    }

    /// Takes several chunks, which are encoded on so many threads.
    ///
    /// # Errors
    /// As [`Writer::write`].
    fn write_many(&mut self, chunks: Vec<NewChunk>, threads: usize) -> Result<Vec<Write>>;
}
