//! Writing `.tet` files of layout version 1. No I/O.
//!
//! ```text
//!   write(chunk)   encoded, and held: the index before the payloads has the length of each
//!   finish()       superblock, directory, index ─▶ payloads, in the order of the index ─▶ zone maps, metadata, tail
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `writer` | the chunks of an array, and the file |
//! | `dataset` | a variable or the labels of a dimension, as a dataset |
//! | `layout` | the bytes before the payloads |
//! | `footer` | zone maps, metadata and the tail |
//! | `image` | the bytes of a finished file |
//! | `package` | a file as a generation of a package |
//!
//! Facts: `FORMAT.md` of this crate, section by section.

mod dataset;
mod footer;
mod image;
mod layout;
mod package;
mod writer;

pub use package::{TetPackageTarget, TetPackageWriter};
pub use writer::{TetEncoding, TetWriter};
