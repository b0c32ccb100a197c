//! Checks of the members that hold chunks.

use std::ops::Range;

use super::ZippedStore;
use crate::bytes::{Member, MemberChecksum};
use gridfusion_core::Result;
use gridfusion_core::format::Location;

/// The most headers that are read at once.
const HEADERS: usize = 1024;

/// The most bytes of members that are read at once.
const AT_ONCE: u64 = 16 << 20;

impl ZippedStore {
    /// Returns the members that hold the chunks of a variable.
    fn members(&self, variable: usize) -> Result<Vec<&Member>> {
        let array = self.array(variable)?;
        let below = self.directory.below(&self.path_of(array));
        Ok(below.filter(|(name, _)| array.is_object(name)).map(|(_, member)| member).collect())
    }

    /// Returns where the data of some members are, as their headers tell.
    async fn data_of(&self, members: &[&Member]) -> Result<Vec<Range<u64>>> {
        let at = |member: &&Member| Location::new("", member.header_span());
        let headers = self.objects.read(&members.iter().map(at).collect::<Vec<_>>()).await?;
        let data = members.iter().zip(headers).map(|(it, header)| self.directory.data(it, &header));
        data.collect::<Result<_>>().map_err(|error| self.objects.named(error))
    }

    /// Compares the headers of all chunks of a variable with the directory. Returns their number.
    pub(super) async fn check_headers(&self, variable: usize) -> Result<u64> {
        let members = self.members(variable)?;
        for some in members.chunks(HEADERS) {
            self.data_of(some).await?;
        }
        Ok(members.len() as u64)
    }

    /// Compares the checksums of all stored chunks of a variable, piece by piece. Decoding compares those of others. Returns the
    /// number of all.
    pub(super) async fn check_stored(&self, variable: usize) -> Result<u64> {
        let members = self.members(variable)?;
        let stored: Vec<&Member> = members.iter().copied().filter(|it| it.is_stored()).collect();
        for some in stored.chunks(HEADERS) {
            let (mut pieces, mut bytes) = (vec![], 0);
            let mut sums: Vec<_> = some.iter().map(|_| MemberChecksum::default()).collect();
            for (number, data) in self.data_of(some).await?.into_iter().enumerate() {
                let mut start = data.start;
                while start < data.end {
                    let end = data.end.min(start + AT_ONCE - bytes);
                    pieces.push((number, Location::new("", start..end)));
                    (bytes, start) = (bytes + (end - start), end);
                    if bytes == AT_ONCE {
                        self.add_pieces(&mut sums, &mut pieces).await?;
                        bytes = 0;
                    }
                }
            }
            self.add_pieces(&mut sums, &mut pieces).await?;
            for (member, sum) in some.iter().zip(&sums) {
                let checked = self.directory.check(member, sum);
                checked.map_err(|error| self.objects.named(error))?;
            }
        }
        Ok(members.len() as u64)
    }

    /// Reads pieces of members, and adds them to the checksums of these members.
    async fn add_pieces(
        &self,
        sums: &mut [MemberChecksum],
        pieces: &mut Vec<(usize, Location)>,
    ) -> Result<()> {
        let (numbers, at): (Vec<usize>, Vec<Location>) = pieces.drain(..).unzip();
        for (number, bytes) in numbers.into_iter().zip(self.objects.read(&at).await?) {
            sums[number].add(&bytes);
        }
        self.objects.used(&at, true)
    }
}
