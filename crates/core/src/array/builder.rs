//! The builder with which a format assembles the array that scans read.

use std::sync::Arc;

use super::chunk_source::ChunkSource;
use super::column::Value;
use super::dimension::Dimension;
use super::grid_array::GridArray;
use crate::error::{Error, Result};
use crate::grid::ChunkGrid;

/// A builder of a [`GridArray`] from its grid, one dimension per axis, and its variables.
///
/// Add dimensions in the order of the axes. Variables are numbered from 0 in the order in which they
/// are added; the [`ChunkSource`] gets these numbers.
///
/// ```
/// use std::sync::Arc;
/// use gridfusion_core::Result;
/// use gridfusion_core::array::{
///     ChunkSource, Dimension, GridArray, GridArrayBuilder, Labels, ReadOptions, Value,
/// };
/// use gridfusion_core::format::ElementType;
/// use gridfusion_core::grid::ChunkGrid;
///
/// fn array(source: Arc<dyn ChunkSource>, options: &ReadOptions) -> Result<GridArray> {
///     let stations = Labels::from_text(&["Bergen", "Oslo", "Tromso"].map(str::to_owned))?;
///     GridArrayBuilder::new("temperature", source, ChunkGrid::new(&[24, 3], &[6, 3])?)
///         .dimension(Dimension::indexed("hour", 24))
///         .dimension(Dimension::labelled("station", stations))
///         .value(Value::numbers("value", ElementType::F32, None, options))
///         .index_columns(options.index_columns)
///         .build()
/// }
/// ```
#[derive(Debug)]
pub struct GridArrayBuilder {
    name: String,
    source: Arc<dyn ChunkSource>,
    grid: ChunkGrid,
    dims: Vec<Dimension>,
    values: Vec<Value>,
    index_columns: bool,
}

impl GridArrayBuilder {
    /// Begins an array of this name, whose chunks `source` locates in `grid`.
    pub fn new(name: impl Into<String>, source: Arc<dyn ChunkSource>, grid: ChunkGrid) -> Self {
        let (dims, values) = (vec![], vec![]);
        Self { name: name.into(), source, grid, dims, values, index_columns: false }
    }

    /// Adds the dimension of the next axis.
    #[must_use]
    pub fn dimension(mut self, dimension: Dimension) -> Self {
        self.dims.push(dimension);
        self
    }

    /// Adds the next variable.
    #[must_use]
    pub fn value(mut self, value: Value) -> Self {
        self.values.push(value);
        self
    }

    /// Sets whether each dimension has a second column, with its 0-based index.
    #[must_use]
    pub fn index_columns(self, yes: bool) -> Self {
        Self { index_columns: yes, ..self }
    }

    /// Builds the array.
    ///
    /// # Errors
    /// `Corrupt` if the number of labels of a dimension differs from the length of its axis.
    /// `Unsupported` if two dimensions have the same name. `Internal` if dimensions or variables are
    /// missing, or if a variable's cells and its numbers differ in width.
    pub fn build(self) -> Result<GridArray> {
        let Self { name, source, grid, dims, values, index_columns } = self;
        if dims.len() != grid.rank() {
            let message = format!("{} dimensions for {} axes", dims.len(), grid.rank());
            return Err(Error::internal(message));
        }
        for (axis, (dim, len)) in dims.iter().zip(grid.shape()).enumerate() {
            let name = dim.name();
            if dim.len() != *len {
                let message = format!("\"{name}\" has {} labels for {len} positions", dim.len());
                return Err(Error::corrupt_region("dimension", message));
            }
            if dims[..axis].iter().any(|other| other.name() == name) {
                return Err(Error::unsupported(format!("two dimensions are called \"{name}\"")));
            }
        }
        if let Some(value) = values.iter().find(|value| !value.fits()) {
            let message =
                format!("the cells and the numbers of \"{}\" differ in width", value.name);
            return Err(Error::internal(message));
        }
        match values.is_empty() {
            true => Err(Error::internal("an array without variables")),
            false => Ok(GridArray::new(name, source, grid, dims, values, index_columns)),
        }
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;

    use super::*;
    use crate::array::ReadOptions;
    use crate::error::ErrorKind;
    use crate::format::{ElementType, StoredChunk};
    use crate::grid::ChunkTask;
    use crate::io::MemorySource;
    use crate::tile::Objects;

    /// Returns the same chunks for every request, even if their number does not match.
    #[derive(Debug)]
    struct Few(Arc<Objects>, Vec<Vec<StoredChunk>>);

    #[async_trait]
    impl ChunkSource for Few {
        fn objects(&self) -> &Arc<Objects> {
            &self.0
        }

        async fn locate(&self, _: &[ChunkTask], _: &[usize]) -> Result<Vec<Vec<StoredChunk>>> {
            Ok(self.1.clone())
        }
    }

    fn builder(found: Vec<Vec<StoredChunk>>) -> GridArrayBuilder {
        let objects = Objects::one(Arc::new(MemorySource::new("memory", vec![])));
        let grid = ChunkGrid::new(&[4, 3], &[2, 3]).unwrap();
        GridArrayBuilder::new("a", Arc::new(Few(Arc::new(objects), found)), grid)
    }

    fn value(fill: &[u8]) -> Value {
        Value::numbers("value", ElementType::F32, Some(fill), &ReadOptions::default())
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let (x, y) = (|| Dimension::indexed("x", 4), || Dimension::indexed("y", 3));
        let array = builder(vec![]).dimension(x()).dimension(y()).value(value(&[0; 4])).build();
        let schema = Arc::clone(array.unwrap().schema());
        let names: Vec<&str> = schema.fields().iter().map(|it| it.name().as_str()).collect();
        assert_eq!(names, ["x", "y", "value"]);
        let twice = builder(vec![]).dimension(x()).dimension(Dimension::indexed("x", 3));
        for (wrong, kind) in [
            (builder(vec![]).dimension(x()).value(value(&[0; 4])), ErrorKind::Internal),
            (
                builder(vec![]).dimension(y()).dimension(x()).value(value(&[0; 4])),
                ErrorKind::Corrupt,
            ),
            (
                builder(vec![]).dimension(x()).dimension(y()).value(value(&[0; 8])),
                ErrorKind::Internal,
            ),
            (builder(vec![]).dimension(x()).dimension(y()), ErrorKind::Internal),
            (twice.value(value(&[0; 4])), ErrorKind::Unsupported),
        ] {
            assert_eq!(wrong.build().unwrap_err().kind(), kind);
        }
    }

    #[tokio::test]
    async fn a_source_that_does_not_answer_what_it_was_asked_is_found_out() {
        let task =
            ChunkTask { chunk_number: 0, coordinates: vec![0, 0], selection: vec![], rows: 6 };
        let one = StoredChunk::default();
        for (found, is_right) in [
            (vec![], false),
            (vec![vec![]], false),
            (vec![vec![one.clone()]], true),
            (vec![vec![one.clone(), one]], false),
        ] {
            let array = builder(found).dimension(Dimension::indexed("x", 4));
            let array = array.dimension(Dimension::indexed("y", 3)).value(value(&[0; 4]));
            let located = array.build().unwrap().locate(std::slice::from_ref(&task), &[0]).await;
            assert_eq!(located.is_ok(), is_right);
        }
    }
}
