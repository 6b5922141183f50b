// SPDX-License-Identifier: Apache-2.0

internal import COpenSSL

/// Makes keys and certificates for tests and trials. Nothing that it makes should guard anything.
package enum CertificateKit {
  /// Makes a key and a certificate, signed by `issuer`, or by itself if `issuer` is nil.
  ///
  /// Traps if the request is impossible.
  package static func make(
    _ request: CertificateRequest, issuer: CertificatePair? = nil
  ) -> CertificatePair {
    let key = unsafe makeKey(request.keyKind)
    defer { unsafe EVP_PKEY_free(key) }
    let certificate = unsafe X509_new()
    defer { unsafe X509_free(certificate) }
    let signer = unsafe issuer.map { unsafe (readCertificate(of: $0), readKey(of: $0)) }
    defer {
      unsafe X509_free(signer?.0)
      unsafe EVP_PKEY_free(signer?.1)
    }
    unsafe fill(certificate, request, key: key, issuer: signer?.0 ?? certificate)
    unsafe check(X509_sign(certificate, signer?.1 ?? key, digest(for: signer?.1 ?? key)) > 0)
    let cipher = unsafe request.password == nil ? nil : EVP_aes_256_cbc()
    return CertificatePair(
      certificate: unsafe written { unsafe PEM_write_bio_X509($0, certificate) },
      key: unsafe written {
        unsafe PEM_write_bio_PKCS8PrivateKey(
          $0, key, cipher, request.password, CInt(request.password?.utf8.count ?? 0), nil, nil)
      })
  }

  /// Makes a list of serials that an authority has revoked, as PEM.
  package static func revocations(
    of serials: [UInt64], by issuer: CertificatePair, validity: Range<Int64>
  ) -> [UInt8] {
    let (authority, key) = unsafe (readCertificate(of: issuer), readKey(of: issuer))
    let list = unsafe X509_CRL_new()
    let updated = unsafe ASN1_TIME_set(nil, time_t(validity.lowerBound))
    let nextUpdate = unsafe ASN1_TIME_set(nil, time_t(validity.upperBound))
    let number = unsafe ASN1_INTEGER_new()
    defer {
      unsafe X509_free(authority)
      unsafe EVP_PKEY_free(key)
      unsafe X509_CRL_free(list)
      unsafe ASN1_STRING_free(updated)
      unsafe ASN1_STRING_free(nextUpdate)
      unsafe ASN1_INTEGER_free(number)
    }
    // The version is the second.
    unsafe check(X509_CRL_set_version(list, 1) == 1)
    unsafe check(X509_CRL_set_issuer_name(list, X509_get_subject_name(authority)) == 1)
    unsafe check(X509_CRL_set1_lastUpdate(list, updated) == 1)
    unsafe check(X509_CRL_set1_nextUpdate(list, nextUpdate) == 1)
    for serial in serials {
      // The list owns it from then on.
      let entry = unsafe X509_REVOKED_new()
      unsafe check(ASN1_INTEGER_set_uint64(number, serial) == 1)
      unsafe check(X509_REVOKED_set_serialNumber(entry, number) == 1)
      unsafe check(X509_REVOKED_set_revocationDate(entry, updated) == 1)
      unsafe check(X509_CRL_add0_revoked(list, entry) == 1)
    }
    unsafe check(X509_CRL_sort(list) == 1)
    unsafe check(X509_CRL_sign(list, key, digest(for: key)) > 0)
    return unsafe written { unsafe PEM_write_bio_X509_CRL($0, list) }
  }

  private static func check(_ isDone: Bool) {
    precondition(isDone, "OpenSSL cannot make this")
  }

  private static func makeKey(_ kind: CertificateRequest.KeyKind) -> OpaquePointer? {
    let algorithm =
      switch kind {
      case .ed25519: "ED25519"
      case .p256: "EC"
      case .rsa: "RSA"
      }
    let context = unsafe EVP_PKEY_CTX_new_from_name(nil, algorithm, nil)
    defer { unsafe EVP_PKEY_CTX_free(context) }
    var key: OpaquePointer?
    unsafe check(EVP_PKEY_keygen_init(context) == 1)
    if kind == .p256 { unsafe check(EVP_PKEY_CTX_set_group_name(context, "P-256") == 1) }
    if kind == .rsa { unsafe check(EVP_PKEY_CTX_set_rsa_keygen_bits(context, 2_048) == 1) }
    unsafe check(EVP_PKEY_generate(context, &key) == 1)
    return unsafe key
  }

  /// Ed25519 has its own.
  private static func digest(for key: OpaquePointer?) -> OpaquePointer? {
    unsafe EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519 ? nil : EVP_sha256()
  }

  private static func fill(
    _ certificate: OpaquePointer?, _ request: CertificateRequest, key: OpaquePointer?,
    issuer: OpaquePointer?
  ) {
    // The version is the third.
    unsafe check(X509_set_version(certificate, 2) == 1)
    unsafe check(
      ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), request.serial) == 1)
    unsafe check(
      X509_NAME_add_entry_by_txt(
        X509_get_subject_name(certificate), "CN", MBSTRING_FLAG, request.name, -1, -1, 0) == 1)
    unsafe check(X509_set_issuer_name(certificate, X509_get_subject_name(issuer)) == 1)
    let validity = request.validity
    unsafe check(
      ASN1_TIME_set(X509_getm_notBefore(certificate), time_t(validity.lowerBound)) != nil)
    unsafe check(
      ASN1_TIME_set(X509_getm_notAfter(certificate), time_t(validity.upperBound)) != nil)
    unsafe check(X509_set_pubkey(certificate, key) == 1)
    let isOwn = unsafe issuer == certificate
    let isAuthority = request.isAuthority
    let names = request.names.joined(separator: ",")
    let extensions: [(kind: CInt, value: String?)] = [
      (NID_basic_constraints, "critical,CA:\(isAuthority ? "TRUE" : "FALSE")"),
      (NID_key_usage, "critical,\(isAuthority ? "keyCertSign,cRLSign" : "digitalSignature")"),
      (NID_ext_key_usage, request.purpose?.rawValue),
      (NID_subject_alt_name, names.isEmpty ? nil : names),
      (NID_subject_key_identifier, "hash"),
      (NID_authority_key_identifier, isOwn ? nil : "keyid:always"),
    ]
    var context = unsafe X509V3_CTX()
    unsafe X509V3_set_ctx(&context, issuer, certificate, nil, nil, 0)
    for case (let kind, let value?) in extensions {
      let made = unsafe X509V3_EXT_conf_nid(nil, &context, kind, value)
      unsafe check(X509_add_ext(certificate, made, -1) == 1)
      unsafe X509_EXTENSION_free(made)
    }
  }

  // MARK: PEM

  private static func readCertificate(of pair: CertificatePair) -> OpaquePointer? {
    unsafe read(pair.certificate) { unsafe PEM_read_bio_X509($0, nil, nil, nil) }
  }

  /// The private key of a pair, which must not be encrypted.
  private static func readKey(of pair: CertificatePair) -> OpaquePointer? {
    unsafe read(pair.key) { unsafe PEM_read_bio_PrivateKey($0, nil, { _, _, _, _ in 0 }, nil) }
  }

  private static func read(
    _ pem: [UInt8], _ read: (OpaquePointer?) -> OpaquePointer?
  ) -> OpaquePointer? {
    let object = unsafe pem.withUnsafeBytes { bytes in
      let memory = unsafe BIO_new_mem_buf(bytes.baseAddress, CInt(bytes.count))
      defer { unsafe BIO_free(memory) }
      return unsafe read(memory)
    }
    unsafe check(object != nil)
    return unsafe object
  }

  /// What is written to a BIO.
  private static func written(_ write: (OpaquePointer?) -> CInt) -> [UInt8] {
    let memory = unsafe BIO_new(BIO_s_mem())
    defer { unsafe BIO_free(memory) }
    unsafe check(write(memory) == 1)
    var start: UnsafeMutableRawPointer?
    let count = unsafe BIO_ctrl(memory, BIO_CTRL_INFO, 0, &start)
    return unsafe [UInt8](UnsafeRawBufferPointer(start: start, count: count))
  }
}
