//! The checks of `.tet` files and packages.
//!
//! ```text
//!   TetReader::verify ──▶ checks ──┬─ index       rows, grids, places of payloads
//!                                  ├─ zones       zone maps, in the file and beside it
//!                                  ├─ cells       every payload decoded, zone maps made again
//!                                  └─ package     manifests, hashes, other generations
//! ```

mod cells;
mod checks;
mod extents;
mod index;
mod package;
mod sidecars;
mod zones;
