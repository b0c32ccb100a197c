//! [`Refinement`]: finer groups, in which functions of dimensions are constant.
//!
//! A weighted sum over groups is a weighted sum of their parts, if each part has one weight. So an axis with
//! weights is grouped by the keys and the weights together. The table of these *fine* groups is weighed at the
//! end:
//!
//! ```text
//!   sum(value * w(lat)) GROUP BY time        fine groups  time × lat    a sum and a count each
//!                                                                        │ × w(lat), added up
//!                                            groups       time          ▼ the answer
//! ```
//!
//! Some axes would have too many fine groups, or would cut runs of cells into single ones, as the innermost
//! axis does. Their weights are multiplied with the cells ([`CellWeights`]). Their fine groups only tell where
//! a function is NULL.
//!
//! - A function that is NULL, or a condition that is false, is NaN in the tables of factors: its fine groups are left
//!   out. All other numbers are finite. A query with an infinite or NaN weight takes the accumulators, because a product
//!   with a sum is then not the sum of the products.
//! - A weight with too many values, and so a fine group for fewer than 32 cells, would need too much memory. It is
//!   multiplied with cells, too: the product of the outer axes once per row, and a vector along the innermost axis.
//! - A sum of floats in which the variable is in two products takes the accumulators: `(1 + 0) × infinity` is not `1 ×
//!   infinity + 0 × infinity`.
//! - `ELSE b` of a `CASE` must not contain the variable: the difference of two infinite sums would be NaN.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, UInt32Array};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, Float64Type};
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::is_not_null;

use super::factors::{Factor, FactorId, Factors};
use super::keys::Keys;
use super::query::Query;
use crate::exec::GridScanExec;
use crate::exec::matching::number_axis;
use crate::reduce::{AxisGroups, CellWeights, GroupTable};

/// The fine groups of a query, and the values of its functions for them.
#[derive(Debug, Clone)]
pub(super) struct Refinement {
    /// The numbers of the fine groups of each axis, over the scan's selection.
    pub(super) axes: Vec<AxisGroups>,
    /// Per axis, the key's group of each fine group; `None` if the numbers are equal.
    to_key: Vec<Option<Arc<[u32]>>>,
    /// The values of each function.
    factors: Vec<FactorValues>,
    /// The number of selected labels of each axis.
    labels: Vec<u64>,
    /// The greatest possible number of fine groups.
    pub(super) groups: u64,
}

/// An axis of a table of fine groups, with what a term needs of it: a number for each of its groups in the
/// table.
#[derive(Debug)]
pub(super) struct WeighedAxis {
    /// The part of the place of the query's group.
    pub(super) places: Vec<usize>,
    /// Whether all these parts are 0.
    pub(super) is_in_one_group: bool,
    /// The product of the functions; NaN if the cells do not count.
    pub(super) products: Vec<f64>,
}

/// The values of a function of an axis.
#[derive(Debug, Clone)]
struct FactorValues {
    axis: usize,
    /// The number for each fine group of the axis: NaN if its cells do not count, because the function is
    /// NULL or false. All other numbers are finite. It is 1 if cells are multiplied.
    by_group: Arc<[f64]>,
    /// The number for each selected label, if cells are multiplied.
    by_label: Option<Arc<[f64]>>,
}

impl Refinement {
    /// Makes the fine groups of `query`. `None` if a function cannot be evaluated, is infinite for a label or
    /// NaN, or if there would be too many groups.
    pub(super) fn try_new(
        query: &Query,
        scan: &GridScanExec,
        keys: &Keys,
        factors: &Factors,
    ) -> Option<Self> {
        let selection = scan.plan().selection().axes();
        let limit = fine_groups_at_most(scan.plan().rows(None));
        let innermost = (0..selection.len()).rfind(|axis| selection[*axis].count() > 1);
        let mut refinement = Self {
            axes: keys.axes.clone(),
            to_key: vec![None; selection.len()],
            factors: Vec::with_capacity(factors.list.len()),
            labels: selection.iter().map(|axis| axis.count()).collect(),
            groups: keys.groups,
        };
        let mut values: Vec<Option<FactorValues>> = vec![None; factors.list.len()];
        for (axis, selected) in selection.iter().enumerate() {
            let of_axis: Vec<FactorId> = factors.of_axis(axis).collect();
            if of_axis.is_empty() {
                continue;
            }
            let count = selected.count();
            let coarse = keys.axes[axis].count(count).max(1);
            let others = refinement.groups / coarse;
            let refined = RefinedAxis::number(query, scan, keys, factors, axis, false)?;
            let is_finer = refined.groups.count(count) > coarse;
            let cuts_runs = Some(axis) == innermost && !has_long_runs(&refined.groups);
            let is_large = others.saturating_mul(refined.groups.count(count)) > limit;
            let (axis_groups, by_label) = if is_finer && (cuts_runs || is_large) {
                let numbers: Vec<_> =
                    of_axis.iter().map(|id| refined.by_label(*id, count)).collect();
                let masks = RefinedAxis::number(query, scan, keys, factors, axis, true)?;
                (masks, numbers)
            } else {
                (refined, vec![None; of_axis.len()])
            };
            for (id, by_label) in of_axis.iter().zip(by_label) {
                let by_group = Arc::clone(&axis_groups.factors.iter().find(|(of, _)| of == id)?.1);
                values[*id] = Some(FactorValues { axis, by_group, by_label });
            }
            refinement.groups = others.checked_mul(axis_groups.groups.count(count))?;
            refinement.axes[axis] = axis_groups.groups;
            refinement.to_key[axis] = axis_groups.to_key;
        }
        if refinement.groups > limit.max(keys.groups) {
            return None;
        }
        refinement.factors = values.into_iter().collect::<Option<_>>()?;
        refinement.products_are_finite().then_some(refinement)
    }

    /// Returns those of the functions that are multiplied with cells.
    pub(super) fn of_cells(&self, factors: &[FactorId]) -> Vec<FactorId> {
        let multiplies = |id: &&FactorId| self.factors[**id].by_label.is_some();
        factors.iter().filter(multiplies).copied().collect()
    }

    /// Returns the weights of cells that are the product of these functions.
    pub(super) fn weights(&self, factors: &[FactorId], scan: &GridScanExec) -> CellWeights {
        let selection = scan.plan().selection().axes();
        let mut axes: Vec<Option<Arc<[f64]>>> = vec![None; selection.len()];
        for factor in factors.iter().map(|id| &self.factors[*id]) {
            let Some(by_label) = &factor.by_label else { continue };
            let axis = &mut axes[factor.axis];
            *axis = Some(match axis.take() {
                Some(before) => before.iter().zip(by_label.iter()).map(|(a, b)| a * b).collect(),
                None => Arc::clone(by_label),
            });
        }
        CellWeights::from_selected(selection, &axes)
    }

    /// Returns, for each place of the table of fine groups, the place of its group in `coarse`.
    pub(super) fn places(&self, fine: &GroupTable, coarse: &GroupTable) -> Vec<usize> {
        let parts: Vec<_> = (0..self.axes.len()).map(|axis| self.places_on(axis, coarse)).collect();
        fine.over_places(0, |place, axis, group| place + parts[axis][group as usize])
    }

    /// Returns, for each place of the table of fine groups, whether `masks` keep its cells.
    pub(super) fn counted(&self, fine: &GroupTable, masks: &[FactorId]) -> Vec<bool> {
        let axes: Vec<_> =
            (0..self.axes.len()).map(|axis| self.product(axis, &[], masks)).collect();
        fine.over_places(true, |counts, axis, group| counts & !axes[axis][group as usize].is_nan())
    }

    /// Returns the axes of the table of fine groups, from the outermost, with the places
    /// of the query's groups, and the products of `factors`.
    pub(super) fn weighed_axes(
        &self,
        fine: &GroupTable,
        coarse: &GroupTable,
        factors: &[FactorId],
        masks: &[FactorId],
    ) -> Vec<WeighedAxis> {
        let axes = (0..self.axes.len()).filter_map(|axis| Some((axis, fine.groups_on(axis)?)));
        axes.map(|(axis, groups)| {
            let (places, product) =
                (self.places_on(axis, coarse), self.product(axis, factors, masks));
            let places: Vec<usize> = groups.iter().map(|group| places[*group as usize]).collect();
            WeighedAxis {
                products: groups.iter().map(|group| product[*group as usize]).collect(),
                is_in_one_group: places.iter().all(|place| *place == 0),
                places,
            }
        })
        .collect()
    }

    /// Returns, for each fine group of an axis, the part of the place in `coarse` that the axis determines.
    fn places_on(&self, axis: usize, coarse: &GroupTable) -> Vec<usize> {
        let places = coarse.places_on(axis);
        let place = |group: usize| places.get(group).copied().unwrap_or(0);
        match &self.to_key[axis] {
            Some(to_key) => to_key.iter().map(|group| place(*group as usize)).collect(),
            None => (0..self.axes[axis].count(self.labels[axis]) as usize).map(place).collect(),
        }
    }

    /// Returns, for each fine group of an axis, the product of the `factors` of this axis. It is NaN if a factor
    /// is NULL, or if `masks` leave out the cells.
    fn product(&self, axis: usize, factors: &[FactorId], masks: &[FactorId]) -> Vec<f64> {
        let mut product = vec![1.0; self.axes[axis].count(self.labels[axis]) as usize];
        let numbers = factors.iter().map(|id| (id, false)).chain(masks.iter().map(|id| (id, true)));
        for (id, is_mask) in numbers.filter(|(id, _)| self.factors[**id].axis == axis) {
            for (product, number) in product.iter_mut().zip(self.factors[*id].by_group.iter()) {
                *product *= if is_mask && !number.is_nan() { 1.0 } else { *number };
            }
        }
        product
    }

    /// Whether no product of functions of different axes can overflow.
    fn products_are_finite(&self) -> bool {
        let greatest = |factor: &FactorValues| {
            let of_groups =
                factor.by_group.iter().chain(factor.by_label.iter().flat_map(|it| it.iter()));
            of_groups.fold(1.0, |greatest: f64, number| greatest.max(number.abs()))
        };
        self.factors.iter().map(greatest).product::<f64>() < 1e300
    }
}

/// Returns the greatest number of fine groups for an array with `rows` cells: few beside the cells, so that
/// weighing them costs little.
fn fine_groups_at_most(rows: u64) -> u64 {
    const SMALL: u64 = 1 << 16;
    const CELLS_PER_GROUP: u64 = 32;
    SMALL.max(rows / CELLS_PER_GROUP)
}

/// Whether neighbours along the innermost axis mostly share their group, so that cells are added in runs.
fn has_long_runs(groups: &AxisGroups) -> bool {
    const LONG: usize = 16;
    match groups {
        AxisGroups::One => true,
        AxisGroups::Each => false,
        AxisGroups::Numbered { numbers, .. } => {
            numbers.chunk_by(|a, b| a == b).count() * LONG <= numbers.len()
        }
    }
}

/// An axis, grouped by its keys and its functions together.
struct RefinedAxis {
    groups: AxisGroups,
    /// The key's group of each fine group; `None` if the numbers are equal.
    to_key: Option<Arc<[u32]>>,
    /// The functions with their number for each group; NaN if its cells do not count.
    factors: Vec<(FactorId, Arc<[f64]>)>,
}

impl RefinedAxis {
    /// Numbers the groups. With `only_masks`, numbers are replaced by whether they are NULL.
    fn number(
        query: &Query,
        scan: &GridScanExec,
        keys: &Keys,
        factors: &Factors,
        axis: usize,
        only_masks: bool,
    ) -> Option<Self> {
        let of_axis: Vec<FactorId> = factors.of_axis(axis).collect();
        let of_keys = query.keys.iter().zip(&keys.columns).filter(|(_, key)| key.axis == axis);
        let mut exprs: Vec<PhysicalExprRef> = of_keys.map(|(key, _)| Arc::clone(key)).collect();
        let first = exprs.len();
        for id in &of_axis {
            let Factor { expr, is_condition, .. } = &factors.list[*id];
            exprs.push(match only_masks && !is_condition {
                true => is_not_null(Arc::clone(expr)).ok()?,
                false => Arc::clone(expr),
            });
        }
        let (groups, values) = number_axis(scan, axis, &exprs)?;
        let (groups, values) = without_small_groups(groups, values)?;
        let numbers = of_axis.into_iter().zip(&values[first..]);
        let factors =
            numbers.map(|(id, values)| Some((id, numbers_of(values)?))).collect::<Option<_>>()?;
        let to_key = to_key(&groups, &keys.axes[axis]);
        Some(Self { groups, to_key, factors })
    }

    /// Returns the number of a function for each selected label, and 0 where it does not count.
    fn by_label(&self, id: FactorId, labels: u64) -> Option<Arc<[f64]>> {
        let (_, numbers) = self.factors.iter().find(|(of, _)| *of == id)?;
        let number = |group: usize| Some(numbers[group]).filter(|it| !it.is_nan()).unwrap_or(0.0);
        Some(self.groups.of_labels(labels, number))
    }
}

/// Makes each label a group if groups have few labels, and are not runs of neighbours: then rows have places in
/// order. The cosines of latitudes are an example, as each occurs north and south of the equator.
fn without_small_groups(
    groups: AxisGroups,
    values: Vec<ArrayRef>,
) -> Option<(AxisGroups, Vec<ArrayRef>)> {
    const FEW: usize = 4;
    match &groups {
        AxisGroups::Numbered { numbers, groups: count }
            if *count as usize * FEW > numbers.len() && !has_long_runs(&groups) =>
        {
            let at = UInt32Array::from_iter_values(numbers.iter().copied());
            let of_labels = values.iter().map(|values| take(values, &at, None).ok());
            Some((AxisGroups::Each, of_labels.collect::<Option<_>>()?))
        }
        _ => Some((groups, values)),
    }
}

/// Returns the numbers of a function: NaN for NULL and false, and 1 for true. `None` if a number is infinite
/// or NaN, or the function has another type.
fn numbers_of(values: &ArrayRef) -> Option<Arc<[f64]>> {
    if let Some(conditions) = values.as_boolean_opt() {
        let number = |holds: Option<bool>| if holds == Some(true) { 1.0 } else { f64::NAN };
        return Some(conditions.iter().map(number).collect());
    }
    let values = cast(values, &DataType::Float64).ok()?;
    let numbers = values.as_primitive::<Float64Type>();
    if numbers.iter().flatten().any(|number| !number.is_finite()) {
        return None;
    }
    Some(numbers.iter().map(|number| number.unwrap_or(f64::NAN)).collect())
}

/// Returns the key's group of each fine group; `None` if the numbers are equal.
fn to_key(fine: &AxisGroups, coarse: &AxisGroups) -> Option<Arc<[u32]>> {
    let (AxisGroups::Numbered { numbers: coarse, .. }, fine) = (coarse, fine) else { return None };
    Some(match fine {
        AxisGroups::Numbered { numbers: fine, groups } => {
            let mut to_key = vec![0; *groups as usize];
            fine.iter()
                .zip(coarse.iter())
                .for_each(|(fine, coarse)| to_key[*fine as usize] = *coarse);
            to_key.into()
        }
        _ => Arc::clone(coarse),
    })
}
