//! Locating chunks: a machine that finds where their tiles are stored.
//!
//! ```text
//!   Start ──▶ Blocks (tile indexes that are needed and were not read yet) ──▶ Done
//!
//!   chunk ─ window ─▶ tile ─ overlay ─▶ pieces of fragments ─ tile index ─▶ layers with byte ranges
//! ```
//!
//! The machine finds the pieces when it is made, from the boxes of the fragments alone. So it knows which
//! tile indexes it needs, and reads all of them in one round trip. Indexes stay in the array: a second
//! query over the same fragments makes no request.
//!
//! A placement relates cells of the tile to cells of the chunk. In this example, tiles have 4 cells, the
//! window begins at coordinate 9, and a fragment wrote coordinates 10 to 11. Regions count from the start of
//! the window's first tile:
//!
//! ```text
//!   coordinates   8   9  10  11
//!   tile          ■   ■   ■   ■     region 0..4: the stored cells
//!   chunk             ■   ■   ■     region 1..4: those that the table shows
//!   piece                 ■   ■     region 2..4: those that the fragment wrote
//!
//!   placement     region 1..3 of the chunk, from cell 2 of the tile, which has 4 cells
//! ```

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::evolution::{AttributeFragments, field_of};
use super::overlay::FragmentBox;
use super::window::{Region, Window, hull};
use crate::bytes::array::TileDbArray;
use crate::bytes::fragments::{Fragment, TileIndex, block_locations};
use crate::bytes::schema::{CellOrder, TileAxis};
use gridfusion_core::format::{
    Layer, Location, Machine, Placement, Replies, Step, StorageOrder, StoredChunk,
};
use gridfusion_core::{Error, Result};

impl TileDbArray {
    /// Returns a machine that finds where `attributes` of `chunks` are stored: per chunk and attribute,
    /// in the given order. `attributes` are positions in the schema, and `chunks` are coordinates in
    /// the grid of `window`.
    ///
    /// # Errors
    /// The errors of [`TileDbArray::window`], and `Unsupported` if a chunk shows values from before its
    /// attribute changed its type.
    pub fn locate(
        self: &Arc<Self>,
        window: &Arc<Window>,
        chunks: Vec<Vec<u64>>,
        attributes: Vec<usize>,
    ) -> Result<Locate> {
        self.check_dense()?;
        Locate::new(Arc::clone(self), Arc::clone(window), chunks, attributes)
    }
}

/// A machine that finds where chunks are stored. Made by [`TileDbArray::locate`].
#[derive(Debug)]
pub struct Locate {
    array: Arc<TileDbArray>,
    window: Arc<Window>,
    /// The coordinates of the requested chunks in the window's grid.
    chunks: Vec<Vec<u64>>,
    /// The requested attributes, as positions in the array's schema.
    attributes: Vec<usize>,
    axes: Vec<TileAxis>,
    /// Per chunk and attribute, the pieces of fragments that show, the oldest first.
    pieces: Vec<Vec<Vec<FragmentBox>>>,
    /// The blocks whose replies are awaited; empty at the start, and after they were parsed.
    asked: Vec<BlockRequest>,
}

/// The tile index blocks of one attribute of one fragment.
#[derive(Debug)]
struct BlockRequest {
    fragment: usize,
    /// Its number in the fragment, by which the footer lists blocks and the array keeps the index.
    field: usize,
    locations: Vec<Location>,
}

impl Locate {
    fn new(
        array: Arc<TileDbArray>,
        window: Arc<Window>,
        chunks: Vec<Vec<u64>>,
        attributes: Vec<usize>,
    ) -> Result<Self> {
        let axes = array.schema().tile_axes()?;
        if let Some(chunk) = chunks.iter().find(|chunk| window.grid.chunk_number(chunk).is_none()) {
            return Err(Error::internal(format!("chunk {chunk:?} lies outside the window")));
        }
        let pieces = Self::find_pieces(&array, &window, &chunks, &attributes)?;
        Ok(Self { array, window, chunks, attributes, axes, pieces, asked: vec![] })
    }

    /// Finds the pieces of fragments that show, per chunk and attribute.
    fn find_pieces(
        array: &TileDbArray,
        window: &Window,
        chunks: &[Vec<u64>],
        attributes: &[usize],
    ) -> Result<Vec<Vec<Vec<FragmentBox>>>> {
        let tiles: Vec<Region> = chunks.iter().map(|chunk| window.tile_region(chunk)).collect();
        let mut overlay = array.overlay(window);
        // Most fragments are elsewhere. Tiles rather than chunks: cells that the table does not show
        // decide, too.
        overlay.retain(&hull(tiles.iter()));
        let holders = |attribute| AttributeFragments::new(array, attribute, overlay.fragments());
        let holders: Vec<AttributeFragments> =
            attributes.iter().copied().map(holders).collect::<Result<_>>()?;
        let of_chunk = |(chunk, tile): (&Vec<u64>, &Region)| {
            let (parts, region) = (overlay.parts(tile), window.chunk_region(chunk));
            holders.iter().map(|holders| holders.pieces(&parts, &region)).collect()
        };
        chunks.iter().zip(&tiles).map(of_chunk).collect()
    }

    /// Returns the blocks that are needed and were not read yet.
    fn missing(&self) -> Result<Vec<BlockRequest>> {
        // A set, because many chunks need the same index.
        let mut needed = BTreeSet::new();
        for of_chunk in &self.pieces {
            for (attribute, pieces) in self.attributes.iter().zip(of_chunk) {
                for piece in pieces {
                    needed.insert((piece.fragment, self.field(piece.fragment, *attribute)?));
                }
            }
        }
        needed.retain(|(fragment, field)| self.array.tile_index(*fragment, *field).is_none());
        let ask = |(fragment, field): (usize, usize)| {
            let locations = block_locations(self.array.fragment(fragment)?, field)?;
            Ok(BlockRequest { fragment, field, locations })
        };
        needed.into_iter().map(ask).collect()
    }

    /// Returns the number that an attribute of the array has in a fragment with cells of it.
    fn field(&self, fragment: usize, attribute: usize) -> Result<usize> {
        let field = field_of(&self.array.schema, attribute, self.array.fragment(fragment)?)?;
        field.ok_or_else(|| Error::internal("a fragment without the attribute"))
    }

    /// Parses the blocks, and keeps the tile indexes in the array.
    fn keep_indexes(&mut self, blocks: &[Bytes]) -> Result<()> {
        let mut rest = blocks;
        for asked in std::mem::take(&mut self.asked) {
            // The replies follow one another without borders; each request takes as many as it has locations.
            let (own, others) = rest
                .split_at_checked(asked.locations.len())
                .ok_or_else(|| Error::internal("blocks were requested and not read"))?;
            rest = others;
            let fragment = self.array.fragment(asked.fragment)?;
            let key = self.array.options.key.as_ref();
            let index = TileIndex::parse(fragment, asked.field, &asked.locations, own, key)?;
            self.array.keep_tile_index(asked.fragment, asked.field, index);
        }
        Ok(())
    }

    /// Makes the layers of all chunks. Every tile index that they need was read.
    fn finish(&self) -> Result<Vec<Vec<StoredChunk>>> {
        let mut chunks = Vec::with_capacity(self.chunks.len());
        for (chunk, of_chunk) in self.chunks.iter().zip(&self.pieces) {
            let tile = self.window.tile_of(&self.axes, chunk);
            let region = self.window.chunk_region(chunk);
            let stored = |(attribute, pieces): (&usize, &Vec<FragmentBox>)| {
                let layer = |piece| self.layer(chunk, &tile, &region, *attribute, piece);
                let layers = pieces.iter().map(layer).collect::<Result<_>>()?;
                Ok(StoredChunk::new(layers))
            };
            chunks.push(self.attributes.iter().zip(of_chunk).map(stored).collect::<Result<_>>()?);
        }
        Ok(chunks)
    }

    /// Makes the layer of a chunk for one piece and one attribute. The chunk covers `region`.
    fn layer(
        &self,
        chunk: &[u64],
        tile: &[u64],
        region: &[Range<u64>],
        attribute: usize,
        piece: &FragmentBox,
    ) -> Result<Layer> {
        let fragment = self.array.fragment(piece.fragment)?;
        let field = self.field(piece.fragment, attribute)?;
        let index = self.array.tile_index(piece.fragment, field);
        let index = index.ok_or_else(|| Error::internal("a tile index that was not read"))?;
        let place = fragment.tile_box.place(tile, fragment.schema.tile_order);
        let (values, content, validity) = index.payloads(place)?;
        let placement = self.placement(chunk, region, fragment, piece);
        Ok(Layer::whole(values)
            .with_placement(placement)
            .with_content(content)
            .with_validity(validity))
    }

    /// Returns where a fragment's tile lies in a chunk; `None` if the tile is the chunk, in row-major
    /// order.
    fn placement(
        &self,
        chunk: &[u64],
        region: &[Range<u64>],
        fragment: &Fragment,
        piece: &FragmentBox,
    ) -> Option<Placement> {
        let tile = self.window.tile_region(chunk);
        let column_major = fragment.schema.cell_order == CellOrder::ColumnMajor && chunk.len() > 1;
        if region == tile && !column_major && piece.region == region {
            return None;
        }
        // The example in the module's documentation has the numbers.
        let relative = |(cells, chunk): (&Range<u64>, &Range<u64>)| {
            cells.start - chunk.start..cells.end - chunk.start
        };
        let origin = piece.region.iter().zip(&tile).map(|(cells, tile)| cells.start - tile.start);
        let origin = origin.collect();
        let region = piece.region.iter().zip(region).map(relative).collect();
        let tile_shape = self.window.grid.chunk_shape().collect();
        let order = if column_major { StorageOrder::ColumnMajor } else { StorageOrder::RowMajor };
        Some(Placement::new(region, tile_shape).with_origin(origin).with_order(order))
    }
}

impl Machine for Locate {
    type Output = Vec<Vec<StoredChunk>>;

    fn subject(&self) -> &'static str {
        "locations of tiles"
    }

    fn step(&mut self, replies: Replies) -> Result<Step<Self::Output>> {
        match replies {
            Replies::Start => self.asked = self.missing()?,
            replies => self.keep_indexes(&replies.into_bytes())?,
        }
        // Either nothing was missing, or `keep_indexes` has taken all requests.
        if self.asked.is_empty() {
            return self.finish().map(Step::Done);
        }
        let locations = self.asked.iter().flat_map(|asked| asked.locations.iter().cloned());
        Ok(Step::Read(locations.collect()))
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;
    use crate::bytes::folder::OpenOptions;
    use crate::bytes::open_array::OpenArray;
    use crate::bytes::testing::{Folder, SCHEMA_NAME, SchemaBytes, generic_tile};
    use gridfusion_core::format::Scratch;
    use gridfusion_core::grid::{ravel, unravel};

    const FILL: i32 = -7;

    fn array(folder: &Folder) -> Arc<TileDbArray> {
        Arc::new(folder.drive(OpenArray::new(OpenOptions::default())).unwrap())
    }

    fn folder(schema: &SchemaBytes) -> Folder {
        let mut folder = Folder::default();
        folder.put(&format!("__schema/{SCHEMA_NAME}"), &generic_tile(&schema.content()));
        folder
    }

    fn all_chunks(window: &Window) -> Vec<Vec<u64>> {
        (0..window.grid.chunks()).map(|number| window.grid.chunk_coordinates(number)).collect()
    }

    /// Returns the cells of a chunk, assembled from its layers.
    fn cells(folder: &Folder, chunk: &StoredChunk, extents: &[u64]) -> Vec<i32> {
        let mut cells = vec![FILL; extents.iter().product::<u64>() as usize];
        for layer in &chunk.layers {
            let stored = folder.read(&layer.values.at);
            let tile = layer.values.decode(stored, vec![], &mut Scratch::default()).unwrap().bytes;
            for (position, cell) in cells.iter_mut().enumerate() {
                let at = unravel(position as u64, extents);
                let place = match &layer.placement {
                    None => position as u64,
                    Some(placed) => {
                        let shown =
                            at.iter().zip(&placed.region).all(|(at, axis)| axis.contains(at));
                        if !shown {
                            continue;
                        }
                        let moved = at.iter().zip(&placed.region).zip(&placed.origin);
                        let mut at: Vec<u64> =
                            moved.map(|((at, axis), first)| at - axis.start + first).collect();
                        let mut shape = placed.tile_shape.clone();
                        if placed.order == StorageOrder::ColumnMajor {
                            at.reverse();
                            shape.reverse();
                        }
                        ravel(&at, &shape)
                    }
                };
                let bytes = &tile[place as usize * 4..][..4];
                *cell = i32::from_le_bytes(bytes.try_into().unwrap());
            }
        }
        cells
    }

    #[test]
    fn every_cell_comes_from_the_newest_fragment() {
        let mut rng = StdRng::seed_from_u64(7);
        for round in 0..60 {
            let orders = [rng.random_range(0..2), rng.random_range(0..2)];
            let mut folder = folder(&SchemaBytes { orders, ..SchemaBytes::dense_2d() });
            let mut written = vec![];
            for t in 0..rng.random_range(1..5) {
                let mut range = |high: i32| {
                    let low = rng.random_range(1..=high);
                    (low, rng.random_range(low..=high))
                };
                let domain = [range(5), range(7)];
                let value = move |y: i32, x: i32| t * 1000 + y * 10 + x;
                folder.write(t as u64 + 1, domain, orders, value);
                written.push((domain, value));
            }
            let array = array(&folder);
            let window = Arc::new(array.window(round % 2 == 0).unwrap());
            let chunks = all_chunks(&window);
            let located = array.locate(&window, chunks.clone(), vec![0]).unwrap();
            let (stored, trips) = folder.drive_counting(located).unwrap();
            assert_eq!(trips, 1);
            for (chunk, stored) in chunks.iter().zip(&stored) {
                let region = [0, 1].map(|axis| window.grid.axis_range(axis, chunk[axis]));
                let expected = |y: u64, x: u64| {
                    let (y, x) = (y as i32 + window.low[0] as i32, x as i32 + window.low[1] as i32);
                    let holds = |axis: (i32, i32), at: i32| axis.0 <= at && at <= axis.1;
                    let newest =
                        written.iter().rev().find(|(at, _)| holds(at[0], y) && holds(at[1], x));
                    newest.map_or(FILL, |(_, value)| value(y, x))
                };
                let ys = region[0].clone();
                let expected: Vec<i32> = ys
                    .flat_map(|y| region[1].clone().map(move |x| (y, x)))
                    .map(|(y, x)| expected(y, x))
                    .collect();
                assert_eq!(cells(&folder, &stored[0], &window.grid.extents(chunk)), expected);
            }
            // The array keeps the tile indexes that were read.
            let again = array.locate(&window, chunks, vec![0, 0]).unwrap();
            assert_eq!(folder.drive_counting(again).unwrap().1, 0);
        }
    }

    #[test]
    fn a_tile_that_is_the_chunk_has_no_placement() {
        for (orders, whole) in [([0, 0], true), ([1, 0], true), ([0, 1], false)] {
            let mut folder = folder(&SchemaBytes { orders, ..SchemaBytes::dense_2d() });
            folder.write(1, [(1, 4), (2, 7)], orders, |y, x| y * 10 + x);
            let array = array(&folder);
            let window = Arc::new(array.window(false).unwrap());
            assert_eq!((window.low.clone(), window.grid.shape()), (vec![1, 2], &[4, 6][..]));
            let stored = folder.drive(
                array.locate(&window, vec![vec![0, 0], vec![1, 1], vec![1, 2]], vec![0]).unwrap(),
            );
            let placements: Vec<bool> =
                stored.unwrap().iter().map(|of| of[0].layers[0].placement.is_none()).collect();
            assert_eq!(placements, [false, whole, false]);
        }
    }

    #[test]
    fn only_fragments_that_show_are_asked() {
        let mut folder = folder(&SchemaBytes::dense_2d());
        folder.write(1, [(1, 5), (1, 7)], [0, 0], |_, _| 1);
        folder.write(2, [(1, 2), (1, 3)], [0, 0], |_, _| 2);
        folder.write(3, [(5, 5), (7, 7)], [0, 0], |_, _| 3);
        let array = array(&folder);
        let window = Arc::new(array.window(false).unwrap());
        let mut locate = array.locate(&window, vec![vec![0, 0]], vec![0]).unwrap();
        let Step::Read(asked) = locate.step(Replies::Start).unwrap() else { unreachable!() };
        assert_eq!(asked.len(), 1);
        assert!(asked[0].object.starts_with("__fragments/__2_2_"), "{}", asked[0].object);
    }

    #[test]
    fn tiles_beyond_their_file_are_errors_when_they_are_wanted() {
        let mut folder = folder(&SchemaBytes::dense_2d());
        folder.write(1, [(1, 5), (1, 7)], [0, 0], |_, _| 1);
        let path = folder.0.keys().find(|path| path.ends_with("a0.tdb")).unwrap().clone();
        let data = folder.0[&path].clone();
        folder.put(&path, &data[..data.len() - 1]);
        let locate = |folder: &Folder, chunk: [u64; 2]| {
            let array = array(folder);
            let window = Arc::new(array.window(false).unwrap());
            folder.drive(array.locate(&window, vec![chunk.to_vec()], vec![0]).unwrap())
        };
        assert!(locate(&folder, [0, 0]).is_ok());
        let error = locate(&folder, [2, 2]).unwrap_err();
        assert!(error.to_string().contains("a0.tdb has 395 bytes"), "{error}");
        folder.0.remove(&path);
        let error = locate(&folder, [0, 0]).unwrap_err();
        assert!(error.to_string().contains("a0.tdb does not exist"), "{error}");
    }

    #[test]
    fn damaged_metadata_is_an_error_or_harmless() {
        let mut folder = folder(&SchemaBytes::dense_2d());
        folder.write(1, [(1, 5), (1, 7)], [0, 0], |_, _| 1);
        let path = folder.0.keys().find(|path| path.contains("metadata")).unwrap().clone();
        let good = folder.0[&path].clone();
        let mut rng = StdRng::seed_from_u64(3);
        let mut damaged: Vec<Vec<u8>> = (0..good.len()).map(|len| good[..len].to_vec()).collect();
        for _ in 0..4_000 {
            let mut bytes = good.to_vec();
            let at = rng.random_range(0..bytes.len());
            bytes[at] = rng.random();
            damaged.push(bytes);
        }
        for bytes in damaged {
            folder.put(&path, &bytes);
            let Ok(array) = folder.drive(OpenArray::new(OpenOptions::default())) else { continue };
            let array = Arc::new(array);
            let Ok(window) = array.window(true).map(Arc::new) else { continue };
            let chunks = all_chunks(&window);
            let Ok(located) = array.locate(&window, chunks, vec![0]) else { continue };
            let _ = folder.drive(located);
            if let Some(zones) = array.read_zones(&window, 0) {
                let _ = folder.drive(zones);
            }
        }
    }
}
