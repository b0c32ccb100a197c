//! [`IcechunkGroup`]: the arrays of a version, with the facts about its repository.

use std::sync::Arc;

use async_trait::async_trait;

use super::facts::{history, references};
use super::reader::IcechunkReader;
use gridfusion_cf::conventions::{HierarchyGroup, HierarchyView, VariableStore};
use gridfusion_core::array::GridArray;
use gridfusion_core::options::OptionValue;
use gridfusion_core::source::facts::KnownAttribute;
use gridfusion_core::source::{
    ArrayGroup, BesideArray, Description, Detail, FactTable, Facts, KnownDataset, ListedValue,
    MatchedGroups, Needs, OpenedArray, PinnedOption,
};
use gridfusion_core::verify::{Depth, Progress, Report};
use gridfusion_core::{Error, Result};

// The names of the functions with facts.
pub(super) const HISTORY: &str = "icechunk_history";
pub(super) const REFERENCES: &str = "icechunk_refs";

/// The arrays of a version.
#[derive(Debug)]
pub(super) struct IcechunkGroup {
    arrays: Arc<dyn ArrayGroup>,
    reader: Arc<IcechunkReader>,
}

impl IcechunkGroup {
    /// Makes the group of the variables that the view selects.
    ///
    /// # Errors
    /// `Usage` if the version has no such group.
    pub(super) fn new(
        location: &str,
        reader: Arc<IcechunkReader>,
        view: HierarchyView,
    ) -> Result<Self> {
        let store = Arc::clone(&reader) as Arc<dyn VariableStore>;
        Ok(Self { arrays: Arc::new(HierarchyGroup::new(location, store, view)?), reader })
    }

    /// Returns another group of the same version.
    fn with_arrays(&self, arrays: Arc<dyn ArrayGroup>) -> Arc<dyn ArrayGroup> {
        Arc::new(Self { arrays, reader: Arc::clone(&self.reader) })
    }
}

#[async_trait]
impl ArrayGroup for IcechunkGroup {
    fn location(&self) -> &str {
        self.arrays.location()
    }

    fn file_name(&self) -> &str {
        self.arrays.file_name()
    }

    fn names(&self) -> Vec<String> {
        self.arrays.names()
    }

    fn has(&self, name: &str) -> bool {
        self.arrays.has(name)
    }

    fn is_array(&self) -> bool {
        self.arrays.is_array()
    }

    fn group(&self, name: &str) -> Result<Option<Arc<dyn ArrayGroup>>> {
        Ok(self.arrays.group(name)?.map(|group| self.with_arrays(group)))
    }

    fn matched(&self) -> Result<Option<MatchedGroups>> {
        let Some(mut matched) = self.arrays.matched()? else { return Ok(None) };
        for it in &mut matched.groups {
            it.group = self.with_arrays(Arc::clone(&it.group));
        }
        Ok(Some(matched))
    }

    async fn arrays(&self, names: &[String]) -> Result<Vec<OpenedArray>> {
        self.arrays.arrays(names).await
    }

    async fn variables(&self) -> Result<Vec<OpenedArray>> {
        self.arrays.variables().await
    }

    async fn data_variables(&self) -> Result<Vec<String>> {
        self.arrays.data_variables().await
    }

    async fn beside(&self, arrays: &[OpenedArray]) -> Result<Vec<BesideArray>> {
        self.arrays.beside(arrays).await
    }

    fn left_out(&self) -> &[Error] {
        self.arrays.left_out()
    }

    fn unreadable(&self) -> Vec<(String, Error)> {
        self.arrays.unreadable()
    }

    /// The snapshot that a branch or tag named when it was opened.
    fn pinned_options(&self) -> Vec<PinnedOption> {
        let id = self.reader.store.snapshot().id.to_string();
        let others = ["branch", "tag", "as_of"].map(|name| (name, None));
        [("snapshot", Some(OptionValue::Text(id)))].into_iter().chain(others).collect()
    }

    async fn facts(&self, function: &str, dataset: Option<&str>) -> Result<Arc<dyn FactTable>> {
        if dataset.is_some() {
            let message = format!("{function} is about a repository, not about one array");
            return Err(Error::usage(message).in_file(self.location()));
        }
        let rows = match function {
            HISTORY => history(&self.reader.history().await?)?,
            REFERENCES => references(&self.reader).await?,
            other => return Err(Error::internal(format!("no facts called {other}"))),
        };
        Ok(Arc::new(Facts::new(rows)))
    }

    async fn info(&self, only: Option<&[String]>, needs: Needs) -> Result<Vec<KnownDataset>> {
        self.arrays.info(only, needs).await
    }

    async fn attributes(&self, only: Option<&[String]>) -> Result<Vec<KnownAttribute>> {
        self.arrays.attributes(only).await
    }

    fn listed_values(&self, name: &str, array: &GridArray) -> Vec<ListedValue> {
        self.arrays.listed_values(name, array)
    }

    async fn describe(&self, detail: &Detail) -> Result<Description> {
        self.arrays.describe(detail).await
    }

    async fn verify(&self, depth: Depth, progress: &Arc<Progress>) -> Vec<(String, Report)> {
        self.arrays.verify(depth, progress).await
    }
}
