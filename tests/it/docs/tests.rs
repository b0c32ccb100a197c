//! Rules of `CONTRIBUTING.md` for the tests themselves.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::support::shipped;

/// Files that may sleep or measure time, and the reason.
const TIMED: [(&str, &str); 9] = [
    ("tests/it/support/waiting.rs", "asks again whether a condition holds"),
    ("tests/it/support/object_server/", "the link of the server is slow"),
    ("tests/it/io/lies.rs", "the server sends a byte at a time"),
    ("tests/it/io/remote_memory.rs", "measures, and asserts nothing"),
    ("cli/tests/cli/support.rs", "asks again whether a condition holds"),
    ("cli/tests/cli/cluster.rs", "chooses the moment at which a worker ends"),
    ("crates/cf/src/hdf5/tests.rs", "measures, and asserts nothing"),
    (
        "crates/zarr/src/icechunk/tests/remote.rs",
        "counts the requests of a round trip, again if some are late",
    ),
    ("ballista/tests/queries.rs", "asks again whether the scheduler listens"),
];

/// Folders with tests, and with modules that have unit tests.
const FOLDERS: [&str; 8] = [
    "tests/it",
    "cli/tests",
    "ballista/tests",
    "cli/src",
    "crates",
    "distributed/src",
    "plot",
    "src",
];

/// Calls `visit` with the path and the text of each source file of the tests. The text of a module with unit tests begins with
/// these tests.
fn each_source(mut visit: impl FnMut(&str, &str)) {
    let mut folders: Vec<String> = FOLDERS.map(str::to_owned).to_vec();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(shipped(&folder)).unwrap() {
            let entry = entry.unwrap();
            let path = format!("{folder}/{}", entry.file_name().to_str().unwrap());
            if entry.path().is_dir() {
                folders.push(path);
            } else if Path::new(&path).extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(entry.path()).unwrap();
                let of_tests = ["tests/", "test_", "/tests.rs"].iter().any(|it| path.contains(it));
                let begin = if of_tests { Some(0) } else { text.find("\nmod tests {") };
                begin.into_iter().for_each(|begin| visit(&path, &text[begin..]));
            }
        }
    }
}

#[test]
fn needs_of_ignored_tests_are_described() {
    let mut needs = BTreeSet::new();
    each_source(|_, text| {
        let reasons = text.lines().filter_map(|line| line.trim().strip_prefix("#[ignore"));
        let needed = reasons.filter_map(|it| it.strip_prefix(" = \"needs "));
        needs.extend(needed.filter_map(|it| Some(it.split(['"', ':']).next()?.to_owned())));
    });
    assert!(needs.len() >= 8, "{needs:?}");
    let page = fs::read_to_string(shipped("CONTRIBUTING.md")).unwrap().replace('`', "");
    let mut rows = page.lines().filter_map(|line| line.strip_prefix("| "));
    needs.retain(|need| !rows.clone().any(|row| row.starts_with(need.as_str())));
    assert!(needs.is_empty(), "CONTRIBUTING.md describes none of {needs:?}");
    assert!(rows.any(|row| row.starts_with("need |")));
}

#[test]
fn tests_wait_for_conditions_and_not_for_times() {
    let (mut faults, mut timed) = (vec![], BTreeSet::new());
    each_source(|path, text| {
        // A trait may require a method of this name.
        let sleeps = text.replace("fn sleep(", "").contains("sleep(");
        if !sleeps && !text.contains(".elapsed()") && !text.contains("Instant::now()") {
            return;
        }
        match TIMED.iter().find(|(file, _)| path.starts_with(file)) {
            Some((file, _)) => drop(timed.insert(*file)),
            None if path == "tests/it/docs/tests.rs" => {}
            None => faults.push(path.to_owned()),
        }
    });
    assert!(faults.is_empty(), "use support::waiting instead of sleeping or measuring: {faults:?}");
    let known: BTreeSet<_> = TIMED.iter().map(|(file, _)| *file).collect();
    assert_eq!(timed, known, "a file of the list neither sleeps nor measures");
}
