//! Well-known text: `POLYGON ((x y, x y, …), (…))`, `MULTIPOLYGON`, `GEOMETRYCOLLECTION`, each maybe with
//! `Z`, `M` or `ZM`, or `EMPTY`.
//!
//! The crate `wkt` was tried: it overflows the stack on nested collections, and ignores text behind the
//! geometry.

use gridfusion_core::{Error, Result};

use super::Builder;

/// The most collections that may be nested in each other.
pub(super) const DEEPEST: usize = 32;

pub(super) fn parse(text: &str) -> Result<Builder> {
    let mut reader = Reader { text, at: 0, builder: Builder::default() };
    if reader.peek().get(..5).is_some_and(|it| it.eq_ignore_ascii_case("SRID=")) {
        reader.at = text.find(';').map_or(text.len(), |it| it + 1);
    }
    reader.geometry(0)?;
    if reader.peek().is_empty() {
        Ok(reader.builder)
    } else {
        Err(reader.expected("the end of the text"))
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    builder: Builder,
}

impl<'a> Reader<'a> {
    fn geometry(&mut self, depth: usize) -> Result<()> {
        if depth > DEEPEST {
            return Err(Error::usage(format!("collections are nested more than {DEEPEST} deep")));
        }
        let name = self.word();
        let mut kind = name.to_ascii_uppercase();
        kind.truncate(kind.trim_end_matches(['Z', 'M']).len());
        let before = self.at;
        if !matches!(self.word().to_ascii_uppercase().as_str(), "Z" | "M" | "ZM") {
            self.at = before;
        }
        let body = self.at;
        let empty = self.word().eq_ignore_ascii_case("EMPTY");
        if !empty {
            self.at = body;
        }
        match kind.as_str() {
            "POINT" | "LINESTRING" | "MULTIPOINT" | "MULTILINESTRING" => {
                if empty {
                    Ok(())
                } else {
                    Err(Error::usage(format!(
                        "{kind} covers no cells: a region is made of polygons"
                    )))
                }
            }
            "POLYGON" | "MULTIPOLYGON" | "GEOMETRYCOLLECTION" if empty => Ok(()),
            "POLYGON" => self.polygon(),
            "MULTIPOLYGON" => self.list(Self::polygon),
            "GEOMETRYCOLLECTION" => self.list(|it| it.geometry(depth + 1)),
            _ => {
                self.at = before - name.len();
                Err(self.expected("POLYGON or MULTIPOLYGON"))
            }
        }
    }

    fn polygon(&mut self) -> Result<()> {
        let start = self.at;
        if self.word().eq_ignore_ascii_case("EMPTY") {
            return Ok(());
        }
        self.at = start;
        self.builder.begin_polygon();
        self.list(|it| {
            it.builder.begin_ring();
            it.list(Self::point)
        })
    }

    fn point(&mut self) -> Result<()> {
        let point = [self.number()?, self.number()?];
        for _ in 0..2 {
            if !self.peek().starts_with([',', ')']) {
                self.number()?;
            }
        }
        self.builder.push(point);
        Ok(())
    }

    /// Reads `(item, item, …)`.
    fn list(&mut self, item: impl Fn(&mut Self) -> Result<()>) -> Result<()> {
        self.symbol("(")?;
        loop {
            item(self)?;
            if !self.peek().starts_with(',') {
                return self.symbol(")");
            }
            self.at += 1;
        }
    }

    fn symbol(&mut self, symbol: &str) -> Result<()> {
        if !self.peek().starts_with(symbol) {
            return Err(self.expected(symbol));
        }
        self.at += symbol.len();
        Ok(())
    }

    fn number(&mut self) -> Result<f64> {
        let rest = self.peek();
        let end =
            rest.find(|it: char| it.is_whitespace() || "(),".contains(it)).unwrap_or(rest.len());
        match rest[..end].parse() {
            Ok(number) => {
                self.at += end;
                Ok(number)
            }
            Err(_) => Err(self.expected("a number")),
        }
    }

    /// Takes letters, maybe none.
    fn word(&mut self) -> &'a str {
        let rest = self.peek();
        let end = rest.find(|it: char| !it.is_ascii_alphabetic()).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// Skips whitespace, and returns the rest of the text.
    fn peek(&mut self) -> &'a str {
        let rest = self.text[self.at..].trim_start();
        self.at = self.text.len() - rest.len();
        rest
    }

    fn expected(&mut self, what: &str) -> Error {
        let rest = self.peek();
        let found: String = rest.chars().take(20).collect();
        let found = match found.as_str() {
            "" => "the text ends".to_owned(),
            found => format!("it is {found:?}"),
        };
        Error::usage(format!(
            "expected {what} at character {}, but {found}",
            self.text[..self.at].chars().count() + 1
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Region;

    #[test]
    fn spellings() {
        for text in [
            "POLYGON((0 0,4 0,0 3,0 0))",
            " polygon ( (0 0 , 4 0 , 0 3 , 0 0 ) ) \n",
            "POLYGON Z ((0 0 1, 4 0 1, 0 3 1, 0 0 1))",
            "POLYGONZM ((0 0 1 2, 4 0 1 2, 0 3 1 2, 0 0 1 2))",
            "SRID=4326;POLYGON ((0 0, 4e0 0, +0 3.0, 0 0))",
            "MULTIPOLYGON (((0 0, 4 0, 0 3, 0 0)))",
            "MULTIPOLYGON (EMPTY, ((0 0, 4 0, 0 3, 0 0)))",
            "GEOMETRYCOLLECTION (POLYGON ((0 0, 4 0, 0 3, 0 0)), POINT EMPTY)",
        ] {
            assert_eq!(
                Region::from_wkt(text).unwrap_or_else(|it| panic!("{text}: {it}")).area(),
                6.0
            );
        }
    }

    #[test]
    fn errors_name_the_character() {
        let error = |it: &str| Region::from_wkt(it).unwrap_err().to_string();
        assert_eq!(
            error(""),
            "WKT: expected POLYGON or MULTIPOLYGON at character 1, but the text ends"
        );
        assert_eq!(
            error("KREIS (0 0)"),
            "WKT: expected POLYGON or MULTIPOLYGON at character 1, but it is \"KREIS (0 0)\""
        );
        assert_eq!(
            error("POLYGON ((0 0, 4 x, 0 3, 0 0))"),
            "WKT: expected a number at character 18, but it is \"x, 0 3, 0 0))\""
        );
        assert_eq!(
            error("POLYGON ((0 0, 4 0, 0 3, 0 0)"),
            "WKT: expected ) at character 30, but the text ends"
        );
        assert_eq!(
            error("POLYGON ((0 0, 4 0, 0 3, 0 0)), 7"),
            "WKT: expected the end of the text at character 31, but it is \", 7\""
        );
        assert_eq!(
            error("LINESTRING (0 0, 1 1)"),
            "WKT: LINESTRING covers no cells: a region is made of polygons"
        );
        assert!(error("POLYGON ((0 0, nan 0, 0 3, 0 0))").contains("is (NaN, 0)"));
        assert!(error("POLYGON ((0 0, 1e999 0, 0 3, 0 0))").contains("is (inf, 0)"));
        assert!(error(&"GEOMETRYCOLLECTION(".repeat(100_000)).contains("nested more than 32 deep"));
        assert!(error("SRID=4326 POLYGON ((0 0))").contains("the text ends"));
    }
}
