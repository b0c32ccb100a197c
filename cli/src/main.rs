//! The `gridfusion` command line: SQL over `.tet` files and TileDB arrays, from a prompt, a script or an
//! argument; and what such a file or array is.
//!
//! ```text
//!   args ──▶ session ──▶ tables ──▶ run ◀── prompt
//!     │      context     PATH…      SQL      ├──▶ commands, completion
//!     │                              ├──▶ summarize, unique_names: SQL ──▶ SQL
//!     │                              └──▶ query ──▶ print, pager, progress, timing
//!     │                                     └──▶ statement: SQL ──▶ plan
//!     ├────▶ info, verify: PATH ──▶ text or JSON
//!     ├────▶ plot: SQL ──▶ statement ──▶ picture
//!     └────▶ completions: shell ──▶ script
//! ```
//!
//! Planning and execution are DataFusion's. The modules here make the datasets of files into tables ([`place`],
//! [`options`], [`tables`], [`catalog`], [`store`]), describe them ([`info`]), look for what is wrong with them
//! ([`verify`]), watch queries ([`query`], [`progress`], [`timing`]), print their results ([`print`]), have them drawn
//! ([`plot`]), and let written files appear only when they are whole ([`staging`]). The rest keeps the promises of
//! a command: exit codes, errors on standard error that suggest a correction ([`errors`], [`hints`], [`mistyped`],
//! [`file_types`], [`bus_error`]), a limit of memory ([`memory`]), and silence when a reader like `head` has left.

mod alike;
mod args;
#[cfg(unix)]
#[expect(
    unsafe_code,
    reason = "signals are handled by functions of C; the SAFETY comments say how"
)]
mod bus_error;
mod catalog;
mod completions;
mod engine;
mod errors;
mod file_types;
mod hints;
mod info;
mod lexer;
mod memory;
mod missing_table;
mod mistyped;
mod options;
mod pager;
mod place;
mod plot;
mod print;
mod progress;
mod prompt;
mod query;
mod reads;
mod run;
mod session;
mod staging;
mod statement;
mod stdin;
mod store;
mod summarize;
mod tables;
mod timing;
mod unique_names;
mod verify;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use datafusion::error::Result;
use mimalloc::MiMalloc;

use crate::args::{Args, Script, Task};
use crate::session::Session;

/// DataFusion allocates much and from many threads.
#[global_allocator]
static GLOBAL: MiMalloc = MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    #[cfg(unix)]
    bus_error::install();
    let args =
        Args::try_from_command_line(std::env::args_os()).unwrap_or_else(|error| error.exit());
    let outcome = match &args.task {
        // Says itself what there is to warn of.
        Some(Task::Info(info)) => {
            start_log(true);
            Box::pin(info::run(info)).await.map(|()| ExitCode::SUCCESS)
        }
        Some(Task::Verify(verify)) => {
            start_log(true);
            Box::pin(verify::run(verify)).await
        }
        Some(Task::Plot(plot)) => {
            start_log(plot.engine.quiet);
            Box::pin(plot::run(plot)).await.map(|()| ExitCode::SUCCESS)
        }
        Some(Task::Completions(completions)) => {
            completions::run(completions).map(|()| ExitCode::SUCCESS)
        }
        None => {
            start_log(args.engine.quiet);
            Box::pin(execute(&args)).await.map(|()| ExitCode::SUCCESS)
        }
    };
    match outcome {
        Ok(code) => code,
        // Whoever read the output has seen enough; that is not a failure.
        Err(error) if errors::stdout_is_closed(&error) => ExitCode::SUCCESS,
        Err(error) => {
            errors::report(&error);
            ExitCode::FAILURE
        }
    }
}

/// Opens the files of the command line and runs its SQL, or the prompt.
async fn execute(args: &Args) -> Result<()> {
    let mut session = Session::new(&args.engine, args.reads_sql_from_stdin())?;
    let print = &mut session.output.print;
    (print.format, print.maxrows, print.color) = (args.format, args.maxrows, args.color);
    tables::register(&session, &args.paths, &args.options).await?;
    if args.scripts.is_empty() && io::stdin().is_terminal() {
        return prompt::run(&session.ctx, &mut session.output).await;
    }
    let piped = [Script::Stdin];
    let scripts: &[Script] = if args.scripts.is_empty() { &piped } else { &args.scripts };
    for script in scripts {
        let sql = script.read()?;
        run::run_sql(&session.ctx, &sql, &session.output).await?;
    }
    Ok(())
}

/// Shows the warnings of the library on standard error, unless `quiet`, and always its errors, after which answers may be wrong;
/// `RUST_LOG` overrules both.
fn start_log(quiet: bool) {
    let filter = if quiet { "error" } else { "gridfusion=warn,error" };
    let env = env_logger::Env::default().default_filter_or(filter);
    // The only error is "there is a logger already", and then that one is as good.
    let _ = env_logger::Builder::from_env(env)
        .format(|out, record| {
            let level = match record.level() {
                log::Level::Error => "error",
                log::Level::Warn => "warning",
                log::Level::Info => "info",
                log::Level::Debug => "debug",
                log::Level::Trace => "trace",
            };
            writeln!(out, "{level}: {}", record.args())
        })
        .try_init();
}
