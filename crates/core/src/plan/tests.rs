//! Tests that compare random plans with naive lists of their cells.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::{ChunkMask, ScanPlan, ScanRequest, touched_chunks};
use crate::grid::{AxisSelection, ChunkGrid, ChunkTask, for_each_run, unravel};

/// The tasks hold each selected cell that the masks keep exactly once, in any number of partitions. If
/// there are several partitions, none is empty.
#[test]
fn tasks_cover_the_selection() {
    let mut rng = StdRng::seed_from_u64(3);
    for _ in 0..2_000 {
        let rank = rng.random_range(1..=3);
        let shape: Vec<u64> = (0..rank).map(|_| rng.random_range(0..8)).collect();
        let chunk: Vec<u64> = (0..rank).map(|_| rng.random_range(1..5)).collect();
        let grid = ChunkGrid::new(&shape, &chunk).unwrap();
        let mut request = ScanRequest::all(&grid);
        for (axis, &len) in shape.iter().enumerate() {
            let mask: Vec<bool> = (0..len).map(|_| rng.random_bool(0.6)).collect();
            request.selection.restrict(axis, &AxisSelection::from_mask(&mask));
        }
        let touched: Vec<Vec<u64>> =
            (0..rank).map(|axis| touched_chunks(&grid, &request.selection, axis)).collect();
        if rank > 1 && rng.random_bool(0.5) {
            let axes = vec![rank - 1, 0];
            let size = touched[rank - 1].len() * touched[0].len();
            let keep = (0..size).map(|_| rng.random_bool(0.7)).collect();
            request.masks.push(ChunkMask { axes, keep, by_zones: rng.random_bool(0.5) });
        }
        request.partitions = rng.random_range(1..6);
        let plan = ScanPlan::new(grid.clone(), request.clone()).unwrap();

        let kept = |cell: &[u64]| {
            request.masks.iter().all(|mask| {
                let place = mask.axes.iter().fold(0, |place, &axis| {
                    let chunk = grid.chunk_of(axis, cell[axis]);
                    let at = touched[axis].binary_search(&chunk).unwrap();
                    place * touched[axis].len() + at
                });
                mask.keep[place]
            })
        };
        let mut expected: Vec<Vec<u64>> = (0..grid.cells())
            .map(|cell| unravel(cell, &shape))
            .filter(|cell| {
                cell.iter().zip(request.selection.axes()).all(|(&i, axis)| axis.contains(i))
            })
            .filter(|cell| kept(cell))
            .collect();
        let mut found = Vec::new();
        for partition in 0..plan.partition_count() {
            let before = found.len();
            for task in plan.tasks(partition).map(|task| plan.task(task)) {
                assert_eq!(grid.chunk_number(&task.coordinates), Some(task.chunk_number));
                found.extend(cells_of(&grid, &task));
            }
            assert_eq!(plan.rows(Some(partition)), (found.len() - before) as u64);
            assert!(plan.partition_count() == 1 || !plan.tasks(partition).is_empty());
        }
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
        assert_eq!(plan.rows(None), expected.len() as u64);
        assert!(plan.partition_count() <= request.partitions);
    }
}

fn cells_of(grid: &ChunkGrid, task: &ChunkTask) -> Vec<Vec<u64>> {
    let extents: Vec<u64> = task.selection.iter().map(AxisSelection::len).collect();
    let inside =
        |cell: &Vec<u64>| cell.iter().zip(&task.selection).all(|(&i, axis)| axis.contains(i));
    let global = |cell: Vec<u64>| -> Vec<u64> {
        let starts =
            task.coordinates.iter().enumerate().map(|(axis, &c)| grid.axis_range(axis, c).start);
        cell.iter().zip(starts).map(|(i, start)| i + start).collect()
    };
    (0..task.cells()).map(|cell| unravel(cell, &extents)).filter(inside).map(global).collect()
}

#[test]
fn partitions_are_balanced() {
    let grid = ChunkGrid::new(&[1000], &[1]).unwrap();
    let plan =
        ScanPlan::new(grid.clone(), ScanRequest { partitions: 4, ..ScanRequest::all(&grid) })
            .unwrap();
    assert_eq!((0..4).map(|p| plan.rows(Some(p))).collect::<Vec<_>>(), [250; 4]);
}

#[test]
fn a_limit_drops_chunks() {
    let grid = ChunkGrid::new(&[100], &[10]).unwrap();
    let plan =
        ScanPlan::new(grid.clone(), ScanRequest { partitions: 4, ..ScanRequest::all(&grid) })
            .unwrap();
    let limited = plan.with_limit(Some(15));
    assert_eq!((limited.chunks(), limited.partition_count()), (2, 2));
    assert_eq!(limited.with_limit(None).chunks(), 10);
    assert_eq!(plan.with_limit(Some(0)).chunks(), 0);
    assert!(plan.is_selection() && !limited.is_selection());
}

/// Rows are in order of the leading axes that the plan promises, and not in order of one more axis.
#[test]
fn rows_are_in_the_order_that_is_promised() {
    let mut rng = StdRng::seed_from_u64(15);
    let (mut whole, mut part, mut none) = (0, 0, 0);
    for _ in 0..3_000 {
        let rank = rng.random_range(1..=4);
        let shape: Vec<u64> = (0..rank).map(|_| rng.random_range(1..7)).collect();
        let chunk: Vec<u64> = (0..rank).map(|_| rng.random_range(1..7)).collect();
        let grid = ChunkGrid::new(&shape, &chunk).unwrap();
        let mut request = ScanRequest { partitions: 2, ..ScanRequest::all(&grid) };
        for (axis, &len) in shape.iter().enumerate() {
            let mask: Vec<bool> = (0..len).map(|_| rng.random_bool(0.7)).collect();
            request.selection.restrict(axis, &AxisSelection::from_mask(&mask));
        }
        let plan = ScanPlan::new(grid, request).unwrap();
        let ordered = plan.order().len();
        let mut further = true;
        for partition in 0..plan.partition_count() {
            let mut indices: Vec<Vec<u64>> = Vec::new();
            for task in plan.tasks(partition).map(|task| plan.task(task)) {
                let extents: Vec<u64> = task.selection.iter().map(AxisSelection::len).collect();
                let start =
                    |axis: usize| plan.grid().axis_range(axis, task.coordinates[axis]).start;
                for_each_run(&task.selection, |run| {
                    indices.extend(run.map(|cell| {
                        let at = unravel(cell, &extents);
                        (0..rank).map(|axis| start(axis) + at[axis]).collect::<Vec<u64>>()
                    }));
                });
            }
            assert!(indices.is_sorted_by_key(|index| index[..ordered].to_vec()));
            further &= indices.is_sorted_by_key(|index| index[..rank.min(ordered + 1)].to_vec());
        }
        match ordered {
            0 => none += 1,
            _ if ordered == rank => whole += 1,
            _ => part += 1,
        }
        // An order that is not promised must not hold, unless its break lies between two partitions.
        let rows = plan.rows(None);
        assert!(ordered == rank || !further || plan.partition_count() > 1 || rows <= 1);
    }
    assert!(whole > 200 && part > 50 && none > 200, "{whole} {part} {none}");
}
