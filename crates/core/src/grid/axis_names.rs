//! Names of axes that a table can have: none is empty, and no two are equal.

/// Returns one name per axis. Empty names become `dim_0`, `dim_1`, …, and repeated ones get their axis number: `x`, `x`
/// become `x`, `x_1`. Adds a remark on each repeated name to `odd`.
pub fn axis_names(mut names: Vec<String>, odd: &mut Vec<String>) -> Vec<String> {
    for axis in 0..names.len() {
        if names[axis].is_empty() {
            names[axis] = format!("dim_{axis}");
        }
        if names[..axis].contains(&names[axis]) {
            let mut unique = format!("{}_{axis}", names[axis]);
            while names.contains(&unique) {
                unique.push('_');
            }
            let name = &names[axis];
            odd.push(format!("dimension \"{name}\" occurs twice; axis {axis} is \"{unique}\""));
            names[axis] = unique;
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &[&str]) -> (Vec<String>, usize) {
        let mut odd = vec![];
        let names = axis_names(names.iter().map(|&name| name.to_owned()).collect(), &mut odd);
        (names, odd.len())
    }

    #[test]
    fn names_are_there_and_distinct() {
        for (given, expected, remarks) in [
            (&[][..], &[][..], 0),
            (&["x", "", "y"], &["x", "dim_1", "y"], 0),
            (&["x", "x", "x"], &["x", "x_1", "x_2"], 2),
            (&["dim_1", ""], &["dim_1", "dim_1_1"], 1),
            // A name that the file gives stays, on either side of the repeated one.
            (&["x_2", "x", "x"], &["x_2", "x", "x_2_"], 1),
            (&["x", "x", "x_1"], &["x", "x_1_", "x_1"], 1),
        ] {
            let expected = expected.iter().map(|&name| name.to_owned()).collect();
            assert_eq!(named(given), (expected, remarks), "{given:?}");
        }
    }
}
