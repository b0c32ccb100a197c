//! What is said: the fields of the JSON document, which `docs/info.md` lists. Their names are stable.

use serde::Serialize;

/// One of three documents, told apart by `format`.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Document {
    Tet(Tet),
    Array(Box<Array>),
    Folder(Folder),
}

/// A `.tet` file or package.
#[derive(Debug, Serialize)]
pub(super) struct Tet {
    pub(super) path: String,
    /// `tet`.
    pub(super) format: &'static str,
    pub(super) layout_version: u32,
    pub(super) size_bytes: u64,
    /// Of a package.
    pub(super) generation: Option<u64>,
    pub(super) datasets: Vec<Dataset>,
    pub(super) dimensions: Vec<Dimension>,
    pub(super) history: Vec<Event>,
    pub(super) warnings: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) metadata: Option<Vec<Pair>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) chunk_list: Option<Vec<Chunk>>,
}

#[derive(Debug, Serialize)]
pub(super) struct Dataset {
    pub(super) name: String,
    pub(super) element_type: Option<String>,
    pub(super) shape: Vec<u64>,
    pub(super) chunk_shape: Option<Vec<u64>>,
    pub(super) dimensions: Vec<String>,
    pub(super) chunks: Option<u64>,
    pub(super) stored_chunks: u64,
    pub(super) stored_bytes: u64,
    pub(super) raw_bytes: u64,
    pub(super) ratio: Option<f64>,
    pub(super) codec: Option<&'static str>,
    pub(super) units: Option<String>,
    pub(super) long_name: Option<String>,
    pub(super) is_coordinate: bool,
    pub(super) has_zone_maps: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct Dimension {
    pub(super) name: String,
    pub(super) length: Option<u64>,
    /// The type of its labels.
    #[serde(rename = "type")]
    pub(super) data_type: Option<String>,
    pub(super) first: Option<String>,
    pub(super) last: Option<String>,
    pub(super) units: Option<String>,
    /// Of TileDB: the least and the greatest coordinate that it may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) domain: Option<[String; 2]>,
    /// Of TileDB: coordinates per tile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tile_extent: Option<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct Event {
    pub(super) op: String,
    pub(super) source: String,
    /// As the file has it: seconds since 1970 in decimal.
    pub(super) at: String,
}

/// An attribute.
#[derive(Debug, Serialize)]
pub(super) struct Pair {
    /// What it is about; `None` for the file or the array itself.
    pub(super) dataset: Option<String>,
    pub(super) key: String,
    pub(super) value: String,
}

#[derive(Debug, Serialize)]
pub(super) struct Chunk {
    pub(super) dataset: String,
    pub(super) chunk: Vec<u64>,
    pub(super) file_offset: u64,
    pub(super) stored_bytes: u64,
    pub(super) raw_bytes: u64,
    pub(super) codec: String,
    pub(super) null_count: Option<u64>,
    pub(super) min_value: Option<String>,
    pub(super) max_value: Option<String>,
}

/// A TileDB array.
#[derive(Debug, Serialize)]
pub(super) struct Array {
    pub(super) path: String,
    /// `tiledb`.
    pub(super) format: &'static str,
    pub(super) name: String,
    /// `dense` or `sparse`.
    pub(super) kind: String,
    pub(super) format_version: u32,
    pub(super) tile_order: String,
    pub(super) cell_order: String,
    /// Cells per axis of the table; `None` if it cannot be one.
    pub(super) shape: Option<Vec<u64>>,
    pub(super) tile_shape: Option<Vec<u64>>,
    pub(super) dimensions: Vec<Dimension>,
    pub(super) attributes: Vec<Attribute>,
    pub(super) fragments: u64,
    pub(super) stored_bytes: u64,
    pub(super) written_from: Option<String>,
    pub(super) written_to: Option<String>,
    pub(super) warnings: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) metadata: Option<Vec<Pair>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fragment_list: Option<Vec<Fragment>>,
}

#[derive(Debug, Serialize)]
pub(super) struct Attribute {
    pub(super) name: String,
    pub(super) datatype: String,
    pub(super) values_per_cell: String,
    pub(super) nullable: bool,
    pub(super) enumeration: Option<String>,
    pub(super) filters: String,
    pub(super) stored_bytes: u64,
    /// Bytes of its tiles, if values have one length.
    pub(super) raw_bytes: Option<u64>,
    pub(super) ratio: Option<f64>,
}

#[derive(Debug, Serialize)]
pub(super) struct Fragment {
    pub(super) name: String,
    pub(super) written_from: String,
    pub(super) written_to: String,
    pub(super) format_version: u32,
    pub(super) tiles: u64,
    pub(super) cells: Option<u64>,
    pub(super) stored_bytes: u64,
}

/// A group or folder of TileDB arrays.
#[derive(Debug, Serialize)]
pub(super) struct Folder {
    pub(super) path: String,
    /// `tiledb_folder`.
    pub(super) format: &'static str,
    pub(super) arrays: Vec<Array>,
    pub(super) warnings: Vec<String>,
}
