//! Texts that are stored as single characters, with an axis that counts them, as NetCDF writes them.
//!
//! ```text
//!   |S1  station_name (station, strlen)   O s l o \0 …      becomes   |S12  station_name (station)
//! ```
//!
//! The last dimension counts characters if nothing else does anything with it: it has a name, labels nothing, and is the last
//! dimension of single characters wherever it is used. HDF5 files have the same rule.

use std::collections::HashMap;
use std::sync::Arc;

use super::array::ZarrArray;
use gridfusion_cf::hierarchy::{CellType, Hierarchy, Variable};

/// Makes the last axis of characters part of their cells, in all arrays where it only counts them.
pub(super) fn join_characters(hierarchy: &mut Hierarchy, arrays: &mut [Arc<ZarrArray>]) {
    let is_character = |variable: &Variable| variable.cell == CellType::FixedUtf8(1);
    if !hierarchy.variables.iter().any(is_character) {
        return;
    }
    // Whether a dimension, by its name and length, counts characters wherever it is used.
    let mut counts: HashMap<(String, u64), bool> = HashMap::new();
    for variable in &hierarchy.variables {
        for (at, axis) in variable.axes.iter().enumerate() {
            let Some(name) = &axis.name else { continue };
            let is_last = at + 1 == variable.axes.len();
            let is_labels = variable.axes.len() == 1 && variable.name() == name;
            *counts.entry((name.clone(), axis.len)).or_insert(true) &=
                is_character(variable) && is_last && !is_labels;
        }
    }
    for (variable, array) in hierarchy.variables.iter_mut().zip(arrays) {
        let last = variable.axes.last().and_then(|axis| Some((axis.name.clone()?, axis.len)));
        let is_text = last.and_then(|last| counts.get(&last)).is_some_and(|counts| *counts);
        if is_text
            && is_character(variable)
            && let Some(array) = Arc::get_mut(array)
            && array.join_characters()
        {
            let mut axes = std::mem::take(&mut variable.axes);
            axes.pop();
            *variable = array.variable().clone();
            variable.axes = axes;
        }
    }
}
