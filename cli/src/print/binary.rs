//! Parquet and Arrow: the types and values that `COPY` writes, as rows arrive.
//!
//! ```text
//!   Parquet      a row group at a time; the file is complete with its footer
//!   Arrow        a stream, for pipes: programs read each batch as it comes
//!   Arrow file   the same batches, compressed, with an index at the end
//! ```

use std::io::Write;
use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{Field, FieldRef, Schema, SchemaRef};
use datafusion::arrow::ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use datafusion::arrow::ipc::{CompressionType, MetadataVersion};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::config::{ConfigOptions, TableOptions};
use datafusion::error::Result;
use datafusion::logical_expr::ColumnarValue;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::arrow::arrow_writer::ArrowWriterOptions;
use datafusion::parquet::file::properties::WriterPropertiesBuilder;
use gridfusion::exec::parquet_type;

use super::RowPrinter;

/// Bytes that a writer has made. They go on after each batch, so that they do not pile up.
type Bytes = Vec<u8>;

fn pass_on(bytes: &mut Bytes, out: &mut dyn Write) -> Result<()> {
    out.write_all(bytes)?;
    bytes.clear();
    Ok(())
}

/// Returns the rows with the schema of the result, of which batches may lack attributes.
fn with_schema(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let rows = batch.num_rows();
    let column = |(column, field): (&ArrayRef, &FieldRef)| {
        ColumnarValue::Array(Arc::clone(column)).cast_to(field.data_type(), None)?.into_array(rows)
    };
    let columns = batch.columns().iter().zip(schema.fields()).map(column);
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

/// Writes a Parquet file with the session's settings for Parquet, and the types of a `COPY`.
pub(super) struct Parquet {
    schema: SchemaRef,
    writer: ArrowWriter<Bytes>,
}

impl Parquet {
    pub(super) fn try_new(schema: &SchemaRef, config: &ConfigOptions) -> Result<Self> {
        let schema = parquet_schema(schema);
        let mut settings = TableOptions::default_from_session_config(config).parquet;
        let has_no_arrow = settings.global.skip_arrow_metadata;
        if !has_no_arrow {
            settings.arrow_schema(&schema);
        }
        let properties = WriterPropertiesBuilder::try_from(&settings)?.build();
        let options = ArrowWriterOptions::new()
            .with_properties(properties)
            .with_skip_arrow_metadata(has_no_arrow);
        let writer = ArrowWriter::try_new_with_options(vec![], Arc::clone(&schema), options)?;
        Ok(Self { schema, writer })
    }
}

impl RowPrinter for Parquet {
    fn write(&mut self, out: &mut dyn Write, batch: RecordBatch) -> Result<()> {
        self.writer.write(&with_schema(&batch, &self.schema)?)?;
        pass_on(self.writer.inner_mut(), out)
    }

    fn memory(&self) -> usize {
        self.writer.memory_size()
    }

    fn finish(mut self: Box<Self>, out: &mut dyn Write, _: SchemaRef) -> Result<()> {
        self.writer.finish()?;
        pass_on(self.writer.inner_mut(), out)
    }
}

/// Returns the schema in which a Parquet file keeps the meaning of the columns.
fn parquet_schema(schema: &SchemaRef) -> SchemaRef {
    let field = |field: &FieldRef| match parquet_type(field.data_type()) {
        Some(data_type) => Arc::new(Field::clone(field).with_data_type(data_type)),
        None => Arc::clone(field),
    };
    let fields: Vec<FieldRef> = schema.fields().iter().map(field).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// Writes an Arrow stream, without compression, because not all readers of streams know it.
pub(super) struct ArrowStream {
    schema: SchemaRef,
    writer: StreamWriter<Bytes>,
}

impl ArrowStream {
    pub(super) fn try_new(schema: &SchemaRef) -> Result<Self> {
        let writer = StreamWriter::try_new(vec![], schema)?;
        Ok(Self { schema: Arc::clone(schema), writer })
    }
}

impl RowPrinter for ArrowStream {
    fn write(&mut self, out: &mut dyn Write, batch: RecordBatch) -> Result<()> {
        self.writer.write(&with_schema(&batch, &self.schema)?)?;
        pass_on(self.writer.get_mut(), out)
    }

    fn finish(mut self: Box<Self>, out: &mut dyn Write, _: SchemaRef) -> Result<()> {
        self.writer.finish()?;
        pass_on(self.writer.get_mut(), out)
    }
}

/// Writes an Arrow file with the options of a `COPY`.
pub(super) struct ArrowFile {
    schema: SchemaRef,
    writer: FileWriter<Bytes>,
}

impl ArrowFile {
    pub(super) fn try_new(schema: &SchemaRef) -> Result<Self> {
        let options = IpcWriteOptions::try_new(64, false, MetadataVersion::V5)?;
        let options = options.try_with_compression(Some(CompressionType::LZ4_FRAME))?;
        let writer = FileWriter::try_new_with_options(vec![], schema, options)?;
        Ok(Self { schema: Arc::clone(schema), writer })
    }
}

impl RowPrinter for ArrowFile {
    fn write(&mut self, out: &mut dyn Write, batch: RecordBatch) -> Result<()> {
        self.writer.write(&with_schema(&batch, &self.schema)?)?;
        pass_on(self.writer.get_mut(), out)
    }

    fn finish(mut self: Box<Self>, out: &mut dyn Write, _: SchemaRef) -> Result<()> {
        self.writer.finish()?;
        pass_on(self.writer.get_mut(), out)
    }
}
