//! The tiles of a TileDB fragment's fields, and the metadata that locates them.
//!
//! ```text
//!   cells ──▶ Column ──▶ a0.tdb, a0_var.tdb, a0_validity.tdb
//!               └─▶ metadata_file ──▶ __fragment_metadata.tdb
//! ```

use rand::Rng;
use rand::rngs::StdRng;

use crate::support::tiledb_statistics::Block;
use crate::support::tiledb_writer::{
    Cell, Filters, TestAttribute, generic_tile, junk, width, words,
};

/// The data of one field of one fragment.
#[derive(Default)]
pub(crate) struct Column {
    files: [Vec<u8>; 3],
    /// Per file, where its tiles begin.
    offsets: [Vec<u64>; 3],
    content_sizes: Vec<u64>,
    /// Per tile, the cells that were written.
    pub(crate) written: Vec<Vec<Cell>>,
}

impl Column {
    /// Adds a tile with these cells; `None` is a cell outside of the fragment. The two filters are those
    /// of offsets and of validity bytes.
    pub(crate) fn add_tile(
        &mut self,
        attribute: &TestAttribute,
        [of_offsets, of_validity]: [Filters; 2],
        cells: &[Option<&Cell>],
        rng: &mut StdRng,
    ) {
        let (mut values, mut content, mut validity) = (vec![], vec![], vec![]);
        for cell in cells {
            validity.push(match cell {
                Some(cell) => u8::from(cell.is_some()),
                None => rng.random_range(0..2),
            });
            let bytes = cell.cloned().flatten().unwrap_or_else(|| {
                let len = attribute.cell_width();
                junk(len.unwrap_or_else(|| rng.random_range(0..4) * width(attribute.code)), rng)
            });
            match attribute.values {
                Some(_) => values.extend(bytes),
                None => {
                    values.extend(words([content.len() as u64]));
                    content.extend(bytes);
                }
            }
        }
        self.written.push(cells.iter().filter_map(|cell| cell.cloned()).collect());
        self.content_sizes.push(content.len() as u64);
        let size = width(attribute.code);
        let fixed = attribute.cell_width();
        let filters = if fixed.is_some() { attribute.filters } else { of_offsets };
        let (unit, value_width) = fixed.map_or((8, 8), |cell| (cell, size));
        let mut add = |file: usize, tile: Vec<u8>| {
            self.offsets[file].push(self.files[file].len() as u64);
            self.files[file].extend(tile);
        };
        add(0, filters.tile(&values, unit, value_width, rng));
        if fixed.is_none() {
            add(1, attribute.filters.tile(&content, size, size, rng));
        }
        if attribute.nullable {
            add(2, of_validity.tile(&validity, 1, 1, rng));
        }
    }

    /// The files with content, by their names, which begin with `stem`.
    pub(crate) fn named_files(&self, stem: &str) -> Vec<(String, Vec<u8>)> {
        let files = self.files.iter().zip(["", "_var", "_validity"]);
        let files = files.filter(|(file, _)| !file.is_empty());
        files.map(|(file, suffix)| (format!("{stem}{suffix}.tdb"), file.clone())).collect()
    }
}

/// A field in a fragment's metadata: its tiles, if it has any, and the blocks of its statistics.
pub(crate) type FieldMetadata<'a> = (Option<&'a Column>, [Block; 4]);

/// The file of a fragment's metadata: blocks, footer, the footer's length.
///
/// `footer` is the footer up to its lists of fields. `processed` lists the delete conditions that were
/// applied, which fragments have since format 16.
pub(crate) fn metadata_file(
    mut footer: Vec<u8>,
    rtree: Block,
    fields: &[FieldMetadata<'_>],
    processed: Option<Block>,
) -> Vec<u8> {
    let numbers = |numbers: &[u64]| words([&[numbers.len() as u64], numbers].concat());
    let mut blocks: Vec<Block> = vec![rtree];
    for pick in [
        |column: &Column| column.offsets[0].clone(),
        |column: &Column| column.offsets[1].clone(),
        |column: &Column| match column.offsets[1].is_empty() {
            true => vec![],
            false => column.content_sizes.clone(),
        },
        |column: &Column| column.offsets[2].clone(),
    ] {
        for (column, _) in fields {
            blocks.push(numbers(&column.map(pick).unwrap_or_default()));
        }
    }
    for kind in 0..4 {
        blocks.extend(fields.iter().map(|(_, statistics)| statistics[kind].clone()));
    }
    blocks.push(vec![0; 32 * fields.len()]); // no statistics of the whole fragment
    blocks.extend(processed);

    let mut file = vec![];
    let mut starts = vec![];
    for block in blocks {
        starts.push(file.len() as u64);
        file.extend(generic_tile(&block));
    }
    for kind in 0..3 {
        let lens = fields
            .iter()
            .map(|(column, _)| column.map_or(0, |column| column.files[kind].len() as u64));
        footer.extend(words(lens));
    }
    footer.extend(words(starts));
    let len = footer.len() as u64;
    file.extend(footer);
    file.extend(words([len]));
    file
}
