//! The shape of the sources, held against what DESIGN.md says of it.

/// No circles between files.
mod circles;
/// Checks the layers: which module imports which.
mod layering;
/// The names that a file declares, imports and uses.
mod scope;
/// Cuts sources into tokens.
mod tokens;
/// The modules of a crate, and where names lead.
mod tree;
