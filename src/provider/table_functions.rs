//! Table functions: arrays as tables, and what is known of them.

use std::sync::Arc;

use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::error::Result;

use super::ArrayOpener;
use super::arguments::{Arguments, wait};
use super::fact_provider::FactProvider;
use crate::source::{ArrayFormat, Formats};

/// A table function over arrays. The first argument is a path or URL, or a list of them; the name of a
/// dataset may follow, and then options: named arguments, or names and values in turn.
///
/// | function | table |
/// |---|---|
/// | `read_array(path)` | the arrays, of whatever format, as `CREATE EXTERNAL TABLE` would make it |
/// | `read_tet(path)`, `read_tiledb(path)` | the same of one format |
/// | `tet_info(path)` | a row per dataset |
/// | `tet_chunks(path)` | a row per stored chunk |
/// | `tet_attributes(path)` | a row per attribute of a dataset or of the file |
/// | `tiledb_info(path)` | properties, dimensions, attributes and dimension labels |
/// | `tiledb_fragments(path)` | the fragments that are visible, oldest first |
/// | `tiledb_metadata(path)` | the array's own keys and values |
///
/// ```sql
/// SELECT * FROM read_array('stations.tet', 'temperature', index_columns => true) LIMIT 3;
/// SELECT * FROM read_tiledb('arrays/overlap', timestamp => '2024-03-01');
/// SELECT dataset, shape, chunk_shape, ratio FROM tet_info('stations.tet');
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ArrayFunction {
    name: String,
    /// The format by name; `None` if the place tells.
    format: Option<&'static str>,
    reads: bool,
}

impl ArrayFunction {
    /// `read_array`.
    pub(super) fn read_any() -> Self {
        Self { name: "read_array".to_owned(), format: None, reads: true }
    }

    /// The functions of one format.
    pub(super) fn of(format: &dyn ArrayFormat) -> Vec<Self> {
        let read = Self {
            name: format!("read_{}", format.name()),
            format: Some(format.name()),
            reads: true,
        };
        let facts = format.info_functions().iter().map(|function| Self {
            name: function.name.to_owned(),
            format: Some(format.name()),
            reads: false,
        });
        std::iter::once(read).chain(facts).collect()
    }

    /// All functions of a session.
    pub(super) fn all(formats: &Formats) -> Vec<Self> {
        let of_formats = formats.iter().flat_map(|format| Self::of(&**format));
        std::iter::once(Self::read_any()).chain(of_formats).collect()
    }

    /// What SQL calls it.
    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

impl TableFunctionImpl for ArrayFunction {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let arguments = Arguments::new(&self.name, args.exprs(), true)?;
        let opener = ArrayOpener::of(args.session());
        let mut options = opener.options_of_sql(&arguments.options, self.format)?;
        if let Some(dataset) = &arguments.dataset {
            if options.get("dataset").is_some() {
                return datafusion::common::plan_err!("{}: the dataset is given twice", self.name);
            }
            options = options.with_dataset(dataset);
        }
        wait(async {
            if self.reads {
                let table =
                    opener.table(arguments.locations.clone(), self.format, &options).await?;
                return Ok(Arc::new(table) as Arc<dyn TableProvider>);
            }
            let location = arguments.location(&self.name)?;
            let group = opener.group(location, self.format, &options).await?;
            let dataset = options.get("dataset").map(ToString::to_string);
            let facts = group.facts(&self.name, dataset.as_deref()).await?;
            Ok(Arc::new(FactProvider(facts)) as Arc<dyn TableProvider>)
        })
    }
}
