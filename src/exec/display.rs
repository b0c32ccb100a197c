//! The text of a scan in `EXPLAIN`. Reductions share most of it.

use std::fmt::{self, Write};
use std::ops::Range;

use arrow::datatypes::Schema;
use arrow::util::display::array_value_to_string;
use datafusion::physical_expr::PhysicalExprRef;

use crate::array::{GridArray, LabelOrder, Labels};
use crate::grid::AxisSelection;
use crate::plan::ScanPlan;

/// The greatest number of label ranges that are shown per dimension.
const MAX_RANGES: usize = 3;

/// Returns `dataset=temperature`, `chunks=1/64`, `selection=[time=2024-01-01..2024-01-02, station=A]`.
/// Leaves out dimensions that are selected whole, and a selection of everything.
pub(super) fn parts(array: &GridArray, plan: &ScanPlan) -> Vec<String> {
    let mut parts = vec![
        format!("dataset={}", array.name()),
        format!("chunks={}/{}", plan.chunks(), plan.grid().chunks()),
    ];
    let dims = array.dims().iter().zip(plan.selection().axes());
    let selection: Vec<String> = dims
        .filter(|(_, axis)| !axis.is_all())
        .map(|(dim, axis)| format!("{}={}", dim.name(), ranges(dim.labels(), axis)))
        .collect();
    if !selection.is_empty() {
        parts.push(format!("selection=[{}]", selection.join(", ")));
    }
    parts
}

/// Returns `projection=[time, value]`.
pub(super) fn projection(schema: &Schema) -> String {
    let columns: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    format!("projection=[{}]", columns.join(", "))
}

/// Returns `order=[time DESC, station]` if the plan reads rows in a pushed-down order.
pub(super) fn order(array: &GridArray, plan: &ScanPlan) -> Option<String> {
    // Labels that descend along the axis ascend when they are read backwards.
    let of_axis = |(axis, backwards): (usize, &bool)| {
        let dim = &array.dims()[axis];
        let descends = (dim.labels().order() == LabelOrder::Descending) != *backwards;
        format!("{}{}", dim.name(), if descends { " DESC" } else { "" })
    };
    let keys: Vec<String> = plan.reordered()?.iter().enumerate().map(of_axis).collect();
    Some(format!("order=[{}]", keys.join(", ")))
}

/// Writes the parts of a node's text for a drawn tree, one per line.
///
/// DataFusion 55 breaks long lines at a number of characters, which it takes for a number of bytes. In the middle of a
/// letter it panics. So long lines are ASCII.
pub(super) fn tree(parts: &[String], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    /// DataFusion does not break lines of this many characters.
    const UNBROKEN: usize = 20;
    for part in parts {
        if part.is_ascii() || part.chars().count() <= UNBROKEN {
            writeln!(f, "{part}")?;
        } else {
            let part = part.replace('…', "...");
            writeln!(f, "{}", part.replace(|letter: char| !letter.is_ascii(), "?"))?;
        }
    }
    Ok(())
}

/// Returns `filters=[DynamicFilter [ station@1 = A ]]` if there are dynamic filters.
pub(super) fn filters(filters: &[PhysicalExprRef]) -> Option<String> {
    let shown: Vec<String> = filters.iter().map(ToString::to_string).collect();
    (!shown.is_empty()).then(|| format!("filters=[{}]", shown.join(", ")))
}

/// Formats the labels of a selection: `A`, `A..C`, `A..C|F`, `A..C|F|H|… (12 of 100)`.
fn ranges(labels: &Labels, axis: &AxisSelection) -> String {
    if axis.is_empty() {
        return "none".into();
    }
    let shown: Vec<String> =
        axis.ranges().iter().take(MAX_RANGES).map(|range| label_range(labels, range)).collect();
    let mut text = shown.join("|");
    if axis.ranges().len() > MAX_RANGES {
        let _ = write!(text, "|… ({} of {})", axis.count(), axis.len());
    }
    text
}

fn label_range(labels: &Labels, range: &Range<u64>) -> String {
    let first = label(labels, range.start);
    if range.end - range.start == 1 {
        return first;
    }
    format!("{first}..{}", label(labels, range.end - 1))
}

/// Returns a label as text; its index, as in `#17`, if it cannot be read or shown.
fn label(labels: &Labels, at: u64) -> String {
    let text = labels.slice(at..at + 1).map(|one| array_value_to_string(&one, 0));
    match text {
        Ok(Ok(text)) => text,
        _ => format!("#{at}"),
    }
}
