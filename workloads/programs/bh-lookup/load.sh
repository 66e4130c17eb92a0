# SPDX-License-Identifier: GPL-2.0-or-later
# load.sh MODULE loops=N blocks=LIST blocksize=512|device: loads the module with these parameters.
module=$1
shift
# To the module "as the kernel chose" is 0.
exec insmod "$module" device=/dev/loop0 "$1" "$2" "$(echo "$3" | sed s/device/0/)"
