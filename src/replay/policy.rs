//! Content security policies for replayed pages, and where they may connect to.
//!
//! A page may run scripts and use its origin, which hosts nothing but replayed pages: the application has another
//! origin. It must not load anything from the live web. This is enforced by:
//!
//! * The policy of every response, which allows only this origin, with or without the worker. What a page names is mapped
//!   before the browser sees it: by the server, and what scripts name by the replay's own script. Scripts run only in
//!   documents that begin with that one, and in files of scripts.
//! * `Connection-Allowlist`, where browsers have it (<https://wicg.github.io/connection-allowlists/>): it also covers
//!   what policies do not, such as WebRTC, hints to connect, and navigations.

/// Sources allowed for a page's scripts, images and styles.
const OWN: &str = "'self' data: blob: 'unsafe-inline' 'unsafe-eval'";

/// Restrictions for all pages on requests that bypass workers, among them frames of blobs.
const ALWAYS: &str = "frame-src 'self'; object-src 'self'; manifest-src 'self'; worker-src 'self' blob:; \
                      form-action 'self'; base-uri 'self'; webrtc 'block'";

/// A page must not navigate the window of the application that frames it.
const SANDBOX: &str = "sandbox allow-scripts allow-same-origin allow-forms allow-popups allow-modals allow-downloads \
                       allow-presentation allow-orientation-lock";

/// A document without scripts belongs to its origin nevertheless: otherwise its pictures would be requested without the
/// reader's cookie.
const UNSCRIPTED: &str =
    "sandbox allow-same-origin allow-popups allow-popups-to-escape-sandbox allow-downloads";

/// What a response is to a browser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResponseKind {
    /// A page that begins with the replay's script, or a file of scripts.
    Scripted,
    /// An XML document: a style sheet may transform it, but nothing in the result runs.
    Transformed,
    /// A PDF. Browsers show none in a sandbox.
    Pdf,
    /// A page of the replay itself: it has forms, and no scripts.
    Own,
    /// Everything else that can be shown.
    Plain,
}

/// The policy of every response; `application` is the origin that may frame it.
///
/// As browsers show no PDF in a page in a sandbox either, pages in a window of their own or in a frame of a replayed
/// page are in none, for the PDFs that they embed: there is no application to navigate.
pub(super) fn of_answer(application: &str, kind: ResponseKind, is_sandboxed: bool) -> String {
    let own = match kind {
        ResponseKind::Scripted if is_sandboxed => &format!("; {SANDBOX}"),
        ResponseKind::Scripted => "",
        ResponseKind::Transformed => &format!("; script-src 'self'; {UNSCRIPTED}"),
        ResponseKind::Pdf | ResponseKind::Own => "; script-src 'none'",
        ResponseKind::Plain => &format!("; script-src 'none'; {UNSCRIPTED}"),
    };
    format!("default-src {OWN}; {ALWAYS}; {}{own}", ancestors(application))
}

/// Where a response may connect and lead to; redirects are the archive's own, and lead nowhere else.
pub(super) fn connections(application: &str) -> String {
    let application = if is_origin(application) { format!(" \"{application}/*\"") } else { String::new() };
    format!("(response-origin{application});redirects=allow")
}

fn ancestors(application: &str) -> String {
    if is_origin(application) {
        format!("frame-ancestors 'self' {application}")
    } else {
        "frame-ancestors 'self'".to_owned()
    }
}

fn is_origin(text: &str) -> bool {
    text.starts_with("http")
        && text.bytes().all(|byte| byte.is_ascii_graphic() && !b";,'\"\\*{}()".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_adds_no_directive() {
        let of =
            |application: &str, is_sandboxed| of_answer(application, ResponseKind::Scripted, is_sandboxed);
        let policy = of("http://127.0.0.1:8070", true);
        assert!(policy.contains("frame-ancestors 'self' http://127.0.0.1:8070;"));
        for wrong in [
            "http://a; script-src *",
            "http://a http://b",
            "*",
            "'unsafe-inline'",
            "http://a\r\nX: y",
            "http://*",
        ] {
            assert!(of(wrong, true).contains("frame-ancestors 'self';"), "{wrong}");
            assert!(connections(wrong).starts_with("(response-origin);"), "{wrong}");
        }
        assert!(!of("", true).contains("http:"));
        assert!(!of("", false).contains("sandbox") && of("", true).contains("sandbox"));
    }

    #[test]
    fn only_pages_with_our_script_and_files_of_scripts_run_any() {
        for kind in [
            ResponseKind::Scripted,
            ResponseKind::Transformed,
            ResponseKind::Pdf,
            ResponseKind::Own,
            ResponseKind::Plain,
        ] {
            let policy = of_answer("", kind, true);
            let runs =
                policy.contains("allow-scripts") || !policy.contains("sandbox") && !policy.contains("'none'");
            assert_eq!(runs, kind == ResponseKind::Scripted, "{policy}");
        }
    }
}
