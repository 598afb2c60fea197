//! How far a long command has come: a bar with rate and time left, on stderr, and only where that is a terminal.

use std::io::{self, IsTerminal};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar over a number of bytes. Cheap to clone; shared between threads. Gone from the screen when the last clone is.
#[derive(Clone, Debug)]
pub struct Progress(ProgressBar);

impl Progress {
    /// A bar for `total` bytes, with a word for what is done with them.
    pub fn bytes(what: &'static str, total: u64) -> Progress {
        if !io::stderr().is_terminal() {
            return Progress(ProgressBar::hidden());
        }
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(5));
        let template = "{msg} [{wide_bar}] {binary_bytes}/{binary_total_bytes}, {binary_bytes_per_sec}, {eta} left";
        let style = ProgressStyle::with_template(template).expect("the template is a constant");
        bar.set_style(style.progress_chars("=> "));
        bar.set_message(what);
        Progress(bar)
    }

    /// A bar that says what is being worked on, without a rate.
    pub fn steps(what: &'static str) -> Progress {
        if !io::stderr().is_terminal() {
            return Progress(ProgressBar::hidden());
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(5));
        let style = ProgressStyle::with_template(&format!("{what} {{msg}} ({{elapsed}})"));
        bar.set_style(style.expect("the template is made of a constant"));
        Progress(bar)
    }

    /// This is being worked on now.
    pub fn now(&self, what: &str) {
        self.0.set_message(what.to_owned());
        self.0.tick();
    }

    /// There are so many bytes in all.
    pub fn set_total(&self, bytes: u64) {
        self.0.set_length(bytes);
    }

    /// So many bytes more are done.
    pub fn add(&self, bytes: u64) {
        self.0.inc(bytes);
    }

    /// Takes the bar off the screen.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}
