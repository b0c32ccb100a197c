//! Whether credentials for a store are given. Without any, requests are anonymous.
//!
//! `object_store` would ask the metadata service of a cloud machine for credentials. On other machines, this
//! address does not answer, and each query would wait for it. So the program asks there only if an option demands it:
//! `skip_signature=false`, or one about the metadata service.

use std::path::Path;

use object_store::aws::AmazonS3ConfigKey as Aws;
use object_store::azure::AzureConfigKey as Azure;
use object_store::gcp::GoogleConfigKey as Google;

use super::options::StoreOptions;

/// The file in the home directory in which Google's command line keeps credentials.
const GOOGLE_FILE: &str = ".config/gcloud/application_default_credentials.json";

/// Whether requests to S3 need no signature.
pub(super) fn is_anonymous_s3(options: &StoreOptions) -> bool {
    let is_set = |key: Aws| options.aws().any(|(it, _)| it == key);
    let both = |one: Aws, other: Aws| is_set(one) && is_set(other);
    !(is_set(Aws::SkipSignature)
        || is_set(Aws::AccessKeyId)
        || is_set(Aws::SecretAccessKey)
        || both(Aws::WebIdentityTokenFile, Aws::RoleArn)
        || is_set(Aws::ContainerCredentialsRelativeUri)
        || both(Aws::ContainerCredentialsFullUri, Aws::ContainerAuthorizationTokenFile)
        || is_set(Aws::MetadataEndpoint)
        || is_set(Aws::ImdsV1Fallback))
}

/// Whether requests to Azure need no signature.
pub(super) fn is_anonymous_azure(options: &StoreOptions) -> bool {
    let is_set = |key: Azure| options.azure().any(|(it, _)| it == key);
    let signs = [
        Azure::SkipSignature,
        Azure::AccessKey,
        Azure::SasKey,
        Azure::Token,
        Azure::ClientSecret,
        Azure::FederatedTokenFile,
        Azure::UseAzureCli,
        Azure::UseEmulator,
        Azure::FabricTokenServiceUrl,
        Azure::MsiEndpoint,
        Azure::MsiResourceId,
        Azure::ObjectId,
    ];
    !signs.into_iter().any(is_set)
}

/// Whether requests to Google Cloud Storage need no signature.
pub(super) fn is_anonymous_google(options: &StoreOptions, home: Option<&Path>) -> bool {
    let is_set = |key: Google| options.google().any(|(it, _)| it == key);
    let signs = [
        Google::SkipSignature,
        Google::ServiceAccount,
        Google::ServiceAccountKey,
        Google::ApplicationCredentials,
    ];
    !signs.into_iter().any(is_set) && !home.is_some_and(|home| home.join(GOOGLE_FILE).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(names: &[&str]) -> StoreOptions {
        let mut options = StoreOptions::default();
        names.iter().for_each(|name| options.set(name, "true").unwrap());
        options
    }

    #[test]
    fn without_credentials_requests_are_anonymous() {
        assert!(is_anonymous_s3(&options(&["aws.region", "aws.role_arn"])));
        assert!(is_anonymous_azure(&options(&["azure.account_name", "azure.client_id"])));
        assert!(is_anonymous_google(&options(&["gcp.base_url"]), None));
    }

    #[test]
    fn credentials_and_the_metadata_service_are_used_if_they_are_named() {
        for names in [
            &["aws.access_key_id"][..],
            &["aws.role_arn", "aws.web_identity_token_file"],
            &["aws.metadata_endpoint"],
            &["aws.skip_signature"],
        ] {
            assert!(!is_anonymous_s3(&options(names)), "{names:?}");
        }
        assert!(!is_anonymous_azure(&options(&["azure.sas_token"])));
        assert!(!is_anonymous_google(&options(&["gcp.service_account"]), None));
        let home = tempfile::tempdir().unwrap();
        assert!(is_anonymous_google(&options(&[]), Some(home.path())));
        let file = home.path().join(GOOGLE_FILE);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, "{}").unwrap();
        assert!(!is_anonymous_google(&options(&[]), Some(home.path())));
    }
}
