//! The description of a `.tet` file for `gridfusion info`.
//!
//! ```text
//!   stations.tet                                                         title
//!     .tet file, layout version 1, 90.4 KiB, 4 datasets, zone maps       line
//!     DATASET   TYPE   SHAPE   CHUNKS   CODEC   STORED   RATIO   …       KnownDataset::table
//!     DIMENSION   LENGTH   TYPE   FIRST   LAST   UNITS                   KnownDimension::table
//!     HISTORY   OPERATION   SOURCE                                       history_table
//!     ATTRIBUTE   OF   VALUE                                             with --metadata
//!     CHUNK   DATASET   OFFSET   STORED   RAW   CODEC   …                chunk_table, with --chunks
//! ```
//!
//! The document has the same facts under the names that `docs/info.md` lists. Both are made from one
//! `KnownFile`, so they cannot differ.

use super::attributes::attributes;
use super::chunk_list::{ChunkInfo, ChunkList};
use super::info::{DatasetInfo, DimensionInfo, dataset_info, dimension_info};
use super::known_dataset::known_dataset;
use super::reader::TetReader;
use gridfusion_core::array::ReadOptions;
use gridfusion_core::error::{Result, shown_location};
use gridfusion_core::source::KnownDataset;
use gridfusion_core::source::facts::{KnownAttribute, KnownDimension};
use gridfusion_core::source::show::{size_text, utc_seconds};
use gridfusion_core::source::{Description, Detail, Fact, Page, PageTable, Side};
use gridfusion_core::verify::counted;

/// The only layout version that exists.
const LAYOUT_VERSION: u32 = 1;

/// Describes a file as a page and a document; `detail` adds attributes and a list of chunks.
pub(super) async fn describe(
    file: &TetReader,
    location: &str,
    options: &ReadOptions,
    detail: &Detail,
) -> Result<Description> {
    let datasets = dataset_info(file, None).await?;
    let dimensions = dimension_info(file, options).await;
    let chunks = match detail.listed {
        Some(most) => Some(first_chunks(file, most).await?),
        None => None,
    };
    let known = KnownFile {
        file,
        location,
        warnings: warnings(file, &datasets, &dimensions),
        attributes: detail.metadata.then(|| described_attributes(file)),
        dimensions: dimensions.into_iter().map(dimension).collect(),
        datasets,
        chunks,
    };
    Ok(Description::new(known.document(), vec![known.page()]))
}

/// The facts about a file, from which page and document are made.
struct KnownFile<'a> {
    file: &'a TetReader,
    /// The path or URL as it was given.
    location: &'a str,
    datasets: Vec<DatasetInfo>,
    dimensions: Vec<KnownDimension>,
    warnings: Vec<String>,
    /// `None` unless requested.
    attributes: Option<Vec<KnownAttribute>>,
    /// `None` unless requested.
    chunks: Option<Vec<ChunkInfo>>,
}

/// Returns all warnings: of the file first, then of each dataset and each dimension, with their names.
fn warnings(
    file: &TetReader,
    datasets: &[DatasetInfo],
    dimensions: &[DimensionInfo],
) -> Vec<String> {
    let mut all = file.tet().warnings().to_vec();
    for dataset in datasets {
        let own = dataset.warnings.iter();
        all.extend(own.map(|warning| format!("dataset \"{}\": {warning}", dataset.name)));
    }
    for dimension in dimensions {
        let own = dimension.warnings.iter();
        all.extend(own.map(|warning| format!("dimension \"{}\": {warning}", dimension.name)));
    }
    all
}

/// Returns the attributes of the file, and then those of each dataset. The history has a table of its own.
fn described_attributes(file: &TetReader) -> Vec<KnownAttribute> {
    let is_event = |it: &KnownAttribute| it.of.is_none() && it.key.starts_with("history.");
    let all = attributes(file, None).into_iter().filter(|it| !is_event(it));
    let (theirs, own): (Vec<_>, Vec<_>) = all.partition(|it| it.of.is_some());
    own.into_iter().chain(theirs).collect()
}

/// Converts the facts to the form that all formats share.
fn dimension(known: DimensionInfo) -> KnownDimension {
    KnownDimension {
        length: Some(known.len),
        data_type: known.data_type.map(|data_type| data_type.to_string()),
        first: known.first,
        last: known.last,
        units: known.attributes.get("units").cloned(),
        calendar: known.attributes.get("calendar").cloned(),
        name: known.name,
    }
}

/// Returns the first chunks in the order of the index, at most `most`.
async fn first_chunks(file: &TetReader, most: usize) -> Result<Vec<ChunkInfo>> {
    let mut list = ChunkList::new(file, None, true);
    let mut chunks = Vec::new();
    while chunks.len() < most
        && let Some(next) = list.next().await?
    {
        chunks.extend(next.into_iter().take(most - chunks.len()));
    }
    Ok(chunks)
}

impl KnownFile<'_> {
    fn document(&self) -> Fact {
        let dimensions = self.dimensions.iter().map(|it| Fact::Record(it.fields()));
        let history = self.file.tet().history().iter().map(|event| {
            Fact::Record(vec![
                ("op", event.op.as_str().into()),
                ("source", event.source.as_str().into()),
                ("at", event.at.as_str().into()),
            ])
        });
        let mut fields = vec![
            ("path", shown_location(self.location).into()),
            ("format", "tet".into()),
            ("layout_version", LAYOUT_VERSION.into()),
            ("size_bytes", self.file.size().into()),
            ("generation", self.file.generation().into()),
            ("datasets", Fact::List(self.datasets.iter().map(dataset_fact).collect())),
            ("dimensions", Fact::List(dimensions.collect())),
            ("history", Fact::List(history.collect())),
            ("warnings", self.warnings.clone().into()),
        ];
        fields.extend(self.attributes.as_deref().map(|it| ("metadata", KnownAttribute::list(it))));
        let chunks = self.chunks.as_ref().map(|all| Fact::List(all.iter().map(chunk).collect()));
        fields.extend(chunks.map(|chunks| ("chunk_list", chunks)));
        Fact::Record(fields)
    }

    fn page(&self) -> Page {
        let what = match self.file.generation() {
            Some(generation) => format!(".tet.d package, generation {generation}"),
            None => ".tet file".to_owned(),
        };
        let zone_maps = match self.datasets.iter().filter(|it| it.has_zone_maps).count() {
            0 => "no zone maps".to_owned(),
            all if all == self.datasets.len() => "zone maps".to_owned(),
            some => format!("zone maps of {some}"),
        };
        let facts = [
            what,
            format!("layout version {LAYOUT_VERSION}"),
            size_text(self.file.size()),
            counted(self.datasets.len() as u64, "dataset"),
            zone_maps,
        ];
        let datasets: Vec<KnownDataset> = self.datasets.iter().map(known_dataset).collect();
        let mut tables = vec![
            KnownDataset::table("DATASET", &datasets),
            KnownDimension::table(&self.dimensions),
            self.history_table(),
        ];
        tables.extend(self.attributes.as_deref().map(KnownAttribute::table));
        tables.extend(self.chunks.as_deref().map(|chunks| self.chunk_table(chunks)));
        Page::new(shown_location(self.location), vec![facts.join(", ")])
            .with_tables(tables)
            .with_warnings(self.warnings.clone())
    }

    fn history_table(&self) -> PageTable {
        let columns = [("HISTORY", Side::Left), ("OPERATION", Side::Left), ("SOURCE", Side::Left)];
        let rows = self.file.tet().history().iter().map(|event| {
            // Writers store seconds since 1970. Any other text is shown as it is.
            let date = event.at.parse().ok().and_then(utc_seconds);
            let time = date.unwrap_or_else(|| event.at.clone());
            [Some(time), Some(event.op.clone()), Some(event.source.clone())]
        });
        PageTable::new(columns, rows)
    }

    fn chunk_table(&self, chunks: &[ChunkInfo]) -> PageTable {
        let columns = [
            ("CHUNK", Side::Left),
            ("DATASET", Side::Left),
            ("OFFSET", Side::Right),
            ("STORED", Side::Right),
            ("RAW", Side::Right),
            ("CODEC", Side::Left),
            ("NULLS", Side::Right),
            ("LEAST", Side::Right),
            ("GREATEST", Side::Right),
        ];
        let rows = chunks.iter().map(|it| {
            [
                Some(format!("{:?}", it.coordinates)),
                Some(it.dataset.to_string()),
                Some(it.payload.at.start().to_string()),
                Some(it.payload.stored_len().to_string()),
                Some(it.payload.raw_len.to_string()),
                Some(it.payload.codec.to_string()),
                it.null_count.map(|count| count.to_string()),
                it.min.clone(),
                it.max.clone(),
            ]
        });
        // The table lists the first chunks only, and ends with the number of the others.
        let stored = self.datasets.iter().map(|it| it.stored.chunks).fold(0, u64::saturating_add);
        PageTable::new(columns, rows).of_all(stored)
    }
}

/// Returns the record of a dataset in the document.
fn dataset_fact(known: &DatasetInfo) -> Fact {
    let mut fields = known_dataset(known).fields();
    fields.push(("has_zone_maps", known.has_zone_maps.into()));
    Fact::Record(fields)
}

fn chunk(known: &ChunkInfo) -> Fact {
    Fact::Record(vec![
        ("dataset", (&*known.dataset).into()),
        ("chunk", known.coordinates.clone().into()),
        ("file_offset", known.payload.at.start().into()),
        ("stored_bytes", known.payload.stored_len().into()),
        ("raw_bytes", known.payload.raw_len.into()),
        ("codec", known.payload.codec.to_string().into()),
        ("null_count", known.null_count.into()),
        ("min_value", known.min.clone().into()),
        ("max_value", known.max.clone().into()),
    ])
}
