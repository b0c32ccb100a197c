//! Evaluates the conditions of deletes over decoded cells.
//!
//! A condition is true for the cells that remain. A comparison with NULL is false, and so is one with a field
//! that the fragment lacks. Such cells are deleted, unless another part of an OR is true:
//!
//! ```text
//!   delete        the file keeps      cells             remain
//!   n > 4         n <= 4              1, NULL, 5        1
//!   f > 1.5       f <= 1.5            1, NaN, 2         1
//!   f = 1.5       f <> 1.5            1, NaN, 1.5       1, NaN
//! ```
//!
//! | cells | comparison |
//! |---|---|
//! | one number, date or truth value | numbers |
//! | text and bytes, of fixed or any length | byte by byte; a shorter prefix is smaller |
//! | any, with an empty value | a test for NULL; for text of any length, empty text |
//! | any, with a list | equal bytes, so 0.0 is not in the list (-0.0) |
//!
//! Two rules are TileDB's alone. A comparison with a missing field makes an OR forget its earlier parts. Cells
//! of type CHAR with a fixed length are compared by their first byte, as a signed number.
//!
//! TileDB 2.30 cannot read an array after a test for NULL of cells of fixed length; here it is evaluated.

use std::ops::Range;

use arrow::buffer::BooleanBuffer;

use crate::bytes::{Comparison, Condition, Datatype};
use crate::columns::element;
use gridfusion_core::array::{Element, ElementVisitor, visit_element_type};
use gridfusion_core::format::{ElementType, bound};
use gridfusion_core::{Error, Result};

/// The decoded cells of one field, to be compared.
pub(super) struct Operand<'a> {
    pub(super) datatype: Datatype,
    pub(super) cells: OperandCells<'a>,
    /// One byte per cell, 0 for NULL; absent if no cell can be NULL.
    pub(super) validity: Option<&'a [u8]>,
}

/// The bytes of cells, in the layouts of [`TileData`](gridfusion_core::tile::Tile).
pub(super) enum OperandCells<'a> {
    /// Little-endian cells of `width` bytes, at any alignment.
    Fixed { bytes: &'a [u8], width: usize },
    /// For each cell, its range of bytes in `content`.
    Variable { spans: &'a [Range<u64>], content: &'a [u8] },
}

const REGION: &str = "delete condition";

/// Returns a bit per cell: whether the condition is true. `operand` returns the cells of a field, or `None`
/// if the schema of the fragment lacks it. `later` are cells that were written after the deletion: they remain,
/// as if they were the first part of an OR.
///
/// # Errors
/// `Corrupt` for values that do not fit the type of their field. `Unsupported` for fields that TileDB does not
/// compare. `Internal` for operands that do not have `cells` cells.
pub(super) fn evaluate<'a>(
    condition: &Condition,
    cells: usize,
    operand: &dyn Fn(&str) -> Option<&'a Operand<'a>>,
    later: Option<BooleanBuffer>,
) -> Result<BooleanBuffer> {
    let evaluation = Evaluation { cells, operand };
    match (later, condition) {
        (None, condition) => evaluation.evaluate(condition),
        (Some(later), Condition::Or(parts)) => evaluation.any(later, parts),
        (Some(later), part) => evaluation.any(later, std::slice::from_ref(part)),
    }
}

/// The arguments of [`evaluate`], for all nodes of a tree.
struct Evaluation<'f, 'a> {
    cells: usize,
    operand: &'f dyn Fn(&str) -> Option<&'a Operand<'a>>,
}

impl<'a> Evaluation<'_, 'a> {
    fn evaluate(&self, condition: &Condition) -> Result<BooleanBuffer> {
        match condition {
            Condition::And(parts) => {
                let mut all = BooleanBuffer::new_set(self.cells);
                for part in parts {
                    all = &all & &self.evaluate(part)?;
                }
                Ok(all)
            }
            Condition::Or(parts) => self.any(BooleanBuffer::new_unset(self.cells), parts),
            Condition::Not(part) => self.evaluate(part).map(|bits| !&bits),
            Condition::Constant(true) => Ok(BooleanBuffer::new_set(self.cells)),
            Condition::Constant(false) => Ok(BooleanBuffer::new_unset(self.cells)),
            Condition::Compare { field, op, value } => {
                self.test(field, |operand| operand.compare(self.cells, *op, value))
            }
            Condition::In { field, values, negated } => {
                self.test(field, |operand| operand.is_in(self.cells, values, *negated))
            }
        }
    }

    /// Returns the cells of `any`, and those for which one of `parts` is true.
    fn any(&self, mut any: BooleanBuffer, parts: &[Condition]) -> Result<BooleanBuffer> {
        for part in parts {
            any = match part {
                Condition::Compare { field, .. } | Condition::In { field, .. }
                    if (self.operand)(field).is_none() =>
                {
                    BooleanBuffer::new_unset(self.cells)
                }
                part => &any | &self.evaluate(part)?,
            };
        }
        Ok(any)
    }

    /// Tests a field; false for all cells if there is no such field. Errors name the field.
    fn test(
        &self,
        field: &str,
        test: impl FnOnce(&Operand<'a>) -> Result<BooleanBuffer>,
    ) -> Result<BooleanBuffer> {
        match (self.operand)(field) {
            Some(operand) => {
                operand.check(self.cells)?;
                test(operand).map_err(|error| error.about(&format!("field \"{field}\"")))
            }
            None => Ok(BooleanBuffer::new_unset(self.cells)),
        }
    }
}

impl<'a> Operand<'a> {
    /// Fails unless there are `cells` cells, which lie in their bytes.
    fn check(&self, cells: usize) -> Result<()> {
        let fits = match &self.cells {
            OperandCells::Fixed { bytes, width } => bytes.len() == cells.saturating_mul(*width),
            OperandCells::Variable { spans, content } => {
                let len = content.len() as u64;
                spans.len() == cells
                    && spans.iter().all(|span| span.start <= span.end && span.end <= len)
            }
        };
        if fits && self.validity.is_none_or(|validity| validity.len() == cells) {
            return Ok(());
        }
        Err(Error::internal(format!("an operand that does not have {cells} cells")))
    }

    /// Compares all cells with `value`.
    fn compare(&self, cells: usize, op: Comparison, value: &[u8]) -> Result<BooleanBuffer> {
        let is_text = is_text(self.datatype);
        let may_be_empty = is_text && matches!(self.cells, OperandCells::Variable { .. });
        if value.is_empty() && !may_be_empty {
            return self.test_null(cells, op);
        }
        let first = |bytes: &[u8]| bytes.first().map_or(0, |byte| byte.cast_signed());
        let is_fixed = matches!(self.cells, OperandCells::Fixed { .. });
        let bits = if self.datatype == Datatype::Char && is_fixed {
            tested(cells, op, first(value), |at| first(self.cell(at)))
        } else if is_text {
            tested(cells, op, value, |at| self.cell(at))
        } else {
            self.compare_numbers(cells, op, value)?
        };
        Ok(self.and_valid(bits))
    }

    fn compare_numbers(&self, cells: usize, op: Comparison, value: &[u8]) -> Result<BooleanBuffer> {
        let datatype = self.datatype;
        let size = datatype.size() as usize;
        match (number(datatype), &self.cells) {
            (Some(element), OperandCells::Fixed { bytes, width }) if *width == size => {
                if value.len() != size {
                    return Err(wrong_length(value, size));
                }
                Ok(visit_element_type(element, CompareNumbers { cells, op, value, bytes }))
            }
            (Some(_), _) => {
                Err(Error::unsupported(format!("comparing cells of several {datatype}")))
            }
            (None, _) => Err(Error::unsupported(format!("comparing cells of type {datatype}"))),
        }
    }

    /// Returns whether each cell is NULL, or is not NULL. TileDB stores such tests as comparisons with an
    /// empty value.
    fn test_null(&self, cells: usize, op: Comparison) -> Result<BooleanBuffer> {
        match op {
            Comparison::Equal => Ok(!&self.valid(cells)),
            Comparison::NotEqual => Ok(self.valid(cells)),
            _ => Err(Error::corrupt_region(REGION, "an empty value, which has no order")),
        }
    }

    /// Looks up all cells in a list.
    fn is_in(&self, cells: usize, values: &[Vec<u8>], negated: bool) -> Result<BooleanBuffer> {
        if let OperandCells::Fixed { width, .. } = self.cells
            && let Some(value) = values.iter().find(|value| value.len() != width)
        {
            return Err(wrong_length(value, width));
        }
        let mut members: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
        members.sort_unstable();
        let is_member = |at: usize| members.binary_search(&self.cell(at)).is_ok();
        Ok(self.and_valid(BooleanBuffer::collect_bool(cells, |at| is_member(at) != negated)))
    }

    /// Returns the bytes of a cell.
    fn cell(&self, at: usize) -> &'a [u8] {
        let cell = match self.cells {
            OperandCells::Fixed { bytes, width } => bytes.get(at * width..(at + 1) * width),
            OperandCells::Variable { spans, content } => {
                spans.get(at).and_then(|span| content.get(span.start as usize..span.end as usize))
            }
        };
        // All cells were found by `check`.
        cell.unwrap_or_default()
    }

    /// Returns whether each cell is not NULL.
    fn valid(&self, cells: usize) -> BooleanBuffer {
        match self.validity {
            Some(validity) => BooleanBuffer::collect_bool(cells, |at| validity[at] != 0),
            None => BooleanBuffer::new_set(cells),
        }
    }

    /// Unsets the bits of cells that are NULL.
    fn and_valid(&self, bits: BooleanBuffer) -> BooleanBuffer {
        match self.validity {
            Some(_) => &bits & &self.valid(bits.len()),
            None => bits,
        }
    }
}

/// Whether cells are compared byte by byte. TileDB refuses conditions on text in other encodings.
fn is_text(datatype: Datatype) -> bool {
    matches!(datatype, Datatype::Char | Datatype::StringAscii | Datatype::StringUtf8)
}

/// Returns the numbers that values of a type are compared as; `None` for types without numbers.
fn number(datatype: Datatype) -> Option<ElementType> {
    match datatype {
        Datatype::Bool => Some(ElementType::U8),
        Datatype::DateTime(_) | Datatype::Time(_) => Some(ElementType::I64),
        _ => element(datatype),
    }
}

fn wrong_length(value: &[u8], expected: usize) -> Error {
    let message = format!("a value of {} bytes, but its field has {expected}", value.len());
    Error::corrupt_region(REGION, message)
}

/// Compares little-endian numbers with `value`, which has the bytes of one.
struct CompareNumbers<'a> {
    cells: usize,
    op: Comparison,
    value: &'a [u8],
    bytes: &'a [u8],
}

impl ElementVisitor for CompareNumbers<'_> {
    type Output = BooleanBuffer;

    fn visit<T: Element>(self) -> BooleanBuffer {
        let size = size_of::<T::Native>();
        let number = |bytes: &[u8]| T::from_bound(bound(bytes));
        tested(self.cells, self.op, number(self.value), |at| {
            number(&self.bytes[at * size..][..size])
        })
    }
}

/// Compares each cell with `value`. There is one loop per operator, so that none branches on it.
fn tested<V: PartialOrd + Copy>(
    cells: usize,
    op: Comparison,
    value: V,
    cell: impl Fn(usize) -> V,
) -> BooleanBuffer {
    match op {
        Comparison::Less => BooleanBuffer::collect_bool(cells, |at| cell(at) < value),
        Comparison::LessOrEqual => BooleanBuffer::collect_bool(cells, |at| cell(at) <= value),
        Comparison::Greater => BooleanBuffer::collect_bool(cells, |at| cell(at) > value),
        Comparison::GreaterOrEqual => BooleanBuffer::collect_bool(cells, |at| cell(at) >= value),
        Comparison::Equal => BooleanBuffer::collect_bool(cells, |at| cell(at) == value),
        Comparison::NotEqual => BooleanBuffer::collect_bool(cells, |at| cell(at) != value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gridfusion_core::ErrorKind;
    use gridfusion_core::format::TimeUnit;

    const OPS: [Comparison; 6] = [
        Comparison::Less,
        Comparison::LessOrEqual,
        Comparison::Greater,
        Comparison::GreaterOrEqual,
        Comparison::Equal,
        Comparison::NotEqual,
    ];

    fn fixed(datatype: Datatype, bytes: &[u8], width: usize) -> Operand<'_> {
        Operand { datatype, cells: OperandCells::Fixed { bytes, width }, validity: None }
    }

    fn compare(field: &str, op: Comparison, value: &[u8]) -> Condition {
        Condition::Compare { field: field.to_owned(), op, value: value.to_vec() }
    }

    fn list(field: &str, values: &[&[u8]], negated: bool) -> Condition {
        let values = values.iter().map(|value| value.to_vec()).collect();
        Condition::In { field: field.to_owned(), values, negated }
    }

    /// Evaluates a condition in which all fields but "absent" are `operand`; returns 1 and 0 per cell.
    fn bits<'a>(condition: &Condition, cells: usize, operand: &'a Operand<'a>) -> Result<String> {
        let find = |field: &str| (field != "absent").then_some(operand);
        let bits = evaluate(condition, cells, &find, None)?;
        Ok(bits.iter().map(|bit| if bit { '1' } else { '0' }).collect())
    }

    /// Returns the bits of all operators, in the order of `OPS`.
    fn all_ops<'a>(cells: usize, operand: &'a Operand<'a>, value: &[u8]) -> [String; 6] {
        OPS.map(|op| bits(&compare("f", op, value), cells, operand).unwrap())
    }

    fn kind<'a>(condition: &Condition, operand: &'a Operand<'a>) -> ErrorKind {
        bits(condition, 2, operand).unwrap_err().kind()
    }

    #[test]
    fn whole_numbers() {
        let signed = ["100", "110", "001", "011", "010", "101"];
        let bytes = [-2_i8, 3, 5].map(i8::to_le_bytes).concat();
        assert_eq!(all_ops(3, &fixed(Datatype::Int8, &bytes, 1), &[3]), signed);
        let bytes = [-2_i32, 3, 5].map(i32::to_le_bytes).concat();
        assert_eq!(all_ops(3, &fixed(Datatype::Int32, &bytes, 4), &[3, 0, 0, 0]), signed);
        let bytes = [i64::MIN, 3, 5].map(i64::to_le_bytes).concat();
        let date = fixed(Datatype::DateTime(TimeUnit::Day), &bytes, 8);
        assert_eq!(all_ops(3, &date, &3_i64.to_le_bytes()), signed);

        let unsigned = ["001", "011", "100", "110", "010", "101"];
        let bytes = [u8::MAX, 3, 0];
        assert_eq!(all_ops(3, &fixed(Datatype::UInt8, &bytes, 1), &[3]), unsigned);
        let bytes = [u16::MAX, 3, 0].map(u16::to_le_bytes).concat();
        assert_eq!(all_ops(3, &fixed(Datatype::UInt16, &bytes, 2), &[3, 0]), unsigned);
        let bytes = [u64::MAX, 3, 0].map(u64::to_le_bytes).concat();
        let words = fixed(Datatype::UInt64, &bytes, 8);
        assert_eq!(all_ops(3, &words, &3_u64.to_le_bytes()), unsigned);
        let truth = fixed(Datatype::Bool, &[0, 1], 1);
        assert_eq!(all_ops(2, &truth, &[1]), ["10", "11", "00", "01", "01", "10"]);
    }

    #[test]
    fn floats() {
        let bytes = [1.0, f64::NAN, 2.0, -0.0].map(f64::to_le_bytes).concat();
        let cells = fixed(Datatype::Float64, &bytes, 8);
        let one = ["0001", "1001", "0010", "1010", "1000", "0111"];
        assert_eq!(all_ops(4, &cells, &1.0_f64.to_le_bytes()), one);
        let nan = ["0000", "0000", "0000", "0000", "0000", "1111"];
        assert_eq!(all_ops(4, &cells, &f64::NAN.to_le_bytes()), nan);
        let bytes = [-0.0, 0.5].map(f32::to_le_bytes).concat();
        let cells = fixed(Datatype::Float32, &bytes, 4);
        assert_eq!(all_ops(2, &cells, &[0; 4]), ["00", "10", "01", "11", "10", "01"]);
        // Lists compare bytes, as TileDB does.
        assert_eq!(bits(&list("f", &[&[0; 4]], false), 2, &cells).unwrap(), "00");
        assert_eq!(bits(&list("f", &[&0.5_f32.to_le_bytes()], false), 2, &cells).unwrap(), "01");
    }

    #[test]
    fn text() {
        let content = "bab\u{e9}".as_bytes();
        let (empty, a, ab, b, e) = (2..2, 1..2, 1..3, 0..1, 3..5);
        let spans = [empty, a, ab, b, e];
        let cells = OperandCells::Variable { spans: &spans, content };
        let text = Operand { datatype: Datatype::StringUtf8, cells, validity: None };
        let expected = ["11000", "11100", "00011", "00111", "00100", "11011"];
        assert_eq!(all_ops(5, &text, b"ab"), expected);
        // An empty value is empty text, and not NULL.
        let expected = ["00000", "10000", "01111", "11111", "10000", "01111"];
        assert_eq!(all_ops(5, &text, b""), expected);
        assert_eq!(bits(&list("f", &[b"b", b"", b"c"], false), 5, &text).unwrap(), "10010");
        assert_eq!(bits(&list("f", &[b"b", b"", b"c"], true), 5, &text).unwrap(), "01101");

        // TileDB compares the first bytes of such cells, as signed numbers.
        let fours = fixed(Datatype::Char, b"abcdabce\xff\0\0\0", 4);
        assert_eq!(all_ops(3, &fours, b"abcd"), ["001", "111", "000", "110", "110", "001"]);
        assert_eq!(bits(&list("f", &[b"abce"], false), 3, &fours).unwrap(), "010");
    }

    #[test]
    fn nulls() {
        let bytes = [1_i32, 3, 3, 4].map(i32::to_le_bytes).concat();
        let valid = [1, 0, 1, 1];
        let validity = Some(&valid[..]);
        let n = Operand { validity, ..fixed(Datatype::Int32, &bytes, 4) };
        let three = 3_i32.to_le_bytes();
        let expected = ["1000", "1010", "0001", "0011", "0010", "1001"];
        assert_eq!(all_ops(4, &n, &three), expected);
        assert_eq!(bits(&list("n", &[&three], false), 4, &n).unwrap(), "0010");
        assert_eq!(bits(&list("n", &[&three], true), 4, &n).unwrap(), "1001");
        assert_eq!(bits(&list("n", &[], true), 4, &n).unwrap(), "1011");
        assert_eq!(bits(&compare("n", Comparison::Equal, b""), 4, &n).unwrap(), "0100");
        assert_eq!(bits(&compare("n", Comparison::NotEqual, b""), 4, &n).unwrap(), "1011");
        let certain = fixed(Datatype::Int32, &bytes, 4);
        assert_eq!(bits(&compare("n", Comparison::Equal, b""), 4, &certain).unwrap(), "0000");
        assert_eq!(bits(&compare("n", Comparison::NotEqual, b""), 4, &certain).unwrap(), "1111");

        let spans = [0..0, 0..1, 0..1, 1..2];
        let cells = OperandCells::Variable { spans: &spans, content: b"ab" };
        let s = Operand { datatype: Datatype::StringAscii, cells, validity };
        let expected = ["0000", "1000", "0011", "1011", "1000", "0011"];
        assert_eq!(all_ops(4, &s, b""), expected);
    }

    #[test]
    fn combinations() {
        let x = fixed(Datatype::UInt8, &[0, 1, 2, 3], 1);
        let from_two = || compare("x", Comparison::GreaterOrEqual, &[2]);
        let not_three = || compare("x", Comparison::NotEqual, &[3]);
        let absent = || compare("absent", Comparison::NotEqual, &[77]);
        let not = |part| Condition::Not(Box::new(part));
        for (condition, expected) in [
            (Condition::And(vec![from_two(), not_three()]), "0010"),
            (Condition::Or(vec![not(not_three()), not(from_two())]), "1101"),
            (not(from_two()), "1100"),
            (absent(), "0000"),
            (list("absent", &[&[1]], true), "0000"),
            (Condition::Or(vec![absent(), from_two()]), "0011"),
            (Condition::Or(vec![from_two(), absent()]), "0000"),
            (Condition::Or(vec![from_two(), Condition::And(vec![absent()])]), "0011"),
            (Condition::And(vec![from_two(), absent()]), "0000"),
            (Condition::And(vec![]), "1111"),
            (Condition::Or(vec![]), "0000"),
            (Condition::Or(vec![Condition::Constant(true), from_two()]), "1111"),
            (Condition::Or(vec![Condition::Constant(false), from_two()]), "0011"),
        ] {
            assert_eq!(bits(&condition, 4, &x).unwrap(), expected, "{condition:?}");
        }
    }

    #[test]
    fn later_cells_stay_like_the_first_part_of_an_or() {
        let x = fixed(Datatype::UInt8, &[0, 1, 2, 3], 1);
        let later = || Some(BooleanBuffer::from(vec![true, false, false, false]));
        let find = |name: &str| (name == "x").then_some(&x);
        let two = compare("x", Comparison::Equal, &[2]);
        let absent = compare("absent", Comparison::Equal, &[2]);
        for (condition, expected) in [
            (two.clone(), [true, false, true, false]),
            (Condition::Or(vec![two.clone()]), [true, false, true, false]),
            (Condition::And(vec![two.clone()]), [true, false, true, false]),
            (absent.clone(), [false; 4]),
            (Condition::Or(vec![absent, two]), [false, false, true, false]),
        ] {
            let found = evaluate(&condition, 4, &find, later()).unwrap();
            assert_eq!(found, BooleanBuffer::from(expected.to_vec()), "{condition:?}");
        }
    }

    #[test]
    fn values_and_operands_that_do_not_fit_are_errors() {
        let x = fixed(Datatype::Int16, &[0; 4], 2);
        assert_eq!(kind(&compare("x", Comparison::Equal, &[1]), &x), ErrorKind::Corrupt);
        assert_eq!(kind(&compare("x", Comparison::Less, b""), &x), ErrorKind::Corrupt);
        assert_eq!(kind(&list("x", &[&[1]], false), &x), ErrorKind::Corrupt);
        let pairs = fixed(Datatype::Int16, &[0; 8], 4);
        let equal = |value: &[u8]| compare("x", Comparison::Equal, value);
        assert_eq!(kind(&equal(&[0; 4]), &pairs), ErrorKind::Unsupported);
        let blobs = fixed(Datatype::Blob, &[0; 2], 1);
        assert_eq!(kind(&equal(&[0]), &blobs), ErrorKind::Unsupported);

        let short = fixed(Datatype::Int16, &[0; 3], 2);
        assert_eq!(kind(&equal(&[0; 2]), &short), ErrorKind::Internal);
        let unsure = Operand { validity: Some(&[1]), ..fixed(Datatype::Int16, &[0; 4], 2) };
        assert_eq!(kind(&equal(&[0; 2]), &unsure), ErrorKind::Internal);
        let cells = OperandCells::Variable { spans: &[0..1, 1..3], content: b"ab" };
        let outside = Operand { datatype: Datatype::Char, cells, validity: None };
        assert_eq!(kind(&equal(b"a"), &outside), ErrorKind::Internal);
    }
}
