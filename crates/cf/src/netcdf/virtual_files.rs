//! Files with datasets whose cells are elsewhere: in datasets of the same file or of files below its folder, or in
//! external files there.
//!
//! ```text
//!   chunk of a virtual dataset ─▶ pieces of its mappings ─▶ chunks of other datasets ─▶ layers of these, placed anew
//!   chunk of an external one   ─▶ runs of bytes of other files
//! ```
//!
//! Cells whose file or dataset is missing have the fill value, as the HDF5 library has it; a warning names them.
//! Without its external file, a dataset cannot be read.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use futures::future::BoxFuture;

use super::derived::{Picked, converted};
use super::hdf5::Hdf5Reader;
use super::other_files::OtherFiles;
use super::pairs::TilePiece;
use super::resolve::{Key, MappedDataset, ResolvedDatasets, Source, is_elsewhere, resolve};
use crate::conventions::{StoreFacts, StoredTotals, VariableStore, located_totals};
use crate::hierarchy::{Axis, Hierarchy, Unreadable, Variable};
use gridfusion_core::format::{Layer, Placement, RepeatedCell, StoredChunk};
use gridfusion_core::io::ByteSource;
use gridfusion_core::source::Place;
use gridfusion_core::tile::Objects;
use gridfusion_core::{Error, Result};

/// The most layers of a chunk.
const MAX_LAYERS: usize = 1 << 16;

/// Opens the file at `place`, and the files that its datasets name.
pub(super) async fn open(
    place: &Place,
    source: Arc<dyn ByteSource>,
) -> Result<Arc<dyn VariableStore>> {
    let file = Hdf5Reader::open(source, &place.documents()).await?;
    let count = file.hierarchy().variables.len();
    Ok(match (0..count).any(|number| is_elsewhere(&file, number)) {
        true => Arc::new(VirtualFiles::open(place, file).await?),
        false => Arc::new(file),
    })
}

/// A file with datasets that are elsewhere, and the files that they name.
#[derive(Debug)]
pub(super) struct VirtualFiles {
    files: OtherFiles,
    /// The objects of all files.
    objects: Arc<Objects>,
    /// The variables of the file, without those that cannot be read.
    hierarchy: Hierarchy,
    /// The number in the file of each variable.
    numbers: Vec<usize>,
    /// The datasets of all files whose cells are elsewhere.
    sources: HashMap<Key, Source>,
    /// The virtual datasets that grew with their sources.
    grown: HashMap<Key, Variable>,
    warnings: Vec<String>,
}

impl VirtualFiles {
    /// Opens the files that the datasets of a file name.
    pub(super) async fn open(place: &Place, file: Hdf5Reader) -> Result<Self> {
        let ResolvedDatasets { files, sources, grown, warnings } = resolve(place, file).await?;
        for warning in &warnings {
            log::warn!("{}: {warning}", place.shown());
        }
        let (mut found, mut errors) = (HashMap::new(), HashMap::new());
        for (key, source) in sources {
            match source {
                Ok(source) => _ = found.insert(key, source),
                Err(error) => _ = errors.insert(key, error),
            }
        }
        let (hierarchy, numbers) = readable(files.first().hierarchy(), &grown, &errors);
        let objects = files.objects()?;
        Ok(Self { files, objects, hierarchy, numbers, sources: found, grown, warnings })
    }

    /// Returns a variable of one of the files.
    fn variable(&self, (file, variable): Key) -> Result<&Variable> {
        let found = self.files.hdf5(file)?.hierarchy().variables.get(variable);
        let found = self.grown.get(&(file, variable)).or(found);
        found.ok_or_else(|| Error::internal("no such variable"))
    }

    /// Returns the number of a variable in the file.
    fn number(&self, variable: usize) -> Result<usize> {
        let number = self.numbers.get(variable).copied();
        number.ok_or_else(|| Error::internal("no such variable"))
    }

    /// Locates chunks of a dataset of one of the files.
    fn located(&self, key: Key, chunks: Vec<Vec<u64>>) -> BoxFuture<'_, Result<Vec<StoredChunk>>> {
        Box::pin(async move {
            let file = self.files.hdf5(key.0)?;
            let (mut located, files) = match self.sources.get(&key) {
                Some(Source::Virtual(mapped)) => {
                    return self.virtual_chunks(self.variable(key)?, mapped, &chunks).await;
                }
                Some(Source::External(files)) => {
                    let lens: Vec<u64> = files.iter().map(|file| file.len).collect();
                    let numbers = files.iter().map(|file| file.number).collect();
                    (file.locate_external(key.1, &chunks, &lens)?, numbers)
                }
                None => (file.locate(key.1, chunks).await?, vec![key.0]),
            };
            let layers = located.iter_mut().flat_map(|chunk| &mut chunk.layers);
            for payload in layers.flat_map(Layer::payloads_mut) {
                let file = files.get(payload.at.member as usize).copied();
                let member = file.and_then(|number| u32::try_from(number).ok());
                payload.at.member = member.ok_or_else(|| Error::internal("no such file"))?;
            }
            Ok(located)
        })
    }

    /// Locates chunks of a virtual dataset.
    async fn virtual_chunks(
        &self,
        variable: &Variable,
        mapped: &[MappedDataset],
        chunks: &[Vec<u64>],
    ) -> Result<Vec<StoredChunk>> {
        let mut pieces: Vec<(usize, &MappedDataset, Vec<u64>, TilePiece)> = vec![];
        let mut wanted: BTreeMap<Key, BTreeMap<Vec<u64>, StoredChunk>> = BTreeMap::new();
        for (at, chunk) in chunks.iter().enumerate() {
            let within = cells_of(variable, chunk);
            let start: Vec<u64> = within.iter().map(|range| range.start).collect();
            for mapped in mapped {
                let other = self.variable(mapped.of)?;
                for piece in mapped.pairs.pieces(&within, &other.chunk_shape)? {
                    let of = wanted.entry(mapped.of).or_default();
                    of.entry(piece.chunk.clone()).or_default();
                    pieces.push((at, mapped, start.clone(), piece));
                }
            }
        }
        for (key, located) in &mut wanted {
            let coordinates: Vec<Vec<u64>> = located.keys().cloned().collect();
            let found = self.located(*key, coordinates).await?;
            located.values_mut().zip(found).for_each(|(to, found)| *to = found);
        }
        let mut stored = vec![StoredChunk::default(); chunks.len()];
        for (at, mapped, start, piece) in pieces {
            let located = wanted.get(&mapped.of).and_then(|all| all.get(&piece.chunk));
            let layers = located.map_or(&[][..], |chunk| &chunk.layers);
            let layers = self.pieces(variable, mapped, &start, &piece, layers)?;
            let Some(chunk) = stored.get_mut(at) else { continue };
            chunk.layers.extend(layers);
            if chunk.layers.len() > MAX_LAYERS {
                let message =
                    format!("a virtual dataset of more than {MAX_LAYERS} pieces per chunk");
                return Err(Error::unsupported(message));
            }
        }
        Ok(stored)
    }

    /// Returns the layers of a piece of a virtual dataset, made of those of a chunk of another dataset.
    fn pieces(
        &self,
        variable: &Variable,
        mapped: &MappedDataset,
        start: &[u64],
        piece: &TilePiece,
        layers: &[Layer],
    ) -> Result<Vec<Layer>> {
        let other = self.variable(mapped.of)?;
        let whole: Vec<u64> =
            cells_of(other, &piece.chunk).iter().map(|range| range.end - range.start).collect();
        let (mut all, mut is_complete) = (vec![], false);
        for layer in layers {
            if let Some((placed, has_all)) = placed(layer, mapped, start, piece, &whole, other)? {
                is_complete |= has_all;
                all.push(placed);
            }
        }
        let fill = match mapped.conversion {
            Some(conversion) => conversion.apply(&other.fill)?,
            None => other.fill.clone(),
        };
        if !is_complete && fill != variable.fill {
            // Cells of the other dataset that were never written.
            let mut layer = RepeatedCell::new(fill).layer(piece.lens.iter().copied());
            let firsts = piece.target.iter().zip(start).map(|(at, start)| at - start);
            let regions = layer.placement.iter_mut().flat_map(|it| &mut it.region);
            regions.zip(firsts).for_each(|(it, first)| *it = it.start + first..it.end + first);
            all.insert(0, layer);
        }
        Ok(all)
    }
}

/// Returns the variables of a file that can be read, with errors for the others, and their numbers in the file.
fn readable(
    all: &Hierarchy,
    grown: &HashMap<Key, Variable>,
    errors: &HashMap<Key, Error>,
) -> (Hierarchy, Vec<usize>) {
    let same = |it: &Unreadable| Unreadable::new(it.path.clone(), it.error.clone());
    let mut hierarchy = Hierarchy {
        variables: vec![],
        unreadable: all.unreadable.iter().map(same).collect(),
        groups: all.groups.clone(),
    };
    let mut numbers = vec![];
    for (number, variable) in all.variables.iter().enumerate() {
        if let Some(error) = errors.get(&(0, number)) {
            let (path, error) = (variable.path.clone(), error.clone());
            hierarchy.unreadable.push(Unreadable::new(path, error));
            continue;
        }
        numbers.push(number);
        hierarchy.variables.push(grown.get(&(0, number)).unwrap_or(variable).clone());
    }
    (hierarchy, numbers)
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

/// Places a layer of a chunk of `whole` cells per axis of another dataset in a chunk of the virtual dataset that begins
/// at `start`. Returns the layer, and whether it has all cells of the piece; `None` if it has none.
fn placed(
    layer: &Layer,
    mapped: &MappedDataset,
    start: &[u64],
    piece: &TilePiece,
    whole: &[u64],
    other: &Variable,
) -> Result<Option<(Layer, bool)>> {
    let place = layer.placement.clone().unwrap_or_else(|| {
        Placement::new(whole.iter().map(|&len| 0..len).collect(), whole.to_vec())
    });
    let Some(cut) = mapped.pairs.cut(piece, &place.region) else { return Ok(None) };
    let axes = cut.first.iter().zip(&place.region).zip(place.origin.iter().zip(&place.tile_shape));
    // The one cell of an axis of length 1 is that of all cells of the region.
    let first = axes.map(|((first, region), (origin, len))| match len {
        1 => 0,
        _ => origin + (first - region.start),
    });
    let folded = mapped.pairs.folded(&place.tile_shape, &first.collect::<Vec<u64>>());
    let firsts = piece.target.iter().zip(start).zip(&cut.skipped);
    let region = firsts.zip(&cut.lens).map(|(((at, start), skipped), len)| {
        let first = at - start + skipped;
        first..first + len
    });
    let placement = Placement::new(region.collect(), folded.tile_shape).with_origin(folded.origin);
    let mut placed = layer.clone().with_placement(Some(placement));
    if let Some((every, first)) = folded.picked {
        let width = other.cell.width().filter(|_| placed.payloads().count() == 1);
        let width = width.ok_or_else(|| {
            Error::unsupported(format!("single texts of the last axis of {:?}", other.path))
        })?;
        placed.values = Picked { width, every, first }.of(placed.values);
    }
    if let Some(conversion) = mapped.conversion {
        placed.values = converted(placed.values, conversion);
    }
    Ok(Some((placed, cut.lens == piece.lens)))
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
        let key = (0, self.number(variable)?);
        let located = self.located(key, chunks).await;
        if !self.sources.contains_key(&key) {
            return located;
        }
        let about = format!("dataset {:?}", self.variable(key)?.path);
        located.map_err(|error| self.files.first().objects().named(error.about(&about)))
    }

    async fn locate_field(
        &self,
        variable: usize,
        field: usize,
        chunks: Vec<Vec<u64>>,
    ) -> Result<Vec<StoredChunk>> {
        // Compounds are in this file alone.
        self.files.first().locate_field(self.number(variable)?, field, chunks).await
    }

    fn locates_without_cells(&self, variable: usize) -> bool {
        self.number(variable)
            .map_or(true, |number| self.files.first().locates_without_cells(number))
    }

    fn facts(&self) -> StoreFacts {
        let mut facts = self.files.first().facts();
        facts.warnings.extend(self.warnings.iter().cloned());
        facts
    }

    fn codec(&self, variable: usize) -> Option<String> {
        let number = self.number(variable).ok()?;
        match self.sources.get(&(0, number)) {
            Some(Source::Virtual(_)) => Some("virtual".to_owned()),
            Some(Source::External(_)) => Some("external".to_owned()),
            None => self.files.first().codec(number),
        }
    }

    async fn stored(&self, variable: usize) -> Result<Option<StoredTotals>> {
        if self.objects.is_remote() { Ok(None) } else { located_totals(self, variable).await }
    }

    async fn check_index(&self, variable: usize) -> Result<Option<u64>> {
        self.files.first().check_index(self.number(variable)?).await
    }
}
