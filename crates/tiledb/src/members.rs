//! The search for the arrays of a TileDB group or folder, with their table names and locations.
//!
//! ```text
//!   project/                   a TileDB group or a plain folder        table
//!   ├── forecast/              an array                                forecast
//!   └── stations/              a TileDB group in it
//!       └── wind/              an array                                stations/wind
//! ```
//!
//! A group lists its members in its own files. In a plain folder, each subfolder is listed to see whether
//! it is an array. The search does not go into plain folders below the first. Groups of TileDB before 2.8 are
//! searched like plain folders, because they have no list of members: these are the folders in them.

use std::collections::BTreeMap;

use futures::stream::{self, StreamExt};

use crate::bytes::{FolderKind, OpenOptions, ReadGroup, folder_kind, lists_members};
use gridfusion_core::error::{Error, Result, shown_location};
use gridfusion_core::format::Entry;
use gridfusion_core::io::MAX_CONCURRENT_IO;
use gridfusion_core::io::last_part;
use gridfusion_core::source::Place;
use gridfusion_core::tile::{Objects, drive};

/// The arrays found at a place.
#[derive(Debug, Default)]
pub(super) struct Members {
    /// Paths or URLs of the arrays, by table name. An array in a nested group is named `group/array`.
    pub(super) arrays: BTreeMap<String, String>,
    /// Paths or URLs of the groups and folders, by their path from the place, which itself has an empty one.
    pub(super) groups: BTreeMap<String, String>,
    /// The errors of folders and groups that could not be read.
    pub(super) left_out: Vec<Error>,
}

/// The most groups to visit: groups may contain groups, and a group may even contain itself.
const MAX_GROUPS: usize = 1024;

impl Members {
    /// Finds the arrays at `place` and in nested groups.
    ///
    /// # Errors
    /// `Usage` if there is no array; `Corrupt` or `Io` if the group at `place` cannot be read.
    pub(super) async fn find(place: &Place, options: &OpenOptions) -> Result<Self> {
        let mut members = Self::default();
        members.walk(place, options).await?;
        if members.arrays.is_empty() {
            let message = match folder_kind(&place.entries().await?) {
                Some(FolderKind::Group) => "a TileDB group without arrays",
                _ => "no TileDB array in this folder, and it is no TileDB group",
            };
            return Err(Error::usage(message).in_file(place.location()));
        }
        for error in &members.left_out {
            log::warn!("left out: {error}");
        }
        Ok(members)
    }

    /// Visits the groups one after the other, and adds their arrays. An error at `place` itself ends the
    /// search; any other group is left out.
    async fn walk(&mut self, place: &Place, options: &OpenOptions) -> Result<()> {
        // The locations of groups to visit, and the prefixes of names in them: empty for `place`, then
        // `stations/`.
        let mut groups = vec![(place.location().to_owned(), String::new())];
        let mut visited = 0;
        while let Some((location, prefix)) = groups.pop() {
            visited += 1;
            if visited > MAX_GROUPS {
                let message = format!("more than {MAX_GROUPS} groups within groups");
                return Err(Error::unsupported(message).in_file(&location));
            }
            let found = match place.referenced(&location) {
                Ok(group) => self.within(&group, options).await,
                Err(error) => Err(error),
            };
            match found {
                Ok(found) => {
                    if found.iter().all(|member| member.location != location) {
                        self.groups.insert(prefix.trim_end_matches('/').to_owned(), location);
                    }
                    found.into_iter().for_each(|member| match member.kind {
                        FolderKind::Array => self.add(format!("{prefix}{}", member.name), member),
                        FolderKind::Group => {
                            groups.push((member.location, format!("{prefix}{}/", member.name)));
                        }
                    });
                }
                Err(error) if prefix.is_empty() => return Err(error),
                Err(error) => self.left_out.push(error.in_folder(&location)),
            }
        }
        Ok(())
    }

    /// Adds an array. If its name is taken, its location becomes its name.
    fn add(&mut self, name: String, Member { location, .. }: Member) {
        if self.arrays.contains_key(&name) {
            let shown = shown_location(&location);
            let numbered = (2_u64..).map(|number| format!("{shown} ({number})"));
            let mut names = std::iter::once(shown.clone()).chain(numbered);
            let shown = names.find(|it| !self.arrays.contains_key(it)).unwrap_or_default();
            log::warn!("two arrays are named \"{name}\"; the second is listed as \"{shown}\"");
            self.arrays.insert(shown, location);
        } else {
            self.arrays.insert(name, location);
        }
    }

    /// Finds the array at `place`, the members of a group, or the arrays and groups in a folder.
    async fn within(&mut self, place: &Place, options: &OpenOptions) -> Result<Vec<Member>> {
        let entries = place.entries().await?;
        Ok(match folder_kind(&entries) {
            Some(FolderKind::Array) => {
                let location = place.location().to_owned();
                let name = last_part(&shown_location(&location)).to_owned();
                vec![Member { name, location, kind: FolderKind::Array }]
            }
            Some(FolderKind::Group) if lists_members(&entries) => {
                group_members(place, options).await?
            }
            Some(FolderKind::Group) | None => self.folders_within(place, &entries).await,
        })
    }

    /// Finds the arrays and groups directly in a plain folder, except those that cannot be listed.
    async fn folders_within(&mut self, place: &Place, entries: &[Entry]) -> Vec<Member> {
        let folders = entries.iter().filter(|entry| entry.size.is_none());
        let looks = folders.map(|entry| {
            let name = entry.name.clone();
            async move {
                let folder = place.child(&name)?;
                let location = folder.location().to_owned();
                let entries = folder.entries().await.map_err(|it| it.in_folder(&location))?;
                Ok(folder_kind(&entries).map(|kind| Member { name, location, kind }))
            }
        });
        let looks: Vec<_> = looks.collect();
        let mut looks = stream::iter(looks).buffered(MAX_CONCURRENT_IO);
        let mut members = Vec::new();
        while let Some(looked) = looks.next().await {
            match looked {
                Ok(member) => members.extend(member),
                Err(error) => self.left_out.push(error),
            }
        }
        members
    }
}

/// An array or a group in a group or in a folder.
struct Member {
    /// Its name in the group, or that of its folder.
    name: String,
    /// Its path or URL.
    location: String,
    kind: FolderKind,
}

/// Reads the members of a group in the order of their names. A member without a name has that of its
/// folder. A member may be anywhere, even in another store.
async fn group_members(place: &Place, options: &OpenOptions) -> Result<Vec<Member>> {
    let objects = Objects::many(place.folder()?);
    let members = drive(ReadGroup::new(options.clone()), &objects).await?;
    let named = members.into_iter().map(|member| {
        let location = match member.relative {
            true => place.below(&member.uri)?.location().to_owned(),
            false => member.uri,
        };
        let name = member.name.unwrap_or_else(|| last_part(&shown_location(&location)).to_owned());
        Ok(Member { name, location, kind: member.kind })
    });
    named.collect()
}
