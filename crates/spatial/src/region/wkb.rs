//! Well-known binary, as *OpenGIS Simple Feature Access* defines it, and as PostGIS extends it.
//!
//! ```text
//!   polygon       order type  rings   { points  { x y [z] [m] } }
//!   multipolygon  order type  parts   { polygon }
//!   collection    order type  parts   { geometry }
//! ```
//!
//! Each geometry has its own byte order. The crate `wkb` was tried: it reads a part with the order and
//! the dimensions of the whole, so a legal file is misread.

use gridfusion_core::{Error, Result};

use super::Builder;
use super::wkt::DEEPEST;

const POINT: u32 = 1;
const POLYGON: u32 = 3;
const MULTI_POLYGON: u32 = 6;
const COLLECTION: u32 = 7;

pub(super) fn parse(bytes: &[u8]) -> Result<Builder> {
    let mut reader = Reader { bytes, rest: bytes, little: true, builder: Builder::default() };
    reader.geometry(None, 0)?;
    if reader.rest.is_empty() {
        Ok(reader.builder)
    } else {
        Err(reader.wrong(format!("{} bytes are left over", reader.rest.len())))
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    rest: &'a [u8],
    little: bool,
    builder: Builder,
}

impl Reader<'_> {
    /// Reads a geometry, of type `only` if it is a part of several.
    fn geometry(&mut self, only: Option<u32>, depth: usize) -> Result<()> {
        if depth > DEEPEST {
            return Err(self.wrong(format!("collections are nested more than {DEEPEST} deep")));
        }
        self.little = match self.take::<1>()? {
            [0] => false,
            [1] => true,
            [other] => return Err(self.wrong(format!("byte order {other}, expected 0 or 1"))),
        };
        let code = self.u32()?;
        if code & 0x2000_0000 != 0 {
            self.u32()?; // the number of the reference system
        }
        let (kind, dimensions) = dimensions(code);
        if only.is_some_and(|it| it != kind) {
            return Err(self.wrong(format!("a part is {}, expected a polygon", name(kind))));
        }
        match kind {
            POLYGON => self.polygon(dimensions),
            MULTI_POLYGON | COLLECTION => {
                let part = (kind == MULTI_POLYGON).then_some(POLYGON);
                for _ in 0..self.u32()? {
                    self.geometry(part, depth + 1)?;
                }
                Ok(())
            }
            POINT if self.is_empty_point(dimensions)? => Ok(()),
            2 | 4 | 5 if self.u32()? == 0 => Ok(()),
            _ => Err(Error::usage(format!(
                "{} covers no cells: a region is made of polygons",
                name(kind)
            ))),
        }
    }

    /// Reads a point, which is empty if its coordinates are no numbers.
    fn is_empty_point(&mut self, dimensions: usize) -> Result<bool> {
        let mut empty = true;
        for _ in 0..dimensions {
            empty &= self.f64()?.is_nan();
        }
        Ok(empty)
    }

    fn polygon(&mut self, dimensions: usize) -> Result<()> {
        self.builder.begin_polygon();
        for _ in 0..self.u32()? {
            self.builder.begin_ring();
            for _ in 0..self.u32()? {
                let point = [self.f64()?, self.f64()?];
                for _ in 2..dimensions {
                    self.f64()?;
                }
                self.builder.push(point);
            }
        }
        Ok(())
    }

    fn u32(&mut self) -> Result<u32> {
        let bytes = self.take()?;
        Ok(if self.little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
    }

    fn f64(&mut self) -> Result<f64> {
        let bytes = self.take()?;
        Ok(if self.little { f64::from_le_bytes(bytes) } else { f64::from_be_bytes(bytes) })
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let Some((taken, rest)) = self.rest.split_first_chunk() else {
            return Err(self.wrong("the bytes end in the middle of the geometry"));
        };
        self.rest = rest;
        Ok(*taken)
    }

    fn wrong(&self, message: impl AsRef<str>) -> Error {
        let at = self.bytes.len() - self.rest.len();
        Error::usage(format!("{} at byte {at} of {}", message.as_ref(), self.bytes.len()))
    }
}

/// Returns the type without its dimensions, and their number.
fn dimensions(code: u32) -> (u32, usize) {
    // Flags of PostGIS, or thousands of ISO 13249.
    let (z, m) = (code & 0x8000_0000 != 0, code & 0x4000_0000 != 0);
    let code = code & 0x0fff_ffff;
    match code / 1000 {
        0 => (code, 2 + usize::from(z) + usize::from(m)),
        1 | 2 => (code % 1000, 3),
        3 => (code % 1000, 4),
        _ => (code, 2),
    }
}

fn name(kind: u32) -> String {
    let names = [
        "",
        "a point",
        "a line",
        "a polygon",
        "several points",
        "several lines",
        "several polygons",
        "a collection",
    ];
    match names.get(kind as usize) {
        Some(name) if kind > 0 => (*name).to_owned(),
        _ => format!("a geometry of type {kind}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Region;
    use rand::{Rng, SeedableRng, rngs::StdRng};

    fn polygon(little: bool, code: u32, points: &[&[f64]]) -> Vec<u8> {
        let u32 = |it: u32| if little { it.to_le_bytes() } else { it.to_be_bytes() };
        let mut bytes = vec![u8::from(little)];
        bytes.extend([code, 1, points.len() as u32].map(u32).concat());
        for value in points.iter().copied().flatten() {
            bytes.extend(if little { value.to_le_bytes() } else { value.to_be_bytes() });
        }
        bytes
    }

    fn several(code: u8, parts: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = vec![0, 0, 0, 0, code, 0, 0, 0, parts.len() as u8];
        bytes.extend(parts.concat());
        bytes
    }

    const TRIANGLE: [&[f64]; 4] = [&[0.0, 0.0], &[4.0, 0.0], &[0.0, 3.0], &[0.0, 0.0]];
    const HIGH: [&[f64]; 4] =
        [&[10.0, 0.0, 7.0], &[14.0, 0.0, 7.0], &[10.0, 3.0, 7.0], &[10.0, 0.0, 7.0]];

    #[test]
    fn orders_and_dimensions_may_differ() {
        let parts = [polygon(true, 3, &TRIANGLE), polygon(false, 1003, &HIGH)];
        assert_eq!(Region::from_wkb(&several(6, &parts)).unwrap().area(), 12.0);
        assert_eq!(Region::from_wkb(&several(7, &[several(6, &parts)])).unwrap().area(), 12.0);
        assert_eq!(Region::from_wkb(&polygon(true, 0x8000_0003, &HIGH)).unwrap().area(), 6.0);
        let mut with_srid = polygon(true, 0x2000_0003, &TRIANGLE);
        with_srid.splice(5..5, 4326u32.to_le_bytes());
        assert_eq!(Region::from_wkb(&with_srid).unwrap().area(), 6.0);
        assert!(Region::from_wkb(&several(7, &[])).unwrap().is_empty());
    }

    #[test]
    fn errors_name_the_byte() {
        let error = |it: &[u8]| Region::from_wkb(it).unwrap_err().to_string();
        let whole = polygon(true, 3, &TRIANGLE);
        assert_eq!(error(&[]), "WKB: the bytes end in the middle of the geometry at byte 0 of 0");
        assert_eq!(
            error(&whole[..50]),
            "WKB: the bytes end in the middle of the geometry at byte 45 of 50"
        );
        assert_eq!(
            error(&[whole.clone(), vec![0]].concat()),
            "WKB: 1 bytes are left over at byte 77 of 78"
        );
        assert_eq!(error(b"POLYGON"), "WKB: byte order 80, expected 0 or 1 at byte 1 of 7");
        let line = [1, 2, 0, 0, 0, 1, 0, 0, 0];
        assert_eq!(error(&line), "WKB: a line covers no cells: a region is made of polygons");
        assert!(error(&several(6, &[line.to_vec()])).starts_with("WKB: a part is a line"));
        assert!(error(&[1, 17, 0, 0, 0]).contains("a geometry of type 17"));
        let mut deep = polygon(true, 3, &TRIANGLE);
        for _ in 0..100_000 {
            deep.splice(0..0, [0, 0, 0, 0, 7, 0, 0, 0, 1]);
            if deep.len() > 2000 {
                break;
            }
        }
        assert!(error(&deep).contains("nested more than"));
    }

    #[test]
    fn damaged_bytes_never_panic() {
        let whole = several(6, &[polygon(true, 3, &TRIANGLE), polygon(false, 1003, &HIGH)]);
        let mut random = StdRng::seed_from_u64(3);
        let mut errors = 0;
        for _ in 0..20_000 {
            let mut bytes = whole.clone();
            for _ in 0..random.random_range(1..4) {
                let at = random.random_range(0..bytes.len());
                bytes[at] = random.random();
            }
            bytes.truncate(random.random_range(bytes.len() / 2..bytes.len() * 2));
            errors += usize::from(Region::from_wkb(&bytes).is_err());
        }
        assert!(errors > 10_000, "{errors}");
    }
}
