//! The traits that a format implements to be read by every door of gridfusion.
//!
//! ```text
//!   ArrayFormat   its names in SQL, how it is recognised, its options
//!       │ open(place, options)
//!       ▼
//!   ArrayGroup    the arrays of one place: a file, a package, a folder, a group
//!       │ arrays(names), variables()
//!       ▼
//!   GridArray     one array over a ChunkSource: locate, decode, statistics
//! ```
//!
//! Tables, schemas, catalogs, table functions, quoted paths, `CREATE EXTERNAL TABLE`, verification and the
//! command line are written once, over these traits.

use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;

use super::description::{Description, Detail};
use super::fact_table::FactTable;
use super::mosaic::FileArrays;
use super::place::Place;
use super::provided::{Named, data_variables, describe_arrays, verify_arrays};
use crate::array::{GridArray, ReadOptions};
use crate::error::{Error, Result};
use crate::format::Entry;
use crate::options::{OptionInfo, OptionTable, ResolvedOptions};
use crate::verify::{Depth, Progress, Report};

/// How the name of a file or folder of a format ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    /// With its dot: `.tet`. Case does not matter.
    pub ending: &'static str,
    /// Whether it is the name of a folder.
    pub folder: bool,
    /// For a sentence, if the name alone says what it is: `a .tet file`. Without it, somebody must look inside.
    pub what: Option<&'static str>,
}

/// How a format recognised a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recognised {
    /// For a sentence: `a TileDB array`.
    pub what: Cow<'static, str>,
    /// Whether a plain folder of such places is one group, whose arrays are tables of one schema.
    pub nests: bool,
}

/// A table function that tells about arrays instead of reading them: `tet_info`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InfoFunction {
    /// Its name in SQL.
    pub name: &'static str,
}

/// One array that was opened.
///
/// Sparse arrays, whose cells are listed one by one instead of filling a grid, will be another variant.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenedArray {
    /// Every cell of a grid is a row.
    Grid(GridArray),
}

impl OpenedArray {
    /// The array as a full grid.
    ///
    /// # Errors
    /// `Unsupported` if its cells are listed.
    pub fn into_grid(self) -> Result<GridArray> {
        match self {
            Self::Grid(array) => Ok(array),
        }
    }

    /// The array as a full grid.
    pub fn as_grid(&self) -> Option<&GridArray> {
        match self {
            Self::Grid(array) => Some(array),
        }
    }
}

impl From<GridArray> for OpenedArray {
    fn from(array: GridArray) -> Self {
        Self::Grid(array)
    }
}

/// A format of stored arrays.
///
/// `.tet` and TileDB are values of this trait; a session takes more, which
/// [`register_array_format`](crate::GridfusionSessionContextExt::register_array_format) adds.
#[async_trait]
pub trait ArrayFormat: Debug + Send + Sync {
    /// Its name in SQL, in small letters: `tet` for `STORED AS TET`, `read_tet(…)` and options `tet.…`.
    fn name(&self) -> &'static str;

    /// Its name in sentences: `.tet`, `TileDB`.
    fn title(&self) -> &'static str;

    /// The names of its places in sentences, without articles: `.tet file`, `.tet.d package`.
    fn nouns(&self) -> &'static [&'static str];

    /// How names of its files and folders end.
    fn endings(&self) -> &'static [Ending];

    /// Recognises a folder by its entries; `None` if the format does not know it.
    fn probe_folder(&self, entries: &[Entry]) -> Option<Recognised>;

    /// Whether a file that begins with these bytes, 64 KiB at most, is of this format.
    fn probe_file(&self, head: &[u8]) -> bool {
        let _ = head;
        false
    }

    /// The options that only this format has, and those of every format whose defaults differ.
    fn options(&self) -> &'static [OptionInfo] {
        &[]
    }

    /// How stored data becomes SQL values where nothing is said.
    fn read_defaults(&self) -> ReadOptions {
        ReadOptions::default()
    }

    /// The table functions that tell about its arrays, beside `read_NAME`.
    fn info_functions(&self) -> &'static [InfoFunction] {
        &[]
    }

    /// Opens the arrays at `place`, or of these the ones that the option `dataset` names.
    ///
    /// # Errors
    /// `Usage` if there is no array of this format, `Corrupt` or `Unsupported` if it cannot be read, `Io` if
    /// the bytes cannot be had.
    async fn open(&self, place: &Place, options: &ResolvedOptions) -> Result<Arc<dyn ArrayGroup>>;

    /// The arrays at `place` that are columns of one table: those that the option `dataset` names, else all
    /// data variables.
    ///
    /// # Errors
    /// As [`ArrayFormat::open`] and [`ArrayGroup::arrays`].
    async fn table(&self, place: &Place, options: &ResolvedOptions) -> Result<FileArrays> {
        self.open(place, options).await?.columns(options.dataset()).await
    }
}

impl dyn ArrayFormat + '_ {
    /// The name of a place of this format in sentences, without an article.
    pub(crate) fn noun(&self) -> String {
        self.nouns().join(" or ")
    }

    /// All options of its tables.
    pub fn option_table(&self) -> OptionTable {
        OptionTable::new(self.options())
    }
}

/// The arrays of one place. Opening one reads its metadata and labels, never its cells.
#[async_trait]
pub trait ArrayGroup: Debug + Send + Sync {
    /// The path or URL.
    fn location(&self) -> &str;

    /// The place's entry in the column `_file`: the file that is read, or the path or URL.
    fn file_name(&self) -> &str {
        self.location()
    }

    /// The names of the arrays that are tables. An array that cannot be read need not be listed.
    fn names(&self) -> Vec<String>;

    /// Whether there is an array of this name, listed or not.
    fn has(&self, name: &str) -> bool {
        self.names().iter().any(|it| it == name)
    }

    /// Opens arrays by name; labels that they share are read once.
    ///
    /// # Errors
    /// `Usage` for a name that no array has; `Corrupt`, `Unsupported` or `Io` if one cannot be read.
    async fn arrays(&self, names: &[String]) -> Result<Vec<OpenedArray>>;

    /// All data variables, as columns of one table: not arrays that are called like their only dimension,
    /// which are coordinates of others.
    ///
    /// # Errors
    /// `Usage` if there is none or they have different dimensions; else those of [`ArrayGroup::arrays`].
    async fn variables(&self) -> Result<Vec<OpenedArray>> {
        let arrays = data_variables(self.location(), opened(self).await)?;
        Ok(arrays.into_iter().map(OpenedArray::from).collect())
    }

    /// Why parts of the place are left out, if something in it cannot be looked into.
    fn left_out(&self) -> &[Error] {
        &[]
    }

    /// The rows of one of the format's [`InfoFunction`]s, about all arrays or one.
    ///
    /// # Errors
    /// `Usage` for a name that no array has; else if the facts cannot be read.
    async fn facts(&self, function: &str, dataset: Option<&str>) -> Result<Arc<dyn FactTable>> {
        let _ = dataset;
        Err(Error::internal(format!("no facts called {function}")))
    }

    /// Describes the arrays, for people and as one JSON document. Unless the format says more, this lists the
    /// dimensions, chunks and columns of each array.
    ///
    /// # Errors
    /// If the facts cannot be read.
    async fn describe(&self, detail: &Detail) -> Result<Description> {
        describe_arrays(self.location(), &opened(self).await, self.left_out(), detail)
    }

    /// Looks for everything that is wrong: a report per file or array, with its path or URL. A format that
    /// does not look for itself has one about the place: whether arrays can be opened, and chunks decoded.
    async fn verify(&self, depth: Depth, progress: &Arc<Progress>) -> Vec<(String, Report)> {
        let (location, arrays) = (self.location(), opened(self).await);
        let report = verify_arrays(location, arrays, self.left_out(), depth, progress).await;
        vec![(location.to_owned(), report)]
    }
}

/// The arrays of a group by name: together, so that labels are read once, or each alone if one fails.
async fn opened<G: ArrayGroup + ?Sized>(group: &G) -> Vec<Named> {
    let names = group.names();
    match group.arrays(&names).await {
        Ok(all) if all.len() == names.len() => {
            names.into_iter().zip(all.into_iter().map(OpenedArray::into_grid)).collect()
        }
        _ => {
            let mut each = Vec::with_capacity(names.len());
            for name in names {
                let array = one(group, &name).await.and_then(OpenedArray::into_grid);
                each.push((name, array));
            }
            each
        }
    }
}

async fn one<G: ArrayGroup + ?Sized>(group: &G, name: &str) -> Result<OpenedArray> {
    let opened = group.arrays(&[name.to_owned()]).await?.pop();
    opened.ok_or_else(|| Error::internal(format!("no array for the name \"{name}\"")))
}

impl dyn ArrayGroup + '_ {
    /// The array of this name, those of several names with commas between them, or all data variables.
    pub(crate) async fn columns(&self, dataset: Option<&str>) -> Result<FileArrays> {
        let opened = match dataset {
            Some(names) => self.arrays(&names_in(names, |name| self.has(name))).await?,
            None => self.variables().await?,
        };
        let arrays = opened.into_iter().map(OpenedArray::into_grid).collect::<Result<_>>()?;
        Ok(FileArrays { name: self.file_name().to_owned(), arrays })
    }

    /// The one array of this name.
    pub(crate) async fn array(&self, name: &str) -> Result<OpenedArray> {
        one(self, name).await
    }
}

/// The names that the option `dataset` holds: one, if `is_one` knows it, or several with commas between them.
pub(crate) fn names_in(dataset: &str, is_one: impl Fn(&str) -> bool) -> Vec<String> {
    match dataset.contains(',') && !is_one(dataset) {
        true => dataset.split(',').map(|name| name.trim().to_owned()).collect(),
        false => vec![dataset.to_owned()],
    }
}
