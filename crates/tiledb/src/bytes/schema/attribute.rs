//! Attributes: TileDB's word for the variables of an array.
//!
//! The files of a fragment that hold an attribute's cells depend on two properties of it:
//!
//! ```text
//!   values per cell    files without NULL        nullable
//!   a fixed number     aI.tdb: values            aI_validity.tdb, too
//!   any number         aI.tdb: offsets of cells  aI_validity.tdb, too
//!                      aI_var.tdb: values
//! ```

use std::fmt;

use crate::bytes::datatype::{Datatype, VARIABLE};
use crate::bytes::filter::Pipeline;
use crate::bytes::text::{flag, text32};
use gridfusion_core::format::wire::{Reader, to_usize};
use gridfusion_core::{Error, Result};

/// Cells with more values than this need a fill value in the schema. Otherwise, a damaged count of values
/// could make a fill value of 32 GiB; this allows 512 KiB.
const MAX_DEFAULT_FILL: u32 = 1 << 16;

/// A variable of an array: its name, type, filters and fill value.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribute {
    /// Its name; empty for the anonymous attribute.
    pub name: String,
    /// The type of its values.
    pub datatype: Datatype,
    /// How many values a cell has.
    pub values_per_cell: ValuesPerCell,
    /// Whether cells can be NULL.
    pub nullable: bool,
    /// The fill value: the bytes of a cell that was never written. If the cells have any number of values, so
    /// has the fill value.
    pub fill: Vec<u8>,
    /// Whether the fill value is a value; if not, a cell that was never written is NULL.
    pub fill_valid: bool,
    /// The name of the enumeration that its values index; `None` if they stand for themselves.
    pub enumeration: Option<String>,
    /// Its filters.
    pub pipeline: Pipeline,
}

/// How many values a cell of an attribute has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ValuesPerCell {
    /// The same number in each cell, at least 1.
    Fixed(u32),
    /// Any number in each cell, including 0.
    Variable,
}

impl fmt::Display for ValuesPerCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(values) => values.fmt(f),
            Self::Variable => f.write_str("any number"),
        }
    }
}

impl ValuesPerCell {
    pub(in crate::bytes) fn parse(reader: &mut Reader<'_>) -> Result<Self> {
        match reader.u32()? {
            0 => Err(reader.corrupt("cells of 0 values, expected 1 or more")),
            VARIABLE => Ok(Self::Variable),
            values => Ok(Self::Fixed(values)),
        }
    }
}

impl Attribute {
    /// Returns the size of a cell in bytes; `None` if it varies.
    pub fn cell_size(&self) -> Option<u64> {
        match self.values_per_cell {
            ValuesPerCell::Fixed(values) => Some(u64::from(values) * self.datatype.size()),
            ValuesPerCell::Variable => None,
        }
    }

    /// Whether cells can have any number of values.
    pub fn is_variable(&self) -> bool {
        self.values_per_cell == ValuesPerCell::Variable
    }

    /// Parses an attribute of a schema of format `version`. Fields that the version lacks get their defaults.
    pub(in crate::bytes) fn parse(reader: &mut Reader<'_>, version: u32) -> Result<Self> {
        let name = text32(reader, "the attribute's name")?;
        let datatype = Datatype::from_code(reader.u8()?)?;
        let values_per_cell = ValuesPerCell::parse(reader)?;
        let pipeline = Pipeline::parse(reader, version)?;
        let mut attribute = Self {
            name,
            datatype,
            values_per_cell,
            nullable: false,
            fill: vec![],
            fill_valid: false,
            enumeration: None,
            pipeline,
        };
        attribute.fill = attribute.parse_fill(reader, version)?;
        if version >= 7 {
            attribute.nullable = flag(reader, "nullable")?;
            attribute.fill_valid = flag(reader, "valid fill value")?;
        }
        if version >= 17 {
            reader.u8()?; // The order of the values of a dimension label.
        }
        if version >= 20 {
            let enumeration = text32(reader, "the enumeration's name")?;
            attribute.enumeration = Some(enumeration).filter(|name| !name.is_empty());
        }
        Ok(attribute)
    }

    /// Reads the fill value, which must have the size of a cell: `cell_size` bytes, or any number of values.
    fn parse_fill(&self, reader: &mut Reader<'_>, version: u32) -> Result<Vec<u8>> {
        if version < 6 {
            return self.default_fill();
        }
        let len = reader.u64()?;
        let fits = match self.cell_size() {
            Some(cell_size) => len == cell_size,
            None => len.is_multiple_of(self.datatype.size()),
        };
        if !fits {
            return Err(reader.corrupt(format!(
                "a fill value of {len} bytes for attribute \"{}\" of {}",
                self.name, self.datatype
            )));
        }
        Ok(reader.take(to_usize(len))?.to_vec())
    }

    /// Returns TileDB's fill value for schemas before format 6, which store none: the least signed number,
    /// the greatest unsigned number, NaN, 0x80 for characters, and 0 for everything else.
    fn default_fill(&self) -> Result<Vec<u8>> {
        let size = to_usize(self.datatype.size());
        let mut value = match self.datatype {
            Datatype::Float32 => f32::NAN.to_le_bytes().to_vec(),
            Datatype::Float64 => f64::NAN.to_le_bytes().to_vec(),
            unsigned if unsigned.is_unsigned() => vec![0xff; size],
            _ => vec![0; size],
        };
        // The highest byte comes last: INT32 gets 00 00 00 80, the least number of four bytes.
        if (self.datatype.is_signed() || self.datatype == Datatype::Char)
            && let Some(last) = value.last_mut()
        {
            *last = 0x80;
        }
        match self.values_per_cell {
            ValuesPerCell::Variable => Ok(value),
            ValuesPerCell::Fixed(values) if values <= MAX_DEFAULT_FILL => {
                Ok(value.repeat(to_usize(u64::from(values))))
            }
            ValuesPerCell::Fixed(values) => Err(Error::unsupported(format!(
                "attribute \"{}\" with {values} values per cell and no fill value",
                self.name
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::testing::{NO_FILTERS, attribute};

    fn parse(bytes: &[u8], version: u32) -> Result<Attribute> {
        let mut reader = Reader::new("test", 0, bytes);
        let attribute = Attribute::parse(&mut reader, version)?;
        reader.end()?;
        Ok(attribute)
    }

    #[test]
    fn what_versions_add() {
        let bytes = attribute("a", 0, 2, &[1, 0, 0, 0, 2, 0, 0, 0], true, "days");
        let now = parse(&bytes, 22).unwrap();
        assert_eq!((now.nullable, now.enumeration.as_deref()), (true, Some("days")));
        assert_eq!((now.cell_size(), now.fill.len()), (Some(8), 8));
        for len in 0..bytes.len() {
            assert!(parse(&bytes[..len], 22).is_err());
        }
        // Older versions lack the name of the enumeration, then the order, then the two flags about
        // NULLs.
        let end = bytes.len() - 8;
        assert_eq!(parse(&bytes[..end], 17).unwrap().enumeration, None);
        assert!(parse(&bytes[..end - 1], 16).unwrap().nullable);
        assert!(!parse(&bytes[..end - 3], 6).unwrap().nullable);
        let before_fill = &bytes[..end - 3 - 16];
        assert_eq!(parse(before_fill, 5).unwrap().fill, i32::MIN.to_le_bytes().repeat(2));
    }

    #[test]
    fn default_fill_values() {
        let fill = |code: u8, values: u32| {
            let head = [&[0, 0, 0, 0, code][..], &values.to_le_bytes(), &NO_FILTERS].concat();
            parse(&head, 5).unwrap().fill
        };
        assert_eq!(fill(1, 1), i64::MIN.to_le_bytes());
        assert_eq!(fill(21, 1), i64::MIN.to_le_bytes());
        assert_eq!(fill(8, 2), [0xff; 4]);
        assert!(f32::from_le_bytes(fill(2, 1).try_into().unwrap()).is_nan());
        assert_eq!(fill(4, 3), [0x80; 3]);
        assert_eq!(fill(11, VARIABLE), [0]);
        assert_eq!(fill(41, 1), [0]);
        let huge = [&[0, 0, 0, 0, 1][..], &(VARIABLE - 1).to_le_bytes(), &NO_FILTERS].concat();
        assert!(parse(&huge, 5).is_err());
    }

    #[test]
    fn a_fill_value_is_a_cell() {
        assert!(parse(&attribute("a", 0, 1, &[0; 8], false, ""), 22).is_err());
        assert!(parse(&attribute("a", 0, 0, &[], false, ""), 22).is_err());
        assert!(parse(&attribute("a", 0, VARIABLE, &[0; 7], false, ""), 22).is_err());
        assert!(parse(&attribute("a", 0, VARIABLE, &[0; 8], false, ""), 22).is_ok());
    }
}
