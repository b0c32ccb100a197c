//! Finds circular dependencies between source files.
//!
//! A file needs another file if one of its paths names an item of that file. `mod x;` needs nothing, and
//! neither does a re-export in a file with submodules.

use std::collections::{BTreeMap, BTreeSet};

use super::tree::{Tie, Tree, Weight};

/// The source folders of the crates. Missing folders are skipped.
const CRATES: [&str; 4] = ["src", "cli/src", "distributed/src", "plot/src"];

#[test]
fn files_stand_in_no_circles() {
    let mut ties = Vec::new();
    for folder in CRATES {
        let found = Tree::of_project(folder).map(|tree| tree.ties()).unwrap_or_default();
        let within = |file: &str| format!("{folder}/{file}");
        ties.extend(found.into_iter().map(|tie| Tie {
            from: within(&tie.from),
            to: within(&tie.to),
            ..tie
        }));
    }
    let found: Vec<String> = circles(&ties)
        .iter()
        .map(|circle| format!("a circle of {} files:\n{}", circle.len(), described(circle, &ties)))
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Groups of files that all need one another, directly or through others.
fn circles(ties: &[Tie]) -> Vec<BTreeSet<&str>> {
    let mut needs: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for tie in ties.iter().filter(|tie| tie.weight == Weight::Needs) {
        needs.entry(&tie.from).or_default().insert(&tie.to);
    }
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        needs.keys().map(|file| (*file, reached(file, &needs))).collect();
    let needs_it = |other: &str, file: &str| reach.get(other).is_some_and(|all| all.contains(file));
    let circles: BTreeSet<BTreeSet<&str>> = reach
        .iter()
        .map(|(file, all)| all.iter().copied().filter(|other| needs_it(other, file)).collect())
        .collect();
    circles.into_iter().filter(|circle| circle.len() > 1).collect()
}

/// The files that a file needs, directly or through others.
fn reached<'a>(file: &'a str, needs: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut open = vec![file];
    while let Some(file) = open.pop() {
        let next = needs.get(file).into_iter().flatten();
        open.extend(next.filter(|other| found.insert(**other)));
    }
    found
}

/// A line per dependency between files of a circle, with the needed names.
fn described(circle: &BTreeSet<&str>, ties: &[Tie]) -> String {
    let mut names: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    let is_within = |tie: &&Tie| {
        tie.weight == Weight::Needs
            && circle.contains(tie.from.as_str())
            && circle.contains(tie.to.as_str())
    };
    for tie in ties.iter().filter(is_within) {
        names.entry((&tie.from, &tie.to)).or_default().push(&tie.name);
    }
    let lines = names
        .iter()
        .map(|((from, to), names)| format!("  {from} needs {to}: {}\n", names.join(", ")));
    lines.collect()
}

#[test]
fn circles_are_found() {
    let tie = |from: &str, to: &str, weight| {
        let [from, to, name] = [from, to, "x"].map(str::to_owned);
        Tie { from, to, name, weight }
    };
    let needs = |from, to| tie(from, to, Weight::Needs);
    let ties = [
        needs("a", "b"),
        needs("b", "c"),
        needs("c", "a"),
        needs("c", "d"),
        needs("d", "e"),
        needs("f", "g"),
        needs("g", "f"),
        tie("e", "d", Weight::PassesOn),
        tie("e", "d", Weight::ImportsModule),
    ];
    assert_eq!(circles(&ties), [BTreeSet::from(["a", "b", "c"]), BTreeSet::from(["f", "g"])]);
    let described = described(&circles(&ties)[1], &ties);
    assert_eq!(described, "  f needs g: x\n  g needs f: x\n");
}
