//! The binary from outside.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod completions;
<<<<<<< HEAD
#[path = "../../../tests/it/doc_blocks.rs"]
mod doc_blocks;
#[cfg(unix)] // commands are run by a shell
=======
#[cfg(unix)]
>>>>>>> f89f8be (Pages about the command line and pictures; help mentions all of it)
mod docs;
mod errors;
mod info;
mod plot;
mod sql;
mod support;
mod timing;
mod verify;
mod ways_in;
