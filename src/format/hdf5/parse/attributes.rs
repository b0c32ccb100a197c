//! Attributes of objects.

use hdf5_reader::btree_v2::{self, BTreeV2Header, BTreeV2Record};
use hdf5_reader::fractal_heap::{FractalHeap, FractalHeapDirectBlockCache};
use hdf5_reader::io::Cursor;
use hdf5_reader::messages::HdfMessage;
use hdf5_reader::messages::attribute::{self, AttributeMessage};
use hdf5_reader::messages::attribute_info::AttributeInfoMessage;
use hdf5_reader::messages::datatype::Datatype;
use hdf5_reader::{ReferenceType, StringPadding, StringSize, VarLenKind};

use super::super::file_bytes::{Fields, FileBytes};
use super::super::global_heap::{Collections, Reference};
use super::cell::{integer, is_text_reference, number};
use super::converted;
use super::storage::KnownBytes;
use crate::error::{Error, Result};
use crate::format::ElementType;
use crate::format::hierarchy::Attribute;

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::format::hdf5) enum Value {
    /// Text or numbers.
    Plain(Attribute),
    /// Lists of addresses of objects, such as the dimension scales of each axis.
    Objects(Vec<Vec<u64>>),
    /// A value of another type, which it names.
    Other(&'static str),
}

/// Reads all attributes of an object. One that cannot be read is left out, with a warning.
pub(super) fn attributes(
    file: &FileBytes,
    messages: &[HdfMessage],
    heaps: &mut Collections,
) -> Result<Vec<(String, Value)>> {
    let mut found: Vec<AttributeMessage> = vec![];
    for message in messages {
        match message {
            HdfMessage::Attribute(attribute) => found.push(attribute.clone()),
            HdfMessage::AttributeInfo(info) => found.extend(dense(file, info)?),
            _ => {}
        }
    }
    let mut values = vec![];
    for message in found {
        let before = file.blocks.misses();
        match value(file, &message, heaps) {
            Ok(value) => values.push((message.name, value)),
            // The object is read again once the bytes are known.
            Err(_) if file.blocks.misses() > before => {}
            Err(error) => log::warn!("attribute {:?} is left out: {error}", message.name),
        }
    }
    Ok(values)
}

/// Reads attributes from a heap, where objects with many attributes have them.
fn dense(file: &FileBytes, info: &AttributeInfoMessage) -> Result<Vec<AttributeMessage>> {
    let widths = file.widths;
    if widths.is_undefined(info.fractal_heap_address) {
        return Ok(vec![]);
    }
    let heap_ids = |record: BTreeV2Record| match record {
        BTreeV2Record::AttributeNameHash { heap_id, .. }
        | BTreeV2Record::AttributeCreationOrder { heap_id, .. } => Some(heap_id),
        _ => None,
    };
    let index = info.btree_name_index_address;
    let all = heap_objects(file, info.fractal_heap_address, index, heap_ids)?;
    let parse = |bytes: Vec<u8>| {
        let mut cursor = Cursor::new(&bytes);
        attribute::parse(&mut cursor, widths.address, widths.length, bytes.len()).map_err(converted)
    };
    all.into_iter().map(parse).collect()
}

/// Returns the objects of a fractal heap that the records of a B-tree name.
pub(super) fn heap_objects(
    file: &FileBytes,
    heap: u64,
    index: u64,
    heap_id: impl Fn(BTreeV2Record) -> Option<Vec<u8>>,
) -> Result<Vec<Vec<u8>>> {
    let storage = KnownBytes::new(file);
    let (address, length) = (file.widths.address, file.widths.length);
    let heap = FractalHeap::parse_at_storage(&storage, heap, address, length);
    let header = BTreeV2Header::parse_at_storage(&storage, index, address, length);
    let (heap, header) = (heap.map_err(converted)?, header.map_err(converted)?);
    let records = btree_v2::collect_btree_v2_records_storage(
        &storage,
        &header,
        address,
        length,
        None,
        &[],
        None,
    );
    let mut cache = FractalHeapDirectBlockCache::default();
    let (mut objects, mut failed, mut bytes) = (vec![], None, 0);
    for heap_id in records.map_err(converted)?.into_iter().filter_map(heap_id) {
        match heap.get_object_storage_cached(&heap_id, &storage, address, length, &mut cache) {
            Ok(object) => {
                // Any number of records may name the same object.
                bytes += object.len();
                check_total(bytes)?;
                objects.push(object);
            }
            // The other objects are read too, so that all missing blocks are requested at once.
            Err(error) if file.blocks.has_missed() => failed = Some(converted(error)),
            Err(error) => return Err(converted(error)),
        }
    }
    failed.map_or(Ok(objects), Err)
}

/// Reads the value of an attribute.
fn value(file: &FileBytes, message: &AttributeMessage, heaps: &mut Collections) -> Result<Value> {
    let count = message.dataspace.num_elements();
    let count = count.map_err(|error| Error::corrupt_region("attribute", error.to_string()))?;
    let mut elements = Elements { count, raw: &message.raw_data };
    Ok(match &message.datatype {
        Datatype::FixedPoint { .. }
        | Datatype::Bitfield { .. }
        | Datatype::FloatingPoint { .. } => numbers(&message.datatype, &mut elements)?,
        Datatype::Enum { base, .. } => numbers(base, &mut elements)?,
        Datatype::String { size: StringSize::Fixed(width), padding, .. } => {
            let all = elements.of(*width as usize)?;
            texts(all.map(|bytes| trimmed(bytes, *padding)).collect())
        }
        datatype if is_text_reference(datatype) => {
            let (mut all, mut bytes) = (vec![], 0);
            for reference in elements.references(file)? {
                let text = heap_text(file, &reference, heaps)?;
                bytes += text.len();
                check_total(bytes)?;
                all.push(text);
            }
            texts(all)
        }
        Datatype::VarLen { base, kind: VarLenKind::Sequence, .. } => match &**base {
            Datatype::Reference { ref_type: ReferenceType::Object, size }
                if *size == file.widths.address =>
            {
                let (mut lists, mut bytes) = (vec![], 0);
                for reference in elements.references(file)? {
                    let list = objects(file, &reference, heaps)?;
                    bytes += size_of_val(list.as_slice());
                    check_total(bytes)?;
                    lists.push(list);
                }
                Value::Objects(lists)
            }
            _ => Value::Other("lists of any length"),
        },
        Datatype::Compound { .. } => Value::Other("compounds"),
        Datatype::Reference { .. } => Value::Other("references"),
        Datatype::Opaque { .. } => Value::Other("opaque bytes"),
        Datatype::Array { .. } => Value::Other("arrays"),
        Datatype::VarLen { .. } | Datatype::String { .. } => Value::Other("lists of any length"),
    })
}

/// The elements of an attribute.
struct Elements<'a> {
    count: u64,
    raw: &'a [u8],
}

impl<'a> Elements<'a> {
    /// Returns the elements, of `width` bytes each.
    fn of(&mut self, width: usize) -> Result<impl Iterator<Item = &'a [u8]> + use<'a>> {
        let len = usize::try_from(self.count).ok().and_then(|count| count.checked_mul(width));
        let bytes = len.filter(|_| width > 0).and_then(|len| self.raw.get(..len));
        let bytes = bytes.ok_or_else(|| {
            let (count, len) = (self.count, self.raw.len());
            let message = format!("{count} elements of {width} bytes in {len} bytes");
            Error::corrupt_region("attribute", message)
        })?;
        Ok(bytes.chunks_exact(width))
    }

    fn references(&mut self, file: &FileBytes) -> Result<Vec<Reference>> {
        let all = self.of(file.widths.reference())?;
        all.flat_map(|bytes| Reference::all(bytes, file.widths)).collect()
    }
}

fn numbers(datatype: &Datatype, elements: &mut Elements<'_>) -> Result<Value> {
    let Ok(element) = number(datatype) else { return Ok(Value::Other("unusual numbers")) };
    let width = element.size() as usize;
    let is_big_endian = super::cell::is_big_endian(datatype);
    let bits = |bytes: &[u8]| integer(bytes, is_big_endian, false);
    let all = elements.of(width)?;
    Ok(Value::Plain(match element {
        ElementType::F16 => {
            let single = |bytes| half::f16::from_bits(bits(bytes) as u16).to_f32();
            Attribute::Singles(all.map(single).collect())
        }
        ElementType::F32 => {
            Attribute::Singles(all.map(|bytes| f32::from_bits(bits(bytes) as u32)).collect())
        }
        ElementType::F64 => {
            Attribute::Doubles(all.map(|bytes| f64::from_bits(bits(bytes) as u64)).collect())
        }
        _ => {
            let is_signed = !element.is_unsigned();
            Attribute::Integers(all.map(|at| integer(at, is_big_endian, is_signed)).collect())
        }
    }))
}

/// NetCDF-4 stores an empty text as an attribute without elements.
fn texts(mut all: Vec<String>) -> Value {
    if all.is_empty() {
        all.push(String::new());
    }
    Value::Plain(match <[String; 1]>::try_from(all) {
        Ok([text]) => Attribute::Text(text),
        Err(all) => Attribute::Texts(all),
    })
}

/// Returns a text without its padding. Bytes that are not UTF-8 are replaced.
fn trimmed(bytes: &[u8], padding: StringPadding) -> String {
    let bytes = match padding {
        StringPadding::NullTerminate => bytes.split(|&byte| byte == 0).next().unwrap_or_default(),
        StringPadding::NullPad => bytes,
        StringPadding::SpacePad => bytes.trim_ascii_end(),
    };
    String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned()
}

fn heap_text(file: &FileBytes, reference: &Reference, heaps: &mut Collections) -> Result<String> {
    if reference.is_empty(file.widths) {
        return Ok(String::new());
    }
    let collection = heaps.get(file, reference.address)?;
    Ok(trimmed(collection.value(reference, 1)?, StringPadding::NullTerminate))
}

/// Fails if the values of one attribute, or all attributes of an object, take more memory than any writer needs.
fn check_total(bytes: usize) -> Result<()> {
    /// 64 MiB.
    const MOST: usize = 1 << 26;
    match bytes <= MOST {
        true => Ok(()),
        false => Err(Error::unsupported(format!("attributes of more than {} MiB", MOST >> 20))),
    }
}

/// Returns the addresses in a list of references to objects.
fn objects(file: &FileBytes, reference: &Reference, heaps: &mut Collections) -> Result<Vec<u64>> {
    let width = file.widths.address;
    if reference.is_empty(file.widths) || width == 0 {
        return Ok(vec![]);
    }
    let collection = heaps.get(file, reference.address)?;
    let bytes = collection.value(reference, u64::from(width))?;
    let mut fields = Fields::new("attribute", reference.address, bytes);
    (0..bytes.len() / usize::from(width)).map(|_| fields.uint(width)).collect()
}
