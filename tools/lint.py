#!/usr/bin/python3
"""Checks the rules that hold for the sources of tamis.

    tools/lint.py [RULE...]

Each rule is one test: it prints "ok lint-RULE" or "not ok lint-RULE: why", the findings before it.
There is no comment that turns a rule off; a rule that is wrong is changed here.
"""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Includes point one way: a file of src/FOLDER includes headers of its own folder or of one above it
# in this list. The command line and the module include public headers, their own, and what OUTSIDE
# names.
FOLDERS = ["base", "os", "hash", "plan", "bits", "set", "format", "delta", "catalog",
           "replica", "owners", "carrier", "api"]
# What a folder offers to the others: one header; the rest is its own. Where there are more:
OFFERED = {"base": ["base.h", "err.h", "mem.h", "bytes.h", "lookup.h", "arena.h"],  # a box of tools, not one subject
           "os": ["file.h", "readers.h", "late.h", "threads.h"],  # files; readers beside a writer; libraries; threads
           "hash": ["digest.h", "types.h", "words.h"],  # digests; types of values; words, for inner loops
           "plan": ["plan.h"], "bits": ["bits.h"],
           "set": ["set.h", "any_set.h"],  # to whoever looks inside, and to whoever has a set
           "format": ["format.h", "pieces.h"],  # the parts of the format, and the bytes of a set
           "delta": ["patch.h"], "catalog": ["catalog_bytes.h"], "replica": ["replica.h"],
           "owners": ["directory.h"], "carrier": ["carrier.h"], "api": ["api.h"]}
CLI_FOLDERS = ["ui", "read", "sets", "logs", "fleet", "catalogs", "replica", "plan"]  # as FOLDERS
OUTSIDE = {"cli": ["base/base.h", "base/bytes.h", "base/err.h", "os/file.h", "os/late.h", "os/threads.h",
                   "carrier/carrier.h", "api/api.h"],
           "redis": ["format/pieces.h", "hash/secrets.h"]}

PRODUCT = ("src/", "include/", "cli/", "redis/")

# Alone, these say nothing of what a file is for.
VAGUE = ("change changes common helper helpers make misc move part parts row rows settings sieve slab slabs store stores "
         "table tables util utils watch").split()

# What a library may not do to the program it is in.
FORBIDDEN_CALLS = re.compile(
    r"\b(v?f?printf|f?puts|f?putc|putchar|perror|exit|_exit|_Exit|quick_exit|abort|assert)\s*\(")

POSIX_HEADERS = re.compile(r"<(unistd|fcntl|dirent|poll|glob|fnmatch|pwd|grp|sys/[a-z_]+)\.h>")
POSIX_FILES = re.compile(r"src/(os/.*|carrier/.*|base/mem)\.[ch]$")
MATH_HEADERS = re.compile(r"<(math|tgmath|complex|fenv)\.h>")
MATH_FILES = re.compile(r"src/plan/.*\.c$")

FILE_WARN, FILE_MAX, FUNCTION_MAX = 600, 700, 60
TAMIS_H_MAX = 600

# Wordings that comments and messages avoid, and what to write instead.
WORDINGS = [(re.compile(pattern), instead) for pattern, instead in [
    (r"\b(?:bits?|bytes|[KMG]i?B|ns|us|(?:nano|micro|milli)seconds|probes|misse?s?|times) an? (?:key|item|record|value|"
     r"lookup|query|question|add|delta|segment|line|byte|second|row|page|layer|vector)\b(?! is)", "per"),
    (r"\bin vain\b", "false candidates"),
    (r"\b(?:NULL|[Ff]alse|;) without memory\b", "if there is no memory"),
    (r"\bwithout memory:", "if there is no memory"),
    (r"\bstrangers?\b", "untrusted, others, non-member"),
    (r"\b(?:is|are|was|were) told (?:of|by|with)\b", "reported, kept by"),
    (r"\bcomes? to lie\b", "is stored"),
    (r"\bas (?:ever|need be)\b", "as before, if necessary"),
    (r"\bnobody's\b", "without an owner"),
    (r"\b(?:is|are) no (?:pattern|catalog|filter|patch|file|option|link|value|number|regular|tamis|message)\b", "is not a"),
    (r"\bwhat parts columns\b", "separator of columns"),
    (r"\bfor good\b", "permanently"),
    (r"\bgone over\b", "read, passed"),
    (r"\bone (?:who|that) asks\b", "caller, query"),
    (r"\bof (?:the )?caller's\b", "of the caller"),
    (r"\bby (?:the )?chance that\b|\bwith chance\b", "probability"),
    (r"\b(?:when|if|where) (?:it|this) is not said\b", "by default"),
    (r"\bbits? (?:a|an) key\b", "per key"),
    (r"\bs?he likes\b|\bas he\b", "the caller"),
    (r"\bif need be\b", "if necessary"),
    (r"\bwithout more ado\b", "directly"),
    (r"\bas on the first day\b|\bto the first day\b", "as it was created"),
    (r"\bserves on\b", "is kept"),
    (r"\blets? (?:\w+ ){0,2}go\b", "drops, frees"),
    (r"\bso much the better\b", "that is fine"),
    (r"\bso many\b(?!(?: \w+){0,4} (?:as|that)\b)", "this many"),
    (r"\b(?:that|which) cannot be\b(?! \w)", "impossible"),
    (r"\bnone of ours\b", "not written by tamis")]]

# Written apart so that this file passes its own rules.
LEFTOVERS = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" + "XX"]) + r")\b")
CONFLICTS = re.compile("^(" + "<" * 7 + "|" + ">" * 7 + ")( |$)")
REGISTRIES = re.compile(
    r"\bregistry\.(?:[a-z0-9-]+\.)*(?:com|org|net|io|dev)\b|\b(" + "|".join(
        name.replace("|", r"\.") for name in [
            "pypi|org", "pythonhosted|org", "npmjs|org", "npmjs|com", "yarnpkg|com", "crates|io",
            "rubygems|org", "docker|io", "docker|com", "ghcr|io", "quay|io", "gcr|io",
            "mcr|microsoft", "proxy|golang", "conda|io", "anaconda|org", "maven|org",
            "deb|debian|org", "ftp|debian|org", "archive|ubuntu"]) + r")\b", re.I)

CPPCHECK = ["cppcheck", "-q", "--std=c11", "--language=c", "--library=posix,gnu",
            "--enable=warning,performance,portability", "--error-exitcode=1",
            "--suppress=missingIncludeSystem", "--suppress=unknownMacro",
            "--suppress=normalCheckLevelMaxBranches", "--suppress=unmatchedSuppression",
            "--template={file}:{line}: {id}: {message}", "-Iinclude", "-Isrc", "-Icli", "-Iredis",
            "-j2", "-D__GNUC__=12", "-D__x86_64__=1", "-DTAMIS_HAVE_ISAL",
            "-DTAMIS_HAVE_ZSTD", "-DTAMIS_HAVE_BZ2", "-DTAMIS_HAVE_LZMA", "-DTAMIS_HAVE_LZ4",
            "-DTAMIS_HAVE_PCRE2", "-DTAMIS_HAVE_HIREDIS", "-DTAMIS_HAVE_MICROHTTPD",
            "-DTAMIS_HAVE_CURL", "-DTAMIS_HAVE_OPENSSL"]


class Tree:
    """The files of the project, read once."""

    def __init__(self):
        try:
            listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT,
                                    capture_output=True, text=True, check=True).stdout.split("\n")
        except (OSError, subprocess.CalledProcessError):
            listed = [os.path.relpath(os.path.join(folder, name), ROOT)
                      for folder, _, names in os.walk(ROOT) for name in names]
        self.paths = sorted(p for p in listed if p and os.path.isfile(os.path.join(ROOT, p))
                            and not p.startswith(("build/", ".git/")))
        self.texts = {}

    def text(self, path):
        """The text of a file, or None if it is not text."""
        if path not in self.texts:
            with open(os.path.join(ROOT, path), "rb") as f:
                raw = f.read()
            try:
                self.texts[path] = None if b"\0" in raw else raw.decode()
            except UnicodeDecodeError:
                self.texts[path] = None
        return self.texts[path]

    def c_files(self, folders=("",)):
        return [p for p in self.paths if p.endswith((".c", ".h")) and p.startswith(tuple(folders))]

    def code(self, path):
        """C text with comments and the contents of literals blanked; lines stay where they are."""
        def blank(match):
            found = match.group(0)
            if found[0] == "/":
                return re.sub(r"[^\n]", " ", found)
            return found[0] + " " * (len(found) - 2) + found[-1]
        return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', blank,
                      self.text(path), flags=re.S)


def each_line(tree, paths, pattern, code=True):
    """Every match of pattern, as (path, line number, match)."""
    for path in paths:
        text = tree.code(path) if code else tree.text(path)
        for number, line in enumerate((text or "").split("\n"), 1):
            for match in pattern.finditer(line):
                yield path, number, match


def run(command):
    """Runs a checker; its output is the findings when it fails."""
    try:
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace")
    except FileNotFoundError:
        return ["%s is not installed: make deps" % command[0]]
    return (done.stdout.splitlines() or ["%s failed" % command[0]]) if done.returncode else []


def rule_format(tree):
    """C files are as clang-format would write them"""
    files = tree.c_files()
    found = run(["clang-format", "--dry-run", "-Werror"] + files) if files else []
    places = [line.split(":")[0] for line in found if "error:" in line]
    return ["%s: %d places; make format" % (path, places.count(path))
            for path in sorted(set(places))] or found


def rule_cppcheck(tree):
    """cppcheck finds nothing"""
    files = [p for p in tree.c_files(("src/", "cli/", "redis/")) if p.endswith(".c")]
    if not files:
        return []
    cache = os.path.join(ROOT, "build", "cppcheck")
    os.makedirs(cache, exist_ok=True)
    return run(CPPCHECK + ["--cppcheck-build-dir=" + cache] + files)


def folder_of(path):
    """src/bits/vector.h -> (src, bits)"""
    parts = path.split("/")
    return (parts[0], parts[1]) if len(parts) > 2 else (parts[0], None)


def rule_folders(tree):
    """a folder of src/ or cli/ includes only those above it, in src/ by the header that each offers; names of files"""
    include = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
    found, seen = [], {}
    for path in tree.c_files(("src/", "cli/", "redis/")):
        top, folder = folder_of(path)
        known = FOLDERS if top == "src" else CLI_FOLDERS + [None] if top == "cli" else [None]
        if folder not in known:
            found.append("%s: no such folder in tools/lint.py" % path)
        name = os.path.basename(path)
        if name in seen:
            found.append("%s: the name of %s too" % (path, seen[name]))
        seen[name] = path
        if os.path.splitext(name)[0] in VAGUE:
            found.append("%s: its name says nothing" % path)
    for path, number, match in each_line(tree, tree.c_files(("src/",)), include, code=False):
        if "include/" + match.group(1) in tree.paths:
            continue
        here, there = folder_of(path)[1], match.group(1).rpartition("/")[0] or folder_of(path)[1]
        if "src/%s/%s" % (there, os.path.basename(match.group(1))) not in tree.paths:
            found.append('%s:%d: "%s" is not a header of src/' % (path, number, match.group(1)))
        elif there in FOLDERS and FOLDERS.index(there) > FOLDERS.index(here):
            found.append('%s:%d: "%s" is of a lower folder' % (path, number, match.group(1)))
        elif there != here and os.path.basename(match.group(1)) not in OFFERED[there]:
            found.append('%s:%d: "%s" is for src/%s alone' % (path, number, match.group(1), there))
    for path, number, match in each_line(tree, tree.c_files(("cli/",)), include, code=False):
        here, there = folder_of(path)[1], match.group(1).rpartition("/")[0]
        if here and there in CLI_FOLDERS and CLI_FOLDERS.index(there) > CLI_FOLDERS.index(here):
            found.append('%s:%d: "%s" is of a lower folder' % (path, number, match.group(1)))
    for path, number, match in each_line(tree, tree.c_files(tuple(OUTSIDE)), include, code=False):
        name, top = match.group(1), folder_of(path)[0]
        if "src/" + name in tree.paths and name not in OUTSIDE[top]:
            found.append('%s:%d: "%s" is inside the library' % (path, number, name))
    return found


def rule_calls(tree):
    """the library neither prints nor ends the program"""
    return ["%s:%d: %s()" % (path, number, match.group(1)) for path, number, match in
            each_line(tree, tree.c_files(("src/", "include/")), FORBIDDEN_CALLS)]


def only_in(tree, folders, headers, allowed):
    include = re.compile(r"^\s*#\s*include\s*" + headers.pattern)
    return ["%s:%d: %s" % (path, number, match.group(0).strip()) for path, number, match in
            each_line(tree, tree.c_files(folders), include) if not allowed.match(path)]


def rule_math(tree):
    """<math.h> is included in src/plan only"""
    return only_in(tree, PRODUCT, MATH_HEADERS, MATH_FILES)


def rule_posix(tree):
    """in the library, POSIX headers are included in src/os, src/carrier and src/base/mem.c only"""
    return only_in(tree, ("src/", "include/"), POSIX_HEADERS, POSIX_FILES)


def rule_targets(tree):
    """src/base/cpu.c looks for all instructions that a function is compiled for"""
    known = re.findall(r'cpu_supports\("(\w+)"\)', tree.text("src/base/cpu.c"))
    target = re.compile(r'target\("([^"]*)"\)')
    return ["%s:%d: %s" % (path, number, name) for path, number, match in
            each_line(tree, tree.c_files(("src/",)), target, code=False)
            for name in match.group(1).split(",") if name not in known]


def rule_file_length(tree):
    """files have at most 700 lines (a warning from 600), tamis.h at most 600"""
    header = tree.text("include/tamis.h").count("\n")
    found = ["include/tamis.h: %d lines" % header] if header > TAMIS_H_MAX else []
    for path in tree.c_files(("src/", "cli/", "redis/")):
        length = tree.text(path).count("\n")
        if length > FILE_MAX:
            found.append("%s: %d lines" % (path, length))
        elif length > FILE_WARN:
            print("warning: %s: %d lines, more than %d" % (path, length, FILE_WARN))
    return found


def functions(code):
    """(name, first line, lines between the braces) of each function, by counting braces."""
    # Preprocessor lines would count both branches' braces, and macro bodies are no functions.
    code = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: re.sub(r"[^\n]", " ", m.group(0)),
                  code, flags=re.M)
    depth, head, name, start, line = 0, "", None, 0, 1
    for token in re.finditer(r"[{};\n]|[^{};\n]+", code):
        text = token.group(0)
        if text == "\n":
            line += 1
            head += " "
        elif text == "{":
            if depth == 0:
                is_function = re.search(r"(\w+)\s*\(.*\)[^=]*$", head) and "=" not in head
                name = re.search(r"(\w+)\s*\(", head).group(1) if is_function else None
                start = line
            depth += 1
        elif text == "}":
            depth = max(depth - 1, 0)
            if depth == 0:
                if name:
                    yield name, start, max(line - start - 1, 0)
                head, name = "", None
        elif depth == 0:
            head = "" if text == ";" else head + text


def rule_function_length(tree):
    """functions have at most 60 lines"""
    return ["%s:%d: %s has %d lines" % (path, start, name, length)
            for path in tree.c_files(("src/", "cli/", "redis/"))
            for name, start, length in functions(tree.code(path)) if length > FUNCTION_MAX]


def public_functions(tree):
    """(header, result, name, parameters) of each public function."""
    declared = re.compile(r"TAMIS_API\s+([^;()]*?)\b(tamis_\w+)\(([^;]*)\);")
    for path in tree.c_files(("include/",)):
        for match in declared.finditer(tree.code(path)):
            yield path, match.group(1).strip(), match.group(2), " ".join(match.group(3).split())


def rule_public_functions(tree):
    """a public function is used by the command line, the module, the carriers, or shown in an example"""
    callers = tree.c_files(("cli/", "redis/", "src/carrier/", "examples/"))
    called = {name for path in callers for name in re.findall(r"\btamis_\w+", tree.code(path))}
    return ["%s: only inside the library" % name for _, _, name, _ in public_functions(tree)
            if name not in called]


def rule_reasons(tree):
    """a public function that can fail by more than one of its arguments takes a reason, last"""
    from_outside = re.compile(r"_options \*|\bconst char \*|\bconst void \*(?:data|message|patch|tag)\b|"
                              r"\buint64_t segment\b")
    return ["%s: %s takes no reason" % (path, name)
            for path, result, name, parameters in public_functions(tree)
            if result == "tamis_error" and from_outside.search(parameters)
            and not parameters.endswith("tamis_reason *reason")]


def rule_leftovers(tree):
    """no notes of unfinished work, no merge left half-way"""
    return ["%s:%d: %s" % (path, number, match.group(0)) for pattern in (LEFTOVERS, CONFLICTS)
            for path, number, match in each_line(tree, tree.paths, pattern, code=False)]


def rule_root(tree):
    """what is at the root is in README's map, and nothing else is there; so are the folders of tests"""
    shown = {line.split()[0] for line in tree.text("README.md").split("## Map")[1].split("```")[1].split("\n")
             if line[:1].strip()}
    root = {p.split("/")[0] for p in tree.paths} - {".gitignore", "README.md"}
    tests = {"/".join(p.split("/")[:2]) + "/" for p in tree.paths if p.startswith("tests/") and p.count("/") > 1}
    return ["%s is not in README.md's map" % name
            for name in sorted((root - {entry.split("/")[0] for entry in shown}) | (tests - shown))]


def rule_mutations(_tree):
    """every fault to be planted finds its lines, once"""
    sys.path.insert(0, os.path.join(ROOT, "tests/mutations"))
    import run as mutations
    wrong = []
    for m in mutations.read_list():
        with open(os.path.join(ROOT, m.path)) as f:
            n = f.read().count(m.old)
        if n != 1:
            wrong.append("tests/mutations/list.txt: %s: its lines are %d times in %s" %
                         (m.name, n, m.path))
    return wrong


def callees(tree):
    """For each function of the product, the names that it calls or passes on."""
    found = {}
    for path in tree.c_files(("src/", "cli/", "redis/")):
        code = tree.code(path)
        lines = code.split("\n")
        for name, start, length in functions(code):
            body = "\n".join(lines[start - 1:start + length + 1])
            found.setdefault(name, set()).update(
                re.findall(r"(?<![.>\w])([a-z_]\w+)\(", body) +
                re.findall(r"[(,=?:]\s*([a-z_]\w+_\w+)\b(?!\s*[(.\[])", body))
    return found


def calls_to(graph, starts, goal, most):
    """Whether one of `starts` leads to `goal` in at most so many calls."""
    seen, now = set(starts), set(starts)
    for _ in range(most):
        now = {called for name in now for called in graph.get(name, ()) if called in graph} - seen
        seen |= now
    return goal in seen


WALK_MOST = 7    # calls from one of the steps before to the next one that a walk names


def rule_walks(tree):
    """docs/design.md begins with the folders, and the functions of its walks are where it says and lead to one another"""
    picture, text = tree.text("docs/design.md").split("## Four walks")
    text = text.split("\n## ")[0]
    step = re.compile(r"`(\w+)`\s+\(((?:src|cli|redis)/[\w./]+)\)")
    walks = [step.findall(walk) for walk in text.split("\n**")[1:]]
    count, graph = sum(len(walk) for walk in walks), callees(tree)
    found = [] if len(walks) == 4 and count > 25 else ["docs/design.md: %d steps only" % count]
    if re.findall(r"^((?:src|cli)/\w+) ", picture, re.M) != ["src/" + f for f in FOLDERS] + ["cli/" + f for f in CLI_FOLDERS]:
        found.append("docs/design.md: its picture does not show the folders of tools/lint.py in their order")
    for walk in walks:
        for i, (name, path) in enumerate(walk):
            if path not in tree.paths:
                found.append("docs/design.md: %s is not there" % path)
            elif not re.search(r"^(?!\s).*\b%s\(" % name, tree.code(path), re.M):
                found.append("docs/design.md: no function %s in %s" % (name, path))
            elif i and not calls_to(graph, [before for before, _ in walk[:i]], name, WALK_MOST):
                found.append("docs/design.md: nothing before %s leads to it" % name)
    return found


def prose(tree, path):
    """(line, text) of each comment and string of a C file, white space and stars folded."""
    text = tree.text(path)
    for match in re.finditer(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"', text, re.S):
        yield (text.count("\n", 0, match.start()) + 1,
               re.sub(r"\s*\n\s*(?:\* ?)?|\s+", " ", match.group(0)))


def rule_words(tree):
    """comments, messages and pages are in plain technical English"""
    pages = [path for path in tree.paths if path.endswith(".md")]
    texts = [(path, number, text) for path in tree.c_files() for number, text in prose(tree, path)]
    texts += [(path, number, line) for path in pages
              for number, line in enumerate(tree.text(path).split("\n"), 1)]
    return ["%s:%d: %r: write: %s" % (path, number, match.group(0), instead)
            for path, number, text in texts
            for pattern, instead in WORDINGS for match in pattern.finditer(text)]


def rule_tags(tree):
    """a tag means one thing in the product, and so does a constant of a header"""
    found, seen = [], {}
    for path, number, match in each_line(tree, tree.c_files(PRODUCT), re.compile(
            r"^\s*(?:typedef |static |const |extern )*(?:struct|union|enum) (\w+) \{")):
        name = match.group(1)
        if name in seen:
            found.append("%s:%d: %s is in %s too" % (path, number, name, seen[name]))
        seen[name] = path
    constants = {}
    for path, _, match in each_line(tree, tree.c_files(PRODUCT), re.compile(r"^#\s*define (\w+)\s+\S")):
        constants.setdefault(match.group(1), set()).add(path)
    return found + ["%s: a constant of %s" % (name, ", ".join(sorted(paths))) for name, paths in sorted(constants.items())
                    if len(paths) > 1 and any(path.endswith(".h") for path in paths)]


def rule_function_names(tree):
    """no function has the name of another that other files call, in the library or in the program it is part of"""
    own, shared = {}, {}
    for part in ("src/", "cli/", "redis/"):
        own[part], shared[part] = [], {}
        for path in tree.c_files((part,)):
            code = tree.code(path)
            for name in {name for name, _, _ in functions(code)} - {"__attribute__"}:
                head = re.search(r"^(?![ \t#])[^;{}\n]*\b%s\([^;{}]*\)\s*\{" % name, code, re.M)
                if head and re.match(r"(?:static|ALWAYS_INLINE)\b", head.group(0)):
                    own[part].append((name, path))
                elif head:
                    shared[part][name] = path
    return ["%s: %s() is the name of one in %s" % (path, name, shared[other][name])
            for part in own for other in own if part == other or "src/" in (part, other)
            for name, path in own[part] + (list(shared[part].items()) if part < other else [])
            if name in shared[other]]


def rule_heads(tree):
    """every source file begins with what it is for"""
    return ["%s: its head says nothing" % path
            for path in tree.c_files(("src/", "cli/", "redis/"))
            if not re.match(r"/\*(?!\s*See \S+\s*\*/)[\s\S]{25,}?\*/", tree.text(path))]


def rule_registries(tree):
    """no names of package registries: packages come from the system"""
    return ["%s:%d: %s" % (path, number, match.group(0)) for path, number, match in
            each_line(tree, tree.paths, REGISTRIES, code=False)]


RULES = [rule_format, rule_cppcheck, rule_folders, rule_calls, rule_math, rule_posix, rule_targets,
         rule_file_length, rule_function_length, rule_public_functions, rule_reasons, rule_leftovers, rule_root,
         rule_mutations,
         rule_walks, rule_words, rule_tags, rule_function_names, rule_heads, rule_registries]
SHOWN = 40


def main(wanted):
    tree = Tree()
    failed = 0
    for rule in RULES:
        name = rule.__name__[len("rule_"):].replace("_", "-")
        if wanted and name not in wanted:
            continue
        findings = rule(tree)
        for line in findings[:SHOWN]:
            print(line)
        if findings:
            failed += 1
            print("not ok lint-%s: rule broken %d times: %s" % (name, len(findings), rule.__doc__))
        else:
            print("ok lint-%s" % name)
        sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
