//! Finds the cells of datasets that are elsewhere: in other datasets, which may be virtual themselves, or in external
//! files.
//!
//! ```text
//!   virtual dataset ─▶ mappings ─▶ dataset of this or another file ─▶ its mappings ─▶ …
//! ```

use std::collections::{HashMap, HashSet, VecDeque};

use super::conversion::Conversion;
use super::growing::{GrownDataset, SourceCounter};
use super::hdf5::Hdf5Reader;
use super::other_files::OtherFiles;
use super::pairs::Pairs;
use crate::conventions::VariableStore;
use crate::hdf5::{Mapping, Segment, Steps};
use crate::hierarchy::Variable;
use gridfusion_core::source::Place;
use gridfusion_core::{Error, Result};

/// The most virtual datasets that lead from a dataset to its cells.
const MOST_DEEP: usize = 16;
/// The most numbered sources of a mapping.
const MAX_NUMBERED: u64 = 1 << 16;
/// The most mappings and segments of all datasets.
const MAX_PARTS: usize = 1 << 17;

/// The number of a file, and of a variable in it.
pub(super) type Key = (usize, usize);

/// The cells of a dataset that are elsewhere.
#[derive(Debug)]
pub(super) enum Source {
    Virtual(Vec<MappedDataset>),
    External(Vec<ExternalFile>),
}

/// A mapping whose dataset was found.
#[derive(Debug)]
pub(super) struct MappedDataset {
    pub(super) of: Key,
    pub(super) pairs: Pairs,
    /// How numbers become those of the virtual dataset, if their types differ.
    pub(super) conversion: Option<Conversion>,
}

/// The file of a segment: its number, and its length.
#[derive(Debug)]
pub(super) struct ExternalFile {
    pub(super) number: usize,
    pub(super) len: u64,
}

/// All datasets that are elsewhere, as far as the variables of the first file lead to them.
#[derive(Debug)]
pub(super) struct ResolvedDatasets {
    pub(super) files: OtherFiles,
    /// An error for a dataset that cannot be read.
    pub(super) sources: HashMap<Key, Result<Source>>,
    /// Datasets that grew with their sources.
    pub(super) grown: HashMap<Key, Variable>,
    pub(super) warnings: Vec<String>,
}

/// Whether cells of a variable are elsewhere.
pub(super) fn is_elsewhere(file: &Hdf5Reader, variable: usize) -> bool {
    file.mappings(variable).is_some() || file.segments(variable).is_some()
}

/// Opens the files that datasets of a file lead to.
pub(super) async fn resolve(place: &Place, file: Hdf5Reader) -> Result<ResolvedDatasets> {
    let count = file.hierarchy().variables.len();
    let waiting: VecDeque<Key> =
        (0..count).filter(|number| is_elsewhere(&file, *number)).map(|it| (0, it)).collect();
    let files = OtherFiles::new(place, file);
    let mut resolving = Resolver {
        files,
        waiting,
        grown: HashMap::new(),
        numbers: HashMap::new(),
        warnings: vec![],
        known: HashSet::new(),
        parts: 0,
    };
    let mut sources = HashMap::new();
    while let Some(key) = resolving.waiting.pop_front() {
        if resolving.known.insert(key) {
            let source = resolving.source(key).await;
            let source = source.map_err(|error| resolving.about(key, error));
            sources.insert(key, source);
        }
    }
    let Resolver { files, grown, warnings, .. } = resolving;
    let mut known = HashMap::new();
    let mut error = |key| depth(&sources, key, &mut vec![], &mut known).err();
    let errors = sources.keys().filter_map(|&key| Some((key, error(key)?)));
    let errors: Vec<(Key, Error)> = errors.collect();
    for (key, error) in errors {
        sources.insert(key, Err(error));
    }
    let of_readable =
        warnings.into_iter().filter(|(key, _)| matches!(sources.get(key), Some(Ok(_))));
    let warnings = of_readable.map(|(_, warning)| warning).collect();
    Ok(ResolvedDatasets { files, sources, grown, warnings })
}

/// Returns the number of datasets on the longest way from a dataset to its cells. Fails if it leads to itself, to one
/// that cannot be read, or through too many.
fn depth(
    sources: &HashMap<Key, Result<Source>>,
    key: Key,
    way: &mut Vec<Key>,
    known: &mut HashMap<Key, usize>,
) -> Result<usize> {
    if way.contains(&key) {
        return Err(Error::unsupported("a virtual dataset whose cells are its own"));
    }
    let below = match (known.get(&key), sources.get(&key)) {
        (Some(depth), _) => *depth,
        (None, Some(Err(error))) => return Err(error.clone()),
        (None, Some(Ok(Source::Virtual(all)))) if way.len() < MOST_DEEP => {
            way.push(key);
            let depths = all.iter().map(|mapped| depth(sources, mapped.of, way, known));
            let deepest = depths.collect::<Result<Vec<usize>>>()?.into_iter().max();
            way.pop();
            deepest.unwrap_or_default() + 1
        }
        (None, Some(Ok(Source::Virtual(_)))) => MOST_DEEP,
        (None, Some(Ok(Source::External(_))) | None) => 1,
    };
    if way.len() + below > MOST_DEEP + 1 {
        let message = format!("virtual datasets of virtual datasets, more than {MOST_DEEP} deep");
        return Err(Error::unsupported(message));
    }
    known.insert(key, below);
    Ok(below)
}

/// Datasets that are being found.
struct Resolver {
    files: OtherFiles,
    waiting: VecDeque<Key>,
    /// Datasets that grew with their sources.
    grown: HashMap<Key, Variable>,
    /// The numbers of variables by their paths, per file.
    numbers: HashMap<usize, HashMap<String, usize>>,
    /// Datasets that were found, or cannot be read.
    known: HashSet<Key>,
    warnings: Vec<(Key, String)>,
    /// The number of mappings and segments so far.
    parts: usize,
}

impl Resolver {
    /// Returns a variable of one of the files.
    fn variable(&self, (file, variable): Key) -> Result<&Variable> {
        let found = self.files.hdf5(file)?.hierarchy().variables.get(variable);
        let found = self.grown.get(&(file, variable)).or(found);
        found.ok_or_else(|| Error::internal("no such variable"))
    }

    fn about(&self, key: Key, error: Error) -> Error {
        let path = self.variable(key).map(|variable| variable.path.as_str()).unwrap_or_default();
        let error = error.about(&format!("dataset {path:?}"));
        if key.0 == 0 { error } else { error.in_file(&self.files.shown(key.0)) }
    }

    async fn source(&mut self, key: Key) -> Result<Source> {
        let file = self.files.hdf5(key.0)?;
        let (mappings, segments) = (file.mappings(key.1), file.segments(key.1));
        self.count(mappings.as_ref().map_or(0, |all| all.len()))?;
        self.count(segments.as_ref().map_or(0, |all| all.len()))?;
        match (mappings, segments) {
            (Some(mappings), _) if mappings.iter().any(Mapping::grows) => {
                let GrownDataset { variable, mappings, missing } =
                    self.grow(key, &mappings).await?;
                self.grown.insert(key, variable);
                self.mapped(key, &mappings, missing).await.map(Source::Virtual)
            }
            (Some(mappings), _) => self.mapped(key, &mappings, vec![]).await.map(Source::Virtual),
            (None, Some(segments)) => self.external(key, &segments).await.map(Source::External),
            (None, None) => Err(Error::internal("a dataset that is not elsewhere")),
        }
    }

    /// Counts mappings and segments. Fails if they are too many.
    fn count(&mut self, parts: usize) -> Result<()> {
        self.parts += parts;
        if self.parts > MAX_PARTS {
            let message = format!("virtual datasets of more than {MAX_PARTS} parts");
            return Err(Error::unsupported(message));
        }
        Ok(())
    }

    /// Counts the sources of a virtual dataset that grows.
    async fn grow(&mut self, key: Key, mappings: &[Mapping]) -> Result<GrownDataset> {
        let mut growing = SourceCounter::new(self.variable(key)?.clone());
        for mapping in mappings {
            if !mapping.grows() {
                growing.add_fixed(mapping)?;
            } else if mapping.is_numbered {
                match self.numbered(key, mapping).await? {
                    0 => growing.add_missing(mapping)?,
                    count => growing.add_blocks(mapping, count)?,
                }
            } else {
                match self.find(key, mapping).await? {
                    Some(of) => growing.add_cells(mapping, &self.variable(of)?.shape())?,
                    None => growing.add_missing(mapping)?,
                }
            }
        }
        growing.finish()
    }

    /// Counts the numbered sources of a mapping before the first that is missing.
    async fn numbered(&mut self, key: Key, mapping: &Mapping) -> Result<u64> {
        let mut count = 0;
        while self.find(key, &mapping.of_block(count)).await?.is_some() {
            count += 1;
            if count > MAX_NUMBERED {
                let name = &mapping.dataset;
                let message = format!("more than {MAX_NUMBERED} numbered sources such as {name:?}");
                return Err(Error::unsupported(message));
            }
            self.count(1)?;
        }
        Ok(count)
    }

    async fn external(&mut self, key: Key, segments: &[Segment]) -> Result<Vec<ExternalFile>> {
        let mut all = vec![];
        for Segment { file, .. } in segments {
            let number = self.files.open_cells(key.0, file).await?.ok_or_else(|| {
                let cause = std::io::Error::from(std::io::ErrorKind::NotFound);
                Error::io(
                    format!("its cells are in the external file {file:?}, which is missing"),
                    cause,
                )
            })?;
            all.push(ExternalFile { number, len: self.files.len(number)? });
        }
        let lens: Vec<u64> = all.iter().map(|file| file.len).collect();
        let (found, cells) = self.files.hdf5(key.0)?.count_external(key.1, &lens)?;
        if found < cells {
            let ends = |(segment, len): &(&Segment, &u64)| {
                segment.len.is_none_or(|most| segment.offset.saturating_add(most) > **len)
            };
            let short = segments.iter().zip(&lens).find(ends);
            let short = short.map(|(it, len)| format!(", such as {:?} of {len} bytes", it.file));
            let (path, short) = (&self.variable(key)?.path, short.unwrap_or_default());
            let lacking = cells - found;
            let warning = format!(
                "{lacking} of {cells} cells of the dataset {path:?} lie behind the end of its external files{short}; \
                 they are 0"
            );
            self.warnings.push((key, warning));
        }
        Ok(all)
    }

    /// Returns the mappings whose datasets are found, and warns of the others, of which some are known to be missing.
    async fn mapped(
        &mut self,
        key: Key,
        mappings: &[Mapping],
        mut missing: Vec<Mapping>,
    ) -> Result<Vec<MappedDataset>> {
        let (mut found, all) = (vec![], mappings.len() + missing.len());
        for mapping in mappings {
            match self.one(key, mapping).await? {
                Some(mapped) => found.push(mapped),
                None => missing.push(mapping.clone()),
            }
        }
        if let Some(first) = missing.first() {
            let first = match &first.file {
                Some(file) => format!("{:?} in the file {file:?}", first.dataset),
                None => format!("{:?}", first.dataset),
            };
            let their_cells = match self.grown.contains_key(&key) {
                true => "their cells are left out, or have its fill value",
                false => "their cells have its fill value",
            };
            let (path, missing) = (&self.variable(key)?.path, missing.len());
            let warning = format!(
                "{missing} of {all} sources of the virtual dataset {path:?} are missing, such as {first}; \
                 {their_cells}"
            );
            self.warnings.push((key, warning));
        }
        Ok(found)
    }

    /// Finds the dataset of a mapping; `None` if it is missing.
    async fn find(&mut self, key: Key, mapping: &Mapping) -> Result<Option<Key>> {
        let file = match &mapping.file {
            Some(name) => self.files.open_hdf5(key.0, name).await?,
            None => Some(key.0),
        };
        let Some(file) = file else { return Ok(None) };
        let path = mapping.dataset.trim_matches('/');
        let opened = self.files.hdf5(file)?;
        let hierarchy = opened.hierarchy();
        let numbers = self.numbers.entry(file).or_insert_with(|| {
            let paths = hierarchy.variables.iter().map(|it| it.path.clone());
            paths.enumerate().map(|(number, path)| (path, number)).rev().collect()
        });
        let Some(&variable) = numbers.get(path) else {
            let error = hierarchy.unreadable.iter().find(|it| it.path == path);
            return error.map_or(Ok(None), |it| Err(it.error.clone()));
        };
        // The HDF5 library does not always count its cells again.
        if opened.mappings(variable).is_some_and(|all| all.iter().any(Mapping::grows)) {
            let message = format!("a virtual dataset of the virtual dataset {path:?}, which grows");
            return Err(Error::unsupported(message));
        }
        Ok(Some((file, variable)))
    }

    async fn one(&mut self, key: Key, mapping: &Mapping) -> Result<Option<MappedDataset>> {
        let Some(of) = self.find(key, mapping).await? else { return Ok(None) };
        let target = self.variable(key)?;
        let source = self.variable(of)?;
        let conversion = match source.cell == target.cell {
            true => None,
            false => Some(Conversion::between(&source.cell, &target.cell).ok_or_else(|| {
                let (to, from) = (&target.cell, &source.cell);
                Error::unsupported(format!("cells of {to}, which are {from} in {:?}", source.path))
            })?),
        };
        let pairs = pairs(mapping, target, source)?;
        if is_elsewhere(self.files.hdf5(of.0)?, of.1) {
            self.waiting.push_back(of);
        }
        Ok(Some(MappedDataset { of, pairs, conversion }))
    }
}

fn pairs(mapping: &Mapping, target: &Variable, source: &Variable) -> Result<Pairs> {
    let path = &source.path;
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
        let message = format!("a mapping of more cells than the shape {shape:?} of {path:?} has");
        return Err(Error::unsupported(message));
    }
    let picks = pairs.folded(&source.chunk_shape, &vec![0; source.chunk_shape.len()]).picked;
    if picks.is_some() && source.cell.width().is_none() {
        let message = format!("single texts of any length of the last axis of {path:?}");
        return Err(Error::unsupported(message));
    }
    Ok(pairs)
}
