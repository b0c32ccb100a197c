//! `gridfusion plot`: draws the rows of a query.
//!
//! ```text
//!   SQL ──▶ plan ──▶ rows ───▶ gridfusion-plot ──▶ bytes ──▶ draft ──▶ .png, .svg
//!            └────▶ titles, bounds ▲
//! ```
//!
//! The crate `gridfusion-plot` draws the picture.

pub(crate) mod args;
mod bounds;
mod look;
pub(crate) mod titles;

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Instant;

use datafusion::common::plan_datafusion_err;
use datafusion::common::stats::Precision;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::{DataFrame, SessionContext};
use futures::TryStreamExt;
use gridfusion_plot::{Columns, ColumnsBuilder, Error, Picture, PlotKind, Spec, Title};

use self::args::PlotArgs;
use self::bounds::Cells;
use crate::draft::{Draft, refused};
use crate::embed::cooperative;
use crate::hints::{explained, with_hint};
use crate::options::PathOptions;
use crate::reads::Reads;
use crate::requests::{Requests, remote_of};
use crate::session::Session;
use crate::statement::{self, PlannedStatement};
use crate::tables;
use crate::timing::Timing;

/// Runs the query and writes the picture.
///
/// # Errors
/// If the query fails, its rows are too many or cannot be plotted, or the file cannot be written. An older
/// file stays as it was.
pub(crate) async fn run(args: &PlotArgs) -> Result<()> {
    let draft = Draft::beside(&args.output.path)?;
    let options = PathOptions::new(&args.options, &gridfusion::built_in_formats())?;
    let session = Session::new(&args.engine, false, options.for_stores())?;
    let opened = tables::register(&session, &args.paths, &options).await;
    opened.map_err(|error| with_hint(error, &session.ctx))?;
    let (columns, spec) = match query(&session, args).await {
        Err(error) => return Err(explained(error, &session.ctx, &args.sql).await),
        drawn => drawn?,
    };
    let failed = |error| failure(error, args);
    let picture = Picture::draw(&columns, &spec).map_err(failed)?;
    draft.finish(&picture.encode(args.output.format).map_err(failed)?)?;
    if !args.engine.quiet {
        let (width, height) = picture.size();
        let what = match picture.kind() {
            PlotKind::Line => "lines",
            PlotKind::Scatter => "points",
            PlotKind::Bars => "bars",
            PlotKind::Heatmap => "a heat map",
        };
        let (path, drawn) = (args.output.path.display(), picture.values());
        writeln!(io::stdout(), "{path}: {width} × {height} pixels, {drawn} values as {what}")?;
    }
    Ok(())
}

/// Runs the query, and returns its columns and the settings of the picture.
async fn query(session: &Session, args: &PlotArgs) -> Result<(Columns, Spec)> {
    let start = Instant::now();
    let remote = remote_of(&session.ctx);
    let earlier = remote.counts();
    let query = statement::parse_query(&session.ctx, &args.sql)?;
    let PlannedStatement { logical, physical: plan, context } =
        statement::plan(&session.ctx, query).await?;
    let titles = titles::of(&logical);
    let spec = args.spec(&plan.schema())?;
    let cells = bounds::read(&session.ctx, &logical).await?;
    let planning = start.elapsed();
    let begin = Instant::now();
    let context = Arc::new(context);
    let progress = session.output.progress.then(|| Reads::watch(&plan, &context));
    let columns = collect(&plan, context, titles, &cells, args).await?;
    drop(progress);
    if session.output.timing {
        let (rows, reads) = (columns.rows(), Reads::from_run(&plan).await);
        let requests = Requests(remote.counts().since(&earlier));
        Timing::Query { planning, execution: begin.elapsed(), rows, reads, requests }.report();
    }
    Ok((columns, spec))
}

/// Draws the rows of a query. Returns the picture, and the number of rows.
///
/// # Errors
/// As [`run`], but for the file.
pub(crate) async fn draw(
    ctx: &SessionContext,
    logical: &LogicalPlan,
    args: &PlotArgs,
) -> Result<(Picture, usize)> {
    let frame = DataFrame::new(ctx.state(), logical.clone());
    let context = Arc::new(frame.task_ctx());
    let plan = cooperative(Box::pin(frame.create_physical_plan()).await?)?;
    let spec = args.spec(&plan.schema())?;
    let cells = bounds::read(ctx, logical).await?;
    let columns = collect(&plan, context, titles::of(logical), &cells, args).await?;
    let picture = Picture::draw(&columns, &spec).map_err(|error| failure(error, args))?;
    Ok((picture, columns.rows()))
}

/// Runs a plan and keeps its rows.
///
/// # Errors
/// If the rows are too many, if possible before the plan runs.
async fn collect(
    plan: &Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    titles: Vec<Title>,
    cells: &[Cells],
    args: &PlotArgs,
) -> Result<Columns> {
    let failed = |error| failure(error, args);
    let format = args.output.format;
    let statistics = StatisticsContext::new().compute(plan.as_ref(), &StatisticsArgs::new());
    if let Ok(Precision::Exact(rows)) = statistics.map(|statistics| statistics.num_rows) {
        format.check_rows(rows).map_err(failed)?;
    }
    let mut columns = ColumnsBuilder::new(&plan.schema(), titles, format).map_err(failed)?;
    let mut stream = execute_stream(Arc::clone(plan), context)?;
    while let Some(batch) = stream.try_next().await? {
        columns.append(&batch).map_err(failed)?;
    }
    for Cells { column, rows } in cells {
        columns.set_cells(*column, rows).map_err(failed)?;
    }
    columns.finish().map_err(failed)
}

/// Converts an error of the plot crate into one for the user.
fn failure(error: Error, args: &PlotArgs) -> DataFusionError {
    match error {
        Error::Arrow(error) => error.into(),
        Error::Paint(reason) => refused(&args.output.path, &reason),
        error => plan_datafusion_err!("{error}"),
    }
}
