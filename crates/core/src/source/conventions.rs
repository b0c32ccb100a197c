//! [`Conventions`]: what attributes tell about a variable, beside its type and shape.

use super::description::{Fact, PageTable, Side};
use super::known_dataset::KnownDataset;
use crate::array::{Property, ValueColumn};

/// Facts in the attributes of a variable: about its values, and the names of variables that belong to it. `None` stands for no
/// such fact.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Conventions {
    /// The stored values that are NULL.
    pub missing: Option<String>,
    /// The factor and the offset of packed values.
    pub packing: Option<String>,
    /// The calendar of times.
    pub calendar: Option<String>,
    /// The names of its coordinates.
    pub coordinates: Option<String>,
    /// The name of its grid mapping.
    pub grid_mapping: Option<String>,
    /// The name of the variable with its bounds.
    pub bounds: Option<String>,
}

impl Conventions {
    /// Takes the missing values and the packing of a column. NaN is always missing, and not listed.
    #[must_use]
    pub fn with_column(self, column: &ValueColumn) -> Self {
        let properties = column.properties();
        let text = |wanted: Property| {
            let found = properties.iter().find(|(property, _)| *property == wanted);
            found.map(|(_, text)| text.clone()).filter(|text| text != "none")
        };
        Self { missing: text(Property::FillValue), packing: text(Property::Packing), ..self }
    }

    /// Returns the fields of its record in the document.
    pub fn fields(&self) -> Vec<(&'static str, Fact)> {
        vec![
            ("missing", self.missing.as_deref().into()),
            ("packing", self.packing.as_deref().into()),
            ("calendar", self.calendar.as_deref().into()),
            ("coordinates", self.coordinates.as_deref().into()),
            ("grid_mapping", self.grid_mapping.as_deref().into()),
            ("bounds", self.bounds.as_deref().into()),
        ]
    }

    /// Makes the table of a page, with a row for each dataset of which there is something to tell.
    pub fn table<'a>(
        heading: &'static str,
        all: impl IntoIterator<Item = (&'a KnownDataset, &'a Self)>,
    ) -> PageTable {
        let columns = [
            (heading, Side::Left),
            ("NULL", Side::Left),
            ("PACKING", Side::Left),
            ("NOT STORED", Side::Left),
            ("COORDINATES", Side::Left),
            ("GRID MAPPING", Side::Left),
            ("BOUNDS", Side::Left),
        ];
        let rows = all.into_iter().filter_map(|(dataset, it)| {
            let missing = dataset.chunks.zip(dataset.stored_chunks);
            let missing = missing.map(|(chunks, stored)| chunks.saturating_sub(stored));
            let missing = missing.filter(|chunks| *chunks > 0);
            let facts = [
                it.missing.clone(),
                it.packing.clone(),
                missing.map(|chunks| format!("{chunks} of {} chunks", dataset.chunks.unwrap_or(0))),
                it.coordinates.clone(),
                it.grid_mapping.clone(),
                it.bounds.clone(),
            ];
            let [missing, packing, absent, coordinates, mapping, bounds] = facts;
            let is_told = [&missing, &packing, &absent, &coordinates, &mapping, &bounds];
            let name = is_told.iter().any(|it| it.is_some()).then(|| dataset.name.clone())?;
            Some([Some(name), missing, packing, absent, coordinates, mapping, bounds])
        });
        PageTable::new(columns, rows)
    }
}

/// Adds a calendar to units, unless it is that of SQL: `days since 1850-01-01 (noleap)`.
pub(crate) fn units_text(units: Option<&str>, calendar: Option<&str>) -> Option<String> {
    /// The names of SQL's calendar.
    const SHARED: [&str; 3] = ["standard", "gregorian", "proleptic_gregorian"];
    let units = units?.to_owned();
    let is_shared = |name: &&str| !SHARED.iter().any(|it| it.eq_ignore_ascii_case(name.trim()));
    Some(match calendar.filter(is_shared).filter(|_| units.contains(" since ")) {
        Some(calendar) => format!("{units} ({})", calendar.trim()),
        None => units,
    })
}
