//! Dimensions of a dataset. Labels come from the metadata or a coordinate dataset, or are the indices.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use arrow::array::Float32Array;
use arrow::buffer::{Buffer, MutableBuffer};

use super::reader::TetReader;
use crate::bytes::{DimSpec, LabelSource};
use gridfusion_core::Result;
use gridfusion_core::array::{Dimension, Labels, ReadOptions, Remarks, as_numbers};
use gridfusion_core::format::{Location, Scratch};
use gridfusion_core::tile::{CellFormat, layers};

/// Builds the dimension of `spec`. Reads its labels if a coordinate dataset holds them.
pub(super) async fn dimension(
    reader: &TetReader,
    spec: DimSpec,
    options: &ReadOptions,
    remarks: &mut Remarks,
) -> Result<Dimension> {
    let DimSpec { name, len, labels } = spec;
    let (labels, attributes) = match labels {
        LabelSource::Index => (None, BTreeMap::new()),
        LabelSource::Text(text) => (Some(Labels::from_text(&text)?), BTreeMap::new()),
        LabelSource::Singles(text) => (Some(singles(&text)?), BTreeMap::new()),
        LabelSource::Dataset(id) if !is_plausible_coordinate(reader, id) => {
            remarks.odd.push("the coordinate is ignored: it is too large for this file".to_owned());
            (None, BTreeMap::new())
        }
        LabelSource::Dataset(id) => {
            let elements = read_line(reader, id).await?;
            let values = reader.column(id, options, remarks)?.decode(elements, None, true)?;
            let attributes = reader.tet().metadata_of(id).attrs.clone();
            match options.decode_times {
                true => (Some(Labels::from_values(values, &attributes, remarks)?), attributes),
                false => {
                    let labels = Labels::from_values(values, &BTreeMap::new(), remarks)?;
                    (Some(labels), as_numbers(attributes))
                }
            }
        }
    };
    Ok(Dimension::new(name, labels, len, attributes))
}

/// Returns numbers as labels of single precision. If two of them are the same single, they stay doubles.
fn singles(labels: &[String]) -> Result<Labels> {
    let numbers: Option<Vec<f32>> = labels.iter().map(|label| label.trim().parse().ok()).collect();
    let distinct = |numbers: &Vec<f32>| {
        let bits: HashSet<u32> = numbers.iter().map(|number| number.to_bits()).collect();
        bits.len() == numbers.len()
    };
    match numbers.filter(distinct) {
        Some(numbers) => Labels::from_array(Arc::new(Float32Array::from(numbers))),
        None => Labels::from_text(labels),
    }
}

/// Whether a coordinate is small enough to read, compared with the size of the file. Opening a table reads
/// all labels, and all rows of a damaged index may point at the same payload. Without this, a file of some
/// kilobytes could make a table allocate gigabytes.
fn is_plausible_coordinate(reader: &TetReader, id: usize) -> bool {
    /// Any file may have up to this many bytes of labels.
    const ALWAYS: u64 = 1 << 26;
    /// The most bytes of labels per byte of the file: labels compress well, but not endlessly.
    const RATIO: u64 = 64;
    let dataset = &reader.tet().datasets()[id];
    let (Ok(grid), Ok(element)) = (dataset.grid(), dataset.element()) else { return false };
    let bytes = grid.cells().saturating_mul(element.size());
    bytes <= reader.size().saturating_mul(RATIO).max(ALWAYS)
}

/// Reads all elements of a one-dimensional dataset. Its chunks follow one another without gaps, so the elements
/// are those of the tiles, one after the other.
async fn read_line(reader: &TetReader, id: usize) -> Result<Buffer> {
    let grid = reader.readable_grid(id)?;
    let format = CellFormat::fixed(reader.tet().datasets()[id].element()?.size() as usize);
    let stored = reader.locate(id, (0..grid.chunks()).collect()).await?;
    // A `.tet` chunk is one layer with one payload, so there is one location per chunk.
    let locations: Vec<Location> = stored
        .iter()
        .flat_map(|chunk| &chunk.layers)
        .map(|layer| layer.values.at.clone())
        .collect();
    let mut payloads = reader.objects().read(&locations).await?.into_iter();
    let mut scratch = Scratch::default();
    let mut elements = MutableBuffer::new(0);
    for (number, chunk) in (0..).zip(&stored) {
        let extents = grid.extents(&[number]);
        let tile = layers::decode(chunk, &mut payloads, &extents, &format, vec![], &mut scratch)
            .map_err(|failed| failed.error)?;
        elements.extend_from_slice(tile.bytes());
    }
    Ok(elements.into())
}
