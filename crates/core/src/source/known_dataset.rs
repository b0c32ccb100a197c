//! Facts about datasets, in the same form for all formats of files and stores with datasets.

use super::description::{Fact, PageTable, Side};
use super::show::{chunks_text, shape_text, size_text};

/// The facts about a dataset or variable that descriptions show. `None` stands for what is not known.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct KnownDataset {
    /// The path of the dataset in its file.
    pub name: String,
    /// The name of the variable, if it is not the last part of `name`.
    pub variable: Option<String>,
    /// Its role; `None` for an array that cannot be read.
    pub role: Option<Role>,
    /// The Arrow type of the column that a table has for it.
    pub data_type: Option<String>,
    /// The stored type of an element, such as `f32`.
    pub element_type: Option<String>,
    /// Elements per axis; `None` for cells that are stored one by one.
    pub shape: Option<Vec<u64>>,
    /// Elements per axis of a chunk.
    pub chunk_shape: Option<Vec<u64>>,
    /// Chunks of the grid.
    pub chunks: Option<u64>,
    /// The names of the dimensions.
    pub dimensions: Vec<String>,
    /// The number of chunks that are stored.
    pub stored_chunks: Option<u64>,
    /// Bytes of the chunks as stored.
    pub stored_bytes: Option<u64>,
    /// Bytes of the stored chunks after decoding.
    pub raw_bytes: Option<u64>,
    /// The encoding of the chunks, such as `zstd`.
    pub codec: Option<String>,
    /// The attribute `units`.
    pub units: Option<String>,
    /// The attribute `long_name`.
    pub long_name: Option<String>,
    /// Whether chunk statistics are stored.
    pub has_zone_maps: Option<bool>,
    /// Problems with it.
    pub warnings: Vec<String>,
}

/// The role of a dataset or variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Values of a table.
    Data,
    /// The labels of a dimension.
    Coordinate,
    /// A helper of other variables, such as the bounds of labels.
    Helper,
}

impl Role {
    /// Returns its name: `data`, `coordinate` or `helper`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Coordinate => "coordinate",
            Self::Helper => "helper",
        }
    }
}

impl KnownDataset {
    /// Returns the facts about an entry that cannot be read, with the reason.
    pub fn unreadable(name: impl Into<String>, reason: String) -> Self {
        Self { name: name.into(), warnings: vec![reason], ..Self::default() }
    }

    /// Returns the name of the variable.
    pub fn variable(&self) -> &str {
        let last = || self.name.rsplit_once('/').map_or(&*self.name, |(_, last)| last);
        self.variable.as_deref().unwrap_or_else(last)
    }

    /// Whether it holds the labels of a dimension.
    pub fn is_coordinate(&self) -> bool {
        self.role == Some(Role::Coordinate)
    }

    /// Returns decoded bytes per stored byte; `None` if one of them is not known, or nothing is stored.
    pub fn ratio(&self) -> Option<f64> {
        let (stored, raw) = self.stored_bytes.zip(self.raw_bytes)?;
        (stored > 0).then(|| raw as f64 / stored as f64)
    }

    /// Returns the fields of its record in the document; `docs/info.md` lists them.
    pub fn fields(&self) -> Vec<(&'static str, Fact)> {
        vec![
            ("name", self.name.as_str().into()),
            ("element_type", self.element_type.as_deref().into()),
            ("shape", self.shape.clone().into()),
            ("chunk_shape", self.chunk_shape.clone().into()),
            ("dimensions", self.dimensions.clone().into()),
            ("chunks", self.chunks.into()),
            ("stored_chunks", self.stored_chunks.into()),
            ("stored_bytes", self.stored_bytes.into()),
            ("raw_bytes", self.raw_bytes.into()),
            ("ratio", self.ratio().into()),
            ("codec", self.codec.as_deref().into()),
            ("units", self.units.as_deref().into()),
            ("long_name", self.long_name.as_deref().into()),
            ("is_coordinate", self.is_coordinate().into()),
        ]
    }

    /// Makes the table for a page, with a row per dataset. `heading` is what the format calls a dataset.
    pub fn table(heading: &'static str, all: &[Self]) -> PageTable {
        let columns = [
            (heading, Side::Left),
            ("TYPE", Side::Left),
            ("SHAPE", Side::Left),
            ("CHUNKS", Side::Left),
            ("CODEC", Side::Left),
            ("STORED", Side::Right),
            ("RATIO", Side::Right),
            ("UNITS", Side::Left),
            ("DIMENSIONS", Side::Left),
        ];
        let rows = all.iter().map(|it| {
            let chunks = it.chunks.zip(it.chunk_shape.as_deref());
            [
                Some(it.name.clone()),
                it.element_type.clone(),
                it.shape.as_deref().map(shape_text),
                chunks.map(|(chunks, shape)| chunks_text(chunks, shape)),
                it.codec.clone(),
                it.stored_bytes.map(size_text),
                it.ratio().map(|ratio| format!("{ratio:.2}")),
                it.units.clone(),
                Some(it.dimensions.join(", ")),
            ]
        });
        PageTable::new(columns, rows)
    }
}
