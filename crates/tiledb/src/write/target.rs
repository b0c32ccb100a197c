//! [`TileDbTarget`]: a dense array that is there, to which cells are appended as a new fragment, or in which they change.
//!
//! ```text
//!   domain           ├───────────────────────────────────────┤
//!   current domain   ├─────────────┤                              or the box around all fragments
//!   new fragment                    ├─────────┤                  or within, if cells change
//! ```
//!
//! The domain never changes, so an array has room only if its domain is longer than its labels. A fragment beyond the current domain is
//! not visible. A new schema with a longer current domain makes it so.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use arrow::util::display::array_value_to_string;
use gridfusion_core::array::{GridArray, LabelOrder, failed_to};
use gridfusion_core::tile::Objects;
use gridfusion_core::write::{
    AppendTarget, AppendedLabels, ArrayWriter, ChangedCells, ExistingCells, NewArray, NewDimension,
    NewVariable, TargetDimension,
};
use gridfusion_core::{Error, Result};

use super::appender::{AppendedAxis, TileDbAppender};
use super::axis::{counts_of, greatest, has_missing};
use super::cell_type::CellType;
use super::checks::{check_columns, check_kind, check_schema, is_ascii};
use super::fragment::NewFragment;
use super::names::{fragment_name, now};
use super::old_cells::OldCells;
use super::tile::{CellEncoder, Nulls};
use super::tiles::NewTiles;
use crate::bytes::{OpenOptions, Pipeline, TileDbArray};
use crate::columns::column_name;
use crate::labels::{AxisLabels, MOST_LABELS};
use crate::reader::TileDbReader;
use crate::view::TileDbView;

/// A dense TileDB array of any writer, to which cells are appended.
///
/// New labels need room: a domain that is longer than its labels, as [`TileDbEncoding::can_grow`](super::TileDbEncoding::can_grow) makes
/// it. Their rows have all attributes of the array. A writer that changes cells reads those around them, for which it needs a Tokio runtime
/// of several threads.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use gridfusion_core::io::LocalFolder;
/// use gridfusion_core::tile::Objects;
/// use gridfusion_core::write::AppendTarget;
/// use gridfusion_tiledb::TileDbTarget;
///
/// # async fn open() -> gridfusion_core::Result<()> {
/// let folder = Arc::new(LocalFolder::open(std::path::Path::new("air.tdb"), false)?);
/// let target = TileDbTarget::open(Arc::new(Objects::many(folder)), &["time", "t2m"]).await?;
/// assert_eq!(target.dimensions()[0].name, "time");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TileDbTarget {
    array: Arc<TileDbArray>,
    objects: Arc<Objects>,
    /// The array as queries show it, and with NaN as values.
    grids: [Arc<GridArray>; 2],
    dimensions: Vec<TargetDimension>,
    /// The labels of dimensions that count from 0.
    labels: Vec<Option<AxisLabels>>,
    /// The coordinate of the first index of each dimension.
    low: Vec<i128>,
    /// The type of the column of each attribute.
    types: Vec<DataType>,
}

impl TileDbTarget {
    /// Opens the array of these objects. `columns` are those of the rows.
    ///
    /// # Errors
    /// `Usage` if there is no array, or its columns are not those of the rows. `Unsupported` for arrays that are not written: sparse and
    /// encrypted ones, and those with types or filters that only the reader has.
    pub async fn open(objects: Arc<Objects>, columns: &[&str]) -> Result<Self> {
        let reader =
            TileDbReader::open_objects(Arc::clone(&objects), OpenOptions::default()).await?;
        Self::try_new(&reader, columns).map_err(|error| objects.named(error))
    }

    fn try_new(reader: &TileDbReader, columns: &[&str]) -> Result<Self> {
        let array = Arc::clone(reader.tiledb());
        let schema = array.schema();
        check_schema(schema)?;
        let grid = reader.grid(&TileDbView::default())?;
        let read = TileDbView::default().read.with_nan_as_null(false);
        let with_nan = reader.grid(&TileDbView { read, ..TileDbView::default() })?;
        let window = array.window(false)?;
        if let Some(len) = window.grid.shape().iter().find(|len| **len > MOST_LABELS) {
            return Err(Error::unsupported(format!(
                "an append to an array with {len} labels of a dimension, and at most {MOST_LABELS}"
            )));
        }
        let table = grid.schema();
        let names = schema.attributes.iter().map(column_name);
        let types = names.clone().map(|name| {
            let field = table.field_with_name(name);
            field.map(|it| it.data_type().clone()).map_err(|_| Error::internal("a lost column"))
        });
        let types = types.collect::<Result<Vec<_>>>()?;
        check_columns(columns, grid.dims().iter().map(|it| it.name()), names)?;
        let mut dimensions = vec![];
        let mut labels = reader.labels().to_vec();
        for (axis, dimension) in grid.dims().iter().enumerate() {
            // Labels that the table does not show are none.
            labels[axis] =
                labels[axis].take().filter(|_| dimension.name() != schema.dimensions[axis].name);
            let shown = dimension.labels();
            dimensions.push(TargetDimension {
                name: dimension.name().to_owned(),
                labels: shown.slice(0..shown.len())?,
                descends: shown.order() == LabelOrder::Descending,
                is_sorted: shown.order() != LabelOrder::Unsorted,
            });
        }
        let labels = labels.into_iter().map(Option::transpose).collect::<Result<Vec<_>>>()?;
        for label in &schema.labels {
            let shown = labels.get(label.dimension).and_then(Option::as_ref);
            if shown.is_none_or(|shown| shown.name != label.name) {
                return Err(Error::unsupported(format!(
                    "an append to an array with the dimension label \"{}\", which is no column",
                    label.name
                )));
            }
        }
        for ((dimension, low), shown) in schema.dimensions.iter().zip(&window.low).zip(&dimensions)
        {
            let tiles = dimension.tile_axis()?;
            if (low - tiles.low) % i128::from(tiles.extent) != 0 {
                return Err(Error::unsupported(format!(
                    "an append to an array whose cells along \"{}\" begin within a tile",
                    shown.name
                )));
            }
        }
        let (low, objects) = (window.low, Arc::clone(reader.objects()));
        let grids = [grid, with_nan].map(Arc::new);
        Ok(Self { dimensions, labels, low, types, array, objects, grids })
    }

    /// Returns labels in the type of the target's.
    fn labels_like(&self, axis: usize, new: &NewDimension) -> Result<ArrayRef> {
        let there = &self.dimensions[axis].labels;
        check_kind(&new.name, new.labels.data_type(), there.data_type())?;
        let failed = failed_to("compare labels");
        let labels = cast(&new.labels, there.data_type()).map_err(&failed)?;
        let back = cast(&labels, new.labels.data_type()).map_err(failed)?;
        let differs = |at: &usize| back.slice(*at, 1) != new.labels.slice(*at, 1);
        match (0..back.len()).find(differs) {
            None => Ok(labels),
            Some(at) => {
                let label = array_value_to_string(&new.labels, at).unwrap_or_default();
                Err(Error::usage(format!(
                    "the label {}={label} is no {}, of which type the array's labels are",
                    new.name,
                    there.data_type()
                )))
            }
        }
    }

    /// Returns the last coordinate of new labels, which have a place in the domain.
    fn last_coordinate(&self, axis: usize, labels: &ArrayRef) -> Result<i128> {
        let dimension = &self.array.schema().dimensions[axis];
        let name = &self.dimensions[axis].name;
        let last = self.low[axis] + labels.len() as i128 - 1;
        let tiles = dimension.tile_axis()?;
        if last > tiles.high {
            let room = tiles.high - self.low[axis] + 1;
            return Err(Error::usage(format!(
                "{} labels \"{name}\", and the domain of the array has {room}; a TileDB domain never changes, so write the array anew with room",
                labels.len()
            )));
        }
        if last >= greatest(dimension.datatype) {
            return Err(Error::unsupported(format!(
                "{} labels \"{name}\" would end with the greatest coordinate of {}, and TileDB cannot read such an array",
                labels.len(),
                dimension.datatype
            )));
        }
        match &self.labels[axis] {
            _ if labels.len() as u64 > MOST_LABELS => Err(Error::unsupported(format!(
                "{} labels \"{name}\", and at most {MOST_LABELS} are appended to",
                labels.len()
            ))),
            Some(_) if has_missing(&CellType::new(labels.data_type())?, labels)? => {
                Err(Error::usage(format!("a label of \"{name}\" is no number")))
            }
            Some(_) if !is_ascii(labels)? => {
                Err(Error::usage(format!("a label of \"{name}\" is not ASCII, as TileDB's are")))
            }
            Some(_) => Ok(last),
            None => {
                let counts = counts_of(labels)?;
                let is_counted = counts.contains(&(dimension.datatype, self.low[axis]));
                match is_counted {
                    true => Ok(last),
                    false => Err(Error::usage(format!(
                        "the labels \"{name}\" of the array count up by one, and the new ones do not go on so; leave no gap"
                    ))),
                }
            }
        }
    }

    /// Returns the numbers of the attributes that variables are, and of those without a variable. `adds` tells that there are new labels.
    fn attributes(
        &self,
        variables: &[NewVariable],
        adds: bool,
    ) -> Result<(Vec<usize>, Vec<usize>)> {
        let attributes = &self.array.schema().attributes;
        let position = |variable: &NewVariable| {
            let found = attributes.iter().position(|it| column_name(it) == variable.name);
            let number = found.ok_or_else(|| Error::internal("a variable of another name"))?;
            check_kind(&variable.name, &variable.data_type, &self.types[number])?;
            Ok(number)
        };
        let numbers = variables.iter().map(position).collect::<Result<Vec<usize>>>()?;
        let left_out = (0..attributes.len()).filter(|number| !numbers.contains(number));
        let left_out: Vec<usize> = left_out.collect();
        match left_out.first().filter(|_| adds) {
            Some(number) => Err(Error::usage(format!(
                "the array has the column \"{}\", and the rows have none; new cells have all attributes",
                column_name(&attributes[*number])
            ))),
            None => Ok((numbers, left_out)),
        }
    }

    /// Returns the time of a new fragment and a new schema. A schema applies if it is newer than this one, and changed cells are those of the
    /// last fragment.
    fn next_time(&self, existing: ExistingCells) -> Result<u64> {
        /// Clocks of several machines differ by so many milliseconds.
        const SKEW: u64 = 1000;
        let fragment = self.array.fragments().iter().max_by_key(|it| it.t2);
        let of_fragment = fragment.filter(|_| existing != ExistingCells::Refuse);
        let of_fragment = of_fragment.map_or(0, |it| it.t2);
        let newest = of_fragment.max(self.array.schema_time());
        match newest > now().saturating_add(SKEW) {
            true => Err(Error::usage(format!(
                "a fragment or a schema of the array is dated {newest} milliseconds after 1970, in the future, and would hide what is written now"
            ))),
            false => Ok(now().max(newest + 1)),
        }
    }

    /// Returns the encoder of an attribute.
    fn encoder(&self, number: usize) -> Result<CellEncoder> {
        let schema = self.array.schema();
        let attribute = &schema.attributes[number];
        let cell = CellType::of_attribute(&self.types[number], attribute.datatype)
            .map_err(|error| error.about(&format!("\"{}\"", column_name(attribute))))?;
        let padding = cell.filled(&attribute.fill)?;
        let is_default = attribute.fill
            == cell.attribute("", &cell.default_fill(), Pipeline { filters: vec![] })?.fill;
        let (nulls, padding) = match (attribute.nullable, cell.natural_fill()) {
            (true, _) => (Nulls::Validity, padding),
            (false, Some(fill)) => (Nulls::Value(ArrayRef::clone(&fill)), fill),
            (false, None) if is_default => (Nulls::Refused, padding),
            (false, None) => (Nulls::Fill(ArrayRef::clone(&padding)), padding),
        };
        let of_bytes = &schema.offsets_pipeline;
        let mut encoder = CellEncoder::new(cell, attribute, nulls, padding, of_bytes);
        if let Some(pipeline) = &schema.validity_pipeline {
            encoder = encoder.with_validity(pipeline);
        }
        Ok(encoder)
    }

    /// Returns the axis that becomes longer, with its labels. `labels` are those of all dimensions.
    fn grown(
        &self,
        longer: Option<&(usize, Range<u64>)>,
        labels: &[ArrayRef],
    ) -> Result<Option<AppendedAxis>> {
        let Some((axis, added)) = longer else { return Ok(None) };
        Ok(Some(AppendedAxis {
            axis: *axis,
            last: self.last_coordinate(*axis, &labels[*axis])?,
            labels: self.labels[*axis].clone(),
            all: ArrayRef::clone(&labels[*axis]),
            added: added.clone(),
        }))
    }

    /// Returns the cells of a tile along each dimension.
    fn extents(&self) -> Result<Vec<u64>> {
        self.array.schema().dimensions.iter().map(|it| Ok(it.tile_axis()?.extent)).collect()
    }

    /// Fails if a new fragment would show some cells before others. It is visible before a schema with a longer current domain is.
    fn check_region(
        &self,
        longer: Option<&(usize, Range<u64>)>,
        region: &[Range<u64>],
        existing: ExistingCells,
    ) -> Result<()> {
        let changes = |(axis, added): &(usize, Range<u64>)| region[*axis].start < added.start;
        let has_domain = self.array.schema().current_domain.is_some();
        match has_domain && existing != ExistingCells::Same && longer.is_some_and(changes) {
            true => Err(Error::usage(
                "some rows have labels that are there, and others new ones: a TileDB array would show the former first; write them in two statements",
            )),
            false => Ok(()),
        }
    }

    /// Fails for rows of several tiles in no order: rows come in the order of labels, and tiles in that of their numbers.
    fn check_order(&self, region: &Range<u64>, places: &[u64], extent: u64) -> Result<()> {
        let is_one_tile = region.start / extent == region.end.saturating_sub(1) / extent;
        match is_one_tile || places.is_sorted() {
            true => Ok(()),
            false => Err(Error::unsupported(format!(
                "rows for several tiles along \"{}\", whose labels are in no order; write the array anew",
                self.dimensions[0].name
            ))),
        }
    }

    /// Returns an attribute as a variable that rows have no column for.
    fn variable(&self, number: usize) -> NewVariable {
        NewVariable {
            name: column_name(&self.array.schema().attributes[number]).to_owned(),
            data_type: self.types[number].clone(),
            fill: None,
            attributes: Default::default(),
        }
    }

    /// Returns the tiles of a new fragment, with fields of the attributes of these numbers.
    fn tiles(
        &self,
        array: NewArray,
        numbers: &[usize],
        extents: Vec<u64>,
        time: u64,
    ) -> Result<NewTiles> {
        /// The most bytes of tiles that came before others.
        const MOST_HELD: u64 = 1 << 30;
        let fragment = NewFragment::new(String::new(), fragment_name(time));
        let mut tiles = NewTiles::try_new(array, fragment, extents, MOST_HELD)?;
        for number in numbers {
            let keeps_validity = self.array.schema().attributes[*number].nullable;
            tiles.add_field(*number, self.encoder(*number)?, keeps_validity)?;
        }
        Ok(tiles)
    }
}

impl AppendTarget for TileDbTarget {
    fn dimensions(&self) -> &[TargetDimension] {
        &self.dimensions
    }

    fn versions(&self) -> Vec<String> {
        self.grids[0].versions().into_iter().map(|it| it.version).collect()
    }

    fn writer(
        self: Box<Self>,
        dimensions: Vec<NewDimension>,
        variables: Vec<NewVariable>,
        existing: ExistingCells,
    ) -> Result<(Box<dyn ArrayWriter>, Vec<Vec<u64>>)> {
        let new = dimensions.iter().enumerate().map(|(axis, new)| self.labels_like(axis, new));
        let new = new.collect::<Result<Vec<_>>>()?;
        let there = self.dimensions.iter();
        let there: Vec<_> =
            there.map(|it| (it.name.as_str(), ArrayRef::clone(&it.labels))).collect();
        let appended = AppendedLabels::try_new(&there, &new, existing)?;
        let (longer, region) = (appended.longer(), appended.region());
        let AppendedLabels { labels, places, .. } = appended;
        let grown = self.grown(longer.as_ref(), &labels)?;
        let extents = self.extents()?;
        self.check_region(longer.as_ref(), &region, existing)?;
        self.check_order(&region[0], &places[0], extents[0])?;
        let dimensions = dimensions.into_iter().zip(labels);
        let dimensions: Vec<NewDimension> =
            dimensions.map(|(new, labels)| NewDimension { labels, ..new }).collect();
        let array_of = |variables: Vec<NewVariable>| {
            NewArray::try_new(dimensions.clone(), variables, &extents)?.with_region(region.clone())
        };
        let (mut numbers, left_out) = self.attributes(&variables, longer.is_some())?;
        let rows = array_of(variables.clone())?;
        // A fragment has all attributes.
        let others = left_out.iter().map(|number| self.variable(*number));
        let all = array_of(variables.into_iter().chain(others).collect())?;
        numbers.extend(left_out);
        let time = self.next_time(existing)?;
        let mut tiles = self.tiles(all, &numbers, extents, time)?;
        if existing != ExistingCells::Refuse {
            let changed = ChangedCells::new(existing, longer, &places, rows.grid().shape());
            let (is_in_order, columns) = (places[0].is_sorted(), rows.variables().len());
            tiles = tiles.over(OldCells::new(self.grids, changed, columns, is_in_order));
        }
        let of_array = (self.array, self.objects);
        let appender = TileDbAppender::new(of_array, rows, tiles, self.low, grown, time);
        Ok((Box::new(appender), places))
    }
}
