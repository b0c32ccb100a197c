//! Object headers and their messages (IV.A), in the versions that NetCDF-4's library writes.

use super::{Attribute, ByteOrder, Dataset, Storage, Type, UNDEFINED, lookup3};

const DATASPACE: u8 = 1;
const LINK_INFO: u8 = 2;
const DATATYPE: u8 = 3;
const FILL_VALUE: u8 = 5;
pub(super) const LINK: u8 = 6;
const LAYOUT: u8 = 8;
const GROUP_INFO: u8 = 10;
const FILTERS: u8 = 11;
const ATTRIBUTE: u8 = 12;
const ATTRIBUTE_INFO: u8 = 21;

/// The filters of chunks (IV.A.2.l).
const DEFLATE: u16 = 1;
const SHUFFLE: u16 = 2;

/// Returns an object header of version 2 (IV.A.1.b), which tracks the order of attributes (IV.A.2.v).
pub(super) fn header(messages: &[u8], attributes: &[Attribute]) -> Vec<u8> {
    let mut all = messages.to_vec();
    let indexes = [UNDEFINED.to_le_bytes(); 3].concat();
    let count = (attributes.len() as u16).to_le_bytes();
    all.extend(message(ATTRIBUTE_INFO, &[&[0, 3], &count[..], &indexes].concat()));
    for (order, it) in (0..).zip(attributes) {
        all.extend(ordered(ATTRIBUTE, order, &attribute(it)));
    }
    let mut header = b"OHDR\x02\x05".to_vec();
    header.extend(u16::try_from(all.len()).unwrap().to_le_bytes());
    header.extend(all);
    header.extend(lookup3(&header).to_le_bytes());
    header
}

pub(super) fn message(kind: u8, bytes: &[u8]) -> Vec<u8> {
    ordered(kind, 0, bytes)
}

fn ordered(kind: u8, order: u16, bytes: &[u8]) -> Vec<u8> {
    let len = (bytes.len() as u16).to_le_bytes();
    [&[kind][..], &len, &[0], &order.to_le_bytes(), bytes].concat()
}

/// Returns what a group has beside its links (IV.A.2.c and k): it tracks their order.
pub(super) fn group_messages(members: usize) -> Vec<u8> {
    let indexes = [UNDEFINED.to_le_bytes(); 3].concat();
    let info = [&[0, 3], &(members as u64).to_le_bytes()[..], &indexes].concat();
    [message(LINK_INFO, &info), message(GROUP_INFO, &[0, 0])].concat()
}

/// Returns a hard link (IV.A.2.g).
pub(super) fn link(order: u64, name: &str, address: u64) -> Vec<u8> {
    let name = [&[name.len() as u8], name.as_bytes()].concat();
    [&[1, 4], &order.to_le_bytes()[..], &name, &address.to_le_bytes()].concat()
}

/// Returns the messages of a dataset, except its attributes.
pub(super) fn dataset_messages(dataset: &Dataset, layout: &[u8]) -> Vec<u8> {
    let mut all = message(DATASPACE, &dataspace(&dataset.shape, dataset.grows));
    all.extend(message(DATATYPE, &datatype(dataset.kind)));
    all.extend(message(FILL_VALUE, &fill_value(dataset)));
    if matches!(dataset.storage, Storage::Chunked { deflated: true, .. }) {
        all.extend(message(FILTERS, &filters(dataset.kind.width())));
    }
    all.extend(message(LAYOUT, layout));
    all
}

/// Returns a dataspace of version 2 (IV.A.2.b).
fn dataspace(shape: &[u64], grows: bool) -> Vec<u8> {
    let mut bytes = vec![2, shape.len() as u8, grows.into(), 1];
    bytes.extend(shape.iter().flat_map(|len| len.to_le_bytes()));
    if grows {
        let most = shape.iter().enumerate();
        bytes.extend(most.flat_map(|(axis, len)| {
            if axis == 0 { u64::MAX.to_le_bytes() } else { len.to_le_bytes() }
        }));
    }
    bytes
}

/// Returns a datatype of version 1 (IV.A.2.d): its class, 24 bits of flags, its width, and properties.
fn datatype(kind: Type) -> Vec<u8> {
    let order = |order| u8::from(order == ByteOrder::Big);
    let (class, flags, properties): (u8, [u8; 2], Vec<u8>) = match kind {
        // Bit 3: signed. Properties: the first bit, the number of bits.
        Type::Integer(width, it) => {
            (0, [8 | order(it), 0], [0, 8 * width as u16].map(u16::to_le_bytes).concat())
        }
        // Bit 5: a leading 1 is implied. Then the place of the sign.
        Type::Float(width, it) => {
            (1, [0x20 | order(it), 8 * width as u8 - 1], float_properties(width))
        }
        // Until the first zero: NetCDF's library knows no other dimension scales.
        Type::Characters(_) => (3, [0, 0], vec![]),
        // Text, in UTF-8, whose items are characters.
        Type::Text => (9, [1, 1], datatype(Type::Characters(1))),
        // A sequence of references to objects.
        Type::References => (9, [0, 0], [&[0x17, 0, 0, 0], &8_u32.to_le_bytes()[..]].concat()),
    };
    let mut bytes = vec![0x10 | class, flags[0], flags[1], 0];
    bytes.extend(kind.width().to_le_bytes());
    bytes.extend(properties);
    bytes
}

/// Returns the first bit and the number of bits, the place and size of the exponent and of the mantissa, and the bias.
fn float_properties(width: u32) -> Vec<u8> {
    let (exponent, mantissa, bias) = if width == 4 { (8, 23, 127_u32) } else { (11, 52, 1023) };
    let bits = (8 * width as u16).to_le_bytes();
    [&[0, 0][..], &bits, &[mantissa, exponent, 0, mantissa], &bias.to_le_bytes()].concat()
}

/// Returns a fill value of version 3 (IV.A.2.f). Chunks get space when they are written, and the value is written if it
/// is set.
fn fill_value(dataset: &Dataset) -> Vec<u8> {
    let allocation = if matches!(dataset.storage, Storage::Chunked { .. }) { 3 } else { 2 };
    match &dataset.fill {
        None => vec![3, 8 | allocation],
        Some(fill) => {
            let len = (fill.len() as u32).to_le_bytes();
            [&[3, 0x28 | allocation], &len[..], fill].concat()
        }
    }
}

/// Returns the layout, version 3, of a dataset in one piece (IV.A.2.i).
pub(super) fn contiguous(address: u64, len: u64) -> Vec<u8> {
    [&[3, 1], &address.to_le_bytes()[..], &len.to_le_bytes()].concat()
}

/// Returns the layout, version 3, of a dataset in chunks, whose last axis has the bytes of a cell (IV.A.2.i).
pub(super) fn chunked(index: u64, shape: &[u64], width: u32) -> Vec<u8> {
    let mut bytes = vec![3, 2, shape.len() as u8 + 1];
    bytes.extend(index.to_le_bytes());
    bytes.extend(shape.iter().flat_map(|len| (*len as u32).to_le_bytes()));
    bytes.extend(width.to_le_bytes());
    bytes
}

/// Returns a pipeline of version 2 (IV.A.2.l): per filter its number, flags, and its parameters.
fn filters(width: u32) -> Vec<u8> {
    let filter = |id: u16, parameter: u32| {
        let [optional, count] = [1_u16, 1].map(u16::to_le_bytes);
        [&id.to_le_bytes()[..], &optional, &count, &parameter.to_le_bytes()].concat()
    };
    [&[2, 2], &filter(SHUFFLE, width)[..], &filter(DEFLATE, 1)].concat()
}

/// Returns an attribute of version 3 (IV.A.2.m), whose name is in UTF-8.
fn attribute(attribute: &Attribute) -> Vec<u8> {
    let name = [attribute.name.as_bytes(), &[0]].concat();
    let kind = datatype(attribute.kind);
    let space = match attribute.len {
        Some(len) => dataspace(&[len], false),
        None => vec![2, 0, 0, 0],
    };
    let lens = [&name, &kind, &space].map(|part| (part.len() as u16).to_le_bytes()).concat();
    [&[3, 0], &lens[..], &[1], &name, &kind, &space, &attribute.bytes].concat()
}
