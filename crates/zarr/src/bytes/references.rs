//! Reference files, as kerchunk and VirtualiZarr write them: a Zarr store whose chunks lie in other objects.
//!
//! ```text
//!   { "version": 1,
//!     "templates": { "u": "s3://bucket/2024.nc" },
//!     "refs": { ".zgroup": "{…}", "t2m/.zarray": "{…}", "t2m/.zattrs": "{…}",     documents, as text or JSON
//!               "t2m/0.0.0": ["{{u}}", 4096, 1000],                               bytes of another object
//!               "t2m/0.0.1": ["s3://bucket/x"],                                   a whole object
//!               "t2m/0.0.2": "base64:AAAA" } }                                    the bytes themselves
//! ```
//!
//! Facts: the specification of kerchunk's references, versions 0 (only the object `refs`, without a name) and 1.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::array::ZarrArray;
use super::json::{Object, document};
use super::locate::LocateZarr;
use super::open_store::ZarrStore;
use super::places::{KnownTable, ObjectPlace, ObjectPlaces, PlaceTable};
use gridfusion_core::format::{ByteRange, Location, Machine, Replies, Step};
use gridfusion_core::{Error, Result};

const REGION: &str = "references";

/// Whether a file with these first bytes is a reference file.
pub fn is_references(head: &[u8]) -> bool {
    let holds = |word: &[u8]| head.windows(word.len()).any(|bytes| bytes == word);
    let is_object = head.trim_ascii_start().first() == Some(&b'{');
    let has_metadata = holds(b"\".zgroup\"") || holds(b"/.zarray\"") || holds(b"zarr.json\"");
    is_object && (has_metadata || (begins_as_references(head) && !is_complete(head)))
}

/// Whether the first keys are `"version"`, with a number, and `"refs"` or `"templates"`, with an object. The metadata may come
/// after many bytes.
fn begins_as_references(head: &[u8]) -> bool {
    fn behind<'a>(text: &'a [u8], start: &[u8]) -> Option<&'a [u8]> {
        text.trim_ascii_start().strip_prefix(start)
    }
    let keys = |text: &[u8]| {
        let object = |key: &[u8]| behind(behind(behind(text, key)?, b":")?, b"{");
        object(b"\"refs\"").or_else(|| object(b"\"templates\"")).is_some()
    };
    let Some(text) = behind(head, b"{") else { return false };
    let version = behind(text, b"\"version\"").and_then(|text| behind(text, b":"));
    let rest = version.and_then(|text| {
        let text = text.trim_ascii_start();
        let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        behind(&text[digits..], b",")
    });
    keys(rest.unwrap_or(text))
}

/// Whether the first bytes of a file hold a whole object. It is then a row, as files with an object a line have them.
fn is_complete(head: &[u8]) -> bool {
    let mut values = serde_json::Deserializer::from_slice(head).into_iter::<IgnoredAny>();
    matches!(values.next(), Some(Ok(_)))
}

/// A store whose chunks lie in other objects.
#[derive(Debug)]
pub struct ReferencedStore {
    store: ZarrStore,
    chunks: Arc<References>,
}

/// The places of objects, by their names in the store.
#[derive(Debug)]
struct References(HashMap<String, ObjectPlace>);

impl ReferencedStore {
    /// The groups and arrays.
    pub fn store(&self) -> &ZarrStore {
        &self.store
    }

    /// Whether a chunk lies in an object store.
    pub fn names_stores(&self) -> bool {
        let is_url = |url: &str| url.contains("://") && !url.starts_with("file://");
        self.chunks.0.values().any(|it| matches!(it, ObjectPlace::At(at) if is_url(&at.object)))
    }

    /// Returns a machine that finds chunks of a variable in the objects that the file names: by URL, as the file has them.
    /// Chunks without a reference are absent.
    ///
    /// # Errors
    /// `Internal` if there is no such variable.
    pub fn locate(&self, variable: usize, chunks: Vec<Vec<u64>>) -> Result<LocateZarr> {
        let places = Arc::new(ReferencePlaces(Arc::clone(&self.chunks)));
        Ok(self.store.locate(variable, chunks)?.with_places(places))
    }
}

/// A file has one table, which is known.
#[derive(Debug)]
struct ReferencePlaces(Arc<References>);

impl ObjectPlaces for ReferencePlaces {
    fn tables(&self, _: &ZarrArray, _: &[u64]) -> Result<Vec<KnownTable>> {
        Ok(vec![KnownTable::Here(Arc::clone(&self.0) as Arc<dyn PlaceTable>)])
    }
}

impl PlaceTable for References {
    fn place(&self, array: &ZarrArray, object: &[u64]) -> Result<Option<ObjectPlace>> {
        Ok(self.0.get(&*array.object(object)).cloned())
    }
}

/// A machine that reads a reference file.
#[derive(Debug, Default)]
pub struct OpenReferences;

impl Machine for OpenReferences {
    type Output = ReferencedStore;

    fn subject(&self) -> &'static str {
        REGION
    }

    fn step(&mut self, replies: Replies) -> Result<Step<ReferencedStore>> {
        let Some(bytes) = replies.into_bytes().into_iter().next() else {
            return Ok(Step::Read(vec![Location::new("", ByteRange::Whole)]));
        };
        if !is_references(&bytes) {
            let message = "this file is no Zarr store and no reference file: it is no JSON object with Zarr metadata";
            return Err(Error::usage(message));
        }
        parse(&bytes).map(Step::Done)
    }
}

fn parse(bytes: &[u8]) -> Result<ReferencedStore> {
    let mut file = document(REGION, bytes)?;
    if file.contains_key("gen") {
        return Err(Error::unsupported("references that are generated by a formula (\"gen\")"));
    }
    let templates = match file.get("templates") {
        Some(Value::Object(templates)) => templates.clone(),
        _ => Object::new(),
    };
    let refs = match file.remove("refs") {
        Some(Value::Object(refs)) => refs,
        Some(_) => return Err(corrupt("\"refs\" is no object".to_owned())),
        None => file,
    };
    let (mut documents, mut chunks) = (Object::new(), HashMap::new());
    for (name, value) in refs {
        match name.rsplit('/').next() {
            Some(".zgroup" | ".zarray" | ".zattrs" | "zarr.json") => {
                let content = content(&name, value)?;
                documents.insert(name, Value::Object(content));
            }
            Some(".zmetadata") => {}
            _ => {
                let reference = reference(&name, &value, &templates)?;
                chunks.insert(name, reference);
            }
        }
    }
    let store = ZarrStore::from_documents(documents)?;
    Ok(ReferencedStore { store, chunks: Arc::new(References(chunks)) })
}

/// Returns a document, which may be JSON or its text.
fn content(name: &str, value: Value) -> Result<Object> {
    match value {
        Value::Object(content) => Ok(content),
        Value::String(text) => document(REGION, &text_bytes(&text)?),
        _ => Err(corrupt(format!("\"{name}\" is no document"))),
    }
}

/// Returns the bytes that a text stands for: base64 after a prefix, else the text itself.
fn text_bytes(text: &str) -> Result<Vec<u8>> {
    match text.strip_prefix("base64:") {
        Some(encoded) => BASE64_STANDARD
            .decode(encoded)
            .map_err(|error| corrupt(format!("text that is not base64 ({error})"))),
        None => Ok(text.as_bytes().to_vec()),
    }
}

fn reference(name: &str, value: &Value, templates: &Object) -> Result<ObjectPlace> {
    let wrong = || corrupt(format!("the reference of \"{name}\" is {value}"));
    if let Value::String(text) = value {
        return text_bytes(text).map(|bytes| ObjectPlace::Here(bytes.into()));
    }
    let parts = value.as_array().map(Vec::as_slice).ok_or_else(wrong)?;
    let url = parts.first().and_then(Value::as_str).ok_or_else(wrong)?;
    let url: Arc<str> = filled_in(url, templates).ok_or_else(wrong)?.into();
    let range = match parts {
        [_] => ByteRange::Whole,
        [_, start, len] => {
            let (start, len) = start.as_u64().zip(len.as_u64()).ok_or_else(wrong)?;
            let end = start.checked_add(len).ok_or_else(wrong)?;
            ByteRange::from(start..end)
        }
        _ => return Err(wrong()),
    };
    Ok(ObjectPlace::At(Location::new(url, range)))
}

/// Replaces `{{name}}` by the template of this name; `None` for templates with arguments, unknown names, and URLs that
/// become longer than any server takes.
fn filled_in(url: &str, templates: &Object) -> Option<String> {
    const MOST: usize = 8192;
    let (mut filled, mut rest) = (String::new(), url);
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}")?;
        filled.push_str(before);
        filled.push_str(templates.get(name.trim())?.as_str()?);
        if filled.len() > MOST {
            return None;
        }
        rest = after;
    }
    filled.push_str(rest);
    Some(filled)
}

fn corrupt(message: String) -> Error {
    Error::corrupt_region(REGION, message)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use gridfusion_core::ErrorKind;
    use gridfusion_core::format::{Scratch, StoredChunk};

    fn opened(text: &str) -> Result<ReferencedStore> {
        let mut machine = OpenReferences;
        let Step::Read(_) = machine.step(Replies::Start)? else { panic!("a read") };
        let replies = Replies::Bytes(vec![Bytes::from(text.to_owned())]);
        let Step::Done(store) = machine.step(replies)? else { panic!("a store") };
        Ok(store)
    }

    const ARRAY: &str = r#"{\"zarr_format\": 2, \"shape\": [4], \"chunks\": [1], \"dtype\": \"|u1\", \"fill_value\": null, \"order\": \"C\", \"filters\": null, \"compressor\": null}"#;

    #[test]
    fn chunks_are_found_where_references_say() {
        let text = format!(
            r#"{{"version": 1, "templates": {{"u": "s3://b/x"}}, "refs": {{".zgroup": {{"zarr_format": 2}},
               "a/.zarray": "{ARRAY}", "a/0": ["{{{{u}}}}.nc", 10, 1], "a/1": ["y.nc"], "a/2": "base64:Bw=="}}}}"#
        );
        assert!(is_references(text.as_bytes()));
        let store = opened(&text).unwrap();
        let mut locate = store.locate(0, (0..4).map(|at| vec![at]).collect()).unwrap();
        let Step::Done(chunks) = locate.step(Replies::Start).unwrap() else { panic!("chunks") };
        let at = |chunk: &StoredChunk| chunk.layers[0].values.at.clone();
        assert!(store.names_stores());
        assert_eq!(at(&chunks[0]), Location::new("s3://b/x.nc", 10..11));
        assert_eq!(at(&chunks[1]), Location::new("y.nc", ByteRange::Whole));
        let inline = &chunks[2].layers[0].values;
        let decoded = inline.decode(Bytes::new(), vec![], &mut Scratch::default()).unwrap();
        assert_eq!(decoded.bytes, [7_u8][..]);
        assert!(chunks[3].layers.is_empty());
    }

    #[test]
    fn what_is_no_reference_is_refused() {
        for refs in [
            r#""a/0": ["x", 1]"#,
            r#""a/0": ["x", -1, 2]"#,
            r#""a/0": ["{{u}}"]"#,
            r#""a/0": ["x", 18446744073709551615, 2]"#,
            r#""a/0": "base64:?""#,
            r#""a/0": 7"#,
            r#""a/.zattrs": 7"#,
            r#""a/.zarray": "{""#,
        ] {
            let text = format!(r#"{{"version": 1, "refs": {{".zgroup": {{}}, {refs}}}}}"#);
            assert_eq!(opened(&text).unwrap_err().kind(), ErrorKind::Corrupt, "{refs}");
        }
        let generated = opened(r#"{"version": 1, "gen": [], "refs": {".zgroup": {}}}"#);
        assert_eq!(generated.unwrap_err().kind(), ErrorKind::Unsupported);
        assert_eq!(opened("{}").unwrap_err().kind(), ErrorKind::Usage);
        assert!(!is_references(b"[\".zgroup\"]") && !is_references(b"{\"rows\": 1}"));
    }

    #[test]
    fn files_are_recognised_by_their_beginnings() {
        for (head, expected) in [
            (&br#"{"version":1,"refs":{"#[..], true),
            (b" {\n \"version\" : 1 ,\n \"templates\": {\"u\"", true),
            (b"{\"refs\":{\"a/0\":\"base64:AAAA", true),
            (b"{\"version\":1,\"refs\":{\0\0\0\0", true),
            // Rows.
            (b"{\"version\":1,\"refs\":{\"a\":1}}\n{\"version\":2", false),
            (b"{\"refs\":{}}\n", false),
            (b"{\"version\":1,\"refs\":[1", false),
            (b"{\"version\":1,\"text\":\"", false),
            (b"{\"version\":1", false),
            (b"", false),
        ] {
            assert_eq!(is_references(head), expected, "{}", String::from_utf8_lossy(head));
        }
    }
}
