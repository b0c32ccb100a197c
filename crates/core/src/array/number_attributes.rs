//! The mark of attributes that are numbers.
//!
//! ```text
//!   file   flag_values = 0, 1     height = 2.0     long_name = "wind"
//!   field  flag_values "0, 1"     height "2"       long_name "wind"     gridfusion.numbers {"flag_values":"integers","height":"doubles"}
//! ```
//!
//! The metadata of a field is text. The mark tells a writer which of the texts were numbers.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::single_labels::is_mark;

/// The key of the mark in a field's metadata. Its value is JSON: `integers`, `singles` or `doubles` by the names of attributes.
pub const NUMBER_ATTRIBUTES: &str = "gridfusion.numbers";

/// The kind of the numbers of an attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberKind {
    /// Integers of any type.
    Integers,
    /// Single-precision numbers. Their texts are the shortest that parse to the same single.
    Singles,
    /// Double-precision numbers.
    Doubles,
}

impl NumberKind {
    const ALL: [Self; 3] = [Self::Integers, Self::Singles, Self::Doubles];

    fn name(self) -> &'static str {
        match self {
            Self::Integers => "integers",
            Self::Singles => "singles",
            Self::Doubles => "doubles",
        }
    }

    /// Returns a number; `None` for a text of another kind, and for a number that JSON lacks.
    fn parse(self, text: &str) -> Option<Value> {
        match self {
            Self::Integers => serde_json::from_str(text).ok().filter(Value::is_number),
            Self::Singles => text.parse().ok().map(|it: f32| f64::from(it).into()),
            Self::Doubles => text.parse().ok().map(|it: f64| it.into()),
        }
        .filter(Value::is_number)
    }
}

/// Marks the attributes of these names as numbers. Each is the text of a number, or of several with commas between them.
///
/// ```
/// use std::collections::{BTreeMap, HashMap};
///
/// use gridfusion_core::array::{NumberKind, attribute_values, mark_numbers};
/// use serde_json::json;
///
/// let pairs = [("flag_values", "0, 1"), ("height", "2"), ("units", "1")];
/// let mut texts: BTreeMap<_, _> = pairs.map(|(name, text)| (name.to_owned(), text.to_owned())).into();
/// mark_numbers(&mut texts, [("flag_values", NumberKind::Integers), ("height", NumberKind::Doubles)]);
///
/// let metadata: HashMap<_, _> = texts.into_iter().collect();
/// let values: Vec<_> = attribute_values(&metadata).into_values().collect();
/// assert_eq!(values, [json!([0, 1]), json!(2.0), json!("1")]);
/// ```
pub fn mark_numbers<'a>(
    attributes: &mut BTreeMap<String, String>,
    numbers: impl IntoIterator<Item = (&'a str, NumberKind)>,
) {
    let kinds = numbers.into_iter().map(|(name, kind)| (name.to_owned(), kind.name().into()));
    let kinds: serde_json::Map<String, Value> = kinds.collect();
    // A file may have an attribute of this name.
    attributes.remove(NUMBER_ATTRIBUTES);
    if !kinds.is_empty() {
        attributes.insert(NUMBER_ATTRIBUTES.to_owned(), Value::Object(kinds).to_string());
    }
}

/// Returns the attributes of a field with this metadata: numbers where [`mark_numbers`] has marked such, unless JSON has no such number.
pub fn attribute_values(metadata: &HashMap<String, String>) -> BTreeMap<String, Value> {
    let kinds = metadata.get(NUMBER_ATTRIBUTES).and_then(|text| serde_json::from_str(text).ok());
    let kinds: Value = kinds.unwrap_or_default();
    let value = |(name, text): (&String, &String)| {
        let kind = NumberKind::ALL.into_iter().find(|kind| kinds[name] == kind.name());
        let number = kind.and_then(|kind| numbers(text, kind));
        (name.clone(), number.unwrap_or_else(|| text.clone().into()))
    };
    metadata.iter().filter(|(name, _)| !is_mark(name)).map(value).collect()
}

/// Parses a number, or a list of numbers.
fn numbers(text: &str, kind: NumberKind) -> Option<Value> {
    let all = text.split(", ").map(|text| kind.parse(text));
    let mut all = all.collect::<Option<Vec<Value>>>()?;
    if all.len() > 1 { Some(Value::Array(all)) } else { all.pop() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_those_of_the_file() {
        use NumberKind::{Doubles, Integers, Singles};
        for (text, kind, expected) in [
            ("1", Integers, json!(1)),
            ("1", Doubles, json!(1.0)),
            ("-9223372036854775808, 18446744073709551615", Integers, json!([i64::MIN, u64::MAX])),
            ("0.1, 3", Doubles, json!([0.1, 3.0])),
            ("0.1", Singles, json!(0.10000000149011612)),
            ("NaN", Doubles, json!("NaN")),
            ("0, inf", Singles, json!("0, inf")),
            ("", Integers, json!("")),
        ] {
            let mut texts = BTreeMap::from([("a".to_owned(), text.to_owned())]);
            mark_numbers(&mut texts, [("a", kind)]);
            let values = attribute_values(&texts.into_iter().collect());
            assert_eq!(values, BTreeMap::from([("a".to_owned(), expected)]), "{text}");
        }
        let mut texts = BTreeMap::from(
            [("a", "1"), (NUMBER_ATTRIBUTES, "{\"a\": \"integers\"}")]
                .map(|(name, text)| (name.to_owned(), text.to_owned())),
        );
        mark_numbers(&mut texts, []);
        assert_eq!(attribute_values(&texts.into_iter().collect())["a"], json!("1"));
    }
}
