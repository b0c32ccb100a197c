//! Complex numbers as two columns.
//!
//! ```text
//!   decoded   re im re im re im      value 0: re re re      value 1: im im im
//! ```
//!
//! A number that is missing as a whole becomes NaN in both columns, because neither half alone tells.

use super::options::HierarchyView;
use super::parts::Part;
use crate::hierarchy::{CellType, Variable};
use gridfusion_core::format::ElementType;

/// Returns the complex number that stands for missing data, if a variable has one: its fill value. A number with a
/// NaN equals no other, so it stands for nothing.
pub(super) fn missing_number(variable: &Variable, view: &HierarchyView) -> Option<Vec<u8>> {
    let CellType::Complex(element) = variable.cell else { return None };
    let halves = variable.fill.chunks(element.size() as usize);
    let has_nan = halves.map(|half| element.rank(half)).any(|rank| rank.is_none());
    let is_missing = variable.fill_is_missing && view.read.fill_as_null && !has_nan;
    is_missing.then(|| variable.fill.clone())
}

/// Returns NaN of this width, little-endian.
pub(super) fn nan(width: usize) -> Vec<u8> {
    if width == 4 { f32::NAN.to_le_bytes().to_vec() } else { f64::NAN.to_le_bytes().to_vec() }
}

/// Returns a half of complex numbers of this type: the real part (0) or the imaginary part (1). Numbers that are `missing`,
/// in little-endian bytes, are NaN.
pub(super) fn half(part: usize, element: ElementType, missing: Option<&[u8]>) -> Part {
    let width = element.size() as usize;
    let missing = missing.map(|missing| (missing.to_vec(), nan(width)));
    Part { offset: part * width, width, missing }
}
