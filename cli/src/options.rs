//! `--option NAME=VALUE`: options for the PATHs of the command line, and for object stores.

use gridfusion::options::Scope;
use gridfusion::{ArrayFormat, ArrayOptions, Error, Formats, OptionInfo};

use crate::store::{StoreOptions, is_of_store};

/// The name and value of an option, as the user wrote them.
pub(crate) type Setting = (String, String);

/// Splits `NAME=VALUE`.
///
/// # Errors
/// If there is no `=`, or no name before it.
pub(crate) fn parse_setting(text: &str) -> Result<Setting, String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE, for instance timestamp=2024-03-01".to_owned()),
    }
}

/// Options for a PATH of any format. There is no `Debug`, because options may hold keys.
#[derive(Default)]
pub(crate) struct PathOptions {
    stores: StoreOptions,
    arrays: ArrayOptions,
}

impl PathOptions {
    /// Checks the options of the command line.
    ///
    /// # Errors
    /// `Usage` for a name that is unknown, does not apply to a PATH or is given twice, and for an invalid
    /// value.
    pub(crate) fn new(settings: &[Setting], formats: &Formats) -> gridfusion::Result<Self> {
        Self::of_scopes(settings, formats, &[Scope::Place, Scope::Any])
    }

    /// As [`PathOptions::new`], and takes options for tables of many files.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn of_files(settings: &[Setting], formats: &Formats) -> gridfusion::Result<Self> {
        Self::of_scopes(settings, formats, &[Scope::Files, Scope::Place, Scope::Any])
    }

    /// As [`PathOptions::new`], and takes options for one table.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn of_tables(settings: &[Setting], formats: &Formats) -> gridfusion::Result<Self> {
        let all = [Scope::Table, Scope::Files, Scope::Place, Scope::Any];
        Self::of_scopes(settings, formats, &all)
    }

    fn of_scopes(
        settings: &[Setting],
        formats: &Formats,
        scopes: &[Scope],
    ) -> gridfusion::Result<Self> {
        let mut options = Self::default();
        for (name, value) in settings {
            if is_of_store(name) {
                options.stores.set(name, value)?;
                continue;
            }
            refuse_of_other_scopes(name, formats, scopes)?;
            if options.arrays.get(name).is_some() {
                return Err(Error::usage(format!("option '{name}' is given twice")));
            }
            options.arrays = options.arrays.with_option(name, value.as_str());
        }
        formats.check(&options.arrays)?;
        Ok(options)
    }

    /// Returns a copy with other options for arrays, and the same ones for object stores.
    pub(crate) fn with_arrays(&self, arrays: ArrayOptions) -> Self {
        Self { stores: self.stores.clone(), arrays }
    }

    /// Refuses options that only other formats have.
    ///
    /// # Errors
    /// `Usage`; the message names the formats that have the option.
    pub(crate) fn refuse_other_formats(
        &self,
        format: &dyn ArrayFormat,
        formats: &Formats,
    ) -> gridfusion::Result<()> {
        let table = format.option_table();
        let mut names = self.arrays.iter().map(|(name, _)| name);
        let Some(name) = names.find(|name| table.find(name).is_none()) else { return Ok(()) };
        let having = formats.iter().filter(|it| it.option_table().find(name).is_some());
        let nouns = having.flat_map(|it| it.nouns()).map(|noun| format!("{noun}s"));
        let nouns: Vec<String> = nouns.collect();
        let known = table.options().filter(|option| !option.scope.is_of_one_table());
        let known: Vec<&str> = known.map(|option| option.name).collect();
        Err(Error::usage(format!(
            "option '{name}' is for {}; the options here are {}",
            nouns.join(" and "),
            known.join(", ")
        )))
    }

    /// Returns the options for object stores.
    pub(crate) fn for_stores(&self) -> &StoreOptions {
        &self.stores
    }

    /// Returns the options for arrays. Each format uses its own.
    pub(crate) fn for_arrays(&self) -> &ArrayOptions {
        &self.arrays
    }
}

/// Refuses an option of another scope, because a PATH is a schema or catalog of several tables.
fn refuse_of_other_scopes(
    name: &str,
    formats: &Formats,
    scopes: &[Scope],
) -> gridfusion::Result<()> {
    let is_about = |option: &&OptionInfo| scopes.contains(&option.scope);
    let mut known: Vec<&OptionInfo> = Vec::new();
    for option in formats.iter().flat_map(|format| format.option_table().options()) {
        if !known.iter().any(|it| it.name == option.name) {
            known.push(option);
        }
    }
    let option = known.iter().find(|option| option.name == name).copied();
    if option.as_ref().is_some_and(is_about) {
        return Ok(());
    }
    let why = match option {
        Some(_) => "is for one table, and a PATH is a schema of several; set it in SQL",
        None if formats.whereabouts(name).is_some() => "is for SET gridfusion.… in SQL",
        None => "is unknown",
    };
    let known: Vec<&str> =
        known.iter().copied().filter(|it| is_about(it)).map(|it| it.name).collect();
    Err(Error::usage(format!("option '{name}' {why}; the options here are {}", known.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(settings: &[&str]) -> gridfusion::Result<PathOptions> {
        let settings: Vec<Setting> =
            settings.iter().map(|text| parse_setting(text).unwrap()).collect();
        PathOptions::new(&settings, &gridfusion::built_in_formats())
    }

    #[test]
    fn settings_are_taken_apart() {
        let pair = |name: &str, value: &str| Ok((name.to_owned(), value.to_owned()));
        assert_eq!(parse_setting("io=pread"), pair("io", "pread"));
        assert_eq!(parse_setting("encryption_key=a=b"), pair("encryption_key", "a=b"));
        assert!(parse_setting("io").is_err() && parse_setting("=pread").is_err());
    }

    #[test]
    fn stores_and_arrays_take_their_own() {
        let both = options(&["io=pread", "timestamp=7", "aws.region=x"]).unwrap();
        let names: Vec<&str> = both.for_arrays().iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["io", "timestamp"]);
        let mut region = StoreOptions::default();
        region.set("aws.region", "x").unwrap();
        assert!(*both.for_stores() == region);
    }

    #[test]
    fn mistakes_are_named() {
        for (settings, expected) in [
            (&["io=fast"][..], "io = 'fast'"),
            (&["io=mmap", "io=pread"], "option 'io' is given twice"),
            (&["aws.region=a", "aws.region=b"], "option 'aws.region' is given twice"),
            (&["aws.regoin=a"], "did you mean aws.region?"),
            (
                &["time=1"],
                "option 'time' is unknown; the options here are generation, decode_times, io, ",
            ),
            (&["dataset=t"], "option 'dataset' is for one table"),
            (&["reduce=false"], "option 'reduce' is for SET gridfusion"),
            (&["encryption_key=short"], "key"),
        ] {
            let error = options(settings).err().unwrap().to_string();
            assert!(error.contains(expected) && !error.contains("short"), "{settings:?}: {error}");
        }
    }
}
