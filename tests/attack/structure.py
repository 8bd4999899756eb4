"""Changes texts by their structure: JSON by its tokens, other texts by their pieces."""
import json
import re

VALUES = ["0", "1", "-1", "-0", "1.0", "1e2", "01", "true", "null", '""', "[]", "{}", "[0]", "18446744073709551616", "9223372036854775808", "1e400", "NaN",
          '"F32"', '"I8"', '"F64"', '"BOOL"', '"F8_E4M3"', '"\\u0000"', '"\\ud800"', '"a\\/b"', "[1,2]", "[2,1]", "[0,9223372036854775808]"]
SPACES = [" ", "\t", "\n", "\r", "\f", "\v", "\0", "\u00a0", "/**/", "//\n", ",", ""]
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+|\s+')


def change_json(text, rng):
    """Changes tokens of a JSON text: swaps, repetitions, other values, white space."""
    tokens = TOKEN.findall(text)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if not tokens:
            break
        at, other, kind = rng.randrange(len(tokens)), rng.randrange(len(tokens)), rng.randrange(7)
        if kind == 0:
            tokens[at], tokens[other] = tokens[other], tokens[at]
        elif kind == 1:
            tokens[at] = rng.choice(VALUES)
        elif kind == 2:
            tokens.insert(at, rng.choice(SPACES))
        elif kind == 3:
            del tokens[at]
        elif kind == 4:
            first, last = min(at, other), max(at, other)
            tokens[first:first] = tokens[first:min(last, first + 20)] + [","]
        elif kind == 5:
            tokens[at] = tokens[other]
        else:
            number = re.fullmatch(r"\d+", tokens[at])
            tokens[at] = str(max(0, int(number[0]) + rng.choice((-8, -4, -1, 1, 4, 8)))) if number else json.dumps(tokens[at])
    return "".join(tokens)


def change_text(text, rng):
    """Changes the pieces of a text in XML or HTML: tags, words and what is between them."""
    pieces = re.findall(r"<[^>]*>|\w+|\s+|.", text)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        at, other, kind = rng.randrange(len(pieces)), rng.randrange(len(pieces)), rng.randrange(5)
        if kind == 0:
            pieces[at], pieces[other] = pieces[other], pieces[at]
        elif kind == 1:
            pieces[at] = rng.choice(PIECES)
        elif kind == 2:
            pieces.insert(at, pieces[other])
        elif kind == 3:
            del pieces[at]
        else:
            first, last = min(at, other), max(at, other)
            pieces[first:first] = pieces[first:last] * rng.choice((1, 2, 50))
        if not pieces:
            break
    return "".join(pieces)


PIECES = ["", "0", "-1", "18446744073709551615", "1e3", "../", "/", "//", "%2e%2e", "%00", "\0", "\x1b[31m", "&amp;", "&#10;", "&lt;", "&a;", "<a>", "</a>", "<!--", "-->", "<![CDATA[", "]]>",
          "<?xml?>", "<!DOCTYPE a>", "'", '"', "a" * 3000, "http://127.0.0.1:1/", "file:///etc/passwd", "true", "\u202e"]
