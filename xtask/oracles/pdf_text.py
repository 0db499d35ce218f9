"""The text of a PDF by pypdf: the file on stdin, its pages on stdout with a form feed behind each."""

import io
import logging
import sys

import pypdf

# It warns of every oddity of a file; what counts here is the text.
logging.disable(logging.CRITICAL)
reader = pypdf.PdfReader(io.BytesIO(sys.stdin.buffer.read()))
if reader.is_encrypted and not reader.decrypt(""):
    sys.exit("needs a password")
for page in reader.pages:
    text = page.extract_text() + "\f\n"
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
