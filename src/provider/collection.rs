//! Opens the files of folders, patterns and lists, to describe what they have in common.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use futures::stream::{self, StreamExt};

use super::files::{StackLabel, dimension, open_files};
use super::opener::{ArrayOpener, Chosen};
use crate::error::{Error, ErrorKind, Result};
use crate::io::{MAX_CONCURRENT_IO, OpenFiles, last_part};
use crate::options::ArrayOptions;
use crate::source::{
    ArrayFormat, ArrayGroup, Collection, Locations, Needs, OpenedArray, Place, Places, Role, Stack,
    TableArrays, holds, is_pattern,
};

/// The most entries of a local folder that are visited to add up its size.
const MOST_VISITED: usize = 100_000;

/// A place, with its format if its name or a listing shows it.
type KnownPlace = (String, Option<Arc<dyn ArrayFormat>>);

/// The places of a collection.
#[derive(Default)]
struct Members {
    places: Vec<KnownPlace>,
    /// The names of entries of folders that are no arrays.
    others: Vec<String>,
    /// Folders in folders that cannot be listed.
    failed: Vec<Error>,
}

/// A file of a collection that was opened.
struct Member {
    /// The name and the noun of its format.
    format: (&'static str, &'static str),
    size: Option<u64>,
    parts: Vec<TableArrays>,
    /// Its label along a new dimension, if the options name one.
    label: Option<StackLabel>,
}

impl ArrayOpener {
    /// Opens the files of folders, patterns and lists, up to 32 at a time, and compares them. Each file uses the `options` that
    /// its format has. A file that cannot be opened does not hinder the others.
    ///
    /// # Errors
    /// `Usage` for a pattern without matches, a folder without arrays, or an unknown option. `Io` if a folder cannot be listed.
    pub async fn collection(
        &self,
        locations: impl Into<Locations>,
        options: &ArrayOptions,
    ) -> Result<Collection> {
        let locations = locations.into();
        self.formats().check(options)?;
        let Members { places, others, failed } = self.members(&locations).await?;
        let first = match places.first() {
            Some((place, format)) => self.format_at(place, format.as_ref()).await.ok(),
            None => None,
        };
        let first = first.and_then(|format| self.chosen_for(format, options).ok());
        let mosaic = first.as_ref().map(Chosen::mosaic).unwrap_or_default();
        let pool = open_files(first.as_slice());
        let mut collection = Collection::new(locations.name(), mosaic);
        others.into_iter().for_each(|name| collection.add_other(name));
        for error in failed {
            let file = error.file().unwrap_or_default().to_owned();
            collection.add_unreadable(&file, error);
        }
        self.opening().begin(places.len());
        let members = places.iter().map(|(location, format)| {
            let pool = &pool;
            async move {
                let member = self.member(location, format.as_ref(), options, pool).await;
                self.opening().end();
                (location, member)
            }
        });
        let members: Vec<_> = members.collect();
        let mut members = stream::iter(members).buffered(MAX_CONCURRENT_IO).enumerate();
        let mut stacked = vec![];
        while let Some((at, (location, member))) = members.next().await {
            match member {
                Ok(it) if it.label.is_some() => stacked.push((at, it)),
                Ok(it) => collection.add(it.format, it.size, it.parts),
                Err(error) => {
                    collection.add_unreadable(location, error.in_file(location));
                }
            }
        }
        if let Some(stack) = first.as_ref().map(Chosen::stack).transpose()?.flatten() {
            add_stacked(&mut collection, &stack, stacked, places.len())?;
        }
        Ok(collection)
    }

    /// Finds the places of a collection, in order.
    async fn members(&self, locations: &Locations) -> Result<Members> {
        let mut members = Members::default();
        let is_only = locations.iter().count() == 1;
        for location in locations.iter() {
            if is_pattern(location) {
                if let Places::Many(found) = Locations::from(location).expand(&self.stores).await? {
                    members.places.extend(found.into_iter().map(|place| (place, None)));
                }
                continue;
            }
            let place = self.place(location)?;
            let is_folder = place.local_path().is_none_or(Path::is_dir);
            match self.formats().recognise(&place).await.filter(|it| !it.is_folder_of) {
                Some(found) => members.places.push((location.to_owned(), Some(found.format))),
                None if !is_folder => members.places.push((location.to_owned(), None)),
                None => self.add_folder(&mut members, location, &place, is_only).await?,
            }
        }
        // A file may match several entries of a list.
        let mut met = BTreeSet::new();
        members.places.retain(|(place, _)| met.insert(place.clone()));
        Ok(members)
    }

    /// Adds the arrays in a folder. Adds the place itself if it may be no folder, or has no arrays and is one of several: opening
    /// it tells what is wrong.
    async fn add_folder(
        &self,
        members: &mut Members,
        location: &str,
        place: &Place,
        is_only: bool,
    ) -> Result<()> {
        // In an object store, only a listing tells a folder from an object.
        let listed = match place.entries().await {
            Err(error) if !place.is_remote() => return Err(error),
            Ok(listed) if !(listed.is_empty() && place.is_remote()) => listed,
            _ => {
                members.places.push((location.to_owned(), None));
                return Ok(());
            }
        };
        let (found, failed) = self.formats().places_in(place, &listed).await;
        match (found.is_empty() && failed.is_empty(), is_only) {
            (true, true) => {
                let message = format!("no {} in this directory", self.formats().nouns());
                let error = Error::usage(message).followed_by(&holds(&listed));
                return Err(error.in_file(location));
            }
            (true, false) => members.places.push((location.to_owned(), None)),
            (false, _) => {}
        }
        for (name, found) in &found {
            let place = place.child(name)?.location().to_owned();
            members.places.push((place, Some(Arc::clone(&found.format))));
        }
        let mut names: BTreeSet<&str> = found.iter().map(|(name, _)| &**name).collect();
        names.extend(failed.iter().filter_map(Error::file).map(last_part));
        let is_other = |name: &str| !name.starts_with('.') && !names.contains(name);
        let others = listed.iter().map(|it| &*it.name).filter(|name| is_other(name));
        members.others.extend(others.map(str::to_owned));
        members.failed.extend(failed);
        Ok(())
    }

    /// Returns the format of a place: one that is known, or that its name or its bytes show.
    async fn format_at(
        &self,
        location: &str,
        known: Option<&Arc<dyn ArrayFormat>>,
    ) -> Result<Arc<dyn ArrayFormat>> {
        let place = self.place(location)?;
        match (known, self.formats().of_name(&place.path())) {
            (Some(format), _) => Ok(Arc::clone(format)),
            (None, Some((found, ending))) if !ending.folder => Ok(found.format),
            (None, _) => self.formats().of_place(&place, None).await,
        }
    }

    /// Returns a format with those `options` that it has.
    fn chosen_for(&self, format: Arc<dyn ArrayFormat>, options: &ArrayOptions) -> Result<Chosen> {
        let options = self.formats().options_of(&format, options);
        let options = self.formats().resolve(&format, &options, &self.defaults)?;
        Ok(Chosen { format, options: Arc::new(options) })
    }

    /// Opens a file of a collection.
    async fn member(
        &self,
        location: &str,
        format: Option<&Arc<dyn ArrayFormat>>,
        options: &ArrayOptions,
        pool: &Arc<OpenFiles>,
    ) -> Result<Member> {
        let format = self.format_at(location, format).await?;
        let chosen = self.chosen_for(format, options)?;
        let place = self.place(location)?.among(Arc::clone(pool));
        let format = &chosen.format;
        let parts = match self.formats().table(format, &place, &chosen.options).await {
            Ok(arrays) => vec![arrays],
            // Variables of several shapes are several tables.
            Err(error)
                if error.kind() == ErrorKind::Usage && chosen.options.dataset().is_none() =>
            {
                let group = self.formats().open(format, &place, &chosen.options).await?;
                match parts(&*group).await {
                    Ok(parts) if !parts.is_empty() => parts,
                    _ => return Err(error),
                }
            }
            Err(error) => return Err(error),
        };
        let noun = format.nouns().first().copied().unwrap_or_else(|| format.title());
        let size = parts.iter().find_map(size_of).or_else(|| size_below(&place));
        let label = match chosen.stack()? {
            Some(stack) => Some(self.label(&stack, &place, &chosen).await?),
            None => None,
        };
        Ok(Member { format: (format.name(), noun), size, parts, label })
    }
}

/// Adds files that are stacked along a new dimension. Each has its number among all `places`.
fn add_stacked(
    collection: &mut Collection,
    stack: &Stack,
    members: Vec<(usize, Member)>,
    places: usize,
) -> Result<()> {
    let (mut kept, mut names, mut labels, mut others) = (vec![], vec![], vec![], vec![]);
    for (at, Member { format, size, parts, label }) in members {
        kept.push(at);
        labels.extend(label);
        names.push(parts.iter().find_map(name_of).unwrap_or_default());
        others.push((format, size, parts));
    }
    let along = dimension(stack, &names, labels, &kept, places)?;
    for (number, (format, size, parts)) in others.into_iter().enumerate() {
        let part = |part| match part {
            TableArrays::Grids(file) => {
                Stack::stacked(file, &along, number).map(TableArrays::Grids)
            }
            sparse @ TableArrays::Sparse(_) => Ok(sparse),
        };
        let parts = parts.into_iter().map(part).collect::<Result<_>>()?;
        collection.add(format, size, parts);
    }
    Ok(())
}

/// Returns the name of the file that holds grids.
fn name_of(arrays: &TableArrays) -> Option<String> {
    match arrays {
        TableArrays::Grids(file) => Some(file.name.clone()),
        TableArrays::Sparse(_) => None,
    }
}

/// Opens the data variables of a group, those of the same dimensions together.
async fn parts(group: &dyn ArrayGroup) -> Result<Vec<TableArrays>> {
    let mut by_dims: Vec<(Vec<String>, Vec<String>)> = vec![];
    for dataset in group.info(None, Needs::default()).await? {
        if dataset.role != Some(Role::Data) {
            continue;
        }
        match by_dims.iter_mut().find(|(dims, _)| *dims == dataset.dimensions) {
            Some((_, names)) if names.contains(&dataset.name) => {}
            Some((_, names)) => names.push(dataset.name),
            None => by_dims.push((dataset.dimensions, vec![dataset.name])),
        }
    }
    let mut parts = vec![];
    for (_, names) in by_dims {
        let arrays = group.arrays(&names).await?.into_iter().map(|array| match array {
            OpenedArray::Grid(array) => array.with_variable_name().into(),
            sparse => sparse,
        });
        parts.push(TableArrays::new(group.file_name(), arrays.collect())?);
    }
    Ok(parts)
}

/// Returns the size of the file that holds all arrays.
fn size_of(arrays: &TableArrays) -> Option<u64> {
    match arrays {
        TableArrays::Grids(file) => file.arrays.first()?.objects().size(),
        TableArrays::Sparse(array) => array.objects().size(),
    }
}

/// Returns the size of all files in a local folder; `None` if they are very many, or not local.
fn size_below(place: &Place) -> Option<u64> {
    let mut folders = vec![place.local_path()?.to_owned()];
    let (mut bytes, mut visited) = (0_u64, 0);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).ok()?.flatten() {
            visited += 1;
            let kind = entry.metadata().ok()?;
            match kind.is_dir() {
                true => folders.push(entry.path()),
                false => bytes = bytes.saturating_add(kind.len()),
            }
        }
        if visited > MOST_VISITED {
            return None;
        }
    }
    Some(bytes)
}
