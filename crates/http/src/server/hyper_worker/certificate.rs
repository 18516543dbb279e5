//! Certificates: given ones, and one for who has none.

use std::path::Path;

use linerate_sys::clock;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, date_time_ymd};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::server::date::{SECONDS_PER_DAY, civil};
use crate::tls::{fingerprint, pairs};

/// A certificate with what leads to its issuer, and its key.
pub(super) struct Certificate {
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
}

impl Certificate {
    /// A new certificate nobody has signed, for these names and addresses.
    pub(super) fn self_signed(names: Vec<String>) -> Result<Self, String> {
        let failed = |error: rcgen::Error| format!("cannot make a certificate: {error}");
        let key = KeyPair::generate().map_err(failed)?;
        let mut parameters = CertificateParams::new(names).map_err(failed)?;
        parameters.distinguished_name = DistinguishedName::new();
        parameters.distinguished_name.push(DnType::CommonName, "linerate");
        // Yesterday: the client's clock may be behind ours.
        let midnight = |(year, month, day)| date_time_ymd(year, month, day);
        parameters.not_before = midnight(date(-1));
        parameters.not_after = midnight(date(DAYS_VALID));
        let certificate = parameters.self_signed(&key).map_err(failed)?;
        Ok(Self {
            chain: vec![certificate.der().clone()],
            key: PrivateKeyDer::Pkcs8(key.serialize_der().into()),
        })
    }

    /// The certificates and the key of two PEM files.
    pub(super) fn read(certificates: &Path, key: &Path) -> Result<Self, String> {
        let named = |path: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let chain: Vec<_> = CertificateDer::pem_file_iter(certificates)
            .and_then(Iterator::collect)
            .map_err(|error| named(certificates, &error))?;
        if chain.is_empty() {
            return Err(named(certificates, &"no certificate in PEM form"));
        }
        let key = PrivateKeyDer::from_pem_file(key).map_err(|error| named(key, &error))?;
        Ok(Self { chain, key })
    }

    /// SHA-256 of the certificate in hexadecimal.
    pub(super) fn fingerprint(&self) -> String {
        let bytes = self.chain.first().map_or(&[][..], |certificate| certificate);
        pairs(&fingerprint(bytes))
    }
}

/// Year, month and day so many days from today.
fn date(offset_days: i64) -> (i32, u8, u8) {
    let today = clock::unix_ms() / 1000 / SECONDS_PER_DAY;
    let (year, month, day) = civil(today.saturating_add_signed(offset_days));
    let small = |number: u64| u8::try_from(number).unwrap_or(1);
    (i32::try_from(year).unwrap_or(9999), small(month), small(day))
}

/// Nobody should go on using a certificate that was made for a test.
const DAYS_VALID: i64 = 90;
