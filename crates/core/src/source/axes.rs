//! Texts about arrays and their dimensions, for messages.

use crate::error::{Error, Result};

/// The names and lengths of an array's dimensions. A dimension of a sparse array has no length.
pub type Axes = Vec<(String, Option<u64>)>;

/// Checks that variables, given by name, can be columns of one table: all have the same dimensions. `several` is the
/// beginning of the message.
///
/// # Errors
/// `Usage`, with the dimensions of each variable.
pub fn check_same_axes<'a>(
    several: &str,
    variables: impl Iterator<Item = (&'a str, Axes)>,
) -> Result<()> {
    let variables: Vec<_> = variables.collect();
    match variables.windows(2).all(|pair| pair[0].1 == pair[1].1) {
        true => Ok(()),
        false => {
            let listed = variables.iter().map(|(name, axes)| with_axes(name, axes));
            Err(mixed(several, listed, can_be_united(variables.iter().map(|(_, axes)| axes))))
        }
    }
}

/// Formats an array's name and dimensions: `"t" (time: 24, lat: 10)`. Dimensions of sparse arrays have no
/// length: `"points" (x, y)`.
pub(super) fn with_axes(name: &str, axes: &[(String, Option<u64>)]) -> String {
    let axis = |(name, len): &(String, Option<u64>)| match len {
        Some(len) => format!("{name}: {len}"),
        None => name.clone(),
    };
    let axes: Vec<String> = axes.iter().map(axis).collect();
    format!("\"{name}\" ({})", axes.join(", "))
}

/// Whether the option `union_by_name` makes one table of variables with these dimensions: one variable has the dimensions of
/// all.
pub(super) fn can_be_united<'a>(variables: impl Iterator<Item = &'a Axes>) -> bool {
    let variables: Vec<&Axes> = variables.collect();
    let widest = variables.iter().max_by_key(|axes| axes.len());
    let mut axes = variables.iter().flat_map(|axes| axes.iter());
    widest.is_some_and(|widest| axes.all(|axis| axis.1.is_some() && widest.contains(axis)))
}

/// Returns the error for variables over different dimensions. `several` is the beginning of the message, and
/// `listed` describes each variable. `can_be_united` tells whether the message names the option `union_by_name`.
pub(super) fn mixed(
    several: &str,
    listed: impl Iterator<Item = String>,
    can_be_united: bool,
) -> Error {
    /// The most variables that the message lists.
    const MOST: usize = 40;
    let mut listed: Vec<String> = listed.collect();
    let more = listed.len().saturating_sub(MOST);
    listed.truncate(MOST);
    if more > 0 {
        listed.push(format!("and {more} more"));
    }
    let united = match can_be_united {
        true => "; the option 'union_by_name' repeats those of fewer dimensions",
        false => "",
    };
    Error::usage(format!(
        "{several} over different dimensions, which cannot be columns of one table; choose one with the \
         option 'dataset', or several with commas between them{united}: {}",
        listed.join(", ")
    ))
}
