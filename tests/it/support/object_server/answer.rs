//! Replies to requests.

use bytes::Bytes;

use super::objects::Object;
use super::request::{Request, Span};
use super::{Behaviour, Shared, listing};

/// A reply.
#[derive(Debug, Clone, Default)]
pub(super) struct Reply {
    pub(super) status: u16,
    /// Further lines of the head.
    headers: Vec<(&'static str, String)>,
    /// The first byte of the body in its object, and the length of the object, for a part of an object.
    part: Option<(u64, u64)>,
    /// The body, also for `HEAD`, whose reply only has its length.
    pub(super) body: Bytes,
}

/// Returns the reply of a server without faults.
pub(super) fn answer(request: &Request, shared: &Shared) -> Reply {
    let is_head = request.method == "HEAD";
    let path = request.path.as_str();
    let redirected =
        path.strip_prefix("redirect/").filter(|_| shared.behaves(Behaviour::Redirects));
    if let Some(path) = redirected {
        return Reply::text(302, "").with("Location", format!("/{path}"));
    }
    if (is_head && shared.behaves(Behaviour::HeadNotAllowed))
        || !(is_head || request.method == "GET")
    {
        return Reply::text(405, "");
    }
    if let Some(listing) = &request.listing {
        let e_tag = |object: &Object| e_tag(object, shared);
        let bucket = path.trim_end_matches('/');
        let xml = listing::page(&shared.objects(), bucket, listing, e_tag);
        return Reply::text(200, xml).with("Content-Type", "application/xml".into());
    }
    let object = shared.objects().get(path);
    match object {
        Some(object) => of_object(request, shared, &object),
        None => Reply::text(404, "<Error><Code>NoSuchKey</Code></Error>"),
    }
}

/// Returns the entity tag that the server shows of an object.
fn e_tag(object: &Object, shared: &Shared) -> Option<String> {
    let is_weak = shared.behaves(Behaviour::WeakETags);
    (!shared.behaves(Behaviour::NoETag)).then(|| object.e_tag(is_weak))
}

fn of_object(request: &Request, shared: &Shared, object: &Object) -> Reply {
    let e_tag = e_tag(object, shared);
    let described = |mut reply: Reply| {
        reply.headers.extend(e_tag.clone().map(|e_tag| ("ETag", e_tag)));
        // object_store parses times as RFC 2822 has them.
        let modified = object.modified().format("%a, %d %b %Y %H:%M:%S GMT").to_string();
        reply.with("Last-Modified", modified)
    };
    let wanted = request.if_match.as_deref();
    let wanted = wanted.filter(|_| !shared.behaves(Behaviour::IgnoresIfMatch));
    if wanted.is_some_and(|tags| !matches_strongly(tags, e_tag.as_deref())) {
        return Reply::text(412, "");
    }
    let known = request.if_none_match.as_deref();
    if known.is_some_and(|tags| matches_weakly(tags, e_tag.as_deref())) {
        return described(Reply::text(304, ""));
    }
    let whole = |bytes: &Bytes| Reply { status: 200, body: bytes.clone(), ..Reply::default() };
    let asked = request.range.filter(|_| request.method == "GET");
    match asked.filter(|_| !shared.behaves(Behaviour::IgnoresRanges)) {
        None => described(whole(&object.bytes)),
        Some(range) => described(part(range, &object.bytes)),
    }
}

fn part(range: Span, bytes: &Bytes) -> Reply {
    let len = bytes.len() as u64;
    match range.of(len) {
        Some(range) => Reply {
            status: 206,
            part: Some((range.start as u64, len)),
            body: bytes.slice(range),
            ..Reply::default()
        },
        None => Reply::text(416, "").with("Content-Range", format!("bytes */{len}")),
    }
}

/// Whether `If-Match` holds. Weak tags match nothing.
fn matches_strongly(tags: &str, e_tag: Option<&str>) -> bool {
    let is_equal = |tag: &str| !tag.starts_with("W/") && Some(tag) == e_tag;
    tags == "*" || tags.split(',').any(|tag| is_equal(tag.trim()))
}

/// Whether one of the tags of `If-None-Match` is that of the object, weak or not.
fn matches_weakly(tags: &str, e_tag: Option<&str>) -> bool {
    let strong = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    tags == "*" || tags.split(',').any(|tag| Some(strong(tag)) == e_tag.map(strong))
}

impl Reply {
    /// Returns a reply with a text as its body.
    pub(super) fn text(status: u16, body: impl Into<Bytes>) -> Self {
        Self { status, body: body.into(), ..Self::default() }
    }

    fn with(mut self, name: &'static str, value: String) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Shortens the body. The head agrees with the shorter body.
    pub(super) fn shorten(&mut self, len: usize) {
        self.body.truncate(len);
    }

    /// Returns the bytes before the body.
    pub(super) fn head(&self) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 {} {}\r\n", self.status, reason(self.status));
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        let len = self.body.len() as u64;
        if let Some((first, total)) = self.part {
            let last = (first + len).saturating_sub(1);
            head += &format!("Content-Range: bytes {first}-{last}/{total}\r\n");
        }
        if self.status != 304 {
            head += &format!("Content-Length: {len}\r\n");
        }
        (head + "\r\n").into_bytes()
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        206 => "Partial Content",
        302 => "Found",
        304 => "Not Modified",
        400..500 => "Client Error",
        500.. => "Server Error",
        _ => "Status",
    }
}
