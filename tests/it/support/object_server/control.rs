//! Requests that control a server in another process. They are not in the log, and nothing delays them.
//!
//! ```text
//!   GET /__control?latency_ms=30&bandwidth=50000000    0 stands for no latency, and for no limit
//!   GET /__log                                         the requests so far, a line each
//!   GET /__log?take=1                                  the same, and begins a new log
//! ```

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use super::Shared;
use super::answer::Reply;
use super::request::Request;

/// Returns the reply to a request that controls the server; `None` for all others.
pub(super) fn answer(request: &Request, shared: &Shared) -> Option<Reply> {
    let number = |name: &str| request.parameter(name).and_then(|value| value.parse::<u64>().ok());
    match request.path.as_str() {
        "__control" => {
            if let Some(milliseconds) = number("latency_ms") {
                shared.link.set_latency(Duration::from_millis(milliseconds));
            }
            if let Some(rate) = number("bandwidth") {
                shared.link.set_bandwidth(Some(rate));
            }
            Some(Reply::text(200, ""))
        }
        "__log" => Some(Reply::text(200, log(shared, number("take") == Some(1)))),
        _ => None,
    }
}

/// Returns a line of totals, and a line per request.
fn log(shared: &Shared, takes: bool) -> String {
    let most_in_flight = shared.log.most_in_flight();
    let requests = if takes { shared.log.take() } else { shared.log.requests() };
    if takes {
        shared.log.reset_most_in_flight();
    }
    let sent: u64 = requests.iter().map(|request| request.sent).sum();
    let mut text =
        format!("requests={} sent={sent} most_in_flight={most_in_flight}\n", requests.len());
    requests.iter().for_each(|request| text += &format!("{request}\n"));
    text
}

pub(super) fn send(mut stream: &TcpStream, reply: &Reply) -> Option<()> {
    let mut bytes = reply.head();
    bytes.extend(&reply.body);
    stream.write_all(&bytes).ok()
}
