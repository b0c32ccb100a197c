//! `.tet` files and packages.

/// Damaged files.
mod bad_input;
/// Old dates, dates that do not exist.
mod calendars;
/// The table functions about files.
mod facts;
/// Fill values.
mod fills;
/// Files of the reference crate, cell by cell.
mod interop;
/// `.tet.d` packages.
mod package;
/// The statements of `docs/tet-query.md` and `operations.md`.
mod parity;
