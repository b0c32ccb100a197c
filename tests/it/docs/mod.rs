//! `README.md`, `docs/*.md` and what they show.

/// The code blocks of the pages.
mod blocks;
/// Checks the links of the rendered book.
mod book;
/// Runs the pages' blocks, and compares the output with the pages.
mod pages;
/// Holds comments and pages against the rules for English.
mod style;
