//! Checks the structure of the sources against DESIGN.md.

/// Finds circular dependencies between files.
mod circles;
/// Checks the layers: which module imports which.
mod layering;
/// The names that a file declares, imports and uses.
mod scope;
/// Splits sources into tokens.
mod tokens;
/// The modules of a crate, and the files that define the items of its paths.
mod tree;
