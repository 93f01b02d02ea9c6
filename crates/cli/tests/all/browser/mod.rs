//! A headless Chromium, driven over the pipes of its DevTools protocol: JSON messages, each followed by a zero byte.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

/// Maximum time to wait for an answer, on any machine.
const LONG: Duration = Duration::from_secs(120);

/// The path of Chromium, if it is installed. `FENCEWRIGHT_CHROMIUM` overrides it.
pub fn installed() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("FENCEWRIGHT_CHROMIUM") {
        return Some(path.into());
    }
    let paths = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    std::env::split_paths(&paths)
        .flat_map(|path| names.map(|name| path.join(name)))
        .find(|path| path.is_file())
}

pub struct Browser {
    process: Child,
    to: File,
    from: Receiver<Value>,
    next: u64,
    session: Option<String>,
    /// The events received since the last page was opened.
    pub events: Vec<Value>,
    /// The directory of the browser's profile, which is removed when the browser is dropped.
    _directory: TempDir,
}

impl Browser {
    pub fn start(program: &Path) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (input, output) = (directory.path().join("to"), directory.path().join("from"));
        let made = Command::new("mkfifo").args([&input, &output]).status();
        assert!(made.expect("mkfifo can be run").success());
        // Chromium reads from descriptor 3 and writes to 4. Opening a pipe waits for the other end, so both processes open the pipes in the same
        // order.
        let script = "exec \"$0\" --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
                      --disable-background-networking --disable-component-update --disable-sync --disable-dev-shm-usage \
                      --user-data-dir=\"$1/profile\" --remote-debugging-pipe 3<\"$1/to\" 4>\"$1/from\"";
        let process = Command::new("sh")
            .args(["-c", script])
            .args([program, directory.path()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell starts");
        let to = OpenOptions::new().write(true).open(&input).expect("the pipe to it");
        let from = BufReader::new(File::open(&output).expect("the pipe from it"));
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            for message in from.split(0) {
                let Ok(message) = message else { return };
                let message = serde_json::from_slice(&message).expect("messages are JSON");
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let mut browser = Browser {
            process,
            to,
            from: receiver,
            next: 0,
            session: None,
            events: Vec::new(),
            _directory: directory,
        };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attached =
            browser.call("Target.attachToTarget", json!({"targetId": target["targetId"], "flatten": true}));
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.next += 1;
        let mut message = json!({"id": self.next, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).expect("it listens");
        loop {
            let answer = self.hear();
            if answer["id"] == self.next {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].clone();
            }
            self.events.push(answer);
        }
    }

    fn hear(&mut self) -> Value {
        self.from.recv_timeout(LONG).expect("the browser answers")
    }

    /// Opens a page in a window of this width, and waits until the page is loaded.
    pub fn open(&mut self, page: &Path, width: u32) {
        let size = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", size);
        self.events.clear();
        let path: String = page
            .to_string_lossy()
            .bytes()
            .map(|byte| match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
                    char::from(byte).to_string()
                }
                _ => format!("%{byte:02X}"),
            })
            .collect();
        self.call("Page.navigate", json!({"url": format!("file://{path}")}));
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let event = self.hear();
            self.events.push(event);
        }
    }

    /// The value of a JavaScript expression; if it is a promise, the value it resolves to.
    pub fn value(&mut self, expression: &str) -> Value {
        let asked = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.call("Runtime.evaluate", asked);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    pub fn wait_for(&mut self, expression: &str) {
        let start = std::time::Instant::now();
        while self.value(&format!("Boolean({expression})")) != true {
            assert!(start.elapsed() < LONG, "{expression}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn press(&mut self, key: &str) {
        for kind in ["rawKeyDown", "keyUp"] {
            let code = match key {
                "ArrowRight" => 39,
                "ArrowLeft" => 37,
                "ArrowDown" => 40,
                "ArrowUp" => 38,
                "Home" => 36,
                "End" => 35,
                _ => 0,
            };
            let event = json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code});
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Drags the mouse from one point to another.
    pub fn drag(&mut self, from: (f64, f64), to: (f64, f64)) {
        for (kind, (x, y)) in [("mousePressed", from), ("mouseMoved", to), ("mouseReleased", to)] {
            let event =
                json!({"type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1});
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    /// Problems reported by the page: errors, exceptions, dialogs, and console messages.
    pub fn complaints(&self) -> Vec<&Value> {
        let methods = [
            "Log.entryAdded",
            "Runtime.exceptionThrown",
            "Runtime.consoleAPICalled",
            "Page.javascriptDialogOpening",
        ];
        self.events.iter().filter(|event| methods.iter().any(|method| event["method"] == *method)).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Ends only the child process of this test, whose own child processes end with it.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
