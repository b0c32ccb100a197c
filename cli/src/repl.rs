//! The prompt.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use datafusion::common::plan_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::SessionContext;
use gridfusion::exec::to_datafusion;
use rustyline::Editor;
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;

use crate::args::Script;
use crate::errors::{report, stdout_is_closed};
use crate::run::run_sql;
use crate::session::Output;

type Prompt = Editor<(), DefaultHistory>;

/// Reads statements and commands until `\q` or the end of the input. An error of a statement is
/// printed and ends nothing.
pub(crate) async fn run(ctx: &SessionContext, output: &mut Output) -> Result<()> {
    let history = dirs::data_dir().map(|folder| folder.join("gridfusion").join("history"));
    let mut prompt = open(history.as_deref()).map_err(external)?;
    if !output.print.quiet {
        eprintln!("gridfusion {}", env!("CARGO_PKG_VERSION"));
    }
    let outcome = read_and_run(&mut prompt, ctx, output).await;
    if let Some(path) = history
        && let Err(error) = save(&mut prompt, &path)
    {
        log::warn!("the history was not saved to {}: {error}", path.display());
    }
    outcome
}

fn open(history: Option<&Path>) -> rustyline::Result<Prompt> {
    let mut prompt = Prompt::new()?;
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
    // Appends what is new, so that prompts which run side by side keep each other's lines.
    prompt.append_history(path)
}

async fn read_and_run(
    prompt: &mut Prompt,
    ctx: &SessionContext,
    output: &mut Output,
) -> Result<()> {
    loop {
        let line = match prompt.readline("> ") {
            Ok(line) => line,
            // Ctrl-C drops the line, Ctrl-D leaves.
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => return Ok(()),
            Err(error) => return Err(external(error)),
        };
        prompt.add_history_entry(line.trim_end()).map_err(external)?;
        let outcome = match line.strip_prefix('\\') {
            Some(command) => Box::pin(obey(ctx, command, output)).await,
            None => unless_interrupted(ctx, &line, output).await.map(|()| Next::Line),
        };
        match outcome {
            Ok(Next::Line) => {}
            Ok(Next::Quit) => return Ok(()),
            Err(error) if stdout_is_closed(&error) => return Err(error),
            Err(error) => report(&error),
        }
    }
}

/// What comes after a command.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Line,
    Quit,
}

/// Does what a backslash command says; `command` is the line without the backslash.
async fn obey(ctx: &SessionContext, command: &str, output: &mut Output) -> Result<Next> {
    let words: Vec<&str> = command.split_whitespace().collect();
    match words.as_slice() {
        ["q"] => return Ok(Next::Quit),
        ["pset", "format"] => {
            writeln!(io::stdout(), "Output format is {:?}.", output.print.format)?
        }
        ["pset", "format", format] => match format.parse() {
            Ok(format) => output.print.format = format,
            Err(_) => return unknown(command),
        },
        ["i", file] => {
            let sql = Script::of_file(Path::new(file)).read().map_err(to_datafusion)?;
            unless_interrupted(ctx, &sql, output).await?;
        }
        ["d"] => unless_interrupted(ctx, "SHOW TABLES", output).await?,
        ["d", table] => unless_interrupted(ctx, &format!("DESCRIBE {table}"), output).await?,
        _ => return unknown(command),
    }
    Ok(Next::Line)
}

fn unknown(command: &str) -> Result<Next> {
    plan_err!("'\\{command}' is not a command; \\? lists them")
}

/// Runs SQL until it is done, or until Ctrl-C.
async fn unless_interrupted(ctx: &SessionContext, sql: &str, output: &Output) -> Result<()> {
    tokio::select! {
        outcome = run_sql(ctx, sql, output) => outcome,
        Ok(()) = tokio::signal::ctrl_c() => {
            eprintln!("^C");
            Ok(())
        }
    }
}

fn external(error: ReadlineError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errors::describe;
    use crate::print::{Format, MaxRows, PrintOptions};

    #[tokio::test]
    async fn commands() {
        let ctx = SessionContext::new();
        let print = PrintOptions {
            format: Format::Automatic,
            quiet: true,
            maxrows: MaxRows::Unlimited,
            color: false,
        };
        let mut output = Output { print, timing: false, progress: false };
        assert_eq!(obey(&ctx, "q", &mut output).await.unwrap(), Next::Quit);
        assert_eq!(obey(&ctx, "pset  format csv", &mut output).await.unwrap(), Next::Line);
        assert_eq!(output.print.format, Format::Csv);
        for wrong in ["frobnicate", "pset colour red", ""] {
            let error = obey(&ctx, wrong, &mut output).await.unwrap_err();
            assert!(describe(&error).contains("is not a command"), "{error}");
        }
        let error = obey(&ctx, "i nowhere.sql", &mut output).await.unwrap_err();
        assert!(describe(&error).starts_with("nowhere.sql: cannot read the file"), "{error}");
    }
}
