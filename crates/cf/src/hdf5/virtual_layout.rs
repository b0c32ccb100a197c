//! Virtual datasets: cells that are those of other datasets, which a list of mappings names.
//!
//! Format: HDF5 File Format Specification version 3.0, IV.A.2.i "The Data Layout Message", version 4, class 3, and
//! VIII "Appendix D: Encoding for Dataspace and Reference" for selections. Version 1 of the list is that of HDF5 2.0.

use std::sync::Arc;

use super::file_bytes::{Fields, FileBytes};
use super::global_heap::{Collections, Reference};
use super::link::text;
use super::numbered::named;
use super::steps::{ENDLESS, Steps};
use gridfusion_core::{Error, Result};

/// The name of the region in errors.
const REGION: &str = "virtual dataset";
/// The most mappings of a dataset.
const MAX_MAPPINGS: u64 = 1 << 16;
/// The most blocks of a selection.
const MAX_BLOCKS: u64 = 1 << 16;

/// Cells of a virtual dataset that are cells of another dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// The name of the other file, relative to the folder of this one; `None` for a dataset of the same file.
    pub file: Option<Arc<str>>,
    /// The path of the other dataset.
    pub dataset: Arc<str>,
    /// Whether each block is in another dataset. Then, `%b` in the names is the number of the block, and `%%` is `%`.
    pub is_numbered: bool,
    /// The cells of the other dataset; `None` for all.
    pub source: Option<Vec<Steps>>,
    /// The cells of the virtual dataset, in the same order; `None` for all.
    pub target: Option<Vec<Steps>>,
}

impl Mapping {
    /// Whether its cells are as many as the other dataset has, or as there are numbered datasets.
    pub fn grows(&self) -> bool {
        self.target.iter().flatten().any(Steps::is_endless)
    }

    /// Returns the file and the dataset of a block, if they are numbered.
    pub fn of_block(&self, number: u64) -> Self {
        let name = |name: &Arc<str>| match named(name, number) {
            Some((name, _)) if self.is_numbered => name.into(),
            _ => Arc::clone(name),
        };
        let (file, dataset) = (self.file.as_ref().map(name), name(&self.dataset));
        Self { file, dataset, is_numbered: false, ..self.clone() }
    }

    /// Refuses cells without end that no rule counts: the HDF5 library does not write them.
    fn checked(self) -> Result<Self> {
        let endless = |all: &Option<Vec<Steps>>| -> Vec<Steps> {
            all.iter().flatten().filter(|steps| steps.is_endless()).copied().collect()
        };
        let is_known = match (&endless(&self.target)[..], &endless(&self.source)[..]) {
            ([], []) => !self.is_numbered,
            ([_], [_]) => !self.is_numbered,
            ([steps], []) => self.is_numbered && steps.has_endless_blocks(),
            _ => false,
        };
        match is_known {
            true => Ok(self),
            false => Err(Error::unsupported(format!(
                "a virtual dataset that grows in another way than its source {:?}",
                self.dataset
            ))),
        }
    }
}

/// Reads the mappings of a dataset with `rank` axes, which an object of the global heap lists.
pub(super) fn mappings(
    file: &FileBytes,
    layout: &[u8],
    address: u64,
    rank: usize,
    heaps: &mut Collections,
) -> Result<Vec<Mapping>> {
    let mut fields = Fields::new(REGION, address, layout);
    fields.take(2)?;
    let (heap, object) = (fields.address(file.widths)?, fields.uint(4)?);
    if file.widths.is_undefined(heap) {
        return Ok(vec![]);
    }
    let collection = heaps.get(file, heap)?;
    let bytes = collection.whole(&Reference { len: 0, address: heap, object })?;
    let mut fields = Fields::new(REGION, heap, bytes);
    let version = fields.uint(1)?;
    if version > 1 {
        let message = format!("a list of mappings of version {version}, expected 0 or 1");
        return Err(Error::unsupported(message));
    }
    fields.checked()?;
    let count = fields.length(file.widths)?;
    if count > MAX_MAPPINGS {
        return Err(Error::unsupported(format!("a virtual dataset of {count} mappings")));
    }
    let (mut all, mut names): (Vec<Mapping>, Vec<[Arc<str>; 2]>) = (vec![], vec![]);
    for _ in 0..count {
        // Names may be those of an earlier mapping.
        let flags = if version == 1 { fields.uint(1)? } else { 0 };
        let mut name = |is_shared: bool, which: usize| match is_shared {
            true => {
                let at = usize::try_from(fields.length(file.widths)?).unwrap_or(usize::MAX);
                let name = names.get(at).and_then(|names| names.get(which)).cloned();
                name.ok_or_else(|| fields.corrupt(format!("no mapping {at}")))
            }
            false => zero_terminated(&mut fields),
        };
        let other = match flags & 4 {
            0 => name(flags & 1 != 0, 0)?,
            _ => ".".into(),
        };
        let dataset = name(flags & 2 != 0, 1)?;
        names.push([Arc::clone(&other), Arc::clone(&dataset)]);
        let (source, target) = (selection(&mut fields)?, selection(&mut fields)?);
        if target.as_ref().is_some_and(|axes| axes.len() != rank) {
            return Err(fields.corrupt(format!("a selection of another rank than {rank}")));
        }
        let (other, dataset, is_numbered) = plain(other, dataset)?;
        let file = Some(other).filter(|name| **name != *".");
        all.push(Mapping { file, dataset, is_numbered, source, target }.checked()?);
    }
    Ok(all)
}

/// Returns names without `%%`, unless they are numbered, and whether they are.
fn plain(file: Arc<str>, dataset: Arc<str>) -> Result<(Arc<str>, Arc<str>, bool)> {
    if !file.contains('%') && !dataset.contains('%') {
        return Ok((file, dataset, false));
    }
    let unknown =
        |name: &str| Error::unsupported(format!("a virtual dataset of the source {name:?}"));
    let of_file = named(&file, 0).ok_or_else(|| unknown(&file))?;
    let of_dataset = named(&dataset, 0).ok_or_else(|| unknown(&dataset))?;
    Ok(match of_file.1 || of_dataset.1 {
        true => (file, dataset, true),
        false => (of_file.0.into(), of_dataset.0.into(), false),
    })
}

fn zero_terminated(fields: &mut Fields<'_>) -> Result<Arc<str>> {
    let mut bytes = vec![];
    loop {
        match fields.uint(1)? {
            0 => return Ok(text(&bytes).into()),
            byte => bytes.push(byte as u8),
        }
    }
}

/// Reads a selection of cells; `None` for all.
fn selection(fields: &mut Fields<'_>) -> Result<Option<Vec<Steps>>> {
    let (kind, version) = (fields.uint(4)?, fields.uint(4)?);
    match (kind, version) {
        (3, 1) => fields.take(8).map(|_| None),
        (2, 1) => {
            fields.take(8)?;
            let rank = rank(fields)?;
            blocks(fields, rank, 4).map(Some)
        }
        (2, 2) => {
            let flags = fields.uint(1)?;
            fields.take(4)?;
            regular(fields, flags, 8).map(Some)
        }
        (2, 3) => {
            let (flags, width) = (fields.uint(1)?, fields.uint(1)? as u8);
            regular(fields, flags, width).map(Some)
        }
        _ => Err(Error::unsupported(format!(
            "a virtual dataset with a selection of kind {kind}, version {version}"
        ))),
    }
}

fn rank(fields: &mut Fields<'_>) -> Result<u64> {
    let rank = fields.uint(4)?;
    match rank {
        1..=32 => Ok(rank),
        _ => Err(fields.corrupt(format!("a selection of {rank} axes"))),
    }
}

/// Reads steps per axis, or blocks.
fn regular(fields: &mut Fields<'_>, flags: u64, width: u8) -> Result<Vec<Steps>> {
    let rank = rank(fields)?;
    if flags & 1 == 0 {
        return blocks(fields, rank, width);
    }
    let unlimited = u64::MAX.unbounded_shr(64_u32.saturating_sub(8 * u32::from(width)));
    let mut axis = || {
        let [start, stride, count, block] = [(); 4].map(|()| fields.uint(width));
        let endless = |len: u64| if len == unlimited { ENDLESS } else { len };
        let (count, block) = (endless(count?), endless(block?));
        let steps = Steps { start: start?, stride: stride?, count, block, lacks: 0 };
        steps.checked().ok_or_else(|| fields.corrupt(format!("a selection of {steps:?}")))
    };
    (0..rank).map(|_| axis()).collect()
}

/// Reads blocks, which must be all combinations of ranges of the axes: other shapes have no steps.
fn blocks(fields: &mut Fields<'_>, rank: u64, width: u8) -> Result<Vec<Steps>> {
    let count = fields.uint(width)?;
    if count > MAX_BLOCKS {
        return Err(Error::unsupported(format!("a selection of {count} blocks")));
    }
    let mut ranges = vec![std::collections::BTreeSet::new(); rank as usize];
    for _ in 0..count {
        let mut corner = || (0..rank).map(|_| fields.uint(width)).collect::<Result<Vec<u64>>>();
        let (first, last) = (corner()?, corner()?);
        for (axis, range) in ranges.iter_mut().zip(first.into_iter().zip(last)) {
            axis.insert(range);
        }
    }
    let unsupported = || Error::unsupported("a virtual dataset with an irregular selection");
    let combinations = ranges.iter().try_fold(1, |all: u64, it| all.checked_mul(it.len() as u64));
    if combinations != Some(count) || count == 0 {
        return Err(unsupported());
    }
    ranges.iter().map(|ranges| steps(ranges.iter().copied()).ok_or_else(unsupported)).collect()
}

/// Returns the steps that visit these ranges, with their last cells, in order.
fn steps(ranges: impl Iterator<Item = (u64, u64)>) -> Option<Steps> {
    let ranges: Vec<_> = ranges.collect();
    let (start, last) = *ranges.first()?;
    let block = last.checked_sub(start)?.checked_add(1)?;
    let stride = match ranges.get(1) {
        Some((second, _)) => second.checked_sub(start)?,
        None => block,
    };
    let at = |number: usize| Some((start + number as u64 * stride, last + number as u64 * stride));
    let steps = Steps { start, stride, count: ranges.len() as u64, block, lacks: 0 };
    let steps = steps.checked()?;
    let are_regular = ranges.iter().enumerate().all(|(number, range)| at(number) == Some(*range));
    Some(steps).filter(|_| are_regular)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(all: &[u32]) -> Vec<u8> {
        all.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn read(bytes: &[u8]) -> Result<Option<Vec<Steps>>> {
        selection(&mut Fields::new(REGION, 0, bytes))
    }

    #[test]
    fn selections_of_each_version() {
        assert_eq!(read(&words(&[3, 1, 0, 0])).unwrap(), None);
        let every_second = Steps { start: 1, stride: 2, count: 3, block: 1, lacks: 0 };
        let two = Steps { start: 4, stride: 2, count: 1, block: 2, lacks: 0 };
        let blocks = [[1, 4, 1, 5], [3, 4, 3, 5], [5, 4, 5, 5]].concat();
        let old = words(&[&[2, 1, 0, 0, 2, 3][..], &blocks].concat());
        assert_eq!(read(&old).unwrap(), Some(vec![every_second, two]));
        let axes = [[1_u64, 2, 3, 1], [4, 2, 1, 2]].concat();
        let long: Vec<u8> = axes.iter().flat_map(|it| it.to_le_bytes()).collect();
        let head = [&words(&[2, 2])[..], &[1], &words(&[0, 2])].concat();
        assert_eq!(read(&[head, long].concat()).unwrap(), Some(vec![every_second, two]));
        let short: Vec<u8> = axes.iter().map(|&it| it as u8).collect();
        let head = [&words(&[2, 3])[..], &[1, 1], &words(&[2])].concat();
        assert_eq!(read(&[&head[..], &short].concat()).unwrap(), Some(vec![every_second, two]));
        for wrong in [
            words(&[1, 1, 0, 0]),
            words(&[2, 1, 0, 0, 2, 2, 1, 4, 1, 5, 3, 4, 3, 7]),
            words(&[2, 1, 0, 0, 1, 3, 0, 0, 2, 2, 3, 3]),
            [&head[..], &[0, 1, 255, 255, 0, 1, 1, 1]].concat(),
            [&head[..], &[0, 1, 2, 3, 0, 1, 1, 1]].concat(),
            head,
        ] {
            assert!(read(&wrong).is_err(), "{wrong:?}");
        }
    }
}
