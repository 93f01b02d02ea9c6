//! Messages over a pair of streams: a header with the length, then JSON.
//!
//! Malformed input is answered by an error with the id `null`, as JSON-RPC requires, and reading continues. Only `exit`, the end of the stream or a
//! read error ends the connection.

use std::io::{self, BufRead, Read, Write};

use crossbeam_channel::{Receiver, Sender};
use lsp_server::{ErrorCode, Message};
use serde_json::{Value, json};

/// Maximum length of a message in bytes: enough for a file of 64 MiB in JSON.
const MOST_BYTES: u64 = 512 << 20;
/// Maximum length of a header line in bytes.
const LONGEST_LINE: u64 = 4 << 10;

/// A message to the client.
pub enum Outgoing {
    /// A message of the protocol.
    Message(Box<Message>),
    /// An error about malformed input, which cannot be attributed to a request.
    Misunderstood(ErrorCode, String),
}

/// A message from the client, malformed input, or the end of the stream.
#[derive(Debug)]
enum Incoming {
    Message(Box<Message>),
    Wrong(ErrorCode, String),
    End,
}

/// Reads messages until `exit`, the end of the stream or a read error, or until one of the receivers is dropped.
pub fn read_all(mut input: impl BufRead, messages: &Sender<Message>, replies: &Sender<Outgoing>) {
    loop {
        match read(&mut input) {
            Ok(Incoming::Message(message)) => {
                let is_exit = matches!(&*message, Message::Notification(n) if n.method == "exit");
                if messages.send(*message).is_err() || is_exit {
                    return;
                }
            }
            Ok(Incoming::Wrong(code, why)) => {
                if replies.send(Outgoing::Misunderstood(code, why)).is_err() {
                    return;
                }
            }
            Ok(Incoming::End) | Err(_) => return,
        }
    }
}

/// Writes messages until their sender is dropped or the stream is closed.
pub fn write_all(mut output: impl Write, messages: &Receiver<Outgoing>) {
    for message in messages {
        let written = match message {
            Outgoing::Message(message) => message.write(&mut output),
            Outgoing::Misunderstood(code, why) => {
                let error = json!({"code": code as i32, "message": why});
                write_value(&mut output, &json!({"jsonrpc": "2.0", "id": null, "error": error}))
            }
        };
        if written.is_err() {
            return;
        }
    }
}

fn write_value(output: &mut impl Write, value: &Value) -> io::Result<()> {
    let text = value.to_string();
    write!(output, "Content-Length: {}\r\n\r\n{text}", text.len())?;
    output.flush()
}

fn read(input: &mut impl BufRead) -> io::Result<Incoming> {
    let length = match read_header(input)? {
        Header::Length(length) => length,
        Header::Wrong(why) => return Ok(Incoming::Wrong(ErrorCode::ParseError, why)),
        Header::End => return Ok(Incoming::End),
    };
    if length > MOST_BYTES {
        let skipped = io::copy(&mut input.take(length), &mut io::sink())?;
        let why = format!("a message of {length} bytes is too long: at most {MOST_BYTES} are read");
        return Ok(if skipped < length {
            Incoming::End
        } else {
            Incoming::Wrong(ErrorCode::InvalidRequest, why)
        });
    }
    // Memory is allocated as bytes arrive, because the length in the header may be wrong.
    let mut body = Vec::new();
    if input.take(length).read_to_end(&mut body)? < length as usize {
        return Ok(Incoming::End);
    }
    Ok(understood(&body))
}

/// Parses a message from JSON.
fn understood(body: &[u8]) -> Incoming {
    let value: Value = match serde_json::from_slice(body) {
        Ok(value) => value,
        Err(error) => return Incoming::Wrong(ErrorCode::ParseError, format!("this is not JSON: {error}")),
    };
    match serde_json::from_value(value) {
        Ok(message) => Incoming::Message(Box::new(message)),
        Err(_) => {
            let why = "this is neither a request, nor a response, nor a notification";
            Incoming::Wrong(ErrorCode::InvalidRequest, why.into())
        }
    }
}

/// The result of reading a header.
enum Header {
    Length(u64),
    Wrong(String),
    End,
}

fn read_header(input: &mut impl BufRead) -> io::Result<Header> {
    let (mut length, mut seen) = (None, false);
    loop {
        let mut line = Vec::new();
        input.take(LONGEST_LINE).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(Header::End);
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end_matches(['\r', '\n']);
        if !text.is_empty() {
            seen = true;
            let value = text.split_once(':').filter(|(key, _)| key.eq_ignore_ascii_case("content-length"));
            length = value.and_then(|(_, value)| value.trim().parse().ok()).or(length);
            continue;
        }
        match length {
            Some(length) => return Ok(Header::Length(length)),
            None if seen => return Ok(Header::Wrong("a header without Content-Length".into())),
            // Empty lines between messages are ignored.
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(input: &[u8]) -> Vec<Incoming> {
        let mut input = input;
        let mut found = Vec::new();
        loop {
            match read(&mut input).expect("memory can be read") {
                Incoming::End => return found,
                other => found.push(other),
            }
        }
    }

    #[test]
    fn what_is_no_message_does_not_hide_the_next_one() {
        let good = r#"{"jsonrpc":"2.0","method":"exit"}"#;
        let framed = |text: &str| format!("Content-Length: {}\r\n\r\n{text}", text.len());
        for bad in [
            framed("{"),
            framed("[]"),
            framed("{\"id\":{}}"),
            framed(&"[".repeat(100_000)),
            framed("\u{0}"),
            "Content-Length: x\r\n\r\n".into(),
            "nothing at all\r\n\r\n".into(),
        ] {
            let input = format!("{bad}{}", framed(good));
            let found = all(input.as_bytes());
            assert!(
                matches!(&found[..], [Incoming::Wrong(..), Incoming::Message(_)]),
                "{bad:.50}: {found:?}"
            );
        }
        assert!(matches!(all(b"Content-Length: 10\r\n\r\n{")[..], []));
        assert!(matches!(all(b"Content-Length: 18446744073709551615\r\n\r\n{")[..], []));
    }
}
