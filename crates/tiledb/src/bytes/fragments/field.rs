//! The fields of a fragment: its attributes, its coordinates, and the times of its cells.
//!
//! Footers list sizes and blocks by the number of the field, in this order:
//!
//! ```text
//!   attributes   unused   dimensions   t         dt          dci
//!   a0, a1, …             d0, d1, …    time of   time of     number of the
//!                                      writing   deletion    delete condition
//! ```
//!
//! Only sparse fragments have files of coordinates. Only those that were consolidated can have the others.

use std::ops::Range;

use super::fragment::Fragment;
use crate::bytes::datatype::Datatype;
use crate::bytes::filter::Pipeline;
use crate::bytes::schema::{ArrayKind, DimensionDomain, ValuesPerCell};
use gridfusion_core::{Error, Result};

/// How the values of one field are stored.
#[derive(Debug, Clone, Copy)]
pub struct FieldSchema<'a> {
    /// The name of the attribute or dimension; `t`, `dt` or `dci` for times.
    pub name: &'a str,
    /// The type of the values.
    pub datatype: Datatype,
    /// How many values a cell has.
    pub values_per_cell: ValuesPerCell,
    /// Whether cells can be NULL.
    pub nullable: bool,
    pub(in crate::bytes) pipeline: &'a Pipeline,
}

impl FieldSchema<'_> {
    /// Returns the size of a cell in bytes; `None` if it varies.
    pub fn cell_size(&self) -> Option<u64> {
        match self.values_per_cell {
            ValuesPerCell::Fixed(values) => Some(u64::from(values) * self.datatype.size()),
            ValuesPerCell::Variable => None,
        }
    }

    /// Whether cells can have any number of values.
    pub fn is_variable(&self) -> bool {
        self.values_per_cell == ValuesPerCell::Variable
    }
}

/// The names of the fields of times, which are also the names of their files.
const TIMES: [&str; 3] = ["t", "dt", "dci"];

impl Fragment {
    /// Returns the number of the field with the coordinates of dimension number `dimension`.
    pub fn dimension_field(&self, dimension: usize) -> usize {
        self.schema.attributes.len() + 1 + dimension
    }

    /// Returns the number of the field with the time of each cell; `None` if all have the fragment's time.
    pub fn time_field(&self) -> Option<usize> {
        let field = self.dimension_field(self.schema.dimensions.len());
        self.footer.has_timestamps.then_some(field)
    }

    /// Returns the number of the field with the time at which each cell was deleted; `None` if no deletion
    /// has been applied to the fragment.
    pub fn delete_time_field(&self) -> Option<usize> {
        let times = self.dimension_field(self.schema.dimensions.len());
        let field = times + usize::from(self.footer.has_timestamps);
        self.footer.has_deletions.then_some(field)
    }

    /// Returns the numbers of the fields with coordinates and times of cells; dense fragments have none.
    pub fn coordinate_fields(&self) -> Range<usize> {
        let first = self.dimension_field(0);
        match self.schema.kind {
            ArrayKind::Dense => first..first,
            ArrayKind::Sparse => first..self.fields(),
        }
    }

    /// Returns the numbers of all fields that the fragment has tiles of.
    pub fn stored_fields(&self) -> impl Iterator<Item = usize> {
        (0..self.schema.attributes.len()).chain(self.coordinate_fields())
    }

    /// Returns the number of fields that the footer lists.
    pub(in crate::bytes) fn fields(&self) -> usize {
        let deletions = 2 * usize::from(self.footer.has_deletions);
        let times = usize::from(self.footer.has_timestamps) + deletions;
        self.dimension_field(self.schema.dimensions.len()) + times
    }

    /// Returns how a field is stored.
    ///
    /// # Errors
    /// `Internal` if the fragment has no such field.
    pub fn field(&self, field: usize) -> Result<FieldSchema<'_>> {
        let schema = &self.schema;
        if let Some(attribute) = schema.attributes.get(field) {
            return Ok(FieldSchema {
                name: &attribute.name,
                datatype: attribute.datatype,
                values_per_cell: attribute.values_per_cell,
                nullable: attribute.nullable,
                pipeline: &attribute.pipeline,
            });
        }
        let coordinates = &schema.coords_pipeline;
        let fixed = ValuesPerCell::Fixed(1);
        let number = field.checked_sub(self.dimension_field(0));
        if let Some(dimension) = number.and_then(|number| schema.dimensions.get(number)) {
            let is_text = dimension.domain == DimensionDomain::Text;
            return Ok(FieldSchema {
                name: &dimension.name,
                datatype: dimension.datatype,
                values_per_cell: if is_text { ValuesPerCell::Variable } else { fixed },
                nullable: false,
                // A dimension without filters of its own has those of all coordinates.
                pipeline: Some(&dimension.pipeline)
                    .filter(|own| !own.is_empty())
                    .unwrap_or(coordinates),
            });
        }
        let name = self.time_name(field);
        let name =
            name.ok_or_else(|| Error::internal("a field that the fragment does not have"))?;
        let datatype = Datatype::UInt64;
        Ok(FieldSchema {
            name,
            datatype,
            values_per_cell: fixed,
            nullable: false,
            pipeline: coordinates,
        })
    }

    /// Returns the name of a field of times; `None` for all other fields.
    fn time_name(&self, field: usize) -> Option<&'static str> {
        if Some(field) == self.time_field() {
            return Some(TIMES[0]);
        }
        let place = field.checked_sub(self.delete_time_field()?)?;
        TIMES.get(place.checked_add(1)?).copied()
    }

    /// Returns the name of a file of field number `field`. `suffix` is [`VALUES`](super::VALUES),
    /// [`CONTENT`](super::CONTENT) or [`VALIDITY`](super::VALIDITY).
    ///
    /// For the content of the first attribute "a/b", this is `a0_var.tdb` since format 9, `a%2Fb_var.tdb` in
    /// format 8 and `a/b_var.tdb` before.
    pub(in crate::bytes) fn data_file(&self, field: usize, suffix: &str) -> String {
        let name = || self.field(field).map_or("", |field| field.name);
        if self.time_name(field).is_some() {
            return format!("{}.tdb", name());
        }
        match (self.version, field.checked_sub(self.dimension_field(0))) {
            (..8, _) => format!("{}{suffix}.tdb", name()),
            (8, _) => format!("{}{suffix}.tdb", percent_encode(name())),
            (_, Some(dimension)) => format!("d{dimension}{suffix}.tdb"),
            (_, None) => format!("a{field}{suffix}.tdb"),
        }
    }
}

/// Encodes a field's name as format 8 does in file names. The last four codes are not those of
/// their characters, but TileDB writes them so.
fn percent_encode(name: &str) -> String {
    let encode = |c: char| match c {
        '!' | '#' | '$' | '%' | '&' | '\'' | '(' | ')' | '*' | '+' | ',' | '/' | ':' | ';'
        | '=' | '?' | '@' | '[' | ']' | '"' => format!("%{:02X}", u32::from(c)),
        '<' => "%20".into(),
        '>' => "%2D".into(),
        '\\' => "%30".into(),
        '|' => "%3C".into(),
        other => other.into(),
    };
    name.chars().map(encode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_names_of_files() {
        assert_eq!(percent_encode("a/b c|\"é"), "a%2Fb c%3C%22é");
    }
}
