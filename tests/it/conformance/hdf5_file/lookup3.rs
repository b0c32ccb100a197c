//! The checksum of metadata: Bob Jenkins' lookup3 (<http://burtleburtle.net/bob/c/lookup3.c>, `hashlittle`), which the
//! specification names in II.A and IV.A.1.b.

/// Returns the checksum of bytes.
pub(super) fn lookup3(bytes: &[u8]) -> u32 {
    let start = 0xdead_beef_u32.wrapping_add(bytes.len() as u32);
    let mut state = [start; 3];
    let mut rest = bytes;
    while rest.len() > 12 {
        add(&mut state, &rest[..12]);
        mix(&mut state);
        rest = &rest[12..];
    }
    if !rest.is_empty() {
        add(&mut state, rest);
        finish(&mut state);
    }
    state[2]
}

/// Adds up to twelve bytes as three little-endian words.
fn add(state: &mut [u32; 3], bytes: &[u8]) {
    let mut words = [0; 12];
    words[..bytes.len()].copy_from_slice(bytes);
    for (word, bytes) in state.iter_mut().zip(words.chunks(4)) {
        *word = word.wrapping_add(u32::from_le_bytes(bytes.try_into().unwrap()));
    }
}

fn mix(state: &mut [u32; 3]) {
    for (step, by) in [4, 6, 8, 16, 19, 4].into_iter().enumerate() {
        // In the first step, a, b and c of lookup3; then each turn by one.
        let [a, b, c] = [0, 1, 2].map(|at| (at + step) % 3);
        state[a] = state[a].wrapping_sub(state[c]) ^ state[c].rotate_left(by);
        state[c] = state[c].wrapping_add(state[b]);
    }
}

fn finish(state: &mut [u32; 3]) {
    for (step, by) in [14, 11, 25, 16, 4, 14, 24].into_iter().enumerate() {
        let [c, b] = [2, 1].map(|at| (at + step) % 3);
        state[c] = (state[c] ^ state[b]).wrapping_sub(state[b].rotate_left(by));
    }
}
