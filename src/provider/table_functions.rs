//! Table functions, which return arrays as tables, or facts about arrays.

use std::sync::Arc;

use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::error::Result;

use super::ArrayOpener;
use super::arguments::{Arguments, wait};
use super::fact_provider::FactProvider;
use super::store_maker;
use crate::source::{ArrayFormat, Formats};

/// A table function over arrays. The first argument is a path or URL, or a list of these. The name of a
/// dataset may follow, and then options: named arguments, or names and values in turn.
///
/// | function | table |
/// |---|---|
/// | `read_array(path)` | the arrays, of any format, as in `STORED AS ARRAY` |
/// | `read_NAME(path)` | the arrays of the format `NAME` |
/// | those of [`ArrayFormat::info_functions`] | facts about arrays of one format |
///
/// ```sql
/// SELECT * FROM read_array('stations.tet', 'temperature', index_columns => true) LIMIT 3;
/// SELECT * FROM read_tiledb('arrays/overlap', timestamp => '2024-03-01');
/// SELECT dataset, shape, chunk_shape, ratio FROM tet_info('stations.tet');
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ArrayFunction {
    name: String,
    /// The name of the format; `None` to recognise it.
    format: Option<&'static str>,
    /// Whether the function returns cells rather than facts.
    reads: bool,
}

impl ArrayFunction {
    /// Returns `read_array`.
    pub(crate) fn read_any() -> Self {
        Self { name: "read_array".to_owned(), format: None, reads: true }
    }

    /// Returns the functions of one format: `read_NAME`, and one per table of facts.
    pub(crate) fn for_format(format: &dyn ArrayFormat) -> Vec<Self> {
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

    /// Returns the functions of a session with these formats.
    pub(crate) fn all(formats: &Formats) -> Vec<Self> {
        let of_formats = formats.iter().flat_map(|format| Self::for_format(&**format));
        std::iter::once(Self::read_any()).chain(of_formats).collect()
    }

    /// The name in SQL.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

impl TableFunctionImpl for ArrayFunction {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let arguments = Arguments::new(&self.name, args.exprs(), true)?;
        let opener = ArrayOpener::from_session(args.session());
        store_maker::configure(args.session(), &arguments.locations, &arguments.options)?;
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
                return Ok(table.into_provider());
            }
            let location = arguments.location(&self.name)?;
            let group = opener.group(location, self.format, &options).await?;
            let dataset = options.get("dataset").map(ToString::to_string);
            let facts = group.facts(&self.name, dataset.as_deref()).await?;
            Ok(Arc::new(FactProvider(facts)) as Arc<dyn TableProvider>)
        })
    }
}
