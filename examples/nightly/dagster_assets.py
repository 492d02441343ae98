"""The release as a Dagster asset: `dagster asset materialize -f dagster_assets.py --select visits_release`.

DATABASE and FOLDER come from the environment, so that nothing of them stands in the code.
"""

import os
from pathlib import Path

import dagster as dg
from release import release

import sqldeid


@dg.asset(group_name="release", description="Tonight's visits, de-identified")
def visits_release() -> dg.MaterializeResult:
    """Release tonight's load; a load that breaks the criteria fails without a retry."""
    try:
        numbers = release(os.environ["DATABASE"], Path(os.environ["FOLDER"]))
    except sqldeid.SqldeidError as error:
        raise dg.Failure(error.message, allow_retries=error.code == 1) from error  # no data value is in a message
    return dg.MaterializeResult(metadata={name: value for name, value in numbers.items() if name != "held_back"})


defs = dg.Definitions(assets=[visits_release])
