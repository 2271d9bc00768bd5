//! A real browser, controlled through the WebDriver protocol as a user would operate it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::installed;

/// Timeout for the start of a browser and for the content of a page.
const PATIENCE: Duration = Duration::from_secs(180);

/// Headless Chromium, which ends when this is dropped.
pub(crate) struct Browser {
    driver: Child,
    address: String,
    session: String,
}

impl Browser {
    /// Starts a browser with or without scripts; `None` if it is not installed.
    pub(crate) fn start(has_scripts: bool) -> Option<Self> {
        Self::start_with(has_scripts, &[])
    }

    /// As [`Browser::start`], with more options of the browser; with any, it does not wait until a page is loaded.
    pub(crate) fn start_with(has_scripts: bool, more: &[String]) -> Option<Self> {
        let program = installed("chromedriver").and_then(|driver| Some((driver, installed("chromium")?)))?.0;
        let mut command = Command::new(program);
        // The driver takes a free port and names it.
        command.arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null());
        let mut driver = command.spawn().unwrap();
        let mut said = BufReader::new(driver.stdout.take().unwrap());
        let port = said.by_ref().lines().map_while(Result::ok).find_map(|line| {
            let (_, port) = line.split_once("was started successfully on port ")?;
            Some(port.trim_end_matches('.').to_owned())
        });
        // What it says later is read, so that it never waits for a reader.
        thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        let address = format!("127.0.0.1:{}", port.expect("the browser's driver starts"));
        let mut browser = Self { driver, address, session: String::new() };
        let scripts = if has_scripts { 1 } else { 2 };
        let own = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
        let arguments: Vec<_> = own.into_iter().chain(more.iter().map(String::as_str)).collect();
        let options = json!({
            "args": arguments,
            "prefs": { "profile.managed_default_content_settings.javascript": scripts },
        });
        let strategy = if more.is_empty() { "normal" } else { "none" };
        // On a busy machine, a script that looks at a whole page takes longer than the usual 30 seconds.
        let timeouts = json!({ "script": PATIENCE.as_millis() as u64 });
        let always =
            json!({ "goog:chromeOptions": options, "pageLoadStrategy": strategy, "timeouts": timeouts });
        let wanted = json!({ "capabilities": { "alwaysMatch": always } });
        browser.session = browser.ask("POST", "/session", &wanted)["sessionId"].as_str().unwrap().to_owned();
        Some(browser)
    }

    fn ask(&self, method: &str, path: &str, sent: &Value) -> Value {
        let body = if method == "GET" { String::new() } else { sent.to_string() };
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let (address, length) = (&self.address, body.len());
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all((head + &body).as_bytes()).unwrap();
        // The driver leaves the connection open.
        let mut stream = BufReader::new(stream);
        let (mut head, mut length) = (String::new(), 0);
        while stream.read_line(&mut head).unwrap() > 2 {
            let field = head.lines().last().unwrap_or_default().to_ascii_lowercase();
            if let Some(value) = field.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).unwrap();
        let body = String::from_utf8(body).unwrap();
        let value: Value = serde_json::from_str(&body).unwrap();
        assert!(head.contains(" 200 "), "{method} {path}: {body}");
        value["value"].clone()
    }

    fn command(&self, method: &str, path: &str, sent: &Value) -> Value {
        self.ask(method, &format!("/session/{}{path}", self.session), sent)
    }

    /// Navigates to an address.
    pub(crate) fn go(&self, url: &str) {
        self.command("POST", "/url", &json!({ "url": url }));
    }

    /// Presses keys one after the other.
    pub(crate) fn press(&self, keys: &str) {
        let keys = keys.chars().flat_map(|key| {
            [json!({ "type": "keyDown", "value": key }), json!({ "type": "keyUp", "value": key })]
        });
        let actions =
            json!({ "actions": [{ "type": "key", "id": "keys", "actions": keys.collect::<Vec<_>>() }] });
        self.command("POST", "/actions", &actions);
    }

    /// Clicks on the first element that a CSS selector finds.
    pub(crate) fn click(&self, selector: &str) {
        let found = self.command("POST", "/element", &json!({ "using": "css selector", "value": selector }));
        let id = found.as_object().unwrap().values().next().unwrap().as_str().unwrap().to_owned();
        self.command("POST", &format!("/element/{id}/click"), &json!({}));
    }

    /// Runs a function body with arguments and returns its result.
    pub(crate) fn run(&self, script: &str, arguments: &Value) -> Value {
        self.command("POST", "/execute/sync", &json!({ "script": script, "args": arguments }))
    }

    /// Runs a function body that calls its last argument when it is done; returns what it passes.
    pub(crate) fn run_later(&self, script: &str, arguments: &Value) -> Value {
        self.command("POST", "/execute/async", &json!({ "script": script, "args": arguments }))
    }

    /// Sends a command of the browser's own protocol.
    pub(crate) fn devtools(&self, name: &str, parameters: &Value) -> Value {
        self.command("POST", "/goog/cdp/execute", &json!({ "cmd": name, "params": parameters }))
    }

    /// Emulates a screen of this width and a theme, `light` or `dark`.
    pub(crate) fn show(&self, width: u32, theme: &str) {
        let screen = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        self.devtools("Emulation.setDeviceMetricsOverride", &screen);
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": theme }] });
        self.devtools("Emulation.setEmulatedMedia", &features);
    }

    /// Returns the current document.
    pub(crate) fn source(&self) -> String {
        self.command("GET", "/source", &Value::Null).as_str().unwrap().to_owned()
    }

    /// Waits until the document contains `text`.
    pub(crate) fn wait_for(&self, text: &str) {
        self.wait_until(&format!("{text} does not come"), || self.source().contains(text));
    }

    /// Waits until something holds; `missing` says what does not.
    pub(crate) fn wait_until(&self, missing: &str, holds: impl Fn() -> bool) {
        let begun = Instant::now();
        while !holds() {
            assert!(begun.elapsed() < PATIENCE, "{missing}: {}", self.source());
            thread::sleep(Duration::from_millis(30));
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() && !thread::panicking() {
            self.command("DELETE", "", &json!({}));
        }
        // It may have ended already.
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
