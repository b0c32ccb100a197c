//! The shape of the sources, held against what DESIGN.md says of it.

/// Imports and the layers.
mod layering;
