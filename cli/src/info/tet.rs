//! Of a `.tet` file or package.

use gridfusion::array::ReadOptions;
use gridfusion::source::{ChunkInfo, DatasetInfo, DimensionInfo, TetReader};

use super::document::{Chunk, Dataset, Dimension, Event, Pair, Tet};
use crate::args::InfoArgs;

/// What is known of a file.
pub(super) async fn describe(
    file: &TetReader,
    args: &InfoArgs,
    options: &ReadOptions,
) -> gridfusion::Result<Tet> {
    let datasets = file.dataset_info(None).await?;
    let dimensions = file.dimension_info(options).await;
    let history = file.tet().history().iter().map(|event| Event {
        op: event.op.clone(),
        source: event.source.clone(),
        at: event.at.clone(),
    });
    let chunk_list = match args.listed() {
        Some(most) => Some(first_chunks(file, most).await?),
        None => None,
    };
    Ok(Tet {
        path: args.path.clone(),
        format: "tet",
        layout_version: 1,
        size_bytes: file.size(),
        generation: file.generation(),
        history: history.collect(),
        warnings: warnings(file, &datasets, &dimensions),
        metadata: args.metadata.then(|| metadata(file, &datasets)),
        chunk_list,
        datasets: datasets.into_iter().map(dataset).collect(),
        dimensions: dimensions.into_iter().map(dimension).collect(),
    })
}

fn warnings(
    file: &TetReader,
    datasets: &[DatasetInfo],
    dimensions: &[DimensionInfo],
) -> Vec<String> {
    let mut all = file.tet().warnings().to_vec();
    for dataset in datasets {
        let own = dataset.warnings.iter();
        all.extend(own.map(|warning| format!("dataset \"{}\": {warning}", dataset.name)));
    }
    for dimension in dimensions {
        let own = dimension.warnings.iter();
        all.extend(own.map(|warning| format!("dimension \"{}\": {warning}", dimension.name)));
    }
    all
}

fn metadata(file: &TetReader, datasets: &[DatasetInfo]) -> Vec<Pair> {
    let pair = |dataset: Option<&str>, (key, value): (&String, &String)| Pair {
        dataset: dataset.map(str::to_owned),
        key: key.clone(),
        value: value.clone(),
    };
    let own = file.tet().file_attributes().iter().map(|entry| pair(None, entry));
    let theirs = datasets.iter().flat_map(|dataset| {
        dataset.attributes.iter().map(move |entry| pair(Some(&dataset.name), entry))
    });
    own.chain(theirs).collect()
}

fn dataset(known: DatasetInfo) -> Dataset {
    let attribute = |key: &str| known.attributes.get(key).cloned();
    Dataset {
        element_type: known.element.map(|element| element.to_string()),
        chunk_shape: known.grid.as_ref().map(|grid| grid.chunk_shape().collect()),
        chunks: known.grid.as_ref().map(|grid| grid.chunks()),
        stored_chunks: known.stored.chunks,
        stored_bytes: known.stored.bytes,
        raw_bytes: known.stored.raw_bytes,
        ratio: known.stored.ratio(),
        codec: known.stored.codec.map(|codec| codec.name()),
        units: attribute("units"),
        long_name: attribute("long_name"),
        is_coordinate: known.is_coordinate,
        has_zone_maps: known.has_zone_maps,
        name: known.name,
        shape: known.shape,
        dimensions: known.dimensions,
    }
}

fn dimension(known: DimensionInfo) -> Dimension {
    Dimension {
        length: Some(known.len),
        data_type: known.data_type.map(|data_type| data_type.to_string()),
        first: known.first,
        last: known.last,
        units: known.attributes.get("units").cloned(),
        name: known.name,
        domain: None,
        tile_extent: None,
    }
}

/// The first chunks in the order of the index, no more than `most`.
async fn first_chunks(file: &TetReader, most: usize) -> gridfusion::Result<Vec<Chunk>> {
    let mut list = file.list_chunks(None, true);
    let mut chunks = Vec::new();
    while chunks.len() < most
        && let Some(next) = list.next().await?
    {
        chunks.extend(next.into_iter().take(most - chunks.len()).map(chunk));
    }
    Ok(chunks)
}

fn chunk(known: ChunkInfo) -> Chunk {
    Chunk {
        dataset: known.dataset.to_string(),
        file_offset: known.payload.at.start(),
        stored_bytes: known.payload.stored_len(),
        raw_bytes: known.payload.raw_len,
        codec: known.payload.codec.to_string(),
        chunk: known.coordinates,
        null_count: known.null_count,
        min_value: known.min,
        max_value: known.max,
    }
}
