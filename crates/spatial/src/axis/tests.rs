//! Edges by hand, and errors.

use super::*;

fn edges(kind: AxisKind, labels: &[f64]) -> Vec<f64> {
    Axis::new(kind, labels, None).unwrap().edges
}

fn error(kind: AxisKind, labels: &[f64], bounds: Option<&[[f64; 2]]>) -> String {
    Axis::new(kind, labels, bounds).unwrap_err().to_string()
}

#[test]
fn edges_lie_between_labels() {
    use AxisKind::*;
    assert_eq!(edges(Plane, &[0.0, 1.0, 3.0]), [-0.5, 0.5, 2.0, 4.0]);
    assert_eq!(edges(Plane, &[3.0, 1.0, 0.0]), [-0.5, 0.5, 2.0, 4.0]);
    assert_eq!(edges(Latitude, &[-90.0, 0.0, 90.0]), [-90.0, -45.0, 45.0, 90.0]);
    assert_eq!(edges(Longitude, &[0.0, 90.0, 180.0, 270.0]), [-45.0, 45.0, 135.0, 225.0, 315.0]);
    assert_eq!(edges(Longitude, &[10.0, 20.0]), [5.0, 15.0, 25.0]);
    assert_eq!(edges(Plane, &[]), [0.0; 0]);
}

#[test]
fn gaussian_latitudes_reach_the_pole() {
    let lat = [85.76, 80.27, 74.74, 69.21];
    let edges = edges(AxisKind::Latitude, &lat);
    assert_eq!(edges[4], 90.0);
    assert!((edges[0] - 66.445).abs() < 1e-12);
}

#[test]
fn longitudes_may_jump() {
    let axis = Axis::new(AxisKind::Longitude, &[358.0, 359.0, 0.0, 1.0], None).unwrap();
    assert_eq!(axis.edges, [357.5, 358.5, 359.5, 360.5, 361.5]);
    let axis = Axis::new(AxisKind::Longitude, &[1.0, 0.0, 359.0, 358.0], None).unwrap();
    assert_eq!(axis.edges, [-2.5, -1.5, -0.5, 0.5, 1.5]);
    let bounds = [[359.5, 0.5], [0.5, 1.5], [1.5, 2.5]];
    let axis = Axis::new(AxisKind::Longitude, &[0.0, 1.0, 2.0], Some(&bounds)).unwrap();
    assert_eq!(axis.edges, [-0.5, 0.5, 1.5, 2.5]);
    let axis = Axis::new(AxisKind::Longitude, &[10.0], Some(&[[0.0, 360.0]])).unwrap();
    assert!(axis.is_circle());
}

#[test]
fn circles_close_exactly() {
    // Labels in single precision.
    let labels: Vec<f64> = (0..3600).map(|i| f64::from(i as f32 * 0.1)).collect();
    let axis = Axis::new(AxisKind::Longitude, &labels, None).unwrap();
    assert!(axis.is_circle());
    assert!(!Axis::new(AxisKind::Longitude, &labels[..3500], None).unwrap().is_circle());
    let repeated: Vec<f64> = (0..=36).map(|i| f64::from(i) * 10.0).collect();
    assert_eq!(
        error(AxisKind::Longitude, &repeated, None),
        "the longitudes from -5 to 365 go around the globe more than once: leave out the columns that are repeated"
    );
}

#[test]
fn bounds_in_either_order() {
    let labels = [2.5, 1.5, 0.5];
    for bounds in [[[3.0, 2.0], [2.0, 1.0], [1.0, 0.0]], [[2.0, 3.0], [1.0, 2.0], [0.0, 1.0]]] {
        let axis = Axis::new(AxisKind::Plane, &labels, Some(&bounds)).unwrap();
        assert_eq!((axis.edges.as_slice(), axis.cell(0)), (&[0.0, 1.0, 2.0, 3.0][..], [2.0, 3.0]));
    }
    let one = Axis::new(AxisKind::Plane, &[5.0], Some(&[[4.0, 7.0]])).unwrap();
    assert_eq!(one.cell(0), [4.0, 7.0]);
}

#[test]
fn errors_name_labels() {
    use AxisKind::*;
    assert_eq!(
        error(Latitude, &[0.0, 120.0], None),
        "latitude 1 of the grid is 120, outside -90 to 90; are rows and columns swapped?"
    );
    assert_eq!(
        error(Plane, &[0.0, 2.0, 1.0], None),
        "the coordinate labels of the grid do not only rise: 2 at 1 is followed by 1"
    );
    assert_eq!(
        error(Plane, &[0.0, 0.0], None),
        "the coordinate labels of the grid do not only rise: 0 at 0 is followed by 0"
    );
    assert!(error(Plane, &[0.0, f64::NAN], None).starts_with("coordinate 1 of the grid is NaN"));
    assert!(error(Plane, &[4.0], None).ends_with("need a variable of bounds"));
    assert_eq!(
        error(Plane, &[0.5, 2.5], Some(&[[0.0, 1.0], [2.0, 3.0]])),
        "the cells of coordinate 0 and 1 do not touch: one is 0 to 1, the other 2 to 3"
    );
    assert_eq!(
        error(Plane, &[0.5, 2.5], Some(&[[0.0, 1.0], [1.0, 2.0]])),
        "coordinate 2.5 at 1 is not within its bounds 1 and 2"
    );
    assert!(error(Plane, &[0.5], Some(&[[f64::NAN, 1.0]])).ends_with("which is no cell"));
    assert!(error(Plane, &[0.5], Some(&[])).ends_with("and bounds of 0 cells"));
}
