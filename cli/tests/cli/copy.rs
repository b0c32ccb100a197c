//! `COPY`: a file appears only when all its rows are written.

use std::fs;
use std::path::Path;

use crate::support::{STATIONS, failure, run, run_with_input, singles};

/// Writes the example with a last chunk of `temperature` that does not begin with zstd's magic number.
fn damaged(folder: &Path) -> String {
    let sql = format!(
        "SELECT file_offset AS place FROM tet_chunks('{STATIONS}') \
         WHERE dataset = 'temperature' ORDER BY file_offset DESC LIMIT 1"
    );
    let outcome = run(&["-q", "--format", "csv", "-c", &sql]);
    let place: usize = outcome.stdout.lines().nth(1).unwrap().parse().unwrap();
    let mut bytes = fs::read(STATIONS).unwrap();
    for byte in &mut bytes[place..place + 4] {
        *byte ^= 0xff;
    }
    let path = folder.join("damaged.tet");
    fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_copy_that_fails_leaves_no_file() {
    let (source, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = damaged(source.path());
    for ending in ["parquet", "csv", "json"] {
        let path = target.path().join(format!("copy.{ending}"));
        let sql = format!(
            "SET datafusion.execution.batch_size = 100; SET datafusion.execution.target_partitions = 1;
             COPY (SELECT * FROM '{file}#temperature') TO '{}'",
            path.display()
        );
        let message = failure(&[], &sql);
        assert!(message.contains("damaged.tet"), "{message}");
        assert_eq!(names(target.path()), Vec::<String>::new(), "{ending}");

        // An older file stays as it was.
        fs::write(&path, "before").unwrap();
        failure(&[], &sql);
        assert_eq!(fs::read_to_string(&path).unwrap(), "before");
        assert_eq!(names(target.path()).len(), 1, "{ending}");
        fs::remove_file(&path).unwrap();
    }
    let sql = format!(
        "COPY (SELECT * FROM '{file}#temperature') TO '{}/parts/' STORED AS PARQUET PARTITIONED BY (station)",
        target.path().display()
    );
    failure(&[], &sql);
    let parts = target.path().join("parts");
    let left = fs::read_dir(parts).into_iter().flatten().flatten();
    assert!(left.flat_map(|folder| names(&folder.path())).next().is_none());
}

#[test]
fn a_copy_that_succeeds_is_whole() {
    let target = tempfile::tempdir().unwrap();
    for ending in ["parquet", "csv", "json"] {
        let path = target.path().join(format!("copy.{ending}"));
        let path = path.to_str().unwrap();
        let sql = format!(
            "COPY (SELECT * FROM temperature) TO '{path}'; SELECT count(*) AS n FROM '{path}'"
        );
        let outcome = run(&[STATIONS, "-q", "--format", "csv", "-c", &sql]);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        assert_eq!(outcome.stdout, "count\n8640\nn\n8640\n", "{ending}");
    }
    assert_eq!(names(target.path()).len(), 3);
    let folder = target.path().join("parts");
    let sql = format!(
        "COPY (SELECT * FROM temperature) TO '{0}/' STORED AS PARQUET PARTITIONED BY (station);
         CREATE EXTERNAL TABLE parts STORED AS PARQUET LOCATION '{0}/';
         INSERT INTO parts SELECT * FROM parts LIMIT 10;
         SELECT count(*) AS n FROM parts",
        folder.display()
    );
    let outcome = run(&[STATIONS, "-q", "--format", "csv", "-c", &sql]);
    assert!(outcome.stdout.ends_with("n\n8650\n"), "{outcome:?}");
}

#[cfg(unix)]
#[test]
fn an_interrupted_copy_leaves_no_file() {
    use std::process::Command;

    use crate::support::{gridfusion, until};

    let target = tempfile::tempdir().unwrap();
    let sql = format!(
        "COPY (SELECT * FROM generate_series(1, 1000000000000)) TO '{}/long.csv'",
        target.path().display()
    );
    let child = gridfusion(&["-c", &sql]).spawn().unwrap();
    until("no file is begun", || !names(target.path()).is_empty());
    assert_eq!(names(target.path()), ["long.csv#1"]);
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    let outcome = child.wait_with_output().unwrap();
    assert_eq!(outcome.status.code(), Some(1), "{outcome:?}");
    let message = String::from_utf8(outcome.stderr).unwrap();
    assert!(message.contains("interrupted; no file was written"), "{message}");
    assert_eq!(names(target.path()), Vec::<String>::new());
}

#[test]
fn standard_output_is_not_a_file_and_standard_input_is() {
    let message = failure(&[STATIONS], "COPY temperature TO '/dev/stdout' STORED AS CSV");
    assert!(message.contains("run the query with --format csv"), "{message}");
    let sql =
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/dev/stdin'; SELECT sum(b) AS b FROM t";
    let outcome = run_with_input(&["-q", "--format", "csv", "-c", sql], "a,b\n1,2\n3,4\n");
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), "b\n6\n"), "{outcome:?}");
    let outcome = run_with_input(&["-q"], sql);
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stderr.contains("give SQL by -c or -f"), "{outcome:?}");
}

/// Labels of single precision reach Parquet and CSV as they are in the file, and are found again from there.
#[test]
fn labels_of_single_precision_keep_their_bits() {
    let target = tempfile::tempdir().unwrap();
    for name in ["grid_cdf2.nc", "grid_nc4.nc", "grid_v2.zarr", "grid_v3.zarr"] {
        let grid = singles(name);
        for (ending, data_type) in [("parquet", "Float32"), ("csv", "Float64")] {
            let copy = target.path().join(format!("{name}.{ending}"));
            let copy = copy.display();
            let sql = format!(
                "COPY (SELECT lat, lon, t AS value FROM '{grid}') TO '{copy}';
                 SELECT arrow_typeof(min(lat)) FROM '{copy}';
                 SELECT count(*), sum(g.t - s.value) FROM '{grid}' g JOIN '{copy}' s USING (lat, lon);
                 SELECT DISTINCT CAST(CAST(lat AS FLOAT) AS DOUBLE) FROM '{copy}' ORDER BY 1"
            );
            let outcome = run(&["-q", "--format", "csv", "-c", &sql]);
            assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
            let lines: Vec<&str> = outcome.stdout.lines().collect();
            assert!(lines.contains(&data_type) && lines.contains(&"15,0.0"), "{lines:?}");
            let singles =
                [50.0_f32, 50.1, 50.2, 50.3, 50.4].map(|it| format!("{:?}", f64::from(it)));
            assert_eq!(lines[lines.len() - 5..], singles, "{name}.{ending}");
        }
    }
}
