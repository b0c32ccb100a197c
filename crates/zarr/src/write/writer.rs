//! [`ZarrWriter`]: the writes of a store.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::DataType;
use gridfusion_core::format::{Content, Publish, Write, Writer};
use gridfusion_core::write::{
    ArrayWriter, NewArray, NewChunk, NewVariable, cells_of_box, in_threads,
};
use gridfusion_core::{Error, Result};

use super::cell_type::ZarrType;
use super::encoding::ZarrEncoding;
use super::group::{DOCUMENT, ZarrGroup};
use super::metadata::{ArrayDocument, ArrayFacts, group};
use super::object::ObjectEncoder;
use super::version2;

/// The labels of a chunk of labels, at least and at most: an array that becomes longer needs no chunk for each label.
const LABELS: RangeInclusive<u64> = 1 << 10..=1 << 20;

/// A variable with all that its cells need to be stored.
#[derive(Debug)]
struct StoredVariable {
    cell: ZarrType,
    /// The value that stands for NULL, in the stored type.
    fill: Option<ArrayRef>,
    /// The value of cells of chunks that lie outside of the array.
    padding: ArrayRef,
}

/// Writes an array as a Zarr store of version 3: a group with an array per variable, and one per dimension with its labels.
///
/// Cells of floats and times that are NULL are stored as NaN and NaT, unless the variable has another fill value. A chunk without values
/// is not stored.
///
/// ```
/// use std::sync::Arc;
///
/// use arrow::array::{Array, ArrayRef, Float32Array, Int32Array};
/// use futures::TryStreamExt;
/// use gridfusion_core::io::LocalFolder;
/// use gridfusion_core::tile::write_all;
/// use gridfusion_core::write::{NewArray, NewChunk, NewDimension, NewVariable};
/// use gridfusion_zarr::{ZarrEncoding, ZarrWriter, open};
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
/// let writer = ZarrWriter::try_new(array, ZarrEncoding::default())?;
/// let chunks = [Ok(NewChunk { variable: 0, coordinates: vec![0], cells, given: None })];
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("x.zarr");
/// # std::fs::create_dir(&path).unwrap();
/// write_all(writer, futures::stream::iter(chunks), Arc::new(LocalFolder::open(&path, true)?)).await?;
///
/// let reader = open(path.to_str().unwrap()).await?.array("v").await?;
/// let batches: Vec<_> = reader.batches().try_collect().await?;
/// assert_eq!((batches[0].num_rows(), batches[0].column(1).null_count()), (3, 1));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ZarrWriter {
    /// The array, whose chunks are objects: shards, if there are any.
    array: NewArray,
    /// The elements of the chunks of a shard.
    inner_shape: Option<Vec<u64>>,
    variables: Vec<StoredVariable>,
    encoding: ZarrEncoding,
    /// Whether the store is of version 2.
    is_version_2: bool,
    /// The group of a store that the array is; `None` if it is the store.
    group: Option<ZarrGroup>,
    /// The variables and coordinates of the objects that were written.
    written: BTreeSet<(usize, Vec<u64>)>,
}

impl ZarrWriter {
    /// Makes a writer of an array. With shards, [`ArrayWriter::array`] has their shape as that of chunks.
    ///
    /// # Errors
    /// `Unsupported` for a type that Zarr does not have, `Usage` for an encoding that does not fit.
    pub fn try_new(array: NewArray, encoding: ZarrEncoding) -> Result<Self> {
        encoding.check(array.dimensions().len())?;
        let stored = |variable: &NewVariable| {
            let cell = zarr_type(&variable.name, &variable.data_type)?;
            let stored = &cell.stored;
            let fill = variable.fill.as_ref().map(|fill| stored.stored(fill)).transpose()?;
            let fill = fill.or_else(|| stored.natural_fill());
            let padding = fill.clone().unwrap_or_else(|| stored.zero());
            Ok(StoredVariable { cell, fill, padding })
        };
        let variables = array.variables().iter().map(stored).collect::<Result<_>>()?;
        for dimension in array.dimensions() {
            zarr_type(&dimension.name, dimension.labels.data_type())?;
        }
        let (array, inner_shape) = match &encoding.shard_chunks {
            None => (array, None),
            Some(chunks) => {
                let inner: Vec<u64> = array.grid().chunk_shape().collect();
                let shape = inner.iter().zip(chunks).map(|(len, count)| len.checked_mul(*count));
                let shape = shape
                    .collect::<Option<Vec<u64>>>()
                    .ok_or_else(|| Error::usage("shards have too many elements"))?;
                (array.with_chunk_shape(&shape)?, Some(inner))
            }
        };
        let (is_version_2, group, written) = (false, None, BTreeSet::new());
        Ok(Self { array, inner_shape, variables, encoding, is_version_2, group, written })
    }

    /// Returns the writer of a store of version 2, for programs that do not read version 3.
    ///
    /// # Errors
    /// `Usage` for a group in a store, and for shards and checksums, which version 2 does not have.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use arrow::array::Int32Array;
    /// use gridfusion_core::write::{NewArray, NewDimension};
    /// use gridfusion_zarr::{ZarrEncoding, ZarrWriter};
    ///
    /// # fn main() -> gridfusion_core::Result<()> {
    /// let x = NewDimension {
    ///     name: "x".into(),
    ///     labels: Arc::new(Int32Array::from(vec![10, 20])),
    ///     attributes: Default::default(),
    /// };
    /// let array = NewArray::try_new(vec![x], vec![], &[2])?;
    /// let checked = ZarrEncoding { has_checksums: true, ..ZarrEncoding::default() };
    /// assert!(ZarrWriter::try_new(array.clone(), checked)?.in_version_2().is_err());
    /// assert!(ZarrWriter::try_new(array, ZarrEncoding::default())?.in_version_2().is_ok());
    /// # Ok(())
    /// # }
    /// ```
    pub fn in_version_2(self) -> Result<Self> {
        let what = match (&self.group, self.inner_shape.is_some(), self.encoding.has_checksums) {
            (Some(_), ..) => "a group in a store",
            (_, true, _) => "shards",
            (.., true) => "checksums of chunks",
            _ => return Ok(Self { is_version_2: true, ..self }),
        };
        Err(Error::usage(format!("{what} of Zarr version 2; leave the version out for version 3")))
    }

    /// Returns the writer of a group, whose writes are those of the store.
    #[must_use]
    pub fn in_group(self, group: ZarrGroup) -> Self {
        Self { group: Some(group), ..self }
    }

    /// Returns the path of an object of the array, such as `ocean/t2m/zarr.json`.
    fn object_path(&self, object: &str) -> Arc<str> {
        match &self.group {
            Some(group) => group.object(object).into(),
            None => object.into(),
        }
    }

    /// Returns the path of the object with a chunk, such as `ocean/t2m/c/3/0`.
    fn chunk_path(&self, name: &str, coordinates: &[u64]) -> Arc<str> {
        match self.is_version_2 {
            true => version2::key(name, coordinates).into(),
            false => self.object_path(&key(name, coordinates)),
        }
    }

    /// Counts a chunk as written.
    fn record(&mut self, chunk: NewChunk) -> Result<()> {
        let NewChunk { variable, coordinates, .. } = chunk;
        if self.written.insert((variable, coordinates.clone())) {
            return Ok(());
        }
        let name = &self.array.variables()[variable].name;
        Err(Error::usage(format!("chunk {coordinates:?} of \"{name}\" is written twice")))
    }

    /// Returns the object of a chunk; `None` if all of its cells are NULL, so that it is not stored.
    ///
    /// # Errors
    /// `Usage` if the chunk is not one of the array, or a cell cannot be stored.
    fn object(&self, chunk: &NewChunk) -> Result<Option<Content>> {
        let ranges = self.array.ranges_of(chunk)?;
        let variable = &self.variables[chunk.variable];
        let name = &self.array.variables()[chunk.variable].name;
        let cells = variable.cell.stored.stored(&chunk.cells)?;
        let checked = variable.cell.stored.check(&cells, variable.fill.as_ref());
        checked.map_err(|bad| self.array.bad_cell(name, &ranges, bad))?;
        let shape = self.array.grid().extents(&chunk.coordinates);
        let encoder = ObjectEncoder {
            encoding: &self.encoding,
            cell: &variable.cell,
            padding: &variable.padding,
            object_shape: &self.array.grid().chunk_shape().collect::<Vec<u64>>(),
            inner_shape: self.inner_shape.as_deref(),
            leaves_out_nulls: variable.fill.is_some(),
        };
        let bytes = encoder.object(&cells, &shape)?;
        Ok(bytes.map(|bytes| Content::new(self.chunk_path(name, &chunk.coordinates), bytes)))
    }

    /// Returns the documents of all arrays, and the objects of labels.
    fn labels_and_documents(&self) -> Result<(Vec<Content>, Vec<ArrayDocument>)> {
        let (mut objects, mut documents) = (vec![], vec![]);
        for dimension in self.array.dimensions() {
            let name = &dimension.name;
            let cell = zarr_type(name, dimension.labels.data_type())?;
            let labels = cell.stored.stored(&dimension.labels)?;
            let len = labels.len() as u64;
            let chunk = len.clamp(*LABELS.start(), *LABELS.end());
            for number in 0..len.div_ceil(chunk) {
                let first = number * chunk;
                let range = first..first + chunk;
                let padded = cells_of_box(&labels, &[len], std::slice::from_ref(&range))?;
                let bytes = cell.bytes(&padded, &cell.stored.zero())?;
                let bytes = self.encoding.encoded(bytes, cell.word())?;
                objects.push(Content::new(self.chunk_path(name, &[number]), bytes));
            }
            let codecs = self.encoding.codecs(cell.stored.is_text(), cell.word());
            documents.push(ArrayDocument::new(ArrayFacts {
                name,
                shape: &[len],
                object_shape: &[chunk],
                inner_shape: None,
                data_type: cell.name,
                fill_value: cell.fill_json(None),
                codecs,
                dimension_names: std::slice::from_ref(name),
                attributes: dimension.attributes_with_time(&cell.stored),
            }));
        }
        let object_shape: Vec<u64> = self.array.grid().chunk_shape().collect();
        let names: Vec<String> = self.array.dimensions().iter().map(|it| it.name.clone()).collect();
        for (variable, StoredVariable { cell, fill, .. }) in
            self.array.variables().iter().zip(&self.variables)
        {
            let mut attributes = variable.attributes_with_time(&cell.stored);
            if let Some(fill) = fill {
                let (name, value) = cell.fill_attribute(fill);
                attributes.insert(name.to_owned(), value);
            }
            documents.push(ArrayDocument::new(ArrayFacts {
                name: &variable.name,
                shape: self.array.grid().shape(),
                object_shape: &object_shape,
                inner_shape: self.inner_shape.as_deref(),
                data_type: cell.name,
                fill_value: cell.fill_json(fill.as_ref()),
                codecs: self.encoding.codecs(cell.stored.is_text(), cell.word()),
                dimension_names: &names,
                attributes,
            }));
        }
        Ok((objects, documents))
    }

    /// Fails unless each chunk of a variable without a fill value was written.
    fn check_complete(&self) -> Result<()> {
        let chunks = self.array.grid().chunks();
        for (number, variable) in self.array.variables().iter().enumerate() {
            if self.variables[number].fill.is_some() {
                continue;
            }
            let written = self.written.iter().filter(|(of, _)| *of == number).count() as u64;
            if written < chunks {
                return Err(Error::usage(format!(
                    "{written} of {chunks} chunks of \"{}\" were written, and it has no fill value",
                    variable.name
                )));
            }
        }
        Ok(())
    }
}

impl Writer for ZarrWriter {
    type Chunk = NewChunk;

    fn write(&mut self, chunk: NewChunk) -> Result<Vec<Write>> {
        self.write_many(vec![chunk], 1)
    }

    fn finish(&mut self) -> Result<(Vec<Write>, Publish)> {
        self.check_complete()?;
        let (mut objects, documents) = self.labels_and_documents()?;
        if self.is_version_2 {
            let (documents, publish) = version2::finish(self.array.attributes(), &documents)?;
            let writes = std::iter::once(Write::Put(objects)).chain(documents).collect();
            return Ok((writes, publish));
        }
        for document in &documents {
            let object = self.object_path(&format!("{}/{DOCUMENT}", document.name));
            objects.push(Content::new(object, document.bytes()?));
        }
        if let Some(group) = &self.group {
            let (above, publish) = group.finish(self.array.attributes(), &documents)?;
            return Ok((vec![Write::Put(objects), above], publish));
        }
        let root = Content::new(DOCUMENT, group(self.array.attributes(), &documents)?);
        Ok((vec![Write::Put(objects)], Publish::Create(root)))
    }
}

impl ArrayWriter for ZarrWriter {
    /// Returns the array. Its chunks are the objects of the store.
    fn array(&self) -> &NewArray {
        &self.array
    }

    fn write_many(&mut self, chunks: Vec<NewChunk>, threads: usize) -> Result<Vec<Write>> {
        let encoded = in_threads(&chunks, threads, |chunk| self.object(chunk))?;
        for chunk in chunks {
            self.record(chunk)?;
        }
        let objects: Vec<Content> = encoded.into_iter().flatten().collect();
        Ok(if objects.is_empty() { vec![] } else { vec![Write::Put(objects)] })
    }
}

/// Returns how a column of this name is stored.
fn zarr_type(name: &str, data_type: &DataType) -> Result<ZarrType> {
    ZarrType::new(data_type).map_err(|error| Error::unsupported(format!("\"{name}\": {error}")))
}

/// Returns the name of the object with a chunk, such as `t2m/c/3/0`.
fn key(name: &str, coordinates: &[u64]) -> String {
    let mut key = format!("{name}/c");
    for at in coordinates {
        key.push('/');
        key.push_str(&at.to_string());
    }
    key
}
