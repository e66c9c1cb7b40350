"""The API keeps to what its description says, whatever it is sent: no answer is undocumented, none is a 500."""

import subprocess
import sys
from pathlib import Path

_CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
)


def test_answers_to_generated_requests_are_as_described(url: str, tmp_path: Path) -> None:
    command = [
        *(Path(sys.executable).with_name("schemathesis"), "run", f"{url}/openapi.json"),
        *("--header", "Authorization: Bearer north", "--phases", "examples,coverage,fuzzing"),
        *("--seed", "1", "--max-examples", "25", "--max-time", "60", "--generation-database", "none"),
        *("--checks", ",".join(_CHECKS)),
    ]

    done = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "Tested: 5" in done.stdout
