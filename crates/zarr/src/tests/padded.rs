//! Files that differ in the length of a dimension without labels, expanded here cell by cell.

use std::fs;
use std::path::Path;

use arrow::array::{Array, AsArray};
use arrow::compute::concat_batches;
use arrow::datatypes::{Float32Type, Int64Type};
use futures::TryStreamExt;
use gridfusion_core::array::GridArray;
use gridfusion_core::read::ArrayReader;
use gridfusion_core::source::{FileArrays, MosaicOptions, TableArrays};

use super::ragged::Random;
use crate::open;

/// The cell of chunks that are not written.
const FILL: f32 = 7.0;

/// An array of two axes, some chunks of which are not written.
struct File {
    shape: [usize; 2],
    cells: Vec<f32>,
}

impl File {
    /// Writes random chunks in version 3 of Zarr, where the fill value is a value.
    fn write(store: &Path, shape: [usize; 2], chunk: [usize; 2], random: &mut Random) -> Self {
        let folder = store.join("t");
        fs::create_dir_all(&folder).unwrap();
        let group = r#"{"zarr_format":3,"node_type":"group"}"#;
        fs::write(store.join("zarr.json"), group).unwrap();
        let metadata = format!(
            r#"{{"zarr_format":3,"node_type":"array","shape":{shape:?},"data_type":"float32",
                "chunk_grid":{{"name":"regular","configuration":{{"chunk_shape":{chunk:?}}}}},
                "chunk_key_encoding":{{"name":"default","configuration":{{"separator":"/"}}}},"fill_value":{FILL},
                "codecs":[{{"name":"bytes","configuration":{{"endian":"little"}}}}],
                "dimension_names":["profile","level"],"attributes":{{}}}}"#
        );
        fs::write(folder.join("zarr.json"), metadata).unwrap();
        let mut cells = vec![FILL; shape[0] * shape[1]];
        for a in 0..shape[0].div_ceil(chunk[0]) {
            for b in 0..shape[1].div_ceil(chunk[1]) {
                if random.below(4) == 0 {
                    continue;
                }
                let mut bytes = vec![];
                for (i, j) in (0..chunk[0]).flat_map(|i| (0..chunk[1]).map(move |j| (i, j))) {
                    let value = random.below(1000) as f32;
                    bytes.extend(value.to_le_bytes());
                    let (i, j) = (a * chunk[0] + i, b * chunk[1] + j);
                    if i < shape[0] && j < shape[1] {
                        cells[i * shape[1] + j] = value;
                    }
                }
                let path = folder.join(format!("c/{a}"));
                fs::create_dir_all(&path).unwrap();
                fs::write(path.join(b.to_string()), bytes).unwrap();
            }
        }
        Self { shape, cells }
    }
}

#[tokio::test]
async fn shorter_files_end_in_null() {
    let mut random = Random(0xD1B5_4A32_D192_ED03);
    for round in 0..60 {
        let folder = tempfile::tempdir().unwrap();
        let (mut files, mut arrays): (Vec<File>, Vec<FileArrays>) = (vec![], vec![]);
        for number in 0..1 + random.below(4) {
            let store = folder.path().join(format!("{number}.zarr"));
            let mut pair = |most: u64| [0; 2].map(|_| 1 + random.below(most) as usize);
            let (shape, chunk) = (pair(5), pair(3));
            files.push(File::write(&store, shape, chunk, &mut random));
            let dataset = open(store.to_str().unwrap()).await.unwrap();
            match dataset.group().columns(None).await.unwrap() {
                TableArrays::Grids(file) => arrays.push(file),
                TableArrays::Sparse(_) => unreachable!(),
            }
        }
        let concat_dimension = Some("profile".to_owned());
        let options = MosaicOptions { concat_dimension, ..MosaicOptions::default() };
        let array = GridArray::combine("t".to_owned(), arrays, &options).unwrap();
        let reader = ArrayReader::new(array);
        let schema = reader.schema().unwrap();
        let batches: Vec<_> = reader.batches().try_collect().await.unwrap();
        let batch = concat_batches(&schema, &batches).unwrap();
        let index = |name: &str| batch.column_by_name(name).unwrap().as_primitive::<Int64Type>();
        let cells = batch.column_by_name("t").unwrap().as_primitive::<Float32Type>();
        let found: Vec<(i64, i64, Option<f32>)> = (0..batch.num_rows())
            .map(|at| {
                let cell = cells.is_valid(at).then(|| cells.value(at));
                (index("profile").value(at), index("level").value(at), cell)
            })
            .collect();
        let levels = files.iter().map(|file| file.shape[1]).max().unwrap();
        let (mut expected, mut before) = (vec![], 0);
        for file in &files {
            for (i, j) in (0..file.shape[0]).flat_map(|i| (0..levels).map(move |j| (i, j))) {
                let cell = (j < file.shape[1]).then(|| file.cells[i * file.shape[1] + j]);
                expected.push(((before + i) as i64, j as i64, cell));
            }
            before += file.shape[0];
        }
        let mut found = found;
        found.sort_by_key(|row| (row.0, row.1));
        assert_eq!(found, expected, "round {round}");
    }
}
