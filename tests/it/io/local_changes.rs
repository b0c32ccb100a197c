//! Files that change while a query reads them: the right rows, or an error that names the file.
//!
//! ```text
//!   one batch ── the change ── all other batches
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use datafusion::error::Result;
use datafusion::prelude::SessionContext;
use futures::StreamExt;
use gridfusion::{ArrayOptions, GridfusionSessionContextExt, IoMode};
use tempfile::TempDir;

use super::local_faults::file;
use super::remote::files;
use crate::support::{nothing_reserved, query, reducing, rows_of, shipped};

/// Something that happens to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// Its second half is cut off.
    CutOff,
    /// All its bytes are written again, inverted.
    Overwrite,
    /// Another file of the same length is renamed to its name.
    Replace,
    Delete,
    /// No user but root may open it.
    Forbid,
}

impl Change {
    fn apply(self, path: &Path) {
        let bytes = fs::read(path).unwrap();
        let inverted: Vec<u8> = bytes.iter().map(|byte| !byte).collect();
        let opened = || fs::OpenOptions::new().write(true).open(path).unwrap();
        match self {
            Self::CutOff => opened().set_len(bytes.len() as u64 / 2).unwrap(),
            Self::Overwrite => fs::write(path, inverted).unwrap(),
            Self::Replace => {
                let other = path.with_extension("new");
                fs::write(&other, inverted).unwrap();
                fs::rename(other, path).unwrap();
            }
            Self::Delete => fs::remove_file(path).unwrap(),
            Self::Forbid => forbid(path),
        }
    }
}

#[cfg(unix)]
fn forbid(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o000)).unwrap();
}

#[cfg(not(unix))]
fn forbid(_: &Path) {}

/// Files in a folder of their own, written long ago, so that each change gives them another time.
struct Place {
    _folder: TempDir,
    /// The path of the array.
    array: PathBuf,
    /// The files that change.
    files: Vec<PathBuf>,
}

impl Place {
    fn new(array: &str, contents: &[(String, Vec<u8>)], changing: fn(&str) -> bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut files = vec![];
        for (name, bytes) in contents {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, bytes).unwrap();
            let opened = fs::OpenOptions::new().write(true).open(&path).unwrap();
            opened.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
            files.extend(changing(name).then_some(path));
        }
        Self { array: folder.path().join(array), files, _folder: folder }
    }

    /// Returns a session in which the array is the table `t`. Small batches leave most reads for later.
    async fn table(&self, io: IoMode) -> SessionContext {
        let ctx = reducing(1, 4);
        let options = ArrayOptions::default().with_io(io);
        ctx.register_array("t", self.array.to_str().unwrap(), options).await.unwrap();
        ctx
    }

    /// Reads all rows. After the first batch, all files change.
    async fn rows(&self, ctx: &SessionContext, change: Change) -> Result<Vec<Vec<String>>> {
        let mut stream = ctx.sql("SELECT * FROM t").await?.execute_stream().await?;
        let first = stream.next().await.unwrap()?;
        let mut rows = rows_of(&[first]);
        self.files.iter().for_each(|path| change.apply(path));
        while let Some(batch) = stream.next().await {
            rows.extend(rows_of(&[batch?]));
        }
        Ok(rows)
    }
}

/// Open files keep their bytes when their names go away. Bytes that are written into them are an error.
#[tokio::test]
async fn a_tet_file_changes_during_a_query() {
    use Change::{CutOff, Delete, Forbid, Overwrite, Replace};
    for (io, zstd) in [(IoMode::Mmap, true), (IoMode::Mmap, false), (IoMode::Pread, true)] {
        for change in [CutOff, Overwrite, Replace, Delete, Forbid] {
            if change == CutOff && io == IoMode::Mmap && !zstd {
                // Rows that were not copied are then lost: the system ends the process.
                continue;
            }
            let place = Place::new("v.tet", &[("v.tet".into(), file(zstd))], |_| true);
            let ctx = place.table(io).await;
            let expected = rows_of(&query(&ctx, "SELECT * FROM t").await.unwrap());
            let found = place.rows(&ctx, change).await;
            match (change, found) {
                (CutOff | Overwrite, Err(error)) => {
                    let error = error.to_string();
                    let reason = if change == CutOff { "has shrunk" } else { "has changed" };
                    assert!(error.contains("v.tet: ") && error.contains(reason), "{error}");
                }
                (Replace | Delete | Forbid, Ok(found)) => assert_eq!(found, expected, "{change:?}"),
                (change, found) => panic!("{io}, {change:?}: {found:?}"),
            }
            nothing_reserved(&ctx).await;
        }
    }
}

/// The files of a TileDB array are opened when they are needed, so a change may come before or after.
#[tokio::test]
async fn a_tiledb_array_changes_during_a_query() {
    use Change::{CutOff, Delete, Forbid, Overwrite, Replace};
    for (name, from) in [("overlap", "tests/data/tiledb/overlap"), ("ships", "examples/data/ships")]
    {
        let contents = files(Path::new(&shipped(from)), name);
        for change in [CutOff, Overwrite, Replace, Delete, Forbid] {
            let is_tile = |path: &str| path.contains("__fragments/");
            let place = Place::new(name, &contents, is_tile);
            assert!(place.files.len() > 3);
            let ctx = place.table(IoMode::Pread).await;
            let plain = Place::new(name, &contents, is_tile);
            let plain_ctx = plain.table(IoMode::Pread).await;
            let expected = rows_of(&query(&plain_ctx, "SELECT * FROM t").await.unwrap());
            match place.rows(&ctx, change).await {
                Ok(found) => assert_eq!(found, expected, "{name}, {change:?}"),
                Err(error) => {
                    let error = error.to_string();
                    assert!(error.contains("/__fragments/"), "{name}, {change:?}: {error}");
                }
            }
            nothing_reserved(&ctx).await;
        }
    }
}
