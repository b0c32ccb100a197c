//! The header: dimensions, attributes and variables.
//!
//! ```text
//!   ├ "CDF" version ┼ records ┼ dimensions ┼ attributes ┼ variables ┤
//!
//!   dimension   name, length (0: the record dimension)
//!   variable    name, ids of dimensions, attributes, type, bytes, offset
//! ```
//!
//! The bytes of a variable, `vsize` in the specification, are not used: they follow from the dimensions, and
//! the field is too short for large variables.

use std::collections::HashSet;

use super::attributes::{AttributeList, read_type};
use super::external_type::ExternalType;
use super::reader::{HeaderReader, Pause};
use super::version::Version;

/// The tag of the list of dimensions.
const DIMENSIONS: u32 = 10;
/// The tag of the list of variables.
const VARIABLES: u32 = 11;
/// The most dimensions of a variable, `NC_MAX_VAR_DIMS` of `netcdf.h`.
const MAX_VARIABLE_RANK: u64 = 1024;

/// The contents of a header.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) version: Version,
    /// The number of records; `None` if the file was written as a stream, which leaves it open.
    pub(super) records: Option<u64>,
    pub(super) dimensions: Vec<Dimension>,
    pub(super) attributes: AttributeList,
    pub(super) variables: Vec<HeaderVariable>,
    /// The length of the header in bytes.
    pub(super) len: u64,
}

#[derive(Debug)]
pub(super) struct Dimension {
    pub(super) name: String,
    /// 0 for the record dimension.
    pub(super) len: u64,
}

/// A variable as the header declares it.
#[derive(Debug)]
pub(super) struct HeaderVariable {
    /// The offset of its entry in the header, for errors.
    pub(super) at: u64,
    pub(super) name: String,
    /// Ids of dimensions, which exist. Only the first can be the record dimension.
    pub(super) dimensions: Vec<usize>,
    pub(super) attributes: AttributeList,
    pub(super) external: ExternalType,
    /// The offset of its first value in the file.
    pub(super) begin: u64,
}

impl Header {
    /// Parses the header of a file of `size` bytes, of which the first ones are known.
    pub(super) fn parse(known: &[u8], size: u64) -> Result<Self, Pause> {
        let mut reader = HeaderReader::new(known, size)?;
        let records = reader.count()?;
        let is_open = match reader.version.is_cdf5() {
            true => records == u64::MAX,
            false => records == u64::from(u32::MAX),
        };
        let dimensions = read_dimensions(&mut reader)?;
        let attributes = AttributeList::read(&mut reader)?;
        let variables = read_variables(&mut reader, &dimensions)?;
        Ok(Self {
            version: reader.version,
            records: (!is_open).then_some(records),
            dimensions,
            attributes,
            variables,
            len: reader.offset(),
        })
    }

    /// Returns the record dimension.
    pub(super) fn record_dimension(&self) -> Option<&Dimension> {
        self.dimensions.iter().find(|dimension| dimension.len == 0)
    }

    /// Whether the first dimension of a variable is the record dimension.
    pub(super) fn has_records(&self, variable: &HeaderVariable) -> bool {
        let first = variable.dimensions.first();
        let first = first.and_then(|id| self.dimensions.get(*id));
        first.is_some_and(|dimension| dimension.len == 0)
    }

    /// Returns the ids of the dimensions that only count the characters of texts: each variable that has one is of
    /// characters and has it last, and no variable has its name. xarray has the same rule.
    pub(super) fn of_text(&self) -> HashSet<usize> {
        let names: HashSet<&str> = self.variables.iter().map(|it| it.name.as_str()).collect();
        let ids = self.dimensions.iter().enumerate();
        let unnamed = ids.filter(|(_, it)| !names.contains(it.name.as_str()));
        let mut of_text: HashSet<usize> = unnamed.map(|(id, _)| id).collect();
        for variable in &self.variables {
            let is_text = variable.external == ExternalType::Char;
            let last = variable.dimensions.len().saturating_sub(1);
            for (place, id) in variable.dimensions.iter().enumerate() {
                if !is_text || place != last {
                    of_text.remove(id);
                }
            }
        }
        of_text
    }

    /// Returns the dimensions of a variable.
    pub(super) fn dimensions_of(
        &self,
        variable: &HeaderVariable,
    ) -> impl Iterator<Item = &Dimension> {
        variable.dimensions.iter().filter_map(|id| self.dimensions.get(*id))
    }
}

fn read_dimensions(reader: &mut HeaderReader<'_>) -> Result<Vec<Dimension>, Pause> {
    // A name and a length.
    let count = reader.list(DIMENSIONS, "dimensions", 2 * reader.version.count_len() + 4)?;
    let (mut dimensions, mut names, mut has_records) = (vec![], HashSet::new(), false);
    for _ in 0..count {
        let at = reader.offset();
        let name = reader.name("a dimension")?;
        let len = reader.count()?;
        if !names.insert(name.clone()) {
            return Err(reader.corrupt(at, format!("a second dimension named \"{name}\"")));
        }
        if len == 0 && std::mem::replace(&mut has_records, true) {
            let message = format!("dimension \"{name}\" of length 0, a second record dimension");
            return Err(reader.corrupt(at, message));
        }
        dimensions.push(Dimension { name, len });
    }
    Ok(dimensions)
}

fn read_variables(
    reader: &mut HeaderReader<'_>,
    dimensions: &[Dimension],
) -> Result<Vec<HeaderVariable>, Pause> {
    let count_len = reader.version.count_len();
    // A name, a number of dimensions, a list of attributes, a type, a number of bytes, and an offset.
    let count = reader.list(VARIABLES, "variables", 4 * count_len + 4 + 4 + 4 + 4)?;
    let mut variables = vec![];
    for _ in 0..count {
        variables.push(read_variable(reader, dimensions)?);
    }
    Ok(variables)
}

fn read_variable(
    reader: &mut HeaderReader<'_>,
    dimensions: &[Dimension],
) -> Result<HeaderVariable, Pause> {
    let at = reader.offset();
    let name = reader.name("a variable")?;
    let ids = read_dimension_ids(reader, &name, dimensions)?;
    let attributes = AttributeList::read(reader)?;
    let external = read_type(reader)?;
    let _bytes = reader.count()?;
    let begin = reader.variable_offset()?;
    Ok(HeaderVariable { at, name, dimensions: ids, attributes, external, begin })
}

fn read_dimension_ids(
    reader: &mut HeaderReader<'_>,
    variable: &str,
    dimensions: &[Dimension],
) -> Result<Vec<usize>, Pause> {
    let at = reader.offset();
    let rank = reader.count_of("dimensions of a variable", reader.version.count_len())?;
    if rank > MAX_VARIABLE_RANK {
        let message = format!(
            "{rank} dimensions of variable \"{variable}\", expected at most {MAX_VARIABLE_RANK}"
        );
        return Err(reader.corrupt(at, message));
    }
    let mut ids = vec![];
    for axis in 0..rank {
        let (at, id) = (reader.offset(), reader.count()?);
        let place = usize::try_from(id).unwrap_or(usize::MAX);
        let Some(dimension) = dimensions.get(place) else {
            let message = format!(
                "variable \"{variable}\" with dimension {id}, but there are {}",
                dimensions.len()
            );
            return Err(reader.corrupt(at, message));
        };
        if dimension.len == 0 && axis > 0 {
            let message = format!(
                "the record dimension \"{}\" is dimension {axis} of variable \"{variable}\", expected first",
                dimension.name
            );
            return Err(reader.corrupt(at, message));
        }
        ids.push(place);
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{BYTE, CHAR, File, INT, SHORT};
    use super::*;

    fn parse(file: &File) -> Result<Header, Pause> {
        Header::parse(&file.head(), u64::MAX)
    }

    /// Returns the message of the error.
    fn refused(file: &File) -> String {
        match Header::parse(&file.head(), 10_000_000).unwrap_err() {
            Pause::Fail(error) => error.to_string(),
            Pause::Need(end) => panic!("{end} bytes needed"),
        }
    }

    #[test]
    fn headers_of_all_versions() {
        for version in [1, 2, 5] {
            let file = File::new(version, 7).dimension("t", 0).dimension("x", 3);
            let file = file.attribute("title", CHAR, b"abc").variable("a", SHORT, &[0, 1]);
            let file = file.attribute("_FillValue", SHORT, b"\x01\x02").variable("b", BYTE, &[]);
            let header = parse(&file).unwrap();
            assert_eq!(header.len, file.head().len() as u64);
            assert_eq!((header.records, header.dimensions.len()), (Some(7), 2));
            assert_eq!(header.record_dimension().unwrap().name, "t");
            let [a, b] = &header.variables[..] else { panic!() };
            assert_eq!((&*a.name, &a.dimensions[..], a.begin), ("a", &[0, 1][..], 1 << 20));
            assert_eq!(a.attributes.fill.as_ref().unwrap().1, [2, 1]);
            assert!(header.has_records(a) && !header.has_records(b));
        }
    }

    #[test]
    fn contradictions_are_refused() {
        let file = File::new(1, 1).dimension("t", 0).dimension("x", 3);
        for (file, message) in [
            (file.clone().dimension("u", 0), "a second record dimension"),
            (file.clone().dimension("x", 4), "a second dimension named \"x\""),
            (file.clone().variable("v", INT, &[1, 0]), "dimension \"t\" is dimension 1"),
            (file.clone().variable("v", INT, &[2]), "dimension 2, but there are 2"),
            (file.clone().variable("v", 7, &[1]), "type 7, expected 1 to 6 in CDF-1"),
            (file.clone().variable("v", INT, &[1; 1025]), "1025 dimensions"),
            (file.clone().attribute("a", INT, b"").attribute("a", INT, b""), "a second attribute"),
            (file.clone().variable("", INT, &[1]), "a name of 0 bytes"),
        ] {
            let found = refused(&file);
            assert!(found.contains(message), "{found}");
        }
    }

    #[test]
    fn counts_beyond_the_file_are_refused_at_once() {
        let file = File::new(1, 1).dimension("t", 0).variable("v", INT, &[0]);
        let head = file.head();
        let places =
            [(12, "dimensions"), (32, "attributes"), (40, "variables"), (52, "dimensions")];
        for (at, what) in places {
            let mut damaged = head.clone();
            damaged[at] = 0x7f;
            let Err(Pause::Fail(error)) = Header::parse(&damaged, 1000) else { panic!("{at}") };
            let error = error.to_string();
            assert!(
                error.contains(&format!(" {what}")) && error.contains("bytes follow"),
                "{error}"
            );
        }
        // A tag names the elements of a list, even of an empty one.
        let mut damaged = head.clone();
        damaged[11] = 12;
        assert!(Header::parse(&damaged, 1000).is_err());
    }
}
