//! Files of GeoJSON features, one feature at a time.

use std::fmt;
use std::marker::PhantomData;

use gridfusion_core::{Error, Result};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::crs::Crs;

/// One feature of a GeoJSON file: its properties, and its geometry as GeoJSON text.
///
/// ```
/// use gridfusion_spatial::{Feature, Property};
///
/// let text = r#"{"type": "FeatureCollection", "features": [
///     {"type": "Feature", "properties": {"name": "A", "rank": 1},
///      "geometry": {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [0, 3], [0, 0]]]}}]}"#;
/// let mut features = vec![];
/// Feature::read_all(text.as_bytes(), |feature| {
///     features.push(feature);
///     Ok(())
/// })?;
/// assert_eq!(features[0].properties[1], ("rank".to_owned(), Property::Integer(1)));
/// assert!(features[0].geometry.as_ref().is_some_and(|it| it.contains("Polygon")));
/// # Ok::<_, gridfusion_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Feature {
    /// The feature's `id`, if it has one.
    pub id: Option<Property>,
    /// The properties by name, in the order of their names.
    pub properties: Vec<(String, Property)>,
    /// The geometry as GeoJSON text, for [`Region::from_geojson`](crate::Region::from_geojson).
    pub geometry: Option<String>,
}

/// The value of a property.
#[derive(Debug, Clone, PartialEq)]
pub enum Property {
    /// JSON's `null`.
    Null,
    /// `true` or `false`.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// Another number.
    Float(f64),
    /// Text; lists and objects are JSON text.
    Text(String),
}

impl Feature {
    /// Reads all features of a file: those of a collection, or the only one. A geometry alone is a feature without properties.
    /// Returns the kind of their coordinates.
    ///
    /// # Errors
    /// `Usage` if the bytes are no GeoJSON, and the errors of `take`.
    pub fn read_all(bytes: &[u8], mut take: impl FnMut(Self) -> Result<()>) -> Result<Crs> {
        let mut failed = None;
        let mut deserializer = serde_json::Deserializer::from_slice(bytes);
        let mut give = |raw: RawFeature| match take(raw.into()) {
            Ok(()) => true,
            Err(error) => {
                failed = Some(error);
                false
            }
        };
        let whole = deserializer.deserialize_map(Document { give: &mut give });
        let whole = whole.and_then(|it| deserializer.end().map(|()| it));
        if let Some(error) = failed {
            return Err(error);
        }
        let whole = whole.map_err(|it| Error::usage(format!("this is no GeoJSON: {it}")))?;
        let is_collection = whole.kind.as_deref() == Some("FeatureCollection");
        let crs = Crs::from_geojson(whole.crs.as_ref());
        match (is_collection, whole.has_features) {
            (true, true) => {}
            (true, false) => {
                return Err(Error::usage("a collection of features without \"features\""));
            }
            (false, _) => take(whole.into_feature()?.into())?,
        }
        Ok(crs)
    }
}

/// A feature as the file has it.
#[derive(Deserialize)]
struct RawFeature {
    #[serde(default)]
    id: Value,
    #[serde(default)]
    properties: Option<serde_json::Map<String, Value>>,
    /// `null` if the feature has no place. Without this member, the object is no feature.
    geometry: Value,
}

impl From<RawFeature> for Feature {
    fn from(raw: RawFeature) -> Self {
        let properties = raw.properties.unwrap_or_default().into_iter();
        let id = Property::from(raw.id);
        Self {
            id: (id != Property::Null).then_some(id),
            properties: properties.map(|(name, value)| (name, value.into())).collect(),
            geometry: (!raw.geometry.is_null()).then(|| raw.geometry.to_string()),
        }
    }
}

impl From<Value> for Property {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(it) => Self::Boolean(it),
            Value::Number(it) => match (it.as_i64(), it.as_f64()) {
                (Some(whole), _) => Self::Integer(whole),
                (None, Some(number)) => Self::Float(number),
                (None, None) => Self::Text(it.to_string()),
            },
            Value::String(it) => Self::Text(it),
            other @ (Value::Array(_) | Value::Object(_)) => Self::Text(other.to_string()),
        }
    }
}

/// The members of the outermost object, without its features.
#[derive(Default)]
struct Whole {
    kind: Option<String>,
    crs: Option<Value>,
    has_features: bool,
    members: serde_json::Map<String, Value>,
}

impl Whole {
    /// Returns the only feature of a file without a collection.
    fn into_feature(mut self) -> Result<RawFeature> {
        let kind = self.kind.ok_or_else(|| Error::usage("this is no GeoJSON: no \"type\""))?;
        if kind != "Feature" {
            self.members.insert("type".to_owned(), Value::String(kind));
            let geometry = Value::Object(self.members);
            return Ok(RawFeature { id: Value::Null, properties: None, geometry });
        }
        serde_json::from_value(Value::Object(self.members))
            .map_err(|it| Error::usage(format!("this is no GeoJSON feature: {it}")))
    }
}

/// Reads the outermost object.
struct Document<'a> {
    give: &'a mut dyn FnMut(RawFeature) -> bool,
}

impl<'de> Visitor<'de> for Document<'_> {
    type Value = Whole;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a GeoJSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Whole, A::Error> {
        let mut whole = Whole::default();
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "type" => whole.kind = Some(map.next_value()?),
                "features" => {
                    whole.has_features = true;
                    map.next_value_seed(Features { give: &mut *self.give })?;
                }
                "crs" => whole.crs = Some(map.next_value()?),
                "bbox" => drop(map.next_value::<IgnoredAny>()?),
                _ => drop(whole.members.insert(key, map.next_value()?)),
            }
        }
        Ok(whole)
    }
}

/// Reads the list of features, and gives each away.
struct Features<'a> {
    give: &'a mut dyn FnMut(RawFeature) -> bool,
}

impl<'de> DeserializeSeed<'de> for Features<'_> {
    type Value = PhantomData<()>;

    fn deserialize<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<PhantomData<()>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Features<'_> {
    type Value = PhantomData<()>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of features")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<PhantomData<()>, A::Error> {
        while let Some(feature) = list.next_element()? {
            if !(self.give)(feature) {
                return Err(serde::de::Error::custom("stopped"));
            }
        }
        Ok(PhantomData)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Feature>> {
        let mut all = vec![];
        Feature::read_all(text.as_bytes(), |it| {
            all.push(it);
            Ok(())
        })?;
        Ok(all)
    }

    #[test]
    fn files_of_every_kind() {
        let point = r#"{"type": "Point", "coordinates": [1, 2]}"#;
        let feature = format!(
            r#"{{"type": "Feature", "id": 7, "properties": {{"a": null, "b": [1, "x"], "c": 1.5, "d": true}}, "geometry": {point}}}"#
        );
        let collection = format!(
            r#"{{"features": [{feature}, {{"type": "Feature", "properties": null, "geometry": null}}], "type": "FeatureCollection"}}"#
        );
        let found = read(&collection).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].id, Some(Property::Integer(7)));
        let names: Vec<&str> = found[0].properties.iter().map(|it| it.0.as_str()).collect();
        assert_eq!(names, ["a", "b", "c", "d"]);
        assert_eq!(found[0].properties[1].1, Property::Text(r#"[1,"x"]"#.to_owned()));
        assert_eq!(found[1], Feature { id: None, properties: vec![], geometry: None });
        assert_eq!(read(&feature).unwrap()[0], found[0]);
        assert_eq!(read(point).unwrap()[0].geometry, found[0].geometry);
        assert_eq!(read(r#"{"type": "FeatureCollection", "features": []}"#).unwrap(), []);
    }

    #[test]
    fn what_is_no_geojson_is_refused() {
        for (text, expected) in [
            ("", "no GeoJSON"),
            ("[]", "a GeoJSON object"),
            ("{}", "no \"type\""),
            (r#"{"type": "FeatureCollection"}"#, "without \"features\""),
            (r#"{"type": "FeatureCollection", "features": [1]}"#, "no GeoJSON"),
            (r#"{"type": "FeatureCollection", "features": [{"type": "Feature"}]}"#, "`geometry`"),
            (
                r#"{"type": "FeatureCollection", "features": [{"type": "Point", "coordinates": [1, 2]}]}"#,
                "missing field `geometry`",
            ),
            (r#"{"type": "Feature", "properties": {}, "geom": null}"#, "missing field `geometry`"),
            (r#"{"type": "FeatureCollection", "features": []} x"#, "trailing characters"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        let one = r#"{"type": "FeatureCollection", "features": [{"geometry": null}]}"#;
        let error = Feature::read_all(one.as_bytes(), |_| Err(Error::usage("enough"))).unwrap_err();
        assert_eq!(error.to_string(), "enough");
    }
}
