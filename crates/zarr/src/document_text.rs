//! Changes a document, and leaves every other byte as it is: numbers and order of members stay those of the program that wrote it.

use std::ops::Range;

use bytes::Bytes;
use gridfusion_core::{Error, Result};
use serde_json::{Map, Value};

/// Returns the document with another length of an axis of the array whose document is at `path`: names of members, from the outermost on.
///
/// # Errors
/// `Unsupported` if the document is no plain JSON.
pub(crate) fn with_length(document: &Bytes, path: &[&str], axis: usize, len: u64) -> Result<Bytes> {
    let shape = || {
        let at = member_at(document, &[path, &["shape"]].concat())?;
        let mut shape: Vec<u64> = serde_json::from_slice(&document[at]).ok()?;
        *shape.get_mut(axis)? = len;
        Some(Value::from(shape))
    };
    with_value(document, &[path, &["shape"]].concat(), &shape().ok_or_else(no_plain_json)?)
}

/// Returns the document with another value at `path`.
///
/// # Errors
/// `Unsupported` if the document is no plain JSON, or has no such value.
pub(crate) fn with_value(document: &Bytes, path: &[&str], value: &Value) -> Result<Bytes> {
    let changed = || {
        let at = member_at(document, path)?;
        let text = value.to_string();
        let changed = [&document[..at.start], text.as_bytes(), &document[at.end..]].concat();
        is_only_change(document, &changed, path, |old| *old = value.clone()).then(|| changed.into())
    };
    changed().ok_or_else(no_plain_json)
}

/// Returns the document with more members of the object at `path`, which has none of these names.
///
/// # Errors
/// `Unsupported` if the document is no plain JSON.
pub(crate) fn with_members(
    document: &Bytes,
    path: &[&str],
    members: &Map<String, Value>,
) -> Result<Bytes> {
    let changed = || {
        let object = member_at(document, path)?;
        let text = serde_json::to_string(members).ok()?;
        let new = text.strip_prefix('{')?.strip_suffix('}')?;
        let is_empty = document.get(blanks(document, object.start + 1)) == Some(&b'}');
        let comma: &[u8] = if is_empty || new.is_empty() { b"" } else { b"," };
        let end = object.end - 1;
        let changed = [&document[..end], comma, new.as_bytes(), &document[end..]].concat();
        let add = |node: &mut Value| {
            if let Some(object) = node.as_object_mut() {
                object.extend(members.clone());
            }
        };
        is_only_change(document, &changed, path, add).then(|| changed.into())
    };
    changed().ok_or_else(no_plain_json)
}

/// Returns the document without the members of these names of the object at `path`.
///
/// # Errors
/// `Unsupported` if the document is no plain JSON.
pub(crate) fn without_members(document: &Bytes, path: &[&str], names: &[&str]) -> Result<Bytes> {
    let changed = || {
        let all = members(document, member_at(document, path)?)?;
        let (Some(first), Some(last)) = (all.first(), all.last()) else {
            return Some(document.clone());
        };
        let mut changed = document[..first.start].to_vec();
        let mut has_members = false;
        for (at, member) in all.iter().enumerate() {
            if names.contains(&member.name.as_str()) {
                continue;
            }
            if let Some(before) = at.checked_sub(1).filter(|_| has_members) {
                changed.extend_from_slice(&document[all[before].value.end..member.start]);
            }
            changed.extend_from_slice(&document[member.start..member.value.end]);
            has_members = true;
        }
        changed.extend_from_slice(&document[last.value.end..]);
        let remove = |node: &mut Value| {
            if let Some(object) = node.as_object_mut() {
                object.retain(|name, _| !names.contains(&name.as_str()));
            }
        };
        is_only_change(document, &changed, path, remove).then(|| changed.into())
    };
    changed().ok_or_else(no_plain_json)
}

fn no_plain_json() -> Error {
    Error::unsupported("a change of a store whose metadata is no plain JSON")
}

/// Whether a document differs from another only by a change of the value at `path`.
fn is_only_change(
    before: &[u8],
    after: &[u8],
    path: &[&str],
    change: impl FnOnce(&mut Value),
) -> bool {
    let (Ok(mut before), Ok(after)) =
        (serde_json::from_slice::<Value>(before), serde_json::from_slice::<Value>(after))
    else {
        return false;
    };
    let mut node = &mut before;
    for name in path {
        node = &mut node[*name];
    }
    change(node);
    before == after
}

/// Returns the place of the value at `path`.
fn member_at(text: &[u8], path: &[&str]) -> Option<Range<usize>> {
    let whole = blanks(text, 0)..text.len();
    path.iter().try_fold(whole, |object, name| member(text, object, name))
}

/// Returns the place of the value of a member of the object at `object`, the last of that name.
fn member(text: &[u8], object: Range<usize>, name: &str) -> Option<Range<usize>> {
    let members = members(text, object)?.into_iter();
    members.rev().find(|member| member.name == name).map(|member| member.value)
}

/// A member of an object.
struct Member {
    name: String,
    /// The place where its name begins.
    start: usize,
    value: Range<usize>,
}

/// Returns the members of the object at `object`.
fn members(text: &[u8], object: Range<usize>) -> Option<Vec<Member>> {
    let mut at = blanks(text, object.start);
    let mut found = vec![];
    if text.get(at) != Some(&b'{') {
        return None;
    }
    at = blanks(text, at + 1);
    while text.get(at) == Some(&b'"') {
        let (start, end) = (at, value_end(text, at)?);
        let name = serde_json::from_slice(&text[at..end]).ok()?;
        at = blanks(text, end);
        if text.get(at) != Some(&b':') {
            return None;
        }
        at = blanks(text, at + 1);
        let end = value_end(text, at)?;
        found.push(Member { name, start, value: at..end });
        at = blanks(text, end);
        if text.get(at) == Some(&b',') {
            at = blanks(text, at + 1);
        }
    }
    Some(found)
}

/// Returns the end of the value that begins at a place.
fn value_end(text: &[u8], start: usize) -> Option<usize> {
    let (mut at, mut depth) = (start, 0_usize);
    loop {
        match text.get(at)? {
            b'"' => at = text_end(text, at)?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                at += 1;
            }
            b',' | b':' if depth > 0 => at += 1,
            byte if byte.is_ascii_whitespace() && depth > 0 => at += 1,
            _ => {
                let is_word = |byte: &u8| !b",:]}".contains(byte) && !byte.is_ascii_whitespace();
                let len = text[at..].iter().take_while(|byte| is_word(byte)).count();
                at += len;
                if len == 0 {
                    return None;
                }
            }
        }
        if depth == 0 {
            return Some(at);
        }
    }
}

/// Returns the end of a text, whose first quote is at a place.
fn text_end(text: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        match text.get(at)? {
            b'\\' => at += 2,
            b'"' => return Some(at + 1),
            _ => at += 1,
        }
    }
}

fn blanks(text: &[u8], start: usize) -> usize {
    start + text[start.min(text.len())..].iter().take_while(|it| it.is_ascii_whitespace()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_other_byte_stays() {
        let before = br#"{"a\"}": [1, {"shape": 3}], "scale": 0.1000000000000000055,
          "m": {"v": {"note": "a \\", "shape" : [ 3,4 ], "fill": -1e-9, "x": {}}, "w": [[], {}]}}"#;
        let after = with_length(&Bytes::from_static(before), &["m", "v"], 0, 17).unwrap();
        let expected = String::from_utf8_lossy(before).replace("[ 3,4 ]", "[17,4]");
        assert_eq!(String::from_utf8_lossy(&after), expected);
    }

    #[test]
    fn members_are_added_at_the_end() {
        let new =
            Map::from_iter([("g/v".to_owned(), Value::from(1)), ("z".to_owned(), Value::Null)]);
        for (before, after) in [
            (r#" {"m": {"v": 1e400} , "a": 2}"#, None),
            (
                r#" {"m": {"v": [1.50] } , "a": 2}"#,
                Some(r#" {"m": {"v": [1.50] ,"g/v":1,"z":null} , "a": 2}"#),
            ),
            (r#"{"m": { }}"#, Some(r#"{"m": { "g/v":1,"z":null}}"#)),
            (r#"{"m": [ ]}"#, None),
            (r#"{"a": {}}"#, None),
        ] {
            let changed = with_members(&Bytes::from(before), &["m"], &new).ok();
            assert_eq!(changed.as_deref(), after.map(str::as_bytes), "{before}");
        }
    }

    #[test]
    fn members_are_removed_with_their_commas() {
        let before = r#"{"m": { "a": {"b": 1.50},  "b" : [2], "c":3 }, "a": 1}"#;
        for (names, after) in [
            (&["a"][..], Some(r#"{"m": { "b" : [2], "c":3 }, "a": 1}"#)),
            (&["b"], Some(r#"{"m": { "a": {"b": 1.50}, "c":3 }, "a": 1}"#)),
            (&["c"], Some(r#"{"m": { "a": {"b": 1.50},  "b" : [2] }, "a": 1}"#)),
            (&["a", "b"], Some(r#"{"m": { "c":3 }, "a": 1}"#)),
            (&["a", "c"], Some(r#"{"m": { "b" : [2] }, "a": 1}"#)),
            (&["a", "b", "c"], Some(r#"{"m": {  }, "a": 1}"#)),
            (&[], Some(before)),
        ] {
            let changed = without_members(&Bytes::from(before), &["m"], names).ok();
            assert_eq!(changed.as_deref(), after.map(str::as_bytes), "{names:?}");
        }
        for text in ["", r#"{"m": [1]}"#, r#"{"m": {"a": NaN}}"#, r#"{"a": {}}"#] {
            assert!(without_members(&Bytes::from(text), &["m"], &["a"]).is_err(), "{text}");
        }
    }

    #[test]
    fn documents_that_do_not_fit_are_errors() {
        for text in [
            "",
            "{",
            r#"{"m": 3}"#,
            r#"{"m": {"v": {"shape": 3}}}"#,
            r#"{"m": {"v": {"shape": [3]}}"#,
            r#"{"m": {"v": {"shape": []}}}"#,
            r#"{"m": {"v": {"shape": [3], "fill": NaN}}}"#,
            r#"{"m": {"v": {"shape": [3]]}}"#,
            r#"["m"]"#,
        ] {
            assert!(with_length(&Bytes::from(text), &["m", "v"], 0, 1).is_err(), "{text}");
        }
    }
}
