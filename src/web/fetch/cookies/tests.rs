use super::*;

const NOW: i64 = 1_800_000_000;
const SAME: CookieContext = CookieContext::SameSite;

fn url(text: &str) -> Url {
    text.parse().unwrap()
}

/// What a jar sends to `to` after an answer of `from` set a cookie.
fn sent(from: &str, field: &str, to: &str) -> Option<String> {
    let mut jar = CookieJar::default();
    jar.take(&url(from), field, SAME, NOW);
    jar.field(&url(to), SAME, NOW)
}

#[test]
fn a_cookie_goes_where_a_browser_sends_it() {
    for (from, field, to, is_sent) in [
        ("http://a.test/x/y", "n=v", "http://a.test/x/z", true),
        ("http://a.test/x/y", "n=v", "http://a.test/xz", false),
        ("http://a.test/x/y", "n=v; Path=/", "https://a.test/", true),
        ("http://a.test/x/y", "n=v; Path=relative", "http://a.test/x", true),
        ("http://a.test/", "n=v", "http://b.a.test/", false),
        ("http://a.test/", "n=v; Domain=.A.test", "http://b.a.test/", true),
        ("http://b.a.test/", "n=v; Domain=a.test", "http://c.a.test:81/", true),
        ("http://b.a.test/", "n=v; Domain=c.a.test", "http://c.a.test/", false),
        ("http://ba.test/", "n=v; Domain=a.test", "http://a.test/", false),
        ("http://a.co.uk/", "n=v; Domain=co.uk", "http://a.co.uk/", false),
        ("http://a.github.io/", "n=v; Domain=github.io", "http://b.github.io/", false),
        ("http://github.io/", "n=v; Domain=github.io", "http://github.io/", true),
        ("http://1.2.3.4/", "n=v; Domain=3.4", "http://5.6.3.4/", false),
        ("http://1.2.3.4/", "n=v; Domain=1.2.3.4", "http://1.2.3.4/", true),
        ("http://[::1]/", "n=v", "http://[::1]/", true),
        ("https://a.test/", "n=v; Secure", "https://a.test/", true),
        ("https://a.test/", "n=v; Secure", "http://a.test/", false),
        ("http://a.test/", "n=v; Secure", "https://a.test/", false),
        ("https://a.test/", "__Host-n=v; Secure; Path=/", "https://a.test/", true),
        ("https://a.test/", "__Host-n=v; Secure; Path=/; Domain=a.test", "https://a.test/", false),
        ("https://a.test/", "__secure-n=v", "https://a.test/", false),
        ("http://a.test/", "n=v; Max-Age=0", "http://a.test/", false),
        ("http://a.test/", "n=v; Max-Age=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "http://a.test/", true),
        ("http://a.test/", "n=v; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "http://a.test/", false),
        ("http://a.test/", "n=v; Expires=Wed, 21-Oct-2099 07:28:00 GMT", "http://a.test/", true),
        ("http://a.test/", "n=v\tw", "http://a.test/", false),
        ("http://a.test/", "nothing", "http://a.test/", false),
    ] {
        let found = sent(from, field, to);
        assert_eq!(found.is_some(), is_sent, "{from} {field} {to}: {found:?}");
    }
    let quoted = sent("http://a.test/", "n=\"a b=c\"; HttpOnly", "http://a.test/");
    assert_eq!(quoted.as_deref(), Some("n=\"a b=c\""));
}

#[test]
fn pages_of_other_sites_get_what_their_browser_would_send() {
    let (own, sub, other) = (url("https://a.test/"), url("https://b.a.test/"), url("https://c.test/"));
    let of = |page: Option<&Url>, is_part| CookieContext::of(&own, page, is_part);
    assert_eq!([of(None, false), of(Some(&sub), true)], [SAME, SAME]);
    assert_eq!(of(Some(&url("http://a.test/")), false), CookieContext::Link);
    let mut jar = CookieJar::default();
    for field in
        ["none=1; SameSite=None; Secure", "lax=1; SameSite=Lax", "strict=1; samesite=strict", "plain=1"]
    {
        jar.take(&own, field, SAME, NOW);
    }
    let mut sent = |context| jar.field(&own, context, NOW).unwrap_or_default();
    assert_eq!(sent(SAME), "none=1; lax=1; strict=1; plain=1");
    assert_eq!(sent(of(Some(&other), false)), "none=1; lax=1; plain=1");
    assert_eq!(sent(of(Some(&other), true)), "none=1");
    assert_eq!(sent(CookieContext::None), "");
    jar.take(&own, "part=1", CookieContext::Part, NOW);
    jar.take(&own, "robots=1", CookieContext::None, NOW);
    assert_eq!(jar.field(&own, SAME, NOW).unwrap().matches('=').count(), 4);
}

#[test]
fn a_newer_cookie_replaces_its_namesake_and_longer_paths_come_first() {
    let mut jar = CookieJar::default();
    let page = url("http://a.test/x/y");
    for field in ["n=1; Path=/", "m=1; Path=/", "n=2; Path=/x", "n=3; Path=/", "m=; Path=/; Max-Age=-1"] {
        jar.take(&page, field, SAME, NOW);
    }
    assert_eq!(jar.field(&page, SAME, NOW).as_deref(), Some("n=2; n=3"));
    jar.take(&url("https://a.test/"), "n=4; Path=/; Secure", SAME, NOW);
    jar.take(&page, "n=5; Path=/", SAME, NOW);
    assert_eq!(jar.field(&url("https://a.test/"), SAME, NOW).as_deref(), Some("n=4"));
    jar.take(&page, "old=1; Max-Age=99999999999", SAME, NOW);
    let end = jar.all(NOW).find(|cookie| &*cookie.name == "old").unwrap().expires;
    assert_eq!(end, Some(NOW + LIFETIME_MAX));
    assert_eq!(without_values("n=2; m=a=b"), "n=redacted; m=redacted");
}

#[test]
fn the_oldest_cookies_make_room() {
    let mut jar = CookieJar::default();
    let page = url("http://a.test/");
    let names = |jar: &CookieJar| jar.all(NOW).map(|cookie| cookie.name.to_string()).collect::<Vec<_>>();
    // Name, domain and path: 8 bytes.
    jar.take(&page, &format!("n={}", "v".repeat(COOKIE_BYTES_MAX - 7)), SAME, NOW);
    assert!(names(&jar).is_empty());
    jar.take(&page, &format!("n={}", "v".repeat(COOKIE_BYTES_MAX - 8)), SAME, NOW);
    assert_eq!(names(&jar), ["n"]);
    for number in 0..DOMAIN_COOKIES_MAX {
        jar.take(&page, &format!("{number}="), SAME, NOW);
    }
    assert_eq!((names(&jar).len(), &names(&jar)[0][..]), (DOMAIN_COOKIES_MAX, "0"));
    for name in ["a", "b", "c", "d"] {
        jar.take(&page, &format!("{name}={}", "v".repeat(COOKIE_BYTES_MAX - 8)), SAME, NOW);
    }
    assert_eq!(names(&jar), ["a", "b", "c", "d"], "{DOMAIN_BYTES_MAX} bytes of a domain");
    let mut jar = CookieJar::default();
    for number in 0..=DOMAINS_MAX {
        jar.take(&url(&format!("http://h{number}.test/")), "n=v", SAME, NOW);
    }
    assert_eq!(jar.domains.len(), DOMAINS_MAX);
    assert_eq!(jar.field(&url("http://h0.test/"), SAME, NOW), None);
    let long = format!("n={}", "v".repeat(COOKIE_BYTES_MAX - 32));
    for number in 0..JAR_BYTES_MAX / COOKIE_BYTES_MAX {
        jar.take(&url(&format!("http://long{number}.test/")), &long, SAME, NOW);
    }
    let bytes: usize = jar.all(NOW).map(KeptCookie::cost).sum();
    assert!(bytes == jar.bytes && (JAR_BYTES_MAX - 8192..=JAR_BYTES_MAX).contains(&bytes), "{bytes}");
}

#[test]
fn kept_cookies_are_for_their_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let cookies = Cookies::default();
    cookies.write(folder.path(), NOW).unwrap();
    let file = secrets::path(folder.path(), FILE);
    assert!(!file.exists(), "without cookies there is no file");
    for field in ["n=v; SameSite=None; Secure; Domain=a.test; Max-Age=9", "session=x"] {
        cookies.jar().take(&url("https://a.test/x/"), field, SAME, NOW);
    }
    cookies.write(folder.path(), NOW).unwrap();
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let again = Cookies::read(folder.path(), NOW).unwrap();
    assert!(again.jar().all(NOW).eq(cookies.jar().all(NOW)));
    assert_eq!(Cookies::read(folder.path(), NOW + 9).unwrap().jar().all(NOW + 9).count(), 1);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    let refused = Cookies::read(folder.path(), NOW).unwrap_err().to_string();
    assert!(refused.contains("mode is 640") && !refused.contains("session"), "{refused}");
}
