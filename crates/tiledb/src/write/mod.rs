//! Writing dense arrays of format version 22, and appending to them. Only cells that are there are read; all else does no I/O.
//!
//! ```text
//!   write(chunk)   a tile, appended to the files of its attribute
//!   finish()       metadata of the fragment, arrays of labels, metadata ─▶ commit ─▶ publish the schema
//! ```
//!
//! A folder without `__schema` is no array, for TileDB and for the reader of this crate. So the schema is written last, and makes the
//! array visible as a whole.
//!
//! | file | contents |
//! |---|---|
//! | `writer` | the chunks of an array |
//! | `target`, `appender` | an array that is there; the writer of new cells of it |
//! | `checks` | of arrays and rows, before cells are appended |
//! | `encoding` | the filters of cells |
//! | `axis` | labels as the domain, or as dimension labels |
//! | `label_array` | the array of a dimension label |
//! | `tiles` | the tiles of a fragment, in order |
//! | `old_cells` | cells of an array that is there, between those that change |
//! | `cell_type`, `tile` | the stored types of cells; tiles of an attribute, and their statistics |
//! | `field`, `fragment` | the files of an attribute; those of a fragment, and its metadata |
//! | `schema`, `metadata`, `names` | the other files of an array, and their names |
//! | `stored` | fields of these files |
//!
//! Facts: `FORMAT.md` of this crate, section by section.

mod appender;
mod axis;
mod cell_type;
mod checks;
mod encoding;
mod field;
mod fragment;
mod label_array;
mod metadata;
mod names;
mod old_cells;
mod schema;
mod stored;
mod target;
#[cfg(test)]
mod tests;
mod tile;
mod tiles;
mod writer;

pub use encoding::{TileDbEncoding, TileDbFilter};
pub use target::TileDbTarget;
pub use writer::TileDbWriter;
