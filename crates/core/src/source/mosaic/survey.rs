//! [`Survey`]: which of many files would be one table, and in what they differ.
//!
//! ```text
//!   add each file ──▶ differences from the first file
//!                 └─▶ class: files that agree in everything but labels
//!   finish        ──▶ each class: groups with equal labels on all dimensions but one ──▶ Arrangement ──▶ table
//! ```
//!
//! Opened files are many. So the survey keeps their dimensions and columns only, and equal labels once.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::DataType;
use async_trait::async_trait;

use super::combine::Arrangement;
use super::common_values::CommonValues;
use super::compat::{all_differences, files_differ};
use super::counted_labels::unify_counted_times;
use super::differences::{CountedDifference, Difference, Differences, differences, labels_differ};
use super::file_arrays::FileArrays;
use super::groups::groups;
use super::options::MosaicOptions;
use super::precision::{unify_numbers, unify_precision};
use crate::array::{ChunkSource, Dimension, GridArray, Property, Value};
use crate::error::{Error, Result};
use crate::format::StoredChunk;
use crate::grid::ChunkTask;
use crate::io::MemorySource;
use crate::options::Overlap;
use crate::tile::Objects;

/// Files that are compared, one after the other.
#[derive(Debug)]
pub(crate) struct Survey {
    options: MosaicOptions,
    /// The source of all arrays here, which has no chunks.
    nothing: Arc<NoChunks>,
    /// The arrays of the first file.
    first: Vec<FileArrays>,
    found: Differences,
    /// Differences in labels, among them those of the dimension along which files are concatenated.
    labels: Differences,
    /// Files that agree in everything but labels.
    classes: Vec<Vec<FileArrays>>,
    /// The numbers of the classes whose files have the same signature.
    by_signature: HashMap<String, Vec<usize>>,
}

/// The result of a survey.
#[derive(Debug)]
pub(crate) struct Surveyed {
    pub(crate) tables: Vec<SurveyedTable>,
    /// The differences, each with whether it stops a table.
    pub(crate) differences: Vec<(CountedDifference, bool)>,
    /// The name of the file that the others are compared with.
    pub(crate) first: Option<String>,
    /// Why files that agree otherwise are several tables.
    pub(crate) notes: Vec<String>,
}

/// Files that would be one table.
#[derive(Debug)]
pub(crate) struct SurveyedTable {
    pub(crate) files: usize,
    pub(crate) first_file: String,
    pub(crate) last_file: String,
    pub(crate) dims: Vec<Dimension>,
    pub(crate) values: Vec<Value>,
    /// The axis along which the files are concatenated; `None` for one file.
    pub(crate) axis: Option<usize>,
    /// Why the files cannot be one table after all.
    pub(crate) problem: Option<Error>,
}

impl Survey {
    pub(crate) fn new(options: MosaicOptions) -> Self {
        let nothing = Objects::one(Arc::new(MemorySource::new("no chunks", vec![])));
        Self {
            options,
            nothing: Arc::new(NoChunks(Arc::new(nothing))),
            first: vec![],
            found: Differences::default(),
            labels: Differences::default(),
            classes: vec![],
            by_signature: HashMap::new(),
        }
    }

    /// Adds the arrays of one file. Arrays with different dimensions cannot be one table, so they are several.
    pub(crate) fn add(&mut self, parts: Vec<FileArrays>) {
        let parts: Vec<FileArrays> = parts.into_iter().map(|part| self.reduced(part)).collect();
        if self.first.is_empty() {
            let copy = |part: &FileArrays| {
                let arrays = part.arrays.iter().map(GridArray::shared).collect();
                FileArrays {
                    beside: part.beside.clone(),
                    ..FileArrays::new(part.name.clone(), arrays)
                }
            };
            self.first = parts.iter().map(copy).collect();
        } else {
            self.compare(&parts);
        }
        parts.into_iter().for_each(|part| self.classify(part));
    }

    /// Returns the arrays without their chunks. Labels that equal those of the first file are shared with them.
    fn reduced(&self, part: FileArrays) -> FileArrays {
        let first: Vec<&Dimension> =
            self.first.iter().flat_map(|part| &part.arrays).flat_map(GridArray::dims).collect();
        let dim = |dim: &Dimension| {
            let same = |it: &&&Dimension| {
                it.name() == dim.name() && it.is_labelled() && it.labels().same(dim.labels())
            };
            match first.iter().find(same).filter(|_| dim.is_labelled()) {
                Some(same) => dim.with_labels(same.labels().clone()),
                None => dim.clone(),
            }
        };
        let mut known: Vec<Dimension> = vec![];
        let mut array = |array: GridArray| {
            let dims = array.dims().iter().map(|own| {
                let is_same =
                    |it: &&Dimension| it.name() == own.name() && it.labels().same(own.labels());
                if let Some(known) = known.iter().find(is_same) {
                    return known.clone();
                }
                let reduced = dim(own);
                known.push(reduced.clone());
                reduced
            });
            let (dims, values) = (dims.collect(), array.values().to_vec());
            let source = Arc::clone(&self.nothing);
            GridArray::new(
                array.name().to_owned(),
                source,
                array.grid().clone(),
                dims,
                values,
                false,
            )
        };
        let FileArrays { arrays, .. } = part;
        let arrays = arrays.into_iter().map(&mut array).collect();
        FileArrays { arrays, ..part }
    }

    /// Notes the differences of a file from the first.
    fn compare(&mut self, parts: &[FileArrays]) {
        let Some(name) = parts.first().map(|part| part.name.as_str()) else { return };
        let all = match (self.first.as_slice(), parts) {
            ([a], [b]) => all_differences(a, b),
            (a, b) => differences(&arrays(a), &arrays(b), false),
        };
        all.into_iter().for_each(|it| self.found.add(it, name));
        let mut compared: Vec<&str> = vec![];
        let others: Vec<&Dimension> = arrays(parts).iter().flat_map(|it| it.dims()).collect();
        for dim in self.first.iter().flat_map(|it| &it.arrays).flat_map(GridArray::dims) {
            let other = others.iter().find(|it| it.name() == dim.name());
            if let Some(other) = other.filter(|_| !compared.contains(&dim.name())) {
                compared.push(dim.name());
                // Labels of another kind are another difference.
                let is_same_kind = dim.labels().data_type() == other.labels().data_type();
                let differs = labels_differ(dim, other).filter(|_| is_same_kind);
                differs.into_iter().for_each(|it| self.labels.add(it, name));
            }
        }
    }

    /// Adds a file to the class of those that it fits, apart from labels.
    fn classify(&mut self, mut part: FileArrays) {
        if self.options.union_by_name {
            match self.classes.first_mut() {
                Some(all) => all.push(part),
                None => self.classes.push(vec![part]),
            }
            return;
        }
        let names = |file: &FileArrays| -> Vec<String> {
            file.arrays.iter().map(|it| it.name().to_owned()).collect()
        };
        let numbers = self.by_signature.entry(signature(&part)).or_default();
        for number in numbers.iter() {
            let Some(file) = self.classes.get(*number).and_then(|class| class.first()) else {
                continue;
            };
            // Variables may be in another order.
            let order = names(file);
            part.order_variables(&order.iter().map(String::as_str).collect::<Vec<_>>());
            if files_differ(file, &part).iter().all(|it| is_of_precision(it, &part)) {
                if let Some(class) = self.classes.get_mut(*number) {
                    class.push(part);
                }
                return;
            }
        }
        numbers.push(self.classes.len());
        self.classes.push(vec![part]);
    }

    /// Finds the tables that the files would be.
    pub(crate) fn finish(self) -> Result<Surveyed> {
        let (mut tables, mut notes): (Vec<SurveyedTable>, Vec<String>) = (vec![], vec![]);
        // Options make one table of files that would be several.
        let is_asked = self.options.union_by_name || self.options.overlap != Overlap::Refused;
        for mut class in self.classes {
            if is_asked {
                tables.extend(SurveyedTable::try_new(class, &self.options)?);
                continue;
            }
            // Labels that cannot be made singles stay as they are. The arrangement reports why.
            unify_counted_times(&mut class)?;
            unify_precision(&mut class)?;
            unify_numbers(&mut class)?;
            let (groups, copies) = groups(&class, self.options.concat_dimension.as_deref());
            let pair = copies.and_then(|[a, b]| Some((class.get(a)?, class.get(b)?)));
            let note = pair.map(|(a, b)| {
                format!(
                    "{} and {} have the same labels on every dimension; the option 'concat_dimension' names one to concatenate \
                     such files along",
                    a.name, b.name
                )
            });
            // Variables over several dimensions have the same reason.
            notes.extend(note.filter(|note| !notes.contains(note)));
            let mut files: Vec<Option<FileArrays>> = class.into_iter().map(Some).collect();
            for group in groups {
                let files = group.iter().filter_map(|at| files.get_mut(*at)?.take()).collect();
                tables.extend(SurveyedTable::try_new(files, &self.options)?);
            }
        }
        let along: Vec<&str> = tables.iter().filter_map(SurveyedTable::along).collect();
        let mut labels = self.labels.all;
        labels.retain(|it| !it.difference.of.as_deref().is_some_and(|name| along.contains(&name)));
        // Files of other kinds would follow one another along the only dimension whose labels differ.
        let is_one = labels.windows(2).all(|pair| pair[0].difference.of == pair[1].difference.of);
        if along.is_empty() && is_one {
            labels.clear();
        }
        let first = self.first.first();
        let stops = |it: &CountedDifference| {
            let is_united = self.options.union_by_name
                && matches!(it.difference.property, Property::Variables | Property::Dimensions);
            it.difference.stops_table
                && !is_united
                && !first.is_some_and(|part| is_of_precision(&it.difference, part))
        };
        let all = self.found.all.into_iter().chain(labels).map(|it| {
            let stops = stops(&it);
            (it, stops)
        });
        let differences = all.collect();
        Ok(Surveyed { tables, differences, first: first.map(|it| it.name.clone()), notes })
    }
}

impl SurveyedTable {
    /// Arranges files that may be one table; `None` for no files.
    fn try_new(files: Vec<FileArrays>, options: &MosaicOptions) -> Result<Option<Self>> {
        let Some(mut table) = Self::from_first(&files) else { return Ok(None) };
        let arranged = Arrangement::try_new(files, options).and_then(|arranged| {
            let values = CommonValues::try_new(&arranged.files)?.values;
            Ok((arranged, values))
        });
        match arranged {
            Ok((Arrangement { files, axis, labels, .. }, values)) => {
                // The table has the attributes of the file that comes first along the axis, and may have slices of files.
                if let Some(first) = Self::from_first(&files) {
                    table = Self { files: table.files, values, ..first };
                }
                if let (Some(labels), Some(dim)) = (labels, table.dims.get_mut(axis)) {
                    *dim = dim.with_labels(labels);
                    table.axis = Some(axis);
                }
            }
            Err(error) => table.problem = Some(error),
        }
        Ok(Some(table))
    }

    /// Returns a table with the dimensions and columns of the first file; `None` for no files.
    fn from_first(files: &[FileArrays]) -> Option<Self> {
        let (first, last) = (files.first()?, files.last()?);
        Some(Self {
            files: files.len(),
            first_file: first.name.clone(),
            last_file: last.name.clone(),
            dims: first.arrays.first().map(|it| it.dims().to_vec()).unwrap_or_default(),
            values: first.arrays.iter().flat_map(|it| it.values().to_vec()).collect(),
            axis: None,
            problem: None,
        })
    }

    /// The name of the dimension along which files are concatenated.
    pub(crate) fn along(&self) -> Option<&str> {
        self.dims.get(self.axis?).map(Dimension::name)
    }
}

fn arrays(parts: &[FileArrays]) -> Vec<&GridArray> {
    parts.iter().flat_map(|part| &part.arrays).collect()
}

/// Whether labels are numbers of other types in two files, which are equal if their values are, or the decimals of singles.
fn is_of_precision(difference: &Difference, file: &FileArrays) -> bool {
    use DataType::{Float32, Float64, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64};
    let numbers = [Float32, Float64, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64];
    let is_number = |name: &str| numbers.iter().any(|it| it.to_string() == name);
    let of = difference.of.as_deref();
    difference.property == Property::Type
        && file.dims().iter().any(|dim| Some(dim.name()) == of)
        && is_number(&difference.first)
        && is_number(&difference.other)
}

/// Returns a text that files have in common that fit together apart from labels.
fn signature(part: &FileArrays) -> String {
    let values = part.required().flat_map(GridArray::values);
    let mut values: Vec<&str> = values.map(|value| value.name.as_str()).collect();
    values.sort_unstable();
    let dims = part.arrays.first().map(GridArray::dims).unwrap_or_default().iter();
    let dims: Vec<String> =
        dims.map(|dim| format!("{} {:?} {:?}", dim.name(), dim.unit(), dim.calendar())).collect();
    format!("{dims:?} {values:?}")
}

/// A source without chunks: a survey reads none.
#[derive(Debug)]
struct NoChunks(Arc<Objects>);

#[async_trait]
impl ChunkSource for NoChunks {
    fn objects(&self) -> &Arc<Objects> {
        &self.0
    }

    async fn locate(&self, _: &[ChunkTask], _: &[usize]) -> Result<Vec<Vec<StoredChunk>>> {
        Err(Error::internal("a survey reads no chunks"))
    }
}
