//! Values of options, and their parsing from text.
//!
//! An option has a [`ValueKind`], which turns any value into the [`OptionValue`] of that kind, or refuses
//! it:
//!
//! | kind | accepts | becomes |
//! |---|---|---|
//! | `Flag` | true, `'true'`, `'FALSE'` | `Flag` |
//! | `Io` | `'mmap'`, `'pread'` | `Text` |
//! | `Number` | 7, `'7'` | `Number` |
//! | `Time` | 1709251200000, `'2024-03-01'`, `'2024-03-01T08:30:00+02:00'` | `Number` of milliseconds |
//! | `Key` | a secret, a text of 32 bytes | `Secret` |
//! | `Encoding` | `'latin1'`, and other character sets | `Text` |
//! | `Choice` | one of some words | `Text` |
//! | `Names` | some words in any case, or names with commas between them | `Text` |
//! | `Name` | everything but a secret | `Text` |

use std::fmt;
use std::str::FromStr;

use arrow::compute::kernels::cast_utils::string_to_datetime;
use chrono::{NaiveDate, NaiveDateTime, NaiveTime, Utc};

use crate::array::Encoding;
use crate::error::{Error, Result};

/// How to read local files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum IoMode {
    /// Through a memory mapping, without copies.
    ///
    /// The length and modification time of a file are compared before and after each chunk. A query fails if a
    /// file was written since it was opened. No check can help while a chunk is being read: if the file is
    /// truncated or its disk fails then, Unix ends the process with SIGBUS. A program may handle the signal;
    /// [`MappedFile`](crate::io::MappedFile) gives the handler the name of the file. Files that are replaced as a
    /// whole, by renaming a new file, are safe.
    #[default]
    Mmap,
    /// Through positioned reads. These copy the bytes, but a file that is truncated meanwhile cannot end the
    /// process.
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

/// A text that must not be printed, such as an encryption key. `Debug` hides the content.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Secret(String);

impl Secret {
    /// Makes a secret of `content`.
    pub fn new(content: impl Into<String>) -> Self {
        Self(content.into())
    }

    /// Returns the content in clear.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The value of an option.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OptionValue {
    /// True or false.
    Flag(bool),
    /// A whole number, or a time in milliseconds since 1970.
    Number(u64),
    /// A name, or any value before it is resolved.
    Text(String),
    /// An encryption key.
    Secret(Secret),
}

impl From<bool> for OptionValue {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<u64> for OptionValue {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for OptionValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for OptionValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<IoMode> for OptionValue {
    fn from(io: IoMode) -> Self {
        Self::Text(io.to_string())
    }
}

impl From<Secret> for OptionValue {
    fn from(secret: Secret) -> Self {
        Self::Secret(secret)
    }
}

/// Formats the value as in SQL, and a secret as `…`.
impl fmt::Display for OptionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => flag.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => f.write_str(text),
            Self::Secret(_) => f.write_str("…"),
        }
    }
}

/// The kind of values that an option accepts. `Display` describes it in Markdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ValueKind {
    /// `true` or `false`.
    Flag,
    /// An [`IoMode`].
    Io,
    /// A whole number.
    Number,
    /// Milliseconds since 1970, or a date and time in UTC.
    Time,
    /// An encryption key of 32 bytes.
    Key,
    /// The name of a character set.
    Encoding,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// One of these words in any case, or names with commas between them.
    Names(&'static [&'static str]),
    /// Any text.
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
            Self::Encoding => "a character set",
            Self::Choice(words) => {
                let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
                return f.write_str(&words.join(", "));
            }
            Self::Names(words) => {
                let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
                return write!(f, "{}, names", words.join(", "));
            }
            Self::Name => "a name",
        })
    }
}

impl ValueKind {
    /// Converts the value of the option `name` to this kind.
    ///
    /// # Errors
    /// `Usage` for a value of another kind. The message never contains a key.
    pub(super) fn resolve(self, name: &str, value: &OptionValue) -> Result<OptionValue> {
        // Values that have the kind already are returned as they are. All others are parsed from their
        // text. The length of a secret is checked by the format that uses it, not here.
        let text = match (self, value) {
            (Self::Flag, OptionValue::Flag(_))
            | (Self::Number | Self::Time, OptionValue::Number(_))
            | (Self::Key, OptionValue::Secret(_)) => return Ok(value.clone()),
            (Self::Key, OptionValue::Text(text)) => {
                return key(text);
            }
            (_, OptionValue::Secret(_)) => {
                return Err(Error::usage(format!("option '{name}' is a key, expected {self}")));
            }
            (_, other) => other.to_string(),
        };
        Ok(match self {
            Self::Flag => OptionValue::Flag(parse_flag(name, &text)?),
            Self::Number => OptionValue::Number(parse_number(name, &text)?),
            Self::Time => OptionValue::Number(parse_time(name, &text)?),
            Self::Io => text.parse::<IoMode>()?.into(),
            Self::Encoding if Encoding::from_name(&text).is_none() => {
                return Err(Error::usage(format!(
                    "option '{name}' is '{text}', expected a character set such as 'utf-8', 'latin1' or 'windows-1252'"
                )));
            }
            Self::Choice(words) if !words.contains(&text.as_str()) => {
                let words = words.join("', '");
                return Err(Error::usage(format!(
                    "option '{name}' is '{text}', expected one of '{words}'"
                )));
            }
            Self::Names(words) => {
                let word = words.iter().find(|word| word.eq_ignore_ascii_case(&text));
                OptionValue::Text(word.map_or(text, |word| (*word).to_owned()))
            }
            Self::Encoding | Self::Choice(_) | Self::Name => OptionValue::Text(text),
            Self::Key => key(&text)?,
        })
    }
}

/// The length of an encryption key in bytes. AES-256, the only cipher of TileDB, needs 32 bytes.
const KEY_LEN: usize = 32;

/// Makes a secret of a key. The error has only the length of the text, because messages may end up in logs.
fn key(text: &str) -> Result<OptionValue> {
    match text.len() {
        KEY_LEN => Ok(OptionValue::Secret(Secret::new(text))),
        len => Err(Error::usage(format!("an encryption key of {len} bytes, expected {KEY_LEN}"))),
    }
}

/// Parses a flag in any case. Numbers are no flags, so `1` is refused.
fn parse_flag(name: &str, value: &str) -> Result<bool> {
    match value.to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(Error::usage(format!("option '{name}' is '{value}', expected 'true' or 'false'"))),
    }
}

fn parse_number(name: &str, value: &str) -> Result<u64> {
    let expected = || Error::usage(format!("option '{name}' is '{value}', expected a number"));
    value.parse().map_err(|_| expected())
}

/// Parses a time as milliseconds since 1970. A time without a time zone is in UTC. Digits alone are
/// milliseconds, so `2024` is a time in 1970, not a year. Times before 1970 are refused.
fn parse_time(name: &str, text: &str) -> Result<u64> {
    if let Ok(milliseconds) = text.parse() {
        return Ok(milliseconds);
    }
    // Arrow's parser accepts only two-digit months, days and hours. These forms accept `2024-3-1 6:30:00`
    // too.
    let loosely = || {
        let day =
            NaiveDate::parse_from_str(text, "%Y-%m-%d").map(|day| day.and_time(NaiveTime::MIN));
        day.or_else(|_| NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f"))
    };
    let time = string_to_datetime(&Utc, text).or_else(|_| loosely().map(|time| time.and_utc()));
    let time = time.ok().map(|time| time.timestamp_millis());
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
            ("2024-3-1", 1_709_251_200_000),
            ("2024-3-1 6:30:00", 1_709_274_600_000),
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
    fn values_take_their_kind() {
        let resolve = |kind: ValueKind, value: OptionValue| kind.resolve("x", &value);
        assert_eq!(resolve(ValueKind::Flag, "TRUE".into()).unwrap(), OptionValue::Flag(true));
        assert_eq!(resolve(ValueKind::Number, 7.into()).unwrap(), OptionValue::Number(7));
        assert_eq!(resolve(ValueKind::Name, 7.into()).unwrap(), OptionValue::Text("7".into()));
        assert_eq!(
            resolve(ValueKind::Encoding, "L1".into()).unwrap(),
            OptionValue::Text("L1".into())
        );
        assert!(resolve(ValueKind::Encoding, "latin0".into()).is_err());
        assert!(resolve(ValueKind::Number, "1 GB".into()).is_err());
        let choice = ValueKind::Choice(&["first", "last"]);
        assert_eq!(resolve(choice, "last".into()).unwrap(), OptionValue::Text("last".into()));
        let error = resolve(choice, "lst".into()).unwrap_err().to_string();
        assert!(error.contains("'lst', expected one of 'first', 'last'"), "{error}");
        let names = ValueKind::Names(&["true", "false"]);
        assert_eq!(resolve(names, true.into()).unwrap(), OptionValue::Text("true".into()));
        assert_eq!(resolve(names, "FALSE".into()).unwrap(), OptionValue::Text("false".into()));
        assert_eq!(resolve(names, "Lat, x".into()).unwrap(), OptionValue::Text("Lat, x".into()));
        assert_eq!(names.to_string(), "`true`, `false`, names");
        assert!(resolve(ValueKind::Flag, 1.into()).is_err());
        let text = "0123456789abcdef0123456789ABCDEF";
        let key = resolve(ValueKind::Key, text.into()).unwrap();
        assert!(resolve(ValueKind::Key, "0123".into()).is_err());
        assert_eq!((key.to_string().as_str(), format!("{key:?}").contains("0123")), ("…", false));
        assert!(resolve(ValueKind::Name, key).is_err());
    }
}
