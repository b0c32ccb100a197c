//! [`ArrayFormat`] and [`ArrayGroup`]: the traits that a storage format implements.
//!
//! ```text
//!   ArrayFormat   its names in SQL, how to recognise it, its options
//!       │ open(place, options)
//!       ▼
//!   ArrayGroup    the arrays of one place: a file, a package, a folder, a group
//!       │ arrays(names), variables()
//!       ▼
//!   GridArray     one array over a ChunkSource: locate, decode, statistics
//! ```
//!
//! Tables, schemas, catalogs, table functions, quoted paths, `CREATE EXTERNAL TABLE`, verification and the
//! command line are implemented once, over these traits.

use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;

use super::array_facts::Needs;
use super::description::{Description, Detail};
use super::fact_table::FactTable;
use super::facts::KnownAttribute;
use super::known_dataset::KnownDataset;
use super::mosaic::GroupPattern;
use super::opened_array::{BesideArray, OpenedArray, TableArrays};
use super::place::Place;
use super::provided::{
    NamedArray, NamedGrid, array_attributes, array_info, data_variable_names, data_variables,
    describe_arrays, verify_arrays,
};
use crate::array::{GridArray, ReadOptions};
use crate::error::{Error, Result};
use crate::format::Entry;
use crate::io::last_part;
use crate::options::{OptionInfo, OptionTable, OptionValue, ResolvedOptions};
use crate::verify::{Depth, Progress, Report};

/// A file name ending of a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ending {
    /// The ending with its dot, such as `.tet`. It matches in any case.
    pub ending: &'static str,
    /// Whether the ending is one of folders.
    pub folder: bool,
    /// A noun for messages, such as `a .tet file`, if the ending alone identifies the format; `None` if its
    /// files or folders must be inspected.
    pub what: Option<&'static str>,
}

impl Ending {
    /// Returns an ending of files, or of folders if `folder`. `what` names its files in messages if the ending alone identifies
    /// the format.
    pub const fn new(ending: &'static str, folder: bool, what: Option<&'static str>) -> Self {
        Self { ending, folder, what }
    }
}

/// A format's description of a place that it recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecognisedFormat {
    /// A noun for messages, such as `a TileDB array`.
    pub what: Cow<'static, str>,
    /// Whether a folder of such places is a group: one schema with all their arrays as tables.
    pub nests: bool,
}

impl RecognisedFormat {
    /// Returns a place that messages call `what`. If it `nests`, a folder of such places is a group.
    pub fn new(what: impl Into<Cow<'static, str>>, nests: bool) -> Self {
        Self { what: what.into(), nests }
    }
}

/// A table function that returns facts about arrays instead of cells, such as `tet_info`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct InfoFunction {
    /// The function's name in SQL.
    pub name: &'static str,
}

impl InfoFunction {
    /// Returns a function with a name in SQL.
    pub const fn new(name: &'static str) -> Self {
        Self { name }
    }
}

/// A variable of an opened array whose chunks `array_chunks` lists.
#[derive(Debug, Clone)]
pub struct ListedValue {
    /// The number of the variable.
    pub number: usize,
    /// The name in the list.
    pub name: Arc<str>,
    /// Whether locating its chunks reads no cells.
    pub is_located: bool,
    /// The number of variables that are decoded from the same bytes; 1 if each has its own.
    pub sharing: u64,
}

/// An option that names what was opened, such as a snapshot in place of a branch. Without a value, it is left out.
pub type PinnedOption = (&'static str, Option<OptionValue>);

/// The groups of a place that match a pattern, which are one table.
#[derive(Debug)]
pub struct MatchedGroups {
    /// The pattern in place of the name of a group.
    pub pattern: GroupPattern,
    /// The groups; at least one.
    pub groups: Vec<MatchedGroup>,
}

/// A group that matches a pattern.
#[derive(Debug)]
pub struct MatchedGroup {
    /// Its path from the root.
    pub path: String,
    /// Its label along the new dimension.
    pub label: String,
    /// Its arrays.
    pub group: Arc<dyn ArrayGroup>,
}

/// A storage format of arrays.
///
/// `.tet`, TileDB, Zarr and NetCDF implement this trait. `register_array_format` of the crate `gridfusion` adds other
/// formats to a session.
#[async_trait]
pub trait ArrayFormat: Debug + Send + Sync {
    /// The name in SQL, in lower case: `tet` for `STORED AS TET`, `read_tet(…)` and options `tet.…`.
    fn name(&self) -> &'static str;

    /// The name in messages: `.tet`, `TileDB`.
    fn title(&self) -> &'static str;

    /// Nouns in messages, without articles, for files and folders of the format: `.tet file`,
    /// `.tet.d package`.
    fn nouns(&self) -> &'static [&'static str];

    /// The endings of its file and folder names.
    fn endings(&self) -> &'static [Ending];

    /// Recognises a folder by its entries; `None` if it is not of this format.
    fn probe_folder(&self, entries: &[Entry]) -> Option<RecognisedFormat>;

    /// Whether a file is of this format; `head` is its first 64 KiB, or all of it if it is shorter.
    fn probe_file(&self, head: &[u8]) -> bool {
        let _ = head;
        false
    }

    /// Whether a file is of this format, if its first bytes `head` do not show it. Catalogs do not read them: without a
    /// head, the file has an ending of the format that others share. On a web server, which lists nothing, it may be a folder with such
    /// an ending. By default, the first bytes always show it.
    ///
    /// # Errors
    /// Fails in any kind if the place may be of this format, and cannot be read.
    async fn probe_place(&self, place: &Place, head: Option<&[u8]>) -> Result<bool> {
        let _ = (place, head);
        Ok(false)
    }

    /// Documents in folders of the format that opening mostly reads first, and folders that it lists, which end with
    /// `/`. In an object store, they are read beside the listing by which the format is recognised. By default, there
    /// are none.
    fn first_documents(&self) -> &'static [&'static str] {
        &[]
    }

    /// The format's own options, and common options whose default differs here.
    fn options(&self) -> &'static [OptionInfo] {
        &[]
    }

    /// How stored data becomes SQL values if no option sets it.
    fn read_defaults(&self) -> ReadOptions {
        ReadOptions::default()
    }

    /// The table functions with facts about arrays of the format, in addition to `read_NAME`.
    fn info_functions(&self) -> &'static [InfoFunction] {
        &[]
    }

    /// Opens the group of arrays at `place`.
    ///
    /// # Errors
    /// `Usage` if there is no array of this format; `Corrupt` or `Unsupported` if its bytes cannot be
    /// interpreted; `Io` if they cannot be read.
    async fn open(&self, place: &Place, options: &ResolvedOptions) -> Result<Arc<dyn ArrayGroup>>;

    /// Fails for a place of a form that is only read, although rows are appended to other arrays of the format. By
    /// default, there are no such forms.
    ///
    /// # Errors
    /// `Unsupported`, with what to do instead.
    async fn check_takes_rows(&self, place: &Place) -> Result<()> {
        let _ = place;
        Ok(())
    }

    /// Opens the arrays at `place` that become columns of one table: those that the option `dataset` names, or
    /// else all data variables.
    ///
    /// # Errors
    /// As [`ArrayFormat::open`] and [`ArrayGroup::arrays`].
    async fn table(&self, place: &Place, options: &ResolvedOptions) -> Result<TableArrays> {
        self.open(place, options).await?.chosen_columns(options).await
    }
}

impl dyn ArrayFormat + '_ {
    /// Returns the format's nouns as one text for messages, without an article.
    pub(crate) fn noun(&self) -> String {
        self.nouns().join(" or ")
    }

    /// Returns the options of the format's tables: the common ones and its own.
    pub fn option_table(&self) -> OptionTable {
        OptionTable::new(self.options())
    }
}

/// The arrays of one file, package, folder or group. Opening an array reads its metadata and labels, never
/// its cells.
#[async_trait]
pub trait ArrayGroup: Debug + Send + Sync {
    /// The path or URL of the group.
    fn location(&self) -> &str;

    /// The entry in the column `_file`: the name of the file that is read, or else the path or URL.
    fn file_name(&self) -> &str {
        self.location()
    }

    /// The names of the arrays that are tables. Unreadable arrays may be left out.
    fn names(&self) -> Vec<String>;

    /// Whether the group has an array `name`, even if [`ArrayGroup::names`] leaves it out.
    fn has(&self, name: &str) -> bool {
        self.names().iter().any(|it| it == name)
    }

    /// Whether the place is one array, which has the name of its folder. Then its columns have names of their own.
    fn is_array(&self) -> bool {
        false
    }

    /// Returns the group with this name in the group; `None` if there is none, or the format has no groups.
    ///
    /// # Errors
    /// If the group cannot be read.
    fn group(&self, name: &str) -> Result<Option<Arc<dyn ArrayGroup>>> {
        let _ = name;
        Ok(None)
    }

    /// Returns the groups that a pattern selects in place of a group's name; `None` if the group has a name of its own.
    ///
    /// # Errors
    /// If a group cannot be read.
    fn matched(&self) -> Result<Option<MatchedGroups>> {
        Ok(None)
    }

    /// Opens arrays by name. Labels that they share are read only once.
    ///
    /// # Errors
    /// `Usage` for a name that no array has; `Corrupt`, `Unsupported` or `Io` if one cannot be read.
    async fn arrays(&self, names: &[String]) -> Result<Vec<OpenedArray>>;

    /// Opens all data variables, to be columns of one table. An array that has the name of its only dimension
    /// holds coordinates and is not a data variable.
    ///
    /// # Errors
    /// `Usage` if there is no data variable, or if they have different dimensions. Otherwise as
    /// [`ArrayGroup::arrays`].
    async fn variables(&self) -> Result<Vec<OpenedArray>> {
        data_variables(self.location(), opened(self).await)
    }

    /// Returns the names of all data variables, whatever their dimensions. By default, opens all arrays to see which hold
    /// coordinates.
    ///
    /// # Errors
    /// `Usage` if there is no data variable.
    async fn data_variables(&self) -> Result<Vec<String>> {
        data_variable_names(self.location(), opened(self).await)
    }

    /// Opens arrays that belong beside `arrays` as columns of the same table, such as coordinates. By default, there are
    /// none.
    ///
    /// # Errors
    /// As [`ArrayGroup::arrays`].
    async fn beside(&self, arrays: &[OpenedArray]) -> Result<Vec<BesideArray>> {
        let _ = arrays;
        Ok(vec![])
    }

    /// Returns options that name what the group has opened, however it moves on. A plan for other processes takes them over. By
    /// default, there are none.
    fn pinned_options(&self) -> Vec<PinnedOption> {
        vec![]
    }

    /// The errors of entries that the group leaves out, because they cannot be listed or read.
    fn left_out(&self) -> &[Error] {
        &[]
    }

    /// Returns the arrays that the group has and leaves out because they cannot be read, with the reasons. By default, these
    /// are the entries of [`ArrayGroup::left_out`] by the names of their files or folders.
    fn unreadable(&self) -> Vec<(String, Error)> {
        let named = |error: &Error| Some((last_part(error.file()?).to_owned(), error.clone()));
        self.left_out().iter().filter_map(named).collect()
    }

    /// Returns the rows of one of the format's [`InfoFunction`]s: about the array `dataset`, or about all.
    ///
    /// # Errors
    /// `Usage` for a name that no array has; other errors if the facts cannot be read.
    async fn facts(&self, function: &str, dataset: Option<&str>) -> Result<Arc<dyn FactTable>> {
        let _ = dataset;
        Err(Error::internal(format!("no facts called {function}")))
    }

    /// Returns the facts about the arrays `only`, or about all: the rows of `array_info`. By default, these are the facts
    /// that every opened array has. An array that cannot be read is a row with the reason, unless it is the only one.
    ///
    /// # Errors
    /// If the facts cannot be read.
    async fn info(&self, only: Option<&[String]>, needs: Needs) -> Result<Vec<KnownDataset>> {
        let _ = needs;
        let left_out = if only.is_none() { self.left_out() } else { &[] };
        array_info(opened_among(self, only).await, left_out)
    }

    /// Returns the attributes of the arrays `only`, or of the place itself and all arrays: the rows of
    /// `array_attributes`. By default, these are the attributes of columns.
    ///
    /// # Errors
    /// If an array cannot be read that is in `only`, or is the only one.
    async fn attributes(&self, only: Option<&[String]>) -> Result<Vec<KnownAttribute>> {
        array_attributes(opened_among(self, only).await, only.is_some())
    }

    /// Returns the variables of the opened array `name` that are stored on their own, for `array_chunks`. By default,
    /// these are all.
    fn listed_values(&self, name: &str, array: &GridArray) -> Vec<ListedValue> {
        let _ = name;
        let names = array.values().iter().map(|value| Arc::from(value.name.as_str()));
        let listed = |(number, name)| ListedValue { number, name, is_located: true, sharing: 1 };
        names.enumerate().map(listed).collect()
    }

    /// Describes the arrays, as pages for people and as one JSON document. By default, this lists the
    /// dimensions, chunks and columns of each array.
    ///
    /// # Errors
    /// If the facts cannot be read.
    async fn describe(&self, detail: &Detail) -> Result<Description> {
        describe_arrays(self.location(), &grids(opened(self).await), self.left_out(), detail)
    }

    /// Verifies the arrays, and returns a report per file or array, with its path or URL. By default, one
    /// report covers the whole group. It checks that arrays can be opened and, at [`Depth::Cells`], chunks
    /// decoded.
    async fn verify(&self, depth: Depth, progress: &Arc<Progress>) -> Vec<(String, Report)> {
        vec![(self.location().to_owned(), verify_group(self, depth, progress).await)]
    }
}

/// Verifies a group as [`ArrayGroup::verify`] does by default.
pub async fn verify_group<G: ArrayGroup + ?Sized>(
    group: &G,
    depth: Depth,
    progress: &Arc<Progress>,
) -> Report {
    let arrays = grids(opened(group).await);
    verify_arrays(group.location(), arrays, group.left_out(), depth, progress).await
}

/// Opens all arrays of a group together, so that shared labels are read once. If one fails, opens each alone,
/// so that the others are still described and verified.
async fn opened<G: ArrayGroup + ?Sized>(group: &G) -> Vec<NamedArray> {
    opened_among(group, None).await
}

/// As [`opened`], for the arrays `only`.
async fn opened_among<G: ArrayGroup + ?Sized>(
    group: &G,
    only: Option<&[String]>,
) -> Vec<NamedArray> {
    let names = only.map_or_else(|| group.names(), <[String]>::to_vec);
    match group.arrays(&names).await {
        Ok(all) if all.len() == names.len() => {
            names.into_iter().zip(all.into_iter().map(Ok)).collect()
        }
        _ => {
            let mut each = Vec::with_capacity(names.len());
            for name in names {
                let array = one(group, &name).await;
                each.push((name, array));
            }
            each
        }
    }
}

/// Returns the arrays as grids; the default descriptions and verifications know no other arrays.
fn grids(arrays: Vec<NamedArray>) -> Vec<NamedGrid> {
    let grid = |(name, array): NamedArray| (name, array.and_then(OpenedArray::into_grid));
    arrays.into_iter().map(grid).collect()
}

/// Opens one array. A format that returns none, against the contract of `arrays`, is an `Internal` error.
pub(super) async fn one<G: ArrayGroup + ?Sized>(group: &G, name: &str) -> Result<OpenedArray> {
    let opened = group.arrays(&[name.to_owned()]).await?.pop();
    opened.ok_or_else(|| Error::internal(format!("no array for the name \"{name}\"")))
}
