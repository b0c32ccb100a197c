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
