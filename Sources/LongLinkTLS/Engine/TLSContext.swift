// SPDX-License-Identifier: Apache-2.0

internal import CLongLinkTLS
internal import LongLinkCore

/// What the connections of a client or a server share: certificates, keys and rules.
///
/// It is built by one thread and never changed afterwards. OpenSSL counts the references to it with
/// atomic operations, and has locks where connections of several threads use it.
@safe final class TLSContext: @unchecked Sendable {
  /// Only this object frees it.
  private let context: OpaquePointer
  /// The ticket keys that the context uses, retained as long as it lives.
  private let keys: TLSTicketKeys?

  struct Problem: Error {
    /// What was wrong.
    let text: String
    /// Whether the problem was with the key of an identity.
    var isOfKey = false

    init(_ text: String, isOfKey: Bool = false) {
      self.text = text
      self.isOfKey = isOfKey
    }

    fileprivate init(_ problem: cll_tls_problem, isOfKey: Bool = false) {
      self.isOfKey = isOfKey
      text = unsafe withUnsafeBytes(of: problem.text) { bytes in
        unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
    }
  }

  /// Makes a context without certificates. Without ticket keys, a server issues no tickets.
  init(_ options: cll_tls_options, keys: TLSTicketKeys?) throws(Problem) {
    var options = options
    var problem = cll_tls_problem()
    guard let context = unsafe cll_tls_context_new(&options, &problem) else {
      throw Problem(problem)
    }
    unsafe self.context = context
    self.keys = keys
    if options.is_server {
      unsafe cll_tls_context_set_keys(context, keys?.pointer)
    }
  }

  deinit {
    unsafe cll_tls_context_free(context)
  }

  func withPointer<Result>(_ body: (OpaquePointer) -> Result) -> Result {
    unsafe body(context)
  }

  // MARK: Building

  func addSystemRoots() throws(Problem) {
    var problem = cll_tls_problem()
    guard unsafe cll_tls_context_add_system_roots(context, &problem) else {
      throw Problem(problem)
    }
  }

  func addRoots(_ pem: [UInt8]) throws(Problem) {
    var problem = cll_tls_problem()
    let count = unsafe pem.withUnsafeBufferPointer {
      unsafe cll_tls_context_add_roots(context, $0.baseAddress, $0.count, &problem)
    }
    guard count >= 0 else { throw Problem(problem) }
  }

  func addRevocations(_ pem: [UInt8]) throws(Problem) {
    var problem = cll_tls_problem()
    let count = unsafe pem.withUnsafeBufferPointer {
      unsafe cll_tls_context_add_lists(context, $0.baseAddress, $0.count, &problem)
    }
    guard count >= 0 else { throw Problem(problem) }
    unsafe cll_tls_context_judge_lists(context)
  }

  /// Adds a certificate with its chain, and its key, as PEM.
  func addIdentity(chain: [UInt8], key: [UInt8], password: String?) throws(Problem) {
    var problem = cll_tls_problem()
    let part = unsafe chain.withUnsafeBufferPointer { chain in
      unsafe key.withUnsafeBufferPointer { key in
        unsafe cll_tls_context_add_identity(
          context, chain.baseAddress, chain.count, key.baseAddress, key.count, password, &problem)
      }
    }
    guard part == CLL_PART_NONE.rawValue else {
      throw Problem(problem, isOfKey: part == CLL_PART_KEY.rawValue)
    }
  }

  /// Sets the scope, of at most 32 bytes. A ticket is accepted only in a context of the same scope.
  func setScope(_ scope: [UInt8]) {
    let isSet = unsafe scope.withUnsafeBufferPointer {
      unsafe cll_tls_context_set_scope(context, $0.baseAddress, $0.count)
    }
    precondition(isSet, "a scope has at most 32 bytes")
  }

  /// Demands that a verified chain contains a key with one of these SHA-256 hashes of 32 bytes.
  /// With `audits`, a chain without one is accepted, and `hasMissedPin` is set. From `end` on, in
  /// seconds since 1970, any key is accepted.
  func setPins(_ hashes: [[UInt8]], audits: Bool, end: Int64) {
    for hash in hashes {
      precondition(hash.count == 32, "a hash has 32 bytes")
      let isAdded = unsafe hash.withUnsafeBufferPointer {
        unsafe cll_tls_context_add_pin(context, $0.baseAddress)
      }
      precondition(isAdded, "there is no memory for a pin")
    }
    unsafe cll_tls_context_set_pins(context, audits, end)
  }

  // MARK: Certificates

  /// The number of this side's certificates.
  var identityCount: Int { unsafe cll_tls_context_identities(context) }

  /// The SHA-256 hash of the public key of this side's certificate at an index, as `setPins` takes
  /// it.
  func keyHash(_ index: Int) -> [UInt8] {
    var hash = [UInt8](repeating: 0, count: 32)
    let isDone = unsafe hash.withUnsafeMutableBufferPointer {
      unsafe cll_certificate_key_hash(cll_tls_context_identity(context, index), $0.baseAddress)
    }
    precondition(isDone, "there is no memory for a key")
    return hash
  }

  /// Returns this side's certificate at an index, and the earliest expiry in its chain, in seconds
  /// since 1970.
  func identity(_ index: Int) -> (certificate: PeerCertificate, expiry: Int64) {
    unsafe (
      PeerCertificate(cll_tls_context_identity(context, index)),
      cll_tls_context_expiry(context, index)
    )
  }
}

/// The keys that a server's tickets are encrypted with. They can be replaced at any time.
@safe final class TLSTicketKeys: @unchecked Sendable {
  /// The number of bytes of a key.
  static let size = Int(CLL_TLS_KEY_SIZE)
  /// The maximum number of keys.
  static let most = Int(CLL_TLS_MOST_KEYS)
  /// The lock is in the C object that this points to.
  fileprivate let pointer: OpaquePointer

  /// Makes an empty set, with which no ticket is issued.
  init() {
    guard let keys = unsafe cll_tls_keys_new() else { fatalError("there is no memory for keys") }
    unsafe pointer = keys
  }

  deinit {
    unsafe cll_tls_keys_free(pointer)
  }

  /// Replaces the keys. The first encrypts new tickets; all of them decrypt.
  func set(_ keys: [[UInt8]]) {
    let bytes = Array(keys.joined())
    precondition(bytes.count == keys.count * TLSTicketKeys.size, "a key has 80 bytes")
    let isSet = unsafe bytes.withUnsafeBufferPointer {
      unsafe cll_tls_keys_set(pointer, $0.baseAddress, keys.count)
    }
    precondition(isSet, "there are 1 to 16 keys")
  }

  /// Returns a new key.
  static func random() -> [UInt8] {
    var key = [UInt8](repeating: 0, count: size)
    let isDone = unsafe key.withUnsafeMutableBufferPointer {
      unsafe cll_tls_random($0.baseAddress, $0.count)
    }
    precondition(isDone, "the system gives no random numbers")
    return key
  }
}
