//! The arguments of the command line, and their help texts.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{fs, io};

use clap::error::ErrorKind;
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use gridfusion::Error;

use crate::convert::ConvertArgs;
use crate::engine::Engine;
use crate::options::{Setting, parse_setting};
use crate::plot::args::PlotArgs;
use crate::print::{Format, MaxRows};
use crate::stdin::is_stdin;
use crate::store::is_of_store;
use crate::version::LONG_VERSION;
use crate::worker::WorkerArgs;

const AFTER_HELP: &str = r#"Examples:
  Look into a file or a store:
    gridfusion info air.nc
    gridfusion info sea.zarr

  See what many files have in common, and in what they differ:
    gridfusion info 'years/*.nc'

  Ask a question; the variables of the file are columns:
    gridfusion -c "SELECT lat, avg(t2m) FROM 'air.nc' WHERE time >= '2024-06' GROUP BY lat"
    gridfusion -c "FROM 'sea.zarr' LIMIT 5"

  Query many files as one table, with the file of each row in a column:
    gridfusion -c "SELECT max(t2m) FROM 'years/*.nc'"
    gridfusion -c "SELECT _file, count(*) FROM read_array('years/*.nc', file_column => true) GROUP BY _file"

  Start a prompt; .tables lists the tables, quit ends it:
    gridfusion air.nc

  Plot a query, in a .png or .svg file:
    gridfusion plot "SELECT lon, lat, avg(t2m) FROM 'air.nc' GROUP BY lon, lat" -o map.png

  Write the result of a query to a file:
    gridfusion -o warm.csv -c "FROM 'air.nc' WHERE t2m > 300"
    gridfusion -o warm.parquet -c "FROM 'air.nc' WHERE t2m > 300"
    gridfusion -c "COPY (FROM 'air.nc') TO 'air.parquet'"

  Convert a file into a store, and many files into one:
    gridfusion convert air.nc air.zarr --chunks time=12,lat=8
    gridfusion convert 'years/*.nc' all.zarr

  Summarize the columns of a table:
    gridfusion -c "SUMMARIZE 'air.nc'"

  Run a script and print CSV without anything else:
    gridfusion air.nc -q --format csv -f report.sql > report.csv

  Open two files, each as a schema with the name of the file and a table for each variable:
    gridfusion 2023.nc 2024.nc -c 'SELECT max(value) FROM "2024".t2m'

  Open a directory of files as a catalog, with a schema for each file:
    gridfusion climate -c "SHOW TABLES"
    gridfusion climate -c "SELECT * FROM climate.air.t2m LIMIT 5"

  Open a file in an object store:
    gridfusion -c "SELECT count(*) FROM 's3://bucket/air.nc'"

  Open a TileDB array as of a time, or a group of arrays:
    gridfusion arrays/forecast -O timestamp=2024-03-01 -c "SELECT max(temperature) FROM forecast"
    gridfusion arrays -c "SHOW TABLES"

  Verify a file, including every cell:
    gridfusion verify air.nc --deep

  Report the time of a query, and how much of the file it read:
    gridfusion --timing -c "SELECT max(t2m) FROM 'air.nc' WHERE lat > 60"

  Complete command lines in bash; also in zsh, fish, powershell and elvish:
    source <(gridfusion completions bash)

  Run a query on two workers, started in other terminals or on other machines:
    gridfusion worker --token-file token --listen 127.0.0.1:7430
    gridfusion worker --token-file token --listen 127.0.0.1:7431
    gridfusion air.nc --token-file token --workers http://127.0.0.1:7430,http://127.0.0.1:7431 -c "SELECT ..."

  Create a table with options:
    gridfusion -c "CREATE EXTERNAL TABLE t STORED AS ARRAY LOCATION 'air.nc'
                   OPTIONS (dataset 't2m', index_columns 'true');
                   SELECT * FROM t WHERE time_idx < 10"

Names:
  SQL folds names to lower case. Put names with capitals, dashes or a leading digit in double
  quotes: "Soil-2024".temperature

Environment:
  AWS_*, GOOGLE_*, AZURE_*   Credentials and settings of object stores, for instance AWS_REGION.
                             Without credentials, requests are anonymous
  DATAFUSION_*               Settings of the session, as listed by SHOW ALL
  GRIDFUSION_HISTORY         History file of the prompt; if empty, no history is kept
  GRIDFUSION_RC              Commands and SQL that the prompt runs first; without it ~/.gridfusionrc
  GRIDFUSION_PAGER, PAGER    Pager for results longer than the screen; if empty, no pager
  GRIDFUSION_TOKEN           Secret that coordinator and workers share
  RUST_LOG                   Log filter for standard error, for instance gridfusion=debug

Exit status:
  0 if all statements or checks succeeded, or the reader of the output closed the pipe
  1 if one failed; the reason is on standard error, or in the report of verify
  2 if the command line is wrong"#;

/// Query NetCDF and HDF5 files, Zarr stores, Icechunk repositories, TileDB arrays and `.tet` files with SQL
///
/// A table has one row per cell. Its columns are the dimensions, then the variables. The table of one dataset calls its variable
/// "value". A query reads only the chunks that it needs.
///
/// Without -c and -f, SQL is read from a prompt, or from standard input if that is not a terminal.
#[derive(Debug, Parser)]
#[command(
    name = "gridfusion",
    version,
    long_version = LONG_VERSION.as_str(),
    after_long_help = AFTER_HELP,
    args_conflicts_with_subcommands = true, // after a path, every word is a path
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) task: Option<Task>,

    /// Files and arrays that become tables: paths or URLs (s3://, gs://, az://, http(s)://)
    ///
    /// Each PATH is a NetCDF or HDF5 file, a Zarr store, an Icechunk repository, a TileDB array, or a `.tet` file or `.tet.d` package. It may also
    /// be a directory or group of arrays. SQL names a dataset or array PATH.NAME, where PATH is the last part of the path without its
    /// extension. If only one PATH has the name, NAME alone works. A directory of files becomes a catalog:
    /// DIRECTORY.FILE.NAME. SQL also takes quoted paths, which need no PATH here: FROM
    /// 'air.nc'. A file with the name of a command needs `./`, as in `./info`.
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<String>,

    /// Options for each PATH and for object stores, for instance `timestamp=2024-03-01`; may be repeated
    ///
    #[arg(short = 'O', long = "option", value_name = "NAME=VALUE", value_parser = parse_setting)]
    pub(crate) options: Vec<Setting>,

    /// Run SQL, then exit; may be repeated, and may hold several statements separated by ';'
    #[arg(short = 'c', long = "command", value_name = "SQL")]
    commands: Vec<String>,

    /// Run the SQL in a file ('-' is standard input), then exit; may be repeated
    ///
    /// If -c and -f are mixed, they run in the order of the command line.
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    files: Vec<PathBuf>,

    /// The SQL of `-c` and `-f`, in the order of the command line.
    #[arg(skip)]
    pub(crate) scripts: Vec<Script>,

    /// Write all results to a file, which appears when they are complete
    ///
    /// Without --format, the ending of FILE sets the format: .csv, .tsv, .json, .ndjson, .jsonl, .md, .parquet, .arrow, .feather or
    /// .arrows. A Parquet or Arrow file holds one result. Options of a PATH are -O.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Format of results; 'automatic' is a table
    #[arg(long, value_enum, ignore_case = true, default_value_t = Format::Automatic)]
    pub(crate) format: Format,

    /// Maximum number of rows that a table shows, or 'inf'; other formats print all rows
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
        let command = Self::command().mut_arg("options", |arg| arg.long_help(options_help()));
        let matches = command.try_get_matches_from(words)?;
        let mut args = Self::from_arg_matches(&matches)?;
        let commands = args.commands.iter().map(|sql| Script::Text(sql.clone()));
        let files = args.files.iter().map(|path| Script::from_file(path));
        let mut scripts: Vec<(usize, Script)> =
            places(&matches, "commands").zip(commands).collect();
        scripts.extend(places(&matches, "files").zip(files));
        scripts.sort_by_key(|(place, _)| *place);
        args.scripts = scripts.into_iter().map(|(_, script)| script).collect();
        args.refuse_options_as_output()?;
        args.refuse_options_without_paths()?;
        Ok(args)
    }

    /// Refuses an option of a PATH in place of the output. The message leaves out its value, which may be a key.
    fn refuse_options_as_output(&self) -> Result<(), clap::Error> {
        let name = self.output.as_ref().and_then(|it| it.to_str()?.split_once('='));
        let is_name = |it: char| it.is_ascii_alphanumeric() || "_-.".contains(it);
        match name {
            Some((name, _)) if !name.is_empty() && name.chars().all(is_name) => {
                let message = format!(
                    "-o is the file for results; write option '{name}' as -O {name}=… or --option {name}=…"
                );
                Err(Self::command().error(ErrorKind::InvalidValue, message))
            }
            _ => Ok(()),
        }
    }

    /// Refuses options for paths if there is no path. Options of object stores need none.
    fn refuse_options_without_paths(&self) -> Result<(), clap::Error> {
        let (paths, options) = match &self.task {
            Some(Task::Plot(plot)) => (&plot.paths, &plot.options),
            _ => (&self.paths, &self.options),
        };
        let Some((name, _)) = options.iter().find(|(name, _)| !is_of_store(name)) else {
            return Ok(());
        };
        if !paths.is_empty() {
            return Ok(());
        }
        let message = format!(
            "option '{name}' is for a PATH, and there is none; in SQL, options are arguments, as in read_array('x.nc', {name} => …)"
        );
        Err(Self::command().error(ErrorKind::MissingRequiredArgument, message))
    }

    /// Whether standard input is SQL, and so cannot be data.
    pub(crate) fn reads_sql_from_stdin(&self) -> bool {
        self.scripts.is_empty() || self.scripts.contains(&Script::Stdin)
    }
}

/// The commands beside SQL.
#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Inspect a file, an array or a group, or compare the files of a directory or pattern
    Info(InfoArgs),
    /// Verify a file, an array, or a directory of them
    Verify(VerifyArgs),
    /// Convert files and arrays into a new array: of another format, in other chunks, or the rows of a query
    Convert(Box<ConvertArgs>),
    /// Plot a query as a heat map, lines, points or bars, in a .png or .svg file
    Plot(Box<PlotArgs>),
    /// Run parts of queries for other processes, which name this one with --workers
    Worker(WorkerArgs),
    /// Print a script that completes command lines in a shell
    Completions(CompletionsArgs),
}

/// The arguments of `verify`.
#[derive(Debug, clap::Args)]
pub(crate) struct VerifyArgs {
    /// A NetCDF, HDF5 or `.tet` file, a `.tet.d` package, a Zarr store, an Icechunk repository, a TileDB array, a group, or a directory of these
    #[arg(value_name = "PATH")]
    pub(crate) path: String,

    /// Options for PATH, as without `verify`, for instance `generation=1`; may be repeated
    #[arg(short = 'O', long = "option", value_name = "NAME=VALUE", value_parser = parse_setting)]
    pub(crate) options: Vec<Setting>,

    /// Read local files in this folder only; symbolic links must not lead out of it
    ///
    /// The limit holds for PATH, and for files that other files name.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) root: Option<PathBuf>,

    /// Decode every cell, and recompute the stored chunk statistics
    #[arg(long)]
    pub(crate) deep: bool,

    /// Print one JSON document instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// The arguments of `info`.
#[derive(Debug, clap::Args)]
pub(crate) struct InfoArgs {
    /// A NetCDF, HDF5 or `.tet` file, a `.tet.d` package, a Zarr store, an Icechunk repository, a TileDB array, or a group of arrays
    ///
    /// A directory, a pattern such as 'years/*.nc' or several PATHs are described together. The text shows the table that
    /// the files would be, and in what they differ.
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<String>,

    /// Options for PATH, as without `info`, for instance `timestamp=2024-03-01`; may be repeated
    #[arg(short = 'O', long = "option", value_name = "NAME=VALUE", value_parser = parse_setting)]
    pub(crate) options: Vec<Setting>,

    /// Read local files in this folder only; symbolic links must not lead out of it
    ///
    /// The limit holds for PATH, and for files that other files name.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) root: Option<PathBuf>,

    /// List the stored chunks of a file, or the fragments of a TileDB array
    #[arg(long)]
    pub(crate) chunks: bool,

    /// Maximum number of chunks or fragments to list, or 'inf'
    #[arg(short = 'n', value_name = "N", default_value = "20", requires = "chunks")]
    pub(crate) count: MaxRows,

    /// List all attributes, or the metadata of a TileDB array
    #[arg(long)]
    pub(crate) metadata: bool,

    /// Print one JSON document instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// The arguments of `completions`.
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// Shell that runs the script
    #[arg(value_enum, value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// Returns the help of `--option`, which lists the options of each format.
fn options_help() -> String {
    let formats = gridfusion::built_in_formats();
    let of_formats: Vec<(&str, Vec<&str>)> = formats
        .iter()
        .map(|format| {
            let options = format.option_table().options();
            let of_paths = options.filter(|option| !option.scope.is_of_one_table());
            (format.title(), of_paths.map(|option| option.name).collect())
        })
        .collect();
    let is_common = |name: &&str| of_formats.iter().all(|(_, names)| names.contains(name));
    let mut help = String::from(
        "Options for each PATH and for object stores, for instance `timestamp=2024-03-01`; may be repeated\n",
    );
    let common = of_formats.first().map_or(vec![], |(_, names)| names.clone());
    let common: Vec<&str> = common.into_iter().filter(is_common).collect();
    for (title, names) in &of_formats {
        let own: Vec<&str> = names.iter().copied().filter(|name| !is_common(name)).collect();
        if !own.is_empty() {
            help.push_str(&format!("\n{title}: {}.", own.join(", ")));
        }
    }
    help + &format!(
        "\nEvery PATH: {}.\nAll object stores of the session, without a PATH as well: aws.NAME, azure.NAME, gcp.NAME and http.NAME, \
         for instance `aws.region=eu-north-1`.",
        common.join(", ")
    )
}

/// Returns the positions of an option's values on the command line.
fn places<'a>(matches: &'a ArgMatches, option: &str) -> impl Iterator<Item = usize> + use<'a> {
    matches.indices_of(option).into_iter().flatten()
}

/// A piece of SQL to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Script {
    /// The SQL itself.
    Text(String),
    /// A file that holds the SQL.
    File(PathBuf),
    /// Standard input.
    Stdin,
}

impl Script {
    /// Returns standard input for `-` and paths such as `/dev/stdin`, else the file.
    pub(crate) fn from_file(path: &Path) -> Self {
        match path.to_str() {
            Some(name) if name == "-" || is_stdin(name) => Self::Stdin,
            _ => Self::File(path.to_owned()),
        }
    }

    /// Reads the SQL to its end.
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
        assert_eq!(
            (info.paths.as_slice(), info.count),
            (&["a.tet".to_owned()][..], MaxRows::Unlimited)
        );
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
        assert_eq!(parse(&["help"]).unwrap_err().kind(), ErrorKind::DisplayHelp);
        assert_eq!(parse(&["help", "info"]).unwrap_err().kind(), ErrorKind::DisplayHelp);
        for words in [&["info"][..], &["verify", "a", "b"], &["info", "a", "-n", "3"]] {
            assert_eq!(parse(words).unwrap_err().exit_code(), 2, "{words:?}");
        }
    }

    #[test]
    fn options_are_about_paths() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let args = parse(&["a", "-O", "io=pread", "b", "--option", "timestamp=7"]).unwrap();
        assert_eq!(args.paths, ["a", "b"]);
        assert_eq!(args.options, [pair("io", "pread"), pair("timestamp", "7")]);
        let args = parse(&["plot", "SELECT 1", "a", "-o", "x.png", "--option", "io=mmap"]).unwrap();
        let Some(Task::Plot(plot)) = args.task else { panic!("{args:?}") };
        assert_eq!(plot.options, [pair("io", "mmap")]);
        for words in [
            &["-O", "aws.region=x", "-c", "1"][..],
            &["plot", "1", "-o", "x.png", "--option", "aws.region=x"],
        ] {
            assert!(parse(words).is_ok(), "{words:?}");
        }
        let without_path = ["plot", "1", "-o", "x.png", "--option", "io=mmap"];
        assert_eq!(parse(&without_path).unwrap_err().exit_code(), 2);
        for words in [
            &["-O", "io=pread", "-c", "1"][..],
            &["a", "-O", "io"],
            &["info", "a", "-O"],
            &["a", "-o", "io=pread"],
        ] {
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
