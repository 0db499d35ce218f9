"""Checks a bill of materials against the schema of CycloneDX 1.5, with its rules for licence expressions.

Usage: bill_of_materials.py FILE
"""

import sys
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

problem = JsonStrictValidator(SchemaVersion.V1_5).validate_str(Path(sys.argv[1]).read_text())
if problem:
    sys.exit(f"{sys.argv[1]}: {problem}")
