//! The `gridfusion` command line: runs SQL over files and stores of arrays, and inspects, verifies and
//! plots them.
//!
//! ```text
//!   args ──▶ session ──▶ tables ──▶ run ◀── prompt
//!     │      context     PATH…      SQL      ├──▶ commands, completion
//!     │                              ├──▶ summarize, unique_names: SQL ──▶ SQL
//!     │                              └──▶ query ──▶ print, pager, progress, timing
//!     │                                     └──▶ statement: SQL ──▶ plan
//!     ├────▶ info, verify: PATH ──▶ text or JSON
//!     ├────▶ convert: PATH…, SQL ──▶ statement ──▶ array
//!     ├────▶ cluster: queries on workers, and workers themselves
//!     ├────▶ plot: SQL ──▶ statement ──▶ picture
//!     └────▶ completions: shell ──▶ script
//! ```
//!
//! Planning and execution are DataFusion's. The modules here add:
//!
//! - Tables from the datasets of files: [`place`], [`options`], [`tables`], [`catalog`], [`store`].
//! - Commands: [`info`] describes files and arrays, [`verify`] checks them, [`plot`] draws query results, [`convert`] writes arrays.
//! - Queries: [`query`] runs them, [`progress`], [`timing`] and [`requests`] report on them, [`print`] prints their rows
//!   to [`results`].
//! - Several processes: [`cluster`].
//! - Exports: with [`staging`], a written file appears only when it is complete.
//! - Errors on standard error that suggest a correction: [`errors`], [`hints`], [`store_hints`], [`mistyped`],
//!   [`calendars`], [`file_types`], [`bus_error`]. A closed pipe, as after `head`, is no error. [`secrets`] are hidden in them.
//! - A memory limit: [`memory`]. The [`version`], for bug reports.
//!
//! The Python package uses the same session, through [`embed`], and has the program as a command.

mod alike;
mod args;
#[cfg(unix)]
#[expect(
    unsafe_code,
    reason = "signal handlers are C functions; the SAFETY comments give the conditions"
)]
mod bus_error;
mod calendars;
mod catalog;
mod cluster;
mod completions;
mod convert;
mod draft;
pub mod embed;
mod engine;
mod errors;
mod file_types;
mod from_first;
mod hints;
mod info;
mod lexer;
mod memory;
mod missing_column;
mod missing_table;
mod mistyped;
mod named_coordinates;
mod options;
mod pager;
mod panics;
mod place;
mod placeholders;
mod plot;
mod print;
mod printable;
mod progress;
mod prompt;
mod query;
mod reads;
mod requests;
mod results;
mod run;
mod secrets;
mod session;
mod size;
mod staging;
mod statement;
mod stdin;
mod store;
mod store_hints;
mod summarize;
mod tables;
mod timing;
mod unique_names;
mod verify;
mod version;
mod worker;

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;

use datafusion::error::Result;
use gridfusion::{without_panics, without_secrets};

use crate::args::{Args, Script, Task};
use crate::hints::with_hint;
use crate::options::PathOptions;
use crate::print::Format;
use crate::printable::printable_lines;
use crate::progress::Progress;
use crate::requests::gridfusion_config;
use crate::results::{ResultFile, Results};
use crate::secrets::hide;
use crate::session::Session;

/// Runs the task of a command line, whose first word is the name of the program. Returns the status with which the process ends.
pub async fn run_command_line(words: Vec<OsString>) -> u8 {
    #[cfg(unix)]
    bus_error::install();
    panics::quieten();
    secrets::learn_arguments(words.iter().cloned());
    let args = match Args::try_from_command_line(words) {
        Ok(args) => args,
        Err(error) => return errors::exit(&error),
    };
    match without_panics(Box::pin(run_task(&args))).await {
        Ok(is_ok) => u8::from(!is_ok),
        // The reader of standard output closed the pipe, as `head` does. That is not a failure.
        Err(error) if errors::stdout_is_closed(&error) => 0,
        Err(error) => {
            errors::report(&error);
            1
        }
    }
}

/// Runs the task of the command line. Returns whether all files that it looks at are whole.
async fn run_task(args: &Args) -> Result<bool> {
    match &args.task {
        // The description contains its own warnings, so the log shows only errors.
        Some(Task::Info(info)) => {
            start_log(true);
            Box::pin(info::run(info)).await
        }
        Some(Task::Verify(verify)) => {
            start_log(true);
            Box::pin(verify::run(verify)).await
        }
        Some(Task::Plot(plot)) => {
            start_log(plot.engine.quiet);
            let outcome = Box::pin(plot::run(plot)).await;
            plot.engine.cluster.tasks_ended().await;
            outcome.map(|()| true)
        }
        Some(Task::Convert(convert)) => {
            start_log(convert.engine.quiet);
            let outcome = Box::pin(convert::run(convert)).await;
            convert.engine.cluster.tasks_ended().await;
            outcome.map(|()| true)
        }
        Some(Task::Worker(worker)) => {
            start_log(false);
            Box::pin(worker::run(worker)).await.map(|()| true)
        }
        Some(Task::Completions(completions)) => completions::run(completions).map(|()| true),
        None => {
            start_log(args.engine.quiet);
            let outcome = Box::pin(execute(args)).await;
            args.engine.cluster.tasks_ended().await;
            outcome.map(|()| true)
        }
    }
}

/// Opens the paths of the command line and runs its SQL, or the prompt.
async fn execute(args: &Args) -> Result<()> {
    let options = PathOptions::new(&args.options, &gridfusion::built_in_formats())?;
    let is_stdin_sql = args.reads_sql_from_stdin();
    let mut session = Session::new(&args.engine, is_stdin_sql, options.for_stores())?;
    let print = &mut session.output.print;
    (print.format, print.maxrows, print.color) = (args.format, args.maxrows, args.color);
    let path = args.output.as_deref();
    let made = |path| ResultFile::draft(path, Format::from_ending(path, args.format)?);
    let file = path.map(made).transpose()?.map(Arc::new);
    if let Some(file) = &file {
        session.output.results = Results::AllIn(Arc::clone(file));
    }
    let opening =
        session.output.progress.then(|| Progress::from_opening(&gridfusion_config(&session.ctx)));
    let opened = tables::register(&session, &args.paths, &options).await;
    drop(opening);
    opened.map_err(|error| with_hint(error, &session.ctx))?;
    if args.scripts.is_empty() && io::stdin().is_terminal() {
        prompt::run(&session.ctx, &mut session.output).await?;
        return file.map_or(Ok(()), |file| file.keep(args.format));
    }
    let piped = [Script::Stdin];
    let scripts: &[Script] = if args.scripts.is_empty() { &piped } else { &args.scripts };
    for script in scripts {
        let sql = script.read()?;
        run::run_sql(&session.ctx, &sql, &session.output).await?;
    }
    file.map_or(Ok(()), |file| file.keep(args.format))
}

/// Libraries whose logs have the texts of statements.
const SILENT: [&str; 2] = ["sqlparser", "rustyline"];

/// Starts logging to standard error. It shows the library's warnings unless `quiet`, and always errors,
/// after which results may be wrong. `RUST_LOG` overrides both.
fn start_log(quiet: bool) {
    let filter = if quiet { "error" } else { "gridfusion=warn,error" };
    let env = env_logger::Env::default().default_filter_or(filter);
    // The only error is "a logger is already set". That logger serves as well.
    let _ = env_logger::Builder::from_env(env)
        .format(|out, record| {
            let level = match record.level() {
                log::Level::Error => "error",
                log::Level::Warn => "warning",
                log::Level::Info => "info",
                log::Level::Debug => "debug",
                log::Level::Trace => "trace",
            };
            // The parser logs the statement with all its values, and the prompt each key.
            if record.target().split("::").next().is_some_and(|it| SILENT.contains(&it)) {
                return Ok(());
            }
            let text = record.args().to_string();
            let text = without_secrets(&hide(&text));
            writeln!(out, "{level}: {}", printable_lines(&text))
        })
        .try_init();
}
