//! Icechunk repositories as arrays: the bytes of `bytes::icechunk`, read from folders and object stores.
//!
//! ```text
//!   Icechunk ──▶ IcechunkReader ──▶ conventions of gridfusion-cf ──▶ arrays
//!                     └ IcechunkFolder: objects of the repository, and virtual objects at URLs
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `format` | the format: its names, its options, how it is recognised |
//! | `reader` | an opened version, as a store of variables |
//! | `folder` | the objects of a repository, and those that it refers to |
//! | `check` | the verification of manifests and of the objects that they name |
//! | `group` | the arrays, with tables of snapshots, branches and tags |
//! | `facts` | the rows of these tables |

mod check;
mod facts;
mod folder;
mod format;
mod group;
mod reader;
#[cfg(test)]
mod tests;

pub use format::Icechunk;
