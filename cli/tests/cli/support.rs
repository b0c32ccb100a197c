//! Runs the program and makes its input files.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

pub(crate) const STATIONS: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/data/stations.tet");
pub(crate) const NOT_TET: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");

/// The exit code and output of a run.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Outcome {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

pub(crate) fn gridfusion(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gridfusion"));
    command.args(args).env_remove("RUST_LOG");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub(crate) fn run(args: &[&str]) -> Outcome {
    gridfusion(args).output().unwrap().into()
}

/// A program that runs longer hangs.
const HANG: Duration = Duration::from_secs(120);

/// A program that runs. Threads read its output, so that it never waits for a reader.
pub(crate) struct Running {
    child: Child,
    /// Gets standard output and standard error when the program closes them, which it does at its end.
    output: Receiver<(usize, Vec<u8>)>,
    /// The texts that have come.
    texts: [Option<Vec<u8>>; 2],
}

impl Running {
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::new(gridfusion(args).spawn().unwrap())
    }

    pub(crate) fn new(mut child: Child) -> Self {
        let (sender, output) = mpsc::channel();
        let pipes: [Box<dyn Read + Send>; 2] =
            [Box::new(child.stdout.take().unwrap()), Box::new(child.stderr.take().unwrap())];
        for (number, mut pipe) in pipes.into_iter().enumerate() {
            let sender = sender.clone();
            thread::spawn(move || {
                let mut bytes = vec![];
                pipe.read_to_end(&mut bytes).unwrap();
                let _ = sender.send((number, bytes));
            });
        }
        Self { child, output, texts: [None, None] }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the program ends, but no longer than a time. Returns whether it has ended.
    pub(crate) fn ends_within(&mut self, time: Duration) -> bool {
        while self.texts.iter().any(Option::is_none) {
            let Ok((number, bytes)) = self.output.recv_timeout(time) else { return false };
            self.texts[number] = Some(bytes);
        }
        true
    }

    /// Waits until the program ends. A hang fails the test.
    pub(crate) fn ended(mut self) -> Outcome {
        if !self.ends_within(HANG) {
            self.child.kill().unwrap();
            panic!("a hang: {:?}", self.texts);
        }
        let [stdout, stderr] = self.texts.map(|text| String::from_utf8(text.unwrap()).unwrap());
        Outcome { code: self.child.wait().unwrap().code(), stdout, stderr }
    }
}

/// Waits until a condition holds of which no signal tells. Fails the test if it never does.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..HANG.as_millis() / 2 {
        if holds() {
            return;
        }
        thread::sleep(Duration::from_millis(2));
    }
    panic!("{what}: a hang");
}

/// Waits until a process has opened a file, where the system shows that.
pub(crate) fn until_open(process: u32, path: &Path) {
    let is_it = |file: fs::DirEntry| fs::read_link(file.path()).is_ok_and(|it| it == path);
    until("the process does not open the file", || {
        fs::read_dir(format!("/proc/{process}/fd")).is_ok_and(|all| all.flatten().any(is_it))
    });
}

pub(crate) fn run_with_input(args: &[&str], input: &str) -> Outcome {
    let mut child = gridfusion(args).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap().into()
}

/// Runs SQL that must fail without output. Returns the message.
pub(crate) fn failure(paths: &[&str], sql: &str) -> String {
    let outcome = run(&[paths, &["-q", "-c", sql]].concat());
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""), "{sql}");
    let message = outcome.stderr.strip_prefix("Error: ").unwrap_or_else(|| panic!("{outcome:?}"));
    message.trim_end().to_owned()
}

/// Returns the path of an array, group or directory in the library's test data.
pub(crate) fn tiledb(name: &str) -> String {
    format!("{}/../tests/data/tiledb/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// The path of a Zarr store, NetCDF or HDF5 file of the library's tests.
pub(crate) fn foreign(name: &str) -> String {
    format!("{}/../tests/data/foreign/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// A file with labels of single precision.
pub(crate) fn singles(name: &str) -> String {
    format!("{}/../tests/data/singles/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Writes a file with one uncompressed dataset `t` of 32-bit floats. Each chunk holds `chunk_rows` whole
/// rows.
pub(crate) fn tet(path: &Path, shape: [u64; 2], chunk_rows: u64, value: impl Fn(u64) -> f32) {
    let chunks = shape[0].div_ceil(chunk_rows);
    let (index_at, index_len) = (40 + 24 + 32, 32 + 104 * chunks);
    let mut file = b"TETR".to_vec();
    let put = |file: &mut Vec<u8>, words: &[u64]| {
        words.iter().for_each(|word| file.extend(word.to_le_bytes()));
    };
    // Version 1, one dataset, no footer. Then the offset and length of the index, and the length of the
    // directory.
    [1_u32, 1, 0].iter().for_each(|word| file.extend(word.to_le_bytes()));
    put(&mut file, &[index_at, index_len, 24 + 32]);
    // Length of the name, element type f32, two axes.
    [1_u32, 1, 2, 0].iter().for_each(|word| file.extend(word.to_le_bytes()));
    file.extend(b"t\0\0\0\0\0\0\0");
    put(&mut file, &[shape[0], shape[1], chunk_rows, shape[1]]);
    file.extend(b"TIDX");
    file.extend(1_u32.to_le_bytes());
    put(&mut file, &[chunks, 0, 0]);
    let mut payload_at = index_at + index_len;
    for chunk in 0..chunks {
        let rows = chunk_rows.min(shape[0] - chunk * chunk_rows);
        let bytes = 4 * rows * shape[1];
        put(&mut file, &[0, chunk, 0, 0, 0, 0, 0, 0, 0, payload_at, bytes, bytes, 0]);
        payload_at += bytes;
    }
    file.extend((0..shape[0] * shape[1]).flat_map(|cell| value(cell).to_le_bytes()));
    fs::write(path, file).unwrap();
}

/// Returns the anonymous memory of a running process in bytes, as Linux reports it. Pages of files, such as
/// the program, do not count.
#[cfg(target_os = "linux")]
pub(crate) fn memory_of(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

/// Makes a package with two generations, both copies of the example. The second is current.
pub(crate) fn package(folder: &Path, name: &str) -> String {
    let root = folder.join(name);
    for number in 1..=2 {
        let generation = root.join(format!("generations/{number:08}"));
        fs::create_dir_all(&generation).unwrap();
        fs::copy(STATIONS, generation.join("packed.tet")).unwrap();
    }
    fs::write(root.join("PROTOCOL"), r#"{"protocol_version":2}"#).unwrap();
    fs::write(root.join("CURRENT"), "2\n").unwrap();
    root.to_str().unwrap().to_owned()
}
