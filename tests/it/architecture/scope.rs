//! Parses the modules, items, `use` trees and paths of a source file.

use std::collections::BTreeSet;

use super::tokens::{Token, tokens};

/// The contents of a module, outside of `#[cfg(test)]`.
#[derive(Debug, Default)]
pub(super) struct Scope {
    /// `mod x;`
    pub(super) modules: Vec<String>,
    /// `mod x { … }`
    pub(super) inline: Vec<(String, Scope)>,
    /// Items that the module itself defines.
    pub(super) items: BTreeSet<String>,
    pub(super) uses: Vec<Use>,
    /// Paths of two or more names, in code.
    pub(super) paths: BTreeSet<Vec<String>>,
    /// Types and functions that code refers to by a single name.
    pub(super) mentions: BTreeSet<String>,
}

/// One leaf of a `use`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Use {
    pub(super) path: Vec<String>,
    /// The name that the import binds; `*` for a glob.
    pub(super) name: String,
    pub(super) is_public: bool,
}

impl Scope {
    pub(super) fn of(source: &str) -> Self {
        let tokens = tokens(source);
        Reader { tokens: &tokens, at: 0 }.scope()
    }

    /// Whether a path or mention in code begins with a name.
    pub(super) fn is_used(&self, name: &str) -> bool {
        self.mentions.contains(name) || self.paths.iter().any(|path| path[0] == name)
    }
}

struct Reader<'a> {
    tokens: &'a [Token],
    at: usize,
}

impl Reader<'_> {
    /// Reads to the brace that closes the module, or to the end.
    fn scope(&mut self) -> Scope {
        let mut scope = Scope::default();
        let mut depth = 0;
        let mut is_public = false;
        while let Some(token) = self.tokens.get(self.at) {
            let was_public = std::mem::take(&mut is_public);
            match token {
                Token::Sign('#') if self.sign_follows('[') || self.sign_follows('!') => {
                    self.attributes();
                    continue;
                }
                Token::Sign('{') => depth += 1,
                Token::Sign('}') if depth == 0 => break,
                Token::Sign('}') => depth -= 1,
                Token::Name(word) => match word.as_str() {
                    "pub" => {
                        self.visibility();
                        is_public = true;
                        continue;
                    }
                    "use" if !self.sign_follows('<') => {
                        self.at += 1;
                        self.use_tree(&[], was_public, &mut scope.uses);
                    }
                    "mod" if self.peek(1).is_some() => self.module(&mut scope),
                    _ => self.word(depth == 0, &mut scope),
                },
                _ => {}
            }
            self.at += 1;
        }
        scope
    }

    fn peek(&self, ahead: usize) -> Option<&str> {
        self.tokens.get(self.at + ahead).and_then(Token::name)
    }

    fn sign_follows(&self, sign: char) -> bool {
        self.tokens.get(self.at + 1).is_some_and(|token| token.is(sign))
    }

    /// Skips attributes, and the item after them if it is for tests only.
    fn attributes(&mut self) {
        let mut is_test = false;
        while self.tokens.get(self.at).is_some_and(|token| token.is('#')) {
            let begin = self.at;
            while self.tokens.get(self.at).is_some_and(|token| !token.is('[')) {
                self.at += 1;
            }
            self.group();
            let attribute = &self.tokens[begin..self.at];
            let has_word = |word| attribute.iter().any(|token| token.is_word(word));
            is_test |= has_word("cfg") && has_word("test") && !has_word("not");
        }
        const ITEMS: [&str; 15] = [
            "pub",
            "use",
            "mod",
            "fn",
            "struct",
            "enum",
            "union",
            "impl",
            "trait",
            "const",
            "static",
            "type",
            "async",
            "unsafe",
            "macro_rules",
        ];
        if is_test && self.peek(0).is_some_and(|word| ITEMS.contains(&word)) {
            self.item();
        }
    }

    /// Skips an item, up to its `;`, or up to its block if no `;` must follow.
    fn item(&mut self) {
        let needs_semicolon = ["use", "static", "type"];
        let mut may_end_with_block = true;
        while let Some(token) = self.tokens.get(self.at) {
            let is_constant = token.is_word("const") && self.peek(1) != Some("fn");
            if is_constant || token.name().is_some_and(|word| needs_semicolon.contains(&word)) {
                may_end_with_block = false;
            }
            match token {
                Token::Sign(';') => {
                    self.at += 1;
                    break;
                }
                Token::Sign('{') => {
                    self.group();
                    if may_end_with_block {
                        break;
                    }
                }
                Token::Sign('(' | '[') => self.group(),
                _ => self.at += 1,
            }
        }
    }

    /// Skips everything from an opening bracket to its closing bracket.
    fn group(&mut self) {
        let mut depth = 0;
        while let Some(token) = self.tokens.get(self.at) {
            self.at += 1;
            match token {
                Token::Sign('(' | '[' | '{') => depth += 1,
                Token::Sign(')' | ']' | '}') => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
    }

    /// Skips `pub` and its restriction: `pub(crate)`, `pub(in crate::a)`.
    fn visibility(&mut self) {
        let is_limited = matches!(self.peek(2), Some("crate" | "super" | "self" | "in"));
        let has_group = self.sign_follows('(') && is_limited;
        self.at += 1;
        if has_group {
            self.group();
        }
    }

    fn module(&mut self, scope: &mut Scope) {
        self.at += 1;
        let name = self.peek(0).unwrap_or_default().to_owned();
        if self.sign_follows('{') {
            self.at += 2;
            let inner = self.scope();
            scope.inline.push((name, inner));
        } else {
            scope.modules.push(name);
        }
    }

    /// Reads a path and its branches. The position is then at the `;`, `,` or `}` after them.
    fn use_tree(&mut self, prefix: &[String], is_public: bool, found: &mut Vec<Use>) {
        let mut path = prefix.to_vec();
        let mut name = None;
        while let Some(token) = self.tokens.get(self.at) {
            match token {
                Token::Name(word) if word == "as" => {
                    self.at += 1;
                    name = Some(self.peek(0).unwrap_or("_").to_owned());
                }
                // `a::{self, b}` is `a` and `a::b`.
                Token::Name(word) if word == "self" && !prefix.is_empty() => {}
                Token::Name(word) => path.push(word.clone()),
                Token::Sign('*') => name = Some("*".to_owned()),
                Token::Sign('{') => {
                    while !self.tokens.get(self.at).is_none_or(|token| token.is('}')) {
                        self.at += 1;
                        self.use_tree(&path, is_public, found);
                    }
                    self.at += 1;
                    return;
                }
                Token::Sign(_) => break,
                Token::Colons => {}
            }
            self.at += 1;
        }
        let is_leaf =
            name.is_some() || path.len() > prefix.len() || self.tokens[self.at - 1].is_word("self");
        if let Some(last) = path.last().filter(|_| is_leaf) {
            let name = name.unwrap_or_else(|| last.clone());
            found.push(Use { path, name, is_public });
        }
    }

    /// Reads a path, a mention, or the keyword before the name of an item. The position is then at the
    /// last token that was read.
    fn word(&mut self, at_top: bool, scope: &mut Scope) {
        let before = self.at.checked_sub(1).and_then(|at| self.tokens.get(at));
        let dots = self.tokens[..self.at].iter().rev().take_while(|token| token.is('.')).count();
        if dots == 1 || before == Some(&Token::Colons) {
            return; // a field or method, or the end of `<A>::b`
        }
        if let Some(item) = self.defined().filter(|_| at_top) {
            scope.items.insert(item);
        }
        let mut path = vec![self.peek(0).unwrap_or_default().to_owned()];
        while self.tokens.get(self.at + 1) == Some(&Token::Colons)
            && let Some(name) = self.peek(2)
        {
            path.push(name.to_owned());
            self.at += 2;
        }
        let is_type = path[0].starts_with(|c: char| c.is_uppercase());
        let is_defined = before.is_some_and(|token| token.is_word("fn"));
        if path.len() > 1 {
            scope.paths.insert(path);
        } else if !is_defined && (is_type || self.sign_follows('(')) {
            scope.mentions.extend(path);
        }
    }

    /// The name of the item that begins at the current token, if it is a keyword of items.
    fn defined(&self) -> Option<String> {
        let name = match self.peek(0)? {
            "const" if self.peek(1) == Some("fn") => return None,
            "struct" | "enum" | "union" | "trait" | "type" | "fn" | "const" => self.peek(1)?,
            "static" if self.peek(1) == Some("mut") => self.peek(2)?,
            "static" => self.peek(1)?,
            "macro_rules" => self.peek(2)?,
            _ => return None,
        };
        Some(name.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(source: &str) -> Vec<String> {
        let shown = |found: &Use| {
            let public = if found.is_public { "pub " } else { "" };
            format!("{public}{} as {}", found.path.join("::"), found.name)
        };
        Scope::of(source).uses.iter().map(shown).collect()
    }

    fn paths(source: &str) -> Vec<String> {
        Scope::of(source).paths.iter().map(|path| path.join("::")).collect()
    }

    #[test]
    fn every_kind_of_use_is_read() {
        for (source, expected) in [
            ("use crate::a::b;", &["crate::a::b as b"][..]),
            ("use super::super::x as y;", &["super::super::x as y"]),
            (
                "use super::{a::{B,\n C}, d, e::{self, f as g}};",
                &[
                    "super::a::B as B",
                    "super::a::C as C",
                    "super::d as d",
                    "super::e as e",
                    "super::e::f as g",
                ],
            ),
            ("pub use a::{b, c,};", &["pub a::b as b", "pub a::c as c"]),
            ("pub(crate) use self::a::b;", &["pub self::a::b as b"]),
            ("pub(in crate::a) use super::*;", &["pub super as *"]),
            ("use a::{self}; use b::C as _;", &["a as a", "b::C as _"]),
            ("use self::a::*; fn f() { use crate::b::C; }", &["self::a as *", "crate::b::C as C"]),
            ("fn f() -> impl A + use<'_, B> {}", &[]),
            ("#[cfg(test)] use a::b; #[cfg(unix)] use c::d;", &["c::d as d"]),
        ] {
            assert_eq!(uses(source), expected, "{source}");
        }
    }

    #[test]
    fn paths_are_read_in_code() {
        for (source, expected) in [
            (
                "fn f() -> super::A { super::foo::bar(crate::b::X) }",
                &["crate::b::X", "super::A", "super::foo::bar"][..],
            ),
            ("let a = Vec::<super::B>::new();", &["super::B"]),
            ("impl<T: super::A> crate::c::B for T {}", &["crate::c::B", "super::A"]),
            ("a.b::<c::D>(\"e::f\") // g::h", &["c::D"]),
            ("#[derive(a::B)] struct C;", &[]),
            ("#[cfg(test)] mod tests { fn f() { a::b() } } fn g() { c::d() }", &["c::d"]),
            (
                "#[cfg(test)]\n#[allow(x)]\nfn f() -> [u8; 2] { a::b() }\nconst X: u8 = c::D;",
                &["c::D"],
            ),
            ("#[cfg(test)] const A: B = B { c: d::e() }; static F: G = h::i();", &["h::i"]),
            ("#[cfg(not(test))] fn f() { a::b() }", &["a::b"]),
            ("$crate::a::b!()", &["crate::a::b"]),
            ("a.b.c::<D>(0..e::f, <G>::h::i)", &["e::f"]),
        ] {
            assert_eq!(paths(source), expected, "{source}");
        }
    }

    #[test]
    fn modules_and_items_differ() {
        let scope = Scope::of(
            "mod a; pub mod b { pub(super) struct C; mod d; } #[cfg(any(test, fuzzing))] mod e;
             pub const fn f() { struct G; } static mut H: u8 = 0; macro_rules! i { () => {} }
             impl J { fn k() {} } pub(crate) trait L { type M; } const N: u8 = O;",
        );
        assert_eq!(scope.modules, ["a"]);
        let [(name, inner)] = &scope.inline[..] else { panic!("{scope:?}") };
        assert_eq!((name.as_str(), &inner.modules[..]), ("b", &["d".to_owned()][..]));
        assert!(inner.items.contains("C"));
        assert!(scope.items.iter().eq(["H", "L", "N", "f", "i"]), "{:?}", scope.items);
        assert!(scope.mentions.contains("J") && scope.mentions.contains("O"));
        assert!(!scope.mentions.contains("k"));
    }
}
