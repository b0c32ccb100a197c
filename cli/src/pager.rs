//! Shows results that are longer than the screen in a pager.
//!
//! The program holds output back until it fills the screen, and only then starts the pager. Shorter results
//! are printed without a pager.

use std::env;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use datafusion::error::Result;

/// The default pager: it cuts long lines, shows colours, and leaves its last page on the screen.
const LESS: &str = "less -SFRX";

/// The pager for results that are longer than the screen, if there is one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pager {
    /// A command for the shell.
    command: Option<String>,
    is_on: bool,
    /// Lines of the screen; `None` if standard output is no terminal, so that no output is held back.
    screen: Option<usize>,
    /// The file that takes the place of screen and pager.
    file: Option<Arc<File>>,
}

impl Pager {
    /// Returns the pager that `GRIDFUSION_PAGER` or else `PAGER` names; an empty value means no pager.
    /// Without both variables, it is `less`, if that is installed.
    pub(crate) fn from_environment() -> Self {
        let configured =
            ["GRIDFUSION_PAGER", "PAGER"].into_iter().find_map(|name| env::var(name).ok());
        let command = match configured {
            Some(command) => Some(command).filter(|command| !command.trim().is_empty()),
            None => is_installed("less").then(|| LESS.to_owned()),
        };
        Self { is_on: command.is_some(), command, screen: None, file: None }
    }

    /// Returns the command, if the pager is on.
    pub(crate) fn command(&self) -> Option<&str> {
        self.command.as_deref().filter(|_| self.is_on)
    }

    /// Turns the pager on or off. If no command is set, it is `less`.
    pub(crate) fn turn(&mut self, is_on: bool) {
        self.is_on = is_on;
        if is_on {
            self.command.get_or_insert_with(|| LESS.to_owned());
        }
    }

    /// Sets the number of lines of the terminal; `None` if results do not go to a terminal.
    pub(crate) fn set_screen(&mut self, lines: Option<usize>) {
        self.screen = lines;
    }

    /// Writes results to a file instead of the screen.
    pub(crate) fn write_to(&mut self, file: Arc<File>) {
        self.file = Some(file);
    }

    /// Runs `print` on the screen or the pager. Returns `None` if the user quit the pager before the end.
    ///
    /// # Errors
    /// The errors of `print` and of standard output.
    pub(crate) fn show<T>(
        &self,
        print: impl FnOnce(&mut dyn Write) -> Result<T>,
    ) -> Result<Option<T>> {
        let mut screen = self.open();
        let outcome = print(&mut screen);
        screen.close(outcome)
    }

    /// Returns a writer to the screen or the pager. The caller must [close](Screen::close) it.
    pub(crate) fn open(&self) -> Screen<'_> {
        let paged = self.command().zip(self.screen).filter(|_| self.file.is_none());
        Screen {
            paged,
            file: self.file.clone(),
            held: vec![],
            lines: 0,
            child: None,
            is_left: false,
        }
    }
}

/// A writer to standard output, a pager or a file, for one result.
pub(crate) struct Screen<'a> {
    /// The pager's command, and the number of lines that starts it. `None` without a pager, or if its start
    /// failed.
    paged: Option<(&'a str, usize)>,
    /// The file that takes the place of standard output.
    file: Option<Arc<File>>,
    /// Output that is not printed yet; always empty without a pager.
    held: Vec<u8>,
    /// Line feeds in `held`.
    lines: usize,
    child: Option<Child>,
    /// Whether the user quit the pager before all output was printed.
    is_left: bool,
}

impl Screen<'_> {
    /// Prints the held output, or waits until the user quits the pager. Returns the `outcome` of printing,
    /// or `None` if the user quit the pager early, which is no error.
    ///
    /// # Errors
    /// The error in `outcome`, those of standard output, and one if the pager cannot be run.
    pub(crate) fn close<T>(mut self, outcome: Result<T>) -> Result<Option<T>> {
        match self.child.take() {
            None => self.print_held()?,
            Some(mut child) => {
                drop(child.stdin.take());
                let status = child.wait()?;
                // 127 is the shell's exit code for an unknown command.
                if let Some((command, _)) = self.paged.filter(|_| status.code() == Some(127)) {
                    let message =
                        format!("cannot run the pager '{command}'; \\pager off turns it off");
                    return Err(io::Error::new(ErrorKind::NotFound, message).into());
                }
            }
        }
        if self.is_left { Ok(None) } else { outcome.map(Some) }
    }

    fn print_held(&mut self) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(&self.held)?;
        self.held.clear();
        out.flush()
    }

    /// Starts the pager once the screen is full.
    fn start_if_full(&mut self) -> io::Result<()> {
        let Some((command, _)) = self.paged.filter(|(_, most)| self.lines >= *most) else {
            return Ok(());
        };
        match Command::new("sh").args(["-c", command]).stdin(Stdio::piped()).spawn() {
            Ok(child) => {
                self.child = Some(child);
                let held = std::mem::take(&mut self.held);
                self.write_all(&held)
            }
            Err(error) => {
                log::warn!("cannot run the pager '{command}': {error}");
                self.paged = None;
                self.print_held()
            }
        }
    }
}

impl Write for Screen<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(pipe) = self.child.as_mut().and_then(|child| child.stdin.as_mut()) {
            let outcome = pipe.write(bytes);
            self.is_left |=
                outcome.as_ref().is_err_and(|error| error.kind() == ErrorKind::BrokenPipe);
            return outcome;
        }
        if let Some(file) = &mut self.file {
            return file.write(bytes);
        }
        if self.paged.is_none() {
            return io::stdout().write(bytes);
        }
        self.held.extend_from_slice(bytes);
        self.lines += bytes.iter().filter(|byte| **byte == b'\n').count();
        self.start_if_full()?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.child.as_mut().and_then(|child| child.stdin.as_mut()) {
            Some(pipe) => pipe.flush(),
            None if self.paged.is_none() => io::stdout().flush(),
            None => Ok(()),
        }
    }
}

fn is_installed(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;

    use super::*;

    fn pager(command: String, lines: usize) -> Pager {
        Pager { command: Some(command), is_on: true, screen: Some(lines), file: None }
    }

    #[test]
    fn only_what_is_longer_than_the_screen_is_paged() {
        let folder = tempfile::tempdir().unwrap();
        let seen = folder.path().join("seen");
        let pager = pager(format!("cat > '{}'", seen.display()), 3);
        let print = |lines: usize| {
            pager.show(|out| {
                (0..lines).try_for_each(|line| writeln!(out, "{line}"))?;
                Ok(lines)
            })
        };
        assert_eq!(print(2).unwrap(), Some(2));
        assert!(!seen.exists());
        assert_eq!(print(4).unwrap(), Some(4));
        assert_eq!(fs::read_to_string(&seen).unwrap(), "0\n1\n2\n3\n");
        fs::remove_file(&seen).unwrap();
        let mut off = pager.clone();
        off.turn(false);
        off.show(|out| Ok(out.write_all(b"\n\n\n\n")?)).unwrap();
        let mut elsewhere = pager.clone();
        elsewhere.set_screen(None);
        elsewhere.show(|out| Ok(out.write_all(b"\n\n\n\n")?)).unwrap();
        assert!(!seen.exists());
    }

    #[test]
    fn a_pager_may_be_left_early() {
        let pager = pager("head -c 1 > /dev/null".to_owned(), 1);
        let outcome = pager.show(|out| {
            loop {
                out.write_all(&[b'\n'; 1 << 16])?;
            }
            #[allow(unreachable_code)]
            Ok(())
        });
        assert!(outcome.unwrap().is_none());
    }

    #[test]
    fn other_errors_stay_errors() {
        let fails = |_: &mut dyn Write| -> Result<()> { Err(io::Error::other("odd").into()) };
        assert!(pager("cat > /dev/null".to_owned(), 1).show(fails).is_err());
        let missing = pager("surely-not-a-pager 2> /dev/null".to_owned(), 1);
        let error = missing.show(|out| Ok(out.write_all(b"\n\n")?)).unwrap_err().to_string();
        assert!(error.contains("cannot run the pager 'surely-not"), "{error}");
    }
}
