//! The code blocks of README.md and docs/*.md, and what they must show. The tests of the program use this
//! file too.
//!
//! | block | is |
//! |---|---|
//! | `sql` | run in one session per page; a `text` block right after it is its output |
//! | `console` | commands after `$ `, each followed by its output, run in one folder per page |
//! | `rust from: PATH` | a part of that file of the repository |
//! | any of these with `no_run: REASON` | left alone |
//!
//! Where an output has `…`, that stands for anything, and white space counts as one blank. Rows may come in
//! any order unless the SQL says `ORDER BY`, and times that a query took are not compared. An output may
//! begin with `Error: ` if it is meant to.
//!
//! With `UPDATE_DOCS=1` in the environment, outputs that differ are written into the pages instead.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A page of the documentation.
pub(crate) struct Page {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    pub(crate) blocks: Vec<Block>,
}

/// What stands between two fences.
pub(crate) struct Block {
    /// What follows the opening fence.
    info: String,
    /// Where in the page its lines are.
    pub(crate) at: Range<usize>,
}

impl Block {
    pub(crate) fn language(&self) -> &str {
        self.info.split([' ', ',']).next().unwrap()
    }

    /// What a keyword of the info string says, for instance the reason of `no_run: needs a bucket`.
    pub(crate) fn says(&self, keyword: &str) -> Option<&str> {
        let (_, rest) = self.info.split_once(keyword)?;
        let rest = rest.strip_prefix(':').unwrap_or_default().trim();
        assert!(!rest.is_empty(), "```{}: say more after `{keyword}:`", self.info);
        Some(rest)
    }

    pub(crate) fn is_run(&self, language: &str) -> bool {
        self.language() == language && self.says("no_run").is_none()
    }
}

/// What a page shows at a place, and what it should.
pub(crate) struct Output {
    /// The SQL or the command.
    pub(crate) of: String,
    pub(crate) at: Range<usize>,
    pub(crate) found: String,
}

/// README.md and every page of docs/.
pub(crate) fn pages(root: &Path) -> Vec<Page> {
    let docs = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> =
        docs.filter(|path| path.extension().is_some_and(|e| e == "md")).collect();
    paths.push(root.join("README.md"));
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

    /// The page and the line of a place in it.
    pub(crate) fn line(&self, place: usize) -> String {
        let line = self.text[..place].matches('\n').count() + 1;
        format!("{}:{line}", self.path.display())
    }

    /// Holds what was found against the page; says what differs, or writes it into the page.
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

/// Whether what a page shows of `source` is what came out.
pub(crate) fn agrees(shown: &str, found: &str, source: &str) -> bool {
    let (shown, found) = (without_times(shown), without_times(found));
    if shown.contains('…') {
        return matches(&one_line(&shown), &one_line(&found));
    }
    shown == found || !source.contains("ORDER BY") && sorted(&shown) == sorted(&found)
}

/// Lines without blanks at their ends, each with a line feed, and without the time a query took.
fn without_times(text: &str) -> String {
    let line = |line: &str| match line.split_once("; ") {
        _ if line.starts_with("Elapsed ") && line.ends_with(" seconds.") => "Elapsed\n".to_owned(),
        Some((times, read)) if times.starts_with("Timing: ") => format!("Timing; {read}\n"),
        _ => format!("{}\n", line.trim_end()),
    };
    lines(text).lines().map(line).collect()
}

/// Without empty lines at the end.
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

/// Whether `text` is `pattern`, in which `…` stands for anything.
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
