//! Values of options: what they may be, and where they are kept.

use std::fmt;
use std::str::FromStr;

use arrow::compute::kernels::cast_utils::string_to_datetime;
use chrono::Utc;

use crate::error::{Error, Result};
use crate::format::tiledb::EncryptionKey;

/// How a local file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum IoMode {
    /// Through a memory mapping, without copies.
    ///
    /// A file that is written after it was opened is an error, as its length and the time of its last change
    /// are looked at before and after each chunk. In between nothing can: if a file is cut, or its disk fails,
    /// while a chunk of it is looked at, Unix sends the process SIGBUS, which ends it. A program that wants a
    /// last word handles the signal; [`MappedFile`](crate::io::MappedFile) tells its handler which file it
    /// was. Files that are replaced as a whole, by renaming a new one, are never in danger.
    #[default]
    Mmap,
    /// Through positioned reads: a copy, but safe where files are cut or overwritten while they are read.
    Pread,
}

impl FromStr for IoMode {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "mmap" => Ok(Self::Mmap),
            "pread" => Ok(Self::Pread),
            _ => Err(Error::usage(format!("io = '{text}', expected 'mmap' or 'pread'"))),
        }
    }
}

impl fmt::Display for IoMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mmap => "mmap",
            Self::Pread => "pread",
        })
    }
}

/// What the value of an option may be. `Display` says it in Markdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ValueKind {
    /// `true` or `false`.
    Flag,
    /// A way to read local files: [`IoMode`].
    Io,
    /// A whole number.
    Number,
    /// Milliseconds since 1970, or a date and time in UTC.
    Time,
    /// An encryption key.
    Key,
    /// A name.
    Name,
}

impl fmt::Display for ValueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Flag => "`true`, `false`",
            Self::Io => "`mmap`, `pread`",
            Self::Number => "a number",
            Self::Time => "a time",
            Self::Key => "32 characters",
            Self::Name => "a name",
        })
    }
}

/// Where an option is kept. `None` in there means that nothing was said.
#[derive(Debug)]
pub(crate) enum Slot<'a> {
    /// May be unset.
    Flag(&'a mut Option<bool>),
    /// Has a value always.
    Switch(&'a mut bool),
    Io(&'a mut Option<IoMode>),
    Number(&'a mut Option<u64>),
    /// Has a value always.
    Bytes(&'a mut usize),
    Time(&'a mut Option<u64>),
    /// The beginning of time if nothing was said.
    Since(&'a mut u64),
    Key(&'a mut Option<EncryptionKey>),
    Name(&'a mut Option<String>),
}

impl Slot<'_> {
    /// What is kept here.
    #[cfg(test)]
    pub(crate) fn kind(&self) -> ValueKind {
        match self {
            Self::Flag(_) | Self::Switch(_) => ValueKind::Flag,
            Self::Io(_) => ValueKind::Io,
            Self::Number(_) | Self::Bytes(_) => ValueKind::Number,
            Self::Time(_) | Self::Since(_) => ValueKind::Time,
            Self::Key(_) => ValueKind::Key,
            Self::Name(_) => ValueKind::Name,
        }
    }

    /// Sets the option called `name`.
    ///
    /// # Errors
    /// `Usage` for a value that it cannot have; the message never holds a key.
    pub(crate) fn set(self, name: &str, value: &str) -> Result<()> {
        match self {
            Self::Flag(slot) => *slot = Some(parse_flag(name, value)?),
            Self::Switch(slot) => *slot = parse_flag(name, value)?,
            Self::Io(slot) => *slot = Some(value.parse()?),
            Self::Number(slot) => *slot = Some(parse_number(name, value)?),
            Self::Bytes(slot) => *slot = parse_number(name, value)?,
            Self::Time(slot) => *slot = Some(parse_time(name, value)?),
            Self::Since(slot) => *slot = parse_time(name, value)?,
            Self::Key(slot) => *slot = Some(EncryptionKey::new(value.as_bytes())?),
            Self::Name(slot) => *slot = Some(value.to_owned()),
        }
        Ok(())
    }

    /// Takes back what was said, if it can be taken back.
    pub(crate) fn clear(self) -> bool {
        match self {
            Self::Flag(slot) => *slot = None,
            Self::Io(slot) => *slot = None,
            Self::Number(slot) | Self::Time(slot) => *slot = None,
            Self::Key(slot) => *slot = None,
            Self::Name(slot) => *slot = None,
            Self::Since(_) | Self::Switch(_) | Self::Bytes(_) => return false,
        }
        true
    }

    /// What was said, as text. A key is never shown.
    pub(crate) fn text(&self) -> Option<String> {
        match self {
            Self::Flag(slot) => slot.map(|flag| flag.to_string()),
            Self::Switch(slot) => Some(slot.to_string()),
            Self::Io(slot) => slot.map(|io| io.to_string()),
            Self::Number(slot) | Self::Time(slot) => slot.map(|number| number.to_string()),
            Self::Bytes(slot) => Some(slot.to_string()),
            Self::Since(slot) => Some(slot.to_string()),
            Self::Key(slot) => slot.as_ref().map(|_| "…".to_owned()),
            Self::Name(slot) => (*slot).clone(),
        }
    }
}

fn parse_flag(name: &str, value: &str) -> Result<bool> {
    match value.to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(Error::usage(format!("option '{name}' is '{value}', expected 'true' or 'false'"))),
    }
}

fn parse_number<T: FromStr>(name: &str, value: &str) -> Result<T> {
    let expected = || Error::usage(format!("option '{name}' is '{value}', expected a number"));
    value.parse().map_err(|_| expected())
}

/// A time in milliseconds since 1970; one without a time zone is in UTC.
fn parse_time(name: &str, text: &str) -> Result<u64> {
    if let Ok(milliseconds) = text.parse() {
        return Ok(milliseconds);
    }
    let time = string_to_datetime(&Utc, text).ok().map(|time| time.timestamp_millis());
    time.and_then(|time| u64::try_from(time).ok()).ok_or_else(|| {
        Error::usage(format!(
            "option '{name}' is '{text}', expected milliseconds since 1970 or a time like '2024-03-01 06:30:00'"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_in_every_form() {
        for (text, expected) in [
            ("0", 0),
            ("1709274600000", 1_709_274_600_000),
            ("2024-03-01", 1_709_251_200_000),
            ("2024-03-01 06:30:00", 1_709_274_600_000),
            ("2024-03-01T06:30:00.25", 1_709_274_600_250),
            ("2024-03-01T06:30:00Z", 1_709_274_600_000),
            ("2024-03-01T08:30:00+02:00", 1_709_274_600_000),
            ("2024-03-01 08:30:00 +02:00", 1_709_274_600_000),
        ] {
            assert_eq!(parse_time("timestamp", text).unwrap(), expected, "{text}");
        }
        for bad in [
            "",
            "yesterday",
            "-1",
            "1969-12-31",
            "2024-13-01",
            "2024-02-30",
            "2024-03-01 06:30:00 ж",
        ] {
            assert!(parse_time("timestamp", bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_was_said_is_shown_and_taken_back() {
        let mut flag = None;
        Slot::Flag(&mut flag).set("x", "TRUE").unwrap();
        assert_eq!(Slot::Flag(&mut flag).text().as_deref(), Some("true"));
        assert!(Slot::Flag(&mut flag).clear());
        assert_eq!(flag, None);
        let mut key = None;
        Slot::Key(&mut key).set("key", "0123456789abcdef0123456789ABCDEF").unwrap();
        assert_eq!(Slot::Key(&mut key).text().as_deref(), Some("…"));
        let mut switch = true;
        assert!(!Slot::Switch(&mut switch).clear());
        assert!(Slot::Bytes(&mut 0).set("x", "1 GB").is_err());
    }
}
