//! Tests of other variables, which leave out cells.

use super::*;
use crate::reduce::keep::Keep;

/// Another variable of a case, and the values of it that pass.
pub(super) struct Other {
    column: Column,
    cells: Vec<Option<i64>>,
    range: ValueRange,
}

impl Other {
    pub(super) fn random(rng: &mut StdRng, case: &Case) -> Self {
        let column = Column::random(rng);
        let nulls = [0.0, 0.3][rng.random_range(0..2)];
        let cell = |_| (!rng.random_bool(nulls)).then(|| rng.random_range(0..20));
        let cells = case.cells.iter().map(cell).collect();
        let range =
            ValueRange { least: random_limit(rng, &column), greatest: random_limit(rng, &column) };
        Self { column, cells, range }
    }

    pub(super) fn test(&self) -> CellTest {
        CellTest::of_forms(&[&self.column.column()], &self.range).unwrap()
    }

    pub(super) fn tile(&self, numbers: &[u64]) -> Tile {
        let cells: Vec<_> = numbers.iter().map(|cell| self.cells[*cell as usize]).collect();
        self.column.tile(&cells)
    }

    /// Whether a cell of the case passes.
    pub(super) fn passes(&self, number: u64) -> bool {
        let value = self.cells[number as usize].map(|stored| self.column.value(stored));
        value.is_some_and(|value| passes(value, &self.range))
    }
}

/// Reduces cells of type `element`, each of which counts, where another variable is 1. Returns the count, the sum, the extremes and the
/// spread per group.
fn reduced(
    element: ElementType,
    bytes: Vec<u8>,
    passing: &[u8],
    groups: AxisGroups,
    requested: RequestedStats,
) -> GroupStats {
    let options = ReadOptions { nan_as_null: false, ..ReadOptions::default() };
    let column = NumberColumn::plain(element, None, false, &options);
    let len = passing.len() as u64;
    let grid = ChunkGrid::new(&[len], &[len]).unwrap();
    let plan = ScanPlan::new(grid.clone(), ScanRequest::all(&grid)).unwrap();
    let table = GroupTable::new(&plan, 0, plan.selection().axes(), &[groups]).unwrap();
    let one = Some(Limit { number: Number::Integer(1), inclusive: true });
    let range = ValueRange { least: one, greatest: one };
    let other = NumberColumn::plain(ElementType::U8, None, false, &options);
    let mut test = CellTest::of_forms(&[&other], &range).unwrap();
    let member = RequestedMember { requested, tests: vec![0], ..RequestedMember::default() };
    let mut reducer = reducer(&column, &[member], table.len()).unwrap();
    let tile = Tile::fixed(bytes.into(), element.size() as usize);
    let tested = Tile::fixed(passing.to_vec().into(), 1);
    let task = ChunkTask::whole(&grid, 0);
    let chunk = GroupedChunk::new(&table, &grid, &task);
    let tests = [test.of_tile(&tested, true).unwrap()];
    reducer.add(chunk, &tile, false, &tests).unwrap();
    reducer.finish().unwrap().remove(0)
}

/// No element of such a type stands for NULL, so cells with the element that replaces others are added apart.
#[test]
fn cells_are_left_out_where_every_element_counts() {
    let mut rng = StdRng::seed_from_u64(44);
    let all = RequestedStats {
        sum: true,
        min: true,
        max: true,
        spread: true,
        ..RequestedStats::default()
    };
    for len in [1, 5, 600] {
        for groups in [
            AxisGroups::One,
            AxisGroups::Each,
            AxisGroups::Numbered {
                numbers: (0..len).map(|at| (at / 3 + at) % len.min(2)).collect(),
                groups: len.min(2),
            },
        ] {
            let cells: Vec<u8> =
                (0..len).map(|_| [0, 1, 254, 255, 77][rng.random_range(0..5)]).collect();
            let passing: Vec<u8> = (0..len).map(|_| rng.random_range(0..3)).collect();
            let place = |at: usize| match &groups {
                AxisGroups::One => 0,
                AxisGroups::Each => at,
                AxisGroups::Numbered { numbers, .. } => numbers[at] as usize,
            };
            let wide: Vec<u8> = cells
                .iter()
                .flat_map(|it| (i64::from(*it) - 255 + i64::MAX).to_le_bytes())
                .collect();
            let floats: Vec<u8> = cells
                .iter()
                .flat_map(|it| if *it == 255 { f64::NAN } else { f64::from(*it) }.to_le_bytes())
                .collect();
            let bytes = reduced(ElementType::U8, cells.clone(), &passing, groups.clone(), all);
            let longs = RequestedStats { sum: false, wide_sum: true, ..all };
            let longs = reduced(ElementType::I64, wide, &passing, groups.clone(), longs);
            let sums = RequestedStats { sum: true, ..RequestedStats::default() };
            let floats = reduced(ElementType::F64, floats, &passing, groups.clone(), sums);
            for group in 0..bytes.counts.len() {
                let values: Vec<u8> = (0..len as usize)
                    .filter(|at| passing[*at] == 1 && place(*at) == group)
                    .map(|at| cells[at])
                    .collect();
                let expected = values.len() as u64;
                assert_eq!(
                    [&bytes, &longs, &floats].map(|stats| stats.counts[group]),
                    [expected; 3]
                );
                let sum: f64 = values.iter().map(|it| f64::from(*it)).sum();
                assert_eq!(bytes.sums.as_ref().unwrap()[group], sum);
                let of_floats = floats.sums.as_ref().unwrap()[group];
                assert!(if values.contains(&255) { of_floats.is_nan() } else { of_floats == sum });
                let number = |array: &Option<ArrayRef>| {
                    let numbers = cast(array.as_ref().unwrap(), &DataType::Int64).unwrap();
                    numbers.as_primitive::<arrow::datatypes::Int64Type>().value(group)
                };
                let long = |value: u8| i64::from(value) - 255 + i64::MAX;
                let total = values.iter().fold(0_i64, |sum, it| sum.wrapping_add(long(*it)));
                assert_eq!(number(&longs.wide_sums), total);
                if let (Some(least), Some(greatest)) = (values.iter().min(), values.iter().max()) {
                    assert_eq!(number(&bytes.mins), i64::from(*least));
                    assert_eq!(number(&bytes.maxs), i64::from(*greatest));
                    assert_eq!(number(&longs.mins), long(*least));
                    assert_eq!(number(&longs.maxs), long(*greatest));
                    let mean = sum / values.len() as f64;
                    let m2: f64 = values.iter().map(|it| (f64::from(*it) - mean).powi(2)).sum();
                    let spread = bytes.spreads.as_ref().unwrap()[group];
                    assert!((spread.m2 - m2).abs() < 1e-6, "{spread:?} {m2}");
                }
            }
        }
    }
}

/// The element that replaces a cell fails, whatever the test.
#[test]
fn an_element_fails_each_test() {
    let at = |number: f64| Some(Limit { number: Number::Float(number), inclusive: true });
    let ranges = [
        ValueRange::default(),
        ValueRange { least: at(3.0), greatest: None },
        ValueRange { least: None, greatest: at(3.0) },
        ValueRange { least: at(9.0), greatest: at(3.0) },
    ];
    for range in ranges {
        for fill in [None, Some(7_u8), Some(255)] {
            let keep = Keep::new(false, fill, &range);
            let (left, failing, counts_apart) = keep.leaving_out();
            assert!(!left.keeps(failing));
            assert_eq!(counts_apart, matches!(keep, Keep::All), "{keep:?}");
            let others = (0..=255).filter(|cell| *cell != failing);
            others.for_each(|cell| assert_eq!(left.keeps(cell), keep.keeps(cell), "{keep:?}"));
        }
        for (nan_is_null, fill) in [(true, None), (false, None), (false, Some(7.0_f64))] {
            let keep = Keep::new(nan_is_null, fill, &range);
            let (left, failing, counts_apart) = keep.leaving_out();
            assert!(!left.keeps(failing));
            assert_eq!(counts_apart, keep.keeps(failing), "{keep:?}");
            for cell in [f64::INFINITY, f64::NEG_INFINITY, 0.0, 3.0, 7.0, -f64::NAN] {
                assert_eq!(left.keeps(cell), keep.keeps(cell), "{keep:?} {cell}");
            }
        }
    }
}
