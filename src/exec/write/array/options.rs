//! [`WriteOptions`]: the options of `COPY … TO` an array.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion::common::{ScalarValue, internal_err, plan_err};
use datafusion::error::Result;
use gridfusion_core::write::ExistingCells;

use super::attributes::ChosenAttributes;
use super::targets::TargetFormat;

/// DataFusion puts this before options without a dot.
const PREFIX: &str = "format.";
/// Options of `COPY` that DataFusion itself reads.
const OF_DATAFUSION: &str = "execution.";
/// The options of all formats.
const OF_ALL: [&str; 9] =
    ["attributes", "chunks", "codec", "dimensions", "fill", "level", "max_cells", "mode", "units"];
/// The options that hold for rows that are appended. The array has the others.
const OF_APPENDS: [&str; 8] =
    ["dimensions", "existing", "group", "max_cells", "mode", "others", "times", "unlock"];
/// The words for cells that are there already.
const EXISTING: [(&str, ExistingCells); 4] = [
    ("refuse", ExistingCells::Refuse),
    ("same", ExistingCells::Same),
    ("overwrite", ExistingCells::Overwrite),
    ("clear", ExistingCells::Clear),
];

/// The fate of an array that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum WriteMode {
    /// It stays, and nothing is written.
    #[default]
    Create,
    /// The new array takes its place.
    Overwrite,
    /// It becomes longer.
    Append,
}

impl fmt::Display for WriteMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl WriteMode {
    fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Overwrite => "overwrite",
            Self::Append => "append",
        }
    }
}

/// Returns the word for the fate of cells that are there already.
pub(super) fn word_for(existing: ExistingCells) -> &'static str {
    EXISTING.iter().find(|it| it.1 == existing).map_or("", |it| it.0)
}

/// The options of a new array.
#[derive(Debug, Clone, Default)]
pub(super) struct WriteOptions {
    /// The columns that are dimensions, the slowest first; `None` to find them.
    pub(super) dimensions: Option<Vec<String>>,
    /// The elements of a chunk along dimensions.
    pub(super) chunks: BTreeMap<String, u64>,
    /// The elements of a shard along dimensions.
    pub(super) shards: BTreeMap<String, u64>,
    codec: Option<String>,
    level: Option<i32>,
    pub(super) checksums: bool,
    /// The version of the format.
    pub(super) version: Option<String>,
    /// The filters of chunks in their order, with their levels.
    pub(super) filters: Option<Vec<(String, Option<i32>)>>,
    /// Whether the array gets room for more labels.
    pub(super) can_grow: bool,
    /// The most bytes of a file that is put together in memory.
    pub(super) max_bytes: Option<u64>,
    /// The group of a store that the array becomes, as a path.
    pub(super) group: Option<String>,
    pub(super) mode: WriteMode,
    /// The fate of cells that rows are appended to, and that are there already.
    pub(super) existing: ExistingCells,
    /// Whether arrays without a column become longer, too, with NULL.
    pub(super) fills_others: bool,
    /// Whether labels get finer units of time, if those of rows need them.
    pub(super) refines_times: bool,
    /// Whether the lock of another program is taken from it.
    pub(super) unlocks: bool,
    /// The values that stand for NULL: for all variables under the empty name, or by the name of a variable.
    fills: BTreeMap<String, String>,
    /// Attributes of the array and of columns.
    pub(super) attributes: ChosenAttributes,
    /// The most cells of the array.
    pub(super) max_cells: Option<u64>,
}

impl WriteOptions {
    /// Returns the options of an append to an array, or to a group, without any others.
    pub(super) fn of_append(existing: ExistingCells, group: Option<String>) -> Self {
        Self { mode: WriteMode::Append, existing, group, ..Self::default() }
    }

    /// Returns the group that rows are appended to, as to a store of its own.
    pub(super) fn group_of_append(&self) -> Option<&str> {
        let group = self.group.as_deref().filter(|group| !group.is_empty());
        group.filter(|_| self.mode == WriteMode::Append)
    }

    /// Reads the options of a statement.
    ///
    /// # Errors
    /// For an unknown option, or a value that cannot be read.
    pub(super) fn try_new(
        options: &HashMap<String, String>,
        target: &dyn TargetFormat,
    ) -> Result<Self> {
        let mut read = Self::default();
        for (key, value) in options {
            let name = key.strip_prefix(PREFIX).unwrap_or(key);
            if name.starts_with(OF_DATAFUSION) {
                continue;
            }
            let known = || OF_ALL.iter().chain(target.options()).copied();
            if !known().any(|it| it == name) {
                let known = known().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>();
                return plan_err!(
                    "the format {} has no option '{name}'; its options are {}",
                    target.name(),
                    known.join(", ")
                );
            }
            match name {
                "dimensions" => match names(value) {
                    names if names.is_empty() => {
                        return plan_err!("'dimensions' is empty, expected names of columns");
                    }
                    names => read.dimensions = Some(names),
                },
                "chunks" => read.chunks = lengths(name, value)?,
                "shards" => read.shards = lengths(name, value)?,
                "codec" => read.codec = Some(value.trim().to_lowercase()),
                "level" => read.level = Some(number(name, value)?),
                "checksums" => read.checksums = number(name, value)?,
                "filters" => read.filters = Some(filters(value)?),
                "can_grow" => read.can_grow = number(name, value)?,
                "version" => read.version = Some(value.trim().to_lowercase()),
                "max_bytes" => read.max_bytes = Some(number(name, value)?),
                "group" => read.group = Some(value.trim_matches('/').to_owned()),
                "mode" => read.mode = mode(value, target)?,
                "existing" => read.existing = existing(value)?,
                "others" => read.fills_others = is_allowed(name, value, "null")?,
                "times" => read.refines_times = is_allowed(name, value, "rewrite")?,
                "unlock" => read.unlocks = number(name, value)?,
                "max_cells" => read.max_cells = Some(number(name, value)?),
                "fill" => read.fills = pairs(value).collect(),
                "attributes" => read.attributes.read(value)?,
                "units" => read.attributes.read_units(value)?,
                _ => return internal_err!("nothing reads the option '{name}'"),
            }
        }
        let names = options.keys().map(|key| key.strip_prefix(PREFIX).unwrap_or(key));
        let mut of_new_arrays = names.clone().filter(|name| !name.starts_with(OF_DATAFUSION));
        let mut of_appends =
            names.clone().filter(|name| ["existing", "others", "times"].contains(name));
        if let Some(name) = of_appends.next().filter(|_| read.mode != WriteMode::Append) {
            return plan_err!("the option '{name}' needs mode 'append'");
        }
        if read.mode == WriteMode::Append
            && let Some(name) = of_new_arrays.find(|name| !OF_APPENDS.contains(name))
        {
            return plan_err!(
                "the option '{name}' is for new arrays, and rows are appended; the array keeps what it has"
            );
        }
        read.codec(target.codecs())?;
        read.check_shards()?;
        Ok(read)
    }

    /// Fails for a shard that is not put together of whole chunks.
    fn check_shards(&self) -> Result<()> {
        for (name, len) in &self.shards {
            if let Some(chunk) = self.chunks.get(name).filter(|chunk| len % *chunk != 0) {
                return plan_err!(
                    "a shard of {len} along '{name}' is no multiple of its chunks of {chunk}"
                );
            }
        }
        Ok(())
    }

    /// Returns the codec of chunks and its level, of those that a format has: see [`TargetFormat::codecs`].
    ///
    /// # Errors
    /// For an unknown codec, or a level of a codec that has none.
    pub(super) fn codec(
        &self,
        known: &'static [(&'static str, Option<i32>)],
    ) -> Result<(&'static str, Option<i32>)> {
        let found = match &self.codec {
            None => known.first(),
            Some(name) => known.iter().find(|it| it.0 == name),
        };
        match (found, self.level) {
            (Some((name, None)), Some(_)) => plan_err!("the codec '{name}' has no level"),
            (Some((name, default)), level) => Ok((name, level.or(*default))),
            (None, _) => {
                let known: Vec<&str> = known.iter().map(|it| it.0).collect();
                let name = self.codec.as_deref().unwrap_or_default();
                plan_err!("there is no codec '{name}'; there are {}", known.join(", "))
            }
        }
    }

    /// Whether the options choose the codec or its level.
    #[cfg(any(feature = "hdf5", feature = "tiledb"))]
    pub(super) fn chooses_codec(&self) -> bool {
        self.codec.is_some() || self.level.is_some()
    }

    /// Returns the value that stands for NULL in a variable, as an array of one value; `None` if the options have none for it.
    ///
    /// # Errors
    /// If it is none of the type.
    pub(super) fn fill(&self, name: &str, data_type: &DataType) -> Result<Option<ArrayRef>> {
        let text = self.fills.get(name).or_else(|| self.fills.get(""));
        let Some(text) = text else { return Ok(None) };
        match ScalarValue::try_from_string(text.clone(), data_type) {
            Ok(value) if !value.is_null() => Ok(Some(value.to_array()?)),
            _ => plan_err!("the fill value '{text}' of \"{name}\" is no {data_type}"),
        }
    }

    /// Returns the names in the options that are none of `dimensions` or `variables`.
    pub(super) fn check_names(&self, dimensions: &[&str], variables: &[&str]) -> Result<()> {
        for (option, lengths) in [("chunks", &self.chunks), ("shards", &self.shards)] {
            if let Some(name) = lengths.keys().find(|it| !dimensions.contains(&it.as_str())) {
                let known = dimensions.join(", ");
                return plan_err!("'{option}' names '{name}', and the dimensions are {known}");
            }
        }
        self.attributes.check_names(dimensions, variables)?;
        let mut fills = self.fills.keys().filter(|it| !it.is_empty());
        match fills.find(|it| !variables.contains(&it.as_str())) {
            Some(name) => {
                plan_err!("'fill' names '{name}', and the variables are {}", variables.join(", "))
            }
            None => Ok(()),
        }
    }
}

fn names(text: &str) -> Vec<String> {
    text.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
}

/// Reads `a=1, b=2`; without a name, the name is empty.
fn pairs(text: &str) -> impl Iterator<Item = (String, String)> {
    text.split(',').map(|pair| match pair.rsplit_once('=') {
        Some((name, value)) => (name.trim().to_owned(), value.trim().to_owned()),
        None => (String::new(), pair.trim().to_owned()),
    })
}

fn lengths(option: &str, text: &str) -> Result<BTreeMap<String, u64>> {
    let mut lengths = BTreeMap::new();
    for (name, value) in pairs(text) {
        let len = value.parse().ok().filter(|len| *len > 0 && !name.is_empty());
        let Some(len) = len else {
            return plan_err!("'{option}' is '{text}', expected lengths such as 'time=24, lat=90'");
        };
        if lengths.insert(name.clone(), len).is_some() {
            return plan_err!("'{option}' has two lengths for '{name}'");
        }
    }
    Ok(lengths)
}

fn mode(name: &str, target: &dyn TargetFormat) -> Result<WriteMode> {
    let name = name.trim().to_lowercase();
    match target.modes().iter().find(|it| it.name() == name) {
        Some(mode) => Ok(*mode),
        None => {
            let known = target.modes().iter().map(|it| it.name()).collect::<Vec<_>>();
            plan_err!(
                "there is no mode '{name}'; the format {} has {}",
                target.name(),
                known.join(" and ")
            )
        }
    }
}

/// Reads `byteshuffle, zstd=9`.
fn filters(text: &str) -> Result<Vec<(String, Option<i32>)>> {
    let filters = text.split(',').map(|filter| {
        let (name, level) = match filter.split_once('=') {
            Some((name, level)) => (name, Some(number("filters", level)?)),
            None => (filter, None),
        };
        Ok((name.trim().to_lowercase(), level))
    });
    filters.collect()
}

fn existing(name: &str) -> Result<ExistingCells> {
    let name = name.trim().to_lowercase();
    match EXISTING.iter().find(|it| it.0 == name) {
        Some((_, existing)) => Ok(*existing),
        None => {
            let known = EXISTING.map(|it| it.0).join(", ");
            plan_err!("'existing' is '{name}', expected one of {known}")
        }
    }
}

/// Whether an option is this word, and not `refuse`.
fn is_allowed(option: &str, word: &str, allowed: &str) -> Result<bool> {
    match word.trim().to_lowercase().as_str() {
        "refuse" => Ok(false),
        word if word == allowed => Ok(true),
        word => plan_err!("'{option}' is '{word}', expected 'refuse' or '{allowed}'"),
    }
}

fn number<T: std::str::FromStr>(option: &str, text: &str) -> Result<T> {
    match text.trim().parse() {
        Ok(number) => Ok(number),
        Err(_) => plan_err!("the option '{option}' is '{text}', which cannot be read"),
    }
}
