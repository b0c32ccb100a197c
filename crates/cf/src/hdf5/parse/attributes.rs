//! Attributes of objects.

use hdf5_reader::btree_v2::BTreeV2Record;
use hdf5_reader::io::Cursor;
use hdf5_reader::messages::HdfMessage;
use hdf5_reader::messages::attribute_info::AttributeInfoMessage;
use hdf5_reader::messages::datatype::{self, Datatype};
use hdf5_reader::{ReferenceType, StringPadding, StringSize, VarLenKind};

use super::super::bits::Bits;
use super::super::file_bytes::{Fields, FileBytes};
use super::super::fractal_heap::FractalHeap;
use super::super::global_heap::{Collections, Reference};
use super::super::link::text;
use super::super::raw_header::{ATTRIBUTE, ATTRIBUTE_INFO, DATASPACE, DATATYPE, RawMessage};
use super::super::raw_type;
use super::super::shared::SharedMessages;
use super::cell::{integer, is_text_reference, number};
use super::converted;
use super::message::message;
use super::records::records;
use crate::hierarchy::{Attribute, attribute_text};
use gridfusion_core::format::ElementType;
use gridfusion_core::{Error, Result};

/// The name of the region in errors.
const REGION: &str = "attribute";

/// The value of an attribute.
#[derive(Debug, Clone)]
pub(in crate::hdf5) enum Value {
    /// Text or numbers.
    Plain(Attribute),
    /// Lists of addresses of objects, such as the dimension scales of each axis.
    Objects(Vec<Vec<u64>>),
    /// A value of another type, which it names.
    Other(&'static str),
    /// A value that cannot be read, with the reason.
    Unreadable(Error),
}

/// Reads all attributes of an object. One that cannot be read hides no other.
///
/// # Errors
/// If not even the names can be read.
pub(super) fn attributes(
    file: &FileBytes,
    messages: &[RawMessage],
    shared: &mut SharedMessages,
    heaps: &mut Collections,
) -> Result<Vec<(String, Value)>> {
    let (mut found, mut failed) = (vec![], Ok(()));
    for raw in messages {
        let read = match raw.kind {
            ATTRIBUTE => shared.resolved(file, raw).map(|bytes| found.push((raw.address, bytes))),
            ATTRIBUTE_INFO => match message(raw.kind, &raw.bytes, file.widths) {
                Ok(HdfMessage::AttributeInfo(info)) => dense(file, &info, shared, &mut found),
                Ok(_) => Ok(()),
                Err(error) => Err(error),
            },
            _ => Ok(()),
        };
        failed = failed.and(read);
    }
    failed?;
    let mut values = vec![];
    for (address, bytes) in found {
        let parts = Parts::read(address, &bytes)?;
        let read = parts.message(file, shared).and_then(|message| value(file, &message, heaps));
        values.push((parts.name, read.unwrap_or_else(Value::Unreadable)));
    }
    Ok(values)
}

/// Reads attributes from a heap, where objects with many attributes have them: their address and bytes.
fn dense(
    file: &FileBytes,
    info: &AttributeInfoMessage,
    shared: &mut SharedMessages,
    found: &mut Vec<(u64, bytes::Bytes)>,
) -> Result<()> {
    let (heap, index) = (info.fractal_heap_address, info.btree_name_index_address);
    if file.widths.is_undefined(heap) {
        return Ok(());
    }
    let (opened, records) = (FractalHeap::read(file, heap), records(file, index));
    let (mut opened, mut failed, mut total) = (opened?, Ok(()), 0);
    for record in records? {
        let BTreeV2Record::AttributeNameHash { heap_id, flags, .. } = record else {
            return Err(Fields::new(REGION, index, &[]).corrupt("it is not an index of names"));
        };
        let object = match flags & 2 {
            0 => opened.object(file, &heap_id),
            _ => shared.attribute(file, &heap_id),
        };
        match object {
            Ok(bytes) => {
                // Any number of records may name the same object.
                total += bytes.len();
                check_total(total)?;
                found.push((heap, bytes));
            }
            // The other objects are read too, so that all missing blocks are requested at once.
            Err(error) if file.blocks.has_missed() => failed = Err(error),
            Err(error) => return Err(error),
        }
    }
    failed
}

/// The parts of an attribute: IV.A.2.m "The Attribute Message".
struct Parts<'a> {
    name: String,
    address: u64,
    /// The type, and whether the bytes are its place.
    datatype: (&'a [u8], bool),
    dataspace: (&'a [u8], bool),
    raw: &'a [u8],
}

/// An attribute whose type and shape are known.
struct Message<'a> {
    datatype: Datatype,
    /// The bits of integers, unless they use all.
    bits: Option<Bits>,
    count: u64,
    raw: &'a [u8],
}

impl<'a> Parts<'a> {
    fn read(address: u64, bytes: &'a [u8]) -> Result<Self> {
        let mut fields = Fields::new(REGION, address, bytes);
        let (version, flags) = (fields.uint(1)?, fields.uint(1)?);
        if !(1..=3).contains(&version) {
            let message = format!("an attribute of version {version}, expected 1 to 3");
            return Err(Error::unsupported(message));
        }
        let lens = [fields.uint(2)?, fields.uint(2)?, fields.uint(2)?];
        if version == 3 {
            fields.take(1)?;
        }
        let [name, datatype, dataspace] = lens.map(|len| {
            let part = fields.take(len as usize)?;
            let padding = if version == 1 { len.wrapping_neg() & 7 } else { 0 };
            fields.take(padding as usize)?;
            Ok::<_, Error>(part)
        });
        // Version 1 has no flags.
        let is_shared = |bit: u64| version > 1 && flags & bit != 0;
        Ok(Self {
            name: text(name?),
            address,
            datatype: (datatype?, is_shared(1)),
            dataspace: (dataspace?, is_shared(2)),
            raw: bytes.get(fields.position()..).unwrap_or_default(),
        })
    }

    fn message(&self, file: &FileBytes, shared: &mut SharedMessages) -> Result<Message<'a>> {
        let mut part = |kind, (bytes, is_shared): (&[u8], bool)| match is_shared {
            true => shared.elsewhere(file, kind, self.address, bytes),
            false => Ok(bytes::Bytes::copy_from_slice(bytes)),
        };
        let (datatype, space) = (part(DATATYPE, self.datatype), part(DATASPACE, self.dataspace));
        let (raw_type, space) = (datatype?, space?);
        let datatype = datatype::parse(&mut Cursor::new(&raw_type), raw_type.len());
        let datatype = datatype.map_err(converted)?.datatype;
        let bits = raw_type::bits(&raw_type)?;
        let bits = bits.map_err(|kind| Error::unsupported(format!("its value is of {kind}")))?;
        let HdfMessage::Dataspace(space) = message(DATASPACE, &space, file.widths)? else {
            return Err(Error::internal("no dataspace"));
        };
        let count = space.num_elements();
        let count = count.map_err(|error| Error::corrupt_region(REGION, error.to_string()))?;
        Ok(Message { datatype, bits, count, raw: self.raw })
    }
}

/// Reads the value of an attribute.
fn value(file: &FileBytes, message: &Message<'_>, heaps: &mut Collections) -> Result<Value> {
    let mut elements = Elements { count: message.count, raw: message.raw };
    let used;
    if let Some(bits) = message.bits {
        let mut raw = message.raw.to_vec();
        bits.apply(&mut raw);
        used = raw;
        elements.raw = &used;
    }
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
            Error::corrupt_region(REGION, message)
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

/// Returns a text without its padding.
fn trimmed(bytes: &[u8], padding: StringPadding) -> String {
    let bytes = match padding {
        StringPadding::NullTerminate => bytes.split(|&byte| byte == 0).next().unwrap_or_default(),
        StringPadding::NullPad => bytes,
        StringPadding::SpacePad => bytes.trim_ascii_end(),
    };
    attribute_text(bytes)
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
    let mut fields = Fields::new(REGION, reference.address, bytes);
    (0..bytes.len() / usize::from(width)).map(|_| fields.uint(width)).collect()
}
