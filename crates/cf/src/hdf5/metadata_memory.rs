//! The memory that a file's groups and datasets take, and its limit.
//!
//! A small file can name a large object many times: links share objects, heaps and shared messages are those of many
//! objects. So what is kept is counted, and not what is read.

use super::link::Link;
use super::parse::{Dataset, Layout, Object, Value};
use super::steps::Steps;
use super::virtual_layout::Mapping;
use crate::hierarchy::{Attribute, CellType, RecordField, Variable};
use gridfusion_core::{Error, Result};

/// The bytes of memory for each byte of the file, if it has many small attributes.
const PARSED: u64 = 4;

/// The bytes that metadata may take, and those that it takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct MetadataMemory {
    most: u64,
    bytes: u64,
}

impl MetadataMemory {
    /// Nothing yet, of at most this many bytes.
    pub(super) fn new(most: u64) -> Self {
        Self { most, bytes: 0 }
    }

    /// Returns the bytes that were counted.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Counts an object.
    pub(super) fn add_object(&mut self, object: &Result<Object>) {
        self.add(match object {
            Ok(Object::Group(group)) => {
                group.links.iter().map(of_link).sum::<u64>() + of_attributes(&group.attributes)
            }
            Ok(Object::Dataset(dataset)) => of_dataset(dataset),
            Ok(Object::Other) => 0,
            Err(_) => size_of::<Error>() as u64,
        });
    }

    /// Counts a path of an object.
    pub(super) fn add_path(&mut self, path: &str) {
        self.add(of_text(path));
    }

    /// Counts a path of a variable. Others share its attributes.
    pub(super) fn add_variable(&mut self, variable: &Variable) {
        let name = |name: &Option<String>| name.as_deref().map_or(0, of_text);
        let axes = variable.axes.iter().map(|axis| 16 + name(&axis.name) + name(&axis.labels));
        let (own, shape) = (size_of::<Variable>() as u64, 8 * variable.chunk_shape.len() as u64);
        let fill = variable.fill.len() as u64;
        self.add(own + of_text(&variable.path) + axes.sum::<u64>() + shape + fill);
    }

    fn add(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Fails if more is kept than may be, after `read` bytes of the file were read. Metadata that the file holds in full need no
    /// limit.
    pub(super) fn check(&self, read: u64) -> Result<()> {
        let most = self.most.saturating_add(read.saturating_mul(PARSED));
        match self.bytes <= most {
            true => Ok(()),
            false => Err(Error::unsupported(format!(
                "the {read} bytes of metadata of the HDF5 file take more than {most} bytes of memory: it names objects many \
                 times; the option 'metadata_limit' allows {} bytes and {PARSED} for each byte",
                self.most,
            ))),
        }
    }
}

fn of_text(text: &str) -> u64 {
    (size_of::<String>() + text.len()) as u64
}

fn of_link(link: &Link) -> u64 {
    (size_of::<Link>() + link.name.len() + link.target.path().len()) as u64
}

fn of_attributes(all: &[(String, Value)]) -> u64 {
    all.iter().map(|(name, value)| of_text(name) + of_value(value)).sum()
}

fn of_value(value: &Value) -> u64 {
    let more = match value {
        Value::Plain(Attribute::Text(text)) => text.len() as u64,
        Value::Plain(Attribute::Texts(all)) => all.iter().map(|text| of_text(text)).sum(),
        Value::Plain(Attribute::Integers(all)) => size_of_val(all.as_slice()) as u64,
        Value::Plain(Attribute::Singles(all)) => size_of_val(all.as_slice()) as u64,
        Value::Plain(Attribute::Doubles(all)) => size_of_val(all.as_slice()) as u64,
        Value::Objects(all) => {
            all.iter().map(|list| 24 + size_of_val(list.as_slice()) as u64).sum()
        }
        Value::Other(_) | Value::Unreadable(_) => 0,
    };
    size_of::<Value>() as u64 + more
}

fn of_dataset(dataset: &Dataset) -> u64 {
    let fill = dataset.fill.as_ref().map_or(0, |fill| fill.len() as u64);
    let cell = dataset.cell.as_ref();
    let names = cell.map_or(0, |cell| {
        let fixes = size_of_val(cell.fields.fixes.as_slice());
        let parts = cell.fields.heap.iter().flatten().map(|field| size_of_val(&*field.parts));
        let heap = size_of_val(cell.fields.heap.as_slice()) + parts.sum::<usize>();
        of_cell(&cell.cell) + (fixes + heap) as u64
    });
    let layout = match &dataset.layout {
        Layout::Compact { bytes, .. } => bytes.len() as u64,
        Layout::Virtual(mappings) => mappings.iter().map(of_mapping).sum(),
        Layout::Contiguous { .. } | Layout::Chunked { .. } => 0,
    };
    let parts = dataset.external.iter().flat_map(|all| all.iter());
    let external: u64 = parts.map(|part| size_of_val(part) as u64).sum();
    let own = size_of::<Dataset>() as u64;
    own + of_attributes(&dataset.attributes) + fill + names + layout + external
}

/// Counts the names in a type of cells.
fn of_cell(cell: &CellType) -> u64 {
    match cell {
        CellType::Enumeration { names, .. } => {
            names.iter().map(|(_, name)| 16 + of_text(name)).sum()
        }
        CellType::Record(record) => {
            let field = |it: &RecordField| {
                size_of::<RecordField>() as u64 + of_text(&it.name) + of_cell(&it.cell)
            };
            let left_out = record.left_out.iter().map(|(name, why)| of_text(name) + of_text(why));
            record.fields.iter().map(field).sum::<u64>() + left_out.sum::<u64>()
        }
        CellType::Array(item, _) | CellType::List(item) => {
            size_of::<CellType>() as u64 + of_cell(item)
        }
        _ => 0,
    }
}

fn of_mapping(mapping: &Mapping) -> u64 {
    // Names may be shared with other mappings.
    let axes = mapping.source.iter().chain(&mapping.target).map(Vec::len).sum::<usize>();
    (size_of::<Mapping>() + axes * size_of::<Steps>()) as u64
}
