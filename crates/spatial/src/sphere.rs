//! Distances and areas on the sphere.
//!
//! The sphere has the mean radius of the Earth, as the International Union of Geodesy and Geophysics
//! defines it. The CF conventions prescribe no radius, and xarray computes no areas. The mean radius
//! differs from that of the sphere with the ellipsoid's area by 1.6 m, so cells have their right size
//! in total.

/// The mean radius of the Earth in metres: a third of twice the equatorial and once the polar radius.
pub const EARTH_RADIUS: f64 = 6_371_008.8;

/// Returns the great-circle distance in metres of two places, given in degrees.
///
/// It is exact to rounding for near places and for antipodes.
///
/// ```
/// let metres = gridfusion_spatial::haversine(59.91, 10.75, 60.39, 5.32); // Oslo to Bergen
/// assert_eq!(metres.round(), 305_135.0);
/// ```
pub fn haversine(lat1: f64, lon1: f64, lat2: f64, lon2: f64) -> f64 {
    let (phi1, phi2) = (lat1.to_radians(), lat2.to_radians());
    let along = ((lon2 - lon1).to_radians() / 2.0).sin_cos();
    let cosines = phi1.cos() * phi2.cos();
    let near = ((phi2 - phi1) / 2.0).sin().powi(2) + cosines * along.0.powi(2);
    // `1 - near` without cancellation, so that antipodes are as exact as neighbours.
    let far = ((phi2 + phi1) / 2.0).sin().powi(2) + cosines * along.1.powi(2);
    // NaN stays NaN.
    let [near, far] = [near, far].map(|it| if it < 0.0 { 0.0 } else { it });
    2.0 * EARTH_RADIUS * near.sqrt().atan2(far.sqrt())
}

/// Returns the area in square metres between two parallels and two meridians, given in degrees.
///
/// ```
/// use gridfusion_spatial::{EARTH_RADIUS, cell_area};
///
/// let globe = cell_area([-90.0, 90.0], [0.0, 360.0]);
/// let sphere = 4.0 * std::f64::consts::PI * EARTH_RADIUS.powi(2);
/// assert!((globe / sphere - 1.0).abs() < 1e-15);
/// ```
pub fn cell_area(lat: [f64; 2], lon: [f64; 2]) -> f64 {
    let [south, north] = lat.map(f64::to_radians);
    // The difference of the sines as a product, because those of a narrow cell are nearly equal.
    let height = 2.0 * ((south + north) / 2.0).cos() * ((north - south) / 2.0).sin();
    EARTH_RADIUS * EARTH_RADIUS * ((lon[1] - lon[0]).to_radians() * height).abs()
}

/// Returns the unit vector of a place in degrees.
pub(crate) fn unit_vector(lat: f64, lon: f64) -> [f64; 3] {
    let (sin_lat, cos_lat) = lat.to_radians().sin_cos();
    let (sin_lon, cos_lon) = lon.to_radians().sin_cos();
    [cos_lat * cos_lon, cos_lat * sin_lon, sin_lat]
}

/// Returns the vector from `b` to `a`.
pub(crate) fn minus(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

/// Returns the scalar product.
pub(crate) fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::PI;

    #[test]
    fn distances_by_hand() {
        let quarter = PI * EARTH_RADIUS / 2.0;
        assert!((haversine(0.0, 0.0, 0.0, 90.0) - quarter).abs() < 1e-6);
        assert!((haversine(-90.0, 12.0, 90.0, 77.0) - 2.0 * quarter).abs() < 1e-6);
        assert!((haversine(0.0, 179.0, 0.0, -179.0) - quarter / 45.0).abs() < 1e-6);
        assert_eq!(haversine(50.0, 370.0, 50.0, 370.0), 0.0);
        let millimetre = haversine(0.0, 0.0, 0.0, (1e-3 / EARTH_RADIUS).to_degrees());
        assert!((millimetre - 1e-3).abs() < 1e-12);
        let antipode = haversine(10.0, 20.0, -10.0, -160.0 + (1.0 / EARTH_RADIUS).to_degrees());
        let expected = 2.0 * quarter - 10f64.to_radians().cos();
        assert!((antipode - expected).abs() < 1e-6, "{antipode} {expected}");
        assert!(haversine(f64::NAN, 0.0, 0.0, 0.0).is_nan());
        assert!(haversine(0.0, 0.0, 0.0, f64::INFINITY).is_nan());
    }

    #[test]
    fn areas_add_up() {
        let rows = (0..720).map(|i| -90.0 + 0.25 * f64::from(i));
        let globe: f64 = rows.map(|lat| 1440.0 * cell_area([lat, lat + 0.25], [0.0, 0.25])).sum();
        let expected = 4.0 * PI * EARTH_RADIUS.powi(2);
        assert!((globe / expected - 1.0).abs() < 1e-13);
        assert_eq!(cell_area([10.0, 11.0], [3.0, 4.0]), cell_area([11.0, 10.0], [4.0, 3.0]));
    }
}
