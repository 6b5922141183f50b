// SPDX-License-Identifier: Apache-2.0

package import LongLinkCore

// The messages of `Protocols/upload_store.proto`, which says what their fields mean.

/// The file `.unfinished/ID/upload`, written once.
package struct StoredUpload: UploadMessage {
  package var request: CreateRequest?
  package var principal = ""

  package init() {}

  package init(request: CreateRequest? = nil, principal: String = "") {
    self.request = request
    self.principal = principal
  }

  package mutating func code(_ coder: inout some FieldCoder & ~Copyable) throws(BodyError) {
    try coder.field(1, &request)
    try coder.field(2, &principal)
  }
}

/// The content of a slot of the file `.unfinished/ID/state`.
package struct StoredState: UploadMessage {
  package var number: UInt64 = 0
  package var generation: UInt64 = 0
  package var offset: UInt64 = 0
  package var expiresAtMs: UInt64 = 0
  package var sha256: [UInt8] = []

  package init() {}

  package init(
    number: UInt64 = 0, generation: UInt64 = 0, offset: UInt64 = 0, expiresAtMs: UInt64 = 0,
    sha256: [UInt8] = []
  ) {
    self.number = number
    self.generation = generation
    self.offset = offset
    self.expiresAtMs = expiresAtMs
    self.sha256 = sha256
  }

  package mutating func code(_ coder: inout some FieldCoder & ~Copyable) throws(BodyError) {
    try coder.field(1, &number)
    try coder.field(2, &generation)
    try coder.field(3, &offset)
    try coder.field(4, &expiresAtMs)
    try coder.field(5, &sha256)
  }
}

/// The file `.finished/ID`: the data to answer repeated requests about a finished upload.
package struct StoredFinish: UploadMessage {
  package var names: [String] = []
  package var generation: UInt64 = 0
  package var size: UInt64 = 0
  package var sha256: [UInt8] = []
  package var expiresAtMs: UInt64 = 0
  package var key = ""
  package var partsSha256: [UInt8] = []
  package var principal = ""

  package init() {}

  package init(
    names: [String] = [], generation: UInt64 = 0, size: UInt64 = 0, sha256: [UInt8] = [],
    expiresAtMs: UInt64 = 0, key: String = "", partsSha256: [UInt8] = [], principal: String = ""
  ) {
    self.names = names
    self.generation = generation
    self.size = size
    self.sha256 = sha256
    self.expiresAtMs = expiresAtMs
    self.key = key
    self.partsSha256 = partsSha256
    self.principal = principal
  }

  package mutating func code(_ coder: inout some FieldCoder & ~Copyable) throws(BodyError) {
    try coder.field(1, &names)
    try coder.field(2, &generation)
    try coder.field(3, &size)
    try coder.field(4, &sha256)
    try coder.field(5, &expiresAtMs)
    try coder.field(6, &key)
    try coder.field(7, &partsSha256)
    try coder.field(8, &principal)
  }
}
