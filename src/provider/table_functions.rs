//! Table functions, which return arrays as tables, or facts about arrays.

use std::sync::Arc;

use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::error::Result;

use super::ArrayOpener;
use super::arguments::Arguments;
use super::fact_provider::FactProvider;
use super::store_maker;
use crate::exec::wait;
use crate::source::{ArrayFacts, ArrayFormat, Formats, array_facts};

/// A table function over arrays. The first argument is a path or URL, or a list of these. The name of a
/// dataset may follow, and then options: named arguments, or names and values in turn.
///
/// | function | table |
/// |---|---|
/// | `read_array(path)` | the arrays, of any format, as in `STORED AS ARRAY` |
/// | `read_NAME(path)` | the arrays of the format `NAME` |
/// | `array_info(path)` | a row per dataset or variable, of any format |
/// | `array_chunks(path)` | a row per chunk of a variable, of any format |
/// | `array_attributes(path)` | a row per attribute of a dataset, a group or the place itself, of any format |
/// | those of [`ArrayFormat::info_functions`] | facts about arrays of one format |
///
/// ```sql
/// SELECT * FROM read_array('stations.tet', 'temperature', index_columns => true) LIMIT 3;
/// SELECT * FROM read_tiledb('arrays/overlap', timestamp => '2024-03-01');
/// SELECT dataset, shape, chunk_shape, ratio FROM array_info('stations.tet');
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ArrayFunction {
    name: String,
    /// The name of the format; `None` to recognise it.
    format: Option<&'static str>,
    returns: Returns,
}

/// The rows that a function returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Returns {
    /// Cells.
    Cells,
    /// Facts that every format has.
    Facts(ArrayFacts),
    /// Facts of one format, which the function's name selects.
    OwnFacts,
}

impl ArrayFunction {
    /// Returns `read_array`.
    pub(crate) fn read_any() -> Self {
        Self { name: "read_array".to_owned(), format: None, returns: Returns::Cells }
    }

    /// Returns a function with facts that every format has.
    pub(crate) fn for_facts(facts: ArrayFacts) -> Self {
        Self { name: facts.name().to_owned(), format: None, returns: Returns::Facts(facts) }
    }

    /// Returns the functions of one format: `read_NAME`, and one per table of facts.
    pub(crate) fn for_format(format: &dyn ArrayFormat) -> Vec<Self> {
        let read = Self {
            name: format!("read_{}", format.name()),
            format: Some(format.name()),
            returns: Returns::Cells,
        };
        let facts = format.info_functions().iter().map(|function| Self {
            name: function.name.to_owned(),
            format: Some(format.name()),
            returns: Returns::OwnFacts,
        });
        std::iter::once(read).chain(facts).collect()
    }

    /// Returns the functions of a session with these formats.
    pub(crate) fn all(formats: &Formats) -> Vec<Self> {
        let of_formats = formats.iter().flat_map(|format| Self::for_format(&**format));
        let any = std::iter::once(Self::read_any()).chain(ArrayFacts::ALL.map(Self::for_facts));
        any.chain(of_formats).collect()
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
            if self.returns == Returns::Cells {
                let table =
                    opener.table(arguments.locations.clone(), self.format, &options).await?;
                return Ok(table.into_provider());
            }
            let location = arguments.location(&self.name)?;
            let group = opener.group(location, self.format, &options).await?;
            let dataset = options.get("dataset").map(ToString::to_string);
            let dataset = dataset.as_deref();
            let facts = match self.returns {
                Returns::Facts(facts) => array_facts(facts, group, dataset).await?,
                Returns::Cells | Returns::OwnFacts => group.facts(&self.name, dataset).await?,
            };
            Ok(Arc::new(FactProvider(facts)) as Arc<dyn TableProvider>)
        })
    }
}
