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

/// A page must not navigate the window that frames it.
const SANDBOX: &str = "sandbox allow-scripts allow-same-origin allow-forms allow-popups allow-modals allow-downloads \
                       allow-presentation allow-orientation-lock";

/// The policy of every response; `application` is the origin that may frame it. PDFs are exempt from the sandbox: they
/// have no scripts to restrict, and browsers do not display PDFs in a sandbox.
pub(super) fn of_answer(application: &str, media_type: &str) -> String {
    let is_pdf = media_type.eq_ignore_ascii_case("application/pdf");
    let sandbox = if is_pdf { String::new() } else { format!("; {SANDBOX}") };
    format!("default-src {OWN}; {ALWAYS}; {}{sandbox}", ancestors(application))
}

/// The policy of a page that the worker serves. On a secure origin, browsers block insecure requests before they ask
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
        assert!(
            of_answer("http://127.0.0.1:8070", "").contains("frame-ancestors 'self' http://127.0.0.1:8070;")
        );
        for wrong in
            ["http://a; script-src *", "http://a http://b", "*", "'unsafe-inline'", "http://a\r\nX: y"]
        {
            assert!(of_answer(wrong, "").contains("frame-ancestors 'self';"), "{wrong}");
        }
        assert!(!of_answer("", "application/pdf").contains("http:"));
        assert!(
            !of_answer("", "Application/PDF").contains("sandbox") && of_answer("", "x").contains("sandbox")
        );
        assert!(under_worker("", "https://a").ends_with("upgrade-insecure-requests"));
        assert!(!under_worker("", "http://a").contains("upgrade"));
    }
}
