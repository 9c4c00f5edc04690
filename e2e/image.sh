#!/usr/bin/env bash
# The container image, built and run without an engine: debootstrap stands in for python:3.11-slim, buildah builds and
# runs in a chroot. Asks the running image for /healthz and for one chat, runs its own health check, looks at who it runs
# as and at what it weighs. Also checks Prometheus' files with promtool. Debian or Ubuntu, as root.
#
# Work goes to .work/image (the stand-in is kept there); what is started is stopped by its pid.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

work=$PWD/.work/image
base=docker.io/library/python:3.11-slim
image=localhost/edgewise:test
python=.venv/bin/python
max_installed=120 # MB, of /opt/edgewise
mkdir -p "$work"

say() { printf 'image: %s\n' "$*"; }
fail() { say "FAILED: $*" >&2; exit 1; }
stored() { "$1" --root "$work/storage" --runroot "$work/runroot" --storage-driver vfs "${@:2}"; }
inside() { stored buildah run --isolation chroot --network host "$@"; }
configured() { # KEY...: a list of the image's configuration, one entry a line
  stored buildah inspect --type image "$image" |
    "$python" -c 'import functools, json, sys
config = json.load(sys.stdin)["Docker"]["config"]
print(*functools.reduce(dict.__getitem__, sys.argv[1:], config), sep="\n")' "$@"
}

cleanup() {
  [[ -z ${server:-} ]] || kill "$server" 2>/dev/null || true
  [[ -z ${container:-} ]] || stored buildah rm "$container" >/dev/null || true
  rm -rf "$work/storage" "$work/runroot"
}
trap cleanup EXIT

install_packages() {
  local missing=() package
  for package in buildah podman crun debootstrap; do
    dpkg -s "$package" >/dev/null 2>&1 || missing+=("$package")
  done
  if ((${#missing[@]})) || ! [[ -x $work/promtool ]]; then
    apt-get update -qq
  fi
  if ((${#missing[@]})); then
    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}" >"$work/apt.log"
  fi
  if ! [[ -x $work/promtool ]]; then # out of the package, so that no service starts
    (cd "$work" && apt-get download -qq -o APT::Sandbox::User=root prometheus && dpkg-deb -x prometheus_*.deb unpacked)
    mv "$work/unpacked/usr/bin/promtool" "$work/promtool"
    rm -rf "$work/unpacked" "$work"/prometheus_*.deb
  fi
}

# A base with what the Dockerfile needs of python:3.11-slim, and the certificates that this machine trusts.
make_base() {
  if ! [[ -f $work/base.tar ]]; then
    rm -rf "$work/rootfs"
    debootstrap --variant=minbase --include=ca-certificates,python3,python3-venv bookworm "$work/rootfs" >"$work/debootstrap.log"
    ln -s python3 "$work/rootfs/usr/bin/python"
    cp /etc/ssl/certs/ca-certificates.crt "$work/rootfs/etc/ssl/certs/ca-certificates.crt"
    printf '[global]\ncert = /etc/ssl/certs/ca-certificates.crt\n' >"$work/rootfs/etc/pip.conf"
    tar -C "$work/rootfs" --numeric-owner -cf "$work/base.tar" .
    rm -rf "$work/rootfs"
  fi
  stored podman import -q "$work/base.tar" "$base" >/dev/null
}

wait_for() { # URL
  for _ in $(seq 300); do
    if curl -fsS -o /dev/null "$1" 2>/dev/null; then
      return
    fi
    kill -0 "$runner" 2>/dev/null || fail "it ended: $(tail -n 5 "$work/serve.log")"
    sleep 0.1
  done
  fail "$1 does not answer"
}

install_packages
PATH=$work:$PATH "$python" tools/containers.py

say "building"
make_base
stored buildah bud --isolation chroot --network host --pull-never --format docker -q -t "$image" . >"$work/build.log" 2>&1 ||
  fail "the build: $(tail -n 20 "$work/build.log")"
container=$(stored buildah from --pull-never "$image")

[[ $(inside "$container" -- id -u) == 10001 ]] || fail "it does not run as uid 10001"
[[ $(inside "$container" -- id -un) == app ]] || fail "uid 10001 is not called app"
inside "$container" -- sh -c '! test -e /src && ! test -e /root/.cache && ! test -e /opt/edgewise/bin/pip' ||
  fail "what the build needed is left in the image"
installed=$(inside "$container" -- du -sm /opt/edgewise | cut -f1)
say "user app (10001); image $(stored buildah images --format '{{.Size}}' "$image"), /opt/edgewise $installed MB"
((installed <= max_installed)) || fail "/opt/edgewise is over $max_installed MB"

mapfile -t command < <(configured Entrypoint; configured Cmd)
[[ ${command[*]} == "edgewise serve" ]] || fail "it would start: ${command[*]}"

# As it comes it listens on every address, which takes an inbound key: without one it has to refuse.
if inside "$container" -- timeout 20 "${command[@]}" >"$work/refused.log" 2>&1; then
  fail "it started on 0.0.0.0 with neither an inbound key nor the flag"
fi
grep -q EDGEWISE_INBOUND_KEYS "$work/refused.log" || fail "the refusal does not name the setting: $(cat "$work/refused.log")"
say "refuses to listen beyond loopback without an inbound key"

port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
url=http://127.0.0.1:$port
inside --env EDGEWISE_HOST=127.0.0.1 --env "EDGEWISE_PORT=$port" "$container" -- \
  sh -c 'echo "pid $$"; exec "$@"' serve "${command[@]}" >"$work/serve.log" 2>&1 &
runner=$!
wait_for "$url/healthz"
server=$(sed -n 's/^pid //p' "$work/serve.log")
wait_for "$url/readyz"
[[ $(awk '/^Uid:/ {print $2}' "/proc/$server/status") == 10001 ]] || fail "the server does not run as uid 10001"
say "healthy and ready"

OPENAI_BASE_URL=$url/v1 OPENAI_API_KEY=sk-made-up "$python" docker/agent.py | sed 's/^/image: agent: /'

mapfile -t check < <(configured Healthcheck Test)
[[ ${check[0]} == CMD ]] || fail "the health check is no exec form: ${check[0]}"
inside --env "EDGEWISE_PORT=$port" "$container" -- "${check[@]:1}" || fail "its own health check"
say "its own health check passes"

kill -TERM "$server"
# uvicorn drains and then dies of the signal it was sent, as a supervisor expects; as PID 1 that is exit code 0.
wait "$runner" || grep -q 'subprocess exited on terminated' "$work/serve.log" || fail "it did not stop cleanly: $?"
server=
say "stopped cleanly on SIGTERM"
