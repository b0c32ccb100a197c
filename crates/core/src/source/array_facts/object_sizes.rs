//! The lengths of objects that are chunks of their own, from listings of their folders.

use std::collections::{HashMap, HashSet};

use super::chunk_facts::Size;
use crate::error::Result;
use crate::format::StoredChunk;
use crate::tile::Objects;

/// The entries of some folders of an array: the names of objects, and their lengths.
#[derive(Debug, Default)]
pub(super) struct ObjectSizes {
    /// By folder. `None` stands for a folder that cannot be listed, as on a web server, or for an entry that is no object.
    folders: HashMap<String, Option<HashMap<String, Option<u64>>>>,
}

/// Splits the path of an object into its folder and its name. `None` for an object outside of the array's folder.
fn split(object: &str) -> Option<(&str, &str)> {
    let is_inside = !object.is_empty() && !object.contains("://") && !object.starts_with('/');
    is_inside.then(|| object.rsplit_once('/').unwrap_or(("", object)))
}

impl ObjectSizes {
    /// Lists the folders of the objects of `chunks` that are read whole, and forgets all others.
    ///
    /// # Errors
    /// `Io` if a local folder cannot be listed. A store that cannot list leaves lengths unknown.
    pub(super) async fn list(
        &mut self,
        objects: &Objects,
        chunks: impl Iterator<Item = &StoredChunk>,
    ) -> Result<()> {
        let pieces = chunks.flat_map(StoredChunk::payloads);
        let whole = pieces.filter(|payload| payload.at.range.most().is_none());
        let folders: HashSet<&str> =
            whole.filter_map(|it| split(&it.at.object).map(|(folder, _)| folder)).collect();
        self.folders.retain(|folder, _| folders.contains(folder.as_str()));
        let unknown = folders.into_iter().filter(|folder| !self.folders.contains_key(*folder));
        let unknown: Vec<String> = unknown.map(str::to_owned).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let listed = match objects.list(unknown.clone()).await {
            Ok(listed) => listed.into_iter().map(Some).collect(),
            Err(error) if objects.is_remote() => {
                log::debug!("cannot be listed: {error}");
                vec![None; unknown.len()]
            }
            Err(error) => return Err(error),
        };
        for (folder, entries) in unknown.into_iter().zip(listed) {
            let sized =
                entries.map(|entries| entries.into_iter().map(|it| (it.name, it.size)).collect());
            self.folders.insert(folder, sized);
        }
        Ok(())
    }

    /// Returns what is known of an object that is read whole.
    pub(super) fn of_object(&self, object: &str) -> Size {
        let Some((folder, name)) = split(object) else { return Size::Unknown };
        match self.folders.get(folder) {
            Some(Some(entries)) => match entries.get(name) {
                Some(size) => size.map_or(Size::Unknown, Size::Bytes),
                None => Size::Absent,
            },
            Some(None) | None => Size::Unknown,
        }
    }
}
