//! Advice for errors of object stores: what to set when a store refuses a request or cannot be reached.
//!
//! `object_store` has most reasons only as text, so this module matches texts of servers and of libraries below it.

use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;
use gridfusion::{Error, with_causes};
use object_store::Error as StoreError;

use crate::store::Stores;

/// Returns the advice for an error of a session, if a store caused it and there is any.
pub(crate) fn advice(error: &DataFusionError, ctx: &SessionContext) -> Option<String> {
    let (of_store, location) = match error.find_root() {
        DataFusionError::External(cause) => {
            let error = cause.downcast_ref::<Error>()?;
            (store_error(error)?, error.file().unwrap_or_default())
        }
        DataFusionError::ObjectStore(error) => (&**error, ""),
        _ => return None,
    };
    let is_anonymous = Stores::in_session(ctx).is_some_and(|stores| stores.is_anonymous(location));
    advice_for(of_store, location, is_anonymous)
}

/// Returns the error of the store that caused an error.
fn store_error(error: &Error) -> Option<&StoreError> {
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref::<StoreError>() {
            return Some(found);
        }
        cause = error.source();
    }
    None
}

fn advice_for(error: &StoreError, location: &str, is_anonymous: bool) -> Option<String> {
    let text = with_causes(error);
    let has = |part: &str| text.contains(part);
    let prefix = prefix_of(location);
    if has("NoSuchBucket") || has("ContainerNotFound") {
        return Some("there is no such bucket at this endpoint; check the URL".to_owned());
    }
    if let Some(region) = wrong_region(&text) {
        return Some(region);
    }
    if has("to which remote files may not lead") {
        return None;
    }
    if has("invalid peer certificate") {
        return Some(format!(
            "check the host; {prefix}.allow_invalid_certificates=true accepts the certificate of a server of your own"
        ));
    }
    if has("dns error") || has("failed to lookup address") {
        return Some(
            "no host has this name; check the URL, the endpoint and the region".to_owned(),
        );
    }
    if has("Connection refused") {
        return Some("no server listens there; check the host and the port".to_owned());
    }
    let is_refused =
        matches!(error, StoreError::PermissionDenied { .. } | StoreError::Unauthenticated { .. });
    match prefix {
        _ if !is_refused => None,
        "aws" if is_anonymous => Some(no_credentials(
            "aws.access_key_id and aws.secret_access_key, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        )),
        "azure" if is_anonymous => Some(no_credentials(
            "azure.account_key or azure.sas_token, or AZURE_STORAGE_ACCOUNT_KEY",
        )),
        "gcp" if is_anonymous => Some(no_credentials(
            "gcp.service_account, or GOOGLE_APPLICATION_CREDENTIALS",
        )),
        "http" => Some(
            "the server needs a signed URL, a password (https://USER:PASSWORD@HOST/…), or http.header.authorization; a signature may also have expired"
                .to_owned(),
        ),
        _ => Some("these credentials may not read it; S3 also answers so if it does not exist".to_owned()),
    }
}

fn no_credentials(how: &str) -> String {
    format!("no credentials are set, so the request was anonymous; set {how}")
}

/// Returns the advice for a bucket in another region than the requested one.
fn wrong_region(text: &str) -> Option<String> {
    let named = text.split_once("<Region>").and_then(|(_, rest)| rest.split_once("</Region>"));
    let signs = [
        "redirect without LOCATION",
        "PermanentRedirect",
        "AuthorizationHeaderMalformed",
        "IllegalLocationConstraint",
    ];
    if !signs.iter().any(|sign| text.contains(sign)) {
        return None;
    }
    let region = named.map_or("REGION", |(region, _)| region);
    Some(format!("the bucket is in another region; set aws.region={region}"))
}

/// Returns the prefix of the options for a URL.
fn prefix_of(location: &str) -> &'static str {
    match location.split_once("://").map_or("", |(scheme, _)| scheme) {
        "s3" | "s3a" => "aws",
        "gs" => "gcp",
        "http" | "https" => "http",
        "az" | "adl" | "azure" | "abfs" | "abfss" => "azure",
        _ => "",
    }
}

/// Shortens the XML with which stores explain a failure to its code and its message.
pub(crate) fn without_xml(text: &str) -> String {
    let Some((before, xml)) = text.split_once("<?xml").or_else(|| text.split_once("<Error>"))
    else {
        return text.to_owned();
    };
    let (xml, after) = xml.split_once("</Error>").unwrap_or((xml, ""));
    let part = |name: &str| {
        let (_, rest) = xml.split_once(&format!("<{name}>"))?;
        rest.split_once(&format!("</{name}>")).map(|(value, _)| value.trim())
    };
    let parts: Vec<&str> = ["Code", "Message"].into_iter().filter_map(part).collect();
    match parts.is_empty() {
        true => text.to_owned(),
        false => format!("{before}{}{}", parts.join(": "), after.trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generic(text: &str) -> StoreError {
        StoreError::Generic { store: "S3", source: text.to_owned().into() }
    }

    fn denied() -> StoreError {
        StoreError::PermissionDenied { path: "a".to_owned(), source: "403 Forbidden".into() }
    }

    #[test]
    fn advice_names_the_option() {
        let malformed =
            "400 Bad Request: <Code>AuthorizationHeaderMalformed</Code><Region>eu-west-1</Region>";
        for (error, location, is_anonymous, expected) in [
            (denied(), "s3://b/a", true, "the request was anonymous; set aws.access_key_id and "),
            (denied(), "s3://b/a", false, "these credentials may not read it"),
            (denied(), "abfss://c@a/a", true, "set azure.account_key or azure.sas_token"),
            (denied(), "gs://b/a", true, "set gcp.service_account"),
            (denied(), "https://h/a", false, "https://USER:PASSWORD@HOST/"),
            (generic(malformed), "s3://b/a", false, "set aws.region=eu-west-1"),
            (generic("Received redirect without LOCATION"), "s3://b/a", true, "aws.region=REGION"),
            (generic("404: <Code>NoSuchBucket</Code>"), "s3://b/a", true, "no such bucket"),
            (generic("dns error: failed to lookup address"), "https://h/a", false, "no host has"),
            (generic("tcp connect error: Connection refused"), "https://h", false, "no server"),
        ] {
            let advice = advice_for(&error, location, is_anonymous).unwrap();
            assert!(advice.contains(expected), "{advice}");
        }
        assert_eq!(advice_for(&generic("the moon is full"), "s3://b/a", true), None);
    }

    #[test]
    fn xml_is_shortened() {
        let xml = "403 Forbidden: <?xml version=\"1.0\"?>\n<Error><Code>AccessDenied</Code><Message>No.</Message><HostId>x</HostId></Error>";
        assert_eq!(without_xml(xml), "403 Forbidden: AccessDenied: No.");
        assert_eq!(without_xml("a <b>"), "a <b>");
        assert_eq!(without_xml("x <?xml?> y"), "x <?xml?> y");
    }
}
