#!/bin/sh
# Runs a command where a whole cluster can be started: as root, in network, mount and process namespaces of its own,
# whose end takes every process, address, rule and mount with it.
set -eu
[ "$(id -u)" = 0 ] || { echo "a cluster with running pods needs root" >&2; exit 2; }
for tool in containerd runc iptables openssl redis-server; do
    command -v "$tool" >/dev/null || missing="${missing:-} $tool"
done
[ -e /usr/lib/cni/bridge ] || missing="${missing:-} containernetworking-plugins"
if [ -n "${missing:-}" ]; then
    echo "missing:$missing; apt-get install --no-install-recommends" \
        "containerd runc containernetworking-plugins iptables openssl redis-server" >&2
    exit 2
fi
export TPU_RAY_CLUSTER_NAMESPACE=1
exec unshare --net --mount --pid --fork --kill-child --mount-proc "$@"
