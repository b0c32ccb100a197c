//! The Icechunk format as an [`ArrayFormat`].

use std::sync::Arc;

use async_trait::async_trait;

use super::group::{HISTORY, IcechunkGroup, REFERENCES};
use super::reader::IcechunkReader;
use crate::bytes::icechunk::{VersionChoice, is_icechunk};
use gridfusion_cf::conventions::{self, HierarchyView};
use gridfusion_core::format::Entry;
use gridfusion_core::options::{OptionInfo, OptionValue, ResolvedOptions, ValueKind};
use gridfusion_core::source::Place;
use gridfusion_core::source::{
    ArrayFormat, ArrayGroup, Ending, InfoFunction, RecognisedFormat, TableArrays,
};
use gridfusion_core::{Error, Result};

/// Repositories of Icechunk, of the specifications 1 and 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Icechunk;

/// The options that choose a version.
const VERSIONS: [OptionInfo; 4] = [
    OptionInfo::new(
        "branch",
        ValueKind::Name,
        "`main`",
        "the branch whose newest snapshot is read",
    ),
    OptionInfo::new("tag", ValueKind::Name, "none", "the tag whose snapshot is read"),
    OptionInfo::new("snapshot", ValueKind::Name, "none", "the id of the snapshot to read")
        .of_one_place(),
    OptionInfo::new(
        "as_of",
        ValueKind::Time,
        "now",
        "reads the newest snapshot of the branch that is not later than this time",
    ),
];

/// The options of all formats with groups of variables, and those above.
const OPTIONS: &[OptionInfo] = &{
    let mut all = [VERSIONS[0]; conventions::OPTIONS.len() + VERSIONS.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = match at < VERSIONS.len() {
            true => VERSIONS[at],
            false => conventions::OPTIONS[at - VERSIONS.len()],
        };
        at += 1;
    }
    all
};

#[async_trait]
impl ArrayFormat for Icechunk {
    fn name(&self) -> &'static str {
        "icechunk"
    }

    fn title(&self) -> &'static str {
        "Icechunk"
    }

    fn nouns(&self) -> &'static [&'static str] {
        &["Icechunk repository"]
    }

    fn endings(&self) -> &'static [Ending] {
        const ENDINGS: &[Ending] =
            &[Ending::new(".icechunk", true, Some("an Icechunk repository"))];
        ENDINGS
    }

    fn probe_folder(&self, entries: &[Entry]) -> Option<RecognisedFormat> {
        is_icechunk(entries).then(|| RecognisedFormat::new("an Icechunk repository", false))
    }

    /// The versions of specification 2; the names of those of specification 1, and the branch that is read if no other
    /// is chosen.
    fn first_documents(&self) -> &'static [&'static str] {
        &["repo", "refs/", "refs/branch.main/ref.json"]
    }

    fn options(&self) -> &'static [OptionInfo] {
        OPTIONS
    }

    /// | function | a row per |
    /// |---|---|
    /// | `icechunk_history` | snapshot of the chosen version and before it, newest first |
    /// | `icechunk_refs` | branch or tag |
    fn info_functions(&self) -> &'static [InfoFunction] {
        const FUNCTIONS: &[InfoFunction] =
            &[InfoFunction::new(HISTORY), InfoFunction::new(REFERENCES)];
        FUNCTIONS
    }

    async fn open(&self, place: &Place, options: &ResolvedOptions) -> Result<Arc<dyn ArrayGroup>> {
        let choice = choice(place, options)?.unwrap_or_default();
        let reader = IcechunkReader::open(place, choice).await?;
        self.group(place, reader, options)
    }

    async fn check_takes_rows(&self, place: &Place) -> Result<()> {
        let message = "new rows in an Icechunk repository, which is only read; write it with the library of Icechunk, or COPY it to a new \
                       Zarr store";
        Err(Error::unsupported(message).in_file(place.location()))
    }

    /// Without an option that chooses a version or a group, the dataset may begin with a version: `main/forecast/t2m`.
    async fn table(&self, place: &Place, options: &ResolvedOptions) -> Result<TableArrays> {
        let (None, Some(dataset), false) =
            (choice(place, options)?, options.dataset(), options.contains("group"))
        else {
            return self.open(place, options).await?.chosen_columns(options).await;
        };
        let (reader, rest) = IcechunkReader::open_dataset(place, dataset).await?;
        let group = self.group(place, reader, options)?;
        let rest = rest.map(|rest| without_version(dataset, rest));
        let columns = group.chosen_columns_of(rest.as_deref(), options).await?;
        Ok(columns.pinning(("dataset", rest.map(OptionValue::Text))))
    }
}

impl Icechunk {
    fn group(
        &self,
        place: &Place,
        reader: IcechunkReader,
        options: &ResolvedOptions,
    ) -> Result<Arc<dyn ArrayGroup>> {
        let view = HierarchyView::new(options, &self.read_defaults());
        Ok(Arc::new(IcechunkGroup::new(place.location(), Arc::new(reader), view)?))
    }
}

/// Returns the names behind the version that `dataset` begins with. In a list, others may begin with it, too: `v1/t, v1/u`.
fn without_version(dataset: &str, rest: &str) -> String {
    let version = &dataset[..dataset.len() - rest.len()];
    let name = |name: &str| match name.trim_start().strip_prefix(version) {
        Some(behind) if !version.is_empty() => behind.to_owned(),
        _ => name.to_owned(),
    };
    rest.split(',').map(name).collect::<Vec<_>>().join(",")
}

/// Returns the version that options choose.
fn choice(place: &Place, options: &ResolvedOptions) -> Result<Option<VersionChoice>> {
    if !VERSIONS.iter().any(|it| options.contains(it.name)) {
        return Ok(None);
    }
    let choice = VersionChoice::new(
        options.text("branch"),
        options.text("tag"),
        options.text("snapshot"),
        options.number("as_of"),
    );
    choice.map(Some).map_err(|error| error.in_file(place.location()))
}
