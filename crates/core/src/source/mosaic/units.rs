//! Units of measurement that files write in several ways, and the conversions between those of one quantity.
//!
//! The names are those of CF's standard names and of common providers. Units that are not in the table are equal only if their
//! texts are.

/// A unit: `value × factor + offset` is the value in the first unit of the quantity.
struct Unit {
    quantity: &'static str,
    factor: f64,
    offset: f64,
    names: &'static [&'static str],
}

const fn unit(
    quantity: &'static str,
    factor: f64,
    offset: f64,
    names: &'static [&'static str],
) -> Unit {
    Unit { quantity, factor, offset, names }
}

const UNITS: &[Unit] = &[
    unit("temperature", 1.0, 0.0, &["K", "kelvin", "kelvins", "degK", "degree_K", "degrees_K"]),
    unit(
        "temperature",
        1.0,
        273.15,
        &[
            "degC",
            "C",
            "celsius",
            "degree_C",
            "degrees_C",
            "deg_C",
            "deg C",
            "degreeC",
            "degree_Celsius",
            "degrees_Celsius",
            "degree Celsius",
            "degrees Celsius",
            "°C",
        ],
    ),
    unit(
        "temperature",
        5.0 / 9.0,
        273.15 - 32.0 * 5.0 / 9.0,
        &[
            "degF",
            "F",
            "fahrenheit",
            "degree_F",
            "degrees_F",
            "degree_Fahrenheit",
            "degrees_Fahrenheit",
            "°F",
        ],
    ),
    unit("pressure", 1.0, 0.0, &["Pa", "pascal", "pascals", "N m-2"]),
    unit("pressure", 100.0, 0.0, &["hPa", "mbar", "mb", "millibar", "millibars", "hectopascal"]),
    unit("pressure", 1e3, 0.0, &["kPa", "kilopascal"]),
    unit("pressure", 1e4, 0.0, &["dbar", "decibar", "decibars"]),
    unit("length", 1.0, 0.0, &["m", "meter", "meters", "metre", "metres"]),
    unit("length", 1e-3, 0.0, &["mm", "millimeter", "millimeters", "millimetre", "millimetres"]),
    unit("length", 1e-2, 0.0, &["cm", "centimeter", "centimeters", "centimetre", "centimetres"]),
    unit("length", 1e3, 0.0, &["km", "kilometer", "kilometers", "kilometre", "kilometres"]),
    unit("speed", 1.0, 0.0, &["m s-1", "meter second-1", "meters per second", "metres per second"]),
    unit("speed", 1e-2, 0.0, &["cm s-1"]),
    unit("speed", 1.0 / 3.6, 0.0, &["km h-1", "km hr-1", "kph"]),
    unit("speed", 1852.0 / 3600.0, 0.0, &["knot", "knots", "kt", "kts"]),
    unit("precipitation", 1.0, 0.0, &["kg m-2 s-1", "mm s-1"]),
    unit("precipitation", 1.0 / 3600.0, 0.0, &["mm h-1", "mm hr-1", "mm hour-1", "kg m-2 h-1"]),
    unit(
        "precipitation",
        1.0 / 86400.0,
        0.0,
        &["mm d-1", "mm day-1", "kg m-2 d-1", "kg m-2 day-1"],
    ),
    unit("precipitation", 1e3 / 86400.0, 0.0, &["m d-1", "m day-1"]),
    unit("ratio", 1.0, 0.0, &["1", "", "dimensionless", "fraction", "kg kg-1", "m3 m-3"]),
    unit("ratio", 1e-2, 0.0, &["%", "percent", "per cent"]),
    unit("ratio", 1e-3, 0.0, &["g kg-1", "1e-3", "0.001", "psu", "PSU"]),
    unit(
        "latitude",
        1.0,
        0.0,
        &["degrees_north", "degree_north", "degrees_N", "degree_N", "degreesN", "degreeN"],
    ),
    unit(
        "longitude",
        1.0,
        0.0,
        &["degrees_east", "degree_east", "degrees_E", "degree_E", "degreesE", "degreeE"],
    ),
    unit("energy flux", 1.0, 0.0, &["W m-2", "J m-2 s-1", "watt m-2"]),
];

/// Whether two texts are the same unit.
pub(super) fn is_same_unit(a: &str, b: &str) -> bool {
    let (a, b) = (normalised(a), normalised(b));
    a == b || matches!((known(&a), known(&b)), (Some(a), Some(b)) if std::ptr::eq(a, b))
}

/// Returns the SQL that converts `name` from one unit to another; `None` if that is not known.
pub(super) fn conversion(name: &str, from: &str, to: &str) -> Option<String> {
    let (from, to) = (known(&normalised(from))?, known(&normalised(to))?);
    if from.quantity != to.quantity {
        return None;
    }
    let factor = from.factor / to.factor;
    let offset = (from.offset - to.offset) / to.factor;
    let scaled = match factor {
        1.0 => name.to_owned(),
        _ if factor < 1.0 => format!("{name} / {}", rounded(1.0 / factor)),
        _ => format!("{name} * {}", rounded(factor)),
    };
    Some(match rounded(offset) {
        0.0 => scaled,
        offset if offset < 0.0 => format!("{scaled} - {}", -offset),
        offset => format!("{scaled} + {offset}"),
    })
}

/// Rounds the last digits off, which are those of the arithmetic and not of the unit.
fn rounded(number: f64) -> f64 {
    format!("{number:.9e}").parse().unwrap_or(number)
}

fn known(text: &str) -> Option<&'static Unit> {
    // Symbols differ in case, words do not.
    let is_named = |name: &str| {
        let name = normalised(name);
        name == text || text.len() > 4 && name.eq_ignore_ascii_case(text)
    };
    UNITS.iter().find(|unit| unit.names.iter().any(|name| is_named(name)))
}

/// Returns a unit with powers as CF writes them: `m/s`, `m s**-1`, `m.s^-1` and `m s-1` are one.
fn normalised(text: &str) -> String {
    let text = text.trim().replace("**", "").replace('^', "").replace(['.', '*'], " ");
    let mut parts = text.split('/').map(str::trim);
    let mut all = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // Every factor behind a slash is a divisor, and the number at its end a power.
        for factor in part.split_whitespace() {
            let symbol = factor.trim_end_matches(|it: char| it.is_ascii_digit());
            let power = if symbol == factor { "1" } else { &factor[symbol.len()..] };
            all = format!("{all} {symbol}-{power}");
        }
    }
    all.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_have_several_names() {
        for (a, b) in [
            ("K", "kelvin"),
            ("degC", "degrees_Celsius"),
            ("celsius", "Celsius"),
            ("m/s", "m s**-1"),
            ("m s-1", "m.s^-1"),
            ("kg/m2/s", "kg m-2 s-1"),
            ("hPa", "millibars"),
            ("1", ""),
            ("furlong ", "furlong"),
            ("degrees_north", "degree_N"),
        ] {
            assert!(is_same_unit(a, b) && is_same_unit(b, a), "{a} and {b}");
        }
        for (a, b) in [("K", "degC"), ("m", "M"), ("mm", "m"), ("furlong", "mile"), ("K", "")] {
            assert!(!is_same_unit(a, b), "{a} and {b}");
        }
    }

    #[test]
    fn units_of_one_quantity_have_a_conversion() {
        for (from, to, expected) in [
            ("degC", "K", Some("t + 273.15")),
            ("K", "degC", Some("t - 273.15")),
            ("degF", "degC", Some("t / 1.8 - 17.77777778")),
            ("hPa", "Pa", Some("t * 100")),
            ("Pa", "hPa", Some("t / 100")),
            ("mm/day", "kg m-2 s-1", Some("t / 86400")),
            ("kg m-2 s-1", "mm/day", Some("t * 86400")),
            ("%", "1", Some("t / 100")),
            ("m", "K", None),
            ("furlong", "m", None),
        ] {
            assert_eq!(conversion("t", from, to).as_deref(), expected, "{from} to {to}");
        }
    }
}
