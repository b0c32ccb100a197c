//! [`Formats`]: the formats of a session, which recognise and open files and folders.
//!
//! ```text
//!   Place ──▶ by name ──▶ by the entries of the folder, or the first bytes of the file ──▶ format
//!             (no I/O)
//! ```
//!
//! Two searches differ in how much they may read:
//!
//! - [`Formats::recognise`] is cheap. Quoted paths and catalogs call it for names that may be anything. In an
//!   object store it reads no objects, unless formats share the ending of the name with others, such as `.zip`.
//! - `look_into` follows if `recognise` finds nothing, for a place that a user named as an array. It reads the
//!   file, or lists the subfolders.
//!
//! This module also opens places, because an error about a place of another format must name that format.
//! `format_options` looks up options.

use std::sync::Arc;

use futures::future::ready;
use futures::stream::{self, StreamExt};

use super::array_format::{ArrayFormat, ArrayGroup, Ending, RecognisedFormat};
use super::elsewhere;
use super::opened_array::TableArrays;
use super::place::Place;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{Entry, Foreign};
use crate::io::{MAX_CONCURRENT_IO, is_not_found};
use crate::options::{IoMode, METADATA_LIMIT, OptionInfo, ResolvedOptions};

/// The formats of a session, in the order in which they are tried. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Formats {
    formats: Arc<Vec<Arc<dyn ArrayFormat>>>,
    /// Settings of the session that are no options of formats.
    settings: &'static [OptionInfo],
}

impl PartialEq for Formats {
    /// Compares the names of the formats.
    fn eq(&self, other: &Self) -> bool {
        self.iter().map(|it| it.name()).eq(other.iter().map(|it| it.name()))
    }
}

impl Eq for Formats {}

/// A place, as a format recognised it.
#[derive(Debug, Clone)]
pub struct RecognisedPlace {
    /// The format of the arrays at the place.
    pub format: Arc<dyn ArrayFormat>,
    /// The format's description of the place.
    pub recognised: RecognisedFormat,
    /// Whether the place is a plain folder of arrays, which the format does not mark as a group.
    pub is_folder_of: bool,
}

impl RecognisedPlace {
    fn new(format: &Arc<dyn ArrayFormat>, recognised: RecognisedFormat) -> Self {
        Self { format: Arc::clone(format), recognised, is_folder_of: false }
    }
}

impl Formats {
    /// Makes a list of formats, which are tried in this order.
    #[must_use]
    pub fn new(formats: Vec<Arc<dyn ArrayFormat>>) -> Self {
        Self { formats: Arc::new(formats), settings: &[] }
    }

    /// Makes the same list for a session with `settings` of its own, which messages then know.
    #[must_use]
    pub fn with_settings(self, settings: &'static [OptionInfo]) -> Self {
        Self { settings, ..self }
    }

    /// Returns the settings of the session that are no options of formats.
    pub(super) fn own_settings(&self) -> &'static [OptionInfo] {
        self.settings
    }

    /// Adds a format, which is tried last. It replaces a format of the same name.
    #[must_use]
    pub fn with(&self, format: Arc<dyn ArrayFormat>) -> Self {
        let mut formats: Vec<_> =
            self.iter().filter(|it| it.name() != format.name()).cloned().collect();
        formats.push(format);
        Self { formats: Arc::new(formats), ..self.clone() }
    }

    /// Returns the formats in the order in which they are tried.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn ArrayFormat>> {
        self.formats.iter()
    }

    /// Returns the format with this name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn ArrayFormat>> {
        self.iter().find(|it| it.name() == name)
    }

    /// Recognises `place` by its name, its entries or its first bytes; `None` if there is nothing, or no
    /// format recognises it.
    ///
    /// To save requests, an object in an object store is recognised by its name alone, unless others share its ending. A
    /// folder there is listed only if its name has no extension, or the ending of a format's folders. A file that begins
    /// as one of a format, and that cannot be read further, is recognised: opening it reports why.
    pub async fn recognise(&self, place: &Place) -> Option<RecognisedPlace> {
        let path = place.path();
        let by_name = self.of_name(&path);
        // Object stores have no folders to ask for, so there the name decides.
        let is_folder = match place.local_path() {
            Some(local) if !local.exists() => return None,
            Some(local) => local.is_dir(),
            None => match by_ending(self, &path) {
                Some(ending) => ending.folder,
                None => !last_part(&path).contains('.'),
            },
        };
        if !is_folder {
            // A local file that has the ending of a folder, such as a copy of `x.tet.d`, is recognised by
            // its bytes.
            let named = by_name.filter(|(_, ending)| !ending.folder).map(|(found, _)| found);
            return match (named, place.local_path()) {
                (None, Some(_)) => {
                    let head = elsewhere::head(place).await.ok()?;
                    Box::pin(self.of_file(place, &head)).await
                }
                (None, None) => {
                    let formats = self.sharing_ending(&path, false);
                    Some(Box::pin(Self::of_contents(&formats, place, None)).await?.0)
                }
                (named, _) => named,
            };
        }
        let by_name = by_name.map(|(found, _)| found);
        // Plain web servers have no listings, and answer the request for one slowly.
        if is_on_the_web(place.location()) {
            let formats = self.sharing_ending(&path, true);
            if by_name.is_some() {
                return by_name;
            }
            if !formats.is_empty() {
                return Some(Box::pin(Self::of_contents(&formats, place, None)).await?.0);
            }
        }
        let first = by_name.as_ref().map_or(&[][..], |found| found.format.first_documents());
        let (entries, ()) = futures::join!(place.entries(), place.read_ahead(first));
        match entries {
            // The entries are more certain than the name, and the name more certain than the entries of
            // subfolders.
            Ok(entries) => match self.of_folder(&entries).or(by_name) {
                None => self.of_nested(place, &entries).await,
                found => found,
            },
            Err(error) => {
                log::debug!("cannot be listed: {error}");
                by_name
            }
        }
    }

    /// Recognises a path by its longest known ending, without I/O; `None` if that alone does not identify the
    /// format.
    pub fn of_name(&self, path: &str) -> Option<(RecognisedPlace, Ending)> {
        let path = path.trim_end_matches('/');
        let endings =
            self.iter().flat_map(|format| format.endings().iter().map(move |it| (format, it)));
        // The longest ending wins: a format may have `.zarr.zip` beside the `.zip` of another.
        let fits = endings.filter(|(_, it)| ends_with(path, it.ending));
        let (format, ending) = fits.max_by_key(|(_, it)| it.ending.len())?;
        let recognised = RecognisedFormat { what: ending.what?.into(), nests: false };
        Some((RecognisedPlace::new(format, recognised), *ending))
    }

    /// Recognises a folder by its entries.
    pub fn of_folder(&self, entries: &[Entry]) -> Option<RecognisedPlace> {
        self.iter()
            .find_map(|format| Some(RecognisedPlace::new(format, format.probe_folder(entries)?)))
    }

    /// Recognises a file by its first bytes.
    fn of_head(&self, head: &[u8]) -> Option<RecognisedPlace> {
        Some(Self::of_bytes(self.iter().find(|format| format.probe_file(head))?))
    }

    /// Recognises the file at a place by its first bytes, or by others that these lead to.
    async fn of_file(&self, place: &Place, head: &[u8]) -> Option<RecognisedPlace> {
        if let Some(found) = self.of_head(head) {
            return Some(found);
        }
        let formats: Vec<_> = self.iter().collect();
        Some(Self::of_contents(&formats, place, Some(head)).await?.0)
    }

    /// Recognises a place by what [`ArrayFormat::probe_place`] reads. If no format recognises it, returns the first that
    /// cannot tell, with its error.
    async fn of_contents(
        formats: &[&Arc<dyn ArrayFormat>],
        place: &Place,
        head: Option<&[u8]>,
    ) -> Option<(RecognisedPlace, Option<Error>)> {
        // The file is read once, so mapping it does not pay.
        let place = place.clone().with_io(IoMode::Pread);
        let mut unread = None;
        for format in formats {
            match format.probe_place(&place, head).await {
                Ok(true) => return Some((Self::of_bytes(format), None)),
                Ok(false) => {}
                Err(error) if is_not_found(&error) => {}
                Err(error) => {
                    unread.get_or_insert_with(|| (Self::of_bytes(format), Some(error)));
                }
            }
        }
        unread
    }

    fn of_bytes(format: &Arc<dyn ArrayFormat>) -> RecognisedPlace {
        let named = format.endings().iter().find_map(|it| it.what);
        let what = named.map_or_else(|| format.noun().into(), Into::into);
        RecognisedPlace::new(format, RecognisedFormat { what, nests: false })
    }

    /// Recognises a folder that holds only folders as a group, if one of them is an array or a group. Lists
    /// only the first few folders, because the others of an unrelated directory may be many.
    ///
    /// Only formats that mark their places as parts of groups ([`RecognisedFormat::nests`]) count, such as
    /// TileDB.
    async fn of_nested(&self, place: &Place, listed: &[Entry]) -> Option<RecognisedPlace> {
        // This runs for any quoted path. A folder with files is more likely one of Parquet or CSV files.
        if listed.iter().any(|entry| entry.size.is_some()) {
            return None;
        }
        let looks: Vec<_> = listed
            .iter()
            .take(MAX_CONCURRENT_IO)
            .map(|entry| async move {
                let entries = place.child(&entry.name).ok()?.entries().await.ok()?;
                self.of_folder(&entries).filter(|found| found.recognised.nests)
            })
            .collect();
        let mut found = Box::pin(stream::iter(looks).buffered(MAX_CONCURRENT_IO).filter_map(ready));
        let format = found.next().await?.format;
        let what = format!("a group or folder of {}s", format.noun()).into();
        Some(RecognisedPlace {
            format,
            recognised: RecognisedFormat { what, nests: true },
            is_folder_of: true,
        })
    }

    /// Recognises a place that a user named as an array, whatever its ending: where [`Self::recognise`] relies
    /// on names, this reads objects and lists folders.
    ///
    /// # Errors
    /// `Io` if there is nothing at `place`, or it cannot be read.
    pub async fn look_into(&self, place: &Place) -> Result<Option<Arc<dyn ArrayFormat>>> {
        if place.local_path().is_some_and(|path| path.is_dir()) {
            return Ok(self.of_group(place, &place.entries().await?).await);
        }
        // The file is read once, so mapping it does not pay.
        let missing = match elsewhere::first_bytes(&place.clone().with_io(IoMode::Pread)).await {
            Ok(head) => return Ok(self.of_file(place, &head).await.map(|found| found.format)),
            Err(error) => error,
        };
        // In an object store, the place may be a folder.
        match place.is_remote() {
            true => match place.entries().await {
                Ok(entries) if !entries.is_empty() => {
                    let folder = self.of_folder(&entries).map(|found| found.format);
                    Ok(folder.or(self.of_group(place, &entries).await))
                }
                Ok(_) | Err(_) => Err(missing),
            },
            false => Err(missing),
        }
    }

    /// Recognises a folder of arrays as a group. All arrays in it must be of one format, which shows folders of
    /// arrays as one schema. Other files may be in the folder.
    async fn of_group(&self, place: &Place, listed: &[Entry]) -> Option<Arc<dyn ArrayFormat>> {
        let folders = |entry: &&Entry| entry.size.is_none() && !entry.name.starts_with('.');
        let some: Vec<Entry> =
            listed.iter().filter(folders).take(MAX_CONCURRENT_IO).cloned().collect();
        // Lists a few subfolders before all of them, because an unrelated folder may have many.
        let (some, _) = self.places_in(place, &some).await;
        let (_, first) = some.first().filter(|(_, it)| it.recognised.nests)?;
        let (all, _) = self.places_in(place, listed).await;
        let is_same =
            |it: &RecognisedPlace| it.recognised.nests && it.format.name() == first.format.name();
        all.iter().all(|(_, found)| is_same(found)).then(|| Arc::clone(&first.format))
    }

    /// Returns the recognised entries of the folder at `place`, sorted by name. Also returns the errors of subfolders that cannot be
    /// listed, and of files whose name does not tell and that cannot be read. Ignores names that begin with a dot.
    pub async fn places_in(
        &self,
        place: &Place,
        listed: &[Entry],
    ) -> (Vec<(String, RecognisedPlace)>, Vec<Error>) {
        let visible = listed.iter().filter(|entry| !entry.name.starts_with('.'));
        let looks: Vec<_> = visible
            .map(|entry| async move { (entry.name.clone(), self.of_entry(place, entry).await) })
            .collect();
        let mut looks = stream::iter(looks).buffered(MAX_CONCURRENT_IO);
        let (mut found, mut left_out) = (Vec::new(), Vec::new());
        while let Some((name, looked)) = looks.next().await {
            match looked {
                Ok(Some(it)) => found.push((name, it)),
                Ok(None) => {}
                Err(error) => left_out.push(error),
            }
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        (found, left_out)
    }

    /// Recognises an entry of the folder at `place`. A file is recognised by its name only, and a folder by
    /// its name or by listing it. So a catalog of a thousand files reads none of them, unless the ending alone does not
    /// identify the format.
    async fn of_entry(&self, place: &Place, entry: &Entry) -> Result<Option<RecognisedPlace>> {
        let named = self.of_name(&entry.name);
        // An entry without a size is a folder. The ending of a file on a folder, or the other way round,
        // counts as none.
        match named.filter(|(_, ending)| ending.folder == entry.size.is_none()) {
            Some((found, _)) => Ok(Some(found)),
            None if entry.size.is_some() => {
                let formats = self.sharing_ending(&entry.name, false);
                if formats.is_empty() {
                    return Ok(None);
                }
                let file = place.child(&entry.name)?;
                match Self::of_contents(&formats, &file, None).await {
                    Some((_, Some(error))) => Err(error),
                    found => Ok(found.map(|(found, _)| found)),
                }
            }
            None => Ok(self.of_folder(&place.child(&entry.name)?.entries().await?)),
        }
    }

    /// Returns the formats that have the ending of a file or a `folder`, which they share with others.
    fn sharing_ending(&self, name: &str, folder: bool) -> Vec<&Arc<dyn ArrayFormat>> {
        if self.of_name(name).is_some() {
            return vec![];
        }
        let name = name.trim_end_matches('/');
        let is_shared =
            |it: &Ending| it.folder == folder && it.what.is_none() && ends_with(name, it.ending);
        self.iter().filter(|it| it.endings().iter().any(is_shared)).collect()
    }

    /// Removes a format's ending from a name, unless nothing would remain.
    /// `soil.v1.tet` becomes `soil.v1`, and `demo.tet.d` becomes `demo`. The name must not end with `/`.
    pub fn stem<'a>(&self, name: &'a str) -> &'a str {
        let ending = by_ending(self, name).map_or("", |it| it.ending);
        let stem = &name[..name.len() - ending.len()];
        if stem.is_empty() { name } else { stem }
    }

    /// Lists the nouns of all formats for messages: `.tet file, .tet.d package, …, NetCDF file or HDF5 file`.
    pub fn nouns(&self) -> String {
        let nouns: Vec<&str> = self.iter().flat_map(|it| it.nouns()).copied().collect();
        match nouns.split_last() {
            Some((last, others)) if !others.is_empty() => {
                format!("{} or {last}", others.join(", "))
            }
            _ => nouns.concat(),
        }
    }

    /// Opens the arrays at `place`.
    ///
    /// # Errors
    /// As [`ArrayFormat::open`]. If something else is at `place`, the error names it.
    pub async fn open(
        &self,
        format: &Arc<dyn ArrayFormat>,
        place: &Place,
        options: &ResolvedOptions,
    ) -> Result<Arc<dyn ArrayGroup>> {
        let place = with_options(place, options);
        match format.open(&place, options).await {
            Ok(group) => Ok(group),
            Err(error) => Err(self.explain(error, &place, format).await),
        }
    }

    /// Opens the arrays at `place` that are columns of one table.
    ///
    /// # Errors
    /// As [`ArrayFormat::table`]. If something else is at `place`, the error names it.
    pub async fn table(
        &self,
        format: &Arc<dyn ArrayFormat>,
        place: &Place,
        options: &ResolvedOptions,
    ) -> Result<TableArrays> {
        let place = with_options(place, options);
        match format.table(&place, options).await {
            Ok(arrays) => Ok(arrays),
            Err(error) => Err(self.explain(error, &place, format).await),
        }
    }

    /// Explains `error`, which came from opening `place` in the `expected` format. For a place of another
    /// format, the message names the format and how to read it. Without arrays, the message names the files
    /// found.
    async fn explain(&self, error: Error, place: &Place, expected: &Arc<dyn ArrayFormat>) -> Error {
        // CSV and JSON files have no signature. If the first byte is wrong, the file name identifies them.
        let from_the_start = error.kind() == ErrorKind::Corrupt && error.offset() == Some(0);
        let rows = Foreign::from_name(&place.path()).filter(|it| from_the_start && it.has_rows());
        if let Some(foreign) = rows {
            return foreign.error().in_file(place.location());
        }
        let found = match error.kind() {
            // Names tell what a store should hold. They do not explain why it cannot be read.
            ErrorKind::Io if place.is_remote() && !is_not_found(&error) => return error,
            ErrorKind::Usage | ErrorKind::Io => self.recognise(place).await,
            // The name is that of the expected format, and the bytes may be those of another.
            ErrorKind::Corrupt if from_the_start => {
                let head = elsewhere::head(place).await.unwrap_or_default();
                match self.of_head(&head) {
                    None => return error,
                    found => found,
                }
            }
            _ => return error,
        };
        match found {
            Some(found) if found.format.name() != expected.name() => {
                let (what, noun, name) =
                    (found.recognised.what, expected.noun(), found.format.name());
                let message = format!(
                    "this is {what}, not a {noun}; read it with STORED AS {}, read_{name} or register_array",
                    name.to_uppercase()
                );
                Error::usage(message).in_file(place.location())
            }
            Some(_) => error,
            None => elsewhere::described(error, place).await,
        }
    }
}

/// Returns a place with the options that set how it is read.
fn with_options(place: &Place, options: &ResolvedOptions) -> Place {
    let place = place.clone().with_io(options.io());
    match options.number(METADATA_LIMIT.name) {
        Some(limit) => place.with_metadata_limit(limit),
        None => place,
    }
}

/// Whether a location is on a web server.
fn is_on_the_web(location: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| location.starts_with(scheme))
}

/// Returns the longest known ending of a name, even if it alone does not identify the format.
fn by_ending(formats: &Formats, name: &str) -> Option<Ending> {
    let name = name.trim_end_matches('/');
    let endings = formats.iter().flat_map(|format| format.endings());
    endings.filter(|it| ends_with(name, it.ending)).max_by_key(|it| it.ending.len()).copied()
}

/// Returns the name after the last `/`, such as `x.tet` of `dir/x.tet/`.
fn last_part(path: &str) -> &str {
    let name = path.trim_end_matches('/');
    name.rsplit('/').next().unwrap_or(name)
}

/// Whether a name ends with `ending`, in any case. `get` also guards against cutting a character of several
/// bytes.
fn ends_with(name: &str, ending: &str) -> bool {
    let at = name.len().checked_sub(ending.len());
    at.and_then(|at| name.get(at..)).is_some_and(|end| end.eq_ignore_ascii_case(ending))
}
