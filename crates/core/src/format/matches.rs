//! Copies of earlier output, from which LZ4, LZF and BloscLZ build their output.

/// Bytes that are copied at once where there is room.
const CHUNK: usize = 16;

/// Longer matches are copied with as few calls as possible.
const SHORT: usize = 4 * CHUNK;

/// Copies `len` bytes to byte `at` of `output`, from `distance` bytes before. The ranges may overlap: then the
/// bytes repeat. `None` if a range lies outside.
pub(in crate::format) fn copy_match(
    output: &mut [u8],
    at: usize,
    distance: usize,
    len: usize,
) -> Option<()> {
    let start = at.checked_sub(distance)?;
    let end = at.checked_add(len).filter(|end| *end <= output.len())?;
    if distance == 0 {
        return None;
    }
    // Most matches are short. Whole chunks may be copied beyond the end, where later output follows.
    if len <= SHORT && len + CHUNK <= output.len() - at {
        if distance >= CHUNK {
            for offset in (0..len).step_by(CHUNK) {
                let chunk = *output.get(start + offset..)?.first_chunk::<CHUNK>()?;
                *output.get_mut(at + offset..)?.first_chunk_mut::<CHUNK>()? = chunk;
            }
        } else {
            let mut pattern = *output.get(start..)?.first_chunk::<CHUNK>()?;
            (distance..CHUNK).for_each(|byte| pattern[byte] = pattern[byte - distance]);
            // Whole periods of the pattern.
            for offset in (0..len).step_by(CHUNK - CHUNK % distance) {
                *output.get_mut(at + offset..)?.first_chunk_mut::<CHUNK>()? = pattern;
            }
        }
        return Some(());
    }
    if distance == 1 {
        let byte = *output.get(start)?;
        output.get_mut(at..end)?.fill(byte);
        return Some(());
    }
    // All that is between `start` and `at` repeats, so that more can be copied each time.
    let mut at = at;
    while at < end {
        let copied = (at - start).min(end - at);
        output.copy_within(start..start + copied, at);
        at += copied;
    }
    Some(())
}

/// Copies the literal bytes at the beginning of `input` to byte `at` of `output`. Returns the input after them;
/// `None` if there are too few, or no room.
pub(in crate::format) fn copy_literals<'a>(
    output: &mut [u8],
    at: usize,
    input: &'a [u8],
    len: usize,
) -> Option<&'a [u8]> {
    let place = output.get_mut(at..)?;
    match (input.first_chunk::<32>(), place.first_chunk_mut::<32>()) {
        (Some(chunk), Some(place)) if len <= 32 => *place = *chunk,
        _ => place.get_mut(..len)?.copy_from_slice(input.get(..len)?),
    }
    input.get(len..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_repeat_what_is_before_them() {
        for distance in 1..70 {
            for len in 0..200 {
                for room in [0, 1, 15, 40] {
                    let start: Vec<u8> = (1..=80).collect();
                    let mut expected = start.clone();
                    for _ in 0..len {
                        expected.push(expected[expected.len() - distance]);
                    }
                    let mut output = start.clone();
                    output.resize(80 + len + room, 0);
                    copy_match(&mut output, 80, distance, len).unwrap();
                    assert_eq!(output[..80 + len], expected, "{distance} {len}");
                }
            }
        }
        let mut output = [0; 10];
        assert_eq!(copy_match(&mut output, 5, 6, 1), None);
        assert_eq!(copy_match(&mut output, 5, 0, 1), None);
        assert_eq!(copy_match(&mut output, 5, 5, 6), None);
        assert_eq!(copy_match(&mut output, 5, 5, usize::MAX), None);
        assert_eq!(copy_literals(&mut output, 5, &[1; 9], 6), None);
        assert_eq!(copy_literals(&mut output, 11, &[1; 9], 0), None);
        assert_eq!(copy_literals(&mut output, 0, &[1; 9], 10), None);
        assert_eq!(copy_literals(&mut output, 2, &[1, 2, 3], 2), Some(&[3][..]));
        assert_eq!(output, [0, 0, 1, 2, 0, 0, 0, 0, 0, 0]);
    }
}
