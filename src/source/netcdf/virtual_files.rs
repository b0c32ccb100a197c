//! Files with virtual datasets, whose cells are in other datasets of the same file or of files below its folder.
//!
//! ```text
//!   chunk of a virtual dataset ─▶ pieces of its mappings ─▶ chunks of other datasets ─▶ layers of these, placed anew
//! ```
//!
//! A file never leads out of its folder. Cells whose file or dataset is missing have the fill value, as the HDF5
//! library has it; a warning names them.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::Component;
use std::sync::Arc;

use async_trait::async_trait;

use super::hdf5::Hdf5Reader;
use super::pairs::{Pairs, Piece};
use crate::error::{Error, Result};
use crate::format::hdf5::{Mapping, Steps};
use crate::format::hierarchy::{Axis, Hierarchy, Unreadable, Variable};
use crate::format::{Layer, Placement, StorageOrder, StoredChunk};
use crate::io::{ByteSource, OpenFiles, is_not_found};
use crate::options::IoMode;
use crate::source::hierarchy::{StoreFacts, StoredTotals, VariableStore, located_totals};
use crate::source::place::Place;
use crate::tile::Objects;

/// The most other files of a file.
const MAX_FILES: usize = 4096;
/// The most other files that are open at once.
const MOST_OPEN: usize = 128;

/// Opens the file at `place`, and the files that its virtual datasets name.
pub(super) async fn open(
    place: &Place,
    source: Arc<dyn ByteSource>,
) -> Result<Arc<dyn VariableStore>> {
    let file = Hdf5Reader::open(source).await?;
    let count = file.hierarchy().variables.len();
    Ok(match (0..count).any(|number| file.mappings(number).is_some()) {
        true => Arc::new(VirtualFiles::open(place, file).await?),
        false => Arc::new(file),
    })
}

/// A file with virtual datasets, and the files that they name.
#[derive(Debug)]
pub(super) struct VirtualFiles {
    file: Hdf5Reader,
    /// The other files, by their numbers from 1 on. This file has number 0.
    others: Vec<Hdf5Reader>,
    /// The objects of all files.
    objects: Arc<Objects>,
    /// The variables of the file, without virtual datasets that cannot be read.
    hierarchy: Hierarchy,
    /// The number in the file of each variable.
    numbers: Vec<usize>,
    /// The virtual datasets, by the number of the variable.
    mapped: HashMap<usize, Vec<Mapped>>,
    warnings: Vec<String>,
}

/// A mapping whose dataset was found.
#[derive(Debug)]
struct Mapped {
    /// The number of the file, and of the variable in it.
    file: usize,
    variable: usize,
    pairs: Pairs,
}

/// The files that mappings name, as far as they were opened.
struct Opening<'a> {
    place: &'a Place,
    file: Hdf5Reader,
    others: Vec<Hdf5Reader>,
    /// The number of each file by name; `None` if it is missing.
    numbers: HashMap<Arc<str>, Option<usize>>,
    pool: Arc<OpenFiles>,
}

impl VirtualFiles {
    /// Opens the files that the virtual datasets of a file name.
    pub(super) async fn open(place: &Place, file: Hdf5Reader) -> Result<Self> {
        let count = file.hierarchy().variables.len();
        let pool = OpenFiles::new(place.io() == IoMode::Mmap, MOST_OPEN);
        let mut opening = Opening { place, file, others: vec![], numbers: HashMap::new(), pool };
        let (mut found, mut warnings) = (HashMap::new(), vec![]);
        for number in 0..count {
            let Some(mappings) = opening.file.mappings(number) else { continue };
            let (mapped, missing) = opening.mapped(number, &mappings).await;
            let path = opening.variable(number)?.path.clone();
            if let (Ok(_), Some(first)) = (&mapped, missing.first()) {
                let (missing, all) = (missing.len(), mappings.len());
                warnings.push(format!(
                    "{missing} of {all} sources of the virtual dataset {path:?} are missing, such as {first}; \
                     their cells have its fill value"
                ));
            }
            let about = |error: Error| error.about(&format!("dataset {path:?}"));
            found.insert(number, mapped.map_err(about));
        }
        for warning in &warnings {
            log::warn!("{}: {warning}", place.shown());
        }
        let Opening { file, others, .. } = opening;
        let (hierarchy, numbers, mapped) = readable(file.hierarchy(), found);
        let files = std::iter::once(&file).chain(&others);
        let members = files.map(|file| Arc::clone(file.objects())).collect();
        let objects = Arc::new(Objects::Several { name: place.shown(), members });
        Ok(Self { file, others, objects, hierarchy, numbers, mapped, warnings })
    }

    /// Returns a variable of one of the files.
    fn variable(&self, file: usize, variable: usize) -> Result<&Variable> {
        let file = numbered(&self.file, &self.others, file)?;
        let found = file.hierarchy().variables.get(variable);
        found.ok_or_else(|| Error::internal("no such variable"))
    }

    /// Locates chunks of a virtual dataset.
    async fn virtual_chunks(
        &self,
        variable: &Variable,
        mapped: &[Mapped],
        chunks: &[Vec<u64>],
    ) -> Result<Vec<StoredChunk>> {
        let mut pieces: Vec<(usize, &Mapped, Vec<u64>, Piece)> = vec![];
        let mut wanted: BTreeMap<(usize, usize), BTreeMap<Vec<u64>, StoredChunk>> = BTreeMap::new();
        for (at, chunk) in chunks.iter().enumerate() {
            let within = cells_of(variable, chunk);
            let start: Vec<u64> = within.iter().map(|range| range.start).collect();
            for mapped in mapped {
                let other = self.variable(mapped.file, mapped.variable)?;
                let of = wanted.entry((mapped.file, mapped.variable)).or_default();
                for piece in mapped.pairs.pieces(&within, &other.chunk_shape)? {
                    of.entry(piece.chunk.clone()).or_default();
                    pieces.push((at, mapped, start.clone(), piece));
                }
            }
        }
        for ((file, variable), located) in &mut wanted {
            let coordinates: Vec<Vec<u64>> = located.keys().cloned().collect();
            let file = numbered(&self.file, &self.others, *file)?;
            let found = file.locate(*variable, coordinates).await?;
            located.values_mut().zip(found).for_each(|(to, found)| *to = found);
        }
        let mut stored = vec![StoredChunk::default(); chunks.len()];
        for (at, mapped, start, piece) in pieces {
            let other = self.variable(mapped.file, mapped.variable)?;
            let located = wanted.get(&(mapped.file, mapped.variable));
            let located = located.and_then(|all| all.get(&piece.chunk));
            let layers = located.map_or(&[][..], |chunk| &chunk.layers);
            let whole: Vec<u64> =
                cells_of(other, &piece.chunk).iter().map(|range| range.end - range.start).collect();
            let mut is_complete = false;
            for layer in layers {
                let (placed, all) = placed(layer, mapped, &start, &piece, &whole)?;
                is_complete |= all;
                if let (Some(placed), Some(chunk)) = (placed, stored.get_mut(at)) {
                    chunk.layers.push(placed);
                }
            }
            if !is_complete && other.fill != variable.fill {
                return Err(Error::unsupported(format!(
                    "cells of {:?} that were never written, and have another fill value",
                    other.path
                )));
            }
        }
        Ok(stored)
    }
}

/// Divides the variables of a file into those that can be read and others. Returns the number in the file of each of
/// them, and the mappings by its new number.
fn readable(
    all: &Hierarchy,
    mut found: HashMap<usize, Result<Vec<Mapped>>>,
) -> (Hierarchy, Vec<usize>, HashMap<usize, Vec<Mapped>>) {
    let same = |it: &Unreadable| Unreadable { path: it.path.clone(), error: it.error.clone() };
    let mut hierarchy = Hierarchy {
        variables: vec![],
        unreadable: all.unreadable.iter().map(same).collect(),
        groups: all.groups.clone(),
    };
    let (mut numbers, mut mapped) = (vec![], HashMap::new());
    for (number, variable) in all.variables.iter().enumerate() {
        match found.remove(&number) {
            Some(Err(error)) => {
                hierarchy.unreadable.push(Unreadable { path: variable.path.clone(), error });
                continue;
            }
            Some(Ok(mappings)) => _ = mapped.insert(numbers.len(), mappings),
            None => {}
        }
        numbers.push(number);
        hierarchy.variables.push(variable.clone());
    }
    (hierarchy, numbers, mapped)
}

/// Returns the file with a number.
fn numbered<'a>(
    file: &'a Hdf5Reader,
    others: &'a [Hdf5Reader],
    number: usize,
) -> Result<&'a Hdf5Reader> {
    let other = |number| others.get(number).ok_or_else(|| Error::internal("no such file"));
    number.checked_sub(1).map_or(Ok(file), other)
}

/// Returns the cells of a chunk, per axis.
fn cells_of(variable: &Variable, chunk: &[u64]) -> Vec<Range<u64>> {
    let axes = variable.axes.iter().zip(&variable.chunk_shape).zip(chunk);
    let range = |((axis, len), at): ((&Axis, &u64), &u64)| {
        let start = at.saturating_mul(*len).min(axis.len);
        start..start.saturating_add(*len).min(axis.len)
    };
    axes.map(range).collect()
}

/// Places a layer of a chunk of `whole` cells per axis in a chunk of the virtual dataset that begins at `start`.
/// Returns `None` if the layer has no cell of the piece, and whether it has all of them.
fn placed(
    layer: &Layer,
    mapped: &Mapped,
    start: &[u64],
    piece: &Piece,
    whole: &[u64],
) -> Result<(Option<Layer>, bool)> {
    let (region, tile_shape, origin) = match &layer.placement {
        Some(it) => {
            (it.region.iter().map(|it| it.end).collect(), it.tile_shape.clone(), it.origin.clone())
        }
        None => (whole.to_vec(), whole.to_vec(), vec![0; whole.len()]),
    };
    // Only cells from the first one on are left out of a tile, where a dataset is shorter than its dimension.
    let lens = mapped.pairs.within(piece, &region);
    if lens.contains(&0) {
        return Ok((None, false));
    }
    let first: Vec<u64> =
        piece.first.iter().zip(&origin).map(|(first, origin)| first + origin).collect();
    let (tile_shape, origin) = mapped.pairs.folded(&tile_shape, &first)?;
    let firsts = piece.target.iter().zip(start).map(|(at, start)| at - start);
    let region = firsts.zip(&lens).map(|(at, len)| at..at + len).collect();
    let placement = Placement { region, tile_shape, origin, order: StorageOrder::RowMajor };
    let mut placed = Layer { placement: Some(placement), ..layer.clone() };
    let member = u32::try_from(mapped.file).map_err(|_| Error::internal("too many files"))?;
    placed.payloads_mut().for_each(|payload| payload.at.member = member);
    Ok((Some(placed), lens == piece.lens))
}

impl Opening<'_> {
    fn variable(&self, number: usize) -> Result<&Variable> {
        let found = self.file.hierarchy().variables.get(number);
        found.ok_or_else(|| Error::internal("no such variable"))
    }

    /// Returns the mappings whose datasets are found, and the names of the others.
    async fn mapped(
        &mut self,
        number: usize,
        mappings: &[Mapping],
    ) -> (Result<Vec<Mapped>>, Vec<String>) {
        let (mut all, mut missing) = (vec![], vec![]);
        for mapping in mappings {
            match self.one(number, mapping).await {
                Ok(Some(mapped)) => all.push(mapped),
                Ok(None) => missing.push(match &mapping.file {
                    Some(file) => format!("{:?} in the file {file:?}", mapping.dataset),
                    None => format!("{:?}", mapping.dataset),
                }),
                Err(error) => return (Err(error), missing),
            }
        }
        (Ok(all), missing)
    }

    async fn one(&mut self, number: usize, mapping: &Mapping) -> Result<Option<Mapped>> {
        let file = match &mapping.file {
            Some(name) => self.file(name).await?,
            None => Some(0),
        };
        let Some(file) = file else { return Ok(None) };
        let opened = numbered(&self.file, &self.others, file)?;
        let target = self.variable(number)?;
        let path = mapping.dataset.trim_matches('/');
        let hierarchy = opened.hierarchy();
        if let Some(it) = hierarchy.unreadable.iter().find(|it| it.path == path) {
            return Err(it.error.clone());
        }
        let Some(variable) = hierarchy.variables.iter().position(|it| it.path == path) else {
            return Ok(None);
        };
        if opened.mappings(variable).is_some() {
            return Err(Error::unsupported("a virtual dataset of virtual datasets"));
        }
        let source =
            hierarchy.variables.get(variable).ok_or_else(|| Error::internal("no variable"))?;
        if source.cell != target.cell {
            let message =
                format!("cells of {}, which are {} in {path:?}", target.cell, source.cell);
            return Err(Error::unsupported(message));
        }
        let steps = |steps: &Option<Vec<Steps>>, of: &Variable| match steps {
            Some(steps) => steps.clone(),
            None => of.shape().into_iter().map(Steps::all).collect(),
        };
        let (to, from) = (steps(&mapping.target, target), steps(&mapping.source, source));
        if from.len() != source.axes.len() || to.len() != target.axes.len() {
            return Err(Error::unsupported(format!("a mapping of another rank than {path:?} has")));
        }
        let pairs = Pairs::new(to, from)?;
        if pairs.exceeds(&source.shape()) {
            let shape = source.shape();
            let message =
                format!("a mapping of more cells than the shape {shape:?} of {path:?} has");
            return Err(Error::unsupported(message));
        }
        pairs.check_chunks(&source.chunk_shape)?;
        Ok(Some(Mapped { file, variable, pairs }))
    }

    /// Opens a file; `None` if it is missing.
    async fn file(&mut self, name: &Arc<str>) -> Result<Option<usize>> {
        if let Some(number) = self.numbers.get(name) {
            return Ok(*number);
        }
        if self.others.len() >= MAX_FILES {
            let message = format!("virtual datasets of more than {MAX_FILES} files");
            return Err(Error::unsupported(message));
        }
        let number = match self.below(name)? {
            Some(place) => match place.object().await {
                Ok(source) => {
                    self.others.push(Hdf5Reader::open(source).await?);
                    Some(self.others.len())
                }
                Err(error) if is_not_found(&error) => None,
                Err(error) => return Err(error),
            },
            None => None,
        };
        self.numbers.insert(Arc::clone(name), number);
        Ok(number)
    }

    /// Returns the place of a file below the folder of this one; `None` if a local one is missing.
    fn below(&self, name: &str) -> Result<Option<Place>> {
        let outside = || {
            Error::unsupported(format!(
                "a virtual dataset of the file {name:?}, which is not below the folder of this file"
            ))
        };
        let mut parts = std::path::Path::new(name).components();
        let is_below = parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if !is_below || name.contains(['\\', '?', '#', ':']) {
            return Err(outside());
        }
        let place = self.place.beside(name)?;
        if let (Some(other), Some(own)) = (place.local_path(), self.place.local_path()) {
            // Links of the file system may lead elsewhere.
            let folder = own.parent().filter(|folder| !folder.as_os_str().is_empty());
            let folder = folder.unwrap_or(std::path::Path::new("."));
            let (Ok(other), Ok(folder)) = (other.canonicalize(), folder.canonicalize()) else {
                return Ok(None);
            };
            if !other.starts_with(folder) {
                return Err(outside());
            }
        }
        Ok(Some(place.among(Arc::clone(&self.pool))))
    }
}

#[async_trait]
impl VariableStore for VirtualFiles {
    fn hierarchy(&self) -> &Hierarchy {
        &self.hierarchy
    }

    fn objects(&self) -> &Arc<Objects> {
        &self.objects
    }

    async fn locate(&self, variable: usize, chunks: Vec<Vec<u64>>) -> Result<Vec<StoredChunk>> {
        let found = self.hierarchy.variables.get(variable).zip(self.numbers.get(variable));
        let (own, number) = found.ok_or_else(|| Error::internal("no such variable"))?;
        let Some(mapped) = self.mapped.get(&variable) else {
            return self.file.locate(*number, chunks).await;
        };
        let located = self.virtual_chunks(own, mapped, &chunks).await;
        let about = |error: Error| error.about(&format!("dataset {:?}", own.path));
        located.map_err(|error| self.file.objects().named(about(error)))
    }

    fn facts(&self) -> StoreFacts {
        let mut facts = self.file.facts();
        facts.warnings.extend(self.warnings.iter().cloned());
        facts
    }

    fn codec(&self, variable: usize) -> Option<String> {
        match self.mapped.contains_key(&variable) {
            true => Some("virtual".to_owned()),
            false => self.file.codec(*self.numbers.get(variable)?),
        }
    }

    async fn stored(&self, variable: usize) -> Result<Option<StoredTotals>> {
        if self.objects.is_remote() { Ok(None) } else { located_totals(self, variable).await }
    }

    async fn check_index(&self, variable: usize) -> Result<Option<u64>> {
        match self.numbers.get(variable) {
            Some(number) => self.file.check_index(*number).await,
            None => Err(Error::internal("no such variable")),
        }
    }
}
