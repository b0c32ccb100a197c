//! The needs of ignored tests, which `CONTRIBUTING.md` lists with the commands that meet them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::support::shipped;

/// Adds the needs that the sources below a folder name.
fn add_needs(folder: &Path, needs: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            add_needs(&path, needs);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let reasons = text.lines().filter_map(|line| line.trim().strip_prefix("#[ignore"));
            let needed = reasons.filter_map(|it| it.strip_prefix(" = \"needs "));
            needs.extend(needed.filter_map(|it| Some(it.split(['"', ':']).next()?.to_owned())));
        }
    }
}

#[test]
fn needs_of_ignored_tests_are_described() {
    let mut needs = BTreeSet::new();
    for folder in ["tests/it", "cli/tests"] {
        add_needs(Path::new(&shipped(folder)), &mut needs);
    }
    assert!(needs.len() >= 8, "{needs:?}");
    let page = fs::read_to_string(shipped("CONTRIBUTING.md")).unwrap();
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| ")).collect();
    needs.retain(|need| !rows.iter().any(|row| row.replace('`', "")[2..].starts_with(need)));
    assert!(needs.is_empty(), "CONTRIBUTING.md describes none of {needs:?}");
}
