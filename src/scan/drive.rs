//! The loop that feeds a sans-IO machine from a byte source.

use crate::error::Result;
use crate::format::{Machine, Step};
use crate::io::ByteSource;

/// Runs `machine` to its end, reading what it asks for from `source`.
///
/// # Errors
/// Those of the machine and of the source, with the source's name.
pub async fn drive<M: Machine>(mut machine: M, source: &dyn ByteSource) -> Result<M::Output> {
    let mut replies = Vec::new();
    loop {
        let step = machine.step(replies).map_err(|error| error.in_file(source.name()))?;
        match step {
            Step::Read(ranges) => replies = source.read(&ranges).await?,
            Step::Done(output) => return Ok(output),
        }
    }
}
