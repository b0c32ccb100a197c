//! Random ragged arrays, expanded here one sample at a time.

use std::fs;
use std::path::Path;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::concat_batches;
use arrow::datatypes::{Float32Type, Int16Type, Int64Type};
use futures::TryStreamExt;
use gridfusion_core::grid::Selection;

use crate::open;

/// Random numbers (xorshift).
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// Writes an array of one axis in version 2 of Zarr.
fn write(
    store: &Path,
    name: &str,
    dim: &str,
    dtype: &str,
    attributes: &str,
    cells: &[Vec<u8>],
    chunk: usize,
) {
    let folder = store.join(name);
    fs::create_dir_all(&folder).unwrap();
    let (len, fill) = (cells.len(), if dtype.contains('U') { "\"\"" } else { "0" });
    let metadata = format!(
        r#"{{"zarr_format":2,"shape":[{len}],"chunks":[{chunk}],"dtype":"{dtype}","compressor":null,"fill_value":{fill},"order":"C","filters":null}}"#
    );
    fs::write(folder.join(".zarray"), metadata).unwrap();
    let attributes = format!(r#"{{"_ARRAY_DIMENSIONS":["{dim}"]{attributes}}}"#);
    fs::write(folder.join(".zattrs"), attributes).unwrap();
    for (number, chunk_cells) in cells.chunks(chunk).enumerate() {
        let mut bytes = chunk_cells.concat();
        bytes.resize(chunk * cells[0].len(), 0);
        fs::write(folder.join(number.to_string()), bytes).unwrap();
    }
}

fn utf32(text: &str) -> Vec<u8> {
    let mut bytes: Vec<u8> = text.chars().flat_map(|it| u32::from(it).to_le_bytes()).collect();
    bytes.resize(12, 0);
    bytes
}

#[tokio::test]
async fn random_ragged_arrays_are_expanded() {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut pruned = 0;
    for round in 0..60 {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("ragged.zarr");
        fs::create_dir_all(&store).unwrap();
        fs::write(store.join(".zgroup"), r#"{"zarr_format":2}"#).unwrap();
        let stations = 1 + random.below(6) as usize;
        let mut of: Vec<Option<usize>> = vec![];
        let is_contiguous = random.below(2) == 0;
        if is_contiguous {
            let counts: Vec<u64> = (0..stations).map(|_| random.below(5)).collect();
            for (station, count) in counts.iter().enumerate() {
                of.extend((0..*count).map(|_| Some(station)));
            }
            let cells: Vec<Vec<u8>> = counts.iter().map(|it| it.to_le_bytes().to_vec()).collect();
            let chunk = 1 + random.below(3) as usize;
            write(&store, "size", "station", "<u8", r#","sample_dimension":"obs""#, &cells, chunk);
        } else {
            let len = 1 + random.below(15);
            let station = |random: &mut Random| {
                let station = random.below(stations as u64 + 1) as usize;
                (station < stations).then_some(station)
            };
            of.extend((0..len).map(|_| station(&mut random)));
            let index =
                |it: &Option<usize>| it.map_or(-1_i16, |it| it as i16).to_le_bytes().to_vec();
            let cells: Vec<Vec<u8>> = of.iter().map(index).collect();
            let chunk = 1 + random.below(4) as usize;
            write(&store, "of", "obs", "<i2", r#","instance_dimension":"station""#, &cells, chunk);
        }
        if of.is_empty() {
            continue;
        }
        let names: Vec<String> = (0..stations)
            .map(|_| ["", "a", "bé", "ccc"][random.below(4) as usize].to_owned())
            .collect();
        let heights: Vec<i16> = (0..stations).map(|_| random.below(9) as i16).collect();
        let chunk = 1 + random.below(3) as usize;
        let cells: Vec<Vec<u8>> = names.iter().map(|it| utf32(it)).collect();
        write(&store, "name", "station", "<U3", "", &cells, chunk);
        let cells: Vec<Vec<u8>> = heights.iter().map(|it| it.to_le_bytes().to_vec()).collect();
        write(&store, "height", "station", "<i2", r#","_FillValue":8"#, &cells, chunk);
        let values: Vec<f32> = (0..of.len()).map(|it| it as f32 / 2.0).collect();
        let cells: Vec<Vec<u8>> = values.iter().map(|it| it.to_le_bytes().to_vec()).collect();
        let chunk = 1 + random.below(6) as usize;
        write(&store, "temperature", "obs", "<f4", "", &cells, chunk);

        let reader = open(store.to_str().unwrap()).await.unwrap().variables().await.unwrap();
        let schema = reader.schema().unwrap();
        let batches: Vec<_> = reader.batches().try_collect().await.unwrap();
        let batch = concat_batches(&schema, &batches).unwrap();
        let column = |name: &str| -> &ArrayRef { batch.column_by_name(name).unwrap() };
        assert_eq!(batch.num_columns(), 5, "round {round}: {schema:?}");
        assert_eq!(batch.num_rows(), of.len());
        for (at, of) in of.iter().enumerate() {
            assert_eq!(column("temperature").as_primitive::<Float32Type>().value(at), values[at]);
            let station = column("station").as_primitive::<Int64Type>();
            assert_eq!(station.is_valid(at).then(|| station.value(at) as usize), *of);
            let name = column("name").as_string_view();
            let wanted = of.map(|it| names[it].as_str());
            // The fill value of Zarr version 2 is missing data.
            let wanted = wanted.filter(|it| !it.is_empty());
            assert_eq!(name.is_valid(at).then(|| name.value(at)), wanted, "round {round}, {at}");
            let height = column("height").as_primitive::<Int16Type>();
            let wanted = of.map(|it| heights[it]).filter(|it| *it != 8 && *it != 0);
            assert_eq!(
                height.is_valid(at).then(|| height.value(at)),
                wanted,
                "round {round}, {at}"
            );
        }
        // A chunk may be skipped only if none of its rows has the value.
        let array = reader.array();
        let at = array.schema().index_of("name").unwrap();
        let value = array.columns()[at].value().unwrap();
        let grid = array.grid();
        let bounds = array.value_bounds(value, &Selection::all(grid.shape())).await.unwrap();
        let chunks: Vec<u64> = (0..grid.chunks()).collect();
        let (least, greatest) = bounds.bounds(&chunks).unwrap();
        for chunk in chunks {
            let range = grid.axis_range(0, chunk);
            for wanted in ["a", "bé", "ccc"] {
                let has =
                    range.clone().any(|at| of[at as usize].is_some_and(|it| names[it] == wanted));
                let known = least.is_valid(chunk as usize);
                let may = !known
                    || (least.as_string_view().value(chunk as usize) <= wanted
                        && greatest.as_string_view().value(chunk as usize) >= wanted);
                assert!(may || !has, "round {round}, chunk {chunk}, {wanted}");
                pruned += usize::from(!may);
            }
        }
    }
    assert!(pruned > 50, "{pruned} chunks are skipped");
}
