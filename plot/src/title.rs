//! The title of a column, and what is known of its values.

use crate::calendar_units::CalendarUnits;
use crate::invisible::is_invisible;
use crate::role::Role;

/// The name of a column, the unit of its values, and their meaning if that is known.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Title {
    /// The text beside the axis, or in the legend.
    pub name: String,
    /// The unit of the values, which the axis shows in brackets behind the name.
    pub unit: Option<String>,
    /// The meaning of the values.
    pub role: Role,
    /// How numbers become dates of a calendar that timestamps do not have.
    pub calendar: Option<CalendarUnits>,
}

impl Title {
    /// A title without a unit.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    pub(crate) fn printable(&self) -> Self {
        let unit = self.unit.as_deref().map(printable);
        Self { name: printable(&self.name), unit, ..self.clone() }
    }
}

/// Escapes control characters, which are invalid in SVG and are commands to a terminal, and those that show nothing or turn the
/// text around.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            c if c.is_control() => shown.extend(c.escape_default()),
            c if is_invisible(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown
}
