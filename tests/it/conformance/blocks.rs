//! A third format, for tests only. It uses only the public API of the library.
//!
//! ```text
//!   x.blocks/header.json     dimensions, labels, values, and how chunks are stored; written last
//!           /c/VALUE/0/1     one chunk of one value: raw numbers, of either byte order, in any order of axes
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, Float32Array, Float64Array, Int64Array, StringViewArray, TimestampSecondArray,
};
use async_trait::async_trait;
use gridfusion::extend::{
    ArrayFormat, ArrayGroup, ByteOrder, ByteRange, ChunkGrid, ChunkSource, ChunkTask, Codec,
    Dimension, ElementType, Ending, Entry, GridArray, GridArrayBuilder, Labels, Layer, Location,
    Objects, OpenedArray, Payload, Place, Placement, ReadOptions, RecognisedFormat,
    ResolvedOptions, Selection, StorageOrder, StoredChunk, Value, Zone, ZoneBound, Zones,
};
use gridfusion::{Error, Result};
use serde::{Deserialize, Serialize};

pub(crate) const HEADER: &str = "header.json";

#[derive(Debug)]
pub(crate) struct Blocks;

#[async_trait]
impl ArrayFormat for Blocks {
    fn name(&self) -> &'static str {
        "blocks"
    }

    fn title(&self) -> &'static str {
        "Blocks"
    }

    fn nouns(&self) -> &'static [&'static str] {
        &["folder of blocks"]
    }

    fn endings(&self) -> &'static [Ending] {
        const ENDINGS: &[Ending] = &[Ending::new(".blocks", true, Some("a folder of blocks"))];
        ENDINGS
    }

    fn probe_folder(&self, entries: &[Entry]) -> Option<RecognisedFormat> {
        let found = entries.iter().any(|it| it.name == HEADER && it.size.is_some());
        found.then(|| RecognisedFormat::new("a folder of blocks", false))
    }

    async fn open(&self, place: &Place, options: &ResolvedOptions) -> Result<Arc<dyn ArrayGroup>> {
        let objects = Arc::new(Objects::many(place.folder()?));
        let at = Location::new(HEADER, ByteRange::Whole);
        let Some(bytes) = objects.read_if_present(&[at]).await?.into_iter().flatten().next() else {
            return Err(Error::usage("there is no header.json in it").in_file(place.location()));
        };
        let header = serde_json::from_slice(&bytes)
            .map_err(|error| objects.named(corrupt(error.to_string())))?;
        let (location, read) = (place.location().to_owned(), options.read(&ReadOptions::default()));
        Ok(Arc::new(BlocksArray { location, objects, header: Arc::new(header), read }))
    }
}

pub(crate) fn corrupt(message: String) -> Error {
    Error::corrupt_region("header", message).in_file(HEADER)
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Header {
    pub(crate) name: String,
    pub(crate) axes: Vec<Axis>,
    pub(crate) values: Vec<Numbers>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Axis {
    pub(crate) name: String,
    pub(crate) length: u64,
    /// The length of a whole chunk.
    pub(crate) chunk: u64,
    pub(crate) labels: Option<AxisLabels>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum AxisLabels {
    Integers(Vec<i64>),
    /// Hours since 1970.
    Hours(Vec<i64>),
    Floats(Vec<f64>),
    Singles(Vec<f32>),
    Text(Vec<String>),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Numbers {
    pub(crate) name: String,
    pub(crate) number: Number,
    pub(crate) fill: f64,
    /// Notes on chunks, by object. A chunk without a note is row-major and little-endian, or absent.
    pub(crate) notes: BTreeMap<String, Note>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum Number {
    F32,
    F64,
    I32,
    I64,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Note {
    /// The axes of the array in storage order, the slowest first.
    pub(crate) axes: Vec<usize>,
    pub(crate) big_endian: bool,
    /// The number of cells that are fill or NaN.
    pub(crate) nulls: u64,
    /// The least and the greatest of the other cells.
    pub(crate) bounds: Option<(f64, f64)>,
}

impl Number {
    fn element(self) -> ElementType {
        match self {
            Self::F32 => ElementType::F32,
            Self::F64 => ElementType::F64,
            Self::I32 => ElementType::I32,
            Self::I64 => ElementType::I64,
        }
    }

    pub(crate) fn bytes(self, number: f64) -> Vec<u8> {
        match self {
            Self::F32 => (number as f32).to_le_bytes().to_vec(),
            Self::F64 => number.to_le_bytes().to_vec(),
            Self::I32 => (number as i32).to_le_bytes().to_vec(),
            Self::I64 => (number as i64).to_le_bytes().to_vec(),
        }
    }
}

impl Axis {
    fn dimension(&self) -> Result<Dimension> {
        let Some(labels) = &self.labels else {
            return Ok(Dimension::indexed(&self.name, self.length));
        };
        let labels: ArrayRef = match labels {
            AxisLabels::Integers(all) => Arc::new(Int64Array::from(all.clone())),
            AxisLabels::Hours(all) => {
                let seconds: Option<Vec<i64>> = all.iter().map(|it| it.checked_mul(3600)).collect();
                let seconds = seconds.ok_or_else(|| corrupt("an hour beyond all times".into()))?;
                Arc::new(TimestampSecondArray::from(seconds))
            }
            AxisLabels::Floats(all) => Arc::new(Float64Array::from(all.clone())),
            AxisLabels::Singles(all) => Arc::new(Float32Array::from(all.clone())),
            AxisLabels::Text(all) => Arc::new(StringViewArray::from_iter_values(all)),
        };
        Ok(Dimension::labelled(&self.name, Labels::from_array(labels)?))
    }
}

#[derive(Debug)]
struct BlocksArray {
    location: String,
    objects: Arc<Objects>,
    header: Arc<Header>,
    read: ReadOptions,
}

impl BlocksArray {
    fn array(&self) -> Result<GridArray> {
        let Header { name, axes, values } = &*self.header;
        let shape: Vec<u64> = axes.iter().map(|axis| axis.length).collect();
        let chunks: Vec<u64> = axes.iter().map(|axis| axis.chunk).collect();
        let grid = ChunkGrid::new(&shape, &chunks)?;
        let (objects, header) = (Arc::clone(&self.objects), Arc::clone(&self.header));
        let source = BlocksChunks { objects, header, grid: grid.clone(), read: self.read.clone() };
        let mut array = GridArrayBuilder::new(name, Arc::new(source), grid)
            .index_columns(self.read.index_columns);
        for axis in axes {
            array = array.dimension(axis.dimension()?);
        }
        for Numbers { name, number, fill, .. } in values {
            let fill = number.bytes(*fill);
            array = array.value(Value::numbers(name, number.element(), Some(&fill), &self.read));
        }
        array.build()
    }
}

#[async_trait]
impl ArrayGroup for BlocksArray {
    fn location(&self) -> &str {
        &self.location
    }

    fn is_array(&self) -> bool {
        true
    }

    fn names(&self) -> Vec<String> {
        vec![self.header.name.clone()]
    }

    async fn arrays(&self, names: &[String]) -> Result<Vec<OpenedArray>> {
        let one = |name: &String| {
            if *name != self.header.name {
                let message = format!("no array \"{name}\"; there is \"{}\"", self.header.name);
                return Err(Error::usage(message).in_file(&self.location));
            }
            self.array().map(OpenedArray::from).map_err(|error| self.objects.named(error))
        };
        names.iter().map(one).collect()
    }
}

#[derive(Debug, Clone)]
struct BlocksChunks {
    objects: Arc<Objects>,
    header: Arc<Header>,
    grid: ChunkGrid,
    read: ReadOptions,
}

/// The path of the object of a chunk.
pub(crate) fn object(value: &str, chunk: &[u64]) -> String {
    chunk.iter().fold(format!("c/{value}"), |path, at| format!("{path}/{at}"))
}

#[async_trait]
impl ChunkSource for BlocksChunks {
    fn objects(&self) -> &Arc<Objects> {
        &self.objects
    }

    async fn locate(&self, tasks: &[ChunkTask], values: &[usize]) -> Result<Vec<Vec<StoredChunk>>> {
        let of_task = |task: &ChunkTask| values.iter().map(|at| self.layer(task, *at)).collect();
        tasks.iter().map(of_task).collect()
    }

    async fn zones(&self, value: usize, _: &Selection, _: u64) -> Option<Arc<dyn Zones>> {
        let notes = Notes { chunks: self.clone(), value };
        self.read.trust_zone_maps.then(|| Arc::new(notes) as Arc<dyn Zones>)
    }
}

impl BlocksChunks {
    fn layer(&self, task: &ChunkTask, value: usize) -> Result<StoredChunk> {
        let Numbers { name, number, notes, .. } = &self.header.values[value];
        let (object, width) = (object(name, &task.coordinates), number.element().size());
        // The header does not have the lengths of objects.
        let at = Location::new(object.as_str(), ByteRange::Whole);
        let mut layer = Layer::whole(Payload::new(at, task.cells() * width, Codec::Raw));
        let Some(note) = notes.get(&object) else {
            layer.may_be_absent = true;
            return Ok(StoredChunk::new(vec![layer]));
        };
        if note.big_endian {
            layer.values.byte_order = ByteOrder::big(width as usize);
        }
        let order = StorageOrder::permuted(note.axes.clone());
        let order = order.filter(|_| note.axes.len() == task.coordinates.len());
        let order = order.ok_or_else(|| corrupt(format!("{object}: axes {:?}", note.axes)))?;
        let shape: Vec<u64> = task.selection.iter().map(|axis| axis.len()).collect();
        let region = shape.iter().map(|len| 0..*len).collect();
        layer.placement = Some(Placement::new(region, shape).with_order(order));
        Ok(StoredChunk::new(vec![layer]))
    }
}

/// The chunk statistics of one value, as the header has them.
#[derive(Debug)]
struct Notes {
    chunks: BlocksChunks,
    value: usize,
}

impl Zones for Notes {
    fn zone(&self, chunk: u64) -> Option<Zone> {
        let (values, read) = (&self.chunks.header.values[self.value], &self.chunks.read);
        let coordinates = self.chunks.grid.chunk_coordinates(chunk);
        let note = values.notes.get(&object(&values.name, &coordinates))?;
        // The bounds leave out fill and NaN, and do not hold where these are shown as values.
        if note.nulls > 0 && !(read.fill_as_null && read.nan_as_null) {
            return None;
        }
        let bound = |number: f64| {
            let mut bound = ZoneBound::default();
            let bytes = values.number.bytes(number);
            bound[..bytes.len()].copy_from_slice(&bytes);
            bound
        };
        let bounds = note.bounds.map(|(least, greatest)| (bound(least), bound(greatest)));
        Some(Zone::new(note.nulls, bounds))
    }
}
