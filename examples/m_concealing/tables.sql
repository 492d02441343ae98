-- The three tables of MIMIC-III that the models need. Types are stated, because codes have leading zeros.
CREATE SCHEMA mimiciii;

CREATE TABLE mimiciii.patients (
    row_id INTEGER, subject_id INTEGER, gender VARCHAR, dob TIMESTAMP, dod TIMESTAMP, dod_hosp TIMESTAMP,
    dod_ssn TIMESTAMP, expire_flag INTEGER
);

CREATE TABLE mimiciii.admissions (
    row_id INTEGER, subject_id INTEGER, hadm_id INTEGER, admittime TIMESTAMP, dischtime TIMESTAMP, deathtime TIMESTAMP,
    admission_type VARCHAR, admission_location VARCHAR, discharge_location VARCHAR, insurance VARCHAR,
    language VARCHAR, religion VARCHAR, marital_status VARCHAR, ethnicity VARCHAR, edregtime TIMESTAMP,
    edouttime TIMESTAMP, diagnosis VARCHAR, hospital_expire_flag INTEGER, has_chartevents_data INTEGER
);

CREATE TABLE mimiciii.procedures_icd (
    row_id INTEGER, subject_id INTEGER, hadm_id INTEGER, seq_num INTEGER, icd9_code VARCHAR
);
