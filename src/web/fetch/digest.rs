//! HTTP Digest (RFC 7616): a server asks for proof of a password, which is not sent.

use archive_storage::Digest;
use archive_storage::digest::hex;
use md5::{Digest as _, Md5};

/// What a server asked for, and how often it was answered.
pub(super) struct Challenge {
    realm: String,
    nonce: String,
    opaque: Option<String>,
    /// The name of the algorithm as the server wrote it, if it did.
    algorithm: Option<String>,
    is_sha256: bool,
    /// Whether the proof is of a session, which begins with the challenge.
    is_session: bool,
    has_quality: bool,
    /// Whether only the nonce of the last answer was too old.
    pub(super) is_stale: bool,
    answers: u32,
}

impl Challenge {
    /// Reads a field `WWW-Authenticate`; `None` if there is no Digest in it that this program knows.
    pub(super) fn of(field: &str) -> Option<Self> {
        let start = field.to_ascii_lowercase().find("digest ")?;
        let parameters = parameters(&field[start + "digest ".len()..]);
        let get = |name: &str| {
            let found = parameters.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.clone())
        };
        let algorithm = get("algorithm");
        let known = algorithm.as_deref().unwrap_or("MD5").to_ascii_uppercase();
        let (hash, is_session) = known.strip_suffix("-SESS").map_or((&*known, false), |hash| (hash, true));
        let qualities = get("qop");
        let mut named = qualities.as_deref().unwrap_or("auth").split(',').map(str::trim);
        if !matches!(hash, "MD5" | "SHA-256") || !named.any(|quality| quality.eq_ignore_ascii_case("auth")) {
            return None;
        }
        Some(Self {
            realm: get("realm")?,
            nonce: get("nonce")?,
            opaque: get("opaque"),
            is_sha256: hash == "SHA-256",
            is_session,
            has_quality: qualities.is_some(),
            is_stale: get("stale").is_some_and(|stale| stale.eq_ignore_ascii_case("true")),
            algorithm,
            answers: 0,
        })
    }

    fn hash(&self, parts: &[&str]) -> String {
        let text = parts.join(":");
        if self.is_sha256 {
            hex(Digest::sha256(text.as_bytes()).as_bytes())
        } else {
            hex(Md5::digest(text.as_bytes()).as_slice())
        }
    }

    /// Returns the field `Authorization` of a `GET` for a path and query; `own` is a random text of the client.
    pub(super) fn answer(&mut self, name: &str, password: &str, target: &str, own: &str) -> String {
        self.answers = self.answers.saturating_add(1);
        let count = format!("{:08x}", self.answers);
        let mut secret = self.hash(&[name, &self.realm, password]);
        if self.is_session {
            secret = self.hash(&[&secret, &self.nonce, own]);
        }
        let asked = self.hash(&["GET", target]);
        let proof = match self.has_quality {
            true => self.hash(&[&secret, &self.nonce, &count, own, "auth", &asked]),
            false => self.hash(&[&secret, &self.nonce, &asked]),
        };
        let (name, realm, nonce) = (quoted(name), quoted(&self.realm), quoted(&self.nonce));
        let mut field = format!("Digest username={name}, realm={realm}, nonce={nonce}, uri=\"{target}\"");
        if let Some(algorithm) = &self.algorithm {
            field += &format!(", algorithm={algorithm}");
        }
        if self.has_quality || self.is_session {
            field += &format!(", qop=auth, nc={count}, cnonce=\"{own}\"");
        }
        if let Some(opaque) = &self.opaque {
            field += &format!(", opaque={}", quoted(opaque));
        }
        format!("{field}, response=\"{proof}\"")
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Reads parameters up to the next challenge: names with values, which may be in quotes.
fn parameters(text: &str) -> Vec<(String, String)> {
    let (mut found, mut rest) = (Vec::new(), text);
    loop {
        rest = rest.trim_start_matches([',', ' ', '\t']);
        let Some((name, after)) = rest.split_once('=') else { return found };
        if name.trim().contains([' ', ',']) {
            return found;
        }
        let (mut value, mut end, mut is_escaped) = (String::new(), after.len(), false);
        let is_quoted = after.trim_start().starts_with('"');
        let after = after.trim_start().trim_start_matches('"');
        for (at, c) in after.char_indices() {
            match c {
                _ if is_escaped => is_escaped = false,
                '\\' if is_quoted => {
                    is_escaped = true;
                    continue;
                }
                '"' if is_quoted => {
                    end = at + 1;
                    break;
                }
                ',' | ' ' if !is_quoted => {
                    end = at;
                    break;
                }
                _ => {}
            }
            value.push(c);
        }
        found.push((name.trim().to_owned(), value));
        rest = after.get(end..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::Challenge;

    const ASKED: &str = "Basic realm=\"a, b\", Digest realm=\"http-auth@example.org\", qop=\"auth, auth-int\", algorithm=ALGORITHM, \
        nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\"";

    /// The examples of RFC 7616, section 3.9.1.
    #[test]
    fn proofs_are_those_of_the_standard() {
        for (algorithm, proof) in [
            ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
            ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
        ] {
            let mut challenge = Challenge::of(&ASKED.replace("ALGORITHM", algorithm)).unwrap();
            let own = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ";
            let field = challenge.answer("Mufasa", "Circle of Life", "/dir/index.html", own);
            assert!(field.ends_with(&format!("response=\"{proof}\"")), "{field}");
            assert!(
                field.contains(", nc=00000001, cnonce=") && field.contains("realm=\"http-auth@example.org\"")
            );
            let again = challenge.answer("Mufasa", "Circle of Life", "/dir/index.html", own);
            assert!(again.contains("nc=00000002") && !again.contains(proof));
        }
    }

    /// The example of RFC 2617 without `qop`, whose proof is that of RFC 2069.
    #[test]
    fn old_servers_ask_for_less_and_unknown_ones_for_nothing() {
        let old =
            "Digest realm=\"testrealm@host.com\", nonce=\"dcd98b7102dd2f0e8b11d0f600bfb0c093\", stale=TRUE";
        let mut challenge = Challenge::of(old).unwrap();
        assert!(challenge.is_stale);
        let field = challenge.answer("Mufasa", "Circle Of Life", "/dir/index.html", "x");
        assert!(
            field.ends_with("response=\"670fd8c2df070c60b045671b8b24ff02\"") && !field.contains("qop"),
            "{field}"
        );
        for other in [
            "Basic realm=x",
            "Digest realm=\"x\"",
            "Digest realm=\"x\", nonce=\"y\", qop=\"auth-int\"",
            "Digest realm=\"x\", nonce=\"y\", algorithm=SHA-512-256",
            "Digest realm=\"",
            "Digest =",
        ] {
            assert!(Challenge::of(other).is_none(), "{other}");
        }
        let escaped = Challenge::of("digest nonce=a,realm=\"q\\\"\\\\\"").unwrap();
        assert_eq!((escaped.realm.as_str(), escaped.nonce.as_str()), ("q\"\\", "a"));
    }
}
