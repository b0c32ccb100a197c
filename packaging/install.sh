#!/bin/sh
# Installs the program gridfusion for the current user: downloads the archive for this system, checks its SHA-256, and puts the program
# into ~/.local/bin. Needs no root. A release replaces the words between two @.
#
#     GRIDFUSION_INSTALL_DIR   the folder for the program, instead of ~/.local/bin
#     GRIDFUSION_VERSION       another version
#     GRIDFUSION_DOWNLOAD      another URL of the folder with the archives and SHA256SUMS
set -eu

fail() {
    printf 'gridfusion was not installed: %s\n' "$1" >&2
    exit 1
}

# target: the name of the archives for this system.
target() {
    system=$(uname -s)
    machine=$(uname -m)
    case $machine in
        x86_64 | amd64) machine=x86_64 ;;
        aarch64 | arm64) machine=aarch64 ;;
        *) fail "there is no archive for the processor $machine. Build it from source: cargo install gridfusion-cli" ;;
    esac
    case $system in
        Linux)
            # The program needs the GNU C library. The loader of musl has its name in every such system.
            for loader in /lib/ld-musl-*; do
                test -e "$loader" && ! test -e /lib64/ld-linux-x86-64.so.2 && ! test -e /lib/ld-linux-aarch64.so.1 &&
                    fail "this Linux has musl instead of the GNU C library. Use the container image, or build from source"
            done
            echo "$machine-unknown-linux-gnu"
            ;;
        Darwin) echo "$machine-apple-darwin" ;;
        *) fail "there is no archive for $system. On Windows, run install.ps1 in PowerShell" ;;
    esac
}

# download URL FILE
download() {
    if command -v curl >/dev/null; then
        curl --fail --silent --show-error --location --retry 2 --output "$2" "$1"
    elif command -v wget >/dev/null; then
        wget --quiet --output-document="$2" "$1"
    else
        fail "neither curl nor wget is installed"
    fi || fail "$1 cannot be downloaded. Check the network, or set GRIDFUSION_DOWNLOAD to a copy"
}

main() {
    version=${GRIDFUSION_VERSION:-@VERSION@}
    version=${version#v}
    from=${GRIDFUSION_DOWNLOAD:-@REPOSITORY@/releases/download/v$version}
    case $version$from in
        *@*@*) fail "this copy of the script belongs to no release. Take the one of a release" ;;
    esac
    test -n "${GRIDFUSION_INSTALL_DIR:-${HOME:-}}" || fail "HOME is not set. Set GRIDFUSION_INSTALL_DIR to a folder"
    into=${GRIDFUSION_INSTALL_DIR:-$HOME/.local/bin}
    if command -v sha256sum >/dev/null; then
        sha256=sha256sum
    elif command -v shasum >/dev/null; then
        sha256="shasum -a 256"
    else
        fail "neither sha256sum nor shasum is installed, so the archive cannot be checked"
    fi
    target=$(target) || exit 1
    name=gridfusion-$version-$target

    folder=$(mktemp -d) || fail "no temporary folder can be made"
    trap 'rm -rf "$folder"' EXIT
    trap 'exit 130' INT TERM
    echo "Downloading $name"
    download "$from/SHA256SUMS" "$folder/SHA256SUMS"
    expected=$(sed -n "s/^\([0-9a-f]\{64\}\)  $name\.tar\.gz\$/\1/p" "$folder/SHA256SUMS")
    test -n "$expected" || fail "$from/SHA256SUMS does not name $name.tar.gz"
    download "$from/$name.tar.gz" "$folder/archive.tar.gz"
    found=$($sha256 "$folder/archive.tar.gz" | cut -d ' ' -f 1)
    test "$found" = "$expected" ||
        fail "the archive is damaged or was changed. SHA256SUMS lists $expected, and the archive has $found"

    tar -xzf "$folder/archive.tar.gz" -C "$folder" || fail "the archive cannot be unpacked"
    program=$folder/$name/gridfusion
    installed=$("$program" -V) || installed=
    case $installed in
        "gridfusion $version"*) ;;
        *) fail "the program does not run. The C library may be too old, or $folder may forbid programs: then set TMPDIR" ;;
    esac
    mkdir -p "$into" || fail "the folder $into cannot be made. Set GRIDFUSION_INSTALL_DIR to another"
    # A rename replaces a program that runs, which a copy cannot.
    { cp "$program" "$into/.gridfusion-new" && chmod 755 "$into/.gridfusion-new" && mv "$into/.gridfusion-new" "$into/gridfusion"; } ||
        fail "$into/gridfusion cannot be written. Set GRIDFUSION_INSTALL_DIR to another folder"
    echo "Installed $installed: $into/gridfusion"
    case ":${PATH:-}:" in
        *":$into:"*) ;;
        *) echo "Add the folder to your PATH: export PATH=\"$into:\$PATH\"" ;;
    esac
}

# The shell reads the whole script before it runs anything, even where a download ends early.
main
