//! The settings `gridfusion.…` of a session that control queries: one row each.
//!
//! A row has the name and the texts about the setting, and its field in [`OptimizerSettings`] or [`RemoteLimits`]. Names, values and
//! defaults in `SET`, `SHOW`, messages and documents come from here.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::io::{Remote, RemoteLimits};
use crate::options::{OptionInfo, OptionValue, ValueKind};

/// A setting.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    pub(crate) info: OptionInfo,
    /// The least number.
    least: u64,
    /// Returns the field, which is one of the optimizer or a limit of requests to object stores.
    slot: for<'a> fn(&'a mut OptimizerSettings, &'a mut RemoteLimits) -> Slot<'a>,
}

/// The field of a setting.
enum Slot<'a> {
    Flag(&'a mut bool),
    Size(&'a mut usize),
    Bytes(&'a mut u64),
    Seconds(&'a mut Duration),
}

/// A year. Points in time much later cannot be represented everywhere.
const MOST_SECONDS: u64 = 365 * 24 * 60 * 60;

impl Slot<'_> {
    fn set(self, value: &OptionValue) {
        match (self, value) {
            (Self::Flag(flag), OptionValue::Flag(value)) => *flag = *value,
            (Self::Bytes(bytes), OptionValue::Number(number)) => *bytes = *number,
            (Self::Size(size), OptionValue::Number(number)) => {
                *size = usize::try_from(*number).unwrap_or(usize::MAX);
            }
            (Self::Seconds(time), OptionValue::Number(number)) => {
                *time = Duration::from_secs((*number).min(MOST_SECONDS));
            }
            // The kind of a setting is that of its field, and values have this kind.
            _ => {}
        }
    }

    fn value(self) -> OptionValue {
        match self {
            Self::Flag(flag) => OptionValue::Flag(*flag),
            Self::Size(size) => OptionValue::Number(*size as u64),
            Self::Bytes(bytes) => OptionValue::Number(*bytes),
            Self::Seconds(time) => OptionValue::Number(time.as_secs()),
        }
    }
}

impl Setting {
    /// Sets a value.
    ///
    /// # Errors
    /// `Usage` for a value that the setting does not accept, such as 0 for a limit that would stop all requests.
    pub(crate) fn set(
        &self,
        optimizer: &mut OptimizerSettings,
        remote: &Remote,
        value: &str,
    ) -> Result<()> {
        let value = self.info.value(&value.into())?;
        if matches!(value, OptionValue::Number(number) if number < self.least) {
            let Self { info, least, .. } = self;
            let message = format!("'gridfusion.{}' must be at least {least}", info.name);
            return Err(Error::usage(message));
        }
        self.store(optimizer, remote, &value);
        Ok(())
    }

    /// Sets the default.
    pub(crate) fn reset(&self, optimizer: &mut OptimizerSettings, remote: &Remote) {
        let default = self.value(OptimizerSettings::default(), RemoteLimits::default());
        self.store(optimizer, remote, &default);
    }

    /// Returns the value.
    pub(crate) fn value(
        &self,
        mut optimizer: OptimizerSettings,
        mut limits: RemoteLimits,
    ) -> OptionValue {
        (self.slot)(&mut optimizer, &mut limits).value()
    }

    fn store(&self, optimizer: &mut OptimizerSettings, remote: &Remote, value: &OptionValue) {
        let mut limits = remote.limits();
        (self.slot)(optimizer, &mut limits).set(value);
        if limits != remote.limits() {
            remote.set_limits(limits);
        }
    }
}

/// Declares the switches of rules: a field and a row each.
macro_rules! switches {
    ($($switch:ident $(, formerly $former:literal)?: $meaning:literal;)*) => {
        /// The settings of plans over arrays: the switches of rules, `SET gridfusion.optimizer.…`, and what rules and scans may do.
        /// All switches are on by default.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct OptimizerSettings {
            $(
                #[doc = concat!("Whether gridfusion ", $meaning, ".")]
                pub $switch: bool,
            )*
            /// Bytes that the groups of one reduction may take; an aggregation that needs more runs over rows.
            pub reduce_memory: usize,
            /// Whether scans declare partitions that are ranges of labels as such. Engines that divide plans turn this off.
            pub declare_range: bool,
        }

        impl Default for OptimizerSettings {
            fn default() -> Self {
                Self { $($switch: true,)* reduce_memory: 1 << 30, declare_range: true }
            }
        }

        const SWITCHES: &[Setting] = &[$(Setting {
            info: OptionInfo::new(
                concat!("optimizer.", stringify!($switch)),
                ValueKind::Flag,
                "`true`",
                $meaning,
            )
            .in_session()$(.formerly($former))?,
            least: 0,
            slot: |optimizer, _| Slot::Flag(&mut optimizer.$switch),
        }),*];
    };
}

switches! {
    enable_all: "rewrites plans over arrays; `false` turns off all of these rules at once";
    enable_reduce, formerly "reduce":
        "runs aggregations over dimensions as array reductions instead of over rows";
    enable_reduce_weights, formerly "reduce_weights":
        "applies weights, arithmetic and conditions to sums of cells instead of to each cell";
    enable_eager_aggregation, formerly "eager_aggregation":
        "reduces an array before it is joined with a table, instead of after";
    enable_align_joins, formerly "align_joins":
        "joins arrays on their dimensions by index instead of by hashing";
    enable_reduce_windows, formerly "reduce_windows":
        "aggregates whole partitions of a window as a reduction, and joins it with the rows";
    enable_top_rows, formerly "top_rows":
        "leaves out rows that cannot be among the first of their partition, before `row_number` or `rank` sorts them";
    enable_lookup_joins, formerly "lookup_joins":
        "finds the rows that match a cell by the place of its labels instead of by hashing";
    enable_join_reduce:
        "aggregates the pairs of such joins as a reduction instead of by hashing";
    enable_grid_windows, formerly "grid_windows":
        "runs windows whose frames move along a dimension on the array instead of over sorted rows";
    enable_copies:
        "writes the cells of an array as another one chunk by chunk instead of row by row";
}

/// Declares the other settings: kind, name, default, least number, field, meaning.
macro_rules! settings {
    ($($kind:ident $name:literal = $default:literal, $least:literal.., $slot:expr, $meaning:literal;)*) => {
        const OTHERS: &[Setting] = &[$(Setting {
            info: OptionInfo::new($name, ValueKind::$kind, $default, $meaning).in_session(),
            least: $least,
            slot: $slot,
        }),*];
    };
}

settings! {
    Number "reduce_memory" = "`1073741824`", 0.., |optimizer, _| Slot::Size(&mut optimizer.reduce_memory),
        "bytes for the groups of one reduction; aggregations that need more run over rows";
    Flag "declare_range" = "`true`", 0.., |optimizer, _| Slot::Flag(&mut optimizer.declare_range),
        "declares partitions that are ranges of labels to the planner; engines that divide plans need `false`";
    Number "remote_requests" = "`64`", 1.., |_, limits| Slot::Size(&mut limits.requests),
        "requests to object stores that are in flight at once";
    Number "remote_bytes" = "`79691776`", 1.., |_, limits| Slot::Size(&mut limits.bytes),
        "bytes that the requests in flight ask for";
    Number "remote_timeout" = "`30`", 1.., |_, limits| Slot::Seconds(&mut limits.timeout),
        "seconds without progress after which a request fails";
    Number "remote_tries" = "`4`", 1.., |_, limits| Slot::Size(&mut limits.tries),
        "how often a request is tried";
    Number "remote_gap" = "`1048576`", 0.., |_, limits| Slot::Bytes(&mut limits.gap),
        "the most bytes between two ranges that share a request";
    Number "remote_merge" = "`8388608`", 1.., |_, limits| Slot::Bytes(&mut limits.merge),
        "the most bytes of one request";
    Number "remote_cache" = "`67108864`", 0.., |_, limits| Slot::Size(&mut limits.cache),
        "bytes of indexes, labels and listings that are kept for later queries";
    Number "remote_check" = "`1`", 0.., |_, limits| Slot::Seconds(&mut limits.check),
        "seconds for which a listed or opened object is not checked again when a table is opened";
}

/// The number of settings.
const COUNT: usize = SWITCHES.len() + OTHERS.len();

/// The names and texts of the settings, in the order of documents.
pub(crate) const SETTINGS: &[OptionInfo] = &{
    let mut infos = [SWITCHES[0].info; COUNT];
    let mut at = 0;
    while at < COUNT {
        let of_switches = at < SWITCHES.len();
        infos[at] = if of_switches { SWITCHES[at].info } else { OTHERS[at - SWITCHES.len()].info };
        at += 1;
    }
    infos
};

/// Returns the setting with this name, which it may have had before.
pub(crate) fn find(name: &str) -> Option<&'static Setting> {
    SWITCHES.iter().chain(OTHERS).find(|it| it.info.is_named(name))
}
