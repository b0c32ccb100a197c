//! Regions: polygons with holes, as rings that are closed, oriented and do not cross.
//!
//! | file | contents |
//! |---|---|
//! | `rings` | the checks of one ring, and how errors name it |
//! | `sweep` | the check that rings do not cross, overlap or lie in the wrong place |
//! | `wkb`, `wkt`, `geojson` | the encodings |
//! | `features` | files of GeoJSON features |
//! | `crs` | whether the coordinates of a file are longitudes and latitudes |

mod crs;
mod features;
mod geojson;
mod rings;
mod sweep;
mod wkb;
mod wkt;

use std::ops::Range;

use gridfusion_core::{Error, Result};

pub use crs::{Crs, geoparquet_column};
pub use features::{Feature, Property};
pub(crate) use rings::{Builder, Ring, signed_area};

/// Files round longitudes, so regions from -180 to 180 may be wider than a turn by this, which is a metre.
const TURN_ROUNDING: f64 = 1e-5;

/// A polygon or several, each with or without holes, that share no area.
///
/// Coordinates are `x, y`: longitude and latitude in degrees on a geographic grid. Edges are straight
/// lines between these coordinates, as GeoJSON defines them. A region across the date line has
/// longitudes beyond 180 (`170` to `190`), or a part on each side. Rings may turn either way.
///
/// Rings that are open, have too few points or cross are errors that name the ring. Parts may touch
/// each other, along edges too.
///
/// ```
/// use gridfusion_spatial::Region;
///
/// let text = r#"{"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [0, 3], [0, 0]]]}"#;
/// let region = Region::from_geojson(text)?;
/// assert_eq!(region, Region::from_wkt("POLYGON ((0 0, 4 0, 0 3, 0 0))")?);
/// assert_eq!(region.area(), 6.0);
///
/// let crossed = Region::from_wkt("POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))").unwrap_err();
/// assert!(crossed.to_string().starts_with("the outer ring crosses itself near (1, 1); repair it"));
/// # Ok::<_, gridfusion_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Region {
    /// The points of all rings, each closed by its first point.
    points: Vec<[f64; 2]>,
    rings: Vec<Ring>,
}

impl Region {
    /// Reads well-known binary, also the extended kind of PostGIS; third coordinates are ignored.
    ///
    /// ```
    /// let mut triangle = vec![1, 3, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0];
    /// triangle.extend([0.0f64, 0.0, 4.0, 0.0, 0.0, 3.0, 0.0, 0.0].iter().flat_map(|it| it.to_le_bytes()));
    /// assert_eq!(gridfusion_spatial::Region::from_wkb(&triangle)?.area(), 6.0);
    /// # Ok::<_, gridfusion_core::Error>(())
    /// ```
    pub fn from_wkb(bytes: &[u8]) -> Result<Self> {
        wkb::parse(bytes).map_err(|it| it.about("WKB"))?.finish()
    }

    /// Reads well-known text, also with an `SRID=…;`; third coordinates are ignored.
    ///
    /// ```
    /// let region = gridfusion_spatial::Region::from_wkt("POLYGON ((0 0, 4 0, 0 3, 0 0))")?;
    /// assert_eq!(region.area(), 6.0);
    /// # Ok::<_, gridfusion_core::Error>(())
    /// ```
    pub fn from_wkt(text: &str) -> Result<Self> {
        wkt::parse(text).map_err(|it| it.about("WKT"))?.finish()
    }

    /// Reads a GeoJSON geometry, or the geometry of a GeoJSON feature.
    ///
    /// ```
    /// let text = r#"{"type": "Feature", "properties": {}, "geometry": null}"#;
    /// assert!(gridfusion_spatial::Region::from_geojson(text)?.is_empty());
    /// # Ok::<_, gridfusion_core::Error>(())
    /// ```
    pub fn from_geojson(text: &str) -> Result<Self> {
        geojson::parse(text).map_err(|it| it.about("GeoJSON"))?.finish()
    }

    /// Returns the region of polygons, each an outer ring and its holes, each closed.
    ///
    /// ```
    /// let outer = vec![[0.0, 0.0], [3.0, 0.0], [3.0, 3.0], [0.0, 3.0], [0.0, 0.0]];
    /// let hole = vec![[1.0, 1.0], [2.0, 1.0], [2.0, 2.0], [1.0, 2.0], [1.0, 1.0]];
    /// let region = gridfusion_spatial::Region::from_polygons(&[vec![outer, hole]])?;
    /// assert_eq!(region.area(), 8.0);
    /// # Ok::<_, gridfusion_core::Error>(())
    /// ```
    pub fn from_polygons(polygons: &[Vec<Vec<[f64; 2]>>]) -> Result<Self> {
        let mut builder = Builder::default();
        for polygon in polygons {
            builder.begin_polygon();
            for ring in polygon {
                builder.begin_ring();
                ring.iter().for_each(|it| builder.push(*it));
            }
        }
        builder.finish()
    }

    fn try_new(points: Vec<[f64; 2]>, rings: Vec<Ring>) -> Result<Self> {
        let region = Self { points, rings };
        sweep::check(&region).map_err(|it| {
            it.followed_by("repair it, for instance with ST_MakeValid or shapely's make_valid")
        })?;
        Ok(region)
    }

    /// Whether the region has no polygon.
    pub fn is_empty(&self) -> bool {
        self.rings.is_empty()
    }

    /// Returns the area in the square of the coordinates' unit.
    pub fn area(&self) -> f64 {
        let areas =
            self.rings.iter().map(|it| it.sign * rings::signed_area(&self.points[it.range()]));
        areas.sum::<f64>().max(0.0)
    }

    /// The rings with their points, the first of which is repeated at the end.
    pub(crate) fn rings(&self) -> impl Iterator<Item = (&Ring, &[[f64; 2]])> {
        self.rings.iter().map(|it| (it, &self.points[it.range()]))
    }

    /// Returns the first point for which `outside` holds, and the name of its ring.
    pub(crate) fn find(&self, outside: impl Fn(&[f64; 2]) -> bool) -> Option<(String, [f64; 2])> {
        let found = self.points.iter().position(outside)?;
        let ring = self.rings.iter().find(|it| it.range().contains(&found))?;
        Some((ring.name(), self.points[found]))
    }

    /// Returns the least and the greatest x; `None` for an empty region.
    pub(crate) fn width(&self) -> Option<Range<f64>> {
        let xs = || self.points.iter().map(|it| it[0]);
        (!self.is_empty())
            .then(|| xs().fold(f64::INFINITY, f64::min)..xs().fold(f64::NEG_INFINITY, f64::max))
    }

    /// Checks that no place of the globe is covered twice, by longitudes that differ by whole turns.
    pub(crate) fn check_turns(&self) -> Result<()> {
        let turns = self
            .width()
            .map_or(0.0, |it| ((it.end - it.start - TURN_ROUNDING) / 360.0).ceil() - 1.0);
        if turns < 1.0 {
            return Ok(());
        }
        let polygons = self.rings.last().map_or(0, |it| it.polygon + 1);
        let mut all = self.clone();
        for turn in 1..=turns as usize {
            let offset = all.points.len();
            all.points.extend(self.points.iter().map(|[x, y]| [x + 360.0 * turn as f64, *y]));
            all.rings.extend(self.rings.iter().map(|it| it.moved(offset, turn * polygons)));
        }
        sweep::check(&all).map_err(|it| {
            Error::usage(format!(
                "the region covers places twice, because it is {} wide and longitudes repeat every 360°: {}",
                self.width().map_or(0.0, |it| it.end - it.start),
                it.detail(),
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(wkt: &str) -> String {
        Region::from_wkt(wkt).unwrap_err().to_string()
    }

    #[test]
    fn rings_may_turn_either_way() {
        let hole = "(1 1, 2 1, 2 2, 1 2, 1 1)";
        let turned = "(1 1, 1 2, 2 2, 2 1, 1 1)";
        for hole in [hole, turned] {
            for outer in ["(0 0, 3 0, 3 3, 0 3, 0 0)", "(0 0, 0 3, 3 3, 3 0, 0 0)"] {
                assert_eq!(
                    Region::from_wkt(&format!("POLYGON ({outer}, {hole})")).unwrap().area(),
                    8.0
                );
            }
        }
    }

    #[test]
    fn empty_regions_have_no_polygon() {
        for text in
            ["POLYGON EMPTY", "MULTIPOLYGON EMPTY", "GEOMETRYCOLLECTION EMPTY", "POINT EMPTY"]
        {
            assert!(Region::from_wkt(text).unwrap().is_empty(), "{text}");
        }
        assert!(Region::from_polygons(&[vec![]]).unwrap().is_empty());
        assert!(Region::from_polygons(&[vec![vec![]]]).unwrap().is_empty());
    }

    #[test]
    fn errors_name_the_ring() {
        assert_eq!(
            error("POLYGON ((0 0, 1 0, 1 1))"),
            "the outer ring has 3 points, and a ring needs 4, the last of which is the first again"
        );
        assert_eq!(
            error("POLYGON ((0 0, 1 0, 1 1, 0 1))"),
            "the outer ring is open: it begins at (0, 0) and ends at (0, 1); repeat its first point at its end"
        );
        assert_eq!(
            error(
                "MULTIPOLYGON (((0 0, 9 0, 9 9, 0 0)), ((20 0, 29 0, 29 9, 20 0), (1 1, 2 2, 1 1)))"
            ),
            "hole 1 of polygon 2 has 3 points, and a ring needs 4, the last of which is the first again"
        );
        let nan = [[0.0, 0.0], [1.0, f64::NAN], [1.0, 1.0], [0.0, 0.0]];
        let nan = Region::from_polygons(&[vec![nan.to_vec()]]).unwrap_err();
        assert_eq!(
            nan.to_string(),
            "point 2 of the outer ring is (1, NaN), and coordinates are finite numbers"
        );
        let hole = Region::from_polygons(&[vec![vec![], vec![[0.0; 2]]]]).unwrap_err();
        assert_eq!(hole.to_string(), "the outer ring has no points, but the polygon has a hole");
    }
}
