//! `gridfusion completions`: scripts that complete command lines in shells.

use std::io::{self, Write};

use clap::CommandFactory;
use clap_complete::generate;
use datafusion::error::Result;

use crate::args::{Args, CompletionsArgs};

/// Prints the script for a shell.
///
/// # Errors
/// If standard output cannot be written.
pub(crate) fn run(args: &CompletionsArgs) -> Result<()> {
    // The script goes to memory first, because the generator panics if it cannot write.
    let mut script = vec![];
    generate(args.shell, &mut Args::command(), "gridfusion", &mut script);
    let mut stdout = io::stdout().lock();
    stdout.write_all(&script)?;
    Ok(stdout.flush()?)
}
