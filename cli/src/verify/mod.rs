//! `gridfusion verify`: checks files, packages and arrays for damage.
//!
//! ```text
//!   PATH ──▶ reports of the library, one per file or array ──▶ text, or document ──▶ JSON
//! ```

mod document;
mod subject;
mod text;

use std::io::{self, Write};
use std::sync::Arc;

use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::SessionContext;
use gridfusion::shown_location;
use gridfusion::verify::{Depth, Progress, Report};

use self::document::Document;
use self::subject::Subject;
use crate::args::VerifyArgs;
use crate::errors::stdout_is_closed;
use crate::options::{PathOptions, Setting};
use crate::place::OpenedPlace;
use crate::progress::{Done, Progress as Line};
use crate::secrets::hide;
use crate::session::plain_context;
use crate::store::Stores;

/// Verifies the files or arrays at a path and prints the reports. Returns whether no check failed.
///
/// # Errors
/// If the options are wrong, or the reports cannot be written. Errors of the files themselves are in the
/// reports.
pub(crate) async fn run(args: &VerifyArgs) -> Result<bool> {
    let options = PathOptions::new(&args.options, &gridfusion::built_in_formats())?;
    let depth = if args.deep { Depth::Cells } else { Depth::Structure };
    let progress = Arc::new(Progress::default());
    let ctx = plain_context(options.for_stores(), args.root.as_deref())?;
    let line = show(&progress);
    let subjects = verify(&args.path, &options, depth, &progress, &ctx).await;
    drop(line);
    let text = if args.json {
        json(&args.path, depth, &subjects)? + "\n"
    } else {
        text::of(depth, &subjects)
    };
    // If the reader closes the pipe early, the exit code still reports the result.
    match print(&hide(&text)) {
        Err(error) if !stdout_is_closed(&error) => return Err(error),
        _ => {}
    }
    Ok(subjects.iter().all(|subject| subject.report.is_ok()))
}

/// Verifies the files or arrays at a path with the stores of a session. Returns the document of `--json`.
///
/// # Errors
/// If the options are wrong, or the path is outside of the session's root.
pub(crate) async fn report(
    ctx: &SessionContext,
    path: &str,
    options: &[Setting],
    is_deep: bool,
) -> Result<String> {
    let options = PathOptions::new(options, &gridfusion::built_in_formats())?;
    if let Some(stores) = Stores::in_session(ctx) {
        stores.configure(path, options.for_stores())?;
    }
    let depth = if is_deep { Depth::Cells } else { Depth::Structure };
    let subjects = verify(path, &options, depth, &Arc::default(), ctx).await;
    json(path, depth, &subjects)
}

fn json(path: &str, depth: Depth, subjects: &[Subject]) -> Result<String> {
    let path = shown_location(path);
    let json = serde_json::to_string_pretty(&Document::new(&path, depth, subjects));
    json.map_err(|error| DataFusionError::External(Box::new(error)))
}

fn print(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}

/// Starts a progress line, if there is a terminal.
fn show(progress: &Arc<Progress>) -> Option<Line> {
    let progress = Arc::clone(progress);
    let done = move || Done {
        chunks: progress.done(),
        of: progress.total(),
        bytes: progress.bytes(),
        ..Done::default()
    };
    Line::is_possible().then(|| Line::start(done))
}

/// Returns the reports of the files or arrays at `path`. A path that cannot be opened has one report with
/// the error.
async fn verify(
    path: &str,
    options: &PathOptions,
    depth: Depth,
    progress: &Arc<Progress>,
    ctx: &SessionContext,
) -> Vec<Subject> {
    let reports = match OpenedPlace::open(path, options, ctx).await {
        Ok(OpenedPlace::Group(schema)) => schema.group().verify(depth, progress).await,
        Ok(OpenedPlace::Directory(catalog)) => {
            let mut subjects = Vec::new();
            for (_, path, arrays) in catalog.places_with(options.for_arrays()) {
                let options = options.with_arrays(arrays);
                let of_path = Box::pin(verify(path, &options, depth, progress, ctx));
                subjects.extend(of_path.await);
            }
            return subjects;
        }
        Err(error) => vec![(path.to_owned(), Report::from_error(path, depth, &error))],
    };
    let subject = |(path, report): (String, _)| Subject { path: shown_location(&path), report };
    reports.into_iter().map(subject).collect()
}
