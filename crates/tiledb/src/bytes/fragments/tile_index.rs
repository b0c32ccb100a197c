//! The tile index: where the tiles of one field of one fragment are stored.
//!
//! ```text
//!   blocks of the fragment's metadata           files of the fragment
//!   ├ offsets of tiles          ┤ ───────────▶  aI.tdb           values, or offsets of values
//!   ├ offsets of content tiles  ┤ ───────────▶  aI_var.tdb       values of variable length
//!   ├ sizes of content tiles    ┤
//!   ├ offsets of validity tiles ┤ ───────────▶  aI_validity.tdb  a byte per cell, 0 for NULL
//! ```
//!
//! The blocks are read when a query first needs a tile of the field. With them, a tile's number gives its
//! bytes: if tiles begin at 0 and 60 in a file of 100 bytes, tile 1 is at bytes 60 to 100.
//!
//! Only content tiles need a block of lengths: decoded, they have as many bytes as their values have
//! together. All other tiles have their number of cells times the size of a value, of an offset (8 bytes) or
//! of a validity byte. Only the last tile of a sparse fragment has fewer cells than the others.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::field::FieldSchema;
use super::fragment::{CONTENT, Fragment, VALIDITY, VALUES};
use crate::bytes::datatype::Datatype;
use crate::bytes::filter::{EncryptionKey, Field, Pipeline, drops_offsets};
use crate::bytes::generic_tile;
use crate::bytes::text::numbers;
use gridfusion_core::format::wire::Reader;
use gridfusion_core::format::{Codec, Location, Payload};
use gridfusion_core::{Error, Result};

/// The positions of the tiles of one field in the files of one fragment.
#[derive(Debug)]
pub(in crate::bytes) struct TileIndex {
    /// Values or, if their length varies, offsets of cells in the content.
    values: TileFile,
    /// `None` for values of fixed size.
    content: Option<ContentTiles>,
    /// `None` if the field is not nullable.
    validity: Option<TileFile>,
    /// The number of cells in a full tile, and in the last one.
    cells: [u64; 2],
}

/// The content tiles of a field: its values of variable length.
#[derive(Debug)]
struct ContentTiles {
    file: TileFile,
    /// The length of each decoded tile in bytes.
    raw_lens: Vec<u64>,
}

/// A file of tiles, with the position of each tile.
#[derive(Debug)]
struct TileFile {
    object: Arc<str>,
    codec: Codec,
    /// The bytes of a decoded cell; 0 for content, whose tiles differ in length
    /// ([`ContentTiles::raw_lens`]), and for offsets that are stored with the content.
    cell_size: u64,
    /// The offset of each tile in the file, and then the end of the last tile. Never descending.
    offsets: Vec<u64>,
    /// The size of the file in bytes; `None` if the file is missing. Only locating a tile makes that an
    /// error.
    len: Option<u64>,
}

/// The payloads of a tile: values, content and validity.
pub(in crate::bytes) type Payloads = (Payload, Option<Payload>, Option<Payload>);

const REGION: &str = "tile index";

/// Returns the locations of the blocks that [`TileIndex::parse`] needs for field number `field` of
/// the fragment: two of content for values of variable length, one of validity for nullable ones.
///
/// # Errors
/// `Corrupt` if an offset lies in or after the footer, or if nullable cells cannot have files in this
/// version.
pub(in crate::bytes) fn block_locations(
    fragment: &Fragment,
    field: usize,
) -> Result<Vec<Location>> {
    let stored = fragment.field(field)?;
    let fields = &fragment.footer.fields;
    let mut columns = vec![&fields.tile_offsets];
    if stored.is_variable() {
        columns.extend([&fields.var_tile_offsets, &fields.var_tile_sizes]);
    }
    if stored.nullable {
        if fields.validity_tile_offsets.is_empty() {
            let (name, version) = (stored.name, fragment.version);
            let message =
                format!("format version {version}, expected 7 or newer as \"{name}\" is nullable");
            let error = Error::corrupt_region("fragment footer", message);
            return Err(error.about(&fragment.metadata_object()));
        }
        columns.push(&fields.validity_tile_offsets);
    }
    locations(fragment, field, &columns)
}

/// Returns the locations of blocks of one field. Each of `columns` is a list of the footer: the offset
/// of one kind of block, per field.
pub(in crate::bytes) fn locations(
    fragment: &Fragment,
    field: usize,
    columns: &[&Vec<u64>],
) -> Result<Vec<Location>> {
    let object: Arc<str> = fragment.metadata_object().into();
    let location = |column: &&Vec<u64>| {
        let offset = column.get(field).copied();
        let offset = offset.ok_or_else(|| Error::internal("a block that this version lacks"))?;
        let range = fragment.footer.block(offset).map_err(|error| error.about(&object))?;
        Ok(Location::new(Arc::clone(&object), range))
    };
    columns.iter().map(location).collect()
}

impl TileIndex {
    /// Parses the `blocks` that were read from the `locations` of [`block_locations`].
    pub(in crate::bytes) fn parse(
        fragment: &Fragment,
        field: usize,
        locations: &[Location],
        blocks: &[Bytes],
        key: Option<&EncryptionKey>,
    ) -> Result<Self> {
        // Parses one block after the other, in the order of `block_locations`: each `column()` below takes
        // the next.
        let mut columns = locations.iter().zip(blocks).map(|(at, block)| {
            let parsed = parse_block(block, at.start(), fragment.tiles, key);
            parsed.map_err(|error| error.about(&at.object))
        });
        let mut column =
            || columns.next().unwrap_or_else(|| Err(Error::internal("a block is missing")));
        let maker = TileFileBuilder { fragment, field, stored: fragment.field(field)?, key };
        let values = maker.values(column()?)?;
        let content = match maker.stored.is_variable() {
            true => Some(ContentTiles { file: maker.content(column()?)?, raw_lens: column()? }),
            false => None,
        };
        let validity = match maker.stored.nullable {
            true => Some(maker.validity(column()?)?),
            false => None,
        };
        let last = fragment.tiles.saturating_sub(1);
        let cells = [fragment.tile_cells(0)?, fragment.tile_cells(last)?];
        Ok(Self { values, content, validity, cells })
    }

    /// Returns the payloads of tile number `tile` of the fragment.
    ///
    /// # Errors
    /// `Corrupt` if a file is missing, or too short for the tile.
    pub(in crate::bytes) fn payloads(&self, tile: u64) -> Result<Payloads> {
        let content = self.content.as_ref().map(|content| {
            let place = usize::try_from(tile).ok();
            let raw_len = place.and_then(|place| content.raw_lens.get(place)).copied();
            let raw_len = raw_len.ok_or_else(|| Error::internal("a tile that does not exist"))?;
            content.file.payload(tile, raw_len)
        });
        let fixed = |file: &TileFile| file.payload(tile, self.tile_len(file, tile)?);
        let validity = self.validity.as_ref().map(fixed);
        let values = fixed(&self.values)?;
        Ok((values, content.transpose()?, validity.transpose()?))
    }
}

impl TileIndex {
    /// Returns the length of a decoded tile whose cells have a fixed size.
    fn tile_len(&self, file: &TileFile, tile: u64) -> Result<u64> {
        let is_last = file.range(tile.saturating_add(1)).is_none();
        let len = file.cell_size.checked_mul(self.cells[usize::from(is_last)]);
        len.ok_or_else(|| Error::unsupported("tiles of 2^64 bytes or more"))
    }
}

/// Parses a block of one number per tile, which begins at byte `offset` of the metadata file.
fn parse_block(
    block: &[u8],
    offset: u64,
    tiles: u64,
    key: Option<&EncryptionKey>,
) -> Result<Vec<u64>> {
    let content = generic_tile::decode(REGION, offset, block, key)?;
    let mut reader = Reader::new(REGION, 0, &content);
    let count = reader.u64()?;
    if count != tiles {
        return Err(reader.corrupt(format!("{count} tiles, but the fragment covers {tiles}")));
    }
    let numbers = numbers(&mut reader, count)?;
    reader.end()?;
    Ok(numbers)
}

/// A builder of the [`TileFile`]s of one field of one fragment.
struct TileFileBuilder<'a> {
    fragment: &'a Fragment,
    field: usize,
    stored: FieldSchema<'a>,
    key: Option<&'a EncryptionKey>,
}

impl TileFileBuilder<'_> {
    /// Makes the file of the values or, if their length varies, of their offsets.
    fn values(&self, offsets: Vec<u64>) -> Result<TileFile> {
        let schema = &self.fragment.schema;
        let end = self.file_len(&self.fragment.footer.fields.file_sizes);
        let Some(cell_size) = self.stored.cell_size() else {
            // The values of this file are offsets: one of 8 bytes per cell.
            let cell_size = if self.drops_offsets() { 0 } else { 8 };
            let pipeline = &schema.offsets_pipeline;
            let codec = self.codec(pipeline, Datatype::UInt64, 8, false)?;
            return self.file(VALUES, codec, cell_size, offsets, end);
        };
        let datatype = self.stored.datatype;
        let codec = self.codec(self.stored.pipeline, datatype, cell_size, false)?;
        self.file(VALUES, codec, cell_size, offsets, end)
    }

    /// Makes the file of values of variable length.
    fn content(&self, offsets: Vec<u64>) -> Result<TileFile> {
        let (pipeline, datatype) = (self.stored.pipeline, self.stored.datatype);
        let codec = self.codec(pipeline, datatype, datatype.size(), self.drops_offsets())?;
        let end = self.file_len(&self.fragment.footer.fields.var_file_sizes);
        self.file(CONTENT, codec, 0, offsets, end)
    }

    /// Makes the file of validity bytes, one per cell.
    fn validity(&self, offsets: Vec<u64>) -> Result<TileFile> {
        let pipeline = self.fragment.schema.validity_pipeline.as_ref();
        let pipeline =
            pipeline.ok_or_else(|| Error::internal("nullable cells without validity filters"))?;
        let codec = self.codec(pipeline, Datatype::UInt8, 1, false)?;
        let end = self.file_len(&self.fragment.footer.fields.validity_file_sizes);
        self.file(VALIDITY, codec, 1, offsets, end)
    }

    /// Whether the filters of the values store the offsets too. Then the tiles of offsets are empty.
    fn drops_offsets(&self) -> bool {
        let version = self.fragment.schema.version;
        drops_offsets(self.stored.pipeline, self.stored.datatype, version)
    }

    /// Makes the codec of one file. `datatype` and `cell_size` are those of the file's values.
    /// `var_strings` means that the values' encoding contains their offsets.
    fn codec(
        &self,
        pipeline: &Pipeline,
        datatype: Datatype,
        cell_size: u64,
        var_strings: bool,
    ) -> Result<Codec> {
        let fragment_version = self.fragment.version;
        let field = Field { datatype, cell_size, var_strings, fragment_version };
        let codec = pipeline.codec(&field, self.key);
        let about = || format!("\"{}\"", self.stored.name);
        Ok(Codec::Custom(Arc::new(codec.map_err(|error| error.about(&about()))?)))
    }

    /// Returns the size of a file of this field; `sizes` is a list of the footer, per field.
    fn file_len(&self, sizes: &[u64]) -> u64 {
        sizes.get(self.field).copied().unwrap_or(0)
    }

    /// Makes a file of tiles that begin at `offsets`; the last tile ends at `end`. The file may be longer,
    /// since only the footer gives the end of the last tile.
    fn file(
        &self,
        suffix: &str,
        codec: Codec,
        cell_size: u64,
        mut offsets: Vec<u64>,
        end: u64,
    ) -> Result<TileFile> {
        let name = self.fragment.data_file(self.field, suffix);
        let object: Arc<str> = format!("{}/{name}", self.fragment.folder).into();
        offsets.push(end);
        if !offsets.is_sorted() {
            let message =
                format!("the tile offsets of {object} do not ascend to its end at byte {end}");
            return Err(Error::corrupt_region(REGION, message));
        }
        let len = self.fragment.files.get(&name).copied();
        Ok(TileFile { object, codec, cell_size, offsets, len })
    }
}

impl TileFile {
    fn payload(&self, tile: u64, raw_len: u64) -> Result<Payload> {
        let range = self.range(tile);
        let range = range.ok_or_else(|| Error::internal("a tile that does not exist"))?;
        if self.len.is_none_or(|len| range.end > len) {
            let found = match self.len {
                Some(len) => format!("{} has {len} bytes", self.object),
                None => format!("{} does not exist", self.object),
            };
            let message = format!("{found}, expected a tile at bytes {range:?} of it");
            return Err(Error::corrupt("fragment", range.start, message));
        }
        let at = Location::new(Arc::clone(&self.object), range);
        Ok(Payload::new(at, raw_len, self.codec.clone()))
    }

    /// Returns the bytes of a tile in the file; `None` if there is no such tile.
    fn range(&self, tile: u64) -> Option<Range<u64>> {
        let place = usize::try_from(tile).ok()?;
        Some(*self.offsets.get(place)?..*self.offsets.get(place.checked_add(1)?)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::array::TileDbArray;
    use crate::bytes::datatype::VARIABLE;
    use crate::bytes::folder::{OLD_SCHEMA_FILE, OpenOptions};
    use crate::bytes::open_array::OpenArray;
    use crate::bytes::testing;
    use crate::bytes::testing::{
        Folder, FooterBytes, SCHEMA_NAME, SchemaBytes, UUID, generic_tile, words,
    };
    use gridfusion_core::ErrorKind;

    /// Opens an array of nullable text with a fragment of two tiles, which has these blocks.
    fn array(blocks: [&[u64]; 4]) -> Result<TileDbArray> {
        let mut folder = Folder::default();
        let attributes = vec![testing::attribute("s", 12, VARIABLE, &[0], true, "")];
        let schema = SchemaBytes { attributes, ..SchemaBytes::dense_2d() }.content();
        folder.put(&format!("__schema/{SCHEMA_NAME}"), &generic_tile(&schema));
        let (starts, mut metadata) = testing::in_a_row(&blocks.map(words));
        let footer = FooterBytes {
            domain: [(1, 2), (1, 6)],
            file_sizes: [100, 200, 50],
            columns: [starts[0], starts[1], starts[2], starts[3], 0, 0, 0, 0],
            ..FooterBytes::dense_2d()
        };
        let footer = footer.content();
        metadata.extend(&footer);
        metadata.extend(words(&[footer.len() as u64]));
        let name = format!("__5_5_{UUID}_22");
        folder.put(&format!("__fragments/{name}/__fragment_metadata.tdb"), &metadata);
        for (file, len) in [("a0", 100), ("a0_var", 200), ("a0_validity", 50)] {
            folder.put(&format!("__fragments/{name}/{file}.tdb"), &vec![0; len]);
        }
        folder.put(&format!("__commits/{name}.wrt"), b"");
        let array = folder.drive(OpenArray::new(OpenOptions::default()))?;
        let locations = block_locations(&array.fragments[0], 0)?;
        let bytes: Vec<Bytes> = locations.iter().map(|at| folder.read(at)).collect();
        let index = TileIndex::parse(&array.fragments[0], 0, &locations, &bytes, None)?;
        array.keep_tile_index(0, 0, index);
        Ok(array)
    }

    #[test]
    fn text_that_can_be_null_has_three_files() {
        let array = array([&[2, 0, 60], &[2, 10, 80], &[2, 7, 9], &[2, 5, 20]]).unwrap();
        let index = array.tile_index(0, 0).unwrap();
        let shown = |payload: Payload| {
            let file = payload.at.object.rsplit('/').next().unwrap().to_owned();
            (file, payload.at.range.within(0), payload.raw_len)
        };
        for (tile, offsets, content, validity) in
            [(0, 0..60, (10..80, 7), 5..20), (1, 60..100, (80..200, 9), 20..50)]
        {
            let (a, b, c) = index.payloads(tile).unwrap();
            assert_eq!(shown(a), ("a0.tdb".into(), offsets, 48));
            assert_eq!(shown(b.unwrap()), ("a0_var.tdb".into(), content.0, content.1));
            assert_eq!(shown(c.unwrap()), ("a0_validity.tdb".into(), validity, 6));
        }
        assert!(index.payloads(2).is_err());
    }

    #[test]
    fn a_footer_older_than_null_cells_is_refused() {
        let attributes = vec![testing::attribute("v", 0, 1, &[0; 4], true, "")];
        let schema = SchemaBytes { attributes, ..SchemaBytes::dense_2d() }.content();
        let mut folder = Folder::default();
        folder.put(OLD_SCHEMA_FILE, &generic_tile(&schema));
        let name = format!("__5_5_{UUID}_6");
        let footer = FooterBytes { version: 6, ..FooterBytes::dense_2d() }.content();
        let metadata = [generic_tile(b""), footer].concat();
        folder.put(&format!("{name}/__fragment_metadata.tdb"), &metadata);
        folder.put(&format!("{name}.ok"), b"");
        let array = folder.drive(OpenArray::new(OpenOptions::default())).unwrap();
        let error = block_locations(&array.fragments[0], 0).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
    }

    #[test]
    fn blocks_that_cannot_be_right_are_refused() {
        let good: [&[u64]; 4] = [&[2, 0, 60], &[2, 10, 80], &[2, 7, 9], &[2, 5, 20]];
        for (place, block) in [
            (0, &[1, 0][..]),
            (0, &[3, 0, 60, 70]),
            (0, &[2, 60, 0]),
            (1, &[2, 10, 201]),
            (2, &[2, 7]),
            (2, &[2, 7, 9, 9]),
            (3, &[2, 20, 51]),
        ] {
            let mut blocks = good;
            blocks[place] = block;
            assert!(array(blocks).is_err(), "{place} {block:?}");
        }
        assert!(array(good).is_ok());
    }
}
