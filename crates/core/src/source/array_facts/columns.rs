//! [`Column`]s of tables of facts, and [`FactRows`]: a table of rows of any type, shown by such columns.

use std::fmt;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Float64Array, ListBuilder, PrimitiveBuilder, RecordBatch,
    RecordBatchOptions, StringArray, StringBuilder, UInt64Array,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt64Type};
use futures::stream::{self, BoxStream, StreamExt};

use crate::array::failed_to;
use crate::error::Result;
use crate::source::fact_table::FactTable;

/// A column of facts: its name, and how its cells follow from rows of the type `R`.
pub struct Column<R: 'static> {
    name: &'static str,
    is_nullable: bool,
    needs: Needs,
    cells: Cells<R>,
}

/// How cells follow from rows; a row without a value has NULL.
enum Cells<R: 'static> {
    Text(fn(&R) -> Option<String>),
    Number(fn(&R) -> Option<u64>),
    Float(fn(&R) -> Option<f64>),
    Flag(fn(&R) -> Option<bool>),
    Numbers(fn(&R) -> Option<Vec<u64>>),
    Texts(fn(&R) -> Option<Vec<String>>),
}

impl<R> Clone for Cells<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Cells<R> {}

impl<R> Clone for Column<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Column<R> {}

impl<R> fmt::Debug for Column<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The facts that take requests or time. A format need not find those whose columns a query does not select.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Needs {
    /// The storage: places and lengths of chunks, or their number and bytes.
    pub stored: bool,
    /// The stored statistics of chunks.
    pub statistics: bool,
}

impl<R> Column<R> {
    const fn new(name: &'static str, cells: Cells<R>) -> Self {
        let needs = Needs { stored: false, statistics: false };
        Self { name, is_nullable: true, needs, cells }
    }

    /// Returns a column of text.
    pub const fn text(name: &'static str, cell: fn(&R) -> Option<String>) -> Self {
        Self::new(name, Cells::Text(cell))
    }

    /// Returns a column of whole numbers.
    pub const fn number(name: &'static str, cell: fn(&R) -> Option<u64>) -> Self {
        Self::new(name, Cells::Number(cell))
    }

    /// Returns a column of doubles.
    pub const fn float(name: &'static str, cell: fn(&R) -> Option<f64>) -> Self {
        Self::new(name, Cells::Float(cell))
    }

    /// Returns a column of truth values.
    pub const fn flag(name: &'static str, cell: fn(&R) -> Option<bool>) -> Self {
        Self::new(name, Cells::Flag(cell))
    }

    /// Returns a column of lists of whole numbers.
    pub const fn numbers(name: &'static str, cell: fn(&R) -> Option<Vec<u64>>) -> Self {
        Self::new(name, Cells::Numbers(cell))
    }

    /// Returns a column of lists of text.
    pub const fn texts(name: &'static str, cell: fn(&R) -> Option<Vec<String>>) -> Self {
        Self::new(name, Cells::Texts(cell))
    }

    /// Sets that no cell is NULL.
    #[must_use]
    pub const fn required(self) -> Self {
        Self { is_nullable: false, ..self }
    }

    /// Sets that the column shows what is stored.
    #[must_use]
    pub const fn of_stored(self) -> Self {
        Self { needs: Needs { stored: true, statistics: false }, ..self }
    }

    /// Sets that the column shows statistics of chunks.
    #[must_use]
    pub const fn of_statistics(self) -> Self {
        Self { needs: Needs { stored: false, statistics: true }, ..self }
    }

    /// Returns those of `all` with these names, in this order.
    pub fn named(all: &[Self], names: &[&str]) -> Vec<Self> {
        names.iter().filter_map(|name| all.iter().find(|it| it.name == *name).copied()).collect()
    }

    fn field(&self) -> Field {
        let data_type = match self.cells {
            Cells::Text(_) => DataType::Utf8,
            Cells::Number(_) => DataType::UInt64,
            Cells::Float(_) => DataType::Float64,
            Cells::Flag(_) => DataType::Boolean,
            Cells::Numbers(_) => DataType::new_list(DataType::UInt64, true),
            Cells::Texts(_) => DataType::new_list(DataType::Utf8, true),
        };
        Field::new(self.name, data_type, self.is_nullable)
    }

    fn array(&self, rows: &[R]) -> ArrayRef {
        match self.cells {
            Cells::Text(of) => Arc::new(rows.iter().map(of).collect::<StringArray>()),
            Cells::Number(of) => Arc::new(rows.iter().map(of).collect::<UInt64Array>()),
            Cells::Float(of) => Arc::new(rows.iter().map(of).collect::<Float64Array>()),
            Cells::Flag(of) => Arc::new(rows.iter().map(of).collect::<BooleanArray>()),
            Cells::Numbers(of) => {
                let mut lists = ListBuilder::new(PrimitiveBuilder::<UInt64Type>::new());
                rows.iter().for_each(|row| {
                    lists.append_option(of(row).map(|list| list.into_iter().map(Some)));
                });
                Arc::new(lists.finish())
            }
            Cells::Texts(of) => {
                let mut lists = ListBuilder::new(StringBuilder::new());
                rows.iter().for_each(|row| {
                    lists.append_option(of(row).map(|list| list.into_iter().map(Some)));
                });
                Arc::new(lists.finish())
            }
        }
    }
}

/// Reads rows, some at a time.
type ReadRows<R> = dyn Fn(Needs) -> BoxStream<'static, Result<Vec<R>>> + Send + Sync;

/// A table of facts whose rows are of the type `R`. They are read when a query runs.
pub struct FactRows<R: 'static> {
    columns: Vec<Column<R>>,
    schema: SchemaRef,
    read: Box<ReadRows<R>>,
}

impl<R> fmt::Debug for FactRows<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FactRows").field("columns", &self.columns).finish_non_exhaustive()
    }
}

impl<R: Send + Sync + 'static> FactRows<R> {
    /// Makes a table of rows that `read` returns, some at a time.
    pub fn new(
        columns: Vec<Column<R>>,
        read: impl Fn(Needs) -> BoxStream<'static, Result<Vec<R>>> + Send + Sync + 'static,
    ) -> Self {
        let fields: Vec<Field> = columns.iter().map(Column::field).collect();
        Self { columns, schema: Arc::new(Schema::new(fields)), read: Box::new(read) }
    }

    /// Makes a table of rows in memory.
    pub fn in_memory(columns: Vec<Column<R>>, rows: Vec<R>) -> Self
    where
        R: Clone,
    {
        Self::new(columns, move |_| stream::iter([Ok(rows.clone())]).boxed())
    }
}

impl<R: Send + Sync + 'static> FactTable for FactRows<R> {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn read(&self, columns: &[usize]) -> BoxStream<'static, Result<RecordBatch>> {
        let columns: Vec<Column<R>> = columns.iter().map(|&at| self.columns[at]).collect();
        let fields: Vec<Field> = columns.iter().map(Column::field).collect();
        let schema = Arc::new(Schema::new(fields));
        let needs = Needs {
            stored: columns.iter().any(|it| it.needs.stored),
            statistics: columns.iter().any(|it| it.needs.statistics),
        };
        let batch = move |rows: Vec<R>| {
            let arrays = columns.iter().map(|it| it.array(&rows)).collect();
            // `count(*)` selects no columns, so the batch cannot take its number of rows from them.
            let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
            RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &options)
                .map_err(failed_to("make rows of facts"))
        };
        (self.read)(needs).map(move |rows| rows.and_then(&batch)).boxed()
    }
}
