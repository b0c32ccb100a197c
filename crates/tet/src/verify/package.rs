//! The checks of a package that go beyond its open file: manifests, hashes, other generations, and
//! leftovers of writers.
//!
//! ```text
//!   x.tet.d ─┬─ PROTOCOL, CURRENT                  opening has checked both
//!            ├─ generations ─┬─ 00000001           verify_other, for each that is not open
//!            │               └─ 00000002           verify_generation: the open one
//!            │                    MANIFEST.json      current_manifest
//!            │                    packed.tet         manifest_sha256
//!            │                    ZONE.json          zone_file
//!            │                    INDEX.json         secondary_indexes
//!            │                    SEMANTICS.json     semantics
//!            └─ publishing, staging                left_behind
//! ```
//!
//! See crates/tet/FORMAT.md, section 13.

use std::sync::Arc;

use serde_json::Value;

use super::checks::verify_file;
use super::sidecars::Sidecars;
use super::zones::FoundZones;
use crate::bytes::package_names::{
    GENERATIONS, INDEX_FILE, MANIFEST_FILE, PACKED_FILE, PROTOCOL_VERSION, PUBLISHING,
    SEMANTICS_FILE, STAGING, ZONE_FILE,
};
use crate::package::Package;
use crate::reader::TetReader;
use gridfusion_core::Error;
use gridfusion_core::format::Entry;
use gridfusion_core::tile::Objects;
use gridfusion_core::verify::{Check, Depth, Finding, Progress, Report, Severity, counted};

/// The version of `INDEX.json`. Another one is a warning, because queries do not use that file.
const INDEX_VERSION: u64 = 1;

/// The entries of the folders of a package.
struct Listings {
    generations: Vec<Entry>,
    publishing: Vec<Entry>,
    staging: Vec<Entry>,
}

/// Runs the checks of `package`; `file` is the open generation.
pub(super) async fn verify_package(
    file: &TetReader,
    package: &Package,
    depth: Depth,
    progress: &Arc<Progress>,
    zones: &FoundZones,
) -> Report {
    let objects = package.objects();
    let number = package.generation();
    let mut report = Report::new(depth);
    let protocol = format!("version {PROTOCOL_VERSION}");
    report.add(Check::new("protocol").with_detail(protocol));
    report.add(Check::new("current").with_detail(format!("generation {number} is open")));
    let generation = verify_generation(file, package, &objects, depth, zones).await;
    report.append(generation);
    let folders = [GENERATIONS, PUBLISHING, STAGING].map(str::to_owned).to_vec();
    let listings = match objects.list(folders).await.map(<[_; 3]>::try_from) {
        Ok(Ok([generations, publishing, staging])) => Listings { generations, publishing, staging },
        Ok(Err(_)) => return report,
        Err(error) => {
            report.add(Check::new("generations").with(Finding::from_error(&error)));
            return report;
        }
    };
    let others = verify_others(package, &listings.generations, depth, progress).await;
    others.into_iter().for_each(|check| report.add(check));
    report.add(left_behind(PUBLISHING, &listings.publishing, "an unfinished publication"));
    report.add(left_behind(STAGING, &listings.staging, "leftover parts that no generation uses"));
    report
}

/// Warns about leftovers of a writer in a folder that readers ignore.
fn left_behind(name: &'static str, entries: &[Entry], what: &str) -> Check {
    let folders = entries.iter().filter(|entry| entry.size.is_none());
    let findings =
        folders.map(|entry| Finding::warning(what).in_file(&format!("{name}/{}", entry.name)));
    let mut check = Check::new(name);
    check.extend(findings);
    check
}

/// Verifies the generations that are not open: the `.tet` file of each, and the files beside it.
async fn verify_others(
    package: &Package,
    entries: &[Entry],
    depth: Depth,
    progress: &Arc<Progress>,
) -> [Check; 2] {
    let mut folders = Check::new("generations");
    let mut packed = Check::new("generation_packed");
    let mut verified = 0;
    for entry in entries.iter().filter(|entry| entry.size.is_none()) {
        // Repair tools move broken entries to a folder of this name.
        if entry.name.contains("quarantine") {
            continue;
        }
        let place = format!("generations/{}", entry.name);
        let Ok(number) = entry.name.parse::<u64>() else {
            folders.add(Finding::warning("not the number of a generation").in_file(&place));
            continue;
        };
        if number == package.generation() {
            continue;
        }
        verified += 1;
        let report = verify_other(package, number, depth, progress).await;
        // All checks of the other generation become findings of one check, with the name of theirs in front.
        for check in report.checks() {
            let name = check.name().replace("current", "generation");
            for finding in check.findings() {
                let message = format!("{name}: {}", finding.message);
                packed.add(finding.clone().with_message(message).in_file(&place));
            }
            // Findings that their own check did not list must be counted all the same.
            for (severity, number) in
                [(Severity::Failure, check.failures()), (Severity::Warning, check.warnings())]
            {
                let listed = check.findings().iter().filter(|found| found.severity == severity);
                packed.leave_out(severity, number.saturating_sub(listed.count() as u64));
            }
        }
    }
    let detail =
        counted(entries.iter().filter(|entry| entry.size.is_none()).count() as u64, "folder");
    [folders.with_detail(detail), packed.with_detail(counted(verified, "other generation"))]
}

/// Opens another generation and verifies it as the open one, except for its siblings.
async fn verify_other(
    package: &Package,
    number: u64,
    depth: Depth,
    progress: &Arc<Progress>,
) -> Report {
    let opened = TetReader::open_package(Arc::clone(package.folder()), Some(number)).await;
    let file = match opened {
        Ok(file) => file,
        Err(error) => return Report::from_error(package.folder().name(), depth, &error),
    };
    let zones = FoundZones::used(&file).await;
    let mut report = verify_file(&file, depth, progress, &zones).await;
    if let Some(package) = file.package() {
        let objects = package.objects();
        report.append(verify_generation(&file, package, &objects, depth, &zones).await);
    }
    report
}

/// Checks the files beside the `.tet` file of a generation.
async fn verify_generation(
    file: &TetReader,
    package: &Package,
    objects: &Objects,
    depth: Depth,
    zones: &FoundZones,
) -> Report {
    let folder = package.generation_folder();
    let entries = objects.list(vec![folder.clone()]).await.unwrap_or_default();
    let entries = entries.into_iter().next().unwrap_or_default();
    let mut sidecars = Sidecars { objects, folder, entries, manifest: Value::Null };
    let mut report = Report::new(depth);
    let mut manifest = Check::new("current_manifest");
    match sidecars.json(MANIFEST_FILE).await {
        Ok(Some(json)) => sidecars.manifest = json,
        Ok(None) => manifest.add(Finding::failure(format!("there is no {MANIFEST_FILE}"))),
        Err(error) => manifest.add(Finding::from_error(&error)),
    }
    // All further checks compare with the manifest.
    if sidecars.manifest.is_null() {
        report.add(manifest);
        return report;
    }
    check_manifest(file, package.generation(), &sidecars, &mut manifest);
    report.add(manifest);
    report.add(packed_hash(file, &sidecars, depth).await);
    report.add(zone_file(file, package, &sidecars, zones).await);
    report.add(indexes(package.generation(), &sidecars).await);
    report.add(semantics(package.generation(), &sidecars).await);
    report
}

/// Compares the manifest with the generation and its `.tet` file.
fn check_manifest(file: &TetReader, number: u64, sidecars: &Sidecars<'_>, check: &mut Check) {
    for (key, expected, what) in [
        ("generation", number, "the number of the folder is"),
        ("protocol_version", PROTOCOL_VERSION, "the version of the package is"),
        ("packed_byte_len", file.size(), "the length of the file is"),
    ] {
        let found = &sidecars.manifest[key];
        if found.as_u64() != Some(expected) {
            let message = format!("\"{key}\" is {found}, {what} {expected}");
            check.add(Finding::failure(message).in_file(MANIFEST_FILE));
        }
    }
}

/// Compares the hash of the `.tet` file with the manifest. The manifest has the hash of the file
/// without zone maps, so a file with zone maps inside cannot be compared.
async fn packed_hash(file: &TetReader, sidecars: &Sidecars<'_>, depth: Depth) -> Check {
    let mut check = Check::new("manifest_sha256");
    if sidecars.manifest["packed_sha256"].is_null() {
        return check.with(Finding::warning("the manifest has no hash of the file"));
    }
    if file.tet().zone_maps_at().is_some() {
        return check.with_detail("not compared: the hash predates the zone maps in the file");
    }
    if depth == Depth::Structure {
        return check.with_detail("not computed");
    }
    sidecars.check_hash(PACKED_FILE, "packed_sha256", &mut check).await;
    check
}

/// Checks the zone file of a generation. `in_file` has the zone maps that queries use.
///
/// | manifest | file | result |
/// |---|---|---|
/// | no `zone_maps` | missing | warning: no zone maps |
/// | `required` | missing | failure |
/// | `required`, or no `zone_maps` | present | its own checks, its hash, its generation |
/// | another value | any | failure |
async fn zone_file(
    file: &TetReader,
    package: &Package,
    sidecars: &Sidecars<'_>,
    in_file: &FoundZones,
) -> Check {
    let name = "zone_file";
    let number = package.generation();
    match (sidecars.manifest["zone_maps"].as_str(), package.zone_file()) {
        (None, None) => return Check::new(name).with(Finding::warning("no zone maps")),
        (Some("required"), None) => {
            return Check::new(name).with(Finding::failure(format!("there is no {ZONE_FILE}")));
        }
        (Some("required") | None, _) => {}
        (Some(other), _) => {
            let message = format!("\"zone_maps\" is \"{other}\", expected \"required\"");
            return Check::new(name).with(Finding::failure(message).in_file(MANIFEST_FILE));
        }
    }
    let Some(mut zones) = FoundZones::beside(file, package).await else { return Check::new(name) };
    if file.tet().zone_maps_at().is_some() && zones.check.failures() == 0 {
        // Two sets of maps about the same cells must be equal. Maps with faults are missing here, so
        // sets with faults are not compared.
        zones.compare(file.tet(), &in_file.maps);
    }
    let mut check = zones.check.renamed(name);
    sidecars.check_hash(ZONE_FILE, "zone_maps_sha256", &mut check).await;
    match sidecars.json(ZONE_FILE).await {
        Ok(Some(json)) => sidecars.check_about(ZONE_FILE, &json, number, &mut check),
        Ok(None) => {}
        Err(error) => check.add(Finding::from_error(&error)),
    }
    check
}

/// Checks the index from values to chunks, which queries do not use.
async fn indexes(number: u64, sidecars: &Sidecars<'_>) -> Check {
    let mut check = Check::new("secondary_indexes");
    match (sidecars.manifest["secondary_indexes"].as_str(), sidecars.size(INDEX_FILE)) {
        (Some("present"), _) => {}
        (Some("omitted"), None) => return check.with_detail("omitted"),
        (Some("omitted"), Some(_)) => {
            let message = "the file exists, but the manifest lists it as omitted";
            return check.with(Finding::failure(message).in_file(INDEX_FILE));
        }
        (None, _) => {
            return check.with(Finding::warning("the manifest lacks \"secondary_indexes\""));
        }
        (Some(other), _) => {
            let message = format!(
                "\"secondary_indexes\" is \"{other}\", expected \"present\" or \"omitted\""
            );
            return check.with(Finding::failure(message).in_file(MANIFEST_FILE));
        }
    }
    sidecars.check_hash(INDEX_FILE, "secondary_indexes_sha256", &mut check).await;
    match sidecars.json(INDEX_FILE).await {
        Ok(Some(json)) if json["version"].as_u64() != Some(INDEX_VERSION) => {
            let message = format!("version {}, expected {INDEX_VERSION}", json["version"]);
            check.add(Finding::warning(message).in_file(INDEX_FILE));
        }
        Ok(Some(json)) => sidecars.check_about(INDEX_FILE, &json, number, &mut check),
        Ok(None) => {}
        Err(error) => check.add(Finding::from_error(&error)),
    }
    check
}

/// Checks the declarations about the meaning of the data, which queries do not use.
async fn semantics(number: u64, sidecars: &Sidecars<'_>) -> Check {
    let mut check = Check::new("semantics");
    match (sidecars.manifest["semantics"].as_str(), sidecars.size(SEMANTICS_FILE)) {
        (Some("present"), _) => {
            sidecars.check_hash(SEMANTICS_FILE, "semantics_sha256", &mut check).await;
        }
        (None, None) => return check.with_detail("none"),
        (None, Some(_)) => {
            let message = "the file exists, but the manifest does not list it";
            check.add(Finding::warning(message).in_file(SEMANTICS_FILE));
        }
        (Some(other), _) => {
            let message = format!("\"semantics\" is \"{other}\", expected \"present\"");
            return check.with(Finding::failure(message).in_file(MANIFEST_FILE));
        }
    }
    let found: Result<Option<Value>, Error> = sidecars.json(SEMANTICS_FILE).await;
    match found {
        Ok(Some(json)) => sidecars.check_about(SEMANTICS_FILE, &json, number, &mut check),
        Ok(None) => {}
        Err(error) => check.add(Finding::from_error(&error)),
    }
    check
}
