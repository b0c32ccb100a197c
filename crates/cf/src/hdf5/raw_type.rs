//! The bits of the numbers of a datatype: integers may use some of theirs, and floats must be IEEE 754.
//!
//! Format: HDF5 File Format Specification version 3.0, IV.A.2.d "The Datatype Message".

use super::bits::Bits;
use super::file_bytes::Fields;
use gridfusion_core::Result;

/// The bits of a type, or the reason why it cannot be read.
type CheckedBits = std::result::Result<Option<Bits>, String>;

/// Returns the bits of the integers of a datatype message, unless they use all; a description if the numbers cannot
/// be read.
pub(super) fn bits(raw: &[u8]) -> Result<CheckedBits> {
    let mut fields = Fields::new("datatype", 0, raw);
    let class = fields.uint(1)? & 15;
    let flags = fields.uint(3)?;
    let size = fields.uint(4)?;
    Ok(match class {
        0 | 4 => integer(&mut fields, flags, size)?,
        1 => float(&mut fields, flags, size)?,
        // An enumeration begins with the type of its integer.
        8 => match raw.get(8..) {
            Some(base) if base.first().is_some_and(|first| first & 15 == 0) => bits(base)?,
            _ => Ok(None),
        },
        _ => Ok(None),
    })
}

fn integer(fields: &mut Fields<'_>, flags: u64, size: u64) -> Result<CheckedBits> {
    let (offset, precision) = (fields.uint(2)?, fields.uint(2)?);
    if (offset, precision) == (0, 8 * size) {
        return Ok(Ok(None));
    }
    if precision == 0 || offset + precision > size.saturating_mul(8) {
        let message = format!("{precision} bits from bit {offset} of {size} bytes");
        return Err(fields.corrupt(message));
    }
    if size > 8 {
        return Ok(Err(format!("integers of {precision} bits in {size} bytes")));
    }
    Ok(Ok(Some(Bits {
        width: size as usize,
        offset: offset as u32,
        precision: precision as u32,
        is_signed: flags & 8 != 0,
        is_big_endian: flags & 1 != 0,
    })))
}

fn float(fields: &mut Fields<'_>, flags: u64, size: u64) -> Result<CheckedBits> {
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
    let is_vax = flags & 0x40 != 0;
    let implied = flags >> 4 & 3 == 2;
    if found == expected && flags >> 8 & 0xff == sign && implied && !is_vax {
        return Ok(Ok(None));
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
        let is_standard = |raw: &[u8]| matches!(bits(raw).unwrap(), Ok(None));
        let i4 = raw(0, [8, 0, 0], 4, &[0, 0, 32, 0]);
        assert!(is_standard(&i4));
        assert!(!is_standard(&raw(0, [8, 0, 0], 4, &[0, 0, 12, 0])));
        let found = bits(&raw(0, [8, 0, 0], 4, &[4, 0, 28, 0])).unwrap().unwrap().unwrap();
        assert_eq!((found.offset, found.precision, found.is_signed), (4, 28, true));
        for wrong in [[4, 0, 29, 0], [0, 0, 0, 0], [0xff, 0xff, 0xff, 0xff]] {
            assert!(bits(&raw(0, [8, 0, 0], 4, &wrong)).is_err());
        }
        let f4 = raw(1, [0x20, 31, 0], 4, &[0, 0, 32, 0, 23, 8, 0, 23, 127, 0, 0, 0]);
        assert!(is_standard(&f4));
        let mut bfloat = raw(1, [0x20, 15, 0], 2, &[0, 0, 16, 0, 7, 8, 0, 7, 127, 0, 0, 0]);
        assert!(!is_standard(&bfloat));
        bfloat[8..].copy_from_slice(&[0, 0, 16, 0, 10, 5, 0, 10, 15, 0, 0, 0]);
        assert!(is_standard(&bfloat));
        assert!(is_standard(&raw(8, [2, 0, 0], 4, &i4)));
        assert!(!is_standard(&raw(8, [2, 0, 0], 4, &raw(0, [8, 0, 0], 4, &[0, 0, 12, 0]))));
        assert!(bits(&i4[..9]).is_err() && bits(&[]).is_err());
    }
}
