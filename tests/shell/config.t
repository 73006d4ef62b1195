#!/bin/bash
# Settings: quern-config with every source of a value, odd characters on the way from the command line through
# Make to a recipe, wrong names and values, files that are no settings, and the tables for the documentation.
# TAP on stdout.
. "$(dirname "$0")/tap.sh"
unset QUERN_TASKS PROFILE RUN CONFIG TASKS TEACHERS POLICY ROUNDS SEED DEVICE DEVICES CLASSES
cd "$root" || exit 99
config() { "$BIN/quern-config" --found= "$@" >"$tmp/out" 2>&1; }
# value NAME: the value and its origin in the last fragment, as "VALUE from ORIGIN"
value() {
    perl -ne 'print "$2 from $o\n" if /^override (\S+) := ?(.*)/ && $1 eq $ENV{NAME};
        $o = $1 if /^# from (.*)/' "$tmp/out"
}
value_is() { [ "$(NAME=$1 value)" = "$2" ]; ok $? "${3:-$1 is $2}"; }
refused() { # SENTENCE ARGUMENT...
    config "${@:2}"
    [ $? = 2 ] && [ "$(wc -l <"$tmp/out")" = 1 ] && grep -qF -- "quern: $1" "$tmp/out"
    ok $? "refused: $(tr '\n' '|' <<<"${*:2}")"
}

line() { grep -n "^$1 " "configs/$2.mk" | cut -d: -f1; }
in_default() { sed -n "s/^$1 ?= //p" configs/default.mk; }

# ---- where a value comes from ----
printf '%s\n' 'ROUNDS ?= 5' 'REPORT_SAMPLES = 7' 'REPORT_SAMPLES ?= 8' 'GPUS := 9' 'GPUS = 10' \
    'RUN ?= night' 'SEED = 4' \
    >"$tmp/own.mk"
config
value_is PROFILE 'default from the default'
value_is ROUNDS "$(in_default ROUNDS) from configs/default.mk:$(line ROUNDS default)"
value_is RUN "default from the profile's name"
value_is ENGINE 'cpu from the default'
PROFILE=smoke ROUNDS=4 REPORT_SAMPLES=3 config
value_is PROFILE 'smoke from the environment'
value_is ROUNDS '4 from the environment'
value_is REPORT_SAMPLES "12 from configs/smoke.mk:$(line REPORT_SAMPLES smoke)" \
    'REPORT_SAMPLES is not read from the environment'
REPORT_SAMPLES=3 config --check -- true; grep -q 'REPORT_SAMPLES in the environment is not read' "$tmp/out"
ok $? 'a setting in the environment that is not read is said when a run starts'
ROUNDS=4 config PROFILE=smoke ROUNDS=2; value_is ROUNDS '2 from the command line'
config CONFIG="$tmp/own.mk"
value_is ROUNDS "5 from $tmp/own.mk:1"
value_is REPORT_SAMPLES "7 from $tmp/own.mk:2" 'NAME ?= leaves what the file has set'
value_is GPUS "10 from $tmp/own.mk:5" 'the last NAME = of a file counts'
value_is RUN "night from $tmp/own.mk:6"
value_is PROMPTS "$(in_default PROMPTS) from configs/default.mk:$(line PROMPTS default)" \
    'what CONFIG leaves out is the profile'\''s'
SEED=3 config CONFIG="$tmp/own.mk"
value_is SEED '3 from the environment' 'the environment goes before CONFIG'
config CONFIG="$tmp/own.mk" ROUNDS=1 ROUNDS=2
value_is ROUNDS '2 from the command line' 'the last word of the command line counts'
config STARTER=share/starter
value_is STARTER 'share/starter from the command line'
grep -q '^override base := --base share/starter$' "$tmp/out"; ok $? 'the small model starts from STARTER'
config STARTER=none; grep -q '^override base := *$' "$tmp/out"
ok $? 'the small model starts from random weights without STARTER'
refused 'STARTER=nothing: there is no config.json in it' STARTER=nothing
config POLICY=openai:M
value_is STYLE 'full from the default'
config 'TASKS=relu, gelu,' TEACHERS='generator , openai:M' CLASSES='sim:l40,,sim:h100 sim:l40'
value_is TASKS 'relu,gelu from the command line' 'lists have one form'
value_is TEACHERS 'generator,openai:M from the command line'
value_is CLASSES 'sim:l40 sim:h100 from the command line' 'a class is there once'

# ---- files of settings ----
mkdir "$tmp/a folder"
cat >"$tmp/a folder/one.mk" <<'END'
# a comment that goes on \
ROUNDS = 1
include two.mk
 CRL = --epochs 1 \
	--lr 1e-4 # and a comment
TRAINER = sh -c 'echo $$HOME "a  b" \# 1) \\'
END
echo 'ROUNDS = 3' >"$tmp/a folder/two.mk"
: >"$tmp/config.json"
config CONFIG="$tmp/a folder/one.mk" "POLICY=native:$tmp"
value_is ROUNDS "3 from $tmp/a folder/two.mk:1" 'an included file, beside the one that includes it'
value_is CRL "--epochs 1 --lr 1e-4 from $tmp/a folder/one.mk:4" 'a line that goes on, and its comment'
value_is TRAINER "sh -c 'echo \$\$HOME \"a  b\" \$(hash) 1) \\\\' from $tmp/a folder/one.mk:6" \
    'quotes, dollars and number signs'
file() { # TEXT SENTENCE: a file with this text is refused
    printf '%b' "$1" >"$tmp/bad.mk"
    refused "$tmp/bad.mk$2" CONFIG="$tmp/bad.mk"
}
file 'SEED = 1\nall: build\n\trm -rf x\n' \
    ":2: expected NAME = VALUE, NAME ?= VALUE or include FILE, found 'all: build'"
file '\trm -rf x\n' ":1: expected settings alone, and no command of a rule, found 'rm -rf x'"
file 'SEED = 1\nifeq (a,b)\nendif\n' ":2: expected NAME = VALUE"
file 'SEED = $(shell date)\n' ':1: SEED: expected a plain value, in which $$ is a dollar'
file 'CRL += --epochs 2\n' ':1: expected the whole value after NAME =, since += is not read here'
file 'SEED = 1\n\nROUND = 3\n' ':3: ROUND: there is no such setting; did you mean ROUNDS?'
file 'CONFIG = x\n' ':1: CONFIG is for the command line; expected include'
file 'include none.mk\n' ':1: include none.mk: there is no such file'
file 'include bad.mk\n' ':1: expected files that include each other in a chain of at most 8'
printf '%s\n' 'SEED = 1' >"$tmp/one.mk"
file "include$(printf ' one.mk%.0s' {1..100})\n" ':1: expected at most 100 files in all, found'
file 'SEED = 1\0\n' ': expected text, found a NUL byte'
refused 'CONFIG=none.mk: there is no such file' CONFIG=none.mk
refused 'PROFILE=none: expected the name of a file in configs/' PROFILE=none
refused 'PROFILE=../configs/smoke: expected the name of a file' PROFILE=../configs/smoke
printf 'SEED = 1' >"$tmp/last.mk"; config CONFIG="$tmp/last.mk"
value_is SEED "1 from $tmp/last.mk:1" 'a last line without its end'

# ---- wrong names and values ----
refused 'ROUND=3: there is no such variable; did you mean ROUNDS?' ROUND=3
refused 'rounds=3: there is no such variable; did you mean ROUNDS?' rounds=3
refused 'TASk=relu: there is no such variable; did you mean TASKS?' TASk=relu
refused 'QUERN_REDDIS=x: there is no such variable; did you mean QUERN_REDIS?' QUERN_REDDIS=x
refused 'ZEBRA_CROSSING=1: there is no such variable; make help lists them' ZEBRA_CROSSING=1
refused 'kernels=x: there is no such variable' kernels=x
refused "expected NAME=VALUE, found 'smoke'" smoke
refused 'WIDE=x: WIDE is gone: LAB_WIDE (lab/README.md)' WIDE=x
config LAB_WIDE=x && grep -q '^override LAB_WIDE := x$' "$tmp/out"; ok $? 'settings of the lab are handed on'
refused 'FORCE=1: FORCE is gone: remove what is to be made again' FORCE=1
QUERN_LEASE_S=3 config --check -- true
grep -q 'QUERN_LEASE_S in the environment is not read any more: QUERN_QUEUE=lease=S' "$tmp/out"
ok $? 'a variable that is gone says what replaces it'
config BUILD=x CC='ccache gcc' V=1 OPENAI_BASE_URL=x QUERN_LOG=quiet http_proxy=x MAKE=make
ok $? 'variables of the build and of other programs may be there'
refused 'ROUNDS=x: expected a whole number' ROUNDS=x
refused 'ROUNDS=-1: expected a whole number' ROUNDS=-1
refused 'ROUNDS=2 3: expected a whole number' 'ROUNDS=2 3'
refused 'ROUNDS=1001: expected at most 1000' ROUNDS=1001
refused 'SEED=: expected a whole number' SEED=
refused 'ROUNDS is not set: neither PROFILE=smoke nor CONFIG= does' PROFILE=smoke ROUNDS=
refused 'FILTER is not set: neither PROFILE=lora nor CONFIG= does' PROFILE=lora
refused 'REFRESH=yes: expected 1 or 0' REFRESH=yes
refused 'LEAN=1: LEAN is gone: a word of TRAINING, --lean' LEAN=1
refused 'STAGE1=0: STAGE1 is gone: TEACHERS=none is a run without stage 1' STAGE1=0
refused 'TEACHERS=none,generator: expected none alone, or teachers' TEACHERS=none,generator
refused 'TEACHERS=foo: expected generator, openai:MODEL, anthropic:MODEL, dir:PATH,' TEACHERS=foo
refused 'RUNS=a b: expected a folder' 'RUNS=a b'
refused 'TRAINER: expected one line, found several' $'TRAINER=a\nb'
refused 'PROMPTS: --groups expects a value from 1 to 10000, found 0' --check PROMPTS='--groups 0'
config PROMPTS='--copies=3 --groups 2'; grep -q '^override crl_prompts := --groups 2$' "$tmp/out" &&
    grep -q '^override crl_copies := --copies=3$' "$tmp/out"; ok $? "a prompt's samples are another program's"
config --check; ok $? 'the default profile is right'

# ---- from Make's command line to the fragment, and to a recipe ----
odd=("TRAINER=it's  \$HOME \"x\" # 1) \\ \$(y) %" 'CLASSES=sim:h100 sim:l40' 'RUN=a')
printf 'include Makefile\nwords: ; @printf "<%%s>\\n" $(command_line)\n' >"$tmp/words.mk"
make -s -f "$tmp/words.mk" BUILD="$BUILD" "${odd[@]//\$/\$\$}" words >"$tmp/out" 2>&1
for w in "${odd[@]}"; do grep -qxF -- "<$w>" "$tmp/out" || echo "# not there: $w"; done >"$tmp/lacking"
[ ! -s "$tmp/lacking" ]; ok $? "a command line's words reach a recipe: blanks, quotes, dollars, number signs"
make -s -f "$tmp/words.mk" BUILD="$BUILD" $'TRAINER=a\nb' words >"$tmp/out" 2>&1
grep -qx '<TRAINER=a' "$tmp/out"
ok $? "a command line's line break reaches a recipe"
config "POLICY=native:$tmp" "${odd[@]}" && cp "$tmp/out" "$tmp/settings.mk"
printf 'quoted = %s\ninclude %s\nshow: ; @printf "<%%s>\\n" $(call quoted,$(TRAINER)) $(training)\n' \
    "'\$(subst ','\\'',\$(1))'" "$tmp/settings.mk" >"$tmp/show.mk"
make -s -f "$tmp/show.mk" TRAINER=hidden show >"$tmp/out" 2>&1
[ "$(grep -cxF -- "<${odd[0]#*=}>" "$tmp/out")" = 2 ]
ok $? 'Make reads a setting back as it was, and its own command line does not hide it'
config "POLICY=native:$tmp" 'TRAINER=x \'
printf 'include %s\nshow: ; @echo $(SEED) "<$(subst \\,/,$(TRAINER))>"\n' "$tmp/out" >"$tmp/show.mk"
[ "$(make -s -f "$tmp/show.mk" show)" = '1 <x />' ]; ok $? 'a setting with a backslash at its end stays whole'

# ---- a file, and a command ----
config --output "$tmp/new/settings.mk"; s=$?; before=$(stat -c %i "$tmp/new/settings.mk")
config --output "$tmp/new/settings.mk"; [ $s = 0 ] && [ "$(stat -c %i "$tmp/new/settings.mk")" = "$before" ]
ok $? 'a file that would be the same is not written'
config --output "$tmp/new/settings.mk" SEED=2; [ "$(stat -c %i "$tmp/new/settings.mk")" != "$before" ]
ok $? 'a settings file that would differ is written'
mkdir "$tmp/my tasks"; cp -r tasks/relu "$tmp/my tasks"
QUERN_TASKS=$root/tasks config
value_is TASKS "$(in_default TASKS) from configs/default.mk:$(line TASKS default)" 'the profile names tasks'
config QUERN_TASKS="$tmp/my tasks"; value_is TASKS 'all from the default, with QUERN_TASKS' 'of Quern alone'
said() { grep -cF -- "$1" "$tmp/out"; }
config --check QUERN_TASKS="$tmp/my tasks" -- true
why="since TASKS of PROFILE=default names tasks of Quern's own folder"
[ "$(said "quern: QUERN_TASKS=$tmp/my tasks: its 1 task is taken, $why")" = 1 ]
ok $? 'a folder of tasks that is taken whole is said when a run starts'
config --check QUERN_TASKS="$tmp/my tasks" TASKS=relu -- true; [ "$(said 'QUERN_TASKS=')" = 0 ]
ok $? 'no warning comes of TASKS that are named'
warned() { config --check "$@" -- true && said 'without a graph'; }
[ "$(warned TASKS=relu,softmax,composed/clamp_colsum)" = 1 ] &&
    [ "$(said 'STARTER=share/starter: of 3 tasks, 2 without a graph (relu, ...)')" = 1 ]
ok $? 'a starter meets tasks without a graph'
[ "$(warned TASKS=composed/clamp_colsum; warned TASKS=relu STARTER=none; warned CONFIG=configs/scratch.mk |
    xargs)" = $'0\n0\n0' ]
ok $? 'graphs, or no starter: nothing is said'
config QUERN_TASKS="$tmp/my tasks" -- sh -c 'echo "$QUERN_TASKS"'; [ "$(cat "$tmp/out")" = "$tmp/my tasks" ]
ok $? 'a command has the folder of the tasks'
config ROUND=3 -- touch "$tmp/touched"; [ $? = 2 ] && [ ! -e "$tmp/touched" ]
ok $? 'a command is not run with a wrong setting'
config -- sh -c 'exit 7'; [ $? = 7 ]; ok $? 'the exit status of quern-config is the command'\''s'
cd "$tmp" && config --share "$here/../.." PROFILE=smoke &&
    value_is QUERN_TASKS "$here/../../tasks from the default" 'from another folder'
cd "$here/../.." || exit 99

# ---- before anything is built ----
unbuilt() { make -s BUILD="$tmp/none" "$@" >"$tmp/out" 2>&1; } # ends before it builds
unbuilt crl PROFIL=smoke
[ $? = 2 ] && [ ! -e "$tmp/none" ] && grep -q 'PROFIL=smoke: there is no such variable' "$tmp/out"
ok $? 'a wrong name is refused before programs are built'
unbuilt crl-2-pool PROFILE=smok
[ $? = 2 ] && [ ! -e "$tmp/none" ] && grep -q 'PROFILE=smok: expected the name of a file' "$tmp/out"
ok $? 'a wrong profile, too'
unbuilt -n crl PROFILE=smoke ROUNDS=2 OPT=-O1 LAB_UPDATE=learn; ! grep -q 'no such variable' "$tmp/out"
ok $? 'right names are not'

# ---- the tables ----
"$BIN/quern-config" --table >"$tmp/table"
sed -n '/^## /,$p' docs/environment.md | diff - "$tmp/table" >"$tmp/out"
ok $? 'docs/environment.md is what make docs writes'
grep -rhoE '"QUERN_[A-Z_]+"' --include='*.[ch]' --exclude=setting_advice.c base gpu artifacts tasks \
    queue model llm eval stages report lab | tr -d '"' | sort -u |
    while read -r name; do grep -qF "| \`$name\` |" "$tmp/table" || echo "$name"; done >"$tmp/out"
[ ! -s "$tmp/out" ]; ok $? "every QUERN_ variable of the programs is in the table: $(tr '\n' ' ' <"$tmp/out")"
grep -hoE '^[A-Z_]+ \?=' Makefile mk/tests.mk | cut -d' ' -f1 | sort -u |
    while read -r name; do grep -qF "| \`$name\` |" "$tmp/table" || echo "$name"; done >"$tmp/out"
[ ! -s "$tmp/out" ]; ok $? "every variable of the Makefile is in the table: $(tr '\n' ' ' <"$tmp/out")"
grep -hoE '^##   [A-Z]+ ' mk/help.txt | cut -c6- |
    while read -r name _; do grep -qF "| \`$name\` |" "$tmp/table" || echo "$name"; done >"$tmp/out"
[ ! -s "$tmp/out" ]; ok $? "every variable of make help is in the table: $(tr '\n' ' ' <"$tmp/out")"
done_testing
