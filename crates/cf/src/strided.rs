//! Bytes at even distances, as records and fields have them.

/// Copies the first `kept` bytes of each `stride` bytes to `places`, one after the other.
pub(crate) fn copy_strided(stored: &[u8], stride: usize, kept: usize, places: &mut [u8]) {
    match kept {
        0 => {}
        1 => copy_words::<1>(stored, stride, places),
        2 => copy_words::<2>(stored, stride, places),
        4 => copy_words::<4>(stored, stride, places),
        8 => copy_words::<8>(stored, stride, places),
        _ => {
            for (record, place) in stored.chunks(stride).zip(places.chunks_exact_mut(kept)) {
                if let Some(bytes) = record.get(..kept) {
                    place.copy_from_slice(bytes);
                }
            }
        }
    }
}

/// Copies a constant number of bytes, so that a copy is one instruction.
fn copy_words<const KEPT: usize>(stored: &[u8], stride: usize, places: &mut [u8]) {
    for (record, place) in stored.chunks(stride).zip(places.as_chunks_mut::<KEPT>().0) {
        if let Some(word) = record.first_chunk() {
            *place = *word;
        }
    }
}
