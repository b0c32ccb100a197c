//! The shape of the sources, held against what DESIGN.md says of it.

/// No circles between files.
mod circles;
/// What imports what, and the layers.
mod layering;
/// What a file declares, imports and names.
mod scope;
/// Cuts sources into tokens.
mod tokens;
/// The modules of a crate, and where names lead.
mod tree;
