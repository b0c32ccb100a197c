//! The origins of tables as messages: places, formats and options.

use datafusion::error::Result;

use super::known_files::files_message;
use super::messages::{JoinedOrigin, Origin, PlaceOf, Setting, SettingValue, SettingsOf};
use super::versions::version_message;
use crate::array::Contents;
use crate::error::{Error, has_secrets, shown_location};
use crate::options::{ArrayOptions, OptionValue};
use crate::source::{OriginPlace, TableOrigin};
use crate::tile::ObjectVersion;

/// Returns an origin as a message, with the versions of the objects that the table has read, and of those with its chunks.
///
/// # Errors
/// `Io` if a chunk was written since it was read. `Usage` for a table without an origin, and for keys and passwords, which must not travel.
pub(super) fn origin_message(
    name: &str,
    origin: Option<&TableOrigin>,
    versions: Vec<ObjectVersion>,
    contents: &Contents,
) -> Result<Origin> {
    let origin = origin.ok_or_else(|| {
        Error::usage(format!(
            "\"{name}\" is an array that this program opened itself, so another process cannot open it; register it by \
             its path or URL"
        ))
    })?;
    if !origin.side_by_side.is_empty() {
        let part = |part: &crate::source::JoinedOrigin| {
            let axes = part.axes.iter().map(|axis| *axis as u64).collect();
            let origin =
                origin_message(name, Some(&part.origin), part.versions.clone(), &part.contents)?;
            let starts = part.ranges.iter().map(|range| range.start).collect();
            let ends = part.ranges.iter().map(|range| range.end).collect();
            Ok(JoinedOrigin { origin, axes, starts, ends })
        };
        let side_by_side = origin.side_by_side.iter().map(part).collect::<Result<_>>()?;
        return Ok(Origin { side_by_side, ..Origin::default() });
    }
    refuse_secrets(origin)?;
    let files = origin.files.as_ref().map(|files| files_message(files, &origin.places));
    let files = files.transpose()?.flatten();
    // Files have their own versions.
    let (versions, contents) = match &files {
        Some(_) => (vec![], vec![]),
        None => (versions, contents.versions()?),
    };
    Ok(Origin {
        locations: origin.locations.iter().map(shown_location).collect(),
        format: origin.format.clone(),
        options: settings(&origin.options)?,
        defaults: settings(&origin.defaults)?,
        places: origin.places.iter().map(place_message).collect::<Result<_>>()?,
        is_many: origin.is_many,
        versions: versions.iter().map(version_message).collect(),
        files,
        contents: contents.iter().map(version_message).collect(),
        side_by_side: vec![],
    })
}

/// Refuses a table that cannot be opened elsewhere without a secret, which no plan may hold.
///
/// # Errors
/// `Usage` for a URL with a password or a signature, and for an option that is a key.
pub(super) fn refuse_secrets(origin: &TableOrigin) -> Result<()> {
    for part in origin.side_by_side.iter() {
        refuse_secrets(&part.origin)?;
    }
    origin.places.iter().try_for_each(|place| refuse_secret_url(&place.location))?;
    settings(&origin.options).and_then(|_| settings(&origin.defaults)).map(drop)
}

/// Refuses a location that no plan for another process may hold.
///
/// ```
/// use gridfusion::codec::refuse_secret_url;
///
/// assert!(refuse_secret_url("https://host/a.parquet").is_ok());
/// assert!(refuse_secret_url("https://me:password@host/").is_err());
/// ```
///
/// # Errors
/// `Usage` for a URL with a password or a signature.
pub fn refuse_secret_url(location: &str) -> Result<()> {
    if !has_secrets(location) {
        return Ok(());
    }
    let message = "a URL with a password or a signature cannot be sent to another process; register its object \
                   store there, and leave them out";
    Err(Error::usage(message).in_file(location).into())
}

fn place_message(place: &OriginPlace) -> Result<PlaceOf> {
    let OriginPlace { location, format, options } = place.clone();
    let options = options.as_ref().map(settings).transpose()?;
    Ok(PlaceOf { location, format, options: options.map(|settings| SettingsOf { settings }) })
}

fn settings(options: &ArrayOptions) -> Result<Vec<Setting>> {
    let setting = |(name, value): (&str, &OptionValue)| {
        let value = match value {
            OptionValue::Flag(flag) => SettingValue::Flag(*flag),
            OptionValue::Number(number) => SettingValue::Number(*number),
            OptionValue::Text(text) => SettingValue::Text(text.clone()),
            OptionValue::Secret(_) => {
                let message = format!(
                    "option '{name}' is a secret, which is not sent to other processes, so they cannot read this table"
                );
                return Err(Error::usage(message).into());
            }
            _ => return Err(Error::internal(format!("option '{name}' has no message")).into()),
        };
        Ok(Setting { name: name.to_owned(), value: Some(value) })
    };
    options.iter().map(setting).collect()
}

/// Returns the origin of a message.
pub(super) fn origin_of(message: &Origin) -> TableOrigin {
    let place = |place: &PlaceOf| OriginPlace {
        location: place.location.clone(),
        format: place.format.clone(),
        options: place.options.as_ref().map(|it| options(&it.settings)),
    };
    TableOrigin::from_places(
        message.locations.clone().into(),
        message.format.clone(),
        options(&message.options),
        options(&message.defaults),
        message.places.iter().map(place).collect(),
        message.is_many,
    )
}

fn options(settings: &[Setting]) -> ArrayOptions {
    let with = |options: ArrayOptions, setting: &Setting| match &setting.value {
        Some(SettingValue::Flag(flag)) => options.with_option(&setting.name, *flag),
        Some(SettingValue::Number(number)) => options.with_option(&setting.name, *number),
        Some(SettingValue::Text(text)) => options.with_option(&setting.name, text.clone()),
        None => options,
    };
    settings.iter().fold(ArrayOptions::default(), with)
}
