#!/usr/bin/env python3
"""Prints a multistatus of WebDAV, on standard input, a line for each property: its resource's path, decoded, the status,
the property and its value. Expected form: RFC 4918, section 14."""
import sys
import urllib.parse
import xml.etree.ElementTree as tree

D = "{DAV:}"
root = tree.parse(sys.stdin.buffer).getroot()
assert root.tag == D + "multistatus", root.tag
paths = []
for response in root:
    assert [child.tag for child in response] == [D + "href"] + [D + "propstat"] * (len(response) - 1) and len(response) > 1
    href = response.findtext(D + "href")
    assert href.startswith("/") and href.isascii() and not set(href) & set(' "<>&?#'), href
    paths.append(href)
    for propstat in response.findall(D + "propstat"):
        protocol, code, _ = propstat.findtext(D + "status").split(" ", 2)
        assert protocol == "HTTP/1.1"
        for prop in propstat.find(D + "prop"):
            value = "collection" if prop.find(D + "collection") is not None else prop.text or ""
            print(urllib.parse.unquote(href), code, prop.tag.removeprefix(D), value, sep="\t")
assert len(set(paths)) == len(paths), "each resource once"
