//! The options of a table of a `.tet` file.

use std::collections::HashMap;

use super::common::{CommonOptions, TableDefaults, common_builder};
use super::names::{Scope, of_sql};
use super::slot::{IoMode, Slot};
use crate::array::ReadOptions;
use crate::error::{Error, Result};
use crate::source::MosaicOptions;

/// How to read a `.tet` file, or a `.tet.d` package of them, as a table. [`OPTIONS`](super::OPTIONS) says
/// what there is to say.
///
/// What is not said is as the session says, where there is one, or as built in.
///
/// ```
/// use gridfusion::TetReadOptions;
///
/// let options = TetReadOptions::default().with_dataset("temperature").with_index_columns(true);
/// assert_eq!(options.dataset.as_deref(), Some("temperature"));
/// assert!(options.read().index_columns && options.read().nan_as_null);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct TetReadOptions {
    /// Which dataset, or several with commas between them; `None` means all data variables of the file.
    pub dataset: Option<String>,
    /// Which generation of a package; `None` means the current one.
    pub generation: Option<u64>,
    /// Along which dimension several files follow one another; `None`: the one whose labels differ.
    pub concat_dimension: Option<String>,
    /// What tables of every format can be told.
    pub common: CommonOptions,
}

common_builder!(TetReadOptions);

impl TetReadOptions {
    /// Chooses the dataset.
    #[must_use]
    pub fn with_dataset(mut self, dataset: impl Into<String>) -> Self {
        self.dataset = Some(dataset.into());
        self
    }

    /// Chooses the generation of a package, which need not be the current one.
    #[must_use]
    pub fn with_generation(mut self, generation: u64) -> Self {
        self.generation = Some(generation);
        self
    }

    /// How stored data becomes SQL values.
    pub fn read(&self) -> ReadOptions {
        self.common.read(&ReadOptions::default())
    }

    /// How arrays become one table.
    pub(crate) fn mosaic(&self) -> MosaicOptions {
        self.common.mosaic(self.concat_dimension.as_ref(), &self.read())
    }

    /// What is said here, and for the rest what `defaults` say.
    #[must_use]
    pub fn with_defaults(mut self, defaults: &TableDefaults) -> Self {
        self.common = self.common.or(&defaults.common);
        self
    }

    /// Sets one option by name.
    ///
    /// # Errors
    /// `Usage` for a name or a value that is not known; the message lists what is.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        Scope::Tet.option(name)?;
        let missing = || Error::internal(format!("option '{name}' is kept nowhere"));
        self.slot(name).ok_or_else(missing)?.set(name, value)
    }

    /// Reads the options of a SQL statement, in each spelling that reaches us: `dataset`,
    /// `format.dataset` (what DataFusion makes of it) and `tet.dataset`. Options of object stores
    /// are left alone.
    ///
    /// # Errors
    /// Those of [`TetReadOptions::set`], and `Usage` for an option that is given twice.
    pub fn from_sql(options: &HashMap<String, String>) -> Result<Self> {
        let mut read_options = Self::default();
        for (name, value) in of_sql(options, "tet")? {
            read_options.set(name, value)?;
        }
        Ok(read_options)
    }

    fn slot(&mut self, name: &str) -> Option<Slot<'_>> {
        match name {
            "dataset" => Some(Slot::Name(&mut self.dataset)),
            "generation" => Some(Slot::Number(&mut self.generation)),
            "concat_dimension" => Some(Slot::Name(&mut self.concat_dimension)),
            _ => self.common.slot(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_sql(pairs: &[(&str, &str)]) -> Result<TetReadOptions> {
        let options =
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        TetReadOptions::from_sql(&options)
    }

    #[test]
    fn every_spelling_of_every_option() {
        for option in Scope::Tet.options() {
            let kind = TetReadOptions::default().slot(option.name).map(|slot| slot.kind());
            assert_eq!(kind, Some(option.kind), "{}", option.name);
            let value = match option.name {
                "dataset" | "concat_dimension" => "t",
                "generation" => "3",
                "io" => "pread",
                "index_columns" | "file_column" => "TRUE",
                _ => "false",
            };
            for prefix in ["", "format.", "tet."] {
                let options = from_sql(&[(&format!("{prefix}{}", option.name), value)]).unwrap();
                assert_ne!(options, TetReadOptions::default(), "{prefix}{}", option.name);
            }
        }
    }

    #[test]
    fn the_table_says_what_is_built_in() {
        let (read, io) = (TetReadOptions::default().read(), TetReadOptions::default().io());
        for (name, built_in) in [
            ("io", io.to_string()),
            ("nan_as_null", read.nan_as_null.to_string()),
            ("fill_as_null", read.fill_as_null.to_string()),
            ("index_columns", read.index_columns.to_string()),
            ("trust_zone_maps", read.trust_zone_maps.to_string()),
        ] {
            assert!(
                Scope::Tet.option(name).unwrap().default.starts_with(&format!("`{built_in}`")),
                "{name}"
            );
        }
    }

    #[test]
    fn what_is_said_here_counts_more() {
        let said = CommonOptions {
            io: Some(IoMode::Pread),
            fill_as_null: Some(false),
            index_columns: Some(true),
            ..CommonOptions::default()
        };
        let defaults = TableDefaults { common: said, ..TableDefaults::default() };
        let options = TetReadOptions::default().with_index_columns(false).with_defaults(&defaults);
        assert_eq!(options.io(), IoMode::Pread);
        let expected =
            ReadOptions { fill_as_null: false, index_columns: false, ..ReadOptions::default() };
        assert_eq!(options.read(), expected);
    }

    #[test]
    fn mistakes_are_named() {
        let error = from_sql(&[("format.datset", "t")]).unwrap_err().to_string();
        assert!(error.contains("'datset'") && error.contains("dataset, generation"), "{error}");
        assert!(from_sql(&[("io", "mmapp")]).is_err());
        let error = from_sql(&[("generation", "latest")]).unwrap_err().to_string();
        assert_eq!(error, "option 'generation' is 'latest', expected a number");
        assert!(from_sql(&[("nan_as_null", "yes")]).unwrap_err().to_string().contains("'yes'"));
        assert!(from_sql(&[("other.thing", "1")]).is_err());
        assert_eq!(from_sql(&[("aws.region", "x")]).unwrap(), TetReadOptions::default());
    }
}
