//! The integration tests, in one binary: each further binary would link all of DataFusion again.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod cluster;
mod codec;
mod conformance;
mod corpus;
mod docs;
mod foreign;
mod io;
mod joins;
mod mosaic;
mod plan;
mod reduce;
mod singles;
mod spatial;
mod sql;
mod support;
mod tet;
mod tiledb;
mod verify;
mod writing;
