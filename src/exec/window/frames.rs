//! [`Frames`]: the frame of each position along the axis of a window.
//!
//! Where bounds are offsets or groups, DataFusion's own `WindowFrameContext` finds them, or arithmetic by its rules
//! (`range_frames`).

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt64Array};
use arrow::compute::take;
use datafusion::error::Result;
use datafusion::logical_expr::window_state::WindowFrameContext;
use datafusion::logical_expr::{WindowFrame, WindowFrameBound, WindowFrameUnits};

use super::range_frames::range_frames;
use super::window_axis::WindowAxis;

/// The positions that the function of a window takes, for each position along its axis. Neither starts nor ends decrease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Frames(Vec<Range<usize>>);

impl Frames {
    /// Finds the frames of a window along `axis`.
    ///
    /// # Errors
    /// If bounds cannot be computed, such as a label minus an interval.
    fn try_new(frame: &Arc<WindowFrame>, axis: &WindowAxis) -> Result<Self> {
        let mut frames = Vec::with_capacity(axis.len());
        for partition in &axis.partitions {
            let of_partition = OfPartition { axis, partition: partition.clone() };
            let of_partition = of_partition.frames(frame)?;
            let (start, end) = (partition.start, partition.end);
            match axis.backwards {
                false => frames.extend(of_partition.map(|it| start + it.start..start + it.end)),
                true => frames.extend(of_partition.rev().map(|it| end - it.end..end - it.start)),
            }
        }
        Ok(Self(frames))
    }

    /// Returns the frame of a position.
    pub(super) fn at(&self, position: usize) -> Range<usize> {
        self.0[position].clone()
    }

    /// Returns all frames.
    pub(super) fn all(&self) -> &[Range<usize>] {
        &self.0
    }

    /// Returns the number of positions of the longest frame.
    pub(super) fn longest(&self) -> usize {
        self.0.iter().map(ExactSizeIterator::len).max().unwrap_or(0)
    }

    /// Returns the first position that the frame of `position` or of a later one holds as another than the frames before
    /// `position` do. The lines before it are not needed any more, except in sums that exist.
    pub(super) fn needed_from(&self, position: usize) -> usize {
        let Some(frame) = self.0.get(position) else { return usize::MAX };
        let is_last_start = self.0.last().is_some_and(|last| last.start == frame.start);
        match position.checked_sub(1).map(|before| &self.0[before]) {
            // If starts stay where they are, each line is added once and then not needed again.
            Some(before) if is_last_start && before.start == frame.start => before.end,
            _ => frame.start,
        }
    }
}

/// The frames of all functions of a window, of which most have the same.
pub(super) struct KnownFrames<'a> {
    axis: &'a WindowAxis,
    known: Vec<(Arc<WindowFrame>, Arc<Frames>)>,
}

impl<'a> KnownFrames<'a> {
    /// Knows no frames of this axis yet.
    pub(super) fn new(axis: &'a WindowAxis) -> Self {
        Self { axis, known: vec![] }
    }

    /// Returns the frames of a function.
    ///
    /// # Errors
    /// As [`Frames::try_new`].
    pub(super) fn get(&mut self, frame: &Arc<WindowFrame>) -> Result<Arc<Frames>> {
        if let Some((_, frames)) = self.known.iter().find(|(known, _)| known == frame) {
            return Ok(Arc::clone(frames));
        }
        let frames = Arc::new(Frames::try_new(frame, self.axis)?);
        self.known.push((Arc::clone(frame), Arc::clone(&frames)));
        Ok(frames)
    }
}

/// A partition along the axis, in the order of the window.
struct OfPartition<'a> {
    axis: &'a WindowAxis,
    partition: Range<usize>,
}

impl OfPartition<'_> {
    /// Returns the frame of each row, counted from the first row of the partition.
    fn frames(
        &self,
        frame: &Arc<WindowFrame>,
    ) -> Result<impl DoubleEndedIterator<Item = Range<usize>> + use<>> {
        let is_by_peers = |bound: &WindowFrameBound| {
            bound.is_unbounded() || matches!(bound, WindowFrameBound::CurrentRow)
        };
        let by_peers = is_by_peers(&frame.start_bound) && is_by_peers(&frame.end_bound);
        let len = self.partition.len();
        let frames = match frame.units {
            WindowFrameUnits::Range | WindowFrameUnits::Groups if by_peers => self.by_peers(frame),
            WindowFrameUnits::Range => match self.by_offsets(frame)? {
                Some(frames) => frames,
                None => self.by_bounds(frame)?,
            },
            _ => self.by_bounds(frame)?,
        };
        Ok(frames.into_iter().map(move |frame| {
            // A frame may end before it starts, such as that of the first row and of rows before it.
            let end = frame.end.min(len);
            frame.start.min(end)..end
        }))
    }

    /// Returns frames whose bounds are ends of the partition or of the rows with the same sort key.
    fn by_peers(&self, frame: &WindowFrame) -> Vec<Range<usize>> {
        let len = self.partition.len();
        let of_peers = |peers: Range<usize>| {
            let start = if frame.start_bound.is_unbounded() { 0 } else { peers.start };
            let end = if frame.end_bound.is_unbounded() { len } else { peers.end };
            std::iter::repeat_n(start..end, peers.len())
        };
        self.peers().into_iter().flat_map(of_peers).collect()
    }

    /// Returns runs of rows with the same sort key, counted from the first row of the partition.
    fn peers(&self) -> Vec<Range<usize>> {
        peers(self.axis, &self.partition)
    }

    /// Returns frames whose bounds are sort keys plus or minus an offset; `None` if not all can be computed at once.
    fn by_offsets(&self, frame: &WindowFrame) -> Result<Option<Vec<Range<usize>>>> {
        match &self.axis.key {
            Some((key, options)) => range_frames(frame, &self.in_order(key)?, *options),
            None => Ok(None),
        }
    }

    /// Lets DataFusion compute the bounds.
    fn by_bounds(&self, frame: &Arc<WindowFrame>) -> Result<Vec<Range<usize>>> {
        let key = self.axis.key.as_ref();
        let options = key.map(|(_, options)| *options).into_iter().collect();
        let keys = key.map(|(key, _)| self.in_order(key)).transpose()?;
        let keys: Vec<ArrayRef> = keys.into_iter().collect();
        let mut context = WindowFrameContext::new(Arc::clone(frame), options);
        let len = self.partition.len();
        let mut last = 0..0;
        let mut frames = Vec::with_capacity(len);
        for row in 0..len {
            last = context.calculate_range(&keys, &last, len, row)?;
            frames.push(last.clone());
        }
        Ok(frames)
    }

    /// Returns the sort keys of the rows in the order of the window.
    fn in_order(&self, key: &ArrayRef) -> Result<ArrayRef> {
        let key = key.slice(self.partition.start, self.partition.len());
        if !self.axis.backwards {
            return Ok(key);
        }
        let reversed = UInt64Array::from_iter_values((0..key.len() as u64).rev());
        Ok(take(&key, &reversed, None)?)
    }
}

/// Returns runs of rows of a partition with the same sort key, in the order of the window, counted from its first row.
pub(super) fn peers(axis: &WindowAxis, partition: &Range<usize>) -> Vec<Range<usize>> {
    let len = partition.len();
    let mut peers: Vec<Range<usize>> = vec![];
    for row in 0..len {
        let is_tied = row > 0
            && axis.is_tied[match axis.backwards {
                false => partition.start + row - 1,
                true => partition.end - 1 - row,
            }];
        match peers.last_mut() {
            Some(run) if is_tied => run.end = row + 1,
            _ => peers.push(row..row + 1),
        }
    }
    peers
}
