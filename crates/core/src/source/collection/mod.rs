//! [`Collection`]: the files of a folder, a pattern or a list, and a description of what they have in common.
//!
//! ```text
//!   years/*.nc ──▶ opener: opens each ──▶ Collection::add ──▶ Survey ──▶ pages for people, document
//!                                     └─▶ Collection::add_unreadable
//! ```
//!
//! `known_table` has the facts about one table, `lines` and `tables` the text.

mod known_table;
mod lines;
mod tables;

use self::known_table::KnownTable;
use self::lines::{of_files, of_others, of_tables};
use self::tables::{difference_fact, difference_table, table_of};
use super::description::{Description, Fact, Page};
use super::facts::KnownDimension;
use super::mosaic::survey::{Survey, Surveyed};
use super::mosaic::{FileArrays, MosaicOptions};
use super::opened_array::TableArrays;
use crate::array::SparseArray;
use crate::error::{Error, Result, shown_location};

/// The most rows of a table on a page, and of warnings.
const MOST: usize = 20;

/// The files of a folder, a pattern or a list, and what they would be as tables.
///
/// Add them in the order of their names: differences are those from the first.
#[derive(Debug)]
pub struct Collection {
    name: String,
    survey: Survey,
    files: usize,
    /// How many files each noun of a format has.
    formats: Vec<(&'static str, &'static str, u64)>,
    bytes: u64,
    /// The number of files whose size is not known.
    unsized_files: usize,
    sparse: Vec<SparseTable>,
    unreadable: Vec<(String, Error)>,
    /// The names of entries of folders that are no arrays.
    others: Vec<String>,
}

/// A sparse array, which is always a table of its own.
#[derive(Debug)]
struct SparseTable {
    file: String,
    dims: Vec<String>,
    values: Vec<String>,
}

impl Collection {
    /// Returns a collection without files, which messages call `name`. `options` set how files are combined.
    pub fn new(name: impl Into<String>, options: MosaicOptions) -> Self {
        Self {
            name: name.into(),
            survey: Survey::new(options),
            files: 0,
            formats: vec![],
            bytes: 0,
            unsized_files: 0,
            sparse: vec![],
            unreadable: vec![],
            others: vec![],
        }
    }

    /// Adds a file of a format, which has a name in SQL and a noun. `parts` are its arrays: those that share their dimensions
    /// together.
    pub fn add(
        &mut self,
        (format, noun): (&'static str, &'static str),
        size: Option<u64>,
        parts: Vec<TableArrays>,
    ) {
        self.files += 1;
        match self.formats.iter_mut().find(|(_, known, _)| *known == noun) {
            Some((.., files)) => *files += 1,
            None => self.formats.push((format, noun, 1)),
        }
        self.bytes = self.bytes.saturating_add(size.unwrap_or_default());
        self.unsized_files += usize::from(size.is_none());
        let mut grids: Vec<FileArrays> = vec![];
        for part in parts {
            match part {
                TableArrays::Grids(arrays) => grids.push(arrays),
                TableArrays::Sparse(array) => self.sparse.push(SparseTable::new(&array)),
            }
        }
        if !grids.is_empty() {
            self.survey.add(grids);
        }
    }

    /// Adds a file that cannot be opened.
    pub fn add_unreadable(&mut self, location: &str, error: Error) {
        self.unreadable.push((shown_location(location), error));
    }

    /// Adds an entry of a folder that is no array.
    pub fn add_other(&mut self, name: String) {
        self.others.push(name);
    }

    /// Whether some files cannot be opened.
    pub fn has_unreadable(&self) -> bool {
        !self.unreadable.is_empty()
    }

    /// Describes the files.
    ///
    /// # Errors
    /// If labels cannot be compared or shown.
    pub fn describe(self) -> Result<Description> {
        let Self { name, survey, files, formats, bytes, unsized_files, sparse, unreadable, others } =
            self;
        let Surveyed { tables, differences, first, notes } = survey.finish()?;
        let tables = tables.iter().map(KnownTable::try_new).collect::<Result<Vec<_>>>()?;
        let sparse = sparse.iter().map(KnownTable::from_sparse);
        let tables: Vec<KnownTable> = tables.into_iter().chain(sparse).collect();
        let size = (unsized_files < files).then_some(bytes);
        let mut lines = vec![of_files(&formats, size, unsized_files > 0, unreadable.len())];
        lines.extend(of_tables(&tables));
        if !others.is_empty() {
            lines.push(of_others(&others));
        }
        if let Some(first) = first.filter(|_| !differences.is_empty()) {
            lines.push(format!("the differences are those from {first}"));
        }
        let is_one = tables.len() == 1 && tables.iter().all(|it| it.problem.is_none());
        let mut shown = match tables.first() {
            Some(one) if is_one => vec![one.column_table(), KnownDimension::table(&one.dims)],
            _ => vec![table_of(&tables)],
        };
        shown.push(difference_table(&differences));
        let problems = tables.iter().filter_map(|it| it.problem.clone());
        let mut warnings: Vec<String> = problems.chain(notes).collect();
        warnings.extend(unreadable.iter().map(|(_, error)| error.to_string()));
        let unreadable = unreadable.into_iter().map(|(path, error)| {
            let error = error.to_string();
            Fact::Record(vec![("path", path.into()), ("error", error.into())])
        });
        let formats = formats.iter().map(|(format, noun, files)| {
            let (format, noun) = ((*format).into(), (*noun).into());
            Fact::Record(vec![("format", format), ("noun", noun), ("files", (*files).into())])
        });
        let document = Fact::Record(vec![
            ("path", name.as_str().into()),
            ("format", "collection".into()),
            ("files", (files as u64).into()),
            ("formats", Fact::List(formats.collect())),
            ("size_bytes", size.into()),
            ("is_one_table", is_one.into()),
            ("tables", Fact::List(tables.iter().map(KnownTable::fact).collect())),
            ("differences", Fact::List(differences.iter().map(difference_fact).collect())),
            ("unreadable", Fact::List(unreadable.collect())),
            ("others", others.into()),
            ("warnings", warnings.clone().into()),
        ]);
        let more = warnings.len().saturating_sub(MOST);
        warnings.truncate(MOST);
        if more > 0 {
            warnings.push(format!("and {more} more"));
        }
        let page = Page::new(name, lines).with_tables(shown).with_warnings(warnings);
        Ok(Description::new(document, vec![page]))
    }
}

impl SparseTable {
    fn new(array: &SparseArray) -> Self {
        let names = array.schema().fields().iter().map(|field| field.name().clone());
        let mut dims: Vec<String> = names.collect();
        let values = dims.split_off(array.rank().min(dims.len()));
        let file = shown_location(array.objects().name());
        Self { file, dims, values }
    }
}
