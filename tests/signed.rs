//! Signed packages (WACZ): who signed them is said, and what is not what was signed is not imported.

use std::io::{Cursor, Write as _};

use archive_storage::Digest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use zip::CompressionMethod;
use zip::write::SimpleFileOptions;

use crate::support::Archive;
use crate::support::program::start;
use crate::support::warc::response;

/// What is written after a package was signed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tampering {
    Nothing,
    Records,
    Description,
    Signature,
    FurtherRecords,
    NoFile,
}

/// Returns a package with one capture of a URL.
fn package(url: &str, tampering: Tampering) -> Vec<u8> {
    let records = response(&format!("urn:{url}"), url, "2024-01-31T10:00:00Z", "<title>A</title>");
    let description = json!({
        "profile": "data-package",
        "created": "2024-02-01T00:00:00Z",
        "resources": [{"path": "archive/a.warc", "hash": Digest::sha256(&records).to_string(), "bytes": records.len()}],
    });
    let mut description = description.to_string();
    let hash = Digest::sha256(description.as_bytes()).to_string();
    let random = SystemRandom::new();
    let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
    let key = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
    let key = EcdsaKeyPair::from_pkcs8(algorithm, key.as_ref(), &random).unwrap();
    let signed = if tampering == Tampering::Signature { "another hash" } else { &hash };
    let signature = key.sign(&random, signed.as_bytes()).unwrap();
    // The form of a certificate's key, for P-256.
    let head = STANDARD.decode("MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgA=").unwrap();
    let public = [&head[..], key.public_key().as_ref()].concat();
    let digest = json!({
        "path": "datapackage.json",
        "hash": hash,
        "signedData": {
            "hash": hash,
            "created": "2024-02-01T00:00:00Z",
            "software": "a test",
            "signature": STANDARD.encode(signature),
            "publicKey": STANDARD.encode(public),
        },
    })
    .to_string();
    if tampering == Tampering::Description {
        description = description.replace("2024-02-01", "2023-02-01");
    }
    let is_other = tampering == Tampering::Records;
    let records = if is_other {
        String::from_utf8(records).unwrap().replace(">A<", ">B<").into_bytes()
    } else {
        records
    };
    let further = response("urn:further", "http://further.test/", "2024-01-31T10:00:00Z", "x");
    let mut files = vec![
        ("datapackage.json", description.into_bytes()),
        ("datapackage-digest.json", digest.into_bytes()),
    ];
    match tampering {
        Tampering::NoFile => {}
        Tampering::FurtherRecords => files.extend([("archive/a.warc", records), ("archive/b.warc", further)]),
        _ => files.push(("archive/a.warc", records)),
    }
    zipped(&files)
}

fn zipped(files: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for (name, content) in files {
        zip.start_file(*name, stored).unwrap();
        zip.write_all(content).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// Imports a package; returns the exit code, the number of captures, and what is said of the package.
fn import(package: &[u8], more: &[&str]) -> (Option<i32>, u64, Vec<String>) {
    let archive = Archive::new();
    let file = archive.file("a.wacz", package);
    let finished = start(archive.command("import").arg("--json").args(more).arg(file)).wait();
    let mut lines: Vec<Value> = finished.json();
    let summary = lines.pop().unwrap_or_else(|| panic!("{}", finished.errors));
    let said = lines.iter().filter(|line| ["signature", "file"].contains(&line["kind"].as_str().unwrap()));
    let said = said.map(|line| {
        let file = line["file"].as_str().unwrap();
        format!("{}: {}", file.rsplit("a.wacz").next().unwrap(), line["what"].as_str().unwrap())
    });
    (finished.code, summary["captures"].as_u64().unwrap(), said.collect())
}

#[test]
fn it_is_said_who_signed_a_package() {
    let (code, captures, said) = import(&package("http://a.test/", Tampering::Nothing), &[]);
    assert_eq!((code, captures, said.len()), (Some(0), 1, 1), "{said:?}");
    let begins = ": its signature and the hashes of its files are right: signed by the key sha256:";
    assert!(
        said[0].starts_with(begins) && said[0].ends_with(", made on 2024-02-01T00:00:00Z as it says"),
        "{said:?}"
    );
    // A package of packages tells of each.
    let inner = package("http://b.test/", Tampering::Nothing);
    let (code, captures, said) = import(&zipped(&[("archive/b.wacz", inner)]), &[]);
    assert_eq!((code, captures, said.len()), (Some(0), 1, 1), "{said:?}");
    assert!(said[0].starts_with("/archive/b.wacz: its signature"), "{said:?}");
}

#[test]
fn what_is_not_what_was_signed_is_not_imported() {
    for (tampering, expected) in [
        (Tampering::Signature, "its signature is wrong"),
        (Tampering::Description, "its hash is wrong: datapackage.json is not what was signed"),
        (Tampering::Records, "the hash of its file archive/a.warc is wrong: it is not what was signed"),
        (Tampering::FurtherRecords, "its file archive/b.warc is not among those that were signed"),
    ] {
        let file = package("http://a.test/", tampering);
        let (code, captures, said) = import(&file, &[]);
        assert_eq!((code, captures), (Some(1), 0), "{said:?}");
        let refused = format!(": {expected}; nothing of it is imported without --accept-wrong-signatures");
        assert_eq!(said, [refused]);
        let (code, captures, said) = import(&file, &["--accept-wrong-signatures"]);
        let count = if tampering == Tampering::FurtherRecords { 2 } else { 1 };
        assert_eq!((code, captures), (Some(0), count), "{said:?}");
        assert_eq!(said, [format!(": {expected}; imported all the same")]);
    }
    // An archive in a package whose other packages are as they were signed.
    let good = package("http://a.test/", Tampering::Nothing);
    let both = zipped(&[("a.wacz", good), ("b.wacz", package("http://b.test/", Tampering::Signature))]);
    let (code, captures, said) = import(&both, &[]);
    assert_eq!((code, captures, said.len()), (Some(1), 1, 2), "{said:?}");
    let (_, captures, said) = import(&package("http://a.test/", Tampering::NoFile), &[]);
    assert_eq!(
        (captures, said[0].starts_with(": its file archive/a.warc: it is not there; nothing")),
        (0, true),
        "{said:?}"
    );
}
