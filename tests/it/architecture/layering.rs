//! Holds every path of the library against the layers that DESIGN.md draws.

use super::tree::Tree;

/// A module at the top and those that it may import; `error` is open to all.
const LAYERS: &[(&str, &[&str])] = &[
    ("error", &[]),
    ("byte_range", &[]),
    ("grid", &[]),
    ("io", &["byte_range"]),
    ("format", &["grid", "byte_range"]),
    ("tile", &["format", "io", "grid", "byte_range"]),
    ("array", &["tile", "format", "grid"]),
    ("options", &["array"]),
    ("plan", &["array", "grid"]),
    ("reduce", &["plan", "array", "tile", "format", "grid"]),
    ("verify", &["array", "tile", "format"]),
    ("source", &["verify", "options", "array", "tile", "format", "io", "grid"]),
    ("exec", &["source", "options", "reduce", "plan", "array", "tile", "format", "grid"]),
    ("extend", &["source", "options", "array", "tile", "format", "io", "grid", "byte_range"]),
    ("provider", &["exec", "options", "source", "plan", "array", "tile", "format", "io", "grid"]),
];

/// Rooms that know nothing of each other.
const APART: &[(&str, &str)] = &[("format/tet", "format/tiledb"), ("source/tet", "source/tiledb")];

/// Crates, and the modules that know nothing of them.
const WITHOUT: &[(&str, &[&str])] = &[
    ("arrow", &["error", "byte_range", "grid", "io", "format"]),
    (
        "datafusion",
        &[
            "error", "grid", "io", "format", "tile", "array", "options", "plan", "reduce",
            "verify", "source",
        ],
    ),
];

#[test]
fn imports_follow_the_layers() {
    let tree = Tree::of_project("src").expect("the library");
    let ties = tree.ties().len();
    assert!(ties > 500, "only {ties} names found; does the test still look at the sources?");
    let wrong = violations(&tree);
    assert!(wrong.is_empty(), "imports against the layers:\n{}", wrong.join("\n"));
}

#[test]
fn the_table_lists_every_module() {
    let tree = Tree::of_project("src").expect("the library");
    let mut found: Vec<&str> = tree.modules.iter().map(|module| room(&module.file)).collect();
    found.retain(|room| *room != "lib");
    found.sort_unstable();
    found.dedup();
    let mut listed: Vec<&str> = LAYERS.iter().map(|(name, _)| *name).collect();
    listed.sort_unstable();
    assert_eq!(found, listed, "modules of the library, and those of the table of layers");
}

/// Lists violations of the layers, rooms that must be apart and crates that nobody listed.
fn violations(tree: &Tree) -> Vec<String> {
    let ties = tree.ties();
    let layers = ties.iter().filter_map(|tie| {
        let apart = APART.iter().flat_map(|(a, b)| [(a, b), (b, a)]);
        let mut crossed = apart.filter(|(a, b)| is_in(&tie.from, a) && is_in(&tie.to, b));
        let is_wrong = !is_allowed(room(&tie.from), room(&tie.to)) || crossed.next().is_some();
        is_wrong.then(|| format!("{} names {}, which is of {}", tie.from, tie.name, tie.to))
    });
    let outside = tree.outside().into_iter().filter_map(|(file, name)| {
        let knows = |known: &str| name == known || name.starts_with(&format!("{known}_"));
        let (known, _) =
            WITHOUT.iter().find(|(known, rooms)| knows(known) && rooms.contains(&room(file)))?;
        Some(format!("{file} knows of {known}"))
    });
    let mut wrong: Vec<String> = layers.chain(outside).collect();
    wrong.dedup();
    wrong
}

/// The root knows all, and only what it re-exports may be named by way of it.
fn is_allowed(from: &str, to: &str) -> bool {
    let allowed = LAYERS.iter().find(|(name, _)| *name == from).map_or(&[][..], |(_, to)| to);
    from == "lib" || from == to || to == "error" || allowed.contains(&to)
}

/// The module at the top that a file is part of.
fn room(file: &str) -> &str {
    file.split(['/', '.']).next().unwrap_or(file)
}

fn is_in(file: &str, room: &str) -> bool {
    file.strip_prefix(room).is_some_and(|rest| rest.starts_with(['/', '.']))
}

#[test]
fn violations_are_found() {
    for (file, text, expected) in [
        (
            "format/mod.rs",
            "use crate::io::Source;",
            "format/mod.rs names crate::io::Source, which is of io.rs",
        ),
        (
            "io.rs",
            "fn f() { crate::format::step() }",
            "io.rs names crate::format::step, which is of format/mod.rs",
        ),
        (
            "io.rs",
            "use super::{\n  format::{tet::{A}}};",
            "io.rs names super::format::tet::A, which is of format/tet/a.rs",
        ),
        ("io.rs", "use crate::Table;", "io.rs names crate::Table, which is of provider.rs"),
        ("error.rs", "use crate::grid;", "error.rs names crate::grid, which is of grid.rs"),
        (
            "format/tet/a.rs",
            "use super::super::tiledb::B;",
            "format/tet/a.rs names super::super::tiledb::B, which is of format/tiledb.rs",
        ),
        (
            "format/tiledb.rs",
            "use super::tet::A;",
            "format/tiledb.rs names super::tet::A, which is of format/tet/a.rs",
        ),
        ("array.rs", "use datafusion::error::Result;", "array.rs knows of datafusion"),
        ("grid.rs", "fn f(_: arrow_schema::Field) {}", "grid.rs knows of arrow"),
    ] {
        assert_eq!(violations(&altered(file, text)), [expected], "{file}: {text}");
    }
    for (file, text) in [
        ("array.rs", "use super::format::tet::A; use arrow::array::ArrayRef;"),
        ("format/mod.rs", "mod tet; use crate::error::Error; use self::tet::A;"),
        ("grid.rs", "// use crate::format::step;\n#[cfg(test)] mod tests { use arrow::x; }"),
        ("provider.rs", "pub struct Table; use crate::io::Source; use datafusion::x;"),
    ] {
        assert_eq!(violations(&altered(file, text)), [""; 0], "{file}: {text}");
    }
}

/// A small library, one of whose files has other text behind its own.
fn altered(file: &str, text: &str) -> Tree {
    let files = [
        (
            "lib.rs",
            "mod error; mod grid; mod io; mod format; mod array; mod provider; pub use provider::Table;",
        ),
        ("error.rs", "pub struct Error;"),
        ("grid.rs", "pub struct Cut;"),
        ("io.rs", "pub struct Source;"),
        ("format/mod.rs", "mod tet; mod tiledb; pub fn step() {}"),
        ("format/tet/mod.rs", "mod a; pub use a::A;"),
        ("format/tet/a.rs", "pub struct A;"),
        ("format/tiledb.rs", "pub struct B;"),
        ("array.rs", ""),
        ("provider.rs", "pub struct Table;"),
    ];
    let read = |path: &str| {
        let (_, own) = files.iter().find(|(name, _)| *name == path)?;
        Some(if path == file { format!("{own} {text}") } else { (*own).to_owned() })
    };
    Tree::load("lib.rs", &read)
}
