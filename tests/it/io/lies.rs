//! Replies that are not what was asked for: an error that tells how, or the right rows, and never other rows.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use datafusion::prelude::{SessionConfig, SessionContext};
use gridfusion::io::{CheckedStore, Remote, RemoteLimits};
use gridfusion::{ArrayOptions, GridfusionConfig, GridfusionSessionContextExt};
use object_store::http::{HttpBuilder, HttpStore};
use object_store::path::Path;
use object_store::{ClientOptions, GetOptions, GetRange, ObjectStore, ObjectStoreExt, RetryConfig};
use url::Url;

use super::remote::large;
use crate::support::waiting::within_hang;
use crate::support::{query, rows_of};

/// A reply: pieces with the pauses before them. An empty piece closes the connection.
type Reply = Vec<(Duration, Vec<u8>)>;
/// Makes the reply of a request by its number, the requested bytes if there is a range, and the object.
type Answer = dyn Fn(usize, Option<(usize, usize)>, &[u8]) -> Reply + Send + Sync;

/// Makes the reply to a request for a range of an object.
type Falsify = fn(Option<(usize, usize)>, &[u8]) -> Vec<u8>;

/// A server of one object that answers as a test wants it.
struct Liar {
    url: String,
    requests: Arc<AtomicUsize>,
    answer: Arc<Mutex<Arc<Answer>>>,
}

impl Liar {
    fn start(object: Vec<u8>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(AtomicUsize::new(0));
        let honest: Arc<Answer> = Arc::new(|_, range, object| vec![now(honest(range, object))]);
        let answer = Arc::new(Mutex::new(honest));
        let (count, answers, object) =
            (Arc::clone(&requests), Arc::clone(&answer), Arc::new(object));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (count, answers) = (Arc::clone(&count), Arc::clone(&answers));
                let object = Arc::clone(&object);
                thread::spawn(move || serve(&stream, &count, &answers, &object));
            }
        });
        Self { url, requests, answer }
    }

    /// Lets requests lie from the one with this number on, or only that one.
    fn lie(&self, first: usize, once: bool, lie: Falsify) {
        self.answer(Arc::new(move |number, range, object| {
            let lies = number == first || (number > first && !once);
            vec![now(if lies { lie(range, object) } else { honest(range, object) })]
        }));
    }

    fn answer(&self, answer: Arc<Answer>) {
        self.requests.store(0, Ordering::Relaxed);
        *self.answer.lock().unwrap() = answer;
    }

    fn session(&self, timeout: Duration) -> SessionContext {
        let config = GridfusionConfig::default();
        let limits = RemoteLimits::default()
            .with_timeout(timeout)
            .with_tries(3)
            .with_merge(100_000)
            .with_gap(0);
        config.remote.set_limits(limits);
        let session = SessionConfig::new().with_target_partitions(1).with_option_extension(config);
        let ctx = SessionContext::new_with_config(session);
        ctx.enable_gridfusion();
        let store = self.store(RetryConfig { max_retries: 0, ..RetryConfig::default() });
        ctx.register_object_store(&Url::parse(&self.url).unwrap(), Arc::new(store));
        ctx
    }

    /// Returns the store that DataFusion's formats get from the program, and the requests of its session.
    fn checked(&self) -> (CheckedStore, Remote) {
        let remote = Remote::default();
        let limits = RemoteLimits::default().with_tries(3).with_merge(100_000);
        remote.set_limits(limits);
        let once = self.store(RetryConfig { max_retries: 0, ..RetryConfig::default() });
        let reads = remote.store(Arc::new(once));
        (CheckedStore::new(reads, Arc::new(self.store(RetryConfig::default()))), remote)
    }

    fn store(&self, retry: RetryConfig) -> HttpStore {
        HttpBuilder::new()
            .with_url(&self.url)
            .with_client_options(ClientOptions::new().with_allow_http(true))
            .with_retry(retry)
            .build()
            .unwrap()
    }

    /// Returns some rows, or the message.
    async fn rows(&self, timeout: Duration) -> Result<Vec<Vec<String>>, String> {
        let ctx = self.session(timeout);
        let read = async {
            let url = format!("{}/large.tet", self.url);
            ctx.register_array("t", &url, ArrayOptions::default()).await?;
            query(&ctx, "SELECT dim_0, sum(value) FROM t GROUP BY dim_0 ORDER BY 1").await
        };
        let rows = within_hang("reading", read).await;
        rows.map(|rows| rows_of(&rows)).map_err(|error| error.to_string())
    }
}

fn serve(
    stream: &TcpStream,
    count: &AtomicUsize,
    answers: &Mutex<Arc<Answer>>,
    object: &[u8],
) -> Option<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut range, mut lines) = (None, 0);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            lines += 1;
            let line = line.trim_end().to_ascii_lowercase();
            if line.is_empty() && lines > 1 {
                break;
            }
            if let Some((first, last)) =
                line.strip_prefix("range: bytes=").and_then(|it| it.split_once('-'))
            {
                range = Some(match first.parse::<usize>() {
                    Ok(first) => (first, object.len().min(last.parse::<usize>().ok()? + 1)),
                    Err(_) => (object.len() - last.parse::<usize>().ok()?, object.len()),
                });
            }
        }
        let number = count.fetch_add(1, Ordering::Relaxed) + 1;
        let answer = Arc::clone(&answers.lock().unwrap());
        let mut stream = stream;
        for (pause, piece) in answer(number, range, object) {
            thread::sleep(pause);
            if piece.is_empty() {
                return None; // closes the connection
            }
            stream.write_all(&piece).ok()?;
        }
    }
}

fn now(bytes: Vec<u8>) -> (Duration, Vec<u8>) {
    (Duration::ZERO, bytes)
}

fn reply(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\nETag: \"1\"\r\n{headers}\r\n");
    [head.as_bytes(), body].concat()
}

/// Returns the lines of the head for a part, whose body has this length.
fn part_of(range: Option<(usize, usize)>, len: usize, total: usize) -> String {
    let (first, end) = range.unwrap_or((0, total));
    format!("Content-Range: bytes {first}-{}/{total}\r\nContent-Length: {len}\r\n", end - 1)
}

fn cut(range: Option<(usize, usize)>, object: &[u8]) -> &[u8] {
    range.map_or(object, |(first, end)| &object[first..end])
}

fn honest(range: Option<(usize, usize)>, object: &[u8]) -> Vec<u8> {
    let body = cut(range, object);
    match range {
        Some(_) => reply("206 Part", &part_of(range, body.len(), object.len()), body),
        None => reply("200 OK", &format!("Content-Length: {}\r\n", body.len()), body),
    }
}

type Lie = (&'static str, Falsify, &'static str);

/// Ways to lie, and a part of the message that each causes.
const LIES: [Lie; 12] = [
    (
        "compressed",
        |range, object| {
            let body = &cut(range, object)[..cut(range, object).len() / 2];
            let head = part_of(range, body.len(), object.len()) + "Content-Encoding: gzip\r\n";
            reply("206 Part", &head, body)
        },
        "encoded (gzip), which was not asked for",
    ),
    (
        "encoded, of the right length",
        |range, object| {
            let body: Vec<u8> = cut(range, object).iter().map(|byte| !byte).collect();
            let head = part_of(range, body.len(), object.len()) + "Content-Encoding: br\r\n";
            reply("206 Part", &head, &body)
        },
        "encoded (br), which was not asked for",
    ),
    (
        "a length that contradicts the range",
        |range, object| {
            let body = &cut(range, object)[1..];
            reply("206 Part", &part_of(range, body.len(), object.len()), body)
        },
        "bytes, and ends after",
    ),
    (
        "more bytes than the range",
        |range, object| {
            let body = [cut(range, object), b"x"].concat();
            reply("206 Part", &part_of(range, body.len(), object.len()), &body)
        },
        "bytes, and has more",
    ),
    (
        "another range",
        |range, object| {
            let body = cut(range, object);
            let moved = range.map(|(first, end)| (first + 1, end + 1));
            reply("206 Part", &part_of(moved, body.len(), object.len()), body)
        },
        "Requested ",
    ),
    (
        "a shorter range",
        |range, object| {
            let body = &cut(range, object)[..1];
            let first = range.map(|(first, _)| (first, first + 1));
            reply("206 Part", &part_of(first, 1, object.len()), body)
        },
        "Requested ",
    ),
    (
        "another total",
        |range, object| {
            let body = cut(range, object);
            reply("206 Part", &part_of(range, body.len(), object.len() + 7), body)
        },
        "",
    ),
    (
        "several parts",
        |range, object| {
            let body = cut(range, object);
            let head = part_of(range, body.len(), object.len())
                + "Content-Type: multipart/byteranges; boundary=x\r\n";
            reply("206 Part", &head, body)
        },
        "it has several parts",
    ),
    (
        "several parts without a range",
        |range, object| {
            let body = cut(range, object);
            let head = format!(
                "Content-Type: multipart/byteranges; boundary=x\r\nContent-Length: {}\r\n",
                body.len()
            );
            reply("206 Part", &head, body)
        },
        "Content-Range header not present",
    ),
    (
        "no total",
        |range, object| {
            let body = cut(range, object);
            let (first, end) = range.unwrap_or((0, object.len()));
            let head = format!(
                "Content-Range: bytes {first}-{}/*\r\nContent-Length: {}\r\n",
                end - 1,
                body.len()
            );
            reply("206 Part", &head, body)
        },
        "CONTENT_RANGE",
    ),
    (
        "all bytes with the wrong length",
        |range, object| {
            let body = cut(range, object);
            reply("200 OK", &format!("Content-Length: {}\r\n", body.len()), body)
        },
        "",
    ),
    (
        "no length",
        |range, object| {
            let body = cut(range, object);
            let (first, end) = range.unwrap_or((0, object.len()));
            let head = format!(
                "Content-Range: bytes {first}-{}/{}\r\nTransfer-Encoding: chunked\r\n",
                end - 1,
                object.len()
            );
            let chunk =
                [format!("{:x}\r\n", body.len()).as_bytes(), body, b"\r\n0\r\n\r\n"].concat();
            reply("206 Part", &head, &chunk)
        },
        "Content-Length",
    ),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replies_that_lie_are_errors_and_not_tried_again() {
    let liar = Liar::start(large());
    let timeout = Duration::from_secs(20);
    let expected = liar.rows(timeout).await.unwrap();
    let requests = liar.requests.load(Ordering::Relaxed);
    assert!(requests > 4 && expected.len() == 400, "{requests}");
    for (what, lie, message) in LIES {
        for first in [1, 2, 3, requests] {
            for once in [false, true] {
                liar.lie(first, once, lie);
                let how = format!("{what}, request {first}, once: {once}");
                match liar.rows(timeout).await {
                    Ok(rows) => assert!(rows == expected, "{how}: other rows"),
                    Err(error) => {
                        assert!(error.contains("large.tet"), "{how}: {error}");
                        assert!(error.contains(message), "{how}: {error}");
                        assert!(!error.contains(" tries"), "{how}: {error}");
                    }
                }
            }
        }
    }
}

/// A reply with a byte at a time stops like one without any, and the rest comes with another request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_that_trickles_is_asked_for_again() {
    let liar = Liar::start(large());
    let expected = liar.rows(Duration::from_secs(20)).await.unwrap();
    let usual = liar.requests.load(Ordering::Relaxed);
    let trickle = |first: usize, once: bool| -> Arc<Answer> {
        Arc::new(move |number, range, object| {
            let bytes = honest(range, object);
            if number != first && (once || number < first) {
                return vec![now(bytes)];
            }
            // The head and a few bytes at once, then 50 bytes a second.
            let (begin, rest) = bytes.split_at(500.min(bytes.len()));
            let pieces = rest.iter().map(|byte| (Duration::from_millis(20), vec![*byte]));
            std::iter::once(now(begin.to_vec())).chain(pieces).collect()
        })
    };
    for first in [1, 2, 4] {
        liar.answer(trickle(first, true));
        assert_eq!(liar.rows(Duration::from_secs(4)).await.as_ref(), Ok(&expected), "{first}");
        assert!(liar.requests.load(Ordering::Relaxed) > usual, "{first}: no other request");
    }
    liar.answer(trickle(2, false));
    let error = liar.rows(Duration::from_millis(800)).await.unwrap_err();
    assert!(error.contains("the store sent only ") && error.contains(" bytes in 0.8 s"), "{error}");
}

/// Replies to the readers of Parquet and CSV: the right bytes, or an error.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_readers_get_no_lies() {
    let object = large();
    let liar = Liar::start(object.clone());
    let path = Path::from("large.tet");
    for (what, lie, _) in LIES {
        for (first, once) in [(1, true), (1, false), (2, false), (4, true), (4, false)] {
            let (store, _) = liar.checked();
            // The request for the length has no body, and does not lie.
            liar.answer(Arc::new(move |number, range, object| {
                let lies = range.is_some() && (number == first || (number > first && !once));
                vec![now(if lies { lie(range, object) } else { honest(range, object) })]
            }));
            let how = format!("{what}, request {first}, once: {once}");
            if let Ok(bytes) = store.get_range(&path, 100_000..200_000).await {
                assert_eq!(bytes[..], object[100_000..200_000], "{how}");
            }
            if let Ok(part) = store.get_opts(&path, suffix(5000)).await
                && let Ok(bytes) = part.bytes().await
            {
                assert_eq!(bytes[..], object[object.len() - 5000..], "{how}");
            }
            if let Ok(whole) = store.get(&path).await
                && let Ok(bytes) = whole.bytes().await
            {
                assert_eq!(bytes[..], object[..], "{how}");
            }
        }
    }
}

fn suffix(len: u64) -> GetOptions {
    GetOptions::new().with_range(Some(GetRange::Suffix(len)))
}

/// Connections that break are continued, and all is counted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_readers_share_tries_limits_and_counts() {
    let object = large();
    let liar = Liar::start(object.clone());
    let path = Path::from("large.tet");
    for at in 2..8 {
        let (store, remote) = liar.checked();
        liar.answer(Arc::new(move |number, range, object| match number {
            it if it == at => {
                let whole = honest(range, object);
                vec![now(whole[..whole.len() / 2].to_vec()), now(vec![])]
            }
            _ => vec![now(honest(range, object))],
        }));
        let got = store.get(&path).await.unwrap();
        let length = object.len() as u64;
        assert_eq!((got.meta.size, got.range.clone()), (length, 0..length));
        assert_eq!(got.bytes().await.unwrap()[..], object[..], "{at}");
        let counts = remote.counts();
        let parts = length.div_ceil(100_000);
        assert_eq!((counts.requests, counts.retries), (parts + 1, 1), "{at}");
        assert_eq!(counts.bytes_fetched, length, "{at}");
        assert_eq!(store.head(&path).await.unwrap().size, length);
    }
    liar.answer(Arc::new(|_, _, _| vec![now(reply("404 No", "Content-Length: 0\r\n", b""))]));
    let (store, _) = liar.checked();
    for absent in [store.get_range(&path, 0..9).await.err(), store.get(&path).await.err()] {
        let is_absent = matches!(absent, Some(object_store::Error::NotFound { .. }));
        assert!(is_absent, "{absent:?}");
    }
}

/// A range of any length takes memory only for a few parts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_readers_get_long_ranges_in_parts() {
    let object = large();
    let liar = Liar::start(object.clone());
    let path = Path::from("large.tet");
    let end = object.len() as u64;
    for (range, requests) in [(0..100_000, 1), (7..100_008, 2), (end - 250_000..end + 9, 3)] {
        let asked = Arc::new(Mutex::new(vec![]));
        let longest = Arc::clone(&asked);
        liar.answer(Arc::new(move |_, range, object| {
            longest.lock().unwrap().extend(range.map(|(first, end)| end - first));
            vec![now(honest(range, object))]
        }));
        let (store, remote) = liar.checked();
        let bytes = store.get_range(&path, range.clone()).await.unwrap();
        let expected = range.start as usize..object.len().min(range.end as usize);
        assert_eq!(bytes[..], object[expected], "{range:?}");
        let asked = asked.lock().unwrap();
        assert!(asked.len() == requests && asked.iter().all(|it| *it <= 100_000), "{asked:?}");
        assert_eq!(remote.counts().requests, requests as u64);
    }
}

/// Shows why gridfusion repeats requests itself: a store that does so takes any bytes as the rest of a reply that broke.
/// If the second half of this test fails, stores compare them now.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rest_of_a_broken_reply_is_compared_with_what_was_asked_for() {
    let object = large();
    let liar = Liar::start(object.clone());
    let timeout = Duration::from_secs(20);
    let expected = liar.rows(timeout).await.unwrap();
    // The reply breaks after half of its body. The next one has the first bytes of the object instead of the rest.
    let breaks = |at: usize| -> Arc<Answer> {
        Arc::new(move |number, range, object| match number {
            it if it == at => {
                let whole = honest(range, object);
                let body = cut(range, object).len();
                vec![now(whole[..whole.len() - body / 2].to_vec()), now(vec![])]
            }
            it if it == at + 1 => {
                let first = range.map(|(first, end)| (0, end - first));
                vec![now(honest(first, object))]
            }
            _ => vec![now(honest(range, object))],
        })
    };
    let mut refused = 0;
    for at in 1..6 {
        liar.answer(breaks(at));
        match liar.rows(timeout).await {
            Ok(rows) => assert!(rows == expected, "request {at}: other rows"),
            Err(error) => {
                assert!(error.contains("Requested "), "request {at}: {error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 0);

    let range = 100_000..200_000;
    liar.answer(breaks(1));
    let (checked, _) = liar.checked();
    let error = checked.get_range(&Path::from("large.tet"), range.clone()).await.unwrap_err();
    assert!(error.to_string().contains("Requested "), "{error}");

    liar.answer(breaks(1));
    let store = liar.store(RetryConfig::default());
    let got = store.get_range(&Path::from("large.tet"), range).await.unwrap();
    assert_eq!(got[..50_000], object[100_000..150_000]);
    assert_eq!(got[50_000..], object[..50_000]);
}
