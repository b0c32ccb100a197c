//! The labels of one dimension: counted, in memory, or repeated.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt64Array};
use arrow::compute::{SortOptions, cast, sort_to_indices, take};
use arrow::datatypes::DataType;
use arrow::util::display::{ArrayFormatter, FormatOptions};

use super::arrow_error::failed_to;
use super::coordinates::label_values;
use super::counter::Counter;
use super::label_order::LabelOrder;
use super::remarks::Remarks;
use super::text_labels;
use crate::error::{Error, Result};
use crate::grid::AxisSelection;

/// The labels of a dimension, one per position along its axis.
///
/// Labels in memory are made by [`Labels::from_array`], which finds their order. Labels that count up by one are made from a
/// [`Counter`], and take no memory.
#[derive(Debug, Clone)]
pub struct Labels(Stored);

/// How labels are stored.
#[derive(Debug, Clone)]
enum Stored {
    /// Labels that count up by one.
    Counted(Counter),
    /// Labels in memory.
    Array {
        /// One label per position.
        values: ArrayRef,
        /// The sort order of `values`, as [`LabelOrder::try_new`] finds it.
        order: LabelOrder,
    },
    /// Labels that each repeat for a run of positions.
    Repeated {
        /// One label per run.
        values: ArrayRef,
        /// The index after each run; the last is the length of the axis.
        ends: Arc<[u64]>,
    },
}

impl From<Counter> for Labels {
    fn from(counter: Counter) -> Self {
        Self(Stored::Counted(counter))
    }
}

impl Labels {
    /// Returns the 0-based indices of an axis as labels.
    pub(crate) fn indices(len: u64) -> Self {
        Counter::indices(len).into()
    }

    /// Returns labels from text, in the narrowest type that holds them all: numbers, dates, times or
    /// text.
    ///
    /// # Errors
    /// The errors of [`Labels::from_array`].
    pub fn from_text(labels: &[String]) -> Result<Self> {
        Self::from_array(text_labels::infer(labels))
    }

    /// Returns labels from the `values` of a coordinate variable with these `attributes`, which may be CF times.
    pub fn from_values(
        values: ArrayRef,
        attributes: &BTreeMap<String, String>,
        remarks: &mut Remarks,
    ) -> Result<Self> {
        Self::from_array(label_values(values, attributes, &mut remarks.odd))
    }

    /// Returns the labels `values`, of any type that has an order: numbers, text, dates or times. They
    /// may be in any order, but queries are fastest if they ascend or descend strictly.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use arrow::array::TimestampSecondArray;
    /// use gridfusion_core::array::Labels;
    ///
    /// let hours = (0..24).map(|hour| 1_700_000_000 + hour * 3600);
    /// let labels = Labels::from_array(Arc::new(TimestampSecondArray::from_iter_values(hours)))?;
    /// assert_eq!(labels.len(), 24);
    /// # Ok::<(), gridfusion_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Unsupported` for labels of a nested type, such as lists.
    pub fn from_array(values: ArrayRef) -> Result<Self> {
        if values.data_type().is_nested() {
            let message = format!("labels of type {} are not supported", values.data_type());
            return Err(Error::unsupported(message));
        }
        let order = LabelOrder::try_new(&values)?;
        Ok(Self(Stored::Array { values, order }))
    }

    /// Returns labels that repeat: each of `values` for the number of positions in `lens`.
    pub(crate) fn repeated(values: ArrayRef, lens: impl Iterator<Item = u64>) -> Result<Self> {
        let ends: Arc<[u64]> = lens
            .scan(0_u64, |end, len| {
                *end = end.saturating_add(len);
                Some(*end)
            })
            .collect();
        match ends.len() == values.len() && values.null_count() == 0 {
            true => Ok(Self(Stored::Repeated { values, ends })),
            false => Err(Error::internal("repeated labels need one length each, and no NULL")),
        }
    }

    /// Returns the labels' type.
    pub fn data_type(&self) -> DataType {
        match &self.0 {
            Stored::Counted(counter) => counter.data_type(),
            Stored::Array { values, .. } | Stored::Repeated { values, .. } => {
                values.data_type().clone()
            }
        }
    }

    /// Returns the number of labels.
    pub fn len(&self) -> u64 {
        match &self.0 {
            Stored::Counted(counter) => counter.len(),
            Stored::Array { values, .. } => values.len() as u64,
            Stored::Repeated { ends, .. } => ends.last().copied().unwrap_or_default(),
        }
    }

    /// Whether the labels count up by one, so that they are computed and not stored.
    pub fn is_counted(&self) -> bool {
        matches!(self.0, Stored::Counted(_))
    }

    /// Returns all labels, if they are in memory one by one. `None` for labels that count up or repeat.
    pub fn in_memory(&self) -> Option<&ArrayRef> {
        match &self.0 {
            Stored::Array { values, .. } => Some(values),
            Stored::Counted(_) | Stored::Repeated { .. } => None,
        }
    }

    /// Whether there are no labels.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether both are counted or both in memory, with equal labels in the same order.
    pub(crate) fn same(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Stored::Counted(a), Stored::Counted(b)) => a == b,
            (Stored::Array { values: a, .. }, Stored::Array { values: b, .. }) => {
                Arc::ptr_eq(a, b) || a == b
            }
            _ => false,
        }
    }

    /// Whether both have equal labels in the same order, whether counted or in memory.
    ///
    /// # Errors
    /// `Unsupported` if counted labels cannot be listed.
    pub(crate) fn equals(&self, other: &Self) -> Result<bool> {
        if self.same(other) {
            return Ok(true);
        }
        let kinds_differ = matches!(
            (&self.0, &other.0),
            (Stored::Counted(_), Stored::Array { .. }) | (Stored::Array { .. }, Stored::Counted(_))
        );
        // Labels in memory are as few as memory allows.
        if !kinds_differ || self.len() != other.len() || self.data_type() != other.data_type() {
            return Ok(false);
        }
        Ok(self.slice(0..self.len())? == other.slice(0..other.len())?)
    }

    /// Appends `next` if both are counted and `next` continues the count; otherwise `None`.
    pub(crate) fn joined(&self, next: &Self) -> Option<Self> {
        match (&self.0, &next.0) {
            (Stored::Counted(a), Stored::Counted(b)) => a.joined(b).map(Self::from),
            _ => None,
        }
    }

    /// Returns `len` labels that count from the same first one. `None` for labels in memory, or if their type cannot hold the
    /// last one.
    pub fn counted(&self, len: u64) -> Option<Self> {
        match &self.0 {
            Stored::Counted(counter) => counter.part(0, len).ok().map(Self::from),
            _ => None,
        }
    }

    /// Returns the labels at the indices in `range` as labels of their own.
    ///
    /// # Errors
    /// `Internal` if `range` reaches beyond the labels.
    pub(crate) fn part(&self, range: Range<u64>) -> Result<Self> {
        match &self.0 {
            Stored::Counted(counter) => {
                counter.part(range.start, range.end - range.start).map(Self::from)
            }
            _ => Self::from_array(self.slice(range)?),
        }
    }

    /// Returns the first and the last label as text, for messages.
    pub(crate) fn ends(&self) -> String {
        let text = |element| match self.text(element) {
            Ok(Some(text)) => text,
            _ => "NULL".to_owned(),
        };
        match self.len() {
            0 => "none".to_owned(),
            1 => text(0),
            len => format!("{} .. {}", text(0), text(len - 1)),
        }
    }

    /// Whether any label is NULL.
    pub fn has_nulls(&self) -> bool {
        match &self.0 {
            Stored::Counted(_) | Stored::Repeated { .. } => false,
            Stored::Array { values, .. } => values.null_count() > 0,
        }
    }

    /// Returns the sort order of the labels.
    pub fn order(&self) -> LabelOrder {
        match &self.0 {
            Stored::Counted(_) => LabelOrder::Ascending,
            Stored::Array { order, .. } => *order,
            Stored::Repeated { .. } => LabelOrder::Unsorted,
        }
    }

    /// Returns the labels at the indices in `range`, which must lie in the axis.
    ///
    /// # Errors
    /// `Internal` if `range` reaches beyond labels in memory.
    pub fn slice(&self, range: Range<u64>) -> Result<ArrayRef> {
        match &self.0 {
            Stored::Counted(counter) => counter.slice(range),
            Stored::Array { values, .. } if range.end <= values.len() as u64 => {
                Ok(values.slice(range.start as usize, (range.end - range.start) as usize))
            }
            Stored::Array { .. } => {
                Err(Error::internal("a range of labels reaches beyond its axis"))
            }
            Stored::Repeated { .. } => self.at(range.map(Some)),
        }
    }

    /// Returns the label at index `element` as text; `None` if it is NULL. A time beyond the dates of
    /// chrono is shown as its count.
    ///
    /// # Errors
    /// `Internal` if the index lies beyond labels in memory.
    pub fn text(&self, element: u64) -> Result<Option<String>> {
        let label = self.slice(element..element.saturating_add(1))?;
        if label.null_count() > 0 {
            return Ok(None);
        }
        let options = FormatOptions::new().with_display_error(false);
        let shown =
            |label: &dyn Array| ArrayFormatter::try_new(label, &options)?.value(0).try_to_string();
        let text = shown(&label).or_else(|_| shown(&cast(&label, &DataType::Int64)?));
        text.map(Some).map_err(failed_to("show a label"))
    }

    /// Returns the selected labels in order. Index 0 of `selection` is index `start` of the axis. The
    /// selected indices must lie in the axis.
    ///
    /// # Errors
    /// `Internal` if a single range reaches beyond labels in memory.
    ///
    /// # Panics
    /// If one of several ranges reaches beyond labels in memory.
    pub fn select(&self, selection: &AxisSelection, start: u64) -> Result<ArrayRef> {
        if let [range] = selection.ranges() {
            return self.slice(start + range.start..start + range.end);
        }
        let elements = selection.ranges().iter().cloned().flatten();
        self.at(elements.map(|element| Some(start + element)))
    }

    /// Returns the indices of the least and the greatest selected label, in Arrow's sort order without
    /// NULL. `None` if no label is left. Index 0 of `selection` is index `start` of the axis.
    ///
    /// # Errors
    /// `Internal` if Arrow does not sort labels of this type.
    pub fn extremes(&self, selection: &AxisSelection, start: u64) -> Result<Option<(u64, u64)>> {
        let (Some(first), Some(last)) = (selection.ranges().first(), selection.ranges().last())
        else {
            return Ok(None);
        };
        let (first, last) = (start + first.start, start + last.end - 1);
        match self.order() {
            LabelOrder::Ascending => Ok(Some((first, last))),
            LabelOrder::Descending => Ok(Some((last, first))),
            LabelOrder::Unsorted => self.unsorted_extremes(selection, start),
        }
    }

    fn unsorted_extremes(
        &self,
        selection: &AxisSelection,
        start: u64,
    ) -> Result<Option<(u64, u64)>> {
        let positions = self.positions(selection, start);
        let labels = self.at(positions.iter().map(|at| Some(*at)))?;
        if labels.null_count() == labels.len() {
            return Ok(None);
        }
        let first_in = |descending| {
            let options = SortOptions { descending, nulls_first: false };
            let order = sort_to_indices(&labels, Some(options), Some(1))
                .map_err(failed_to("sort labels"))?;
            Ok::<_, Error>(positions[order.value(0) as usize])
        };
        Ok(Some((first_in(false)?, first_in(true)?)))
    }

    /// Returns selected indices that together have all selected labels: only the first index of each run
    /// of repeated labels, and every index otherwise. With runs that end at 3, 5 and 9, the selection 1..8
    /// gives 1, 3 and 5.
    fn positions(&self, selection: &AxisSelection, start: u64) -> Vec<u64> {
        let ranges = selection.ranges().iter().map(|range| start + range.start..start + range.end);
        let Stored::Repeated { ends, .. } = &self.0 else { return ranges.flatten().collect() };
        let of_range = |range: Range<u64>| {
            let runs = ends.partition_point(|end| *end <= range.start)..ends.len();
            let starts = ends[runs].iter().copied().take_while(move |end| *end < range.end);
            std::iter::once(range.start).chain(starts)
        };
        ranges.flat_map(of_range).collect()
    }

    /// Returns the label at each index; NULL for each `None`.
    ///
    /// # Errors
    /// `Unsupported` if Arrow cannot hold so many labels.
    ///
    /// # Panics
    /// If an index lies beyond the labels in memory.
    pub fn at(&self, elements: impl Iterator<Item = Option<u64>>) -> Result<ArrayRef> {
        let outside = failed_to("take labels");
        match &self.0 {
            Stored::Counted(counter) => counter.at(elements),
            Stored::Array { values, .. } => {
                let elements: UInt64Array = elements.collect();
                take(values, &elements, None).map_err(outside)
            }
            Stored::Repeated { values, ends } => {
                let run = |element: u64| ends.partition_point(|end| *end <= element) as u64;
                let runs: UInt64Array = elements.map(|element| element.map(run)).collect();
                take(values, &runs, None).map_err(outside)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::AsArray;
    use arrow::buffer::Buffer;
    use arrow::datatypes::{Float32Type, Int64Type};
    use arrow::util::display::array_value_to_string;

    use super::*;
    use crate::array::{NumberColumn, ReadOptions};
    use crate::format::ElementType;

    fn labels(
        element: ElementType,
        elements: Buffer,
        attributes: &[(&str, &str)],
    ) -> (Labels, Vec<String>) {
        let attributes: BTreeMap<_, _> = attributes
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        let mut remarks = Remarks::default();
        let column = NumberColumn::plain(element, None, false, &ReadOptions::default());
        let values = column.decode(elements, None, true).unwrap();
        let labels = Labels::from_values(values, &attributes, &mut remarks);
        (labels.unwrap(), remarks.into_texts())
    }

    fn shown(labels: &Labels) -> Vec<String> {
        let values = labels.in_memory().unwrap();
        (0..values.len()).map(|i| array_value_to_string(values, i).unwrap()).collect()
    }

    #[test]
    fn single_precision_keeps_its_bits() {
        let stored = vec![14.516_129_5_f32, 90.0, -84.193_55];
        let (labels, _) = labels(ElementType::F32, Buffer::from_vec(stored.clone()), &[]);
        assert_eq!(labels.data_type(), DataType::Float32);
        assert_eq!(shown(&labels), ["14.5161295", "90.0", "-84.19355"]);
        let values = labels.in_memory().unwrap();
        assert_eq!(values.as_primitive::<Float32Type>().values(), stored.as_slice());
    }

    #[test]
    fn times_become_timestamps_unless_one_does_not_fit() {
        let units = [("units", "days since 2024-01-01"), ("calendar", "standard")];
        let (days, _) = labels(ElementType::F64, Buffer::from_vec(vec![0.0_f64, 30.4375]), &units);
        assert_eq!(shown(&days), ["2024-01-01T00:00:00", "2024-01-31T10:30:00"]);
        assert_eq!(days.order(), LabelOrder::Ascending);
        let (far, warnings) = labels(ElementType::I64, Buffer::from_vec(vec![0, i64::MAX]), &units);
        assert_eq!((far.data_type(), warnings.len()), (DataType::Int64, 1));
    }

    #[test]
    fn labels_as_text() {
        let units = [("units", "days since 2024-01-01"), ("calendar", "standard")];
        // chrono's dates end in the year 262142; Arrow's timestamps reach further.
        let far = 365 * 270_000;
        let (days, _) = labels(ElementType::I64, Buffer::from_vec(vec![1, far]), &units);
        assert_eq!(days.text(0).unwrap().as_deref(), Some("2024-01-02T00:00:00"));
        let count: i64 = days.text(1).unwrap().unwrap().parse().unwrap();
        assert_eq!(count, (far + 19_723) * 86_400_000_000);
        assert!(days.text(2).is_err() && days.text(u64::MAX).is_err());
        let (numbers, _) = labels(ElementType::F64, Buffer::from_vec(vec![f64::NAN, 0.5]), &[]);
        assert_eq!(numbers.text(0).unwrap(), None);
        assert_eq!(Labels::indices(3).text(2).unwrap().as_deref(), Some("2"));
    }

    #[test]
    fn order_is_strict() {
        let order =
            |values: Vec<i32>| labels(ElementType::I32, Buffer::from_vec(values), &[]).0.order();
        assert_eq!(order(vec![1, 2, 3]), LabelOrder::Ascending);
        assert_eq!(order(vec![3, 2, 1]), LabelOrder::Descending);
        assert_eq!(order(vec![1, 1, 2]), LabelOrder::Unsorted);
        let nan = vec![1.0, f64::NAN];
        assert_eq!(
            labels(ElementType::F64, Buffer::from_vec(nan), &[]).0.order(),
            LabelOrder::Unsorted
        );
    }

    #[test]
    fn selections_pick_labels() {
        let text: Vec<String> = ["a", "b", "c", "d", "e"].map(String::from).to_vec();
        let labels = Labels::from_text(&text).unwrap();
        let picked = labels.select(&AxisSelection::from_mask(&[true, false, true]), 2).unwrap();
        assert_eq!(picked.as_string_view().iter().flatten().collect::<Vec<_>>(), ["c", "e"]);
        let index = Labels::indices(u64::MAX);
        let picked = index.select(&AxisSelection::from_range(9, 1..3), 1 << 40).unwrap();
        assert_eq!(picked.as_primitive::<Int64Type>().values(), &[(1 << 40) + 1, (1 << 40) + 2]);
    }
}
