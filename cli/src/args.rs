//! The command line: what it accepts, and what it says about itself.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{fs, io};

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use gridfusion::Error;

use crate::engine::Engine;
use crate::options::{Setting, parse_setting};
use crate::plot::args::PlotArgs;
use crate::print::{Format, MaxRows};
use crate::stdin::is_stdin;

const AFTER_HELP: &str = r#"Examples:
  A prompt; .tables lists what is there, quit leaves:
    gridfusion stations.tet

  One query:
    gridfusion stations.tet -c "SELECT station, avg(value) FROM temperature GROUP BY station"

  A script, as CSV and nothing else:
    gridfusion stations.tet -q --format csv -f report.sql > report.csv

  A path in quotes, in the SQL: all variables of a file side by side, or some, or one:
    gridfusion -c "SELECT lat, corr(temperature, rain) FROM 'climate.tet' GROUP BY lat"
    gridfusion -c "SELECT * FROM 'stations.tet#temperature' LIMIT 5"

  Many files as one table, and which of them a row is from:
    gridfusion -c "SELECT max(temperature) FROM 'years/*.tet'"
    gridfusion -c "SELECT _file, count(*) FROM read_tet('years/*.tet', file_column => true) GROUP BY _file"

  Two files, each a schema that is named after it:
    gridfusion 2023.tet 2024.tet -c 'SELECT max(value) FROM "2024".temperature'

  A directory of files, a catalog with a schema for each:
    gridfusion climate -c "SELECT * FROM climate.stations.temperature LIMIT 5"

  An object store:
    gridfusion s3://bucket/stations.tet -c "SELECT count(*) FROM temperature"

  The current generation of a package:
    gridfusion stations.tet.d -c "SELECT count(*) FROM temperature"

  A TileDB array, and a folder or group of them:
    gridfusion arrays/forecast -c "SELECT run, max(temperature) FROM forecast GROUP BY run"
    gridfusion arrays -c "SHOW TABLES"

  What a file, an array or a folder of arrays is, at a glance; in SQL too:
    gridfusion info stations.tet
    gridfusion info arrays/forecast --metadata --json
    gridfusion -c "SELECT dataset, shape, ratio FROM tet_info('stations.tet')"

  Whether it is what it should be, down to the last cell:
    gridfusion verify stations.tet --deep

  A picture of a query: a heat map, lines, points or bars, as .png or .svg:
    gridfusion plot "SELECT time, station, value FROM temperature" stations.tet -o map.png

  What the columns of a table are like:
    gridfusion stations.tet -c "SUMMARIZE temperature"

  How long a query took, and what of the file it read:
    gridfusion stations.tet --timing -c "SELECT max(value) FROM temperature WHERE station = 'Oslo'"

  Completion of command lines, for bash; others are zsh, fish, powershell and elvish:
    source <(gridfusion completions bash)

  A TileDB array as it was then, and a generation of a package that is not the current one:
    gridfusion arrays/forecast -o timestamp=2024-03-01 -c "SELECT max(temperature) FROM forecast"
    gridfusion info stations.tet.d -o generation=1

  A table with options:
    gridfusion -c "CREATE EXTERNAL TABLE t STORED AS TET LOCATION 'stations.tet'
                   OPTIONS (dataset 'temperature', index_columns 'true');
                   SELECT * FROM t WHERE time_idx < 10"

Names:
  SQL folds names to lower case. A name with capitals, dashes or a leading digit needs double
  quotes: "Soil-2024".temperature

Environment:
  AWS_*, GOOGLE_*, AZURE_*   Credentials and settings of object stores, for instance AWS_REGION,
                             or AWS_SKIP_SIGNATURE=true for public buckets
  DATAFUSION_*               Settings of the session, as listed by SHOW ALL
  GRIDFUSION_HISTORY         Where the prompt keeps what was typed; if empty, nowhere
  GRIDFUSION_PAGER, PAGER    What shows results longer than the screen; if empty, nothing
  RUST_LOG                   What is logged to standard error, for instance gridfusion=debug

Exit status:
  0 when all statements or checks succeeded, or whoever reads the output has seen enough; 1 when one failed,
  with the reason on standard error; 2 for a mistake on the command line"#;

/// SQL over `.tet` files and TileDB arrays: every dataset or array is a table
///
/// A table has one row per cell: a column per dimension, then the column "value" or one per attribute.
/// Only the chunks that a query needs are read.
///
/// Without -c and -f, SQL is read from a prompt, or from standard input if that is not a terminal.
#[derive(Debug, Parser)]
#[command(
    name = "gridfusion",
    version,
    after_long_help = AFTER_HELP,
    args_conflicts_with_subcommands = true, // words after a path are paths, whatever they are
    disable_help_subcommand = true,
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) task: Option<Task>,

    /// Files and arrays that become tables: paths or URLs (s3://, gs://, az://, http(s)://)
    ///
    /// A `.tet` file, a `.tet.d` package, a TileDB array, or a folder or group of such arrays. A dataset or
    /// array is reached by its name if only one path has it, and always as PATH.NAME, where PATH is the
    /// last part of the path without its extension. A directory of `.tet` files becomes a catalog:
    /// DIRECTORY.FILE.NAME. Without a PATH, SQL finds files by paths in quotes: FROM 'stations.tet'. A file
    /// called like a command is given as `./info`.
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<String>,

    /// How what is at each PATH is read, for instance `timestamp=2024-03-01`; may be repeated
    ///
    /// Of a package: generation. Of TileDB arrays: timestamp, timestamp_start, encryption_key, full_domain,
    /// text_as_binary, time_as_integer. Of both: io, nan_as_null, fill_as_null, index_columns, trust_zone_maps.
    /// Settings of object stores are options too: `aws.region=eu-north-1`.
    #[arg(short, long = "option", value_name = "NAME=VALUE", value_parser = parse_setting, requires = "paths")]
    pub(crate) options: Vec<Setting>,

    /// Run SQL, then exit; may be repeated, and may hold several statements separated by ';'
    #[arg(short = 'c', long = "command", value_name = "SQL")]
    commands: Vec<String>,

    /// Run the SQL of a file ('-' is standard input), then exit; may be repeated
    ///
    /// With -c and -f together, everything runs in the order of the command line.
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    files: Vec<PathBuf>,

    /// What `-c` and `-f` ask for, in the order of the command line.
    #[arg(skip)]
    pub(crate) scripts: Vec<Script>,

    /// How results are printed; 'automatic' is a table
    #[arg(long, value_enum, ignore_case = true, default_value_t = Format::Automatic)]
    pub(crate) format: Format,

    /// Rows shown of a table, or 'inf'; other formats always print all rows
    #[arg(long, value_name = "N", default_value = "40")]
    pub(crate) maxrows: MaxRows,

    /// Highlight SQL at the prompt
    #[arg(long)]
    pub(crate) color: bool,

    #[command(flatten)]
    pub(crate) engine: Engine,
}

impl Args {
    /// Parses a command line whose first word is the name of the program.
    pub(crate) fn try_from_command_line<I, T>(words: I) -> Result<Self, clap::Error>
    where
        I: IntoIterator<Item = T>,
        T: Into<OsString> + Clone,
    {
        let matches = Self::command().try_get_matches_from(words)?;
        let mut args = Self::from_arg_matches(&matches)?;
        let commands = args.commands.iter().map(|sql| Script::Text(sql.clone()));
        let files = args.files.iter().map(|path| Script::of_file(path));
        let mut scripts: Vec<(usize, Script)> =
            places(&matches, "commands").zip(commands).collect();
        scripts.extend(places(&matches, "files").zip(files));
        scripts.sort_by_key(|(place, _)| *place);
        args.scripts = scripts.into_iter().map(|(_, script)| script).collect();
        Ok(args)
    }

    /// Whether standard input is SQL, and so cannot be data.
    pub(crate) fn reads_sql_from_stdin(&self) -> bool {
        self.scripts.is_empty() || self.scripts.contains(&Script::Stdin)
    }
}

/// What can be done beside SQL.
#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Say what a file, an array, or a folder of arrays is
    Info(InfoArgs),
    /// Look for everything that is wrong with a file, an array, or a directory of them
    Verify(VerifyArgs),
    /// Draw the rows of a query: a heat map, lines, points or bars, as .png or .svg
    Plot(PlotArgs),
    /// Print a script that completes command lines in a shell
    Completions(CompletionsArgs),
}

/// What to verify, and how.
#[derive(Debug, clap::Args)]
pub(crate) struct VerifyArgs {
    /// A `.tet` file, a `.tet.d` package, a TileDB array, a group of arrays, or a directory of all these
    #[arg(value_name = "PATH")]
    pub(crate) path: String,

    /// How it is read, as without `verify`: for instance `generation=1`; may be repeated
    #[arg(short, long = "option", value_name = "NAME=VALUE", value_parser = parse_setting)]
    pub(crate) options: Vec<Setting>,

    /// Decode all cells, and compute again what is noted about them
    #[arg(long)]
    pub(crate) deep: bool,

    /// Print one JSON document instead of a text
    #[arg(long)]
    pub(crate) json: bool,
}

/// What to say of what.
#[derive(Debug, clap::Args)]
pub(crate) struct InfoArgs {
    /// A `.tet` file, a `.tet.d` package, a TileDB array, or a folder or group of such arrays
    #[arg(value_name = "PATH")]
    pub(crate) path: String,

    /// How it is read, as without `info`: for instance `timestamp=2024-03-01`; may be repeated
    #[arg(short, long = "option", value_name = "NAME=VALUE", value_parser = parse_setting)]
    pub(crate) options: Vec<Setting>,

    /// List the stored chunks of a file, or the fragments of a TileDB array
    #[arg(long)]
    pub(crate) chunks: bool,

    /// How many of them, or 'inf'
    #[arg(short = 'n', value_name = "N", default_value = "20", requires = "chunks")]
    pub(crate) count: MaxRows,

    /// List all attributes, or the metadata of a TileDB array
    #[arg(long)]
    pub(crate) metadata: bool,

    /// Print one JSON document instead of a text
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which script to print.
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell that is to read it
    #[arg(value_enum, value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// Where on the command line the values of an option stand.
fn places<'a>(matches: &'a ArgMatches, option: &str) -> impl Iterator<Item = usize> + use<'a> {
    matches.indices_of(option).into_iter().flatten()
}

/// A piece of SQL to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Script {
    /// The SQL itself.
    Text(String),
    /// The file it is in.
    File(PathBuf),
    /// It comes from standard input.
    Stdin,
}

impl Script {
    /// A file, or what stands for standard input.
    pub(crate) fn of_file(path: &Path) -> Self {
        match path.to_str() {
            Some(name) if name == "-" || is_stdin(name) => Self::Stdin,
            _ => Self::File(path.to_owned()),
        }
    }

    /// The SQL, read to its end.
    pub(crate) fn read(&self) -> gridfusion::Result<String> {
        match self {
            Self::Text(sql) => Ok(sql.clone()),
            Self::File(path) => fs::read_to_string(path).map_err(|error| {
                Error::io("cannot read the file", error).in_file(&path.display().to_string())
            }),
            Self::Stdin => io::read_to_string(io::stdin())
                .map_err(|error| Error::io("cannot read standard input", error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Args, clap::Error> {
        Args::try_from_command_line(["gridfusion"].iter().chain(words))
    }

    #[test]
    fn clap_finds_no_contradictions() {
        Args::command().debug_assert();
    }

    #[test]
    fn scripts_keep_their_order() {
        let args = parse(&["a.tet", "-c", "1", "-f", "x.sql", "b.tet", "-c", "2; 3", "-f", "-"]);
        let args = args.unwrap();
        let text = |sql: &str| Script::Text(sql.to_owned());
        let expected = [text("1"), Script::File("x.sql".into()), text("2; 3"), Script::Stdin];
        assert_eq!(args.scripts, expected);
        assert_eq!(args.paths, ["a.tet", "b.tet"]);
        assert!(args.reads_sql_from_stdin());
        assert!(!parse(&["-c", "1"]).unwrap().reads_sql_from_stdin());
        assert!(parse(&["a.tet"]).unwrap().reads_sql_from_stdin());
    }

    #[test]
    fn defaults_and_values() {
        let args = parse(&[]).unwrap();
        assert_eq!((args.format, args.maxrows), (Format::Automatic, MaxRows::Limited(40)));
        let engine = args.engine;
        assert!(!engine.quiet && engine.memory_limit.is_none() && engine.batch_size.is_none());
        let args =
            parse(&["-q", "--format", "ND-json", "--maxrows", "inf", "--memory-limit", "2g"]);
        let args = args.unwrap();
        assert_eq!((args.format, args.maxrows), (Format::NdJson, MaxRows::Unlimited));
        assert_eq!((args.engine.quiet, args.engine.memory_limit), (true, Some(2 << 30)));
    }

    #[test]
    fn info_is_a_task_only_where_it_comes_first() {
        let args = parse(&["info", "a.tet", "--chunks", "-n", "inf"]).unwrap();
        let Some(Task::Info(info)) = args.task else { panic!("{args:?}") };
        assert_eq!((info.path.as_str(), info.count), ("a.tet", MaxRows::Unlimited));
        assert!(info.chunks && !info.metadata && !info.json && args.paths.is_empty());
        for words in [&["./info"][..], &["a.tet", "info"], &["-q", "info"], &["--", "info"]] {
            let args = parse(words).unwrap();
            assert!(
                args.task.is_none() && args.paths.last().unwrap().ends_with("info"),
                "{words:?}"
            );
        }
        let args = parse(&["verify", "a.tet", "--deep"]).unwrap();
        let Some(Task::Verify(verify)) = args.task else { panic!("{args:?}") };
        assert!(verify.path == "a.tet" && verify.deep && !verify.json);
        assert_eq!(parse(&["verify"]).unwrap_err().exit_code(), 2);
        assert_eq!(parse(&["help"]).unwrap().paths, ["help"]);
        for words in [&["info"][..], &["info", "a", "b"], &["info", "a", "-n", "3"]] {
            assert_eq!(parse(words).unwrap_err().exit_code(), 2, "{words:?}");
        }
    }

    #[test]
    fn options_are_about_paths() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let args = parse(&["a", "-o", "io=pread", "b", "--option", "timestamp=7"]).unwrap();
        assert_eq!(args.paths, ["a", "b"]);
        assert_eq!(args.options, [pair("io", "pread"), pair("timestamp", "7")]);
        let args = parse(&["plot", "SELECT 1", "a", "-o", "x.png", "--option", "io=mmap"]).unwrap();
        let Some(Task::Plot(plot)) = args.task else { panic!("{args:?}") };
        assert_eq!(plot.options, [pair("io", "mmap")]);
        for words in [&["-o", "io=pread", "-c", "1"][..], &["a", "-o", "io"], &["info", "a", "-o"]]
        {
            assert_eq!(parse(words).unwrap_err().exit_code(), 2, "{words:?}");
        }
    }

    #[test]
    fn mistakes_are_usage_errors() {
        for words in [["--batch-size", "0"], ["--format", "xls"], ["--memory-limit", "2 apples"]] {
            assert_eq!(parse(&words).unwrap_err().exit_code(), 2, "{words:?}");
        }
    }
}
