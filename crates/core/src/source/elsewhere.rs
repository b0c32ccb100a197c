//! Error messages for places without arrays: they name the format found, or the entries of the folder.
//!
//! They are made only for a place that was not recognised or not opened, so they may list folders and read
//! files again.

use super::place::Place;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{Entry, Foreign};
use crate::io::{ByteSource, FileSource, is_not_found, refuse_special};

/// Explains `error`, which came from opening arrays at `place`: returns the error of another format that is
/// there, or adds the names in the folder.
pub async fn described(error: Error, place: &Place) -> Error {
    // The name of an object does not explain why it cannot be read.
    if error.kind() == ErrorKind::Io && place.is_remote() && !is_not_found(&error) {
        return error;
    }
    let found = match foreign_at(place).await {
        Some(foreign) => return foreign.error().in_file(place.location()),
        None => place.entries().await,
    };
    match found {
        // The listing explains a wrong path. It does not explain an array that is damaged or cannot be
        // read.
        // In an object store, an empty folder and a missing one look the same.
        Ok(entries)
            if error.kind() == ErrorKind::Usage && !(entries.is_empty() && place.is_remote()) =>
        {
            error.followed_by(&holds(&entries))
        }
        _ => error,
    }
}

/// Fails for arrays in a format that neither gridfusion nor DataFusion reads, such as GRIB.
///
/// # Errors
/// `Usage` for such arrays; the message names the format and how to convert it.
pub async fn refuse_foreign(place: &Place) -> Result<()> {
    if let Some(path) = place.local_path() {
        refuse_special(path).map_err(|error| error.in_file_instead(Some(place.shown())))?;
    }
    let foreign = match place.is_remote() {
        // Only the name is used, because DataFusion will read the object next.
        true => Foreign::from_name(&place.path()),
        false => foreign_at(place).await,
    };
    match foreign.filter(|it| !it.has_rows() && *it != Foreign::Compressed) {
        Some(foreign) => Err(foreign.error().in_file(place.location())),
        None => Ok(()),
    }
}

/// Returns the foreign format of the file or folder at a place; `None` if it is not known.
///
/// A local file is recognised by its first bytes, and formats of rows without a signature by the file's name.
/// A folder is recognised by its entries.
async fn foreign_at(place: &Place) -> Option<Foreign> {
    let rows = Foreign::from_name(&place.path()).filter(|foreign| foreign.has_rows());
    match place.local_path() {
        Some(path) if path.is_file() => Foreign::from_bytes(&head(place).await.ok()?).or(rows),
        None if rows.is_some() => rows,
        _ => Foreign::from_folder(&place.entries().await.ok()?),
    }
}

/// Reads the first bytes of the object at a place, up to 64 KiB.
///
/// # Errors
/// `Io` if there is no object.
pub(super) async fn first_bytes(place: &Place) -> Result<Vec<u8>> {
    let source = place.object().await?;
    let range = 0..source.size().min(HEAD);
    let read = source.read(std::slice::from_ref(&range)).await?;
    Ok(read.concat())
}

/// The number of first bytes that signatures need. An HDF5 file may begin with a user block of 512, 1024, …
/// bytes before its signature.
const HEAD: u64 = 64 * 1024;

/// Reads the first bytes of a local file, up to 64 KiB. Returns no bytes for a place in an object store.
pub(super) async fn head(place: &Place) -> Result<Vec<u8>> {
    let Some(path) = place.local() else { return Ok(vec![]) };
    let source = FileSource::open_at(path)?;
    let range = 0..source.size().min(HEAD);
    let read = source.read(std::slice::from_ref(&range)).await?;
    Ok(read.concat())
}

/// Returns a sentence with the first names in a folder, and advice about a file of another array format.
pub fn holds(entries: &[Entry]) -> String {
    /// The most names that the sentence lists.
    const MOST: usize = 10;
    let names = entries.iter().map(|entry| entry.name.as_str());
    let mut names: Vec<&str> = names.filter(|name| !name.starts_with('.')).collect();
    if names.is_empty() {
        return "it is empty".to_owned();
    }
    names.sort_unstable();
    let arrays = |name: &&str| Foreign::from_name(name).filter(|foreign| !foreign.has_rows());
    let foreign = names.iter().find_map(|name| Some((*name, arrays(name)?)));
    let more = names.len().saturating_sub(MOST);
    names.truncate(MOST);
    let mut text = format!("it holds {}", names.join(", "));
    if more > 0 {
        text += &format!(" and {more} more");
    }
    if let Some((name, foreign)) = foreign {
        text += &format!("; {name} is {}: {}", foreign.what(), foreign.advice());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_names_are_enough() {
        let named = |count: usize| -> Vec<Entry> {
            let name = |number| Entry { name: format!("{number:04}.bin"), size: Some(1) };
            (0..count).rev().map(name).collect()
        };
        assert_eq!(holds(&[]), "it is empty");
        assert_eq!(holds(&named(2)), "it holds 0000.bin, 0001.bin");
        assert!(holds(&named(10)).ends_with("0008.bin, 0009.bin"));
        assert!(holds(&named(2000)).ends_with("0008.bin, 0009.bin and 1990 more"));
        let grib = Entry { name: "era.grib".to_owned(), size: Some(1) };
        let hidden = Entry { name: ".git".to_owned(), size: None };
        assert_eq!(holds(std::slice::from_ref(&hidden)), "it is empty");
        let text = holds(&[grib, hidden]);
        assert!(text.starts_with("it holds era.grib; era.grib is a GRIB file: "), "{text}");
    }
}
