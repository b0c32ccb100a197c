//! [`TableOrigin`]: what a table was opened from, so that another process can open it again.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::array_format::{ArrayFormat, PinnedOption};
use super::locations::Locations;
use super::mosaic::KnownFiles;
use crate::array::Contents;
use crate::error::shown_location;
use crate::options::{ArrayOptions, ResolvedOptions};
use crate::tile::ObjectVersion;

/// The locations, format and options that a table was opened with.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableOrigin {
    /// The paths or URLs, with patterns as they were given.
    pub locations: Locations,
    /// The format by name; `None` if the files are of several formats.
    pub format: Option<String>,
    /// The options given for the table, without the session's defaults.
    pub options: ArrayOptions,
    /// The session's default options when the table was opened.
    pub defaults: ArrayOptions,
    /// The places that the locations stood for, in order.
    pub places: Arc<[OriginPlace]>,
    /// Whether the places are parts of one table, even if there is only one: the locations were a list or a pattern.
    pub is_many: bool,
    /// The files of a table of many, for processes that open only some of them.
    pub files: Option<Arc<KnownFiles>>,
    /// The arrays that a query has put side by side; empty for the table of a location.
    pub side_by_side: Arc<[JoinedOrigin]>,
}

/// The origin of one of several arrays that a query has put side by side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinedOrigin {
    /// How its table was made.
    pub origin: Arc<TableOrigin>,
    /// The versions of the objects that opening it has read.
    pub versions: Vec<ObjectVersion>,
    /// Its chunks.
    pub contents: Contents,
    /// For each axis, that of the first array.
    pub axes: Vec<usize>,
    /// For each axis, the indices whose labels the other arrays have, too.
    pub ranges: Vec<Range<u64>>,
}

/// A place that became a table, or a part of one.
#[derive(Clone, PartialEq, Eq)]
pub struct OriginPlace {
    /// The path or URL.
    pub location: String,
    /// Its format by name.
    pub format: String,
    /// The options that name what was opened there, in place of those of the table; `None` for those of the table.
    pub options: Option<ArrayOptions>,
}

/// Shows no password and no signature of a URL: an error of DataFusion may show a whole plan.
impl fmt::Debug for OriginPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let location = shown_location(&self.location);
        f.debug_struct("OriginPlace")
            .field("location", &location)
            .field("format", &self.format)
            .field("options", &self.options)
            .finish()
    }
}

impl OriginPlace {
    /// Takes a path or URL, and the format that was found there.
    pub fn new(location: impl Into<String>, format: &dyn ArrayFormat) -> Self {
        Self { location: location.into(), format: format.name().to_owned(), options: None }
    }

    /// Returns the place with options that name what was opened there, in place of those of the table.
    #[must_use]
    pub fn pinned(self, of_table: &ArrayOptions, pinned: &[PinnedOption]) -> Self {
        let options = (!pinned.is_empty()).then(|| with_pinned(of_table.clone(), pinned));
        Self { options, ..self }
    }
}

fn with_pinned(options: ArrayOptions, pinned: &[PinnedOption]) -> ArrayOptions {
    pinned.iter().fold(options, |mut options, (name, value)| match value {
        Some(value) => options.with_option(*name, value.clone()),
        None => {
            options.remove(name);
            options
        }
    })
}

impl TableOrigin {
    /// Makes the origin of a table that another process opened from these `places`.
    #[must_use]
    pub fn from_places(
        locations: Locations,
        format: Option<String>,
        options: ArrayOptions,
        defaults: ArrayOptions,
        places: Arc<[OriginPlace]>,
        is_many: bool,
    ) -> Self {
        let side_by_side = Arc::default();
        Self { locations, format, options, defaults, places, is_many, files: None, side_by_side }
    }

    /// Makes the origin of a table of one place, opened with the options `given` and the session's `defaults`, which the
    /// format resolved to `resolved`.
    pub fn new(
        locations: Locations,
        place: OriginPlace,
        given: &ArrayOptions,
        defaults: &ArrayOptions,
        resolved: &ResolvedOptions,
    ) -> Self {
        let mut options = given.clone();
        for (name, _) in given.iter() {
            // A key that was given as text becomes a secret, so that formatting the value does not show it.
            if let Some(key) = resolved.secret(name) {
                options = options.with_option(name, key.clone());
            }
        }
        let (format, defaults) = (Some(place.format.clone()), defaults.clone());
        let places = [place].into();
        let (is_many, files, side_by_side) = (false, None, Arc::default());
        Self { locations, format, options, defaults, places, is_many, files, side_by_side }
    }

    /// Returns the first place of the table.
    pub fn first_place(&self) -> Option<&str> {
        Some(self.places.first()?.location.as_str())
    }

    /// Returns the origin of a table of several places.
    pub fn of_many(self, places: Vec<OriginPlace>) -> Self {
        let same = places.iter().all(|place| Some(&place.format) == self.format.as_ref());
        let format = self.format.filter(|_| same);
        Self { format, places: places.into(), is_many: true, ..self }
    }

    /// Returns the origin of arrays that a query has put side by side; `None` for none.
    pub fn from_side_by_side(parts: Vec<JoinedOrigin>) -> Option<Self> {
        let first = Self::clone(&parts.first()?.origin);
        Some(Self { side_by_side: parts.into(), files: None, ..first })
    }

    /// Returns the origin with options that name what was opened, in place of those that may name another thing later.
    #[must_use]
    pub fn pinned(self, pinned: &[PinnedOption]) -> Self {
        Self { options: with_pinned(self.options, pinned), ..self }
    }

    /// Adds what is known of the files of a table of many.
    pub fn with_files(self, files: Option<KnownFiles>) -> Self {
        Self { files: files.map(Arc::new), ..self }
    }

    /// Returns the origin with the option `dataset` set to one array.
    pub fn of_dataset(&self, dataset: &str) -> Self {
        Self { options: self.options.clone().with_dataset(dataset), ..self.clone() }
    }
}
