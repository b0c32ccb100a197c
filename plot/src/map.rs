//! Maps: axes of longitude and latitude.
//!
//! A map is equirectangular: a degree of longitude is as long as it is at the middle latitude.

use crate::axis::Span;
use crate::column::{Column, Values};
use crate::error::{Result, refuse};
use crate::role::Role;
use crate::settings::Scale;

/// Whether two columns are the longitudes and latitudes of a map. `coastlines` is the setting of the picture.
///
/// # Errors
/// `Usage` if coastlines were asked for, and the columns cannot be degrees.
pub(crate) fn is_map(x: &Column, y: &Column, coastlines: Option<bool>) -> Result<bool> {
    let has_roles = x.title.role == Role::Longitude && y.title.role == Role::Latitude;
    let is_asked = coastlines == Some(true);
    let are_numbers = [x, y].iter().all(|it| it.values == Values::Numbers);
    let range = |column: &Column| Scale::Linear.range(column.data.iter().copied());
    let are_degrees = match (range(x), range(y)) {
        (Some(x), Some(y)) => {
            x.0 >= -361.0 && x.1 <= 721.0 && x.1 - x.0 <= 361.0 && y.0 >= -91.0 && y.1 <= 91.0
        }
        _ => false,
    };
    if is_asked && !(are_numbers && are_degrees) {
        return refuse(format!(
            "coastlines need longitudes and latitudes in degrees, and \"{}\" and \"{}\" are not",
            x.title.name, y.title.name
        ));
    }
    Ok((has_roles || is_asked) && are_numbers && are_degrees)
}

/// Makes two axes those of a map, and returns its width as a multiple of its height.
pub(crate) fn shape(x: &mut Span, y: &mut Span) -> f64 {
    const LONGEST: f64 = 8.0;
    (x.is_degrees, y.is_degrees) = (true, true);
    let ((west, east), (south, north)) = (x.range(), y.range());
    let middle = f64::midpoint(south, north).clamp(-85.0, 85.0).to_radians();
    ((east - west) * middle.cos() / (north - south)).clamp(1.0 / LONGEST, LONGEST)
}

/// Returns the range of an axis of degrees without what is beyond a pole, or more than once around.
pub(crate) fn limited((low, high): (f64, f64), is_latitude: bool) -> (f64, f64) {
    if is_latitude {
        return (low.max(-90.0), high.min(90.0));
    }
    let middle = f64::midpoint(low, high);
    if high - low > 360.0 { (middle - 180.0, middle + 180.0) } else { (low, high) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::AxisSettings;
    use crate::title::Title;

    fn column(role: Role, data: &[f64]) -> Column {
        let title = Title { role, ..Title::new("c") };
        Column::new(title, Values::Numbers, data.to_vec())
    }

    #[test]
    fn degrees_of_both_kinds_are_a_map() {
        let lon = |data: &[f64]| column(Role::Longitude, data);
        let lat = |data: &[f64]| column(Role::Latitude, data);
        let is = |x: &Column, y: &Column| is_map(x, y, None).unwrap();
        assert!(is(&lon(&[0.0, 357.5]), &lat(&[-90.0, 90.0])));
        assert!(!is(&lat(&[0.0, 40.0]), &lon(&[-90.0, 90.0])));
        assert!(!is(&lon(&[0.0, 400.0]), &lat(&[-90.0, 90.0])));
        assert!(!is(&lon(&[0.0, 40.0]), &lat(&[0.0, 180.0])));
        assert!(!is(&lon(&[f64::NAN]), &lat(&[0.0])));
        let other = column(Role::Other, &[1.0, 2.0]);
        assert!(!is(&other, &lat(&[0.0])));
        assert!(is_map(&other, &other, Some(true)).unwrap());
        let error = is_map(&column(Role::Other, &[9e9]), &other, Some(true)).unwrap_err();
        assert!(error.to_string().starts_with("coastlines need longitudes and latitudes"));
    }

    #[test]
    fn degrees_are_as_long_as_at_the_middle_latitude() {
        let aspect = |x: (f64, f64), y: (f64, f64)| {
            let span = |range| {
                Span::new(String::new(), &Values::Numbers, range, &AxisSettings::default(), false)
            };
            shape(&mut span(x).unwrap(), &mut span(y).unwrap())
        };
        assert!((aspect((-180.0, 180.0), (-90.0, 90.0)) - 2.0).abs() < 1e-12);
        assert!((aspect((0.0, 30.0), (50.0, 70.0)) - 0.75).abs() < 1e-12);
        assert!((aspect((0.0, 360.0), (89.0, 90.0)) - 8.0).abs() < 1e-12);
        assert_eq!(limited((-91.25, 91.25), true), (-90.0, 90.0));
        assert_eq!(limited((-181.0, 181.0), false), (-180.0, 180.0));
        assert_eq!(limited((-1.25, 358.75), false), (-1.25, 358.75));
    }
}
