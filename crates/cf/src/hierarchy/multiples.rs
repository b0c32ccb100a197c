//! Times that count a multiple of a unit, such as `datetime64[10s]` of numpy.

use std::fmt;

use gridfusion_core::format::TimeUnit;
#[cfg(feature = "hdf5")]
use gridfusion_core::format::codecs::StepDecoder;

/// Turns counts of a multiple of a unit into counts of the unit: 7 times 10 s are 70 s. NaT stays NaT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Multiples {
    /// The units per count, at least 1.
    factor: i64,
    is_big_endian: bool,
}

impl Multiples {
    /// Returns the step for counts of `factor` units; `None` if there is nothing to do.
    pub fn new(factor: i64, is_big_endian: bool) -> Option<Self> {
        (factor > 1).then_some(Self { factor, is_big_endian })
    }

    /// Returns the step for little-endian counts.
    #[must_use]
    pub fn of_little_endian(self) -> Self {
        Self { is_big_endian: false, ..self }
    }

    /// Multiplies the counts.
    ///
    /// # Errors
    /// A message if a time is too far away for 64 bits.
    pub fn apply(self, counts: &mut [u8]) -> Result<(), String> {
        for bytes in counts.as_chunks_mut::<8>().0 {
            let count = match self.is_big_endian {
                true => i64::from_be_bytes(*bytes),
                false => i64::from_le_bytes(*bytes),
            };
            if count == i64::MIN {
                continue;
            }
            let units = count.checked_mul(self.factor).filter(|units| *units != i64::MIN);
            let units = units.ok_or_else(|| {
                format!("the time {count} of {} units each does not fit 64 bits", self.factor)
            })?;
            *bytes = match self.is_big_endian {
                true => units.to_be_bytes(),
                false => units.to_le_bytes(),
            };
        }
        Ok(())
    }
}

#[cfg(feature = "hdf5")]
impl StepDecoder for Multiples {
    fn decode(&self, stored: &[u8], most: usize) -> Result<Vec<u8>, String> {
        if stored.len() > most {
            return Err(format!("{} bytes of times, expected {most}", stored.len()));
        }
        let mut counts = stored.to_vec();
        self.apply(&mut counts)?;
        Ok(counts)
    }
}

impl fmt::Display for Multiples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "times {}", self.factor)
    }
}

/// Returns the multiple and the unit of a type of numpy, of which `text` is the part in brackets: `10s`.
pub fn numpy_unit(text: &str) -> Option<(i64, TimeUnit)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (factor, unit) = text.split_at_checked(digits)?;
    let factor = if factor.is_empty() { 1 } else { factor.parse::<i32>().ok()? };
    Some((i64::from(factor), TimeUnit::from_numpy(unit)?)).filter(|(factor, _)| *factor > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_multiplied_unless_they_are_nat() {
        for is_big_endian in [false, true] {
            let bytes = |counts: &[i64]| -> Vec<u8> {
                let bytes = counts.iter().flat_map(|it| match is_big_endian {
                    true => it.to_be_bytes(),
                    false => it.to_le_bytes(),
                });
                bytes.collect()
            };
            let tens = Multiples::new(10, is_big_endian).unwrap();
            let mut counts = bytes(&[7, -3, i64::MIN]);
            tens.apply(&mut counts).unwrap();
            assert_eq!(counts, bytes(&[70, -30, i64::MIN]));
            assert!(tens.apply(&mut bytes(&[i64::MAX / 10 + 1])).is_err());
            #[cfg(feature = "hdf5")]
            assert!(tens.decode(&bytes(&[1]), 7).is_err());
        }
        assert_eq!(Multiples::new(1, false), None);
        let two = Multiples::new(2, false).unwrap();
        assert!(two.apply(&mut (i64::MIN / 2).to_le_bytes()).is_err());
    }

    #[test]
    fn units_of_numpy() {
        assert_eq!(numpy_unit("s"), Some((1, TimeUnit::Second)));
        assert_eq!(numpy_unit("25us"), Some((25, TimeUnit::Microsecond)));
        for wrong in ["", "10", "0s", "-1s", "9999999999s", "10 s", "s/2"] {
            assert_eq!(numpy_unit(wrong), None, "{wrong}");
        }
    }
}
