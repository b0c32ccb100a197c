//! A digest of what an array was opened from, to tell its versions apart.

use sha2::{Digest, Sha256};

/// Returns the digest of some texts, as hexadecimal digits.
pub fn digest<T: AsRef<[u8]>>(texts: impl IntoIterator<Item = T>) -> String {
    /// Bytes of the digest: enough that no two versions have the same by chance.
    const BYTES: usize = 16;
    let mut hasher = Sha256::new();
    for text in texts {
        let text = text.as_ref();
        // With their lengths, `ab, c` and `a, bc` differ.
        hasher.update((text.len() as u64).to_le_bytes());
        hasher.update(text);
    }
    hasher.finalize().iter().take(BYTES).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::digest;

    #[test]
    fn each_text_and_each_border_counts() {
        assert_eq!(digest(["ab", "c"]), digest(["ab", "c"]));
        assert_eq!(digest(["ab"]).len(), 32);
        for other in [&["a", "bc"][..], &["ab"], &["ab", "c", ""], &["c", "ab"]] {
            assert_ne!(digest(other), digest(["ab", "c"]), "{other:?}");
        }
    }
}
