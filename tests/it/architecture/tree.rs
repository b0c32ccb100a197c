//! The modules of a crate, and the files that define the items of its paths.

use std::collections::BTreeMap;
use std::path::Path;

use super::scope::{Scope, Use};

/// The modules of a crate; the first is its root.
pub(super) struct Tree {
    pub(super) modules: Vec<Module>,
}

pub(super) struct Module {
    /// The path below the crate's source folder, with slashes.
    pub(super) file: String,
    parent: usize,
    children: BTreeMap<String, usize>,
    scope: Scope,
}

/// A path in one file that leads to another file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Tie {
    pub(super) from: String,
    pub(super) to: String,
    /// The path, as written.
    pub(super) name: String,
    pub(super) weight: Weight,
}

/// How a file depends on the file that a path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Weight {
    /// The file needs an item of the other.
    Needs,
    /// The file imports a module. It needs an item only if another path goes through the module.
    ImportsModule,
    /// The file has submodules, and re-exports the name without using it.
    PassesOn,
}

/// The end of a resolved path.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Target {
    Module(usize),
    /// An item that this module defines.
    Item(usize),
    /// Another crate.
    Outside,
}

/// The imports that were followed so far, so that none is followed twice.
type Followed = Vec<(usize, usize)>;

impl Tree {
    /// Reads the crate whose root is the file `root`. `read` returns the text of a file.
    pub(super) fn load(root: &str, read: &dyn Fn(&str) -> Option<String>) -> Self {
        let mut tree = Self { modules: Vec::new() };
        let text = read(root).unwrap_or_else(|| panic!("no file {root}"));
        tree.add(0, root, Scope::of(&text), read);
        tree
    }

    /// The crate in a source folder of the project; `None` if the folder has no crate root.
    pub(super) fn of_project(folder: &str) -> Option<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let read = |file: &str| std::fs::read_to_string(folder.join(file)).ok();
        let root = ["lib.rs", "main.rs"].into_iter().find(|root| folder.join(root).is_file())?;
        Some(Self::load(root, &read))
    }

    fn add(
        &mut self,
        parent: usize,
        file: &str,
        mut scope: Scope,
        read: &dyn Fn(&str) -> Option<String>,
    ) -> usize {
        let number = self.modules.len();
        let inline = std::mem::take(&mut scope.inline);
        let declared = scope.modules.clone();
        let (file, children) = (file.to_owned(), BTreeMap::new());
        let below = folder_of(&file);
        self.modules.push(Module { file: file.clone(), parent, children, scope });
        for name in declared {
            let choices = [format!("{below}{name}.rs"), format!("{below}{name}/mod.rs")];
            let found = choices.iter().find_map(|choice| Some((choice, read(choice)?)));
            let (path, text) = found.unwrap_or_else(|| panic!("{file}: no file of module {name}"));
            let child = self.add(number, path, Scope::of(&text), read);
            self.modules[number].children.insert(name, child);
        }
        for (name, scope) in inline {
            assert!(scope.modules.is_empty(), "{file}: `mod …;` in the inline module {name}");
            let child = self.add(number, &file, scope, read);
            self.modules[number].children.insert(name, child);
        }
        number
    }

    /// Lists all dependencies between files.
    pub(super) fn ties(&self) -> Vec<Tie> {
        let mut ties: Vec<Tie> = (0..self.modules.len()).flat_map(|at| self.ties_of(at)).collect();
        ties.sort();
        ties.dedup();
        ties
    }

    fn ties_of(&self, at: usize) -> Vec<Tie> {
        let Module { file, children, scope, .. } = &self.modules[at];
        let is_hub = !children.is_empty();
        let tie = |path: &[String], target, of_item, of_module| {
            let (to, weight) = match target {
                Target::Item(to) => (to, of_item),
                Target::Module(to) => (to, of_module),
                Target::Outside => return None,
            };
            let (from, to) = (file.clone(), self.modules[to].file.clone());
            (from != to).then(|| Tie { from, to, name: path.join("::"), weight })
        };
        let imports = scope.uses.iter().enumerate().filter_map(|(number, found)| {
            let passes = is_hub && found.is_public && !scope.is_used(&found.name);
            let weight = if passes { Weight::PassesOn } else { Weight::Needs };
            let of_module = if found.name == "*" { weight } else { Weight::ImportsModule };
            let target = self.resolve(at, &found.path, &mut vec![(at, number)]);
            tie(&found.path, target, weight, of_module)
        });
        let is_news = |path: &&Vec<String>| {
            let first = self.lookup(at, &path[0], false, &mut vec![]);
            !matches!(first, Some(Target::Item(_))) // its import counts already
        };
        let paths = scope
            .paths
            .iter()
            .filter(is_news)
            .map(|path| (path, self.resolve(at, path, &mut vec![])))
            .filter_map(|(path, to)| tie(path, to, Weight::Needs, Weight::ImportsModule));
        imports.chain(paths).collect()
    }

    /// The files with paths into other crates, and the first names of these paths.
    pub(super) fn outside(&self) -> Vec<(&str, &str)> {
        let mut found = Vec::new();
        for (at, module) in self.modules.iter().enumerate() {
            let imports = module.scope.uses.iter().enumerate();
            let imports = imports.map(|(number, found)| (&found.path, vec![(at, number)]));
            let paths = module.scope.paths.iter().map(|path| (path, vec![]));
            for (path, mut followed) in imports.chain(paths) {
                if self.resolve(at, path, &mut followed) == Target::Outside {
                    found.push((module.file.as_str(), path[0].as_str()));
                }
            }
        }
        found
    }

    /// Resolves a path that is written in the module `at`.
    fn resolve(&self, at: usize, path: &[String], followed: &mut Followed) -> Target {
        let Some((first, rest)) = path.split_first() else { return Target::Module(at) };
        match first.as_str() {
            "crate" => self.walk(0, rest, followed),
            "self" => self.walk(at, rest, followed),
            "super" => {
                let supers = path.iter().take_while(|name| *name == "super").count();
                let above = (0..supers).fold(at, |at, _| self.modules[at].parent);
                self.walk(above, &path[supers..], followed)
            }
            name => match self.lookup(at, name, rest.is_empty(), followed) {
                Some(Target::Module(module)) => self.walk(module, rest, followed),
                Some(target) => target,
                None => Target::Outside,
            },
        }
    }

    /// Resolves a path whose first name belongs to the module `at`.
    fn walk(&self, at: usize, path: &[String], followed: &mut Followed) -> Target {
        let Some((name, rest)) = path.split_first() else { return Target::Module(at) };
        match self.lookup(at, name, rest.is_empty(), followed) {
            Some(Target::Module(module)) => self.walk(module, rest, followed),
            Some(target) => target,
            None => Target::Item(at), // perhaps made by a macro
        }
    }

    /// Resolves a name in a module. If a module and an item share the name, the last name of a path means
    /// the item.
    fn lookup(
        &self,
        at: usize,
        name: &str,
        is_last: bool,
        followed: &mut Followed,
    ) -> Option<Target> {
        let module = &self.modules[at];
        let item = module.scope.items.contains(name).then_some(Target::Item(at));
        let child = module.children.get(name).map(|child| Target::Module(*child));
        let own = if is_last { item.or(child) } else { child.or(item) };
        own.or_else(|| self.imported(at, name, followed))
    }

    fn imported(&self, at: usize, name: &str, followed: &mut Followed) -> Option<Target> {
        let uses = || self.modules[at].scope.uses.iter().enumerate();
        let named = uses().filter(|(_, found)| found.name == name);
        let globs = uses().filter(|(_, found)| found.name == "*");
        for (number, Use { path, name: import, .. }) in named.chain(globs) {
            if followed.contains(&(at, number)) {
                continue;
            }
            followed.push((at, number));
            let target = self.resolve(at, path, followed);
            let found = match target {
                Target::Module(module) if import == "*" => {
                    self.lookup(module, name, true, followed)
                }
                _ if import == "*" => None,
                target => Some(target),
            };
            followed.pop();
            if found.is_some() {
                return found;
            }
        }
        None
    }
}

/// The folder of a file's submodules, with a slash at its end.
fn folder_of(file: &str) -> String {
    let path = Path::new(file);
    let folder = match path.file_name().and_then(|name| name.to_str()) {
        Some("mod.rs" | "lib.rs" | "main.rs") => path.parent().unwrap_or(path).to_path_buf(),
        _ => path.with_extension(""),
    };
    match folder.to_str().expect("UTF-8") {
        "" => String::new(),
        folder => format!("{folder}/"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: &[(&str, &str)] = &[
        (
            "lib.rs",
            "mod a; pub mod b; mod c; pub use b::inner::Thing; pub use arrow::array::Array;",
        ),
        (
            "a.rs",
            "use crate::Thing; use super::b::{Own, Thing as Other, deeper::{self, made}}; \
             mod d; fn f() { deeper::Deep::new(); d::g() }",
        ),
        (
            "a/d.rs",
            "use super::super::c::*; use super::Thing; pub fn g(_: crate::Array) { in_c(); \
             std::mem::drop(1) }",
        ),
        (
            "b/mod.rs",
            "mod inner; pub mod deeper; pub struct Own; pub use inner::Thing; \
             pub(crate) use deeper::Deep; fn f() -> Deep {}",
        ),
        (
            "b/inner.rs",
            "use self::nested::N; pub struct Thing; mod nested { pub struct N; \
             fn f() -> super::super::Own {} }",
        ),
        ("b/deeper.rs", "pub struct Deep; pub use crate::c::in_c as made;"),
        ("c.rs", "pub fn in_c() {} fn f() { crate::b::unknown(); crate::b::inner::Thing::new(); }"),
    ];

    fn tree() -> Tree {
        let read = |path: &str| {
            FILES.iter().find(|(name, _)| *name == path).map(|(_, text)| (*text).to_owned())
        };
        Tree::load("lib.rs", &read)
    }

    #[test]
    fn names_lead_to_the_files_that_define_them() {
        let found: Vec<String> = tree()
            .ties()
            .iter()
            .map(|tie| format!("{} {} {} {:?}", tie.from, tie.name, tie.to, tie.weight))
            .collect();
        let expected = [
            "a.rs super::b::Own b/mod.rs Needs",
            "a.rs deeper::Deep::new b/deeper.rs Needs",
            "a.rs super::b::deeper b/deeper.rs ImportsModule",
            "a.rs crate::Thing b/inner.rs Needs",
            "a.rs super::b::Thing b/inner.rs Needs",
            "a.rs super::b::deeper::made c.rs Needs",
            "a.rs d::g a/d.rs Needs",
            "a/d.rs super::Thing b/inner.rs Needs",
            "a/d.rs super::super::c c.rs Needs",
            "b/mod.rs deeper::Deep b/deeper.rs Needs",
            "b/mod.rs inner::Thing b/inner.rs PassesOn",
            "b/inner.rs super::super::Own b/mod.rs Needs",
            "b/deeper.rs crate::c::in_c c.rs Needs",
            "c.rs crate::b::unknown b/mod.rs Needs",
            "c.rs crate::b::inner::Thing::new b/inner.rs Needs",
            "lib.rs b::inner::Thing b/inner.rs PassesOn",
        ];
        let (mut found, mut expected) = (found, expected.map(str::to_owned).to_vec());
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
    }

    #[test]
    fn other_crates_are_outside() {
        let tree = tree();
        let mut found = tree.outside();
        found.sort_unstable();
        assert_eq!(found, [("a/d.rs", "crate"), ("a/d.rs", "std"), ("lib.rs", "arrow")]);
    }
}
