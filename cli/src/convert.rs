//! `gridfusion convert`: files and arrays become a new array, which is then described.
//!
//! ```text
//!   IN…, -c SQL ──▶ COPY (…) TO OUT OPTIONS (…) ──▶ plan ──▶ staging ──▶ info OUT
//! ```

use std::io::{self, Write};
use std::sync::Arc;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::UInt64Type;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::{internal_err, plan_err};
use datafusion::error::Result;
use datafusion::sql::parser::{CopyToSource, CopyToStatement, Statement};
use datafusion::sql::sqlparser::ast::Statement as SqlStatement;
use futures::TryStreamExt;
use gridfusion::exec::writes_array;
use gridfusion::without_panics;

use crate::args::InfoArgs;
use crate::engine::Engine;
use crate::hints::{explained, with_hint};
use crate::info;
use crate::options::{PathOptions, Setting, parse_setting};
use crate::print::MaxRows;
use crate::reads::Reads;
use crate::secrets::learn_sql;
use crate::session::Session;
use crate::staging::Staging;
use crate::statement::{self, PlannedStatement};
use crate::store::is_of_store;
use crate::tables;

/// The arguments of `convert`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = AFTER_HELP)]
pub(crate) struct ConvertArgs {
    /// Files and arrays to read, and the new array: x.zarr, x.nc or x.tet
    ///
    /// Several INs, a pattern such as 'years/*.nc' or a directory are one array. With -c, INs become tables, as without `convert`.
    #[arg(value_name = "IN... OUT", required = true)]
    pub(crate) paths: Vec<String>,

    /// Write the rows of a query instead of all of IN
    #[arg(short = 'c', long = "command", value_name = "SQL")]
    pub(crate) sql: Option<String>,

    /// Options for each IN and for object stores, for instance `dataset=t2m,tp`; may be repeated
    #[arg(short = 'O', long = "option", value_name = "NAME=VALUE", value_parser = parse_setting)]
    pub(crate) options: Vec<Setting>,

    /// Cells of a chunk along dimensions, for instance time=24,lat=90
    #[arg(long, value_name = "LENGTHS")]
    pub(crate) chunks: Option<String>,

    /// Compression of chunks: zstd, gzip or none in Zarr; deflate or none in NetCDF; zstd or none in .tet
    #[arg(long, value_name = "CODEC")]
    pub(crate) codec: Option<String>,

    /// Level of the codec
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) level: Option<String>,

    /// Fate of an array that is there: create keeps it, overwrite, append
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<String>,

    /// Other options of the new array, for instance `shards=time=240` or `fill=-999`; may be repeated
    #[arg(short = 'W', long = "write", value_name = "NAME=VALUE", value_parser = parse_setting)]
    pub(crate) write: Vec<Setting>,

    /// Format of OUT, if its name does not end with one
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<String>,

    #[command(flatten)]
    pub(crate) engine: Engine,
}

const AFTER_HELP: &str = r#"Examples:
  Convert a file:
    gridfusion convert air.nc air.zarr
    gridfusion convert air.nc air.zarr --chunks time=12,lat=8,lon=12 --codec gzip --level 9

  Put many files into one store, and make it longer later:
    gridfusion convert 'years/*.nc' all.zarr
    gridfusion convert 2025.nc all.zarr --mode append

  Convert what a query returns:
    gridfusion convert air.nc july.nc -c "SELECT time, lat, lon, t2m - 273.15 AS t2m FROM 'air.nc' WHERE time >= '2024-07'"

A file with variables over different dimensions is several arrays: choose one with -O dataset=NAME."#;

/// Converts, and describes the new array.
///
/// # Errors
/// If there is nothing to convert, or the array cannot be written.
pub(crate) async fn run(args: &ConvertArgs) -> Result<()> {
    let Some((out, inputs)) = args.paths.split_last() else {
        return plan_err!("convert needs the name of a new array");
    };
    let formats = gridfusion::built_in_formats();
    let options = match &args.sql {
        Some(_) => PathOptions::new(&args.options, &formats)?,
        None => PathOptions::of_tables(&args.options, &formats)?,
    };
    let session = Session::new(&args.engine, false, options.for_stores())?;
    let rows = match &args.sql {
        Some(sql) => {
            let opened = tables::register(&session, inputs, &options).await;
            opened.map_err(|error| with_hint(error, &session.ctx))?;
            sql.clone()
        }
        None if inputs.is_empty() => {
            return plan_err!(
                "convert needs an array to read and the name of a new one, and there is only '{out}'"
            );
        }
        None => select(inputs, &args.options),
    };
    learn_sql(&rows);
    let statement = args.statement(&session, &rows, out);
    let written = async { Box::pin(write(&session, statement?)).await };
    let written = without_panics(written).await;
    let (rows, is_array) = match written {
        Ok(written) => written,
        Err(error) => return Err(explained(error, &session.ctx, &rows).await),
    };
    if args.engine.quiet {
        return Ok(());
    }
    writeln!(io::stdout(), "{out}: {rows} rows")?;
    if !is_array {
        return Ok(());
    }
    writeln!(io::stdout())?;
    let of_stores = args.options.iter().filter(|(name, _)| is_of_store(name));
    let described = InfoArgs {
        paths: vec![out.clone()],
        options: of_stores.cloned().collect(),
        root: args.engine.root.clone(),
        chunks: false,
        count: MaxRows::Unlimited,
        metadata: false,
        json: false,
    };
    info::run(&described).await.map(drop)
}

impl ConvertArgs {
    /// Returns the statement that writes the rows of a query.
    ///
    /// # Errors
    /// For other statements than one query.
    fn statement(&self, session: &Session, rows: &str, out: &str) -> Result<Statement> {
        let named = [
            ("chunks", &self.chunks),
            ("codec", &self.codec),
            ("level", &self.level),
            ("mode", &self.mode),
        ];
        let named = named.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?)));
        let others = self.write.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let options = named.chain(others);
        let options: Vec<String> =
            options.map(|(name, value)| format!("{} {}", text(name), text(value))).collect();
        let mut sql = format!("COPY (SELECT 1) TO {}", text(out));
        if let Some(format) = &self.format {
            sql.push_str(&format!(" STORED AS {}", format.to_uppercase()));
        }
        if !options.is_empty() {
            sql.push_str(&format!(" OPTIONS ({})", options.join(", ")));
        }
        let query = statement::parse_query(&session.ctx, rows)?;
        let copy = statement::parse(&session.ctx, &sql)?.pop_front();
        let (Some(Statement::CopyTo(copy)), Statement::Statement(query)) = (copy, query) else {
            return internal_err!("COPY is another statement");
        };
        let SqlStatement::Query(query) = *query else {
            return internal_err!("a query is another statement");
        };
        let source = CopyToSource::Query(query);
        Ok(Statement::CopyTo(CopyToStatement { source, ..copy }))
    }
}

/// Returns the query of all cells.
fn select(inputs: &[String], options: &[Setting]) -> String {
    let places: Vec<String> = inputs.iter().map(|place| text(place)).collect();
    let places = match places.as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    };
    let options = options.iter().filter(|(name, _)| !is_of_store(name));
    let options = options.map(|(name, value)| format!(", {name} => {}", text(value)));
    format!("SELECT * FROM read_array({places}{})", options.collect::<String>())
}

/// Returns a text of SQL.
fn text(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}

/// Runs the statement. Returns the number of rows, and whether they are an array.
async fn write(session: &Session, statement: Statement) -> Result<(u64, bool)> {
    let PlannedStatement { physical: plan, context, .. } =
        statement::plan(&session.ctx, statement).await?;
    let staging = Arc::new(Staging::default());
    let context = Arc::new(staging.context(context, &plan)?);
    let progress = session.output.progress.then(|| Reads::watch(&plan, &context));
    let written = staging.run(&plan, &context).await?;
    drop(progress);
    let written: Vec<RecordBatch> = written.try_collect().await?;
    let counts = written.iter().flat_map(|it| it.column(0).as_primitive::<UInt64Type>().values());
    Ok((counts.sum(), writes_array(&plan)))
}
