//! The prompt: reads lines, keeps a history, and runs SQL and commands.
//!
//! ```text
//!   line ──▶ input ──▶ SQL ──▶ run
//!                └───▶ command ──▶ commands
//!   Tab ───▶ cursor ──▶ complete
//! ```

mod commands;
mod complete;
mod cursor;
mod folder;
mod helper;
mod input;
mod keywords;

use std::env;
use std::fs;
use std::path::{self, Path, PathBuf};

use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::SessionContext;
use gridfusion::provider::without_secrets_in_sql;
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use rustyline::{CompletionType, Config, Editor};
use tokio::task::block_in_place;

use self::commands::{Next, run_command};
use self::helper::PromptHelper;
use self::input::Input;
use crate::args::Script;
use crate::errors::{report, stdout_is_closed};
use crate::pager::Pager;
use crate::run::unless_interrupted;
use crate::secrets::hide;
use crate::session::Output;

type Prompt = Editor<PromptHelper, DefaultHistory>;

/// Reads statements and commands until a command quits or the input ends. Prints the errors of statements and
/// continues.
pub(crate) async fn run(ctx: &SessionContext, output: &mut Output) -> Result<()> {
    // After `.cd`, a relative path would be another file.
    let history = history().map(|it| path::absolute(&it).unwrap_or(it));
    let mut prompt = open(ctx, output, history.as_deref()).map_err(external)?;
    if !output.print.quiet {
        eprintln!("gridfusion {}", env!("CARGO_PKG_VERSION"));
    }
    output.pager = Pager::from_environment();
    if let Some(path) = rc() {
        run_first(ctx, &path, output).await?;
    }
    let outcome = read_and_run(&mut prompt, ctx, output).await;
    if let Some(path) = history
        && let Err(error) = save(&mut prompt, &path)
    {
        log::warn!("the history was not saved to {}: {error}", path.display());
    }
    outcome
}

/// Returns the history file: `GRIDFUSION_HISTORY`, none if that is empty, else a file in the user's data
/// directory.
fn history() -> Option<PathBuf> {
    match env::var_os("GRIDFUSION_HISTORY") {
        Some(path) => Some(PathBuf::from(path)).filter(|path| !path.as_os_str().is_empty()),
        None => dirs::data_dir().map(|folder| folder.join("gridfusion").join("history")),
    }
}

/// Returns the file of commands and SQL to run first: `GRIDFUSION_RC`, none if that is empty, else a file in the user's home.
fn rc() -> Option<PathBuf> {
    match env::var_os("GRIDFUSION_RC") {
        Some(path) => Some(PathBuf::from(path)).filter(|path| !path.as_os_str().is_empty()),
        None => dirs::home_dir().map(|home| home.join(".gridfusionrc")).filter(|it| it.exists()),
    }
}

/// Runs the commands and statements of a file. Only the prompt does so: what a script prints must not depend on such a file.
async fn run_first(ctx: &SessionContext, path: &Path, output: &mut Output) -> Result<()> {
    let text = match Script::from_file(path).read() {
        Ok(text) => text,
        Err(error) => {
            log::warn!("{error}");
            return Ok(());
        }
    };
    let mut sql = String::new();
    for line in text.lines() {
        sql.push_str(line);
        sql.push('\n');
        if matches!(Input::new(&sql), Input::Unfinished) {
            continue;
        }
        let outcome = run_input(ctx, &std::mem::take(&mut sql), output).await;
        if !shown(outcome)? {
            return Ok(());
        }
    }
    shown(run_input(ctx, &sql, output).await).map(drop)
}

/// Prints the error of a statement or command. Returns false if it ends the prompt.
fn shown(outcome: Result<Next>) -> Result<bool> {
    match outcome {
        Ok(Next::Line) => Ok(true),
        Ok(Next::Quit) => Ok(false),
        Err(error) if stdout_is_closed(&error) => Err(error),
        Err(error) => {
            report(&error);
            Ok(true)
        }
    }
}

/// Runs a command, or SQL.
async fn run_input(ctx: &SessionContext, text: &str, output: &mut Output) -> Result<Next> {
    let input = Input::new(text);
    let is_statement = matches!(input, Input::Sql(_) | Input::Unfinished);
    let outcome = match input {
        Input::Nothing => Ok(Next::Line),
        Input::Command(name, argument) => Box::pin(run_command(ctx, name, argument, output)).await,
        Input::Sql(_) | Input::Unfinished => {
            unless_interrupted(ctx, text, output).await.map(|()| Next::Line)
        }
    };
    let ended = output.results.end_next(is_statement, outcome.is_ok());
    outcome.and_then(|next| ended.map(|()| next))
}

fn open(
    ctx: &SessionContext,
    output: &Output,
    history: Option<&Path>,
) -> rustyline::Result<Prompt> {
    let config = Config::builder().completion_type(CompletionType::List).build();
    let mut prompt = Prompt::with_config(config)?;
    prompt.set_helper(Some(PromptHelper::new(ctx, output.print.color)));
    if let Some(path) = history.filter(|path| path.exists())
        && let Err(error) = prompt.load_history(path)
    {
        log::warn!("the history in {} was not read: {error}", path.display());
    }
    Ok(prompt)
}

fn save(prompt: &mut Prompt, path: &Path) -> rustyline::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    // Appending only new lines keeps the lines of other prompts that run at the same time.
    prompt.append_history(path)
}

async fn read_and_run(
    prompt: &mut Prompt,
    ctx: &SessionContext,
    output: &mut Output,
) -> Result<()> {
    loop {
        if let Some(helper) = prompt.helper() {
            helper.refresh();
        }
        let line = match block_in_place(|| prompt.readline("> ")) {
            Ok(line) => line,
            // Ctrl-C drops the line, Ctrl-D quits.
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => return Ok(()),
            Err(error) => return Err(external(error)),
        };
        // The history is a file, so it gets no secrets.
        let entry = hide(&without_secrets_in_sql(line.trim_end())).into_owned();
        prompt.add_history_entry(entry).map_err(external)?;
        // The window may have changed its size. The prompt takes the last line.
        let lines = prompt.dimensions().map(|(_, rows)| usize::from(rows).saturating_sub(1));
        output.pager.set_screen(lines);
        if !shown(run_input(ctx, &line, output).await)? {
            return Ok(());
        }
    }
}

fn external(error: ReadlineError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
