//! The one error type of the crate.
//!
//! An error gives its kind ([`ErrorKind`]), the file and the place in it, what was found and what was
//! expected. The kind distinguishes a corrupt file, a user's mistake and a bug in gridfusion:
//!
//! ```
//! use gridfusion_core::{Error, ErrorKind};
//!
//! let error = Error::corrupt("chunk index", 312, "codec 7, expected 0 (raw) or 1 (zstd)").in_file("a.tet");
//! assert_eq!(error.kind(), ErrorKind::Corrupt);
//! assert_eq!(
//!     error.to_string(),
//!     "a.tet: corrupt chunk index at byte 312: codec 7, expected 0 (raw) or 1 (zstd)"
//! );
//! ```

mod secrets;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

pub use secrets::{has_secrets, is_url, secrets_of, shown_location, without_secrets};

/// The crate's result type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The cause of an [`Error`], which decides what a caller should do about it.
///
/// Later versions may add kinds: treat one that you do not know as [`ErrorKind::Unsupported`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request is wrong: an unknown dataset, a bad option, the wrong key.
    ///
    /// Change the request; the message describes a valid one. The same request fails again.
    Usage,
    /// The bytes contradict their format.
    ///
    /// Restore the file from a copy or write it anew. [`Error::file`], [`Error::region`] and
    /// [`Error::offset`] locate the contradiction. The same bytes fail again.
    Corrupt,
    /// The request and the file are valid, but need what this version or this machine cannot do:
    /// a feature of the format that is not read, a value that does not fit its Arrow type.
    ///
    /// Ask for less, such as fewer columns or another dataset, or write the file in another way.
    Unsupported,
    /// The bytes could not be read or written: no such file, no permission, trouble with the network.
    ///
    /// Check that the location exists and can be read. Trying again later may help.
    /// [`source`](std::error::Error::source) is the cause that the system or the store reports.
    Io,
    /// A bug in gridfusion: an invariant does not hold.
    ///
    /// Report it with the whole message. Other requests are not affected.
    Internal,
}

/// An error of opening, reading or writing an array.
///
/// Cheap to clone. `Display` shows the whole message, with the file and the place in it.
#[derive(Debug, Clone)]
pub struct Error(Arc<Inner>);

#[derive(Debug, Clone)]
struct Inner {
    kind: ErrorKind,
    file: Option<String>,
    place: Option<FilePlace>,
    message: String,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// A place in a file.
#[derive(Debug, Clone)]
struct FilePlace {
    region: &'static str,
    /// The absolute offset of the faulty byte, if there is one.
    offset: Option<u64>,
}

impl Error {
    fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Arc::new(Inner {
            kind,
            file: None,
            place: None,
            message: message.into(),
            source: None,
        }))
    }

    /// Returns a `Usage` error; `message` states what is wrong and what would be right.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, message)
    }

    /// Returns a `Corrupt` error about the bytes of `region` at the absolute offset `offset`.
    pub fn corrupt(region: &'static str, offset: u64, message: impl Into<String>) -> Self {
        Self::corrupt_place(FilePlace { region, offset: Some(offset) }, message)
    }

    /// Returns a `Corrupt` error about a `region` as a whole, where no single byte is faulty: a part is
    /// missing, or two files do not fit together.
    pub fn corrupt_region(region: &'static str, message: impl Into<String>) -> Self {
        Self::corrupt_place(FilePlace { region, offset: None }, message)
    }

    fn corrupt_place(place: FilePlace, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Corrupt, message).edit(|inner| inner.place = Some(place))
    }

    /// Returns an `Unsupported` error: a valid file needs something that this version cannot do.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    /// Returns an `Io` error with its cause.
    pub fn io(
        message: impl Into<String>,
        source: impl std::error::Error + Send + Sync + 'static,
    ) -> Self {
        Self::new(ErrorKind::Io, message).caused_by(source)
    }

    /// Returns an `Internal` error: an invariant of this crate does not hold.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// Adds the cause, whose text follows the message.
    #[must_use]
    pub(crate) fn caused_by(self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.edit(|inner| inner.source = Some(Arc::new(source)))
    }

    /// Names the file that the error is about, unless the error already names one.
    #[must_use]
    pub fn in_file(self, file: &str) -> Self {
        if self.0.file.is_some() {
            return self;
        }
        self.edit(|inner| inner.file = Some(shown_location(file)))
    }

    /// Replaces the name of the file, or removes it.
    #[must_use]
    pub fn in_file_instead(self, file: Option<String>) -> Self {
        self.edit(|inner| inner.file = file)
    }

    /// Puts `folder` before the name of the file; if the error names no file, names the folder.
    #[must_use]
    pub fn in_folder(self, folder: &str) -> Self {
        let folder = &*shown_location(folder);
        match &self.0.file {
            Some(file) if is_absolute(file) || path_within(file, folder).is_some() => self,
            Some(file) => {
                let file = format!("{}/{file}", folder.trim_end_matches('/'));
                self.edit(|inner| inner.file = Some(file))
            }
            None => self.in_file(folder),
        }
    }

    /// Puts `what`, the subject of the error, before its message: `chunk [0, 1] of dataset "t"`.
    #[must_use]
    pub fn about(self, what: &str) -> Self {
        self.edit(|inner| inner.message = format!("{what}: {}", inner.message))
    }

    /// Appends `more` to the message, after a semicolon.
    #[must_use]
    pub fn followed_by(self, more: &str) -> Self {
        self.edit(|inner| inner.message = format!("{}; {more}", inner.message))
    }

    /// Returns the kind, by which a caller decides what to do.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the file that the error is about, if known.
    pub fn file(&self) -> Option<&str> {
        self.0.file.as_deref()
    }

    /// Returns the absolute offset of the faulty byte in the file, if there is one.
    pub fn offset(&self) -> Option<u64> {
        self.0.place.as_ref()?.offset
    }

    /// Returns the part of the file or folder that is corrupt; `None` for other kinds of errors.
    pub fn region(&self) -> Option<&'static str> {
        self.0.place.as_ref().map(|place| place.region)
    }

    /// Returns the message with its cause, without the file and the place, which `Display` adds.
    pub fn detail(&self) -> String {
        match &self.0.source {
            Some(source) => {
                format!("{}: {}", self.0.message, without_secrets(&source.to_string()))
            }
            None => self.0.message.clone(),
        }
    }

    fn edit(self, change: impl FnOnce(&mut Inner)) -> Self {
        let mut inner = Arc::unwrap_or_clone(self.0);
        change(&mut inner);
        Self(Arc::new(inner))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &*self.0;
        if let Some(file) = &inner.file {
            write!(f, "{file}: ")?;
        }
        match &inner.place {
            Some(FilePlace { region, offset: Some(offset) }) => {
                write!(f, "corrupt {region} at byte {offset}: ")?;
            }
            Some(FilePlace { region, offset: None }) => write!(f, "corrupt {region}: ")?,
            None => {}
        }
        if inner.kind == ErrorKind::Internal {
            f.write_str("this is a bug in gridfusion, please report it: ")?;
        }
        f.write_str(&self.detail())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

/// Returns the text of an error and of all its causes, with colons between them.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Whether a name is an absolute path or a URL.
fn is_absolute(name: &str) -> bool {
    Path::new(name).is_absolute() || name.contains("://")
}

/// Returns the part of a path or URL below `folder`, which is empty for the folder itself. `None` for a path
/// elsewhere: `C/CURRENT` is within `C`, and `CURRENT` is not.
pub(crate) fn path_within<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(folder.trim_end_matches('/'))?;
    if rest.is_empty() || rest.starts_with('/') { Some(rest.trim_start_matches('/')) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_compared_by_whole_names() {
        assert_eq!(path_within("C/CURRENT", "C"), Some("CURRENT"));
        assert_eq!(path_within("s3://b/C//x", "s3://b/C/"), Some("x"));
        assert_eq!(path_within("C", "C"), Some(""));
        assert_eq!(path_within("/a", "/"), Some("a"));
        assert_eq!(path_within("CURRENT", "C"), None);
        assert_eq!(path_within("D/C", "C"), None);
        let named = |file: &str| Error::usage("x").in_file(file).in_folder("C").to_string();
        assert_eq!(named("CURRENT"), "C/CURRENT: x");
        assert_eq!(named("C/CURRENT"), "C/CURRENT: x");
        assert_eq!(named("s3://b/x"), "s3://b/x: x");
    }

    #[test]
    fn display_has_file_place_and_cause() {
        let cause = std::io::Error::other("disk on fire");
        let error = Error::io("cannot read bytes 0..8", cause).in_file("a.tet").in_file("b.tet");
        assert_eq!(error.to_string(), "a.tet: cannot read bytes 0..8: disk on fire");
        assert_eq!(
            (error.kind(), error.file(), error.offset()),
            (ErrorKind::Io, Some("a.tet"), None)
        );
        assert_eq!(
            (error.detail().as_str(), error.region()),
            ("cannot read bytes 0..8: disk on fire", None)
        );
        assert!(std::error::Error::source(&error).is_some());
    }

    #[test]
    fn a_byte_is_named_where_one_is_to_blame() {
        let first = Error::corrupt("superblock", 0, "\"HDF\", expected \"TETR\"");
        assert_eq!(first.to_string(), "corrupt superblock at byte 0: \"HDF\", expected \"TETR\"");
        assert_eq!((first.region(), first.offset()), (Some("superblock"), Some(0)));
        let whole = Error::corrupt_region("array schema", "no schema").in_file("a");
        assert_eq!(whole.to_string(), "a: corrupt array schema: no schema");
        assert_eq!((whole.region(), whole.offset()), (Some("array schema"), None));
        assert_eq!(whole.kind(), ErrorKind::Corrupt);
    }

    #[test]
    fn internal_errors_ask_for_a_report() {
        let text = Error::internal("selection of rank 3 on an array of rank 2").to_string();
        assert!(text.contains("please report"), "{text}");
    }
}
