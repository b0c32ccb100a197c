//! AES-256-GCM, the cipher of encrypted arrays.
//!
//! Each part of a chunk is encrypted by itself, with a nonce of its own. Nonce and tag are not in the data:
//! they follow the lengths of the part in the filter's metadata (`parts.rs`). Decrypting also verifies the
//! bytes.

use std::fmt;

use aes_gcm::aead::AeadInOut;
use aes_gcm::{Aes256Gcm, KeyInit};

use gridfusion_core::{Error, Result};

/// Bytes of a key.
const KEY_LEN: usize = 32;
/// Bytes of the nonce of a part.
const NONCE_LEN: usize = 12;
/// Bytes of the authentication tag of a part.
const TAG_LEN: usize = 16;
/// Bytes of the seal of a part: nonce and tag.
pub(super) const SEAL_LEN: usize = NONCE_LEN + TAG_LEN;

/// The key of an encrypted array: 32 bytes, used as they are. `Debug` does not print them.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct EncryptionKey([u8; KEY_LEN]);

impl EncryptionKey {
    /// Makes a key of 32 bytes.
    ///
    /// # Errors
    /// `Usage` for another number of bytes.
    pub fn new(key: &[u8]) -> Result<Self> {
        key.try_into().map(Self).map_err(|_| {
            let len = key.len();
            Error::usage(format!("an encryption key of {len} bytes, expected {KEY_LEN}"))
        })
    }
}

impl fmt::Debug for EncryptionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EncryptionKey(..)")
    }
}

/// A cipher that is set up with a key.
#[derive(Clone)]
pub(super) struct Cipher(Box<Aes256Gcm>);

impl fmt::Debug for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cipher(..)")
    }
}

impl Cipher {
    pub(super) fn new(key: &EncryptionKey) -> Self {
        Self(Box::new(Aes256Gcm::new(&key.0.into())))
    }

    /// Decrypts `part` into `output`, with the nonce and the tag in `seal`.
    pub(super) fn decrypt(
        &self,
        part: &[u8],
        seal: &[u8],
        output: &mut [u8],
    ) -> Result<(), String> {
        let seal = seal.split_first_chunk::<NONCE_LEN>();
        let Some((nonce, Ok(tag))) =
            seal.map(|(nonce, tag)| (nonce, <&[u8; TAG_LEN]>::try_from(tag)))
        else {
            return Err("it has no nonce and tag".into());
        };
        if part.len() != output.len() {
            return Err("encryption does not change lengths".into());
        }
        // The cipher works in place.
        output.copy_from_slice(part);
        let opened = self.0.decrypt_inout_detached(nonce.into(), &[], output.into(), tag.into());
        opened.map_err(|_| "it does not decrypt; the encryption key may be wrong".into())
    }
}

#[cfg(test)]
mod tests {
    use super::super::forward::encrypt;
    use super::*;
    use gridfusion_core::ErrorKind;

    #[test]
    fn a_part_opens_with_its_key_only() {
        let keys = [EncryptionKey::new(&[7; 32]).unwrap(), EncryptionKey::new(&[8; 32]).unwrap()];
        let (part, seal) = encrypt(&[7; 32], [3; NONCE_LEN], b"some cells");
        let mut output = [0; 10];
        Cipher::new(&keys[0]).decrypt(&part, &seal, &mut output).unwrap();
        assert_eq!(&output, b"some cells");
        assert!(Cipher::new(&keys[1]).decrypt(&part, &seal, &mut output).is_err());
        assert!(Cipher::new(&keys[0]).decrypt(&part[1..], &seal, &mut output[1..]).is_err());
        assert!(Cipher::new(&keys[0]).decrypt(&part, &seal, &mut output[1..]).is_err());
        assert!(Cipher::new(&keys[0]).decrypt(&part, &seal[1..], &mut output).is_err());
    }

    #[test]
    fn keys_are_not_shown() {
        let key = EncryptionKey::new(b"0123456789abcdef0123456789ABCDEF").unwrap();
        assert_eq!(format!("{key:?} {:?}", Cipher::new(&key)), "EncryptionKey(..) Cipher(..)");
        let error = EncryptionKey::new(b"secret").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert_eq!(error.to_string(), "an encryption key of 6 bytes, expected 32");
    }
}
