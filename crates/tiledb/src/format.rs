//! The TileDB format as an [`ArrayFormat`]: arrays, groups, and folders of arrays.
//!
//! A place is opened as an array first, and as a group if that fails. So opening an array costs no additional listing.

use std::sync::Arc;

use async_trait::async_trait;

use super::group::{FRAGMENTS, INFO, METADATA, TileDbGroup};
use super::open_settings::OpenSettings;
use super::view::TileDbView;
use crate::bytes::{FolderKind, folder_kind};
use gridfusion_core::array::ReadOptions;
use gridfusion_core::format::Entry;
use gridfusion_core::options::{
    OptionInfo, ResolvedOptions, TEXT_AS_BINARY, TEXT_ENCODING, ValueKind,
};
use gridfusion_core::source::Place;
use gridfusion_core::source::TableArrays;
use gridfusion_core::source::{ArrayFormat, ArrayGroup, Ending, InfoFunction, RecognisedFormat};
use gridfusion_core::{ErrorKind, Result};

/// TileDB arrays, groups, and folders of arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TileDb;

/// The options of TileDB alone, and a common one with another default.
///
/// Time and key belong to arrays, so a session cannot set them. The others are about showing arrays.
const OPTIONS: &[OptionInfo] = &[
    OptionInfo::new("timestamp", ValueKind::Time, "now", "read as of this time"),
    OptionInfo::new(
        "timestamp_start",
        ValueKind::Time,
        "the beginning",
        "leaves out what was written before",
    ),
    OptionInfo::new("encryption_key", ValueKind::Key, "none", "the key of an encrypted array"),
    OptionInfo::new(
        "full_domain",
        ValueKind::Flag,
        "`false`",
        "shows the whole domain, written or not",
    )
    .in_session(),
    TEXT_AS_BINARY,
    TEXT_ENCODING,
    OptionInfo::new(
        "time_as_integer",
        ValueKind::Flag,
        "`false`",
        "shows dates and times as the integers that are stored",
    )
    .in_session(),
    // Other formats have `true`, but the fill value of TileDB does not mark missing data.
    OptionInfo::new("fill_as_null", ValueKind::Flag, "`false`", "the declared fill value is NULL")
        .in_session(),
];

#[async_trait]
impl ArrayFormat for TileDb {
    fn name(&self) -> &'static str {
        "tiledb"
    }

    fn title(&self) -> &'static str {
        "TileDB"
    }

    fn nouns(&self) -> &'static [&'static str] {
        &["TileDB array"]
    }

    /// Most arrays have no ending. Arrays with one are still recognised by their entries (`what` is
    /// `None`), but the ending is left out of names of schemas.
    fn endings(&self) -> &'static [Ending] {
        const ENDINGS: &[Ending] =
            &[Ending::new(".tdb", true, None), Ending::new(".tiledb", true, None)];
        ENDINGS
    }

    fn probe_folder(&self, entries: &[Entry]) -> Option<RecognisedFormat> {
        let what = match folder_kind(entries)? {
            FolderKind::Array => "a TileDB array",
            FolderKind::Group => "a group or folder of TileDB arrays",
        };
        Some(RecognisedFormat::new(what, true))
    }

    fn options(&self) -> &'static [OptionInfo] {
        OPTIONS
    }

    fn read_defaults(&self) -> ReadOptions {
        TileDbView::default().read
    }

    /// | function | a row per |
    /// |---|---|
    /// | `tiledb_info` | property of the array, a dimension, an attribute or a label |
    /// | `tiledb_fragments` | visible fragment, oldest first |
    /// | `tiledb_metadata` | key of the array's own metadata |
    fn info_functions(&self) -> &'static [InfoFunction] {
        const FUNCTIONS: &[InfoFunction] =
            &[InfoFunction::new(INFO), InfoFunction::new(FRAGMENTS), InfoFunction::new(METADATA)];
        FUNCTIONS
    }

    async fn open(&self, place: &Place, options: &ResolvedOptions) -> Result<Arc<dyn ArrayGroup>> {
        Ok(Arc::new(TileDbGroup::find(place, OpenSettings::new(options)?).await?))
    }

    /// Tries to open `place` as one array first, so that an array needs no extra listing. Otherwise,
    /// or with the option `dataset`, opens arrays of the group or folder at `place`.
    async fn table(&self, place: &Place, options: &ResolvedOptions) -> Result<TableArrays> {
        let reading = OpenSettings::new(options)?;
        let alone = match options.dataset() {
            None => match reading.array(place).await {
                Ok(array) => return TableArrays::new(place.location(), vec![array]),
                Err(error) if error.kind() == ErrorKind::Usage => Some(error),
                Err(error) => return Err(error),
            },
            Some(_) => None,
        };
        let group = TileDbGroup::find(place, reading).await?;
        match alone {
            // The place is an array after all, so the first error has the reason why it cannot be a table.
            Some(error) if group.is_array() => Err(error),
            _ => {
                let group: &dyn ArrayGroup = &group;
                group.chosen_columns(options).await
            }
        }
    }
}
