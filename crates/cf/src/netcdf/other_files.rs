//! The other files that HDF5 files name: HDF5 files of virtual datasets, and external files.
//!
//! A file never leads out of its folder, neither by `..`, nor by a link of the file system, nor by another file.

use std::collections::HashMap;
use std::path::{Component, Path};
use std::sync::Arc;

use super::hdf5::Hdf5Reader;
use crate::conventions::VariableStore;
use gridfusion_core::io::{OpenFiles, is_not_found};
use gridfusion_core::options::IoMode;
use gridfusion_core::source::Place;
use gridfusion_core::tile::Objects;
use gridfusion_core::{Error, Result};

/// The most other files of a file.
const MAX_FILES: usize = 4096;
/// The most other files that are open at once.
const MOST_OPEN: usize = 128;

/// The files that were opened, by number. The first one has number 0.
#[derive(Debug)]
pub(super) struct OtherFiles {
    first: OpenFile<Hdf5Reader>,
    /// The others, from number 1 on.
    others: Vec<OpenFile<Content>>,
    /// The number of each file by its kind and its name, after links of the file system were followed.
    numbers: HashMap<(FileKind, String), usize>,
    pool: Arc<OpenFiles>,
}

/// An open file.
#[derive(Debug)]
struct OpenFile<T> {
    place: Place,
    content: T,
}

#[derive(Debug)]
enum Content {
    Hdf5(Hdf5Reader),
    /// Nothing but cells: the file, and its length.
    Cells(Arc<Objects>, u64),
}

/// The files that another file names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum FileKind {
    Hdf5,
    Cells,
}

impl OtherFiles {
    /// Returns the first file alone.
    pub(super) fn new(place: &Place, file: Hdf5Reader) -> Self {
        let pool = OpenFiles::new(place.io() == IoMode::Mmap, MOST_OPEN);
        let own = place.local_path().and_then(|path| path.canonicalize().ok());
        let own = own.map_or_else(|| remote_name(place), |path| path.display().to_string());
        let numbers = HashMap::from([((FileKind::Hdf5, own), 0)]);
        let first = OpenFile { place: place.clone(), content: file };
        Self { first, others: vec![], numbers, pool }
    }

    /// Returns the first file.
    pub(super) fn first(&self) -> &Hdf5Reader {
        &self.first.content
    }

    fn other(&self, number: usize) -> Option<&OpenFile<Content>> {
        self.others.get(number.checked_sub(1)?)
    }

    /// Returns the HDF5 file with a number.
    pub(super) fn hdf5(&self, number: usize) -> Result<&Hdf5Reader> {
        match self.other(number).map(|file| &file.content) {
            Some(Content::Hdf5(file)) => Ok(file),
            None if number == 0 => Ok(self.first()),
            _ => Err(Error::internal("no such HDF5 file")),
        }
    }

    /// Returns the length of the file with a number that has nothing but cells.
    pub(super) fn len(&self, number: usize) -> Result<u64> {
        match self.other(number).map(|file| &file.content) {
            Some(Content::Cells(_, len)) => Ok(*len),
            _ => Err(Error::internal("no such external file")),
        }
    }

    fn place(&self, number: usize) -> &Place {
        self.other(number).map_or(&self.first.place, |file| &file.place)
    }

    /// Returns the path or URL of a file, without secrets.
    pub(super) fn shown(&self, number: usize) -> String {
        self.place(number).shown()
    }

    /// Returns the objects of all files. Members have the numbers of files.
    ///
    /// # Errors
    /// `Internal` if a file is read as several.
    pub(super) fn objects(&self) -> Result<Arc<Objects>> {
        let of = |file: &OpenFile<Content>| match &file.content {
            Content::Hdf5(file) => Arc::clone(file.objects()),
            Content::Cells(objects, _) => Arc::clone(objects),
        };
        let first = std::iter::once(Arc::clone(self.first().objects()));
        let members = first.chain(self.others.iter().map(of)).collect();
        Ok(Arc::new(Objects::several(self.shown(0), members)?))
    }

    /// Opens the HDF5 file that file number `by` names. Returns its number; `None` if it is missing.
    pub(super) async fn open_hdf5(&mut self, by: usize, name: &str) -> Result<Option<usize>> {
        self.open(by, name, FileKind::Hdf5).await
    }

    /// Opens the file of cells that file number `by` names. Returns its number; `None` if it is missing.
    pub(super) async fn open_cells(&mut self, by: usize, name: &str) -> Result<Option<usize>> {
        self.open(by, name, FileKind::Cells).await
    }

    async fn open(&mut self, by: usize, name: &str, kind: FileKind) -> Result<Option<usize>> {
        let Some((place, path)) = self.below(by, name, kind)? else { return Ok(None) };
        if let Some(number) = self.numbers.get(&(kind, path.clone())) {
            return Ok(Some(*number));
        }
        if self.others.len() >= MAX_FILES {
            return Err(Error::unsupported(format!("more than {MAX_FILES} other files")));
        }
        let source = match place.object().await {
            Ok(source) => source,
            Err(error) if is_not_found(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let content = match kind {
            FileKind::Hdf5 => {
                let limits = place.documents();
                Content::Hdf5(Hdf5Reader::open(source, &limits).await?)
            }
            FileKind::Cells => {
                let len = source.size();
                Content::Cells(Arc::new(Objects::one(source)), len)
            }
        };
        self.others.push(OpenFile { place, content });
        let number = self.others.len();
        self.numbers.insert((kind, path), number);
        Ok(Some(number))
    }

    /// Returns the place of a file below the folder of file number `by`, and its one name; `None` if a local one is
    /// missing.
    fn below(&self, by: usize, name: &str, kind: FileKind) -> Result<Option<(Place, String)>> {
        let what = match kind {
            FileKind::Hdf5 => "a virtual dataset of the file",
            FileKind::Cells => "cells in the external file",
        };
        let outside = || {
            Error::unsupported(format!(
                "{what} {name:?}, which is not below the folder of this file"
            ))
        };
        let own = self.place(by);
        let mut parts = vec![];
        for part in Path::new(name).components() {
            match part {
                Component::Normal(part) => parts.push(part.to_str().ok_or_else(outside)?),
                Component::CurDir => {}
                _ => return Err(outside()),
            }
        }
        // In a URL, `%2e%2e` is `..`.
        let has_escapes = own.is_remote() && name.contains('%');
        if parts.is_empty() || name.contains(['\\', '?', '#', ':']) || has_escapes {
            return Err(outside());
        }
        let place = own.beside(&parts.join("/"))?;
        let (Some(other), Some(path)) = (place.local_path(), own.local_path()) else {
            let path = remote_name(&place);
            return Ok(Some((place, path)));
        };
        // Links of the file system may lead elsewhere.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let (Some(other), Some(folder)) = (canonical(other)?, canonical(folder)?) else {
            return Ok(None);
        };
        if !other.starts_with(folder) {
            return Err(outside());
        }
        let path = other.display().to_string();
        Ok(Some((place.among(Arc::clone(&self.pool)), path)))
    }
}

/// Returns a path without links; `None` if it is missing.
fn canonical(path: &Path) -> Result<Option<std::path::PathBuf>> {
    match path.canonicalize() {
        Ok(path) => Ok(Some(path)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => {
            Err(Error::io("cannot find the file", error).in_file(&path.display().to_string()))
        }
    }
}

/// Returns the URL of a place without its query.
fn remote_name(place: &Place) -> String {
    place.location().split(['?', '#']).next().unwrap_or_default().to_owned()
}
