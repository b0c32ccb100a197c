//! GeoJSON, as RFC 7946 defines it: a geometry, or a feature with one.

use std::fmt;

use gridfusion_core::{Error, Result};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};

use super::Builder;

pub(super) fn parse(text: &str) -> Result<Builder> {
    let object: Object = serde_json::from_str(text).map_err(|it| Error::usage(it.to_string()))?;
    let mut builder = Builder::default();
    add(&mut builder, &object)?;
    Ok(builder)
}

/// A geometry or a feature.
#[derive(Deserialize)]
struct Object {
    #[serde(rename = "type")]
    kind: String,
    coordinates: Option<Coordinates>,
    geometries: Option<Vec<Object>>,
    geometry: Option<Box<Object>>,
    features: Option<IgnoredAny>,
}

/// A number, a position, or a list of either.
enum Coordinates {
    Number(f64),
    Position([f64; 2]),
    List(Vec<Coordinates>),
}

fn add(builder: &mut Builder, object: &Object) -> Result<()> {
    let kind = object.kind.as_str();
    let coordinates = || {
        object
            .coordinates
            .as_ref()
            .ok_or_else(|| Error::usage(format!("a {kind} without \"coordinates\"")))
    };
    match kind {
        "Polygon" => add_polygon(builder, coordinates()?),
        "MultiPolygon" => coordinates()?
            .list("a list of polygons")?
            .iter()
            .try_for_each(|it| add_polygon(builder, it)),
        "GeometryCollection" => {
            object.geometries.iter().flatten().try_for_each(|it| add(builder, it))
        }
        // A feature without geometry has no cells.
        "Feature" => object.geometry.iter().try_for_each(|it| add(builder, it)),
        "FeatureCollection" => Err(Error::usage(format!(
            "a collection of features{}: a region is one geometry or feature",
            if object.features.is_some() { "" } else { " without \"features\"" },
        ))),
        "Point" | "LineString" | "MultiPoint" | "MultiLineString" => match coordinates()? {
            Coordinates::List(list) if list.is_empty() => Ok(()),
            _ => {
                Err(Error::usage(format!("a {kind} covers no cells: a region is made of polygons")))
            }
        },
        other => Err(Error::usage(format!(
            "\"type\" is {other:?}, expected \"Polygon\" or \"MultiPolygon\""
        ))),
    }
}

fn add_polygon(builder: &mut Builder, polygon: &Coordinates) -> Result<()> {
    builder.begin_polygon();
    for ring in polygon.list("a list of rings")? {
        builder.begin_ring();
        for point in ring.list("a list of positions")? {
            match point {
                Coordinates::Position(point) => builder.push(*point),
                _ => return Err(Error::usage("expected a position [x, y] in a ring")),
            }
        }
    }
    Ok(())
}

impl Coordinates {
    fn list(&self, what: &str) -> Result<&[Self]> {
        match self {
            Self::List(list) => Ok(list),
            Self::Number(_) | Self::Position(_) => {
                Err(Error::usage(format!("expected {what} in \"coordinates\"")))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Coordinates {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CoordinatesVisitor)
    }
}

struct CoordinatesVisitor;

impl<'de> Visitor<'de> for CoordinatesVisitor {
    type Value = Coordinates;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, or a list of numbers or lists")
    }

    fn visit_f64<E>(self, number: f64) -> Result<Coordinates, E> {
        Ok(Coordinates::Number(number))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Coordinates, E> {
        Ok(Coordinates::Number(number as f64))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Coordinates, E> {
        Ok(Coordinates::Number(number as f64))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Coordinates, A::Error> {
        let mut list = Vec::new();
        match items.next_element()? {
            None => {}
            Some(Coordinates::Number(x)) => {
                let y = items.next_element::<f64>()?;
                let y = y.ok_or_else(|| {
                    serde::de::Error::custom("a position has one number, expected two")
                })?;
                while items.next_element::<f64>()?.is_some() {}
                return Ok(Coordinates::Position([x, y]));
            }
            Some(first) => list.push(first),
        }
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Coordinates::List(list))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Region;

    const RING: &str = "[[0, 0], [4.0, 0], [0, 3, 17], [0, 0]]";

    #[test]
    fn spellings() {
        let polygon = format!(r#"{{"type": "Polygon", "coordinates": [{RING}]}}"#);
        for text in [
            polygon.clone(),
            format!(
                r#"{{"coordinates": [[{RING}]], "bbox": [0, 0, 4, 3], "type": "MultiPolygon"}}"#
            ),
            format!(r#"{{"type": "Feature", "properties": {{"id": [1]}}, "geometry": {polygon}}}"#),
            format!(r#"{{"type": "GeometryCollection", "geometries": [{polygon}]}}"#),
        ] {
            assert_eq!(
                Region::from_geojson(&text).unwrap_or_else(|it| panic!("{text}: {it}")).area(),
                6.0
            );
        }
        for text in [
            r#"{"type": "Polygon", "coordinates": []}"#,
            r#"{"type": "MultiPolygon", "coordinates": [[[]]]}"#,
            r#"{"type": "Feature", "geometry": null}"#,
        ] {
            assert!(Region::from_geojson(text).unwrap().is_empty());
        }
    }

    #[test]
    fn errors() {
        let error = |it: &str| Region::from_geojson(it).unwrap_err().to_string();
        assert_eq!(error("{}"), "GeoJSON: missing field `type` at line 1 column 2");
        assert_eq!(error(r#"{"type": "Polygon"}"#), "GeoJSON: a Polygon without \"coordinates\"");
        assert_eq!(
            error(r#"{"type": "Polygon", "coordinates": [1, 2]}"#),
            "GeoJSON: expected a list of rings in \"coordinates\""
        );
        assert_eq!(
            error(r#"{"type": "Polygon", "coordinates": [[1, 2]]}"#),
            "GeoJSON: expected a list of positions in \"coordinates\""
        );
        assert!(
            error(r#"{"type": "Polygon", "coordinates": [[[1]]]}"#)
                .contains("a position has one number")
        );
        assert!(
            error(r#"{"type": "Polygon", "coordinates": [[[[1, 2]]]]}"#)
                .contains("expected a position [x, y]")
        );
        assert!(
            error(r#"{"type": "Point", "coordinates": [1, 2]}"#)
                .contains("a Point covers no cells")
        );
        assert!(
            error(r#"{"type": "FeatureCollection", "features": []}"#)
                .contains("a region is one geometry")
        );
        assert!(error(r#"{"type": "Circle"}"#).contains("\"type\" is \"Circle\""));
        assert!(
            error(&format!(r#"{{"type": "Polygon", "coordinates": {}"#, "[".repeat(100_000)))
                .contains("recursion")
        );
    }
}
