//! `README.md`, `docs/*.md` and what they show.

/// The code blocks of the pages.
mod blocks;
/// Runs the pages' blocks, and compares the output with the pages.
mod pages;
