//! From chunks of a table to tiles of fragments.
//!
//! ```text
//!   window.rs     the part of the domain that is the table; its tiles are the chunks
//!   overlay.rs    which fragment wrote which cells last
//!   evolution.rs  fragments of older schemas
//!   locate.rs     where the tiles of a chunk are stored
//! ```

mod evolution;
mod locate;
mod overlay;
mod window;

pub(super) use evolution::{Holders, field_of};
pub use locate::Locate;
pub(super) use overlay::Overlay;
pub use window::Window;
