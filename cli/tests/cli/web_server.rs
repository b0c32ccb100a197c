//! A small HTTP server on this machine, which notes the requests, and can refuse them.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// The head of a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Head {
    /// The method, the path with its query, and the version.
    pub(crate) line: String,
    /// The names, in lower case, and the values of all headers.
    pub(crate) headers: Vec<(String, String)>,
}

impl Head {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    }

    fn path(&self) -> &str {
        let target = self.line.split(' ').nth(1).unwrap_or_default();
        target.split('?').next().unwrap_or_default().trim_start_matches('/')
    }

    /// Returns the bytes that the client asks for, of an object of this length.
    fn range(&self, len: usize) -> Option<(usize, usize)> {
        let (first, last) = self.header("range")?.strip_prefix("bytes=")?.split_once('-')?;
        Some(match first.parse() {
            Ok(first) => (first, last.parse().map_or(len, |last: usize| len.min(last + 1))),
            Err(_) => (len.saturating_sub(last.parse().ok()?), len),
        })
    }

    fn read(stream: &mut BufReader<&TcpStream>) -> Option<Self> {
        let mut lines = vec![];
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).ok()? == 0 {
                return None;
            }
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let mut lines = lines.into_iter();
        let line = lines.next()?;
        let header = |line: String| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_ascii_lowercase(), value.trim().to_owned()))
        };
        Some(Self { line, headers: lines.filter_map(header).collect() })
    }
}

/// Returns the status and the body of a refusal, or the status and the target of a redirect; `None` to answer the request.
type Refuse = Box<dyn Fn(&Head) -> Option<(u16, String)> + Send + Sync>;

/// Serves one object at every path that ends in its name.
pub(crate) struct WebServer {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<Head>>>,
}

impl WebServer {
    /// Starts a server that runs until the process ends.
    pub(crate) fn start(
        name: &'static str,
        bytes: Vec<u8>,
        refuse: impl Fn(&Head) -> Option<(u16, String)> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, heads) = (listener.local_addr().unwrap(), Arc::default());
        let refuse: Arc<Refuse> = Arc::new(Box::new(refuse));
        let (of_thread, bytes) = (Arc::clone(&heads), Arc::new(bytes));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (heads, refuse, bytes) =
                    (Arc::clone(&of_thread), Arc::clone(&refuse), Arc::clone(&bytes));
                thread::spawn(move || serve(&stream, name, &bytes, &refuse, &heads));
            }
        });
        Self { address, heads }
    }

    /// Returns the host and port.
    pub(crate) fn host(&self) -> String {
        self.address.to_string()
    }

    /// Returns all requests since the last call, and forgets them.
    pub(crate) fn take(&self) -> Vec<Head> {
        std::mem::take(&mut self.heads.lock().unwrap())
    }
}

fn serve(
    stream: &TcpStream,
    name: &str,
    bytes: &[u8],
    refuse: &Refuse,
    heads: &Mutex<Vec<Head>>,
) -> Option<()> {
    let mut reader = BufReader::new(stream);
    while let Some(head) = Head::read(&mut reader) {
        heads.lock().unwrap().push(head.clone());
        let (status, more, body) = match refuse(&head) {
            Some((status @ 300..400, target)) if !target.is_empty() => {
                (status, format!("Location: {target}\r\n"), vec![])
            }
            Some((status, body)) => (status, String::new(), body.into_bytes()),
            None if !head.path().ends_with(name) => (404, String::new(), vec![]),
            None => match head.range(bytes.len()) {
                Some((first, end)) => {
                    let part = format!("bytes {first}-{}/{}", end.saturating_sub(1), bytes.len());
                    (206, format!("Content-Range: {part}\r\n"), bytes[first..end].to_vec())
                }
                None => (200, String::new(), bytes.to_vec()),
            },
        };
        let text = format!(
            "HTTP/1.1 {status} Status\r\n{more}ETag: \"1\"\r\nLast-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let mut stream = stream;
        stream.write_all(text.as_bytes()).ok()?;
        if !head.line.starts_with("HEAD") {
            stream.write_all(&body).ok()?;
        }
    }
    None
}
