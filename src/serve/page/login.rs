//! Logging in and out.

use maud::html;

use super::{Reply, Speech};

impl Reply {
    /// Redirects to another address after a form.
    pub(in crate::serve) fn see_other(to: &str) -> Self {
        Self::of(303, "text/plain", "").with("Location", to).with("Referrer-Policy", "no-referrer")
    }

    /// The login page; `to` is where the person wants to go afterwards.
    pub(in crate::serve) fn login(
        status: u16,
        t: Speech,
        to: &str,
        replay: &str,
        mistake: Option<&'static str>,
    ) -> Self {
        let title = t.say("Log in");
        let content = html! {
            h1 { (title) }
            @if let Some(mistake) = mistake { p #mistake .mistake role="alert" { (t.say(mistake)) } }
            form .query method="post" action="/login" {
                (t.kept())
                input type="hidden" name="to" value=(to);
                label for="name" { (t.say("Name")) }
                input #name name="name" autocomplete="username" autocapitalize="none" required autofocus aria-describedby=[mistake.map(|_| "mistake")];
                label for="password" { (t.say("Password")) }
                input #password name="password" type="password" autocomplete="current-password" required;
                button { (title) }
            }
        };
        // The reply to the form redirects to the requested archived page.
        Self::html(status, t, title, None, &content).with_form(Some(replay))
    }

    /// The logout page.
    pub(in crate::serve) fn logout(t: Speech, name: &str) -> Self {
        let title = t.say("Log out");
        let content = html! {
            h1 { (title) }
            p { (t.markup("You are logged in as {}.", &[html! { strong { (name) } }])) }
            form method="post" action="/logout" { (t.kept()) button { (title) } }
        };
        Self::html(200, t, title, None, &content).with_form(None)
    }

    /// Adds the headers for a page with a form that is sent here, and may redirect to the origin of archived pages.
    fn with_form(self, replay: Option<&str>) -> Self {
        let policy = format!(
            "default-src 'none'; style-src 'self'; form-action 'self' {}; base-uri 'none'; frame-ancestors 'none'",
            replay.unwrap_or_default()
        );
        // Browsers send the origin of a form only if its page allows it.
        self.with("Content-Security-Policy", policy).with("Referrer-Policy", "same-origin")
    }
}
