//! Arrays and their dimensions, in sentences.

use crate::error::Error;

/// A name with dimensions: `"t" (time: 24, lat: 10)`.
pub(crate) fn with_axes(name: &str, axes: &[(String, u64)]) -> String {
    let axes: Vec<String> = axes.iter().map(|(name, len)| format!("{name}: {len}")).collect();
    format!("\"{name}\" ({})", axes.join(", "))
}

/// Why several variables are no table; `listed` are they.
pub(crate) fn mixed(several: &str, listed: impl Iterator<Item = String>) -> Error {
    /// More than this do not help.
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
