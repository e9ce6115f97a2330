# Functions for the commands in these documents: `. /opt/strongroom/docs/api.sh` in bash. They need curl and python3, and
# VAULT_ADDR, VAULT_TOKEN and, for a CA of your own, VAULT_CACERT. Each prints the answer; a refusal goes to standard
# error, and the function fails. The Vault CLI does the same: `vault read`, `list`, `delete`, `write` and `patch`.

# The token goes over a pipe: arguments of a process are visible to everybody on the machine.
api() {
  local answer
  answer=$(curl -sS --fail-with-body ${VAULT_CACERT:+--cacert "$VAULT_CACERT"} \
    -H @<(printf 'X-Vault-Token: %s\n' "$VAULT_TOKEN") "${@:2}" "$VAULT_ADDR/v1/$1") || { echo "$1: $answer" >&2; return 1; }
  if [ -n "$answer" ]; then echo "$answer"; fi
}

api_get() { api "$1"; }
api_list() { api "$1?list=true"; }
api_delete() { api "$1" -X DELETE; }


# api_write PATH [NAME=VALUE | NAME=@FILE | NAME:=JSON]…
api_write() { members "${@:2}" | api "$1" --data-binary @-; }

# The same, and leaves what is not named as it is, where the API knows the difference.
api_patch() { members "${@:2}" | api "$1" -X PATCH -H 'Content-Type: application/merge-patch+json' --data-binary @-; }

members() {
  python3 -c '
import json, sys
def member(pair):
    name, _, value = pair.partition("=")
    if name[-1:] == ":": return name[:-1], json.loads(value)
    return name, open(value[1:]).read() if value[:1] == "@" else value
print(json.dumps(dict(map(member, sys.argv[1:]))))' "$@"
}

# field NAME.NAME…: one field of the answer on standard input
field() {
  python3 -c '
import functools, json, sys
step = lambda at, name: at[int(name)] if isinstance(at, list) else at[name]
found = functools.reduce(step, sys.argv[1].split("."), json.load(sys.stdin))
print(found if isinstance(found, str) else json.dumps(found))' "$1"
}
