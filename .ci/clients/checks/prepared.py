"""What checks need before they can run: tools that have to be there, and programs that are built once."""

import hashlib
import os
import pathlib
import shutil
import sys
import tempfile

from .scenario import run

CI = pathlib.Path(__file__).resolve().parent.parent.parent
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "doze"


class Missing(Exception):
    """This machine lacks what the check needs."""


def need(*tools):
    for tool in tools:
        if not shutil.which(tool):
            raise Missing(f"{tool} is not installed")


def built(name, sources, build):
    """A folder that `build(folder)` fills, kept in the user's cache until one of the sources changes."""
    digest = hashlib.sha256()
    for source in sources:
        digest.update(source.read_bytes())
    folder = CACHE / f"{name}-{digest.hexdigest()[:12]}"
    if not folder.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        new = pathlib.Path(tempfile.mkdtemp(prefix=f"{name}.", dir=CACHE))
        try:
            build(new)
            new.rename(folder)
        except BaseException:
            shutil.rmtree(new, ignore_errors=True)
            raise
    return folder


def confluent_kafka():
    """The folder that Python imports confluent_kafka (librdkafka) from."""
    need("python3")
    requirements = CI / "clients" / "python/requirements.txt"

    def build(folder):
        # Packages beside the interpreter in a folder of their own: unlike a venv, it may be renamed.
        run([sys.executable, "-m", "pip", "install", "-q", "--no-input", "--disable-pip-version-check", "--root-user-action=ignore",
             "--target", folder, "-r", requirements], patience_s=300)

    return built("confluent-kafka", [requirements], build)


def franz_go(program):
    """An executable of the Go module: `client`, or `copier`."""
    need("go")
    go = CI / "clients" / "go"
    package = {"client": ".", "copier": "./copier"}[program]
    sources = [go / "go.mod", go / "go.sum", *sorted((go / package).glob("*.go"))]
    return built(f"franz-go-{program}", sources, lambda folder: run(["go", "build", "-C", go, "-o", folder / program, package], patience_s=600)) / program


def java_parts():
    """Apache Kafka's jars, and the classes of .ci/clients/java."""
    need("java", "javac", "mvn")
    libs = run([CI / "kafka-libs"], patience_s=900).strip()
    sources = sorted((CI / "clients/java").glob("*.java"))
    classes = built("java-clients", sources, lambda folder: run(["javac", "-cp", f"{libs}/*", "-d", folder, *sources], patience_s=300))
    return libs, classes


def offline_parts():
    """Apache Kafka's jars, and the class that writes directories for the offline commands to be looked at with."""
    need("java", "javac", "mvn")
    libs = run([CI / "kafka-libs"], patience_s=900).strip()
    source = CI / "checks/java/Offline.java"
    classes = built("offline", [source], lambda folder: run(["javac", "-nowarn", "-cp", f"{libs}/*", "-d", folder, source], patience_s=300))
    return libs, classes


def connect_libs():
    """The jars of Kafka Connect and MirrorMaker."""
    need("java", "mvn")
    return run([CI / "kafka-libs", CI / "java/connect.xml"], patience_s=900).strip()
