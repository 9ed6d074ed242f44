"""hooks.py -- what mkdocs asks while it builds the site: colours for Tenon's language, and files outside docs/.

A page may link to any file of the repository by its relative path, as on a viewer of repositories.  Markdown files become
pages under repository/, other texts become pages with their text in colours, directories become lists, and pictures and
everything else are copied.  Only what a page links to, or what mkdocs.yml names, is taken.
"""
import os
import posixpath
import re
import sys

from mkdocs.structure.files import File
from mkdocs.utils import log

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tenon_lexer  # noqa: E402

PLACE = "repository/"
TEXT_BYTES = 400_000                       # a longer text is copied, and gets no page
LANGUAGES = {".tn": "tenon", ".c": "c", ".h": "c", ".cu": "cuda", ".cuh": "cuda", ".def": "c", ".py": "python", ".sh": "sh",
             ".cmake": "cmake", ".yml": "yaml", ".y": "text", ".l": "text", ".sweep": "text", ".txt": "text",
             ".err": "text", ".sbatch": "sh"}
COPIED = {".svg", ".png", ".jpg", ".html", ".csv", ".json", ".db", ".gz", ".xz", ".npy"}

LINK = re.compile(r"(\]\()(<?)([^)\s>]+)(>?)((?:\s+\"[^\"]*\")?\))")
REFERENCE = re.compile(r"^(\s{0,3}\[[^\]]+\]:\s+)(<?)(\S+?)(>?)(\s|$)")
HTML = re.compile(r"(\b(?:src|href|srcset)=\")()([^\"]+)()(\")")
FENCE = re.compile(r"^\s*(```+|~~~+)")
LIST = re.compile(r"^([-*+]|\d+[.)]) ")

root = ""                                  # directory of the repository
shown = {}                                 # path in the repository -> path of its page or copy among the site's sources


def on_config(config):
    global root
    root = os.path.dirname(config.config_file_path)
    tenon_lexer.register()
    return config


# ---- targets of links

def external(target):
    return re.match(r"[a-z][a-z0-9+.-]*:|//|#|/", target, re.I) is not None


def resolve(page, target):
    """Path in the repository of a relative link on a page (a path in the repository, too); None where it leaves it."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page), target.split("#")[0]))
    return None if path.startswith("..") else path


def is_docs_page(path):
    return path.startswith("docs/") and not path.startswith("docs/generate") and path.endswith((".md", ".svg", ".png"))


def source_of(path):
    """Where a file outside docs/ comes in the site."""
    full = os.path.join(root, path)
    if os.path.isdir(full):
        readme = posixpath.join(path, "README.md")
        return PLACE + (readme if os.path.exists(os.path.join(root, readme)) else posixpath.join(path, "files.md"))
    if path.endswith(".md") or posixpath.splitext(path)[1] in COPIED or os.path.getsize(full) > TEXT_BYTES:
        return PLACE + path
    return PLACE + path + ".md"


def links(text):
    for line, code in lines_of(text):
        if not code:
            for pattern in (LINK, REFERENCE, HTML):
                for found in pattern.finditer(blank_code(line)):
                    yield found.group(3)


def lines_of(text):
    """Lines, each with whether it is inside a fenced block (or its fence)."""
    fence = None
    for line in text.split("\n"):
        found = FENCE.match(line)
        if fence is None and found:
            fence = found.group(1)
            yield line, True
        elif fence is not None:
            if found and line.strip().startswith(fence) and line.strip().strip(fence[0]) == "":
                fence = None
            yield line, True
        else:
            yield line, False


def blank_code(line):
    """The line with `code` made blank, so that no link is found inside."""
    return re.sub(r"(`+)(.+?)\1", lambda m: " " * len(m.group(0)), line)


# ---- pages of files outside docs/

def read(path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as f:
        return f.read()


def language_of(path, text):
    name, extension = posixpath.splitext(path)
    if extension in LANGUAGES:
        return LANGUAGES[extension]
    first = text.split("\n", 1)[0]
    return "python" if first.startswith("#!") and "python" in first else "sh" if first.startswith("#!") else "text"


def text_page(path):
    text = read(path)
    fence = "`" * max(3, 1 + max((len(m) for m in re.findall(r"`+", text)), default=0))
    return (f"---\ntitle: {path}\nsearch:\n  exclude: true\nhide:\n  - toc\n  - navigation\n---\n\n# `{path}`\n\n"
            f"The file as it was when this site was built.\n\n{fence}{language_of(path, text)}\n{text.rstrip()}\n{fence}\n")


def list_page(path):
    rows = []
    for name in sorted(os.listdir(os.path.join(root, path))):
        full = posixpath.join(path, name)
        if not name.startswith(".") and os.path.isfile(os.path.join(root, full)):
            rows.append(f"- [{name}]({name})")
    return f"---\ntitle: {path}/\nsearch:\n  exclude: true\nhide:\n  - toc\n  - navigation\n---\n\n# `{path}/`\n\n" + "\n".join(rows) + "\n"


def content_of(path):
    """Markdown of the page of a file or directory; None: its bytes are copied."""
    if os.path.isdir(os.path.join(root, path)):
        return list_page(path)
    if path.endswith(".md"):
        return read(path)
    return text_page(path) if source_of(path).endswith(".md") else None


def named(nav):
    for item in nav or []:
        for value in item.values() if isinstance(item, dict) else [item]:
            if isinstance(value, str):
                yield value
            else:
                yield from named(value)


def on_files(files, config):
    shown.clear()
    queue = [name[len(PLACE):] for name in named(config.nav) if name.startswith(PLACE)]
    for file in files.documentation_pages():
        queue += wanted("docs/" + file.src_uri, file.content_string)
    while queue:
        path = queue.pop()
        if path in shown or not os.path.exists(os.path.join(root, path)):
            continue
        if os.path.isdir(os.path.join(root, path)) and source_of(path).endswith("README.md"):
            queue.append(posixpath.join(path, "README.md"))
            shown[path] = source_of(path)
            continue
        content = content_of(path)
        shown[path] = source_of(path)
        if content is None:
            files.append(File.generated(config, shown[path], abs_src_path=os.path.join(root, path)))
        else:
            files.append(File.generated(config, shown[path], content=content))
            queue += wanted(path if not os.path.isdir(os.path.join(root, path)) else path + "/files.md", content)
    return files


def wanted(page, text):
    """Paths outside docs/ that a page links to."""
    for target in links(text):
        path = None if external(target) else resolve(page, target)
        if path and not is_docs_page(path):
            yield path


# ---- the text of a page

def path_of(page):
    """Of a page of the site: its path in the repository."""
    uri = page.file.src_uri
    if not uri.startswith(PLACE):
        return "docs/" + uri
    for path, source in shown.items():
        if source == uri and not os.path.isdir(os.path.join(root, path)):
            return path
    return uri[len(PLACE):]


def rewrite(page, found, is_html):
    target = found.group(3)
    if external(target):
        return found.group(0)
    path = resolve(path_of(page), target)
    anchor = target[target.index("#"):] if "#" in target else ""
    if path is None or not os.path.exists(os.path.join(root, path)):
        log.warning(f"{path_of(page)}: the link '{target}' leads to nothing")
        return found.group(0)
    if is_docs_page(path):
        to = path[len("docs/"):]
    else:
        to = shown.get(path) or source_of(path)
        anchor = anchor if path.endswith(".md") else ""
    to = posixpath.relpath(to, posixpath.dirname(page.file.src_uri) or ".")
    if is_html and to.endswith(".md"):
        to = re.sub(r"README$", "index", to[:-3]) + ".html"
    return found.group(1) + found.group(2) + to + anchor + found.group(4) + found.group(5)


def in_text(line, pattern, replace):
    """The line with what matches outside of `code` replaced."""
    parts, at, blank = [], 0, blank_code(line)
    for found in pattern.finditer(blank):
        parts += [line[at:found.start()], replace(found)]
        at = found.end()
    return "".join(parts) + line[at:]


def fence_line(line):
    """```tenon file=NAME and ```tenon-error, the forms of examples that are tests, as mkdocs wants them."""
    line = re.sub(r"^(\s*```+)tenon file=(\S+)\s*$", r'\1tenon title="\2"', line)
    return re.sub(r"^(\s*```+)tenon-error\s*$", r"\1{ .tenon .example-error }", line)


def on_page_markdown(markdown, page, config, files):
    out, in_list = [], False
    for line, code in lines_of(markdown):
        if code:
            out.append(fence_line(line))
            continue
        if line.startswith("|"):               # \\| inside `code` of a table is | on other viewers
            line = re.sub(r"`[^`]*`", lambda m: m.group(0).replace("\\|", "|"), line)
        for pattern in (LINK, REFERENCE, HTML):
            line = in_text(line, pattern, lambda found: rewrite(page, found, pattern is HTML))
        # A list may follow a paragraph without an empty line, as on other viewers.
        if LIST.match(line):
            if not in_list and out and out[-1].strip() and not out[-1].startswith(("#", "|", ">", " ")):
                out.append("")
            in_list = True
        elif not line.strip() or not line.startswith(" ") and out and not out[-1].strip():
            in_list = in_list and not line.strip()
        out.append(line)
    return "\n".join(out)
