# For tests of pipeline.mk without a fleet: rules_of BUILD ARGUMENT...  runs make on it as mk/pipeline does.
# An argument NAME=VALUE is a setting, --FLAG=VALUE one of quern-config's, the others are Make's. $edit, a sed
# script, may change the settings. Sourced, in the source folder, with $BIN and $tmp. A sentence of
# quern-config or what Make says goes to stdout.
rules_of() {
    local build=$1 found=--found= settings=() flags=() word
    shift
    for word; do
        case $word in --found=*) found=$word ;; --*) settings+=("$word") ;; *=*) settings+=("$word") ;; *) \
            flags+=("$word") ;; esac
    done
    "$BIN/quern-config" "$found" "${settings[@]}" 2>&1 >"$tmp/settings.mk" || return
    [ -z "${edit:-}" ] || sed -i "$edit" "$tmp/settings.mk"
    make --no-print-directory -f pipeline.mk "BUILD=$build" "SETTINGS=$tmp/settings.mk" "${flags[@]}" 2>&1
}
