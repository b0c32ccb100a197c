//! Corners of cells, halfway between their centres.
//!
//! ```text
//!   ●     ●     ●         a corner is the mean of the four centres around it
//!      ×     ×     ×
//!   ●     ●     ● ┄┄ ○    beyond the border, and where one is missing, centres are extrapolated: ○
//! ```
//!
//! Means of longitudes and latitudes put corners where `cf_xarray` and xESMF have them. They are wrong
//! near a pole that lies between the centres. There, unit vectors are used.

use super::bounds::turns_to;
use crate::sphere::{dot, minus, unit_vector};

/// Rows along parallels may have longer steps than these degrees of longitude; others lie near a pole.
const LONG_STEP: f64 = 10.0;

/// So many degrees may single precision be wrong.
const ROUNDING: f64 = 1e-4;

/// Two for the corners of the grid, and one more where a centre beside them is missing.
const MOST_EXTRAPOLATIONS: usize = 3;

/// The centres of cells, in row-major order.
#[derive(Debug)]
pub(super) struct Centres<'a> {
    places: &'a [[f64; 2]],
    rows: usize,
    columns: usize,
    /// Whether the first column is beside the last.
    is_circle: bool,
}

impl<'a> Centres<'a> {
    /// Takes places as longitude and latitude.
    pub(super) fn new(places: &'a [[f64; 2]], columns: usize) -> Self {
        let rows = places.len() / columns.max(1);
        let mut centres = Self { places, rows, columns, is_circle: false };
        let votes: Vec<bool> = (0..rows).filter_map(|it| centres.closes(it)).collect();
        centres.is_circle = 2 * votes.iter().filter(|it| **it).count() > votes.len();
        centres
    }

    /// Returns the corners of all cells: a row more than of centres, and a column more. Corners that cannot
    /// be inferred are NaN.
    pub(super) fn corners(&self) -> Vec<[f64; 2]> {
        let mut corners = Vec::with_capacity((self.rows + 1) * (self.columns + 1));
        for row in 0..=self.rows as isize {
            let columns = 0..=self.columns as isize;
            corners.extend(columns.map(|it| self.corner(row, it).unwrap_or([f64::NAN; 2])));
        }
        corners
    }

    /// Whether the last column of a row is beside the first; `None` if their places are not known.
    ///
    /// The step over the seam goes on in the direction of the others. It goes back where columns are
    /// repeated, as in the halos of ocean models.
    fn closes(&self, row: usize) -> Option<bool> {
        let end = self.columns.checked_sub(1).filter(|it| *it > 1)?;
        let places = [0, 1, end - 1, end].map(|it| self.at(row as isize, it as isize));
        let [first, second, before, last] = [places[0]?, places[1]?, places[2]?, places[3]?]
            .map(|[lon, lat]| unit_vector(lat, lon));
        let (seam, steps) = (minus(first, last), [minus(second, first), minus(last, before)]);
        let on = |step: [f64; 3]| {
            let (along, sizes) = (dot(seam, step), dot(seam, seam) * dot(step, step));
            // Steps of a third of the globe turn by 120°.
            sizes > 0.0 && along > -0.75 * sizes.sqrt() && dot(seam, seam) <= 4.0 * dot(step, step)
        };
        Some(on(steps[0]) && on(steps[1]))
    }

    /// The centre of a cell; `None` outside the grid and for cells without a place.
    fn at(&self, row: isize, column: isize) -> Option<[f64; 2]> {
        let columns = self.columns as isize;
        let column = if self.is_circle { column.rem_euclid(columns) } else { column };
        if !(0..self.rows as isize).contains(&row) || !(0..columns).contains(&column) {
            return None;
        }
        let place = self.places[(row * columns + column) as usize];
        place.iter().all(|it| it.is_finite()).then_some(place)
    }

    /// Returns the corner after `row` rows and `column` columns.
    fn corner(&self, row: isize, column: isize) -> Option<[f64; 2]> {
        let around = [(row - 1, column - 1), (row - 1, column), (row, column - 1), (row, column)];
        let present = around.map(|(row, column)| self.at(row, column));
        let reference = present.iter().flatten().next()?[0];
        // Missing centres are extrapolated from two steps away.
        let reach = if present.iter().all(Option::is_some) { 1 } else { 2 };
        let stencil =
            Stencil { centres: self, reference, is_planar: self.is_planar(row, column, reach) };
        let mut sum = [0.0; 3];
        for (row, column) in around {
            sum = plus(sum, stencil.vector(row, column, MOST_EXTRAPOLATIONS)?);
        }
        if stencil.is_planar {
            return Some([sum[0] / 4.0, (sum[1] / 4.0).clamp(-90.0, 90.0)]);
        }
        let [x, y, z] = sum;
        // Opposite places have no middle.
        (dot(sum, sum) > 1e-6).then(|| [y.atan2(x).to_degrees(), z.atan2(x.hypot(y)).to_degrees()])
    }

    /// Whether means of longitudes and latitudes are those on the sphere, but for curvature.
    ///
    /// Steps are short, or they go along parallels and meridians.
    fn is_planar(&self, row: isize, column: isize, reach: isize) -> bool {
        let mut is_short = true;
        // Whether steps along rows and along columns keep their latitude, and keep their longitude.
        let (mut flat, mut steep) = ([true; 2], [true; 2]);
        for row in row - reach..row + reach {
            for column in column - reach..column + reach {
                let Some([lon, lat]) = self.at(row, column) else { continue };
                let next = [self.at(row, column + 1), self.at(row + 1, column)];
                for (axis, next) in next.into_iter().enumerate() {
                    let Some([next_lon, next_lat]) = next else { continue };
                    let step = (next_lon + turns_to(lon, next_lon) - lon).abs();
                    is_short &= step <= LONG_STEP;
                    flat[axis] &= (next_lat - lat).abs() <= ROUNDING;
                    steep[axis] &= step <= ROUNDING;
                }
            }
        }
        is_short || (flat[0] && steep[1]) || (steep[0] && flat[1])
    }
}

/// The centres around a corner, as vectors: of the plane near a longitude, or of the sphere.
struct Stencil<'a> {
    centres: &'a Centres<'a>,
    reference: f64,
    is_planar: bool,
}

impl Stencil<'_> {
    /// Returns a centre. A missing one is extrapolated along rows and columns, from centres that are
    /// themselves extrapolated fewer than `times`.
    fn vector(&self, row: isize, column: isize, times: usize) -> Option<[f64; 3]> {
        let Some(fewer) = times.checked_sub(1) else {
            let [lon, lat] = self.centres.at(row, column)?;
            return Some(if self.is_planar {
                [lon + turns_to(self.reference, lon), lat, 0.0]
            } else {
                unit_vector(lat, lon)
            });
        };
        self.vector(row, column, fewer).or_else(|| {
            let (mut sum, mut count) = ([0.0; 3], 0.0);
            for [down, right] in [[-1, 0], [1, 0], [0, -1], [0, 1]] {
                let Some(near) = self.vector(row + down, column + right, fewer) else { continue };
                let Some(far) = self.vector(row + 2 * down, column + 2 * right, fewer) else {
                    continue;
                };
                sum = plus(sum, minus(plus(near, near), far));
                count += 1.0;
            }
            (count > 0.0).then(|| sum.map(|it| it / count))
        })
    }
}

fn plus(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}
