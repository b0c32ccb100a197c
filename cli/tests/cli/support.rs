//! Running the program.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

pub(crate) const STATIONS: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/data/stations.tet");
pub(crate) const NOT_TET: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");

/// How a run of the program ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Outcome {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

pub(crate) fn gridfusion(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gridfusion"));
    command.args(args).env_remove("RUST_LOG");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub(crate) fn run(args: &[&str]) -> Outcome {
    gridfusion(args).output().unwrap().into()
}

pub(crate) fn run_with_input(args: &[&str], input: &str) -> Outcome {
    let mut child = gridfusion(args).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap().into()
}

/// Runs SQL that must fail with nothing on standard output; returns the message.
pub(crate) fn failure(paths: &[&str], sql: &str) -> String {
    let outcome = run(&[paths, &["-q", "-c", sql]].concat());
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""), "{sql}");
    let message = outcome.stderr.strip_prefix("Error: ").unwrap_or_else(|| panic!("{outcome:?}"));
    message.trim_end().to_owned()
}

/// An array, group or folder of the library's tests.
pub(crate) fn tiledb(name: &str) -> String {
    format!("{}/../tests/data/tiledb/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// A package whose generations are copies of the example, of which the second is current.
pub(crate) fn package(folder: &Path, name: &str) -> String {
    let root = folder.join(name);
    for number in 1..=2 {
        let generation = root.join(format!("generations/{number:08}"));
        fs::create_dir_all(&generation).unwrap();
        fs::copy(STATIONS, generation.join("packed.tet")).unwrap();
    }
    fs::write(root.join("PROTOCOL"), r#"{"protocol_version":2}"#).unwrap();
    fs::write(root.join("CURRENT"), "2\n").unwrap();
    root.to_str().unwrap().to_owned()
}
