"""The Java that Spark would start: which one it is, and what is wrong with it. Needs no PySpark."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

OLDEST_JAVA = 17
INSTALL_JAVA = (
    "apt install openjdk-17-jre-headless, dnf install java-17-openjdk-headless or brew install openjdk@17, "
    "or set JAVA_HOME"
)
_VECTORS = "jdk.incubator.vector"  # Spark's process is started with this module
_SECONDS = 30


@dataclass(frozen=True)
class JavaRuntime:
    """What was found, in a line; `fix` is what helps, and None where all is well."""

    message: str
    fix: str | None = None


def find_java() -> JavaRuntime:
    """Spark's own rule: JAVA_HOME where it is set, else the path."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else "java"
    message = output_of([java, "-version"])
    if message is None and home:
        return JavaRuntime(f"JAVA_HOME is {home}, and no Java runs there", f"correct or unset it; {INSTALL_JAVA}")
    if message is None:
        return JavaRuntime("no Java is on the path, and JAVA_HOME is not set", INSTALL_JAVA)
    where = shutil.which(java) or java
    version = re.search(r'version "(?:1\.)?(\d+)', message)  # Java 8 calls itself 1.8
    if version is None:
        return JavaRuntime(f"{where} does not tell its version", INSTALL_JAVA)
    if int(version[1]) < OLDEST_JAVA:
        return JavaRuntime(f"{where} is Java {version[1]}; Spark 4 needs {OLDEST_JAVA} or newer", INSTALL_JAVA)
    if _VECTORS not in (output_of([java, "--list-modules"]) or _VECTORS):
        fix = f"use a Java that is not cut down; {INSTALL_JAVA}"
        return JavaRuntime(f"{where} is Java {version[1]} without the module {_VECTORS}, which Spark needs", fix)
    return JavaRuntime(f"Java {version[1]} ({where})")


def output_of(command: Sequence[str]) -> str | None:
    """What a program prints; None where it cannot be run or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout + done.stderr
