//! Opening an array: a machine that reads schemas, enumerations and the metadata of visible fragments,
//! in at most five round trips.
//!
//! ```text
//!   Start ─▶ Folders (root, __schema, its __enumerations, __commits: listed)
//!         ─▶ WholeFiles (schemas, .con, .ign, .vac: read whole) ─▶ which fragments are visible
//!         ─▶ Fragments (their folders: listed)
//!         ─▶ Tails (the last 64 KiB of their metadata, and enumerations: read)
//!         ─▶ Footers (only those that are longer than that: read) ─▶ Done
//! ```
//!
//! A [`OpenArrayState`] names the replies that the machine waits for. Each round trip requests everything that it can
//! at once, so thousands of fragments take as many round trips as one. Without visible fragments, and where
//! no footer is longer, the machine skips the steps that have nothing to request.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;

use super::array::TileDbArray;
use super::folder::{
    COMMITS, Commit, CommitFiles, Deletion, FolderKind, OLD_SCHEMA_FILE, OpenOptions,
    SCHEMA_FOLDER, TimedName, extension, folder_kind, last_part, whole_file,
};
use super::fragments::{Footer, Fragment, METADATA_FILE, footer_range};
use super::schema::{ArrayKind, ArraySchema, Enumeration};
use super::sparse::DeleteCondition;
use gridfusion_core::format::wire::to_usize;
use gridfusion_core::format::{Entry, Location, Machine, Replies, Step};
use gridfusion_core::{Error, Result};

/// The folder of enumerations. It is listed before it is known whether an attribute has one, which saves a
/// round trip.
const ENUMERATION_FOLDER: &str = "__schema/__enumerations";
/// Bytes that the first read takes from the end of a fragment's metadata. A footer has 88 bytes per field
/// since format 11, so this holds the footers of arrays with about 700 attributes and dimensions.
const TAIL_LEN: u64 = 64 * 1024;

/// A machine that opens an array.
#[derive(Debug)]
pub struct OpenArray {
    options: OpenOptions,
    state: OpenArrayState,
    folders: Folders,
    /// All schemas, by file name; each fragment names the schema that it was written with.
    schemas: HashMap<String, Arc<ArraySchema>>,
    /// The file name of the schema that is valid at the end of the open's time window.
    chosen: String,
    /// The visible fragments, the oldest first. The lists "per commit" below have the same order.
    commits: Vec<Commit>,
    /// Per commit, the names and sizes in bytes of the files in the fragment's folder.
    files: Vec<BTreeMap<String, u64>>,
    /// The visible delete conditions of a sparse array, oldest first.
    deletions: Vec<DeleteCondition>,
    /// Per attribute of the chosen schema; empty until they are read.
    enumerations: Vec<Option<Result<Arc<Enumeration>>>>,
    /// Per commit, the footer of its fragment; `None` until it is read.
    footers: Vec<Option<Footer>>,
}

/// The replies that the machine waits for, and the request they belong to where that is needed.
#[derive(Debug)]
enum OpenArrayState {
    Start,
    Folders,
    /// Reading schemas, and the `.con`, `.ign` and `.vac` files.
    WholeFiles(Vec<Location>),
    /// Listing the folders of the visible fragments, one per commit.
    Fragments,
    /// Reading the ends of metadata files, one per commit, and then enumerations.
    Tails(Vec<Location>),
    /// Reading whole footers, by number of the commit.
    Footers(Vec<(usize, Location)>),
}

/// The entries of the folders that are listed first.
#[derive(Debug, Default)]
struct Folders {
    root: Vec<Entry>,
    schema: Vec<Entry>,
    enumerations: Vec<Entry>,
    commits: Vec<Entry>,
}

impl Folders {
    /// Returns the locations of schemas, and of the files that determine which fragments are visible.
    fn texts(&self) -> Vec<Location> {
        let schemas = self.schema.iter().filter(|at| TimedName::parse(&at.name).is_some());
        let commits = self.commits.iter().filter(|at| is_commit_file(at));
        let root = self.root.iter().filter(|at| at.name == OLD_SCHEMA_FILE || is_commit_file(at));
        let whole = |folder| move |entry| whole_file(folder, entry);
        let schemas = schemas.filter_map(whole(SCHEMA_FOLDER));
        schemas
            .chain(commits.filter_map(whole(COMMITS)))
            .chain(root.filter_map(whole("")))
            .collect()
    }
}

impl OpenArray {
    /// Makes a machine that opens an array with `options`.
    pub fn new(options: OpenOptions) -> Self {
        Self {
            options,
            state: OpenArrayState::Start,
            folders: Folders::default(),
            schemas: HashMap::new(),
            chosen: String::new(),
            commits: vec![],
            files: vec![],
            deletions: vec![],
            enumerations: vec![],
            footers: vec![],
        }
    }

    fn list_folders(&mut self) -> Step<TileDbArray> {
        self.state = OpenArrayState::Folders;
        let folders = ["", SCHEMA_FOLDER, ENUMERATION_FOLDER, COMMITS];
        Step::List(folders.map(str::to_owned).into())
    }

    /// Requests schemas, and the files that determine which fragments are visible.
    fn read_texts(&mut self, listings: Vec<Vec<Entry>>) -> Result<Step<TileDbArray>> {
        let [root, schema, enumerations, commits] = <[_; 4]>::try_from(listings)
            .map_err(|_| Error::internal("folders were requested and not listed"))?;
        self.folders = Folders { root, schema, enumerations, commits };
        match folder_kind(&self.folders.root) {
            Some(FolderKind::Array) => {}
            Some(FolderKind::Group) => {
                let message = "a TileDB group, not an array: name one of its members";
                return Err(Error::usage(message));
            }
            None => return Err(Error::usage("not a TileDB array: it has no __schema folder")),
        }
        let texts = self.folders.texts();
        self.state = OpenArrayState::WholeFiles(texts.clone());
        Ok(Step::Read(texts))
    }

    /// Parses schemas and finds the visible fragments, then requests the listings of their folders.
    fn find_fragments(
        &mut self,
        asked: &[Location],
        texts: Vec<Bytes>,
    ) -> Result<Step<TileDbArray>> {
        let Folders { root, commits, .. } = &self.folders;
        let mut files = CommitFiles { root, commits, ..CommitFiles::default() };
        // One list of replies mixes all kinds of files; the extension tells them apart.
        for (location, text) in asked.iter().zip(texts) {
            let name = last_part(&location.object);
            match extension(name) {
                Some("con") => files.consolidated.push(text),
                Some("ign") => files.ignored.push(text),
                Some("vac") => files.vacuumed.push((name.to_owned(), text)),
                Some("del") => files.deletions.push((name.to_owned(), text)),
                _ => {
                    let schema = ArraySchema::parse(&text, self.options.key.as_ref())
                        .map_err(|error| error.about(&location.object))?;
                    self.schemas.insert(name.to_owned(), Arc::new(schema));
                }
            }
        }
        self.chosen = self.choose_schema()?;
        let kind = self.chosen_schema()?.kind;
        self.commits = files.visible(kind, &self.options)?;
        if kind == ArrayKind::Sparse {
            let key = self.options.key.as_ref();
            let visible = files.visible_deletions(&self.options)?;
            let conditions = visible.into_iter().map(|Deletion { marker, time, condition }| {
                let parsed = DeleteCondition::parse(marker.clone(), time, condition, key);
                parsed.map_err(|error| error.about(&marker))
            });
            self.deletions = conditions.collect::<Result<_>>()?;
        }
        if self.commits.is_empty() {
            // No folder needs listing, but the schema may still need enumerations.
            return self.read_tails(vec![]);
        }
        self.state = OpenArrayState::Fragments;
        Ok(Step::List(self.commits.iter().map(|commit| commit.folder.clone()).collect()))
    }

    /// Returns the file name of the newest schema that is not newer than the end of the open's time
    /// window, else of the oldest schema.
    ///
    /// With schemas of times 10, 20 and 30, an open that ends at 25 gets that of 20. An open that ends at 5
    /// gets that of 10.
    fn choose_schema(&self) -> Result<String> {
        // The old schema file has no time in its name, and is older than all files that have one.
        let time = |name: &String| TimedName::parse(name).map(|name| (name.t2, name.t1));
        let mut names: Vec<_> = self.schemas.keys().map(|name| (time(name), name)).collect();
        names.sort();
        let in_time = |time: &Option<(u64, u64)>| match (time, self.options.end) {
            (Some((t2, _)), Some(end)) => *t2 <= end,
            (None, _) | (_, None) => true,
        };
        // `None` sorts before `Some`, so the old schema file is the first of all.
        let last = names.iter().rev().find(|(time, _)| in_time(time)).or(names.first());
        let (_, name) = last.ok_or_else(|| {
            Error::corrupt_region("array schema", "folder __schema has no schema in it")
        })?;
        Ok((*name).clone())
    }

    fn chosen_schema(&self) -> Result<&Arc<ArraySchema>> {
        self.schemas.get(&self.chosen).ok_or_else(|| Error::internal("no schema was chosen"))
    }

    /// Requests the ends of the fragments' metadata, and enumerations.
    fn read_tails(&mut self, listings: Vec<Vec<Entry>>) -> Result<Step<TileDbArray>> {
        // Keeps files, which have a size, and drops folders.
        let files = |entries: Vec<Entry>| {
            entries.into_iter().filter_map(|entry| Some((entry.name, entry.size?))).collect()
        };
        self.files = listings.into_iter().map(files).collect();
        let mut asked = vec![];
        for (commit, files) in self.commits.iter().zip(&self.files) {
            let len = *files.get(METADATA_FILE).ok_or_else(|| {
                let message = format!("{} has no {METADATA_FILE}", commit.folder);
                Error::corrupt_region("fragment", message)
            })?;
            let object = format!("{}/{METADATA_FILE}", commit.folder);
            asked.push(Location::new(object, len.saturating_sub(TAIL_LEN)..len));
        }
        asked.extend(self.enumeration_files()?.into_iter().flatten().flatten());
        if asked.is_empty() {
            // An enumeration may still have no file, which is an error of its attribute.
            self.parse_enumerations(&[])?;
            return self.finish().map(Step::Done);
        }
        self.state = OpenArrayState::Tails(asked.clone());
        Ok(Step::Read(asked))
    }

    /// Returns, per attribute of the chosen schema, the location of its enumeration, if it has one. A file that
    /// does not exist is an error of its attribute only.
    fn enumeration_files(&self) -> Result<Vec<Option<Result<Location>>>> {
        let schema = self.chosen_schema()?;
        let file = |name: &String| {
            let listed = schema.enumeration_files.iter().find(|(listed, _)| listed == name);
            let file = listed.map(|(_, file)| file.as_str());
            let entry = self.folders.enumerations.iter().find(|at| Some(&*at.name) == file);
            entry.and_then(|entry| whole_file(ENUMERATION_FOLDER, entry)).ok_or_else(|| {
                let file = file.unwrap_or("(unlisted)");
                let message =
                    format!("{ENUMERATION_FOLDER}/{file} of enumeration \"{name}\" does not exist");
                Error::corrupt_region("array schema", message)
            })
        };
        Ok(schema.attributes.iter().map(|it| it.enumeration.as_ref().map(file)).collect())
    }

    /// Parses footers and enumerations, then requests the footers that are longer than the bytes that
    /// were read. `bytes` are the replies to [`Self::read_tails`]: a tail per commit, and then enumerations.
    fn parse_tails(&mut self, asked: &[Location], bytes: &[Bytes]) -> Result<Step<TileDbArray>> {
        let (tails, enumerations) = bytes
            .split_at_checked(self.commits.len())
            .ok_or_else(|| Error::internal("footers were requested and not read"))?;
        self.parse_enumerations(enumerations)?;
        let mut longer = vec![];
        let old_schema = self.schemas.get(OLD_SCHEMA_FILE).map(Arc::as_ref);
        for (number, (location, tail)) in asked.iter().zip(tails).enumerate() {
            let about = |error: Error| error.about(&location.object);
            let version = self.commits.get(number).and_then(|commit| commit.time.version);
            // Positions in the whole file: the tail begins at `tail_at`, and the file ends at `end`.
            let tail_at = location.start();
            let end = tail_at + tail.len() as u64;
            let range = footer_range(tail, end, version.unwrap_or_default(), old_schema);
            let range = range.map_err(about)?;
            // The footer's range in the tail. `None` if the footer begins before the tail.
            let within = |at: u64| at.checked_sub(tail_at).map(to_usize);
            let held = within(range.start).zip(within(range.end));
            let footer = match held.and_then(|(start, end)| tail.get(start..end)) {
                Some(bytes) => {
                    Some(Footer::parse(bytes, range.start, &self.schemas).map_err(about)?)
                }
                None => {
                    let object = Arc::clone(&location.object);
                    longer.push((number, Location::new(object, range)));
                    None
                }
            };
            self.footers.push(footer);
        }
        if longer.is_empty() {
            return self.finish().map(Step::Done);
        }
        let step = Step::Read(longer.iter().map(|(_, location)| location.clone()).collect());
        self.state = OpenArrayState::Footers(longer);
        Ok(step)
    }

    /// Parses the enumerations. Attributes without a file have no reply, so the replies are taken one by one. An
    /// enumeration that cannot be parsed is an error of its attribute only.
    fn parse_enumerations(&mut self, bytes: &[Bytes]) -> Result<()> {
        let mut bytes = bytes.iter();
        for location in self.enumeration_files()? {
            let parse = |location: Result<Location>| {
                let location = location?;
                let bytes = bytes.next().map(AsRef::as_ref).unwrap_or_default();
                let enumeration = Enumeration::parse(bytes, self.options.key.as_ref());
                enumeration.map(Arc::new).map_err(|error| error.about(&location.object))
            };
            self.enumerations.push(location.map(parse));
        }
        Ok(())
    }

    fn parse_footers(&mut self, asked: &[(usize, Location)], bytes: &[Bytes]) -> Result<()> {
        for ((number, location), bytes) in asked.iter().zip(bytes) {
            let footer = Footer::parse(bytes, location.start(), &self.schemas)
                .map_err(|error| error.about(&location.object))?;
            if let Some(place) = self.footers.get_mut(*number) {
                *place = Some(footer);
            }
        }
        Ok(())
    }

    /// Puts commits, listings and footers together to fragments, and these to the array.
    fn finish(&mut self) -> Result<TileDbArray> {
        let schema = Arc::clone(self.chosen_schema()?);
        let mut fragments = vec![];
        let footers = std::mem::take(&mut self.footers);
        let files = std::mem::take(&mut self.files);
        for ((commit, files), footer) in self.commits.iter().zip(files).zip(footers) {
            let footer = footer.ok_or_else(|| Error::internal("a footer was not read"))?;
            let fragment = Fragment::new(commit, files, footer, &schema);
            fragments.push(fragment.map_err(|error| error.about(&commit.folder))?);
        }
        let enumerations = std::mem::take(&mut self.enumerations);
        let deletions = std::mem::take(&mut self.deletions);
        let schema = (self.chosen.clone(), schema);
        Ok(TileDbArray::new(self.options.clone(), schema, fragments, enumerations, deletions))
    }
}

/// Whether the content of a file determines which fragments or cells are visible.
fn is_commit_file(entry: &Entry) -> bool {
    match extension(&entry.name) {
        Some("con" | "ign" | "vac") => entry.size != Some(0),
        // An empty condition is damaged, and would bring deleted cells back.
        Some("del") => true,
        _ => false,
    }
}

impl Machine for OpenArray {
    type Output = TileDbArray;

    fn subject(&self) -> &'static str {
        "schema and fragments"
    }

    fn step(&mut self, replies: Replies) -> Result<Step<TileDbArray>> {
        // Takes the state out, because its lists are needed while the methods change the machine. A method
        // that makes another request sets the next state.
        match std::mem::replace(&mut self.state, OpenArrayState::Start) {
            OpenArrayState::Start => Ok(self.list_folders()),
            OpenArrayState::Folders => self.read_texts(replies.into_listings()),
            OpenArrayState::WholeFiles(asked) => self.find_fragments(&asked, replies.into_bytes()),
            OpenArrayState::Fragments => self.read_tails(replies.into_listings()),
            OpenArrayState::Tails(asked) => self.parse_tails(&asked, &replies.into_bytes()),
            OpenArrayState::Footers(asked) => {
                self.parse_footers(&asked, &replies.into_bytes())?;
                self.finish().map(Step::Done)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::testing;
    use crate::bytes::testing::{Folder, SCHEMA_NAME, SchemaBytes, UUID, generic_tile};
    use gridfusion_core::ErrorKind;

    fn schema_file(folder: &mut Folder, t: u64, schema: &SchemaBytes) {
        folder.put(&format!("__schema/__{t}_{t}_{UUID}"), &generic_tile(&schema.content()));
    }

    fn folder() -> Folder {
        let mut folder = Folder::default();
        schema_file(&mut folder, 1, &SchemaBytes::dense_2d());
        folder
    }

    fn open(folder: &Folder, end: Option<u64>) -> Result<TileDbArray> {
        folder.drive(OpenArray::new(OpenOptions { end, ..OpenOptions::default() }))
    }

    #[test]
    fn four_round_trips_for_any_number_of_fragments() {
        let mut folder = folder();
        for fragments in 0..4 {
            let options = OpenOptions::default();
            let (array, trips) = folder.drive_counting(OpenArray::new(options)).unwrap();
            assert_eq!(array.fragments().len(), fragments);
            assert_eq!(trips, if fragments == 0 { 2 } else { 4 });
            let t = 100 - fragments as u64;
            folder.write(t, [(1, 4), (2, 3)], [0, 0], |_, _| 0);
        }
        let array = open(&folder, None).unwrap();
        let times: Vec<u64> = array.fragments().iter().map(|fragment| fragment.t1).collect();
        assert_eq!(times, [97, 98, 99, 100]);
        let fragment = &array.fragments()[0];
        assert_eq!((fragment.tiles, fragment.cells), (2, Some(8)));
        assert_eq!(fragment.files["a0.tdb"], 2 * (20 + 24));
        assert_eq!(open(&folder, Some(98)).unwrap().fragments().len(), 2);
    }

    #[test]
    fn the_schema_is_that_of_the_time() {
        let mut folder = folder();
        let named = |name: &str| SchemaBytes {
            attributes: vec![testing::attribute(name, 0, 1, &[0; 4], false, "")],
            ..SchemaBytes::dense_2d()
        };
        schema_file(&mut folder, 9, &named("nine"));
        schema_file(&mut folder, 10, &named("ten"));
        let name = |end| open(&folder, end).unwrap().schema().attributes[0].name.clone();
        let ends = [Some(0), Some(8), Some(9), Some(10), None];
        assert_eq!(ends.map(name), ["v", "v", "nine", "ten", "ten"]);
        folder.put("__schema/notes.txt", b"nothing");
        assert!(open(&folder, None).is_ok());
    }

    #[test]
    fn old_arrays_have_their_schema_and_fragments_in_the_root() {
        let mut folder = Folder::default();
        let schema = SchemaBytes { version: 9, ..SchemaBytes::dense_2d() };
        folder.put(OLD_SCHEMA_FILE, &generic_tile(&schema.content()));
        let name = format!("__5_5_{UUID}_9");
        let footer = testing::FooterBytes { version: 9, ..testing::FooterBytes::dense_2d() };
        let block = generic_tile(b"");
        let metadata = [block, footer.content()].concat();
        folder.put(&format!("{name}/{METADATA_FILE}"), &metadata);
        assert_eq!(open(&folder, None).unwrap().fragments().len(), 0);
        folder.put(&format!("{name}.ok"), b"");
        let array = open(&folder, None).unwrap();
        assert_eq!((array.fragments()[0].version, &array.fragments()[0].folder), (9, &name));
    }

    #[test]
    fn long_footers_take_one_more_round_trip() {
        let mut folder = Folder::default();
        let attributes: Vec<Vec<u8>> = (0..1500)
            .map(|at| testing::attribute(&format!("a{at}"), 0, 1, &[0; 4], false, ""))
            .collect();
        schema_file(&mut folder, 1, &SchemaBytes { attributes, ..SchemaBytes::dense_2d() });
        let footer = testing::FooterBytes { fields: 1503, ..testing::FooterBytes::dense_2d() };
        let footer = footer.content();
        let mut metadata = generic_tile(&[7; 100]);
        metadata.extend(&footer);
        metadata.extend((footer.len() as u64).to_le_bytes());
        let name = format!("__5_5_{UUID}_22");
        folder.put(&format!("__fragments/{name}/{METADATA_FILE}"), &metadata);
        folder.put(&format!("__commits/{name}.wrt"), b"");
        let (array, trips) = folder.drive_counting(OpenArray::new(OpenOptions::default())).unwrap();
        assert_eq!((array.fragments().len(), trips), (1, 5));
    }

    #[test]
    fn fragments_cannot_claim_more_tiles_than_their_metadata_tells_of() {
        let mut folder = Folder::default();
        let high = i32::MAX - 3;
        schema_file(&mut folder, 1, &SchemaBytes { high: [high; 2], ..SchemaBytes::dense_2d() });
        let mut claim = |rows: i32| {
            let domain = [(1, rows), (1, 3)];
            let footer =
                testing::FooterBytes { domain, ..testing::FooterBytes::dense_2d() }.content();
            let metadata = [&footer[..], &(footer.len() as u64).to_le_bytes()].concat();
            let name = format!("__5_5_{UUID}_22");
            folder.put(&format!("__fragments/{name}/{METADATA_FILE}"), &metadata);
            folder.put(&format!("__commits/{name}.wrt"), b"");
            open(&folder, None)
        };
        assert_eq!(claim(2000).unwrap().fragments()[0].tiles, 1000);
        assert!(claim(high).unwrap_err().to_string().contains("too many for"));
    }

    #[test]
    fn what_is_no_array_is_named() {
        let mut folder = Folder::default();
        let message = |folder: &Folder| {
            let error = open(folder, None).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage);
            error.to_string()
        };
        assert!(message(&folder).contains("not a TileDB array"));
        folder.put("__tiledb_group.tdb", b"");
        assert!(message(&folder).contains("group"));
        folder.put("__schema/x", b"");
        let error = open(&folder, None).unwrap_err();
        assert_eq!((error.kind(), error.offset()), (ErrorKind::Corrupt, None));
        assert_eq!(error.to_string(), "corrupt array schema: folder __schema has no schema in it");
    }

    #[test]
    fn missing_files_are_named() {
        let mut folder = folder();
        folder.write(5, [(1, 4), (1, 7)], [0, 0], |_, _| 0);
        let metadata = folder.0.keys().find(|path| path.contains("metadata")).unwrap().clone();
        let mut without = folder.clone();
        without.0.remove(&metadata);
        let error = open(&without, None).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains("__fragments/__5_5_"), "{error}");
        let mut other = folder.clone();
        other.0.remove(&format!("__schema/{SCHEMA_NAME}"));
        schema_file(&mut other, 2, &SchemaBytes::dense_2d());
        let error = open(&other, None).unwrap_err();
        assert!(error.to_string().contains("which the array does not have"), "{error}");
    }

    #[test]
    fn enumerations_come_with_the_array() {
        let mut folder = Folder::default();
        let schema = |enumerations| SchemaBytes {
            attributes: vec![testing::attribute("day", 0, 1, &[0; 4], false, "days")],
            enumerations,
            ..SchemaBytes::dense_2d()
        };
        schema_file(&mut folder, 1, &schema(vec![("days", "__abc_0")]));
        let error = open(&folder, None).unwrap().enumeration(0).unwrap_err();
        assert!(error.to_string().contains("__abc_0 of enumeration \"days\""), "{error}");
        folder.put("__schema/__enumerations/__abc_0", &generic_tile(b"not one"));
        let error = open(&folder, None).unwrap().enumeration(0).unwrap_err();
        assert!(error.to_string().contains("__enumerations/__abc_0"), "{error}");
        let content = testing::enumeration("days", 12, u32::MAX, b"montue", &[0, 3]);
        folder.put("__schema/__enumerations/__abc_0", &generic_tile(&content));
        let array = open(&folder, None).unwrap();
        assert_eq!(array.enumeration(0).unwrap().unwrap().value(1), Some(&b"tue"[..]));
        assert!(array.enumeration(1).unwrap().is_none());
        schema_file(&mut folder, 2, &schema(vec![]));
        assert!(open(&folder, None).unwrap().enumeration(0).is_err());
    }
}
