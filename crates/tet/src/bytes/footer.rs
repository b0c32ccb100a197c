//! The history footer at the end of the file.
//!
//! ```text
//!   … payloads │ zone maps │ secondary index │ metadata │ JSON │ json_len u64 │ version u32 │ THST │
//!              └──────── spills, each optional ─────────┘      └─────────── tail, 16 bytes ────────┘
//! ```

use std::ops::Range;

use super::metadata::{FooterJson, SpillRef};
use gridfusion_core::format::wire::Reader;
use gridfusion_core::{Error, Result};

/// Bytes of the fixed tail.
pub(super) const TAIL_LEN: u64 = 16;

/// The longest footer that is read, in bytes: parsed, it takes several times as much memory.
const MOST_JSON: u64 = 64 << 20;

/// The tail: the position of the JSON before it, and the version of the footer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tail {
    /// The version of the footer, 1 or 2.
    pub(super) version: u32,
    /// The JSON's bytes in the file.
    pub(super) json: Range<u64>,
}

impl Tail {
    /// Parses the tail of a file of `file_len` bytes. `bytes` are its last [`TAIL_LEN`].
    ///
    /// # Errors
    /// `Corrupt` for another magic, an unknown version, or JSON that would begin before the file. `Unsupported` for more JSON
    /// than 64 MiB.
    pub(super) fn parse(bytes: &[u8], file_len: u64) -> Result<Self> {
        // The magic comes last. It is checked first, so that a file without a footer gets that error.
        let tail_at = file_len - TAIL_LEN;
        let magic_at = bytes.len().saturating_sub(4);
        Reader::new("footer", tail_at + magic_at as u64, &bytes[magic_at..])
            .magic(b"THST", "the superblock's flags announce a history footer")?;
        let mut reader = Reader::new("footer", tail_at, bytes);
        let json_len = reader.u64()?;
        let version = reader.version("history version", &[1, 2])?;
        if json_len > MOST_JSON && json_len <= tail_at {
            let message = format!("a footer of {json_len} bytes; at most {MOST_JSON} are read");
            return Err(Error::unsupported(message));
        }
        match tail_at.checked_sub(json_len) {
            Some(start) => Ok(Self { version, json: start..tail_at }),
            None => {
                let message = format!("{json_len} bytes of JSON before byte {tail_at}");
                Err(Error::corrupt("footer", tail_at, message))
            }
        }
    }

    /// Parses the JSON before the tail. Unknown keys are ignored.
    pub(super) fn parse_json(&self, bytes: &[u8]) -> Result<FooterJson> {
        serde_json::from_slice(bytes).map_err(|error| {
            // An error, because without the footer labels and fill values would silently be lost.
            let message = format!(
                "not the JSON expected here ({error}); `tet repair` can cut a broken footer off"
            );
            Error::corrupt("footer", self.json.start, message)
        })
    }

    /// Returns the spills that this version of the footer defines: zone maps, secondary index, metadata.
    /// Version 1 defines only metadata, so the other two are ignored.
    pub(super) fn spills(&self, json: &FooterJson) -> [Option<SpillRef>; 3] {
        match self.version {
            1 => [None, None, json.metadata_ref],
            _ => [json.zone_maps_ref, json.secondary_index_ref, json.metadata_ref],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(json_len: u64, version: u32, magic: &[u8; 4]) -> Result<Tail> {
        let mut bytes = json_len.to_le_bytes().to_vec();
        bytes.extend(version.to_le_bytes());
        bytes.extend(magic);
        Tail::parse(&bytes, 100)
    }

    #[test]
    fn both_versions_and_nothing_else() {
        assert_eq!(tail(20, 1, b"THST").unwrap().json, 64..84);
        assert_eq!(tail(84, 2, b"THST").unwrap().json, 0..84);
        for (json_len, version, magic, at) in [
            (20, 3, b"THST", 92),
            (20, 1, b"XXXX", 96),
            (85, 1, b"THST", 84),
            (u64::MAX, 2, b"THST", 84),
        ] {
            assert_eq!(tail(json_len, version, magic).unwrap_err().offset(), Some(at));
        }
    }

    #[test]
    fn a_footer_has_a_limit() {
        let mut bytes = (1_u64 << 30).to_le_bytes().to_vec();
        bytes.extend(2_u32.to_le_bytes());
        bytes.extend(b"THST");
        let error = Tail::parse(&bytes, 1 << 31).unwrap_err();
        assert_eq!(error.kind(), gridfusion_core::ErrorKind::Unsupported);
        assert!(error.to_string().contains("1073741824 bytes"), "{error}");
    }

    #[test]
    fn history_comes_in_two_forms() {
        let json = br#"{"history": [["convert", "h5", "1"], {"op": "x", "source": "nc", "at": "2", "new": 1},
            {"source": "zarr", "at": 3}], "z": 0}"#;
        let footer = tail(20, 2, b"THST").unwrap().parse_json(json).unwrap();
        let events: Vec<[&str; 3]> =
            footer.history.iter().map(|event| [&*event.op, &*event.source, &*event.at]).collect();
        assert_eq!(events, [["convert", "h5", "1"], ["x", "nc", "2"], ["", "zarr", "3"]]);
    }

    #[test]
    fn the_metadata_of_the_file_may_be_anything() {
        let file = |json: &str| {
            let json = format!(r#"{{"metadata": {{"file": {json}}}}}"#);
            let footer = tail(20, 2, b"THST").unwrap().parse_json(json.as_bytes()).unwrap();
            footer.metadata.unwrap_or_default().file
        };
        let facts = file(r#"{"tool": "tet", "size": 3, "none": null}"#);
        let facts: Vec<_> = facts.iter().map(|(key, value)| (&**key, &**value)).collect();
        assert_eq!(facts, [("none", ""), ("size", "3"), ("tool", "tet")]);
        assert!(file("[1]").is_empty());
    }
}
