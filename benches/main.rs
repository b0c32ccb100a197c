//! All benches, in one program: each further program would compile DataFusion's generic functions again.
//!
//! ```text
//!   cargo bench                      each bench, in a process of its own
//!   cargo bench -- masks             one bench
//!   cargo bench -- masks latitude    its queries with this text in their names
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a benchmark stops where it fails"
)]

mod cluster;
mod common;
mod coordinates;
mod formats;
mod joins;
mod masks;
mod open;
mod peers;
mod prune;
mod reduce;
mod regions;
mod remote;
mod scan;
mod side_by_side;
mod sparse;
mod threads;
mod tiledb;
mod windows;
mod writing;

use std::process::{Command, ExitCode};

use common::{support, words};

const BENCHES: [(&str, fn()); 18] = [
    ("cluster", cluster::main),
    ("coordinates", coordinates::main),
    ("formats", formats::main),
    ("joins", joins::main),
    ("masks", masks::main),
    ("open", open::main),
    ("peers", peers::main),
    ("prune", prune::main),
    ("reduce", reduce::main),
    ("regions", regions::main),
    ("remote", remote::main),
    ("scan", scan::main),
    ("side_by_side", side_by_side::main),
    ("sparse", sparse::main),
    ("threads", threads::main),
    ("tiledb", tiledb::main),
    ("windows", windows::main),
    ("writing", writing::main),
];

fn main() -> ExitCode {
    let Some(chosen) = words().next() else { return run_all() };
    let Some((_, bench)) = BENCHES.into_iter().find(|(name, _)| *name == chosen) else {
        let names = BENCHES.map(|(name, _)| name).join(", ");
        eprintln!("there is no bench '{chosen}'; there are {names}");
        return ExitCode::FAILURE;
    };
    bench();
    ExitCode::SUCCESS
}

/// Runs the benches one after another, until one fails. Each has a process of its own: what an allocator and caches keep of one
/// would change the figures of the next.
fn run_all() -> ExitCode {
    for (name, _) in BENCHES {
        println!("Bench {name}\n");
        let mut bench = Command::new(std::env::current_exe().unwrap());
        let status = bench.arg(name).args(std::env::args_os().skip(1)).status().unwrap();
        if !status.success() {
            eprintln!("the bench '{name}' failed: {status}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
