//! A progress line on the terminal: chunks done of all chunks, and bytes per second.
//!
//! A separate thread draws the line on standard error, after half a second. So workers need no code for
//! progress, and the line appears even if all threads of the session are busy.

use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use gridfusion::GridfusionConfig;
use gridfusion::io::RequestCounts;
use gridfusion::source::size_text;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// Work that ends sooner shows no line.
const DELAY: Duration = Duration::from_millis(500);
/// The time between two updates of the line.
const INTERVAL: Duration = Duration::from_millis(100);

/// The progress of a task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Done {
    /// Chunks that are done.
    pub(crate) chunks: u64,
    /// Number of all chunks; 0 if that is not known.
    pub(crate) of: u64,
    /// Bytes read for the chunks that are done.
    pub(crate) bytes: u64,
    /// Requests to object stores, while the chunks are not known yet.
    pub(crate) requests: u64,
    /// Files of a table or catalog that are open, and the number of all.
    pub(crate) files: (u64, u64),
}

/// The progress line. A drop clears it from the terminal before the drop returns.
#[derive(Debug)]
pub(crate) struct Progress {
    /// Dropping the sender ends the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Progress {
    /// Whether there is a terminal to draw on.
    pub(crate) fn is_possible() -> bool {
        io::stderr().is_terminal()
    }

    /// Starts a line that shows what `measure` returns, ten times per second. Without a terminal, nothing
    /// is shown.
    pub(crate) fn start(measure: impl Fn() -> Done + Send + 'static) -> Self {
        Self::on(ProgressDrawTarget::stderr(), DELAY, measure)
    }

    /// Starts a line that shows the files that a session opens from now on, and its requests to object stores with
    /// their bytes.
    pub(crate) fn from_opening(config: &GridfusionConfig) -> Self {
        let (remote, opening) = (config.remote.clone(), config.opening.clone());
        let (earlier, opened, begun) = (remote.counts(), opening.opened(), opening.begun());
        Self::start(move || {
            let RequestCounts { requests, bytes_fetched, .. } = remote.counts().since(&earlier);
            let files = (opening.opened() - opened, opening.begun() - begun);
            Done { requests, bytes: bytes_fetched, files, ..Done::default() }
        })
    }

    fn on(
        target: ProgressDrawTarget,
        delay: Duration,
        measure: impl Fn() -> Done + Send + 'static,
    ) -> Self {
        let (stop, stopped) = mpsc::channel();
        let draw = move || draw(target, delay, &stopped, measure);
        // If no thread can be started, there is no line. The task itself goes on.
        let thread = thread::Builder::new().name("progress".to_owned()).spawn(draw).ok();
        Self { stop: Some(stop), thread }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Draws the line until `stopped` is disconnected, then clears it. Nothing is drawn during `delay`.
fn draw(
    target: ProgressDrawTarget,
    delay: Duration,
    stopped: &Receiver<()>,
    measure: impl Fn() -> Done,
) {
    let start = Instant::now();
    let goes_on = |wait| stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout);
    if !goes_on(delay) {
        return;
    }
    let bar = ProgressBar::with_draw_target(None, target);
    loop {
        let done = measure();
        bar.set_style(style(done, message(done, start.elapsed())));
        // Both values are set in one update, so the line is drawn once.
        bar.update(|state| {
            state.set_len(done.of.max(1));
            state.set_pos(done.chunks.min(done.of));
        });
        if !goes_on(INTERVAL) {
            break;
        }
    }
    bar.finish_and_clear();
}

/// Returns the style of the line, with a bar only if the number of chunks is known.
fn style(done: Done, text: String) -> ProgressStyle {
    let template = match done.of {
        0 => "{text}",
        _ => "{bar:20} {percent:>3}% {text}",
    };
    // Both templates are constant and valid.
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("█▉▊▋▌▍▎▏ ")
        .with_key("text", move |_: &ProgressState, to: &mut dyn Write| _ = to.write_str(&text))
}

/// Returns the text after the bar, such as `8/20 chunks, 1.2 MiB, 600 KiB/s, 2 s`.
fn message(done: Done, elapsed: Duration) -> String {
    let mut parts = vec![];
    if done.of > 0 {
        parts.push(format!("{}/{} chunks", done.chunks.min(done.of), done.of));
    }
    if done.files.1 > 0 {
        parts.push(format!("opening {} of {} files", done.files.0, done.files.1));
    }
    if done.requests > 0 {
        parts.push(format!("{} requests", done.requests));
    }
    if done.bytes > 0 {
        let rate = done.bytes as f64 / elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
        parts.push(format!("{}, {}/s", size_text(done.bytes), size_text(rate as u64)));
    }
    parts.push(format!("{} s", elapsed.as_secs()));
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Condvar, Mutex};

    use indicatif::TermLike;

    use super::*;

    /// A terminal that remembers what was on it.
    #[derive(Debug, Clone, Default)]
    struct Screen(Arc<(Mutex<Lines>, Condvar)>);

    /// The present line, and those that were shown.
    type Lines = (String, Vec<String>);

    impl Screen {
        fn line(&self) -> String {
            self.0.0.lock().unwrap().0.clone()
        }

        fn shown(&self) -> Vec<String> {
            self.0.0.lock().unwrap().1.clone()
        }

        /// Waits until a line is shown; fails the test if it never is.
        fn wait_for(&self, is_it: impl Fn(&str) -> bool) {
            let (screen, is_drawn) = self.0.as_ref();
            let waits = |screen: &mut Lines| !screen.1.iter().any(|it| is_it(it));
            let hang = Duration::from_secs(120);
            let (screen, wait) =
                is_drawn.wait_timeout_while(screen.lock().unwrap(), hang, waits).unwrap();
            assert!(!wait.timed_out(), "{:?}", screen.1);
        }
    }

    impl TermLike for Screen {
        fn width(&self) -> u16 {
            120
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.0.lock().unwrap().0.push_str(text);
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            self.0.0.lock().unwrap().0.clear();
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            let (screen, is_drawn) = self.0.as_ref();
            let mut screen = screen.lock().unwrap();
            let line = screen.0.clone();
            screen.1.push(line);
            is_drawn.notify_all();
            Ok(())
        }
    }

    fn run(delay: Duration, done: Done, wait: impl Fn(&Screen)) -> Screen {
        let screen = Screen::default();
        let target = ProgressDrawTarget::term_like(Box::new(screen.clone()));
        let progress = Progress::on(target, delay, move || done);
        wait(&screen);
        drop(progress);
        screen
    }

    #[test]
    fn the_line_is_drawn_and_cleared() {
        let done = Done { chunks: 3, of: 4, bytes: 5 << 20, requests: 0, files: (0, 0) };
        let is_drawn = |line: &str| line.contains(" 75% 3/4 chunks, 5.0 MiB, ");
        let screen = run(Duration::ZERO, done, |screen| screen.wait_for(is_drawn));
        let drawn = screen.shown().into_iter().find(|line| is_drawn(line)).unwrap();
        assert!(drawn.contains("█") && drawn.trim_end().ends_with("B/s, 0 s"), "{drawn:?}");
        assert_eq!(screen.line().trim(), "");
    }

    #[test]
    fn what_is_fast_shows_nothing() {
        let screen = run(Duration::from_secs(3600), Done::default(), |_| {});
        assert_eq!(screen.shown(), Vec::<String>::new());
    }

    #[test]
    fn messages() {
        let second = Duration::from_secs(1);
        assert_eq!(message(Done::default(), second), "1 s");
        let done = Done { chunks: 7, of: 5, bytes: 4096, requests: 0, files: (0, 0) };
        assert_eq!(message(done, 2 * second), "5/5 chunks, 4.0 KiB, 2.0 KiB/s, 2 s");
        assert_eq!(message(Done { of: 0, ..done }, second), "4.0 KiB, 4.0 KiB/s, 1 s");
        let opening = Done { of: 0, requests: 12, ..done };
        assert_eq!(message(opening, second), "12 requests, 4.0 KiB, 4.0 KiB/s, 1 s");
        let opening = Done { files: (37, 100), bytes: 0, ..opening };
        assert_eq!(message(opening, second), "opening 37 of 100 files, 12 requests, 1 s");
        assert_eq!(message(Done { bytes: 0, ..done }, Duration::ZERO), "5/5 chunks, 0 s");
    }
}
