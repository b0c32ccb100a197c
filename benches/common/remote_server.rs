//! The object server of the bench `remote`, in a process of its own: so memory of the bench is that of the client.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use bytes::Bytes;

use super::support::object_server::ObjectServer;

/// The variable that makes the program a server.
const SERVES: &str = "GRIDFUSION_BENCH_SERVES";

/// The conditions of a link.
pub(crate) struct Link {
    /// The name in `FIGURES.md`.
    pub(crate) name: &'static str,
    pub(crate) latency_ms: u64,
    /// Bytes per second of a connection; 0 for no limit.
    pub(crate) bandwidth: u64,
}

/// The requests that a query makes.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) requests: usize,
    pub(crate) listings: usize,
    pub(crate) bytes: u64,
    pub(crate) most_in_flight: usize,
}

/// Whether this process is the server.
pub(crate) fn is_server() -> bool {
    std::env::var_os(SERVES).is_some()
}

/// Serves objects until the other process closes the standard input of this one.
pub(crate) fn serve(objects: Vec<(String, Bytes)>) {
    let server = ObjectServer::start(objects);
    println!("{}", server.url());
    drop(std::io::stdin().read_to_end(&mut vec![]));
}

/// A server in another process.
pub(crate) struct ServerProcess {
    process: Child,
    /// The URL, without a slash at the end.
    pub(crate) url: String,
}

impl ServerProcess {
    /// Starts this program again, as the server, and waits until it has its objects.
    pub(crate) fn start() -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .arg("remote")
            .env(SERVES, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
        assert!(url.starts_with("http://"), "the server has not started");
        Self { process, url: url.trim_end().to_owned() }
    }

    /// Sets the conditions of the link.
    pub(crate) fn set(&self, link: &Link) {
        let (latency, bandwidth) = (link.latency_ms, link.bandwidth);
        self.ask(&format!("/__control?latency_ms={latency}&bandwidth={bandwidth}"));
    }

    /// Returns the requests that some work makes.
    pub(crate) fn traffic(&self, work: impl FnOnce()) -> Traffic {
        self.ask("/__log?take=1");
        work();
        let log = self.ask("/__log?take=1");
        let number = |name: &str| -> u64 {
            let mut totals = log.lines().next().unwrap_or_default().split(' ');
            totals.find_map(|total| total.strip_prefix(name)?.parse().ok()).unwrap()
        };
        Traffic {
            requests: number("requests=") as usize,
            listings: log.lines().filter(|line| line.contains(" list prefix=")).count(),
            bytes: number("sent="),
            most_in_flight: number("most_in_flight=") as usize,
        }
    }

    /// Sends a request, and returns the body of the reply.
    fn ask(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(self.url.trim_start_matches("http://")).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        reply.split_once("\r\n\r\n").unwrap().1.to_owned()
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        drop(self.process.wait());
    }
}
