import { z } from '@hono/zod-openapi'
import { KEY_GRACE_MAX_MS, KEY_GRACE_MS } from '../../accounts/key.ts'
import {
  FORM_SCOPE,
  KEY_RATE_MAX,
  RESTRICTIONS_MAX,
  readAllowedDomain,
  readAllowedIp,
  SCOPES,
} from '../../accounts/key-rights.ts'
import { PUBLISHABLE_KEY_RATE } from '../../accounts/keys.ts'
import { NAME_LENGTH_MAX } from '../../accounts/name.ts'
import { SECOND } from '../../platform/clock.ts'
import { timeInput } from '../query.ts'
import { successBody } from './answers.ts'
import { time, total } from './fields.ts'

// Schemas of API keys.

/** Each scope twice: a repeated one counts once. */
const SCOPES_MAX = 2 * SCOPES.length

const scopes = z
  .array(z.enum(SCOPES))
  .min(1)
  .max(SCOPES_MAX)
  .transform(list => [...new Set(list)])
  .openapi({
    type: 'array',
    items: { type: 'string', enum: [...SCOPES] },
    minItems: 1,
    maxItems: SCOPES_MAX,
    example: ['verify:single', 'verify:bulk'],
    description:
      "Permissions of the key. `*` grants all. The key can't have more permissions than the calling key.",
  })

/** A domain has at most 253 characters, and may have a scheme and a port. */
const RESTRICTION_LENGTH_MAX = 300

/** A list of restrictions, normalized by `read`, which returns null for an invalid one. */
const entries = (
  read: (text: string) => string | null,
  error: string,
  o: { readonly description: string; readonly example: string[] },
) =>
  z
    .array(
      z
        .string()
        .max(RESTRICTION_LENGTH_MAX)
        .transform((text, ctx) => {
          const entry = read(text)
          if (entry !== null) return entry
          ctx.addIssue({ code: 'custom', message: error })
          return z.NEVER
        }),
    )
    .max(RESTRICTIONS_MAX)
    .openapi({
      type: 'array',
      items: { type: 'string', maxLength: RESTRICTION_LENGTH_MAX },
      maxItems: RESTRICTIONS_MAX,
      ...o,
    })

const allowed_ips = entries(
  readAllowedIp,
  'must be an IP address or a CIDR, such as 203.0.113.0/24',
  {
    description: 'IP addresses and CIDR ranges that can use the key. If empty, every address can.',
    example: ['203.0.113.0/24'],
  },
)

const allowed_domains = entries(readAllowedDomain, 'must be a domain, such as app.example.com', {
  description:
    'Domains of the websites that can use the key from a browser, including their subdomains. If empty, every website can. A publishable key needs at least one.',
  example: [],
})

const settings = {
  name: z
    .string()
    .trim()
    .min(1)
    .max(NAME_LENGTH_MAX)
    .openapi({ description: 'Display name.', example: 'CI' }),
  scopes,
  allowed_ips,
  allowed_domains,
  rate_limit_per_minute: z.int().min(1).max(KEY_RATE_MAX).nullable().openapi({
    description:
      'Requests per minute that this key can send, in addition to the limit of the plan. Null: no additional limit.',
    example: 600,
  }),
  expires_at: timeInput().nullable().openapi({
    description: 'When the key stops working. Null if it does not expire.',
    example: '2026-06-19T10:30:00.000Z',
  }),
}

export const NewKeyRequest = z
  .strictObject({
    name: settings.name,
    scopes: settings.scopes.optional(),
    publishable: z
      .boolean()
      .optional()
      .openapi({
        example: false,
        description: `Set to true instead of \`scopes\` for a key of forms on websites, which may be part of a page. It needs \`allowed_domains\`. Without \`rate_limit_per_minute\` it can send ${PUBLISHABLE_KEY_RATE} requests per minute.`,
      }),
    test: z.boolean().optional().openapi({
      example: false,
      description:
        'Set to true to create a test key (`ev_test_…`). All of its requests are simulated, as with `X-EV-Sandbox: true`. A test key can only manage test keys.',
    }),
    allowed_ips: settings.allowed_ips.optional(),
    allowed_domains: settings.allowed_domains.optional(),
    rate_limit_per_minute: settings.rate_limit_per_minute.optional(),
    expires_at: settings.expires_at.optional(),
  })
  .superRefine(({ scopes, publishable = false, test = false }, ctx) => {
    if (publishable && test) {
      const message = 'must be false if "publishable" is true'
      ctx.addIssue({ code: 'custom', path: ['test'], message })
    }
    if (publishable === (scopes === undefined)) return
    const message = publishable
      ? 'must be omitted if "publishable" is true'
      : 'must be an array unless "publishable" is true'
    ctx.addIssue({ code: 'custom', path: ['scopes'], message })
  })
  .openapi('NewKey')

export const KeyPatchRequest = z.strictObject(settings).partial().openapi('KeyPatch')

const GRACE_S_MAX = KEY_GRACE_MAX_MS / SECOND
const GRACE_S_DEFAULT = KEY_GRACE_MS / SECOND

export const RotateRequest = z
  .strictObject({
    grace_period_seconds: z.int().min(0).max(GRACE_S_MAX).default(GRACE_S_DEFAULT).openapi({
      description: 'Seconds for which the current secret remains valid.',
      example: 3_600,
    }),
  })
  .openapi('KeyRotation')

/** Error message for the last key of an account. */
export const KeyDeletionQuery = z.object({
  force: z.enum(['true', 'false']).optional().openapi({
    description:
      'Set to true to delete even the last key of the account. You can then create another key only on the command line.',
  }),
})

const head = {
  id: z.string().openapi({ example: 'key_01' }),
  name: z.string().openapi({ example: 'CI' }),
  prefix: z
    .string()
    .openapi({ description: 'First characters of the secret.', example: 'ev_live_a1b2' }),
}

const rest = {
  hint: z.string().openapi({ description: 'Last characters of the secret.', example: 'k2p4' }),
  publishable: z.boolean().openapi({
    description:
      'Whether this is a publishable key for forms on websites. Its only scope is `verify:form`.',
    example: false,
  }),
  test: z.boolean().openapi({
    description: 'Whether this is a test key: all of its requests are simulated.',
    example: false,
  }),
  scopes: z
    .array(z.enum([...SCOPES, FORM_SCOPE]))
    .openapi({ example: ['verify:single', 'verify:bulk'] }),
  allowed_ips: z.array(z.string()).openapi({ example: ['203.0.113.0/24'] }),
  allowed_domains: z.array(z.string()).openapi({ example: [] }),
  rate_limit_per_minute: z.int().nullable().openapi({ example: null }),
  created_at: time,
  expires_at: time.nullable().openapi({ example: null }),
  last_used_at: time.nullable().openapi({ example: null }),
}

const Key = z.object({ ...head, ...rest }).openapi('Key')

const keyWithText = {
  ...head,
  key: z.string().openapi({
    description: 'The secret of the key, returned only once.',
    example: 'ev_live_a1b2c3d4e5f6a7b8c9d0e1f2a3b4c5d6x9k2p4',
  }),
  ...rest,
}

export const KeyAnswer = successBody(Key).openapi('KeyAnswer')

export const KeyList = successBody(z.object({ keys: z.array(Key), total })).openapi('KeyList')

export const CreatedKey = successBody(z.object(keyWithText)).openapi('CreatedKey')

export const RotatedKey = successBody(
  z.object({
    ...keyWithText,
    previous_key_expires_at: time.openapi({
      description: 'When the previous secret stops working.',
      example: '2026-03-21T11:30:00.000Z',
    }),
  }),
).openapi('RotatedKey')

/** A request for a key: the fields that most keys have. */
export const NEW_KEY_EXAMPLE = {
  scopes: ['verify:single' as const, 'verify:bulk' as const],
  allowed_ips: ['203.0.113.0/24'],
}
