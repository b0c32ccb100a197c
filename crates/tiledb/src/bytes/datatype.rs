//! The types of TileDB's cells and dimensions.

use std::fmt;

use gridfusion_core::format::TimeUnit;
use gridfusion_core::{Error, Result};

/// Stored instead of the number of values per cell, for cells of variable length.
pub(crate) const VARIABLE: u32 = u32::MAX;

/// A stored type, by TileDB's own names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Datatype {
    /// Signed 8-bit integers.
    Int8,
    /// Signed 16-bit integers.
    Int16,
    /// Signed 32-bit integers.
    Int32,
    /// Signed 64-bit integers.
    Int64,
    /// Unsigned 8-bit integers.
    UInt8,
    /// Unsigned 16-bit integers.
    UInt16,
    /// Unsigned 32-bit integers.
    UInt32,
    /// Unsigned 64-bit integers.
    UInt64,
    /// IEEE 754 single precision.
    Float32,
    /// IEEE 754 double precision.
    Float64,
    /// Truth values, a byte each, 0 or 1.
    Bool,
    /// Bytes of the platform's character type; Python's `bytes`.
    Char,
    /// Text that is declared to be ASCII.
    StringAscii,
    /// Text in UTF-8.
    StringUtf8,
    /// Text in UTF-16.
    StringUtf16,
    /// Text in UTF-32.
    StringUtf32,
    /// Text in UCS-2.
    StringUcs2,
    /// Text in UCS-4.
    StringUcs4,
    /// Bytes without a declared meaning.
    Any,
    /// Bytes.
    Blob,
    /// Well-known binary geometry.
    GeomWkb,
    /// Well-known text geometry.
    GeomWkt,
    /// A point in time: an `i64` count of this unit since 1970-01-01. Years and months are those of the
    /// calendar.
    DateTime(TimeUnit),
    /// A length of time: an `i64` count of this unit.
    Time(TimeUnit),
}

/// The units of dates and times, with TileDB's abbreviations, in the order of the codes. Dates have all of
/// them, times those from hours on.
const DATE_TIMES: [(TimeUnit, &str); 13] = [
    (TimeUnit::Year, "YEAR"),
    (TimeUnit::Month, "MONTH"),
    (TimeUnit::Week, "WEEK"),
    (TimeUnit::Day, "DAY"),
    (TimeUnit::Hour, "HR"),
    (TimeUnit::Minute, "MIN"),
    (TimeUnit::Second, "SEC"),
    (TimeUnit::Millisecond, "MS"),
    (TimeUnit::Microsecond, "US"),
    (TimeUnit::Nanosecond, "NS"),
    (TimeUnit::Picosecond, "PS"),
    (TimeUnit::Femtosecond, "FS"),
    (TimeUnit::Attosecond, "AS"),
];

/// The code of the first date type, of years.
const FIRST_DATE_TIME: u8 = 18;
/// The code of the first time type, of hours.
const FIRST_TIME: u8 = 31;
/// The index of hours in `DATE_TIMES`.
const HOUR: usize = 4;

impl Datatype {
    /// The type with this code in a file.
    ///
    /// # Errors
    /// `Unsupported` for an unknown code.
    pub fn from_code(code: u8) -> Result<Self> {
        let unit = |place: usize| DATE_TIMES[place].0;
        Ok(match code {
            0 => Self::Int32,
            1 => Self::Int64,
            2 => Self::Float32,
            3 => Self::Float64,
            4 => Self::Char,
            5 => Self::Int8,
            6 => Self::UInt8,
            7 => Self::Int16,
            8 => Self::UInt16,
            9 => Self::UInt32,
            10 => Self::UInt64,
            11 => Self::StringAscii,
            12 => Self::StringUtf8,
            13 => Self::StringUtf16,
            14 => Self::StringUtf32,
            15 => Self::StringUcs2,
            16 => Self::StringUcs4,
            17 => Self::Any,
            FIRST_DATE_TIME..FIRST_TIME => {
                Self::DateTime(unit(usize::from(code - FIRST_DATE_TIME)))
            }
            FIRST_TIME..40 => Self::Time(unit(usize::from(code - FIRST_TIME) + HOUR)),
            40 => Self::Blob,
            41 => Self::Bool,
            42 => Self::GeomWkb,
            43 => Self::GeomWkt,
            _ => return Err(Error::unsupported(format!("TileDB datatype {code}"))),
        })
    }

    /// The code of the type in a file.
    ///
    /// ```
    /// use gridfusion_tiledb::bytes::Datatype;
    ///
    /// assert_eq!(Datatype::StringUtf8.code(), 12);
    /// assert_eq!(Datatype::from_code(12).unwrap(), Datatype::StringUtf8);
    /// ```
    pub fn code(self) -> u8 {
        /// More than the greatest code.
        const MOST: u8 = 64;
        let has_it = |code: &u8| Self::from_code(*code).is_ok_and(|known| known == self);
        (0..MOST).find(has_it).unwrap_or(MOST)
    }

    /// Bytes of one value.
    ///
    /// ```
    /// assert_eq!(gridfusion_tiledb::bytes::Datatype::StringUtf16.size(), 2);
    /// ```
    pub fn size(self) -> u64 {
        match self {
            Self::Int8
            | Self::UInt8
            | Self::Bool
            | Self::Char
            | Self::StringAscii
            | Self::StringUtf8
            | Self::Any
            | Self::Blob
            | Self::GeomWkb
            | Self::GeomWkt => 1,
            Self::Int16 | Self::UInt16 | Self::StringUtf16 | Self::StringUcs2 => 2,
            Self::Int32 | Self::UInt32 | Self::Float32 | Self::StringUtf32 | Self::StringUcs4 => 4,
            Self::Int64 | Self::UInt64 | Self::Float64 | Self::DateTime(_) | Self::Time(_) => 8,
        }
    }

    /// Whether values are whole numbers with a sign; dates and times are.
    pub fn is_signed(self) -> bool {
        matches!(
            self,
            Self::Int8
                | Self::Int16
                | Self::Int32
                | Self::Int64
                | Self::DateTime(_)
                | Self::Time(_)
        )
    }

    /// Whether values are whole numbers without a sign.
    pub fn is_unsigned(self) -> bool {
        matches!(self, Self::UInt8 | Self::UInt16 | Self::UInt32 | Self::UInt64)
    }

    /// Whether values are floating-point numbers.
    pub fn is_float(self) -> bool {
        matches!(self, Self::Float32 | Self::Float64)
    }

    /// Whether values are dates or times.
    pub fn is_temporal(self) -> bool {
        matches!(self, Self::DateTime(_) | Self::Time(_))
    }

    /// Whether values are text, in any encoding; `Char` does not count as text.
    pub fn is_string(self) -> bool {
        matches!(
            self,
            Self::StringAscii
                | Self::StringUtf8
                | Self::StringUtf16
                | Self::StringUtf32
                | Self::StringUcs2
                | Self::StringUcs4
        )
    }
}

impl fmt::Display for Datatype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |unit: &TimeUnit| {
            DATE_TIMES.iter().find(|(known, _)| known == unit).map_or("", |(_, name)| *name)
        };
        f.write_str(match self {
            Self::DateTime(unit) => return write!(f, "DATETIME_{}", name(unit)),
            Self::Time(unit) => return write!(f, "TIME_{}", name(unit)),
            Self::Int8 => "INT8",
            Self::Int16 => "INT16",
            Self::Int32 => "INT32",
            Self::Int64 => "INT64",
            Self::UInt8 => "UINT8",
            Self::UInt16 => "UINT16",
            Self::UInt32 => "UINT32",
            Self::UInt64 => "UINT64",
            Self::Float32 => "FLOAT32",
            Self::Float64 => "FLOAT64",
            Self::Bool => "BOOL",
            Self::Char => "CHAR",
            Self::StringAscii => "STRING_ASCII",
            Self::StringUtf8 => "STRING_UTF8",
            Self::StringUtf16 => "STRING_UTF16",
            Self::StringUtf32 => "STRING_UTF32",
            Self::StringUcs2 => "STRING_UCS2",
            Self::StringUcs4 => "STRING_UCS4",
            Self::Any => "ANY",
            Self::Blob => "BLOB",
            Self::GeomWkb => "GEOM_WKB",
            Self::GeomWkt => "GEOM_WKT",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_names_and_sizes() {
        for (code, name, size) in [
            (0, "INT32", 4),
            (4, "CHAR", 1),
            (17, "ANY", 1),
            (18, "DATETIME_YEAR", 8),
            (21, "DATETIME_DAY", 8),
            (30, "DATETIME_AS", 8),
            (31, "TIME_HR", 8),
            (36, "TIME_NS", 8),
            (39, "TIME_AS", 8),
            (40, "BLOB", 1),
            (43, "GEOM_WKT", 1),
        ] {
            let datatype = Datatype::from_code(code).unwrap();
            assert_eq!((datatype.to_string().as_str(), datatype.size()), (name, size));
        }
        assert!(Datatype::from_code(44).is_err());
    }
}
