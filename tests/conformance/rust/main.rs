//! Speaks the line protocol of the conformance suite: see ../README.md.

mod idem;
mod leased;
mod protocol;
mod refund;
mod values;

use std::io::{stdin, stdout, BufRead, Write};

fn main() {
    // connections are served by a thread of their own while this one waits for a line
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let mut sessions = protocol::Sessions::new();
    for line in stdin().lock().lines() {
        let asked = serde_json::from_str(&line.unwrap()).unwrap();
        let answer = runtime.block_on(protocol::answer(&mut sessions, &asked));
        writeln!(stdout(), "{answer}").unwrap();
        stdout().flush().unwrap();
    }
}
