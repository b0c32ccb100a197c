//! [`LaterFile`]: a file of a mosaic that is opened when a query first locates one of its chunks.

use std::fmt::Debug;
use std::sync::Arc;

use arrow::array::Array;
use async_trait::async_trait;
use tokio::sync::OnceCell;

use super::combine::Arrangement;
use super::compat::array_differs;
use super::file_arrays::FileArrays;
use super::known_files::{KnownFile, KnownFiles};
use super::own_fill::with_own_fill;
use crate::array::{ChunkSource, Dimension, GridArray, Labels, Value, ValueBounds};
use crate::error::{Error, Result};
use crate::format::{StoredChunk, Zones};
use crate::grid::{ChunkGrid, ChunkTask, Selection};
use crate::tile::{ObjectVersion, Objects};

/// Opens the files of a table by their numbers.
#[async_trait]
pub trait OpensFiles: Debug + Send + Sync {
    /// Opens the file of this number among the places of the table.
    async fn open(&self, place: usize) -> Result<FileArrays>;
}

impl KnownFiles {
    /// Arranges the files again. Opens only the first; queries open the others when they read them.
    ///
    /// # Errors
    /// `Io` if the first file was written since, and the errors of opening it.
    pub async fn arrange(&self, opener: Arc<dyn OpensFiles>) -> Result<Arrangement> {
        let [first, others @ ..] = self.files.as_slice() else {
            return Err(Error::internal("a table of no file"));
        };
        let mut opened = opener.open(first.place).await?;
        let names: Vec<&str> = self.variables.iter().map(String::as_str).collect();
        opened.keep_optional(|name| names.contains(&name));
        opened.order_variables(&names);
        let lens = self.files.iter().try_fold(0_u64, |sum, file| sum.checked_add(file.len));
        let labels = match (&self.labels, lens) {
            (None, Some(len)) => {
                opened.dims().get(self.axis).and_then(|it| it.labels().counted(len))
            }
            (Some(values), Some(len)) if values.len() as u64 == len => {
                Some(Labels::from_array(Arc::clone(values))?)
            }
            _ => None,
        };
        let labels = labels.ok_or_else(|| first.changed("it has other dimensions"))?;
        let mut start = first.len;
        let expected =
            LaterFile::try_new(first, &opened, self.axis, &labels.part(0..start)?, &opener)?;
        expected.check(&opened)?;
        let mut files = vec![];
        for known in others {
            let end = start + known.len;
            let later =
                LaterFile::try_new(known, &opened, self.axis, &labels.part(start..end)?, &opener)?;
            files.push(later.into_arrays());
            start = end;
        }
        files.insert(0, opened);
        let places = self.files.iter().map(|file| file.place).collect();
        let labels = Some(labels);
        Ok(Arrangement { files, places, axis: self.axis, labels, is_adapted: false })
    }
}

/// A file that may not be open yet, and what is known of it.
#[derive(Debug)]
pub(super) struct LaterFile {
    known: KnownFile,
    arrays: Vec<LaterVariable>,
    opener: Arc<dyn OpensFiles>,
    opened: OnceCell<Vec<Arc<dyn ChunkSource>>>,
}

/// A variable of such a file.
#[derive(Debug, Clone)]
struct LaterVariable {
    name: String,
    grid: ChunkGrid,
    dims: Vec<Dimension>,
    values: Vec<Value>,
    /// The axes along which each value differs.
    axes: Vec<Vec<usize>>,
    objects: Arc<Objects>,
}

/// The chunk source of such a variable.
#[derive(Debug)]
struct LaterSource {
    file: Arc<LaterFile>,
    objects: Arc<Objects>,
    variable: usize,
}

impl LaterFile {
    /// Makes a file like `first`, but with the labels `labels` on `axis`.
    ///
    /// # Errors
    /// `Io` if the two do not have the same variables.
    pub(super) fn try_new(
        known: &KnownFile,
        first: &FileArrays,
        axis: usize,
        labels: &Labels,
        opener: &Arc<dyn OpensFiles>,
    ) -> Result<Self> {
        let objects = || {
            let KnownFile { name, is_resident, is_remote, .. } = known.clone();
            Arc::new(Objects::later(name, is_resident, is_remote))
        };
        let shared = objects();
        let variable = |(array, grid): (&GridArray, &ChunkGrid)| {
            let mut dims = array.dims().to_vec();
            dims[axis] = dims[axis].with_labels(labels.clone());
            LaterVariable {
                name: array.name().to_owned(),
                grid: grid.clone(),
                dims,
                values: array.values().to_vec(),
                axes: axes_of(array),
                objects: if known.shares_objects { Arc::clone(&shared) } else { objects() },
            }
        };
        if first.arrays.len() != known.grids.len() || first.dims().len() <= axis {
            return Err(known.changed("it has other variables"));
        }
        Ok(Self {
            known: known.clone(),
            arrays: first.arrays.iter().zip(&known.grids).map(variable).collect(),
            opener: Arc::clone(opener),
            opened: OnceCell::new(),
        })
    }

    /// Returns the arrays of the file, which open it when their chunks are located.
    pub(super) fn into_arrays(self) -> FileArrays {
        let file = Arc::new(self);
        let array = |(variable, it): (usize, &LaterVariable)| {
            let LaterVariable { name, grid, dims, values, objects, .. } = it.clone();
            let source = LaterSource { file: Arc::clone(&file), objects, variable };
            GridArray::new(name, Arc::new(source), grid, dims, values, false)
        };
        let arrays = file.arrays.iter().enumerate().map(array).collect();
        FileArrays::new(file.known.name.clone(), arrays)
    }

    /// Returns the sources of the variables; opens the file if no query has read it before.
    async fn sources(&self) -> Result<&[Arc<dyn ChunkSource>]> {
        let open = || async {
            let mut file = self.opener.open(self.known.place).await?;
            let names: Vec<&str> = self.arrays.iter().map(|it| it.name.as_str()).collect();
            file.keep_optional(|name| names.contains(&name));
            file.order_variables(&names);
            self.check(&file)?;
            for (later, array) in self.arrays.iter().zip(&file.arrays) {
                // Variables may share their objects, and an attempt before this one may have failed.
                later.objects.set_opened(array.shared_objects())?;
            }
            let shown = self.arrays.iter().map(|later| later.values.as_slice());
            let sources = file.arrays.into_iter().zip(shown);
            Ok::<_, Error>(sources.map(|(array, shown)| with_own_fill(array, shown)).collect())
        };
        self.opened.get_or_try_init(open).await.map(Vec::as_slice)
    }

    /// Fails unless the file is the one that was known.
    ///
    /// # Errors
    /// `Io` for a file that was written since, or is another one here.
    pub(super) fn check(&self, file: &FileArrays) -> Result<()> {
        let (planned, mut here) = (&self.known.versions, file.versions());
        if planned.len() > here.len() {
            here.extend(file.contents().versions()?);
        }
        ObjectVersion::compare(&self.known.name, planned, &here)?;
        if file.arrays.len() != self.arrays.len() {
            return Err(self.known.changed("it has other variables"));
        }
        let differ = |(later, array): (&LaterVariable, &GridArray)| {
            let of_grid =
                || (later.grid != *array.grid()).then(|| "its chunks are others".to_owned());
            let of_axes = || {
                (later.axes != axes_of(array))
                    .then(|| "its variables have other dimensions".to_owned())
            };
            array_differs(&later.dims, &later.values, array)
                .or_else(of_grid)
                .or_else(of_axes)
                .or_else(|| self.labels_differ(later, array))
        };
        match self.arrays.iter().zip(&file.arrays).find_map(differ) {
            Some(reason) => Err(self.known.changed(&reason)),
            None => Ok(()),
        }
    }

    /// Returns how labels differ; `None` if they are equal. Indices of a file begin at 0, and those of the table do not.
    fn labels_differ(&self, later: &LaterVariable, array: &GridArray) -> Option<String> {
        let equal = |a: &Labels, b: &Labels| a.equals(b).unwrap_or(false);
        let differ = |(a, b): &(&Dimension, &Dimension)| {
            a.len() != b.len() || b.is_labelled() && !equal(a.labels(), b.labels())
        };
        let (dim, _) = later.dims.iter().zip(array.dims()).find(differ)?;
        Some(format!("its labels of \"{}\" are others", dim.name()))
    }
}

/// Returns the axes along which each value of an array differs.
fn axes_of(array: &GridArray) -> Vec<Vec<usize>> {
    (0..array.value_count()).map(|value| array.axes_of(value)).collect()
}

#[async_trait]
impl ChunkSource for LaterSource {
    fn objects(&self) -> &Arc<Objects> {
        &self.objects
    }

    fn versions(&self) -> Vec<ObjectVersion> {
        self.file.known.versions.clone()
    }

    fn axes_of(&self, value: usize) -> Option<Vec<usize>> {
        let variable = &self.file.arrays[self.variable];
        Some(variable.axes[value].clone()).filter(|axes| axes.len() < variable.dims.len())
    }

    async fn locate(&self, tasks: &[ChunkTask], values: &[usize]) -> Result<Vec<Vec<StoredChunk>>> {
        self.file.sources().await?[self.variable].locate(tasks, values).await
    }

    async fn explain_absence(&self, value: usize, member: u32) -> Result<Option<String>> {
        self.file.sources().await?[self.variable].explain_absence(value, member).await
    }

    async fn zones(
        &self,
        value: usize,
        selection: &Selection,
        bytes_to_read: u64,
    ) -> Option<Arc<dyn Zones>> {
        // If the file cannot be opened, locating its chunks reports why.
        let sources = self.file.sources().await.ok()?;
        sources[self.variable].zones(value, selection, bytes_to_read).await
    }

    async fn value_bounds(
        &self,
        value: usize,
        selection: &Selection,
    ) -> Option<Arc<dyn ValueBounds>> {
        let sources = self.file.sources().await.ok()?;
        sources[self.variable].value_bounds(value, selection).await
    }
}
