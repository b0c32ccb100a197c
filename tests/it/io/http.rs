//! A small HTTP server for one object. It supports ranges, and counts GET requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// Serves some bytes at every path until it is dropped.
pub(crate) struct HttpServer {
    pub(crate) url: String,
    /// GET requests so far.
    gets: Arc<AtomicUsize>,
    accept: tokio::task::JoinHandle<()>,
}

impl HttpServer {
    pub(crate) async fn start(bytes: Vec<u8>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (bytes, gets) = (Arc::new(bytes), Arc::new(AtomicUsize::new(0)));
        let counter = Arc::clone(&gets);
        let accept = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&bytes), Arc::clone(&counter)));
            }
        });
        Self { url, gets, accept }
    }

    pub(crate) fn gets(&self) -> usize {
        self.gets.load(Ordering::Relaxed)
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.accept.abort();
    }
}

/// Answers the requests of one connection.
async fn serve(stream: TcpStream, bytes: Arc<Vec<u8>>, gets: Arc<AtomicUsize>) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if stream.read_line(&mut head).await.ok()? == 0 {
                return None;
            }
        }
        let is_get = head.starts_with("GET ");
        gets.fetch_add(usize::from(is_get), Ordering::Relaxed);
        let range = head.lines().find_map(|line| {
            line.to_ascii_lowercase().strip_prefix("range: bytes=").map(str::to_owned)
        });
        let (status, content_range, body) = match range.as_deref().and_then(|r| r.split_once('-')) {
            Some((first, last)) => {
                let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
                let last = last.min(bytes.len() - 1);
                let range = format!("content-range: bytes {first}-{last}/{}\r\n", bytes.len());
                ("206 Partial Content", range, &bytes[first..=last])
            }
            None => ("200 OK", String::new(), &bytes[..]),
        };
        let header = format!(
            "HTTP/1.1 {status}\r\n{content_range}content-length: {}\r\n\
             last-modified: Mon, 01 Jan 2024 00:00:00 GMT\r\netag: \"1\"\r\n\r\n",
            body.len()
        );
        stream.write_all(header.as_bytes()).await.ok()?;
        if is_get {
            stream.write_all(body).await.ok()?;
        }
        stream.flush().await.ok()?;
    }
}
