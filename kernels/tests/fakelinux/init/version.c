// SPDX-License-Identifier: GPL-2.0-only
#include <generated/utsrelease.h>

const char linux_banner[] = "Linux version " UTS_RELEASE " (kperflab@kperflab)";
