//! [`ZipDirectory`]: all members of an archive.

use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::end::EndRecord;
use super::entry::{HEADER, Member, is_name, may_be_in};
use super::{REGION, corrupt};
use gridfusion_core::format::Entry;
use gridfusion_core::{Error, Result};

/// The members of an archive, by name and by place.
#[derive(Debug)]
pub struct ZipDirectory {
    /// The bytes of the directory, which have the names.
    bytes: Bytes,
    /// In the order of the directory.
    members: Vec<Member>,
    /// Numbers of members, sorted by name. Only the last member of a name counts, and odd names are left out.
    by_name: Vec<u32>,
    /// Numbers of members whose names are none of objects, with the bytes of their entries.
    odd: Vec<(u32, u64)>,
    /// Numbers of members, sorted by the places of their headers.
    by_place: Vec<u32>,
}

impl ZipDirectory {
    /// Parses a directory, and checks that members are in their places, each in bytes of its own.
    ///
    /// # Errors
    /// `Corrupt` if it contradicts itself or the end record.
    pub(super) fn parse(bytes: &[u8], end: &EndRecord) -> Result<Self> {
        let count = u32::try_from(end.members).ok().filter(|_| bytes.len() as u64 >= end.members);
        let count = count.ok_or_else(|| Error::unsupported("an archive of so many members"))?;
        let (mut members, mut at) = (Vec::with_capacity(count as usize), 0);
        let mut odd = vec![];
        for number in 0..count {
            let offset = end.directory.start + at as u64;
            let (member, next) = Member::parse(bytes, at, offset, end.before)?;
            if !is_name(&bytes[member.name.clone()]) {
                odd.push((number, offset));
            }
            members.push(member);
            at = next;
        }
        if at != bytes.len() {
            let message = format!("more bytes than those of {count} members");
            return Err(corrupt(end.directory.start + at as u64, message));
        }
        let mut by_place: Vec<u32> = (0..count).collect();
        by_place.sort_unstable_by_key(|number| members[*number as usize].header);
        set_ends(&mut members, &by_place, end.directory.start)?;
        let name = |number: u32| &bytes[members[number as usize].name.clone()];
        // Sorting is stable. So the last member of a name is the first here.
        let mut by_name: Vec<u32> = (0..count).rev().collect();
        by_name.retain(|number| odd.binary_search_by_key(number, |it| it.0).is_err());
        by_name.sort_by(|a, b| name(*a).cmp(name(*b)));
        by_name.dedup_by(|b, a| name(*a) == name(*b));
        Ok(Self { bytes: Bytes::copy_from_slice(bytes), members, by_name, odd, by_place })
    }

    /// Fails if a member that may belong into a folder has a name that is none of an object: it would be missed there.
    ///
    /// # Errors
    /// `Corrupt`, with the name.
    pub fn check_names(&self, folder: &str) -> Result<()> {
        let odd = self.odd.iter().filter_map(|(number, at)| Some((self.member(*number)?, *at)));
        for (member, at) in odd {
            if may_be_in(self.name(member), folder) {
                return Err(corrupt(
                    at,
                    format!(
                        "the name {} of a member, which is no path in UTF-8 with slashes between its parts; pack the folder again",
                        self.shown(member)
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Whether a member has one of these names, in at most so many folders.
    pub(super) fn has_near_root(&self, is_one: impl Fn(&str) -> bool, folders: usize) -> bool {
        let names = self.below("").map(|(name, _)| name);
        let mut near = names.filter(|name| name.matches('/').count() <= folders);
        near.any(|name| is_one(name.rsplit('/').next().unwrap_or_default()))
    }

    /// Returns the bytes of memory that the directory takes.
    pub fn memory(&self) -> u64 {
        let members = self.members.len() * (size_of::<Member>() + 2 * size_of::<u32>());
        (self.bytes.len() + members) as u64
    }

    pub(super) fn name(&self, member: &Member) -> &[u8] {
        &self.bytes[member.name.clone()]
    }

    pub(super) fn member(&self, number: u32) -> Option<&Member> {
        self.members.get(number as usize)
    }

    /// Returns the number of the member with this name.
    pub(super) fn number(&self, name: &str) -> Option<u32> {
        let at = self.first_from(name.as_bytes());
        let number = *self.by_name.get(at)?;
        (self.name(self.member(number)?) == name.as_bytes()).then_some(number)
    }

    /// Returns the member with this name.
    pub fn get(&self, name: &str) -> Option<&Member> {
        self.member(self.number(name)?)
    }

    /// Returns the number of the member whose header begins at a byte.
    pub(super) fn at(&self, header: u64) -> Option<u32> {
        let place = |number: &u32| self.members[*number as usize].header;
        let at = self.by_place.binary_search_by_key(&header, place).ok()?;
        self.by_place.get(at).copied()
    }

    /// Returns the place in `by_name` of the first name that is not less than this one.
    fn first_from(&self, name: &[u8]) -> usize {
        self.by_name.partition_point(|it| self.name(&self.members[*it as usize]) < name)
    }

    /// Returns the members in a folder and in those below it, with their names relative to it. Leaves out odd names,
    /// and folders.
    pub fn below(&self, folder: &str) -> impl Iterator<Item = (&str, &Member)> + use<'_> {
        let prefix = prefix(folder);
        let members = self.by_name[self.first_from(prefix.as_bytes())..].iter();
        let members = members.map(|number| &self.members[*number as usize]);
        members
            .map_while(move |it| Some((self.name(it).strip_prefix(prefix.as_bytes())?, it)))
            .filter(|(name, _)| !name.is_empty() && !name.ends_with(b"/"))
            .filter_map(|(name, member)| Some((std::str::from_utf8(name).ok()?, member)))
    }

    /// Returns the entries of a folder. Leaves out odd names.
    pub fn list(&self, folder: &str) -> Vec<Entry> {
        let prefix = prefix(folder);
        let (mut entries, mut at) = (vec![], self.first_from(prefix.as_bytes()));
        while let Some(member) = self.by_name.get(at).and_then(|number| self.member(*number)) {
            let Some(name) = self.name(member).strip_prefix(prefix.as_bytes()) else { break };
            at += 1;
            let (part, size) = match name.iter().position(|byte| *byte == b'/') {
                Some(end) => (&name[..end], None),
                None => (name, Some(member.raw)),
            };
            if size.is_none() {
                // `0` follows `/`, so this is the first name behind all those in the inner folder.
                at = self.first_from(&[prefix.as_bytes(), part, b"0"].concat());
            }
            if let (Ok(part), false) = (std::str::from_utf8(part), part.is_empty()) {
                entries.push(Entry::new(part, size));
            }
        }
        entries
    }

    /// Notes where the data of a member begin.
    pub(super) fn note_data(&self, number: u32, data: u64) {
        if let Some(member) = self.member(number) {
            member.data.store(data, Ordering::Relaxed);
        }
    }
}

/// Returns the beginning of the names in a folder.
fn prefix(folder: &str) -> String {
    if folder.is_empty() { String::new() } else { format!("{folder}/") }
}

/// Sets where the bytes of members end, in the order of their places. Fails if members share bytes, or lie in the directory.
fn set_ends(members: &mut [Member], by_place: &[u32], directory: u64) -> Result<()> {
    for (at, number) in by_place.iter().enumerate() {
        let next = by_place.get(at + 1).map(|next| members[*next as usize].header);
        let next = next.unwrap_or(directory).min(directory);
        let member = &mut members[*number as usize];
        let least = member.least_end().filter(|end| *end <= next).ok_or_else(|| {
            let Member { header, stored, .. } = member;
            Error::corrupt(
                REGION,
                *header,
                format!("a member of {stored} bytes that ends behind byte {next}"),
            )
        })?;
        // More bytes than a header can have belong to no member.
        let most = least.saturating_add(u64::from(u16::MAX)).saturating_add(HEADER);
        member.end = next.min(most);
    }
    Ok(())
}
