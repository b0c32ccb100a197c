//! The order of the modules: each may use those before it.

use std::fs;
use std::path::{Path, PathBuf};

/// Each module with those that it uses. All may use `error`.
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
    ("merge", &["array"]),
    ("reduce", &["plan", "array", "tile", "format", "grid"]),
    ("verify", &["array", "tile", "format"]),
    ("write", &["array", "format", "grid"]),
    ("source", &["verify", "options", "array", "tile", "format", "io", "grid"]),
    ("read", &["source", "options", "merge", "plan", "array", "tile", "format", "io", "grid"]),
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => sources(&path, found),
            false => found.push(path),
        }
    }
}

/// The modules of the crate that a line names.
fn named(line: &str) -> impl Iterator<Item = &str> {
    line.split("crate::").skip(1).filter_map(|rest| {
        let module = rest.split(|it: char| !it.is_alphanumeric() && it != '_').next()?;
        let is_module = module.starts_with(|it: char| it.is_lowercase());
        is_module.then_some(module)
    })
}

#[test]
fn modules_use_only_those_below() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut files, mut seen, mut wrong) = (vec![], 0, vec![]);
    sources(&root, &mut files);
    for file in files {
        let module = file.strip_prefix(&root).unwrap().components().next().unwrap();
        let module = module.as_os_str().to_str().unwrap().trim_end_matches(".rs");
        let Some((_, allowed)) = LAYERS.iter().find(|(name, _)| *name == module) else { continue };
        let text = fs::read_to_string(&file).unwrap();
        // Tests may use anything.
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        for name in lines.flat_map(named) {
            seen += 1;
            let is_known = LAYERS.iter().any(|(known, _)| *known == name);
            if is_known && name != module && name != "error" && !allowed.contains(&name) {
                wrong.push(format!("{}: crate::{name}", file.display()));
            }
        }
    }
    assert!(seen > 300, "only {seen} names; are the sources still found?");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
