//! [`OpenFolder`]: the objects of a folder, which are opened when they are first read.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;

use super::seen::Seen;
use crate::error::{Error, Result};
use crate::format::ByteRange;
use crate::io::{
    ByteSource, Folder, LruCache, MAX_OPEN_OBJECTS, ObjectStamp, document_too_long, is_not_found,
};

/// A folder that opens objects when they are first read, and keeps a limited number of them open.
#[derive(Debug)]
pub(super) struct OpenFolder {
    pub(super) folder: Arc<dyn Folder>,
    pub(super) opened: LruCache<Arc<str>, Arc<dyn ByteSource>>,
    /// The stamps of what was read, if objects may be written again.
    pub(super) seen: Option<Seen>,
    /// Folders that are absent, each with a stamp in `seen`. Where a whole array is absent, its chunks need no stamps.
    absent: RwLock<HashSet<Arc<str>>>,
}

/// The purpose of a read.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Purpose {
    /// Cells, which later queries may not need.
    #[default]
    Cells,
    /// Cells that are labels.
    Labels,
    /// Metadata. An object that is read whole may have at most so many bytes.
    Metadata { most: u64 },
}

impl Purpose {
    /// Whether later queries are likely to need the same bytes.
    fn is_metadata(self) -> bool {
        !matches!(self, Self::Cells)
    }

    /// The most bytes of an object that is read whole.
    fn most(self) -> u64 {
        match self {
            Self::Metadata { most } => most,
            Self::Cells | Self::Labels => u64::MAX,
        }
    }
}

/// The ranges requested of one object.
#[derive(Default)]
pub(super) struct RequestedRanges {
    pub(super) ranges: Vec<ByteRange>,
    /// For each range, the position of its reply.
    pub(super) places: Vec<usize>,
    /// Whether an absent object is an error.
    pub(super) is_needed: bool,
    pub(super) purpose: Purpose,
}

impl RequestedRanges {
    /// Whether an object is opened to be read, also where a part of it can be read without.
    fn needs_opening(&self) -> bool {
        self.is_needed
            && !matches!(self.ranges.as_slice(), [ByteRange::Whole | ByteRange::Suffix(_)])
    }

    /// Whether this is a request for a whole document that may be absent.
    fn is_of_document(&self) -> bool {
        let is_whole = matches!(self.ranges.as_slice(), [ByteRange::Whole]);
        is_whole && !self.is_needed && matches!(self.purpose, Purpose::Metadata { .. })
    }
}

impl OpenFolder {
    pub(super) fn new(folder: Arc<dyn Folder>, seen: Option<Seen>) -> Self {
        Self { folder, opened: LruCache::new(MAX_OPEN_OBJECTS), seen, absent: RwLock::default() }
    }

    /// Reads the ranges requested of an object; `None` if it is absent and may be.
    pub(super) async fn read_if_present(
        &self,
        object: &Arc<str>,
        requested: &RequestedRanges,
    ) -> Result<Option<Vec<Bytes>>> {
        let remembers = self.seen.is_some() && requested.is_of_document();
        if remembers && self.folder.is_known_absent(object) {
            return Ok(None);
        }
        // An object that was open before and is absent now has changed, which is an error.
        let was_there = self.opened.get(object).is_some();
        match self.read(object, requested).await {
            Err(error) if !requested.is_needed && !was_there && is_not_found(&error) => {
                if !self.note_absent_above(object, requested)? {
                    self.note(object, None, requested)?;
                }
                if remembers {
                    self.folder.note_absent(object);
                }
                Ok(None)
            }
            read => read.map(Some),
        }
    }

    /// Returns a folder above an object that is known to be absent: its stamp stands for that of the object. `None` if the object
    /// was there before, so that its own stamp tells that it was deleted.
    pub(super) fn absent_above(&self, object: &Arc<str>) -> Option<Arc<str>> {
        let absent = self.absent.read().unwrap_or_else(PoisonError::into_inner);
        if absent.is_empty() {
            return None;
        }
        let mut folders = object.rmatch_indices('/').map(|(at, _)| &object[..at]);
        let above = folders.find_map(|folder| absent.get(folder).cloned())?;
        let was_seen = self.seen.as_ref().is_some_and(|seen| seen.has(object));
        (!was_seen && self.opened.get(object).is_none()).then_some(above)
    }

    /// Looks for an absent folder above an absent chunk, and notes its stamp in place of that of the chunk. Returns whether it did.
    fn note_absent_above(&self, object: &Arc<str>, requested: &RequestedRanges) -> Result<bool> {
        let Some(seen) = self.seen.as_ref().filter(|seen| !seen.has(object)) else {
            return Ok(false);
        };
        let of_cells = !requested.purpose.is_metadata();
        let above = of_cells.then(|| self.folder.absent_above(object)).flatten();
        let Some(above) = above.map(Arc::<str>::from) else { return Ok(false) };
        self.note(&above, None, requested)?;
        // Without a stamp, no check would notice that the folder appears.
        let is_noted = seen.has(&above);
        if is_noted {
            self.absent.write().unwrap_or_else(PoisonError::into_inner).insert(above);
        }
        Ok(is_noted)
    }

    /// Notes the stamp of an object, if objects may be written again; `None` if it is absent.
    fn note(
        &self,
        object: &Arc<str>,
        stamp: Option<ObjectStamp>,
        requested: &RequestedRanges,
    ) -> Result<()> {
        match &self.seen {
            Some(seen) => seen.note(object, stamp, requested.purpose.is_metadata()),
            None => Ok(()),
        }
    }

    /// Checks that objects that a query has read, and all metadata, are what they were.
    ///
    /// # Errors
    /// `Io` for an object that was written, added or deleted since it was first read.
    pub(super) async fn check_read(&self, objects: &[Arc<str>]) -> Result<()> {
        let Some(seen) = &self.seen else { return Ok(()) };
        let checked = objects
            .iter()
            .map(|object| self.absent_above(object).unwrap_or_else(|| Arc::clone(object)));
        let checked: HashSet<Arc<str>> = checked.collect();
        seen.check(&*self.folder, &checked.into_iter().collect::<Vec<_>>()).await
    }

    /// Returns the versions of all objects below a folder, and notes their stamps; see [`Folder::versions_below`].
    ///
    /// # Errors
    /// `Io` if the folder cannot be listed, or an object was written since it was read.
    pub(super) fn versions_below(
        &self,
        path: &str,
        most: usize,
    ) -> Result<Option<Vec<crate::io::VersionBelow>>> {
        let found = self.folder.versions_below(path, most)?;
        if let Some(seen) = &self.seen {
            for crate::io::VersionBelow { path, stamp, .. } in found.iter().flatten() {
                seen.note(&path.as_str().into(), Some(*stamp), false)?;
            }
        }
        Ok(found)
    }

    /// Forgets which documents are known to be absent; returns whether any was.
    pub(super) fn forget_absent(&self) -> bool {
        self.folder.forget_absent()
    }

    /// Opens those of some objects that are not open, if the folder can open several at once. One that cannot be opened is
    /// left to the read that needs it.
    ///
    /// # Errors
    /// `Io` for an object that was written since it was first read.
    pub(super) async fn open_all<'a>(
        &self,
        requests: impl Iterator<Item = (&'a Arc<str>, &'a RequestedRanges)>,
    ) -> Result<()> {
        if !self.folder.reads_ranges() {
            return Ok(());
        }
        let missing = requests.filter(|(object, requested)| {
            requested.needs_opening() && self.opened.get(*object).is_none()
        });
        let missing: Vec<_> = missing.collect();
        let paths: Vec<Arc<str>> = missing.iter().map(|(object, _)| Arc::clone(object)).collect();
        let opened = self.folder.open_all(&paths).await;
        for ((object, requested), source) in missing.into_iter().zip(opened) {
            let Ok(source) = source else { continue };
            if let Some(stamp) = source.stamp() {
                self.note(object, Some(stamp), requested)?;
            }
            self.opened.insert(Arc::clone(object), source);
        }
        Ok(())
    }

    async fn read(&self, object: &Arc<str>, requested: &RequestedRanges) -> Result<Vec<Bytes>> {
        let RequestedRanges { ranges, purpose, .. } = requested;
        if let Some(source) = self.opened.get(object) {
            return read_ranges(&*source, ranges, *purpose).await;
        }
        // These reads need no length, so they skip opening the object: one that is a chunk takes one
        // request.
        let needs_no_length = |range: &ByteRange| match range {
            ByteRange::Whole | ByteRange::Suffix(_) => true,
            ByteRange::Bounded(_) => self.folder.reads_parts_unopened(object),
        };
        if let [range] = ranges.as_slice()
            && needs_no_length(range)
        {
            let (is_metadata, most) = (purpose.is_metadata(), purpose.most());
            let read = self.folder.read_unopened(object, range, is_metadata, most).await?;
            if let Some(bytes) = read {
                check_length(range, &bytes)
                    .map_err(|error| error.in_file(&self.folder.location_of(object)))?;
                if let Some(stamp) = self.folder.stamp_as_read(object) {
                    self.note(object, Some(stamp), requested)?;
                }
                return Ok(vec![bytes]);
            }
        }
        let source = self.folder.open(object).await?;
        if let Some(stamp) = source.stamp() {
            self.note(object, Some(stamp), requested)?;
        }
        // Without range reads, a source holds the whole object in memory that is not accounted for: do
        // not keep it.
        if self.folder.reads_ranges() {
            self.opened.insert(Arc::clone(object), Arc::clone(&source));
        }
        read_ranges(&*source, ranges, *purpose).await
    }
}

/// Fails if an object that was not opened ends before a range does.
fn check_length(range: &ByteRange, bytes: &Bytes) -> Result<()> {
    match range {
        ByteRange::Bounded(range)
            if bytes.len() as u64 != range.end.saturating_sub(range.start) =>
        {
            let end = range.start.saturating_add(bytes.len() as u64);
            let message = format!("bytes {range:?} are needed, but it has {end} bytes");
            Err(Error::corrupt("object", range.start, message))
        }
        _ => Ok(()),
    }
}

/// Reads ranges of an open object; see [`ByteRange::within`].
///
/// # Errors
/// `Corrupt` for a range beyond the end of the object, `Unsupported` for a document that is too long, and the errors of
/// [`ByteSource::read`].
pub(super) async fn read_ranges(
    source: &dyn ByteSource,
    ranges: &[ByteRange],
    purpose: Purpose,
) -> Result<Vec<Bytes>> {
    let size = source.size();
    if ranges.contains(&ByteRange::Whole) && size > purpose.most() {
        return Err(document_too_long(size, purpose.most()).in_file(source.name()));
    }
    let ranges: Vec<Range<u64>> = ranges.iter().map(|range| range.within(size)).collect();
    // A format that does not know the length of an object cannot check the ranges in its index.
    if let Some(beyond) = ranges.iter().find(|range| range.end > size) {
        let message = format!("bytes {beyond:?} are needed, but it has {size} bytes");
        return Err(Error::corrupt("object", beyond.start, message).in_file(source.name()));
    }
    match purpose.is_metadata() {
        true => source.read_metadata(&ranges).await,
        false => source.read(&ranges).await,
    }
}
