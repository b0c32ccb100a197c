//! Opens the files of a table of many, and adapts them to options before they are combined.
//!
//! ```text
//!   places ──▶ open, up to 32 at a time ──▶ without unreadable ones ──▶ stacked along a new dimension ──▶ Arrangement
//!                                           skip_unreadable             stack
//! ```

use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::compute::concat;
use futures::stream::{self, StreamExt};
use gridfusion_core::read::single_value;

use super::array_table::ArrayTable;
use super::opener::{ArrayOpener, Chosen};
use crate::array::{Dimension, Labels, failed_to};
use crate::error::{Error, ErrorKind, Result};
use crate::io::{MAX_CONCURRENT_IO, OpenFiles, is_not_found};
use crate::options::IoMode;
use crate::source::{
    Arrangement, ArrayGroup, FileArrays, KnownFiles, PinnedOption, Place, Stack, StackLabels,
    TableArrays,
};

/// The most files that a table of many files holds open at once. Linux allows a process 1024 by default.
const MOST_OPEN: usize = 512;

/// A table of many files.
pub(super) struct CombinedFiles {
    pub(super) table: ArrayTable,
    /// The facts about the files, for processes that open only some of them.
    pub(super) known: Option<KnownFiles>,
    /// The numbers of the places whose files are in the table, and the options that name what was opened there.
    pub(super) kept: Vec<(usize, Vec<PinnedOption>)>,
    /// The option `stack` for these places, if it lists labels of others, too.
    pub(super) stack: Option<String>,
}

/// The label of a file along a new dimension.
pub(super) enum StackLabel {
    /// One of those that the option lists.
    Given,
    /// As text, whose type follows from all labels.
    Text(String),
    /// The value of a scalar coordinate, as an array of one element.
    Value(ArrayRef),
}

/// How to treat a file that cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// Its error is that of the table.
    Refused,
    /// It is left out, with a warning, if the option `skip_unreadable` is set.
    ByOption,
}

impl ArrayOpener {
    /// Opens the arrays of several places as one table. The first place sets how they are combined.
    pub(super) async fn combined(
        &self,
        name: String,
        places: &[String],
        each: &[Chosen],
        unreadable: Unreadable,
    ) -> Result<CombinedFiles> {
        let first = each.first().ok_or_else(|| Error::internal("a table of no place"))?;
        let (mosaic, stack) = (first.mosaic(), first.stack()?);
        let skips = unreadable == Unreadable::ByOption && first.skips_unreadable();
        let (kept, mut files, labels) = self.opened(places, each, stack.as_ref(), skips).await?;
        if let Some(dataset) = first.options.dataset().filter(|_| mosaic.union_by_name) {
            refuse_unknown(dataset, &files)?;
        }
        if let Some(stack) = &stack {
            let names: Vec<String> = files.iter().map(|file| file.name.clone()).collect();
            let along = dimension(stack, &names, labels, &kept, places.len())?;
            let stacked = files.into_iter().enumerate();
            files = stacked
                .map(|(at, file)| Stack::stacked(file, &along, at))
                .collect::<Result<_>>()?;
        }
        let pinned: Vec<_> = files.iter().map(|file| file.pinned_options().to_vec()).collect();
        let arranged = Arrangement::try_new(files, &mosaic)?;
        // Another process would have to add the new dimension to each file.
        let known = if stack.is_none() { KnownFiles::try_new(&arranged) } else { None };
        let stack = stack.and_then(|stack| stack.of_files(&kept));
        let kept = kept.into_iter().zip(pinned).collect();
        Ok(CombinedFiles { table: arranged.into_array(name, &mosaic)?.into(), known, kept, stack })
    }

    /// Opens the arrays of each place, in the order of `places`, up to 32 places at a time. Returns the numbers of those that
    /// were opened, their arrays and their labels along a new dimension. The first error ends all, unless the file is left out.
    async fn opened(
        &self,
        places: &[String],
        each: &[Chosen],
        stack: Option<&Stack>,
        skips: bool,
    ) -> Result<(Vec<usize>, Vec<FileArrays>, Vec<StackLabel>)> {
        self.opening().begin(places.len());
        let pool = open_files(each);
        let files = places.iter().zip(each).map(|(place, chosen)| {
            let pool = &pool;
            async move {
                match self.labelled_file(place, chosen, pool, stack).await {
                    Err(error) if skips && self.is_unreadable(place, chosen, &error).await => {
                        Ok(Err(error))
                    }
                    opened => opened.map(Ok),
                }
            }
        });
        let files: Vec<_> = files.collect();
        let mut files = stream::iter(files).buffered(MAX_CONCURRENT_IO).enumerate();
        let (mut kept, mut all, mut labels, mut first_error) = (vec![], vec![], vec![], None);
        while let Some((at, file)) = files.next().await {
            match file? {
                Ok((file, label)) => {
                    kept.push(at);
                    all.push(file);
                    labels.extend(label);
                }
                Err(error) => {
                    log::warn!("left out of the table: {error}");
                    first_error = first_error.or(Some(error));
                }
            }
        }
        match first_error {
            Some(error) if all.is_empty() => Err(error),
            _ => Ok((kept, all, labels)),
        }
    }

    /// Whether an error tells that a file is damaged, missing or of no known format. Trouble with the network and wrong options
    /// are no reason to leave a file out.
    async fn is_unreadable(&self, location: &str, chosen: &Chosen, error: &Error) -> bool {
        let Ok(place) = self.place(location) else { return false };
        match error.kind() {
            ErrorKind::Corrupt | ErrorKind::Unsupported => true,
            ErrorKind::Io => !place.is_remote() || is_not_found(error),
            ErrorKind::Usage => match self.formats.look_into(&place).await {
                Ok(found) => found.is_none_or(|found| found.name() != chosen.format.name()),
                Err(_) => false,
            },
            _ => false,
        }
    }

    /// Opens the arrays of one place of many, and finds its label along a new dimension.
    async fn labelled_file(
        &self,
        location: &str,
        chosen: &Chosen,
        pool: &Arc<OpenFiles>,
        stack: Option<&Stack>,
    ) -> Result<(FileArrays, Option<StackLabel>)> {
        let arrays = self.file(location, chosen, pool).await?;
        let Some(stack) = stack else { return Ok((arrays, None)) };
        let place = self.place(location)?.among(Arc::clone(pool));
        Ok((arrays, Some(self.label(stack, &place, chosen).await?)))
    }

    /// Returns the label of a file along a new dimension.
    pub(super) async fn label(
        &self,
        stack: &Stack,
        place: &Place,
        chosen: &Chosen,
    ) -> Result<StackLabel> {
        let group = || self.formats.open(&chosen.format, place, &chosen.options);
        Ok(match stack.labels() {
            StackLabels::Path(label) => StackLabel::Text(label.of(&place.path())?),
            StackLabels::Attribute(key) => {
                StackLabel::Text(attribute(&*group().await?, key).await?)
            }
            StackLabels::Coordinate => {
                let array = group().await?.array(stack.dimension()).await?.into_grid()?;
                let label = single_value(array).await;
                StackLabel::Value(label.map_err(|error| error.in_file(place.location()))?)
            }
            StackLabels::Given(_) => StackLabel::Given,
        })
    }

    /// Opens the arrays of one place of many, which has been counted as begun.
    pub(super) async fn file(
        &self,
        location: &str,
        chosen: &Chosen,
        pool: &Arc<OpenFiles>,
    ) -> Result<FileArrays> {
        let place = self.place(location)?.among(Arc::clone(pool));
        let table = self.formats.table(&chosen.format, &place, &chosen.options).await;
        self.opening().end();
        match table? {
            TableArrays::Grids(arrays) => Ok(arrays),
            TableArrays::Sparse(array) => {
                let name = array.name();
                let message = format!(
                    "\"{name}\" is a sparse array, and several of them cannot be one table: make a table of each, and combine them with UNION ALL"
                );
                Err(Error::usage(message).in_file(location))
            }
        }
    }
}

impl Chosen {
    /// Returns the new dimension along which files are stacked.
    pub(super) fn stack(&self) -> Result<Option<Stack>> {
        self.options.text("stack").map(Stack::parse).transpose()
    }

    /// Whether files that cannot be opened are left out.
    fn skips_unreadable(&self) -> bool {
        self.options.flag("skip_unreadable").unwrap_or_default()
    }
}

/// Fails if no file has a variable that the option `dataset` names, with commas between several.
fn refuse_unknown(dataset: &str, files: &[FileArrays]) -> Result<()> {
    let has =
        |name: &str| files.iter().flat_map(|file| &file.arrays).any(|array| array.name() == name);
    let mut names = dataset.split(',').map(str::trim);
    match names.find(|name| dataset.contains(',') && !has(dataset) && !has(name)) {
        Some(name) => Err(Error::usage(format!("none of the files has a dataset \"{name}\""))),
        None => Ok(()),
    }
}

/// Returns the text of an attribute of a file.
async fn attribute(group: &dyn ArrayGroup, key: &str) -> Result<String> {
    let all = group.attributes(None).await?;
    let found = all.iter().find(|it| it.of.is_none() && it.key == key);
    found.map(|it| without_zone(&it.value)).ok_or_else(|| {
        let names: Vec<&str> =
            all.iter().filter(|it| it.of.is_none()).map(|it| it.key.as_str()).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let message = format!(
            "no attribute '{key}' of the file, which option 'stack' names; there are {names}"
        );
        Error::usage(message).in_file(group.location())
    })
}

/// Returns a time in UTC without its zone, such as `2024-01-31T06:00:00` for `2024-01-31T08:00:00+02:00`; other texts as they
/// are.
fn without_zone(text: &str) -> String {
    match chrono::DateTime::parse_from_rfc3339(text.trim()) {
        Ok(time) => time.naive_utc().format("%Y-%m-%dT%H:%M:%S%.f").to_string(),
        Err(_) => text.trim().to_owned(),
    }
}

/// Returns the new dimension along which files are stacked. `names` has the files, and `kept` their numbers among `places`.
pub(super) fn dimension(
    stack: &Stack,
    names: &[String],
    labels: Vec<StackLabel>,
    kept: &[usize],
    places: usize,
) -> Result<Dimension> {
    let (mut texts, mut values) = (vec![], vec![]);
    for label in labels {
        match label {
            StackLabel::Text(text) => texts.push(text),
            StackLabel::Value(value) => values.push(value),
            StackLabel::Given => {}
        }
    }
    if let StackLabels::Given(labels) = stack.labels() {
        if labels.len() != places {
            let (count, name) = (labels.len(), stack.dimension());
            return Err(Error::usage(format!(
                "option 'stack' has {count} labels of \"{name}\", and the table has {places} files"
            )));
        }
        texts = kept.iter().map(|at| labels[*at].clone()).collect();
    }
    let labels = match values.is_empty() {
        true => Labels::from_text(&texts)?,
        false => Labels::from_array(one_array(stack, names, &values)?)?,
    };
    Ok(stack.along(labels))
}

/// Joins the values of scalar coordinates of files.
fn one_array(stack: &Stack, names: &[String], values: &[ArrayRef]) -> Result<ArrayRef> {
    let first = values.first().ok_or_else(|| Error::internal("a table of no file"))?;
    for (value, file) in values.iter().zip(names) {
        let (own, others, name) = (value.data_type(), first.data_type(), stack.dimension());
        let wrong = if value.is_null(0) {
            format!("\"{name}\" is NULL, which is no label")
        } else if own != others {
            format!("\"{name}\" is of type {own}, and of {others} in {}", names[0])
        } else {
            continue;
        };
        return Err(Error::usage(wrong).in_file(file));
    }
    let values: Vec<&dyn Array> = values.iter().map(AsRef::as_ref).collect();
    concat(&values).map_err(failed_to("join labels"))
}

/// Returns a pool for the files of a table of many.
pub(super) fn open_files(each: &[Chosen]) -> Arc<OpenFiles> {
    let is_mapped = each.iter().any(|it| it.options.io() == IoMode::Mmap);
    OpenFiles::new(is_mapped, MOST_OPEN)
}
