# Shared by the scripts beside it; read in with `.`, never run. POSIX sh.
# Callers `set -eu` and change to the repository's top first.

# Say what is being done, on stderr, so that stdout stays the work's own.
say() { printf '\033[1m==>\033[0m %s\n' "$*" >&2; }

# End with one line that says what is wrong and what to do.
die() {
    printf '%s: %s\n' "scripts/$(basename "$0")" "$*" >&2
    exit 1
}

# True where "$1" is a Python from 3.10 to 3.13. Runs it: a version manager's stand-in may exist and not work.
_python_fits() {
    "$1" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' >/dev/null 2>&1
}

# Print the Python to use: $PYTHON when set, else the first that fits. PATH's own `python3` comes first,
# since that is the one a user has set up.
find_python() {
    if [ -n "${PYTHON:-}" ]; then
        _python_fits "$PYTHON" || die "PYTHON=$PYTHON is no working Python 3.10 to 3.13"
        echo "$PYTHON"
        return
    fi
    for candidate in python3 python3.13 python3.12 python3.11 python3.10 python; do
        if _python_fits "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    die "no Python from 3.10 to 3.13 found; install one, or name it: PYTHON=/path/to/python scripts/$(basename "$0")"
}

# make_venv DIR: a virtual environment there; an older one is kept while its Python works and fits.
make_venv() {
    if _python_fits "$1/bin/python" && "$1/bin/python" -m pip --version >/dev/null 2>&1; then
        say "using the virtual environment $1 ($("$1/bin/python" --version))"
        return
    fi
    base=$(find_python) || exit 1
    say "making the virtual environment $1 with $("$base" --version)"
    rm -rf "$1"
    "$base" -m venv "$1" >/dev/null 2>&1 || {
        rm -rf "$1"
        die "$base has no working venv module; install it (Debian and Ubuntu: apt-get install python3-venv) and try again"
    }
}

# quietly WHAT COMMAND...: run it with its output kept back, and shown only when it fails.
quietly() {
    what=$1
    shift
    say "$what"
    log=$(mktemp)
    if "$@" >"$log" 2>&1; then
        rm -f "$log"
    else
        tail -n 40 "$log" >&2
        rm -f "$log"
        die "failed: $what (its last lines stand above)"
    fi
}

# What caps torch where packages are installed.
constraints=constraints.txt

# install_into VENV PIP_ARGUMENTS...: torch first and capped, so that nothing pulls in another one; then
# the rest. Skipped while nothing that it depends on has changed since the last time.
install_into() {
    venv=$1
    shift
    stamp="$venv/.installed"
    wanted="$* $(_state_of "$@")"
    if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then
        say "the packages in $venv are up to date"
        return
    fi
    # setuptools would pack files that were deleted since its last build
    rm -rf build/lib build/bdist.*
    pip_install="$venv/bin/python -m pip install --quiet --disable-pip-version-check -c $constraints"
    # shellcheck disable=SC2086 # words on purpose
    quietly "installing torch as $constraints says (the first time this may take minutes)" $pip_install torch
    # shellcheck disable=SC2086
    quietly "installing torchvitals and what it needs" $pip_install "$@"
    echo "$wanted" >"$stamp"
}

# install_js: what checks the page's modules, as scripts/js/package-lock.json says, into scripts/js/node_modules.
# Skipped while that has not changed since the last time.
install_js() {
    stamp=scripts/js/node_modules/.installed
    wanted=$(cat scripts/js/package.json scripts/js/package-lock.json | cksum)
    if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then
        return
    fi
    command -v npm >/dev/null 2>&1 || die "npm is missing; install it (Debian and Ubuntu: apt-get install npm), or run scripts/test"
    quietly "installing eslint" npm ci --prefix scripts/js --ignore-scripts
    echo "$wanted" >"$stamp"
}

# install_fastai VENV: without what it asks for and does not need, torchvision, which must fit torch to the
# letter, and spaCy.
install_fastai() {
    if ! "$1/bin/python" -c "import fastcore, fastprogress, fastai" >/dev/null 2>&1; then
        quietly "installing fastai" "$1/bin/python" -m pip install --quiet --no-deps -c "$constraints" \
            fastai fastcore fastprogress fastdownload fasttransform
    fi
}

# A checksum of what an installation depends on; an editable one follows the sources, in its folder, by itself.
_state_of() {
    case " $* " in
        *" -e "*) { pwd; cat pyproject.toml constraints.txt scripts/lib.sh; } | cksum ;;
        *) find pyproject.toml constraints.txt scripts/lib.sh monitor web static templates -type f \
            ! -name '*.pyc' -exec cksum {} + | LC_ALL=C sort | cksum ;;
    esac
}
