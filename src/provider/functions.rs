//! Table functions over TileDB arrays: the array as a table, and what is known of it.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::catalog::{MemTable, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{ScalarValue, exec_datafusion_err, plan_datafusion_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::Expr;

use super::{GridTable, TileDbReadOptions, open_tiledb, tiledb_facts};
use crate::exec::to_datafusion;

/// A table function over one TileDB array. The first argument is the array's path or URL; options of
/// [`TileDbReadOptions`] follow as names and values.
///
/// | function | table |
/// |---|---|
/// | `read_tiledb(path)` | the array, as `CREATE EXTERNAL TABLE` would make it |
/// | `tiledb_info(path)` | its properties, dimensions, attributes and dimension labels |
/// | `tiledb_fragments(path)` | the fragments that are visible, oldest first |
/// | `tiledb_metadata(path)` | the array's own keys and values |
///
/// ```sql
/// SELECT * FROM read_tiledb('arrays/overlap', 'timestamp', '2024-03-01');
/// SELECT name, value FROM tiledb_info('arrays/overlap') WHERE property = 'domain';
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TileDbFunction {
    /// `read_tiledb`.
    Read,
    /// `tiledb_info`.
    Info,
    /// `tiledb_fragments`.
    Fragments,
    /// `tiledb_metadata`.
    Metadata,
}

impl TileDbFunction {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Read, Self::Info, Self::Fragments, Self::Metadata];

    /// What SQL calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read_tiledb",
            Self::Info => "tiledb_info",
            Self::Fragments => "tiledb_fragments",
            Self::Metadata => "tiledb_metadata",
        }
    }

    fn arguments(self, exprs: &[Expr]) -> Result<(String, TileDbReadOptions)> {
        let name = self.name();
        let mut texts =
            exprs.iter().map(text).collect::<Option<Vec<String>>>().ok_or_else(|| {
                plan_datafusion_err!("{name} takes text: a path, then names and values of options")
            })?;
        if texts.len() % 2 == 0 {
            return plan_err!(
                "{name} takes a path, then names and values of options in pairs, found {} arguments",
                texts.len()
            );
        }
        let pairs = texts.split_off(1);
        let options: HashMap<String, String> =
            pairs.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
        let options = TileDbReadOptions::from_sql(&options).map_err(to_datafusion)?;
        Ok((texts.remove(0), options))
    }
}

/// A constant as text; whole numbers and truth values are options too.
fn text(expr: &Expr) -> Option<String> {
    let Expr::Literal(value, _) = expr else { return None };
    match value {
        ScalarValue::Utf8(Some(text))
        | ScalarValue::Utf8View(Some(text))
        | ScalarValue::LargeUtf8(Some(text)) => Some(text.clone()),
        ScalarValue::Int64(Some(number)) => Some(number.to_string()),
        ScalarValue::Boolean(Some(truth)) => Some(truth.to_string()),
        _ => None,
    }
}

impl TableFunctionImpl for TileDbFunction {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let (location, options) = self.arguments(args.exprs())?;
        let runtime = args.session().runtime_env();
        wait(async {
            let array = open_tiledb(&location, &options, runtime).await.map_err(to_datafusion)?;
            let facts = match self {
                Self::Read => {
                    let table = GridTable::of_tiledb(&array, &options).map_err(to_datafusion)?;
                    return Ok(Arc::new(table) as Arc<dyn TableProvider>);
                }
                Self::Info => tiledb_facts::info(&array)?,
                Self::Fragments => tiledb_facts::fragments(&array)?,
                Self::Metadata => {
                    tiledb_facts::metadata(&array.metadata().await.map_err(to_datafusion)?)?
                }
            };
            Ok(Arc::new(MemTable::try_new(facts.schema(), vec![vec![facts]])?))
        })
    }
}

/// Waits for `future` on a thread of its own: table functions are called where waiting is not
/// possible, from within a runtime.
fn wait<T: Send>(future: impl Future<Output = Result<T>> + Send) -> Result<T> {
    let run = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(future)
    };
    let panicked = |_| exec_datafusion_err!("opening the array panicked");
    std::thread::scope(|scope| scope.spawn(run).join().map_err(panicked)?)
}
