//! Links: names of a group, and the objects that they stand for.
//!
//! Format: HDF5 File Format Specification version 3.0, IV.A.2.g "The Link Message".

use super::file_bytes::{Fields, Widths};
use gridfusion_core::{Error, Result};

/// The name of the region in errors.
const REGION: &str = "link";

/// A name in a group.
#[derive(Debug, Clone)]
pub(super) struct Link {
    pub(super) name: String,
    pub(super) target: Target,
    /// The number of links of the group that were created before, if the file knows it.
    pub(super) order: Option<u64>,
}

/// The object that a name stands for.
#[derive(Debug, Clone)]
pub(super) enum Target {
    /// The object at an address.
    Object(u64),
    /// The object at a path in the file.
    Path(String),
    /// None that can be read, with the reason.
    Unreadable(Error),
}

impl Target {
    /// Returns the path, which is empty if it is none.
    pub(super) fn path(&self) -> &str {
        match self {
            Self::Path(path) => path,
            Self::Object(_) | Self::Unreadable(_) => "",
        }
    }
}

/// Reads the bytes of a link message.
pub(super) fn link(address: u64, bytes: &[u8], widths: Widths) -> Result<Link> {
    let mut fields = Fields::new(REGION, address, bytes);
    let (version, flags) = (fields.uint(1)?, fields.uint(1)?);
    if version != 1 {
        return Err(Error::unsupported(format!("a link of version {version}, expected 1")));
    }
    let class = if flags & 8 != 0 { fields.uint(1)? } else { 0 };
    let order = if flags & 4 != 0 { Some(fields.uint(8)?) } else { None };
    if flags & 16 != 0 {
        fields.take(1)?;
    }
    let len = fields.uint(1 << (flags & 3))?;
    let name = text(fields.take(usize::try_from(len).unwrap_or(usize::MAX))?);
    let target = target(class, fields, widths).unwrap_or_else(Target::Unreadable);
    Ok(Link { name, target, order })
}

fn target(class: u64, mut fields: Fields<'_>, widths: Widths) -> Result<Target> {
    if class == 0 {
        return fields.address(widths).map(Target::Object);
    }
    let len = fields.uint(2)? as usize;
    let value = fields.take(len)?;
    match class {
        1 => Ok(Target::Path(text(value))),
        64 => {
            // Version and flags, the file, the path in it.
            let mut parts = value.get(1..).unwrap_or_default().split(|&byte| byte == 0);
            let file = text(parts.next().unwrap_or_default());
            Err(Error::unsupported(format!("a link to the file {file:?}; open that file")))
        }
        65..=255 => Err(Error::unsupported(format!(
            "a link of class {class}, which only the program that defined it can follow"
        ))),
        _ => Err(fields.corrupt(format!("class {class} of a link, expected 0, 1 or 64 to 255"))),
    }
}

/// Returns a name without the zeros after it. Bytes that are not UTF-8 are escaped, so that no two names become one.
pub(super) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    let bytes = bytes.get(..end).unwrap_or_default();
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.escape_ascii().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gridfusion_core::ErrorKind;

    const WIDTHS: Widths = Widths { base: 0, address: 4, length: 4 };

    fn read(class: u8, value: &[u8]) -> Result<Link> {
        link(7, &[&[1, 8, class, 2, b'a', b'b'][..], value].concat(), WIDTHS)
    }

    #[test]
    fn each_class_has_its_target() {
        let found = read(0, &[9, 1, 0, 0]).unwrap();
        assert!(matches!(found.target, Target::Object(0x109)) && found.name == "ab");
        let found = read(1, b"\x03\0/x\0").unwrap().target;
        assert!(matches!(found, Target::Path(path) if path == "/x"));
        for (class, value, kind, part) in [
            (64, &b"\x07\0\0o.h5\0/x\0"[..], ErrorKind::Unsupported, "\"o.h5\""),
            (187, b"\x02\0zz", ErrorKind::Unsupported, "class 187"),
            (3, b"\x02\0zz", ErrorKind::Corrupt, "class 3"),
            (1, b"\xff\xffzz", ErrorKind::Corrupt, "cut off"),
            (0, b"\x01", ErrorKind::Corrupt, "cut off"),
        ] {
            let Target::Unreadable(error) = read(class, value).unwrap().target else { panic!() };
            assert!(error.kind() == kind && error.to_string().contains(part), "{error}");
        }
        assert_eq!(link(7, &[2, 0], WIDTHS).unwrap_err().kind(), ErrorKind::Unsupported);
        assert_eq!(link(7, &[1, 3, 1], WIDTHS).unwrap_err().kind(), ErrorKind::Corrupt);
    }

    #[test]
    fn names_keep_all_their_bytes() {
        assert_eq!(text("é\0\0".as_bytes()), "é");
        assert_eq!(text(b"caf\xe9"), r"caf\xe9");
    }
}
