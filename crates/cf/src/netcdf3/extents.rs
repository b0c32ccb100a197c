//! The bytes of variables: how long they are, and whether they overlap.
//!
//! A record holds one slab of each variable of the record dimension. Slabs are padded to a multiple of 4 bytes, but
//! that of the only variable is not. See the notes on `vsize` and on padding in the specification.

use std::fmt;
use std::ops::Range;

use super::header::{Header, HeaderVariable};
use gridfusion_core::{Error, Result};

/// The bytes of all variables of a file.
///
/// Variables may lie in any order, as long as they are disjoint. netcdf-c refuses scalars behind the records, which
/// SciPy writes; with one record at most, nothing has overwritten them, and they are read here.
#[derive(Debug)]
pub(super) struct Extents {
    /// The bytes of each variable: of one record if it has the record dimension, otherwise of all its values.
    pub(super) lens: Vec<u64>,
    /// The number of records.
    pub(super) records: u64,
    /// The bytes from one record to the next; 0 if no variable has the record dimension.
    pub(super) stride: u64,
    /// The end of the last value of all variables.
    pub(super) end: u64,
}

impl Extents {
    /// Computes the bytes of all variables in a file of `size` bytes.
    ///
    /// # Errors
    /// `Corrupt` if variables overlap each other or the header, or end beyond any file.
    pub(super) fn try_new(header: &Header, size: u64) -> Result<Self> {
        let lens = header.variables.iter().map(|variable| len(header, variable));
        let lens: Vec<u64> = lens.collect::<Result<_>>()?;
        let stride = stride(header, &lens)?;
        let records = match header.records {
            Some(records) => records,
            None => records_in(header, &lens, stride, size),
        };
        let mut extents = Self { lens, records, stride, end: header.len };
        let (fixed, slabs) = extents.ranges(header)?;
        let records = extents.records_range(&slabs)?;
        let mut all = fixed;
        all.extend(records);
        check_disjoint(header, all.clone())?;
        extents.end = all.iter().map(|(range, _)| range.end).fold(header.len, u64::max);
        Ok(extents)
    }

    /// Returns the bytes of the fixed variables, and of the slabs of the first record, with what they are.
    fn ranges<'a>(
        &self,
        header: &'a Header,
    ) -> Result<(Vec<OccupiedRange<'a>>, Vec<OccupiedRange<'a>>)> {
        let (mut fixed, mut slabs) = (vec![], vec![]);
        for (variable, len) in header.variables.iter().zip(&self.lens) {
            let end = variable.begin.checked_add(*len).ok_or_else(|| beyond(variable))?;
            let occupied = (variable.begin..end, Occupant::Variable(&variable.name));
            match header.has_records(variable) {
                true => slabs.push(occupied),
                false => fixed.push(occupied),
            }
        }
        Ok((fixed, slabs))
    }

    /// Returns the bytes of all records; `None` if there are none. Checks that the slabs of a record are disjoint,
    /// and that they end before the next record.
    fn records_range<'a>(&self, slabs: &[OccupiedRange<'a>]) -> Result<Option<OccupiedRange<'a>>> {
        let start = slabs.iter().map(|(range, _)| range.start).min();
        let end = slabs.iter().map(|(range, _)| range.end).max();
        let (Some(start), Some(end), Some(before)) = (start, end, self.records.checked_sub(1))
        else {
            return Ok(None);
        };
        check_ordered(&mut slabs.to_vec())?;
        if before > 0 && end - start > self.stride {
            let message = format!(
                "the first record has values at bytes {start}..{end}, but the next record begins {} bytes later",
                self.stride
            );
            return Err(Error::corrupt("header", 0, message));
        }
        let end = before.checked_mul(self.stride).and_then(|len| end.checked_add(len));
        let Some(end) = end else {
            let message = format!(
                "{} records of {} bytes, more than any file has",
                self.records, self.stride
            );
            return Err(Error::corrupt("header", 4, message));
        };
        Ok(Some((start..end, Occupant::Records)))
    }
}

/// A range of bytes, and its occupant.
type OccupiedRange<'a> = (Range<u64>, Occupant<'a>);

#[derive(Debug, Clone, Copy)]
enum Occupant<'a> {
    Header,
    Variable(&'a str),
    Records,
}

impl fmt::Display for Occupant<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header => f.write_str("the header"),
            Self::Variable(name) => write!(f, "variable \"{name}\""),
            Self::Records => f.write_str("the records of the variables of the record dimension"),
        }
    }
}

fn check_disjoint(header: &Header, mut all: Vec<OccupiedRange<'_>>) -> Result<()> {
    all.push((0..header.len, Occupant::Header));
    check_ordered(&mut all)
}

/// Sorts ranges, and checks that they are disjoint.
fn check_ordered(all: &mut [OccupiedRange<'_>]) -> Result<()> {
    all.sort_by_key(|(range, _)| (range.start, range.end));
    for pair in all.windows(2) {
        let [(left, first), (right, second)] = pair else { continue };
        if right.start < left.end {
            let advice = match (first, second) {
                (Occupant::Records, _) | (_, Occupant::Records) => {
                    "; SciPy writes such files if they have scalars and records: write it with netCDF4 instead"
                }
                _ => "",
            };
            let message = format!(
                "{first} at bytes {left:?} and {second} at bytes {right:?} overlap, so one has overwritten the \
                 other{advice}"
            );
            return Err(Error::corrupt("variable", right.start, message));
        }
    }
    Ok(())
}

/// Returns the bytes of a variable: of one record if it has the record dimension, otherwise of all its values.
fn len(header: &Header, variable: &HeaderVariable) -> Result<u64> {
    let mut lens = header.dimensions_of(variable).map(|dimension| dimension.len.max(1));
    let len = lens.try_fold(variable.external.size(), |len, axis| len.checked_mul(axis));
    len.ok_or_else(|| beyond(variable))
}

fn beyond(variable: &HeaderVariable) -> Error {
    let message = format!("variable \"{}\" has more bytes than any file", variable.name);
    Error::corrupt("header", variable.at, message)
}

/// Returns the bytes from one record to the next.
fn stride(header: &Header, lens: &[u64]) -> Result<u64> {
    let slabs = header.variables.iter().zip(lens).filter(|(it, _)| header.has_records(it));
    let slabs: Vec<u64> = slabs.map(|(_, len)| *len).collect();
    if let [only] = slabs.as_slice() {
        return Ok(*only);
    }
    let stride = slabs
        .iter()
        .try_fold(0_u64, |stride, len| stride.checked_add(len.checked_next_multiple_of(4)?));
    stride.ok_or_else(|| Error::corrupt("header", 0, "a record has more bytes than any file"))
}

/// Returns the number of whole records in a file of `size` bytes. The last one may lack its padding.
fn records_in(header: &Header, lens: &[u64], stride: u64, size: u64) -> u64 {
    let slabs = header.variables.iter().zip(lens).filter(|(it, _)| header.has_records(it));
    let first_end = slabs.map(|(it, len)| it.begin.saturating_add(*len)).max();
    let after_first = first_end.and_then(|end| size.checked_sub(end));
    let more = after_first.map(|after| after.checked_div(stride).unwrap_or_default());
    more.map_or(0, |more| more.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{BYTE, DOUBLE, File, INT, SHORT};
    use super::*;

    fn extents(file: &File) -> Result<Extents> {
        let bytes = file.bytes();
        let header = Header::parse(&bytes, bytes.len() as u64).unwrap();
        Extents::try_new(&header, bytes.len() as u64)
    }

    #[test]
    fn slabs_are_padded_unless_there_is_only_one() {
        let mut file = File::new(1, 3).dimension("t", 0).dimension("x", 3);
        file = file.variable("a", BYTE, &[0, 1]);
        let one = extents(&file).unwrap();
        assert_eq!((one.lens, one.stride, one.records), (vec![3], 3, 3));
        let two = extents(&file.variable("b", SHORT, &[0]).variable("c", INT, &[1])).unwrap();
        assert_eq!((two.lens, two.stride), (vec![3, 2, 12], 8));
    }

    #[test]
    fn a_stream_has_the_records_that_fit() {
        let file = |records| {
            let file = File::new(1, records).dimension("t", 0).dimension("x", 5);
            file.variable("fixed", DOUBLE, &[1]).variable("a", DOUBLE, &[0]).variable(
                "b",
                BYTE,
                &[0, 1],
            )
        };
        for records in [0, 1, 7] {
            let mut bytes = file(records).bytes();
            bytes[4..8].fill(0xff);
            let len = bytes.len() as u64;
            let header = Header::parse(&bytes, len).unwrap();
            // The last record is whole without its 3 bytes of padding, and not with less.
            for (short, expected) in [(0, records), (3, records), (4, records.saturating_sub(1))] {
                if records > 0 {
                    assert_eq!(Extents::try_new(&header, len - short).unwrap().records, expected);
                }
            }
            assert_eq!(Extents::try_new(&header, len).unwrap().records, records);
        }
        let mut bytes = file(1).bytes();
        bytes[4..8].fill(0xff);
        assert_eq!(Header::parse(&bytes, bytes.len() as u64).unwrap().records, None);
    }

    #[test]
    fn overlaps_are_refused() {
        let file = File::new(2, 2).dimension("t", 0).dimension("x", 4);
        let file =
            file.variable("a", INT, &[1]).variable("b", INT, &[0, 1]).variable("c", INT, &[0]);
        let begins = file.begins();
        assert_eq!(extents(&file).unwrap().end, file.bytes().len() as u64);
        for (variable, begin, message) in [
            (0, 0, "the header at bytes"),
            (0, begins[1] - 1, "variable \"a\" at bytes"),
            (0, begins[1] + 20, "SciPy"),
            (1, begins[2] - 1, "variable \"c\" at bytes"),
            (2, begins[2] + 4, "but the next record begins 20 bytes later"),
            (2, begins[1] + 3, "variable \"b\" at bytes"),
            (2, u64::MAX - 3, "more bytes than any file"),
        ] {
            let moved = file.clone().moved(variable, begin);
            let error = extents(&moved).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
        // Any order will do.
        let moved = file.clone().moved(0, begins[1] + 40);
        assert_eq!(extents(&moved).unwrap().end, begins[1] + 56);
    }

    #[test]
    fn lengths_that_overflow_are_errors() {
        let axes: Vec<u64> = (1..6).collect();
        let mut file = File::new(5, 1).dimension("t", 0);
        for name in ["a", "b", "c", "d", "e"] {
            file = file.dimension(name, 1 << 15);
        }
        let fits = file.clone().variable("v", BYTE, &[1, 2, 3, 4]);
        assert!(Header::parse(&fits.head(), u64::MAX).is_ok());
        let large = file.clone().variable("v", BYTE, &axes);
        let header = Header::parse(&large.head(), u64::MAX).unwrap();
        assert!(Extents::try_new(&header, u64::MAX).is_err());
        let mut many = file.variable("v", INT, &[0, 1, 2, 3]);
        many.records = 1 << 17;
        let header = Header::parse(&many.head(), u64::MAX).unwrap();
        let error = Extents::try_new(&header, u64::MAX).unwrap_err().to_string();
        assert!(error.contains("131072 records"), "{error}");
    }
}
