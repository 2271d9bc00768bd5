//! What the browser may do with a replayed page.
//!
//! The page may run scripts and use its origin, which holds nothing but replayed pages: the application lives on another one.
//! What it may not do is to load anything from the live web. Two policies say so:
//!
//! * The one every answer has: nothing but this origin. It holds in any browser, with or without the worker.
//! * The one that the service worker puts in its place on the pages that it hands out. All requests of such a page go through the
//!   worker, but a browser applies the policy before it asks the worker; so for URLs of the live web to be mapped at all, they
//!   have to be allowed. What does not go through a worker (frames, objects, manifests, forms, sockets) stays at this origin.

/// What scripts, pictures and styles of a page may come from.
const OWN: &str = "'self' data: blob: 'unsafe-inline' 'unsafe-eval'";

/// What no page may do, and what no worker sees: frames of blobs are among it.
const ALWAYS: &str = "frame-src 'self'; object-src 'self'; manifest-src 'self'; worker-src 'self' blob:; \
                      form-action 'self'; base-uri 'self'; webrtc 'block'";

/// A page may not move the window that frames it.
const SANDBOX: &str = "sandbox allow-scripts allow-same-origin allow-forms allow-popups allow-modals allow-downloads \
                       allow-presentation allow-orientation-lock";

/// The policy of every answer; `application` is the origin that may frame it. A PDF has no scripts to hold, and browsers show none in a
/// sandbox.
pub(super) fn of_answer(application: Option<&str>, media_type: &str) -> String {
    let is_pdf = media_type.eq_ignore_ascii_case("application/pdf");
    let sandbox = if is_pdf { String::new() } else { format!("; {SANDBOX}") };
    format!("default-src {OWN}; {ALWAYS}; {}{sandbox}", ancestors(application))
}

/// The policy of a page that the worker hands out. On a secure origin a browser refuses insecure requests before it asks the worker; so all
/// are upgraded, which makes no difference to the archive.
pub(super) fn under_worker(application: Option<&str>, base: &str) -> String {
    let upgrade = if base.starts_with("https:") { "; upgrade-insecure-requests" } else { "" };
    format!("default-src http: https: {OWN}; {ALWAYS}; {}; {SANDBOX}{upgrade}", ancestors(application))
}

fn ancestors(application: Option<&str>) -> String {
    let is_origin = |origin: &&str| {
        origin.starts_with("http")
            && origin.bytes().all(|byte| byte.is_ascii_graphic() && !b";,'\"".contains(&byte))
    };
    match application.filter(is_origin) {
        Some(origin) => format!("frame-ancestors 'self' {origin}"),
        None => "frame-ancestors 'self'".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_adds_no_directive() {
        assert!(
            of_answer(Some("http://127.0.0.1:8070"), "")
                .contains("frame-ancestors 'self' http://127.0.0.1:8070;")
        );
        for wrong in
            ["http://a; script-src *", "http://a http://b", "*", "'unsafe-inline'", "http://a\r\nX: y"]
        {
            assert!(of_answer(Some(wrong), "").contains("frame-ancestors 'self';"), "{wrong}");
        }
        assert!(!of_answer(None, "application/pdf").contains("http:"));
        assert!(
            !of_answer(None, "Application/PDF").contains("sandbox")
                && of_answer(None, "x").contains("sandbox")
        );
        assert!(under_worker(None, "https://a").ends_with("upgrade-insecure-requests"));
        assert!(!under_worker(None, "http://a").contains("upgrade"));
    }
}
