//! Commands of the prompt: lines that are not SQL.
//!
//! [`COMMANDS`] is the only list of them. The prompt runs, completes and documents commands from it.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use clap::ValueEnum;
use datafusion::common::{plan_datafusion_err, plan_err};
use datafusion::error::Result;
use datafusion::prelude::SessionContext;

use super::folder;
use crate::args::Script;
use crate::print::{Format, MaxRows};
use crate::results::Results;
use crate::run::unless_interrupted;
use crate::session::Output;

/// A command, as `\?` lists it.
pub(super) struct CommandInfo {
    /// All names of the command.
    pub(super) names: &'static [&'static str],
    /// The argument, for the help. Users type lower-case words literally.
    pub(super) argument: &'static str,
    what: &'static str,
    command: Command,
}

#[derive(Clone, Copy)]
enum Command {
    Tables,
    Columns,
    Functions,
    Include,
    Folder,
    Set,
    Mode,
    Timing,
    Headers,
    Output,
    Once,
    Pager,
    Quiet,
    Clear,
    Help,
    Quit,
}

/// The formats, as the argument of `.mode`.
const FORMATS: &str = "[automatic|table|box|markdown|line|csv|tsv|json|nd-json|parquet|arrow]";

pub(super) const COMMANDS: &[CommandInfo] = &[
    CommandInfo {
        names: &[".tables", "\\dt"],
        argument: "",
        what: "list tables",
        command: Command::Tables,
    },
    CommandInfo {
        names: &[".schema", "\\d"],
        argument: "[TABLE]",
        what: "list the columns of a table; without one, list tables",
        command: Command::Columns,
    },
    CommandInfo {
        names: &["\\h"],
        argument: "[FUNCTION]",
        what: "list functions, or show how to call one",
        command: Command::Functions,
    },
    CommandInfo {
        names: &["\\i", ".read"],
        argument: "FILE",
        what: "run the SQL in a file",
        command: Command::Include,
    },
    CommandInfo {
        names: &[".cd", "\\cd"],
        argument: "[FOLDER]",
        what: "change the folder of relative paths, or show it",
        command: Command::Folder,
    },
    CommandInfo {
        names: &["\\pset"],
        argument: "[format FORMAT, or maxrows N|inf]",
        what: "show or set how results are printed",
        command: Command::Set,
    },
    CommandInfo {
        names: &[".mode"],
        argument: FORMATS,
        what: "show or set the format of results",
        command: Command::Mode,
    },
    CommandInfo {
        names: &[".headers"],
        argument: "[on|off]",
        what: "print the names of columns above CSV and TSV",
        command: Command::Headers,
    },
    CommandInfo {
        names: &[".output"],
        argument: "[FILE]",
        what: "write results to a file; without one, show them again",
        command: Command::Output,
    },
    CommandInfo {
        names: &[".once"],
        argument: "FILE",
        what: "write the result of the next statement to a file",
        command: Command::Once,
    },
    CommandInfo {
        names: &["\\timing", ".timer"],
        argument: "[on|off]",
        what: "report the time of each statement and what it read",
        command: Command::Timing,
    },
    CommandInfo {
        names: &["\\pager"],
        argument: "[on|off]",
        what: "show results longer than the screen in a pager",
        command: Command::Pager,
    },
    CommandInfo {
        names: &["\\quiet"],
        argument: "[on|off]",
        what: "print results only",
        command: Command::Quiet,
    },
    CommandInfo {
        names: &["clear", "\\clear"],
        argument: "",
        what: "clear the screen; Ctrl-L does the same",
        command: Command::Clear,
    },
    CommandInfo {
        names: &[".help", "\\?", "help"],
        argument: "",
        what: "list commands",
        command: Command::Help,
    },
    CommandInfo {
        names: &[".exit", ".quit", "\\q", "exit", "quit"],
        argument: "",
        what: "quit; Ctrl-D does the same",
        command: Command::Quit,
    },
];

/// The prompt's action after a command.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Line,
    Quit,
}

/// Runs a command.
///
/// # Errors
/// If the command is unknown, does not take this argument, or fails.
pub(super) async fn run_command(
    ctx: &SessionContext,
    name: &str,
    argument: &str,
    output: &mut Output,
) -> Result<Next> {
    let lower = name.to_lowercase();
    let Some(info) = COMMANDS.iter().find(|command| command.names.contains(&&*lower)) else {
        return plan_err!("'{name}' is not a command; \\? lists commands");
    };
    if info.argument.is_empty() && !argument.is_empty() {
        return plan_err!("'{name}' takes no argument; \\? lists commands");
    }
    match info.command {
        Command::Quit => return Ok(Next::Quit),
        Command::Help => write!(io::stdout(), "{}", help())?,
        Command::Tables => list(ctx, "SHOW TABLES", output).await?,
        Command::Columns if argument.is_empty() => list(ctx, "SHOW TABLES", output).await?,
        // A query of the information schema would open the datasets of all files.
        Command::Columns => list(ctx, &format!("DESCRIBE {argument}"), output).await?,
        Command::Functions => list(ctx, &functions(ctx, argument), output).await?,
        Command::Include if argument.is_empty() => return plan_err!("{name} needs a FILE"),
        Command::Include => {
            let file = Path::new(unquoted(argument));
            let sql = Script::from_file(file).read()?;
            unless_interrupted(ctx, &sql, output).await?;
        }
        Command::Folder => folder::change(ctx, unquoted(argument), output)?,
        Command::Set => set(name, argument, output)?,
        Command::Mode => set(name, &format!("format {argument}"), output)?,
        Command::Headers => switch(name, argument, &mut output.print.headers)?,
        Command::Output if argument.is_empty() => output.results = Results::Shown,
        Command::Output => {
            let path = Path::new(unquoted(argument));
            output.results = Results::all_in(path, output.print.format)?;
        }
        Command::Once if argument.is_empty() => return plan_err!("{name} needs a FILE"),
        Command::Once => {
            // The file of an earlier `.once` may be the same.
            output.results.end_next(true, false)?;
            let path = Path::new(unquoted(argument));
            output.results = Results::next_in(path, output.print.format)?;
        }
        Command::Clear => write!(io::stdout(), "\x1b[2J\x1b[H")?,
        Command::Timing => switch(name, argument, &mut output.timing)?,
        Command::Quiet => switch(name, argument, &mut output.print.quiet)?,
        Command::Pager => {
            let mut is_on = output.pager.command().is_some();
            switch(name, argument, &mut is_on)?;
            output.pager.turn(is_on);
        }
    }
    Ok(Next::Line)
}

/// Returns the argument without the quotes that Tab and SQL put around paths.
fn unquoted(argument: &str) -> &str {
    argument.trim_matches(['\'', '"'])
}

/// Runs a query and shows all its rows.
async fn list(ctx: &SessionContext, sql: &str, output: &Output) -> Result<()> {
    let mut output = output.clone();
    output.print.maxrows = MaxRows::Unlimited;
    unless_interrupted(ctx, sql, &output).await
}

/// Returns a query that lists all functions, or the one with this name.
fn functions(ctx: &SessionContext, name: &str) -> String {
    if !name.is_empty() {
        return format!(
            "SHOW FUNCTIONS LIKE '{}'",
            name.trim_end_matches("()").replace('\'', "''")
        );
    }
    let mut sql = "SELECT DISTINCT routine_name AS name, lower(function_type) AS kind \
                   FROM information_schema.routines"
        .to_owned();
    for name in ctx.state().table_functions().keys() {
        sql.push_str(&format!(" UNION ALL SELECT '{}', 'table'", name.replace('\'', "''")));
    }
    sql + " ORDER BY name"
}

/// Sets or prints the settings of printed results: `\pset`, `\pset format`, `\pset format csv`.
fn set(name: &str, argument: &str, output: &mut Output) -> Result<()> {
    let (what, value) = argument.split_once(char::is_whitespace).unwrap_or((argument, ""));
    let value = value.trim();
    match what {
        "" => {}
        "format" if value.is_empty() => {}
        "maxrows" if value.is_empty() => {}
        "format" => {
            let format = Format::from_str(value, true).map_err(|_| {
                plan_datafusion_err!(
                    "'{value}' is not a format; the formats are {}",
                    format_names().join(", ")
                )
            })?;
            if format.is_binary() && io::stdout().is_terminal() {
                let (name, title) = (format_name(format), format.title());
                return plan_err!(
                    "{title} is not for terminals; .once FILE.{name} writes the next result"
                );
            }
            output.print.format = format;
        }
        "maxrows" => {
            output.print.maxrows = value
                .parse()
                .map_err(|_| plan_datafusion_err!("maxrows takes a number, or inf for all rows"))?;
        }
        _ => return plan_err!("'{name} {what}' is not a command; \\? lists commands"),
    }
    let mut out = io::stdout();
    if what != "maxrows" {
        writeln!(out, "format is {}", format_name(output.print.format))?;
    }
    if what != "format" {
        match output.print.maxrows {
            MaxRows::Unlimited => writeln!(out, "maxrows is inf")?,
            MaxRows::Limited(rows) => writeln!(out, "maxrows is {rows}")?,
        }
    }
    Ok(())
}

/// Returns the names of all formats that can be set.
fn format_names() -> Vec<String> {
    let all = Format::value_variants().iter().filter_map(|format| format.to_possible_value());
    all.map(|value| value.get_name().to_owned()).collect()
}

fn format_name(format: Format) -> String {
    format.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// Turns a setting on or off if an argument is given, then prints it.
fn switch(name: &str, argument: &str, is_on: &mut bool) -> Result<()> {
    match argument.to_lowercase().as_str() {
        "" => {}
        "on" | "true" | "yes" => *is_on = true,
        "off" | "false" | "no" => *is_on = false,
        _ => return plan_err!("{name} takes on or off, not '{argument}'"),
    }
    writeln!(io::stdout(), "{} is {}", &name[1..], if *is_on { "on" } else { "off" })?;
    Ok(())
}

/// Returns the help that `\?` prints.
fn help() -> String {
    let mut text = String::from("SQL ends with a semicolon. Commands need none:\n");
    for CommandInfo { names, argument, what, .. } in COMMANDS {
        let usage = format!("{} {argument}", names.join(", "));
        let usage = usage.trim_end();
        let _ = match usage.len() {
            0..=36 => writeln!(text, "  {usage:<36}  {what}"),
            _ => writeln!(text, "  {usage}\n  {:<36}  {what}", ""),
        };
    }
    text + "Tab completes names, keywords and paths in quotes. Ctrl-C stops a query.\n"
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::SessionConfig;

    use super::*;
    use crate::errors::describe;
    use crate::pager::Pager;
    use crate::print::PrintOptions;

    fn output() -> Output {
        let print = PrintOptions {
            format: Format::Automatic,
            quiet: true,
            maxrows: MaxRows::Limited(40),
            headers: true,
            color: false,
        };
        let pager = Pager::default();
        let results = Results::Shown;
        Output {
            print,
            timing: false,
            progress: false,
            pager,
            results,
            retries: 0,
            has_workers: false,
        }
    }

    #[tokio::test]
    async fn commands_do_what_their_help_promises() {
        let config = SessionConfig::new().with_information_schema(true);
        let ctx = SessionContext::new_with_config(config);
        let mut output = output();
        for quit in ["\\q", ".exit", ".quit", "exit", "QUIT"] {
            assert_eq!(
                run_command(&ctx, quit, "", &mut output).await.unwrap(),
                Next::Quit,
                "{quit}"
            );
        }
        for (name, argument) in [
            ("\\pset", "format ND-json"),
            ("\\pset", "maxrows inf"),
            ("\\pset", ""),
            (".mode", "box"),
            (".mode", "nd-json"),
            (".headers", "off"),
            (".output", ""),
            ("\\timing", "on"),
            ("\\quiet", "off"),
            ("\\pager", "on"),
            ("help", ""),
            ("\\h", ""),
        ] {
            let next = run_command(&ctx, name, argument, &mut output).await;
            assert_eq!(next.unwrap(), Next::Line, "{name} {argument}");
        }
        assert_eq!(output.print.format, Format::NdJson);
        assert!(matches!(output.print.maxrows, MaxRows::Unlimited));
        assert!(output.timing && !output.print.quiet && !output.print.headers);
        assert_eq!(output.pager.command(), Some("less -SFRX"));
        run_command(&ctx, "\\pager", "off", &mut output).await.unwrap();
        assert_eq!(output.pager.command(), None);
    }

    #[tokio::test]
    async fn mistakes_are_named() {
        let ctx = SessionContext::new();
        for (name, argument, expected) in [
            ("\\frobnicate", "", "'\\frobnicate' is not a command; \\? lists commands"),
            ("\\", "", "is not a command"),
            (".tables", "x", "'.tables' takes no argument"),
            ("\\pset", "colour red", "'\\pset colour' is not a command"),
            (
                "\\pset",
                "format xls",
                "the formats are csv, tsv, table, box, markdown, line, json, nd-json, parquet, arrow, automatic",
            ),
            (".mode", "xls", "'xls' is not a format"),
            (".once", "", ".once needs a FILE"),
            (".output", "nowhere/x.csv", "nowhere/x.csv: cannot write the file: "),
            (".once", "nowhere/x.parquet", "nowhere/x.parquet: cannot write the file: "),
            (".output", "x.parquet", "such a file holds one result; .once x.parquet writes"),
            ("\\pset", "maxrows many", "maxrows takes a number"),
            ("\\timing", "maybe", "\\timing takes on or off, not 'maybe'"),
            (".cd", "'no where'", "no where: cannot change to the folder: "),
            ("\\i", "", "\\i needs a FILE"),
            ("\\i", "nowhere.sql", "nowhere.sql: cannot read the file"),
        ] {
            let error = run_command(&ctx, name, argument, &mut output()).await.unwrap_err();
            assert!(describe(&error).contains(expected), "{name} {argument}: {error}");
        }
    }

    /// The prompt, the command line and the book list the same formats.
    #[test]
    fn formats_are_listed_everywhere() {
        let sorted = |mut names: Vec<String>| {
            names.sort();
            names
        };
        let all = sorted(format_names());
        let listed = FORMATS.trim_matches(['[', ']']).split('|').map(str::to_owned).collect();
        assert_eq!(sorted(listed), all);
        let page = include_str!("../../../docs/cli.md");
        let table = page.split_once("| `--format` |").unwrap().1.split_once("\n\n").unwrap().0;
        let first_cells = table.lines().skip(2).map(|row| row.split('|').nth(1).unwrap());
        let names = first_cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
        assert_eq!(sorted(names.map(str::to_owned).collect()), all);
    }

    #[test]
    fn help_lists_every_command() {
        let help = help();
        for name in COMMANDS.iter().flat_map(|command| command.names) {
            assert!(help.contains(name), "{name}: {help}");
        }
        assert!(help.lines().all(|line| line.len() <= 100), "{help}");
    }
}
