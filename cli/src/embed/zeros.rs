//! [`Zeros`]: memory for the cells of a variable, which several threads fill.

use bytemuck::Pod;
use datafusion::arrow::buffer::{Buffer, MutableBuffer};
use datafusion::common::{internal_datafusion_err, resources_err};
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryReservation;
#[cfg(target_os = "linux")]
use memmap2::{Advice, MmapMut};

/// Memory that is zero.
pub(super) enum Zeros {
    Heap(MutableBuffer),
    /// Huge pages: the system clears 2 MiB at the first write to them, and not 4 KiB at a time.
    #[cfg(target_os = "linux")]
    Pages(MmapMut),
}

impl Zeros {
    /// Returns `bytes` zeros for the cells of a variable `name`, which count towards the memory limit.
    ///
    /// # Errors
    /// If the memory limit is reached, or the machine has not as much.
    pub(super) fn try_new(
        bytes: usize,
        name: &str,
        reservation: &MemoryReservation,
    ) -> Result<Self> {
        /// Fewer bytes come from the heap, as they do in numpy.
        #[cfg(target_os = "linux")]
        const LARGE: usize = 4 << 20;
        reservation.try_grow(bytes)?;
        #[cfg(target_os = "linux")]
        if bytes >= LARGE
            && let Ok(pages) = MmapMut::map_anon(bytes)
        {
            // A system without huge pages gives others.
            let _ = pages.advise(Advice::HugePage);
            return Ok(Self::Pages(pages));
        }
        // Memory that the machine does not have is an error, and not the end of the process.
        if Vec::<u8>::new().try_reserve_exact(bytes).is_err() {
            return resources_err!("cannot allocate {bytes} bytes for the cells of \"{name}\"");
        }
        Ok(Self::Heap(MutableBuffer::from_len_zeroed(bytes)))
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Heap(buffer) => buffer.as_slice_mut(),
            #[cfg(target_os = "linux")]
            Self::Pages(pages) => pages,
        }
    }

    /// Returns the memory as numbers.
    pub(super) fn numbers_mut<T: Pod>(&mut self) -> Result<&mut [T]> {
        let numbers = bytemuck::try_cast_slice_mut(self.bytes_mut());
        numbers.map_err(|error| internal_datafusion_err!("the memory of cells: {error}"))
    }

    /// Returns the memory, without a copy.
    pub(super) fn into_buffer(self) -> Buffer {
        match self {
            Self::Heap(buffer) => buffer.into(),
            #[cfg(target_os = "linux")]
            Self::Pages(pages) => Buffer::from(bytes::Bytes::from_owner(pages)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryConsumer, MemoryPool};

    use super::*;

    #[test]
    fn memory_is_zero_and_counted_and_keeps_numbers() {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(20 << 20));
        let reservation = MemoryConsumer::new("test").register(&pool);
        for numbers in [0, 1, 1000, (5 << 20) / 8 + 1] {
            let mut zeros = Zeros::try_new(numbers * 8, "t", &reservation).unwrap();
            let all = zeros.numbers_mut::<f64>().unwrap();
            assert!(all.len() == numbers && all.iter().all(|it| *it == 0.0));
            all.iter_mut().enumerate().for_each(|(at, number)| *number = at as f64);
            let buffer = zeros.into_buffer();
            let expected: Vec<f64> = (0..numbers).map(|at| at as f64).collect();
            assert_eq!(buffer.typed_data::<f64>(), expected);
        }
        assert!(reservation.size() > 5 << 20);
        assert!(Zeros::try_new(20 << 20, "t", &reservation).is_err());
    }
}
