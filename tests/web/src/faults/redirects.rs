//! Redirects that lead nowhere, everywhere, or where no crawler should go.

use super::{HTML, Listed, SMALL_PAGE, page, sent, whole};
use crate::script::Script;

pub(super) static LISTED: &[Listed] = &[
    Listed { path: "/redirect-self", what: "redirects to itself", script: |_| to(302, "/redirect-self") },
    Listed {
        path: "/redirect-loop-a",
        what: "redirects to -b, which redirects back",
        script: |_| to(301, "/redirect-loop-b"),
    },
    Listed {
        path: "/redirect-loop-b",
        what: "redirects to -a, which redirects back",
        script: |_| to(301, "/redirect-loop-a"),
    },
    Listed {
        path: "/redirect-endless/{n}",
        what: "redirects to the next number",
        script: |asked| to(302, &format!("/redirect-endless/{}", asked.number + 1)),
    },
    Listed {
        path: "/redirect-chain/{n}",
        what: "redirects to the number before, down to a page at 0",
        script: |asked| match asked.number.checked_sub(1) {
            Some(number) => to(302, &format!("/redirect-chain/{number}")),
            None => page(SMALL_PAGE),
        },
    },
    Listed {
        path: "/redirect-nowhere",
        what: "a redirect without Location",
        script: |_| sent(whole(302, HTML, b"")),
    },
    Listed { path: "/redirect-empty", what: "a redirect to an empty Location", script: |_| to(302, "") },
    Listed {
        path: "/redirect-bad",
        what: "a redirect to something that is no URL",
        script: |_| to(302, "http://[::bad"),
    },
    Listed {
        path: "/redirect-raw",
        what: "a redirect to a path with spaces and bytes that are not UTF-8",
        script: |_| {
            sent(
                b"HTTP/1.1 302 Found\r\nLocation: /a b/\xe9\xff?q=\xfc\r\nContent-Length: 0\r\n\r\n".to_vec(),
            )
        },
    },
    Listed {
        path: "/redirect-long",
        what: "a redirect to a URL of 100 kB",
        script: |_| to(302, &format!("/{}", "a".repeat(100_000))),
    },
    Listed {
        path: "/redirect-file",
        what: "a redirect to file:///etc/passwd",
        script: |_| to(302, "file:///etc/passwd"),
    },
    Listed {
        path: "/redirect-script",
        what: "a redirect to javascript:",
        script: |_| to(302, "javascript:alert(1)"),
    },
    Listed {
        path: "/redirect-data",
        what: "a redirect to data:",
        script: |_| to(302, "data:text/html,<p>text"),
    },
    Listed {
        path: "/redirect-loopback",
        what: "a redirect to 127.0.0.1:1",
        script: |_| to(302, "http://127.0.0.1:1/"),
    },
    Listed {
        path: "/redirect-loopback-number",
        what: "a redirect to 127.0.0.1 written as 2130706433",
        script: |_| to(302, "http://2130706433:1/"),
    },
    Listed {
        path: "/redirect-loopback-v6",
        what: "a redirect to ::ffff:127.0.0.1",
        script: |_| to(302, "http://[::ffff:127.0.0.1]:1/"),
    },
    Listed {
        path: "/redirect-private",
        what: "a redirect to 10.0.0.1",
        script: |_| to(302, "http://10.0.0.1/"),
    },
    Listed {
        path: "/redirect-metadata",
        what: "a redirect to the metadata service of a cloud",
        script: |_| to(302, "http://169.254.169.254/latest/"),
    },
    Listed {
        path: "/redirect-unresolved",
        what: "a redirect to a name that no resolver knows",
        script: |_| to(302, "http://nowhere.invalid/"),
    },
    Listed {
        path: "/refresh-loop",
        what: "a page that refreshes to itself",
        script: |_| {
            page(
                "<!DOCTYPE html>\n<title>Again</title>\n<meta http-equiv=\"refresh\" content=\"0; url=/refresh-loop\">\n",
            )
        },
    },
];

fn to(status: u16, location: &str) -> Script {
    sent(whole(status, &format!("Location: {location}\r\n"), b""))
}
