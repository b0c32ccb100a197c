//! The names of the objects that hold chunks.

use std::fmt::Write;

use serde_json::Value;

use super::json::Object;
use gridfusion_core::{Error, Result};

/// How the coordinates of a chunk become the name of its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChunkKey {
    /// Whether names begin with `c`.
    has_prefix: bool,
    separator: char,
}

impl ChunkKey {
    /// Returns the names of version 2: `0.0`, or with another separator, `0/0`.
    pub(super) fn version2(metadata: &Object) -> Result<Self> {
        let separator = metadata.get("dimension_separator").filter(|it| !it.is_null());
        Ok(Self { has_prefix: false, separator: character(separator, '.')? })
    }

    /// Returns the names of version 3: `c/0/0`, or with the encoding `v2`, `0.0`.
    pub(super) fn version3(metadata: &Object) -> Result<Self> {
        let Some(encoding) = metadata.get("chunk_key_encoding") else {
            return Ok(Self { has_prefix: true, separator: '/' });
        };
        let name = encoding.as_str().or_else(|| encoding.get("name").and_then(Value::as_str));
        let separator = encoding.get("configuration").and_then(|it| it.get("separator"));
        match name {
            Some("default") => Ok(Self { has_prefix: true, separator: character(separator, '/')? }),
            Some("v2") => Ok(Self { has_prefix: false, separator: character(separator, '.')? }),
            _ => Err(Error::unsupported(format!("the chunk key encoding {encoding}"))),
        }
    }

    /// Returns the name of a chunk's object in the array `path`.
    pub(super) fn object(self, path: &str, chunk: impl IntoIterator<Item = u64>) -> String {
        let mut name = String::from(path);
        if !path.is_empty() {
            name.push('/');
        }
        let start = name.len();
        if self.has_prefix {
            name.push('c');
        }
        for coordinate in chunk {
            if name.len() > start {
                name.push(self.separator);
            }
            // Writing to a text cannot fail.
            let _ = write!(name, "{coordinate}");
        }
        if name.len() == start {
            name.push('0');
        }
        name
    }
}

/// Returns the coordinates in the name of a chunk's object, relative to its array, whatever the separator; `None` for another
/// name.
pub(super) fn coordinates_in(name: &str) -> Option<Vec<u64>> {
    let numbers = match name.strip_prefix('c') {
        Some("") => return Some(vec![]),
        Some(rest) => rest.strip_prefix(['/', '.'])?,
        None => name,
    };
    let number = |part: &str| {
        let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse().ok().filter(|_| is_number)
    };
    numbers.split(['/', '.']).map(number).collect()
}

fn character(value: Option<&Value>, otherwise: char) -> Result<char> {
    match value.map(Value::as_str) {
        None => Ok(otherwise),
        Some(Some(".")) => Ok('.'),
        Some(Some("/")) => Ok('/'),
        Some(_) => {
            let value = value.map(ToString::to_string).unwrap_or_default();
            Err(Error::unsupported(format!("the separator {value} in the names of chunks")))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_of_chunks_in_any_encoding() {
        for (name, coordinates) in [
            ("0", Some(vec![0])),
            ("0.12", Some(vec![0, 12])),
            ("0/12", Some(vec![0, 12])),
            ("c/0/12", Some(vec![0, 12])),
            ("c.3", Some(vec![3])),
            ("c", Some(vec![])),
            ("c0", None),
            ("0.x", None),
            ("+1", None),
            ("", None),
            (".zarray", None),
        ] {
            assert_eq!(coordinates_in(name), coordinates, "{name}");
        }
    }

    #[test]
    fn names_of_chunks() {
        let parse = |metadata: Value, version: u32| {
            let Value::Object(metadata) = metadata else { panic!("an object") };
            if version == 2 { ChunkKey::version2(&metadata) } else { ChunkKey::version3(&metadata) }
        };
        let name = |metadata, version, chunk: &[u64]| {
            parse(metadata, version).unwrap().object("a/b", chunk.iter().copied())
        };
        assert_eq!(name(json!({}), 2, &[0, 12]), "a/b/0.12");
        assert_eq!(name(json!({"dimension_separator": "/"}), 2, &[0, 12]), "a/b/0/12");
        assert_eq!(name(json!({}), 2, &[]), "a/b/0");
        assert_eq!(name(json!({}), 3, &[0, 12]), "a/b/c/0/12");
        assert_eq!(name(json!({}), 3, &[]), "a/b/c");
        let dots =
            json!({"chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}}});
        assert_eq!(name(dots, 3, &[3, 4]), "a/b/c.3.4");
        let old = json!({"chunk_key_encoding": {"name": "v2"}});
        assert_eq!(name(old.clone(), 3, &[3, 4]), "a/b/3.4");
        assert_eq!(parse(old, 3).unwrap().object("", []), "0");
        assert!(parse(json!({"chunk_key_encoding": {"name": "hash"}}), 3).is_err());
        assert!(parse(json!({"dimension_separator": "-"}), 2).is_err());
    }
}
