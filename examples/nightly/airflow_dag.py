"""The release as an Airflow task, once a day: put this file and `release.py` into the folder of your DAGs.

DATABASE and FOLDER come from the environment of the worker, so that nothing of them stands in the code.
"""

import os
from datetime import datetime
from pathlib import Path

from airflow.exceptions import AirflowFailException
from airflow.sdk import dag, task


@task(retries=2)
def visits_release() -> dict[str, object]:
    """Release tonight's load; a load that breaks the criteria fails without a retry."""
    from release import release  # not while the scheduler reads this file

    import sqldeid

    try:
        numbers = release(os.environ["DATABASE"], Path(os.environ["FOLDER"]))
    except sqldeid.SqldeidError as error:
        if error.code == 1:  # a lock, the disk: tried again
            raise
        raise AirflowFailException(error.message) from error  # no data value is in a message
    return {name: value for name, value in numbers.items() if name != "held_back"}


@dag(schedule="@daily", start_date=datetime(2026, 1, 1), catchup=False, max_active_runs=1)
def nightly() -> None:
    """One run at a time: a ledger and a release are written by one process."""
    visits_release()


nightly()
