//! The bytes before the payloads: superblock, directory and index (sections 2, 3 and 6 of the format).

use gridfusion_core::grid::MAX_RANK;

use super::dataset::NewDataset;

const ALIGNMENT: usize = 8;
const SUPERBLOCK: usize = 32;
/// The index without its rows.
const INDEX_HEADER: u64 = 32;
const INDEX_ROW: u64 = 104;

/// Returns the bytes before the payloads, which follow them in the order of the datasets and of their chunks.
pub(super) fn head(datasets: &[NewDataset]) -> Vec<u8> {
    let mut directory = vec![];
    for dataset in datasets {
        record(&mut directory, dataset);
    }
    let index_at = (SUPERBLOCK + size_of::<u64>() + directory.len()) as u64;
    let rows: u64 = datasets.iter().map(|it| it.chunks.len() as u64).sum();
    let index_len = INDEX_HEADER + INDEX_ROW * rows;

    let mut head = b"TETR".to_vec();
    // The layout, the number of datasets, and the flag of a footer.
    for number in [1, datasets.len() as u32, 1] {
        head.extend(number.to_le_bytes());
    }
    for number in [index_at, index_len, directory.len() as u64] {
        head.extend(number.to_le_bytes());
    }
    head.extend(directory);

    head.extend(b"TIDX");
    head.extend(1_u32.to_le_bytes());
    head.extend(rows.to_le_bytes());
    // No budget of memory.
    head.extend([0; 16]);
    let mut payload_at = index_at + index_len;
    for (id, dataset) in (0_u64..).zip(datasets) {
        for (number, chunk) in &dataset.chunks {
            head.extend(id.to_le_bytes());
            let mut coordinates = dataset.grid.chunk_coordinates(*number);
            coordinates.resize(MAX_RANK, 0);
            head.extend(coordinates.into_iter().flat_map(u64::to_le_bytes));
            let stored = chunk.payload.len() as u64;
            for number in [payload_at, chunk.raw_len, stored] {
                head.extend(number.to_le_bytes());
            }
            head.extend(u32::from(chunk.is_compressed).to_le_bytes());
            head.extend(0_u32.to_le_bytes());
            payload_at += stored;
        }
    }
    head
}

/// Adds the record of a dataset to the directory.
fn record(directory: &mut Vec<u8>, dataset: &NewDataset) {
    let shape = dataset.grid.shape();
    let numbers = [dataset.name.len() as u32, dataset.code, shape.len() as u32, 0];
    directory.extend(numbers.into_iter().flat_map(u32::to_le_bytes));
    directory.extend(dataset.name.as_bytes());
    directory.resize(directory.len().next_multiple_of(ALIGNMENT), 0);
    directory.extend(shape.iter().flat_map(|len| len.to_le_bytes()));
    directory.extend(dataset.grid.chunk_shape().flat_map(u64::to_le_bytes));
}
