//! Random sparse TileDB arrays: the dimensions and attributes of a schema. `sparse_history` fills them.

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use crate::support::sparse_writer::{
    COLUMN_MAJOR, Condition, Coordinate, HILBERT, Operator, ROW_MAJOR, SparseDimension,
    SparseSchema, compare,
};
use crate::support::tiledb_cases::{
    INTEGERS, QUERIED, SMALL, filters, limits, number, random_attribute,
};
use crate::support::tiledb_writer::{
    ASCII, BOOL, DATE_TIMES, FLOAT32, FLOAT64, TestAttribute, UTF8, integer, is_integer,
    is_temporal,
};

/// Bounds on the size and the content of random arrays.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SparseProfile {
    /// The most rows of a write.
    pub(crate) rows: usize,
    /// The most events.
    pub(crate) events: usize,
    /// The most coordinates per dimension, for arrays of one, two or three dimensions.
    pub(crate) coordinates: [usize; 3],
    /// Limits attributes to scalars and text.
    pub(crate) figures: bool,
}

/// Arrays of all kinds, small enough to read them at every time.
pub(crate) const SMALL_SPARSE: SparseProfile =
    SparseProfile { rows: 30, events: 9, coordinates: [25, 7, 4], figures: false };
/// Larger arrays, for random queries.
pub(crate) const QUERIED_SPARSE: SparseProfile =
    SparseProfile { rows: 150, events: 6, coordinates: [120, 16, 7], figures: true };

/// The first letter of an attribute that may change from one value per cell to any number. Conditions
/// leave it out, because TileDB compares it with values of one type only.
const CHANGES: char = 'r';

/// A schema, and the coordinates that writes use per dimension, in order.
pub(crate) fn first_schema(
    rng: &mut StdRng,
    profile: SparseProfile,
) -> (SparseSchema, Vec<Vec<Coordinate>>) {
    let rank: usize = rng.random_range(1..=3);
    let most = profile.coordinates[rank - 1];
    let axes = (0..rank).map(|axis| random_dimension(rng, format!("d{axis}"), most));
    let (dimensions, coordinates): (Vec<_>, Vec<Vec<Coordinate>>) = axes.unzip();
    let count = rng.random_range(1..=4);
    let mut attributes: Vec<TestAttribute> =
        (0..count).map(|at| new_attribute(rng, at, profile)).collect();
    if count == 1 && rng.random_bool(0.3) {
        attributes[0].name = String::new();
    }
    let ends = |all: &Vec<Coordinate>| [all[0].clone(), all[all.len() - 1].clone()];
    let has_current_domain = rng.random_bool(0.2);
    let schema = SparseSchema {
        time: rng.random_range(5..9),
        dimensions,
        attributes,
        allows_duplicates: rng.random_bool(0.3),
        tile_order: *[ROW_MAJOR, COLUMN_MAJOR].choose(rng).unwrap(),
        cell_order: *[ROW_MAJOR, COLUMN_MAJOR, HILBERT].choose(rng).unwrap(),
        capacity: *[1, 2, 3, 5, 8, 20, 100].choose(rng).unwrap(),
        current_domain: has_current_domain.then(|| coordinates.iter().map(ends).collect()),
        coordinates: filters(rng),
        offsets: filters(rng),
        validity: filters(rng),
    };
    (schema, coordinates)
}

/// A new attribute; `number` makes its name unique.
pub(crate) fn new_attribute(
    rng: &mut StdRng,
    number: u64,
    profile: SparseProfile,
) -> TestAttribute {
    let first = if rng.random_bool(0.2) { CHANGES } else { 'a' };
    let profile = if profile.figures { QUERIED } else { SMALL };
    random_attribute(rng, format!("{first}{number}"), profile)
}

/// An attribute that is added again, perhaps with another fill value or another number of values.
pub(crate) fn changed(rng: &mut StdRng, attribute: TestAttribute) -> TestAttribute {
    let has_one_number = attribute.values == Some(1) && is_number(attribute.code);
    match rng.random_range(0..3) {
        0 if has_one_number => TestAttribute { fill: number(attribute.code, 4), ..attribute },
        // Cells of fixed length are invisible to an attribute of variable length.
        1 if attribute.name.starts_with(CHANGES) && attribute.values.is_some() => {
            TestAttribute { code: UTF8, values: None, fill: b"-".to_vec(), ..attribute }
        }
        _ => attribute,
    }
}

fn is_number(code: u8) -> bool {
    is_integer(code) || is_temporal(code) || matches!(code, FLOAT32 | FLOAT64 | BOOL)
}

/// A dimension, and some of its coordinates in order.
fn random_dimension(
    rng: &mut StdRng,
    name: String,
    most: usize,
) -> (SparseDimension, Vec<Coordinate>) {
    let code = match rng.random_range(0..10) {
        0..2 => ASCII,
        2..4 => *[FLOAT32, FLOAT64].choose(rng).unwrap(),
        4..6 => rng.random_range(DATE_TIMES),
        _ => *INTEGERS.choose(rng).unwrap(),
    };
    let count = rng.random_range(1..=most);
    let (mut coordinates, domain, extent) = match code {
        ASCII => (texts(rng, count), [vec![], vec![]], None),
        FLOAT32 | FLOAT64 => {
            let all = (0..count).map(|_| float_of(code, rng.random_range(-40..60), 4.0));
            let all: Vec<Coordinate> = all.collect();
            let extents = [float_of(code, 1, 2.0), float_of(code, 4, 1.0), float_of(code, 99, 1.0)];
            let extent = extents.choose(rng).cloned();
            (all, [float_of(code, -1024, 1.0), float_of(code, 1024, 1.0)], extent)
        }
        _ => integers(rng, code, count),
    };
    coordinates.sort_by(|a, b| compare(code, a, b).unwrap());
    coordinates.dedup();
    let extent = extent.filter(|_| rng.random_bool(0.7));
    (SparseDimension { name, code, domain, extent, filters: filters(rng) }, coordinates)
}

fn float_of(code: u8, numerator: i32, denominator: f64) -> Coordinate {
    let number = f64::from(numerator) / denominator;
    match code {
        FLOAT32 => (number as f32).to_le_bytes().to_vec(),
        _ => number.to_le_bytes().to_vec(),
    }
}

/// Texts with common beginnings, among them the empty text.
fn texts(rng: &mut StdRng, count: usize) -> Vec<Coordinate> {
    const SPECIAL: [&str; 9] =
        ["", "a", "aa", "ab", "a b", "b", "more than twelve bytes", "zz", "~"];
    let text = |number: usize| match rng.random_bool(0.5) {
        true => SPECIAL.choose(rng).unwrap().as_bytes().to_vec(),
        false => format!("k{number:02}").into_bytes(),
    };
    (0..count).map(text).collect()
}

/// Whole numbers with a domain and an extent, some of them at the ends of their type.
fn integers(
    rng: &mut StdRng,
    code: u8,
    count: usize,
) -> (Vec<Coordinate>, [Coordinate; 2], Option<Vec<u8>>) {
    let (least, greatest) = limits(code);
    let last = count as i128 - 1;
    let step: i128 = *[1, 1, 2, 7].choose(rng).unwrap();
    let step = if last * step > (greatest - least) / 2 { 1 } else { step };
    let span = last * step;
    let first = match rng.random_range(0..4) {
        0 => least,
        1 => greatest - span,
        2 => rng.random_range(-3..4),
        _ => rng.random_range(least..=greatest - span),
    };
    let first = first.clamp(least, greatest - span);
    let all: Vec<Coordinate> = (0..=last).map(|at| integer(code, first + at * step)).collect();
    let low = (first - rng.random_range(0..4)).max(least);
    let high = (first + span + rng.random_range(0..4)).min(greatest);
    let extent = rng.random_range(1..=(high - low + 1).min(100));
    (all, [integer(code, low), integer(code, high)], Some(integer(code, extent)))
}

/// The operators of conditions. Operators that keep most rows are more frequent.
const OPERATORS: [Operator; 12] = [
    Operator::NotEqual,
    Operator::NotEqual,
    Operator::NotEqual,
    Operator::NotIn,
    Operator::NotIn,
    Operator::NotIn,
    Operator::Less,
    Operator::LessOrEqual,
    Operator::Greater,
    Operator::GreaterOrEqual,
    Operator::Equal,
    Operator::In,
];

/// A condition on the fields of a schema.
pub(crate) fn random_condition(
    rng: &mut StdRng,
    schema: &SparseSchema,
    coordinates: &[Vec<Coordinate>],
    depth: usize,
) -> Condition {
    if depth < 2 && rng.random_bool(0.35) {
        let count = rng.random_range(2..4);
        let parts = (0..count).map(|_| random_condition(rng, schema, coordinates, depth + 1));
        let parts: Vec<Condition> = parts.collect();
        let is_and = rng.random_bool(0.3);
        return if is_and { Condition::And(parts) } else { Condition::Or(parts) };
    }
    let rank = schema.dimensions.len();
    let attributes: Vec<&TestAttribute> =
        schema.attributes.iter().filter(|attribute| can_be_compared(attribute)).collect();
    let at = rng.random_range(0..rank + attributes.len());
    let operator = *OPERATORS.choose(rng).unwrap();
    let is_set = matches!(operator, Operator::In | Operator::NotIn);
    let count = if is_set { rng.random_range(1..4) } else { 1 };
    let mut values: Vec<Vec<u8>> = vec![];
    for _ in 0..count {
        values.push(match at.checked_sub(rank) {
            None => coordinates[at].choose(rng).unwrap().clone(),
            Some(number) => compared_value(rng, attributes[number].code),
        });
    }
    values.sort();
    values.dedup();
    let field = match at.checked_sub(rank) {
        None => schema.dimensions[at].name.clone(),
        Some(number) => attributes[number].name.clone(),
    };
    Condition::Compare { field, operator, values }
}

fn can_be_compared(attribute: &TestAttribute) -> bool {
    let is_of_kind = match attribute.values {
        Some(values) => values == 1 && is_number(attribute.code),
        None => matches!(attribute.code, ASCII | UTF8),
    };
    is_of_kind && !attribute.name.is_empty() && !attribute.name.starts_with(CHANGES)
}

fn compared_value(rng: &mut StdRng, code: u8) -> Vec<u8> {
    match code {
        ASCII | UTF8 => {
            let rest = *["", "", "3", " and"].choose(rng).unwrap();
            let first = char::from(rng.random_range(b'a'..b'u'));
            if rng.random_bool(0.1) { vec![] } else { format!("{first}{rest}").into_bytes() }
        }
        _ => number(code, rng.random_range(-6..13)),
    }
}
