//! Pages of S3's `ListObjectsV2`.

use std::fmt::Write;

use super::objects::{Object, Objects};
use super::request::Listing;

/// The most entries of a page, as of S3.
const PAGE: usize = 1000;

/// A line of a page.
enum Entry<'a> {
    Key(&'a str, &'a Object),
    /// The common beginning of several keys, up to the delimiter.
    Prefix(&'a str),
}

/// Returns the XML of a page of a bucket. `e_tag` returns the entity tags to show.
pub(super) fn page(
    objects: &Objects,
    bucket: &str,
    listing: &Listing,
    e_tag: impl Fn(&Object) -> Option<String>,
) -> String {
    let len = listing.max_keys.unwrap_or(PAGE).min(PAGE);
    let mut entries = entries(objects, bucket, listing, len + 1);
    let is_truncated = entries.len() > len;
    entries.truncate(len);
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult>");
    element(&mut xml, "Name", bucket);
    element(&mut xml, "Prefix", &listing.prefix);
    element(&mut xml, "KeyCount", &entries.len().to_string());
    element(&mut xml, "MaxKeys", &len.to_string());
    element(&mut xml, "IsTruncated", &is_truncated.to_string());
    if let Some(last) = entries.last().filter(|_| is_truncated) {
        element(&mut xml, "NextContinuationToken", &last.token());
    }
    for entry in &entries {
        entry.write(&mut xml, &e_tag);
    }
    xml + "</ListBucketResult>"
}

/// Returns at most so many entries after the token.
fn entries<'a>(
    objects: &'a Objects,
    bucket: &'a str,
    listing: &Listing,
    most: usize,
) -> Vec<Entry<'a>> {
    let is_done = |key: &str| {
        let Some(token) = &listing.token else { return false };
        token
            .split_once(':')
            .is_some_and(|(kind, last)| key <= last || (kind == "prefix" && key.starts_with(last)))
    };
    let mut entries = vec![];
    for (key, object) in objects.keys(bucket) {
        if entries.len() == most {
            break;
        }
        let Some(rest) = key.strip_prefix(&listing.prefix) else { continue };
        if is_done(key) || matches!(entries.last(), Some(Entry::Prefix(it)) if key.starts_with(it))
        {
            continue;
        }
        let cut = Some(&listing.delimiter).filter(|it| !it.is_empty());
        let cut = cut.and_then(|delimiter| Some(rest.find(delimiter)? + delimiter.len()));
        entries.push(match cut {
            Some(cut) => Entry::Prefix(&key[..key.len() - rest.len() + cut]),
            None => Entry::Key(key, object),
        });
    }
    entries
}

impl Entry<'_> {
    /// Returns the token of the page that begins after this entry.
    fn token(&self) -> String {
        match self {
            Self::Key(key, _) => format!("key:{key}"),
            Self::Prefix(prefix) => format!("prefix:{prefix}"),
        }
    }

    fn write(&self, xml: &mut String, e_tag: &impl Fn(&Object) -> Option<String>) {
        match self {
            Self::Prefix(prefix) => {
                *xml += "<CommonPrefixes>";
                element(xml, "Prefix", prefix);
                *xml += "</CommonPrefixes>";
            }
            Self::Key(key, object) => {
                *xml += "<Contents>";
                element(xml, "Key", key);
                let modified = object.modified().format("%Y-%m-%dT%H:%M:%S.000Z").to_string();
                element(xml, "LastModified", &modified);
                if let Some(e_tag) = e_tag(object) {
                    element(xml, "ETag", &e_tag);
                }
                element(xml, "Size", &object.bytes.len().to_string());
                *xml += "</Contents>";
            }
        }
    }
}

fn element(xml: &mut String, name: &str, text: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    write!(xml, "<{name}>{}</{name}>", text.replace('"', "&quot;")).unwrap();
}
