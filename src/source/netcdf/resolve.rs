//! Finds the cells of datasets that are elsewhere: in other datasets, which may be virtual themselves, or in external
//! files.
//!
//! ```text
//!   virtual dataset ─▶ mappings ─▶ dataset of this or another file ─▶ its mappings ─▶ …
//! ```

use std::collections::{HashMap, HashSet, VecDeque};

use super::conversion::Conversion;
use super::hdf5::Hdf5Reader;
use super::other_files::OtherFiles;
use super::pairs::Pairs;
use crate::error::{Error, Result};
use crate::format::hdf5::{Mapping, Segment, Steps};
use crate::format::hierarchy::Variable;
use crate::source::hierarchy::VariableStore;
use crate::source::place::Place;

/// The most virtual datasets that lead from a dataset to its cells.
const MOST_DEEP: usize = 16;
/// The most mappings and segments of all datasets.
const MAX_PARTS: usize = 1 << 17;

/// The number of a file, and of a variable in it.
pub(super) type Key = (usize, usize);

/// The cells of a dataset that are elsewhere.
#[derive(Debug)]
pub(super) enum Source {
    Virtual(Vec<Mapped>),
    External(Vec<ExternalFile>),
}

/// A mapping whose dataset was found.
#[derive(Debug)]
pub(super) struct Mapped {
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
pub(super) struct Resolved {
    pub(super) files: OtherFiles,
    /// An error for a dataset that cannot be read.
    pub(super) sources: HashMap<Key, Result<Source>>,
    pub(super) warnings: Vec<String>,
}

/// Whether cells of a variable are elsewhere.
pub(super) fn is_elsewhere(file: &Hdf5Reader, variable: usize) -> bool {
    file.mappings(variable).is_some() || file.segments(variable).is_some()
}

/// Opens the files that datasets of a file lead to.
pub(super) async fn resolve(place: &Place, file: Hdf5Reader) -> Result<Resolved> {
    let count = file.hierarchy().variables.len();
    let waiting: VecDeque<Key> =
        (0..count).filter(|number| is_elsewhere(&file, *number)).map(|it| (0, it)).collect();
    let files = OtherFiles::new(place, file);
    let mut resolving =
        Resolving { files, waiting, warnings: vec![], known: HashSet::new(), parts: 0 };
    let mut sources = HashMap::new();
    while let Some(key) = resolving.waiting.pop_front() {
        if resolving.known.insert(key) {
            let source = resolving.source(key).await;
            let source = source.map_err(|error| resolving.about(key, error));
            sources.insert(key, source);
        }
    }
    let Resolving { files, warnings, .. } = resolving;
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
    Ok(Resolved { files, sources, warnings })
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
struct Resolving {
    files: OtherFiles,
    waiting: VecDeque<Key>,
    /// Datasets that were found, or cannot be read.
    known: HashSet<Key>,
    warnings: Vec<(Key, String)>,
    /// The number of mappings and segments so far.
    parts: usize,
}

impl Resolving {
    fn variable(&self, (file, variable): Key) -> Result<&Variable> {
        let found = self.files.hdf5(file)?.hierarchy().variables.get(variable);
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
        self.parts += mappings.as_ref().map_or(0, |all| all.len());
        self.parts += segments.as_ref().map_or(0, |all| all.len());
        if self.parts > MAX_PARTS {
            let message = format!("virtual datasets of more than {MAX_PARTS} parts");
            return Err(Error::unsupported(message));
        }
        match (mappings, segments) {
            (Some(mappings), _) => self.mapped(key, &mappings).await.map(Source::Virtual),
            (None, Some(segments)) => self.external(key, &segments).await.map(Source::External),
            (None, None) => Err(Error::internal("a dataset that is not elsewhere")),
        }
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

    /// Returns the mappings whose datasets are found, and warns of the others.
    async fn mapped(&mut self, key: Key, mappings: &[Mapping]) -> Result<Vec<Mapped>> {
        let (mut found, mut missing) = (vec![], vec![]);
        for mapping in mappings {
            match self.one(key, mapping).await? {
                Some(mapped) => found.push(mapped),
                None => missing.push(match &mapping.file {
                    Some(file) => format!("{:?} in the file {file:?}", mapping.dataset),
                    None => format!("{:?}", mapping.dataset),
                }),
            }
        }
        if let Some(first) = missing.first() {
            let (path, missing, all) = (&self.variable(key)?.path, missing.len(), mappings.len());
            let warning = format!(
                "{missing} of {all} sources of the virtual dataset {path:?} are missing, such as {first}; \
                 their cells have its fill value"
            );
            self.warnings.push((key, warning));
        }
        Ok(found)
    }

    async fn one(&mut self, key: Key, mapping: &Mapping) -> Result<Option<Mapped>> {
        let file = match &mapping.file {
            Some(name) => self.files.open_hdf5(key.0, name).await?,
            None => Some(key.0),
        };
        let Some(file) = file else { return Ok(None) };
        let opened = self.files.hdf5(file)?;
        let target = self.variable(key)?;
        let path = mapping.dataset.trim_matches('/');
        let hierarchy = opened.hierarchy();
        if let Some(it) = hierarchy.unreadable.iter().find(|it| it.path == path) {
            return Err(it.error.clone());
        }
        let Some(variable) = hierarchy.variables.iter().position(|it| it.path == path) else {
            return Ok(None);
        };
        let of = (file, variable);
        let source = self.variable(of)?;
        let conversion = match source.cell == target.cell {
            true => None,
            false => Some(Conversion::between(&source.cell, &target.cell).ok_or_else(|| {
                let (to, from) = (&target.cell, &source.cell);
                Error::unsupported(format!("cells of {to}, which are {from} in {path:?}"))
            })?),
        };
        let pairs = pairs(mapping, target, source)?;
        if is_elsewhere(opened, variable) {
            self.waiting.push_back(of);
        }
        Ok(Some(Mapped { of, pairs, conversion }))
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
