//! Whether the numbers of a datatype are as usual for their size: integers that use all bits, and IEEE 754 floats.
//!
//! Format: HDF5 File Format Specification version 3.0, IV.A.2.d "The Datatype Message".

use super::file_bytes::Fields;
use crate::error::Result;

/// Fails with a description if a datatype message is a number with unusual bits.
pub(super) fn check_standard(raw: &[u8]) -> Result<std::result::Result<(), String>> {
    let mut fields = Fields::new("datatype", 0, raw);
    let class = fields.uint(1)? & 15;
    let bits = fields.uint(3)?;
    let size = fields.uint(4)?;
    Ok(match class {
        0 | 4 => integer(&mut fields, size)?,
        1 => float(&mut fields, bits, size)?,
        // An enumeration begins with the type of its integer.
        8 => match raw.get(8..) {
            Some(base) if base.first().is_some_and(|first| first & 15 == 0) => {
                check_standard(base)?
            }
            _ => Ok(()),
        },
        _ => Ok(()),
    })
}

fn integer(fields: &mut Fields<'_>, size: u64) -> Result<std::result::Result<(), String>> {
    let (offset, precision) = (fields.uint(2)?, fields.uint(2)?);
    if (offset, precision) == (0, 8 * size) {
        return Ok(Ok(()));
    }
    Ok(Err(format!("integers of {precision} bits from bit {offset} of {size} bytes")))
}

fn float(fields: &mut Fields<'_>, bits: u64, size: u64) -> Result<std::result::Result<(), String>> {
    let found = [fields.uint(2)?, fields.uint(2)?];
    let found = [
        found[0],
        found[1],
        fields.uint(1)?,
        fields.uint(1)?,
        fields.uint(1)?,
        fields.uint(1)?,
        fields.uint(4)?,
    ];
    // Offset, precision, place and size of the exponent, place and size of the mantissa, bias; place of the sign.
    let (expected, sign) = match size {
        2 => ([0, 16, 10, 5, 0, 10, 15], 15),
        4 => ([0, 32, 23, 8, 0, 23, 127], 31),
        8 => ([0, 64, 52, 11, 0, 52, 1023], 63),
        _ => return Ok(Err(format!("floats of {size} bytes"))),
    };
    let is_vax = bits & 0x40 != 0;
    let implied = bits >> 4 & 3 == 2;
    if found == expected && bits >> 8 & 0xff == sign && implied && !is_vax {
        return Ok(Ok(()));
    }
    Ok(Err(format!("floats of {size} bytes that are not IEEE 754")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(class: u8, bits: [u8; 3], size: u32, rest: &[u8]) -> Vec<u8> {
        [&[0x10 | class][..], &bits, &size.to_le_bytes(), rest].concat()
    }

    #[test]
    fn only_standard_numbers_pass() {
        let is_standard = |raw: &[u8]| check_standard(raw).unwrap().is_ok();
        let i4 = raw(0, [8, 0, 0], 4, &[0, 0, 32, 0]);
        assert!(is_standard(&i4));
        assert!(!is_standard(&raw(0, [8, 0, 0], 4, &[0, 0, 12, 0])));
        assert!(!is_standard(&raw(0, [8, 0, 0], 4, &[4, 0, 28, 0])));
        let f4 = raw(1, [0x20, 31, 0], 4, &[0, 0, 32, 0, 23, 8, 0, 23, 127, 0, 0, 0]);
        assert!(is_standard(&f4));
        let mut bfloat = raw(1, [0x20, 15, 0], 2, &[0, 0, 16, 0, 7, 8, 0, 7, 127, 0, 0, 0]);
        assert!(!is_standard(&bfloat));
        bfloat[8..].copy_from_slice(&[0, 0, 16, 0, 10, 5, 0, 10, 15, 0, 0, 0]);
        assert!(is_standard(&bfloat));
        assert!(is_standard(&raw(8, [2, 0, 0], 4, &i4)));
        assert!(!is_standard(&raw(8, [2, 0, 0], 4, &raw(0, [8, 0, 0], 4, &[0, 0, 12, 0]))));
        assert!(check_standard(&i4[..9]).is_err() && check_standard(&[]).is_err());
    }
}
