#!/usr/bin/env bash
# Set-up on Debian: what is missing is installed when there is the right to, else named in one line.
#   mk/deps.sh BUILD_DIR      DEPS=manual never installs.  CUDA_HOME names a CUDA Toolkit.
set -euo pipefail
build=$1
packages=(gcc libc6-dev libhiredis-dev libmsgpack-dev libcurl4-openssl-dev libjansson-dev libopenblas-dev
  libseccomp-dev libssl-dev libutf8proc-dev libzip-dev zlib1g-dev libmicrohttpd-dev libcmocka-dev redis-server
  perl procps python3 bc  # for the tests: prove, pgrep, a server that misbehaves, sums
  clang-format help2man)  # for make lint and make install

missing=()
for p in "${packages[@]}"; do
  dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing+=("$p")
done

cuda_home() {
  for d in "${CUDA_HOME:-}" /usr/local/cuda /opt/cuda /usr/lib/cuda; do
    [ -n "$d" ] && ls "$d"/lib64/libnvrtc.so* >/dev/null 2>&1 && [ -f "$d/include/cuda_fp16.h" ] &&
      { echo "$d"; return; }
  done
  return 1
}

wheels=no
if ! cuda_home >/dev/null && [ ! -e "$build/cuda/include/cuda_fp16.h" ]; then
  wheels=yes
  python3 -m pip --version >/dev/null 2>&1 || missing+=(python3-pip)
fi

# CUTLASS's headers, which candidates may include: this version alone.
cutlass=nvidia-cutlass==4.2.0.0
digest=f9599ada45c7bcb6bf53f7d3f0a7d154183e53451c01bfa59eecd37dd4a693f6
want_cutlass=no
[ "$(cat "$build/cutlass/digest" 2>&1)" = $digest ] || want_cutlass=yes

if [ ${#missing[@]} -gt 0 ]; then
  line="apt-get install -y --no-install-recommends ${missing[*]}"
  if [ "${DEPS:-auto}" = manual ]; then sudo=none
  elif [ "$(id -u)" = 0 ]; then sudo=
  elif sudo -n true 2>/dev/null; then sudo="sudo -n"
  else sudo=none; fi
  if [ "$sudo" = none ]; then
    echo "quern: packages are missing; install them with: $line" >&2
    exit 1
  fi
  echo "installing ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  { $sudo apt-get -q update && $sudo $line; } >"$build/deps.log" 2>&1 ||
    {
      tail -5 "$build/deps.log" >&2; echo "quern: the installation failed (log: $build/deps.log): $line" >&2
      exit 1
    }
fi

if [ "$wheels" = yes ]; then
  names="nvidia-cuda-nvrtc nvidia-cuda-runtime nvidia-cuda-crt nvidia-cuda-cccl"
  if [ "${DEPS:-auto}" = manual ]; then
    echo "quern: no CUDA Toolkit found (CUDA_HOME); get NVRTC with:" \
      "python3 -m pip install --target DIR $names" >&2
    exit 1
  fi
  echo "no CUDA Toolkit found: taking NVRTC and the CUDA headers from NVIDIA's wheels"
  rm -rf "$build/cuda.tmp"
  python3 -m pip install -q --no-deps --target "$build/cuda.tmp" $names >"$build/cuda.log" 2>&1 ||
    {
      tail -3 "$build/cuda.log" >&2; echo "quern: the wheels could not be fetched (log: $build/cuda.log)" >&2
      exit 1
    }
  rm -rf "$build/cuda"
  mv "$build"/cuda.tmp/nvidia/cu* "$build/cuda"
  rm -rf "$build/cuda.tmp"
fi

# Without them all else works: sources that include them are refused.
if [ "$want_cutlass" = yes ]; then
  if [ "${DEPS:-auto}" = manual ]; then
    echo "quern: CUTLASS's headers are not here; to have them, unpack the wheel $cutlass and link" \
      "cutlass_library/source/include to $build/cutlass/include" >&2
    exit 0
  fi
  echo "taking CUTLASS's headers from NVIDIA's wheel"
  rm -rf "$build/cutlass.tmp"
  mkdir -p "$build/cutlass.tmp/new"
  echo "$cutlass --hash=sha256:$digest" >"$build/cutlass.tmp/wheel"
  if python3 -m pip install -q --no-deps --no-compile --require-hashes \
    --target "$build/cutlass.tmp/all" -r "$build/cutlass.tmp/wheel" >"$build/cutlass.log" 2>&1; then
    mv "$build"/cutlass.tmp/all/cutlass_library/source/include "$build/cutlass.tmp/new/"
    cp "$build"/cutlass.tmp/all/nvidia_cutlass-*/licenses/LICENSE.txt "$build/cutlass.tmp/new/"
    echo $digest >"$build/cutlass.tmp/new/digest"
    rm -rf "$build/cutlass"
    mv "$build/cutlass.tmp/new" "$build/cutlass"
  else
    tail -3 "$build/cutlass.log" >&2
    echo "quern: CUTLASS's headers could not be fetched (log: $build/cutlass.log): sources that include" \
      "them will not compile; make deps tries again" >&2
  fi
  rm -rf "$build/cutlass.tmp"
fi
