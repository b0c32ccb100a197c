//! Numbers that count time in a calendar that SQL lacks, printed as dates.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::error::{DataFusionError, Result};
use gridfusion::core::array::CountedTimes;

/// The columns of a result, some of which count time.
#[derive(Debug)]
pub(super) struct Dates {
    times: Vec<Option<Times>>,
    schema: SchemaRef,
}

/// A column of times, or of lists of them.
#[derive(Debug, Clone, Copy)]
enum Times {
    Each(CountedTimes),
    Lists(CountedTimes),
}

impl Times {
    fn from_field(field: &Field) -> Option<Self> {
        let lists = || CountedTimes::from_lists(field).map(Self::Lists);
        CountedTimes::from_field(field).map(Self::Each).or_else(lists)
    }

    fn shown_type(self) -> DataType {
        match self {
            Self::Each(_) => DataType::Utf8,
            Self::Lists(_) => DataType::new_list(DataType::Utf8, true),
        }
    }

    fn shown(self, column: &dyn Array) -> gridfusion::Result<ArrayRef> {
        Ok(match self {
            Self::Each(times) => Arc::new(times.texts(column)?),
            Self::Lists(times) => Arc::new(times.lists_of_texts(column)?),
        })
    }
}

impl Dates {
    /// Returns the columns; `None` if no column counts time.
    pub(super) fn from_schema(schema: &Schema) -> Option<Self> {
        let times: Vec<_> = schema.fields().iter().map(|field| Times::from_field(field)).collect();
        let shown = |(field, times): (&Arc<Field>, &Option<Times>)| match times {
            Some(times) => Arc::new(Field::new(field.name(), times.shown_type(), true)),
            None => Arc::clone(field),
        };
        let fields: Vec<_> = schema.fields().iter().zip(&times).map(shown).collect();
        let has_dates = times.iter().any(Option::is_some);
        has_dates.then(|| Self { times, schema: Arc::new(Schema::new(fields)) })
    }

    /// Returns the schema with dates.
    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Returns rows with dates.
    pub(super) fn shown(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let columns = batch.columns().iter().zip(&self.times).map(|(column, times)| match times {
            Some(times) => {
                times.shown(column.as_ref()).map_err(|it| DataFusionError::External(Box::new(it)))
            }
            None => Ok(Arc::clone(column)),
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &rows)?)
    }
}
