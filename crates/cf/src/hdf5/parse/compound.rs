//! Types of compounds: cells of several values.
//!
//! Format: HDF5 File Format Specification version 3.0, IV.A.2.d "The Datatype Message".
//!
//! ```text
//!   compound │ "station" 0 │ string │ "temp" 8 │ float │ "pos" 16 │ compound │ "x" 0 │ float │ …
//!              name, offset, type of each field, one after another
//! ```
//!
//! The fields are cut out here, and `cell` reads their types one by one: it also needs the bits of each number.

use hdf5_reader::messages::HdfMessage;

use super::super::field::{Change, Fix, HeapField, HeapItems, HeapPart, StoredFields};
use super::super::file_bytes::{Fields, Widths};
use super::super::filters::Trim;
use super::super::raw_header;
use super::super::raw_type;
use super::cell::{StoredCell, stored_cell};
use super::message::message;
use crate::hierarchy::{CellType, Record, RecordField};
use gridfusion_core::Result;
use gridfusion_core::format::ElementType;

/// Types in types, as deep as they are read.
const MOST_DEPTH: usize = 16;
/// The most bytes of a cell.
const MOST_WIDTH: u64 = 64 << 10;

/// The bytes of a reference to the heap, if addresses have 8 bytes: other references have no room for a place and a length.
const HEAP_REFERENCE: usize = 16;

/// Classes of types.
const COMPOUND: u8 = 6;
const REFERENCE: u8 = 7;
const ENUMERATION: u8 = 8;
const VARIABLE: u8 = 9;
const ARRAY: u8 = 10;

/// A value, or the reason why it cannot be read.
type Readable<T> = std::result::Result<T, String>;

/// Whether a datatype message describes a compound.
pub(super) fn is_compound(raw: &[u8]) -> bool {
    raw.first().is_some_and(|first| first & 15 == COMPOUND)
}

/// Returns the type of cells that are compounds; the reason if no field can be read.
///
/// # Errors
/// `Corrupt` if fields lie outside of the cell or overlap, types have no bytes, or the message ends too early.
pub(super) fn compound(raw: &[u8], widths: Widths) -> Result<Readable<StoredCell>> {
    let value = value(raw, widths, 0)?;
    Ok(value.map(|value| StoredCell {
        is_big_endian: value.is_reversed(),
        width: value.width,
        after_text: None,
        bits: None,
        multiples: None,
        fields: match value.cell {
            CellType::Record(_) => StoredFields { fixes: value.fixes, heap: value.heap },
            _ => StoredFields::default(),
        },
        cell: value.cell,
    }))
}

/// The type of a value in a cell.
struct StoredValue {
    cell: CellType,
    /// Bytes in the cell.
    width: u64,
    fixes: Vec<Fix>,
    /// The references to values in the heap.
    parts: Vec<HeapPart>,
    /// The references of each field of a record.
    heap: Vec<Option<HeapField>>,
}

impl StoredValue {
    /// Whether all words are big-endian.
    fn is_reversed(&self) -> bool {
        matches!(self.fixes.as_slice(), [Fix { change: Change::Reverse(_), .. }, ..])
    }
}

/// The head of a description of a type.
struct Head<'a> {
    class: u8,
    version: u8,
    flags: u64,
    size: u64,
    fields: Fields<'a>,
}

impl<'a> Head<'a> {
    fn new(raw: &'a [u8]) -> Result<Self> {
        let mut fields = Fields::new("datatype", 0, raw);
        let first = fields.uint(1)?;
        let (flags, size) = (fields.uint(3)?, fields.uint(4)?);
        Ok(Self { class: (first & 15) as u8, version: (first >> 4) as u8, flags, size, fields })
    }

    /// Returns the lengths of an array. Its base type follows.
    fn lengths(&mut self) -> Result<Vec<u64>> {
        let rank = self.fields.uint(1)?;
        if self.version < 3 {
            self.fields.take(3)?;
        }
        let lengths = (0..rank).map(|_| self.fields.uint(4)).collect::<Result<Vec<_>>>()?;
        if self.version < 3 {
            self.fields.take(4 * rank as usize)?;
        }
        Ok(lengths)
    }
}

/// A field of a compound, and the description of its type.
struct Member<'a> {
    name: String,
    offset: u64,
    raw: &'a [u8],
    /// Whether it is an array of version 1, whose lengths stand before its type.
    is_old_array: bool,
}

/// Returns the number of bytes that describe the type that begins in `raw`.
fn described(raw: &[u8], depth: usize) -> Result<usize> {
    let mut head = Head::new(raw)?;
    if depth > MOST_DEPTH {
        let message = format!("types in more than {MOST_DEPTH} types");
        return Err(gridfusion_core::Error::unsupported(message));
    }
    let inner = |fields: &mut Fields<'_>| -> Result<()> {
        let at = fields.position();
        let len = described(raw.get(at..).unwrap_or_default(), depth + 1)?;
        fields.take(len).map(|_| ())
    };
    match head.class {
        0 | 4 => _ = head.fields.take(4)?,
        1 => _ = head.fields.take(12)?,
        2 => _ = head.fields.take(2)?,
        3 | REFERENCE => {}
        5 => _ = head.fields.take((head.flags as usize & 0xff).next_multiple_of(8))?,
        COMPOUND => {
            members(&mut head, raw, depth)?;
        }
        ENUMERATION => {
            inner(&mut head.fields)?;
            let count = head.flags & 0xffff;
            for _ in 0..count {
                name(&mut head.fields, raw, head.version)?;
            }
            head.fields.take((count * head.size) as usize)?;
        }
        VARIABLE => inner(&mut head.fields)?,
        ARRAY => {
            head.lengths()?;
            inner(&mut head.fields)?;
        }
        class => {
            let message = format!("the class {class} of types of HDF5");
            return Err(gridfusion_core::Error::unsupported(message));
        }
    }
    Ok(head.fields.position())
}

/// Takes a name, which ends with a zero and, before version 3, at a multiple of 8 bytes.
fn name(fields: &mut Fields<'_>, raw: &[u8], version: u8) -> Result<String> {
    let rest = raw.get(fields.position()..).unwrap_or_default();
    let Some(len) = rest.iter().position(|byte| *byte == 0) else {
        return Err(fields.corrupt("a name without an end"));
    };
    let text = String::from_utf8_lossy(fields.take(len)?).into_owned();
    let end = if version < 3 { (len + 1).next_multiple_of(8) } else { len + 1 };
    fields.take(end - len)?;
    Ok(text)
}

/// Takes the fields of a compound.
fn members<'a>(head: &mut Head<'a>, raw: &'a [u8], depth: usize) -> Result<Vec<Member<'a>>> {
    let offset_width = match head.version {
        0..3 => 4,
        _ => (1..=4).find(|width| head.size >> (8 * width) == 0).unwrap_or(4) as u8,
    };
    let mut members = vec![];
    for _ in 0..head.flags & 0xffff {
        let name = name(&mut head.fields, raw, head.version)?;
        let offset = head.fields.uint(offset_width)?;
        let mut is_old_array = false;
        if head.version < 2 {
            is_old_array = head.fields.uint(1)? > 0;
            head.fields.take(27)?;
        }
        let at = head.fields.position();
        let len = described(raw.get(at..).unwrap_or_default(), depth + 1)?;
        members.push(Member { name, offset, raw: head.fields.take(len)?, is_old_array });
    }
    Ok(members)
}

/// Returns the type of a value; the reason if it cannot be read.
fn value(raw: &[u8], widths: Widths, depth: usize) -> Result<Readable<StoredValue>> {
    let head = Head::new(raw)?;
    match head.class {
        COMPOUND => record(head, raw, widths, depth),
        ARRAY => array(head, raw, widths, depth),
        VARIABLE => list(&head, raw, widths, depth),
        _ => leaf(raw, widths),
    }
}

/// Returns the type of a value that is no list and no record.
fn leaf(raw: &[u8], widths: Widths) -> Result<Readable<StoredValue>> {
    let datatype = match message(raw_header::DATATYPE, raw, widths)? {
        HdfMessage::Datatype(datatype) => datatype,
        _ => return Err(gridfusion_core::Error::internal("no datatype")),
    };
    let bits = raw_type::bits(raw)?;
    let stored = match bits.and_then(|bits| stored_cell(&datatype, bits, widths)) {
        Ok(stored) => stored,
        Err(why) => return Ok(Err(why)),
    };
    let bytes = 0..stored.width as usize;
    let mut changes = vec![];
    changes.extend(stored.bits.map(Change::Bits));
    changes.extend(stored.multiples.map(Change::Multiply));
    if stored.is_big_endian {
        changes.push(Change::Reverse(stored.cell.word() as usize));
    }
    let trim = |after| Change::Trim(Trim { width: stored.width as usize, after });
    changes.extend(stored.after_text.map(trim));
    let fixes = changes.into_iter().map(|change| Fix { bytes: bytes.clone(), change }).collect();
    let is_text = stored.cell == CellType::Text;
    let part = is_text.then_some(HeapPart { offset: 0, items: HeapItems::TEXT });
    let parts = part.into_iter().collect();
    Ok(Ok(StoredValue { cell: stored.cell, width: stored.width, fixes, parts, heap: vec![] }))
}

/// Returns the type of a list of any length.
fn list(
    head: &Head<'_>,
    raw: &[u8],
    widths: Widths,
    depth: usize,
) -> Result<Readable<StoredValue>> {
    const IS_TEXT: u64 = 1;
    if head.flags & 15 == IS_TEXT {
        return leaf(raw, widths);
    }
    let base = raw.get(head.fields.position()..).unwrap_or_default();
    let item = match value(base, widths, depth + 1)? {
        Ok(item) => item,
        Err(why) => return Ok(Err(format!("lists of {why}"))),
    };
    let is_scalar = matches!(
        item.cell,
        CellType::Number(_) | CellType::Boolean | CellType::TimePoint(_) | CellType::TimeSpan(_)
    );
    let is_big_endian = match item.fixes.as_slice() {
        [] => false,
        [Fix { change: Change::Reverse(_), .. }] => true,
        _ => return Ok(Err(format!("lists of {} with fewer bits", item.cell))),
    };
    if !is_scalar || head.size != widths.reference() as u64 {
        return Ok(Err(format!("lists of {}", item.cell)));
    }
    let items = HeapItems { width: item.width, is_text: false, is_big_endian };
    Ok(Ok(StoredValue {
        cell: CellType::List(Box::new(item.cell)),
        width: head.size,
        fixes: vec![],
        parts: vec![HeapPart { offset: 0, items }],
        heap: vec![],
    }))
}

/// Returns the type of an array of a fixed shape, as a list in row-major order.
fn array(
    mut head: Head<'_>,
    raw: &[u8],
    widths: Widths,
    depth: usize,
) -> Result<Readable<StoredValue>> {
    let lengths = head.lengths()?;
    let base = raw.get(head.fields.position()..).unwrap_or_default();
    let item = match value(base, widths, depth + 1)? {
        Ok(item) => item,
        Err(why) => return Ok(Err(format!("arrays of {why}"))),
    };
    let count = lengths.iter().try_fold(1_u64, |all, len| all.checked_mul(*len));
    let bytes = count.and_then(|count| count.checked_mul(item.width));
    if bytes != Some(head.size) {
        let message = format!("an array of {lengths:?} in {} bytes", head.size);
        return Err(head.fields.corrupt(message));
    }
    if !item.parts.is_empty() && widths.reference() != HEAP_REFERENCE {
        return Ok(Err(format!("arrays of {} in a file of short addresses", item.cell)));
    }
    let count = count.filter(|_| (1..=MOST_WIDTH).contains(&head.size));
    let Some(count) = count.and_then(|count| u32::try_from(count).ok()) else {
        return Ok(Err(format!("arrays of {} bytes", head.size)));
    };
    let width = item.width as usize;
    let is_whole = item.fixes.iter().all(|fix| fix.bytes == (0..width));
    let fixes = match is_whole {
        // One change of all items.
        true => item
            .fixes
            .iter()
            .map(|fix| Fix { bytes: 0..head.size as usize, ..fix.clone() })
            .collect(),
        false => {
            let at =
                |number: u32| item.fixes.iter().map(move |fix| fix.at(number as usize * width));
            (0..count).flat_map(at).collect()
        }
    };
    let parts = |number: u32| item.parts.iter().map(move |it| it.at(number as usize * width));
    let parts = match item.parts.is_empty() {
        true => vec![],
        false => (0..count).flat_map(parts).collect(),
    };
    let cell = CellType::Array(Box::new(item.cell), count);
    Ok(Ok(StoredValue { cell, width: head.size, fixes, parts, heap: vec![] }))
}

/// Returns the value of a member of `size` bytes.
fn value_of(
    member: &Member<'_>,
    size: u64,
    widths: Widths,
    depth: usize,
) -> Result<Readable<StoredValue>> {
    let value = match member.is_old_array {
        true => Err("arrays of version 1".to_owned()),
        false => value(member.raw, widths, depth + 1)?,
    };
    Ok(value.and_then(|value| match (value.width == size, depth) {
        (false, _) => Err(format!("{} in {size} bytes", value.cell)),
        (true, 1..) if !value.parts.is_empty() && widths.reference() != HEAP_REFERENCE => {
            Err(format!("{} within another compound in a file of short addresses", value.cell))
        }
        (true, _) => Ok(value),
    }))
}

/// Returns the type of a compound: a record, or a complex number.
fn record<'a>(
    mut head: Head<'a>,
    raw: &'a [u8],
    widths: Widths,
    depth: usize,
) -> Result<Readable<StoredValue>> {
    let width = head.size;
    let members = members(&mut head, raw, depth)?;
    if width == 0 {
        return Err(head.fields.corrupt("a compound of 0 bytes"));
    }
    if width > MOST_WIDTH {
        return Ok(Err(format!("compounds of {width} bytes")));
    }
    let names: Vec<String> = members.iter().take(8).map(|member| member.name.clone()).collect();
    let (mut fields, mut left_out, mut taken) = (vec![], vec![], vec![]);
    let (mut fixes, mut parts, mut heap) = (vec![], vec![], vec![]);
    for member in members {
        let size = Head::new(member.raw)?.size;
        let end = member.offset.checked_add(size).filter(|end| *end <= width);
        let Some(end) = end else {
            let (name, offset) = (&member.name, member.offset);
            let message = format!("the field {name:?} of {size} bytes at byte {offset} of {width}");
            return Err(head.fields.corrupt(message));
        };
        taken.push((member.offset, end));
        let value = match value_of(&member, size, widths, depth)? {
            Ok(value) => value,
            Err(why) => {
                left_out.push((member.name, why));
                continue;
            }
        };
        if let CellType::Record(inner) = &value.cell {
            let within =
                |(name, why): &(String, String)| (format!("{}.{name}", member.name), why.clone());
            left_out.extend(inner.left_out.iter().map(within));
        }
        let offset = member.offset as usize;
        fixes.extend(value.fixes.iter().map(|fix| fix.at(offset)));
        parts.extend(value.parts.iter().map(|part| part.at(offset)));
        heap.push((!value.parts.is_empty()).then(|| HeapField {
            bytes: offset..offset + size as usize,
            is_single: value.cell.width().is_none() && !matches!(value.cell, CellType::Array(..)),
            parts: value.parts.into(),
        }));
        fields.push(RecordField::new(member.name, member.offset as u32, value.cell));
    }
    taken.sort_unstable();
    if let Some([one, next]) = taken.array_windows().find(|[one, next]| one.1 > next.0) {
        let message = format!("fields at bytes {one:?} and {next:?}, which overlap");
        return Err(head.fields.corrupt(message));
    }
    if let Some(complex) = complex(&fields, &fixes, &left_out, width) {
        return Ok(Ok(complex));
    }
    if fields.is_empty() {
        return Ok(Err(format!("compounds ({})", names.join(", "))));
    }
    let record = Record::new(width as u32, fields, left_out);
    Ok(Ok(StoredValue { cell: CellType::Record(record.into()), width, fixes, parts, heap }))
}

/// Returns the complex number that a compound of two floats is: h5py calls them `r` and `i`, and MATLAB `real` and `imag`.
fn complex(
    fields: &[RecordField],
    fixes: &[Fix],
    left_out: &[(String, String)],
    width: u64,
) -> Option<StoredValue> {
    let [real, imaginary] = fields else { return None };
    let names = (real.name.as_str(), imaginary.name.as_str());
    let CellType::Number(element @ (ElementType::F16 | ElementType::F32 | ElementType::F64)) =
        real.cell
    else {
        return None;
    };
    let size = element.size();
    let is_complex = matches!(names, ("r", "i") | ("real", "imag"))
        && real.cell == imaginary.cell
        && left_out.is_empty()
        && (real.offset, u64::from(imaginary.offset), width) == (0, size, 2 * size);
    // Both or none are reversed.
    if !is_complex || fixes.len() == 1 {
        return None;
    }
    let fixes = fixes.first().map(|fix| Fix { bytes: 0..width as usize, ..fix.clone() });
    Some(StoredValue {
        cell: CellType::Complex(element),
        width,
        fixes: fixes.into_iter().collect(),
        parts: vec![],
        heap: vec![],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDTHS: Widths = Widths { base: 0, address: 8, length: 8 };
    /// A little-endian integer of 4 bytes.
    const INTEGER: [u8; 12] = [0x10, 8, 0, 0, 4, 0, 0, 0, 0, 0, 32, 0];

    /// Returns the description of a compound of version 3 with a field `a`, and of `size` bytes.
    fn with_field(size: u32, field: &[u8]) -> Vec<u8> {
        let head = [&[0x36, 1, 0, 0][..], &size.to_le_bytes()].concat();
        [&head[..], b"a\0\0", field].concat()
    }

    /// Returns the description of an array of version 3.
    fn array_of(size: u32, lengths: &[u32], item: &[u8]) -> Vec<u8> {
        let lens: Vec<u8> = lengths.iter().flat_map(|it| it.to_le_bytes()).collect();
        let head = [&[0x3a, 0, 0, 0][..], &size.to_le_bytes(), &[lengths.len() as u8]].concat();
        [&head[..], &lens, item].concat()
    }

    fn read(raw: &[u8]) -> std::result::Result<CellType, String> {
        let read = compound(raw, WIDTHS).map_err(|error| {
            assert_eq!(error.kind(), gridfusion_core::ErrorKind::Corrupt, "{error}");
            error.to_string()
        });
        read.and_then(|it| it.map(|it| it.cell).map_err(|why| format!("left out: {why}")))
    }

    #[test]
    fn types_without_bytes_are_corrupt() {
        let cell = read(&with_field(4, &INTEGER)).unwrap();
        assert_eq!(cell.to_string(), "compound (a: i32)");
        let flags = read(&with_field(8, &array_of(8, &[2], &INTEGER))).unwrap();
        assert_eq!(flags.to_string(), "compound (a: array of 2 i32)");
        let empty = [0x36, 0, 0, 0, 0, 0, 0, 0];
        let opaque = [0x35, 0, 0, 0, 0, 0, 0, 0];
        for (raw, expected) in [
            (empty.to_vec(), "a compound of 0 bytes"),
            (with_field(0, &opaque), "a compound of 0 bytes"),
            (with_field(4, &empty), "a compound of 0 bytes"),
            (with_field(4, &array_of(0, &[u32::MAX, 9], &empty)), "a compound of 0 bytes"),
            (with_field(4, &array_of(4, &[2], &INTEGER)), "an array of [2] in 4 bytes"),
        ] {
            let error = read(&raw).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
