//! Damaged indexes: a chunk that an index lost is an error, and never fill.

use std::collections::BTreeMap;

use super::driver::{ExpectedCells, open};
use super::folder;

/// The cells of all variables; `None` for those that cannot be read.
type All = BTreeMap<String, Option<ExpectedCells>>;

/// Reads all variables of a file.
fn read(bytes: Vec<u8>) -> Option<All> {
    let file = open(bytes).ok()?;
    let variables = file.file.hierarchy().variables.iter().enumerate();
    let cells = |(number, variable): (usize, &crate::hierarchy::Variable)| {
        (variable.path.clone(), file.read(number).ok())
    };
    Some(variables.map(cells).collect())
}

/// Returns the number of variables whose index is refused.
fn refused(bytes: Vec<u8>) -> usize {
    let Ok(file) = open(bytes) else { return usize::MAX };
    let variables = 0..file.file.hierarchy().variables.len();
    variables.filter(|&number| file.check_index(number).is_err()).count()
}

fn places(file: &[u8], magic: &[u8]) -> Vec<usize> {
    (0..file.len() - 64).filter(|&at| file[at..].starts_with(magic)).collect()
}

/// Fails if a damaged file shows other cells.
fn same_or_error(whole: &All, damaged: Vec<u8>, what: &str) {
    let Some(found) = read(damaged) else { return };
    for (path, cells) in found {
        assert!(cells.is_none() || cells == whole[&path], "{what}: other cells of {path}");
    }
}

/// A node of a version 1 B-tree has no checksum.
#[test]
fn nodes_that_lost_entries_are_noticed() {
    let file = std::fs::read(folder().join("trees.h5")).unwrap();
    let whole = read(file.clone()).unwrap();
    // Chunks that were cut off left nodes behind, which no tree has.
    let (mut noticed, mut nodes) = (0, 0);
    for at in places(&file, b"TREE\x01") {
        let is_root = file[at + 8..at + 24].iter().all(|&byte| byte == 0xff);
        let count = u16::from_le_bytes([file[at + 6], file[at + 7]]);
        if is_root || count == 0 {
            continue;
        }
        nodes += 1;
        for count in 0..count {
            let mut damaged = file.clone();
            damaged[at + 6..at + 8].copy_from_slice(&count.to_le_bytes());
            same_or_error(&whole, damaged.clone(), &format!("{count} entries at {at}"));
            noticed += usize::from(refused(damaged) > 0);
        }
    }
    assert!(nodes > 20 && noticed > nodes, "{noticed} of {nodes}");
}

/// An address of nothing stands for a chunk that was never written, so blocks of addresses must be as they were written.
#[test]
fn addresses_that_were_overwritten_are_noticed() {
    let file = std::fs::read(folder().join("indexes.h5")).unwrap();
    let whole = read(file.clone()).unwrap();
    let mut blocks = 0;
    for magic in [b"BTLF", b"BTIN", b"FADB", b"EAIB", b"EADB"] {
        for at in places(&file, magic) {
            let mut damaged = file.clone();
            damaged[at] = 0;
            // Links of groups have such nodes too.
            if refused(damaged) != 1 {
                continue;
            }
            blocks += 1;
            for field in [6, 14, 22].map(|field| at + field) {
                let mut damaged = file.clone();
                damaged[field..field + 8].fill(0xff);
                // A chunk that was never written has such an address already.
                if damaged == file {
                    continue;
                }
                let what = format!("{} overwritten at {field}", magic.escape_ascii());
                same_or_error(&whole, damaged.clone(), &what);
                assert_eq!(refused(damaged), 1, "{what}");
            }
        }
    }
    assert!(blocks > 8, "{blocks}");
}
