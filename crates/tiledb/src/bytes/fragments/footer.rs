//! The footer of a fragment's metadata: the box that the fragment covers, and the offsets of blocks.
//!
//! ```text
//!   __fragment_metadata.tdb
//!   ├ block ┼ block ┼ … ┼ block ┼ footer ┼ length ┤      the length is there since format 10, and
//!       ▲       ▲          ▲       │                     wherever a dimension is text
//!       └───────┴──────────┴───────┘ offsets, one per field and kind of block
//! ```
//!
//! Blocks are generic tiles with statistics or the offsets of a field's tiles. The fields are the
//! attributes, one unused slot, the dimensions, and timestamps and deletions of sparse fragments.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use crate::bytes::folder::OLD_SCHEMA_FILE;
use crate::bytes::generic_tile::{LATEST_VERSION, too_new};
use crate::bytes::schema::{
    ArraySchema, CoordinateRange, DimensionDomain, OLDEST_VERSION, read_ranges, too_old,
};
use crate::bytes::text::{flag, numbers, text64};
use gridfusion_core::format::wire::{Reader, to_usize};
use gridfusion_core::{Error, Result};

/// The footer of a fragment. `crates/tiledb/FORMAT.md`, section 7, has every byte.
#[derive(Debug, Clone)]
pub(in crate::bytes) struct Footer {
    pub(in crate::bytes) version: u32,
    /// The file name of the schema that the fragment was written with. Footers before format 10 give none:
    /// then it is that of the array's only schema.
    pub(in crate::bytes) schema_name: String,
    pub(in crate::bytes) schema: Arc<ArraySchema>,
    pub(in crate::bytes) is_dense: bool,
    /// The box that the fragment covers: a range per dimension.
    pub(in crate::bytes) domain: Vec<CoordinateRange>,
    /// The number of tiles of a sparse fragment. The tiles of a dense fragment follow from its box.
    pub(in crate::bytes) sparse_tiles: u64,
    /// The number of cells in the last tile of a sparse fragment.
    pub(in crate::bytes) last_tile_cells: u64,
    /// Whether a sparse fragment stores the time of each cell.
    pub(in crate::bytes) has_timestamps: bool,
    /// Whether a sparse fragment stores when each cell was deleted, and by which condition.
    pub(in crate::bytes) has_deletions: bool,
    /// The offset of the block with the R-tree.
    pub(in crate::bytes) rtree: u64,
    /// Since format 16: the offset of the block that lists the delete conditions in the fragment.
    pub(in crate::bytes) processed_conditions: Option<u64>,
    pub(in crate::bytes) fields: Fields,
    /// The offsets of the blocks in the file, ascending. Offsets may repeat.
    blocks: Vec<u64>,
    /// The offset of the footer in the file, where the last block ends.
    start: u64,
}

/// File sizes and block offsets, each list with one per field. Lists that a format version lacks are empty.
///
/// Sizes are bytes of a field's files in the fragment's folder. All other lists have offsets of blocks in the
/// metadata file.
#[derive(Debug, Clone, Default)]
pub(in crate::bytes) struct Fields {
    /// Sizes of the files of values or, if their length varies, of offsets.
    pub(in crate::bytes) file_sizes: Vec<u64>,
    /// Sizes of the files of content, 0 for fields of fixed size.
    pub(in crate::bytes) var_file_sizes: Vec<u64>,
    /// Since format 7: sizes of the files of validity bytes.
    pub(in crate::bytes) validity_file_sizes: Vec<u64>,
    /// Blocks: where each tile begins in the file of values.
    pub(in crate::bytes) tile_offsets: Vec<u64>,
    /// Blocks: where each tile begins in the file of content.
    pub(in crate::bytes) var_tile_offsets: Vec<u64>,
    /// Blocks: the decoded bytes of each tile of content.
    pub(in crate::bytes) var_tile_sizes: Vec<u64>,
    /// Since format 7, blocks: where each tile begins in the file of validity bytes.
    pub(in crate::bytes) validity_tile_offsets: Vec<u64>,
    /// Since format 11, blocks of tile statistics: this list and the next three.
    pub(in crate::bytes) mins: Vec<u64>,
    pub(in crate::bytes) maxs: Vec<u64>,
    pub(in crate::bytes) sums: Vec<u64>,
    pub(in crate::bytes) null_counts: Vec<u64>,
}

const REGION: &str = "fragment footer";
/// Bytes of the footer's length, which follows the footer.
const LENGTH_LEN: u64 = 8;

/// The range of the footer in a file of `file_len` bytes that ends with `tail`.
///
/// `name_version`, the format version in the fragment's name, decides whether the file stores the length of
/// the footer. `old_schema` is the schema of an array before format 10.
///
/// A file of 1000 bytes whose last 8 bytes are the number 300 has its footer at bytes 692 to 992.
pub(in crate::bytes) fn footer_range(
    tail: &[u8],
    file_len: u64,
    name_version: u32,
    old_schema: Option<&ArraySchema>,
) -> Result<Range<u64>> {
    let corrupt = |message: String| Error::corrupt(REGION, file_len, message);
    // `end` is where the footer ends, and `len` its length.
    let (end, len) = match old_schema {
        Some(schema) if name_version < 10 && !has_text(schema) => {
            (file_len, computed_len(schema, name_version))
        }
        _ => {
            let length = tail.last_chunk().map(|bytes| u64::from_le_bytes(*bytes));
            let length = length.ok_or_else(|| {
                corrupt(format!("a file of {file_len} bytes, too short for a footer"))
            })?;
            (file_len.saturating_sub(LENGTH_LEN), length)
        }
    };
    let start = end.checked_sub(len);
    let start = start.ok_or_else(|| {
        corrupt(format!("a footer of {len} bytes, but the file has {file_len} bytes"))
    })?;
    Ok(start..end)
}

fn has_text(schema: &ArraySchema) -> bool {
    schema.dimensions.iter().any(|dimension| dimension.domain == DimensionDomain::Text)
}

/// The length of a footer of format 5 to 9 if all dimensions have a fixed size.
fn computed_len(schema: &ArraySchema, version: u32) -> u64 {
    let fields = schema.attributes.len() as u64 + 1 + schema.dimensions.len() as u64;
    let domain: u64 = schema.dimensions.iter().map(|at| 2 * at.datatype.size()).sum();
    let per_field = if version < 7 { 2 + 3 } else { 3 + 4 };
    // Version, two flags, domain, tiles, cells of the last tile, lists, R-tree.
    4 + 1 + 1 + domain + 8 + 8 + per_field * fields * 8 + 8
}

impl Footer {
    /// Parses the footer in `bytes`, which begins at byte `start` of its file. `schemas` are those of the
    /// array, by file name.
    ///
    /// # Errors
    /// `Corrupt` if the footer is malformed, or names a schema that is not there; `Unsupported` for unknown
    /// versions.
    pub(in crate::bytes) fn parse(
        bytes: &[u8],
        start: u64,
        schemas: &HashMap<String, Arc<ArraySchema>>,
    ) -> Result<Self> {
        let mut reader = Reader::new(REGION, start, bytes);
        let (version, schema_name) = parse_head(&mut reader)?;
        let schema = schemas.get(&schema_name).ok_or_else(|| {
            reader.corrupt(format!("schema \"{schema_name}\", which the array does not have"))
        })?;
        let is_dense = flag(&mut reader, "dense")?;
        if flag(&mut reader, "a missing domain")? {
            return Err(reader.corrupt("a fragment without a domain"));
        }
        let domain = read_ranges(&schema.dimensions, &mut reader)?;
        let sparse_tiles = reader.u64()?;
        let last_tile_cells = reader.u64()?;
        let has_timestamps = version >= 14 && flag(&mut reader, "timestamps")?;
        let has_deletions = version >= 15 && flag(&mut reader, "deletions")?;
        // The number of fields: see the module's documentation.
        let count = schema.attributes.len()
            + 1
            + schema.dimensions.len()
            + usize::from(has_timestamps)
            + 2 * usize::from(has_deletions);
        let (fields, FragmentBlocks { rtree, processed_conditions, mut blocks }) =
            Fields::parse(&mut reader, version, count as u64)?;
        skip_sections(&mut reader, version)?;
        reader.end()?;
        blocks.sort_unstable();
        Ok(Self {
            version,
            schema_name,
            schema: Arc::clone(schema),
            is_dense,
            domain,
            sparse_tiles,
            last_tile_cells,
            has_timestamps,
            has_deletions,
            rtree,
            processed_conditions,
            fields,
            blocks,
            start,
        })
    }

    /// The bytes of the block that begins at `offset`, up to the next block or the footer.
    pub(in crate::bytes) fn block(&self, offset: u64) -> Result<Range<u64>> {
        if offset >= self.start {
            let message =
                format!("a block at byte {offset}, expected before the footer at {}", self.start);
            return Err(Error::corrupt(REGION, self.start, message));
        }
        // A block's length is stored nowhere in the footer. Blocks follow one another without gaps.
        let next = self.blocks.partition_point(|block| *block <= offset);
        let end = self.blocks.get(next).map_or(self.start, |next| *next).min(self.start);
        Ok(offset..end)
    }
}

/// Reads the version, and the name of the schema.
fn parse_head(reader: &mut Reader<'_>) -> Result<(u32, String)> {
    match reader.u32()? {
        older @ ..OLDEST_VERSION => Err(too_old(older)),
        version @ ..10 => Ok((version, OLD_SCHEMA_FILE.to_owned())),
        version @ ..=LATEST_VERSION => Ok((version, text64(reader, "the name of the schema")?)),
        newer => Err(too_new(newer)),
    }
}

/// The offsets of blocks that belong to the whole fragment, and of all blocks.
struct FragmentBlocks {
    rtree: u64,
    processed_conditions: Option<u64>,
    blocks: Vec<u64>,
}

impl Fields {
    /// Parses the lists of `count` fields each, and the offsets of the other blocks.
    fn parse(reader: &mut Reader<'_>, version: u32, count: u64) -> Result<(Self, FragmentBlocks)> {
        // Reads a list of the format versions from `since` on; in older footers, it takes no bytes.
        let mut column = |since: u32| match version >= since {
            true => numbers(reader, count),
            false => Ok(vec![]),
        };
        let mut fields = Self {
            file_sizes: column(0)?,
            var_file_sizes: column(0)?,
            validity_file_sizes: column(7)?,
            ..Self::default()
        };
        let rtree = reader.u64()?;
        let mut column = |since: u32| match version >= since {
            true => numbers(reader, count),
            false => Ok(vec![]),
        };
        fields.tile_offsets = column(0)?;
        fields.var_tile_offsets = column(0)?;
        fields.var_tile_sizes = column(0)?;
        fields.validity_tile_offsets = column(7)?;
        fields.mins = column(11)?;
        fields.maxs = column(11)?;
        fields.sums = column(11)?;
        fields.null_counts = column(11)?;
        let statistics = if version >= 12 { Some(reader.u64()?) } else { None };
        let processed_conditions = if version >= 16 { Some(reader.u64()?) } else { None };
        // The end of any block may be the beginning of any other, so the offsets of all of them are needed.
        let columns = [
            &fields.tile_offsets,
            &fields.var_tile_offsets,
            &fields.var_tile_sizes,
            &fields.validity_tile_offsets,
            &fields.mins,
            &fields.maxs,
            &fields.sums,
            &fields.null_counts,
        ];
        let whole = [Some(rtree), statistics, processed_conditions];
        let blocks = whole.into_iter().flatten().chain(columns.into_iter().flatten().copied());
        let blocks = blocks.collect();
        Ok((fields, FragmentBlocks { rtree, processed_conditions, blocks }))
    }
}

/// Skips the optional sections, which format 23 added.
fn skip_sections(reader: &mut Reader<'_>, version: u32) -> Result<()> {
    if version >= 23 {
        for _ in 0..reader.u32()? {
            reader.u64()?;
            let len = reader.u32()?;
            reader.take(to_usize(u64::from(len)))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::schema::integers;
    use crate::bytes::testing::{FooterBytes, SCHEMA_NAME, SchemaBytes, generic_tile};

    fn schemas(version: u32, name: &str) -> HashMap<String, Arc<ArraySchema>> {
        let bytes = SchemaBytes { version, ..SchemaBytes::dense_2d() }.content();
        let schema = ArraySchema::parse(&generic_tile(&bytes), None).unwrap();
        HashMap::from([(name.to_owned(), Arc::new(schema))])
    }

    #[test]
    fn versions_5_to_23() {
        for version in 5..=23 {
            let bytes = FooterBytes { version, ..FooterBytes::dense_2d() }.content();
            let name = if version < 10 { OLD_SCHEMA_FILE } else { SCHEMA_NAME };
            let schemas = schemas(version, name);
            let footer = Footer::parse(&bytes, 1000, &schemas).unwrap();
            assert_eq!(integers(&footer.domain), Some(vec![(1, 4), (1, 4)]), "{version}");
            assert_eq!(footer.fields.tile_offsets.len(), 4);
            for len in 0..bytes.len() {
                assert!(Footer::parse(&bytes[..len], 1000, &schemas).is_err(), "{version} {len}");
            }
            let mut file = vec![9; 1000];
            file.extend(&bytes);
            if version >= 10 {
                file.extend((bytes.len() as u64).to_le_bytes());
            }
            let (tail, len) = (&file[990..], file.len() as u64);
            let range = footer_range(tail, len, version, Some(&schemas[name])).unwrap();
            assert_eq!(range, 1000..1000 + bytes.len() as u64, "{version}");
        }
    }

    #[test]
    fn blocks_end_where_the_next_begins() {
        let columns = [40, 70, 70, 40, 70, 70, 70, 70];
        let bytes = FooterBytes { columns, ..FooterBytes::dense_2d() }.content();
        let footer = Footer::parse(&bytes, 100, &schemas(22, SCHEMA_NAME)).unwrap();
        assert_eq!(footer.block(0).unwrap(), 0..40);
        assert_eq!(footer.block(40).unwrap(), 40..70);
        assert_eq!(footer.block(70).unwrap(), 70..100);
        assert!(footer.block(100).is_err());
    }

    #[test]
    fn impossible_footers_are_refused() {
        let parse = |footer: FooterBytes| {
            Footer::parse(&footer.content(), 100, &schemas(22, SCHEMA_NAME)).map(drop)
        };
        assert!(parse(FooterBytes { schema_name: "__other", ..FooterBytes::dense_2d() }).is_err());
        assert!(
            parse(FooterBytes { domain: [(3, 1), (1, 4)], ..FooterBytes::dense_2d() }).is_err()
        );
        for version in [0, 4, 24] {
            assert!(parse(FooterBytes { version, ..FooterBytes::dense_2d() }).is_err());
        }
        assert!(footer_range(&[1; 7], 7, 22, None).is_err());
        assert!(footer_range(&[1, 0, 0, 0, 0, 0, 0, 0], 8, 22, None).is_err());
        assert_eq!(footer_range(&[0; 8], 8, 22, None).unwrap(), 0..0);
    }
}
