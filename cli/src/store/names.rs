//! The names of options for object stores: those that `object_store` knows, with a prefix.

use gridfusion::{Error, Result};
use object_store::ClientConfigKey;
use object_store::aws::AmazonS3ConfigKey;
use object_store::azure::AzureConfigKey;
use object_store::gcp::GoogleConfigKey;

use crate::alike::{closest, did_you_mean, list};

/// Names after `aws.`.
const AWS: [&str; 22] = [
    "region",
    "endpoint",
    "access_key_id",
    "secret_access_key",
    "session_token",
    "skip_signature",
    "allow_http",
    "virtual_hosted_style_request",
    "request_payer",
    "default_region",
    "metadata_endpoint",
    "imdsv1_fallback",
    "web_identity_token_file",
    "role_arn",
    "role_session_name",
    "container_credentials_relative_uri",
    "container_credentials_full_uri",
    "container_authorization_token_file",
    "s3_express",
    "endpoint_url_s3",
    "endpoint_url_sts",
    "sse_customer_key_base64",
];

/// Names after `azure.`.
const AZURE: [&str; 18] = [
    "account_name",
    "account_key",
    "sas_token",
    "client_id",
    "client_secret",
    "tenant_id",
    "bearer_token",
    "endpoint",
    "skip_signature",
    "allow_http",
    "use_emulator",
    "use_azure_cli",
    "federated_token_file",
    "msi_endpoint",
    "object_id",
    "msi_resource_id",
    "authority_host",
    "use_fabric_endpoint",
];

/// Names after `gcp.` and `google.`.
const GOOGLE: [&str; 5] = [
    "service_account",
    "service_account_key",
    "application_credentials",
    "skip_signature",
    "base_url",
];

/// Names after each prefix.
const CLIENT: [&str; 14] = [
    "allow_http",
    "allow_invalid_certificates",
    "connect_timeout",
    "http1_only",
    "http2_only",
    "pool_idle_timeout",
    "pool_max_idle_per_host",
    "proxy_url",
    "proxy_ca_certificate",
    "proxy_excludes",
    "randomize_addresses",
    "timeout",
    "user_agent",
    "default_content_type",
];

/// Names after `http.`, besides those of all stores.
const HTTP: [&str; 3] = ["header.NAME", "header_origins", "allow_private_references"];

/// The beginning of names such as `http.header.authorization`.
const HEADER: &str = "header.";

/// An option of one kind of store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Key {
    Aws(AmazonS3ConfigKey),
    Azure(AzureConfigKey),
    Google(GoogleConfigKey),
    Http(ClientConfigKey),
    /// A header of each request to a web server.
    Header(String),
    /// Further web servers that get the headers, although only a file names them.
    HeaderOrigins,
    /// Whether references of remote files may reach private addresses.
    AllowPrivate,
}

impl Key {
    /// Returns the option with a name such as `aws.region`, or `gcp.service_account`.
    ///
    /// # Errors
    /// `Usage` for an unknown name; the message has the most similar one.
    pub(super) fn try_new(name: &str) -> Result<Self> {
        let lower = name.to_ascii_lowercase();
        let known = split(&lower).and_then(|(prefix, rest)| Self::after(prefix, rest));
        known.ok_or_else(|| unknown(&lower))
    }

    /// Returns the option of an environment variable such as `AWS_REGION`.
    pub(super) fn from_variable(variable: &str) -> Option<Self> {
        let lower = variable.to_ascii_lowercase();
        match lower.split_once('_')?.0 {
            "aws" => lower.parse().ok().map(Self::Aws),
            "azure" => lower.parse().ok().map(Self::Azure),
            "google" => lower.parse().ok().map(Self::Google),
            _ => None,
        }
    }

    fn after(prefix: &str, rest: &str) -> Option<Self> {
        let full = format!("{prefix}_{rest}");
        match prefix {
            "aws" => full.parse().or_else(|_| rest.parse()).ok().map(Self::Aws),
            // `object_store` knows `account_name`, and `azure_storage_account_name`.
            "azure" => full.parse().or_else(|_| rest.parse()).ok().map(Self::Azure),
            "google" => full.parse().or_else(|_| rest.parse()).ok().map(Self::Google),
            _ if rest == "header_origins" => Some(Self::HeaderOrigins),
            _ if rest == "allow_private_references" => Some(Self::AllowPrivate),
            _ => match rest.strip_prefix(HEADER) {
                Some(header) => (!header.is_empty()).then(|| Self::Header(header.to_owned())),
                None => rest.parse().ok().map(Self::Http),
            },
        }
    }
}

/// Splits the name of an option for object stores; `None` for other options.
pub(super) fn split(name: &str) -> Option<(&str, &str)> {
    let (prefix, rest) = name.split_once('.')?;
    let prefix = match prefix.to_ascii_lowercase().as_str() {
        "aws" => "aws",
        "azure" => "azure",
        "gcp" | "google" => "google",
        "http" => "http",
        _ => return None,
    };
    Some((prefix, rest))
}

fn unknown(name: &str) -> Error {
    let (prefix, rest) = name.split_once('.').unwrap_or((name, ""));
    let own: &[&str] = match prefix {
        "aws" => &AWS,
        "azure" => &AZURE,
        "http" => &HTTP,
        _ => &GOOGLE,
    };
    let full = |name: &str| format!("{prefix}.{name}");
    let hint = match closest(rest, own.iter().chain(&CLIENT).copied()) {
        Some(name) => did_you_mean(&full(name)),
        None => {
            let names: Vec<String> = own.iter().chain(&CLIENT).map(|name| full(name)).collect();
            list("options", names.into_iter())
        }
    };
    Error::usage(format!("unknown option '{name}' of object stores; {hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_each_store() {
        for (prefix, names) in [
            ("aws", &AWS[..]),
            ("azure", &AZURE),
            ("gcp", &GOOGLE),
            ("google", &GOOGLE),
            ("http", &HTTP[1..]),
        ] {
            for name in names.iter().chain(&CLIENT) {
                assert!(Key::try_new(&format!("{prefix}.{name}")).is_ok(), "{prefix}.{name}");
            }
        }
        assert_eq!(Key::try_new("AWS.Region").unwrap(), Key::Aws(AmazonS3ConfigKey::Region));
        assert_eq!(Key::try_new("http.header.X-Key").unwrap(), Key::Header("x-key".to_owned()));
        assert_eq!(Key::from_variable("AWS_REGION"), Some(Key::Aws(AmazonS3ConfigKey::Region)));
        assert_eq!((Key::from_variable("AWS_PROFILE"), Key::from_variable("HOME")), (None, None));
        assert!(split("format.dataset").is_none() && split("dataset").is_none());
    }

    #[test]
    fn unknown_names_are_refused_with_the_nearest_one() {
        for (name, expected) in [
            (
                "aws.regoin",
                "unknown option 'aws.regoin' of object stores; did you mean aws.region?",
            ),
            ("azure.acount_name", "did you mean azure.account_name?"),
            ("gcp.service_acount", "did you mean gcp.service_account?"),
            ("http.timout", "did you mean http.timeout?"),
            ("http.x", "the options are http.header.NAME, http.header_origins, "),
            ("http.header.", "unknown option"),
        ] {
            let error = Key::try_new(name).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
