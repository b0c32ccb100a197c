//! Checks every path in the library against the layers of DESIGN.md.

use super::tree::Tree;

/// The top-level modules, each with the modules that it may import. All modules may import `error`.
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
    ("exec", &["source", "options", "reduce", "plan", "array", "tile", "format", "io", "grid"]),
    ("extend", &["source", "options", "array", "tile", "format", "io", "grid", "byte_range"]),
    ("provider", &["exec", "options", "source", "plan", "array", "tile", "format", "io", "grid"]),
    ("codec", &["provider", "exec", "options", "source", "plan", "array", "tile", "io", "grid"]),
];

/// Modules that must not import each other: those of each format.
const APART: &[&[&str]] = &[
    &["format/tet", "format/tiledb", "format/zarr", "format/netcdf3", "format/hdf5"],
    &["source/tet", "source/tiledb", "source/zarr", "source/netcdf"],
];

/// Crates, and the top-level modules that must not use them.
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
    let tree = Tree::of_project("src").expect("src has a crate root");
    let ties = tree.ties().len();
    assert!(ties > 500, "only {ties} names found; does the test still look at the sources?");
    let wrong = violations(&tree);
    assert!(wrong.is_empty(), "imports that violate the layers:\n{}", wrong.join("\n"));
}

#[test]
fn the_table_lists_every_module() {
    let tree = Tree::of_project("src").expect("src has a crate root");
    let mut found: Vec<&str> = tree.modules.iter().map(|module| room(&module.file)).collect();
    found.retain(|room| *room != "lib");
    found.sort_unstable();
    found.dedup();
    let mut listed: Vec<&str> = LAYERS.iter().map(|(name, _)| *name).collect();
    listed.sort_unstable();
    assert_eq!(found, listed, "modules of the library, and modules in LAYERS");
}

/// Lists imports that violate `LAYERS`, `APART` or `WITHOUT`.
fn violations(tree: &Tree) -> Vec<String> {
    let ties = tree.ties();
    let layers = ties.iter().filter_map(|tie| {
        let crosses = |apart: &&[&str]| {
            let of = |file: &str| apart.iter().position(|module| is_in(file, module));
            of(&tie.from).zip(of(&tie.to)).is_some_and(|(from, to)| from != to)
        };
        let is_wrong = !is_allowed(room(&tie.from), room(&tie.to)) || APART.iter().any(crosses);
        is_wrong.then(|| format!("{} names {}, which is in {}", tie.from, tie.name, tie.to))
    });
    let outside = tree.outside().into_iter().filter_map(|(file, name)| {
        let knows = |known: &str| name == known || name.starts_with(&format!("{known}_"));
        let (known, _) =
            WITHOUT.iter().find(|(known, rooms)| knows(known) && rooms.contains(&room(file)))?;
        Some(format!("{file} may not use {known}"))
    });
    let mut wrong: Vec<String> = layers.chain(outside).collect();
    wrong.dedup();
    wrong
}

/// Whether one top-level module may import another. The root may import all modules; no module may
/// import the root's own items.
fn is_allowed(from: &str, to: &str) -> bool {
    let allowed = LAYERS.iter().find(|(name, _)| *name == from).map_or(&[][..], |(_, to)| to);
    from == "lib" || from == to || to == "error" || allowed.contains(&to)
}

/// The top-level module of a file.
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
            "format/mod.rs names crate::io::Source, which is in io.rs",
        ),
        (
            "io.rs",
            "fn f() { crate::format::step() }",
            "io.rs names crate::format::step, which is in format/mod.rs",
        ),
        (
            "io.rs",
            "use super::{\n  format::{tet::{A}}};",
            "io.rs names super::format::tet::A, which is in format/tet/a.rs",
        ),
        ("io.rs", "use crate::Table;", "io.rs names crate::Table, which is in provider.rs"),
        ("error.rs", "use crate::grid;", "error.rs names crate::grid, which is in grid.rs"),
        (
            "format/tet/a.rs",
            "use super::super::tiledb::B;",
            "format/tet/a.rs names super::super::tiledb::B, which is in format/tiledb.rs",
        ),
        (
            "format/tiledb.rs",
            "use super::tet::A;",
            "format/tiledb.rs names super::tet::A, which is in format/tet/a.rs",
        ),
        ("array.rs", "use datafusion::error::Result;", "array.rs may not use datafusion"),
        ("grid.rs", "fn f(_: arrow_schema::Field) {}", "grid.rs may not use arrow"),
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

/// A small library, with `text` appended to one of its files.
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
