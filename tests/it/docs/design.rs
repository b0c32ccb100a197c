//! `DESIGN.md`, `CONTRIBUTING.md` and the documentation of modules name files that exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::docs::facts::code_spans;
use crate::support::shipped;

const MOST_LINES: usize = 250;
/// The folders in which names of `DESIGN.md` begin.
const BEGINNINGS: [&str; 3] = [".", "src", "crates/core/src"];

fn design() -> String {
    fs::read_to_string(shipped("DESIGN.md")).unwrap()
}

/// The lines of a page outside of code blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    text.split("```").step_by(2).flat_map(str::lines)
}

fn is_path(span: &str) -> bool {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "_-./".contains(it);
    let is_file = Path::new(span).extension().is_some_and(|it| it == "rs" || it == "md");
    span.chars().all(is_plain) && (span.contains('/') || is_file)
}

/// The names of the files and folders in a folder, without the endings of files.
fn entries(folder: &Path) -> BTreeSet<String> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
}

/// Returns the rooms in a folder. The tests of one file are none.
fn folders(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let only_tests = BTreeSet::from(["tests".to_owned()]);
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.filter(move |path| path.is_dir() && entries(path) != only_tests)
}

#[test]
fn the_design_is_short() {
    let lines = design().lines().count();
    assert!(lines <= MOST_LINES, "{lines} lines: move details into the documentation of modules");
}

/// A name without a folder is in the folder of the name before it.
#[test]
fn files_of_the_pages_exist() {
    let (mut seen, text) = (0, design() + &fs::read_to_string(shipped("CONTRIBUTING.md")).unwrap());
    for line in prose(&text) {
        let mut folder = None;
        for span in code_spans(line).filter(|span| is_path(span)) {
            let near = folder.clone().into_iter();
            let places = near.chain(BEGINNINGS.map(|it| PathBuf::from(shipped(it))));
            let found = places.map(|place| place.join(span)).find(|path| path.exists());
            let found = found.unwrap_or_else(|| panic!("`{span}` is no file: {line}"));
            folder = found.parent().map(Path::to_owned);
            seen += 1;
        }
    }
    assert!(seen > 100, "{seen}");
}

/// The tables of rooms list every folder below the folder that their head names.
#[test]
fn rooms_of_the_design_are_those_of_the_sources() {
    let text = design();
    let mut base = None;
    let (mut listed, mut expected) = (BTreeSet::new(), BTreeSet::new());
    for line in text.lines() {
        let first = line.split('|').nth(1).unwrap_or_default();
        if let Some(head) = first.strip_prefix(" room of `") {
            let root = PathBuf::from(shipped(head.trim_end_matches(['`', ' '])));
            for folder in folders(&root) {
                expected.extend(folders(&folder));
                expected.insert(folder);
            }
            base = Some(root);
        } else if first == " room of a format " {
            base = Some(PathBuf::from(shipped(".")));
        } else if line.is_empty() {
            base = None;
        } else if let Some(base) = &base {
            listed.extend(code_spans(first).map(|room| base.join(room)));
            // The row of a format names the folders in it.
            for room in code_spans(first).filter(|room| room.starts_with("crates/")) {
                for inner in folders(&base.join(room)) {
                    let name = inner.file_name().unwrap().to_str().unwrap().to_owned();
                    let is_listed = name == "tests" || code_spans(line).any(|it| it == name);
                    assert!(is_listed, "{room}: `{name}` is missing");
                }
            }
        }
    }
    assert!(expected.len() > 30, "{expected:?}");
    let missing: Vec<_> = expected.difference(&listed).collect();
    assert!(missing.is_empty(), "DESIGN.md lists none of {missing:?}");
    for room in listed {
        assert!(room.exists() || room.with_extension("rs").exists(), "no room {room:?}");
    }
}

/// Tables of files in the documentation of modules list all files of their folders.
#[test]
fn modules_list_their_files() {
    let (mut open, mut seen) = (vec![PathBuf::from(shipped("."))], 0);
    while let Some(folder) = open.pop() {
        let skipped = ["target", ".git", "tests", "data", "docs"];
        open.extend(folders(&folder).filter(|it| !skipped.iter().any(|name| it.ends_with(name))));
        for file in ["mod.rs", "lib.rs", "main.rs"] {
            let Ok(text) = fs::read_to_string(folder.join(file)) else { continue };
            let is_head =
                |line: &&str| line.starts_with("//! | file") || line.starts_with("//! | module");
            let Some(head) =
                text.lines().find(|line| is_head(line) && line.contains("| contents |"))
            else {
                continue;
            };
            let rows = text.lines().skip_while(|line| *line != head).skip(2);
            let rows = rows.take_while(|line| line.starts_with("//! |"));
            let listed: BTreeSet<String> = rows
                .filter_map(|row| row.split('|').nth(1))
                .flat_map(code_spans)
                .map(str::to_owned)
                .collect();
            let tests = ["mod", "lib", "main", "tests", "testing", "real_files"].map(str::to_owned);
            let mut files = entries(&folder);
            files.retain(|name| !tests.contains(name) || listed.contains(name));
            assert_eq!(listed, files, "{}", folder.join(file).display());
            seen += 1;
        }
    }
    assert!(seen > 10, "{seen}");
}
