//! S3 and compatible services. Settings come from the environment, credentials from there or from a file.

use std::net::IpAddr;
use std::time::Duration;

use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey as Key, S3ConditionalPut};
use object_store::{BackoffConfig, ClientConfigKey, RetryConfig};
use url::{Host, Url};

use super::http::StoreConnector;
use super::profile::Profile;
use super::{RemoteError, causes};

/// Maximum number of retries after an error of the service, and their total duration.
const RETRIES_MAX: usize = 8;
const RETRY_SPAN: Duration = Duration::from_secs(120);

/// The longest pause between two attempts.
const BACKOFF_MAX: Duration = Duration::from_secs(15);

/// Opens a bucket with the settings in the variables `AWS_…` and in the files that other tools use.
pub(super) fn open(bucket: &str) -> Result<AmazonS3, RemoteError> {
    let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
    let profile = Profile::read().map_err(RemoteError::Settings)?;
    if builder.get_config_value(&Key::AccessKeyId).is_none() {
        for (key, value) in [
            (Key::AccessKeyId, &profile.key_id),
            (Key::SecretAccessKey, &profile.secret),
            (Key::Token, &profile.token),
        ] {
            if let Some(value) = value {
                builder = builder.with_config(key, value);
            }
        }
    }
    for (key, value) in [(Key::Region, profile.region), (Key::Endpoint, profile.endpoint)] {
        if let Some(value) = value.filter(|_| builder.get_config_value(&key).is_none()) {
            builder = builder.with_config(key, value);
        }
    }
    check_credentials(&builder)?;
    let allows_http = allows_http(&builder)?;
    let retry = RetryConfig {
        backoff: BackoffConfig { max_backoff: BACKOFF_MAX, ..BackoffConfig::default() },
        max_retries: RETRIES_MAX,
        retry_timeout: RETRY_SPAN,
    };
    builder
        .with_allow_http(allows_http)
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        .with_retry(retry)
        .with_http_connector(StoreConnector)
        .build()
        .map_err(|error| RemoteError::Settings(format!("the settings for S3: {}", causes(&error))))
}

/// Checks that there are credentials. Without any, the library would contact an address of Amazon's that most machines
/// cannot reach.
fn check_credentials(builder: &AmazonS3Builder) -> Result<(), RemoteError> {
    let is_set = |key: Key| builder.get_config_value(&key).is_some();
    let is_known = is_set(Key::AccessKeyId) && is_set(Key::SecretAccessKey)
        || is_set(Key::WebIdentityTokenFile)
        || is_set(Key::ContainerCredentialsRelativeUri)
        || is_set(Key::ContainerCredentialsFullUri)
        || is_set(Key::MetadataEndpoint)
        || builder.get_config_value(&Key::SkipSignature).as_deref() == Some("true");
    if is_known {
        return Ok(());
    }
    let text = "there are no credentials for S3: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or put them into \
                ~/.aws/credentials (AWS_PROFILE chooses among several)";
    Err(RemoteError::Settings(text.to_owned()))
}

/// Whether requests go without TLS: allowed for this machine, and for others if the user has enabled it.
fn allows_http(builder: &AmazonS3Builder) -> Result<bool, RemoteError> {
    let endpoint = builder.get_config_value(&Key::S3Endpoint).or(builder.get_config_value(&Key::Endpoint));
    let Some(endpoint) = endpoint else { return Ok(false) };
    let parsed = Url::parse(&endpoint).ok().filter(|url| ["http", "https"].contains(&url.scheme()));
    let Some(parsed) = parsed else {
        let text = format!("AWS_ENDPOINT_URL is '{endpoint}'; write it like https://s3.example.org");
        return Err(RemoteError::Settings(text));
    };
    let is_asked = builder.get_config_value(&Key::Client(ClientConfigKey::AllowHttp));
    let is_asked = is_asked.is_some_and(|value| ["1", "true", "on", "yes", "y"].contains(&value.as_str()));
    if parsed.scheme() == "https" || is_asked || is_loopback(&parsed) {
        return Ok(parsed.scheme() == "http");
    }
    Err(RemoteError::Settings(format!(
        "{endpoint} would be contacted without encryption; use https, or set AWS_ALLOW_HTTP=true on a trusted network"
    )))
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => IpAddr::from(address).is_loopback(),
        Some(Host::Ipv6(address)) => IpAddr::from(address).is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use object_store::aws::AmazonS3Builder;

    use super::allows_http;

    #[test]
    fn without_tls_only_this_machine_is_spoken_to_unless_somebody_asks() {
        let of = |endpoint: &str| allows_http(&AmazonS3Builder::new().with_endpoint(endpoint));
        for here in ["http://127.0.0.1:9000", "http://[::1]:9000", "http://localhost:9000"] {
            assert!(of(here).unwrap(), "{here}");
        }
        assert!(!of("https://s3.example.org").unwrap());
        for elsewhere in ["http://s3.example.org", "http://10.0.0.1", "http://localhost.example.org"] {
            let error = of(elsewhere).unwrap_err().to_string();
            assert!(error.contains("without encryption"), "{error}");
        }
        assert!(of("s3.example.org:9000").unwrap_err().to_string().contains("write it like"));
        let asked = AmazonS3Builder::new().with_endpoint("http://10.0.0.1").with_allow_http(true);
        assert!(allows_http(&asked).unwrap());
    }
}
