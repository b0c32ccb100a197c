//! Compounds: a column per field.
//!
//! ```text
//!   decoded   ├─ station ─┤├ temp ┤├─ pos ─┤├─ station ─┤├ temp ┤├─ pos ─┤      value 1: temp temp
//! ```
//!
//! | field | column |
//! |---|---|
//! | numbers, times, text, bytes, enumerations | as a variable of that type without attributes |
//! | compounds, complex numbers | structs |
//! | arrays | lists of fixed length, in row-major order |
//! | lists of any length | lists |

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use super::options::HierarchyView;
use super::values::{kind, plain_column, value};
use crate::hierarchy::{Attributes, CellType, Record, RecordField, Variable};
use gridfusion_core::Result;
use gridfusion_core::array::{CellColumn, CellKind, Remarks, Scalar, StructField, Temporal, Value};
use gridfusion_core::error::Error;
use gridfusion_core::format::{Codec, DecodedPayload, PayloadDecoder, Scratch, StoredChunk};

/// Returns a value per field. Attributes describe the variable as a whole, so they do not change the values.
pub(super) fn columns(
    variable: &Variable,
    record: &Record,
    view: &HierarchyView,
    remarks: &mut Remarks,
) -> Vec<Value> {
    for (name, why) in &record.left_out {
        remarks.odd.push(format!("the field \"{name}\" is left out: its values are {why}"));
    }
    let of_text = variable.attributes.get("_Encoding").cloned();
    let of_text: Arc<Attributes> =
        Arc::new(of_text.map(|it| ("_Encoding".to_owned(), it)).into_iter().collect());
    let mut column = |field: &RecordField| {
        let mut own = Variable::new(
            variable.path.clone(),
            variable.axes.clone(),
            field.cell.clone(),
            field.of(&variable.fill).unwrap_or_default().to_vec(),
        );
        own.attributes = Arc::clone(&of_text);
        let column = plain_column(&own, view, remarks);
        let width = field.cell.width().map(|width| width as usize);
        value(field.name.clone(), column, width, own.fill.clone(), variable, view)
    };
    record.fields.iter().map(&mut column).collect()
}

/// Returns the cells of fields of several values: structs and lists.
pub(super) fn composite(
    cell: &CellType,
    variable: &Variable,
    view: &HierarchyView,
    remarks: &mut Remarks,
) -> Option<CellKind> {
    let mut inner = |cell: &CellType| {
        let kind = kind(cell, variable, view, remarks);
        CellColumn::new(kind, false, vec![]).with_missing_items(view.read.nan_as_null)
    };
    Some(match cell {
        CellType::Record(record) => {
            let field = |it: &RecordField| StructField {
                name: it.name.clone(),
                offset: it.offset,
                column: inner(&it.cell),
            };
            CellKind::Struct(record.fields.iter().map(field).collect(), record.width)
        }
        CellType::Complex(element) => {
            let mut half = |(name, offset): (&str, u32)| StructField {
                name: name.to_owned(),
                offset,
                column: inner(&CellType::Number(*element)),
            };
            let size = element.size() as u32;
            CellKind::Struct([("re", 0), ("im", size)].map(&mut half).into(), 2 * size)
        }
        CellType::Array(item, len) => match (inner(item), scalar(item)) {
            (_, Some(scalar)) => CellKind::FixedList(scalar, *len),
            (item, None) => CellKind::FixedItems(Box::new(item), *len),
        },
        CellType::List(item) => CellKind::List(scalar(item)?),
        _ => return None,
    })
}

fn scalar(cell: &CellType) -> Option<Scalar> {
    Some(match cell {
        CellType::Number(element) => Scalar::Number(*element),
        CellType::Boolean => Scalar::Boolean,
        CellType::TimePoint(unit) => Scalar::Temporal(Temporal::Point(*unit)),
        CellType::TimeSpan(unit) => Scalar::Temporal(Temporal::Length(*unit)),
        _ => return None,
    })
}

/// Returns a chunk of records with only one of their fields, for each field. A field in a heap has none.
pub(super) fn fields<'a>(
    chunk: &StoredChunk,
    record: &Record,
    wanted: impl Iterator<Item = &'a RecordField>,
) -> Vec<StoredChunk> {
    let mut whole = chunk.clone();
    let mut codecs: Vec<(Arc<Codec>, u64)> = vec![];
    for payload in whole.layers.iter_mut().flat_map(|layer| layer.payloads_mut()) {
        let codec = std::mem::replace(&mut payload.codec, Codec::Raw);
        codecs.push((Arc::new(codec), payload.raw_len));
    }
    let of_field = |field: &RecordField| {
        let mut chunk = whole.clone();
        let payloads = chunk.layers.iter_mut().flat_map(|layer| layer.payloads_mut());
        for (payload, (whole, raw_len)) in payloads.zip(&codecs) {
            let width = field.cell.width().unwrap_or_default();
            let records = raw_len / u64::from(record.width.max(1));
            payload.raw_len = records * width;
            payload.codec = Codec::Custom(Arc::new(FieldOf {
                whole: Arc::clone(whole),
                record: record.width as usize,
                offset: field.offset as usize,
                width: width as usize,
            }));
        }
        chunk
    };
    wanted.map(of_field).collect()
}

/// Decodes records, and keeps one field of each.
#[derive(Debug)]
struct FieldOf {
    /// The codec of the records, which all fields of a chunk share.
    whole: Arc<Codec>,
    /// Bytes of a record.
    record: usize,
    offset: usize,
    /// Bytes of the field.
    width: usize,
}

/// The records that were decoded last: other fields of the same chunk are mostly decoded next.
#[derive(Default)]
struct LastRecords(Option<(Arc<Codec>, Bytes, Bytes)>);

/// Records of more bytes are decoded again for each field, instead of being kept.
const MOST_KEPT: usize = 64 << 20;

impl fmt::Display for FieldOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.whole.fmt(f)
    }
}

impl FieldOf {
    /// Returns the decoded records.
    fn records(
        &self,
        stored: &Bytes,
        len: u64,
        offset: u64,
        scratch: &mut Scratch,
    ) -> Result<Bytes> {
        if self.whole.is_raw() {
            return Ok(self.whole.decode(stored.clone(), len, offset, vec![], scratch)?.bytes);
        }
        let same = |it: &Bytes| (it.as_ptr(), it.len()) == (stored.as_ptr(), stored.len());
        let known = scratch.lend(|last: &mut LastRecords| match last.0.take() {
            // The bytes that are kept cannot be those of another chunk at the same place in memory.
            Some((codec, from, records)) if Arc::ptr_eq(&codec, &self.whole) && same(&from) => {
                last.0 = Some((codec, from, records.clone()));
                Some(records)
            }
            _ => None,
        });
        if let Some(known) = known {
            return Ok(known);
        }
        let records = self.whole.decode(stored.clone(), len, offset, vec![], scratch)?.bytes;
        if records.len() <= MOST_KEPT {
            let kept = (Arc::clone(&self.whole), stored.clone(), records.clone());
            scratch.lend(|last: &mut LastRecords| last.0 = Some(kept));
        }
        Ok(records)
    }
}

impl PayloadDecoder for FieldOf {
    fn held_bytes(&self) -> Option<u64> {
        self.whole.held_bytes()
    }

    fn decode(
        &self,
        stored: &Bytes,
        raw_len: u64,
        offset: u64,
        mut spare: Vec<u8>,
        scratch: &mut Scratch,
    ) -> Result<DecodedPayload> {
        let count = raw_len / (self.width.max(1) as u64);
        let len = count.checked_mul(self.record as u64);
        let len = len.ok_or_else(|| Error::internal("a chunk of more than 2^63 bytes"))?;
        let records = self.records(stored, len, offset, scratch)?;
        spare.clear();
        spare.reserve(records.len() / self.record.max(1) * self.width);
        for record in records.chunks_exact(self.record.max(1)) {
            let field = record.get(self.offset..).and_then(|rest| rest.get(..self.width));
            let field = field.ok_or_else(|| Error::internal("a field outside of its record"))?;
            spare.extend_from_slice(field);
        }
        Ok(DecodedPayload::new(spare.into(), None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gridfusion_core::format::codecs::{Pipeline, Step};
    use gridfusion_core::format::{ByteRange, ElementType, Layer, Location, Payload};

    #[test]
    fn each_field_has_its_bytes_of_each_record() {
        let number = |name: &str, offset, element| {
            RecordField::new(name.to_owned(), offset, CellType::Number(element))
        };
        let all = vec![number("b", 4, ElementType::I16), number("a", 0, ElementType::I32)];
        let record = Record::new(8, all, vec![]);
        for codec in [Codec::Raw, Pipeline::codec(vec![Step::Shuffle { element: 8 }])] {
            let records: Vec<u8> = (0..24).collect();
            let stored: Bytes = match codec.is_raw() {
                true => records.clone().into(),
                false => (0..8).flat_map(|byte| [byte, 8 + byte, 16 + byte]).collect(),
            };
            let at = Location::new("c/0", ByteRange::Whole);
            let chunk = StoredChunk::new(vec![Layer::whole(Payload::new(at, 24, codec))]);
            let mut scratch = Scratch::default();
            let chunks = fields(&chunk, &record, record.fields.iter());
            let mut decoded = |field: usize, stored: &Bytes| {
                let payload = &chunks[field].layers[0].values;
                payload.decode(stored.clone(), vec![9; 3], &mut scratch).map(|it| it.bytes)
            };
            for _ in 0..2 {
                assert_eq!(decoded(0, &stored).unwrap(), [4, 5, 12, 13, 20, 21][..]);
                let expected = [0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19];
                assert_eq!(decoded(1, &stored).unwrap(), expected[..]);
            }
            // Other bytes are not taken for those that were decoded before.
            let zeros = Bytes::from(vec![0; 24]);
            assert_eq!(decoded(0, &zeros).unwrap(), [0; 6][..]);
            assert!(decoded(0, &stored.slice(..16)).is_err());
        }
    }
}
