//! A browser with a page in three windows: as wide as a phone, a laptop and a projector. (They are tabs of
//! one window of the browser, all of them drawn.) It gets its commands through a pipe, as JSON (the DevTools
//! protocol). What is asked of a page in each window is in `browser.js`.

use super::{is_installed, json_of, print_left_out, text_of, time_limit};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

/// The names of browsers. `.ci/run` reads them, too.
const NAMES: &str = include_str!("browsers.txt");
const WINDOWS: [[u32; 2]; 3] = [[390, 844], [1366, 768], [1920, 1080]];
const FACTS: &str = include_str!("browser.js");
/// The rules of accessibility, if `.ci/run` could fetch them.
const AXE: &str = "target/axe/node_modules/axe-core/axe.min.js";

/// Returns the name of an installed browser.
pub fn installed() -> Option<&'static str> {
    NAMES.lines().find(|name| is_installed(name))
}

/// Returns the rules of axe-core; nothing without them.
fn rules() -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(AXE);
    fs::read_to_string(file).unwrap_or_else(|_| {
        print_left_out("the rules of axe-core; `npm install --prefix target/axe axe-core`");
        String::new()
    })
}

/// A running browser.
pub struct Browser {
    process: Child,
    messages: Receiver<Value>,
    calls: u32,
    /// The sessions of the windows.
    windows: Vec<String>,
    /// The errors on the consoles.
    errors: Vec<String>,
}

impl Browser {
    /// Starts a browser whose profile is in this folder.
    pub fn start(folder: &Path) -> Browser {
        let profile = folder.join("browser");
        let command = format!(
            "exec {} --headless=new --no-sandbox --disable-gpu --renderer-process-limit=1 --no-startup-window \
             --user-data-dir='{}' --remote-debugging-pipe 3<&0 4>&1 >&2 2>/dev/null",
            installed().unwrap(),
            profile.display()
        );
        let mut shell = Command::new("sh");
        shell.args(["-c", &command]).env("TZ", "Asia/Tokyo");
        shell.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = shell.spawn().unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap()).split(0);
        let (sender, messages) = channel();
        thread::spawn(move || {
            while let Some(Ok(message)) = output.next() {
                let _ = sender.send(json_of(&String::from_utf8_lossy(&message)));
            }
        });

        let (calls, windows, errors) = (0, Vec::new(), Vec::new());
        let mut browser = Browser {
            process,
            messages,
            calls,
            windows,
            errors,
        };
        for [width, height] in WINDOWS {
            let target = json!({"url": "about:blank"});
            let target = browser.call("", "Target.createTarget", target);
            let target = json!({"targetId": target["targetId"], "flatten": true});
            let session = browser.call("", "Target.attachToTarget", target);
            let session = text_of(&session["sessionId"]).to_string();
            let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 400});
            browser.call(&session, "Emulation.setDeviceMetricsOverride", size);
            let script = json!({"source": FACTS});
            browser.call(&session, "Page.addScriptToEvaluateOnNewDocument", script);
            // Only the last one has a parameter: each tab is drawn as if it were in front.
            let drawn = "Emulation.setFocusEmulationEnabled";
            for method in ["Page.enable", "Runtime.enable", "Log.enable", drawn] {
                browser.call(&session, method, json!({"enabled": true}));
            }
            browser.windows.push(session);
        }
        // These rules take a second, and most of them are about the content, which is the same in each window.
        let laptop = browser.windows[1].clone();
        let rules = json!({"source": rules()});
        browser.call(&laptop, "Page.addScriptToEvaluateOnNewDocument", rules);
        browser
    }

    /// Calls a method of the browser. Notes the errors on the consoles that it meets on the way.
    fn call(&mut self, session: &str, method: &str, params: Value) -> Value {
        self.calls += 1;
        let mut call = json!({"id": self.calls, "method": method, "params": params});
        if !session.is_empty() {
            call["sessionId"] = session.into();
        }
        write!(self.process.stdin.as_ref().unwrap(), "{call}\0").unwrap();
        loop {
            let message = self.messages.recv_timeout(time_limit());
            let mut message = message.unwrap_or_else(|error| panic!("{method}: {error}"));
            if message["id"] == self.calls {
                return message["result"].take();
            }
            let text = message["params"].to_string();
            let is_error = text.contains(r#""level":"error""#) || text.contains("exceptionDetails");
            // The page expects a manager that is busy or gone.
            let is_expected = ["status of 503", "net::ERR_"]
                .iter()
                .any(|why| text.contains(why));
            if is_error && !is_expected {
                self.errors.push(text);
            }
        }
    }

    /// Opens a page in all windows.
    pub fn open(&mut self, url: &str) {
        for session in self.windows.clone() {
            self.call(&session, "Page.navigate", json!({"url": "about:blank"}));
            self.call(&session, "Page.navigate", json!({"url": url}));
        }
    }

    /// Runs a script in a window. Returns its result as a text.
    fn run_in(&mut self, session: &str, script: &str) -> String {
        let params = json!({"expression": script, "awaitPromise": true, "returnByValue": true});
        let result = self.call(session, "Runtime.evaluate", params);
        assert!(result["exceptionDetails"].is_null(), "{script}: {result}");
        match &result["result"]["value"] {
            Value::Null => String::new(),
            Value::Array(lines) => lines.iter().map(text_of).collect::<Vec<_>>().join("\n"),
            Value::String(text) => text.clone(),
            value => value.to_string(),
        }
    }

    /// Runs a script in each window. Returns its result: once, if it is the same in all windows.
    pub fn run(&mut self, script: &str) -> String {
        let mut results = Vec::new();
        for session in self.windows.clone() {
            results.push(self.run_in(&session, script));
        }
        if results.iter().all(|result| *result == results[0]) {
            return results.remove(0);
        }
        let mut all = String::new();
        for ([width, _], result) in WINDOWS.iter().zip(results) {
            for line in result.lines() {
                all += &format!("{width}: {line}\n");
            }
        }
        all
    }

    /// Waits until a person sees a text in each window.
    pub fn wait_for(&mut self, text: &str) {
        let begun = Instant::now();
        for session in self.windows.clone() {
            loop {
                let seen = self.run_in(&session, "document.body?.innerText ?? ''");
                if seen.contains(text) {
                    break;
                }
                let errors = &self.errors;
                assert!(
                    begun.elapsed() < time_limit(),
                    "no {text}; a person sees {seen:?} {errors:?}"
                );
                thread::park_timeout(Duration::from_millis(200));
            }
        }
    }

    /// Returns what a person would find wrong, and the errors on the consoles.
    pub fn faults(&mut self) -> String {
        if let Ok(folder) = env::var("LEAGUE_TEST_PICTURES") {
            self.write_pictures(Path::new(&folder));
        }
        let mut faults = self.run("person.faults()");
        for error in self.errors.drain(..) {
            faults += &format!("\nconsole: {error}");
        }
        faults
    }

    /// Writes a picture of each window, in base64, as the browser has it.
    fn write_pictures(&mut self, folder: &Path) {
        for (session, [width, _]) in self.windows.clone().iter().zip(WINDOWS) {
            let picture = self.call(session, "Page.captureScreenshot", json!({}));
            let thread = thread::current();
            let path = thread.name().unwrap_or_default();
            let script = Path::new(path).file_stem().unwrap_or_default().display();
            let file = folder.join(format!("{script}-{}-{width}.png.base64", self.calls));
            fs::write(file, text_of(&picture["data"])).unwrap();
        }
    }

    /// Returns the number of sheets of paper that the page needs.
    pub fn count_sheets(&mut self) -> String {
        let session = self.windows[1].clone();
        let printed = self.call(&session, "Page.printToPDF", json!({}));
        let data = text_of(&printed["data"]);
        let script = format!("atob('{data}').match(/\\/Type \\/Page\\b/g).length");
        self.run_in(&session, &script)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = write!(
            self.process.stdin.as_ref().unwrap(),
            "{}\0",
            json!({"id": 0, "method": "Browser.close"})
        );
        let _ = self.process.wait();
    }
}
