//! [`NewFragment`]: the files of a fragment, and its metadata (section 7 of the format).

use gridfusion_core::Result;
use gridfusion_core::format::{Content, Write};

use super::field::NewField;
use super::schema::VERSION;
use super::stored::Fields;
use super::tile::CellEncoder;
use crate::bytes::{Datatype, encode_generic_tile};

/// A fragment of a dense array that is being written.
#[derive(Debug)]
pub(super) struct NewFragment {
    /// The path of the array in the folder that is written to: empty, or with `/` at its end.
    root: String,
    name: String,
    /// The attributes, in the order in which their chunks are numbered.
    pub(super) fields: Vec<NewField>,
}

/// The box of a fragment.
#[derive(Debug)]
pub(super) struct FragmentBox {
    /// The type of coordinates.
    pub(super) datatype: Datatype,
    /// The least and the greatest coordinate of each dimension.
    pub(super) ranges: Vec<(i128, i128)>,
    pub(super) tiles: u64,
    /// The cells of a tile.
    pub(super) tile_cells: u64,
}

impl NewFragment {
    /// Makes a fragment with `name` of the array at `root`.
    pub(super) fn new(root: String, name: String) -> Self {
        Self { root, name, fields: vec![] }
    }

    /// Adds the attribute of this number, whose tiles have so many cells. `keeps_validity` means that each tile has validity.
    pub(super) fn add_field(
        &mut self,
        number: usize,
        encoder: CellEncoder,
        tile_cells: usize,
        keeps_validity: bool,
    ) {
        let stem = format!("{}__fragments/{}/a{number}", self.root, self.name);
        self.fields.push(NewField::new(number, encoder, &stem, tile_cells, keeps_validity));
    }

    /// Completes the files, and returns the writes of the metadata.
    ///
    /// # Errors
    /// `Internal` errors only.
    pub(super) fn finish(
        &mut self,
        schema_name: &str,
        covered: &FragmentBox,
    ) -> Result<Vec<Write>> {
        let mut writes = vec![];
        for field in &mut self.fields {
            writes.extend(field.complete());
        }
        let object = format!("{}__fragments/{}/__fragment_metadata.tdb", self.root, self.name);
        let metadata = self.metadata(schema_name, covered)?;
        writes.push(Write::Put(vec![Content::new(object, metadata)]));
        Ok(writes)
    }

    /// Returns an attribute by its number in the schema.
    fn field(&self, number: usize) -> Option<&NewField> {
        self.fields.iter().find(|field| field.number == number)
    }

    /// Returns the object that makes the fragment a part of its array.
    pub(super) fn commit(&self) -> Content {
        Content::new(format!("{}__commits/{}.wrt", self.root, self.name), vec![])
    }

    /// Returns the metadata: blocks of all fields, and the footer with their positions.
    fn metadata(&self, schema_name: &str, covered: &FragmentBox) -> Result<Vec<u8>> {
        // Attributes, an unused number, and dimensions, which have no files.
        let count = self.fields.len() + 1 + covered.ranges.len();
        let mut blocks = Blocks::default();
        /// The children of a node of the R-tree, which has no levels.
        const FANOUT: u32 = 10;
        let rtree = blocks.add(&[FANOUT.to_le_bytes(), [0; 4]].concat())?;
        let mut columns = vec![];
        for column in 0..COLUMNS {
            for number in 0..count {
                let block = match self.field(number) {
                    Some(field) => field.block(column),
                    None => absent_block(column, covered.tiles),
                };
                columns.push(blocks.add(&block)?);
            }
        }
        let mut whole = Fields::default();
        for number in 0..count {
            match self.field(number) {
                Some(field) => field.add_statistics(&mut whole),
                None => whole.words(&[0; 4]),
            }
        }
        let statistics = blocks.add(&whole.0)?;
        let conditions = blocks.add(&0_u64.to_le_bytes())?;

        let mut footer = Fields::default();
        footer.u32(VERSION);
        footer.text64(schema_name);
        footer.flag(true); // dense
        footer.flag(false); // there is a box
        for (low, high) in &covered.ranges {
            footer.integer(*low, covered.datatype.size());
            footer.integer(*high, covered.datatype.size());
        }
        footer.words(&[0, covered.tile_cells]);
        footer.flag(false); // no times of cells
        footer.flag(false); // no deletions
        for file in 0..FILES {
            let len = |number: usize| self.field(number).map_or(0, |it| it.file_len(file));
            footer.words(&(0..count).map(len).collect::<Vec<_>>());
        }
        footer.u64(rtree);
        footer.words(&columns);
        footer.words(&[statistics, conditions]);
        let mut bytes = blocks.bytes;
        let len = footer.0.len() as u64;
        bytes.extend(footer.0);
        bytes.extend(len.to_le_bytes());
        Ok(bytes)
    }
}

/// The files of a field: values, content and validity.
pub(super) const FILES: usize = 3;
/// The blocks of a field: three kinds of offsets and the sizes of content, and four of statistics.
const COLUMNS: usize = 8;

/// Returns a block of a field without tiles.
fn absent_block(column: usize, tiles: u64) -> Vec<u8> {
    let mut block = Fields::default();
    match column {
        0..4 => {
            block.u64(tiles);
            block.words(&vec![0; tiles as usize]);
        }
        4 | 5 => block.words(&[0, 0]),
        _ => block.u64(0),
    }
    block.0
}

/// Generic tiles, one after the other.
#[derive(Debug, Default)]
struct Blocks {
    bytes: Vec<u8>,
}

impl Blocks {
    /// Adds a block, and returns its position.
    fn add(&mut self, content: &[u8]) -> Result<u64> {
        let at = self.bytes.len() as u64;
        self.bytes.extend(encode_generic_tile(content)?);
        Ok(at)
    }
}
