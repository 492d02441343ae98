"""The made hospital: types of MIMIC-III, every row with its parent, times in order, dependencies, one seed for all."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sqldeid.demo import vitals
from sqldeid.demo.conditions import CHRONIC, CONDITIONS
from sqldeid.demo.hospital import mimic_rows

Tables = dict[str, pd.DataFrame]
COLUMNS = {
    "patients": "row_id subject_id gender dob dod dod_hosp dod_ssn expire_flag",
    "admissions": "row_id subject_id hadm_id admittime dischtime deathtime admission_type admission_location "
    "discharge_location insurance language religion marital_status ethnicity edregtime edouttime diagnosis "
    "hospital_expire_flag has_chartevents_data",
    "icustays": "row_id subject_id hadm_id icustay_id dbsource first_careunit last_careunit first_wardid last_wardid "
    "intime outtime los",
    "transfers": "row_id subject_id hadm_id icustay_id dbsource eventtype prev_careunit curr_careunit prev_wardid "
    "curr_wardid intime outtime los",
    "diagnoses_icd": "row_id subject_id hadm_id seq_num icd9_code",
    "procedures_icd": "row_id subject_id hadm_id seq_num icd9_code",
    "d_icd_procedures": "row_id icd9_code",
    "chartevents": "row_id subject_id hadm_id icustay_id itemid charttime storetime cgid value valuenum valueuom "
    "warning error resultstatus stopped",
}
TIMES = ("dob", "dod", "dod_hosp", "dod_ssn", "edregtime", "edouttime", "intime", "outtime")
TEXTS = ("gender", "dbsource", "insurance", "language", "religion", "diagnosis", "value", "valueuom", "icd9_code")


def whole(patients: int, seed: int) -> dict[str, pa.Table]:
    """All rows in memory."""
    return {
        name: rows if isinstance(rows, pa.Table) else rows.read_all()
        for name, rows in mimic_rows(patients, seed).items()
    }


@pytest.fixture(scope="module")
def hospital() -> Tables:
    return {name: rows.to_pandas() for name, rows in whole(2_000, 1).items()}


def test_columns_and_types() -> None:
    made = whole(20, 1)
    assert {name: " ".join(rows.schema.names) for name, rows in made.items()} == COLUMNS
    for rows in made.values():
        for field in rows.schema:
            if field.name in TIMES or field.name.endswith("time"):
                assert field.type == pa.timestamp("us")
            elif field.name.endswith("_id"):
                assert field.type == pa.int32()
            elif field.name in TEXTS:
                assert field.type == pa.string()


def test_headers_are_those_of_the_real_tables(shared_data: Path) -> None:
    for name, columns in COLUMNS.items():
        file = shared_data / "mimic3demo" / f"{name.upper()}.csv"
        head = file.read_bytes() if file.is_file() else gzip.decompress(Path(f"{file}.gz").read_bytes())
        real = next(csv.reader([head.splitlines()[0].decode().lower()]))
        assert columns.split() == [column for column in real if not column.endswith("_title")]


def test_codes_are_codes_of_the_dictionaries(shared_data: Path) -> None:
    folder = shared_data / "mimic3demo"
    with gzip.open(folder / "D_ICD_DIAGNOSES.csv.gz", "rt", errors="replace", newline="") as stream:
        diagnoses = {row["icd9_code"] for row in csv.DictReader(stream)}
    with open(folder / "D_ICD_PROCEDURES.csv", newline="") as stream:
        procedures = {row["icd9_code"] for row in csv.DictReader(stream)}
    assert {code for c in CONDITIONS for code in (*c.primary, *c.secondary)} | set(CHRONIC) <= diagnoses
    assert {code for c in CONDITIONS for code in c.procedures} <= procedures


def test_same_seed_same_rows_and_another_seed_others() -> None:
    one, same, other = whole(50, 7), whole(50, 7), whole(50, 8)
    assert all(one[name].equals(same[name]) for name in one)
    assert not any(one[name].equals(other[name]) for name in one if name != "d_icd_procedures")


@pytest.mark.parametrize("patients", [1, 2, 3])
def test_small_sizes(patients: int) -> None:
    assert whole(patients, 5)["patients"].num_rows == patients


def test_keys_are_unique_and_every_row_has_its_parent(hospital: Tables) -> None:
    for name, key in (("patients", "subject_id"), ("admissions", "hadm_id"), ("icustays", "icustay_id")):
        assert hospital[name][key].is_unique
    assert all((rows["row_id"] == np.arange(1, len(rows) + 1)).all() for rows in hospital.values())
    patients = set(hospital["patients"]["subject_id"])
    admissions = set(zip(hospital["admissions"]["subject_id"], hospital["admissions"]["hadm_id"], strict=True))
    assert {subject for subject, _ in admissions} == patients
    for name in ("icustays", "transfers", "diagnoses_icd", "procedures_icd", "chartevents"):
        child = hospital[name]
        assert set(zip(child["subject_id"], child["hadm_id"], strict=True)) <= admissions
    stays = {tuple(row) for row in hospital["icustays"][["hadm_id", "icustay_id"]].itertuples(index=False)}
    for name in ("transfers", "chartevents"):
        linked = hospital[name].dropna(subset="icustay_id")
        assert {(int(h), int(s)) for h, s in zip(linked["hadm_id"], linked["icustay_id"], strict=True)} <= stays
    assert set(hospital["procedures_icd"]["icd9_code"]) == set(hospital["d_icd_procedures"]["icd9_code"])


def test_times_are_in_order(hospital: Tables) -> None:
    admissions = hospital["admissions"]
    assert (admissions["admittime"] < admissions["dischtime"]).all()
    assert admissions["admittime"].min().year >= 2100
    assert admissions["dischtime"].max().year <= 2200
    next_one = admissions.groupby("subject_id")["admittime"].shift(-1)
    assert (next_one.isna() | (next_one > admissions["dischtime"])).all()
    assert (admissions["edregtime"].isna() | (admissions["edregtime"] < admissions["admittime"])).all()
    stays = hospital["icustays"].merge(admissions, on="hadm_id")
    assert (stays["intime"] <= stays["outtime"]).all()
    assert ((stays["intime"] >= stays["admittime"]) & (stays["outtime"] <= stays["dischtime"])).all()
    events = hospital["chartevents"].merge(hospital["icustays"], on="icustay_id")
    assert ((events["charttime"] >= events["intime"]) & (events["charttime"] <= events["outtime"])).all()
    assert (events["storetime"] > events["charttime"]).all()


def test_transfers_lead_from_admission_to_discharge_without_a_gap(hospital: Tables) -> None:
    transfers = hospital["transfers"].merge(hospital["admissions"], on="hadm_id")
    by_admission = transfers.groupby("hadm_id")
    first, last = by_admission.cumcount() == 0, by_admission.cumcount(ascending=False) == 0
    expected = np.select([first, last], ["admit", "discharge"], "transfer")
    assert (transfers["eventtype"] == expected).all()
    assert (transfers.loc[last, "intime"] == transfers.loc[last, "dischtime"]).all()
    assert (transfers.loc[first, "intime"] >= transfers.loc[first, "admittime"]).all()
    for now, before in (("intime", "outtime"), ("prev_wardid", "curr_wardid"), ("prev_careunit", "curr_careunit")):
        came = by_admission[before].shift()[~first]
        here = transfers.loc[~first, now]
        assert ((here == came) | (here.isna() & came.isna())).all()
    assert transfers.loc[last, ["outtime", "los", "curr_wardid", "icustay_id"]].isna().all(axis=None)
    assert transfers.loc[~last, ["outtime", "los", "curr_wardid"]].notna().all(axis=None)


def test_icu_stays_are_what_their_transfers_say(hospital: Tables) -> None:
    transfers = hospital["transfers"].dropna(subset="icustay_id")
    found = transfers.groupby("icustay_id").agg(
        intime=("intime", "min"),
        outtime=("outtime", "max"),
        first_careunit=("curr_careunit", "first"),
        last_careunit=("curr_careunit", "last"),
        first_wardid=("curr_wardid", "first"),
        last_wardid=("curr_wardid", "last"),
    )
    stays = hospital["icustays"].set_index("icustay_id").sort_index()
    pd.testing.assert_frame_equal(stays[found.columns], found, check_dtype=False, check_index_type=False)
    days = (stays["outtime"] - stays["intime"]).dt.total_seconds() / 86_400
    assert np.allclose(stays["los"], days, atol=1e-4)
    assert (transfers.groupby("icustay_id").size() == 2).any()
    assert (stays.groupby("hadm_id").size() == 2).any()


def test_null_stands_where_mimic_has_it(hospital: Tables) -> None:
    patients, admissions, events = hospital["patients"], hospital["admissions"], hospital["chartevents"]
    dead = admissions["hospital_expire_flag"] == 1
    assert (admissions["deathtime"].notna() == dead).all()
    assert ((admissions["discharge_location"] == "DEAD/EXPIRED") == dead).all()
    assert (patients["dod"].notna() == (patients["expire_flag"] == 1)).all()
    assert set(patients.loc[patients["dod_hosp"].notna(), "subject_id"]) == set(admissions.loc[dead, "subject_id"])
    emergency = admissions["admission_location"] == "EMERGENCY ROOM ADMIT"
    assert (admissions["edregtime"].notna() == emergency).all()
    assert 0.3 < admissions["language"].isna().mean() < 0.5
    assert 0.05 < admissions["marital_status"].isna().mean() < 0.25
    assert admissions.loc[admissions["admission_type"] == "NEWBORN", "marital_status"].isna().all()
    old_system = events["itemid"] < 220_000
    assert (events["warning"].isna() == old_system).all()
    assert (events["stopped"].notna() == old_system).all()
    assert 0 < events["valuenum"].isna().mean() < 0.01
    assert (events["value"].isna() == events["valuenum"].isna()).all()


def test_the_dead_do_not_come_again(hospital: Tables) -> None:
    admissions = hospital["admissions"]
    last = admissions.groupby("subject_id").cumcount(ascending=False) == 0
    assert admissions.loc[~last, "hospital_expire_flag"].sum() == 0
    assert 0.04 < admissions["hospital_expire_flag"].mean() < 0.2
    dead = hospital["patients"].dropna(subset="dod").merge(admissions, on="subject_id")
    assert (dead["dod"].dt.normalize() >= dead["dischtime"].dt.normalize()).all()


def test_ages_over_89_are_shown_as_300_years(hospital: Tables) -> None:
    first = hospital["admissions"].groupby("subject_id")["admittime"].min()
    born = hospital["patients"].set_index("subject_id")["dob"]
    age = first.dt.year - born.dt.year
    hidden = age > 200
    assert 0.01 < hidden.mean() < 0.12
    assert age[hidden].between(299, 301).all()
    assert age[~hidden].between(0, 90).all()
    assert (born <= first).all()


def test_diagnoses_begin_with_the_reason_and_count_up(hospital: Tables) -> None:
    for name in ("diagnoses_icd", "procedures_icd"):
        rows = hospital[name]
        assert (rows["seq_num"] == rows.groupby("hadm_id").cumcount() + 1).all()
        assert not rows.duplicated(["hadm_id", "icd9_code"]).any()
    first = hospital["diagnoses_icd"].query("seq_num == 1").merge(hospital["admissions"], on="hadm_id")
    assert len(first) == len(hospital["admissions"])
    primary = {condition.word: set(condition.primary) for condition in CONDITIONS}
    assert all(code in primary[word] for code, word in zip(first["icd9_code"], first["diagnosis"], strict=True))
    assert hospital["diagnoses_icd"]["icd9_code"].str.startswith("0").any()
    assert hospital["procedures_icd"]["icd9_code"].str.startswith("0").any()


def test_people_depend_on_their_age(hospital: Tables) -> None:
    rows = hospital["admissions"].merge(hospital["patients"], on="subject_id")
    age = rows["admittime"].dt.year - rows["dob"].dt.year
    widowed, medicare = rows["marital_status"] == "WIDOWED", rows["insurance"] == "Medicare"
    assert widowed[age >= 80].mean() > 0.25 > 0.05 > widowed[age < 60].mean()
    assert medicare[age >= 65].mean() > 0.8 > 0.3 > medicare[age.between(18, 60)].mean()
    several = rows.groupby("subject_id").size()
    assert 0.1 < (several > 1).mean() < 0.35
    marital = rows.groupby("subject_id")["marital_status"].nunique()
    assert marital.max() == 1


def test_procedures_depend_on_the_diagnosis(hospital: Tables) -> None:
    admissions = hospital["admissions"].set_index("hadm_id")["diagnosis"]
    bypass = set(hospital["procedures_icd"].query("icd9_code == '3961'")["hadm_id"])
    with_bypass = pd.Series(admissions.index.isin(bypass), index=admissions.index).groupby(admissions).mean()
    assert with_bypass["CORONARY ARTERY DISEASE"] > 0.4
    assert with_bypass.drop("CORONARY ARTERY DISEASE").max() == 0


def test_vital_signs_are_hourly_autocorrelated_and_have_gaps(hospital: Tables) -> None:
    events = hospital["chartevents"].query("itemid in (211, 220045)").dropna(subset="valuenum").copy()
    by_stay = events.groupby("icustay_id")
    hours = by_stay["charttime"].diff().dt.total_seconds() / 3600
    assert 0.9 < hours.median() < 1.1
    assert (hours > 3).any()
    level = by_stay["valuenum"].transform("mean")
    own = events["valuenum"] - level
    near = own.groupby(events["icustay_id"]).shift()
    keep = near.notna() & (hours < 1.5)
    assert np.corrcoef(own[keep], near[keep])[0, 1] > 0.6
    assert by_stay.size().max() <= vitals.CHARTED_HOURS_MOST


def test_vital_signs_lie_in_their_range_and_pressures_in_order(hospital: Tables) -> None:
    events = hospital["chartevents"].dropna(subset="valuenum")
    for vital in vitals.VITALS:
        assert events.loc[events["itemid"].isin(vital.items), "valuenum"].between(*vital.bounds).all()
    celsius = events.loc[events["itemid"] == vitals.CELSIUS, "valuenum"]
    assert celsius.between(31, 43).all() and len(celsius) > 0
    wide = events.pivot(index=["icustay_id", "charttime"], columns="itemid", values="valuenum")
    for high, low in ((51, 8368), (220179, 220180)):
        both = wide[[high, low]].dropna()
        assert (both[high] > both[low]).all() and len(both) > 0
    assert (events["value"].astype(float) == events["valuenum"]).all()
    source = hospital["icustays"].set_index("icustay_id")["dbsource"]
    assert ((events["icustay_id"].map(source) == "carevue") == (events["itemid"] < 220_000)).all()


def test_only_the_first_stays_are_charted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vitals, "CHARTED_STAYS_MOST", 30)
    monkeypatch.setattr(vitals, "STAYS_IN_BATCH", 7)
    made = {name: rows.to_pandas() for name, rows in whole(100, 1).items()}
    charted = set(made["chartevents"]["hadm_id"])
    assert made["chartevents"]["icustay_id"].nunique() == 30
    assert set(made["admissions"].query("has_chartevents_data == 1")["hadm_id"]) == charted
    assert (made["chartevents"]["row_id"] == np.arange(1, len(made["chartevents"]) + 1)).all()
