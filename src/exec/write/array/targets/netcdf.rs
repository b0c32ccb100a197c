//! `COPY … TO 'x.nc'`: a NetCDF file.

use async_trait::async_trait;
use datafusion::common::plan_err;
use datafusion::error::Result;
use gridfusion_cf::{NetcdfEncoding, NetcdfVersion, NetcdfWriter};
use gridfusion_core::write::{ArrayWriter, NewArray};

use super::TargetFormat;
use crate::exec::write::array::options::{WriteMode, WriteOptions};

/// One file, which is put together in memory.
#[derive(Debug)]
pub(super) struct NetcdfTarget;

/// The names of versions, as in the option `version`.
const VERSIONS: [(&str, NetcdfVersion); 4] = [
    ("netcdf4", NetcdfVersion::Netcdf4),
    ("classic", NetcdfVersion::Classic),
    ("64bit-offset", NetcdfVersion::Offset64),
    ("cdf5", NetcdfVersion::Data64),
];

#[async_trait]
impl TargetFormat for NetcdfTarget {
    fn name(&self) -> &'static str {
        "netcdf"
    }

    fn names(&self) -> &'static [&'static str] {
        &["nc", "nc4", "netcdf"]
    }

    fn is_one_file(&self) -> bool {
        true
    }

    fn modes(&self) -> &'static [WriteMode] {
        &[WriteMode::Create, WriteMode::Overwrite]
    }

    fn options(&self) -> &'static [&'static str] {
        &["max_bytes", "version"]
    }

    fn codecs(&self) -> &'static [(&'static str, Option<i32>)] {
        &[("deflate", Some(4)), ("none", None)]
    }

    fn writer(
        &self,
        array: NewArray,
        object: &str,
        options: &WriteOptions,
    ) -> Result<Box<dyn ArrayWriter>> {
        let default = NetcdfEncoding::default();
        let version = match &options.version {
            None => default.version,
            Some(name) => match VERSIONS.iter().find(|it| it.0 == name) {
                Some((_, version)) => *version,
                None => {
                    let known = VERSIONS.map(|it| it.0).join(", ");
                    return plan_err!("there is no version '{name}' of NetCDF; there are {known}");
                }
            },
        };
        let is_classic = version != NetcdfVersion::Netcdf4;
        let deflate = match options.codec(self.codecs())? {
            // Classic files are not compressed, unless the options ask for it, which is an error.
            _ if is_classic && !options.chooses_codec() => None,
            ("deflate", Some(level)) => match u8::try_from(level) {
                Ok(level) => Some(level),
                Err(_) => return plan_err!("deflate has levels from 0 to 9"),
            },
            _ => None,
        };
        let max_bytes = options.max_bytes.unwrap_or(default.max_bytes);
        let encoding = NetcdfEncoding { version, deflate, max_bytes };
        Ok(Box::new(NetcdfWriter::try_new(array, object, encoding)?))
    }
}
