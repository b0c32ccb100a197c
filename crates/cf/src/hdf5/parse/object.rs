//! Objects of a file: groups and datasets.

use std::sync::Arc;

use bytes::Bytes;
use hdf5_reader::messages::HdfMessage;
use hdf5_reader::messages::dataspace::DataspaceMessage;

use super::super::blocks::FileBlocks;
use super::super::cache_image;
use super::super::file_bytes::{FileBytes, Widths};
use super::super::global_heap::Collections;
use super::super::link::Link;
use super::super::raw_header::{self, RawMessage};
use super::super::raw_type;
use super::super::segment::Segment;
use super::super::shared::SharedMessages;
use super::super::superblock::Superblock;
use super::attributes::{Value, attributes};
use super::cell::{StoredCell, stored_cell};
use super::compound::{compound, is_compound};
use super::external::segments;
use super::filter::Filter;
use super::group::links;
use super::layout::{Layout, layout, virtual_layout};
use super::message::{filters, message};
use gridfusion_core::{Error, Result};

/// An object of a file.
#[derive(Debug)]
pub(in crate::hdf5) enum Object {
    Group(Group),
    Dataset(Box<Dataset>),
    /// A named type.
    Other,
}

/// A group.
#[derive(Debug)]
pub(in crate::hdf5) struct Group {
    pub(in crate::hdf5) links: Vec<Link>,
    pub(in crate::hdf5) attributes: Vec<(String, Value)>,
}

/// A dataset.
#[derive(Debug)]
pub(in crate::hdf5) struct Dataset {
    pub(in crate::hdf5) shape: Vec<u64>,
    /// The greatest length per axis; `u64::MAX` if it is unlimited.
    pub(in crate::hdf5) max_shape: Vec<u64>,
    /// The type of cells, or the reason why it cannot be read.
    pub(in crate::hdf5) cell: std::result::Result<StoredCell, String>,
    pub(in crate::hdf5) layout: Layout,
    /// The parts of other files that hold its cells, if it has such.
    pub(in crate::hdf5) external: Option<Arc<[Segment]>>,
    /// In the order in which they were applied.
    pub(in crate::hdf5) filters: Vec<Filter>,
    /// The bytes of a cell that was never written, if the file has them.
    pub(in crate::hdf5) fill: Option<Vec<u8>>,
    pub(in crate::hdf5) attributes: Vec<(String, Value)>,
}

/// A parser of the blocks that are known in this round. It keeps what it parsed, so it must not serve another round.
pub(in crate::hdf5) struct Parser {
    superblock: Superblock,
    file: FileBytes,
    shared: SharedMessages,
    heaps: Collections,
}

impl Parser {
    /// Reads the superblock, and the messages about the file.
    pub(in crate::hdf5) fn new(blocks: &Arc<FileBlocks>) -> Result<Self> {
        let superblock = Superblock::read(blocks)?;
        let file = FileBytes { blocks: Arc::clone(blocks), widths: superblock.widths };
        let extension = match superblock.extension {
            Some(address) => raw_header::messages(&file, address)?,
            None => vec![],
        };
        blocks.replace(cache_image::read(&file, &extension)?);
        let shared = SharedMessages::new(&file, &extension)?;
        Ok(Self { superblock, file, shared, heaps: Collections::default() })
    }

    /// Returns the version of the superblock.
    pub(in crate::hdf5) fn superblock_version(&self) -> u8 {
        self.superblock.version
    }

    /// Returns the address of the root group.
    pub(in crate::hdf5) fn root(&self) -> u64 {
        self.superblock.root
    }

    /// Returns where addresses count from, and their widths.
    pub(in crate::hdf5) fn widths(&self) -> Widths {
        self.file.widths
    }

    /// Reads the object at `address`.
    pub(in crate::hdf5) fn object(&mut self, address: u64) -> Result<Object> {
        use raw_header::{DATASPACE, GROUP_INFO, LAYOUT, LINK, LINK_INFO, SYMBOL_TABLE};
        let messages = raw_header::messages(&self.file, address)?;
        let has = |kinds: &[u16]| messages.iter().any(|message| kinds.contains(&message.kind));
        if has(&[SYMBOL_TABLE, LINK, LINK_INFO, GROUP_INFO]) {
            let links = links(&self.file, &messages);
            let attributes = self.attributes(&messages);
            // A group is of use without its attributes.
            let attributes = attributes
                .unwrap_or_else(|error| vec![("(all)".to_owned(), Value::Unreadable(error))]);
            Ok(Object::Group(Group { links: links?, attributes }))
        } else if has(&[LAYOUT, DATASPACE]) {
            Ok(Object::Dataset(Box::new(self.dataset(address, &messages)?)))
        } else {
            Ok(Object::Other)
        }
    }

    fn attributes(&mut self, messages: &[RawMessage]) -> Result<Vec<(String, Value)>> {
        attributes(&self.file, messages, &mut self.shared, &mut self.heaps)
    }

    fn dataset(&mut self, address: u64, messages: &[RawMessage]) -> Result<Dataset> {
        let attributes = self.attributes(messages);
        let lacks = |what: &str| Error::corrupt("object header", address, format!("no {what}"));
        let space = match self.message(raw_header::DATASPACE, messages)? {
            Some(HdfMessage::Dataspace(space)) => space,
            _ => return Err(lacks("shape")),
        };
        let (shape, max_shape) = shape(&space)?;
        let raw_type = self.bytes(raw_header::DATATYPE, messages)?.ok_or_else(|| lacks("type"))?;
        let cell = self.cell(&raw_type)?;
        let filters = match self.bytes(raw_header::FILTERS, messages)? {
            Some(bytes) => filters(&bytes, self.file.widths)?,
            None => vec![],
        };
        let rank = shape.len();
        let layout = match virtual_layout(&self.file, messages, rank, &mut self.heaps)? {
            None => layout(&self.file, messages, rank, !filters.is_empty())?,
            layout => layout,
        };
        Ok(Dataset {
            shape,
            max_shape,
            cell,
            layout: layout.ok_or_else(|| lacks("layout"))?,
            external: segments(&self.file, messages)?,
            filters,
            fill: self.fill(messages)?,
            attributes: attributes?,
        })
    }

    /// Returns the bytes of the message of a kind.
    fn bytes(&mut self, kind: u16, messages: &[RawMessage]) -> Result<Option<Bytes>> {
        let message = messages.iter().find(|message| message.kind == kind);
        message.map(|message| self.shared.resolved(&self.file, message)).transpose()
    }

    fn message(&mut self, kind: u16, messages: &[RawMessage]) -> Result<Option<HdfMessage>> {
        let bytes = self.bytes(kind, messages)?;
        bytes.map(|bytes| message(kind, &bytes, self.file.widths)).transpose()
    }

    fn cell(&self, raw: &[u8]) -> Result<std::result::Result<StoredCell, String>> {
        if is_compound(raw) {
            return compound(raw, self.file.widths);
        }
        let datatype = match message(raw_header::DATATYPE, raw, self.file.widths)? {
            HdfMessage::Datatype(datatype) => datatype,
            _ => return Err(Error::internal("no datatype")),
        };
        let bits = raw_type::bits(raw)?;
        Ok(bits.and_then(|bits| stored_cell(&datatype, bits, self.file.widths)))
    }

    fn fill(&mut self, messages: &[RawMessage]) -> Result<Option<Vec<u8>>> {
        for kind in [raw_header::FILL, raw_header::OLD_FILL] {
            if let Some(HdfMessage::FillValue(fill)) = self.message(kind, messages)? {
                return Ok(fill.value.filter(|_| fill.defined));
            }
        }
        Ok(None)
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
