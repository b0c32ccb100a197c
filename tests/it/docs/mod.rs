//! Tests of `README.md` and `docs/*.md`.

/// The code blocks of the pages.
pub(crate) mod blocks;
/// Checks the links of the rendered book.
mod book;
/// Compares the files that `DESIGN.md` and modules list with the sources.
mod design;
/// Compares lists and limits of the pages with the sources.
pub(crate) mod facts;
/// Checks that examples and signatures name nothing that the documentation hides.
mod hidden;
/// Runs the pages' blocks, and compares the output with the pages.
pub(crate) mod pages;
/// Checks comments and pages against the writing rules of CONTRIBUTING.md.
pub(crate) mod style;
/// Checks the tests against the rules of CONTRIBUTING.md.
mod tests;
