//! Random ragged arrays, expanded here one sample at a time.

use std::fs;
use std::path::Path;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::{Float32Type, Int16Type, Int64Type};
use futures::TryStreamExt;
use gridfusion_core::array::GridArray;
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

/// Random stations and their samples.
struct Ragged {
    /// The station of each sample.
    of: Vec<Option<usize>>,
    names: Vec<String>,
    heights: Vec<i16>,
    values: Vec<f32>,
}

impl Ragged {
    /// Writes a random store.
    fn write(random: &mut Random, store: &Path) -> Self {
        fs::create_dir_all(store).unwrap();
        fs::write(store.join(".zgroup"), r#"{"zarr_format":2}"#).unwrap();
        let stations = 1 + random.below(6) as usize;
        let of = match random.below(2) {
            0 => write_counts(random, store, stations),
            _ => write_indices(random, store, stations),
        };
        let names: Vec<String> = (0..stations)
            .map(|_| ["", "a", "bé", "ccc"][random.below(4) as usize].to_owned())
            .collect();
        let heights: Vec<i16> = (0..stations).map(|_| random.below(9) as i16).collect();
        let values: Vec<f32> = (0..of.len()).map(|it| it as f32 / 2.0).collect();
        let chunk = 1 + random.below(3) as usize;
        let cells: Vec<Vec<u8>> = names.iter().map(|it| utf32(it)).collect();
        write(store, "name", "station", "<U3", "", &cells, chunk);
        let cells: Vec<Vec<u8>> = heights.iter().map(|it| it.to_le_bytes().to_vec()).collect();
        write(store, "height", "station", "<i2", r#","_FillValue":8"#, &cells, chunk);
        if !of.is_empty() {
            let cells: Vec<Vec<u8>> = values.iter().map(|it| it.to_le_bytes().to_vec()).collect();
            let chunk = 1 + random.below(6) as usize;
            write(store, "temperature", "obs", "<f4", "", &cells, chunk);
        }
        Self { of, names, heights, values }
    }

    /// Compares rows with the samples, one at a time.
    fn check(&self, batch: &RecordBatch) {
        let column = |name: &str| -> &ArrayRef { batch.column_by_name(name).unwrap() };
        assert_eq!((batch.num_columns(), batch.num_rows()), (5, self.of.len()));
        for (at, of) in self.of.iter().enumerate() {
            let value = column("temperature").as_primitive::<Float32Type>().value(at);
            assert_eq!(value, self.values[at]);
            let station = column("station").as_primitive::<Int64Type>();
            assert_eq!(station.is_valid(at).then(|| station.value(at) as usize), *of);
            let name = column("name").as_string_view();
            let wanted = of.map(|it| self.names[it].as_str());
            // The fill value of Zarr version 2 is missing data.
            let wanted = wanted.filter(|it| !it.is_empty());
            assert_eq!(name.is_valid(at).then(|| name.value(at)), wanted, "sample {at}");
            let height = column("height").as_primitive::<Int16Type>();
            let wanted = of.map(|it| self.heights[it]).filter(|it| *it != 8 && *it != 0);
            assert_eq!(height.is_valid(at).then(|| height.value(at)), wanted, "sample {at}");
        }
    }

    /// Returns how many chunks the bounds of `name` skip, of which none may have the name.
    async fn skipped(&self, array: &GridArray) -> usize {
        let at = array.schema().index_of("name").unwrap();
        let value = array.columns()[at].value().unwrap();
        let grid = array.grid();
        let bounds = array.value_bounds(value, &Selection::all(grid.shape())).await.unwrap();
        let chunks: Vec<u64> = (0..grid.chunks()).collect();
        let (least, greatest) = bounds.bounds(&chunks).unwrap();
        let (least, greatest) = (least.as_string_view(), greatest.as_string_view());
        let mut skipped = 0;
        for chunk in 0..chunks.len() {
            let samples = &self.of[grid.axis_range(0, chunk as u64).start as usize..]
                [..grid.axis_range(0, chunk as u64).count()];
            for wanted in ["a", "bé", "ccc"] {
                let has = samples.iter().flatten().any(|it| self.names[*it] == wanted);
                let may = !least.is_valid(chunk)
                    || (least.value(chunk) <= wanted && greatest.value(chunk) >= wanted);
                assert!(may || !has, "chunk {chunk}, {wanted}");
                skipped += usize::from(!may);
            }
        }
        skipped
    }
}

/// Writes the number of samples of each station, which follow one another. Returns the station of each.
fn write_counts(random: &mut Random, store: &Path, stations: usize) -> Vec<Option<usize>> {
    let counts: Vec<u64> = (0..stations).map(|_| random.below(5)).collect();
    let cells: Vec<Vec<u8>> = counts.iter().map(|it| it.to_le_bytes().to_vec()).collect();
    let chunk = 1 + random.below(3) as usize;
    write(store, "size", "station", "<u8", r#","sample_dimension":"obs""#, &cells, chunk);
    let samples = counts.iter().enumerate();
    samples.flat_map(|(station, count)| (0..*count).map(move |_| Some(station))).collect()
}

/// Writes the station of each sample, or -1, and returns it.
fn write_indices(random: &mut Random, store: &Path, stations: usize) -> Vec<Option<usize>> {
    let len = 1 + random.below(15);
    let station = |_| Some(random.below(stations as u64 + 1) as usize).filter(|it| *it < stations);
    let of: Vec<Option<usize>> = (0..len).map(station).collect();
    let index = |it: &Option<usize>| it.map_or(-1_i16, |it| it as i16).to_le_bytes().to_vec();
    let cells: Vec<Vec<u8>> = of.iter().map(index).collect();
    let chunk = 1 + random.below(4) as usize;
    write(store, "of", "obs", "<i2", r#","instance_dimension":"station""#, &cells, chunk);
    of
}

#[tokio::test]
async fn random_ragged_arrays_are_expanded() {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut skipped = 0;
    for _ in 0..60 {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("ragged.zarr");
        let ragged = Ragged::write(&mut random, &store);
        if ragged.of.is_empty() {
            continue;
        }
        let reader = open(store.to_str().unwrap()).await.unwrap().variables().await.unwrap();
        let schema = reader.schema().unwrap();
        let batches: Vec<_> = reader.batches().try_collect().await.unwrap();
        ragged.check(&concat_batches(&schema, &batches).unwrap());
        skipped += ragged.skipped(reader.array()).await;
    }
    assert!(skipped > 50, "{skipped} chunks are skipped");
}
