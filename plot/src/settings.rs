//! The settings of axes and colours.

use crate::column::Values;
use crate::error::{Result, refuse};

/// How positions follow values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences are equally long.
    #[default]
    Linear,
    /// Equal ratios are equally long; only positive values have a place.
    Log,
}

impl Scale {
    /// Returns a number that is proportional to the place of a value; NaN if it has no place.
    pub(crate) fn place(self, value: f64) -> f64 {
        match self {
            Self::Linear => value,
            Self::Log if value > 0.0 => value.ln(),
            Self::Log => f64::NAN,
        }
    }

    /// Returns the value at a place.
    pub(crate) fn value(self, place: f64) -> f64 {
        match self {
            Self::Linear => place,
            Self::Log => place.exp().clamp(f64::MIN_POSITIVE, f64::MAX),
        }
    }

    /// Returns the least and the greatest finite value that have a place; `None` if there is none.
    pub(crate) fn range(self, data: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
        let placed = data.into_iter().filter(|it| it.is_finite() && self.place(*it).is_finite());
        placed.fold(None, |range, value| match range {
            None => Some((value, value)),
            Some((low, high)) => Some((value.min(low), value.max(high))),
        })
    }
}

/// The ends of an axis, as text: numbers, or dates and times. An end without text follows the data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Limits {
    /// The lower end.
    pub low: Option<String>,
    /// The upper end.
    pub high: Option<String>,
}

impl Limits {
    /// Parses `LOW..HIGH`, where one of both may be left out.
    ///
    /// # Errors
    /// `Usage` if there is no `..`, or no limit.
    pub fn parse(text: &str) -> Result<Self> {
        let end = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        match text.split_once("..").map(|(low, high)| (end(low), end(high))) {
            Some((low, high)) if low.is_some() || high.is_some() => Ok(Self { low, high }),
            _ => refuse("limits are written LOW..HIGH, such as 0..10, 0.. or 2024-01..2024-06"),
        }
    }

    /// Replaces the ends of a range of such values.
    ///
    /// # Errors
    /// `Usage` if a limit is no such value, has no place on the scale, or is not below the other.
    pub(crate) fn applied(
        &self,
        (low, high): (f64, f64),
        values: &Values,
        scale: Scale,
    ) -> Result<(f64, f64)> {
        let end = |text: &Option<String>, or: f64| {
            text.as_deref().map_or(Ok(or), |text| value(text, values, scale))
        };
        let (from, to) = (end(&self.low, low)?, end(&self.high, high)?);
        if from < to {
            return Ok((from, to));
        }
        let shown = |text: &Option<String>, or: f64| text.clone().unwrap_or_else(|| or.to_string());
        let (from, to) = (shown(&self.low, low), shown(&self.high, high));
        refuse(format!("the lower limit {from} is not below the upper limit {to}"))
    }
}

fn value(text: &str, values: &Values, scale: Scale) -> Result<f64> {
    let (value, what) = match values {
        Values::Names(_) => return refuse(format!("limit {text}: an axis of text has no limits")),
        Values::Times(calendar) => (calendar.instant(text), "a date or time such as 2024-01-31"),
        Values::Numbers => (text.parse().ok(), "a number"),
    };
    match value.filter(|value| value.is_finite()) {
        None => refuse(format!("limit {text} is not {what}")),
        Some(value) if scale.place(value).is_nan() => refuse(format!(
            "limit {text} has no place on a logarithmic scale; limits are positive there"
        )),
        Some(value) => Ok(value),
    }
}

/// The settings of an axis.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AxisSettings {
    /// Its ends.
    pub limits: Limits,
    /// How positions follow values.
    pub scale: Scale,
    /// Whether it runs against its usual direction.
    pub is_inverted: bool,
}

/// The settings of colours that stand for values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColorSettings {
    /// The values of the first and the last colour.
    pub limits: Limits,
    /// How colours follow values.
    pub scale: Scale,
    /// The colours; `None` chooses them by the column.
    pub map: Option<ColorMap>,
}

/// The colours of values. All are distinct for the colour-blind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColorMap {
    /// From dark violet over green to yellow.
    Viridis,
    /// From dark blue over grey to yellow.
    Cividis,
    /// From black over red to light yellow.
    Magma,
    /// From white to black.
    Grays,
    /// From blue over light grey to red, for values on both sides of zero.
    Diverging,
    /// A colour for each value, for a few whole numbers.
    Categories,
}

/// The values that have a contour line.
#[derive(Debug, Clone, PartialEq)]
pub enum Contours {
    /// The values that the bar of colours names.
    Auto,
    /// These values, in ascending order.
    At(Vec<f64>),
}

impl Contours {
    /// The most values that have a line.
    const MOST: usize = 50;

    /// Parses `auto`, or numbers with commas between them.
    ///
    /// # Errors
    /// `Usage` if a part is no number, or there are too many.
    pub fn parse(text: &str) -> Result<Self> {
        if text.trim().eq_ignore_ascii_case("auto") {
            return Ok(Self::Auto);
        }
        let mut levels = vec![];
        for part in text.split(',').map(str::trim) {
            let level = part.parse().ok().filter(|it: &f64| it.is_finite());
            let Some(level) = level else {
                return refuse(format!(
                    "\"{part}\" is not a number; contour lines are auto, or numbers with commas such as 0,5,10"
                ));
            };
            levels.push(level);
        }
        levels.sort_by(f64::total_cmp);
        levels.dedup();
        match levels.len() {
            count if count > Self::MOST => {
                let most = Self::MOST;
                refuse(format!(
                    "{count} values have too many contour lines; at most {most} have one"
                ))
            }
            _ => Ok(Self::At(levels)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calendar::Calendar;

    fn applied(text: &str, values: &Values, scale: Scale) -> Result<(f64, f64)> {
        Limits::parse(text)?.applied((1.0, 2.0), values, scale)
    }

    #[test]
    fn limits_replace_the_ends_of_the_data() {
        let numbers = |text: &str| applied(text, &Values::Numbers, Scale::Linear).unwrap();
        assert_eq!(numbers("-1.5..3e2"), (-1.5, 300.0));
        assert_eq!(numbers("..7"), (1.0, 7.0));
        assert_eq!(numbers("0.."), (0.0, 2.0));
        let times = Values::Times(Calendar::Gregorian);
        let day = 86_400e6;
        let dates = applied("1970-01-02..1970-01-03 12:00", &times, Scale::Linear).unwrap();
        assert_eq!(dates, (day, 2.5 * day));
    }

    #[test]
    fn wrong_limits_are_refused() {
        let names = Values::Names(vec![]);
        for (text, values, scale, reason) in [
            ("1", &Values::Numbers, Scale::Linear, "LOW..HIGH"),
            ("..", &Values::Numbers, Scale::Linear, "LOW..HIGH"),
            ("a..b", &Values::Numbers, Scale::Linear, "limit a is not a number"),
            ("inf..", &Values::Numbers, Scale::Linear, "limit inf is not a number"),
            ("NaN..", &Values::Numbers, Scale::Linear, "limit NaN is not a number"),
            ("5..", &Values::Numbers, Scale::Linear, "limit 5 is not below the upper limit 2"),
            ("4..4", &Values::Numbers, Scale::Linear, "4 is not below the upper limit 4"),
            ("0..4", &Values::Numbers, Scale::Log, "limits are positive"),
            ("0..4", &names, Scale::Linear, "an axis of text has no limits"),
            ("1..4", &Values::Times(Calendar::Gregorian), Scale::Log, ""),
        ] {
            let error =
                applied(text, values, scale).map_or_else(|it| it.to_string(), |_| String::new());
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn contours_are_automatic_or_numbers() {
        assert_eq!(Contours::parse(" Auto ").unwrap(), Contours::Auto);
        assert_eq!(Contours::parse("5, -1,5,2e1").unwrap(), Contours::At(vec![-1.0, 5.0, 20.0]));
        let many: Vec<String> = (0..51).map(|at| at.to_string()).collect();
        for (text, reason) in [
            ("", "\"\" is not a number"),
            ("1,,2", "\"\" is not a number"),
            ("a.nc", "\"a.nc\" is not a number; contour lines are auto"),
            ("inf", "\"inf\" is not a number"),
            (&many.join(","), "51 values have too many"),
        ] {
            let error = Contours::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(reason), "{text}: {error}");
        }
    }
}
