//! The `.tet` format as an [`ArrayFormat`]: single files, and generations of packages.

use std::sync::Arc;

use async_trait::async_trait;

use super::attributes::attributes;
use super::chunk_table::chunk_table;
use super::dataset::open_datasets;
use super::describe::describe;
use super::info::dataset_info;
use super::known_dataset::{known_dataset, tet_info_columns};
use super::reader::TetReader;
use super::verify::verify;
use crate::bytes::{MAGIC, is_package};
use gridfusion_core::array::{GridArray, NumberColumn, ReadOptions};
use gridfusion_core::format::Entry;
use gridfusion_core::options::{DECODE_TIMES, OptionInfo, ResolvedOptions, ValueKind};
use gridfusion_core::source::OpenedArray;
use gridfusion_core::source::Place;
use gridfusion_core::source::axes::{Axes, check_same_axes};
use gridfusion_core::source::facts::KnownAttribute;
use gridfusion_core::source::{ARRAY_ATTRIBUTES, Column, FactRows, FactTable, KnownDataset, Needs};
use gridfusion_core::source::{
    ArrayFormat, ArrayGroup, Ending, InfoFunction, ListedValue, RecognisedFormat,
};
use gridfusion_core::source::{Description, Detail};
use gridfusion_core::verify::{Depth, Progress, Report};
use gridfusion_core::{Error, Result};

/// `.tet` files and `.tet.d` packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tet;

// The names of the functions with facts.
const INFO: &str = "tet_info";
const CHUNKS: &str = "tet_chunks";
const ATTRIBUTES: &str = "tet_attributes";

#[async_trait]
impl ArrayFormat for Tet {
    fn name(&self) -> &'static str {
        "tet"
    }

    fn title(&self) -> &'static str {
        ".tet"
    }

    fn nouns(&self) -> &'static [&'static str] {
        &[".tet file", ".tet.d package"]
    }

    fn endings(&self) -> &'static [Ending] {
        const ENDINGS: &[Ending] = &[
            Ending::new(".tet", false, Some("a .tet file")),
            Ending::new(".tet.d", true, Some("a .tet.d package")),
        ];
        ENDINGS
    }

    fn probe_folder(&self, entries: &[Entry]) -> Option<RecognisedFormat> {
        let package = RecognisedFormat::new("a .tet.d package", false);
        is_package(entries).then_some(package)
    }

    fn probe_file(&self, head: &[u8]) -> bool {
        head.starts_with(MAGIC)
    }

    /// `generation` belongs to a place, because other packages of a catalog have other generations.
    fn options(&self) -> &'static [OptionInfo] {
        const GENERATION: OptionInfo = OptionInfo::new(
            "generation",
            ValueKind::Number,
            "the current one",
            "which generation of a `.tet.d` package",
        )
        .of_one_place();
        &[GENERATION, DECODE_TIMES]
    }

    /// | function | a row per |
    /// |---|---|
    /// | `tet_info` | dataset |
    /// | `tet_chunks` | stored chunk |
    /// | `tet_attributes` | attribute of a dataset or of the file |
    fn info_functions(&self) -> &'static [InfoFunction] {
        const FUNCTIONS: &[InfoFunction] =
            &[InfoFunction::new(INFO), InfoFunction::new(CHUNKS), InfoFunction::new(ATTRIBUTES)];
        FUNCTIONS
    }

    async fn open(&self, place: &Place, options: &ResolvedOptions) -> Result<Arc<dyn ArrayGroup>> {
        let file = TetReader::open_place(place, options).await?;
        let read = options.read(&self.read_defaults());
        Ok(Arc::new(TetGroup { file, location: place.location().to_owned(), read }))
    }
}

/// The datasets of one file.
#[derive(Debug)]
struct TetGroup {
    file: TetReader,
    /// The path or URL as it was given. For a package it is the folder, and `file.name()` the file in it.
    location: String,
    read: ReadOptions,
}

#[async_trait]
impl ArrayGroup for TetGroup {
    fn location(&self) -> &str {
        &self.location
    }

    fn file_name(&self) -> &str {
        self.file.name()
    }

    /// Returns all readable datasets, coordinates included. Listing an unreadable dataset would make
    /// `information_schema` fail for all datasets; a query of the dataset by name fails with its error.
    fn names(&self) -> Vec<String> {
        let tet = self.file.tet();
        let is_readable = |name: &String| {
            tet.dataset_id(name).is_some_and(|id| tet.datasets()[id].grid().is_ok())
        };
        self.file.dataset_names().into_iter().filter(is_readable).collect()
    }

    /// Includes unreadable datasets, so that a query of one fails with the reason.
    fn has(&self, name: &str) -> bool {
        self.file.tet().dataset_id(name).is_some()
    }

    async fn arrays(&self, names: &[String]) -> Result<Vec<OpenedArray>> {
        let arrays = open_datasets(&self.file, names, &self.read).await?;
        Ok(arrays.into_iter().map(OpenedArray::from).collect())
    }

    async fn data_variables(&self) -> Result<Vec<String>> {
        let names = self.file.data_variables();
        match names.is_empty() {
            true => Err(Error::usage("the file has no data variable").in_file(self.file.name())),
            false => Ok(names),
        }
    }

    /// Compares names and lengths of dimensions before any dataset is opened: opening reads labels, and the
    /// message needs none.
    async fn variables(&self) -> Result<Vec<OpenedArray>> {
        let names = self.data_variables().await?;
        let axes = names.iter().map(|name| (name.as_str(), self.axes_of(name)));
        check_same_axes("the file has several data variables", axes)
            .map_err(|error| error.in_file(self.file.name()))?;
        self.arrays(&names).await
    }

    async fn facts(&self, function: &str, dataset: Option<&str>) -> Result<Arc<dyn FactTable>> {
        let id = dataset.map(|name| self.file.dataset_id(name)).transpose()?;
        let only = dataset.map(|name| vec![name.to_owned()]);
        Ok(match function {
            INFO => {
                let known = dataset_info(&self.file, id).await?;
                let rows = known.iter().map(known_dataset).collect();
                Arc::new(FactRows::in_memory(tet_info_columns(), rows))
            }
            CHUNKS => Arc::new(chunk_table(self.file.clone(), id)),
            ATTRIBUTES => {
                let columns = Column::named(ARRAY_ATTRIBUTES, &["dataset", "key", "value"]);
                Arc::new(FactRows::in_memory(columns, attributes(&self.file, only.as_deref())))
            }
            other => return Err(Error::internal(format!("no facts called {other}"))),
        })
    }

    /// Includes unreadable datasets, with the reason as a warning.
    async fn info(&self, only: Option<&[String]>, _: Needs) -> Result<Vec<KnownDataset>> {
        let id = match only {
            Some([name]) => Some(self.file.dataset_id(name)?),
            _ => None,
        };
        let known = dataset_info(&self.file, id).await?;
        let mut rows: Vec<KnownDataset> = known.iter().map(known_dataset).collect();
        for (row, known) in rows.iter_mut().zip(&known) {
            let Some(element) = known.element else { continue };
            let is_packed = self
                .file
                .tet()
                .dataset_id(&known.name)
                .is_some_and(|id| self.file.tet().is_packed(id));
            let (column, _) = NumberColumn::new(element, &known.attributes, is_packed, &self.read);
            row.data_type = Some(column.data_type().to_string());
        }
        rows.retain(|row| only.is_none_or(|only| only.contains(&row.name)));
        Ok(rows)
    }

    async fn attributes(&self, only: Option<&[String]>) -> Result<Vec<KnownAttribute>> {
        Ok(attributes(&self.file, only))
    }

    fn listed_values(&self, name: &str, _: &GridArray) -> Vec<ListedValue> {
        let name = name.rsplit_once('/').map_or(name, |(_, last)| last).into();
        vec![ListedValue { number: 0, name, is_located: true, sharing: 1 }]
    }

    async fn describe(&self, detail: &Detail) -> Result<Description> {
        describe(&self.file, &self.location, &self.read, detail).await
    }

    async fn verify(&self, depth: Depth, progress: &Arc<Progress>) -> Vec<(String, Report)> {
        vec![(self.location.clone(), verify(&self.file, depth, progress).await)]
    }
}

impl TetGroup {
    /// The names and lengths of the dimensions of a dataset.
    fn axes_of(&self, dataset: &str) -> Axes {
        let Some(id) = self.file.tet().dataset_id(dataset) else { return vec![] };
        let (dimensions, _) = self.file.tet().dimensions(id);
        dimensions.into_iter().map(|dimension| (dimension.name, Some(dimension.len))).collect()
    }
}
