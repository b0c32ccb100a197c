//! [`FileLabel`]: the part of the path of a file, or of a group in a file, that is its label along a new dimension.
//!
//! ```text
//!   pattern   v*/sst_{time:%Y%m%d}.nc
//!   path      data/v2/sst_20240131.nc      the last two names are compared with the pattern
//!                         └──────┘ 2024-01-31T00:00:00
//! ```

use chrono::format::{Item, Parsed, StrftimeItems, parse_and_remainder};
use chrono::{NaiveDate, NaiveDateTime, NaiveTime};
use glob::{MatchOptions, Pattern};

use crate::error::{Error, Result};

/// Wildcards stand for no `/`.
pub(super) const OPTIONS: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: false,
};

/// A pattern of paths with one part that is a label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileLabel {
    /// The whole pattern, for messages.
    pattern: String,
    before: Pattern,
    after: Pattern,
    /// The format of a time, as `strftime` has it; `None` for any text.
    time: Option<String>,
    /// The number of names in the pattern, with `/` between them.
    names: usize,
}

impl FileLabel {
    /// Parses a pattern such as `sst_{time:%Y%m%d}.nc`, the value of an option. Returns the name in braces, too.
    ///
    /// # Errors
    /// `Usage` unless there is one pair of braces with a name, and a known format of times after a colon.
    pub(super) fn parse(option: &str, pattern: &str) -> Result<(String, Self)> {
        let wrong = |why: &str| {
            Error::usage(format!(
                "option '{option}' is '{pattern}', {why}; expected a pattern such as 'sst_{{time:%Y%m%d}}.nc'"
            ))
        };
        let parts = pattern.split_once('{').and_then(|(before, rest)| {
            let (field, after) = rest.split_once('}')?;
            Some((before, field, after))
        });
        let Some((before, field, after)) = parts else { return Err(wrong("without a '}'")) };
        if before.contains('}') || field.contains('{') || after.contains(['{', '}']) {
            return Err(wrong("which has several labels"));
        }
        let (name, time) = match field.split_once(':') {
            Some((name, time)) => (name.trim(), Some(time.to_owned())),
            None => (field.trim(), None),
        };
        if name.is_empty() {
            return Err(wrong("whose label has no name"));
        }
        let is_odd = |item: Item<'_>| matches!(item, Item::Error);
        let is_odd = |time: &String| time.is_empty() || StrftimeItems::new(time).any(is_odd);
        if time.as_ref().is_some_and(is_odd) {
            return Err(wrong("whose format of times is unknown"));
        }
        let glob = |part: &str| Pattern::new(part).map_err(|error| wrong(error.msg));
        let label = Self {
            pattern: pattern.to_owned(),
            before: glob(before)?,
            after: glob(after)?,
            time,
            names: before.matches('/').count() + after.matches('/').count() + 1,
        };
        Ok((name.to_owned(), label))
    }

    /// Returns the label in a path, as text. A time is one such as `2024-01-31T00:00:00`.
    ///
    /// # Errors
    /// `Usage` if the path does not match.
    pub fn of(&self, path: &str) -> Result<String> {
        let path = path.trim_end_matches('/');
        let begin = path.rmatch_indices('/').nth(self.names - 1).map_or(0, |(at, _)| at + 1);
        self.within(&path[begin..]).ok_or_else(|| {
            let message = format!("the path does not match option 'stack', '{}'", self.pattern);
            Error::usage(message).in_file(path)
        })
    }

    /// Returns the label in a path that has as many names as the pattern; `None` if it does not match.
    pub(super) fn of_whole(&self, path: &str) -> Option<String> {
        self.within(path).filter(|_| path.matches('/').count() + 1 == self.names)
    }

    /// Finds the label in a name. If several match, takes the one that begins first, and is shortest.
    fn within(&self, name: &str) -> Option<String> {
        let borders = || name.char_indices().map(|(at, _)| at).chain([name.len()]);
        let begins = borders().filter(|at| self.before.matches_with(&name[..*at], OPTIONS));
        begins.into_iter().find_map(|begin| match &self.time {
            Some(time) => {
                let (time, rest) = parsed(&name[begin..], time)?;
                let is_end = self.after.matches_with(rest, OPTIONS);
                is_end.then(|| time.format("%Y-%m-%dT%H:%M:%S%.f").to_string())
            }
            None => {
                let is_end = |end: &usize| self.after.matches_with(&name[*end..], OPTIONS);
                let end = borders().filter(|end| *end > begin).find(is_end)?;
                let label = &name[begin..end];
                (!label.contains('/')).then(|| label.to_owned())
            }
        })
    }
}

/// Parses a time at the beginning of `text`, and returns the rest. Months, days and hours that the format lacks are the first.
fn parsed<'a>(text: &'a str, format: &str) -> Option<(NaiveDateTime, &'a str)> {
    // A year may have a sign, and here a hyphen is more likely a part of the name.
    if text.starts_with(['-', '+']) {
        return None;
    }
    let mut parsed = Parsed::new();
    let rest = parse_and_remainder(&mut parsed, text, StrftimeItems::new(format)).ok()?;
    let date = parsed.to_naive_date().or_else(|_| {
        let has_week = parsed.ordinal().or(parsed.isoweek()).or(parsed.day()).is_some();
        // A week or a day without its year or month is no date.
        let month = parsed.month().unwrap_or(1);
        let date = parsed.year().and_then(|year| NaiveDate::from_ymd_opt(year, month, 1));
        date.filter(|_| !has_week).ok_or(())
    });
    let has_time = parsed.hour_div_12().is_some() || parsed.minute().is_some();
    let time = match (parsed.to_naive_time(), has_time) {
        (Ok(time), _) => time,
        (Err(_), false) => NaiveTime::MIN,
        // An hour without minutes.
        (Err(_), true) => {
            let hour = parsed.hour_div_12()? * 12 + parsed.hour_mod_12()?;
            parsed.minute().is_none().then(|| NaiveTime::from_hms_opt(hour, 0, 0))??
        }
    };
    Some((date.ok()?.and_time(time), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(pattern: &str, path: &str) -> Option<String> {
        FileLabel::parse("stack", pattern).unwrap().1.of(path).ok()
    }

    #[test]
    fn labels_are_parts_of_paths() {
        for (pattern, path, expected) in [
            ("sst_{time:%Y%m%d}.nc", "data/sst_20240131.nc", Some("2024-01-31T00:00:00")),
            ("sst_{time:%Y%m%d}.nc", "sst_20240132.nc", None),
            ("sst_{time:%Y%m%d}.nc", "data/sst_202401.nc", None),
            ("sst_{time:%Y%m%d}.nc", "data/a_sst_20240131.nc", None),
            ("*_{time:%Y}.nc", "tas_day_1999.nc", Some("1999-01-01T00:00:00")),
            ("*{time:%Y-%m}*", "tas-1999-07-x.nc", Some("1999-07-01T00:00:00")),
            ("A{time:%Y%j}.*.nc", "/d/A2024060.L3m.nc", Some("2024-02-29T00:00:00")),
            ("{t:%Y%m%d%H}.nc", "2024013106.nc", Some("2024-01-31T06:00:00")),
            ("{t:%Y%m%dT%H%M%S}Z.nc", "20240131T063015Z.nc", Some("2024-01-31T06:30:15")),
            ("{run}/*.nc", "a/b/r1i1p1f1/tas_1.nc", Some("r1i1p1f1")),
            ("{run}/*.nc", "tas_1.nc", None),
            ("tas_{run}_*.nc", "tas_a_b_c.nc", Some("a")),
            ("{é}.nc", "dé/ü.nc", Some("ü")),
            ("{run}", "s3/bucket/store.zarr/", Some("store.zarr")),
            ("{a}.nc", ".nc", None),
        ] {
            assert_eq!(label(pattern, path).as_deref(), expected, "{pattern} in {path}");
        }
    }

    #[test]
    fn patterns_that_are_none_have_a_reason() {
        for (pattern, reason) in [
            ("{time", "without a '}'"),
            ("{a}_{b}.nc", "several labels"),
            ("{}.nc", "no name"),
            ("{time:%Q}.nc", "format of times"),
            ("{time:}.nc", "format of times"),
            ("[{a}.nc", "expected a pattern"),
        ] {
            let error = FileLabel::parse("stack", pattern).unwrap_err().to_string();
            assert!(error.contains(reason), "{pattern}: {error}");
        }
    }
}
