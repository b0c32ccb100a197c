//! [`AppendedLabels`]: where the cells of new rows go in an array that is there.
//!
//! ```text
//!   target   time  1 2 3        new rows  time  4 5        array   time  1 2 3 4 5
//!            lat   50 60 70               lat   70 50              lat   50 60 70     rows at 2 and 0
//! ```

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use arrow::array::{Array, ArrayRef, UInt64Array};
use arrow::compute::{concat, take};
use arrow::row::{RowConverter, Rows, SortField};
use arrow::util::display::array_value_to_string;

use super::ExistingCells;
use crate::array::{failed_to, without_negative_zeros};
use crate::error::{Error, Result};

/// The labels of an array after rows are appended along one of its dimensions, and the places of the new labels.
#[derive(Debug)]
pub struct AppendedLabels {
    /// The dimension that becomes longer; `None` if all labels are there.
    pub axis: Option<usize>,
    /// All labels of each dimension.
    pub labels: Vec<ArrayRef>,
    /// The indices of the rows' labels of each dimension, in the order in which they were given.
    pub places: Vec<Vec<u64>>,
    /// The indices along the dimension that becomes longer, of labels that were not there.
    pub added: Range<u64>,
}

impl AppendedLabels {
    /// Finds the places of `new` labels in an array with dimensions of these names and labels. The new labels of a dimension are distinct,
    /// of the type of the target's, and in the order in which they are appended. If rows may have cells that exist, labels of all dimensions
    /// may be there.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use arrow::array::{ArrayRef, Int32Array};
    /// use gridfusion_core::write::{AppendedLabels, ExistingCells};
    ///
    /// let of = |labels: &[i32]| Arc::new(Int32Array::from(labels.to_vec())) as ArrayRef;
    /// let target = [("time", of(&[1, 2, 3])), ("lat", of(&[50, 60, 70]))];
    /// let refuse = ExistingCells::Refuse;
    /// let appended = AppendedLabels::try_new(&target, &[of(&[4, 5]), of(&[50, 70])], refuse)?;
    /// assert_eq!((appended.axis, appended.added), (Some(0), 3..5));
    /// assert_eq!(appended.places, [[3, 4], [0, 2]]);
    ///
    /// let new = [of(&[3, 4]), of(&[50])];
    /// let error = AppendedLabels::try_new(&target, &new, refuse).unwrap_err();
    /// assert!(error.to_string().contains("time=3 is there already"));
    /// let merged = AppendedLabels::try_new(&target, &new, ExistingCells::Overwrite)?;
    /// assert_eq!((merged.places[0].as_slice(), merged.added), (&[2, 3][..], 3..4));
    /// # Ok::<(), gridfusion_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Usage` if several dimensions have new labels, or these would break the order. Also if no dimension has new labels, or some of that
    /// dimension's labels are there already, and the rows may not have cells that exist.
    pub fn try_new(
        target: &[(&str, ArrayRef)],
        new: &[ArrayRef],
        existing: ExistingCells,
    ) -> Result<Self> {
        let axes =
            target.iter().zip(new).map(|((name, there), new)| Axis::try_new(name, there, new));
        let axes = axes.collect::<Result<Vec<_>>>()?;
        let axis = longer(&axes, existing)?;
        let places = axes.iter().map(Axis::places_after).collect();
        let mut labels: Vec<ArrayRef> =
            target.iter().map(|(_, labels)| ArrayRef::clone(labels)).collect();
        let Some(axis) = axis else { return Ok(Self { axis, labels, places, added: 0..0 }) };
        let failed = failed_to("put labels together");
        let added = axes[axis].added(existing)?;
        let added = take(&new[axis], &added, None).map_err(&failed)?;
        let first = labels[axis].len() as u64;
        labels[axis] = concat(&[labels[axis].as_ref(), added.as_ref()]).map_err(failed)?;
        let added = first..labels[axis].len() as u64;
        Ok(Self { axis: Some(axis), labels, places, added })
    }

    /// Returns the dimension that becomes longer, and its new indices.
    pub fn longer(&self) -> Option<(usize, Range<u64>)> {
        self.axis.map(|axis| (axis, self.added.clone()))
    }

    /// Returns the indices that rows have, as ranges that include all others in between. New labels have all cells of the other dimensions.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use arrow::array::{ArrayRef, Int32Array};
    /// use gridfusion_core::write::{AppendedLabels, ExistingCells};
    ///
    /// let of = |labels: &[i32]| Arc::new(Int32Array::from(labels.to_vec())) as ArrayRef;
    /// let target = [("time", of(&[1, 2, 3])), ("lat", of(&[50, 60, 70]))];
    /// let new = [of(&[2, 3]), of(&[70, 60])];
    /// let changed = AppendedLabels::try_new(&target, &new, ExistingCells::Overwrite)?;
    /// assert_eq!(changed.region(), [1..3, 1..3]);
    /// # Ok::<(), gridfusion_core::Error>(())
    /// ```
    pub fn region(&self) -> Vec<Range<u64>> {
        let range = |(axis, places): (usize, &Vec<u64>)| {
            let first = places.iter().min().copied().unwrap_or_default();
            match self.axis {
                Some(longer) if longer == axis => first.min(self.added.start)..self.added.end,
                Some(_) => 0..self.labels[axis].len() as u64,
                None => first..places.iter().max().map_or(first, |last| last + 1),
            }
        };
        self.places.iter().enumerate().map(range).collect()
    }
}

/// The labels of a dimension as rows, whose bytes have the order of labels, and the places of the new ones.
struct Axis<'a> {
    name: &'a str,
    there: &'a ArrayRef,
    new: &'a ArrayRef,
    rows_there: Rows,
    rows_new: Rows,
    /// The index of each new label; `None` for a label that is not there.
    places: Vec<Option<u64>>,
}

impl<'a> Axis<'a> {
    fn try_new(name: &'a str, there: &'a ArrayRef, new: &'a ArrayRef) -> Result<Self> {
        let failed = failed_to("compare labels");
        if there.data_type() != new.data_type() {
            return Err(Error::internal(format!(
                "labels of {name} of {} and {}",
                there.data_type(),
                new.data_type()
            )));
        }
        let fields = vec![SortField::new(there.data_type().clone())];
        let converter = RowConverter::new(fields).map_err(&failed)?;
        let rows = |labels: &ArrayRef| {
            let labels = without_negative_zeros(ArrayRef::clone(labels))?;
            converter.convert_columns(&[labels]).map_err(&failed)
        };
        let (rows_there, rows_new) = (rows(there)?, rows(new)?);
        let mut numbers = HashMap::with_capacity(there.len());
        for (at, row) in rows_there.iter().enumerate() {
            if there.is_null(at) {
                return Err(Error::usage(format!(
                    "label {at} of \"{name}\" is missing in the array, so rows have no place in it"
                )));
            }
            if let Some(first) = numbers.insert(row.data().to_vec(), at as u64) {
                return Err(Error::usage(format!(
                    "the array has {} at the indices {first} and {at}, so rows have no place of their own in it",
                    label(name, there, at)
                )));
            }
        }
        let places = rows_new.iter().map(|row| numbers.get(row.data()).copied()).collect();
        Ok(Self { name, there, new, rows_there, rows_new, places })
    }

    /// The first new label that is not there.
    fn first_unknown(&self) -> Option<usize> {
        self.places.iter().position(Option::is_none)
    }

    /// Returns the index of each new label in the longer array.
    fn places_after(&self) -> Vec<u64> {
        let mut next = self.there.len() as u64;
        let mut place = |known: &Option<u64>| {
            known.unwrap_or_else(|| {
                next += 1;
                next - 1
            })
        };
        self.places.iter().map(&mut place).collect()
    }

    /// Returns the numbers of the labels that are appended.
    fn added(&self, existing: ExistingCells) -> Result<UInt64Array> {
        if let Some(known) = self.places.iter().position(Option::is_some)
            && existing == ExistingCells::Refuse
        {
            let label = label(self.name, self.new, known);
            return Err(Error::usage(format!(
                "{label} is there already; append only what is new: WHERE {} > …, or choose 'existing'",
                self.name
            )));
        }
        let added = self.places.iter().enumerate().filter(|(_, place)| place.is_none());
        let added: Vec<usize> = added.map(|(at, _)| at).collect();
        let mut met = HashSet::new();
        let is_met = |at: &&usize| !met.insert(self.rows_new.row(**at).data().to_vec());
        if let Some(at) = added.iter().find(is_met) {
            let label = label(self.name, self.new, *at);
            return Err(Error::usage(format!("{label} would be appended twice")));
        }
        self.check_order(&added)?;
        Ok(added.into_iter().map(|at| Some(at as u64)).collect())
    }

    /// Fails if the labels that are there ascend or descend, and would not any more with those that are added.
    fn check_order(&self, added: &[usize]) -> Result<()> {
        let (there, new) = (&self.rows_there, &self.rows_new);
        let in_order = |is_after: &dyn Fn(&[u8], &[u8]) -> bool| {
            (1..self.there.len()).all(|at| is_after(there.row(at - 1).data(), there.row(at).data()))
        };
        let (ascends, descends) = (in_order(&|a, b| a < b), in_order(&|a, b| a > b));
        if !(ascends || descends) || self.there.is_empty() {
            return Ok(());
        }
        let is_after = |a: &[u8], b: &[u8]| match (ascends, descends) {
            // A single label has no direction.
            (true, true) => a != b,
            (true, false) => a < b,
            _ => a > b,
        };
        let last = self.there.len() - 1;
        let mut before = there.row(last);
        for (number, at) in added.iter().enumerate() {
            let row = new.row(*at);
            if !is_after(before.data(), row.data()) {
                return Err(Error::usage(format!(
                    "{} would follow {}, but the labels {}; an append keeps their order",
                    label(self.name, self.new, *at),
                    match number {
                        0 => label(self.name, self.there, last),
                        _ => label(self.name, self.new, added[number - 1]),
                    },
                    if ascends { "ascend" } else { "descend" }
                )));
            }
            before = row;
        }
        Ok(())
    }
}

/// Returns the only dimension that has new labels; `None` if there is none, and need not be one.
fn longer(axes: &[Axis<'_>], existing: ExistingCells) -> Result<Option<usize>> {
    let unknown =
        axes.iter().enumerate().filter_map(|(axis, it)| Some((axis, it.first_unknown()?)));
    let unknown: Vec<(usize, usize)> = unknown.collect();
    let labels = |of: &[(usize, usize)]| {
        let labels = of.iter().map(|(axis, at)| label(axes[*axis].name, axes[*axis].new, *at));
        labels.collect::<Vec<_>>().join(" and ")
    };
    match unknown[..] {
        [(axis, _)] => Ok(Some(axis)),
        [] if existing != ExistingCells::Refuse => Ok(None),
        [] => Err(Error::usage(
            "all labels are there already, so nothing is appended; 'existing' chooses what happens to their cells",
        )),
        _ => Err(Error::usage(format!(
            "{} are not in the array; an append makes one dimension longer, and the labels of all others must be there",
            labels(&unknown)
        ))),
    }
}

/// Returns a label with the name of its dimension: `time=2024-01-01T00:00:00`.
fn label(name: &str, labels: &ArrayRef, at: usize) -> String {
    let text = array_value_to_string(labels, at).unwrap_or_else(|_| format!("#{at}"));
    format!("{name}={text}")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Float64Array, Int32Array, StringArray};

    use super::*;

    fn numbers(labels: &[i32]) -> ArrayRef {
        Arc::new(Int32Array::from(labels.to_vec()))
    }

    fn refused(target: &[(&str, ArrayRef)], new: &[ArrayRef], why: &str) {
        let error =
            AppendedLabels::try_new(target, new, ExistingCells::Refuse).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }

    #[test]
    fn labels_keep_their_order() {
        for (there, new, fits) in [
            (vec![1, 2], vec![3, 4], true),
            (vec![2, 1], vec![0, -1], true),
            (vec![2, 1], vec![3], false),
            (vec![1, 2], vec![0], false),
            (vec![1, 2], vec![4, 3], false),
            (vec![5], vec![4], true),
            (vec![], vec![4, 7], true),
            (vec![3, 1, 2], vec![0], true),
        ] {
            let target = [("x", numbers(&there))];
            let appended =
                AppendedLabels::try_new(&target, &[numbers(&new)], ExistingCells::Refuse);
            assert_eq!(appended.is_ok(), fits, "{there:?} {new:?}");
        }
    }

    #[test]
    fn names_may_come_in_any_order() {
        let texts = |of: &[&str]| Arc::new(StringArray::from(of.to_vec())) as ArrayRef;
        let target = [("station", texts(&["Oslo", "Bergen", "Voss"])), ("x", numbers(&[1]))];
        let new = [texts(&["Alta", "Hamar"]), numbers(&[1])];
        let appended = AppendedLabels::try_new(&target, &new, ExistingCells::Refuse).unwrap();
        assert_eq!((appended.axis, appended.added), (Some(0), 3..5));
    }

    #[test]
    fn labels_that_do_not_fit_are_named() {
        let zeros: ArrayRef = Arc::new(Float64Array::from(vec![0.0, 1.0]));
        let minus: ArrayRef = Arc::new(Float64Array::from(vec![-0.0]));
        refused(&[("x", zeros)], &[minus], "nothing is appended");
        let none: ArrayRef = Arc::new(Float64Array::from(Vec::<f64>::new()));
        let both: ArrayRef = Arc::new(Float64Array::from(vec![-0.0, 0.0]));
        refused(&[("x", none)], &[both], "would be appended twice");
        let target = [("time", numbers(&[1, 2])), ("lat", numbers(&[50, 60]))];
        refused(&target, &[numbers(&[2, 3]), numbers(&[50])], "time=2 is there already");
        refused(&target, &[numbers(&[3]), numbers(&[50, 55])], "time=3 and lat=55 are not");
        refused(&target, &[numbers(&[1]), numbers(&[50])], "nothing is appended");
        let twice = [("time", numbers(&[1, 1]))];
        refused(&twice, &[numbers(&[2])], "time=1 at the indices 0 and 1");
    }

    #[test]
    fn labels_that_are_there_may_come_with_new_ones() {
        for (there, new, places) in [
            (vec![1, 2, 3], vec![2, 4, 5], Some(vec![1, 3, 4])),
            (vec![1, 2, 3], vec![3, 1], Some(vec![2, 0])),
            (vec![3, 2], vec![3, 1, 0], Some(vec![0, 2, 3])),
            (vec![1, 3], vec![2, 3], None),
            (vec![], vec![2, 3], Some(vec![0, 1])),
        ] {
            let target = [("x", numbers(&there))];
            for existing in [ExistingCells::Same, ExistingCells::Overwrite, ExistingCells::Clear] {
                let merged = AppendedLabels::try_new(&target, &[numbers(&new)], existing);
                let found = merged.ok().map(|it| it.places[0].clone());
                assert_eq!(found, places, "{there:?} {new:?}");
            }
        }
    }
}
