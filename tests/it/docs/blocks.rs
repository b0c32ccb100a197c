//! The code blocks of README.md, docs/*.md and the pages beside the code, and the comparison of their outputs. The
//! tests of the program use this file, too.
//!
//! | block | use |
//! |---|---|
//! | `sql` | run in one session per page; a `text` block right after it is its output |
//! | `console` | commands after `$ `, each followed by its output, run in one folder per page |
//! | `rust from: PATH` | a part of that file of the repository |
//! | any of these with `no_run: REASON` | not run |
//!
//! In an output, `…` stands for any text; all white space then counts as one blank. Rows may be in any
//! order unless the SQL has `ORDER BY`. The time that a query took is not compared. An output begins with
//! `Error: ` if the SQL must fail.
//!
//! With `UPDATE_DOCS=1` in the environment, the tests write outputs that differ into the pages instead.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A page of the documentation.
pub(crate) struct Page {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    pub(crate) blocks: Vec<Block>,
}

/// A code block of a page.
pub(crate) struct Block {
    /// The text after the opening fence.
    info: String,
    /// The byte range of its lines in the page.
    pub(crate) at: Range<usize>,
}

impl Block {
    pub(crate) fn language(&self) -> &str {
        self.info.split([' ', ',']).next().unwrap()
    }

    /// The text after a keyword of the info string, such as the reason in `no_run: needs a bucket`.
    pub(crate) fn keyword_text(&self, keyword: &str) -> Option<&str> {
        let (_, rest) = self.info.split_once(keyword)?;
        let rest = rest.strip_prefix(':').unwrap_or_default().trim();
        assert!(!rest.is_empty(), "```{}: add a text after `{keyword}:`", self.info);
        Some(rest)
    }

    pub(crate) fn is_run(&self, language: &str) -> bool {
        self.language() == language && self.keyword_text("no_run").is_none()
    }
}

/// The place of an output in a page, and the output that was found.
pub(crate) struct Output {
    /// The SQL or the command.
    pub(crate) of: String,
    pub(crate) at: Range<usize>,
    pub(crate) found: String,
}

/// Pages for contributors beside the code, which are not in the book.
const BESIDE_CODE: [&str; 2] = ["benches/FIGURES.md", "src/exec/mended/UPSTREAM.md"];

/// README.md, every page of docs/, and the pages beside the code.
pub(crate) fn pages(root: &Path) -> Vec<Page> {
    let docs = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> =
        docs.filter(|path| path.extension().is_some_and(|e| e == "md")).collect();
    paths.push(root.join("README.md"));
    paths.extend(BESIDE_CODE.map(|page| root.join(page)));
    paths.sort();
    paths.into_iter().map(|path| Page::new(fs::read_to_string(&path).unwrap(), path)).collect()
}

impl Page {
    pub(crate) fn new(text: String, path: PathBuf) -> Self {
        let mut blocks: Vec<Block> = Vec::new();
        let (mut place, mut is_open) = (0, false);
        for line in text.split_inclusive('\n') {
            match line.strip_prefix("```") {
                Some(_) if is_open => {
                    blocks.last_mut().unwrap().at.end = place;
                    is_open = false;
                }
                Some(info) => {
                    let start = place + line.len();
                    blocks.push(Block { info: info.trim().to_owned(), at: start..text.len() });
                    is_open = true;
                }
                None => {}
            }
            place += line.len();
        }
        assert!(!is_open, "{}: a block is not closed", path.display());
        Self { path, text, blocks }
    }

    /// The path of the page, and the line number of a byte in it.
    pub(crate) fn line(&self, place: usize) -> String {
        let line = self.text[..place].matches('\n').count() + 1;
        format!("{}:{line}", self.path.display())
    }

    /// Compares the outputs with the page. Returns a message per difference, or updates the page.
    pub(crate) fn settle(&self, outputs: &[Output]) -> Vec<String> {
        let differs = |it: &&Output| !agrees(&self.text[it.at.clone()], &it.found, &it.of);
        let differing: Vec<&Output> = outputs.iter().filter(differs).collect();
        if std::env::var_os("UPDATE_DOCS").is_some() {
            let mut text = self.text.clone();
            for output in differing.iter().rev() {
                text.replace_range(output.at.clone(), &lines(&output.found));
            }
            if !differing.is_empty() {
                fs::write(&self.path, text).unwrap();
            }
            return vec![];
        }
        let message = |it: &&Output| {
            let (line, shown) = (self.line(it.at.start), &self.text[it.at.clone()]);
            format!("{line}: {}\n-- shows\n{shown}-- but the output is\n{}", it.of.trim(), it.found)
        };
        differing.iter().map(message).collect()
    }
}

/// Whether the output that a page shows for `source` agrees with the output found.
pub(crate) fn agrees(shown: &str, found: &str, source: &str) -> bool {
    let (shown, found) = (without_times(shown), without_times(found));
    if shown.contains('…') {
        return matches(&one_line(&shown), &one_line(&found));
    }
    shown == found || !source.contains("ORDER BY") && sorted(&shown) == sorted(&found)
}

/// Removes blanks at the ends of lines, and the time a query took.
fn without_times(text: &str) -> String {
    let line = |line: &str| match line.split_once("; ") {
        _ if line.starts_with("Elapsed ") && line.ends_with(" seconds.") => "Elapsed\n".to_owned(),
        Some((times, read)) if times.starts_with("Timing: ") => format!("Timing; {read}\n"),
        _ => format!("{}\n", line.trim_end()),
    };
    lines(text).lines().map(line).collect()
}

/// Removes empty lines at the end.
fn lines(text: &str) -> String {
    match text.trim_end() {
        "" => String::new(),
        text => format!("{text}\n"),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// Whether `text` matches `pattern`, in which `…` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let mut pieces: Vec<&str> = pattern.split('…').map(str::trim).collect();
    let last = pieces.pop().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(pieces[0]) else { return false };
    for piece in &pieces[1..] {
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last)
}
