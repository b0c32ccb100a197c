//! Array schemas: dimensions, attributes, orders and filters.
//!
//! ```text
//!   version, duplicates, dense or sparse, orders, capacity
//!   │ pipelines: coordinates, offsets, validity │ dimensions │ attributes
//!   │ dimension labels │ enumerations: name and file │ current domain
//! ```
//!
//! `crates/tiledb/FORMAT.md`, section 6, has every byte. Each change of an array adds a schema, and each
//! fragment names the one that it was written with. Dimensions and orders never change.

use std::fmt;

use super::attribute::Attribute;
use super::domain::{CoordinateRange, DimensionDomain, DimensionSchema, TileAxis};
use super::label::DimensionLabel;
use crate::bytes::filter::{EncryptionKey, Pipeline};
use crate::bytes::generic_tile;
use crate::bytes::generic_tile::{LATEST_VERSION, too_new};
use crate::bytes::text::{flag, text32};
use gridfusion_core::format::wire::Reader;
use gridfusion_core::{Error, Result};

/// The dimensions, attributes, orders and filters of an array.
///
/// The two orders together give the place of a cell in a fragment's file of values. With tiles of 2 × 2
/// cells, cells are stored in these orders:
///
/// ```text
///   row-major tiles and cells     row-major tiles, column-major cells
///      0  1 │  4  5                  0  2 │  4  6
///      2  3 │  6  7                  1  3 │  5  7
///     ──────┼──────                 ──────┼──────
///      8  9 │ 12 13                  8 10 │ 12 14
///     10 11 │ 14 15                  9 11 │ 13 15
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ArraySchema {
    /// The format version that the schema was written in, 5 to 23.
    pub version: u32,
    /// Dense or sparse.
    pub kind: ArrayKind,
    /// The order of the tiles in a fragment.
    pub tile_order: CellOrder,
    /// The order of the cells in a tile.
    pub cell_order: CellOrder,
    /// Cells per tile of a sparse array.
    pub capacity: u64,
    /// Whether several cells of a sparse array may have the same coordinates.
    pub allows_duplicates: bool,
    /// The dimensions, in the order of the axes.
    pub dimensions: Vec<DimensionSchema>,
    /// The attributes: the values of each cell.
    pub attributes: Vec<Attribute>,
    /// The dimension labels: other names for coordinates.
    pub labels: Vec<DimensionLabel>,
    /// The part of the domain that is in use: a range per dimension. `None` if it is not set.
    pub current_domain: Option<Vec<CoordinateRange>>,
    /// The filters for coordinates of dimensions without filters of their own.
    pub coords_pipeline: Pipeline,
    /// The filters of the offsets of values of variable length.
    pub offsets_pipeline: Pipeline,
    /// The filters of validity bytes; `None` before format 7, where no cell can be NULL.
    pub validity_pipeline: Option<Pipeline>,
    /// The names of enumerations, and of their files in `__schema/__enumerations`.
    pub(crate) enumeration_files: Vec<(String, String)>,
}

/// Which cells of an array have values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ArrayKind {
    /// All cells; those that were never written have fill values.
    Dense,
    /// Only cells that were written.
    Sparse,
}

/// An order of cells or tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CellOrder {
    /// The last axis varies fastest.
    RowMajor,
    /// The first axis varies fastest.
    ColumnMajor,
    /// First the order of tiles, then that of the cells in a tile.
    Global,
    /// No order.
    Unordered,
    /// Along a Hilbert curve.
    Hilbert,
}

impl fmt::Display for ArrayKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dense => "dense",
            Self::Sparse => "sparse",
        })
    }
}

impl fmt::Display for CellOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RowMajor => "row-major",
            Self::ColumnMajor => "column-major",
            Self::Global => "global",
            Self::Unordered => "none",
            Self::Hilbert => "Hilbert",
        })
    }
}

/// The oldest format version that this reader supports. Names of fragments give their version since then.
pub(in crate::bytes) const OLDEST_VERSION: u32 = 5;
const REGION: &str = "array schema";

impl CellOrder {
    fn parse(reader: &mut Reader<'_>) -> Result<Self> {
        Ok(match reader.u8()? {
            0 => Self::RowMajor,
            1 => Self::ColumnMajor,
            2 => Self::Global,
            3 => Self::Unordered,
            4 => Self::Hilbert,
            other => return Err(reader.corrupt(format!("order {other}, expected 0 to 4"))),
        })
    }
}

impl ArraySchema {
    /// Returns the position of the attribute named `name` in the schema.
    pub fn attribute_index(&self, name: &str) -> Option<usize> {
        self.attributes.iter().position(|attribute| attribute.name == name)
    }

    /// Returns the axes of a dense array.
    ///
    /// # Errors
    /// `Unsupported` if the coordinates of a dimension are not whole numbers, or not divided into
    /// tiles.
    pub(in crate::bytes) fn tile_axes(&self) -> Result<Vec<TileAxis>> {
        self.dimensions.iter().map(DimensionSchema::tile_axis).collect()
    }

    /// Parses a file of the folder `__schema`, or the only schema of an old array.
    ///
    /// # Errors
    /// `Corrupt` if the schema is malformed or breaks a rule of the format. `Unsupported` for unknown
    /// versions, types and filters. `Usage` if the key does not fit.
    pub(in crate::bytes) fn parse(stored: &[u8], key: Option<&EncryptionKey>) -> Result<Self> {
        let content = generic_tile::decode(REGION, 0, stored, key)?;
        let mut reader = Reader::new(REGION, 0, &content);
        let schema = Self::parse_head(&mut reader)?.parse_rest(&mut reader)?;
        reader.end()?;
        Ok(schema)
    }

    /// Parses the fields before the dimensions.
    fn parse_head(reader: &mut Reader<'_>) -> Result<Self> {
        let version = known_version(reader.u32()?)?;
        let allows_duplicates = flag(reader, "allowing duplicates")?;
        let sparse = flag(reader, "sparse")?;
        // Rust evaluates these fields as they are written here, which is the order of the bytes.
        Ok(Self {
            version,
            kind: if sparse { ArrayKind::Sparse } else { ArrayKind::Dense },
            tile_order: CellOrder::parse(reader)?,
            cell_order: CellOrder::parse(reader)?,
            capacity: reader.u64()?,
            allows_duplicates,
            dimensions: vec![],
            attributes: vec![],
            labels: vec![],
            current_domain: None,
            coords_pipeline: Pipeline::parse(reader, version)?,
            offsets_pipeline: Pipeline::parse(reader, version)?,
            validity_pipeline: match version {
                ..7 => None,
                _ => Some(Pipeline::parse(reader, version)?),
            },
            enumeration_files: vec![],
        })
    }

    /// Parses dimensions, attributes and all later fields. Each list begins with its count, and nothing is
    /// reserved for it: a wrong count fails where the bytes end.
    fn parse_rest(mut self, reader: &mut Reader<'_>) -> Result<Self> {
        let version = self.version;
        for _ in 0..reader.u32()? {
            self.dimensions.push(DimensionSchema::parse(reader, version)?);
        }
        if self.dimensions.is_empty() {
            return Err(reader.corrupt("an array without dimensions"));
        }
        for _ in 0..reader.u32()? {
            self.attributes.push(Attribute::parse(reader, version)?);
        }
        if version >= 18 {
            for _ in 0..reader.u32()? {
                self.labels.push(DimensionLabel::parse(reader, self.dimensions.len())?);
            }
        }
        if version >= 20 {
            for _ in 0..reader.u32()? {
                let name = text32(reader, "the enumeration's name")?;
                let file = text32(reader, "the enumeration's file")?;
                self.enumeration_files.push((name, file));
            }
        }
        if version >= 22 {
            self.current_domain = self.parse_current_domain(reader)?;
        }
        Ok(self)
    }

    /// Parses the current domain, which must lie in the domain. `None` if the schema does not set it.
    fn parse_current_domain(
        &self,
        reader: &mut Reader<'_>,
    ) -> Result<Option<Vec<CoordinateRange>>> {
        let version = reader.u32()?;
        if version != 0 {
            let message = format!("a TileDB current domain of version {version}");
            return Err(Error::unsupported(message));
        }
        if flag(reader, "empty current domain")? {
            return Ok(None);
        }
        let shape = reader.u8()?;
        if shape != 0 {
            let message =
                format!("a TileDB current domain of type {shape}, expected 0 (rectangle)");
            return Err(Error::unsupported(message));
        }
        let ranges = read_ranges(&self.dimensions, reader)?;
        let inside = |(range, dimension): (&CoordinateRange, &DimensionSchema)| match (
            dimension.domain,
            range,
        ) {
            (DimensionDomain::Integer { low, high, .. }, CoordinateRange::Integer(from, to)) => {
                low <= *from && *to <= high
            }
            (DimensionDomain::Float { low, high, .. }, CoordinateRange::Float(from, to)) => {
                low <= *from && *to <= high
            }
            _ => true,
        };
        if !ranges.iter().zip(&self.dimensions).all(inside) {
            return Err(reader.corrupt("a current domain that exceeds the domain"));
        }
        Ok(Some(ranges))
    }
}

fn known_version(version: u32) -> Result<u32> {
    match version {
        OLDEST_VERSION..=LATEST_VERSION => Ok(version),
        ..OLDEST_VERSION => Err(too_old(version)),
        _ => Err(too_new(version)),
    }
}

/// Returns the error for a format version that is too old for this reader.
pub(in crate::bytes) fn too_old(version: u32) -> Error {
    Error::unsupported(format!(
        "TileDB format version {version}; this reader knows versions from {OLDEST_VERSION} on"
    ))
}

/// Reads a range of coordinates per dimension.
pub(in crate::bytes) fn read_ranges(
    dimensions: &[DimensionSchema],
    reader: &mut Reader<'_>,
) -> Result<Vec<CoordinateRange>> {
    dimensions.iter().map(|dimension| dimension.range(reader)).collect()
}

/// Returns the ends of ranges of whole numbers; `None` unless all of them are.
pub(in crate::bytes) fn integers(ranges: &[CoordinateRange]) -> Option<Vec<(i128, i128)>> {
    ranges.iter().map(CoordinateRange::integers).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::testing;
    use crate::bytes::testing::{SchemaBytes, generic_tile};
    use gridfusion_core::ErrorKind;

    fn parse(content: &[u8]) -> Result<ArraySchema> {
        ArraySchema::parse(&generic_tile(content), None)
    }

    #[test]
    fn a_schema_is_read_whole() {
        let bytes = SchemaBytes::dense_2d().content();
        let schema = parse(&bytes).unwrap();
        assert_eq!((schema.version, schema.kind), (22, ArrayKind::Dense));
        assert_eq!(schema.dimensions.len(), 2);
        assert_eq!(schema.attribute_index("v"), Some(0));
        assert_eq!(schema.attribute_index("w"), None);
        assert_eq!(schema.current_domain, None);
        let mut longer = bytes.clone();
        longer.push(0);
        assert!(parse(&longer).is_err());
        for len in 0..bytes.len() {
            assert!(parse(&bytes[..len]).is_err(), "{len}");
        }
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let _ = parse(&bytes);
        }
    }

    #[test]
    fn only_known_versions_are_read() {
        for (version, ok) in
            [(4, false), (5, true), (12, true), (22, true), (23, true), (24, false)]
        {
            let schema = SchemaBytes { version, ..SchemaBytes::dense_2d() };
            let parsed = parse(&schema.content());
            assert_eq!(parsed.is_ok(), ok, "{version}");
            if let Err(error) = parsed {
                assert_eq!(error.kind(), ErrorKind::Unsupported);
                assert!(error.to_string().contains(&version.to_string()));
            }
        }
    }

    #[test]
    fn a_current_domain_lies_in_the_domain() {
        let with = |ranges: [(i32, i32); 2]| {
            let schema =
                SchemaBytes { current_domain: Some(ranges.to_vec()), ..SchemaBytes::dense_2d() };
            parse(&schema.content())
        };
        let schema = with([(1, 3), (2, 2)]).unwrap();
        let ranges = [(1, 3), (2, 2)].map(|(low, high)| CoordinateRange::Integer(low, high));
        assert_eq!(schema.current_domain, Some(ranges.to_vec()));
        assert!(with([(0, 3), (2, 2)]).is_err());
        assert!(with([(1, 3), (3, 2)]).is_err());
    }

    #[test]
    fn labels_and_enumerations_are_listed() {
        let schema = SchemaBytes {
            labels: vec![testing::label(1, "lbl", "__labels/l0")],
            enumerations: vec![("days", "__abc_0")],
            ..SchemaBytes::dense_2d()
        };
        let schema = parse(&schema.content()).unwrap();
        assert_eq!((schema.labels[0].dimension, &*schema.labels[0].uri), (1, "__labels/l0"));
        assert_eq!(schema.enumeration_files, [("days".to_owned(), "__abc_0".to_owned())]);
        let label = testing::label(2, "lbl", "__labels/l0");
        let schema = SchemaBytes { labels: vec![label], ..SchemaBytes::dense_2d() };
        assert!(parse(&schema.content()).is_err());
    }
}
