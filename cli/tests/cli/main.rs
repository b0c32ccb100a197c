//! Tests that run the `gridfusion` program.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod calendars;
#[cfg(unix)] // signals freeze processes
mod cluster;
mod collections;
mod completions;
mod convert;
mod copy;
mod copy_types;
#[path = "../../../tests/it/docs/blocks.rs"]
mod doc_blocks;
#[cfg(unix)] // a shell runs the commands
mod docs;
mod errors;
mod info;
mod memory;
mod options;
mod plot;
mod plot_files;
mod printing;
#[cfg(target_os = "linux")] // needs `script` from util-linux
mod prompt;
mod redirects;
mod reflexes;
mod secrets;
mod sql;
mod stores;
mod summarize;
mod support;
mod timing;
#[cfg(unix)] // links lead out of folders
mod trust;
mod verify;
mod ways_in;
mod web_server;
