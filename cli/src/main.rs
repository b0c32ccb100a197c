//! The program `gridfusion`. All of it is in the library `gridfusion_cli`, which the Python package uses too.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// mimalloc, because DataFusion allocates often and from many threads.
#[global_allocator]
static GLOBAL: MiMalloc = MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    let words = std::env::args_os().collect();
    ExitCode::from(gridfusion_cli::run_command_line(words).await)
}
