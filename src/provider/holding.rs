//! What is at a place, as far as names and listings tell: before anything is opened.

use datafusion::execution::runtime_env::RuntimeEnv;
use futures::future::ready;
use futures::stream::{self, StreamExt};

use super::elsewhere;
use super::location::{Place, child, entries, path_of};
use crate::error::{Error, Kind};
use crate::format::tet::is_package;
use crate::format::tiledb::{FolderKind, folder_kind};
use crate::format::{Entry, Foreign};
use crate::io::MAX_CONCURRENT_IO;
use crate::options::{IoMode, Scope};

/// Something that holds arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holding {
    /// A `.tet` file.
    Tet,
    /// A `.tet.d` package.
    Package,
    /// A TileDB array.
    Array,
    /// A TileDB group, or a folder of arrays.
    Group,
}

impl Holding {
    /// What is at `location`; `None` if it is nothing of ours, or nothing at all.
    ///
    /// In an object store, an object is known by its name, and a folder is looked into only if its name
    /// has no extension or that of TileDB: whatever else is there shall not be listed for nothing.
    pub(super) async fn at(location: &str, io: IoMode, runtime: &RuntimeEnv) -> Option<Self> {
        let path = path_of(location);
        let is_folder = match Place::of(location, runtime) {
            Ok(Place::Local(path)) if !path.exists() => return None,
            Ok(Place::Local(path)) => path.is_dir(),
            Ok(Place::Store(..)) | Err(_) if is_tet(&path) => false,
            Ok(Place::Store(..)) | Err(_) => {
                may_be_array(&path) || Self::of_name(&path) == Some(Self::Package)
            }
        };
        if !is_folder {
            return is_tet(&path).then_some(Self::Tet);
        }
        match entries(location, io, runtime).await {
            Ok(entries) => match Self::of_folder(&entries).or_else(|| Self::of_name(&path)) {
                None if has_arrays(location, &entries, io, runtime).await => Some(Self::Group),
                holding => holding,
            },
            Err(error) => {
                log::debug!("not looked into: {error}");
                Self::of_name(&path)
            }
        }
    }

    /// `error`, which was met when something of the `expected` format was to be opened; if there is
    /// something of the other format, that says so, and how it is read. If there are no arrays, that says what
    /// there is.
    pub(super) async fn explain(
        error: Error,
        location: &str,
        expected: Scope,
        runtime: &RuntimeEnv,
    ) -> Error {
        // Rows in text have no signature, so their names must do.
        let not_tet = error.region() == Some("superblock") && error.offset() == Some(0);
        let rows = Foreign::of_name(&path_of(location)).filter(|it| not_tet && it.has_rows());
        if let Some(foreign) = rows {
            return foreign.error().in_file(location);
        }
        if !matches!(error.kind(), Kind::Usage | Kind::Io) {
            return error;
        }
        let found = Self::at(location, IoMode::Pread, runtime).await;
        let (what, reader) = match (found, expected) {
            (Some(Self::Tet), Scope::TileDb) => ("a .tet file, not a TileDB array", "TET"),
            (Some(Self::Package), Scope::TileDb) => ("a .tet.d package, not a TileDB array", "TET"),
            (Some(Self::Array), Scope::Tet) => {
                ("a TileDB array, not a .tet file or package", "TILEDB")
            }
            (Some(Self::Group), Scope::Tet) => {
                ("a group or folder of TileDB arrays, not a .tet file or package", "TILEDB")
            }
            (None, _) => return elsewhere::described(error, location, runtime).await,
            _ => return error,
        };
        let lower = reader.to_lowercase();
        let message = format!(
            "this is {what}; read it with STORED AS {reader}, read_{lower} or register_{lower}"
        );
        Error::usage(message).in_file(location)
    }

    /// What a folder with these entries is.
    pub(super) fn of_folder(entries: &[Entry]) -> Option<Self> {
        match folder_kind(entries) {
            _ if is_package(entries) => Some(Self::Package),
            Some(FolderKind::Array) => Some(Self::Array),
            Some(FolderKind::Group) => Some(Self::Group),
            None => None,
        }
    }

    /// What something is called like.
    pub(super) fn of_name(path: &str) -> Option<Self> {
        let path = path.trim_end_matches('/');
        match path {
            _ if is_tet(path) => Some(Self::Tet),
            _ if ends_with(path, ".tet.d") => Some(Self::Package),
            _ => None,
        }
    }
}

/// A name without the ending that says what it is the name of.
pub(super) fn stem(name: &str) -> &str {
    let endings = [".tet", ".tet.d", ".tdb", ".tiledb"];
    let ending = endings.into_iter().find(|ending| ends_with(name, ending));
    let stem = &name[..name.len() - ending.map_or(0, str::len)];
    if stem.is_empty() { name } else { stem }
}

/// Whether there is an array or a group in a folder of nothing but folders. Not all of them are looked
/// into: other things are kept in many folders, too.
async fn has_arrays(location: &str, listed: &[Entry], io: IoMode, runtime: &RuntimeEnv) -> bool {
    if listed.iter().any(|entry| entry.size.is_some()) {
        return false;
    }
    let looks: Vec<_> = listed
        .iter()
        .take(MAX_CONCURRENT_IO)
        .map(|entry| async move {
            let listed = entries(&child(location, &entry.name), io, runtime).await;
            listed.is_ok_and(|listed| folder_kind(&listed).is_some())
        })
        .collect();
    stream::iter(looks).buffered(MAX_CONCURRENT_IO).any(ready).await
}

fn is_tet(path: &str) -> bool {
    ends_with(path, ".tet")
}

fn may_be_array(path: &str) -> bool {
    let name = path.trim_end_matches('/');
    let name = name.rsplit('/').next().unwrap_or(name);
    !name.contains('.') || ends_with(name, ".tdb") || ends_with(name, ".tiledb")
}

fn ends_with(name: &str, ending: &str) -> bool {
    let at = name.len().checked_sub(ending.len());
    at.and_then(|at| name.get(at..)).is_some_and(|end| end.eq_ignore_ascii_case(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (name, expected) in [
            ("a.tet", Some(Holding::Tet)),
            ("dir/A.TET", Some(Holding::Tet)),
            ("a.tet.d/", Some(Holding::Package)),
            ("a.csv", None),
            ("tet", None),
            ("ätet", None),
        ] {
            assert_eq!(Holding::of_name(name), expected, "{name}");
        }
        for (name, expected) in [
            ("stations.tet", "stations"),
            ("soil.v1.tet", "soil.v1"),
            ("demo.tet.d", "demo"),
            ("forecast.TDB", "forecast"),
            ("runs", "runs"),
            (".tet", ".tet"),
        ] {
            assert_eq!(stem(name), expected, "{name}");
        }
        assert!(may_be_array("a/b") && may_be_array("a.b/c/") && may_be_array("c.tiledb"));
        assert!(!may_be_array("a/b.parquet"));
    }
}
