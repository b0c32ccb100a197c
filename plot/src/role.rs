//! The meaning of a column for a picture, from its name and the attributes of CF.

/// The meaning of a column.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Role {
    /// Nothing that changes a picture.
    #[default]
    Other,
    /// Degrees to the east.
    Longitude,
    /// Degrees to the north.
    Latitude,
    /// A coordinate that grows downwards, such as the depth of the sea.
    Down,
    /// A name or unit as depths and pressures have it. Their axis points down if they are coordinates.
    Vertical,
    /// Differences from something usual, which are above and below zero.
    Anomaly,
}

/// Names of columns that are longitudes without further attributes; latitudes follow.
const LONGITUDES: [&str; 5] = ["lon", "longitude", "nav_lon", "xlong", "glamt"];
const LATITUDES: [&str; 5] = ["lat", "latitude", "nav_lat", "xlat", "gphit"];
/// Units of pressure.
const PRESSURES: [&str; 9] =
    ["pa", "hpa", "kpa", "mbar", "mb", "millibar", "millibars", "dbar", "decibar"];
const VERTICALS: [&str; 7] =
    ["depth", "pressure", "plev", "pres", "isobaric", "deptht", "pressure_level"];

impl Role {
    /// Returns the role of a column with this name. `attribute` returns an attribute of the column by its name.
    pub fn from_attributes<'a>(name: &str, attribute: impl Fn(&str) -> Option<&'a str>) -> Self {
        let of = |key: &str| attribute(key).unwrap_or_default().trim().to_ascii_lowercase();
        let (units, standard, name) = (of("units"), of("standard_name"), name.to_ascii_lowercase());
        let is_degrees = |direction: &str| {
            let unit = units.replace(['_', ' '], "");
            let unit = unit.strip_prefix("degrees").or_else(|| unit.strip_prefix("degree"));
            unit.is_some_and(|rest| rest == direction || rest == &direction[..1])
        };
        let is_named = |names: &[&str]| names.contains(&name.as_str()) && !units.ends_with("since");
        let is_anomaly = |text: &str| {
            text.split(|it: char| !it.is_alphanumeric())
                .any(|word| matches!(word, "anomaly" | "anomalies" | "anom"))
        };
        if is_degrees("east") || standard == "longitude" {
            Self::Longitude
        } else if is_degrees("north") || standard == "latitude" {
            Self::Latitude
        } else if of("positive") == "down" {
            Self::Down
        } else if of("positive") == "up" {
            Self::Other
        } else if is_named(&LONGITUDES) {
            Self::Longitude
        } else if is_named(&LATITUDES) {
            Self::Latitude
        } else if standard == "depth" || PRESSURES.contains(&units.as_str()) || is_named(&VERTICALS)
        {
            Self::Vertical
        } else if [&name, &standard, &of("long_name")].into_iter().any(|text| is_anomaly(text)) {
            Self::Anomaly
        } else {
            Self::Other
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(name: &str, attributes: &[(&str, &'static str)]) -> Role {
        let find = |key: &str| attributes.iter().find(|it| it.0 == key).map(|it| it.1);
        Role::from_attributes(name, find)
    }

    #[test]
    fn attributes_and_names_tell_the_role() {
        for (name, attributes, expected) in [
            ("x", &[("units", "degrees_east")][..], Role::Longitude),
            ("XLONG", &[("units", "degree_east")], Role::Longitude),
            ("x", &[("units", "degreesE")], Role::Longitude),
            ("x", &[("standard_name", "longitude")], Role::Longitude),
            ("Lon", &[], Role::Longitude),
            ("latitude", &[], Role::Latitude),
            ("y", &[("units", "degree_N")], Role::Latitude),
            ("rlat", &[("units", "degrees"), ("standard_name", "grid_latitude")], Role::Other),
            ("wind", &[("units", "degrees")], Role::Other),
            ("z", &[("positive", "Down"), ("units", "m")], Role::Down),
            ("depth", &[("positive", "up")], Role::Other),
            ("depth", &[("units", "m")], Role::Vertical),
            ("level", &[("units", "hPa")], Role::Vertical),
            ("sst", &[("long_name", "SST anomaly")], Role::Anomaly),
            ("t_anom", &[], Role::Anomaly),
            ("anomalous", &[], Role::Other),
            ("", &[("units", "")], Role::Other),
        ] {
            assert_eq!(role(name, attributes), expected, "{name} {attributes:?}");
        }
    }
}
