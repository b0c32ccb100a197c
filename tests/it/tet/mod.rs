//! `.tet` files and packages.

/// Damaged files.
mod bad_input;
/// Old dates, dates that do not exist.
mod calendars;
/// What is known of a file.
mod facts;
/// Fill values.
mod fills;
/// Files of the reference crate, cell by cell.
mod interop;
/// `.tet.d` packages.
mod package;
/// `docs/tet-query.md`.
mod parity;
