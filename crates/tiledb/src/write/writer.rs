//! [`TileDbWriter`]: the chunks of a new array.

use gridfusion_core::format::{Content, Publish, Write, Writer};
use gridfusion_core::write::{ArrayWriter, NewArray, NewChunk, NewVariable};
use gridfusion_core::{Error, Result};

use super::axis::Axes;
use super::cell_type::CellType;
use super::encoding::TileDbEncoding;
use super::fragment::NewFragment;
use super::label_array::label_array;
use super::metadata::metadata_file;
use super::names::{FIRST_SCHEMA, fragment_name, now, timed_name};
use super::schema::{dense_schema, schema_file};
use super::tile::{CellEncoder, Nulls};
use super::tiles::NewTiles;
use crate::bytes::{Attribute, CoordinateRange, DimensionSchema};

/// Writes an array as a dense TileDB array of one fragment: a dimension per dimension, and an attribute per variable.
///
/// Labels that count up by one become the domain, if those of all dimensions do and have one type. Otherwise dimensions count from 0,
/// and have dimension labels, which ascend or descend. Such a dimension has the name of its labels with `_index` behind it.
///
/// NULL is stored as NaN or as a time that is none, and for other types in a file of validity. If the variable has a fill value, that is
/// stored for NULL.
///
/// ```
/// use std::sync::Arc;
///
/// use arrow::array::{Array, ArrayRef, Int16Array, Int32Array};
/// use futures::TryStreamExt;
/// use gridfusion_core::io::LocalFolder;
/// use gridfusion_core::tile::write_all;
/// use gridfusion_core::write::{NewArray, NewChunk, NewDimension, NewVariable};
/// use gridfusion_tiledb::{TileDbEncoding, TileDbWriter, open};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> gridfusion_core::Result<()> {
/// let cells: ArrayRef = Arc::new(Int16Array::from(vec![Some(1), None, Some(2)]));
/// let x = NewDimension {
///     name: "x".into(),
///     labels: Arc::new(Int32Array::from(vec![10, 20, 30])),
///     attributes: Default::default(),
/// };
/// let v = NewVariable {
///     name: "v".into(),
///     data_type: cells.data_type().clone(),
///     fill: None,
///     attributes: Default::default(),
/// };
/// let array = NewArray::try_new(vec![x], vec![v], &[3])?;
/// let writer = TileDbWriter::try_new(array, TileDbEncoding::default())?;
/// let chunks = [Ok(NewChunk { variable: 0, coordinates: vec![0], cells, given: None })];
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("x.tdb");
/// # std::fs::create_dir(&path).unwrap();
/// write_all(writer, futures::stream::iter(chunks), Arc::new(LocalFolder::open(&path, true)?)).await?;
///
/// let reader = open(path.to_str().unwrap()).await?.array("x.tdb").await?;
/// let batches: Vec<_> = reader.batches().try_collect().await?;
/// assert_eq!(batches[0].schema().field(0).name(), "x");
/// assert_eq!((batches[0].num_rows(), batches[0].column(1).null_count()), (3, 1));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TileDbWriter {
    tiles: NewTiles,
    axes: Axes,
    encoding: TileDbEncoding,
    attributes: Vec<Attribute>,
    /// When the array was written, in milliseconds since 1970.
    time: u64,
}

impl TileDbWriter {
    /// Makes a writer of an array. [`ArrayWriter::array`] has the shape of the tiles as that of chunks: it may be less than was asked
    /// for, where a tile would end beyond the type of coordinates.
    ///
    /// # Errors
    /// `Unsupported` for types and labels that TileDB does not have, `Usage` for an encoding that does not fit.
    pub fn try_new(array: NewArray, encoding: TileDbEncoding) -> Result<Self> {
        encoding.check()?;
        let axes = Axes::try_new(&array, encoding.can_grow)?;
        let extents = axes.dimensions.iter().map(|it| Ok(it.tile_axis()?.extent));
        let extents = extents.collect::<Result<Vec<_>>>()?;
        let array = array.with_chunk_shape(&extents)?;
        if array.variables().is_empty() {
            return Err(Error::unsupported("a TileDB array without variables"));
        }
        let time = now();
        let fragment = NewFragment::new(String::new(), fragment_name(time));
        let variables = array.variables().to_vec();
        let mut tiles = NewTiles::try_new(array, fragment, extents, encoding.max_bytes)?;
        let mut attributes = vec![];
        for (number, variable) in variables.iter().enumerate() {
            let (encoder, attribute) = stored(variable, &encoding)
                .map_err(|error| error.about(&format!("\"{}\"", variable.name)))?;
            tiles.add_field(number, encoder, false)?;
            attributes.push(attribute);
        }
        Ok(Self { tiles, axes, encoding, attributes, time })
    }

    #[cfg(test)]
    pub(super) fn tiles(&self) -> &NewTiles {
        &self.tiles
    }

    /// Returns the range of coordinates of each dimension.
    fn ranges(&self) -> Result<Vec<(i128, i128)>> {
        let axes = self.axes.dimensions.iter().zip(self.tiles.array.grid().shape());
        let range = |(dimension, len): (&DimensionSchema, &u64)| {
            let low = dimension.tile_axis()?.low;
            Ok((low, low + i128::from(*len) - 1))
        };
        axes.map(range).collect()
    }
}

/// Returns how a variable is stored.
fn stored(variable: &NewVariable, encoding: &TileDbEncoding) -> Result<(CellEncoder, Attribute)> {
    let cell = CellType::new(&variable.data_type)?;
    let fill = variable.fill.as_ref().map(|fill| cell.stored(fill)).transpose()?;
    let null = fill.or_else(|| cell.natural_fill());
    let padding = null.clone().unwrap_or_else(|| cell.default_fill());
    let pipeline = encoding.pipeline(cell.datatype);
    let attribute = cell.attribute(&variable.name, &padding, pipeline)?;
    let of_bytes = encoding.pipeline_of_bytes();
    let nulls = null.map_or(Nulls::Validity, Nulls::Value);
    Ok((CellEncoder::new(cell, &attribute, nulls, padding, &of_bytes), attribute))
}

impl ArrayWriter for TileDbWriter {
    /// Returns the array. Its chunks are the tiles.
    fn array(&self) -> &NewArray {
        &self.tiles.array
    }

    fn memory(&self) -> u64 {
        self.tiles.memory()
    }

    fn write_many(&mut self, chunks: Vec<NewChunk>, threads: usize) -> Result<Vec<Write>> {
        self.tiles.write_many(&chunks, threads)
    }

    fn write_rest(&mut self) -> Result<Vec<Write>> {
        self.tiles.rest()
    }
}

impl Writer for TileDbWriter {
    type Chunk = NewChunk;

    fn write(&mut self, chunk: NewChunk) -> Result<Vec<Write>> {
        self.write_many(vec![chunk], 1)
    }

    fn finish(&mut self) -> Result<(Vec<Write>, Publish)> {
        let of_bytes = self.encoding.pipeline_of_bytes();
        let mut writes = self.tiles.complete()?;
        for (attribute, field) in self.attributes.iter_mut().zip(&self.tiles.fragment.fields) {
            attribute.nullable = field.has_validity();
        }
        for label in &self.axes.labels {
            let labels = &self.tiles.array.dimensions()[label.dimension].labels;
            let of = &self.axes.dimensions[label.dimension];
            writes.extend(label_array(label, of, labels, &of_bytes, self.time)?);
        }
        if let Some(file) = metadata_file(&self.tiles.array)? {
            let object = format!("__meta/{}", timed_name(self.time));
            writes.push(Write::Put(vec![Content::new(object, file)]));
        }
        let (ranges, dimensions) = (self.ranges()?, self.axes.dimensions.clone());
        let low: Vec<i128> = ranges.iter().map(|(low, _)| *low).collect();
        let covered = self.tiles.covered(&dimensions, &low);
        writes.extend(self.tiles.fragment.finish(FIRST_SCHEMA, &covered)?);
        writes.push(Write::Put(vec![self.tiles.fragment.commit()]));
        let current = ranges.iter().map(|(low, high)| CoordinateRange::Integer(*low, *high));
        let current = self.encoding.can_grow.then(|| current.collect());
        let (attributes, labels) = (self.attributes.clone(), self.axes.labels.clone());
        let schema = dense_schema(dimensions, attributes, labels, current, &of_bytes);
        let file = Content::new(format!("__schema/{FIRST_SCHEMA}"), schema_file(&schema, None)?);
        Ok((writes, Publish::Create(file)))
    }
}
