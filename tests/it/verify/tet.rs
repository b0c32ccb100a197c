//! Verification of `.tet` files: good files pass, and each kind of damage is found by the check for it.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use gridfusion::io::{ByteSource, MemorySource};
use gridfusion::verify::{Depth, Progress, Report, Severity};
use gridfusion_tet::{TetReader, verify as verify_tet};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::{Value, json};
use tetration::catalog::{CHUNK_PAYLOAD_CODEC_V1, DATASET_DTYPE_TAG_V1};
use tetration::prelude::{TetDatasetWrite, TetWriterSession};

use crate::support::zoned::Zoned;
use crate::support::{F32, I32, Layout, TestDataset, tet_bytes};

/// Verifies a file in memory, and asserts that the progress reaches its end.
pub(crate) async fn verify(bytes: impl Into<Bytes>, depth: Depth) -> Report {
    verify_source(Arc::new(MemorySource::new("test.tet", bytes)), depth).await
}

async fn verify_source(source: Arc<dyn ByteSource>, depth: Depth) -> Report {
    let name = source.name().to_owned();
    let file = match TetReader::open(source).await {
        Ok(file) => file,
        Err(error) => return Report::from_error(&name, depth, &error),
    };
    let progress = Arc::new(Progress::default());
    let report = verify_tet(&file, depth, &progress).await;
    assert_eq!(
        (progress.done(), progress.total()),
        (file.tet().index_rows(), file.tet().index_rows())
    );
    report
}

/// The names of failed checks.
pub(crate) fn failed(report: &Report) -> Vec<&'static str> {
    let failed = report.checks().iter().filter(|check| check.failures() > 0);
    failed.map(|check| check.name()).collect()
}

/// All findings as text.
pub(crate) fn findings(report: &Report) -> String {
    let lines = report.checks().iter().flat_map(|check| {
        check.findings().iter().map(|found| format!("{}: {found}\n", check.name()))
    });
    lines.collect()
}

fn assert_clean(report: &Report, what: &str) {
    assert!(report.checks().len() > 10, "{what}: {report:#?}");
    assert_eq!(findings(report), "", "{what}");
}

/// A file that the reference crate wrote. It has raw floats with NaN and fill values, bytes with zstd,
/// and integers that no double represents.
fn written_by_the_reference() -> Vec<u8> {
    let tags = DATASET_DTYPE_TAG_V1;
    let floats = [1.5_f32, -9.0, f32::NAN, -0.0, 5.0, 6.0, f32::INFINITY, 0.0, 2.0, -9.0];
    let floats = floats.iter().flat_map(|value| value.to_le_bytes()).collect();
    let floats = TetDatasetWrite::f32_row_major("floats", &[2, 5], &[2, 2], floats)
        .unwrap()
        .with_attr("_FillValue", "-9");
    let bytes = (0..70).map(|cell| cell * 3).collect();
    let mut packed =
        TetDatasetWrite::row_major("packed", tags.u8, &[7, 10], &[3, 4], bytes).unwrap();
    packed.chunk_codec = CHUNK_PAYLOAD_CODEC_V1.zstd;
    let exact =
        [i64::MIN, (1 << 53) + 1, i64::MAX].iter().flat_map(|it| it.to_le_bytes()).collect();
    let exact = TetDatasetWrite::row_major("exact", tags.i64, &[3], &[2], exact).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut writer = TetWriterSession::create(dir.path().join("v.tet"));
    for dataset in [floats, packed, exact] {
        writer.push_dataset(dataset).unwrap();
    }
    std::fs::read(writer.commit().unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn good_files_pass() {
    let shipped = std::fs::read(crate::support::shipped("examples/data/stations.tet")).unwrap();
    let of_reference = written_by_the_reference();
    for (what, bytes, zones) in [
        ("example", shipped, true),
        ("reference", of_reference, true),
        ("small", small(None), false),
    ] {
        for depth in [Depth::Structure, Depth::Cells] {
            let report = verify(bytes.clone(), depth).await;
            assert_clean(&report, what);
            let deep = depth == Depth::Cells;
            assert_eq!(report.check("chunk_decode").is_some(), deep, "{what}");
            assert_eq!(report.check("zone_maps_stale").is_some(), deep && zones, "{what}");
        }
    }
}

/// Queries ignore a later dataset of the same name, so its faults are no failures.
#[tokio::test]
async fn later_datasets_of_the_same_name_do_not_fail() {
    let fill = json!({"dim_names": ["x"], "attrs": {"_FillValue": "1e20"}});
    let floats = TestDataset::new("v", F32, &[2], &[2], vec![0; 8]).with_metadata(fill.clone());
    let integers = TestDataset::new("v", I32, &[2], &[2], vec![0; 8]).with_metadata(fill);
    let layout = Layout { history_version: Some(1), ..Layout::default() };
    let report =
        verify(tet_bytes(&[floats.clone(), integers.clone()], &layout), Depth::Cells).await;
    assert!(report.is_ok(), "{}", findings(&report));
    // In the other order, queries read the one whose fill value is wrong.
    let report = verify(tet_bytes(&[integers, floats], &layout), Depth::Cells).await;
    assert_eq!(failed(&report), ["attributes"]);
}

/// A file of two datasets with two chunks each: `a` of 4 floats, and `b` of 2 × 3 integers. It has a footer
/// if it has zone maps.
fn small(zones: Option<Value>) -> Vec<u8> {
    let version = zones.is_some().then_some(2);
    small_with(&Layout { zones, history_version: version, ..Layout::default() }, json!({}))
}

fn small_with(layout: &Layout, metadata: Value) -> Vec<u8> {
    let floats = [1_f32, 2.0, 10.0, 11.0].iter().flat_map(|it| it.to_le_bytes()).collect();
    let integers = (0..6_i32).flat_map(i32::to_le_bytes).collect();
    let a = TestDataset::new("a", F32, &[4], &[2], floats).with_metadata(metadata);
    let b = TestDataset::new("b", I32, &[2, 3], &[2, 2], integers);
    tet_bytes(&[a, b], layout)
}

/// The byte at which the index of [`small`] begins. Its rows begin 32 bytes later. Payloads of 8, 8, 16
/// and 8 bytes follow the rows.
const INDEX: usize = 40 + 40 + 56;
const ROWS: usize = INDEX + 32;
const PAYLOADS: usize = ROWS + 4 * 104;

/// The byte at which a field of an index row begins.
fn field(row: usize, offset: usize) -> usize {
    ROWS + 104 * row + offset
}

fn put(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_damage_is_found_by_its_check() {
    type Damage = fn(&mut Vec<u8>);
    let damages: &[(&str, Damage, &[&str], &str)] = &[
        (
            "no dataset",
            |it| put(it, field(0, 0), 7),
            &["chunk_dataset_ids", "dataset_tensor_bytes"],
            "dataset_tensor_bytes: \"a\", chunk [0]: no row",
        ),
        (
            "outside the grid",
            |it| put(it, field(3, 16), 2),
            &["dataset_tensor_bytes", "chunk_coords"],
            "chunk_coords: \"b\", chunk index at byte 488: chunk [0, 2], but there are [1, 2]",
        ),
        (
            "twice",
            |it| put(it, field(3, 16), 0),
            &["dataset_tensor_bytes", "chunk_coords"],
            "chunk_coords: \"b\", chunk [0, 0]: more than one row",
        ),
        (
            "tile length",
            |it| put(it, field(1, 80), 4),
            &["chunk_index", "dataset_tensor_bytes"],
            "a tile of 4 bytes, expected 8",
        ),
        (
            "stored length",
            |it| put(it, field(1, 88), 4),
            &["chunk_index"],
            "chunk_index: \"a\", chunk [1], chunk index at byte 360: 4 stored bytes of a raw tile of 8",
        ),
        ("codec", |it| it[field(2, 96)] = 9, &["chunk_index"], "codec 9"),
        (
            "behind the end",
            |it| put(it, field(2, 72), 1 << 40),
            &["chunk_payloads"],
            "chunk_payloads: \"b\", chunk [0, 0]",
        ),
        (
            "beyond numbers",
            |it| put(it, field(2, 72), u64::MAX),
            &["chunk_payloads"],
            "at byte 1844",
        ),
        (
            "same place",
            |it| put(it, field(1, 72), PAYLOADS as u64),
            &["payload_offsets"],
            "payload_offsets: \"a\", chunk [1], byte 584: its payload begins at the same byte as that of chunk [0] of \"a\"",
        ),
        (
            "partly",
            |it| put(it, field(3, 72), PAYLOADS as u64 + 12),
            &["payload_overlap"],
            "chunk [0, 1], byte 596: its payload overlaps that of chunk [1] of \"a\"",
        ),
        (
            "in the index",
            |it| put(it, field(0, 72), 200),
            &["payload_overlap"],
            "payload_overlap: \"a\", chunk [0], byte 200: the payload overlaps the directory or the index",
        ),
        ("element type", |it| it[44] = 11, &["dataset_tensor_bytes"], "element type 11"),
        ("chunk shape", |it| put(it, 72, 0), &["dataset_tensor_bytes"], "has a 0"),
        ("magic", |it| it[0] = b'X', &["parse"], "parse: superblock at byte 0"),
        ("index magic", |it| it[INDEX] = b'X', &["parse"], "parse: chunk index at byte 136"),
    ];
    for (what, damage, checks, part) in damages {
        let mut bytes = small(None);
        damage(&mut bytes);
        for depth in [Depth::Structure, Depth::Cells] {
            let report = verify(bytes.clone(), depth).await;
            assert_eq!(failed(&report), *checks, "{what}: {}", findings(&report));
            assert!(findings(&report).contains(part), "{what}: {}", findings(&report));
        }
    }
}

#[tokio::test]
async fn what_is_odd_is_a_warning() {
    let shuffled = Layout { shuffle: Some(StdRng::seed_from_u64(1)), ..Layout::default() };
    let mut unused = small(None);
    put(&mut unused, field(0, 24), 5);
    let footer = Layout { history_version: Some(1), ..Layout::default() };
    let labels = json!({"dim_names": ["x"], "coords": {"x": {"labels": ["1"]}}});
    let twice = TestDataset::new("a", I32, &[1], &[1], vec![0; 4]);
    let ignored = Layout { zones: Some(json!({})), history_version: Some(1), ..Layout::default() };
    for (what, bytes, check, part) in [
        ("order", small_with(&shuffled, json!({})), "payload_order", "4 separate runs"),
        ("unused", unused, "unused_coords", "coordinate 5 on axis 2 of 1, expected 0"),
        ("labels", small_with(&footer, labels), "labels", "1 labels for dimension \"x\""),
        (
            "rank",
            small_with(&footer, json!({"dim_names": ["x", "y"]})),
            "labels",
            "2 dimension names",
        ),
        ("names", tet_bytes(&[twice.clone(), twice], &Layout::default()), "labels", "same name"),
        (
            "version",
            small_with(&ignored, json!({})),
            "footer",
            "a footer of version 1 does not have",
        ),
    ] {
        let report = verify(bytes, Depth::Cells).await;
        assert!(report.is_ok(), "{what}: {}", findings(&report));
        let check = report.check(check).unwrap();
        assert_eq!(check.severity(), Some(Severity::Warning), "{what}: {}", findings(&report));
        assert!(findings(&report).contains(part), "{what}: {}", findings(&report));
    }
}

fn zone(dataset: u64, chunk: &[u64], cells: u64, least: f32, greatest: f32) -> Value {
    let hex = |value: f32| -> String {
        value.to_le_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
    };
    json!({"dataset_id": dataset, "chunk_index": chunk, "element_count": cells, "null_count": 0,
        "min_le": hex(least), "max_le": hex(greatest)})
}

/// The right zone maps of `a` in [`small`].
fn zones_of_a() -> Value {
    json!({"version": 1, "chunks": [zone(0, &[0], 2, 1.0, 2.0), zone(0, &[1], 2, 10.0, 11.0)]})
}

#[tokio::test]
async fn zone_maps_that_cannot_be_right_are_found_without_cells() {
    let with = |change: fn(&mut Value)| {
        let mut zones = zones_of_a();
        change(&mut zones);
        zones
    };
    for (zones, failures, part) in [
        (with(|it| it["version"] = 2.into()), 1, "version 2"),
        (with(|it| it["chunks"] = "x".into()), 1, "not zone maps"),
        (
            with(|it| it["chunks"][0]["chunk_index"] = json!([9])),
            1,
            "\"a\", chunk [9], zone maps at",
        ),
        (with(|it| it["chunks"][1]["chunk_index"] = json!([0])), 1, "chunk [0], zone maps at"),
        (with(|it| it["chunks"][0]["element_count"] = 3.into()), 1, "among 3 elements"),
        (with(|it| it["chunks"][0]["null_count"] = 3.into()), 1, "3 nulls among 2"),
        (with(|it| it["chunks"][0]["dataset_id"] = 5.into()), 1, "a map of dataset 5"),
        (with(|it| it["chunks"][0]["min_le"] = "zz".into()), 1, "is not a range of f32"),
        (
            with(|it| {
                it["chunks"][0]["min_le"] = "zz".into();
                it["chunks"][1]["max_le"] = Value::Null;
            }),
            2,
            "chunk [1]",
        ),
    ] {
        let report = verify(small(Some(zones)), Depth::Structure).await;
        assert_eq!(failed(&report), ["zone_maps"], "{}", findings(&report));
        assert_eq!(
            report.check("zone_maps").unwrap().failures(),
            failures,
            "{}",
            findings(&report)
        );
        assert!(findings(&report).contains(part), "{part}: {}", findings(&report));
    }
    let in_reverse = with(|it| it["chunks"].as_array_mut().unwrap().reverse());
    let report = verify(small(Some(in_reverse)), Depth::Structure).await;
    assert!(
        report.is_ok() && findings(&report).contains("not in the order"),
        "{}",
        findings(&report)
    );
    // There are no zone maps of `b`.
    let report = verify(small(Some(zones_of_a())), Depth::Cells).await;
    assert!(report.is_ok(), "{}", findings(&report));
    let expected =
        "zone_maps: \"b\": 2 of 2 chunks have no map, so filters on values cannot skip them\n";
    assert_eq!(findings(&report), expected);
}

#[tokio::test]
async fn zone_maps_that_lie_are_found_with_cells() {
    let mut zones = zones_of_a();
    zones["chunks"][1] = zone(0, &[1], 2, 0.0, 1.0);
    let bytes = small(Some(zones));
    assert!(verify(bytes.clone(), Depth::Structure).await.is_ok());
    let report = verify(bytes, Depth::Cells).await;
    assert_eq!(failed(&report), ["zone_maps_stale"]);
    let expected = "zone_maps_stale: \"a\", chunk [1]: the zone map has 0 NULLs and values from 0.0 to \
        1.0, the cells have 0 NULLs and values from 10.0 to 11.0\n";
    assert!(findings(&report).contains(expected), "{}", findings(&report));
}

/// Zone maps that were computed cell by cell pass; a changed bound is found.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn zone_maps_are_made_again_as_they_were() {
    let mut rng = StdRng::seed_from_u64(3);
    let mut lies = 0;
    for number in 0..300 {
        let zoned = Zoned::random(&mut rng);
        let bytes = std::fs::read(&zoned.case.file.path).unwrap();
        // These arrays have more labels than the format allows.
        let failed = |report: &Report| {
            let failed = failed(report).into_iter().filter(|check| *check != "footer_metadata");
            failed.collect::<Vec<_>>()
        };
        let report = verify(bytes.clone(), Depth::Cells).await;
        assert_eq!(failed(&report), [""; 0], "{number}: {}", findings(&report));
        // Changes one digit of a bound, and not the length of the file. The bound may become invalid.
        let text = b"\"min_le\":\"";
        let Some(at) = bytes.windows(text.len()).position(|window| window == text) else {
            continue;
        };
        let mut changed = bytes;
        let digit = &mut changed[at + text.len()];
        *digit = if *digit == b'1' { b'2' } else { b'1' };
        let report = verify(changed, Depth::Cells).await;
        assert!(!report.is_ok(), "{number}: {}", zoned.case.description);
        let [check] = failed(&report)[..] else { panic!("{number}: {}", findings(&report)) };
        assert!(["zone_maps", "zone_maps_stale"].contains(&check), "{number}: {check}");
        assert_eq!(report.check(check).unwrap().failures(), 1, "{}", findings(&report));
        lies += usize::from(check == "zone_maps_stale");
    }
    assert!(lies > 80, "{lies}");
}

#[tokio::test]
async fn footers_are_checked_against_the_limits_of_the_format() {
    let labels: Vec<String> = (0..65).map(|label| label.to_string()).collect();
    let layout = Layout { history_version: Some(2), ..Layout::default() };
    let metadata = json!({"coords": {"other": {"labels": labels}}, "attrs": {"units": ""}});
    let report = verify(small_with(&layout, metadata), Depth::Structure).await;
    assert_eq!(failed(&report), ["footer_metadata"]);
    let text = findings(&report);
    assert!(text.contains("has 65 labels") && text.contains("\"units\" is empty"), "{text}");
    let long = json!({"attrs": {"note": "x".repeat(70_000)}});
    let text = findings(&verify(small_with(&layout, long), Depth::Structure).await);
    assert!(text.contains("has 70000 bytes") && text.contains("the format allows 65536"), "{text}");
}

#[tokio::test]
async fn spills_outside_the_footer_are_found() {
    let bytes = small(Some(zones_of_a()));
    let text = format!("\"offset\":{}", PAYLOADS + 40);
    let at = bytes.windows(text.len()).position(|window| window == text.as_bytes()).unwrap();
    for (offset, checks) in [("000", &["footer", "zone_maps"][..]), ("999", &["footer"])] {
        let mut bytes = bytes.clone();
        bytes[at + 9..at + 12].copy_from_slice(offset.replace('0', "2").as_bytes());
        let report = verify(bytes, Depth::Structure).await;
        assert_eq!(failed(&report), checks, "{}", findings(&report));
        assert!(findings(&report).contains("footer: footer at byte"), "{}", findings(&report));
    }
}

/// Each changed bit of an index row is a failure, except in the last 4 bytes and in unused coordinates.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_changed_byte_of_the_index_is_found() {
    let bytes = small(None);
    for at in ROWS..PAYLOADS {
        let (row, place) = ((at - ROWS) / 104, (at - ROWS) % 104);
        let rank = if row < 2 { 1 } else { 2 };
        for bit in 0..8 {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1 << bit;
            let report = verify(bytes, Depth::Cells).await;
            let expected = match place {
                100.. => None,
                8..72 if place >= 8 + 8 * rank => Some(Severity::Warning),
                _ => Some(Severity::Failure),
            };
            let worst = report.checks().iter().filter_map(|check| check.severity()).max();
            assert_eq!(worst, expected, "bit {bit} of byte {at}: {}", findings(&report));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_damage_does_harm_and_no_truncation_goes_unnoticed() {
    let bytes = small(Some(zones_of_a()));
    for len in 0..bytes.len() {
        assert!(!verify(bytes[..len].to_vec(), Depth::Cells).await.is_ok(), "{len} bytes");
    }
    let reference = written_by_the_reference();
    let mut rng = StdRng::seed_from_u64(2);
    for bytes in [bytes, reference] {
        for _ in 0..3_000 {
            let mut bytes = bytes.clone();
            for _ in 0..rng.random_range(1..4) {
                let at = rng.random_range(0..bytes.len());
                bytes[at] = rng.random();
            }
            verify(bytes, Depth::Cells).await;
        }
    }
}

#[tokio::test]
async fn findings_are_bounded_and_counted() {
    let data = vec![0; 4 * 1000];
    let dataset = TestDataset::new("v", I32, &[1000], &[1], data);
    let mut bytes = tet_bytes(&[dataset], &Layout::default());
    let rows = 40 + 40 + 32;
    for row in 0..1000 {
        put(&mut bytes, rows + row * 104, if row % 4 == 0 { 3 } else { 0 });
    }
    let report = verify(bytes, Depth::Cells).await;
    for check in ["chunk_dataset_ids", "dataset_tensor_bytes"] {
        let check = report.check(check).unwrap();
        assert_eq!((check.failures(), check.findings().len(), check.left_out()), (250, 20, 230));
    }
    assert_eq!(report.check("chunk_decode").unwrap().detail(), "750 chunks");
}

/// A directory may declare more chunks than could be listed.
#[tokio::test]
async fn missing_chunks_are_counted_without_being_listed() {
    let mut bytes = small(None);
    put(&mut bytes, 64, 1 << 60);
    let report = verify(bytes, Depth::Cells).await;
    assert_eq!(failed(&report), ["dataset_tensor_bytes"]);
    let check = report.check("dataset_tensor_bytes").unwrap();
    assert_eq!((check.failures(), check.findings().len()), ((1 << 59) - 2, 20));
}

/// Rows that all point at one payload must not make a small file take forever.
#[tokio::test]
async fn shared_payloads_are_not_decoded_again_and_again() {
    let dataset = TestDataset::new("v", I32, &[4000], &[1000], vec![1; 16_000]);
    let mut bytes = tet_bytes(&[dataset], &Layout::default());
    let rows = 40 + 40 + 32;
    for row in 0..4 {
        put(&mut bytes, rows + row * 104 + 72, (rows + 4 * 104) as u64);
    }
    bytes.truncate(rows + 4 * 104 + 4000);
    let report = verify(bytes, Depth::Cells).await;
    assert_eq!(failed(&report), ["payload_offsets", "chunk_decode"]);
    assert!(findings(&report).contains("3 chunks were not decoded"), "{}", findings(&report));
}

/// A file that records the ranges that are read, and that fails to read some bytes.
#[derive(Debug)]
struct Watched {
    file: MemorySource,
    unreadable: Range<u64>,
    read: Mutex<Vec<Range<u64>>>,
}

#[async_trait]
impl ByteSource for Watched {
    fn name(&self) -> &str {
        self.file.name()
    }

    fn size(&self) -> u64 {
        self.file.size()
    }

    fn is_resident(&self) -> bool {
        true
    }

    async fn read(&self, ranges: &[Range<u64>]) -> gridfusion::Result<Vec<Bytes>> {
        self.read.lock().unwrap().extend(ranges.iter().cloned());
        let bad = |range: &Range<u64>| {
            range.start < self.unreadable.end && self.unreadable.start < range.end
        };
        if ranges.iter().any(bad) {
            let error = std::io::Error::other("bad sector");
            return Err(gridfusion::Error::io("cannot read", error).in_file(self.name()));
        }
        self.file.read(ranges).await
    }
}

fn watched(bytes: Vec<u8>, unreadable: Range<u64>) -> Arc<Watched> {
    let file = MemorySource::new("test.tet", bytes);
    Arc::new(Watched { file, unreadable, read: Mutex::default() })
}

/// A file whose two chunks are too long to be read along with its head and tail, and a range inside them.
fn large() -> (Vec<u8>, Range<u64>) {
    let dataset = TestDataset::new("v", I32, &[100_000], &[50_000], vec![1; 400_000]);
    let bytes = tet_bytes(&[dataset], &Layout::default());
    (bytes, 150_000..250_000)
}

#[tokio::test]
async fn without_cells_no_payload_is_read() {
    let (bytes, middle) = large();
    let source = watched(bytes, 0..0);
    assert!(verify_source(Arc::clone(&source) as _, Depth::Structure).await.is_ok());
    let touches = |range: &Range<u64>| range.start < middle.end && middle.start < range.end;
    assert!(!source.read.lock().unwrap().iter().any(touches));
    assert!(verify_source(Arc::clone(&source) as _, Depth::Cells).await.is_ok());
    assert!(source.read.lock().unwrap().iter().any(touches));
}

#[tokio::test]
async fn what_cannot_be_read_is_named_and_the_rest_is_looked_at() {
    let (bytes, _) = large();
    let report = verify_source(watched(bytes, 210_000..210_001), Depth::Cells).await;
    assert_eq!(failed(&report), ["chunk_decode"]);
    let check = report.check("chunk_decode").unwrap();
    assert_eq!((check.detail(), check.failures()), ("1 chunk", 1));
    assert_eq!(check.findings()[0].to_string(), "\"v\", chunk [1]: cannot read: bad sector");
}
