"""The columns, hierarchies and queries of jobs on the real data sets."""

from __future__ import annotations

ADULT = "sex age race marital-status education native-country workclass occupation salary-class".split()


MIMIC_TABLES = {
    "PATIENTS": "row_id INTEGER, subject_id INTEGER, gender VARCHAR, dob TIMESTAMP, dod TIMESTAMP, dod_hosp TIMESTAMP, "
    "dod_ssn TIMESTAMP, expire_flag INTEGER",
    "ADMISSIONS": "row_id INTEGER, subject_id INTEGER, hadm_id INTEGER, admittime TIMESTAMP, dischtime TIMESTAMP, "
    "deathtime TIMESTAMP, admission_type VARCHAR, admission_location VARCHAR, discharge_location VARCHAR, "
    "insurance VARCHAR, language VARCHAR, religion VARCHAR, marital_status VARCHAR, ethnicity VARCHAR, "
    "edregtime TIMESTAMP, edouttime TIMESTAMP, diagnosis VARCHAR, hospital_expire_flag INTEGER, "
    "has_chartevents_data INTEGER",
    "PROCEDURES_ICD": "row_id INTEGER, subject_id INTEGER, hadm_id INTEGER, seq_num INTEGER, icd9_code VARCHAR",
}


FIRST_ADMISSIONS = """
    SELECT p.subject_id, p.gender, year(p.dob) AS dob_year, a.insurance, a.language, a.religion, a.marital_status,
           c.icd9_code AS procedure_code, a.admission_type, a.admittime
    FROM {patients} AS p
    JOIN (SELECT *, ROW_NUMBER() OVER (PARTITION BY subject_id ORDER BY admittime, hadm_id) AS nth FROM {admissions})
      AS a ON a.subject_id = p.subject_id AND a.nth = 1
    LEFT JOIN {procedures} AS c ON c.hadm_id = a.hadm_id AND c.seq_num = 1"""
