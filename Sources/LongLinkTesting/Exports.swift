// Tests speak of message types, codes, addresses and event loops without importing more modules.
@_exported public import LongLinkCore
@_exported public import LongLinkTransport
