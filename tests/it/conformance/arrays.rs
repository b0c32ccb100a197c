//! The arrays that the suite writes in each format.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::logical::{Axis, Cell, Element, Labels, Logical, Values};

/// Small arrays of different kinds.
pub(crate) fn arrays() -> Vec<Logical> {
    vec![stations(), climate(), slopes(), holes(), counts(), runs(), tide(), wide()]
}

fn axis(name: &'static str, labels: Labels, chunk: u64) -> Axis {
    Axis { name, labels, chunk }
}

/// An array of one variable. `cell` returns a cell, given its place in row-major order.
fn array(
    name: &'static str,
    axes: Vec<Axis>,
    element: Element,
    cell: impl FnMut(usize) -> Cell,
) -> Logical {
    let count = axes.iter().map(|axis| axis.labels.len() as usize).product();
    let values = Values { name, element, cells: (0..count).map(cell).collect() };
    Logical { name, axes, values: vec![values] }
}

/// One axis with text labels.
fn stations() -> Logical {
    let names =
        ["Alta", "Bergen", "Bodø", "Hamar", "Kirkenes", "Molde", "Narvik", "Oslo", "Ålesund"];
    let labels = Labels::Text(names.map(str::to_owned).to_vec());
    let mut rng = StdRng::seed_from_u64(1);
    array("stations", vec![axis("station", labels, 4)], Element::F64, |_| {
        Cell::Number(rng.random_range(-50..50))
    })
}

/// Three axes with times, ascending floats and text. Their lengths are not multiples of their chunks.
fn climate() -> Logical {
    let hours = Labels::Hours((473_352..473_352 + 17).collect());
    let heights = Labels::Floats(vec![-1.5, 0.0, 0.25, 2.0, 10.5, 100.0, 1e6]);
    let sites = Labels::Text(["b", "a", "ж", "d3", "e 5"].map(str::to_owned).to_vec());
    let axes = vec![axis("time", hours, 5), axis("height", heights, 3), axis("site", sites, 2)];
    let mut rng = StdRng::seed_from_u64(2);
    array("climate", axes, Element::F32, |_| match rng.random_range(0..10) {
        0 => Cell::Nan,
        1 => Cell::Fill,
        _ => Cell::Number(rng.random_range(-300..300)),
    })
}

/// Labels of single precision: one axis ascends, the other is in no order.
fn slopes() -> Logical {
    let slopes = Labels::Singles(vec![-1.5, -0.25, 0.0, 0.75, 2.0, 10.5, 99.75]);
    let depths = Labels::Singles(vec![8.25, 0.5, 1e6, 2.0]);
    let axes = vec![axis("slope", slopes, 3), axis("depth", depths, 2)];
    let mut rng = StdRng::seed_from_u64(8);
    array("slopes", axes, Element::F32, |_| match rng.random_bool(0.1) {
        true => Cell::Nan,
        false => Cell::Number(rng.random_range(-40..40)),
    })
}

/// Some chunks are all fill, so a format may leave them out.
fn holes() -> Logical {
    let rows = Labels::Integers((-3..8).collect());
    let axes = vec![axis("row", rows, 4), axis("column", Labels::Index(10), 3)];
    let mut rng = StdRng::seed_from_u64(3);
    let array =
        array("holes", axes, Element::F64, |place| match (place / 10 / 4, place % 10 / 3) {
            (0, 1) | (1, 1) | (1, 3) | (2, 0) => Cell::Fill,
            _ if rng.random_bool(0.2) => Cell::Nan,
            _ => Cell::Number(rng.random_range(-20..20)),
        });
    assert_eq!(array.chunks().iter().filter(|chunk| array.is_all_fill(chunk)).count(), 4);
    array
}

/// Integers that rise from chunk to chunk, along labels without gaps.
fn counts() -> Logical {
    let axes = vec![
        axis("year", Labels::Integers((1990..2014).collect()), 4),
        axis("day", Labels::Integers((1..=12).collect()), 6),
    ];
    array("counts", axes, Element::I64, |place| {
        let (year, day) = (place / 12, place % 12);
        Cell::Number((1000 * (year / 4) + 100 * (day / 6) + place % 7) as i32)
    })
}

/// Integers with fill values. One dimension has labels with gaps, the other has no labels.
fn runs() -> Logical {
    let times = Labels::Hours([5, 6, 9, 30, 31, 50, 77, 78].map(|hour| 400_000 + hour).to_vec());
    let axes = vec![axis("valid", times, 3), axis("member", Labels::Index(7), 7)];
    let mut rng = StdRng::seed_from_u64(5);
    array("runs", axes, Element::I32, |_| match rng.random_bool(0.15) {
        true => Cell::Fill,
        false => Cell::Number(rng.random_range(-9..9)),
    })
}

/// Many labels: a format that chooses its chunks itself has several of them here.
fn tide() -> Logical {
    let hours = Labels::Hours((300_000..301_100).collect());
    let gauges = Labels::Text(["Brest", "Vigo"].map(str::to_owned).to_vec());
    let axes = vec![axis("time", hours, 512), axis("gauge", gauges, 1)];
    let mut rng = StdRng::seed_from_u64(7);
    array("tide", axes, Element::F64, |_| match rng.random_bool(0.05) {
        true => Cell::Nan,
        false => Cell::Number(rng.random_range(-500..500)),
    })
}

/// Two variables over the same dimensions.
fn wide() -> Logical {
    let hours = Labels::Hours((1000..1020).collect());
    let axes = vec![axis("time", hours, 6), axis("level", Labels::Index(3), 2)];
    let mut rng = StdRng::seed_from_u64(6);
    let mut of = |name, element: Element| {
        let cell = |_| match rng.random_range(0..8) {
            0 => Cell::Fill,
            1 if element.is_float() => Cell::Nan,
            _ => Cell::Number(rng.random_range(-100..100)),
        };
        Values { name, element, cells: (0..60).map(cell).collect() }
    };
    let values = vec![of("pressure", Element::F32), of("quality", Element::I32)];
    Logical { name: "wide", axes, values }
}
