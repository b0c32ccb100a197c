//! An open file: its variables, and the place of their chunks.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use super::chunk_shape::{self, Access};
use super::extents::Extents;
use super::external_type::ExternalType;
use super::header::{Header, HeaderVariable};
use super::interleaved::RecordBytes;
use super::version::Version;
use crate::hierarchy::{Axis, CellType, Hierarchy, Unreadable, Variable};
use gridfusion_core::format::{ByteOrder, Codec, Layer, Location, Payload, Placement, StoredChunk};
use gridfusion_core::grid::MAX_RANK;
use gridfusion_core::{Error, Result};

/// The most bytes of a text cell that need not lie in the file.
const MOST_ABSENT_TEXT: u64 = 4096;

/// The header of a NetCDF classic file.
///
/// A file may be shorter than its header promises, for example because it was copied in part. It opens, and
/// [`Self::locate`] fails for the chunks that the file lacks.
#[derive(Debug)]
pub struct NetCdf3File {
    version: Version,
    size: u64,
    record_dimension: Option<String>,
    records: u64,
    record_stride: u64,
    data_end: u64,
    hierarchy: Hierarchy,
    /// The stored bytes of each variable of the hierarchy.
    stored: Vec<StoredVariable>,
}

/// The bytes of a variable.
#[derive(Debug)]
struct StoredVariable {
    /// The offset of the first cell.
    begin: u64,
    /// The bytes of a cell.
    cell: u64,
    /// The bytes of a word.
    word: u64,
    /// The bytes from one record to the next, if the first axis is the record dimension.
    stride: Option<u64>,
}

impl NetCdf3File {
    /// Describes the variables of a file of `size` bytes.
    pub(super) fn from_header(header: Header, size: u64) -> Result<Self> {
        let extents = Extents::try_new(&header, size)?;
        let mut file = Self {
            version: header.version,
            size,
            record_dimension: header.record_dimension().map(|dimension| dimension.name.clone()),
            records: extents.records,
            record_stride: extents.stride,
            data_end: extents.end,
            hierarchy: Hierarchy::default(),
            stored: vec![],
        };
        let (mut names, of_text) = (HashSet::new(), header.of_text());
        for declared in &header.variables {
            let described = match names.insert(declared.name.as_str()) {
                true => file.describe(&header, declared, &of_text),
                false => {
                    let message = format!("a second variable named \"{}\"", declared.name);
                    Err(Error::corrupt("header", declared.at, message))
                }
            };
            match described {
                Ok((variable, stored)) => {
                    file.hierarchy.variables.push(variable);
                    file.stored.push(stored);
                }
                Err(error) => {
                    let path = declared.name.clone();
                    file.hierarchy.unreadable.push(Unreadable::new(path, error));
                }
            }
        }
        file.hierarchy.groups.insert(String::new(), header.attributes.values.into());
        Ok(file)
    }

    /// Returns the variables, and the attributes of the file as those of the root group.
    pub fn hierarchy(&self) -> &Hierarchy {
        &self.hierarchy
    }

    /// Returns the version of the format.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Returns the name of the dimension that can grow, if there is one.
    pub fn record_dimension(&self) -> Option<&str> {
        self.record_dimension.as_deref()
    }

    /// Returns the number of records: the length of the record dimension.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Returns the bytes from one record to the next; 0 if no variable has the record dimension.
    pub fn record_stride(&self) -> u64 {
        self.record_stride
    }

    /// Returns the number of bytes that the header promises and the file lacks.
    pub fn missing_bytes(&self) -> u64 {
        self.data_end.saturating_sub(self.size)
    }

    /// Returns the length of the file in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the chunks of a variable, by its place in the hierarchy, and their bytes, which are not compressed.
    pub fn stored(&self, variable: usize) -> Option<(u64, u64)> {
        let (variable, stored) =
            self.hierarchy.variables.get(variable).zip(self.stored.get(variable))?;
        let axes = variable.axes.iter().zip(&variable.chunk_shape);
        let chunks = axes.map(|(axis, edge)| axis.len.div_ceil((*edge).max(1)));
        let cells =
            variable.axes.iter().map(|axis| axis.len).fold(stored.cell, u64::saturating_mul);
        Some((chunks.fold(1, u64::saturating_mul), cells))
    }

    /// Describes a variable.
    ///
    /// # Errors
    /// `Unsupported` if it has too many axes, or too long a text per cell. `Corrupt` if its name is a path, or if the
    /// file lacks its text.
    fn describe(
        &self,
        header: &Header,
        declared: &HeaderVariable,
        of_text: &HashSet<usize>,
    ) -> Result<(Variable, StoredVariable)> {
        let name = &declared.name;
        if name.contains('/') {
            let message = format!("variable \"{name}\" has a \"/\" in its name");
            return Err(Error::corrupt("header", declared.at, message));
        }
        let has_records = header.has_records(declared);
        let mut axes: Vec<(&str, u64)> =
            header.dimensions_of(declared).map(|it| (it.name.as_str(), it.len)).collect();
        let is_text = declared.dimensions.last().is_some_and(|id| of_text.contains(id));
        let folds = is_text && axes.len() > usize::from(has_records);
        let cell = self.cell_type(declared, has_records, folds, &mut axes)?;
        let width = cell.width().unwrap_or(1);
        if axes.len() > MAX_RANK {
            let message = format!(
                "variable \"{name}\" has {} axes, of which {MAX_RANK} can be read",
                axes.len()
            );
            return Err(Error::unsupported(message));
        }
        let stride = has_records.then_some(self.record_stride);
        let lens: Vec<u64> = axes.iter().map(|(_, len)| *len).collect();
        let chunk_shape = match (stride, lens.split_first()) {
            (Some(stride), Some((_, inner))) => {
                chunk_shape::of_records(self.records, inner, width, stride)
            }
            _ => chunk_shape::of_run(&lens, width),
        };
        let axis = |(axis, (name, len)): (usize, &(&str, u64))| {
            let len = if has_records && axis == 0 { self.records } else { *len };
            Axis::new(Some((*name).to_owned()), len)
        };
        let variable = Variable {
            path: name.clone(),
            axes: axes.iter().enumerate().map(axis).collect(),
            chunk_shape,
            fill: fill(declared, width),
            fill_is_missing: false,
            attributes: declared.attributes.values.clone().into(),
            cell,
        };
        let word = declared.external.size();
        Ok((variable, StoredVariable { begin: declared.begin, cell: width, word, stride }))
    }

    /// Returns the type of a variable's cells. If text `folds`, takes its last axis, which becomes a part of the cell.
    fn cell_type(
        &self,
        declared: &HeaderVariable,
        has_records: bool,
        folds: bool,
        axes: &mut Vec<(&str, u64)>,
    ) -> Result<CellType> {
        if let ExternalType::Number(element) = declared.external {
            return Ok(CellType::Number(element));
        }
        // Records do not become a part of the cell.
        let len = match folds {
            true => axes.pop().map_or(1, |(_, len)| len),
            false => 1,
        };
        let name = &declared.name;
        // The fill value of a cell takes as much memory, so a long one must be there.
        let is_in_file = !(has_records && self.records == 0)
            && declared.begin.checked_add(len).is_some_and(|end| end <= self.size);
        if len > MOST_ABSENT_TEXT && !is_in_file {
            let message = format!(
                "variable \"{name}\" has text of {len} bytes, which the file does not hold"
            );
            return Err(Error::corrupt("header", declared.at, message));
        }
        let width = u32::try_from(len).map_err(|_| {
            Error::unsupported(format!(
                "variable \"{name}\" has text of {len} bytes, more than 4 GiB"
            ))
        })?;
        Ok(CellType::FixedUtf8(width))
    }

    /// Returns where the chunk at these chunk coordinates is stored, for a variable by its place in the hierarchy.
    ///
    /// # Errors
    /// `Corrupt` if the file ends before the chunk does; `Internal` if there is no such chunk.
    pub fn locate(&self, variable: usize, chunk: &[u64]) -> Result<StoredChunk> {
        let described = self.hierarchy.variables.get(variable).zip(self.stored.get(variable));
        let (described, stored) =
            described.ok_or_else(|| Error::internal(format!("there is no variable {variable}")))?;
        let region = region(described, chunk)?;
        let at = Runs::try_new(described, stored, &region).ok_or_else(|| beyond_file(described))?;
        let all = at.range().ok_or_else(|| beyond_file(described))?;
        if all.end > self.size {
            let message = format!(
                "variable \"{}\" has a chunk at bytes {all:?}, but the file ends at byte {}; it was not written or \
                 copied to its end",
                described.path, self.size
            );
            return Err(Error::corrupt("variable", all.start, message));
        }
        Ok(StoredChunk::new(at.layers(ByteOrder::big(stored.word as usize), &region)))
    }
}

fn beyond_file(variable: &Variable) -> Error {
    Error::internal(format!("a chunk of variable \"{}\" beyond any file", variable.path))
}

/// Returns the bytes of a cell that was never written.
fn fill(declared: &HeaderVariable, width: u64) -> Vec<u8> {
    let given = declared.attributes.fill.as_ref();
    let given = given.filter(|(external, _)| *external == declared.external);
    let value = given.map_or_else(|| declared.external.default_fill(), |(_, value)| value.clone());
    match (declared.external, value.as_slice()) {
        (ExternalType::Char, [byte]) => vec![*byte; width as usize],
        _ => value,
    }
}

/// Returns the elements of a chunk along each axis.
fn region(variable: &Variable, chunk: &[u64]) -> Result<Vec<Range<u64>>> {
    let along = |((at, edge), axis): ((&u64, &u64), &Axis)| {
        let start = at.checked_mul(*edge).filter(|start| *start < axis.len)?;
        Some(start..start.saturating_add(*edge).min(axis.len))
    };
    let region = chunk.iter().zip(&variable.chunk_shape).zip(&variable.axes).map(along);
    let region: Option<Vec<_>> = region.collect();
    region.filter(|_| chunk.len() == variable.axes.len()).ok_or_else(|| {
        let message = format!("variable \"{}\" has no chunk {chunk:?}", variable.path);
        Error::internal(message)
    })
}

/// The bytes of a chunk: a run in each of its records, or a single run.
#[derive(Debug, Clone, Copy)]
struct Runs {
    start: u64,
    /// The bytes of a run.
    len: u64,
    /// The number of runs, at least 1.
    count: u64,
    /// The bytes from one run to the next.
    stride: u64,
}

impl Runs {
    /// Returns the runs of a region; `None` if offsets overflow.
    fn try_new(
        variable: &Variable,
        stored: &StoredVariable,
        region: &[Range<u64>],
    ) -> Option<Self> {
        let outer = usize::from(stored.stride.is_some());
        let (mut start, mut len, mut row) = (stored.begin, stored.cell, stored.cell);
        for (axis, range) in variable.axes.iter().zip(region).skip(outer).rev() {
            start = start.checked_add(range.start.checked_mul(row)?)?;
            len = len.checked_mul(range.end - range.start)?;
            row = row.checked_mul(axis.len)?;
        }
        let (Some(stride), Some(records)) = (stored.stride, region.first()) else {
            return Some(Self { start, len, count: 1, stride: len });
        };
        let start = start.checked_add(records.start.checked_mul(stride)?)?;
        Some(Self { start, len, count: records.end - records.start, stride })
    }

    /// Returns the bytes from the first to the last run.
    fn range(self) -> Option<Range<u64>> {
        let last = self.start.checked_add(self.count.checked_sub(1)?.checked_mul(self.stride)?)?;
        Some(self.start..last.checked_add(self.len)?)
    }

    /// Returns the layers of the chunk: one, or one per record. The range of the runs does not overflow.
    fn layers(self, byte_order: ByteOrder, region: &[Range<u64>]) -> Vec<Layer> {
        let object: Arc<str> = "".into();
        let payload = |range: Range<u64>, raw_len, codec| {
            let at = Location::new(Arc::clone(&object), range);
            Payload::new(at, raw_len, codec).with_byte_order(byte_order)
        };
        let access =
            if self.count == 1 { Access::Contiguous } else { Access::new(self.len, self.stride) };
        let range = self.range().unwrap_or_default();
        let raw_len = self.len * self.count;
        match access {
            Access::Contiguous => vec![Layer::whole(payload(range, raw_len, Codec::Raw))],
            Access::Interleaved => {
                let codec = RecordBytes { kept: self.len, stride: self.stride };
                vec![Layer::whole(payload(range, raw_len, Codec::Custom(Arc::new(codec))))]
            }
            Access::Apart => {
                let record = |record: u64| {
                    let start = self.start + record * self.stride;
                    let values = payload(start..start + self.len, self.len, Codec::Raw);
                    Layer::whole(values).with_placement(Some(record_placement(record, region)))
                };
                (0..self.count).map(record).collect()
            }
        }
    }
}

/// Returns the place of one record in the chunk of a region.
fn record_placement(record: u64, region: &[Range<u64>]) -> Placement {
    let inner = region.iter().skip(1).map(|range| range.end - range.start);
    let tile_shape: Vec<u64> = std::iter::once(1).chain(inner).collect();
    let mut places: Vec<Range<u64>> = tile_shape.iter().map(|len| 0..*len).collect();
    if let Some(first) = places.first_mut() {
        *first = record..record + 1;
    }
    Placement::new(places, tile_shape)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::super::testing::{BYTE, CHAR, DOUBLE, FLOAT, File, INT, SHORT, open, read};
    use super::*;
    use crate::hierarchy::Attribute;
    use gridfusion_core::ErrorKind;

    /// Reads all variables, and compares them with the naive reader.
    fn check(file: &File) -> NetCdf3File {
        let bytes = Bytes::from(file.bytes());
        let opened = open(&bytes).unwrap();
        assert!(opened.hierarchy().unreadable.is_empty());
        for variable in 0..opened.hierarchy().variables.len() {
            let cells = read(&opened, &bytes, variable).unwrap();
            let name = &opened.hierarchy().variables[variable].path;
            assert!(cells == file.values(variable, &bytes), "{name}");
        }
        opened
    }

    #[test]
    fn variables_of_all_types_and_versions() {
        for version in [1, 2, 5] {
            let mut file =
                File::new(version, 3).dimension("t", 0).dimension("x", 5).dimension("y", 2);
            let codes = if version == 5 { 1..=11 } else { 1..=6 };
            for code in codes {
                for dimensions in [&[][..], &[1], &[2, 1], &[0], &[0, 1], &[0, 2, 1]] {
                    let name = format!("v{code}_{dimensions:?}");
                    file = file.variable(&name, code, dimensions);
                }
            }
            let opened = check(&file);
            assert_eq!(opened.version().to_string(), format!("CDF-{version}"));
            assert_eq!((opened.record_dimension(), opened.records()), (Some("t"), 3));
            assert_eq!((opened.record_stride(), opened.missing_bytes()), (file.stride(), 0));
        }
    }

    #[test]
    fn the_only_record_variable_has_no_padding() {
        for (code, inner) in [(BYTE, 5), (CHAR, 3), (SHORT, 1), (SHORT, 3), (DOUBLE, 1)] {
            for records in [0, 1, 2, 9] {
                let file = File::new(1, records).dimension("t", 0).dimension("x", inner);
                let opened =
                    check(&file.clone().variable("v", code, &[0, 1]).variable("w", SHORT, &[1]));
                assert!(!opened.record_stride().is_multiple_of(4) || code == DOUBLE);
                check(&file.variable("v", code, &[0]));
            }
        }
    }

    #[test]
    fn large_variables_are_split() {
        let file = File::new(2, 1).dimension("t", 0).dimension("z", 3).dimension("y", 301);
        let file = file.dimension("x", 401).variable("fixed", DOUBLE, &[1, 2, 3]);
        let opened =
            check(&file.variable("moving", FLOAT, &[0, 1, 2, 3]).variable("a", BYTE, &[0]));
        let shapes = opened.hierarchy().variables.iter().map(|it| it.chunk_shape.clone());
        let shapes: Vec<_> = shapes.collect();
        // 1 MiB has 326 rows of doubles, and 2 levels of floats.
        assert_eq!(shapes, [vec![1, 301, 401], vec![1, 2, 301, 401], vec![1]]);
    }

    #[test]
    fn records_are_read_in_three_ways() {
        let layers = |file: &File, variable: usize| {
            let opened = check(file);
            let chunks = opened.locate(variable, &vec![0; opened.stored.len().min(1)]);
            let layers = chunks.map(|chunk| chunk.layers).unwrap_or_default();
            (layers.len(), layers.first().map(|layer| layer.values.codec.to_string()))
        };
        let file = File::new(1, 700).dimension("t", 0).dimension("x", 1250);
        let one = file.clone().variable("v", INT, &[0]);
        assert_eq!(layers(&one, 0), (1, Some("raw".to_owned())));
        let small = one.clone().variable("w", BYTE, &[0]);
        assert_eq!(layers(&small, 1), (1, Some("1 of every 8 bytes".to_owned())));
        let large = one.variable("w", INT, &[0, 1]);
        assert_eq!(layers(&large, 0), (512, Some("raw".to_owned())));
        let opened = check(&large);
        let last = opened.locate(0, &[1]).unwrap();
        assert_eq!(last.layers.len(), 188);
        let slabs = opened.locate(1, &[0, 0]).unwrap();
        assert_eq!(
            slabs.layers.first().unwrap().values.codec.to_string(),
            "5000 of every 5004 bytes"
        );
    }

    #[test]
    fn text_folds_its_last_axis() {
        let file = File::new(1, 2).dimension("t", 0).dimension("station", 3).dimension("len", 7);
        let file = file.variable("scalar", CHAR, &[]).variable("one", CHAR, &[2]);
        let file = file.variable("names", CHAR, &[1, 2]).attribute("_FillValue", CHAR, b"-");
        let file = file.variable("t_names", CHAR, &[0, 1, 2]).variable("t_one", CHAR, &[0]);
        let opened = check(&file);
        let found = opened.hierarchy().variables.iter().map(|it| (it.cell.clone(), it.shape()));
        let text = CellType::FixedUtf8;
        let expected = [
            (text(1), vec![]),
            (text(7), vec![]),
            (text(7), vec![3]),
            (text(7), vec![2, 3]),
            (text(1), vec![2]),
        ];
        assert_eq!(found.collect::<Vec<_>>(), expected);
        assert_eq!(opened.hierarchy().variables[2].fill, b"-------");
        assert_eq!(opened.hierarchy().variables[1].fill, [0; 7]);
    }

    #[test]
    fn fills_are_declared_or_default() {
        let file = File::new(1, 0).dimension("t", 0).attribute("title", CHAR, b"a file\0");
        let file = file.variable("a", SHORT, &[0]).attribute("_FillValue", SHORT, b"\x01\x02");
        let file = file.variable("b", SHORT, &[0]).attribute("_FillValue", INT, b"\0\0\x01\x02");
        let file = file.variable("c", SHORT, &[0]).attribute("_FillValue", SHORT, b"\0\x01\0\x02");
        let opened = check(&file.variable("d", DOUBLE, &[]));
        let fills: Vec<_> = opened.hierarchy().variables.iter().map(|it| it.fill.clone()).collect();
        let default = (-32_767_i16).to_le_bytes().to_vec();
        let double = 9.969_209_968_386_869e36_f64.to_le_bytes().to_vec();
        assert_eq!(fills, [vec![2, 1], default.clone(), default, double]);
        let attribute = &opened.hierarchy().variables[1].attributes["_FillValue"];
        assert_eq!(*attribute, Attribute::Integers(vec![258]));
        assert_eq!(opened.hierarchy().groups[""]["title"], Attribute::from("a file"));
    }

    #[test]
    fn variables_that_cannot_be_read_have_a_reason() {
        let mut file =
            File::new(5, 1).dimension("one", 1).dimension("long", 5000).dimension("huge", 1 << 33);
        file = file.variable("a", INT, &[0]).variable("a", INT, &[0]).variable("b/c", INT, &[0]);
        file = file.variable("deep", INT, &[0; 9]).variable("deep_text", CHAR, &[0; 9]);
        file = file.variable("long_text", CHAR, &[1]).variable("huge_text", CHAR, &[2]);
        let bytes = Bytes::from(file.bytes()).slice(..6000);
        let opened = open(&bytes).unwrap();
        let names: Vec<_> = opened.hierarchy().variables.iter().map(|it| it.name()).collect();
        assert_eq!(names, ["a", "long_text"]);
        let reasons: Vec<_> = opened
            .hierarchy()
            .unreadable
            .iter()
            .map(|it| (&*it.path, it.error.to_string()))
            .collect();
        let expected = [
            ("a", "a second"),
            ("b/c", "a \"/\""),
            ("deep", "9 axes"),
            ("deep_text", "9 axes"),
            ("huge_text", "not hold"),
        ];
        assert_eq!(reasons.len(), expected.len());
        for ((path, reason), (expected_path, part)) in reasons.iter().zip(expected) {
            assert!(*path == expected_path && reason.contains(part), "{path}: {reason}");
        }
    }

    #[test]
    fn chunks_beyond_the_end_are_errors() {
        let file = File::new(1, 700).dimension("t", 0).dimension("x", 1250);
        let file = file.variable("time", INT, &[0]).variable("v", INT, &[0, 1]);
        let whole = Bytes::from(file.bytes());
        let opened = open(&whole.slice(..whole.len() - 1)).unwrap();
        assert_eq!(opened.missing_bytes(), 1);
        assert!(opened.locate(0, &[1]).is_ok() && opened.locate(1, &[0, 0]).is_ok());
        let last = 700_u64.div_ceil(opened.hierarchy().variables[1].chunk_shape[0]) - 1;
        let error = opened.locate(1, &[last, 0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains("variable \"v\" has a chunk at bytes"), "{error}");
        for chunk in [&[2, 0][..], &[0], &[0, 1], &[u64::MAX, 0], &[0, 0, 0]] {
            assert_eq!(opened.locate(1, chunk).unwrap_err().kind(), ErrorKind::Internal);
        }
        assert!(opened.locate(2, &[]).is_err());
    }
}
