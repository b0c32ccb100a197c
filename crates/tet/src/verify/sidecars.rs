//! The files beside the `.tet` file of a generation: their contents and their hashes.

use std::fmt::Write;

use bytes::Bytes;
use serde_json::Value;
use sha2::{Digest, Sha256};

use gridfusion_core::format::{Entry, Location};
use gridfusion_core::tile::Objects;
use gridfusion_core::verify::{Check, Finding};
use gridfusion_core::{Error, Result};

/// Bytes that are read and hashed at once. A `.tet` file may be larger than memory.
const HASHED_AT_ONCE: u64 = 4 << 20;
/// The size in bytes of the largest JSON file that is parsed.
const MOST_JSON: u64 = 256 << 20;

/// The folder of one generation, with its manifest.
#[derive(Debug)]
pub(super) struct Sidecars<'a> {
    pub(super) objects: &'a Objects,
    /// The path of the folder in the package.
    pub(super) folder: String,
    /// The entries of the folder; empty if it cannot be listed.
    pub(super) entries: Vec<Entry>,
    /// The parsed manifest; null if there is none.
    pub(super) manifest: Value,
}

impl Sidecars<'_> {
    /// Returns the size of a file in bytes; `None` if the file does not exist.
    pub(super) fn size(&self, name: &str) -> Option<u64> {
        self.entries.iter().find(|entry| entry.name == name)?.size
    }

    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.folder)
    }

    /// Reads and parses a JSON file; `None` if the file does not exist.
    pub(super) async fn json(&self, name: &str) -> Result<Option<Value>> {
        let Some(size) = self.size(name) else { return Ok(None) };
        let corrupt =
            |message: String| Error::corrupt_region("package", message).in_file(&self.path(name));
        if size > MOST_JSON {
            return Err(corrupt(format!("{size} bytes, and at most {MOST_JSON} are read")));
        }
        let text = self.read(name, 0..size).await?;
        let json = serde_json::from_slice(&text);
        json.map(Some).map_err(|error| corrupt(format!("not the JSON expected here ({error})")))
    }

    async fn read(&self, name: &str, range: std::ops::Range<u64>) -> Result<Bytes> {
        let at = Location::new(self.path(name), range);
        let read = self.objects.read(&[at]).await?;
        read.into_iter().next().ok_or_else(|| Error::internal("bytes that were not delivered"))
    }

    /// Computes the SHA-256 of a file in hexadecimal digits; `None` if the file does not exist.
    pub(super) async fn hash(&self, name: &str) -> Result<Option<String>> {
        let Some(size) = self.size(name) else { return Ok(None) };
        let mut hash = Sha256::new();
        let mut at = 0;
        while at < size {
            let end = size.min(at + HASHED_AT_ONCE);
            hash.update(self.read(name, at..end).await?);
            at = end;
        }
        let mut digits = String::new();
        for byte in hash.finalize() {
            // Writing to a string cannot fail.
            let _ = write!(digits, "{byte:02x}");
        }
        Ok(Some(digits))
    }

    /// Compares the hash of the file `name` with the one under `key` in the manifest.
    pub(super) async fn check_hash(&self, name: &str, key: &str, check: &mut Check) {
        let finding = match (self.hash(name).await, self.manifest[key].as_str()) {
            (Err(error), _) => Finding::from_error(&error),
            (Ok(None), _) => Finding::failure("the manifest lists this file, but it is missing"),
            (Ok(Some(_)), None) => Finding::failure(format!("the manifest lacks \"{key}\"")),
            (Ok(Some(found)), Some(listed)) if found == listed => return,
            (Ok(Some(found)), Some(listed)) => {
                Finding::failure(format!("its SHA-256 is {found}, the manifest has {listed}"))
            }
        };
        check.add(finding.in_file(&self.path(name)));
    }

    /// Checks that a JSON file belongs to generation `number`, and to the `.tet` file of the manifest.
    pub(super) fn check_about(&self, name: &str, json: &Value, number: u64, check: &mut Check) {
        if json["generation"].as_u64() != Some(number) {
            let found = &json["generation"];
            let message = format!("it belongs to generation {found}, expected {number}");
            check.add(Finding::failure(message).in_file(&self.path(name)));
        }
        // Both files have the hash of the `.tet` file that they describe. A writer may leave it out of
        // either.
        let (listed, found) = (&self.manifest["packed_sha256"], &json["packed_sha256"]);
        if !listed.is_null() && !found.is_null() && listed != found {
            let message =
                format!("it belongs to a file of SHA-256 {found}, the manifest has {listed}");
            check.add(Finding::failure(message).in_file(&self.path(name)));
        }
    }
}
