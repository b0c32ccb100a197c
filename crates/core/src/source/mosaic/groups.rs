//! Groups of files that differ in the labels of one dimension only.

use std::collections::HashMap;

use super::file_arrays::FileArrays;
use crate::array::{Dimension, Labels};

/// Divides files that agree in everything but labels into groups, each of which has equal labels on all dimensions but one.
/// Also returns the first two files with equal labels on all dimensions, which are in different groups.
pub(super) fn groups(
    files: &[FileArrays],
    asked: Option<&str>,
) -> (Vec<Vec<usize>>, Option<[usize; 2]>) {
    let dims = files.first().map(FileArrays::dims).unwrap_or_default();
    let kinds: Vec<Vec<usize>> = (0..dims.len()).map(|axis| kinds(files, axis)).collect();
    let by_others = |axis: usize| {
        let mut groups: Vec<Vec<usize>> = vec![];
        let mut numbers: HashMap<Vec<usize>, usize> = HashMap::new();
        for file in 0..files.len() {
            let others = kinds.iter().enumerate().filter(|(other, _)| *other != axis);
            let others: Vec<usize> = others.filter_map(|(_, of)| of.get(file).copied()).collect();
            let number = *numbers.entry(others).or_insert(groups.len());
            match groups.get_mut(number) {
                Some(group) => group.push(file),
                None => groups.push(vec![file]),
            }
        }
        groups
    };
    let distinct = |axis: usize| kinds[axis].iter().max().copied().unwrap_or_default();
    let fewest = |axis: &usize| (by_others(*axis).len(), usize::MAX - distinct(*axis));
    let asked = asked.and_then(|name| dims.iter().position(|dim| dim.name() == name));
    let Some(axis) = asked.or_else(|| (0..dims.len()).min_by_key(fewest)) else {
        // Single values have no dimension to concatenate along.
        return ((0..files.len()).map(|file| vec![file]).collect(), None);
    };
    let is_labelled = dims.get(axis).is_some_and(Dimension::is_labelled);
    let (mut all, mut copies) = (vec![], None);
    for group in by_others(axis) {
        // Files without labels need only differ in length, unless the user names the dimension.
        let is_one = |group: &[usize]| {
            group.windows(2).all(|pair| kinds[axis][pair[0]] == kinds[axis][pair[1]])
        };
        if !is_labelled && (asked.is_some() || !is_one(&group)) {
            all.push(group);
            continue;
        }
        let divided = without_copies(group, &kinds[axis]);
        if let [first, second, ..] = divided.as_slice() {
            let copy = second.first().copied().unwrap_or_default();
            let of = first.iter().find(|file| kinds[axis][**file] == kinds[axis][copy]);
            copies = copies.or(of.map(|of| [*of, copy]));
        }
        all.extend(divided);
    }
    (all, copies)
}

/// Divides a group such that no two files of one have the same labels: the first of each, the second of each, and so on.
fn without_copies(group: Vec<usize>, kinds: &[usize]) -> Vec<Vec<usize>> {
    let mut met: HashMap<usize, usize> = HashMap::new();
    let mut groups: Vec<Vec<usize>> = vec![];
    for file in group {
        let times = met.entry(kinds[file]).or_default();
        match groups.get_mut(*times) {
            Some(group) => group.push(file),
            None => groups.push(vec![file]),
        }
        *times += 1;
    }
    groups
}

/// Numbers the labels of each file on an axis: files with equal labels have the same number.
fn kinds(files: &[FileArrays], axis: usize) -> Vec<usize> {
    let mut all = 0;
    let mut by_ends: HashMap<(u64, String), Vec<(usize, &Labels)>> = HashMap::new();
    let mut numbers = Vec::with_capacity(files.len());
    for dim in files.iter().filter_map(|file| file.dims().get(axis)) {
        let known = by_ends.entry((dim.len(), dim.labels().ends())).or_default();
        match known.iter().find(|(_, labels)| labels.same(dim.labels())) {
            Some((number, _)) => numbers.push(*number),
            None => {
                known.push((all, dim.labels()));
                numbers.push(all);
                all += 1;
            }
        }
    }
    numbers
}
