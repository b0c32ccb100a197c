//! Links of groups.

use hdf5_reader::btree_v1;
use hdf5_reader::btree_v2::BTreeV2Record;
use hdf5_reader::local_heap::LocalHeap;
use hdf5_reader::messages::HdfMessage;
use hdf5_reader::messages::link_info::LinkInfoMessage;
use hdf5_reader::messages::symbol_table_msg::SymbolTableMessage;

use super::super::file_bytes::{Fields, FileBytes};
use super::super::fractal_heap::FractalHeap;
use super::super::link::{self, Link, Target};
use super::super::raw_header::{LINK, LINK_INFO, RawMessage, SYMBOL_TABLE};
use super::converted;
use super::message::message;
use super::records::records;
use super::storage::KnownBytes;
use gridfusion_core::{Error, Result};

/// Returns the links of a group, in the order of creation if the file knows it, else of the file.
pub(super) fn links(file: &FileBytes, messages: &[RawMessage]) -> Result<Vec<Link>> {
    let (mut links, mut ordered): (Vec<Link>, Vec<Link>) = (vec![], vec![]);
    for raw in messages {
        if raw.kind == LINK {
            ordered.push(link::link(raw.address, &raw.bytes, file.widths)?);
        } else if matches!(raw.kind, SYMBOL_TABLE | LINK_INFO) {
            match message(raw.kind, &raw.bytes, file.widths)? {
                HdfMessage::SymbolTable(table) => links.extend(symbol_table(file, &table)?),
                HdfMessage::LinkInfo(info) => ordered.extend(dense(file, &info)?),
                _ => {}
            }
        }
    }
    if ordered.iter().all(|link| link.order.is_some()) {
        ordered.sort_by_key(|link| link.order);
    } else {
        ordered.sort_by(|a, b| a.name.cmp(&b.name));
    }
    links.append(&mut ordered);
    Ok(links)
}

/// Links in a heap, where groups with many links have them.
fn dense(file: &FileBytes, info: &LinkInfoMessage) -> Result<Vec<Link>> {
    let (heap, index) = (info.fractal_heap_address, info.btree_name_index_address);
    if file.widths.is_undefined(heap) {
        return Ok(vec![]);
    }
    let (opened, records) = (FractalHeap::read(file, heap), records(file, index));
    let (mut opened, mut links, mut failed) = (opened?, vec![], Ok(()));
    for record in records? {
        let (BTreeV2Record::LinkNameHash { heap_id, .. }
        | BTreeV2Record::CreationOrder { heap_id, .. }) = record
        else {
            return Err(Fields::new(REGION, index, &[]).corrupt("it is not an index of links"));
        };
        match opened.object(file, &heap_id) {
            Ok(bytes) => links.push(link::link(heap, &bytes, file.widths)?),
            // The other links are read too, so that all missing blocks are requested at once.
            Err(error) if file.blocks.has_missed() => failed = Err(error),
            Err(error) => return Err(error),
        }
    }
    failed.map(|()| links)
}

/// The name of the region in errors.
const REGION: &str = "links of a group";
/// The most bytes of names that several links of a group may share.
const MAX_SHARED_NAMES: usize = 1 << 20;

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
    let (names, mut links, mut named) = (names?, vec![], 0);
    for node in nodes {
        for entry in node? {
            let link = entry.link(&names, heap.data_segment_address)?;
            named += link.name.len() + link.target.path().len();
            if named > names.len().max(MAX_SHARED_NAMES) {
                let message = format!("links of one name in {} bytes of names", names.len());
                return Err(Error::unsupported(message));
            }
            links.push(link);
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
    let widths = file.widths;
    let head = file.read(node, 8)?;
    let mut fields = Fields::new(REGION, node, &head);
    fields.magic(b"SNOD\x01\0")?;
    let count = fields.uint(2)?;
    // The place of a name is a length, not an address.
    let len = count * (u64::from(widths.length) + u64::from(widths.address) + 24);
    let bytes = file.read(node.saturating_add(8), len)?;
    let mut fields = Fields::new(REGION, node.saturating_add(8), &bytes);
    let mut symbol = || {
        let (name, object) = (fields.length(widths)?, fields.address(widths)?);
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
            Ok(link::text(name))
        };
        let target = match self.path {
            Some(path) => Target::Path(text(path)?),
            None => Target::Object(self.object),
        };
        Ok(Link { name: text(self.name)?, target, order: None })
    }
}
