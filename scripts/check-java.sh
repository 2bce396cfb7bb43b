#!/bin/sh
# Says whether the Java that Spark will start is new enough, and what to install where it is not.
set -u

refuse() {
    cat >&2 <<EOF
Skewless runs on Spark, which needs Java 17 or newer: $1

  Debian, Ubuntu   sudo apt-get install openjdk-17-jre-headless
                   (where a release no longer has it: openjdk-21-jre-headless)
  Fedora           sudo dnf install java-21-openjdk-headless
  macOS            brew install openjdk@17
                   export JAVA_HOME="\$(brew --prefix openjdk@17)"

If a newer Java is installed already, point JAVA_HOME at it.
EOF
    exit 1
}

# The order in which Spark's own launcher looks.
if [ -n "${JAVA_HOME:-}" ]; then
    java="$JAVA_HOME/bin/java"
    [ -x "$java" ] || refuse "JAVA_HOME is $JAVA_HOME, where there is no bin/java."
else
    java=$(command -v java) || refuse "no java was found."
fi

# Not simply the first line: with JAVA_TOOL_OPTIONS the JVM prints another one before it.
version=$("$java" -version 2>&1 | sed -n 's/.*version "\([^"]*\)".*/\1/p' | head -n 1)
[ -n "$version" ] || refuse "$java does not tell its version."

major=${version#1.} # Java 8 calls itself 1.8
major=${major%%[!0-9]*}
[ "${major:-0}" -ge 17 ] || refuse "$java is version $version."

# Spark starts the JVM with this module; cut-down runtimes lack it and die with a boot layer error.
"$java" --add-modules=jdk.incubator.vector -version >/dev/null 2>&1 ||
    refuse "$java $version is a cut-down runtime without the module jdk.incubator.vector."

echo "Java $version: $java"
