//! [`Root`]: a folder that local paths must not leave.
//!
//! `Place` checks each path that it resolves, and a folder each object that it opens. So formats need not know the root.

use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use super::LocalPath;
use crate::error::{Error, Result};

/// A folder that local paths must not leave, also not by symbolic links.
///
/// ```
/// use gridfusion_core::io::Root;
///
/// # fn main() -> gridfusion_core::Result<()> {
/// let root = Root::new("src")?;
/// assert!(root.check("src/io/root.rs".as_ref()).is_ok());
/// assert!(root.check("src/io/../../Cargo.toml".as_ref()).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root(PathBuf);

impl Root {
    /// Makes a root of a folder. Resolves symbolic links once.
    ///
    /// # Errors
    /// `Io` if there is no such folder.
    pub fn new(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref();
        let failed = |error| {
            Error::io("cannot open the folder", error).in_file(&folder.display().to_string())
        };
        let real = fs::canonicalize(folder).map_err(failed)?;
        match real.is_dir() {
            true => Ok(Self(real)),
            false => Err(failed(ErrorKind::NotADirectory.into())),
        }
    }

    /// Fails unless a path is in the folder after its symbolic links are resolved. The path may end in names that do not exist
    /// yet.
    ///
    /// The check comes before a file is opened. So it cannot stop a user who may replace folders below the root by links
    /// meanwhile.
    ///
    /// # Errors
    /// `Usage` for a path that leaves the folder; `Io` if links cannot be resolved.
    pub fn check(&self, path: &Path) -> Result<()> {
        self.check_at(&path.into())
    }

    /// As [`Root::check`], for a path with a name in messages.
    pub(crate) fn check_at(&self, path: &LocalPath) -> Result<()> {
        let (name, path) = (path.name(), path.at());
        let failed = |error| Error::io("cannot resolve the path", error).in_file(&name);
        let absolute = std::path::absolute(path).map_err(failed)?;
        // The longest part that exists. The system resolves its `..` as it would when it opens the file.
        let mut existing = absolute.as_path();
        let real = loop {
            match fs::canonicalize(existing) {
                Ok(real) => break real,
                // A link to nothing would make the file elsewhere.
                Err(_) if fs::symlink_metadata(existing).is_ok() => return Err(self.left_by(&name)),
                Err(error) if is_missing(&error) => {}
                Err(error) => return Err(failed(error)),
            }
            match (existing.parent(), existing.components().next_back()) {
                (Some(parent), Some(Component::Normal(_))) => existing = parent,
                // `..` of a missing folder leads to an unknown place.
                _ => return Err(self.left_by(&name)),
            }
        };
        match real.starts_with(&self.0) {
            true => Ok(()),
            false => Err(self.left_by(&name)),
        }
    }

    fn left_by(&self, path: &str) -> Error {
        Error::usage(format!(
            "'{path}' is outside of '{}', which limits local paths here",
            self.0.display()
        ))
    }
}

/// Whether a path has a part that does not exist, or that is a file and no folder.
fn is_missing(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_outside_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        fs::create_dir_all(at("root/a/b")).unwrap();
        fs::create_dir_all(at("rooted")).unwrap();
        fs::write(at("secret"), "x").unwrap();
        fs::write(at("root/a/file"), "x").unwrap();
        let root = Root::new(at("root")).unwrap();
        for inside in
            ["root", "root/a/file", "root/a/../a/new/file", "root/a/*.tet", "rooted/../root/x"]
        {
            assert!(root.check(&at(inside)).is_ok(), "{inside}");
        }
        for outside in [
            "secret",
            "rooted",
            "",
            "root/../secret",
            "root/../new",
            "root/new/../../secret",
            "root/*/../../secret",
            "root/a/file/../../../secret",
        ] {
            let error = root.check(&at(outside)).unwrap_err().to_string();
            assert!(error.contains("outside of"), "{outside}: {error}");
        }
        assert!(root.check(Path::new("/etc/passwd")).is_err());
        assert!(Root::new(at("secret")).is_err() && Root::new(at("nothing")).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        fs::create_dir_all(at("root/a")).unwrap();
        fs::create_dir_all(at("out")).unwrap();
        fs::write(at("out/secret"), "x").unwrap();
        symlink(at("out"), at("root/folder")).unwrap();
        symlink(at("out/secret"), at("root/file")).unwrap();
        symlink(at("out/new"), at("root/nothing")).unwrap();
        symlink(at("root/a"), at("root/fine")).unwrap();
        symlink(at("root"), at("link")).unwrap();
        let root = Root::new(at("link")).unwrap();
        assert!(root.check(&at("root/fine/new")).is_ok() && root.check(&at("link/a")).is_ok());
        for outside in [
            "root/folder/secret",
            "root/folder/new",
            "root/file",
            "root/nothing",
            "root/fine/../../out",
        ] {
            assert!(root.check(&at(outside)).is_err(), "{outside}");
        }
    }
}
