//! Who signed a package, and whether it is what was signed (Webrecorder, "WACZ Signing and Verification" 0.1.0).
//!
//! The signature is of the digest of the package's description, which has the digests of all files. It is by a key alone, or
//! by the key of a domain's certificate, as ECDSA with SHA-256. That a certificate's chain leads to an authority is proven as
//! of the time that the package states; the token of a time stamping authority is not verified.

use std::collections::HashMap;
use std::io::{self, Read, Seek};
use std::ops::Range;

use archive_storage::Digest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, SecondsFormat, Utc};
use flate2::read::DeflateDecoder;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA256_ASN1, UnparsedPublicKey,
    VerificationAlgorithm,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, SignatureVerificationAlgorithm, UnixTime};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use webpki::{ALL_VERIFICATION_ALGS, EndEntityCert, KeyUsage};
use zip::{CompressionMethod, ZipArchive};

/// Maximum bytes of a package's description, and of the file that signs it.
const DESCRIPTION_BYTES_MAX: u64 = 16 << 20;
const SEAL_BYTES_MAX: u64 = 256 << 10;

/// Maximum number of certificates between a domain's and an authority's.
const CERTIFICATES_MAX: usize = 8;

/// Bytes that are hashed at once.
const HASHED_BYTES: usize = 256 << 10;

const DESCRIPTION: &str = "datapackage.json";
const SEAL: &str = "datapackage-digest.json";

/// What stands before the point of a public key (RFC 5480), and its algorithms: with signatures in ASN.1, and in two halves.
const P256: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, 0x06, 0x08, 0x2A, 0x86,
    0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
const P384: [u8; 23] = [
    0x30, 0x76, 0x30, 0x10, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, 0x06, 0x05, 0x2B, 0x81,
    0x04, 0x00, 0x22, 0x03, 0x62, 0x00,
];

/// Bytes of a signature of P-384 in two halves.
const P384_SIGNATURE_BYTES: usize = 96;

/// `datapackage-digest.json`.
#[derive(Deserialize)]
struct Seal {
    hash: String,
    #[serde(rename = "signedData")]
    signed: Option<SignedData>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SignedData {
    hash: String,
    signature: String,
    public_key: Option<String>,
    domain: Option<String>,
    domain_cert: Option<String>,
}

/// The description of a package, as far as it is signed.
#[derive(Deserialize)]
struct Description {
    #[serde(default)]
    resources: Vec<SignedFile>,
    /// When it was made.
    created: Option<Value>,
}

#[derive(Deserialize)]
struct SignedFile {
    path: String,
    hash: String,
}

/// Returns what is to be told of a package's signature, or why it is not what was signed; `None` if it is not signed. `names` are those of its files
/// with records, and `open` reads a range of the package.
pub(super) fn examine<'n, R: Read + Seek, F: Read + 'static>(
    package: &mut ZipArchive<R>,
    names: impl Iterator<Item = &'n str>,
    open: impl Fn(Range<u64>) -> io::Result<F>,
) -> Option<Result<String, String>> {
    package.index_for_name(SEAL)?;
    let seal = content(package, SEAL, SEAL_BYTES_MAX, &open);
    let seal = seal.and_then(|text| serde_json::from_slice::<Seal>(&text).map_err(|error| error.to_string()));
    let Seal { hash, signed } = match seal {
        Ok(seal) => seal,
        Err(why) => return Some(Err(format!("its signature cannot be read: {SEAL}: {why}"))),
    };
    let description = content(package, DESCRIPTION, DESCRIPTION_BYTES_MAX, &open);
    let is_right =
        |description: &[u8]| hash.parse::<Digest>().is_ok_and(|digest| digest.matches(description));
    let Some(signed) = signed else {
        // A hash without a signature proves nothing: whoever changes one changes the other.
        let is_wrong = !description.is_ok_and(|description| is_right(&description));
        return is_wrong
            .then(|| Ok(format!("it is not signed, and its hash is wrong: {DESCRIPTION} is another one")));
    };
    Some(description.map_err(|why| format!("{DESCRIPTION}: {why}")).and_then(|description| {
        if !is_right(&description) || hash != signed.hash {
            return Err(format!("its hash is wrong: {DESCRIPTION} is not what was signed"));
        }
        let description: Description = serde_json::from_slice(&description)
            .map_err(|error| format!("{DESCRIPTION} cannot be read: {error}"))?;
        let stated = description.created.as_ref().and_then(Value::as_str);
        let created = stated.and_then(|time| time.parse::<DateTime<Utc>>().ok());
        let who = signed.signer(created)?;
        check_files(package, &description.resources, names, &open)?;
        let when = created.map_or(String::new(), |time| {
            format!(", made on {} as it says", time.to_rfc3339_opts(SecondsFormat::Secs, true))
        });
        Ok(format!("its signature and the hashes of its files are right: signed by {who}{when}"))
    }))
}

/// Opens a file of a package; fails with a reason.
fn open_file<R: Read + Seek, F: Read + 'static>(
    package: &mut ZipArchive<R>,
    name: &str,
    open: &impl Fn(Range<u64>) -> io::Result<F>,
) -> Result<Box<dyn Read>, String> {
    let place = package.index_for_name(name).and_then(|place| {
        let file = package.by_index_raw(place).ok()?;
        let start = file.data_start()?;
        Some((start..start.saturating_add(file.compressed_size()), file.size(), file.compression()))
    });
    let (range, size, packing) = place.ok_or("it is not there")?;
    let bytes = open(range).map_err(|error| format!("it cannot be read: {error}"))?;
    Ok(match packing {
        CompressionMethod::Stored => Box::new(bytes),
        // What is longer than stated must not have the hash of its beginning.
        _ => Box::new(DeflateDecoder::new(bytes).take(size.saturating_add(1))),
    })
}

/// Returns the content of a file of a package.
fn content<R: Read + Seek, F: Read + 'static>(
    package: &mut ZipArchive<R>,
    name: &str,
    bytes_max: u64,
    open: &impl Fn(Range<u64>) -> io::Result<F>,
) -> Result<Vec<u8>, String> {
    let mut text = Vec::new();
    let read = open_file(package, name, open)?.take(bytes_max + 1).read_to_end(&mut text);
    read.map_err(|error| format!("it cannot be read: {error}"))?;
    if text.len() as u64 > bytes_max { Err(format!("it is longer than {bytes_max} bytes")) } else { Ok(text) }
}

impl SignedData {
    /// Verifies the signature, and returns whose it is.
    fn signer(&self, created: Option<DateTime<Utc>>) -> Result<String, String> {
        let wrong = || "its signature is wrong".to_owned();
        let signature = STANDARD.decode(&self.signature).map_err(|_| wrong())?;
        let signed = self.hash.as_bytes();
        if let Some(key) = &self.public_key {
            let key = STANDARD.decode(key).map_err(|_| "its public key cannot be read".to_owned())?;
            return if is_signed(&key, signed, &signature)? {
                Ok(format!("the key {}", Digest::sha256(&key)))
            } else {
                Err(wrong())
            };
        }
        let certificates = self.domain_cert.as_deref().unwrap_or_default();
        let chain: Vec<CertificateDer<'_>> = CertificateDer::pem_slice_iter(certificates.as_bytes())
            .take(CERTIFICATES_MAX + 1)
            .collect::<Result<_, _>>()
            .map_err(|error| format!("its certificate cannot be read: {error}"))?;
        let (first, others) =
            chain.split_first().ok_or_else(|| "it names neither a key nor a certificate".to_owned())?;
        let leaf = EndEntityCert::try_from(first)
            .map_err(|error| format!("its certificate cannot be read: {error}"))?;
        let is_right = |algorithm: &&dyn SignatureVerificationAlgorithm| {
            leaf.verify_signature(*algorithm, signed, &signature).is_ok()
        };
        if !ALL_VERIFICATION_ALGS.iter().any(is_right) {
            return Err(wrong());
        }
        let domain = self.domain.as_deref().unwrap_or_default();
        let fingerprint = Digest::sha256(first);
        Ok(match proves(&leaf, others, domain, created) {
            Ok(()) => format!("{domain} (certificate {fingerprint})"),
            Err(why) => format!(
                "the certificate {fingerprint}, which is not proven to be of {domain:?}, as it claims: {why}"
            ),
        })
    }
}

/// Whether a key in the form of a certificate (SubjectPublicKeyInfo) has signed this.
fn is_signed(key: &[u8], signed: &[u8], signature: &[u8]) -> Result<bool, String> {
    let by = |algorithm: &'static dyn VerificationAlgorithm, point: &[u8], signature: &[u8]| {
        UnparsedPublicKey::new(algorithm, point).verify(signed, signature).is_ok()
    };
    if let Some(point) = key.strip_prefix(&P256) {
        return Ok(
            by(&ECDSA_P256_SHA256_FIXED, point, signature) || by(&ECDSA_P256_SHA256_ASN1, point, signature)
        );
    }
    let point = key.strip_prefix(&P384).ok_or("its public key is neither of P-256 nor of P-384")?;
    let in_asn1 = if signature.len() == P384_SIGNATURE_BYTES { &asn1(signature) } else { signature };
    Ok(by(&ECDSA_P384_SHA256_ASN1, point, in_asn1))
}

/// Returns a signature of two halves in ASN.1: a sequence of two numbers (RFC 3279, section 2.2.3).
fn asn1(signature: &[u8]) -> Vec<u8> {
    let number = |half: &[u8]| {
        let mut digits: Vec<u8> = half.iter().copied().skip_while(|digit| *digit == 0).collect();
        // A number whose first bit is set would be negative.
        if digits.first().is_none_or(|first| first & 0x80 != 0) {
            digits.insert(0, 0);
        }
        [&[2, digits.len() as u8][..], &digits].concat()
    };
    let (left, right) = signature.split_at(signature.len() / 2);
    let numbers = [number(left), number(right)].concat();
    [&[0x30, numbers.len() as u8][..], &numbers].concat()
}

/// Whether a certificate was a domain's at a time.
fn proves(
    leaf: &EndEntityCert<'_>,
    others: &[CertificateDer<'_>],
    domain: &str,
    created: Option<DateTime<Utc>>,
) -> Result<(), String> {
    let name = ServerName::try_from(domain).map_err(|_| "that is no domain".to_owned())?;
    let seconds = created.and_then(|time| u64::try_from(time.timestamp()).ok());
    let seconds = seconds.ok_or("the package does not say when it was made")?;
    let time = UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds));
    let (roots, usage) = (webpki_roots::TLS_SERVER_ROOTS, KeyUsage::server_auth());
    leaf.verify_for_usage(ALL_VERIFICATION_ALGS, roots, others, time, usage, None, None)
        .map_err(|error| format!("at that time no known authority vouched for it ({error})"))?;
    leaf.verify_is_valid_for_subject_name(&name).map_err(|error| error.to_string())
}

/// Compares the files of a package with those that were signed. Files with records must be among these.
fn check_files<'n, R: Read + Seek, F: Read + 'static>(
    package: &mut ZipArchive<R>,
    signed: &[SignedFile],
    names: impl Iterator<Item = &'n str>,
    open: &impl Fn(Range<u64>) -> io::Result<F>,
) -> Result<(), String> {
    let signed: HashMap<&str, &str> =
        signed.iter().map(|file| (file.path.as_str(), file.hash.as_str())).collect();
    for name in names {
        if !signed.contains_key(name) {
            return Err(format!("its file {name} is not among those that were signed"));
        }
    }
    for (path, hash) in signed {
        let stated: Digest =
            hash.parse().map_err(|_| format!("the hash of its file {path} cannot be read"))?;
        let hashed = open_file(package, path, open)
            .and_then(|file| hash_of(file).map_err(|error| format!("it cannot be read: {error}")));
        let hashed = hashed.map_err(|why| format!("its file {path}: {why}"))?;
        if hashed != stated {
            return Err(format!("the hash of its file {path} is wrong: it is not what was signed"));
        }
    }
    Ok(())
}

fn hash_of(mut bytes: impl Read) -> io::Result<Digest> {
    let (mut hasher, mut buffer) = (Sha256::new(), vec![0; HASHED_BYTES]);
    loop {
        let count = bytes.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        hasher.update(buffer.get(..count).unwrap_or_default());
    }
    Ok(Digest::from_sha256(hasher.finalize().into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is signed: the digest of nothing. Keys and signatures were made by Python's `cryptography`.
    const SIGNED: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    /// A key of P-384 and of P-256, each with its signatures in ASN.1 and in two halves.
    const KEYS: [[&str; 3]; 2] = [
        [
            "MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAEW0dlIdHsILfS/vobEYEyUe3tiQ3z0+0aH4jBI+gqmg6jZp4YAJ06RkHm5d\
             SrfP0XQgoPykQHwSPsU/LencufnDX/inLgsi8d4lUTW9fLAYPLnP5hgn0ZQirbWOHgsfZE",
            "MGUCMBM0T3g5DCD0T9fQHdpvtUiQvtwvY4AhxKEuDmntCME72+SXP8kUsBHeCQ1UYWLmRAIxAJ153wMIZwVEVucnXr\
             TpqwTKKnmqFqZgdFSyd4aZrTO7A9xjlO638TfwduaGFf1tyw==",
            "EzRPeDkMIPRP19Ad2m+1SJC+3C9jgCHEoS4Oae0IwTvb5Jc/yRSwEd4JDVRhYuZEnXnfAwhnBURW5ydetOmrBMoqea\
             oWpmB0VLJ3hpmtM7sD3GOU7rfxN/B25oYV/W3L",
        ],
        [
            "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEyy37PiIx/Bs5oEYuojnF4Vl6TBE8bd9q2rpEw8V47JiqvHRqcXHdIN\
             NHGiMmHDWU/QfXUU0kfkQ0NnrOaJf88w==",
            "MEUCIQDwUg0o1MJz/K3jnKNEgudxwaZH/iZKDdppe7d6lG3c1wIgDedH5tK7i+uhfFbFkMxz9rU1wbMz7Nc1sSBZvZ\
             pSZAs=",
            "8FINKNTCc/yt45yjRILnccGmR/4mSg3aaXu3epRt3NcN50fm0ruL66F8VsWQzHP2tTXBszPs1zWxIFm9mlJkCw==",
        ],
    ];
    const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\n\
        MIIBLzCB1aADAgECAgEBMAoGCCqGSM49BAMCMBQxEjAQBgNVBAMMCXNpZ24udGVz\n\
        dDAeFw0yNDAxMDEwMDAwMDBaFw0zNDAxMDEwMDAwMDBaMBQxEjAQBgNVBAMMCXNp\n\
        Z24udGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABL3RzIOiXxFExkSuXvZa\n\
        FdzzGxD+qNQrCPz5Us2yZ7X+rNAeNysjNFxtgStgN1IkMoJ3dMrjDtdQOVz3efWm\n\
        vzOjGDAWMBQGA1UdEQQNMAuCCXNpZ24udGVzdDAKBggqhkjOPQQDAgNJADBGAiEA\n\
        1aTW9qot8mNW/qqXdqLAuEQa6A7jKcUq3nXBPZO6804CIQD73bVsrmXFlcnj97Mb\n\
        89eyCaGFBJao0YjKZBOz/tYPEw==\n\
        -----END CERTIFICATE-----";
    const BY_CERTIFICATE: &str = "MEUCIQDckuFhpl9h+J0ZpaPVAFHn4HQty6Y/opnS956UyJ+8OQIgbzw36LaFhiqVbQe/HgVdNPA/290VyUHyx03RNl\
        d54Io=";

    fn signed(signature: &str, more: &str) -> SignedData {
        let json = format!(r#"{{"hash": "{SIGNED}", "signature": "{signature}"{more}}}"#);
        serde_json::from_str(&json).unwrap()
    }

    #[test]
    fn signatures_of_all_tools_are_verified() {
        for [key, asn1, halves] in KEYS {
            let public = format!(r#", "publicKey": "{key}""#);
            let fingerprint = Digest::sha256(&STANDARD.decode(key).unwrap());
            for signature in [asn1, halves] {
                let right = signed(signature, &public).signer(None);
                assert_eq!(right, Ok(format!("the key {fingerprint}")));
                let mut wrong = signed(signature, &public);
                wrong.hash = wrong.hash.replace('e', "f");
                assert_eq!(wrong.signer(None), Err("its signature is wrong".to_owned()));
            }
        }
        let other = signed(KEYS[1][2], r#", "publicKey": "AAAA""#).signer(None);
        assert_eq!(other, Err("its public key is neither of P-256 nor of P-384".to_owned()));
        assert_eq!(
            signed("AAAA", "").signer(None),
            Err("it names neither a key nor a certificate".to_owned())
        );
    }

    #[test]
    fn a_domain_is_said_to_be_unproven_unless_an_authority_vouched_for_it() {
        let certificate = serde_json::to_string(CERTIFICATE).unwrap();
        let more = format!(r#", "domain": "sign.test", "domainCert": {certificate}"#);
        let created = "2024-02-01T00:00:00Z".parse().ok();
        let who = signed(BY_CERTIFICATE, &more).signer(created).unwrap();
        let begins = "the certificate sha256:";
        let claims =
            "which is not proven to be of \"sign.test\", as it claims: at that time no known authority";
        assert!(who.starts_with(begins) && who.contains(claims), "{who}");
        assert_eq!(signed(KEYS[1][1], &more).signer(created), Err("its signature is wrong".to_owned()));
    }

    #[test]
    fn halves_become_numbers() {
        assert_eq!(asn1(&[0, 1, 0x80, 0]), [0x30, 8, 2, 1, 1, 2, 3, 0, 0x80, 0]);
        assert_eq!(asn1(&[0, 0, 0x7F, 1]), [0x30, 7, 2, 1, 0, 2, 2, 0x7F, 1]);
    }
}
