//! A writer of zip archives, for tests. It shares no code with the reader.
//!
//! ```text
//!   header data | header data | … | directory: an entry per member | end record
//! ```

use std::io::Write;

use flate2::Compression;
use flate2::write::DeflateEncoder;

/// The first bytes of the header of a member.
pub(crate) const HEADER: &[u8] = b"PK\x03\x04";

/// The polynomial of the checksums of members.
const POLYNOMIAL: u32 = 0xedb8_8320;

/// The checksum of a polynomial, bit by bit.
pub(crate) fn crc(polynomial: u32, bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ polynomial } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

/// An archive that is being written.
#[derive(Debug, Default)]
pub(crate) struct ZipArchive {
    members: Vec<u8>,
    directory: Vec<u8>,
    count: u16,
}

fn shorts(numbers: &[u16]) -> Vec<u8> {
    numbers.iter().flat_map(|it| it.to_le_bytes()).collect()
}

fn words(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|it| it.to_le_bytes()).collect()
}

impl ZipArchive {
    /// Adds a member, deflated or as it is.
    pub(crate) fn add(&mut self, name: &str, content: &[u8], is_deflated: bool) {
        let data = if is_deflated { deflated(content) } else { content.to_vec() };
        let method = if is_deflated { 8 } else { 0 };
        // Version 2.0, a name in UTF-8, and the first day of 1980.
        let mut facts = shorts(&[20, 1 << 11, method, 0, 1 << 5 | 1]);
        facts.extend(words(&[crc(POLYNOMIAL, content), data.len() as u32, content.len() as u32]));
        facts.extend(shorts(&[name.len() as u16, 0]));
        let place = words(&[0, self.members.len() as u32]);
        let entry = [&b"PK\x01\x02"[..], &shorts(&[20]), &facts, &shorts(&[0; 3]), &place];
        self.directory.extend([entry.concat(), name.into()].concat());
        self.members.extend([HEADER, &facts, name.as_bytes(), &data].concat());
        self.count += 1;
    }

    /// Returns the archive.
    pub(crate) fn finish(self) -> Vec<u8> {
        let Self { members, directory, count } = self;
        let counts = shorts(&[0, 0, count, count]);
        let places = words(&[directory.len() as u32, members.len() as u32]);
        [&members[..], &directory, b"PK\x05\x06", &counts, &places, &shorts(&[0])].concat()
    }
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(vec![], Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
