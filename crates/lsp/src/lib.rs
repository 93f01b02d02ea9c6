//! A language server: what an editor shows of programs, verdicts and fences.
//!
//! * `server`: the loop and the messages of the protocol; `requests`: what is asked about documents; `programs`: what happens to programs;
//!   `speak`: what the server says; `transport`: messages read and written;
//! * `client`, `settings`: what the client can do, and what a user has set;
//! * `documents`, `text`, `uri`, `places`: what is open, and where something is;
//! * `load`, `check`, `fixes`: what takes long, in threads of a `pool`; `session`: when they run, and what becomes of their `answers`;
//! * `diagnostics`, `lenses`, `actions`, `hover`, `names`, `symbols`, `tokens`: what is shown.
//!
//! The main loop never blocks: long computations run in worker threads, can be cancelled, and are dropped if the text has changed meanwhile. A panic
//! in a worker is reported and ends nothing else.

#![forbid(unsafe_code)]
// A `Uri` caches how it is taken apart; what it is compared and hashed by, its text, never changes.
#![allow(clippy::mutable_key_type)]

mod actions;
mod answers;
mod check;
mod client;
mod diagnostics;
mod documents;
mod fixes;
mod hover;
mod lenses;
mod load;
mod names;
mod places;
mod pool;
mod programs;
mod requests;
mod server;
mod session;
mod settings;
mod speak;
mod symbols;
mod text;
mod tokens;
mod transport;
mod uri;

use std::time::Duration;

pub use settings::Settings;

/// The command that checks a program; its argument is the URI.
pub const CHECK: &str = "fencewright.check";
/// The command that shows what a verdict stands on; its arguments are the URI, the property and the memory model.
pub const EXECUTION: &str = "fencewright.execution";

/// A client that does not read what was written for it has so much time left when it has taken leave.
const FAREWELL: Duration = Duration::from_millis(500);

/// The process that the server runs in.
#[derive(Clone, Copy)]
pub struct Environment {
    /// The number of bytes in use.
    pub memory: fn() -> u64,
}

/// Serves one client over the standard input and output. Whether it took leave as it should: `shutdown`, then `exit`.
pub fn serve(settings: Settings, environment: Environment) -> bool {
    let (to_client, outgoing) = crossbeam_channel::unbounded();
    let (received, incoming) = crossbeam_channel::unbounded();
    let replies = to_client.clone();
    let reader = move || transport::read_all(std::io::stdin().lock(), &received, &replies);
    let (done, written) = crossbeam_channel::bounded(1);
    let writer = move || {
        transport::write_all(std::io::stdout().lock(), &outgoing);
        let _ = done.send(());
    };
    let thread = |name: &str| std::thread::Builder::new().name(name.into());
    thread("reader").spawn(reader).expect("the system starts another thread");
    thread("writer").spawn(writer).expect("the system starts another thread");
    let orderly = server::Server::new(settings, environment, to_client).run(&incoming);
    // The server ends when the reader has, so both have dropped their senders: the writer writes what is left and ends too, unless the client does not read it.
    let _ = written.recv_timeout(FAREWELL);
    orderly
}
