//! Finds the tiles of fragments that make up the chunks of a table.
//!
//! ```text
//!   window.rs     the part of the domain that a table shows; its tiles are the chunks
//!   overlay.rs    which fragment wrote which cells last
//!   evolution.rs  fragments of older schemas
//!   locate.rs     where the tiles of a chunk are stored
//! ```

mod evolution;
mod locate;
mod overlay;
mod window;

pub(super) use evolution::{AttributeFragments, field_of};
pub use locate::Locate;
pub(super) use overlay::Overlay;
pub use window::Window;
