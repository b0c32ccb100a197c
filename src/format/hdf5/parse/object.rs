//! Objects of a file: groups and datasets.

use std::sync::Arc;

use hdf5_reader::messages::HdfMessage;
use hdf5_reader::messages::dataspace::DataspaceMessage;
use hdf5_reader::messages::datatype::DatatypeMessage;
use hdf5_reader::{Hdf5File, OpenOptions};

use super::super::blocks::Blocks;
use super::super::file_bytes::{FileBytes, Widths};
use super::super::global_heap::Collections;
use super::super::raw_header::{self, MAX_HEADER};
use super::super::raw_type::check_standard;
use super::attributes::{Value, attributes};
use super::cell::{StoredCell, stored_cell};
use super::converted;
use super::group::{Link, links};
use super::layout::{Layout, layout, old_layout};
use super::storage::KnownBytes;
use crate::error::{Error, Result};

/// An object of a file.
#[derive(Debug)]
pub(in crate::format::hdf5) enum Object {
    Group(Group),
    Dataset(Box<Dataset>),
    /// A named type.
    Other,
}

/// A group.
#[derive(Debug)]
pub(in crate::format::hdf5) struct Group {
    pub(in crate::format::hdf5) links: Vec<Link>,
    pub(in crate::format::hdf5) attributes: Vec<(String, Value)>,
}

/// A dataset.
#[derive(Debug)]
pub(in crate::format::hdf5) struct Dataset {
    pub(in crate::format::hdf5) shape: Vec<u64>,
    /// The greatest length per axis; `u64::MAX` if it is unlimited.
    pub(in crate::format::hdf5) max_shape: Vec<u64>,
    /// The type of cells, or the reason why it cannot be read.
    pub(in crate::format::hdf5) cell: std::result::Result<StoredCell, String>,
    pub(in crate::format::hdf5) layout: Layout,
    /// Whether its cells are in other files.
    pub(in crate::format::hdf5) is_external: bool,
    /// In the order in which they were applied.
    pub(in crate::format::hdf5) filters: Vec<Filter>,
    /// The bytes of a cell that was never written, if the file has them.
    pub(in crate::format::hdf5) fill: Option<Vec<u8>>,
    pub(in crate::format::hdf5) attributes: Vec<(String, Value)>,
}

/// A filter of chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::format::hdf5) struct Filter {
    pub(in crate::format::hdf5) id: u16,
    pub(in crate::format::hdf5) name: Option<String>,
    pub(in crate::format::hdf5) parameters: Vec<u32>,
}

/// A parser of the blocks that are known in this round. It keeps what it parsed, so it must not serve another round.
pub(in crate::format::hdf5) struct Parser {
    theirs: Hdf5File,
    file: FileBytes,
    heaps: Collections,
}

impl Parser {
    /// Reads the superblock.
    pub(in crate::format::hdf5) fn new(blocks: &Arc<Blocks>) -> Result<Self> {
        let storage = Arc::new(KnownBytes { blocks: Arc::clone(blocks), base: 0 });
        let options = OpenOptions::default()
            .with_chunk_cache_bytes(0)
            .with_max_object_header_bytes(MAX_HEADER as usize);
        let theirs = Hdf5File::from_storage_with_options(storage, options).map_err(converted)?;
        let superblock = theirs.superblock();
        let widths = Widths {
            base: superblock.base_address,
            address: superblock.offset_size,
            length: superblock.length_size,
        };
        if ![widths.address, widths.length].iter().all(|width| [2, 4, 8].contains(width)) {
            let message = format!(
                "addresses of {} bytes and lengths of {}, expected 2, 4 or 8",
                widths.address, widths.length
            );
            return Err(Error::corrupt_region("superblock", message));
        }
        let file = FileBytes { blocks: Arc::clone(blocks), widths };
        Ok(Self { theirs, file, heaps: Collections::default() })
    }

    /// Returns the version of the superblock.
    pub(in crate::format::hdf5) fn superblock_version(&self) -> u8 {
        self.theirs.superblock().version
    }

    /// Returns the address of the root group.
    pub(in crate::format::hdf5) fn root(&self) -> Result<u64> {
        self.theirs.superblock().root_object_header_address().map_err(converted)
    }

    /// Returns where addresses count from, and their widths.
    pub(in crate::format::hdf5) fn widths(&self) -> Widths {
        self.file.widths
    }

    /// Reads the object at `address`.
    pub(in crate::format::hdf5) fn object(&mut self, address: u64) -> Result<Object> {
        let header = self.theirs.get_or_parse_header(address).map_err(converted)?;
        let messages = &header.messages;
        let is_group = messages.iter().any(|message| {
            matches!(
                message,
                HdfMessage::SymbolTable(_)
                    | HdfMessage::Link(_)
                    | HdfMessage::LinkInfo(_)
                    | HdfMessage::GroupInfo(_)
            )
        });
        let is_dataset = messages
            .iter()
            .any(|message| matches!(message, HdfMessage::DataLayout(_) | HdfMessage::Dataspace(_)));
        if is_group {
            let links = links(&self.file, messages);
            let attributes = attributes(&self.file, messages, &mut self.heaps);
            Ok(Object::Group(Group { links: links?, attributes: attributes? }))
        } else if is_dataset {
            Ok(Object::Dataset(Box::new(self.dataset(address, messages)?)))
        } else {
            Ok(Object::Other)
        }
    }

    fn dataset(&mut self, address: u64, messages: &[HdfMessage]) -> Result<Dataset> {
        let attributes = attributes(&self.file, messages, &mut self.heaps);
        let raw = raw_header::messages(&self.file, address)?;
        let lacks = |what: &str| Error::corrupt("object header", address, format!("no {what}"));
        let space = messages.iter().find_map(|message| match message {
            HdfMessage::Dataspace(space) => Some(space),
            _ => None,
        });
        let (shape, max_shape) = shape(space.ok_or_else(|| lacks("shape"))?)?;
        let datatype = messages.iter().find_map(|message| match message {
            HdfMessage::Datatype(datatype) => Some(datatype),
            _ => None,
        });
        let cell = self.cell(datatype.ok_or_else(|| lacks("type"))?, &raw)?;
        let filters = filters(messages);
        let found = messages.iter().find_map(|message| match message {
            HdfMessage::DataLayout(layout) => Some(&layout.layout),
            _ => None,
        });
        let layout = match old_layout(&raw, shape.len(), self.file.widths.address)? {
            Some(layout) => layout,
            None => {
                let found = found.ok_or_else(|| lacks("layout"))?;
                layout(found, shape.len(), !filters.is_empty(), &raw)?
            }
        };
        Ok(Dataset {
            shape,
            max_shape,
            cell,
            layout,
            is_external: messages.iter().any(|it| matches!(it, HdfMessage::ExternalFiles(_))),
            filters,
            fill: fill(messages),
            attributes: attributes?,
        })
    }

    fn cell(
        &self,
        datatype: &DatatypeMessage,
        raw: &[raw_header::RawMessage],
    ) -> Result<std::result::Result<StoredCell, String>> {
        let stored = stored_cell(datatype, self.file.widths);
        let raw = raw_header::datatype(&self.file, raw)?;
        let standard = raw.map_or(Ok(Ok(())), |raw| check_standard(&raw))?;
        Ok(standard.and(stored))
    }
}

/// Returns the shape of a dataset, and the greatest that it may have.
fn shape(space: &DataspaceMessage) -> Result<(Vec<u64>, Vec<u64>)> {
    use hdf5_reader::messages::dataspace::DataspaceType;
    let shape = match space.dataspace_type {
        DataspaceType::Scalar => vec![],
        DataspaceType::Null => vec![0],
        DataspaceType::Simple => space.dims.clone(),
    };
    let max = space.max_dims.clone().filter(|_| space.dataspace_type == DataspaceType::Simple);
    let max = max.unwrap_or_else(|| shape.clone());
    if max.len() != shape.len() || max.iter().zip(&shape).any(|(most, len)| most < len) {
        let message = format!("shape {shape:?}, greatest shape {max:?}");
        return Err(Error::corrupt_region("dataspace", message));
    }
    Ok((shape, max))
}

fn filters(messages: &[HdfMessage]) -> Vec<Filter> {
    let pipeline = messages.iter().find_map(|message| match message {
        HdfMessage::FilterPipeline(pipeline) => Some(pipeline),
        _ => None,
    });
    let filters =
        pipeline.into_iter().flat_map(|pipeline| &pipeline.filters).map(|filter| Filter {
            id: filter.id,
            name: filter.name.clone().map(|name| name.trim_end_matches('\0').to_owned()),
            parameters: filter.client_data.clone(),
        });
    filters.collect()
}

fn fill(messages: &[HdfMessage]) -> Option<Vec<u8>> {
    messages.iter().find_map(|message| match message {
        HdfMessage::FillValue(fill) => fill.value.clone().filter(|_| fill.defined),
        _ => None,
    })
}
