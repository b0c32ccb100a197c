//! A `.tet.d` package: a folder of generations of one file, one of which is current.
//!
//! ```text
//!   x.tet.d ─┬─ PROTOCOL                  {"protocol_version":2, …}
//!            ├─ CURRENT                   the number of a generation
//!            └─ generations ─┬─ 00000001
//!                            └─ 00000002 ─┬─ packed.tet   the file
//!                                         └─ ZONE.json    its zone maps
//! ```
//!
//! A writer adds a generation and then moves `CURRENT`, so an open generation never changes. Queries ignore
//! everything else in a package: parts that are being written, manifests, indexes.
//!
//! Three round trips find a generation: list the root, read the texts, list the folder of the generation.
//! See crates/tet/FORMAT.md, section 13.
//!
//! A table keeps the file of its generation open, and does not read `CURRENT` again.

use bytes::Bytes;
use serde::Deserialize;

use gridfusion_core::format::{Entry, Location, Machine, Replies, Step};
use gridfusion_core::{Error, Result};

use super::package_names::{
    CURRENT, GENERATIONS, PACKED_FILE, PROTOCOL, PROTOCOL_VERSION, ZONE_FILE, folder_of,
};

/// The most bytes of `PROTOCOL` and of `CURRENT`, which have less than a hundred in a valid package.
const MAX_TEXT_LEN: u64 = 1 << 16;

/// Whether a folder with these `entries` is a package.
pub fn is_package(entries: &[Entry]) -> bool {
    entries.iter().any(|entry| entry.name == PROTOCOL && entry.size.is_some())
}

/// One generation of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Generation {
    /// The number, which also names the folder of the generation.
    pub number: u64,
    /// The path of its `.tet` file in the package.
    pub packed_file: String,
    /// The zone file beside the `.tet` file, if there is one.
    pub zone_file: Option<Location>,
}

/// A machine that finds the current generation of a package, or the one with a given number.
///
/// ```
/// use gridfusion_core::format::{Entry, Machine, Replies, Step};
/// use gridfusion_tet::bytes::OpenPackage;
///
/// let entry = |name: &str, size| Entry::new(name, size);
/// let mut open = OpenPackage::new(None);
/// let mut replies = Replies::Start;
/// let generation = loop {
///     replies = match open.step(replies)? {
///         Step::List(folders) => Replies::Listings(vec![match folders[0].as_str() {
///             "" => vec![entry("PROTOCOL", Some(22)), entry("CURRENT", Some(2))],
///             "generations/00000007" => vec![entry("packed.tet", Some(500))],
///             _ => vec![],
///         }]),
///         Step::Read(_) => Replies::Bytes(vec!["{\"protocol_version\":2}".into(), "7\n".into()]),
///         Step::ReadIfPresent(_) => unreachable!("a package lists its files"),
///         Step::Done(generation) => break generation,
///     };
/// };
/// assert_eq!(generation.packed_file, "generations/00000007/packed.tet");
/// assert_eq!(generation.zone_file, None);
/// # Ok::<(), gridfusion_core::Error>(())
/// ```
#[derive(Debug)]
pub struct OpenPackage {
    /// The generation to open; `None` means the current one.
    wanted: Option<u64>,
    state: PackageState,
}

#[derive(Debug)]
enum PackageState {
    Start,
    /// Listing the package itself.
    Root,
    /// Reading `PROTOCOL`, and `CURRENT` unless a generation is wanted.
    Texts,
    /// Listing the folder of this generation.
    Folder(u64),
    /// Listing all generations for the error, because this one is missing.
    Missing(u64),
}

impl OpenPackage {
    /// Starts opening the generation `wanted` of a package; `None` means the current one.
    pub fn new(wanted: Option<u64>) -> Self {
        Self { wanted, state: PackageState::Start }
    }

    fn list(&mut self, state: PackageState, folder: String) -> Result<Step<Generation>> {
        self.state = state;
        Ok(Step::List(vec![folder]))
    }

    fn read_texts(&mut self, root: &[Entry]) -> Result<Step<Generation>> {
        let mut texts = vec![text_file(root, PROTOCOL)?.ok_or_else(|| {
            Error::usage(format!("this folder is not a .tet.d package: it has no {PROTOCOL}"))
        })?];
        if self.wanted.is_none() {
            texts.push(text_file(root, CURRENT)?.ok_or_else(|| {
                let message = "no generation of this package has been published: it has no";
                Error::usage(format!("{message} {CURRENT}"))
            })?);
        }
        self.state = PackageState::Texts;
        Ok(Step::Read(texts))
    }

    fn choose(&mut self, texts: &[Bytes]) -> Result<Step<Generation>> {
        let [protocol, current @ ..] = texts else {
            return Err(Error::internal("the protocol was requested and not read"));
        };
        check_protocol(protocol).map_err(|error| error.in_file(PROTOCOL))?;
        let number = match current {
            [current] => parse_current(current).map_err(|error| error.in_file(CURRENT))?,
            _ => self.wanted.unwrap_or_default(),
        };
        self.list(PackageState::Folder(number), folder_of(number))
    }

    fn find_files(&mut self, number: u64, entries: &[Entry]) -> Result<Step<Generation>> {
        if entries.is_empty() {
            return self.list(PackageState::Missing(number), GENERATIONS.to_owned());
        }
        let folder = folder_of(number);
        let size = |name| entries.iter().find(|entry| entry.name == name)?.size;
        if size(PACKED_FILE).is_none() {
            let message = format!("generation {number} has no {PACKED_FILE}");
            return Err(Error::corrupt_region("package", message));
        }
        let zone_file = size(ZONE_FILE).map(|size| whole(format!("{folder}/{ZONE_FILE}"), size));
        let packed_file = format!("{folder}/{PACKED_FILE}");
        Ok(Step::Done(Generation { number, packed_file, zone_file }))
    }

    fn missing(&self, number: u64, entries: &[Entry]) -> Error {
        let numbers = entries.iter().filter(|entry| entry.size.is_none());
        let mut numbers: Vec<u64> = numbers.filter_map(|entry| entry.name.parse().ok()).collect();
        numbers.sort_unstable();
        let known: Vec<String> = numbers.iter().map(u64::to_string).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        match self.wanted {
            Some(_) => Error::usage(format!("no generation {number}; the package has {known}")),
            None => {
                let message = format!("generation {number}, but the package has {known}");
                Error::corrupt_region("current generation", message).in_file(CURRENT)
            }
        }
    }
}

impl Machine for OpenPackage {
    type Output = Generation;

    fn subject(&self) -> &'static str {
        "package"
    }

    fn step(&mut self, replies: Replies) -> Result<Step<Generation>> {
        let listed = |replies: Replies| replies.into_listings().pop().unwrap_or_default();
        match self.state {
            PackageState::Start => self.list(PackageState::Root, String::new()),
            PackageState::Root => self.read_texts(&listed(replies)),
            PackageState::Texts => self.choose(&replies.into_bytes()),
            PackageState::Folder(number) => self.find_files(number, &listed(replies)),
            PackageState::Missing(number) => Err(self.missing(number, &listed(replies))),
        }
    }
}

/// Returns the location of all bytes of an object.
fn whole(object: String, size: u64) -> Location {
    Location::new(object, 0..size)
}

/// Returns the location of a short text file of the package, if it exists.
fn text_file(root: &[Entry], name: &'static str) -> Result<Option<Location>> {
    let size = root.iter().find(|entry| entry.name == name).and_then(|entry| entry.size);
    match size {
        Some(size) if size > MAX_TEXT_LEN => {
            let message = format!("{size} bytes, expected a short text");
            Err(Error::corrupt_region("package", message).in_file(name))
        }
        size => Ok(size.map(|size| whole(name.to_owned(), size))),
    }
}

/// Fails for a package of other rules.
pub(crate) fn check_protocol(text: &[u8]) -> Result<()> {
    #[derive(Deserialize)]
    struct Protocol {
        protocol_version: u64,
    }
    let protocol: Protocol = serde_json::from_slice(text).map_err(|error| {
        Error::corrupt_region("package protocol", format!("not the JSON expected here ({error})"))
    })?;
    match protocol.protocol_version {
        PROTOCOL_VERSION => Ok(()),
        version => Err(Error::unsupported(format!(
            "package protocol version {version}, this reader supports {PROTOCOL_VERSION}"
        ))),
    }
}

/// Parses the number of a generation from `CURRENT`: decimal digits or JSON.
pub(crate) fn parse_current(text: &[u8]) -> Result<u64> {
    #[derive(Deserialize)]
    struct Current {
        generation: u64,
    }
    let is_number = |text: &&str| text.bytes().all(|byte| byte.is_ascii_digit());
    let generation = match std::str::from_utf8(text).ok().map(str::trim).filter(is_number) {
        Some(digits) => digits.parse().ok(),
        None => serde_json::from_slice(text).ok().map(|current: Current| current.generation),
    };
    generation.ok_or_else(|| {
        let found = String::from_utf8_lossy(&text[..text.len().min(40)]);
        let message = format!("found {found:?}, expected a number or {{\"generation\":N}}");
        Error::corrupt_region("current generation", message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn current_is_a_number_or_json() {
        for (text, expected) in [
            ("2\n", Some(2)),
            ("12", Some(12)),
            (" {\"generation\": 3, \"at\": \"now\"}\n", Some(3)),
            ("18446744073709551615\n", Some(u64::MAX)),
            ("18446744073709551616\n", None),
            ("", None),
            ("-1\n", None),
            ("+1\n", None),
            ("1.5", None),
            ("2\n3\n", None),
            ("{\"generation\":\"2\"}", None),
            ("two", None),
        ] {
            assert_eq!(parse_current(text.as_bytes()).ok(), expected, "{text:?}");
        }
        let error = parse_current(b"\xffwo").unwrap_err().to_string();
        assert!(error.contains("expected a number or {\"generation\":N}"), "{error}");
    }

    #[test]
    fn folders_have_eight_digits_or_more() {
        assert_eq!(folder_of(2), "generations/00000002");
        assert_eq!(folder_of(u64::MAX), "generations/18446744073709551615");
    }
}
