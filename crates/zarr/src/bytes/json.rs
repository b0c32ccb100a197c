//! JSON documents of Zarr, and attributes in them.

use std::borrow::Cow;
use std::sync::LazyLock;

use serde_json::{Map, Value};

use gridfusion_cf::hierarchy::{Attribute, Attributes};
use gridfusion_core::{Error, Result};

/// The members of a JSON object.
pub(super) type Object = Map<String, Value>;

/// Parses a document. Python writes numbers that are not finite as bare words, which JSON does not have; here
/// they become texts.
///
/// # Errors
/// `Corrupt` if the document is not a JSON object.
pub(super) fn document(region: &'static str, bytes: &[u8]) -> Result<Object> {
    let parsed = serde_json::from_slice(&without_bare_words(bytes));
    parsed.map_err(|error| Error::corrupt_region(region, format!("not a JSON object ({error})")))
}

/// Puts quotes around `NaN`, `Infinity` and `-Infinity` outside of texts.
fn without_bare_words(bytes: &[u8]) -> Cow<'_, [u8]> {
    const WORDS: [&[u8]; 3] = [b"NaN", b"-Infinity", b"Infinity"];
    let mut quoted: Option<Vec<u8>> = None;
    let (mut at, mut copied, mut in_text) = (0, 0, false);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' if in_text => at += 2,
            b'"' => {
                in_text = !in_text;
                at += 1;
            }
            b'N' | b'I' | b'-' if !in_text => {
                let rest = &bytes[at..];
                let Some(word) = WORDS.iter().find(|word| rest.starts_with(word)) else {
                    at += 1;
                    continue;
                };
                let quoted = quoted.get_or_insert_default();
                quoted.extend_from_slice(&bytes[copied..at]);
                quoted.push(b'"');
                quoted.extend_from_slice(word);
                quoted.push(b'"');
                at += word.len();
                copied = at;
            }
            _ => at += 1,
        }
    }
    match quoted {
        None => Cow::Borrowed(bytes),
        Some(mut quoted) => {
            quoted.extend_from_slice(&bytes[copied..]);
            Cow::Owned(quoted)
        }
    }
}

/// Converts attributes. Values without an [`Attribute`] of their type, such as nested objects, become their JSON
/// text.
pub(super) fn attributes(object: &Object) -> Attributes {
    object.iter().map(|(name, value)| (name.clone(), attribute(value))).collect()
}

fn attribute(value: &Value) -> Attribute {
    match value {
        Value::String(text) => Attribute::Text(text.clone()),
        Value::Number(_) => {
            list(std::slice::from_ref(value)).unwrap_or_else(|| Attribute::Text(value.to_string()))
        }
        Value::Array(values) => list(values).unwrap_or_else(|| Attribute::Text(value.to_string())),
        Value::Null | Value::Bool(_) | Value::Object(_) => Attribute::Text(value.to_string()),
    }
}

/// Returns values of one kind as a list: texts, integers, or numbers.
fn list(values: &[Value]) -> Option<Attribute> {
    let integers = || values.iter().map(integer).collect::<Option<Vec<_>>>();
    let doubles = || values.iter().map(Value::as_f64).collect::<Option<Vec<_>>>();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let texts = || values.iter().map(text).collect::<Option<Vec<_>>>();
    let integers = integers().map(Attribute::Integers);
    integers.or_else(|| doubles().map(Attribute::Doubles)).or_else(|| texts().map(Attribute::Texts))
}

/// Returns a whole number that is written as one.
pub(super) fn integer(value: &Value) -> Option<i128> {
    value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from))
}

/// Returns a codec's name and configuration. A codec may be a name alone.
pub(super) fn named(codec: &Value) -> Result<(&str, &Object)> {
    static NOTHING: LazyLock<Object> = LazyLock::new(Object::new);
    let name = codec.as_str().or_else(|| codec.get("name").and_then(Value::as_str));
    let name = name.ok_or_else(|| Error::corrupt_region("metadata", "a codec without a name"))?;
    let configuration = codec.get("configuration").and_then(Value::as_object);
    Ok((name, configuration.unwrap_or(&NOTHING)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_words_are_texts() {
        let text = br#"{"a": NaN, "b": [-Infinity, Infinity, -1], "c": "NaN \" -Infinity", "d": "\\", "e": NaN}"#;
        let document = document("metadata", text).unwrap();
        assert_eq!(document["a"], "NaN");
        assert_eq!(document["b"], serde_json::json!(["-Infinity", "Infinity", -1]));
        assert_eq!(document["c"], "NaN \" -Infinity");
        assert_eq!((&document["d"], &document["e"]), (&Value::from("\\"), &Value::from("NaN")));
        for wrong in [&b"[]"[..], b"", b"{\"a\": Nan}", b"\"\\", b"{\"a\": N"] {
            assert!(super::document("metadata", wrong).is_err());
        }
    }

    #[test]
    fn attributes_keep_their_types() {
        let json = serde_json::json!({
            "units": "K", "scale": 0.5, "range": [0, 18_446_744_073_709_551_615_u64], "mixed": [1, 2.5],
            "names": ["a", "b"], "none": null, "nested": {"a": 1}, "odd": [1, "a"], "empty": [],
        });
        let Value::Object(json) = json else { panic!("an object") };
        let attributes = attributes(&json);
        let is = |name: &str, value: Attribute| assert_eq!(attributes[name], value, "{name}");
        is("units", Attribute::from("K"));
        is("scale", Attribute::Doubles(vec![0.5]));
        is("range", Attribute::Integers(vec![0, u64::MAX.into()]));
        is("mixed", Attribute::Doubles(vec![1.0, 2.5]));
        is("names", Attribute::Texts(vec!["a".to_owned(), "b".to_owned()]));
        is("none", Attribute::from("null"));
        is("nested", Attribute::from("{\"a\":1}"));
        is("odd", Attribute::from("[1,\"a\"]"));
        is("empty", Attribute::Integers(vec![]));
    }
}
