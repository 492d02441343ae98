SELECT * FROM {{ source('hospital', 'visits') }}
