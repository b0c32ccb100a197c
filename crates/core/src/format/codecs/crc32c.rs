//! CRC-32C: the cyclic redundancy check with the polynomial of Castagnoli, as RFC 3720 (appendix B.4) describes it.
//!
//! Eight bytes at a time, with a table for each: table `n` holds the checks of bytes that `n` zeros follow.

/// The polynomial, with its bits in reverse.
const POLYNOMIAL: u32 = 0x82F6_3B78;

static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let (mut check, mut bit) = (byte as u32, 0);
        while bit < 8 {
            check = if check & 1 == 1 { check >> 1 ^ POLYNOMIAL } else { check >> 1 };
            bit += 1;
        }
        tables[0][byte] = check;
        byte += 1;
    }
    let mut zeros = 1;
    while zeros < 8 {
        let mut byte = 0;
        while byte < 256 {
            let check: u32 = tables[zeros - 1][byte];
            tables[zeros][byte] = check >> 8 ^ tables[0][(check & 0xFF) as usize];
            byte += 1;
        }
        zeros += 1;
    }
    tables
}

/// Returns the check of `bytes`.
pub fn crc32c(bytes: &[u8]) -> u32 {
    let entry = |zeros: usize, byte: u32| TABLES[zeros][(byte & 0xFF) as usize];
    let (words, rest) = bytes.as_chunks::<8>();
    let check = words.iter().fold(!0, |check: u32, &[a, b, c, d, e, f, g, h]| {
        let low = check ^ u32::from_le_bytes([a, b, c, d]);
        let high = u32::from_le_bytes([e, f, g, h]);
        entry(7, low)
            ^ entry(6, low >> 8)
            ^ entry(5, low >> 16)
            ^ entry(4, low >> 24)
            ^ entry(3, high)
            ^ entry(2, high >> 8)
            ^ entry(1, high >> 16)
            ^ entry(0, high >> 24)
    });
    let step = |check: u32, byte: &u8| check >> 8 ^ entry(0, check ^ u32::from(*byte));
    !rest.iter().fold(check, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One bit at a time.
    fn slow(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(!0, |check: u32, byte| {
            (0..8).fold(check ^ u32::from(*byte), |check, _| {
                check >> 1 ^ if check & 1 == 1 { POLYNOMIAL } else { 0 }
            })
        })
    }

    #[test]
    fn checks_of_the_specification() {
        let ascending: Vec<u8> = (0..32).collect();
        assert_eq!(crc32c(&[0; 32]), 0x8A91_36AA);
        assert_eq!(crc32c(&[0xFF; 32]), 0x62A8_AB43);
        assert_eq!(crc32c(&ascending), 0x46DD_794E);
        assert_eq!(crc32c(b"123456789"), 0xE306_9283);
        let bytes: Vec<u8> = (0..3_000_u32).map(|at| ((at * at) >> 3) as u8).collect();
        for len in 0..200 {
            assert_eq!(crc32c(&bytes[len..len * 11]), slow(&bytes[len..len * 11]));
        }
    }
}
