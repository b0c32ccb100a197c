//! Checks of labels, and the edges between them.

use gridfusion_core::{Error, Result};

use super::{AxisKind, LONGITUDES, ROUNDING};

pub(super) fn check_finite(kind: AxisKind, labels: &[f64]) -> Result<()> {
    let (limits, hint) = match kind {
        AxisKind::Plane => ([-1e100, 1e100], ""),
        AxisKind::Latitude => ([-90.0, 90.0], "; are rows and columns swapped?"),
        AxisKind::Longitude => (LONGITUDES, ""),
    };
    match labels.iter().position(|it| !(limits[0]..=limits[1]).contains(it)) {
        None => Ok(()),
        Some(index) => Err(Error::usage(format!(
            "{} {index} of the grid is {}, outside {} to {}{hint}",
            kind.name(),
            labels[index],
            limits[0],
            limits[1],
        ))),
    }
}

/// Checks that each cell has a width, which labels that nearly equal each other do not give.
pub(crate) fn check_edges(kind: AxisKind, edges: &[f64]) -> Result<()> {
    match edges.windows(2).find(|it| it[0] >= it[1]) {
        None => Ok(()),
        Some(pair) => Err(Error::usage(format!(
            "a cell of the grid reaches from {} {} to {}, which is no width",
            kind.name(),
            pair[0],
            pair[1],
        ))),
    }
}

/// Adds or takes 360° behind the one jump of longitudes that cross the date line or Greenwich. A jump is a
/// step of more than half a turn.
pub(super) fn unwrap_longitudes(labels: &mut [f64]) {
    let mut jumps = labels.windows(2).enumerate().filter(|(_, it)| (it[1] - it[0]).abs() > 180.0);
    if let (Some((at, pair)), None) = (jumps.next(), jumps.next()) {
        let turn = if pair[1] < pair[0] { 360.0 } else { -360.0 };
        for label in &mut labels[at + 1..] {
            *label += turn;
        }
    }
}

pub(super) fn check_monotonic(kind: AxisKind, labels: &[f64], descending: bool) -> Result<()> {
    let wrong = labels.windows(2).position(|it| it[0] == it[1] || (it[0] > it[1]) != descending);
    match wrong {
        None => Ok(()),
        Some(at) => Err(Error::usage(format!(
            "the {} labels of the grid do not only {}: {} at {at} is followed by {}",
            kind.name(),
            if descending { "fall" } else { "rise" },
            labels[at],
            labels[at + 1],
        ))),
    }
}

/// Returns the edges halfway between ascending labels.
pub(super) fn midpoints(kind: AxisKind, labels: &[f64]) -> Result<Vec<f64>> {
    let &[first, second, ..] = labels else {
        return Err(Error::usage(format!(
            "the grid has one {} label, {}: the edges of its cell need a variable of bounds",
            kind.name(),
            labels[0],
        )));
    };
    let end = labels.len() - 1;
    let (last, before) = (labels[end], labels[end - 1]);
    let mut outer = [first - (second - first) / 2.0, last + (last - before) / 2.0];
    match kind {
        AxisKind::Plane => {}
        AxisKind::Latitude if labels.len() > 2 => {
            let spacings =
                [[second - first, labels[2] - second], [last - before, before - labels[end - 2]]];
            // Latitudes of a Gaussian grid are roots of a polynomial: near the poles they lie closer.
            let gaussian = spacings.map(|[outer, next]| (outer / next - 1.0).abs() > 1e-3);
            if gaussian[0] && outer[0] + 90.0 < spacings[0][0] / 2.0 {
                outer[0] = -90.0;
            }
            if gaussian[1] && 90.0 - outer[1] < spacings[1][0] / 2.0 {
                outer[1] = 90.0;
            }
        }
        AxisKind::Latitude => {}
        AxisKind::Longitude => {
            let widest = labels.windows(2).map(|it| it[1] - it[0]).fold(0.0, f64::max);
            let across = first + 360.0 - last;
            if across > 0.0 && across <= 1.5 * widest {
                outer = [first - across / 2.0, first - across / 2.0 + 360.0];
            }
        }
    }
    let inner = labels.windows(2).map(|it| it[0] + (it[1] - it[0]) / 2.0);
    Ok([outer[0]].into_iter().chain(inner).chain([outer[1]]).collect())
}

/// Returns the ascending edges of cells that touch each other.
pub(super) fn edges_of_bounds(
    kind: AxisKind,
    labels: &[f64],
    bounds: &[[f64; 2]],
    descending: bool,
) -> Result<Vec<f64>> {
    let name = kind.name();
    if bounds.len() != labels.len() {
        return Err(Error::usage(format!(
            "the grid has {} {name} labels and bounds of {} cells",
            labels.len(),
            bounds.len(),
        )));
    }
    let mut cells = Vec::with_capacity(bounds.len());
    for (index, (&label, &[one, other])) in labels.iter().zip(bounds).enumerate() {
        let near = |edge: f64| match kind {
            AxisKind::Longitude if !(one.min(other)..=one.max(other)).contains(&label) => {
                edge + 360.0 * ((label - edge) / 360.0).round()
            }
            _ => edge,
        };
        let cell = [near(one).min(near(other)), near(one).max(near(other))];
        let slack = ROUNDING * (cell[1] - cell[0]);
        if !(cell[1] > cell[0] && cell[1] - cell[0] < 1e101) {
            return Err(Error::usage(format!(
                "the bounds of {name} {label} at {index} are {one} and {other}, which is no cell"
            )));
        }
        if label < cell[0] - slack || label > cell[1] + slack {
            return Err(Error::usage(format!(
                "{name} {label} at {index} is not within its bounds {one} and {other}"
            )));
        }
        cells.push(cell);
    }
    if descending {
        cells.reverse();
    }
    let mut edges = vec![cells[0][0]];
    for (index, pair) in cells.windows(2).enumerate() {
        let ([low, end], [start, high]) = (pair[0], pair[1]);
        if (end - start).abs() > ROUNDING * (end - low).min(high - start) {
            let index = if descending { cells.len() - 2 - index } else { index };
            return Err(Error::unsupported(format!(
                "the cells of {name} {index} and {} do not touch: one is {low} to {end}, the other {start} to {high}",
                index + 1,
            )));
        }
        edges.push(start + (end - start) / 2.0);
    }
    edges.push(cells[cells.len() - 1][1]);
    Ok(edges)
}
