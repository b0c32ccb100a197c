//! The rows of `tet_chunks`: one per stored chunk, in a stream, because a file may have millions. Each call
//! of `ChunkList::next` becomes a batch, of at most 8192 rows.

use futures::stream::{self, StreamExt};

use super::chunk_list::{ChunkInfo, ChunkList};
use super::reader::TetReader;
use gridfusion_core::source::{Column, FactRows};

type Chunk = Column<ChunkInfo>;

/// The columns. Bounds are text, because each dataset has a type of its own. Zone maps are one JSON text for the whole
/// file, which only queries of their columns read.
static COLUMNS: &[Chunk] = &[
    Chunk::text("dataset", |it| Some(it.dataset.to_string())).required(),
    Chunk::numbers("chunk", |it| Some(it.coordinates.clone())).required(),
    Chunk::number("file_offset", |it| Some(it.payload.at.start())).required(),
    Chunk::number("stored_bytes", |it| Some(it.payload.stored_len())).required(),
    Chunk::number("raw_bytes", |it| Some(it.payload.raw_len)).required(),
    Chunk::text("codec", |it| Some(it.payload.codec.to_string())).required(),
    Chunk::number("null_count", |it| it.null_count).of_statistics(),
    Chunk::text("min_value", |it| it.min.clone()).of_statistics(),
    Chunk::text("max_value", |it| it.max.clone()).of_statistics(),
];

/// Returns the stored chunks of a dataset, or of all datasets of a file.
pub(super) fn chunk_table(file: TetReader, dataset: Option<usize>) -> FactRows<ChunkInfo> {
    FactRows::new(COLUMNS.to_vec(), move |needs| {
        let list = ChunkList::new(&file, dataset, needs.statistics);
        let chunks = stream::try_unfold(list, |mut list| async move {
            Ok(list.next().await?.map(|chunks| (chunks, list)))
        });
        chunks.boxed()
    })
}
