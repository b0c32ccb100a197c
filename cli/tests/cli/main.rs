//! The binary from outside.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod info;
mod sql;
mod support;
