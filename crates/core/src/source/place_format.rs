//! Which format a place has that a user names as one of arrays, and why it has none.

use std::sync::Arc;

use super::array_format::ArrayFormat;
use super::elsewhere::described;
use super::formats::Formats;
use super::place::Place;
use crate::error::{Error, Result};
use crate::options::{ArrayOptions, IoMode};

impl Formats {
    /// Returns the format of the arrays at `place`, where the caller expects arrays; `None` if no format
    /// recognises `place`.
    ///
    /// # Errors
    /// `Io` if there is nothing at `place`, or it cannot be read.
    pub async fn at(&self, place: &Place) -> Result<Option<Arc<dyn ArrayFormat>>> {
        match self.recognise(place).await {
            Some(found) if !found.is_folder_of => Ok(Some(found.format)),
            _ => self.look_into(place).await,
        }
    }

    /// Returns the format `name`, or recognises the format of `place`.
    ///
    /// # Errors
    /// `Usage` for an unknown name, or a place that no format recognises.
    pub async fn of_place(
        &self,
        place: &Place,
        name: Option<&str>,
    ) -> Result<Arc<dyn ArrayFormat>> {
        let Some(name) = name else {
            return match self.recognise(place).await {
                Some(found) => Ok(found.format),
                // The name does not show a format, but the user names the place as an array.
                None => match self.look_into(place).await? {
                    Some(format) => Ok(format),
                    None => Err(self.unrecognised(place).await),
                },
            };
        };
        self.get(name).cloned().ok_or_else(|| {
            let known: Vec<&str> = self.iter().map(|format| format.name()).collect();
            Error::usage(format!("unknown format '{name}'; the formats are {}", known.join(", ")))
        })
    }

    /// Returns the error for a place of no known format.
    async fn unrecognised(&self, place: &Place) -> Error {
        // The file is read once, so mapping it does not pay.
        let place = &place.clone().with_io(IoMode::Pread);
        let is_folder = place.local_path().is_some_and(|path| path.is_dir());
        if !is_folder && let Some(error) = self.unread(place).await {
            return described(error, place).await;
        }
        let nouns = self.nouns();
        let message = match is_folder {
            true if self.holds_places(place).await => {
                "this is a directory of arrays: register it as a catalog, or make a table of a pattern such as '*.tet'".to_owned()
            }
            true => format!("no {nouns} in this directory"),
            false => format!("this is not a {nouns}"),
        };
        described(Error::usage(message).in_file(place.location()), place).await
    }

    /// Whether a folder has entries that a format recognises.
    async fn holds_places(&self, place: &Place) -> bool {
        match place.entries().await {
            Ok(entries) => !self.places_in(place, &entries).await.0.is_empty(),
            Err(_) => false,
        }
    }

    /// Returns the error of opening the file with the only format that has files: it names what the file
    /// lacks. `None` if several formats have files, or none.
    async fn unread(&self, place: &Place) -> Option<Error> {
        let is_of_files =
            |format: &&Arc<dyn ArrayFormat>| format.endings().iter().any(|it| !it.folder);
        let mut of_files = self.iter().filter(is_of_files);
        let (format, None) = (of_files.next()?, of_files.next()) else { return None };
        let options = ArrayOptions::default().with_io(IoMode::Pread);
        let options = self.resolve(format, &options, &ArrayOptions::default()).ok()?;
        self.open(format, place, &options).await.err()
    }
}
