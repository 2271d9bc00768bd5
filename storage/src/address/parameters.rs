//! Query parameters that identify the visitor or where they came from, not the page.
//!
//! Add a line to [`PARAMETERS`] to drop another one from canonical URLs. A line that is wrong for one site loses pages
//! there, so only names without any other use belong here; a doubtful name gets a value pattern.

use super::parameters::Name::{Exact, Prefix};
use super::parameters::Value::{Any, Token};

/// How a parameter's name is compared, ignoring ASCII case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    /// The whole name.
    Exact(&'static str),
    /// The beginning of the name.
    Prefix(&'static str),
}

/// Values with which a parameter is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    /// Any value, including none.
    Any,
    /// At least [`TOKEN_BYTES_MIN`] letters, digits, `-`, `_`, `.`, `,` or `%`, with a digit among them: `sid=3` is a
    /// section, `sid=d41d8cd98f00b204e980` is a session.
    Token,
}

/// Minimum length of a session token in bytes.
const TOKEN_BYTES_MIN: usize = 16;

/// The parameters dropped from every canonical URL, and with which values. First come those that identify a visit, so
/// that each visit sees different URLs for the same pages, then those that show the site's statistics where the visitor
/// came from.
const PARAMETERS: &[(Name, Value)] = &[
    (Exact("phpsessid"), Any),         // PHP
    (Exact("jsessionid"), Any),        // Java servlets, when not a path parameter
    (Prefix("aspsessionid"), Any),     // classic ASP: ASPSESSIONIDQQSCATDS
    (Exact("asp.net_sessionid"), Any), // ASP.NET
    (Exact("cfid"), Any),              // ColdFusion, always beside cftoken
    (Exact("cftoken"), Any),
    (Exact("oscsid"), Any),       // osCommerce
    (Exact("zenid"), Any),        // Zen Cart
    (Exact("xtcsid"), Any),       // xt:Commerce
    (Exact("sessionid"), Token),  // home-made ones: only when the value looks like one
    (Exact("session_id"), Token), //
    (Exact("sessid"), Token),     //
    (Exact("session"), Token),    //
    (Exact("sid"), Token),        //
    (Prefix("utm_"), Any),        // Urchin, Google Analytics
    (Exact("gclid"), Any),        // Google Ads
    (Exact("gclsrc"), Any),
    (Exact("dclid"), Any),
    (Exact("gbraid"), Any),
    (Exact("wbraid"), Any),
    (Exact("srsltid"), Any), // Google Merchant Center
    (Exact("_ga"), Any),     // Google Analytics cross-domain linker
    (Exact("_gl"), Any),
    (Exact("fbclid"), Any),    // Facebook
    (Exact("igshid"), Any),    // Instagram
    (Exact("msclkid"), Any),   // Microsoft Advertising
    (Exact("twclid"), Any),    // X
    (Exact("ttclid"), Any),    // TikTok
    (Exact("li_fat_id"), Any), // LinkedIn
    (Exact("yclid"), Any),     // Yandex
    (Exact("ysclid"), Any),
    (Exact("_openstat"), Any),
    (Exact("mc_cid"), Any), // Mailchimp
    (Exact("mc_eid"), Any),
    (Exact("_hsenc"), Any), // HubSpot
    (Exact("_hsmi"), Any),
    (Exact("hsctatracking"), Any),
    (Exact("mkt_tok"), Any),    // Marketo
    (Exact("vero_id"), Any),    // Vero
    (Exact("oly_enc_id"), Any), // Omeda
    (Exact("oly_anon_id"), Any),
    (Prefix("pk_"), Any),    // Matomo, older: pk_campaign, pk_kwd
    (Prefix("mtm_"), Any),   // Matomo
    (Prefix("piwik_"), Any), // Matomo, oldest
];

/// Whether `name=value` is a parameter to drop.
pub(super) fn is_dropped(pair: &str) -> bool {
    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
    if !may_be_listed(name.as_bytes()) {
        return false;
    }
    PARAMETERS.iter().any(|(listed_name, listed_value)| {
        let same_name = match listed_name {
            Exact(listed) => name.eq_ignore_ascii_case(listed),
            Prefix(listed) => {
                name.get(..listed.len()).is_some_and(|start| start.eq_ignore_ascii_case(listed))
            }
        };
        same_name && (*listed_value == Any || is_token(value))
    })
}

/// Checks the first byte only, which is cheap: hardly any parameter is listed.
fn may_be_listed(name: &[u8]) -> bool {
    /// The first letters of all listed names, in lower and upper case.
    const FIRST_LETTERS: [bool; 256] = {
        let mut table = [false; 256];
        let mut rule = 0;
        while rule < PARAMETERS.len() {
            let (Exact(name) | Prefix(name)) = PARAMETERS[rule].0;
            table[name.as_bytes()[0] as usize] = true;
            table[name.as_bytes()[0].to_ascii_uppercase() as usize] = true;
            rule += 1;
        }
        table
    };
    name.first().is_some_and(|&first| FIRST_LETTERS[usize::from(first)])
}

fn is_token(value: &str) -> bool {
    let shaped = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b',' | b'%');
    value.len() >= TOKEN_BYTES_MIN
        && value.bytes().all(shaped)
        && value.bytes().any(|byte| byte.is_ascii_digit())
}
