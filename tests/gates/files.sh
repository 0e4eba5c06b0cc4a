# Sourced: files() names the repository's files, also where git is missing or refuses another user's clone.
files() {
  git ls-files 2>/dev/null || find . \( -path ./.git -o -path ./build -o -path ./web/node_modules -o -path ./web/dist \) \
    -prune -o -type f -printf '%P\n'
}
