// SPDX-License-Identifier: Apache-2.0
#ifndef LONGLINK_CCRYPTO_SHIM_H
#define LONGLINK_CCRYPTO_SHIM_H

#include <openssl/evp.h>

#endif
