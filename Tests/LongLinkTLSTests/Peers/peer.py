# SPDX-License-Identifier: Apache-2.0
"""A client or a server of TLS that Python's own module makes.

peer.py call PORT AUTHORITY HEX: connects, sends the bytes, and prints what comes until the end.
peer.py serve CHAIN KEY HEX: prints its port, and answers the first bytes of one client with these.
"""
import socket
import ssl
import sys


def call(port, authority, message):
    context = ssl.create_default_context(cafile=authority)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols(["longlink/1"])
    with socket.create_connection(("127.0.0.1", int(port))) as plain:
        with context.wrap_socket(plain, server_hostname="127.0.0.1") as stream:
            print(stream.version(), stream.selected_alpn_protocol(), flush=True)
            stream.sendall(bytes.fromhex(message))
            while True:
                received = stream.recv(65536)
                if not received:
                    break
                print(received.hex(), flush=True)
    print("end", flush=True)


def serve(chain, key, message):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_cert_chain(chain, key)
    context.set_alpn_protocols(["longlink/1"])
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print("port", listener.getsockname()[1], flush=True)
        plain, _ = listener.accept()
        with context.wrap_socket(plain, server_side=True) as stream:
            print(stream.version(), stream.selected_alpn_protocol(), flush=True)
            stream.recv(65536)
            stream.sendall(bytes.fromhex(message))
            while stream.recv(65536):
                pass
    print("end", flush=True)


{"call": call, "serve": serve}[sys.argv[1]](*sys.argv[2:])
