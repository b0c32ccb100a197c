//! Which arrays of a TileDB group or folder a table is made of.

use std::sync::Arc;

use datafusion::execution::runtime_env::RuntimeEnv;
use futures::stream::{self, StreamExt};

use super::location::open_tiledb_among;
use super::open_tiledb;
use super::tiledb_schema::find_arrays;
use super::variables::{mixed, names_in, with_axes};
use crate::array::GridArray;
use crate::error::{Error, Kind, Result};
use crate::io::MAX_CONCURRENT_IO;
use crate::io::OpenFiles;
use crate::io::last_part;
use crate::options::TileDbReadOptions;
use crate::source::{FileArrays, OpenedTileDb};

/// How arrays are opened.
pub(super) struct Opening<'a> {
    pub(super) options: &'a TileDbReadOptions,
    pub(super) runtime: &'a RuntimeEnv,
    /// The files that are held open, if there are many.
    pub(super) many: Option<&'a Arc<OpenFiles>>,
}

impl Opening<'_> {
    async fn array(&self, location: &str) -> Result<GridArray> {
        let array = open_tiledb_among(location, self.options, self.runtime, self.many).await?;
        array.array(&self.options.view())
    }
}

/// The array at `location`. Of a group or a folder of arrays, those that the options name, or all that are
/// not coordinates, which must have the same dimensions.
///
/// # Errors
/// `Usage` if there is no array, or none of a name that is asked for, or none is named and the arrays have
/// not the same dimensions; otherwise those of [`open_tiledb`].
pub(super) async fn arrays_at(location: &str, opening: &Opening<'_>) -> Result<FileArrays> {
    let arrays = match &opening.options.dataset {
        Some(names) => chosen(location, names, opening).await?,
        // Nothing is listed to find out that there is an array.
        None => match opening.array(location).await {
            Ok(array) => vec![array],
            Err(error) if error.kind() == Kind::Usage => {
                data_arrays(location, opening, error).await?
            }
            Err(error) => return Err(error),
        },
    };
    Ok(FileArrays { name: location.to_owned(), arrays })
}

/// The array at `location`, or the one that the options name in the group or folder there.
///
/// # Errors
/// Those of [`open_tiledb`], and `Usage` if there is no array of that name.
pub(super) async fn open_member(
    location: &str,
    options: &TileDbReadOptions,
    runtime: &RuntimeEnv,
) -> Result<OpenedTileDb> {
    let Some(name) = &options.dataset else {
        return open_tiledb(location, options, runtime).await;
    };
    let (places, _) = find_arrays(location, options, runtime).await?;
    match places.get(name) {
        Some(place) => open_tiledb(place, options, runtime).await,
        None => Err(missing(name, places.keys()).in_file(location)),
    }
}

/// The arrays of these names, in that order.
async fn chosen(location: &str, names: &str, opening: &Opening<'_>) -> Result<Vec<GridArray>> {
    let (places, _) = find_arrays(location, opening.options, opening.runtime).await?;
    let mut arrays = Vec::new();
    for name in names_in(names, |name| places.contains_key(name)) {
        let missing = || missing(&name, places.keys()).in_file(location);
        let place = places.get(&name).ok_or_else(missing)?;
        arrays.push(opening.array(place).await?.with_name(&name));
    }
    Ok(arrays)
}

/// All arrays that are not coordinates of others, if they can be columns of one table. `alone` is why
/// there is no array at `location` itself.
async fn data_arrays(
    location: &str,
    opening: &Opening<'_>,
    alone: Error,
) -> Result<Vec<GridArray>> {
    let (places, _) = find_arrays(location, opening.options, opening.runtime).await?;
    if places.values().any(|place| place == location) {
        return Err(alone);
    }
    let each: Vec<_> = places
        .iter()
        .map(|(name, place)| async move {
            let array = opening.array(place).await;
            (name.as_str(), array.map(|array| array.with_name(name)))
        })
        .collect();
    let mut opened: Vec<_> = stream::iter(each).buffered(MAX_CONCURRENT_IO).collect().await;
    opened.retain(|(_, array)| !array.as_ref().is_ok_and(is_coordinate));
    if opened.is_empty() {
        let message = "all arrays here are coordinates; choose one with the option 'dataset'";
        return Err(Error::usage(message).in_file(location));
    }
    if opened.len() == 1 || have_same_axes(&opened) {
        return opened.into_iter().map(|(_, array)| array).collect();
    }
    let listed = opened.iter().map(|(name, array)| match array {
        Ok(array) => with_axes(name, &axes_of(array)),
        Err(error) => format!("\"{name}\" (no table: {})", error.detail()),
    });
    Err(mixed("there are several arrays", listed).in_file(location))
}

/// Whether all are tables, and over the same dimensions.
fn have_same_axes(opened: &[(&str, Result<GridArray>)]) -> bool {
    let mut axes = opened.iter().map(|(_, array)| array.as_ref().ok().map(axes_of));
    let first = axes.next().flatten();
    first.is_some() && axes.all(|axes| axes == first)
}

/// Whether the array is called like its only dimension, as a list of labels is.
fn is_coordinate(array: &GridArray) -> bool {
    matches!(array.dims(), [dimension] if dimension.name() == last_part(array.name()))
}

/// The names and lengths of its dimensions.
fn axes_of(array: &GridArray) -> Vec<(String, u64)> {
    array.dims().iter().map(|dimension| (dimension.name().to_owned(), dimension.len())).collect()
}

fn missing<'a>(name: &str, known: impl Iterator<Item = &'a String>) -> Error {
    let known: Vec<String> = known.map(|name| format!("\"{name}\"")).collect();
    Error::usage(format!("no array \"{name}\"; there is {}", known.join(", ")))
}
