//! Chunks of a dataset, and the filters that they pass.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::chunk_index::{Entry, make_room, write_index};
use super::{Dataset, File};

/// Writes the chunks of a dataset that are not all fill, and their index, whose address it returns.
pub(super) fn write_chunks(
    file: &mut File,
    dataset: &Dataset,
    shape: &[u64],
    deflated: bool,
) -> u64 {
    let (mut entries, mut leaves) = (Vec::new(), Vec::new());
    for start in starts(&dataset.shape, shape) {
        let cells = cells(dataset, shape, &start);
        if cells.iter().all(|cell| Some(*cell) == dataset.fill.as_ref()) {
            continue;
        }
        let mut bytes = cells.into_iter().flatten().copied().collect::<Vec<u8>>();
        if deflated {
            bytes = deflate(&shuffled(&bytes, dataset.kind.width() as usize));
        }
        make_room(file, entries.len(), shape.len(), &mut leaves);
        let (len, address) = (bytes.len() as u32, file.put(&bytes));
        let end = [&start[..], &[u64::from(dataset.kind.width())]].concat();
        entries.push(Entry { len, start: [&start[..], &[0]].concat(), end, address });
    }
    write_index(file, entries, &leaves)
}

/// Returns the first cells of all chunks, in row-major order.
fn starts(shape: &[u64], chunk: &[u64]) -> Vec<Vec<u64>> {
    shape.iter().zip(chunk).fold(vec![vec![]], |before, (len, chunk)| {
        let longer = |outer: Vec<u64>| {
            (0..*len).step_by(*chunk as usize).map(move |at| [&outer[..], &[at]].concat())
        };
        before.into_iter().flat_map(longer).collect()
    })
}

/// Returns the cells of a chunk, which go on beyond the end of the array.
fn cells<'a>(dataset: &'a Dataset, chunk: &[u64], start: &[u64]) -> Vec<&'a Vec<u8>> {
    let padding = dataset.fill.as_ref().unwrap_or(&dataset.cells[0]);
    let ones = vec![1; chunk.len()];
    let inside = starts(chunk, &ones).into_iter().map(|cell| {
        let axes = cell.iter().zip(start).zip(&dataset.shape);
        let place = axes.map(|((cell, start), len)| Some(cell + start).filter(|at| at < len));
        let place = place.zip(&dataset.shape).try_fold(0, |all, (at, len)| Some(all * len + at?));
        place.map_or(padding, |place| &dataset.cells[place as usize])
    });
    inside.collect()
}

/// Puts the first bytes of all cells first, then their second bytes, and so on.
fn shuffled(bytes: &[u8], width: usize) -> Vec<u8> {
    (0..width).flat_map(|byte| bytes.iter().skip(byte).step_by(width).copied()).collect()
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(vec![], Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
