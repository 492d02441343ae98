"""Figures of others, to stand beside the measured ones; nothing else here is typed in.

ARX 3.9 with k = 5 and its model "Loss" (arithmetic mean, gsFactor 0.5), on one core of a machine like the one that the
limits are meant for; taken down with the data sets that the benchmark reads, in the README of their folder.
"""

ARX = {
    "adult 0 %": "170 checks",
    "adult 5 %": "400–1,050 checks, 0.53–1.5 s",
    "adult ×33": "about 14 s",
    "adult ×330": "about 85 s and output, 3.5 GB",
    "wide 9": "1,036 checks, 4.9 s",
    "wide 10": "3,886 checks, 21.4 s",
    "wide 11": "unproven in 200 s, 0.397049 after 60 s",
    "wide 12": "unproven, 0.446929 after 60 s",
    "wide 16": "unproven, 0.585138 after 60 s",
}

OPTIMA = {9: 0.2635584187, 10: 0.33720257683}
"""Least `loss` of the first attributes of `wide`, k = 5, limit 5 %, to 1e-8; found by ARX, too."""
