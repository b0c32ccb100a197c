//! Holds every `use crate::` of the library against the layers that DESIGN.md draws.

use std::fs;
use std::path::{Path, PathBuf};

/// A module and the modules it may import; `error` is open to all.
const ALLOWED: &[(&str, &[&str])] = &[
    ("grid", &[]),
    ("io", &[]),
    ("format", &["grid"]),
    ("scan", &["format", "io", "grid"]),
    ("options", &["scan", "format", "io", "grid"]),
    ("exec", &["options", "scan", "format", "io", "grid"]),
    ("provider", &["exec", "options", "scan", "format", "io", "grid"]),
];

/// Modules that know nothing of DataFusion, and those that know nothing of Arrow either.
const WITHOUT_DATAFUSION: &[&str] = &["grid", "io", "format", "scan"];
const WITHOUT_ARROW: &[&str] = &["grid", "io", "format"];

#[test]
fn imports_follow_the_layers() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut checked = 0;
    let mut wrong = Vec::new();
    for file in rust_files(&src) {
        let module = module_of(&src, &file);
        let text = fs::read_to_string(&file).expect("a source file");
        for (number, line) in (1..).zip(text.lines()) {
            let violation = violation(&module, line);
            checked += usize::from(line.contains("crate::"));
            wrong.extend(violation.map(|why| format!("{}:{number}: {why}", file.display())));
        }
    }
    assert!(checked > 50, "only {checked} imports found; does the test still look at the sources?");
    assert!(wrong.is_empty(), "imports against the layers:\n{}", wrong.join("\n"));
}

#[test]
fn violations_are_found() {
    for (module, line) in [
        ("format", "use crate::io::ByteSource;"),
        ("io", "    let x = crate::format::Step::Done(1);"),
        ("scan", "use datafusion::error::Result;"),
        ("grid", "use arrow::array::ArrayRef;"),
        ("exec", "use crate::provider::GridTable;"),
        ("error", "use crate::grid::Selection;"),
        ("tet", "use crate::format::tiledb::Tile;"),
    ] {
        assert!(violation(module, line).is_some(), "{module}: {line}");
    }
    for (module, line) in [
        ("scan", "use crate::format::tet::TetFile;"),
        ("lib", "pub use provider::GridTable;"),
        ("format", "use crate::error::{Error, Result};"),
        ("grid", "//! no arrow:: here, this is a comment about datafusion::"),
    ] {
        assert_eq!(violation(module, line), None, "{module}: {line}");
    }
}

fn rust_files(dir: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(dir).expect("a source directory").map(|entry| entry.expect("an entry").path());
    entries
        .flat_map(|path| match path.is_dir() {
            true => rust_files(&path),
            false => vec![path],
        })
        .filter(|path| path.extension().is_some_and(|ext| ext == "rs"))
        .collect()
}

/// The first part of the path below `src`; for files of one format, that format.
fn module_of(src: &Path, file: &Path) -> String {
    let relative = file.strip_prefix(src).expect("a file below src").with_extension("");
    let parts: Vec<&str> = relative.iter().filter_map(|part| part.to_str()).collect();
    match parts.as_slice() {
        ["format", format @ ("tet" | "tiledb"), ..] => (*format).to_owned(),
        [first, ..] => (*first).to_owned(),
        [] => String::new(),
    }
}

/// Why a line may not stand in `module`.
fn violation(module: &str, line: &str) -> Option<String> {
    let line = line.trim_start();
    if line.starts_with("//") || module == "lib" {
        return None;
    }
    let (layer, other_format) = match module {
        "tet" => ("format", "format::tiledb"),
        "tiledb" => ("format", "format::tet"),
        other => (other, "\0"),
    };
    if line.contains(other_format) {
        return Some(format!("{module} imports {other_format}"));
    }
    if WITHOUT_DATAFUSION.contains(&layer) && line.contains("datafusion::") {
        return Some(format!("{layer} imports DataFusion"));
    }
    if WITHOUT_ARROW.contains(&layer) && line.contains("arrow::") {
        return Some(format!("{layer} imports Arrow"));
    }
    let allowed =
        ALLOWED.iter().find(|(name, _)| *name == layer).map_or(&[][..], |(_, allowed)| allowed);
    let imports = line.match_indices("crate::").map(|(at, _)| &line[at + "crate::".len()..]);
    imports
        .map(|rest| rest.split(|c: char| !c.is_ascii_lowercase() && c != '_').next().unwrap_or(""))
        .find(|target| {
            let is_module = ALLOWED.iter().any(|(name, _)| name == target);
            is_module && *target != layer && !allowed.contains(target)
        })
        .map(|target| format!("{layer} imports {target}"))
}
