//! [`ZarrTarget`]: a store that rows are appended to.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::compute::cast;
use arrow::util::display::array_value_to_string;
use bytes::Bytes;
use gridfusion_core::array::failed_to;
use gridfusion_core::format::Write;
use gridfusion_core::tile::Objects;
use gridfusion_core::write::{
    AppendTarget, AppendedLabels, ArrayWriter, ChangedCells, ExistingCells, NewArray, NewDimension,
    NewVariable, TargetDimension,
};
use gridfusion_core::{Error, Result};
use serde_json::Value;

use super::appender::ZarrAppender;
use super::finer_times::FinerTimes;
use super::metadata::{axis_of, is_apart, is_side, names_of};
use super::sides::SideArray;
use super::staged::StagedObjects;
use super::variable::{TargetVariable, plain};
use crate::journal::{JOURNAL, Journal};

/// The most objects that a program that was stopped may have left.
pub(super) const MOST_LEFT: usize = 1 << 20;

/// A Zarr store of version 3, to which rows are appended along one dimension of some of its variables.
///
/// ```
/// use std::sync::Arc;
///
/// use arrow::array::{ArrayRef, Float32Array, Int32Array};
/// use arrow::datatypes::DataType;
/// use futures::{TryStreamExt, stream};
/// use gridfusion_core::io::LocalFolder;
/// use gridfusion_core::tile::{Objects, WriteSession, write_all};
/// use gridfusion_core::write::{
///     AppendTarget, ExistingCells, NewArray, NewChunk, NewDimension, NewVariable,
/// };
/// use gridfusion_zarr::{ZarrEncoding, ZarrTarget, ZarrWriter, open};
///
/// # #[tokio::main]
/// # async fn main() -> gridfusion_core::Result<()> {
/// let dimension = |labels: Vec<i32>| NewDimension {
///     name: "x".into(),
///     labels: Arc::new(Int32Array::from(labels)),
///     attributes: Default::default(),
/// };
/// let v = NewVariable {
///     name: "v".into(),
///     data_type: DataType::Float32,
///     fill: None,
///     attributes: Default::default(),
/// };
/// let chunk = |at, cells: Vec<f32>| NewChunk {
///     variable: 0,
///     coordinates: vec![at],
///     cells: Arc::new(Float32Array::from(cells)) as ArrayRef,
///     given: None,
/// };
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("x.zarr");
/// # std::fs::create_dir(&path).unwrap();
/// let folder = Arc::new(LocalFolder::open(&path, false)?);
/// let array = NewArray::try_new(vec![dimension(vec![10, 20, 30])], vec![v.clone()], &[2])?;
/// let writer = ZarrWriter::try_new(array, ZarrEncoding::default())?;
/// let chunks = [Ok(chunk(0, vec![0.5, 1.0])), Ok(chunk(1, vec![1.5]))];
/// write_all(writer, stream::iter(chunks), folder.clone()).await?;
///
/// let objects = Arc::new(Objects::many_rewritten(folder.clone()));
/// let target = ZarrTarget::open(objects, &["x", "v"]).await?;
/// let refuse = ExistingCells::Refuse;
/// let (mut writer, places) = Box::new(target).writer(vec![dimension(vec![40])], vec![v], refuse)?;
/// assert_eq!(places, [[3]]);
/// let mut session = WriteSession::new(folder);
/// session.write(writer.write(chunk(1, vec![2.0]))?).await?; // the chunk of 30 and 40
/// let (rest, publish) = writer.finish()?;
/// session.write(rest).await?;
/// session.publish(publish).await?;
/// session.write(writer.afterwards()).await?;
///
/// let reader = open(path.to_str().unwrap()).await?.array("v").await?;
/// let batches: Vec<_> = reader.batches().try_collect().await?;
/// assert_eq!(batches.iter().map(|it| it.num_rows()).sum::<usize>(), 4);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ZarrTarget {
    /// The root's document, if it has the metadata of all arrays.
    pub(super) root: Option<Bytes>,
    /// The metadata of each array, by path.
    pub(super) metadata: BTreeMap<String, Value>,
    pub(super) dimensions: Vec<TargetDimension>,
    /// The variables with the labels of each dimension.
    pub(super) labels: Vec<TargetVariable>,
    pub(super) variables: Vec<TargetVariable>,
    /// The columns that are arrays over a part of the dimensions.
    pub(super) sides: Vec<SideArray>,
    /// The arrays without a column that become longer with NULL, if they have the dimension. Errors are told only then.
    pub(super) filled: Vec<(String, Result<TargetVariable>)>,
    /// The append of a program that was stopped.
    pub(super) left: Option<Journal>,
    /// The objects that it has staged, and those of programs before.
    pub(super) staged: StagedObjects,
    /// Whether labels may get other units of time.
    pub(super) refines_times: bool,
    /// The documents of other arrays over the dimension that it made longer.
    pub(super) others: Vec<(String, Bytes)>,
}

impl ZarrTarget {
    /// Opens a store whose variables and dimensions have these names. A writer of rows reads the objects at the end of the array, for which it
    /// needs a Tokio runtime of several threads.
    ///
    /// # Errors
    /// `Usage` if the store does not have them, or its metadata is not all of one age. `Unsupported` for types and codecs that cannot be
    /// written.
    pub async fn open(objects: Arc<Objects>, columns: &[&str]) -> Result<Self> {
        Self::opened(objects, columns, false).await
    }

    /// Opens a store whose other arrays become longer, too: they get NULL. Otherwise as [`ZarrTarget::open`].
    ///
    /// # Errors
    /// As [`ZarrTarget::open`].
    pub async fn open_filling_others(objects: Arc<Objects>, columns: &[&str]) -> Result<Self> {
        Self::opened(objects, columns, true).await
    }

    /// Returns the arrays with labels, of variables, those beside, and those that are filled.
    pub(super) fn arrays(&self) -> impl Iterator<Item = &TargetVariable> {
        let sides = self.sides.iter().map(|side| &side.variable);
        let filled = self.filled.iter().filter_map(|(_, opened)| opened.as_ref().ok());
        self.labels.iter().chain(&self.variables).chain(sides).chain(filled)
    }

    /// Returns the arrays without a column that get NULL along a dimension that becomes longer.
    ///
    /// # Errors
    /// If there are such arrays, and they do not get NULL, or cannot.
    fn take_filled(&mut self, longer: usize) -> Result<Vec<TargetVariable>> {
        let opened = std::mem::take(&mut self.filled);
        let dimension = self.dimensions[longer].name.as_str();
        let mut filled = vec![];
        for (name, opened) in opened {
            let names = names_of(&self.metadata[&name]).unwrap_or_default();
            let why = match names.iter().filter(|it| *it == dimension).count() {
                0 => continue,
                _ if is_apart(&self.metadata, &name, dimension) => continue,
                1 if name.contains('/') => "of a group has a dimension of this name",
                1 => {
                    filled.push(opened?);
                    continue;
                }
                _ => "has this dimension twice",
            };
            return Err(Error::unsupported(format!(
                "an append along {dimension}, because \"{name}\" {why}"
            )));
        }
        match filled.is_empty() {
            true => self.check_others(dimension).map(|()| filled),
            false => Ok(filled),
        }
    }

    /// Fails if the store has other arrays over a dimension that becomes longer.
    fn check_others(&self, dimension: &str) -> Result<()> {
        let has_it = |(name, metadata): &(&String, &Value)| {
            axis_of(metadata, dimension).is_some()
                && !self.arrays().any(|it| it.name() == *name)
                && !is_apart(&self.metadata, name, dimension)
        };
        let Some((other, metadata)) = self.metadata.iter().find(has_it) else { return Ok(()) };
        let names = names_of(metadata).unwrap_or_default();
        let rows: Vec<String> = self.dimensions.iter().map(|it| it.name.clone()).collect();
        let missing = format!(
            "the store has \"{other}\" over {dimension}, too, and the rows have no column for it"
        );
        match names.last() {
            _ if !is_side(&names, &rows) => Err(Error::unsupported(format!(
                "an append along {dimension}, because \"{other}\" has the dimensions {}, and rows have {}; the option 'others' may be 'null'",
                names.join(", "),
                rows.join(", ")
            ))),
            Some(last) if !rows.contains(last) => Err(Error::usage(format!(
                "{missing}; select a list of {} values, one for each {last}, as in make_array(…) AS \"{other}\"",
                metadata["shape"][names.len() - 1]
            ))),
            _ => Err(Error::usage(format!("{missing}; select it as well"))),
        }
    }

    /// Returns labels in the type of the target's.
    fn labels_like(&self, axis: usize, new: &NewDimension) -> Result<ArrayRef> {
        let (variable, there) = (&self.labels[axis], &self.dimensions[axis].labels);
        let units = new.attributes.get("units");
        variable.check_column(new.labels.data_type(), units)?;
        check_calendar(variable, new)?;
        let asked = plain(&new.labels)?;
        let labels = cast(&asked, there.data_type()).map_err(failed_to("compare labels"))?;
        let back = cast(&labels, asked.data_type()).map_err(failed_to("compare labels"))?;
        if back.as_ref() != asked.as_ref() {
            let differs = |at: &usize| back.slice(*at, 1) != asked.slice(*at, 1);
            let at = (0..back.len()).find(differs).unwrap_or_default();
            let label = array_value_to_string(&asked, at).unwrap_or_default();
            let error = Error::usage(format!(
                "the label {}={label} is no {}, of which type the array's labels are",
                new.name,
                there.data_type()
            ));
            return Err(self.with_hint(error, axis, &new.labels));
        }
        Ok(labels)
    }
}

/// Fails for numbers that count time otherwise than the target's: numbers alone do not tell.
fn check_calendar(variable: &TargetVariable, new: &NewDimension) -> Result<()> {
    let counts = variable.attribute("units").filter(|units| units.contains(" since "));
    let Some(units) = counts.filter(|_| new.labels.data_type().is_numeric()) else { return Ok(()) };
    for (name, own) in [("units", Some(units)), ("calendar", variable.attribute("calendar"))] {
        let given = new.attributes.get(name).and_then(Value::as_str);
        if given != own.as_deref() {
            return Err(Error::usage(format!(
                "the labels \"{}\" are numbers with the {name} {given:?}, and the array's count time with {own:?}",
                new.name
            )));
        }
    }
    Ok(())
}

impl AppendTarget for ZarrTarget {
    fn dimensions(&self) -> &[TargetDimension] {
        &self.dimensions
    }

    fn repair(&mut self) -> Result<(Vec<Write>, bool)> {
        self.repaired()
    }

    fn refine_times(&mut self) {
        self.refines_times = true;
    }

    fn writer(
        mut self: Box<Self>,
        dimensions: Vec<NewDimension>,
        variables: Vec<NewVariable>,
        existing: ExistingCells,
    ) -> Result<(Box<dyn ArrayWriter>, Vec<Vec<u64>>)> {
        if self.left.is_some() {
            let message =
                "a program was stopped while it wrote; apply the writes of `repair` first";
            return Err(Error::usage(message).in_file(JOURNAL));
        }
        let mut finer: Vec<Option<FinerTimes>> = vec![];
        let (mut there, mut new) = (vec![], vec![]);
        for (axis, (own, asked)) in self.dimensions.iter().zip(&dimensions).enumerate() {
            let of_axis = match self.refines_times {
                true => self.finer(axis, &asked.labels)?,
                false => None,
            };
            new.push(match &of_axis {
                Some(finer) => finer.shown(&asked.labels)?,
                None => self.labels_like(axis, asked)?,
            });
            let labels = match &of_axis {
                Some(finer) => finer.shown(&own.labels)?,
                None => ArrayRef::clone(&own.labels),
            };
            there.push((own.name.as_str(), labels));
            finer.push(of_axis);
        }
        let appended = AppendedLabels::try_new(&there, &new, existing)?;
        let (longer, region) = (appended.longer(), appended.region());
        let finer = longer.as_ref().and_then(|(axis, _)| finer[*axis].take());
        if let Some(finer) = &finer {
            self.check_units(finer.axis)?;
        }
        let AppendedLabels { labels, places, .. } = appended;
        let filled = match &longer {
            Some((axis, _)) => self.take_filled(*axis)?,
            None => vec![],
        };
        for new in &variables {
            if let Some(side) = self.sides.iter().find(|side| side.name() == new.name) {
                side.check_column(new)?;
                continue;
            }
            let variable = self.variables.iter().find(|it| it.name() == new.name);
            let variable = variable.ok_or_else(|| Error::internal("a variable of another name"))?;
            variable.check_column(&new.data_type, new.attributes.get("units"))?;
        }
        let dimensions = dimensions.into_iter().zip(labels);
        let dimensions = dimensions.map(|(new, labels)| NewDimension { labels, ..new }).collect();
        let shapes = self.variables.iter().map(TargetVariable::object_shape);
        let shape: Vec<u64> = region.iter().map(|range| range.end).collect();
        let mut chunk_shape = common_shape(shapes, &shape);
        // Rows come in the order of their labels. If that is not the order of indices, all rows of chunks are one.
        if places[0].windows(2).any(|pair| pair[0] > pair[1]) {
            chunk_shape[0] = shape[0].max(1);
        }
        let array = NewArray::try_new(dimensions, variables, &chunk_shape)?;
        let array = array.with_region(region)?;
        let changed = ChangedCells::new(existing, longer, &places, array.grid().shape());
        let writer = ZarrAppender::try_new(*self, array, changed, filled, finer)?;
        Ok((Box::new(writer), places))
    }
}

/// Returns the shape of boxes that have whole objects of all variables.
fn common_shape<'a>(shapes: impl Iterator<Item = &'a [u64]>, array: &[u64]) -> Vec<u64> {
    let mut common = vec![1_u64; array.len()];
    for shape in shapes {
        for (common, len) in common.iter_mut().zip(shape) {
            let (mut a, mut b) = (*common, *len);
            while b > 0 {
                (a, b) = (b, a % b);
            }
            *common = (*common / a).saturating_mul(*len);
        }
    }
    // A box that is longer than the array has all objects along the axis.
    common.iter().zip(array).map(|(len, array)| (*len).min((*array).max(1))).collect()
}
