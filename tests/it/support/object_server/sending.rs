//! Sends replies, as fast as the link allows.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::Shared;
use super::log::Exchange;

/// The last bytes of a body, which are sent after the request has ended in the log. So a client that has the whole reply,
/// and sends its next request, never has two in flight.
const TAIL: usize = 4096;
/// The time by which a connection may catch up with its bandwidth after a pause.
const SLACK: Duration = Duration::from_millis(100);

/// Sends a head and a body. Ends the request in the log shortly before the last byte.
pub(super) fn send(
    stream: &TcpStream,
    shared: &Shared,
    mut head: Vec<u8>,
    body: &[u8],
    exchange: Exchange<'_>,
) -> Option<()> {
    let (bulk, tail) = body.split_at(body.len().saturating_sub(TAIL));
    let mut pace = Pace { shared, due: Instant::now() };
    if !bulk.is_empty() {
        write(stream, &std::mem::take(&mut head))?;
        bulk_of(stream, bulk, &mut pace, &exchange)?;
    }
    pace.wait_for(tail.len())?;
    exchange.sends(tail.len());
    drop(exchange);
    head.extend(tail);
    write(stream, &head)
}

/// Sends a head, and a part of a body that will never be complete.
pub(super) fn send_part(
    stream: &TcpStream,
    shared: &Shared,
    head: &[u8],
    part: &[u8],
    exchange: &Exchange<'_>,
) -> Option<()> {
    write(stream, head)?;
    bulk_of(stream, part, &mut Pace { shared, due: Instant::now() }, exchange)
}

/// Sends bytes in slices that the bandwidth allows; without a limit, they are one slice.
fn bulk_of(
    stream: &TcpStream,
    mut bytes: &[u8],
    pace: &mut Pace<'_>,
    exchange: &Exchange<'_>,
) -> Option<()> {
    while !bytes.is_empty() {
        let (slice, rest) = bytes.split_at(pace.slice_len().min(bytes.len()));
        pace.wait_for(slice.len())?;
        exchange.sends(slice.len());
        write(stream, slice)?;
        bytes = rest;
    }
    Some(())
}

fn write(mut stream: &TcpStream, bytes: &[u8]) -> Option<()> {
    stream.write_all(bytes).ok()
}

/// The schedule of a reply.
struct Pace<'a> {
    shared: &'a Shared,
    /// The time at which the client has all bytes so far.
    due: Instant,
}

impl Pace<'_> {
    /// Returns the bytes of 5 milliseconds, within limits.
    fn slice_len(&self) -> usize {
        let rate = self.shared.link.bandwidth();
        rate.map_or(usize::MAX, |rate| (rate / 200).clamp(4 << 10, 256 << 10) as usize)
    }

    /// Waits until the link has carried further bytes. Times follow from the bytes and not from earlier waits, so that they
    /// do not drift.
    fn wait_for(&mut self, bytes: usize) -> Option<()> {
        let Some(rate) = self.shared.link.bandwidth() else { return Some(()) };
        self.due = carried(self.due, Instant::now(), bytes, rate);
        self.shared.stop.wait_until(self.due)
    }
}

/// Returns the time at which a link of so many bytes per second has carried further bytes.
fn carried(due: Instant, now: Instant, bytes: usize, rate: u64) -> Instant {
    // A client that did not read for a while has lost the time.
    let begin = due.max(now.checked_sub(SLACK).unwrap_or(now));
    begin + Duration::from_secs_f64(bytes as f64 / rate as f64)
}

#[cfg(test)]
mod tests {
    #[test]
    fn bytes_take_the_time_of_the_link() {
        use super::*;

        let (begin, second) = (Instant::now(), Duration::from_secs(1));
        assert_eq!(carried(begin, begin, 2_000, 1_000), begin + 2 * second);
        // A late wait does not delay the bytes after it, but a pause does.
        assert_eq!(
            carried(begin + second, begin + second + SLACK, 500, 1_000),
            begin + second * 3 / 2
        );
        let pause = begin + 60 * second;
        assert_eq!(carried(begin, pause, 1_000, 1_000), pause - SLACK + second);
    }
}
