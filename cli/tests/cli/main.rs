//! The binary from outside.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

#[path = "../../../tests/it/doc_blocks.rs"]
mod doc_blocks;
#[cfg(unix)] // commands are run by a shell
mod docs;
mod completions;
mod errors;
mod info;
mod sql;
mod support;
mod verify;
mod timing;
