#!/usr/bin/env bash
# `anneal completion` and `anneal manual`: what they write comes from the tables, and shells and man can read it.
source "$(dirname "$0")/preamble.sh"

# refused MESSAGE ARGUMENT...: exit code 2, and the message on standard error
refused() {
    local message=$1 code=0
    shift
    "${anneal[@]}" "$@" >out 2>err || code=$?
    [ "$code" = 2 ] && [ ! -s out ] && grep -qF -- "$message" err || fail "anneal $*: exit code $code, $(cat out err)"
}

# --- bash ---
"${anneal[@]}" completion bash >anneal.bash
source ./anneal.bash
compopt() { :; } # bash has it in a completion only
touch small.ang "two words.ang"
# offers EXPECTED WORD...: the words of a command line as bash splits them, the last one the one to complete
offers() {
    local expected=$1
    shift
    COMP_WORDS=("$@")
    COMP_CWORD=$(($# - 1))
    _anneal
    local all="${COMPREPLY[*]}"
    [ "$all" = "$expected" ] || fail "bash completes '$*' with '$all', not with '$expected'"
}
offers 'plan plot' anneal pl
offers 'show schema keys --help' anneal config ''
offers '--set' anneal config show --s
offers '--batch' anneal plan gpt2-355m --ba
offers 'gpt2-355m' anneal plan gpt2-3
offers 'small.ang' anneal plan sm
offers 'two words.ang' anneal plan two
offers '' anneal plan --batch ''
offers 'f32 f64 bf16 f16' anneal plan --precision ''
offers 'bf16' anneal plan --precision = b
offers 'optimizer.lr= optimizer.layer_decay=' anneal config show --set optimizer.l
offers 'adamw adam sgd lion rmsprop' anneal config show --set optimizer.type =
offers 'adamw adam' anneal config show --set optimizer.type = ad
offers 'auto on off' anneal config show --set data.train.flat = ''
offers '' anneal config show --set optimizer.lr = ''
offers 'small.ang' anneal config show --set data.train.path = sm
offers 'bash zsh fish' anneal completion ''
offers 'version' anneal help vers
offers '' anneal version ''
offers '' anneal unknown ''

# Every command and every option that the help shows is there.
"${anneal[@]}" help | sed -n 's/^  \([a-z-]*\).*/\1/p' | sort -u >commands
COMP_WORDS=(anneal '') COMP_CWORD=1
_anneal
printf '%s\n' "${COMPREPLY[@]}" | grep -v '^--' | sort >completed
cmp -s commands completed || fail "bash completes other commands than there are: $(diff commands completed)"
"${anneal[@]}" help | sed -n 's/^  \([a-z-]*\( [a-z-]*\)\?\)  .*/\1/p' | while read -r -a name; do
    "${anneal[@]}" "${name[@]}" --help | sed -n 's/^  \(--[a-z-]*\).*/\1/p' | sort >options
    COMP_WORDS=(anneal "${name[@]}" --) COMP_CWORD=$((${#name[@]} + 1))
    _anneal
    printf '%s\n' "${COMPREPLY[@]}" | sort >completed
    cmp -s options completed || fail "bash completes other options of '${name[*]}' than there are: $(diff options completed)"
done

# --- zsh and fish, where they are ---
"${anneal[@]}" completion zsh >_anneal
[ "$(head -1 _anneal)" = '#compdef anneal' ] || fail "zsh does not take a script that does not begin with #compdef"
! command -v zsh >/dev/null || zsh -n _anneal || fail "zsh does not read the script"
"${anneal[@]}" completion fish >anneal.fish
if command -v fish >/dev/null; then
    fished() { # EXPECTED LINE
        local all
        all=$(fish --no-config -c "source anneal.fish; complete -C '$2'" | cut -f 1 | tr '\n' ' ')
        [ "$all" = "$1 " ] || fail "fish completes '$2' with '$all', not with '$1 '"
    }
    fished 'plan plot' 'anneal pl'
    fished 'keys schema show' 'anneal config '
    fished 'bf16' 'anneal plan --precision b'
    fished 'optimizer.type= optimizer.type=adam optimizer.type=adamw optimizer.type=sgd' 'anneal config show --set optimizer.ty'
fi

# --- manual pages ---
mkdir pages
"${anneal[@]}" manual --output pages
"${anneal[@]}" manual | sort >listed
ls pages | sort >written
cmp -s listed written || fail "the pages that are listed are not those that are written"
while read -r command; do # every command has a page, that of "config show" is anneal-config-show.1
    [ -s "pages/anneal-${command// /-}.1" ] || fail "'$command' has no page"
done < <("${anneal[@]}" help | sed -n 's/^  \([a-z-]*\( [a-z-]*\)\?\)  .*/\1/p')
"${anneal[@]}" manual anneal-plan.1 | cmp -s - pages/anneal-plan.1 || fail "a page alone is another"
grep -qF 'anneal\-plan \- show the memory' pages/anneal-plan.1 || fail "whatis does not find the name"
grep -qF '\fB\-\-precision\fR \fIf32|f64|bf16|f16\fR' pages/anneal-plan.1 || fail "--precision is not in the page"
grep -qF '\fBoptimizer.lr\fR' pages/anneal-config.5 || fail "optimizer.lr is not in anneal-config.5"
if command -v groff >/dev/null; then
    for page in pages/*; do
        warnings=$(groff -man -Tutf8 -ww "$page" 2>&1 >/dev/null)
        [ -z "$warnings" ] || fail "groff: $warnings"
    done
    groff -man -Tascii -P -cbou pages/anneal-config.5 >shown
    grep -q '^ *optimizer.lr$' shown || fail "the page does not show optimizer.lr"
fi

# --- wrong use ---
refused 'bash|zsh|fish is missing' completion
refused "unknown shell 'bsh'; there are scripts for bash, zsh and fish; did you mean 'bash'?" completion bsh
refused "unknown page 'anneal-pln.1'; did you mean 'anneal-plan.1'?" manual anneal-pln.1
"${anneal[@]}" manual --output nowhere 2>err && fail "pages in a folder that is not there"
grep -qF "'nowhere/anneal.1' cannot be written: No such file or directory" err || fail "$(cat err)"
refused '--output writes all pages and cannot be combined with a page' manual anneal.1 --output pages

echo "completion: all as expected"
