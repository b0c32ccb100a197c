//! `gridfusion info`.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{NOT_TET, Outcome, STATIONS, foreign, gridfusion, package, run, tiledb};

/// Runs `info`, which must succeed. Replaces the path in the text, which differs between machines.
fn info(path: &str, more: &[&str]) -> String {
    let outcome = run(&[&["info", path][..], more].concat());
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{path}");
    outcome.stdout.replace(path, "PATH")
}

fn json(path: &str, more: &[&str]) -> Value {
    serde_json::from_str(&info(path, &[&["--json"], more].concat())).unwrap()
}

/// Runs `info`, which must fail. Returns the message.
fn failure(path: &str) -> String {
    let outcome = run(&["info", path]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""), "{path}");
    outcome.stderr.strip_prefix("Error: ").unwrap_or_else(|| panic!("{path}")).to_owned()
}

#[test]
fn a_file_at_a_glance() {
    let expected = "\
PATH
  .tet file, layout version 1, 90.4 KiB, 4 datasets, zone maps

DATASET        TYPE  SHAPE     CHUNKS         CODEC    STORED  RATIO  UNITS                         DIMENSIONS
temperature    f32   1440 × 6  6 of 240 × 6   zstd   14.7 KiB   2.30  degC                          time, station
precipitation  f32   1440 × 6  12 of 240 × 3  raw    33.8 KiB   1.00  mm h-1                        time, station
elevation      f32   6         1 of 6         raw        24 B   1.00  m                             station
time           i32   1440      1 of 1440      raw     5.6 KiB   1.00  hours since 2024-01-01 00:00  time

DIMENSION  LENGTH  TYPE           FIRST                LAST                 UNITS
time         1440  Timestamp(µs)  2024-01-01T00:00:00  2024-02-29T23:00:00  hours since 2024-01-01 00:00
station         6  Utf8View       Bergen               Tromso               -

HISTORY               OPERATION  SOURCE
2026-11-21T00:33:31Z  write      examples/data/stations.tet
";
    assert_eq!(info(STATIONS, &[]), expected);
}

#[test]
fn an_array_at_a_glance() {
    let expected = "\
PATH
  dense TileDB array, format version 22, 16.7 KiB, 3 fragments of 1970-01-01T00:00:00.010Z to 1970-01-01T00:00:00.030Z
  row-major tiles of 3 × 3 row-major cells

DIMENSION  TYPE   LENGTH  FIRST  LAST  TILE  DOMAIN
r          INT32       7  0      6        3  0 to 6
c          INT32       6  0      5        3  0 to 6

ATTRIBUTE  TYPE          VALUES      NULL   STORED  RATIO  FILTERS
a          INT32         1           -       560 B   0.64  none
s          STRING_ASCII  any number  yes   1.5 KiB      -  none

FRAGMENT                                     FROM                      TO                        TILES  CELLS   STORED
__10_10_368507bed328daec8f539a3a133b5d8d_22  1970-01-01T00:00:00.010Z  1970-01-01T00:00:00.010Z      4     25  5.7 KiB
__20_20_3f123a3c3fa4ce91b374733853f24038_22  1970-01-01T00:00:00.020Z  1970-01-01T00:00:00.020Z      4     15  5.7 KiB
__30_30_6e463d7565f90c8d43843360d1c45b64_22  1970-01-01T00:00:00.030Z  1970-01-01T00:00:00.030Z      2      8  5.2 KiB
";
    assert_eq!(info(&tiledb("overlap"), &["--chunks"]), expected);
}

#[test]
fn a_folder_at_a_glance() {
    let expected = "\
PATH
  TileDB, 2 arrays

ARRAY        KIND   SHAPE  TILE     FRAGMENTS   STORED  DIMENSIONS   ATTRIBUTES
station      dense  3      3                1  4.0 KiB  station_idx  name, elevation
temperature  dense  3 × 8  24 × 24          1  6.2 KiB  run, valid   temperature
";
    assert_eq!(info(&tiledb("weather"), &[]), expected);
    // One unreadable array does not hide the others.
    let all = info(&tiledb(""), &[]);
    assert!(all.contains("TileDB, 36 arrays") && all.contains("\nstations/time  "), "{all}");
    assert!(
        all.contains("WARNINGS\narray \"encrypted\": ") && all.contains("is encrypted"),
        "{all}"
    );
    let metadata = info(&tiledb("weather"), &["--metadata"]);
    assert!(metadata.contains("PATH/forecast\n  dense TileDB array"), "{metadata}");
}

#[test]
fn chunks_and_attributes_on_request() {
    let text = info(STATIONS, &["--chunks", "-n", "2", "--metadata"]);
    assert!(text.contains("\nlong_name   temperature    air temperature at 2 m\n"), "{text}");
    assert!(
        text.contains(
            "\n[1, 0]  temperature    4906    2513  5760  zstd      18   -9.3       5.4\n"
        )
    );
    assert!(text.contains("\n… and 18 more; -n inf shows all\n"), "{text}");
    let all = info(STATIONS, &["--chunks", "-n", "inf"]);
    assert_eq!(all.lines().filter(|line| line.starts_with('[')).count(), 20);
    assert!(!all.contains("more;"), "{all}");
    let text = info(&tiledb("metadata"), &["--metadata"]);
    assert!(text.contains("ATTRIBUTE  VALUE\n") && text.contains("\ntext       héllo\n"), "{text}");
}

#[test]
fn json_of_a_file() {
    let found = json(STATIONS, &["--chunks", "-n", "1", "--metadata"]);
    let expected = json!({
        "name": "temperature", "element_type": "f32", "shape": [1440, 6], "chunk_shape": [240, 6],
        "dimensions": ["time", "station"], "chunks": 6, "stored_chunks": 6, "stored_bytes": 15056,
        "raw_bytes": 34560, "ratio": 34560.0 / 15056.0, "codec": "zstd", "units": "degC",
        "long_name": "air temperature at 2 m", "is_coordinate": false, "has_zone_maps": true,
    });
    assert_eq!(found["datasets"][0], expected);
    let expected = json!({
        "name": "time", "length": 1440, "type": "Timestamp(µs)", "first": "2024-01-01T00:00:00",
        "last": "2024-02-29T23:00:00", "units": "hours since 2024-01-01 00:00", "calendar": "standard",
    });
    assert_eq!(found["dimensions"][0], expected);
    let expected = json!([{
        "dataset": "temperature", "chunk": [0, 0], "file_offset": 2368, "stored_bytes": 2538,
        "raw_bytes": 5760, "codec": "zstd", "null_count": 18, "min_value": "-9.6", "max_value": "5.4",
    }]);
    assert_eq!(found["chunk_list"], expected);
    assert_eq!(
        found["metadata"][1],
        json!({"dataset": "temperature", "key": "units", "value": "degC"})
    );
    assert_eq!(found["history"][0]["op"], "write");
    for (field, expected) in [
        ("format", json!("tet")),
        ("layout_version", json!(1)),
        ("size_bytes", json!(fs::metadata(STATIONS).unwrap().len())),
        ("generation", Value::Null),
        ("warnings", json!([])),
    ] {
        assert_eq!(found[field], expected, "{field}");
    }
    // Without their flags, these fields are absent.
    let short = json(STATIONS, &[]);
    assert!(short.get("chunk_list").is_none() && short.get("metadata").is_none());
}

#[test]
fn json_of_arrays_and_folders() {
    let array = json(&tiledb("nullable"), &["--chunks", "--metadata"]);
    assert_eq!((&array["format"], &array["kind"]), (&json!("tiledb"), &json!("dense")));
    assert_eq!((&array["shape"], &array["tile_shape"]), (&json!([15]), &json!([5])));
    let x = json!({
        "name": "x", "length": 15, "type": "INT32", "first": "0", "last": "14", "units": null,
        "domain": ["0", "14"], "tile_extent": "5",
    });
    assert_eq!(array["dimensions"], json!([x]));
    // Three tiles of five cells, each with four bytes and one byte for NULL.
    assert_eq!(array["attributes"][0]["raw_bytes"], 3 * 5 * 5);
    assert_eq!(array["attributes"][0]["nullable"], true);
    let text = &array["attributes"][4];
    assert_eq!(
        (&text["values_per_cell"], &text["raw_bytes"]),
        (&json!("any number"), &Value::Null)
    );
    assert_eq!(array["fragment_list"][0]["cells"], 15);
    assert_eq!(
        (&array["metadata"], &array["written_to"]),
        (&json!([]), &json!("1970-01-01T00:00:00.010Z"))
    );
    let weather = json(&tiledb("weather"), &[]);
    assert_eq!(weather["format"], "tiledb_folder");
    let names: Vec<&Value> =
        weather["arrays"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["station", "temperature"]);
    // Sparse arrays have no shape.
    let sparse = json(&tiledb("sparse"), &[]);
    assert_eq!((&sparse["kind"], &sparse["shape"]), (&json!("sparse"), &Value::Null));
    assert_eq!(sparse["warnings"], json!([]));
    assert_ne!(sparse["dimensions"][0]["first"], Value::Null);
}

#[test]
fn packages_and_urls() {
    let folder = tempfile::tempdir().unwrap();
    let package = package(folder.path(), "demo.tet.d");
    let text = info(&package, &[]);
    assert!(text.starts_with("PATH\n  .tet.d package, generation 2, layout version 1, "), "{text}");
    assert_eq!(json(&package, &[])["generation"], 2);
    let url = format!("file://{STATIONS}");
    assert_eq!(info(&url, &[]), info(STATIONS, &[]));
}

#[test]
fn a_file_called_info_is_a_file() {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(STATIONS, folder.path().join("info")).unwrap();
    let mut query = gridfusion(&[
        "./info",
        "-q",
        "--format",
        "csv",
        "-c",
        "SELECT count(*) AS n FROM elevation",
    ]);
    let outcome = Outcome::from(query.current_dir(&folder).output().unwrap());
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), "n\n6\n"), "{outcome:?}");
    let mut described = gridfusion(&["info", "info"]);
    let outcome = Outcome::from(described.current_dir(&folder).output().unwrap());
    assert!(outcome.code == Some(0) && outcome.stdout.starts_with("info\n"), "{outcome:?}");
}

#[test]
fn what_cannot_be_described_is_named() {
    assert!(failure("nowhere.tet").starts_with("nowhere.tet: "));
    assert!(failure(NOT_TET).starts_with(&format!("{NOT_TET}: this is not a .tet file")));
    assert!(failure(env!("CARGO_MANIFEST_DIR")).contains(
        "no .tet file, .tet.d package, TileDB array, Zarr store, Icechunk repository, NetCDF file or HDF5 file"
    ));
    assert!(failure(&tiledb("encrypted")).contains("the array is encrypted"));
    assert!(failure("gopher://host/a.tet").contains("gopher://host/a.tet"));
    // An unknown codec in the chunk index.
    let folder = tempfile::tempdir().unwrap();
    let damaged = damaged_file(folder.path());
    let message = failure(&damaged);
    assert!(
        message.contains("corrupt chunk index at byte ") && message.contains("codec 7"),
        "{message}"
    );
    assert_eq!(run(&["info"]).code, Some(2));
    assert_eq!(run(&["info", STATIONS, "-n", "3"]).code, Some(2));
}

/// Writes the example with an unknown codec in the first row of its index.
fn damaged_file(folder: &Path) -> String {
    let mut bytes = fs::read(STATIONS).unwrap();
    let index = u64::from_le_bytes(*bytes[16..].first_chunk().unwrap()) as usize;
    bytes[index + 32 + 96] = 7;
    let path = folder.join("damaged.tet");
    fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_closed_stdout_is_no_error() {
    for more in [&[][..], &["--json"]] {
        let mut child = gridfusion(&[&["info", STATIONS][..], more].concat()).spawn().unwrap();
        drop(child.stdout.take());
        let outcome = Outcome::from(child.wait_with_output().unwrap());
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{more:?}");
    }
}

#[test]
fn the_same_facts_in_sql() {
    let sql = format!(
        "SELECT dataset, array_to_string(shape, 'x') AS shape, codec FROM tet_info('{STATIONS}') ORDER BY 1;
         SELECT count(*) AS n FROM tet_chunks('{STATIONS}', 'temperature');
         SELECT value FROM tet_attributes('{STATIONS}', 'elevation')"
    );
    let outcome = run(&["-q", "--format", "csv", "-c", &sql]);
    let expected = "dataset,shape,codec\nelevation,6,raw\nprecipitation,1440x6,raw\n\
                    temperature,1440x6,zstd\ntime,1440,raw\nn\n6\nvalue\nm\n";
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), expected), "{outcome:?}");
}

#[test]
fn a_zarr_store_at_a_glance() {
    let expected = "\
PATH
  Zarr store, version 3, 10 variables

VARIABLE        TYPE  SHAPE       CHUNKS           CODEC                              STORED  RATIO  DIMENSIONS
all_absent      i32   7 × 10      16 of 2 × 3      zstd, in shards of 4 × 6              0 B      -  y, x
big_endian      i32   7 × 10      16 of 2 × 3      blosc, in shards of 4 × 6           440 B   0.60  y, x
cube            f32   3 × 7 × 10  24 of 1 × 2 × 5  zstd, in shards of 2 × 4 × 10     1.0 KiB   0.86  z, y, x
default         i32   7 × 10      16 of 2 × 3      zstd, in shards of 4 × 6            330 B   0.80  y, x
gzip_crc32c     i32   7 × 10      16 of 2 × 3      gzip, crc32c, in shards of 4 × 6    437 B   0.60  y, x
index_at_start  i32   7 × 10      16 of 2 × 3      raw, in shards of 4 × 6             264 B   1.00  y, x
none            i32   7 × 10      16 of 2 × 3      raw, in shards of 4 × 6             264 B   1.00  y, x
one_shard       i32   7 × 10      20 of 2 × 2      zstd, in shards of 8 × 12           367 B   0.65  y, x
x               i16   10          4 of 3           zstd, in shards of 6                 60 B   0.40  x
y               f64   7           1 of 7           zstd                                 40 B   1.40  y

DIMENSION  LENGTH  TYPE     FIRST  LAST
y               7  Float64  70.0   10.0
x              10  Int16    0      27
z               3  Int64    0      2

VARIABLE        NOT STORED
all_absent      16 of 16 chunks
big_endian      5 of 16 chunks
cube            1 of 24 chunks
default         5 of 16 chunks
gzip_crc32c     5 of 16 chunks
index_at_start  5 of 16 chunks
none            5 of 16 chunks
one_shard       5 of 20 chunks

WARNINGS
left out: PATH/nested/zarr.json: \"nested\": shards in shards
no chunk of \"all_absent\" is stored, so all of its cells have the fill value; if that is wrong, the store is incomplete
";
    assert_eq!(info(&foreign("sharded_v3.zarr"), &[]), expected);
}

/// The stored bytes are those that h5py's `get_storage_size` returns.
#[test]
fn a_netcdf_file_at_a_glance() {
    let expected = "\
PATH
  NetCDF-4 file, superblock version 2, 35.7 KiB, 15 variables

VARIABLE               TYPE               SHAPE      CHUNKS          CODEC                          STORED  RATIO  UNITS                  DIMENSIONS
time                   f64                4          1 of 512        raw                           4.0 KiB   1.00  days since 2024-01-01  time
time_bnds              f64                4 × 2      4 of 1 × 2      raw                              64 B   1.00  -                      time, nv
lat                    u8                 4          1 of 4          raw                               4 B   1.00  -                      lat
lon                    f32                5          1 of 5          raw                              20 B   1.00  -                      lon
sst                    i16                4 × 4 × 5  8 of 2 × 3 × 4  shuffle, deflate                257 B   1.49  K                      time, lat, lon
rain                   f32                4 × 4 × 5  4 of 1 × 4 × 5  shuffle, deflate                346 B   0.92  -                      time, lat, lon
height                 f64                -          1               raw                               8 B   1.00  -                      -
station                text               3          1 of 3          raw                                 -      -  -                      station
code                   text of 8 bytes    3          1 of 3          raw                              24 B   1.00  -                      station
label                  text of 8 bytes    3          1 of 3          raw                              24 B   1.00  -                      station
cloud                  enumeration of u8  4          1 of 4          raw                               4 B   1.00  -                      lat
forecast/step          i32                3          1 of 3          raw                              12 B   1.00  hours                  step
forecast/gust          f32                4 × 3      4 of 2 × 2      fletcher32, shuffle, deflate    106 B   0.60  -                      time, step
forecast/größe/hidden  f32                2 × 5      1 of 2 × 5      raw                              40 B   1.00  -                      lat, lon
forecast/größe/seen    f64                3 × 2      1 of 3 × 2      raw                              48 B   1.00  -                      step, nv

DIMENSION  LENGTH  TYPE           FIRST                LAST                 UNITS
time            4  Timestamp(µs)  2024-01-01T12:00:00  2024-01-04T12:00:00  days since 2024-01-01
nv              2  Int64          0                    1                    -
lat             4  Float64        -90.0                37.5                 -
lon             5  Float32        0.0                  300.0                -
station         3  Utf8View       Zürich               two words            -
step            3  Int32          0                    12                   hours
lat             2  Int64          0                    1                    -

VARIABLE  NULL    PACKING                               COORDINATES  BOUNDS
time      -       -                                     -            time_bnds
lat       -       scale_factor 0.5, add_offset -90      -            -
sst       -32768  scale_factor 0.01, add_offset 273.15  height       -

ATTRIBUTE     OF             VALUE
Conventions   -              CF-1.10
title         -              made for tests
bounds        time           time_bnds
calendar      time           standard
units         time           days since 2024-01-01
add_offset    lat            -90
scale_factor  lat            0.5
_FillValue    lon            NaN
_FillValue    sst            -32768
add_offset    sst            273.15
coordinates   sst            height
scale_factor  sst            0.01
units         sst            K
_Encoding     label          utf-8
units         forecast/step  hours
";
    assert_eq!(info(&foreign("climate_nc4.nc"), &["--metadata"]), expected);
}

#[test]
fn a_classic_file_at_a_glance() {
    let expected = "\
PATH
  NetCDF classic file, CDF-1, 155 B, 2 variables, 5 records of time

VARIABLE  TYPE  SHAPE  CHUNKS      CODEC  STORED  RATIO  DIMENSIONS
x         i16   3      1 of 3      raw       6 B   1.00  x
only      i8    5 × 3  1 of 5 × 3  raw      15 B   1.00  time, x

DIMENSION  LENGTH  TYPE   FIRST  LAST
x               3  Int16  7      9
time            5  Int64  0      4
";
    assert_eq!(info(&foreign("one_record_variable.nc"), &[]), expected);
}
