//! The rows of `tet_chunks`: one per stored chunk, in a stream, because a file may have millions. Each call
//! of `ChunkList::next` becomes a batch, of at most 8192 rows.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, StringArray, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use futures::stream::{self, BoxStream, StreamExt};

use super::chunk_list::{ChunkInfo, ChunkList};
use super::info_table::number_lists;
use super::reader::TetReader;
use gridfusion_core::Result;
use gridfusion_core::array::failed_to;
use gridfusion_core::source::FactTable;

/// The stored chunks of a dataset, or of all datasets of a file.
#[derive(Debug)]
pub(super) struct ChunkTable {
    file: TetReader,
    /// The id of the only dataset to list; `None` lists all datasets.
    dataset: Option<usize>,
    schema: SchemaRef,
}

/// A column of `tet_chunks`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fact {
    Dataset,
    Chunk,
    FileOffset,
    StoredBytes,
    RawBytes,
    Codec,
    NullCount,
    MinValue,
    MaxValue,
}

impl Fact {
    /// All columns in the order of the schema, so that a column's index in the schema is its index here.
    const ALL: [Self; 9] = [
        Self::Dataset,
        Self::Chunk,
        Self::FileOffset,
        Self::StoredBytes,
        Self::RawBytes,
        Self::Codec,
        Self::NullCount,
        Self::MinValue,
        Self::MaxValue,
    ];

    /// Returns the column's name and type. Bounds are text, because each dataset has a type of its own.
    fn field(self) -> Field {
        let numbers = DataType::new_list(DataType::UInt64, true);
        match self {
            Self::Dataset => Field::new("dataset", DataType::Utf8, false),
            Self::Chunk => Field::new("chunk", numbers, false),
            Self::FileOffset => Field::new("file_offset", DataType::UInt64, false),
            Self::StoredBytes => Field::new("stored_bytes", DataType::UInt64, false),
            Self::RawBytes => Field::new("raw_bytes", DataType::UInt64, false),
            Self::Codec => Field::new("codec", DataType::Utf8, false),
            Self::NullCount => Field::new("null_count", DataType::UInt64, true),
            Self::MinValue => Field::new("min_value", DataType::Utf8, true),
            Self::MaxValue => Field::new("max_value", DataType::Utf8, true),
        }
    }

    /// Whether the column needs zone maps, which are one JSON text for the whole file.
    fn is_of_zone_map(self) -> bool {
        matches!(self, Self::NullCount | Self::MinValue | Self::MaxValue)
    }

    fn column(self, chunks: &[ChunkInfo]) -> ArrayRef {
        let number = |of: fn(&ChunkInfo) -> Option<u64>| -> ArrayRef {
            Arc::new(UInt64Array::from_iter(chunks.iter().map(of)))
        };
        let text = |of: fn(&ChunkInfo) -> Option<&str>| -> ArrayRef {
            Arc::new(StringArray::from_iter(chunks.iter().map(of)))
        };
        match self {
            Self::Dataset => text(|it| Some(&it.dataset)),
            Self::Chunk => number_lists(chunks.iter().map(|it| Some(&*it.coordinates))),
            Self::FileOffset => number(|it| Some(it.payload.at.start())),
            Self::StoredBytes => number(|it| Some(it.payload.stored_len())),
            Self::RawBytes => number(|it| Some(it.payload.raw_len)),
            Self::Codec => {
                let codecs = chunks.iter().map(|it| it.payload.codec.to_string());
                Arc::new(StringArray::from_iter_values(codecs))
            }
            Self::NullCount => number(|it| it.null_count),
            Self::MinValue => text(|it| it.min.as_deref()),
            Self::MaxValue => text(|it| it.max.as_deref()),
        }
    }
}

impl ChunkTable {
    pub(super) fn new(file: TetReader, dataset: Option<usize>) -> Self {
        let fields: Vec<Field> = Fact::ALL.into_iter().map(Fact::field).collect();
        Self { file, dataset, schema: Arc::new(Schema::new(fields)) }
    }
}

impl FactTable for ChunkTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Reads zone maps only if one of their columns is requested.
    fn read(&self, columns: &[usize]) -> BoxStream<'static, Result<RecordBatch>> {
        let facts: Vec<Fact> = columns.iter().map(|&column| Fact::ALL[column]).collect();
        let fields: Vec<Field> = facts.iter().map(|fact| fact.field()).collect();
        let schema = Arc::new(Schema::new(fields));
        let zones = facts.iter().any(|fact| fact.is_of_zone_map());
        let list = ChunkList::new(&self.file, self.dataset, zones);
        let batches = stream::try_unfold(list, move |mut list| {
            let (facts, schema) = (facts.clone(), Arc::clone(&schema));
            async move {
                let Some(chunks) = list.next().await? else { return Ok(None) };
                let columns = facts.iter().map(|fact| fact.column(&chunks)).collect();
                // `count(*)` requests no columns, so the batch cannot take its number of rows from them.
                let options = RecordBatchOptions::new().with_row_count(Some(chunks.len()));
                let batch = RecordBatch::try_new_with_options(schema, columns, &options);
                Ok(Some((batch.map_err(failed_to("make rows of facts"))?, list)))
            }
        });
        batches.boxed()
    }
}
