//! Layers of all kinds over each other, compared cell by cell.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::super::absent::leave_out_absent;
use super::*;
use crate::format::{ByteOrder, Codec, Location, StorageOrder};
use crate::grid::{AxisSelection, ravel, unravel};

/// Returns a payload of `bytes`, raw or compressed, and adds its stored bytes to `fetched`.
fn payload(bytes: Vec<u8>, raw: bool, fetched: &mut Vec<Bytes>) -> Payload {
    let raw_len = bytes.len() as u64;
    let (codec, stored) = match raw {
        true => (Codec::Raw, bytes),
        false => (Codec::Zstd, zstd::encode_all(&bytes[..], 1).unwrap()),
    };
    let at = Location::new("tile", 0..stored.len() as u64);
    fetched.push(stored.into());
    Payload::new(at, raw_len, codec)
}

/// Random layers of a random chunk, and the cells expected in its tile.
struct Case {
    stored: StoredChunk,
    fetched: Vec<Bytes>,
    extents: Vec<u64>,
    format: CellFormat,
    /// `None` for NULL.
    cells: Vec<Option<Vec<u8>>>,
}

fn case(rng: &mut StdRng) -> Case {
    let rank = rng.random_range(1..=3);
    let extents: Vec<u64> = (0..rank).map(|_| rng.random_range(1..6)).collect();
    let width = rng.random_bool(0.6).then(|| rng.random_range(1..=8));
    let fill = b"filling."[..width.unwrap_or(3)].to_vec();
    let format = CellFormat {
        width,
        nullable: rng.random(),
        fill: fill.clone(),
        fill_is_valid: rng.random(),
    };
    let unwritten = (!format.nullable || format.fill_is_valid).then_some(fill);
    let cells = vec![unwritten; extents.iter().product::<u64>() as usize];
    let stored = StoredChunk::default();
    let mut case = Case { stored, fetched: vec![], extents, format, cells };
    for _ in 0..rng.random_range(0..4) {
        case.add_layer(rng);
    }
    case
}

impl Case {
    fn add_layer(&mut self, rng: &mut StdRng) {
        let placement = rng.random_bool(0.8).then(|| placement(&self.extents, rng));
        let shape = placement.as_ref().map_or(&self.extents, |placement| &placement.tile_shape);
        let count = shape.iter().product::<u64>() as usize;
        let len = self.format.width;
        let value = |rng: &mut StdRng| -> Vec<u8> {
            let len = len.unwrap_or_else(|| rng.random_range(0..4));
            (0..len).map(|_| rng.random()).collect()
        };
        let values: Vec<Vec<u8>> = (0..count).map(|_| value(rng)).collect();
        let valid: Vec<u8> = (0..count).map(|_| rng.random_range(0..2)).collect();
        // A layer without validity was written when no cell could be NULL.
        let validity = (self.format.nullable && rng.random()).then_some(&valid);

        let everywhere: Vec<_> = self.extents.iter().map(|&len| 0..len).collect();
        let region = placement.as_ref().map_or(&everywhere, |placement| &placement.region);
        for (position, cell) in self.cells.iter_mut().enumerate() {
            let at = unravel(position as u64, &self.extents);
            if region.iter().zip(&at).all(|(region, at)| region.contains(at)) {
                let place = place(placement.as_ref(), &at, &self.extents);
                let is_null = validity.is_some_and(|valid| valid[place] == 0);
                *cell = (!is_null).then(|| values[place].clone());
            }
        }

        let (raw, fetched) = (rng.random(), &mut self.fetched);
        let content: Vec<u8> = values.concat();
        let starts = values.iter().scan(0, |end, value| {
            let start = *end as u64;
            *end += value.len();
            Some(start.to_le_bytes())
        });
        let (values, content) = match self.format.width {
            Some(_) => (payload(content, raw, fetched), None),
            None => {
                let starts = payload(starts.flatten().collect(), raw, fetched);
                (starts, Some(payload(content, raw, fetched)))
            }
        };
        let validity = validity.map(|valid| payload(valid.clone(), raw, fetched));
        let may_be_absent = rng.random_bool(0.3);
        self.stored.layers.push(Layer { placement, values, content, validity, may_be_absent });
    }

    fn decode(&self, spare: Vec<u8>) -> Result<Tile> {
        let mut fetched = self.fetched.iter().cloned();
        let (extents, format) = (&self.extents, &self.format);
        let scratch = &mut Scratch::default();
        decode(&self.stored, &mut fetched, extents, format, spare, scratch)
            .map_err(|failed| failed.error)
    }
}

/// Returns the position in the stored tile of the chunk's cell at `at`.
fn place(placement: Option<&Placement>, at: &[u64], extents: &[u64]) -> usize {
    let Some(Placement { region, tile_shape, origin, order }) = placement else {
        return ravel(at, extents) as usize;
    };
    let moved = at.iter().zip(region).zip(origin);
    let mut at: Vec<u64> = moved.map(|((at, region), first)| at - region.start + first).collect();
    let mut shape = tile_shape.clone();
    if *order == StorageOrder::ColumnMajor {
        at.reverse();
        shape.reverse();
    }
    ravel(&at, &shape) as usize
}

/// Returns a placement of random cells of a chunk, anywhere in a tile that is at least as large.
fn placement(extents: &[u64], rng: &mut StdRng) -> Placement {
    let mut region = |&len: &u64| {
        let start = rng.random_range(0..len);
        start..rng.random_range(start + 1..=len)
    };
    let region: Vec<Range<u64>> = extents.iter().map(&mut region).collect();
    let origin: Vec<u64> = extents.iter().map(|_| rng.random_range(0..9)).collect();
    let mut shape = |(cells, origin): (&Range<u64>, &u64)| {
        cells.end - cells.start + origin + rng.random_range(0..3)
    };
    let tile_shape = region.iter().zip(&origin).map(&mut shape).collect();
    let order = if rng.random() { StorageOrder::RowMajor } else { StorageOrder::ColumnMajor };
    Placement { region, tile_shape, origin, order }
}

fn cells(tile: &Tile, case: &Case) -> Vec<Option<Vec<u8>>> {
    let all: Vec<_> = case.extents.iter().map(|&len| AxisSelection::all(len)).collect();
    let values: Vec<Vec<u8>> = match case.format.width {
        Some(width) => tile.bytes().chunks_exact(width).map(<[u8]>::to_vec).collect(),
        None => {
            let (spans, content) = tile.spans(&all).unwrap();
            let value = |span: &Range<u64>| &content[span.start as usize..span.end as usize];
            spans.iter().map(|span| value(span).to_vec()).collect()
        }
    };
    let is_valid = |at: usize| tile.validity().is_none_or(|validity| validity[at] != 0);
    values.into_iter().enumerate().map(|(at, value)| is_valid(at).then_some(value)).collect()
}

#[test]
fn each_cell_is_the_newest_layers_that_has_it() {
    let mut rng = StdRng::seed_from_u64(1);
    for _ in 0..2_000 {
        let case = case(&mut rng);
        let spare = vec![0xAA; rng.random_range(0..2_000)];
        let tile = case.decode(spare).unwrap();
        assert_eq!(cells(&tile, &case), case.cells, "{:?}", case.stored);
    }
}

#[test]
fn layers_that_do_not_fit_are_errors() {
    let mut rng = StdRng::seed_from_u64(2);
    let mut damaged = 0;
    while damaged < 200 {
        let mut case = case(&mut rng);
        let Some(layer) = case.stored.layers.last_mut() else { continue };
        // Cut off a byte of the cells, or an offset of values of any length.
        let shorter = layer.values.raw_len - [1, 8][usize::from(layer.content.is_some())];
        let at = case.fetched.len() - layer.payloads().count();
        layer.values.codec = Codec::Raw;
        layer.values.raw_len = shorter;
        case.fetched[at] = Bytes::from(vec![0; shorter as usize]);
        let uses_last_cell = layer.placement.is_none() || layer.content.is_some();
        let decoded = case.decode(vec![]);
        assert!(decoded.is_err() || !uses_last_cell, "{:?}", case.stored);
        damaged += usize::from(uses_last_cell);
    }
}

#[test]
fn memory_is_one_layer_and_the_tile() {
    let extents = vec![16, 1024];
    let format = CellFormat { fill: vec![0; 4], ..CellFormat::fixed(4) };
    let (mut fetched, mut layers) = (vec![], vec![]);
    for row in 0..16 {
        let values = payload(vec![row as u8; 1 << 16], false, &mut fetched);
        let placement = Placement {
            region: vec![row..row + 1, 0..1024],
            tile_shape: extents.clone(),
            origin: vec![row, 0],
            order: StorageOrder::RowMajor,
        };
        layers.push(Layer { placement: Some(placement), ..Layer::whole(values) });
    }
    let stored = StoredChunk::new(layers);
    assert_eq!(bytes_decoded(&stored, 1 << 14, &format), 2 << 16);
    let nullable = CellFormat { nullable: true, ..format.clone() };
    assert_eq!(bytes_decoded(&stored, 1 << 14, &nullable), (2 << 16) + (1 << 14));
    let scratch = &mut Scratch::default();
    let tile =
        decode(&stored, &mut fetched.into_iter(), &extents, &format, vec![], scratch).unwrap();
    let expected: Vec<u8> = (0..1 << 16).map(|at| (at >> 12) as u8).collect();
    assert_eq!(tile.bytes(), expected);
}

#[test]
fn values_of_any_length_are_accounted_with_their_offsets() {
    let mut fetched = vec![];
    let layer = |fetched: &mut Vec<Bytes>| Layer {
        content: Some(payload(vec![b'a'; 100], false, fetched)),
        ..Layer::whole(payload(vec![0; 80], false, fetched))
    };
    let format = CellFormat { width: None, ..CellFormat::fixed(1) };
    let whole = StoredChunk::new(vec![layer(&mut fetched)]);
    // Payloads of 180 bytes; per cell 16 bytes of spans, and 8 of offsets as numbers.
    assert_eq!(bytes_decoded(&whole, 10, &format), 180 + 10 * (16 + 8));
    let placement = Placement {
        region: std::iter::once(0..5).collect(),
        tile_shape: vec![10],
        origin: vec![0],
        order: StorageOrder::RowMajor,
    };
    let placed = Layer { placement: Some(placement), ..layer(&mut fetched) };
    let merged = StoredChunk::new(vec![placed]);
    // The tile of 5 cells has spans and contents; the layer of 10 cells has offsets and spans.
    let expected = 180 + 5 * 16 + 100 + 10 * (8 + 16);
    assert_eq!(bytes_decoded(&merged, 5, &format), expected);
}

#[cfg(feature = "codecs")]
#[test]
fn values_after_their_lengths_need_no_payload_of_offsets() {
    use crate::format::codecs::{Pipeline, Step};

    let texts = ["ab", "", "cde", "f"];
    let text = |text: &&str| [&(text.len() as u32).to_le_bytes(), text.as_bytes()].concat();
    let stored = [4_u32.to_le_bytes().to_vec(), texts.iter().flat_map(text).collect()].concat();
    let mut fetched = vec![];
    let offsets = payload(vec![], true, &mut fetched);
    let mut content = payload(stored, true, &mut fetched);
    content.codec = Pipeline::codec(vec![Step::VlenUtf8]);
    // An estimate of the length.
    content.raw_len = 100;
    let layer = Layer { content: Some(content), ..Layer::whole(offsets) };
    let stored = StoredChunk::new(vec![layer]);
    let format = CellFormat { width: None, ..CellFormat::fixed(1) };
    let (extents, scratch) = ([2, 2], &mut Scratch::default());
    let mut payloads = fetched.into_iter();
    let tile = decode(&stored, &mut payloads, &extents, &format, vec![], scratch).unwrap();
    let (spans, content) = tile.spans(&extents.map(AxisSelection::all)).unwrap();
    let value = |span: &Range<u64>| &content[span.start as usize..span.end as usize];
    let values: Vec<_> = spans.iter().map(value).collect();
    assert_eq!(values, texts.map(str::as_bytes));
}

#[test]
fn a_chunk_that_is_absent_is_fill_values() {
    let format = CellFormat { fill: vec![7, 9], ..CellFormat::fixed(2) };
    let (mut fetched, extents) = (vec![], [2, 3]);
    let layer = |raw, fetched: &mut Vec<Bytes>| Layer {
        may_be_absent: true,
        ..Layer::whole(payload(vec![1; 12], raw, fetched))
    };
    let layers = [true, false].map(|raw| layer(raw, &mut fetched));
    let mut stored = layers.map(|layer| StoredChunk::new(vec![layer]));
    // Memory for the tile counts even where the tile may be a view.
    let needed = stored.each_ref().map(|stored| bytes_decoded(stored, 6, &format));
    assert_eq!(needed, [12, 24]);
    let replies = vec![None, Some(fetched[1].clone())];
    let mut present = leave_out_absent(&mut stored, replies).into_iter();
    for (stored, cells) in stored.iter().zip([[7, 9].repeat(6), vec![1; 12]]) {
        let scratch = &mut Scratch::default();
        let tile = decode(stored, &mut present, &extents, &format, vec![3; 50], scratch);
        assert_eq!(tile.unwrap().bytes(), cells);
    }
}

#[test]
fn big_endian_cells_are_made_and_never_viewed() {
    let mut fetched = vec![];
    let mut values = payload(vec![0, 1, 0, 2, 0, 3], true, &mut fetched);
    values.byte_order = ByteOrder::big(2);
    let stored = StoredChunk::new(vec![Layer::whole(values)]);
    let format = CellFormat::fixed(2);
    assert_eq!(bytes_decoded(&stored, 3, &format), 6);
    let (shared, scratch) = (fetched.clone(), &mut Scratch::default());
    let mut payloads = fetched.into_iter();
    let tile = decode(&stored, &mut payloads, &[3], &format, vec![], scratch).unwrap();
    assert_eq!((tile.bytes(), &shared[0][..]), (&[1, 0, 2, 0, 3, 0][..], &[0, 1, 0, 2, 0, 3][..]));
}
