//! Optional columns of several files, such as coordinates: those that not all files have alike are left out.
//!
//! ```text
//!   2023.nc   t2m, height, run                 t2m, run
//!   2024.nc   t2m, run                ──▶      t2m, run         "height" is left out, with a warning
//! ```

use super::differences::values_differ;
use super::file_arrays::FileArrays;
use crate::array::GridArray;

/// Leaves out the optional columns that some files lack or have of another kind. If files are `united`, those that some lack
/// are NULL there.
pub(super) fn keep_common(files: &mut [FileArrays], united: bool) {
    let mut names: Vec<&str> = vec![];
    for beside in files.iter().flat_map(|file| &file.beside).filter(|it| it.is_optional) {
        if !names.contains(&beside.name.as_str()) {
            names.push(&beside.name);
        }
    }
    let odd = names.into_iter().filter_map(|name| {
        let reason = reason(files, name, united)?;
        log::warn!("column \"{name}\" is left out of the table: {reason}");
        Some(name.to_owned())
    });
    let odd: Vec<String> = odd.collect();
    if !odd.is_empty() {
        files
            .iter_mut()
            .for_each(|file| file.keep_optional(|name| !odd.iter().any(|it| it == name)));
    }
}

/// Returns why files cannot have a column in common; `None` if they can.
fn reason(files: &[FileArrays], name: &str, united: bool) -> Option<String> {
    let cannot_read = |file: &&FileArrays| file.unreadable.iter().any(|(it, _)| it == name);
    if let Some(file) = files.iter().find(cannot_read) {
        return Some(format!("{} has one that cannot be read", file.name));
    }
    let of = |file: &FileArrays| file.arrays.iter().position(|it| it.name() == name);
    let found: Vec<Option<usize>> = files.iter().map(of).collect();
    if let (Some(at), false) = (found.iter().position(Option::is_none), united) {
        return Some(format!("{} has none", files.get(at)?.name));
    }
    let mut all =
        files.iter().zip(found).filter_map(|(file, at)| Some((file, file.arrays.get(at?)?)));
    let (_, first): (_, &GridArray) = all.next()?;
    all.find_map(|(file, array)| {
        let mut differences = values_differ(first.values(), array.values()).into_iter();
        let difference = differences.find(|it| it.stops_table)?;
        Some(format!("{}: {}", file.name, difference.sentence()))
    })
}
