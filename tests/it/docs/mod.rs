//! `README.md`, `docs/*.md` and what they show.

/// The code blocks of the pages.
mod blocks;
/// What the pages show is what comes out.
mod pages;
