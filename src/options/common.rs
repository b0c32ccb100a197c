//! Options of tables of every format, and what a session says for all tables.

use super::slot::{IoMode, Slot};
use crate::array::ReadOptions;
use crate::source::MosaicOptions;

/// What tables of every format can be told. `None`: nothing was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct CommonOptions {
    /// How local files are read.
    pub io: Option<IoMode>,
    /// NaN is NULL.
    pub nan_as_null: Option<bool>,
    /// The declared fill value is NULL.
    pub fill_as_null: Option<bool>,
    /// Adds a column `<dimension>_idx` for each dimension.
    pub index_columns: Option<bool>,
    /// Believes what was noted about chunks.
    pub trust_zone_maps: Option<bool>,
    /// Adds a column `_file`.
    pub file_column: Option<bool>,
}

impl CommonOptions {
    pub(super) fn slot(&mut self, name: &str) -> Option<Slot<'_>> {
        Some(match name {
            "io" => Slot::Io(&mut self.io),
            "nan_as_null" => Slot::Flag(&mut self.nan_as_null),
            "fill_as_null" => Slot::Flag(&mut self.fill_as_null),
            "index_columns" => Slot::Flag(&mut self.index_columns),
            "trust_zone_maps" => Slot::Flag(&mut self.trust_zone_maps),
            "file_column" => Slot::Flag(&mut self.file_column),
            _ => return None,
        })
    }

    /// What is said here, and for the rest what `defaults` say.
    pub(super) fn or(self, defaults: &Self) -> Self {
        Self {
            io: self.io.or(defaults.io),
            nan_as_null: self.nan_as_null.or(defaults.nan_as_null),
            fill_as_null: self.fill_as_null.or(defaults.fill_as_null),
            index_columns: self.index_columns.or(defaults.index_columns),
            trust_zone_maps: self.trust_zone_maps.or(defaults.trust_zone_maps),
            file_column: self.file_column.or(defaults.file_column),
        }
    }

    /// How arrays become one table.
    pub(super) fn mosaic(
        self,
        concat_dimension: Option<&String>,
        read: &ReadOptions,
    ) -> MosaicOptions {
        MosaicOptions {
            concat_dimension: concat_dimension.cloned(),
            file_column: self.file_column.unwrap_or_default(),
            index_columns: read.index_columns,
            ..MosaicOptions::default()
        }
    }

    /// How stored data becomes SQL values; what is not said is as in `built_in`.
    pub(super) fn read(self, built_in: &ReadOptions) -> ReadOptions {
        ReadOptions {
            nan_as_null: self.nan_as_null.unwrap_or(built_in.nan_as_null),
            fill_as_null: self.fill_as_null.unwrap_or(built_in.fill_as_null),
            index_columns: self.index_columns.unwrap_or(built_in.index_columns),
            trust_zone_maps: self.trust_zone_maps.unwrap_or(built_in.trust_zone_maps),
        }
    }
}

/// The builder's methods for what tables of every format can be told.
macro_rules! common_builder {
    ($options:ty) => {
        impl $options {
            /// Chooses how local files are read.
            #[must_use]
            pub fn with_io(mut self, io: IoMode) -> Self {
                self.common.io = Some(io);
                self
            }

            /// Whether NaN and NaT are NULL.
            #[must_use]
            pub fn with_nan_as_null(mut self, yes: bool) -> Self {
                self.common.nan_as_null = Some(yes);
                self
            }

            /// Whether the declared fill value is NULL.
            #[must_use]
            pub fn with_fill_as_null(mut self, yes: bool) -> Self {
                self.common.fill_as_null = Some(yes);
                self
            }

            /// Whether there is a column `<dimension>_idx` for each dimension.
            #[must_use]
            pub fn with_index_columns(mut self, yes: bool) -> Self {
                self.common.index_columns = Some(yes);
                self
            }

            /// Whether there is a column `_file` with the path or URL that a row is from.
            #[must_use]
            pub fn with_file_column(mut self, yes: bool) -> Self {
                self.common.file_column = Some(yes);
                self
            }

            /// Whether what was noted about chunks when they were written is believed.
            #[must_use]
            pub fn with_trust_zone_maps(mut self, yes: bool) -> Self {
                self.common.trust_zone_maps = Some(yes);
                self
            }

            /// Chooses the dimension along which several files or arrays follow one another.
            #[must_use]
            pub fn with_concat_dimension(mut self, dimension: impl Into<String>) -> Self {
                self.concat_dimension = Some(dimension.into());
                self
            }

            /// How local files are read.
            pub fn io(&self) -> IoMode {
                self.common.io.unwrap_or_default()
            }
        }
    };
}
pub(super) use common_builder;

/// What a session says for every table that is opened in it and says nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TableDefaults {
    /// For tables of every format.
    pub common: CommonOptions,
    /// TileDB: shows the whole domain.
    pub full_domain: Option<bool>,
    /// TileDB: shows text as bytes.
    pub text_as_binary: Option<bool>,
    /// TileDB: shows dates and times as integers.
    pub time_as_integer: Option<bool>,
}

impl TableDefaults {
    pub(crate) fn slot(&mut self, name: &str) -> Option<Slot<'_>> {
        match name {
            "full_domain" => Some(Slot::Flag(&mut self.full_domain)),
            "text_as_binary" => Some(Slot::Flag(&mut self.text_as_binary)),
            "time_as_integer" => Some(Slot::Flag(&mut self.time_as_integer)),
            _ => self.common.slot(name),
        }
    }
}
