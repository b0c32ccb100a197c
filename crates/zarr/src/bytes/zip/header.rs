//! The header before the data of a member, which must agree with the directory.

use super::directory::ZipDirectory;
use super::entry::{HAS_DESCRIPTOR, HEADER, Member, Method};
use super::{corrupt, from_zip64, u16_at, u32_at};
use gridfusion_core::Result;

impl ZipDirectory {
    /// Returns how many bytes of the header precede the data. `bytes` begin with the header of the member.
    ///
    /// # Errors
    /// `Corrupt` if the header is no header of this member.
    pub(super) fn header_len(&self, member: &Member, bytes: &[u8]) -> Result<u64> {
        let wrong = |what: &str| {
            let name = String::from_utf8_lossy(self.name(member));
            let message = format!("the header of \"{name}\" has {what} than the directory");
            corrupt(member.header, message)
        };
        if !bytes.starts_with(b"PK\x03\x04") || (bytes.len() as u64) < HEADER {
            return Err(corrupt(member.header, "no header of a member"));
        }
        let method = match u16_at(bytes, 8) {
            0 => Method::Stored,
            8 => Method::Deflated,
            other => Method::Other(other),
        };
        let name_end = HEADER as usize + usize::from(u16_at(bytes, 26));
        let end = name_end + usize::from(u16_at(bytes, 28));
        if bytes.get(HEADER as usize..name_end) != Some(self.name(member)) {
            return Err(wrong("another name"));
        }
        let extra = bytes.get(name_end..end).ok_or_else(|| wrong("more extra fields"))?;
        if method != member.method {
            return Err(wrong("another method"));
        }
        let flags = u16_at(bytes, 6);
        if (flags ^ member.flags) & super::entry::ENCRYPTED != 0 {
            return Err(wrong("another encryption"));
        }
        let [mut stored, mut raw] = [18, 22].map(|at| u64::from(u32_at(bytes, at)));
        from_zip64(&mut [&mut raw, &mut stored], extra, member.header)?;
        let own = [stored, raw, u64::from(u32_at(bytes, 14))];
        let expected = [member.stored, member.raw, u64::from(member.crc)];
        // Behind the data, a descriptor has the numbers that the writer did not know here.
        let may_be_zero = flags & HAS_DESCRIPTOR != 0;
        let is_same = |(own, other): (&u64, &u64)| own == other || (may_be_zero && *own == 0);
        if !own.iter().zip(&expected).all(is_same) {
            return Err(wrong("other lengths or another checksum"));
        }
        let end = end as u64;
        match member.header + end + member.stored <= member.end {
            true => Ok(end),
            false => Err(wrong("more extra fields")),
        }
    }
}
