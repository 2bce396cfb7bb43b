"""Where a query keeps what it writes: its checkpoint, and folders that Spark and we see alike."""

import uuid

from pyspark.sql import SparkSession

from skewless.errors import bad_argument
from skewless.runtime.workers import is_local
from skewless.state.location import check_shared
from skewless.state.naming import is_plain_name
from skewless.state.storage import Storage


def placed(option: str, path: str, session: SparkSession) -> str:
    """The same folder for Spark and for us: Java may have been started in another one.

    On a cluster a relative path is relative to whatever its file system says.
    """
    check_shared(option, path)
    return Storage(path).absolute().uri if is_local(session) else path


def default_checkpoint(session: SparkSession, query_name: str | None) -> str | None:
    """The checkpoint below the session's checkpointLocation, if it has one."""
    default = session.conf.get("spark.sql.streaming.checkpointLocation", None)
    if not default:
        return None
    folder = query_name or uuid.uuid4().hex
    if not is_plain_name(folder):
        takes = (
            r"a name without / and \ that is not '..': it is the name of the folder below "
            "spark.sql.streaming.checkpointLocation; or set the option checkpointLocation"
        )
        raise bad_argument("queryName", folder, takes)
    return f"{default.rstrip('/')}/{folder}"
