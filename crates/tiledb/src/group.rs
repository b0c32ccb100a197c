//! The TileDB arrays of one place as an [`ArrayGroup`], which opens each array when it is needed.

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::{self, StreamExt};

use super::describe::describe;
use super::fact_rows;
use super::known_attributes::{array_attributes, group_metadata, known_attributes, metadata};
use super::members::Members;
use super::open_settings::OpenSettings;
use super::reader::TileDbReader;
use super::verify::verify;
use gridfusion_core::error::shown_location;
use gridfusion_core::io::MAX_CONCURRENT_IO;
use gridfusion_core::source::ArrayGroup;
use gridfusion_core::source::OpenedArray;
use gridfusion_core::source::Place;
use gridfusion_core::source::data_variables;
use gridfusion_core::source::facts::KnownAttribute;
use gridfusion_core::source::{
    ARRAY_ATTRIBUTES, Column, FactRows, FactTable, Facts, KnownDataset, Needs,
};
use gridfusion_core::source::{Description, Detail};
use gridfusion_core::verify::{Depth, Progress, Report};
use gridfusion_core::{Error, Result};

/// An array, or the arrays of a TileDB group or of a folder.
///
/// Arrays of nested groups are named `group/array`. An array that cannot be read is listed too, and a
/// query of it fails with its error.
#[derive(Debug)]
pub(super) struct TileDbGroup {
    pub(super) place: Place,
    pub(super) members: Members,
    /// The options, which apply to each array.
    pub(super) reading: OpenSettings,
}

// The names of the functions with facts.
pub(super) const INFO: &str = "tiledb_info";
pub(super) const FRAGMENTS: &str = "tiledb_fragments";
pub(super) const METADATA: &str = "tiledb_metadata";

impl TileDbGroup {
    /// Finds the arrays at `place` without opening them.
    ///
    /// # Errors
    /// As [`Members::find`].
    pub(super) async fn find(place: &Place, reading: OpenSettings) -> Result<Self> {
        let members = Members::find(place, &reading.open).await?;
        Ok(Self { place: place.clone(), members, reading })
    }

    /// Opens the array with this name.
    async fn reader(&self, name: &str) -> Result<TileDbReader> {
        self.reading.open(&self.place_of(name)?).await
    }

    /// Returns the place of the array with this name.
    pub(super) fn place_of(&self, name: &str) -> Result<Place> {
        match self.members.arrays.get(name) {
            Some(location) => self.place.referenced(location),
            None => {
                let known = self.members.arrays.keys().map(|name| format!("\"{name}\""));
                let known = known.collect::<Vec<_>>().join(", ");
                let message = format!("no array \"{name}\"; there is {known}");
                Err(Error::usage(message).in_file(self.place.location()))
            }
        }
    }
}

#[async_trait]
impl ArrayGroup for TileDbGroup {
    fn location(&self) -> &str {
        self.place.location()
    }

    fn names(&self) -> Vec<String> {
        self.members.arrays.keys().cloned().collect()
    }

    fn has(&self, name: &str) -> bool {
        self.members.arrays.contains_key(name)
    }

    fn is_array(&self) -> bool {
        self.members.arrays.values().any(|location| location == self.place.location())
    }

    async fn arrays(&self, names: &[String]) -> Result<Vec<OpenedArray>> {
        let mut arrays = Vec::with_capacity(names.len());
        for name in names {
            let array = self.reading.array(&self.place_of(name)?).await?;
            arrays.push(array.with_name(name));
        }
        Ok(arrays)
    }

    /// Opens all arrays, up to 32 at a time, and returns those that are not coordinates of other arrays.
    /// Only an opened array shows whether it is one.
    async fn variables(&self) -> Result<Vec<OpenedArray>> {
        let each: Vec<_> = self
            .members
            .arrays
            .iter()
            .map(|(name, location)| async move {
                let array = match self.place.referenced(location) {
                    Ok(place) => self.reading.array(&place).await,
                    Err(error) => Err(error),
                };
                (name.clone(), array.map(|array| array.with_name(name)))
            })
            .collect();
        let opened = stream::iter(each).buffered(MAX_CONCURRENT_IO).collect().await;
        data_variables(self.place.location(), opened)
    }

    fn left_out(&self) -> &[Error] {
        &self.members.left_out
    }

    async fn facts(&self, function: &str, dataset: Option<&str>) -> Result<Arc<dyn FactTable>> {
        // Facts are about one array: the named one, or the one at the place itself.
        let place = match dataset {
            Some(name) => self.place_of(name)?,
            None => self.place.clone(),
        };
        let array = self.reading.open(&place).await?;
        Ok(match function {
            INFO => Arc::new(fact_rows::info(&array)),
            FRAGMENTS => {
                let rows = fact_rows::fragments(&array, array.rtree_levels().await?)?;
                Arc::new(Facts::new(rows))
            }
            METADATA => {
                let columns = Column::named(ARRAY_ATTRIBUTES, &["key", "type", "value"]);
                Arc::new(FactRows::in_memory(columns, metadata("", &array).await?))
            }
            other => return Err(Error::internal(format!("no facts called {other}"))),
        })
    }

    /// An array that cannot be opened is a row with the reason, unless it is the only one.
    async fn info(&self, only: Option<&[String]>, _: Needs) -> Result<Vec<KnownDataset>> {
        let names = only.map_or_else(|| self.names(), <[String]>::to_vec);
        let mut rows = vec![];
        for name in &names {
            match self.reader(name).await {
                Ok(array) => rows.extend(known_attributes(name, &array, &self.reading.view)),
                Err(error) if names.len() == 1 => return Err(error),
                Err(error) => rows.push(KnownDataset::unreadable(name, error.to_string())),
            }
        }
        let left_out = self.members.left_out.iter().filter(|_| only.is_none());
        rows.extend(left_out.map(|error| {
            let folder = shown_location(error.file().unwrap_or_default());
            KnownDataset::unreadable(folder, format!("left out: {error}"))
        }));
        Ok(rows)
    }

    /// The metadata of groups comes first.
    async fn attributes(&self, only: Option<&[String]>) -> Result<Vec<KnownAttribute>> {
        let mut all = vec![];
        for (path, location) in self.members.groups.iter().filter(|_| only.is_none()) {
            let place = self.place.referenced(location)?;
            all.extend(group_metadata(path, &place, &self.reading.open).await?);
        }
        let names = only.map_or_else(|| self.names(), <[String]>::to_vec);
        for name in &names {
            let found = match self.reader(name).await {
                Ok(array) => array_attributes(name, &array).await,
                Err(error) => Err(error),
            };
            match found {
                Err(error) if only.is_none() && names.len() > 1 => {
                    log::warn!("\"{name}\" is left out: {error}");
                }
                found => all.extend(found?),
            }
        }
        Ok(all)
    }

    async fn describe(&self, detail: &Detail) -> Result<Description> {
        describe(&self.place, &self.members, &self.reading, detail).await
    }

    async fn verify(&self, depth: Depth, progress: &Arc<Progress>) -> Vec<(String, Report)> {
        let mut reports = Vec::new();
        for location in self.members.arrays.values() {
            let opened = match self.place.referenced(location) {
                Ok(place) => self.reading.open(&place).await,
                Err(error) => Err(error),
            };
            let report = match opened {
                Ok(array) => verify(&array, depth, progress).await,
                Err(error) => Report::from_error(location, depth, &error),
            };
            reports.push((location.clone(), report));
        }
        // Folders that could not be read may hold arrays, so each is a failed report.
        for error in &self.members.left_out {
            let location = error.file().unwrap_or_default().to_owned();
            let report = Report::from_error(&location, depth, error);
            reports.push((location, report));
        }
        reports
    }
}
