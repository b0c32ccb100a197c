//! A `.tet` writer that uses no code of the library.

use std::path::PathBuf;

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use serde_json::{Value, json};

/// Bytes per element of a type tag.
pub(crate) fn width(tag: u32) -> usize {
    [0, 4, 8, 4, 8, 1, 2, 2, 4, 2, 8][tag as usize]
}

pub(crate) const F32: u32 = 1;
pub(crate) const F64: u32 = 2;
pub(crate) const I32: u32 = 3;
pub(crate) const I64: u32 = 4;
pub(crate) const I16: u32 = 7;

/// One dataset: its elements in row-major order over the whole shape.
#[derive(Clone)]
pub(crate) struct TestDataset {
    pub(crate) name: String,
    pub(crate) tag: u32,
    pub(crate) shape: Vec<u64>,
    pub(crate) chunk: Vec<u64>,
    pub(crate) data: Vec<u8>,
    pub(crate) zstd: bool,
    pub(crate) metadata: Value,
}

impl TestDataset {
    pub(crate) fn new(name: &str, tag: u32, shape: &[u64], chunk: &[u64], data: Vec<u8>) -> Self {
        let cells: u64 = shape.iter().product();
        assert_eq!(data.len(), cells as usize * width(tag), "data of {name}");
        Self {
            name: name.into(),
            tag,
            shape: shape.into(),
            chunk: chunk.into(),
            data,
            zstd: false,
            metadata: json!({}),
        }
    }

    pub(crate) fn with_zstd(mut self, zstd: bool) -> Self {
        self.zstd = zstd;
        self
    }

    pub(crate) fn with_metadata(mut self, metadata: Value) -> Self {
        self.metadata = metadata;
        self
    }

    /// The coordinates and raw tile of every chunk, in row-major order of the grid.
    fn tiles(&self) -> Vec<(Vec<u64>, Vec<u8>)> {
        let counts: Vec<u64> =
            self.shape.iter().zip(&self.chunk).map(|(len, edge)| len.div_ceil(*edge)).collect();
        let size = width(self.tag);
        if (1..self.shape.len()).all(|d| self.chunk[d] >= self.shape[d]) {
            return self.slabs();
        }
        let tile = |at: Vec<u64>| {
            let extents: Vec<u64> = (0..at.len())
                .map(|d| ((at[d] + 1) * self.chunk[d]).min(self.shape[d]) - at[d] * self.chunk[d])
                .collect();
            let mut bytes = Vec::new();
            for cell in positions(&extents) {
                let place = (0..at.len())
                    .fold(0, |p, d| p * self.shape[d] + at[d] * self.chunk[d] + cell[d])
                    as usize;
                bytes.extend(&self.data[place * size..(place + 1) * size]);
            }
            (at, bytes)
        };
        positions(&counts).into_iter().map(tile).collect()
    }
}

impl TestDataset {
    /// The same for chunks that span every axis but the first: their tiles are slices of the data.
    fn slabs(&self) -> Vec<(Vec<u64>, Vec<u8>)> {
        let row = self.shape[1..].iter().product::<u64>() as usize * width(self.tag);
        let slab = self.chunk[0] as usize * row;
        let at = |number: usize| {
            let mut at = vec![0; self.shape.len()];
            at[0] = number as u64;
            at
        };
        self.data
            .chunks(slab)
            .enumerate()
            .map(|(number, tile)| (at(number), tile.to_vec()))
            .collect()
    }
}

/// All coordinates of a box in row-major order.
pub(crate) fn positions(shape: &[u64]) -> Vec<Vec<u64>> {
    let mut all = vec![vec![]];
    for &len in shape {
        all = all
            .into_iter()
            .flat_map(|at| {
                (0..len).map(move |i| {
                    let mut at = at.clone();
                    at.push(i);
                    at
                })
            })
            .collect();
    }
    all
}

/// The parts of the file around the datasets.
#[derive(Clone, Default)]
pub(crate) struct Layout {
    /// Shuffles index rows and payloads, and leaves gaps between payloads.
    pub(crate) shuffle: Option<StdRng>,
    /// Writes a footer of this history version.
    pub(crate) history_version: Option<u32>,
    /// The history of the footer.
    pub(crate) history: Option<Value>,
    /// The budget fields of the index header.
    pub(crate) budget: (u16, u32),
    /// Writes zone maps into the footer (needs history version 2).
    pub(crate) zones: Option<Value>,
}

/// A row of the chunk index, with its payload.
struct Row {
    dataset: u64,
    at: Vec<u64>,
    raw_len: u64,
    stored: Vec<u8>,
    zstd: bool,
}

/// The bytes of a `.tet` file.
pub(crate) fn tet_bytes(datasets: &[TestDataset], layout: &Layout) -> Vec<u8> {
    let records = directory(datasets);
    let mut rows = rows(datasets);
    let mut shuffle = layout.shuffle.clone();
    if let Some(rng) = &mut shuffle {
        rows.shuffle(rng);
    }
    let index_at = (40 + records.len() as u64).next_multiple_of(8);
    let index_len = 32 + 104 * rows.len() as u64;

    let mut file = b"TETR".to_vec();
    file.extend(1_u32.to_le_bytes());
    file.extend((datasets.len() as u32).to_le_bytes());
    file.extend(u32::from(layout.history_version.is_some()).to_le_bytes());
    file.extend(index_at.to_le_bytes());
    file.extend(index_len.to_le_bytes());
    file.extend((records.len() as u64).to_le_bytes());
    file.extend(records);
    file.resize(index_at as usize, 0);
    file.extend(b"TIDX");
    file.extend(1_u32.to_le_bytes());
    file.extend((rows.len() as u64).to_le_bytes());
    file.extend(layout.budget.0.to_le_bytes());
    file.extend(0_u16.to_le_bytes());
    file.extend(layout.budget.1.to_le_bytes());
    file.extend(0_u64.to_le_bytes());

    let mut payloads = Vec::new();
    for row in &rows {
        if shuffle.is_some() {
            payloads.extend([0xEE; 3]); // a gap, and misaligned payloads after it
        }
        file.extend(row.dataset.to_le_bytes());
        for d in 0..8 {
            file.extend(row.at.get(d).copied().unwrap_or(0).to_le_bytes());
        }
        let offset = index_at + index_len + payloads.len() as u64;
        file.extend(offset.to_le_bytes());
        file.extend(row.raw_len.to_le_bytes());
        file.extend((row.stored.len() as u64).to_le_bytes());
        file.extend(u32::from(row.zstd).to_le_bytes());
        file.extend(0_u32.to_le_bytes());
        payloads.extend(&row.stored);
    }
    file.extend(payloads);
    if let Some(version) = layout.history_version {
        footer(&mut file, datasets, layout, version);
    }
    file
}

fn directory(datasets: &[TestDataset]) -> Vec<u8> {
    let mut records = Vec::new();
    for dataset in datasets {
        for field in [dataset.name.len() as u32, dataset.tag, dataset.shape.len() as u32, 0] {
            records.extend(field.to_le_bytes());
        }
        records.extend(dataset.name.as_bytes());
        records.resize(records.len().next_multiple_of(8), 0);
        for len in dataset.shape.iter().chain(&dataset.chunk) {
            records.extend(len.to_le_bytes());
        }
    }
    records
}

fn rows(datasets: &[TestDataset]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (id, dataset) in (0..).zip(datasets) {
        for (at, tile) in dataset.tiles() {
            let raw_len = tile.len() as u64;
            let zstd = dataset.zstd;
            let stored = if zstd { zstd::encode_all(&tile[..], 1).unwrap() } else { tile };
            rows.push(Row { dataset: id, at, raw_len, stored, zstd });
        }
    }
    rows
}

fn footer(file: &mut Vec<u8>, datasets: &[TestDataset], layout: &Layout, version: u32) {
    let metadata: serde_json::Map<String, Value> =
        datasets.iter().map(|dataset| (dataset.name.clone(), dataset.metadata.clone())).collect();
    let history = layout.history.clone().unwrap_or(json!([]));
    let mut json = json!({"history": history, "metadata": {"datasets": metadata}});
    if let Some(zones) = &layout.zones {
        let text = zones.to_string();
        json["zone_maps_ref"] = json!({"offset": file.len(), "len": text.len()});
        file.extend(text.as_bytes());
    }
    let json = json.to_string();
    file.extend(json.as_bytes());
    file.extend((json.len() as u64).to_le_bytes());
    file.extend(version.to_le_bytes());
    file.extend(b"THST");
}

/// A file in a directory that lives as long as the test.
pub(crate) struct TempTet {
    _dir: tempfile::TempDir,
    pub(crate) path: PathBuf,
}

impl TempTet {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("test.tet");
        std::fs::write(&path, bytes).unwrap();
        Self { _dir: dir, path }
    }

    pub(crate) fn location(&self) -> &str {
        self.path.to_str().unwrap()
    }
}
