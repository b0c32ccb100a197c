//! The statistics of tiles, compared with those that TileDB writes.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, Float64Array, Int16Array, Int32Array, StringArray, TimestampSecondArray,
};
use gridfusion_core::write::{ArrayWriter, NewChunk};

use super::{Sample, small};
use crate::write::{TileDbEncoding, TileDbWriter};

#[test]
fn statistics_are_those_of_tiledb() {
    // TileDB 2.30 wrote these for the same cells in tiles of 2: least and greatest value, sum, NULLs.
    let of = |cells: ArrayRef| {
        let labels: ArrayRef = Arc::new(Int32Array::from_iter_values(0..cells.len() as i32));
        let array = small(labels, &cells, None).unwrap();
        Sample { array, encoding: TileDbEncoding::default(), cells: vec![cells] }
    };
    let text = |number: i128, size: usize| number.to_le_bytes()[..size].to_vec();
    let stored = |sample: Sample| {
        let mut writer = TileDbWriter::try_new(sample.array, sample.encoding).unwrap();
        for at in 0..writer.array().grid().chunks() {
            let range = writer.array().ranges_in(&[at])[0].clone();
            let len = (range.end - range.start) as usize;
            let cells = sample.cells[0].slice(range.start as usize, len);
            writer
                .write_many(
                    vec![NewChunk { variable: 0, coordinates: vec![at], cells, given: None }],
                    1,
                )
                .unwrap();
        }
        let field = &writer.tiles().fragment.fields[0];
        [4, 5, 6, 7].map(|column| field.block(column))
    };
    let words = |words: &[u64]| words.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<u8>>();
    let bounds = |size: usize, bounds: &[i128]| {
        let values: Vec<u8> = bounds.iter().flat_map(|it| text(*it, size)).collect();
        [words(&[values.len() as u64, 0]), values].concat()
    };
    let found = stored(of(Arc::new(Int16Array::from(vec![1, 2, 3, 4, 5]))));
    assert_eq!(found[0], bounds(2, &[1, 3, 5]));
    assert_eq!(found[1], bounds(2, &[2, 4, 5]));
    assert_eq!((&found[2], &found[3]), (&words(&[3, 3, 7, 5]), &words(&[0])));
    let times = TimestampSecondArray::from(vec![3, 4, 5, 6, 7]);
    let found = stored(of(Arc::new(times)));
    assert_eq!(found[0], bounds(8, &[3, 5, 7]));
    assert_eq!(found[2], words(&[3, 7, 11, 7]));
    let nulls = vec![None, Some(1), Some(2), None, Some(4)];
    let found = stored(of(Arc::new(Int32Array::from(nulls))));
    assert_eq!((&found[0], &found[1]), (&bounds(4, &[1, 2, 4]), &bounds(4, &[1, 2, 4])));
    assert_eq!((&found[2], &found[3]), (&words(&[3, 1, 2, 4]), &words(&[3, 1, 1, 0])));
    let found = stored(of(Arc::new(StringArray::from(vec!["a", "b", "c"]))));
    assert_eq!((&found[0], &found[2]), (&words(&[0, 0]), &words(&[0])));
    let nan = Float64Array::from(vec![f64::NAN, f64::NAN, 1.0]);
    let found = stored(of(Arc::new(nan)));
    let bits = f64::NAN.to_bits();
    assert_eq!(found[0], [words(&[16, 0]), words(&[bits, 1.0_f64.to_bits()])].concat());
    assert_eq!(found[2], words(&[2, bits, 1.0_f64.to_bits()]));
}
