//! The integration tests, one binary: each further one would link all of DataFusion again.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod bad_input;
mod calendars;
mod cases;
mod columns;
mod corpus;
mod corpus_document;
mod corpus_facts;
mod corpus_parity;
mod corpus_verify;
mod corpus_wide;
mod differential;
mod doc_blocks;
mod docs;
mod dynamic;
mod fills;
mod http;
mod interop;
mod layering;
mod limits;
mod many_files;
mod memory;
mod mistakes;
mod mosaic;
mod mosaic_tiledb;
mod options;
mod order;
mod package;
mod parity;
mod plans;
mod pruning;
mod pruning_predicates;
mod pruning_queries;
mod reduce;
mod reduce_plans;
mod register;
mod slt;
mod sources;
mod support;
mod tet_facts;
mod tiledb;
mod tiledb_cases;
mod tiledb_evolution;
mod tiledb_figures;
mod tiledb_groups;
mod tiledb_hostile;
mod tiledb_many;
mod tiledb_model;
mod tiledb_queries;
mod tiledb_random;
mod tiledb_sql;
mod tiledb_times;
mod tiledb_writer;
mod verify;
mod verify_package;
mod verify_tiledb;
mod ways_in;
mod zoned;
