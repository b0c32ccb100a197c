//! The one error type of the crate.
//!
//! An error says whose fault it is ([`Kind`]), in which file, where in it, what was found and what
//! was expected. A corrupt file, a mistake of the user and a bug of ours are never confused:
//!
//! ```
//! use gridfusion::{Error, Kind};
//!
//! let error = Error::corrupt("chunk index", 312, "codec 7, expected 0 (raw) or 1 (zstd)").in_file("a.tet");
//! assert_eq!(error.kind(), Kind::Corrupt);
//! assert_eq!(
//!     error.to_string(),
//!     "a.tet: corrupt chunk index at byte 312: codec 7, expected 0 (raw) or 1 (zstd)"
//! );
//! ```

use std::fmt;
use std::sync::Arc;

/// The crate's result type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Whose fault an [`Error`] is, and so what to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// The request is wrong: an unknown dataset, a bad option. Change the request.
    Usage,
    /// The file contradicts its format. Write it anew or repair it.
    Corrupt,
    /// The file is valid, but uses something this version does not read.
    Unsupported,
    /// The bytes could not be read: no such file, no permission, network trouble.
    Io,
    /// A bug in gridfusion. Please report it.
    Internal,
}

/// Something went wrong while opening or reading an array.
///
/// Cheap to clone. `Display` gives the whole sentence, with the file and the place in it.
#[derive(Debug, Clone)]
pub struct Error(Arc<Inner>);

#[derive(Debug, Clone)]
struct Inner {
    kind: Kind,
    file: Option<String>,
    place: Option<Place>,
    message: String,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// Where in a file: the region's name and the absolute byte offset.
#[derive(Debug, Clone)]
struct Place {
    region: &'static str,
    offset: u64,
}

impl Error {
    fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self(Arc::new(Inner {
            kind,
            file: None,
            place: None,
            message: message.into(),
            source: None,
        }))
    }

    /// A mistake in the request; `message` says what is wrong and what would be right.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message)
    }

    /// Bytes that contradict the format, in `region` at the absolute byte `offset`.
    pub fn corrupt(region: &'static str, offset: u64, message: impl Into<String>) -> Self {
        Self::new(Kind::Corrupt, message).edit(|inner| inner.place = Some(Place { region, offset }))
    }

    /// A valid file that needs something this version cannot do.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(Kind::Unsupported, message)
    }

    /// Bytes that could not be read, with the cause.
    pub fn io(
        message: impl Into<String>,
        source: impl std::error::Error + Send + Sync + 'static,
    ) -> Self {
        Self::new(Kind::Io, message).edit(|inner| inner.source = Some(Arc::new(source)))
    }

    /// A broken invariant of this crate.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Kind::Internal, message)
    }

    /// Names the file the error is about, unless a name is there already.
    #[must_use]
    pub fn in_file(self, file: &str) -> Self {
        if self.0.file.is_some() {
            return self;
        }
        self.edit(|inner| inner.file = Some(file.to_owned()))
    }

    /// Names this file instead of the one that is named, or none.
    #[must_use]
    pub fn in_file_instead(self, file: Option<String>) -> Self {
        self.edit(|inner| inner.file = file)
    }

    /// Names the folder of the file that the error is about, or of the array if it names no file.
    #[must_use]
    pub fn in_folder(self, folder: &str) -> Self {
        match &self.0.file {
            Some(file) if file.starts_with(folder) => self,
            Some(file) => {
                let file = format!("{}/{file}", folder.trim_end_matches('/'));
                self.edit(|inner| inner.file = Some(file))
            }
            None => self.in_file(folder),
        }
    }

    /// Puts what the error is about before its message: `chunk [0, 1] of dataset "t"`.
    #[must_use]
    pub fn about(self, what: &str) -> Self {
        self.edit(|inner| inner.message = format!("{what}: {}", inner.message))
    }

    /// Adds to the message, after a semicolon.
    #[must_use]
    pub(crate) fn followed_by(self, more: &str) -> Self {
        self.edit(|inner| inner.message = format!("{}; {more}", inner.message))
    }

    /// Whose fault it is.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// The file the error is about, where known.
    pub fn file(&self) -> Option<&str> {
        self.0.file.as_deref()
    }

    /// The absolute byte offset in the file, for errors about a place in it.
    pub fn offset(&self) -> Option<u64> {
        self.0.place.as_ref().map(|place| place.offset)
    }

    /// The part of the file the error is about, for errors about a place in it.
    pub fn region(&self) -> Option<&'static str> {
        self.0.place.as_ref().map(|place| place.region)
    }

    /// What is wrong, without where: `Display` says both.
    pub fn detail(&self) -> String {
        match &self.0.source {
            Some(source) => format!("{}: {source}", self.0.message),
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
        if let Some(Place { region, offset }) = &inner.place {
            write!(f, "corrupt {region} at byte {offset}: ")?;
        }
        if inner.kind == Kind::Internal {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_has_file_place_and_cause() {
        let cause = std::io::Error::other("disk on fire");
        let error = Error::io("cannot read bytes 0..8", cause).in_file("a.tet").in_file("b.tet");
        assert_eq!(error.to_string(), "a.tet: cannot read bytes 0..8: disk on fire");
        assert_eq!((error.kind(), error.file(), error.offset()), (Kind::Io, Some("a.tet"), None));
        assert_eq!(
            (error.detail().as_str(), error.region()),
            ("cannot read bytes 0..8: disk on fire", None)
        );
        assert!(std::error::Error::source(&error).is_some());
    }

    #[test]
    fn our_own_bugs_say_so() {
        let text = Error::internal("selection of rank 3 on an array of rank 2").to_string();
        assert!(text.contains("please report"), "{text}");
    }
}
