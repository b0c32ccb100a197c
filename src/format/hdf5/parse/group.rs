//! Links of groups.

use hdf5_reader::btree_v1;
use hdf5_reader::btree_v2::BTreeV2Record;
use hdf5_reader::io::Cursor;
use hdf5_reader::local_heap::LocalHeap;
use hdf5_reader::messages::HdfMessage;
use hdf5_reader::messages::link::{self, LinkMessage, LinkTarget};
use hdf5_reader::messages::link_info::LinkInfoMessage;
use hdf5_reader::messages::symbol_table_msg::SymbolTableMessage;

use super::super::file_bytes::{Fields, FileBytes};
use super::attributes::heap_objects;
use super::converted;
use super::storage::KnownBytes;
use crate::error::Result;

/// A name in a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::format::hdf5) struct Link {
    pub(in crate::format::hdf5) name: String,
    pub(in crate::format::hdf5) target: Target,
}

/// The object that a name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::format::hdf5) enum Target {
    /// The object at an address.
    Object(u64),
    /// The object at a path in the file.
    Path(String),
    /// An object in another file.
    OtherFile(String),
}

/// Returns the links of a group, in the order of creation if the file knows it, else of the file.
pub(super) fn links(file: &FileBytes, messages: &[HdfMessage]) -> Result<Vec<Link>> {
    let (mut links, mut ordered): (Vec<Link>, Vec<LinkMessage>) = (vec![], vec![]);
    for message in messages {
        match message {
            HdfMessage::SymbolTable(table) => links.extend(symbol_table(file, table)?),
            HdfMessage::Link(link) => ordered.push(link.clone()),
            HdfMessage::LinkInfo(info) => ordered.extend(dense(file, info)?),
            _ => {}
        }
    }
    if ordered.iter().all(|link| link.creation_order.is_some()) {
        ordered.sort_by_key(|link| link.creation_order);
    } else {
        ordered.sort_by(|a, b| a.name.cmp(&b.name));
    }
    links.extend(ordered.into_iter().map(|link| {
        let target = match link.target {
            LinkTarget::Hard { address } => Target::Object(address),
            LinkTarget::Soft { path } => Target::Path(path),
            LinkTarget::External { filename, .. } => Target::OtherFile(filename),
        };
        Link { name: link.name, target }
    }));
    Ok(links)
}

/// Links in a heap, where groups with many links have them.
fn dense(file: &FileBytes, info: &LinkInfoMessage) -> Result<Vec<LinkMessage>> {
    let widths = file.widths;
    if widths.is_undefined(info.fractal_heap_address) {
        return Ok(vec![]);
    }
    let heap_id = |record: BTreeV2Record| match record {
        BTreeV2Record::LinkNameHash { heap_id, .. }
        | BTreeV2Record::CreationOrder { heap_id, .. } => Some(heap_id),
        _ => None,
    };
    let index = info.btree_name_index_address;
    let parse = |bytes: Vec<u8>| {
        let mut cursor = Cursor::new(&bytes);
        link::parse(&mut cursor, widths.address, widths.length, bytes.len()).map_err(converted)
    };
    heap_objects(file, info.fractal_heap_address, index, heap_id)?.into_iter().map(parse).collect()
}

/// The name of the region in errors.
const REGION: &str = "symbol table";

/// Links of a group in the format before HDF5 1.8: III.B "Symbol Table Nodes", III.D "Local Heaps".
fn symbol_table(file: &FileBytes, table: &SymbolTableMessage) -> Result<Vec<Link>> {
    let storage = KnownBytes::new(file);
    let (address, length) = (file.widths.address, file.widths.length);
    let heap = LocalHeap::parse_at_storage(&storage, table.heap_address, address, length);
    let nodes = btree_v1::collect_btree_v1_leaves_storage(
        &storage,
        table.btree_address,
        address,
        length,
        None,
        &[],
        None,
    );
    let (heap, nodes) = (heap.map_err(converted)?, nodes.map_err(converted)?);
    if nodes.is_empty() {
        return Ok(vec![]);
    }
    let names = file.read(heap.data_segment_address, heap.data_segment_size);
    let nodes: Vec<Result<_>> =
        nodes.into_iter().map(|(_, node)| symbol_table_node(file, node)).collect();
    let (names, mut links) = (names?, vec![]);
    for node in nodes {
        for entry in node? {
            links.push(entry.link(&names, heap.data_segment_address)?);
        }
    }
    Ok(links)
}

struct Symbol {
    /// Where its name begins.
    name: u64,
    object: u64,
    /// Where the path begins that it stands for, if it is one.
    path: Option<u64>,
}

fn symbol_table_node(file: &FileBytes, node: u64) -> Result<Vec<Symbol>> {
    let width = file.widths.address;
    let head = file.read(node, 8)?;
    let mut fields = Fields::new(REGION, node, &head);
    fields.magic(b"SNOD\x01\0")?;
    let count = fields.uint(2)?;
    let len = count * (2 * u64::from(width) + 24);
    let bytes = file.read(node.saturating_add(8), len)?;
    let mut fields = Fields::new(REGION, node.saturating_add(8), &bytes);
    let mut symbol = || {
        let (name, object) = (fields.uint(width)?, fields.uint(width)?);
        let (kind, _) = (fields.uint(4)?, fields.uint(4)?);
        let path = fields.uint(4)?;
        fields.take(12)?;
        Ok(Symbol { name, object, path: (kind == 2).then_some(path) })
    };
    (0..count).map(|_| symbol()).collect()
}

impl Symbol {
    fn link(&self, names: &[u8], address: u64) -> Result<Link> {
        let text = |at: u64| -> Result<String> {
            let from = usize::try_from(at).ok().and_then(|at| names.get(at..));
            let name = from.and_then(|from| from.split(|&byte| byte == 0).next());
            let name = name.ok_or_else(|| {
                Fields::new(REGION, address, &[]).corrupt(format!("no name at byte {at}"))
            })?;
            Ok(String::from_utf8_lossy(name).into_owned())
        };
        let target = match self.path {
            Some(path) => Target::Path(text(path)?),
            None => Target::Object(self.object),
        };
        Ok(Link { name: text(self.name)?, target })
    }
}
