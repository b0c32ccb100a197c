//! The loop that feeds a sans-IO machine from objects.
//!
//! This is the only place where a machine's requests become reads. A machine with n steps costs n round
//! trips, because the requests of one step run side by side.

use super::objects::Objects;
use crate::error::{ErrorKind, Result};
use crate::format::{Machine, Replies, Step};

/// Runs `machine` to its end, with the reads and listings that it requests from `objects`.
///
/// # Errors
/// The errors of the machine and of the objects, with the name of the object or folder.
pub async fn drive<M: Machine>(mut machine: M, objects: &Objects) -> Result<M::Output> {
    let mut replies = Replies::Start;
    loop {
        let step = machine.step(replies).map_err(|error| objects.named(error))?;
        let read = match step {
            Step::Read(locations) => objects.read(&locations).await.map(Replies::Bytes),
            Step::ReadIfPresent(locations) => {
                objects.read_if_present(&locations).await.map(Replies::IfPresent)
            }
            Step::List(folders) => objects.list(folders).await.map(Replies::Listings),
            Step::Done(output) => return Ok(output),
        };
        replies = read.map_err(|error| match error.kind() {
            // A failed request has only a range of bytes, so the error names their content.
            ErrorKind::Io if objects.is_remote() => error.about(machine.subject()),
            _ => error,
        })?;
    }
}
