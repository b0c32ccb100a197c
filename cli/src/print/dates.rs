//! Numbers that count time in a calendar that SQL lacks, printed as dates.

use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::error::{DataFusionError, Result};
use gridfusion::core::array::CountedTimes;

/// The columns of a result, some of which count time.
#[derive(Debug)]
pub(super) struct Dates {
    times: Vec<Option<CountedTimes>>,
    schema: SchemaRef,
}

impl Dates {
    /// Returns the columns; `None` if no column counts time.
    pub(super) fn from_schema(schema: &Schema) -> Option<Self> {
        let times: Vec<_> =
            schema.fields().iter().map(|field| CountedTimes::from_field(field)).collect();
        let shown = |(field, times): (&Arc<Field>, &Option<CountedTimes>)| match times {
            Some(_) => Arc::new(Field::new(field.name(), DataType::Utf8, true)),
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
                let texts = times.texts(column.as_ref());
                texts
                    .map(|it| Arc::new(it) as ArrayRef)
                    .map_err(|it| DataFusionError::External(Box::new(it)))
            }
            None => Ok(Arc::clone(column)),
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &rows)?)
    }
}
