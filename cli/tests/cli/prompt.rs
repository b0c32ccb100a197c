//! The prompt, in a terminal made by `script`.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::STATIONS;

/// Types lines at the prompt and returns the terminal's output; `None` without `script`.
fn typed(lines: &str, folder: &Path, history: &str) -> Option<String> {
    typed_at(&format!("'{STATIONS}'"), lines, folder, history)
}

/// As [`typed`], with other arguments of the program.
fn typed_at(arguments: &str, lines: &str, folder: &Path, history: &str) -> Option<String> {
    let program = env!("CARGO_BIN_EXE_gridfusion");
    let mut script = Command::new("script");
    script.args(["-qec", &format!("'{program}' {arguments} -q"), "/dev/null"]);
    // A terminal without any capabilities shows each line once.
    script.env("TERM", "dumb").env("GRIDFUSION_HISTORY", history).env("GRIDFUSION_PAGER", "");
    script.current_dir(folder).env_remove("RUST_LOG");
    script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = script.spawn().ok()?;
    child.stdin.take()?.write_all(lines.as_bytes()).ok()?;
    let output = child.wait_with_output().ok()?;
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8(output.stdout).unwrap().replace('\r', ""))
}

#[test]
fn statements_and_commands() {
    let folder = tempfile::tempdir().unwrap();
    let history = folder.path().join("kept/history");
    fs::write(folder.path().join("a.sql"), "SELECT 'from a file' AS \"where\";").unwrap();
    let lines = "SELECT ';'\n  AS semicolon;\n.tables\n\\d elevation;\n\\pset format csv\n\
                 SELECT 40 + 2 AS answer;\n\\i a.sql\nfrobnicate;\n.frobnicate\nhelp\n\
                 SUMMARIZE elevation;\nQUIT;\nSELECT 'too late';\n";
    let Some(shown) = typed(lines, folder.path(), history.to_str().unwrap()) else { return };
    for expected in [
        "| semicolon |",
        "| public       | precipitation |",
        "| value       | Float",
        "format is csv",
        "answer\n42\n",
        "where\nfrom a file\n",
        "'.frobnicate' is not a command; \\? lists commands",
        "  \\pset [format ",
        "station,Utf8View,6,0,",
    ] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    assert!(!shown.contains("\ntoo late"), "{shown}");
    let kept = fs::read_to_string(&history).unwrap();
    assert!(kept.contains("40 + 2") && kept.contains(".tables"), "{kept}");
}

#[test]
fn no_history_is_kept_where_none_is_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let Some(shown) = typed("SELECT 1 AS one;\nexit\n", folder.path(), "") else { return };
    assert!(shown.contains("| one |"), "{shown}");
    assert!(!home.exists() && fs::read_dir(folder.path()).unwrap().next().is_none());
}

#[test]
fn the_history_has_no_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let history = folder.path().join("history");
    let secret = "0123456789abcdefSECRET";
    let lines = format!(
        "SELECT 1 FROM 'http://me:{secret}@127.0.0.1:1/a.tet?sig={secret}';\n\
         SELECT 1 FROM read_array('http://127.0.0.1:1/a.tet', 'http.header.x', '{secret}');\n\
         SELECT 40 + 2;\nexit\n"
    );
    let Some(_) = typed(&lines, folder.path(), history.to_str().unwrap()) else { return };
    let kept = fs::read_to_string(&history).unwrap();
    assert!(kept.contains("40 + 2") && kept.contains("127.0.0.1:1/a.tet"), "{kept}");
    assert!(!kept.contains(secret), "{kept}");
}

/// Each file appears when its result is complete. Bytes are not for terminals.
#[test]
fn results_in_files() {
    let folder = tempfile::tempdir().unwrap();
    let lines = ".mode parquet\n.mode box\n.once a.parquet\nSELECT 42 AS answer;\nSELECT 7 AS shown;\n\
                 FROM 'a.parquet';\n.output b.arrow\n.mode automatic\n.once c.csv\n.tables\n\
                 .once d.parquet\nSELECT 10 / (value - 9) AS x FROM range(10);\n.once e.xlsx\n\
                 .once f.arrows\nSELECT 1 AS x; SELECT 2 AS x;\n.once g.csv\n.once g.csv\nSELECT 3 AS x;\nexit\n";
    let Some(shown) = typed(lines, folder.path(), "") else { return };
    for expected in [
        "Parquet is not for terminals; .once FILE.parquet writes the next result",
        "│ 7     │",
        "│ 42     │",
        "b.arrow: such a file holds one result; .once b.arrow writes the next",
        "Divide by zero",
        "e.xlsx: no format has the ending .xlsx",
        "f.arrows has the Arrow of another statement",
    ] {
        assert!(shown.contains(expected), "{expected}: {shown}");
    }
    let mut names: Vec<String> = fs::read_dir(folder.path())
        .unwrap()
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["a.parquet", "c.csv", "g.csv"]);
    let text = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    assert!(text("c.csv").starts_with("table_catalog,"), "{}", text("c.csv"));
    assert_eq!(text("g.csv"), "x\n3\n");
}

/// Tables that were opened by relative paths still find their files, also those of chunks that were never read.
#[test]
fn open_tables_keep_their_files() {
    let folder = tempfile::tempdir().unwrap();
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    std::os::unix::fs::symlink(repository.join("examples/data"), folder.path().join("data"))
        .unwrap();
    for name in ["inner/deep", "outer"] {
        fs::create_dir_all(folder.path().join(name)).unwrap();
    }
    fs::copy(repository.join("examples/data/land.tet"), folder.path().join("inner/deep/land.tet"))
        .unwrap();
    let counts = "SELECT count(sst) + 1000000 AS zarr FROM sea; SELECT count(t2m) + 2000000 AS many FROM y;\n\
                  SELECT count(value) + 3000000 AS netcdf FROM air.t2m;\n\
                  SELECT count(value) + 4000000 AS lazily FROM deep.land.land;\n";
    let lines = format!(
        "CREATE EXTERNAL TABLE sea STORED AS ARRAY LOCATION 'data/sea.zarr';\n\
         CREATE EXTERNAL TABLE y STORED AS ARRAY LOCATION 'data/years/*.tet';\n\
         .cd inner\n{counts}.cd deep\nSELECT count(*) + 5000000 AS here FROM 'land.tet';\n.cd ../..\n{counts}\
         .cd nowhere\n.cd\nexit\n"
    );
    let run = |lines: &str| typed_at("data/air.nc inner/deep", lines, folder.path(), "");
    let Some(shown) = run(&lines) else { return };
    assert!(!shown.contains("cannot open") && !shown.contains("not found"), "{shown}");
    for expected in ["zarr", "many", "netcdf", "lazily"] {
        assert_eq!(shown.matches(&format!("\n| {expected} ")).count(), 2, "{expected}: {shown}");
    }
    // An absent chunk would be fill values, which do not count.
    let plain = run(&lines.replace(".cd ", "-- ")).unwrap();
    let figures = |shown: &str| {
        let cells = shown.lines().filter_map(|it| it.strip_prefix("| ")?.strip_suffix(" |"));
        cells
            .filter(|it| it.ends_with(char::is_numeric) && !it.starts_with('5'))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!((figures(&shown), figures(&shown).len()), (figures(&plain), 8), "{shown}{plain}");
    assert!(shown.contains("nowhere: cannot change to the folder: No such file"), "{shown}");
    // The root holds in every folder.
    let lines =
        ".cd ..\n.cd deep\nFROM 'land.tet' LIMIT 1;\nFROM '../../data/land.tet' LIMIT 1;\nexit\n";
    let shown = typed_at("--root .", lines, &folder.path().join("inner"), "").unwrap();
    assert!(shown.contains("'..' is outside of '"), "{shown}");
    assert!(
        shown.contains("| lat ") && shown.contains("'../../data/land.tet' is outside"),
        "{shown}"
    );
}
