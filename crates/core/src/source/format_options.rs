//! The options of the formats of a session, which only the formats together know.

use std::sync::Arc;

use super::array_format::ArrayFormat;
use super::formats::Formats;
use super::mosaic::MosaicOptions;
use crate::error::{Error, Result};
use crate::options::{ArrayOptions, COMMON, OptionInfo, Overlap, ResolvedOptions, similar};

impl Formats {
    /// Checks the options `given` for `format`, and takes the others from the `defaults` of a session.
    ///
    /// # Errors
    /// `Usage` for an option that the format does not have, or a value that the option does not accept.
    pub fn resolve(
        &self,
        format: &Arc<dyn ArrayFormat>,
        given: &ArrayOptions,
        defaults: &ArrayOptions,
    ) -> Result<ResolvedOptions> {
        format.option_table().resolve(given, defaults, |name| {
            let known = format.option_table().options();
            self.unknown_option(name, &known.map(|it| it.name).collect::<Vec<_>>())
        })
    }

    /// Returns the options among `given` that `format` has.
    pub fn options_of(&self, format: &Arc<dyn ArrayFormat>, given: &ArrayOptions) -> ArrayOptions {
        given.clone().filtered(|name| format.option_table().find(name).is_some())
    }

    /// Fails for an option that no format has, or a value that the option does not accept.
    ///
    /// # Errors
    /// `Usage`; the message lists the options.
    pub fn check(&self, given: &ArrayOptions) -> Result<()> {
        for (name, value) in given.iter() {
            self.any_option(name)?.value(value)?;
        }
        Ok(())
    }

    /// Returns the option with this name, of the first format that has it.
    fn any_option(&self, name: &str) -> Result<&'static OptionInfo> {
        let found = self.iter().find_map(|format| format.option_table().find(name));
        found.ok_or_else(|| {
            let mut known: Vec<&str> = COMMON.iter().map(|it| it.name).collect();
            let own = self.iter().flat_map(|format| format.options()).map(|it| it.name);
            own.for_each(|name| {
                if !known.contains(&name) {
                    known.push(name);
                }
            });
            self.unknown_option(name, &known)
        })
    }

    fn unknown_option(&self, name: &str, known: &[&str]) -> Error {
        self.unknown(("option", ""), name, similar(name, known), known)
    }

    /// Returns the settings of a session, `SET gridfusion.…`: those of formats, the common ones, and the session's own.
    pub fn settings(&self) -> Vec<&'static OptionInfo> {
        let mut settings: Vec<&'static OptionInfo> = Vec::new();
        // A setting applies to all formats. So a common option that a format redeclares with its own
        // default is shown with the common one.
        let own = self.iter().flat_map(|format| format.options().iter());
        for option in own.chain(COMMON).filter(|it| it.session) {
            let is_common = COMMON.iter().find(|it| it.name == option.name);
            let option = is_common.unwrap_or(option);
            if !settings.iter().any(|it| it.name == option.name) {
                settings.push(option);
            }
        }
        // The sort is stable: first the options of single formats, then the common ones, each in the order
        // of declaration.
        settings.sort_by_key(|it| COMMON.iter().any(|common| common.name == it.name));
        settings.extend(self.own_settings());
        settings
    }

    /// Returns the setting with this name.
    ///
    /// # Errors
    /// `Usage` if there is no such setting; the message lists the settings.
    pub fn setting(&self, name: &str) -> Result<&'static OptionInfo> {
        let settings = self.settings();
        let find = |name: &str| settings.iter().find(|it| it.is_named(name)).copied();
        find(name).ok_or_else(|| {
            let known: Vec<&str> = settings.iter().map(|it| it.name).collect();
            let former = settings.iter().filter_map(|it| it.former);
            let named: Vec<&str> = known.iter().copied().chain(former).collect();
            let similar = similar(name, &named).and_then(find).map(|it| it.name);
            self.unknown(("setting", "gridfusion."), name, similar, &known)
        })
    }

    /// Returns the error for a name that is not among `known`. It suggests the `similar` one, or where the option
    /// belongs.
    fn unknown(
        &self,
        (noun, prefix): (&str, &str),
        name: &str,
        similar: Option<&str>,
        known: &[&str],
    ) -> Error {
        // An option that exists elsewhere is misplaced rather than misspelt.
        let hint = match (self.whereabouts(name), similar) {
            (Some(places), _) => format!(", which is for {places} only"),
            (None, Some(similar)) => format!(", did you mean '{prefix}{similar}'?"),
            (None, None) => String::new(),
        };
        let stop = if hint.ends_with('?') { " The" } else { "; the" };
        let known = known.join(", ");
        Error::usage(format!("unknown {noun} '{prefix}{name}'{hint}{stop} {noun}s are {known}"))
    }

    /// Describes where an option may be set: `.tet tables and SET gridfusion.…`. `None` if there is no such
    /// option.
    pub fn whereabouts(&self, name: &str) -> Option<String> {
        let having = self.iter().filter(|it| it.option_table().find(name).is_some());
        let mut places: Vec<String> = having.map(|it| format!("{} tables", it.title())).collect();
        if self.settings().iter().any(|it| it.is_named(name)) {
            places.push("SET gridfusion.…".to_owned());
        }
        let last = places.pop()?;
        Some(if places.is_empty() { last } else { format!("{} and {last}", places.join(", ")) })
    }
}

/// Returns the options that control how arrays are combined into one table.
pub fn mosaic_options(options: &ResolvedOptions, index_columns: bool) -> MosaicOptions {
    MosaicOptions {
        concat_dimension: options.text("concat_dimension").map(str::to_owned),
        union_by_name: options.flag("union_by_name").unwrap_or_default(),
        overlap: options.text("overlap").map(Overlap::from_name).unwrap_or_default(),
        file_column: options.flag("file_column").unwrap_or_default(),
        index_columns,
        ..MosaicOptions::default()
    }
}
