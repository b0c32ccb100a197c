//! Texts about arrays and their dimensions, for messages.

use crate::error::Error;

/// Formats an array's name and dimensions: `"t" (time: 24, lat: 10)`. Dimensions of sparse arrays have no
/// length: `"points" (x, y)`.
pub fn with_axes(name: &str, axes: &[(String, Option<u64>)]) -> String {
    let axis = |(name, len): &(String, Option<u64>)| match len {
        Some(len) => format!("{name}: {len}"),
        None => name.clone(),
    };
    let axes: Vec<String> = axes.iter().map(axis).collect();
    format!("\"{name}\" ({})", axes.join(", "))
}

/// Returns the error for variables over different dimensions. `several` is the beginning of the message, and
/// `listed` describes each variable.
pub fn mixed(several: &str, listed: impl Iterator<Item = String>) -> Error {
    /// The most variables that the message lists.
    const MOST: usize = 40;
    let mut listed: Vec<String> = listed.collect();
    let more = listed.len().saturating_sub(MOST);
    listed.truncate(MOST);
    if more > 0 {
        listed.push(format!("and {more} more"));
    }
    Error::usage(format!(
        "{several} over different dimensions, which cannot be columns of one table; choose one with the \
         option 'dataset', or several with commas between them: {}",
        listed.join(", ")
    ))
}
