//! `gridfusion plot`: the rows of a query as a picture.
//!
//! ```text
//!   SQL ──▶ plan ──▶ columns ──▶ heatmap, lines ──▶ scene ──▶ paint ──▶ .png, .svg
//!            └────▶ titles ────────────▲  frame, ticks: axes
//! ```
//!
//! All but the last step is arithmetic over marks at places in pixels; plotters paints them.

pub(crate) mod args;
mod calendar;
mod colors;
mod column;
mod draft;
mod frame;
mod heatmap;
mod lines;
mod paint;
mod scene;
mod ticks;
mod titles;

use std::collections::HashSet;
use std::io::{self, Write};
use std::sync::Arc;

use datafusion::common::instant::Instant;
use datafusion::common::{internal_datafusion_err, plan_err};
use datafusion::error::Result;

use self::args::{Format, Kind, PlotArgs};
use self::column::{Column, Values};
use self::draft::Draft;
use self::scene::Scene;
use crate::hints::with_hint;
use crate::info::printable;
use crate::reads::Reads;
use crate::run::{execute, parse_query};
use crate::session::Session;
use crate::tables;
use crate::timing::Timing;

/// Runs the query and writes the picture.
///
/// # Errors
/// If the query fails, its rows are too many or cannot be plotted, or the file cannot be written. Then
/// there is no file, or the one that was there before.
pub(crate) async fn run(args: &PlotArgs) -> Result<()> {
    let draft = Draft::beside(&args.output.path)?;
    scene::load_fonts().ok_or_else(|| internal_datafusion_err!("the fonts cannot be read"))?;
    let session = Session::new(&args.engine, false)?;
    tables::register(&session, &args.paths, &args.options).await?;
    let columns = query(&session, args).await.map_err(|error| with_hint(error, &session.ctx))?;
    let kind = choose(args.kind, &columns)?;
    let mut scene = Scene::new(args.width, args.height);
    let title = args.title.as_deref().map(printable);
    let title = title.as_deref();
    let drawn = match (kind, &columns[..]) {
        (Kind::Heatmap, [x, y, value]) => heatmap::draw(&mut scene, title, [x, y, value])?,
        _ => lines::draw(&mut scene, title, kind, &columns)?,
    };
    draft.finish(|path| paint::write(&scene, args.output.format, path))?;
    if !args.engine.quiet {
        let (width, height) = (args.width, args.height);
        let what = match kind {
            Kind::Line => "lines",
            Kind::Scatter => "points",
            Kind::Bars => "bars",
            Kind::Heatmap => "a heat map",
        };
        let path = args.output.path.display();
        writeln!(io::stdout(), "{path}: {width} × {height} pixels, {drawn} values as {what}")?;
    }
    Ok(())
}

/// The columns of the query.
async fn query(session: &Session, args: &PlotArgs) -> Result<Vec<Column>> {
    let start = Instant::now();
    let most = match args.output.format {
        Format::Png => 1_000_000,
        // Each is a line of text, and every viewer draws it anew.
        Format::Svg => 100_000,
    };
    let frame = execute(&session.ctx, parse_query(&session.ctx, &args.sql)?).await?;
    let titles = titles::of(frame.logical_plan());
    let context = Arc::new(frame.task_ctx());
    let plan = Box::pin(frame.create_physical_plan()).await?;
    let planning = start.elapsed();
    let begin = Instant::now();
    let progress = session.output.progress.then(|| Reads::watch(&plan));
    let columns = column::collect(&plan, &context, titles, most).await?;
    drop(progress);
    if session.output.timing {
        let rows = columns.first().map_or(0, |column| column.data.len());
        let reads = Reads::of(plan.as_ref());
        Timing::Query { planning, execution: begin.elapsed(), rows, reads }.report();
    }
    Ok(columns)
}

/// What is drawn of these columns.
fn choose(asked: Option<Kind>, columns: &[Column]) -> Result<Kind> {
    let count = columns.len();
    let [x, _, ..] = columns else {
        return plan_err!("a plot needs x and a value, and the query has {count} column");
    };
    let repeats = || {
        let mut seen = HashSet::new();
        x.data.iter().any(|value| value.is_finite() && !seen.insert(value.to_bits()))
    };
    let kind = match asked {
        Some(kind) => kind,
        None if count == 3 && repeats() => Kind::Heatmap,
        None if repeats() => Kind::Scatter,
        None if matches!(x.values, Values::Names(_)) => Kind::Bars,
        None => Kind::Line,
    };
    match kind {
        Kind::Heatmap if count != 3 => {
            plan_err!("a heat map needs three columns, x, y and a value, and the query has {count}")
        }
        kind => Ok(kind),
    }
}
