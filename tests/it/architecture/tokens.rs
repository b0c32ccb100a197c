//! Splits Rust sources into the tokens that paths consist of. Comments, strings, characters and
//! lifetimes are skipped.

/// A part of a source file that may belong to a path or an item.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// A name or keyword.
    Name(String),
    /// `::`
    Colons,
    /// Any other sign.
    Sign(char),
}

impl Token {
    pub(super) fn is(&self, sign: char) -> bool {
        *self == Self::Sign(sign)
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        self.name() == Some(word)
    }

    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Self::Name(name) => Some(name),
            _ => None,
        }
    }
}

/// The tokens of a source file.
pub(super) fn tokens(source: &str) -> Vec<Token> {
    let mut rest = source;
    let mut found = Vec::new();
    while let Some(first) = rest.chars().next() {
        if let Some(after) = after_comment(rest).or_else(|| after_text(rest)) {
            rest = after;
        } else if let Some(raw) = rest.strip_prefix("r#").filter(|raw| raw.starts_with(in_name)) {
            rest = raw; // a raw identifier
        } else if in_name(first) {
            let (name, after) = rest.split_at(rest.find(|c| !in_name(c)).unwrap_or(rest.len()));
            if !first.is_ascii_digit() {
                found.push(Token::Name(name.to_owned()));
            }
            rest = after;
        } else if let Some(after) = rest.strip_prefix("::") {
            found.push(Token::Colons);
            rest = after;
        } else {
            if !first.is_whitespace() {
                found.push(Token::Sign(first));
            }
            rest = &rest[first.len_utf8()..];
        }
    }
    found
}

fn in_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Skips a comment at the beginning of the text. Comments in `/* */` may be nested.
fn after_comment(text: &str) -> Option<&str> {
    if text.starts_with("//") {
        return Some(text.split_once('\n').map_or("", |(_, after)| after));
    }
    let mut rest = text.strip_prefix("/*")?;
    let mut depth = 1;
    while depth > 0 {
        let at = rest.find(['*', '/'])?;
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix("/*") {
            (depth, rest) = (depth + 1, after);
        } else if let Some(after) = rest.strip_prefix("*/") {
            (depth, rest) = (depth - 1, after);
        } else {
            rest = &rest[1..];
        }
    }
    Some(rest)
}

/// Skips a string, character or lifetime at the beginning of the text.
fn after_text(text: &str) -> Option<&str> {
    let rest = ["br", "cr", "r", "b", "c", ""].iter().find_map(|prefix| {
        let rest = text.strip_prefix(prefix)?;
        let is_raw = prefix.ends_with('r') && rest.trim_start_matches('#').starts_with('"');
        let is_plain = !prefix.ends_with('r') && rest.starts_with('"');
        (is_raw || is_plain).then_some((rest, is_raw))
    });
    match rest {
        Some((rest, true)) => {
            let hashes = &rest[..rest.find('"')?];
            let end = format!("\"{hashes}");
            rest[hashes.len() + 1..].split_once(end.as_str()).map(|(_, after)| after)
        }
        Some((rest, false)) => after_quote(&rest[1..], '"'),
        None => after_character(text.strip_prefix('b').unwrap_or(text)),
    }
}

fn after_character(text: &str) -> Option<&str> {
    let rest = text.strip_prefix('\'')?;
    let mut characters = rest.chars();
    match (characters.next()?, characters.next()) {
        ('\\', _) | (_, Some('\'')) => after_quote(rest, '\''),
        _ => Some(rest.trim_start_matches(in_name)), // a lifetime
    }
}

/// Skips to after the first quote that is not escaped.
fn after_quote(text: &str, quote: char) -> Option<&str> {
    let mut characters = text.chars();
    loop {
        match characters.next()? {
            '\\' => _ = characters.next(),
            c if c == quote => return Some(characters.as_str()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(source: &str) -> Vec<String> {
        tokens(source).iter().filter_map(Token::name).map(str::to_owned).collect()
    }

    #[test]
    fn comments_and_texts_are_left_out() {
        for (source, expected) in [
            ("a // use b::c;\nd", "a d"),
            ("a /* b /* c */ d */ e", "a e"),
            (r#"a("use b::c; \" d") e"#, "a e"),
            (r##"a r#"b " c"# d br"e" f"##, "a d f"),
            ("a 'b' c '\\'' d b'e' f", "a c d f"),
            ("a<'b, 'static> c", "a c"),
            ("r#type r#\"b\"# c", "type c"),
            ("/// [`super::a`]\nb 1_000u64 0xff 1..n", "b n"),
        ] {
            assert_eq!(names(source).join(" "), expected, "{source}");
        }
        let colons = tokens("a::b: c").into_iter().filter(|token| *token == Token::Colons);
        assert_eq!(colons.count(), 1);
    }
}
