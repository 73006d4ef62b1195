#!/usr/bin/env bash
# Times of files that lie: in twenty ways, a run whose settings are as they were makes nothing, and one whose
# SEED was changed makes all of it. The rules are pipeline.mk's; the programs write what they are given into
# their output. TAP on stdout.
. "$(dirname "$0")/tap.sh"
unset DEVICE DEVICES CLASSES
cd "$root" || exit 99
. "$here/rules.sh"
mkdir -p "$tmp/bin"
cat >"$tmp/bin/program" <<'END2'
#!/bin/bash
args="$*"
while [ "$1" != --output ]; do shift; done
out=$2
[ "${0##*/}" != quern-sft ] || out=$2/manifest.qa
mkdir -p "${out%/*}"
{
  echo "${0##*/} $args"
  for f in ${args/"--output $2"}; do [ ! -f "$f" ] || cat "$f"; done
} | md5sum >"$out.new"
mv "$out.new" "$out"
END2
chmod +x "$tmp/bin/program"
for p in collect evaluate filter sft; do ln -s program "$tmp/bin/quern-$p"; done
cat >"$tmp/bin/quern-artifact" <<'END2'
#!/bin/bash
[ "$1" = validate ] || set -- "$1" "$2/manifest.qa"
[ "$(tail -c 4 "$2")" = '  -' ] # a program's output is whole
END2
chmod +x "$tmp/bin/quern-artifact"
sft() { # SEED: makes stage 1
  rules_of "$tmp" DEVICES=sim:h100 PROFILE=smoke "RUNS=$tmp/runs" RUN=x "SEED=$1" sft >"$tmp/out"
}
R=$tmp/runs/x
contents() { (cd "$R" && find . -name '*.qa' -exec cat {} + | sort); }
files() { find "$R" -type f; }

sft 2; contents >"$tmp/2"; cp -rp "$R" "$tmp/old"; sft 1; contents >"$tmp/1"
[ "$(wc -l <"$tmp/1")" = 4 ] && ! diff "$tmp/1" "$tmp/2" >/dev/null
ok $? 'four artifacts, another with each seed'

every() { files | while read -r f; do eval "touch $1 \"\$f\""; done; } # OPTIONS for touch
one_by_one() { # each a minute after the one before, in the order of the names on stdin
  local t=$((1000000000 + RANDOM)); while read -r f; do touch -d "@$((t += 60))" "$f"; done
}
again() { rm -rf "$R.copy"; cp -r "$R" "$R.copy"; rm -r "$R"; mv "$R.copy" "$R"; } # cp -r, without the times
way() { # NAME COMMAND...
  local name=$1 s=1 other=2
  cmp -s <(contents) "$tmp/1" || other=1
  [ $other = 2 ] || s=2
  "${@:2}"
  sft $s && ! grep -q '^\[' "$tmp/out" && cmp -s <(contents) "$tmp/$s"; ok $? "$name: nothing is made"
  "${@:2}"
  sft $other && [ "$(grep -c '^\[' "$tmp/out")" = 4 ] && cmp -s <(contents) "$tmp/$other"
  ok $? "$name, and another seed: all is made"
}
way 'a clock an hour ahead' every "-d '+1 hour'"
way 'a clock an hour behind' every "-d '-1 hour'"
way 'a year that has not come' every '-d 2099-01-01'
way 'no times' every '-d @0'
way 'one time' every "-d '2020-01-01'"
way 'steps of 2 s' every '-d "@$(($(stat -c %Y "$f") / 2 * 2))"'
way 'steps of 2 s, rounded up' every '-d "@$(($(stat -c %Y "$f") / 2 * 2 + 2))"'
by_name() { files | sort | one_by_one; }
way 'by name' by_name
backwards() { files | xargs ls -t | one_by_one; }
way 'in the opposite order' backwards
shuffled() { files | shuf | one_by_one; }
way 'in any order' shuffled
stamps() { touch -d '+1 day' "$R"/cfg/[a-z]*; }
way 'settings of tomorrow' stamps
artifacts() { find "$R" -name '*.qa' -exec touch -d '+1 day' {} +; }
way 'artifacts of tomorrow' artifacts
first() { touch -d '+1 minute' "$R"/collect/samples.qa; }
way 'the first artifact is the newest' first
last() { touch -d '-1 day' "$R"/sft/model/manifest.qa; }
way 'the last artifact is the oldest' last
records() { touch -d '+1 day' "$R"/cfg/from/*; }
way 'records of tomorrow' records
way 'cp -r' again
archive() { tar cf "$tmp/x.tar" -C "$R" . && rm -r "$R" && mkdir "$R" && tar xmf "$tmp/x.tar" -C "$R"; }
way 'an archive without times' archive
stash() { cp "$R/sft/dataset.qa" "$tmp/x"; rm "$R/sft/dataset.qa"; cp "$tmp/x" "$R/sft/dataset.qa"; }
way 'a file that was away' stash
server() { touch -d '-1 hour' "$R"/cfg/*; touch -d '+1 hour' "$R"/collect/*; }
way "a server's clock" server

# A backup: an artifact that is whole and of other settings, as new or old as one likes.
for when in 2001-01-01 now tomorrow; do
  sft 1; cp "$tmp/old/collect/verdicts.qa" "$R/collect/verdicts.qa"; touch -d $when "$R/collect/verdicts.qa"
  sft 1; cmp -s <(contents) "$tmp/1"; ok $? "an artifact of another seed, of $when: it is made again"
done
printf x >>"$R/sft/dataset.qa"; touch -d 2001-01-01 "$R/sft/dataset.qa"
sft 1; cmp -s <(contents) "$tmp/1" && grep -q '^quern: .*dataset.qa.damaged, and the same' "$tmp/out"
ok $? 'a damaged artifact of an old date is named and made again'
mkdir -p "$tmp/early/cfg/from"; cp "$R"/cfg/from/*dataset* "$tmp/early/cfg/from"
"$root/mk/settle" "$tmp/early" "$tmp/bin" 2>"$tmp/out" && [ ! -s "$tmp/out" ]
ok $? 'a run that was stopped before its first model: nothing is said'
mkdir "$R/queue"; exec 7>"$R/queue/lock"; flock 7
cp "$tmp/old/collect/verdicts.qa" "$R/collect/verdicts.qa"; touch -d 2001-01-01 "$R/collect/verdicts.qa"
before=$(stat -c %Y "$R"/sft/*.qa); "$root/mk/settle" "$R" "$tmp/bin"
[ "$(stat -c %Y "$R"/sft/*.qa)" = "$before" ]; ok $? 'nothing is touched while the run goes on'
done_testing
