// SPDX-License-Identifier: Apache-2.0
#ifndef LONGLINK_CZLIB_SHIM_H
#define LONGLINK_CZLIB_SHIM_H

#include <zlib.h>

#endif
