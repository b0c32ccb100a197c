//! Where results go: to standard output, or to files.
//!
//! ```text
//!   -o FILE        all results ──▶ draft ──▶ FILE, when all statements have run
//!   .once FILE     the next    ──▶ draft ──▶ FILE, when it is complete
//!   .output FILE   all results ──▶ FILE, as they come
//! ```
//!
//! A Parquet or Arrow file holds one result: readers take nothing behind its end.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::common::plan_err;
use datafusion::error::Result;

use crate::draft::{Draft, refused};
use crate::print::Format;

/// Where results are written.
#[derive(Debug, Clone)]
pub(crate) enum Results {
    /// On standard output, or in the pager.
    Shown,
    /// All of them in a file.
    AllIn(Arc<ResultFile>),
    /// The next one in a file.
    NextIn(Arc<ResultFile>),
}

/// Whether standard output has a result. It belongs to the process, as standard output does.
static IS_SHOWN: AtomicBool = AtomicBool::new(false);

impl Results {
    /// Makes a file for all results, which grows with each.
    ///
    /// # Errors
    /// If the file cannot be made, or holds only one result; the message has its path.
    pub(crate) fn all_in(path: &Path, format: Format) -> Result<Self> {
        let ending = ending(path, format)?;
        if ending.or(format).is_binary() {
            return plan_err!(
                "{0}: such a file holds one result; .once {0} writes the next",
                path.display()
            );
        }
        let file = File::create(path).map_err(|error| refused(path, &error.to_string()))?;
        Ok(Self::AllIn(Arc::new(ResultFile::new(path, file, ending, None))))
    }

    /// Makes a file for the next result, which appears when that is complete.
    ///
    /// # Errors
    /// If the file cannot be made; the message has its path.
    pub(crate) fn next_in(path: &Path, format: Format) -> Result<Self> {
        Ok(Self::NextIn(Arc::new(ResultFile::draft(path, ending(path, format)?)?)))
    }

    /// The file for results, if there is one.
    pub(crate) fn file(&self) -> Option<&Arc<ResultFile>> {
        match self {
            Self::Shown => None,
            Self::AllIn(file) | Self::NextIn(file) => Some(file),
        }
    }

    fn has_result(&self) -> &AtomicBool {
        self.file().map_or(&IS_SHOWN, |file| &file.has_result)
    }

    /// Takes note of a complete result.
    pub(crate) fn add(&self) {
        self.has_result().store(true, Ordering::Relaxed);
    }

    /// Refuses a result in a format for programs where there is one already, or on a terminal.
    ///
    /// # Errors
    /// The message tells what to do.
    pub(crate) fn check(&self, format: Format) -> Result<()> {
        if !format.is_binary() {
            return Ok(());
        }
        let title = format.title();
        if self.file().is_none() && io::stdout().is_terminal() {
            return plan_err!(
                "{title} is not for terminals; write a file with -o, or with .once at the prompt, or pipe the output"
            );
        }
        if self.has_result().load(Ordering::Relaxed) {
            let place = self.file().map_or("standard output".to_owned(), |file| file.name());
            return plan_err!(
                "{place} has the {title} of another statement, and holds only one result; run a query of its own for each"
            );
        }
        Ok(())
    }

    /// Ends `.once` behind a statement, or behind a command that has printed a result. The file appears unless there was an error.
    ///
    /// # Errors
    /// If the file cannot be renamed.
    pub(crate) fn end_next(&mut self, is_statement: bool, is_fine: bool) -> Result<()> {
        let Self::NextIn(file) = self else { return Ok(()) };
        let file = Arc::clone(file);
        let is_complete = file.has_result.load(Ordering::Relaxed);
        if is_statement || is_complete {
            *self = Self::Shown;
        }
        if is_fine && is_complete { file.replace() } else { Ok(()) }
    }
}

/// Returns the format that the ending of a file shows at the prompt, where a format of text is set for the screen.
fn ending(path: &Path, format: Format) -> Result<Format> {
    match Format::from_ending(path, Format::Automatic) {
        Ok(ending) if ending.is_binary() && !format.is_binary() => Ok(ending),
        _ => Format::from_ending(path, format),
    }
}

/// A file for results.
#[derive(Debug)]
pub(crate) struct ResultFile {
    path: PathBuf,
    file: Arc<File>,
    /// The format of the ending.
    ending: Format,
    /// Becomes the file at `path` in the end; `None` for a file that grows in its place.
    draft: Option<Draft>,
    has_result: AtomicBool,
}

impl ResultFile {
    fn new(path: &Path, file: File, ending: Format, draft: Option<Draft>) -> Self {
        let (path, file) = (path.to_owned(), Arc::new(file));
        Self { path, file, ending, draft, has_result: AtomicBool::new(false) }
    }

    /// Makes a file that appears when it is [kept](Self::keep). `ending` is the format of its ending.
    ///
    /// # Errors
    /// If it cannot be made.
    pub(crate) fn draft(path: &Path, ending: Format) -> Result<Self> {
        let draft = Draft::beside(path)?;
        Ok(Self::new(path, draft.open()?, ending, Some(draft)))
    }

    /// The open file.
    pub(crate) fn file(&self) -> &Arc<File> {
        &self.file
    }

    /// Returns the format of results here while `format` is set.
    pub(crate) fn format(&self, format: Format) -> Format {
        self.ending.or(format)
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn replace(&self) -> Result<()> {
        self.draft.as_ref().map_or(Ok(()), Draft::keep)
    }

    /// Puts the file in its place when all statements have run. `format` is the one that is set.
    ///
    /// # Errors
    /// If it cannot be renamed. If no statement had a result, a file of bytes would be empty, which is no file of its format.
    pub(crate) fn keep(&self, format: Format) -> Result<()> {
        if self.format(format).is_binary() && !self.has_result.load(Ordering::Relaxed) {
            return plan_err!("{}: not written, because no statement had a result", self.name());
        }
        self.replace()
    }
}
