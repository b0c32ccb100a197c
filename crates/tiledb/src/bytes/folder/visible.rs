//! Finds the fragments that an open sees: committed, in its window of time, and not replaced.
//!
//! ```text
//!   __commits/*.wrt ─┐                  in the open's     not in a .vac
//!   __commits/*.con ─┴▶ committed ────▶ window of time ──▶ of that time ──▶ visible, by time
//!     less *.ign        (old arrays: *.ok beside the fragments)
//! ```

use std::collections::{BTreeMap, HashSet};

use bytes::Bytes;

use super::names::{TimedName, extension, last_part, stem};
use super::options::OpenOptions;
use crate::bytes::schema::{ArrayKind, too_old};
use gridfusion_core::format::Entry;
use gridfusion_core::format::wire::{Reader, to_usize};
use gridfusion_core::{Error, Result};

/// The folder of the files that commit fragments.
pub(in crate::bytes) const COMMITS: &str = "__commits";
/// The folder of the fragments.
const FRAGMENTS: &str = "__fragments";
const REGION: &str = "commits";

/// A committed fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::bytes) struct Commit {
    /// The name of its folder.
    pub(in crate::bytes) name: String,
    /// The path of its folder in the array's folder: `__fragments/NAME`, or `NAME` in the old layout.
    pub(in crate::bytes) folder: String,
    /// The times and the format version in its name; the version is always present, and at least 5.
    pub(in crate::bytes) time: TimedName,
}

impl Commit {
    /// The fragment that a file called `name` commits; its folder is in the array's root if `in_root`.
    ///
    /// # Errors
    /// `Corrupt` for a name of another form, or with a `/`, which could lead out of the array's folder.
    /// `Unsupported` for fragments before format 5.
    fn parse(name: &str, in_root: bool) -> Result<Self> {
        let fragment = stem(name);
        let time = TimedName::parse(fragment).filter(|_| !fragment.contains('/'));
        let time = time.ok_or_else(|| {
            let expected = "expected __first_last_uuid_version";
            Error::corrupt_region(REGION, format!("a commit called \"{name}\", {expected}"))
        })?;
        if time.version.is_none_or(|version| version < 5) {
            return Err(too_old(time.version.unwrap_or(4)));
        }
        let folder = if in_root { fragment.to_owned() } else { format!("{FRAGMENTS}/{fragment}") };
        Ok(Self { name: fragment.to_owned(), folder, time })
    }

    /// The fragment that a line of a `.con` file commits: `__commits/NAME.wrt`, or `NAME.ok` for a fragment
    /// in the array's root.
    fn parse_line(line: &str) -> Result<Self> {
        let name = line.trim_start_matches('/');
        match name.strip_prefix(COMMITS).and_then(|rest| rest.strip_prefix('/')) {
            Some(name) => Self::parse(name, extension(name) == Some("ok")),
            None => Self::parse(name, true),
        }
    }
}

/// The entries and files of an array that determine its visible fragments.
#[derive(Debug, Default)]
pub(in crate::bytes) struct CommitFiles<'a> {
    /// The entries of the array's own folder.
    pub(in crate::bytes) root: &'a [Entry],
    /// The entries of `__commits`.
    pub(in crate::bytes) commits: &'a [Entry],
    /// The contents of the `.con` files.
    pub(in crate::bytes) consolidated: Vec<Bytes>,
    /// The contents of the `.ign` files.
    pub(in crate::bytes) ignored: Vec<Bytes>,
    /// The names and contents of the `.vac` files.
    pub(in crate::bytes) vacuumed: Vec<(String, Bytes)>,
    /// The names and contents of the `.del` files.
    pub(in crate::bytes) deletions: Vec<(String, Bytes)>,
}

/// A delete condition that an open sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::bytes) struct Deletion<'a> {
    /// Its name in fragments to which it has been applied: `__commits/NAME.del`.
    pub(in crate::bytes) marker: String,
    /// The time of the deletion, in milliseconds since 1970.
    pub(in crate::bytes) time: u64,
    /// The stored condition, a generic tile.
    pub(in crate::bytes) condition: &'a [u8],
}

impl CommitFiles<'_> {
    /// The fragments that an open of an array of `kind` sees, oldest first; later ones override earlier ones.
    pub(in crate::bytes) fn visible(
        &self,
        kind: ArrayKind,
        options: &OpenOptions,
    ) -> Result<Vec<Commit>> {
        let mut visible = self.committed()?;
        visible.retain(|commit| is_in_time(commit.time, kind, options));
        let replaced = self.replaced(kind, options)?;
        visible.retain(|commit| !replaced.contains(commit.name.as_str()));
        visible.sort_by(|a, b| (a.time.t1, &a.name).cmp(&(b.time.t1, &b.name)));
        Ok(visible)
    }

    /// The delete conditions that an open sees, oldest first, each once. Files in `.ign` count too, as in
    /// TileDB.
    pub(in crate::bytes) fn visible_deletions(
        &self,
        options: &OpenOptions,
    ) -> Result<Vec<Deletion<'_>>> {
        let mut found = BTreeMap::new();
        let loose = self.deletions.iter().map(|(name, content)| (name.as_str(), content.as_ref()));
        let consolidated = consolidated_lines(&self.consolidated)?.deletions;
        for (line, condition) in consolidated.into_iter().chain(loose) {
            let name = last_part(line);
            let time = TimedName::parse(name).ok_or_else(|| {
                let expected = "expected __time_time_uuid_version.del";
                Error::corrupt_region(REGION, format!("a deletion called \"{name}\", {expected}"))
            })?;
            if options.contains(time) {
                let marker = format!("{COMMITS}/{name}");
                let deletion = Deletion { marker, time: time.t1, condition };
                found.insert((time.t1, name.to_owned()), deletion);
            }
        }
        Ok(found.into_values().collect())
    }

    /// All committed fragments, each once.
    fn committed(&self) -> Result<Vec<Commit>> {
        // By folder, because a `.wrt` file and a line of a `.con` file may commit the same fragment.
        let mut commits = BTreeMap::new();
        let mut add = |commit: Commit| commits.insert(commit.folder.clone(), commit);
        // `.ign` files repeat lines of `.con` files that no longer count, so whole lines are compared.
        let ignored: HashSet<&[u8]> = self.ignored.iter().flat_map(|file| lines(file)).collect();
        for line in consolidated_lines(&self.consolidated)?.commits {
            if !ignored.contains(line.as_bytes()) {
                add(Commit::parse_line(line)?);
            }
        }
        for entry in self.commits {
            match extension(&entry.name) {
                Some("wrt") => add(Commit::parse(&entry.name, false)?),
                Some("ok") => add(Commit::parse(&entry.name, true)?),
                Some("upd") => return Err(update_condition()),
                _ => None,
            };
        }
        for entry in self.root {
            let is_folder = entry.size.is_none();
            if !is_folder && extension(&entry.name) == Some("ok") {
                add(Commit::parse(&entry.name, true)?);
            } else if is_folder
                && TimedName::parse(&entry.name).is_some_and(|name| name.version.is_none())
            {
                // Names of fragments lack the version in format 4 and older.
                return Err(too_old(4));
            }
        }
        Ok(commits.into_values().collect())
    }

    /// The names of fragments that were consolidated, by the `.vac` files that the open sees.
    fn replaced(&self, kind: ArrayKind, options: &OpenOptions) -> Result<HashSet<&str>> {
        let mut replaced = HashSet::new();
        for (name, content) in &self.vacuumed {
            let Some(time) = TimedName::parse(name) else { continue };
            if is_in_time(time, kind, options) {
                replaced.extend(vacuumed_names(content)?);
            }
        }
        Ok(replaced)
    }
}

/// Whether an open sees a file or fragment with these times. They must lie wholly in its window. In sparse
/// arrays since format 15 they only have to touch it, because a consolidated fragment may keep the time of
/// each cell.
fn is_in_time(time: TimedName, kind: ArrayKind, options: &OpenOptions) -> bool {
    let cells_have_times = kind == ArrayKind::Sparse && time.version.is_some_and(|at| at >= 15);
    if cells_have_times { options.touches(time) } else { options.contains(time) }
}

/// The names, without folders, that a `.vac` file lists.
pub(in crate::bytes) fn vacuumed_names(content: &[u8]) -> Result<Vec<&str>> {
    let name = |line| text(line).map(last_part);
    lines(content).map(name).collect()
}

fn lines(content: &[u8]) -> impl Iterator<Item = &[u8]> {
    content.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

fn text(line: &[u8]) -> Result<&str> {
    std::str::from_utf8(line).map_err(|_| {
        Error::corrupt_region(REGION, format!("line \"{}\" is not UTF-8", line.escape_ascii()))
    })
}

/// The content of `.con` files.
#[derive(Debug, Default)]
struct ConsolidatedFiles<'a> {
    /// The lines that commit fragments.
    commits: Vec<&'a str>,
    /// The lines that delete cells, each with its condition.
    deletions: Vec<(&'a str, &'a [u8])>,
}

/// Parses `.con` files. The delete conditions are stored as bytes between lines:
///
/// ```text
///   __commits/__1_1_…_22.wrt\n
///   __commits/__2_2_…_22.del\n  u64 4, then 4 bytes, which may contain \n
///   __commits/__3_3_…_22.wrt\n
/// ```
///
/// Splitting the file at its line ends would therefore break conditions apart.
fn consolidated_lines(files: &[Bytes]) -> Result<ConsolidatedFiles<'_>> {
    let mut found = ConsolidatedFiles::default();
    for file in files {
        let mut rest: &[u8] = file;
        while !rest.is_empty() {
            let line;
            (line, rest) = next_line(rest)?;
            match extension(line) {
                Some("wrt" | "ok") => found.commits.push(line),
                Some("del") => {
                    let condition;
                    (condition, rest) = next_condition(rest)?;
                    found.deletions.push((line, condition));
                }
                Some("upd") => return Err(update_condition()),
                _ => {
                    let message =
                        format!("line \"{line}\", expected a name with .wrt, .ok or .del");
                    return Err(Error::corrupt_region(REGION, message));
                }
            }
        }
    }
    Ok(found)
}

/// Splits off the first line, without its end. The last line of a file may have none.
fn next_line(content: &[u8]) -> Result<(&str, &[u8])> {
    let len = content.iter().position(|byte| *byte == b'\n').unwrap_or(content.len());
    let (line, rest) = content.split_at(len);
    Ok((text(line)?, rest.get(1..).unwrap_or_default()))
}

/// Splits off a delete condition, which is its length and as many bytes.
fn next_condition(content: &[u8]) -> Result<(&[u8], &[u8])> {
    let mut reader = Reader::new(REGION, 0, content);
    let len = reader.u64()?;
    let condition = reader.take(to_usize(len))?;
    Ok((condition, reader.take(reader.remaining())?))
}

fn update_condition() -> Error {
    Error::unsupported("an array with update conditions (.upd), which TileDB calls experimental")
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "0123456789abcdef0123456789abcdef";

    fn name(t1: u64, t2: u64) -> String {
        format!("__{t1}_{t2}_{UUID}_22")
    }

    fn files(names: &[String]) -> Vec<Entry> {
        names.iter().map(|name| Entry::new(name.clone(), Some(0))).collect()
    }

    fn window(start: u64, end: u64) -> OpenOptions {
        OpenOptions { start, end: Some(end), ..OpenOptions::default() }
    }

    fn names(commits: &[Commit]) -> Vec<&str> {
        commits.iter().map(|commit| commit.name.as_str()).collect()
    }

    #[test]
    fn time_travel_and_consolidation() {
        let commits = files(&[name(1, 1), name(2, 2), name(3, 3), name(1, 2)].map(|n| n + ".wrt"));
        let vacuum = format!("/__fragments/{}\n/__fragments/{}\n", name(1, 1), name(2, 2));
        let files = CommitFiles {
            commits: &commits,
            vacuumed: vec![(name(1, 2) + ".vac", vacuum.into())],
            ..CommitFiles::default()
        };
        let seen = |kind, start, end| {
            let visible = files.visible(kind, &window(start, end)).unwrap();
            names(&visible).iter().map(|name| name.to_string()).collect::<Vec<_>>()
        };
        use ArrayKind::{Dense, Sparse};
        assert_eq!(seen(Dense, 0, 9), [name(1, 2), name(3, 3)]);
        assert_eq!(seen(Dense, 0, 1), [name(1, 1)]);
        assert_eq!(seen(Dense, 2, 9), [name(2, 2), name(3, 3)]);
        assert_eq!(seen(Sparse, 0, 1), [name(1, 2)]);
        assert_eq!(seen(Sparse, 3, 9), [name(3, 3)]);
        assert!(seen(Dense, 4, 9).is_empty());
    }

    #[test]
    fn consolidated_commits_hold_bytes_between_lines() {
        let mut content = format!("__commits/{}.wrt\n", name(1, 1)).into_bytes();
        content.extend(format!("__commits/{}.del\n", name(2, 2)).bytes());
        content.extend(4_u64.to_le_bytes());
        content.extend(b"a\nb\n");
        content.extend(format!("__commits/{}.wrt\n{}.ok\n", name(3, 3), name(4, 4)).bytes());
        let ignored = format!("__commits/{}.wrt\n", name(3, 3));
        let loose = files(&[name(1, 1) + ".wrt", name(5, 5) + ".del", "README".into()]);
        let visible = |content: &[u8]| {
            let files = CommitFiles {
                commits: &loose,
                consolidated: vec![Bytes::copy_from_slice(content)],
                ignored: vec![ignored.clone().into()],
                ..CommitFiles::default()
            };
            files.visible(ArrayKind::Dense, &OpenOptions::default())
        };
        let all = visible(&content).unwrap();
        assert_eq!(names(&all), [name(1, 1), name(4, 4)]);
        assert_eq!(all[1].folder, name(4, 4));
        for len in 0..content.len() {
            let _ = visible(&content[..len]);
        }
        assert!(visible(b"__commits/what").is_err());
        assert!(visible(format!("__commits/{}.upd\n", name(1, 1)).as_bytes()).is_err());
        assert!(visible(format!("__commits/__1_1_../../{UUID}_22.wrt\n").as_bytes()).is_err());
        assert!(visible(format!("__commits/{}.del\n\x09", name(1, 1)).as_bytes()).is_err());
    }

    #[test]
    fn old_arrays_commit_beside_the_fragments() {
        let old = format!("__1_1_{UUID}_10");
        let ancient = format!("__1_1_{UUID}");
        let folder = |name: &str| Entry::new(name, None);
        let mut root = files(&[format!("{old}.ok"), format!("{old}.vac")]);
        root.push(folder(&old));
        root.push(folder("__schema"));
        let visible = |root: &[Entry]| {
            let files = CommitFiles { root, ..CommitFiles::default() };
            files.visible(ArrayKind::Dense, &OpenOptions::default())
        };
        let commits = visible(&root).unwrap();
        assert_eq!((commits.len(), &commits[0].folder), (1, &old));
        root.push(folder(&ancient));
        assert!(visible(&root).is_err());
        root.pop();
        root.push(Entry::new(name(1, 1) + ".upd", Some(0)));
        let files = CommitFiles { commits: &root, ..CommitFiles::default() };
        assert!(files.visible(ArrayKind::Dense, &OpenOptions::default()).is_err());
    }
}
