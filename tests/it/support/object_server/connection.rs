//! The thread of a connection.

use std::io::{BufReader, Read};
use std::net::{Shutdown, TcpStream};
use std::time::Instant;

use super::answer::{Reply, answer};
use super::faults::Fault;
use super::request::Request;
use super::sending::{send, send_part};
use super::{Shared, control, lock};

/// Answers the requests of a connection, one after the other, until it ends.
pub(super) fn serve(stream: &TcpStream, shared: &Shared) {
    // A head that waits for the body's acknowledgement would add 40 milliseconds.
    drop(stream.set_nodelay(true));
    let mut reader = BufReader::new(stream);
    while let Some(request) = Request::read(&mut reader) {
        if exchange(&mut reader, shared, &request).is_none() || request.is_last {
            break;
        }
    }
    // The thread that accepts connections has another handle, which would keep the connection open.
    drop(stream.shutdown(Shutdown::Both));
}

/// Answers a request. `None` if the connection ends.
fn exchange(reader: &mut BufReader<&TcpStream>, shared: &Shared, request: &Request) -> Option<()> {
    let stream = *reader.get_ref();
    if let Some(reply) = control::answer(request, shared) {
        return control::send(stream, &reply);
    }
    let mut due = Instant::now() + shared.link.latency();
    // Before the fault is known: a release in between also sends this reply.
    let released = shared.stop.releases();
    let fault = lock(&shared.faults).of(request);
    let exchange = shared.log.begin(request.clone());
    match &fault {
        Some(Fault::NeverAnswer) => return until_closed(reader),
        Some(Fault::Hold) => shared.stop.wait_for_release(released)?,
        Some(Fault::Delay(delay)) => due += *delay,
        _ => {}
    }
    shared.stop.wait_until(due)?;
    if let Some(Fault::ReplaceObjectBefore(path, bytes)) = &fault {
        shared.objects().put(path.clone(), bytes.clone());
    }
    let reply = match &fault {
        Some(Fault::CloseBeforeReply) => return None,
        Some(Fault::Status(status, body)) => Reply::text(*status, body.clone()),
        Some(Fault::ShortBody(len)) => {
            let mut reply = answer(request, shared);
            reply.shorten(*len);
            reply
        }
        Some(Fault::WrongBytes) => {
            let mut reply = answer(request, shared);
            reply.body = reply.body.iter().map(|byte| !byte).collect();
            reply
        }
        _ => answer(request, shared),
    };
    exchange.replies(reply.status);
    let head = reply.head();
    let body = if request.method == "HEAD" { &[] } else { &reply.body[..] };
    let part = |len: &usize| &body[..body.len().min(*len)];
    match &fault {
        Some(Fault::CloseAfter(len)) => {
            send_part(stream, shared, &head, part(len), &exchange)?;
            None
        }
        Some(Fault::Stall(len)) => {
            send_part(stream, shared, &head, part(len), &exchange)?;
            until_closed(reader)
        }
        _ => send(stream, shared, head, body, exchange),
    }
}

/// Waits until the client closes the connection, or the server is dropped, which closes it too.
fn until_closed(reader: &mut BufReader<&TcpStream>) -> Option<()> {
    let mut ignored = [0; 1024];
    while reader.read(&mut ignored).is_ok_and(|len| len > 0) {}
    None
}
