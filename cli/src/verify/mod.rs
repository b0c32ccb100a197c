//! `gridfusion verify`: whether a file, a package or arrays are what they should be.
//!
//! ```text
//!   PATH ──▶ reports of the library, one per file or array ──▶ text, or document ──▶ JSON
//! ```

mod document;
mod text;

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;

use datafusion::error::{DataFusionError, Result};
use datafusion::execution::runtime_env::RuntimeEnv;
use gridfusion::exec::to_datafusion;
use gridfusion::verify::{Depth, Progress, Report};
use gridfusion::{TileDbSchema, open_tiledb};

use self::document::Document;
use crate::args::VerifyArgs;
use crate::errors::stdout_is_closed;
use crate::options::PathOptions;
use crate::place::Place;
use crate::progress::{Done, Progress as Line};

/// A file or an array, and what was found.
struct Subject {
    path: String,
    report: Report,
}

/// Verifies what is at a path and prints the reports; the exit code says whether a check failed.
///
/// # Errors
/// If the options are mistaken, or the reports cannot be written: whatever is wrong with what is at the path is in them.
pub(crate) async fn run(args: &VerifyArgs) -> Result<ExitCode> {
    let options = PathOptions::new(&args.options).map_err(to_datafusion)?;
    let depth = if args.deep { Depth::Cells } else { Depth::Structure };
    let progress = Arc::new(Progress::default());
    let runtime = Arc::new(RuntimeEnv::default());
    let line = show(&progress);
    let subjects = verify(&args.path, &options, depth, &progress, &runtime).await;
    drop(line);
    let text = if args.json {
        let json = serde_json::to_string_pretty(&Document::new(&args.path, depth, &subjects));
        json.map_err(|error| DataFusionError::External(Box::new(error)))? + "\n"
    } else {
        text::of(depth, &subjects)
    };
    // Who has seen enough of the text still gets the verdict.
    match print(&text) {
        Err(error) if !stdout_is_closed(&error) => return Err(error),
        _ => {}
    }
    let is_ok = subjects.iter().all(|subject| subject.report.is_ok());
    Ok(if is_ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}

/// A line on the terminal that says how far it is, if there is a terminal.
fn show(progress: &Arc<Progress>) -> Option<Line> {
    let progress = Arc::clone(progress);
    let done =
        move || Done { chunks: progress.done(), of: progress.total(), bytes: progress.bytes() };
    Line::is_possible().then(|| Line::start(done))
}

/// The reports about the file or the arrays at `path`; one about what cannot be opened.
async fn verify(
    path: &str,
    options: &PathOptions,
    depth: Depth,
    progress: &Arc<Progress>,
    runtime: &Arc<RuntimeEnv>,
) -> Vec<Subject> {
    let report = match Place::open(path, options, runtime).await {
        Ok(Place::Tet(file, _)) => file.verify(depth, progress).await,
        Ok(Place::TileDb(arrays)) => {
            return verify_arrays(&arrays, depth, progress, runtime).await;
        }
        Ok(Place::Directory(catalog)) => {
            let (mut subjects, options) = (Vec::new(), options.in_directory());
            for (_, path) in catalog.places() {
                let of_path = Box::pin(verify(path, &options, depth, progress, runtime));
                subjects.extend(of_path.await);
            }
            return subjects;
        }
        Err(error) => Report::of_error(path, depth, &error),
    };
    vec![Subject { path: path.to_owned(), report }]
}

async fn verify_arrays(
    arrays: &TileDbSchema,
    depth: Depth,
    progress: &Arc<Progress>,
    runtime: &RuntimeEnv,
) -> Vec<Subject> {
    let mut subjects = Vec::new();
    for (_, location) in arrays.arrays() {
        let opened = open_tiledb(location, arrays.options(), runtime).await;
        let report = match opened {
            Ok(array) => array.verify(depth, progress).await,
            Err(error) => Report::of_error(location, depth, &error),
        };
        subjects.push(Subject { path: location.to_owned(), report });
    }
    for error in arrays.left_out() {
        let path = error.file().unwrap_or_default().to_owned();
        let report = Report::of_error(&path, depth, error);
        subjects.push(Subject { path, report });
    }
    subjects
}
