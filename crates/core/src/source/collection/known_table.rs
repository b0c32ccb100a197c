//! [`KnownTable`]: the facts about files that would be one table.

use super::SparseTable;
use crate::error::{Error, Result};
use crate::source::description::{Fact, PageTable, Side};
use crate::source::facts::KnownDimension;
use crate::source::mosaic::survey::SurveyedTable;

/// Files that would be one table, as facts.
pub(super) struct KnownTable {
    pub(super) files: usize,
    pub(super) first_file: String,
    pub(super) last_file: String,
    pub(super) dims: Vec<KnownDimension>,
    /// The names, types and units of the variables.
    pub(super) columns: Vec<[Option<String>; 3]>,
    pub(super) along: Option<usize>,
    pub(super) problem: Option<String>,
}

impl KnownTable {
    pub(super) fn try_new(table: &SurveyedTable) -> Result<Self> {
        let columns = table.values.iter().map(|value| {
            let kind = value.column.data_type().to_string();
            [Some(value.name.clone()), Some(kind), value.attributes.get("units").cloned()]
        });
        Ok(Self {
            files: table.files,
            first_file: table.first_file.clone(),
            last_file: table.last_file.clone(),
            dims: table.dims.iter().map(KnownDimension::try_new).collect::<Result<_>>()?,
            columns: columns.collect(),
            along: table.axis,
            problem: table.problem.as_ref().map(Error::to_string),
        })
    }

    /// Returns the facts about a sparse array, which has no shape.
    pub(super) fn from_sparse(table: &SparseTable) -> Self {
        let dim = |name: &String| KnownDimension {
            name: name.clone(),
            length: None,
            data_type: None,
            first: None,
            last: None,
            units: None,
            calendar: None,
        };
        Self {
            files: 1,
            first_file: table.file.clone(),
            last_file: table.file.clone(),
            dims: table.dims.iter().map(dim).collect(),
            columns: table.values.iter().map(|it| [Some(it.clone()), None, None]).collect(),
            along: None,
            problem: None,
        }
    }

    pub(super) fn shape(&self) -> Vec<u64> {
        self.dims.iter().filter_map(|dim| dim.length).collect()
    }

    pub(super) fn dim_names(&self) -> Vec<&str> {
        self.dims.iter().map(|dim| dim.name.as_str()).collect()
    }

    /// Returns the dimension along which files are concatenated, and its first and last label.
    pub(super) fn concatenated(&self) -> [Option<String>; 3] {
        match self.along.and_then(|axis| self.dims.get(axis)) {
            Some(dim) => [Some(dim.name.clone()), dim.first.clone(), dim.last.clone()],
            None => [None, None, None],
        }
    }

    pub(super) fn column_table(&self) -> PageTable {
        let columns = [("VARIABLE", Side::Left), ("TYPE", Side::Left), ("UNITS", Side::Left)];
        PageTable::new(columns, self.columns.iter().cloned())
    }

    /// Returns the record of the table in the document; `docs/info.md` lists its fields.
    pub(super) fn fact(&self) -> Fact {
        let [along, first, last] = self.concatenated();
        let dims = self.dims.iter().map(|it| Fact::Record(it.fields()));
        let columns = self.columns.iter().map(|[name, kind, units]| {
            Fact::Record(vec![
                ("name", name.clone().into()),
                ("type", kind.clone().into()),
                ("units", units.clone().into()),
            ])
        });
        Fact::Record(vec![
            ("files", (self.files as u64).into()),
            ("first_file", self.first_file.as_str().into()),
            ("last_file", self.last_file.as_str().into()),
            ("shape", self.shape().into()),
            ("dimensions", Fact::List(dims.collect())),
            ("columns", Fact::List(columns.collect())),
            ("concatenated_along", along.into()),
            ("first", first.into()),
            ("last", last.into()),
            ("problem", self.problem.as_deref().into()),
        ])
    }
}
