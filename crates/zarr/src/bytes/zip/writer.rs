//! A small writer of archives, for tests.

use std::io::Write;

use flate2::Compression;
use flate2::write::DeflateEncoder;

/// An archive that is being written.
#[derive(Debug, Default)]
pub(crate) struct ZipWriter {
    /// Bytes before the archive, which its places count or not.
    pub(crate) before: Vec<u8>,
    pub(crate) counts_before: bool,
    /// Whether members are deflated.
    pub(crate) deflates: bool,
    /// Whether lengths and places are in fields of ZIP64.
    pub(crate) is_zip64: bool,
    /// Whether headers have zeros, and descriptors follow the data.
    pub(crate) has_descriptors: bool,
    /// Extra fields of headers only.
    pub(crate) extra: Vec<u8>,
    pub(crate) comment: Vec<u8>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) entries: Vec<Vec<u8>>,
}

fn words(parts: &[(u64, usize)]) -> Vec<u8> {
    parts.iter().flat_map(|(number, len)| number.to_le_bytes()[..*len].to_vec()).collect()
}

fn zip64(numbers: &[u64]) -> Vec<u8> {
    let field: Vec<u8> = numbers.iter().flat_map(|it| it.to_le_bytes()).collect();
    [words(&[(1, 2), (field.len() as u64, 2)]), field].concat()
}

impl ZipWriter {
    pub(crate) fn add(&mut self, name: &str, content: &[u8]) {
        self.add_bytes(name.as_bytes(), content);
    }

    /// Adds a member whose name may be no UTF-8.
    pub(crate) fn add_bytes(&mut self, name: &[u8], content: &[u8]) {
        let mut crc = flate2::Crc::new();
        crc.update(content);
        let (crc, raw) = (u64::from(crc.sum()), content.len() as u64);
        let data = match self.deflates {
            false => content.to_vec(),
            true => {
                let mut encoder = DeflateEncoder::new(vec![], Compression::default());
                encoder.write_all(content).unwrap();
                encoder.finish().unwrap()
            }
        };
        let stored = data.len() as u64;
        let method = if self.deflates { 8 } else { 0 };
        let flags = 1 << 11 | if self.has_descriptors { 8 } else { 0 };
        let place =
            self.bytes.len() as u64 + if self.counts_before { self.before.len() as u64 } else { 0 };
        let known = if self.has_descriptors { [0; 3] } else { [crc, stored, raw] };
        let marked = |number: u64| if self.is_zip64 { u64::from(u32::MAX) } else { number };
        let mut extra = self.extra.clone();
        if self.is_zip64 {
            extra.extend(zip64(&[known[2], known[1]]));
        }
        let len = |bytes: &[u8]| (bytes.len() as u64, 2);
        let common = |[crc, stored, raw]: [u64; 3]| {
            let head = [(20, 2), (flags, 2), (method, 2), (0, 4), (crc, 4)];
            [&head[..], &[(marked(stored), 4), (marked(raw), 4), len(name)]].concat()
        };
        self.bytes.extend(b"PK\x03\x04");
        self.bytes.extend(words(&[&common(known)[..], &[len(&extra)]].concat()));
        self.bytes.extend([name, &extra, &data].concat());
        if self.has_descriptors {
            let width = if self.is_zip64 { 8 } else { 4 };
            self.bytes.extend(b"PK\x07\x08");
            self.bytes.extend(words(&[(crc, 4), (stored, width), (raw, width)]));
        }
        let extra = if self.is_zip64 { zip64(&[raw, stored, place]) } else { vec![] };
        let rest = [len(&extra), (0, 2), (0, 2), (0, 2), (0, 4), (marked(place), 4)];
        let entry = [words(&[(20, 2)]), words(&common([crc, stored, raw])), words(&rest)].concat();
        self.entries.push([b"PK\x01\x02", &entry[..], name, &extra].concat());
    }

    pub(crate) fn finish(&self) -> Vec<u8> {
        let before = if self.counts_before { self.before.len() as u64 } else { 0 };
        let (start, count) = (self.bytes.len() as u64 + before, self.entries.len() as u64);
        let directory = self.entries.concat();
        let len = directory.len() as u64;
        let mut bytes = [&self.before[..], &self.bytes, &directory].concat();
        if self.is_zip64 {
            bytes.extend(b"PK\x06\x06");
            bytes.extend(words(&[(44, 8), (45, 2), (45, 2), (0, 8), (count, 8), (count, 8)]));
            bytes.extend(words(&[(len, 8), (start, 8)]));
            bytes.extend(b"PK\x06\x07");
            bytes.extend(words(&[(0, 4), (start + len, 8), (1, 4)]));
        }
        let marked = |number: u64, width: usize| match self.is_zip64 {
            true => (u64::MAX, width),
            false => (number, width),
        };
        bytes.extend(b"PK\x05\x06");
        bytes.extend(words(&[(0, 4), marked(count, 2), marked(count, 2), marked(len, 4)]));
        bytes.extend(words(&[marked(start, 4), (self.comment.len() as u64, 2)]));
        bytes.extend(&self.comment);
        bytes
    }
}
