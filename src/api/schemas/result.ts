import { z } from '@hono/zod-openapi'
import { CLASSES } from '../../engine/verdict/reason.ts'
import { RESULT_FIELDS } from '../../engine/verdict/result-fields.ts'
import { EXTERNAL_SOURCES } from '../../engine/verdict/verdict.ts'
import {
  buildExample,
  type JsonField,
  type JsonFields,
  type JsonObject,
} from '../../platform/json-fields.ts'
import { Evidence } from './evidence.ts'

// Schemas of results. Names and order are those of the interface.

/** Fields of `RESULT_FIELDS` as schemas. */
type Schemas<Fields extends JsonFields> = {
  readonly [Name in keyof Fields & keyof JsonObject<Fields>]: z.ZodType<JsonObject<Fields>[Name]>
}

const toSchemas = <Fields extends JsonFields>(fields: Fields): Schemas<Fields> =>
  Object.fromEntries(
    Object.entries(fields).map(([name, field]) => [name, toSchema(field)]),
  ) as unknown as Schemas<Fields>

/** Responses are not validated with it: it documents them, and types the handlers. */
function toSchema(field: JsonField): z.ZodType {
  const { description, schemaName, example } = field
  const schema = toPlainSchema(field)
  const described = schema.openapi({
    ...(description === undefined ? {} : { description }),
    ...(example === undefined ? {} : { example }),
  })
  return schemaName === undefined ? described : described.openapi(schemaName)
}

function toPlainSchema(field: JsonField): z.ZodType {
  if (field.type === 'boolean') return z.boolean()
  if (field.type === 'string') return field.enum === undefined ? z.string() : z.enum(field.enum)
  if (field.type === 'object') {
    return 'properties' in field
      ? z.object(toSchemas(field.properties))
      : z.record(z.string(), z.string())
  }
  const { minimum = Number.MIN_SAFE_INTEGER, maximum } = field
  const integer = z.int().min(minimum)
  return maximum === undefined ? integer : integer.max(maximum)
}

export const plainFields = toSchemas(RESULT_FIELDS)

const addressFlagFields = {
  is_disposable: z
    .boolean()
    .openapi({ description: 'Whether the domain provides temporary addresses.', example: false }),
  is_role: z.boolean().openapi({
    description: 'Whether the address belongs to a role, such as `info@`, rather than a person.',
    example: false,
  }),
  is_catch_all: z.boolean().nullable().openapi({
    description: "Whether the domain accepts mail for every address. Null if it wasn't tested.",
    example: false,
  }),
  is_free: z.boolean().openapi({
    description: 'Whether the domain is a free email provider.',
    example: false,
  }),
  is_relay: z.boolean().openapi({
    description: 'Whether the address is an alias of a forwarding service.',
    example: false,
  }),
}

/** The mail server and its reply. */
export const hostFields = {
  operator: z.string().nullable().openapi({
    description: 'Operator of the mail servers of the domain.',
    example: 'example.com',
  }),
  mx_host: z.string().nullable().openapi({
    description:
      'The mail server that was contacted. If none was, the preferred mail server of the domain.',
    example: 'mx.example.com',
  }),
  smtp_code: z.int().nullable().openapi({
    description: "SMTP reply code of the mail server. Null if it didn't reply.",
    example: 250,
  }),
  smtp_text: z.string().nullable().openapi({
    description: "Reply of the mail server. If it didn't reply, what happened instead.",
    example: 'Ok',
  }),
}

/** Fields that `?include=flags` adds. */
const flagFields = {
  retry_after: z.int().optional().openapi({
    description: 'Seconds to wait before you retry the address. Only present if known.',
    example: 300,
  }),
  flags: z.object(addressFlagFields).optional(),
  did_you_mean: z.string().nullable().optional().openapi({
    description: 'Suggested address, if the domain looks misspelled. Otherwise null.',
    example: null,
  }),
  canonical: z.string().nullable().optional().openapi({
    description:
      "Canonical form of the address at its provider, such as `ann@gmail.com` for `A.nn+news@googlemail.com`. Addresses with the same canonical form are the same mailbox. Null if the text isn't an address.",
    example: 'user@example.com',
  }),
  mx_host: hostFields.mx_host.optional(),
  checked_at: z.string().optional().openapi({
    format: 'date-time',
    description: 'When the address was verified. For a cached result, this is in the past.',
    example: '2026-03-21T10:30:00.000Z',
  }),
}

const includedFields = {
  ...flagFields,
  evidence: Evidence.optional(),
}

export const SingleResult = z
  .object({
    ...plainFields,
    ...includedFields,
    checked_by: z.enum(EXTERNAL_SOURCES).optional().openapi({
      description:
        'The service whose result the list brought with it. ev has not tested the address. Only present in rows with such a result.',
      example: 'zerobounce',
    }),
    sandbox: z.literal(true).optional().openapi({ description: 'The result is simulated.' }),
  })
  .openapi('SingleResult')

/** The result of `POST /v1/verify`: the plain result with a status, a score and flags. */
export const ScoredResult = z
  .object({
    ...plainFields,
    status: z.enum(CLASSES).openapi({
      description:
        'The class of the result, except that a simulated `unknown` is `risky` here. `class` has the simulated value.',
      example: 'deliverable',
    }),
    score: z.int().min(0).max(100).openapi({
      description: 'Quality of the address from 0 (do not send) to 100 (send).',
      example: 95,
    }),
    is_disposable: addressFlagFields.is_disposable,
    is_role: addressFlagFields.is_role,
    is_catch_all: addressFlagFields.is_catch_all,
    is_free: addressFlagFields.is_free,
    ...includedFields,
    sandbox: z
      .boolean()
      .openapi({ description: 'Whether the result is simulated.', example: false }),
  })
  .openapi('ScoredResult')

/** One row of a list. */
const pickItem = <Value extends Record<ItemField, unknown>>(of: Value): Pick<Value, ItemField> => ({
  email: of.email,
  valid: of.valid,
  deliverable: of.deliverable,
  risk_level: of.risk_level,
  reason: of.reason,
  cached: of.cached,
  class: of.class,
  action: of.action,
})

type ItemField =
  | ('email' | 'valid' | 'deliverable' | 'risk_level' | 'reason' | 'cached')
  | ('class' | 'action')

export const BulkItem = z.object(pickItem(plainFields)).openapi('BulkItem')

export const RESULT_EXAMPLE = buildExample(RESULT_FIELDS)
