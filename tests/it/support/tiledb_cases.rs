//! Random dense TileDB arrays, for `tiledb_writer` to write.

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::{IndexedMutRandom, IndexedRandom};

use crate::support::positions;
use crate::support::tiledb_writer::{
    ASCII, BLOB, BOOL, CHAR, Cell, DATE_TIMES, FLOAT32, FLOAT64, Filters, INT8, INT16, INT32,
    INT64, TIMES, TestArray, TestAttribute, TestDimension, TestFragment, TestSchema,
    TestStatistics, TestVacuum, UINT8, UINT16, UINT32, UINT64, UTF8, UTF16, integer, is_integer,
    is_temporal, is_unsigned, width,
};

pub(crate) const INTEGERS: [u8; 8] = [INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64];

/// Bounds on the size and the content of random arrays.
#[derive(Clone, Copy)]
pub(crate) struct Profile {
    /// The greatest length of an axis, for arrays of one, two, … axes.
    pub(crate) longest: &'static [i128],
    /// The fewest and the most fragments.
    pub(crate) fragments: (usize, usize),
    /// Limits attributes to scalars and text, in tiles so large that reading their statistics is
    /// worthwhile.
    pub(crate) figures: bool,
}

/// Arrays of all kinds, small enough to compare every cell.
pub(crate) const SMALL: Profile =
    Profile { longest: &[30, 9, 5, 4], fragments: (0, 5), figures: false };
/// Larger arrays, for random queries.
pub(crate) const QUERIED: Profile =
    Profile { longest: &[400, 30, 11], fragments: (1, 4), figures: true };

/// `QUERIED` with exactly one fragment.
pub(crate) const OF_ONE_WRITE: Profile = Profile { fragments: (1, 1), ..QUERIED };

pub(crate) fn random_array(rng: &mut StdRng, profile: Profile) -> TestArray {
    let rank = rng.random_range(1..=profile.longest.len());
    let longest = profile.longest[rank - 1];
    let same = rng.random_bool(0.5).then(|| dimension_code(rng));
    let axes: Vec<Axis> = (0..rank)
        .map(|number| {
            let code = same.unwrap_or_else(|| dimension_code(rng));
            Axis::random(rng, number, code, longest, profile.figures)
        })
        .collect();
    let mut array = TestArray {
        schemas: vec![first_schema(rng, &axes, profile)],
        fragments: vec![],
        vacuums: vec![],
        commit_list: rng.random_bool(0.2),
    };
    if rng.random_bool(0.3) {
        let later = later_schema(rng, &array.schemas[0], &axes, profile);
        array.schemas.push(later);
        if rng.random_bool(0.6) {
            let latest = readding_schema(rng, &array.schemas, profile);
            array.schemas.push(latest);
        }
    }
    let (fewest, most) = profile.fragments;
    for _ in 0..rng.random_range(fewest..=most) {
        let fragment = random_fragment(rng, &array, &axes, profile);
        array.fragments.push(fragment);
    }
    if rng.random_bool(0.15) && !array.fragments.is_empty() {
        let numbers = 0..array.fragments.len();
        let fragments: Vec<usize> = numbers.filter(|_| rng.random_bool(0.4)).collect();
        array.vacuums.push(TestVacuum { times: times(rng), fragments });
    }
    array
}

/// A dimension, and the part of its domain that fragments write to.
struct Axis {
    dimension: TestDimension,
    area: (i128, i128),
}

fn dimension_code(rng: &mut StdRng) -> u8 {
    match rng.random_range(0..4) {
        0 => rng.random_range(DATE_TIMES),
        _ => *INTEGERS.choose(rng).unwrap(),
    }
}

/// The least and greatest coordinates of a dimension that its SQL column can hold.
pub(crate) fn limits(code: u8) -> (i128, i128) {
    match code {
        18..=23 => (-5_000, 5_000),
        24..=26 => (-(1 << 40), 1 << 40),
        _ => {
            let bits = 8 * width(code) as u32;
            let (low, high) = if is_unsigned(code) {
                (0, (1 << bits) - 1)
            } else {
                (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
            };
            // The least count means NaT.
            (low + i128::from(is_temporal(code)), high)
        }
    }
}

impl Axis {
    fn random(rng: &mut StdRng, number: usize, code: u8, longest: i128, large_tiles: bool) -> Self {
        let (least, greatest) = limits(code);
        let len = rng.random_range(1..=longest.min((greatest - least) / 2));
        let first = match rng.random_range(0..4) {
            0 => least,
            1 => greatest - len + 1,
            2 => rng.random_range(-3..4),
            _ => rng.random_range(least..=greatest),
        };
        let first = first.clamp(least, greatest - len + 1);
        let area = (first, first + len - 1);
        let mut beyond = || if rng.random_bool(0.1) { i128::MAX } else { rng.random_range(0..4) };
        let low = area.0.saturating_sub(beyond()).max(least);
        let domain = (low, area.1.saturating_add(beyond()).min(greatest));
        let most = (domain.1 - domain.0 + 1).min(len + 3);
        let least_extent = if large_tiles { (len / 4).clamp(1, most) } else { 1 };
        let extent = rng.random_range(least_extent..=most.min(least_extent + 7));
        let name = format!("d{number}");
        Self { dimension: TestDimension { name, code, domain, extent }, area }
    }

    /// A random range of coordinates, both ends included; `whole_tiles` extends it to whole tiles.
    fn range(&self, rng: &mut StdRng, whole_tiles: bool) -> (i128, i128) {
        let (first, last) = self.area;
        let low = rng.random_range(first..=last);
        let range = (low, rng.random_range(low..=last));
        if !whole_tiles {
            return range;
        }
        let TestDimension { domain, extent, .. } = self.dimension;
        let tile = |at: i128| (at - domain.0) / extent;
        let low = domain.0 + tile(range.0) * extent;
        let high = domain.0 + (tile(range.1) + 1) * extent - 1;
        // Consolidation rounds up to whole tiles, even beyond the domain.
        let beyond = rng.random_bool(0.2) && high <= limits(self.dimension.code).1;
        (low, if beyond { high } else { high.min(domain.1) })
    }
}

pub(crate) fn filters(rng: &mut StdRng) -> Filters {
    *[Filters::None, Filters::Zstd, Filters::ShuffleZstd].choose(rng).unwrap()
}

fn first_schema(rng: &mut StdRng, axes: &[Axis], profile: Profile) -> TestSchema {
    let count = rng.random_range(1..=4);
    let mut attributes: Vec<TestAttribute> =
        (0..count).map(|number| random_attribute(rng, format!("a{number}"), profile)).collect();
    if count == 1 && rng.random_bool(0.3) {
        attributes[0].name = String::new();
    }
    TestSchema {
        time: rng.random_range(10..14),
        dimensions: axes.iter().map(|axis| axis.dimension.clone()).collect(),
        attributes,
        column_major: [rng.random_bool(0.4), rng.random_bool(0.3)],
        current_domain: current_domain(rng, axes, profile),
        offsets: filters(rng),
        validity: filters(rng),
    }
}

/// A random current domain. Fragments may reach beyond it: their statistics then include cells that
/// the table does not show.
fn current_domain(rng: &mut StdRng, axes: &[Axis], profile: Profile) -> Option<Vec<(i128, i128)>> {
    let there = rng.random_bool(if profile.figures { 0.3 } else { 0.15 });
    there.then(|| axes.iter().map(|axis| axis.range(rng, false)).collect())
}

/// The schema after some attributes were dropped, added, or redefined.
fn later_schema(
    rng: &mut StdRng,
    first: &TestSchema,
    axes: &[Axis],
    profile: Profile,
) -> TestSchema {
    let mut later = TestSchema { time: rng.random_range(15..25), ..first.clone() };
    later.attributes.retain(|_| rng.random_bool(0.7));
    if rng.random_bool(0.6) || later.attributes.is_empty() {
        let at = rng.random_range(0..=later.attributes.len());
        later.attributes.insert(at, random_attribute(rng, "added".into(), profile));
    }
    let attribute = later.attributes.choose_mut(rng).unwrap();
    match rng.random_range(0..4) {
        // Cells written under the earlier definition stay visible.
        0 => attribute.nullable = true,
        // Cells of fixed length are invisible to an attribute of variable length.
        1 if attribute.values.is_some() => {
            (attribute.code, attribute.values, attribute.fill) = (UTF8, None, b"-".to_vec());
        }
        _ => {}
    }
    if rng.random_bool(0.3) {
        later.current_domain = current_domain(rng, axes, profile);
    }
    later
}

/// The schema after the first schema's attributes were added again, one perhaps with another type.
fn readding_schema(rng: &mut StdRng, schemas: &[TestSchema], profile: Profile) -> TestSchema {
    let [first, .., later] = schemas else { unreachable!() };
    let time = later.time + rng.random_range(1..6);
    let mut latest = TestSchema { time, attributes: first.attributes.clone(), ..later.clone() };
    if rng.random_bool(0.3) {
        let attribute = latest.attributes.choose_mut(rng).unwrap();
        *attribute = random_attribute(rng, attribute.name.clone(), profile);
    }
    latest
}

pub(crate) fn random_attribute(rng: &mut StdRng, name: String, profile: Profile) -> TestAttribute {
    let (code, values) = match rng.random_range(0..if profile.figures { 9 } else { 14 }) {
        0 => (*[INT64, UINT64].choose(rng).unwrap(), Some(1)), // their sums overflow
        1..3 => (*INTEGERS.choose(rng).unwrap(), Some(1)),
        3..6 => (*[FLOAT32, FLOAT64].choose(rng).unwrap(), Some(1)),
        6 => (rng.random_range(DATE_TIMES.start..TIMES.end), Some(1)),
        7 => (*[ASCII, UTF8, UTF16].choose(rng).unwrap(), None),
        8 => (BOOL, Some(1)),
        9 => (*INTEGERS.choose(rng).unwrap(), Some(rng.random_range(2..4))),
        10 => (*[FLOAT32, UINT16, INT64, 21, 25].choose(rng).unwrap(), None),
        11 => (*[CHAR, BLOB, ASCII].choose(rng).unwrap(), Some(rng.random_range(1..6))),
        12 => (*[FLOAT64, 21, 27].choose(rng).unwrap(), Some(2)),
        _ => (*[CHAR, BLOB].choose(rng).unwrap(), None),
    };
    let nullable = rng.random_bool(if profile.figures { 0.25 } else { 0.4 });
    let mut attribute = TestAttribute {
        name,
        code,
        values,
        nullable,
        fill: vec![],
        fill_valid: nullable && rng.random_bool(0.3),
        filters: filters(rng),
    };
    attribute.fill = match rng.random_range(0..3) {
        0 => values_like(&attribute, || number(code, 3)),
        1 => values_like(&attribute, || number(code, -99)),
        _ => values_like(&attribute, || default_fill(code)),
    };
    attribute
}

fn values_like(attribute: &TestAttribute, mut value: impl FnMut() -> Vec<u8>) -> Vec<u8> {
    (0..attribute.values.unwrap_or(1)).flat_map(|_| value()).collect()
}

/// The bytes of a small number in the type with this code.
pub(crate) fn number(code: u8, number: i32) -> Vec<u8> {
    match code {
        FLOAT32 => (number as f32 / 2.0).to_le_bytes().to_vec(),
        FLOAT64 => (f64::from(number) / 2.0).to_le_bytes().to_vec(),
        BOOL => vec![u8::from(number > 2)],
        ASCII | UTF8 | UTF16 => integer(code, i128::from(b'a') + i128::from(number.rem_euclid(20))),
        _ if is_unsigned(code) => integer(code, i128::from(number.rem_euclid(13))),
        _ => integer(code, number.into()),
    }
}

fn default_fill(code: u8) -> Vec<u8> {
    match code {
        FLOAT32 => f32::NAN.to_le_bytes().to_vec(),
        FLOAT64 => f64::NAN.to_le_bytes().to_vec(),
        _ if is_unsigned(code) => vec![0xff; width(code)],
        _ if is_integer(code) || is_temporal(code) => integer(code, -(1 << (8 * width(code) - 1))),
        _ => vec![0; width(code)],
    }
}

fn times(rng: &mut StdRng) -> (u64, u64) {
    let t1 = rng.random_range(10..30);
    (t1, if rng.random_bool(0.2) { t1 + rng.random_range(0..12) } else { t1 })
}

fn random_fragment(
    rng: &mut StdRng,
    array: &TestArray,
    axes: &[Axis],
    profile: Profile,
) -> TestFragment {
    let mut times = times(rng);
    if profile.figures {
        // Later fragments mostly get later times.
        let later = 6 * array.fragments.len() as u64;
        times = (times.0 / 2 + later, times.1 / 2 + later);
    }
    // A write uses a schema that exists by then.
    let there = array.schemas.iter().skip(1).filter(|schema| schema.time <= times.0).count();
    // Consolidation of older fragments may use a later schema.
    let is_consolidated = times.0 < times.1 && rng.random_bool(0.3);
    let most = if is_consolidated { array.schemas.len() - 1 } else { there };
    let number = rng.random_range(0..=most);
    let schema = &array.schemas[number];
    // The first fragment of most queried arrays covers the whole area.
    let whole_area = match profile.figures && array.fragments.is_empty() {
        true => rng.random_bool(0.9),
        false => rng.random_bool(0.25),
    };
    let whole_tiles = rng.random_bool(0.3);
    let range = |axis: &Axis, rng: &mut StdRng| match whole_area {
        true => axis.area,
        false => axis.range(rng, whole_tiles),
    };
    let ranges: Vec<(i128, i128)> = axes.iter().map(|axis| range(axis, rng)).collect();
    let shape: Vec<u64> = ranges.iter().map(|(low, high)| (high - low + 1) as u64).collect();
    let cells = schema.attributes.iter().map(|attribute| {
        let values = Values::random(rng);
        positions(&shape).iter().map(|at| values.cell(rng, attribute, at)).collect()
    });
    let cells = cells.collect();
    let statistics = match times.0 == times.1 {
        true if rng.random_bool(0.8) => TestStatistics::Right,
        true => TestStatistics::Absent,
        false => TestStatistics::Wrong,
    };
    TestFragment { times, schema: number, ranges, cells, statistics }
}

/// A generator of the values of one attribute in one fragment.
pub(crate) struct Values {
    pattern: Pattern,
    /// The probability that a cell of a nullable attribute is NULL.
    nulls: f64,
    /// The probability of a special value: an extreme of the type, NaN or NaT.
    strange: f64,
}

enum Pattern {
    Constant(i32),
    /// A multiple of the sum of the coordinates, modulo 120.
    Slope(i32),
    Any,
}

impl Values {
    pub(crate) fn random(rng: &mut StdRng) -> Self {
        let pattern = match rng.random_range(0..5) {
            0 => Pattern::Constant(rng.random_range(-6..7)),
            1 | 2 => Pattern::Slope(rng.random_range(-3..4)),
            _ => Pattern::Any,
        };
        let nulls = *[0.0, 0.2, 1.0].choose(rng).unwrap();
        let strange = *[0.0, 0.0, 0.0, 0.02, 0.3].choose(rng).unwrap();
        Self { pattern, nulls, strange }
    }

    /// A cell of an attribute; `at` is its place in the array.
    pub(crate) fn cell(&self, rng: &mut StdRng, attribute: &TestAttribute, at: &[u64]) -> Cell {
        if attribute.nullable && rng.random_bool(self.nulls) {
            return None;
        }
        let code = attribute.code;
        Some(match (attribute.values, code) {
            (Some(_), _) => values_like(attribute, || self.value(rng, code, at)),
            (None, ASCII | UTF8 | UTF16) => text(code, &number(code, self.number(rng, at)), rng),
            (None, _) => {
                (0..rng.random_range(0..4)).flat_map(|_| self.value(rng, code, at)).collect()
            }
        })
    }

    fn value(&self, rng: &mut StdRng, code: u8, at: &[u64]) -> Vec<u8> {
        if rng.random_bool(self.strange) {
            return strange(rng, code);
        }
        number(code, self.number(rng, at))
    }

    fn number(&self, rng: &mut StdRng, at: &[u64]) -> i32 {
        match self.pattern {
            Pattern::Constant(constant) => constant,
            Pattern::Slope(slope) => slope * at.iter().sum::<u64>() as i32 % 120,
            Pattern::Any => rng.random_range(-6..13),
        }
    }
}

/// A text that begins with the letter `first`, sometimes an empty one.
fn text(code: u8, first: &[u8], rng: &mut StdRng) -> Vec<u8> {
    let rest = *["", "", "3", " and more than twelve bytes", "жö"].choose(rng).unwrap();
    let text = format!("{}{rest}", char::from(first[0]));
    match code {
        _ if rng.random_bool(0.1) => vec![],
        UTF16 => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        ASCII => text.replace("жö", "").into_bytes(),
        _ => text.into_bytes(),
    }
}

fn strange(rng: &mut StdRng, code: u8) -> Vec<u8> {
    match code {
        FLOAT32 => {
            let all = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 0.0, 0.1, 1e9];
            all.choose(rng).unwrap().to_le_bytes().to_vec()
        }
        FLOAT64 => {
            let all = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, 0.1, 1e9];
            all.choose(rng).unwrap().to_le_bytes().to_vec()
        }
        _ if is_temporal(code) => integer(code, i64::MIN.into()),
        _ if is_unsigned(code) => vec![0xff; width(code)],
        _ if is_integer(code) => {
            let least = -(1_i128 << (8 * width(code) - 1));
            integer(code, if rng.random_bool(0.5) { least } else { -least - 1 })
        }
        _ => number(code, 5),
    }
}
