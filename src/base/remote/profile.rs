//! Credentials and settings from the files of Amazon's tools: `~/.aws/credentials` and `~/.aws/config`.

use std::env;
use std::path::PathBuf;

use crate::files;

/// Maximum bytes of a file.
const BYTES_MAX: u64 = 1 << 20;

/// The settings of the profile that `$AWS_PROFILE` names, or of the profile `default`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Profile {
    pub(super) key_id: Option<String>,
    pub(super) secret: Option<String>,
    pub(super) token: Option<String>,
    pub(super) region: Option<String>,
    pub(super) endpoint: Option<String>,
}

impl Profile {
    /// Reads both files; a missing file is skipped.
    pub(super) fn read() -> Result<Self, String> {
        let asked = env::var("AWS_PROFILE").ok().filter(|name| !name.is_empty());
        let name = asked.as_deref().unwrap_or("default");
        let mut profile = Self::default();
        let mut is_there = false;
        for (variable, file) in
            [("AWS_CONFIG_FILE", ".aws/config"), ("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials")]
        {
            let Some(path) = place(variable, file) else { continue };
            let bytes = files::read_if_there(&path, BYTES_MAX);
            let bytes = bytes.map_err(|error| format!("{}: {error}", path.display()))?;
            is_there |= bytes.is_some_and(|bytes| profile.take(&String::from_utf8_lossy(&bytes), name));
        }
        match asked {
            Some(name) if !is_there => Err(format!(
                "AWS_PROFILE is '{name}', but neither ~/.aws/credentials nor ~/.aws/config has this profile"
            )),
            _ => Ok(profile),
        }
    }

    /// Takes the settings of a profile from a file. Returns whether the file has the profile.
    fn take(&mut self, text: &str, name: &str) -> bool {
        let (mut is_meant, mut is_there) = (false, false);
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
            if let Some(section) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                // The two files name profiles differently.
                is_meant = section.trim_start_matches("profile ").trim() == name;
                is_there |= is_meant;
            } else if let Some((key, value)) = line.split_once('=').filter(|_| is_meant) {
                let place = match key.trim() {
                    "aws_access_key_id" => &mut self.key_id,
                    "aws_secret_access_key" => &mut self.secret,
                    "aws_session_token" => &mut self.token,
                    "region" => &mut self.region,
                    "endpoint_url" => &mut self.endpoint,
                    _ => continue,
                };
                *place = Some(value.trim().to_owned());
            }
        }
        is_there
    }
}

/// Returns the path of a file, from a variable or in the home folder.
fn place(variable: &str, file: &str) -> Option<PathBuf> {
    let asked = env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from);
    asked.or_else(|| env::home_dir().map(|home| home.join(file)))
}

#[cfg(test)]
mod tests {
    use super::Profile;

    #[test]
    fn a_profile_is_its_section_of_both_files() {
        let mut profile = Profile::default();
        let config = "[default]\nregion = eu-west-1\n[profile backup]\nregion=us-east-2\nendpoint_url = https://s3.test\n";
        assert!(profile.take(config, "backup"));
        let credentials = "# mine\n[default]\naws_access_key_id = other\n\n[backup]\naws_access_key_id = id\n\
                           aws_secret_access_key = a=b/c\n";
        assert!(profile.take(credentials, "backup"));
        assert_eq!(profile.key_id.as_deref(), Some("id"));
        assert_eq!(profile.secret.as_deref(), Some("a=b/c"));
        assert_eq!(profile.region.as_deref(), Some("us-east-2"));
        assert_eq!(profile.endpoint.as_deref(), Some("https://s3.test"));
        assert!(!Profile::default().take(credentials, "missing"));
    }
}
