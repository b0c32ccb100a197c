//! Drives machines over the bytes of a file, and lays chunks into arrays cell by cell.

use bytes::Bytes;

use super::super::{Hdf5File, OpenHdf5};
use super::damage::checked;
use crate::hierarchy::Variable;
use gridfusion_core::Result;
use gridfusion_core::format::{Layer, Location, Machine, Replies, Scratch, Step, StoredChunk};
use gridfusion_core::grid::{ravel, unravel};

/// An open file and its bytes.
pub(super) struct File {
    pub(super) file: Hdf5File,
    bytes: Bytes,
    pub(super) rounds: usize,
    /// The bytes that were read to open it.
    pub(super) fetched: u64,
}

/// The cells of a variable, in row-major order.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ExpectedCells {
    Bytes(Vec<u8>),
    Texts(Vec<String>),
}

/// Runs a machine; returns its result and the number of requests.
pub(super) fn drive<M: Machine>(mut machine: M, file: &Bytes) -> Result<(M::Output, usize)> {
    let (mut replies, mut rounds) = (Replies::Start, 0);
    loop {
        match machine.step(replies)? {
            Step::Read(wanted) => {
                rounds += 1;
                replies = Replies::Bytes(wanted.iter().map(|at| read(file, at)).collect());
            }
            Step::Done(output) => return Ok((output, rounds)),
            Step::ReadIfPresent(_) | Step::List(_) => panic!("a file is one object"),
        }
    }
}

/// A machine whose replies are counted.
struct CountedMachine<M> {
    machine: M,
    fetched: u64,
}

impl<M: Machine> Machine for &mut CountedMachine<M> {
    type Output = M::Output;

    fn step(&mut self, replies: Replies) -> Result<Step<M::Output>> {
        if let Replies::Bytes(all) = &replies {
            self.fetched += all.iter().map(|bytes| bytes.len() as u64).sum::<u64>();
        }
        self.machine.step(replies)
    }
}

fn read(file: &Bytes, at: &Location) -> Bytes {
    assert!(at.object.is_empty());
    let range = at.range.within(file.len() as u64);
    file.slice(range.start as usize..range.end as usize)
}

pub(super) fn open(bytes: Vec<u8>) -> Result<File> {
    let bytes = Bytes::from(bytes);
    let mut machine = CountedMachine { machine: OpenHdf5::new(bytes.len() as u64), fetched: 0 };
    let (file, rounds) = drive(&mut machine, &bytes)?;
    Ok(File { file, bytes, rounds, fetched: machine.fetched })
}

impl File {
    pub(super) fn find(&self, path: &str) -> Option<usize> {
        self.file.hierarchy().variables.iter().position(|variable| variable.path == path)
    }

    pub(super) fn variable(&self, path: &str) -> &Variable {
        let number = self.find(path).unwrap_or_else(|| panic!("no {path}"));
        &self.file.hierarchy().variables[number]
    }

    /// Returns the coordinates of all chunks.
    pub(super) fn chunks(&self, number: usize) -> Vec<Vec<u64>> {
        let variable = &self.file.hierarchy().variables[number];
        let axes = variable.axes.iter().zip(&variable.chunk_shape);
        let counts: Vec<u64> = axes.map(|(axis, chunk)| axis.len.div_ceil(*chunk)).collect();
        (0..counts.iter().product()).map(|chunk| unravel(chunk, &counts)).collect()
    }

    pub(super) fn locate(&self, number: usize, chunks: Vec<Vec<u64>>) -> (Vec<StoredChunk>, usize) {
        drive(self.file.locate(number, chunks).unwrap(), &self.bytes).unwrap()
    }

    /// Returns the number of chunks in the index of a variable.
    pub(super) fn check_index(&self, number: usize) -> Result<Option<u64>> {
        Ok(drive(self.file.check_index(number).unwrap(), &self.bytes)?.0)
    }

    pub(super) fn cells(&self, path: &str) -> ExpectedCells {
        self.read(self.find(path).unwrap_or_else(|| panic!("no {path}"))).unwrap()
    }

    /// Reads all cells of a variable.
    pub(super) fn read(&self, number: usize) -> Result<ExpectedCells> {
        let chunks = self.chunks(number);
        // The first chunk alone, so that others are looked up later.
        let one = self.file.locate(number, chunks.iter().take(1).cloned().collect())?;
        drive(one, &self.bytes)?;
        let (located, _) = drive(self.file.locate(number, chunks.clone())?, &self.bytes)?;
        let variable = &self.file.hierarchy().variables[number];
        let count = variable.shape().iter().product::<u64>() as usize;
        let mut cells = vec![variable.fill.clone(); count];
        for (chunk, located) in chunks.iter().zip(located) {
            for layer in &located.layers {
                self.lay(variable, chunk, layer, &mut cells)?;
            }
        }
        Ok(match variable.cell.width() {
            Some(_) => ExpectedCells::Bytes(cells.concat()),
            None => ExpectedCells::Texts(
                cells.into_iter().map(|it| String::from_utf8(it).unwrap()).collect(),
            ),
        })
    }

    /// Reads a few chunks of a variable, whatever is in them. For damaged files.
    pub(super) fn read_some(&self, number: usize) {
        let variable = &self.file.hierarchy().variables[number];
        let axes = variable.axes.iter().zip(&variable.chunk_shape);
        let counts: Vec<u64> = axes.map(|(axis, chunk)| axis.len.div_ceil(*chunk)).collect();
        let mut chunks = vec![vec![0; counts.len()]];
        for _ in 0..8 {
            let mut next = chunks[chunks.len() - 1].clone();
            for (at, count) in next.iter_mut().zip(&counts).rev() {
                *at += 1;
                if *at < *count {
                    break;
                }
                *at = 0;
            }
            chunks.push(next);
        }
        chunks.push(counts.iter().map(|count| count.saturating_sub(1)).collect());
        if counts.contains(&0) {
            return;
        }
        let machine = self.file.locate(number, chunks).unwrap();
        let Some((located, _)) = checked(drive(machine, &self.bytes)) else { return };
        for layer in located.iter().flat_map(|chunk| &chunk.layers) {
            for payload in layer.payloads().filter(|payload| payload.raw_len <= 1 << 24) {
                let range = payload.at.range.within(self.bytes.len() as u64);
                assert!(range.end <= self.bytes.len() as u64);
                let stored = read(&self.bytes, &payload.at);
                checked(payload.decode(stored, vec![], &mut Scratch::default()));
            }
        }
    }

    fn lay(
        &self,
        variable: &Variable,
        chunk: &[u64],
        layer: &Layer,
        cells: &mut [Vec<u8>],
    ) -> Result<()> {
        let shape = variable.shape();
        let first: Vec<u64> =
            chunk.iter().zip(&variable.chunk_shape).map(|(at, len)| at * len).collect();
        let extents = first.iter().zip(&shape).zip(&variable.chunk_shape);
        let extents: Vec<u64> = extents.map(|((at, all), len)| (*len).min(all - at)).collect();
        let (region, tile_shape) = match &layer.placement {
            Some(placement) => {
                assert!(placement.origin.iter().all(|&at| at == 0));
                let region: Vec<u64> = placement.region.iter().map(|it| it.end).collect();
                (region, placement.tile_shape.clone())
            }
            None => (extents.clone(), extents.clone()),
        };
        assert!(region.iter().zip(&extents).all(|(region, extent)| region <= extent));
        let values = self.values(variable, layer)?;
        assert_eq!(values.len() as u64, tile_shape.iter().product::<u64>());
        for cell in 0..region.iter().product() {
            let at = unravel(cell, &region);
            let place: Vec<u64> = at.iter().zip(&first).map(|(at, first)| at + first).collect();
            cells[ravel(&place, &shape) as usize] =
                values[ravel(&at, &tile_shape) as usize].clone();
        }
        Ok(())
    }

    fn values(&self, variable: &Variable, layer: &Layer) -> Result<Vec<Vec<u8>>> {
        let mut scratch = Scratch::default();
        let mut decode = |payload: &gridfusion_core::format::Payload| {
            payload.decode(read(&self.bytes, &payload.at), vec![], &mut scratch)
        };
        let values = decode(&layer.values)?;
        if let Some(width) = variable.cell.width() {
            assert!(layer.content.is_none());
            return Ok(values.bytes.chunks(width as usize).map(<[u8]>::to_vec).collect());
        }
        let content = decode(layer.content.as_ref().unwrap())?;
        let offsets = content.offsets.unwrap();
        let ends = offsets.iter().skip(1).copied().chain([content.bytes.len() as u64]);
        let value =
            |(start, end): (&u64, u64)| content.bytes[*start as usize..end as usize].to_vec();
        Ok(offsets.iter().zip(ends).map(value).collect())
    }
}
