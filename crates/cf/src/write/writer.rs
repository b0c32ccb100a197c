//! [`NetcdfWriter`]: the chunks of an array, and the file.

use std::collections::BTreeSet;

use arrow::array::{Array, ArrayRef, AsArray};
use gridfusion_core::format::{Content, Publish, Write, Writer};
use gridfusion_core::write::{ArrayWriter, NewArray, NewChunk, cells_of_chunks};
use gridfusion_core::{Error, Result};
use netcdf_writer::NcFileBuilder;

use super::encoding::{NetcdfEncoding, NetcdfVersion};
use super::limits;
use super::variable::{FileVariable, attribute};

/// The conventions that files follow.
const CONVENTIONS: &str = "CF-1.12";

/// Writes an array as a NetCDF file: a dimension and a coordinate variable per dimension, and its variables.
///
/// Cells of floats and times that are NULL are stored as NaN and as the smallest time, unless the variable has another fill value. Cells
/// of chunks that are not written are NULL.
///
/// ```
/// use std::sync::Arc;
///
/// use arrow::array::{Array, ArrayRef, Float32Array, Int32Array};
/// use futures::TryStreamExt;
/// use gridfusion_cf::{NetcdfEncoding, NetcdfWriter, open};
/// use gridfusion_core::io::LocalFolder;
/// use gridfusion_core::tile::write_all;
/// use gridfusion_core::write::{NewArray, NewChunk, NewDimension, NewVariable};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> gridfusion_core::Result<()> {
/// let cells: ArrayRef = Arc::new(Float32Array::from(vec![Some(1.5), None, Some(2.5)]));
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
/// let writer = NetcdfWriter::try_new(array, "x.nc", NetcdfEncoding::default())?;
/// let chunks = [Ok(NewChunk { variable: 0, coordinates: vec![0], cells, given: None })];
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let folder = folder.path();
/// write_all(writer, futures::stream::iter(chunks), Arc::new(LocalFolder::open(folder, true)?)).await?;
///
/// let reader = open(folder.join("x.nc").to_str().unwrap()).await?.array("v").await?;
/// let batches: Vec<_> = reader.batches().try_collect().await?;
/// assert_eq!((batches[0].num_rows(), batches[0].column(1).null_count()), (3, 1));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct NetcdfWriter {
    array: NewArray,
    object: String,
    encoding: NetcdfEncoding,
    labels: Vec<FileVariable>,
    variables: Vec<FileVariable>,
    /// Per variable, the coordinates and stored cells of the chunks that came.
    chunks: Vec<Vec<(Vec<u64>, ArrayRef)>>,
    written: BTreeSet<(usize, Vec<u64>)>,
    /// The bytes of the texts that came.
    text_bytes: u64,
}

impl NetcdfWriter {
    /// Makes a writer of an array. `object` is the name of the file in the folder that is written to.
    ///
    /// # Errors
    /// `Unsupported` for a type, a name or a length that the version of the file lacks, and for more bytes than the encoding allows. `Usage` for
    /// an encoding that does not fit.
    pub fn try_new(array: NewArray, object: &str, encoding: NetcdfEncoding) -> Result<Self> {
        encoding.check()?;
        let dimensions = array.dimensions().iter();
        let labels = dimensions
            .map(|it| FileVariable::try_new(&it.name, it.labels.data_type(), encoding.version))
            .map(|it| it.map(FileVariable::without_fill));
        let labels = labels.collect::<Result<Vec<_>>>()?;
        let mut variables = vec![];
        for it in array.variables() {
            let mut variable = FileVariable::try_new(&it.name, &it.data_type, encoding.version)?;
            if let Some(fill) = &it.fill {
                variable = variable.with_fill(fill)?;
            }
            variables.push(variable);
        }
        limits::check(&array, &variables, &encoding)?;
        let chunks = variables.iter().map(|_| vec![]).collect();
        let (object, written) = (object.to_owned(), BTreeSet::new());
        Ok(Self { array, object, encoding, labels, variables, chunks, written, text_bytes: 0 })
    }

    /// Takes the cells of a chunk.
    fn take(&mut self, chunk: NewChunk) -> Result<()> {
        let ranges = self.array.ranges_of(&chunk)?;
        let variable = &self.variables[chunk.variable];
        let cells = variable.stored.stored(&chunk.cells)?;
        let checked = variable.stored.check(&cells, variable.fill.as_ref());
        checked.map_err(|bad| self.array.bad_cell(&variable.name, &ranges, bad))?;
        if !self.written.insert((chunk.variable, chunk.coordinates.clone())) {
            let (at, name) = (chunk.coordinates, &variable.name);
            return Err(Error::usage(format!("chunk {at:?} of \"{name}\" is written twice")));
        }
        if let Some(texts) = cells.as_string_opt::<i32>() {
            self.text_bytes += texts.value_data().len() as u64;
            limits::check_bytes(self.text_bytes, &self.encoding)?;
        }
        self.chunks[chunk.variable].push((chunk.coordinates, cells));
        Ok(())
    }

    /// Returns the bytes of the file.
    fn file(&mut self) -> Result<Vec<u8>> {
        let refused = |error: netcdf_writer::Error| {
            Error::unsupported(format!("'{}' in NetCDF: {error}", self.object))
        };
        limits::check_labels(&self.array)?;
        let mut file = NcFileBuilder::new();
        let mut attributes = self.array.attributes().clone();
        attributes.entry("Conventions".to_owned()).or_insert_with(|| CONVENTIONS.into());
        for (name, value) in &attributes {
            file.add_attribute(name, attribute(value)).map_err(refused)?;
        }
        let mut dimensions = vec![];
        for it in self.array.dimensions() {
            let len = it.labels.len() as u64;
            dimensions.push(file.add_dimension(&it.name, len).map_err(refused)?);
        }
        for ((it, variable), id) in
            self.array.dimensions().iter().zip(&self.labels).zip(&dimensions)
        {
            let cells = variable.stored.stored(&it.labels)?;
            let attributes = it.attributes_with_time(&variable.stored);
            variable.add(&mut file, &[*id], &cells, &attributes)?;
        }
        let chunk_shape: Vec<u64> = self.array.grid().chunk_shape().collect();
        let shape = self.array.grid().shape();
        let chunk_shape: Vec<u64> =
            chunk_shape.iter().zip(shape).map(|(chunk, len)| *chunk.min(len)).collect();
        for (number, (it, variable)) in
            self.array.variables().iter().zip(&self.variables).enumerate()
        {
            let chunks = std::mem::take(&mut self.chunks[number]);
            let count = self.array.grid().chunks();
            if variable.fill.is_none() && (chunks.len() as u64) < count {
                return Err(Error::usage(format!(
                    "{} of {count} chunks of \"{}\" were written, and it has no fill value",
                    chunks.len(),
                    it.name
                )));
            }
            let cells = cells_of_chunks(self.array.grid(), &chunks, &variable.stored.zero())?;
            let attributes = it.attributes_with_time(&variable.stored);
            let id = variable.add(&mut file, &dimensions, &cells, &attributes)?;
            if self.encoding.version == NetcdfVersion::Netcdf4 && !dimensions.is_empty() {
                variable.encode(&mut file, id, chunk_shape.clone(), &self.encoding)?;
            }
        }
        let (_, bytes) = file.to_vec(self.encoding.version.options()).map_err(refused)?;
        limits::check_file(bytes.len(), self.encoding.version)?;
        Ok(bytes)
    }
}

impl ArrayWriter for NetcdfWriter {
    fn array(&self) -> &NewArray {
        &self.array
    }

    fn memory(&self) -> u64 {
        // The chunks or the variables of the file, these as HDF5 has them, and the file. While a variable is put together, also the
        // place of each cell, and its cells as they come and as they go.
        let widths = self.variables.iter().map(FileVariable::width);
        let largest = widths.clone().max().unwrap_or(0);
        let of_cell = 3 * widths.sum::<u64>() + size_of::<u64>() as u64 + 3 * largest;
        self.array.grid().cells().saturating_mul(of_cell).saturating_add(3 * self.text_bytes)
    }

    fn write_many(&mut self, chunks: Vec<NewChunk>, _: usize) -> Result<Vec<Write>> {
        chunks.into_iter().try_for_each(|chunk| self.take(chunk))?;
        Ok(vec![])
    }
}

impl Writer for NetcdfWriter {
    type Chunk = NewChunk;

    fn write(&mut self, chunk: NewChunk) -> Result<Vec<Write>> {
        self.write_many(vec![chunk], 1)
    }

    fn finish(&mut self) -> Result<(Vec<Write>, Publish)> {
        let bytes = self.file()?;
        Ok((vec![], Publish::Create(Content::new(self.object.as_str(), bytes))))
    }
}
