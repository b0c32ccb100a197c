//! Which columns of an array are latitudes, longitudes, or coordinates of a plane.
//!
//! Attributes of the CF conventions tell: `standard_name`, `units`, `axis`. Without them, names do.

use arrow::datatypes::Field;

use crate::error::{Error, Result};

/// The meaning of a coordinate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Latitude,
    Longitude,
    /// Along the rows of a plane.
    Y,
    /// Along the columns of a plane.
    X,
}

/// Units of latitudes, and of longitudes, which CF lists.
const UNITS: [(&[&str], Role); 2] = [
    (
        &["degrees_north", "degree_north", "degrees_N", "degree_N", "degreesN", "degreeN"],
        Role::Latitude,
    ),
    (
        &["degrees_east", "degree_east", "degrees_E", "degree_E", "degreesE", "degreeE"],
        Role::Longitude,
    ),
];

/// Standard names. Names of rotated grids are coordinates of a plane here: polygons and points are not rotated.
const STANDARD_NAMES: [(&str, Role); 6] = [
    ("latitude", Role::Latitude),
    ("longitude", Role::Longitude),
    ("projection_y_coordinate", Role::Y),
    ("projection_x_coordinate", Role::X),
    ("grid_latitude", Role::Y),
    ("grid_longitude", Role::X),
];

/// Names that are usual, the most usual first.
pub(super) const NAMES: [(&[&str], Role); 4] = [
    (&["lat", "latitude", "nav_lat", "xlat"], Role::Latitude),
    (&["lon", "longitude", "lng", "long", "nav_lon", "xlong"], Role::Longitude),
    (&["y", "northing", "rlat", "yc", "south_north"], Role::Y),
    (&["x", "easting", "rlon", "xc", "west_east"], Role::X),
];

impl Role {
    /// Returns the meaning of a column; `None` if nothing tells.
    pub(super) fn of(field: &Field) -> Option<Self> {
        let attribute = |key: &str| field.metadata().get(key).map(|it| it.trim());
        let standard = attribute("standard_name");
        if let Some((_, role)) = STANDARD_NAMES.iter().find(|it| Some(it.0) == standard) {
            return Some(*role);
        }
        let units = attribute("units");
        if let Some((_, role)) =
            UNITS.iter().find(|it| it.0.iter().any(|unit| Some(*unit) == units))
        {
            return Some(*role);
        }
        let name = field.name().to_ascii_lowercase();
        let named = NAMES.iter().find(|it| it.0.contains(&name.as_str()));
        named.map(|it| it.1).or_else(|| match attribute("axis") {
            Some("Y" | "y") => Some(Self::Y),
            Some("X" | "x") => Some(Self::X),
            _ => None,
        })
    }

    /// Whether the coordinate is a latitude or a longitude.
    pub(super) fn is_geographic(self) -> bool {
        matches!(self, Self::Latitude | Self::Longitude)
    }
}

/// Whether a coordinate is one of a rotated grid: a latitude or longitude of another pole, and no place on a plane.
pub(super) fn is_rotated(field: &Field) -> bool {
    let attribute = |key: &str| field.metadata().get(key).map(|it| it.trim());
    matches!(attribute("standard_name"), Some("grid_latitude" | "grid_longitude"))
        || matches!(field.name().to_ascii_lowercase().as_str(), "rlat" | "rlon")
}

/// Refuses latitudes and longitudes in other units than degrees.
///
/// # Errors
/// `Unsupported` for other units.
pub(super) fn check_units(field: &Field, role: Option<Role>) -> Result<()> {
    let units = field.metadata().get("units").map_or("", |it| it.trim());
    if !role.is_some_and(Role::is_geographic) || units.is_empty() || is_degrees(units) {
        return Ok(());
    }
    let name = field.name();
    Err(Error::unsupported(format!(
        "the units of \"{name}\" are '{units}', and latitudes and longitudes are in degrees here"
    )))
}

fn is_degrees(units: &str) -> bool {
    matches!(units.to_ascii_lowercase().as_str(), "degrees" | "degree" | "deg" | "°")
        || UNITS.iter().any(|(all, _)| all.contains(&units))
}

/// Returns how many metres the units of two axes of a plane are; `None` if they are no lengths. Axes without units are taken for
/// metres.
pub(super) fn metres(y: &Field, x: &Field) -> Option<f64> {
    let of = |field: &Field| match field.metadata().get("units").map(|it| it.trim()) {
        None | Some("" | "m" | "metre" | "metres" | "meter" | "meters") => Some(1.0),
        Some("km" | "kilometre" | "kilometres" | "kilometer" | "kilometers") => Some(1000.0),
        Some(_) => None,
    };
    of(y).filter(|it| of(x) == Some(*it))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use arrow::datatypes::DataType;

    use super::*;

    fn field(name: &str, attributes: &[(&str, &str)]) -> Field {
        let metadata: HashMap<String, String> =
            attributes.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        Field::new(name, DataType::Float64, false).with_metadata(metadata)
    }

    #[test]
    fn attributes_come_before_names() {
        for (name, attributes, expected) in [
            ("lat", vec![], Some(Role::Latitude)),
            ("Longitude", vec![], Some(Role::Longitude)),
            ("a", vec![("units", "degrees_north")], Some(Role::Latitude)),
            ("lat", vec![("standard_name", "grid_latitude"), ("units", "degrees")], Some(Role::Y)),
            ("a", vec![("axis", "X")], Some(Role::X)),
            ("lon", vec![("axis", "X")], Some(Role::Longitude)),
            ("time", vec![], None),
        ] {
            assert_eq!(Role::of(&field(name, &attributes)), expected, "{name}");
        }
    }

    #[test]
    fn units_of_planes() {
        let of = |y, x| metres(&field("y", &[("units", y)]), &field("x", &[("units", x)]));
        assert_eq!(of("m", "metre"), Some(1.0));
        assert_eq!(of("km", "km"), Some(1000.0));
        assert_eq!(of("km", "m"), None);
        assert_eq!(of("degrees", "degrees"), None);
        assert_eq!(metres(&field("y", &[]), &field("x", &[])), Some(1.0));
    }
}
