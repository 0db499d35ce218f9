"""Extracts the text of a PDF with pypdf: the file on stdin, its pages on stdout, each followed by a form feed."""

import io
import logging
import sys

import pypdf

# It warns about every irregularity of a file; only the text matters here.
logging.disable(logging.CRITICAL)
reader = pypdf.PdfReader(io.BytesIO(sys.stdin.buffer.read()))
if reader.is_encrypted and not reader.decrypt(""):
    sys.exit("needs a password")
for page in reader.pages:
    text = page.extract_text() + "\f\n"
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
