//! Appending to Zarr stores of version 3.
//!
//! ```text
//!   .gridfusion-append            what is about to be appended, until it is done
//!   t2m/c/3/0   t2m/c/4/0         the object at the end with old and new cells, and new objects
//!   time/c/0                      labels
//!   .gridfusion-staged/ID/…       objects whose old cells change, until the lengths are there
//!   zarr.json                     all new lengths: readers see the new rows from here on       ◀ published
//!   t2m/zarr.json  time/zarr.json the same lengths, for readers that do not look at the root
//! ```
//!
//! That is a store with consolidated metadata. Without it, no object has all lengths, and they change one after the other:
//!
//! ```text
//!   t2m/zarr.json                 the first variable by name: rows are there from here on             ◀ published
//!   tp/zarr.json  time/zarr.json  the same length, side by side
//!   .gridfusion-append            is deleted last; it names all of these arrays
//! ```
//!
//! The first document changes only if it has its old bytes: of two programs, one fails before any length has changed. Chunks and labels are
//! complete by then, so each array by itself is the old one or the new one. Between the first and the last document, lengths differ:
//!
//! - gridfusion compares them with those of labels, reads the journal, and gives all arrays the length of the first. It sees all rows or none, or fails because a document has changed.
//! - xarray refuses arrays of several lengths. It opens the store again once all documents are there.
//! - zarr-python opens an array without its labels, and sees the old one or the new one.
//!
//! A program that is killed between these documents leaves lengths that differ. The next append ends what it began.
//!
//! Cells that readers see already may get other values. Their objects wait as staged ones until all is written, and then take their places
//! one after the other. Until the last one is there, readers may see cells of both.
//!
//! A reader with the old metadata does not look behind the old length, so each object may be replaced before the new metadata is. Only a
//! shard is read in two parts, between which it may be replaced: gridfusion tells so, and other readers may not. A program that is stopped
//! leaves the old array, or the new one. The next append first ends what that program began.
//!
//! | file | contents |
//! |---|---|
//! | `target` | the store, its arrays, and what fits them |
//! | `open` | opens them |
//! | `repair` | ends an append that was stopped |
//! | `documents` | the metadata of all arrays, from one document or from several |
//! | `listing` | the metadata of a group in the document of a store above it |
//! | `metadata` | the arrays that columns are |
//! | `finer_times` | labels in finer units of time |
//! | `variable` | one array: how new cells are stored, and the old cells of an object |
//! | `sides` | arrays with a part of the dimensions, such as bounds |
//! | `appender` | the writer |
//! | `change` | new cells of an array as objects |
//! | `object_cells` | old and new cells of an object |
//! | `staged` | objects that are about to replace others |

mod appender;
mod change;
mod documents;
mod finer_times;
mod listing;
mod metadata;
mod object_cells;
mod open;
mod repair;
mod sides;
mod staged;
mod target;
mod variable;

pub use listing::{listing_removal, listing_update};
pub use target::ZarrTarget;
