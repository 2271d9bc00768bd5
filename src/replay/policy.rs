//! Content security policies for replayed pages.
//!
//! A page may run scripts and use its origin, which hosts nothing but replayed pages: the application has another
//! origin. It must not load anything from the live web. Two policies enforce this:
//!
//! * The policy of every response allows only this origin. It works in any browser, with or without the worker.
//! * The service worker replaces it with another policy on pages that it serves. All requests of such a page go through
//!   the worker, but browsers apply the policy before they ask the worker, so URLs of the live web must be allowed in
//!   order to be mapped at all. Requests that bypass workers (frames, objects, manifests, forms, sockets) remain
//!   restricted to this origin.

/// Sources allowed for a page's scripts, images and styles.
const OWN: &str = "'self' data: blob: 'unsafe-inline' 'unsafe-eval'";

/// Restrictions for all pages on requests that bypass workers, among them frames of blobs.
const ALWAYS: &str = "frame-src 'self'; object-src 'self'; manifest-src 'self'; worker-src 'self' blob:; \
                      form-action 'self'; base-uri 'self'; webrtc 'block'";

/// A page must not navigate the window of the application that frames it.
const SANDBOX: &str = "sandbox allow-scripts allow-same-origin allow-forms allow-popups allow-modals allow-downloads \
                       allow-presentation allow-orientation-lock";

/// The policy of every response; `application` is the origin that may frame it.
///
/// Browsers show no PDF in a sandbox, nor in a page in one. So PDFs, which have no scripts to restrict, are exempt from
/// it, and so are pages in a window of their own or in a frame of a replayed page, for the PDFs that they embed: there is
/// no application to navigate.
pub(super) fn of_answer(application: &str, is_sandboxed: bool) -> String {
    let sandbox = if is_sandboxed { format!("; {SANDBOX}") } else { String::new() };
    format!("default-src {OWN}; {ALWAYS}; {}{sandbox}", ancestors(application))
}

/// The policy of a page that the worker serves; the worker takes the sandbox away where this would not be one. On a secure origin, browsers block insecure requests before they ask
/// the worker, so all requests are upgraded; the archive does not distinguish the schemes.
pub(super) fn under_worker(application: &str, base: &str) -> String {
    let upgrade = if base.starts_with("https:") { "; upgrade-insecure-requests" } else { "" };
    format!("default-src http: https: {OWN}; {ALWAYS}; {}; {SANDBOX}{upgrade}", ancestors(application))
}

fn ancestors(application: &str) -> String {
    let is_origin = application.starts_with("http")
        && application.bytes().all(|byte| byte.is_ascii_graphic() && !b";,'\"".contains(&byte));
    if is_origin {
        format!("frame-ancestors 'self' {application}")
    } else {
        "frame-ancestors 'self'".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_adds_no_directive() {
        let policy = of_answer("http://127.0.0.1:8070", true);
        assert!(policy.contains("frame-ancestors 'self' http://127.0.0.1:8070;"));
        for wrong in
            ["http://a; script-src *", "http://a http://b", "*", "'unsafe-inline'", "http://a\r\nX: y"]
        {
            assert!(of_answer(wrong, true).contains("frame-ancestors 'self';"), "{wrong}");
        }
        assert!(!of_answer("", true).contains("http:"));
        assert!(!of_answer("", false).contains("sandbox") && of_answer("", true).contains("sandbox"));
        assert!(under_worker("", "https://a").ends_with("upgrade-insecure-requests"));
        assert!(!under_worker("", "http://a").contains("upgrade"));
    }
}
