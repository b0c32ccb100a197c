//! Files of other variables and of fewer dimensions as one table: the option `union_by_name`.
//!
//! ```text
//!                                            t2m     tp      land
//!   2023.nc   t2m (time, y, x)        2023   cells   NULL    cells, repeated along time
//!   2024.nc   tp, t2m (time, y, x)    2024   cells   cells   cells, repeated along time
//!   land.nc   land (y, x)
//! ```
//!
//! After [`united`], all files have the same variables over the same dimensions, as the other steps of a mosaic expect.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;

use super::file_arrays::{Beside, FileArrays};
use crate::array::{ChunkSource, Dimension, GridArray, Value};
use crate::error::{Error, Result};
use crate::format::StoredChunk;
use crate::grid::{ChunkGrid, ChunkTask};
use crate::tile::{ObjectVersion, Objects};

/// Returns files that have all variables, over the dimensions of the first variable of the highest rank.
///
/// # Errors
/// The reason why a file cannot read a variable that another file has: it is there, so it is not NULL.
/// `Usage` if a variable has a dimension that this one lacks, or other labels. `Usage` if a file of fewer dimensions has a
/// variable that another file has, too.
pub(super) fn united(files: Vec<FileArrays>) -> Result<Vec<FileArrays>> {
    let files = with_one_name(files)?;
    let optional: HashMap<String, Beside> = files
        .iter()
        .flat_map(|file| file.beside.iter().filter(|it| it.is_optional))
        .map(|it| (it.name.clone(), it.clone()))
        .collect();
    let all = || files.iter().flat_map(|file| &file.arrays);
    // The last of several greatest would depend on the order of files more than the first does.
    let rank = all().map(|array| array.dims().len()).max().unwrap_or_default();
    let Some(widest) = all().find(|array| array.dims().len() == rank) else { return Ok(files) };
    let names: Vec<String> = widest.dims().iter().map(|dim| dim.name().to_owned()).collect();
    let (mut full, mut lower) = (vec![], vec![]);
    for file in files {
        match Frame::try_new(&file, &names)? {
            Some(frame) => full.push((frame.spread(file)?, frame)),
            None => lower.push(file),
        }
    }
    for (file, frame) in &mut full {
        lower.iter().try_for_each(|other| frame.add(file, other))?;
    }
    add_absent(&mut full)?;
    let mut files: Vec<FileArrays> = full.into_iter().map(|(file, _)| file).collect();
    // A column that is optional in one file is so in those that lacked it.
    for file in &mut files {
        let names = file.arrays.iter().map(GridArray::name);
        let new = names.filter(|name| file.beside(name).is_none());
        let new: Vec<Beside> = new.filter_map(|name| optional.get(name).cloned()).collect();
        file.beside.extend(new);
    }
    Ok(files)
}

/// Gives files that are one array each the name of the first of them: they hold the same variable.
fn with_one_name(files: Vec<FileArrays>) -> Result<Vec<FileArrays>> {
    let first = files.iter().find(|file| file.is_one_array());
    let Some(name) = first.map(|file| file.arrays[0].name().to_owned()) else { return Ok(files) };
    let renamed = files.into_iter().map(|file| match file.is_one_array() {
        true => file.try_map(|array| Ok(array.with_name(&name))),
        false => Ok(file),
    });
    renamed.collect()
}

/// The dimensions of a file, in the order of the table's, and its chunks along them.
struct Frame {
    dims: Vec<Dimension>,
    chunks: ChunkGrid,
    /// The variable whose dimensions they are.
    of: String,
}

impl Frame {
    /// Returns the dimensions of a file; `None` for a file that lacks some of them.
    fn try_new(file: &FileArrays, names: &[String]) -> Result<Option<Self>> {
        let Some(array) = file.arrays.iter().find(|array| array.dims().len() == names.len()) else {
            return Ok(None);
        };
        let axis = |name: &String| array.dims().iter().position(|dim| dim.name() == name);
        let axes: Option<Vec<usize>> = names.iter().map(axis).collect();
        let axes = axes.ok_or_else(|| {
            let own: Vec<&str> = array.dims().iter().map(Dimension::name).collect();
            Error::usage(format!(
                "the files cannot be one table: the dimensions of \"{}\" are {}, and other variables have {}",
                array.name(),
                own.join(", "),
                names.join(", ")
            ))
            .in_file(&file.name)
        })?;
        let dims: Vec<Dimension> = axes.iter().map(|axis| array.dims()[*axis].clone()).collect();
        let lens: Vec<u64> = dims.iter().map(Dimension::len).collect();
        let chunks = axes.iter().map(|axis| array.grid().axis_chunks()[*axis].clone()).collect();
        let chunks = ChunkGrid::with_axis_chunks(&lens, chunks)?;
        Ok(Some(Self { dims, chunks, of: array.name().to_owned() }))
    }

    /// Repeats all variables of the file along the dimensions that they lack.
    fn spread(&self, file: FileArrays) -> Result<FileArrays> {
        file.try_map(|array| self.over(array))
    }

    fn over(&self, array: GridArray) -> Result<GridArray> {
        array.over(&self.dims, &self.chunks, &self.of)
    }

    /// Adds the variables of another file, which has fewer dimensions, to `file`.
    fn add(&self, file: &mut FileArrays, other: &FileArrays) -> Result<()> {
        for array in &other.arrays {
            let is_known = file.arrays.iter().any(|it| it.name() == array.name());
            if is_known && other.is_optional(array.name()) {
                continue;
            }
            if is_known {
                let (name, a, b) = (array.name(), &file.name, &other.name);
                return Err(Error::usage(format!(
                    "the files cannot be one table: \"{name}\" is both in {a} and, with fewer dimensions, in {b}"
                )));
            }
            let array = self.over(array.shared());
            file.arrays.push(array.map_err(|error| error.in_file(&other.name))?);
        }
        Ok(())
    }

    /// Returns a variable like `array` of another file, all of whose cells are NULL.
    fn absent(&self, like: &GridArray, objects: &Arc<Objects>) -> GridArray {
        let source = Arc::new(Absent(Arc::clone(objects)));
        let values = like.values().iter().map(Value::absent).collect();
        let (name, dims) = (like.name().to_owned(), self.dims.clone());
        GridArray::new(name, source, self.chunks.clone(), dims, values, false)
    }
}

/// Adds the variables that only other files have to each file.
fn add_absent(files: &mut [(FileArrays, Frame)]) -> Result<()> {
    let mut all: Vec<GridArray> = vec![];
    for (file, _) in files.iter() {
        let is_new = |array: &&GridArray| !all.iter().any(|it| it.name() == array.name());
        let new: Vec<GridArray> =
            file.arrays.iter().filter(is_new).map(GridArray::shared).collect();
        all.extend(new);
    }
    for (file, frame) in files {
        let first = file.arrays.first().map(|array| Arc::clone(array.shared_objects()));
        let objects = first.ok_or_else(|| Error::internal("a file without arrays"))?;
        let lacks = |array: &&GridArray| !file.arrays.iter().any(|it| it.name() == array.name());
        let absent = all.iter().filter(lacks).map(|array| {
            match file.unreadable.iter().find(|(name, _)| name == array.name()) {
                Some((_, error)) => Err(error.clone().in_file(&file.name)),
                None => Ok(frame.absent(array, &objects)),
            }
        });
        let absent: Vec<GridArray> = absent.collect::<Result<_>>()?;
        file.arrays.extend(absent);
    }
    Ok(())
}

/// The chunks of a variable that a file lacks: none is stored.
#[derive(Debug)]
struct Absent(Arc<Objects>);

#[async_trait]
impl ChunkSource for Absent {
    fn objects(&self) -> &Arc<Objects> {
        &self.0
    }

    fn versions(&self) -> Vec<ObjectVersion> {
        vec![]
    }

    async fn locate(&self, tasks: &[ChunkTask], values: &[usize]) -> Result<Vec<Vec<StoredChunk>>> {
        Ok(vec![vec![StoredChunk::default(); values.len()]; tasks.len()])
    }
}
