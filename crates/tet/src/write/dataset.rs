//! [`NewDataset`]: a variable, or the labels of a dimension, as a dataset.

use std::collections::BTreeMap;

use arrow::array::{ArrayRef, new_null_array};
use arrow::datatypes::DataType;
use gridfusion_core::array::decimal;
use gridfusion_core::format::{ElementType, bound};
use gridfusion_core::grid::ChunkGrid;
use gridfusion_core::verify::CellStatistics;
use gridfusion_core::write::{Attributes, BadCell, StoredType};
use gridfusion_core::{Error, Result};
use serde_json::Value;

/// The most bytes of a name, a label or an attribute.
pub(super) const MOST_TEXT: usize = 1024;
/// The most attributes of a dataset.
const MOST_ATTRIBUTES: usize = 64;

/// The types that the format has, with their numbers (section 4).
const TYPES: [(DataType, ElementType, u32); 10] = [
    (DataType::Float32, ElementType::F32, 1),
    (DataType::Float64, ElementType::F64, 2),
    (DataType::Int32, ElementType::I32, 3),
    (DataType::Int64, ElementType::I64, 4),
    (DataType::UInt8, ElementType::U8, 5),
    (DataType::UInt16, ElementType::U16, 6),
    (DataType::Int16, ElementType::I16, 7),
    (DataType::UInt32, ElementType::U32, 8),
    (DataType::Float16, ElementType::F16, 9),
    (DataType::UInt64, ElementType::U64, 10),
];

/// A dataset with the chunks that came so far.
#[derive(Debug)]
pub(super) struct NewDataset {
    pub(super) name: String,
    pub(super) element: ElementType,
    /// The number of the element type.
    pub(super) code: u32,
    pub(super) grid: ChunkGrid,
    stored: StoredType,
    /// The value that stands for NULL, in the stored type.
    fill: Option<ArrayRef>,
    pub(super) attributes: BTreeMap<String, String>,
    /// The chunks by their number.
    pub(super) chunks: BTreeMap<u64, EncodedChunk>,
}

/// A chunk as the file has it.
#[derive(Debug)]
pub(super) struct EncodedChunk {
    pub(super) payload: Vec<u8>,
    /// The bytes before compression.
    pub(super) raw_len: u64,
    pub(super) is_compressed: bool,
    pub(super) statistics: CellStatistics,
}

impl NewDataset {
    /// Makes a dataset without chunks.
    ///
    /// # Errors
    /// `Unsupported` for types and names that the format does not have.
    pub(super) fn try_new(
        name: &str,
        data_type: &DataType,
        grid: ChunkGrid,
        fill: Option<&ArrayRef>,
    ) -> Result<Self> {
        let stored =
            StoredType::new(data_type).map_err(|error| error.about(&format!("\"{name}\"")))?;
        let is_truth = data_type == &DataType::Boolean;
        let found = TYPES.iter().find(|(bits, ..)| bits == stored.bits() && !is_truth);
        let Some((_, element, code)) = found else {
            return Err(Error::unsupported(format!(
                "\"{name}\": a .tet file has no {data_type}; cast the column to another number"
            )));
        };
        let (element, code) = (*element, *code);
        check_text("the name", name)?;
        let fill = fill.map(|fill| stored.stored(fill)).transpose()?;
        let mut attributes = BTreeMap::new();
        if let Some(fill) = &fill {
            let bytes = stored.number_bytes(fill, fill)?;
            if let Some(text) = decimal(element, &bytes) {
                attributes.insert("_FillValue".to_owned(), text);
            }
        }
        let fill = fill.or_else(|| stored.natural_fill().filter(|_| !element.is_integer()));
        Ok(Self {
            name: name.to_owned(),
            element,
            code,
            grid,
            stored,
            fill,
            attributes,
            chunks: BTreeMap::new(),
        })
    }

    /// Adds attributes, as texts. The format has no empty texts, so these are left out.
    ///
    /// # Errors
    /// `Unsupported` if there are too many, or one is too long.
    pub(super) fn add_attributes(&mut self, attributes: Attributes) -> Result<()> {
        for (name, value) in attributes {
            let text = match value {
                Value::String(text) => text,
                Value::Array(values) => {
                    let texts: Vec<String> = values.iter().map(Value::to_string).collect();
                    texts.join(", ")
                }
                other => other.to_string(),
            };
            if !text.is_empty() {
                check_text(&format!("the attribute \"{name}\" of \"{}\"", self.name), &text)?;
                self.attributes.insert(name, text);
            }
        }
        match self.attributes.len() > MOST_ATTRIBUTES {
            true => Err(Error::unsupported(format!(
                "\"{}\" has {} attributes, and a .tet file at most {MOST_ATTRIBUTES}",
                self.name,
                self.attributes.len()
            ))),
            false => Ok(()),
        }
    }

    pub(super) fn stored(&self) -> &StoredType {
        &self.stored
    }

    /// Whether chunks may be left out: their cells are NULL.
    pub(super) fn has_fill(&self) -> bool {
        self.fill.is_some()
    }

    /// Returns a chunk of NULL, before it is encoded.
    pub(super) fn nulls(&self, cells: usize) -> ArrayRef {
        new_null_array(self.stored.bits(), cells)
    }

    /// Encodes the cells of a chunk.
    ///
    /// # Errors
    /// The cell that cannot be stored, or `Internal` errors.
    pub(super) fn encoded(
        &self,
        cells: &ArrayRef,
        level: Option<i32>,
    ) -> Result<Result<EncodedChunk, BadCell>> {
        let cells = self.stored.stored(cells)?;
        if let Err(bad) = self.stored.check(&cells, self.fill.as_ref()) {
            return Ok(Err(bad));
        }
        let zero = self.stored.zero();
        let bytes = self.stored.number_bytes(&cells, self.fill.as_ref().unwrap_or(&zero))?;
        let fill = match (&self.fill, self.attributes.contains_key("_FillValue")) {
            (Some(fill), true) => Some(bound(&self.stored.number_bytes(fill, fill)?)),
            _ => None,
        };
        let statistics = CellStatistics::new(self.element, &bytes, fill, None);
        let raw_len = bytes.len() as u64;
        let compressed = level.map(|level| zstd::bulk::compress(&bytes, level)).transpose();
        let compressed = compressed.map_err(|error| Error::io("cannot compress a chunk", error))?;
        // Chunks that become no shorter are stored as they are.
        let shorter = compressed.filter(|it| it.len() < bytes.len());
        let is_compressed = shorter.is_some();
        let payload = shorter.unwrap_or(bytes);
        Ok(Ok(EncodedChunk { payload, raw_len, is_compressed, statistics }))
    }
}

/// Fails for a text that the format does not have.
pub(super) fn check_text(what: &str, text: &str) -> Result<()> {
    match (1..=MOST_TEXT).contains(&text.len()) {
        true => Ok(()),
        false => Err(Error::unsupported(format!(
            "{what} has {} bytes, and texts of a .tet file have 1 to {MOST_TEXT}",
            text.len()
        ))),
    }
}
