//! Recognises files and folders of other formats, so that an error can name the format and a remedy.
//! A file is recognised by its first bytes or its name, a folder by its listing.

use super::machine::Entry;
use crate::error::Error;

/// A format that gridfusion does not read as arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Foreign {
    /// HDF5, including NetCDF-4, if gridfusion was built without the feature `hdf5`.
    Hdf5,
    /// A Zarr array or group, if gridfusion was built without the feature `zarr`.
    Zarr,
    /// GRIB, a format of weather services.
    Grib,
    /// One or several NumPy arrays.
    Numpy,
    /// TIFF: a picture, or a raster of a map.
    Tiff,
    /// Parquet.
    Parquet,
    /// Arrow IPC.
    Arrow,
    /// Comma- or tab-separated values.
    Csv,
    /// JSON: one document, or one per line.
    Json,
    /// A compressed file or an archive.
    Compressed,
    /// The tables of one variable, in a folder of references in Parquet.
    ParquetReferences,
    /// A repository of Icechunk, if gridfusion was built without the feature `zarr`.
    Icechunk,
}

/// The advice for formats that gridfusion reads only with their features.
const FEATURE: &str = "build gridfusion with the feature that reads it";

impl Foreign {
    /// Recognises a file by its first bytes.
    ///
    /// ```
    /// use gridfusion_core::format::Foreign;
    ///
    /// assert_eq!(Foreign::from_bytes(b"GRIB\0\0\0\x02"), Some(Foreign::Grib));
    /// assert_eq!(Foreign::from_bytes(b"TETR\x01\0\0\0"), None);
    /// ```
    pub fn from_bytes(head: &[u8]) -> Option<Self> {
        const SIGNATURES: &[(&[u8], Foreign)] = &[
            (b"GRIB", Foreign::Grib),
            (b"\x93NUMPY", Foreign::Numpy),
            (b"II*\0", Foreign::Tiff),
            (b"MM\0*", Foreign::Tiff),
            (b"II+\0", Foreign::Tiff),
            (b"MM\0+", Foreign::Tiff),
            (b"PAR1", Foreign::Parquet),
            (b"ARROW1", Foreign::Arrow),
            (b"\x1f\x8b", Foreign::Compressed),
            (b"PK\x03\x04", Foreign::Compressed),
            (b"BZh", Foreign::Compressed),
            (b"\xfd7zXZ\0", Foreign::Compressed),
            (b"\x28\xb5\x2f\xfd", Foreign::Compressed),
        ];
        let signature = SIGNATURES.iter().find(|(signature, _)| head.starts_with(signature));
        let foreign = signature.map(|(_, foreign)| *foreign);
        foreign.or_else(|| is_hdf5(head).then_some(Self::Hdf5)).filter(|it| !it.is_read())
    }

    /// Recognises a file by the extension of its name.
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.trim_end_matches('/');
        let (_, extension) = name.rsplit_once('.')?;
        let foreign = match extension.to_ascii_lowercase().as_str() {
            "nc4" | "h5" | "hdf5" | "hdf" | "he5" => Self::Hdf5,
            "zarr" => Self::Zarr,
            "grib" | "grb" | "grib2" | "grb2" => Self::Grib,
            "npy" | "npz" => Self::Numpy,
            "tif" | "tiff" => Self::Tiff,
            "parquet" | "pq" => Self::Parquet,
            "arrow" | "feather" | "ipc" => Self::Arrow,
            "csv" | "tsv" => Self::Csv,
            "json" | "jsonl" | "ndjson" => Self::Json,
            "gz" | "zip" | "bz2" | "xz" | "zst" => Self::Compressed,
            _ => return None,
        };
        Some(foreign).filter(|it| !it.is_read())
    }

    /// Whether gridfusion was built with the feature that reads the format.
    fn is_read(self) -> bool {
        const HDF5: bool = cfg!(feature = "hdf5");
        const ZARR: bool = cfg!(feature = "zarr");
        match self {
            Self::Hdf5 => HDF5,
            Self::Zarr | Self::Icechunk => ZARR,
            _ => false,
        }
    }

    /// Recognises a folder by its entries.
    pub fn from_folder(entries: &[Entry]) -> Option<Self> {
        const OF_ZARR: [&str; 5] = ["zarr.json", ".zgroup", ".zarray", ".zmetadata", ".zattrs"];
        let is_file = |entry: &&Entry| entry.size.is_some();
        let is_references =
            |entry: &Entry| entry.name.starts_with("refs.") && entry.name.ends_with(".parq");
        if entries.iter().filter(is_file).any(is_references) {
            return Some(Self::ParquetReferences);
        }
        let has_folder = |name: &str| entries.iter().any(|it| it.size.is_none() && it.name == name);
        if has_folder("manifests") && (has_folder("snapshots") || has_folder("transactions")) {
            return Some(Self::Icechunk).filter(|it| !it.is_read());
        }
        let of_zarr = |entry: &Entry| entry.size.is_some() && OF_ZARR.contains(&&*entry.name);
        let is_zarr = entries.iter().any(of_zarr);
        is_zarr.then_some(Self::Zarr).filter(|it| !it.is_read())
    }

    /// Whether the format holds rows, which DataFusion reads, rather than arrays.
    pub fn has_rows(self) -> bool {
        matches!(self, Self::Parquet | Self::Arrow | Self::Csv | Self::Json)
    }

    /// Returns the name of the format with its article, for use in a sentence.
    pub fn what(self) -> &'static str {
        match self {
            Self::Hdf5 => "an HDF5 or NetCDF-4 file",
            Self::Zarr => "a Zarr store",
            Self::Grib => "a GRIB file",
            Self::Numpy => "a NumPy file",
            Self::Tiff => "a TIFF file",
            Self::Parquet => "a Parquet file",
            Self::Arrow => "an Arrow file",
            Self::Csv => "a CSV file",
            Self::Json => "a JSON file",
            Self::Compressed => "a compressed file or an archive",
            Self::ParquetReferences => "a part of a folder of references in Parquet (refs.0.parq)",
            Self::Icechunk => "an Icechunk repository",
        }
    }

    /// Returns the advice for a user who has such a file.
    pub fn advice(self) -> &'static str {
        match self {
            Self::Hdf5 | Self::Zarr | Self::Icechunk => FEATURE,
            Self::Numpy => "save it as a Zarr store or a NetCDF file with xarray",
            Self::Grib => "convert it to NetCDF with xarray and cfgrib",
            Self::Tiff => "convert it to NetCDF with xarray and rioxarray",
            Self::Parquet | Self::Arrow | Self::Csv | Self::Json => {
                "query it by its path, in single quotes: SELECT * FROM 'PATH'"
            }
            Self::Compressed => "unpack it first",
            Self::ParquetReferences => "name the folder above it, which holds .zmetadata",
        }
    }

    /// Returns the `Usage` error for such a file in place of an array.
    pub fn error(self) -> Error {
        let (what, advice) = (self.what(), self.advice());
        Error::usage(format!("this is {what}, which gridfusion does not read; {advice}"))
    }
}

/// Whether `head` holds the HDF5 signature, at its start or after a user block of 512, 1024, 2048, … bytes.
fn is_hdf5(head: &[u8]) -> bool {
    let places = std::iter::successors(Some(512_usize), |at| at.checked_mul(2));
    let mut places = std::iter::once(0).chain(places).take_while(|at| *at < head.len());
    places.any(|at| head[at..].starts_with(b"\x89HDF\r\n\x1a\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures() {
        let hdf5 = b"\x89HDF\r\n\x1a\n";
        let of_hdf5 = (!cfg!(feature = "hdf5")).then_some(Foreign::Hdf5);
        for (head, expected) in [
            (&hdf5[..], of_hdf5),
            (&[&[0; 1024][..], hdf5].concat(), of_hdf5),
            (&[&[0; 700][..], hdf5].concat(), None),
            (b"\x89HDF", None),
            (b"CDF\x05...", None),
            (b"GRIB\0\0\0\x02", Some(Foreign::Grib)),
            (b"PAR1", Some(Foreign::Parquet)),
            (b"\x1f\x8b\x08", Some(Foreign::Compressed)),
            (b"time,value\n", None),
            (b"", None),
        ] {
            assert_eq!(Foreign::from_bytes(head), expected, "{head:?}");
        }
    }

    #[test]
    fn names_and_folders() {
        let of_zarr = (!cfg!(feature = "zarr")).then_some(Foreign::Zarr);
        for (name, expected) in [
            ("data/era.GRIB", Some(Foreign::Grib)),
            ("data/era.nc", None),
            ("era.zarr/", of_zarr),
            ("a.csv", Some(Foreign::Csv)),
            ("a.tet", None),
            ("nc", None),
        ] {
            assert_eq!(Foreign::from_name(name), expected, "{name}");
        }
        let entry = |name: &str, size: Option<u64>| Entry { name: name.to_owned(), size };
        assert_eq!(Foreign::from_folder(&[entry("c", None), entry("zarr.json", Some(9))]), of_zarr);
        assert_eq!(Foreign::from_folder(&[entry("zarr.json", None), entry("a", Some(9))]), None);
        assert_eq!(Foreign::from_folder(&[]), None);
        let references = [entry("refs.0.parq", Some(9)), entry("refs.1.parq", Some(9))];
        assert_eq!(Foreign::from_folder(&references), Some(Foreign::ParquetReferences));
        let of_icechunk = (!cfg!(feature = "zarr")).then_some(Foreign::Icechunk);
        for other in ["snapshots", "transactions"] {
            let half = [entry("manifests", None), entry(other, None)];
            assert_eq!(Foreign::from_folder(&half), of_icechunk);
        }
        assert_eq!(Foreign::from_folder(&[entry("snapshots", None)]), None);
    }

    #[test]
    fn all_errors_name_the_format_and_a_remedy() {
        let text = Foreign::Hdf5.error().to_string();
        assert!(text.starts_with("this is an HDF5 or NetCDF-4 file, which"), "{text}");
        assert!(text.contains("feature"), "{text}");
        assert!(Foreign::Csv.has_rows() && !Foreign::Zarr.has_rows());
    }
}
