//! The mark of attributes that are numbers.
//!
//! ```text
//!   file   flag_values = 0, 1     height = 2.0     long_name = "wind"
//!   field  flag_values "0, 1"     height "2"       long_name "wind"     gridfusion.numbers {"flag_values":"integers","height":"floats"}
//! ```
//!
//! The metadata of a field is text. The mark tells a writer which of the texts were numbers.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::single_labels::is_mark;

/// The key of the mark in a field's metadata. Its value is JSON: `integers` or `floats` by the names of attributes.
pub const NUMBER_ATTRIBUTES: &str = "gridfusion.numbers";

/// The kinds of numbers.
const INTEGERS: &str = "integers";
const FLOATS: &str = "floats";

/// Marks the attributes of these names as integers, or as floats. Each is the text of a number, or of several with commas between them.
///
/// ```
/// use std::collections::{BTreeMap, HashMap};
///
/// use gridfusion_core::array::{attribute_values, mark_numbers};
/// use serde_json::json;
///
/// let pairs = [("flag_values", "0, 1"), ("height", "2"), ("units", "1")];
/// let mut texts: BTreeMap<_, _> = pairs.map(|(name, text)| (name.to_owned(), text.to_owned())).into();
/// mark_numbers(&mut texts, [("flag_values", false), ("height", true)]);
///
/// let metadata: HashMap<_, _> = texts.into_iter().collect();
/// let values: Vec<_> = attribute_values(&metadata).into_values().collect();
/// assert_eq!(values, [json!([0, 1]), json!(2.0), json!("1")]);
/// ```
pub fn mark_numbers<'a>(
    attributes: &mut BTreeMap<String, String>,
    numbers: impl IntoIterator<Item = (&'a str, bool)>,
) {
    let kind = |is_float| Value::from(if is_float { FLOATS } else { INTEGERS });
    let kinds = numbers.into_iter().map(|(name, is_float)| (name.to_owned(), kind(is_float)));
    let kinds: serde_json::Map<String, Value> = kinds.collect();
    if !kinds.is_empty() {
        attributes.insert(NUMBER_ATTRIBUTES.to_owned(), Value::Object(kinds).to_string());
    }
}

/// Returns the attributes of a field with this metadata: numbers where the file has numbers, unless JSON has no such number.
pub fn attribute_values(metadata: &HashMap<String, String>) -> BTreeMap<String, Value> {
    let kinds = metadata.get(NUMBER_ATTRIBUTES).and_then(|text| serde_json::from_str(text).ok());
    let kinds: Value = kinds.unwrap_or_default();
    let value = |(name, text): (&String, &String)| {
        let number = kinds[name].as_str().and_then(|kind| numbers(text, kind));
        (name.clone(), number.unwrap_or_else(|| text.clone().into()))
    };
    metadata.iter().filter(|(name, _)| !is_mark(name)).map(value).collect()
}

/// Parses a number, or a list of numbers.
fn numbers(text: &str, kind: &str) -> Option<Value> {
    let number = |text: &str| match kind {
        INTEGERS => serde_json::from_str(text).ok().filter(Value::is_number),
        FLOATS => text.parse::<f64>().ok().map(Value::from).filter(Value::is_number),
        _ => None,
    };
    let mut all = text.split(", ").map(number).collect::<Option<Vec<Value>>>()?;
    if all.len() > 1 { Some(Value::Array(all)) } else { all.pop() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_those_of_the_file() {
        for (text, is_float, expected) in [
            ("1", false, json!(1)),
            ("1", true, json!(1.0)),
            ("-9223372036854775808, 18446744073709551615", false, json!([i64::MIN, u64::MAX])),
            ("0.1, 3", true, json!([0.1, 3.0])),
            ("NaN", true, json!("NaN")),
            ("0, inf", true, json!("0, inf")),
            ("", false, json!("")),
        ] {
            let mut texts = BTreeMap::from([("a".to_owned(), text.to_owned())]);
            mark_numbers(&mut texts, [("a", is_float)]);
            let values = attribute_values(&texts.into_iter().collect());
            assert_eq!(values, BTreeMap::from([("a".to_owned(), expected)]), "{text}");
        }
        let texts = HashMap::from([("a".to_owned(), "1".to_owned())]);
        assert_eq!(attribute_values(&texts)["a"], json!("1"));
    }
}
