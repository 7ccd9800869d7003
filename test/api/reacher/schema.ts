import { Ajv } from 'ajv'
import addFormats from 'ajv-formats'

// The responses of Reacher 0.11.7 as JSON schemas: the fields of `backend/openapi.json`, and where
// that differs from what the service sends, those of `core/src/util/input_output.rs`, `mx/mod.rs`,
// `smtp/mod.rs` and `syntax/mod.rs`. Every object is closed, so that a field too many is an error.

const closed = (properties: Record<string, object>, optional: readonly string[] = []) => ({
  type: 'object',
  properties,
  required: Object.keys(properties).filter(name => !optional.includes(name)),
  additionalProperties: false,
})

const boolean = { type: 'boolean' }
const text = { type: 'string' }
const textOrNull = { type: ['string', 'null'] }
const count = { type: 'integer', minimum: 0 }
const time = { type: 'string', format: 'date-time' }
const error = (types: readonly string[]) => closed({ type: { enum: types }, message: text })

const Check = closed({
  input: text,
  is_reachable: { enum: ['safe', 'risky', 'invalid', 'unknown'] },
  misc: closed({
    is_disposable: boolean,
    is_role_account: boolean,
    is_b2c: boolean,
    gravatar_url: textOrNull,
    haveibeenpwned: { type: ['boolean', 'null'] },
  }),
  mx: {
    oneOf: [
      closed({
        accepts_mail: boolean,
        records: { type: 'array', items: { type: 'string', pattern: '\\.$' } },
      }),
      closed({ error: error(['IoError', 'ResolveError']) }),
    ],
  },
  smtp: {
    oneOf: [
      closed({
        can_connect_smtp: boolean,
        has_full_inbox: boolean,
        is_catch_all: boolean,
        is_deliverable: boolean,
        is_disabled: boolean,
      }),
      closed(
        {
          error: error(['AsyncSmtpError', 'IOError', 'Timeout', 'Socks5', 'AnyhowError']),
          description: { enum: ['IpBlacklisted', 'NeedsRDNS'] },
        },
        ['description'],
      ),
    ],
  },
  syntax: closed({
    address: textOrNull,
    domain: text,
    is_valid_syntax: boolean,
    username: text,
    normalized_email: textOrNull,
    suggestion: textOrNull,
  }),
  debug: closed({
    backend_name: text,
    start_time: time,
    end_time: time,
    duration: closed({ secs: count, nanos: count }),
    smtp: closed({
      verif_method: closed({ type: { enum: ['Smtp', 'Skipped'] }, host: text }, ['host']),
    }),
  }),
})

const Progress = closed({
  job_id: { type: 'integer', minimum: 1, maximum: 2_147_483_647 },
  created_at: time,
  finished_at: { type: ['string', 'null'], format: 'date-time' },
  total_records: count,
  total_processed: count,
  summary: closed({
    total_safe: count,
    total_risky: count,
    total_invalid: count,
    total_unknown: count,
  }),
  job_status: { enum: ['Running', 'Completed'] },
})

const Results = closed({ results: { type: 'array', items: Check } })

const ajv = new Ajv({ allErrors: true, allowUnionTypes: true })
addFormats.default(ajv)

const check = (schema: object) => {
  const validate = ajv.compile(schema)
  return (body: unknown): string | null => (validate(body) ? null : ajv.errorsText(validate.errors))
}

/** Each returns what is wrong with a body; null if it is what Reacher could have sent. */
export const checkFault = check(Check)
export const progressFault = check(Progress)
export const resultsFault = check(Results)
