//! The arrays of `tests/slt/formats`. `data.sql` in that folder has the same numbers for other engines.

use crate::conformance::logical::{Axis, Cell, Element, Labels, Logical, Values};

/// The hour of 2024-02-28 since 1970.
const FIRST: i64 = 474_744;

/// Labels are hours and integers without gaps, which every format holds; those of `towns` are not.
pub(super) fn arrays() -> Vec<Logical> {
    vec![air(), rain(), normal(), wind(), towns()]
}

fn axis(name: &'static str, labels: Labels, chunk: u64) -> Axis {
    Axis { name, labels, chunk }
}

fn hours(first: i64, count: i64) -> Labels {
    Labels::Hours((FIRST + first..FIRST + first + count).collect())
}

fn integers(labels: std::ops::Range<i64>) -> Labels {
    Labels::Integers(labels.collect())
}

/// The cells of an array of two axes, by their indices.
fn cells(axes: &[Axis], cell: impl Fn(i32, i32) -> Cell) -> Vec<Cell> {
    let [rows, columns] = [0, 1].map(|axis| axes[axis].labels.len() as i32);
    (0..rows)
        .flat_map(|row| (0..columns).map(move |column| (row, column)))
        .map(|(row, column)| cell(row, column))
        .collect()
}

fn array(
    name: &'static str,
    axes: Vec<Axis>,
    element: Element,
    cell: impl Fn(i32, i32) -> Cell,
) -> Logical {
    let cells = cells(&axes, cell);
    Logical { name, axes, values: vec![Values { name: "value", element, cells }] }
}

pub(super) fn air() -> Logical {
    let axes = vec![axis("time", hours(0, 72), 10), axis("level", integers(1..4), 2)];
    array("air", axes, Element::F32, |h, level| {
        let l = level + 1;
        match ((3 * h + l) % 17, (h + l) % 19) {
            (0, _) => Cell::Nan,
            (_, 0) => Cell::Fill,
            _ => Cell::Number((7 * h + 5 * l * l) % 23 - 8),
        }
    })
}

fn rain() -> Logical {
    let axes = vec![axis("time", hours(24, 48), 7), axis("level", integers(2..5), 3)];
    array("rain", axes, Element::I32, |h, level| {
        let l = level + 2;
        if (h + 2 * l) % 13 == 0 { Cell::Fill } else { Cell::Number(5 * h * l % 12) }
    })
}

fn normal() -> Logical {
    let axes = vec![axis("hour", integers(0..24), 24), axis("level", integers(1..4), 1)];
    array("normal", axes, Element::F64, |h, level| Cell::Number((3 * h + 7 * (level + 1)) % 19 - 5))
}

fn wind() -> Logical {
    let axes = vec![axis("time", hours(12, 24), 5), axis("member", Labels::Index(4), 3)];
    let speed = cells(&axes, |h, m| {
        if (h + 2 * m) % 10 == 7 { Cell::Nan } else { Cell::Number((11 * h + 3 * m) % 29) }
    });
    let gust = cells(&axes, |h, m| {
        if (h + m) % 11 == 3 { Cell::Fill } else { Cell::Number((13 * h + m * m) % 31) }
    });
    let values = vec![
        Values { name: "speed", element: Element::F64, cells: speed },
        Values { name: "gust", element: Element::I32, cells: gust },
    ];
    Logical { name: "wind", axes, values }
}

fn towns() -> Logical {
    let towns = ["Alta", "Bergen", "Oslo", "Tromso"].map(str::to_owned).to_vec();
    let heights = Labels::Floats(vec![0.5, 2.0, 10.0]);
    let axes = vec![axis("town", Labels::Text(towns), 3), axis("height", heights, 2)];
    array("towns", axes, Element::I64, |t, h| {
        if (t, h) == (2, 1) { Cell::Fill } else { Cell::Number(10 * t + h) }
    })
}
